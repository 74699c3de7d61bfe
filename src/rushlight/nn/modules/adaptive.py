"""Softmax over many classes, of which a few are frequent."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import rushlight
from rushlight import Tensor

from .. import functional as F
from .container import ModuleList, Sequential
from .linear import Linear
from .module import Module

__all__ = ["AdaptiveLogSoftmaxWithLoss"]


class _ASMoutput(NamedTuple):
    output: Tensor
    loss: Tensor


class AdaptiveLogSoftmaxWithLoss(Module):
    """Log-probabilities of targets among `n_classes` classes, sorted by frequency, and their mean loss.

    Classes below ``cutoffs[0]`` are scored by the head, together with one entry for each cluster of the others;
    cluster ``i`` holds the classes from ``cutoffs[i]`` to the next cutoff, and scores them from ``in_features /
    div_value^(i+1)`` features (Grave et al. 2017, *Efficient softmax approximation for GPUs*).

    Input ``(N, in_features)`` or ``(in_features,)``, target ``(N,)`` or ``()`` in ``[0, n_classes)``; the result is the
    pair ``(output, loss)``: the targets' log-probabilities and minus their mean. `cutoffs` that are not increasing
    integers between 1 and ``n_classes - 1`` are a ``ValueError``.
    """

    head: Linear
    tail: ModuleList

    def __init__(
        self,
        in_features: int,
        n_classes: int,
        cutoffs: Sequence[int],
        div_value: float = 4.0,
        head_bias: bool = False,
        device: Any = None,
        dtype: rushlight.dtype | None = None,
    ) -> None:
        super().__init__()
        cutoffs = list(cutoffs)
        if not cutoffs:
            raise ValueError("cutoffs should be a sequence of length larger than 0")
        if (
            cutoffs != sorted(set(cutoffs))
            or cutoffs[0] <= 0
            or cutoffs[-1] > n_classes - 1
            or any(int(c) != c for c in cutoffs)
        ):
            raise ValueError(
                "cutoffs should be a sequence of unique, positive integers sorted in an increasing order, "
                f"where each value is between 1 and n_classes-1, got {cutoffs} for {n_classes} classes"
            )
        self.in_features = in_features
        self.n_classes = n_classes
        self.cutoffs = [*cutoffs, n_classes]
        self.div_value = div_value
        self.head_bias = head_bias
        self.shortlist_size = cutoffs[0]
        self.n_clusters = len(cutoffs)
        self.head_size = self.shortlist_size + self.n_clusters
        self.head = Linear(in_features, self.head_size, bias=head_bias, device=device, dtype=dtype)
        self.tail = ModuleList()
        for i, (low, high) in enumerate(zip(self.cutoffs, self.cutoffs[1:], strict=False)):
            hidden = int(in_features // div_value ** (i + 1))
            self.tail.append(
                Sequential(
                    Linear(in_features, hidden, bias=False, device=device, dtype=dtype),
                    Linear(hidden, high - low, bias=False, device=device, dtype=dtype),
                )
            )

    def reset_parameters(self) -> None:
        """Draws the initial values of all layers again."""
        self.head.reset_parameters()
        for projection, output in self.tail:
            projection.reset_parameters()
            output.reset_parameters()

    def forward(self, input_: Tensor, target_: Tensor) -> _ASMoutput:
        if target_.dim() > 1:
            raise RuntimeError(
                f"0D or 1D target tensor expected, multi-target not supported. Got {target_.dim()} dimensions."
            )
        batched = target_.dim() == 1
        if input_.dim() != target_.dim() + 1 or (batched and input_.shape[0] != target_.shape[0]):
            raise RuntimeError(
                "Input and target should have the same size in the batch dimension. "
                f"Got {tuple(input_.shape)} and {tuple(target_.shape)}."
            )
        rows, target = (input_, target_) if batched else (input_.unsqueeze(0), target_.unsqueeze(0))
        if target.numel() and not bool(((target >= 0) & (target < self.n_classes)).all()):
            raise RuntimeError(
                f"Target values should be in [0, {self.n_classes - 1}], "
                f"but values in range [{target.min().item()}, {target.max().item()}] were found. "
            )
        output = self._target_log_prob(rows, target)
        loss = -output.mean()
        return _ASMoutput(output if batched else output.squeeze(0), loss)

    def _target_log_prob(self, rows: Tensor, target: Tensor) -> Tensor:
        entry = target.clone()  # the head's entry for each row: its class, or its cluster
        within = rows.new_zeros(target.shape[0])  # its log-probability within the cluster
        for i, (low, high) in enumerate(zip(self.cutoffs, self.cutoffs[1:], strict=False)):
            member = (target >= low) & (target < high)
            places = member.nonzero().squeeze(1)
            if places.numel():
                entry = entry.masked_fill(member, self.shortlist_size + i)
                scores = F.log_softmax(self.tail[i](rows.index_select(0, places)), 1)
                chosen = scores.gather(1, (target.index_select(0, places) - low).unsqueeze(1)).squeeze(1)
                within = within.index_add(0, places, chosen)
        return F.log_softmax(self.head(rows), 1).gather(1, entry.unsqueeze(1)).squeeze(1) + within

    def log_prob(self, input: Tensor) -> Tensor:
        """The log-probabilities of all classes, ``(N, n_classes)``, for an input ``(N, in_features)``."""
        head = F.log_softmax(self.head(input), 1)
        parts = [head[:, : self.shortlist_size]]
        for i, cluster in enumerate(self.tail):
            entry = self.shortlist_size + i
            parts.append(F.log_softmax(cluster(input), 1) + head[:, entry : entry + 1])
        return rushlight.cat(parts, 1)

    def predict(self, input: Tensor) -> Tensor:
        """The most probable class of each row, ``(N,)``; clusters are scored only where the head prefers one."""
        best = rushlight.argmax(self.head(input), 1)
        rest = (best >= self.shortlist_size).nonzero().squeeze(1)
        if not rest.numel():
            return best
        return best.index_copy(0, rest, rushlight.argmax(self.log_prob(input.index_select(0, rest)), 1))
