"""Connectionist temporal classification: the forward-backward recursion in log space, and its gradient.

The recursion (Graves et al. 2006, *Connectionist temporal classification*) runs over the labels with a blank before,
between and after them: ``2S + 1`` states, of which a path leaves one for the next, or for the one after the next where
that is another label. All samples and states advance together; only time is a loop.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

import rushlight
from rushlight import Tensor

from ...operators.operation import Operation, Samples, reading
from .. import _reduction

__all__ = ["ctc_loss"]

_Reals = npt.NDArray[np.float64]
_Integers = npt.NDArray[np.int64]
_Flags = npt.NDArray[np.bool_]


def _losses_of_samples(given: Samples) -> Any:
    """The samples of vmap are more samples of one batch; what does not fit is refused sample by sample."""
    log_probs, targets = given.full("log_probs"), given.full("targets")
    steps, counts = [_lengths_of_samples(given, name) for name in ("input_lengths", "target_lengths")]
    single = log_probs.dim() == 3
    if single:
        log_probs = log_probs.unsqueeze(2)
    if log_probs.dim() != 4 or targets is None or not given.size:
        return NotImplemented
    size, time, batch, classes = log_probs.shape
    if steps.shape != (size, batch) or counts.shape != (size, batch) or counts.min() < 0:
        return NotImplemented
    if targets.dim() == 2:  # all labels of a sample in one row
        if (counts.sum(1) != targets.shape[1]).any():
            return NotImplemented
    elif targets.dim() != 3 or targets.shape[1] != batch:
        return NotImplemented
    mode = _reduction.get_enum(given.arguments["reduction"])
    loss: Tensor = ctc_loss(
        log_probs.transpose(0, 1).reshape(time, size * batch, classes),
        targets.flatten(0, 1),
        rushlight.from_numpy(steps.reshape(-1)),
        rushlight.from_numpy(counts.reshape(-1)),
        given.arguments["blank"],
        "none",
        given.arguments["zero_infinity"],
    ).view(size, batch)
    if mode == 1:
        return (loss / rushlight.from_numpy(np.maximum(counts, 1)).to(loss.dtype)).mean(1)
    if mode == 2:
        return loss.sum(1)
    return loss.squeeze(1) if single else loss


def _lengths_of_samples(given: Samples, name: str) -> _Integers:
    """The lengths as ``(size, N)``; as they are where they are no integers, which is refused later."""
    lengths = given.full(name)
    if lengths is None:
        return np.tile(np.asarray(given.arguments[name], np.int64).reshape(-1), (given.size, 1))
    if lengths.is_floating_point() or lengths.is_complex():
        return np.zeros((0, 0), np.int64)
    result: _Integers = lengths.detach().reshape(given.size, -1).numpy().astype(np.int64)
    return result


@reading("log_probs", "targets", "input_lengths", "target_lengths", rule=_losses_of_samples)
def ctc_loss(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Tensor | Sequence[int],
    target_lengths: Tensor | Sequence[int],
    blank: int = 0,
    reduction: str = "mean",
    zero_infinity: bool = False,
) -> Tensor:
    """Minus the logarithm of the summed probability of all alignments of each sample's labels with its time steps.

    `log_probs` is ``(T, N, C)`` or ``(T, C)``, logarithms that are normalised over ``C`` (the gradient assumes it,
    being that of the logits behind them: ``exp(log_probs)`` minus the posterior of each class). `targets` is ``(N,
    S)`` padded, ``(S,)`` for one sample, or all samples' labels in one row; lengths are ``(N,)`` integers. `blank` is
    the class between labels. ``"mean"`` divides each loss by its number of labels first. A sample that is too short
    for its labels has an infinite loss and a NaN gradient, or zeros with `zero_infinity`. Lengths that exceed the
    data, a `blank` or labels outside ``[0, C)`` are a ``RuntimeError``.
    """
    mode = _reduction.get_enum(reduction)
    batched = log_probs.dim() == 3
    if not batched:
        if log_probs.dim() != 2:
            raise (RuntimeError if log_probs.dim() else IndexError)(
                f"ctc_loss: expected log_probs with 2 or 3 dimensions, got {log_probs.dim()}"
            )
        log_probs = log_probs.unsqueeze(1)
    if log_probs.dtype not in (rushlight.float32, rushlight.float64):
        raise NotImplementedError(f'"ctc_loss" not implemented for {log_probs.dtype}, expected float32 or float64')
    if not log_probs.numel():
        raise RuntimeError(f"log_probs tensor must not be empty, got {tuple(log_probs.shape)}\nin ctc_loss()")
    labels, steps, counts = _checked_targets(log_probs, targets, input_lengths, target_lengths, blank)
    loss: Tensor = CtcLoss.apply(log_probs, labels, steps, counts, blank, zero_infinity)
    if mode == 1:
        return (loss / rushlight.from_numpy(np.maximum(counts, 1)).to(loss.dtype)).mean()
    if mode == 2:
        return loss.sum()
    return loss if batched else loss.squeeze(0)


def _lengths(lengths: Tensor | Sequence[int], name: str, batch: int) -> _Integers:
    if isinstance(lengths, Tensor):
        if lengths.is_floating_point() or lengths.is_complex():
            raise RuntimeError(f"{name} must be integral, got {lengths.dtype}\nin ctc_loss()")
        lengths = lengths.detach().reshape(-1).tolist()
    result = np.asarray(lengths, np.int64).reshape(-1)
    if result.size != batch:
        raise RuntimeError(f"{name} must be of size batch_size: expected {batch}, got {result.size}\nin ctc_loss()")
    return result


def _checked_targets(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Tensor | Sequence[int],
    target_lengths: Tensor | Sequence[int],
    blank: int,
) -> tuple[_Integers, _Integers, _Integers]:
    """The labels padded with `blank` to ``(N, S)``, the numbers of steps and those of labels."""
    time, batch, classes = log_probs.shape
    steps = _lengths(input_lengths, "input_lengths", batch)
    counts = _lengths(target_lengths, "target_lengths", batch)
    if not 0 <= blank < classes:
        raise RuntimeError(f"blank must be in label range: expected 0 <= blank < {classes}, got {blank}\nin ctc_loss()")
    if steps.min() < 0 or steps.max() > time:
        raise RuntimeError(
            f"Expected input_lengths to have value between 0 and {time}, got {steps.tolist()}\nin ctc_loss()"
        )
    if counts.min() < 0:
        raise RuntimeError(f"Expected target_lengths to have value at least 0, got {counts.tolist()}\nin ctc_loss()")
    given = targets.detach().numpy().astype(np.int64)
    longest, total = int(counts.max()), int(counts.sum())
    used = np.arange(longest) < counts[:, None]
    labels = np.full((batch, longest), blank, np.int64)
    if given.ndim == 1:
        if given.size != total:
            raise RuntimeError(
                f"Expected tensor to have size {total} at dimension 0, the sum of target_lengths, "
                f"but got size {given.size} for targets\nin ctc_loss()"
            )
        labels[used] = given
    elif given.ndim == 2:
        if given.shape[0] != batch or given.shape[1] < longest:
            raise RuntimeError(
                f"Expected tensor to have size {batch} at dimension 0 and at least {longest} at dimension 1, "
                f"but got size {list(given.shape)} for targets\nin ctc_loss()"
            )
        labels[used] = given[:, :longest][used]
    else:
        raise RuntimeError(
            f"Expected 1 to 2 dimensions, but got {given.ndim}-dimensional tensor for targets\nin ctc_loss()"
        )
    if labels.size and (labels.min() < 0 or labels.max() >= classes):
        raise RuntimeError(f"ctc_loss: expected labels in [0, {classes}), got {labels[used].tolist()}")
    return labels, steps, counts


class _Trellis:
    """What both recursions share: the states' classes and permitted moves, and where each sample ends."""

    def __init__(self, logp: _Reals, labels: _Integers, steps: _Integers, counts: _Integers, blank: int) -> None:
        time, batch, _ = logp.shape
        states = np.full((batch, 2 * labels.shape[1] + 1), blank, np.int64)
        states[:, 1::2] = labels
        self.states = states
        #: log-probability of each state's class at each step, (T, N, 2S + 1)
        self.emitted: _Reals = np.take_along_axis(logp, np.broadcast_to(states, (time, *states.shape)), 2)
        #: whether a path may enter a state from the one before the last
        self.skips: _Flags = np.zeros(states.shape, np.bool_)
        self.skips[:, 2:] = (states[:, 2:] != blank) & (states[:, 2:] != states[:, :-2])
        #: whether a path may end in a state: the last label, and the blank after it
        place = np.arange(states.shape[1])
        self.final: _Flags = (place == 2 * counts[:, None]) | (place == 2 * counts[:, None] - 1)
        self.steps = steps

    def forward(self) -> _Reals:
        """log of the probability of being in a state after emitting it, over all paths there."""
        alpha = np.full(self.emitted.shape, -np.inf)
        alpha[0, :, :2] = self.emitted[0, :, :2]
        for t in range(1, len(alpha)):
            last = alpha[t - 1]
            alpha[t] = _sum_of_moves(last, _shifted(last, 1), np.where(self.skips, _shifted(last, 2), -np.inf))
            alpha[t] += self.emitted[t]
        return alpha

    def backward(self) -> _Reals:
        """log of the probability of all that is still to be emitted after a state, over all paths from there."""
        beta = np.full(self.emitted.shape, -np.inf)
        end = np.where(self.final, 0.0, -np.inf)
        entered = _shifted(self.skips, -2, False)
        for t in range(len(beta) - 1, -1, -1):
            last = self.steps[:, None] - 1
            if t + 1 < len(beta):
                ahead = beta[t + 1] + self.emitted[t + 1]
                moves = _sum_of_moves(ahead, _shifted(ahead, -1), np.where(entered, _shifted(ahead, -2), -np.inf))
                beta[t] = np.where(t < last, moves, -np.inf)
            beta[t] = np.where(t == last, end, beta[t])
        return beta

    def loss(self, alpha: _Reals) -> _Reals:
        """Minus log of the probability of ending well, for each sample."""
        batch = np.arange(len(self.states))
        ending = np.where(self.final, alpha[self.steps - 1, batch], -np.inf)
        # before the first step nothing has been emitted: certain for no labels, impossible for some
        nothing = np.full(self.states.shape, -np.inf)
        nothing[self.final[:, 0], 0] = 0.0
        return -_log_sum(np.where((self.steps == 0)[:, None], nothing, ending))


def _shifted(x: npt.NDArray[Any], by: int, fill: float | bool = -np.inf) -> npt.NDArray[Any]:
    """`x` moved along its last dimension, towards its end where `by` is positive."""
    out = np.full_like(x, fill)
    if by > 0:
        out[..., by:] = x[..., :-by]
    else:
        out[..., :by] = x[..., -by:]
    return out


def _sum_of_moves(a: _Reals, b: _Reals, c: _Reals) -> _Reals:
    return np.logaddexp(np.logaddexp(a, b), c)


def _log_sum(x: _Reals) -> _Reals:
    greatest = x.max(-1, keepdims=True)
    greatest = np.where(np.isfinite(greatest), greatest, 0.0)
    with np.errstate(divide="ignore"):
        result: _Reals = np.log(np.exp(x - greatest).sum(-1)) + greatest[..., 0]
    return result


class CtcLoss(Operation):
    """The losses of a batch, computed in float64 whatever the dtype of the log-probabilities."""

    @staticmethod
    def forward(
        ctx: Any,
        log_probs: Tensor,
        labels: _Integers,
        steps: _Integers,
        counts: _Integers,
        blank: int,
        zero_infinity: bool,
    ) -> Tensor:
        trellis = _Trellis(_numbers(log_probs), labels, steps, counts, blank)
        alpha = trellis.forward()
        loss = trellis.loss(alpha)
        ctx.save_for_backward(log_probs)
        ctx.found = trellis, alpha, loss, zero_infinity
        shown = np.where(np.isposinf(loss), 0.0, loss) if zero_infinity else loss
        return rushlight.from_numpy(shown).to(log_probs.dtype)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        (log_probs,) = ctx.saved_tensors
        slope = CtcLossBackward.apply(log_probs, *ctx.found)
        return slope * grad.unsqueeze(-1), None, None, None, None, None


class CtcLossBackward(Operation):
    """The derivative of the losses, a function of its own so that asking for its derivative is an error, not a zero."""

    @staticmethod
    def forward(
        ctx: Any, log_probs: Tensor, trellis: _Trellis, alpha: _Reals, loss: _Reals, zero_infinity: bool
    ) -> Tensor:
        impossible = np.isposinf(loss)
        with np.errstate(invalid="ignore"):  # inf - inf where a sample is impossible
            occupied = np.exp(alpha + trellis.backward() + loss[:, None])
        time, batch, classes = log_probs.shape
        # the posterior of each class: the occupation of the states that stand for it
        cell = (np.arange(time)[:, None, None] * batch + np.arange(batch)[:, None]) * classes + trellis.states
        posterior = np.bincount(cell.ravel(), occupied.ravel(), time * batch * classes)
        result = np.exp(_numbers(log_probs)) - posterior.reshape(log_probs.shape)
        result[:, impossible] = 0.0 if zero_infinity else np.nan
        result[np.arange(time)[:, None] >= trellis.steps] = 0.0
        return rushlight.from_numpy(result).to(log_probs.dtype)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        raise RuntimeError("derivative for the gradient of ctc_loss is not implemented")


def _numbers(x: Tensor) -> _Reals:
    return x.detach().numpy().astype(np.float64)
