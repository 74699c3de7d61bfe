"""Rows of a matrix looked up by index, alone or summed up in bags; one-hot encoding."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import numpy.typing as npt

import rushlight
from rushlight import Tensor

from ...operators.operation import Samples, reading

__all__ = ["embedding", "embedding_bag", "one_hot"]

_Integers = npt.NDArray[np.int64]


def embedding(
    input: Tensor,
    weight: Tensor,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Tensor:
    """The rows of `weight` ``(n, D)`` at the indices `input` (int64 or int32) of any shape: ``(*input.shape, D)``.

    The row `padding_idx` gets no gradient. With `max_norm` the rows looked up are first scaled, in place, to at most
    that norm. `scale_grad_by_freq` divides each row's gradient by how often it occurs. An index outside ``[0, n)`` is
    an ``IndexError``; `sparse` gradients are a ``NotImplementedError``.
    """
    if sparse:
        _refuse_sparse("embedding")
    if padding_idx is None:
        padding_idx = -1
    else:
        padding_idx = _known_padding(padding_idx, weight.shape[0])
    if max_norm is not None:
        _renormalize(weight, input, max_norm, norm_type)
    return rushlight.embedding(weight, input, padding_idx, scale_grad_by_freq, False)


def _refuse_sparse(name: str) -> None:
    raise NotImplementedError(f"{name}: sparse=True is not available, gradients are dense tensors here")


def _known_padding(padding_idx: int, rows: int) -> int:
    if not -rows <= padding_idx < rows:
        raise AssertionError(f"Padding_idx must be within num_embeddings, got {padding_idx} for {rows} rows")
    return padding_idx + rows if padding_idx < 0 else padding_idx


def _renormalize(weight: Tensor, indices: Tensor, max_norm: float, norm_type: float) -> None:
    """Scales the rows of `weight` at `indices` whose norm is above `max_norm` down to it, in place."""
    with rushlight.no_grad():
        weight = weight.detach()  # tangents stay as they are, too
        used = indices.reshape(-1).unique()
        rows = weight.index_select(0, used)
        norm = rushlight.linalg.vector_norm(rows, norm_type, 1, True)
        # the small term is PyTorch's: it keeps the result below the bound in spite of rounding
        scale = rushlight.where(norm > max_norm, max_norm / (norm + 1e-7), 1.0)
        weight.index_copy_(0, used.to(rushlight.int64), rows * scale)


def _renormalize_samples(
    weight: Tensor, sample: _Integers, indices: _Integers, max_norm: float, norm_type: float
) -> None:
    """:func:`_renormalize` for a weight of each sample, ``(size, n, D)``."""
    with rushlight.no_grad():
        used = np.zeros(weight.shape[:2], np.bool_)
        used[sample, indices] = True
        norm = rushlight.linalg.vector_norm(weight.detach(), norm_type, 2, True)
        large = rushlight.from_numpy(used).unsqueeze(2) & (norm > max_norm)
        weight.detach().mul_(rushlight.where(large, max_norm / (norm + 1e-7), 1.0))


def _bags_of_samples(given: Samples) -> Any:
    """The bags of all samples side by side; a weight for each sample becomes one table of all their rows."""
    a, size = given.arguments, given.size
    weight, offsets, last, padding_idx = [a[n] for n in ("weight", "offsets", "include_last_offset", "padding_idx")]
    if size == 0 or (weight.dtype == rushlight.int64 and a["input"].is_floating_point()):
        return NotImplemented
    own = "weight" in given.batched
    if a["scale_grad_by_freq"] and not own:  # a sample's gradient counts its own indices
        weight, own = given.full("weight"), True
    input, factors = given.full("input"), given.full("per_sample_weights")
    rows = weight.shape[own]
    first = None if factors is None else factors[0]
    table = weight[0] if own else weight
    _check_bag_arguments(input[0], table, a["mode"], a["scale_grad_by_freq"], a["sparse"], first)
    if "offsets" in given.batched:
        parts, starts = zip(*[_flat_bags(input[i], offsets[i], last) for i in range(size)], strict=True)
    else:
        part, begin = _flat_bags(input[0], offsets, last)
        parts, starts = input.reshape(size, -1)[:, : len(part)].unbind(), (begin,) * size
    if factors is not None:
        factors = rushlight.cat([f[: len(part)] for f, part in zip(factors.reshape(size, -1), parts, strict=True)])
    indices = rushlight.cat(list(parts))
    numbers = indices.detach().numpy()
    _check_indices(numbers, rows, padding_idx)
    sample = np.repeat(np.arange(size), [len(part) for part in parts])
    if a["max_norm"] is not None:
        if "weight" not in given.batched:
            raise RuntimeError(
                "vmap: embedding_bag(self, *extra_args) is not possible with max_norm: it would change the weight in "
                "place, which is not batched, by indices that are"
            )
        _renormalize_samples(weight, sample, numbers, a["max_norm"], a["norm_type"])
    if own:
        indices = indices + rushlight.from_numpy(sample * rows).to(indices.dtype)
        table = weight.flatten(0, 1)
    lengths = np.concatenate([np.diff(s) for s in starts])
    pooled = _pooled(
        table, indices, lengths, _counted(numbers, rows, padding_idx), factors, a["mode"], a["scale_grad_by_freq"]
    )
    return pooled.view(size, -1, table.shape[1])


@reading("input", "weight", "offsets", "per_sample_weights", rule=_bags_of_samples)
def embedding_bag(
    input: Tensor,
    weight: Tensor,
    offsets: Tensor | None = None,
    max_norm: float | None = None,
    norm_type: float = 2,
    scale_grad_by_freq: bool = False,
    mode: str = "mean",
    sparse: bool = False,
    per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> Tensor:
    """The sum, mean or greatest (`mode`) of the rows of `weight` ``(n, D)`` in each bag of indices: ``(B, D)``.

    `input` is ``(B, L)``, each row a bag, or one row of all bags' indices, which start at `offsets` ``(B,)``; with
    `include_last_offset` the last offset ends the last bag. An empty bag gives zeros. Indices that are `padding_idx`
    count for nothing. `per_sample_weights`, shaped like `input`, multiply the rows (mode ``"sum"`` only). Others as
    for :func:`embedding`.
    """
    if weight.dtype == rushlight.int64 and input.is_floating_point():
        warnings.warn(
            "Argument order of nn.functional.embedding_bag was changed. Usage `embedding_bag(weight, input, ...)` is "
            "deprecated, and should now be `embedding_bag(input, weight, ...)`.",
            stacklevel=2,
        )
        weight, input = input, weight
    _check_bag_arguments(input, weight, mode, scale_grad_by_freq, sparse, per_sample_weights)
    indices, starts = _flat_bags(input, offsets, include_last_offset)
    numbers, rows = indices.detach().numpy(), weight.shape[0]
    _check_indices(numbers, rows, padding_idx)
    if max_norm is not None:
        _renormalize(weight, indices, max_norm, norm_type)
    factors = None if per_sample_weights is None else per_sample_weights.reshape(-1)[: numbers.size]
    counted = _counted(numbers, rows, padding_idx)
    return _pooled(weight, indices, np.diff(starts), counted, factors, mode, scale_grad_by_freq)


def _check_indices(numbers: _Integers, rows: int, padding_idx: int | None) -> None:
    outside = np.flatnonzero((numbers < 0) | (numbers >= rows))
    if outside.size:
        raise RuntimeError(
            f"Index {outside[0]} of input takes value {numbers[outside[0]]} which is not in the valid range [0, {rows})"
            "\nin embedding_bag()"
        )
    if padding_idx is not None and not -rows <= padding_idx < rows:
        raise RuntimeError(
            f"padding_idx must be within the number of embeddings, {-rows} through {rows - 1}, but got {padding_idx}"
            "\nin embedding_bag()"
        )


def _counted(numbers: _Integers, rows: int, padding_idx: int | None) -> _Integers | None:
    """Where the indices are that are not padding; None: all are."""
    return None if padding_idx is None else np.flatnonzero(numbers != padding_idx % rows)


def _pooled(
    weight: Tensor,
    indices: Tensor,
    lengths: _Integers,
    counted: _Integers | None,
    factors: Tensor | None,
    mode: str,
    by_frequency: bool,
) -> Tensor:
    """The rows at the indices, summed (or the like) over bags of these lengths."""
    bags = len(lengths)
    bag = np.repeat(np.arange(bags), lengths)
    if counted is not None:
        at = rushlight.from_numpy(counted)
        indices, bag = indices.index_select(0, at), bag[counted]
        factors = None if factors is None else factors.index_select(0, at)
    found = rushlight.embedding(weight, indices, -1, by_frequency, False)
    if mode == "max":
        return _greatest(found, bag, bags)
    if factors is not None:
        found = found * factors.unsqueeze(1)
    total = found.new_zeros(bags, weight.shape[1]).index_add(0, rushlight.from_numpy(bag), found)
    if mode == "sum":
        return total
    size = np.maximum(np.bincount(bag, minlength=bags), 1)
    return total / rushlight.from_numpy(size).unsqueeze(1).to(total.dtype)


def _check_bag_arguments(
    input: Tensor, weight: Tensor, mode: str, scale_grad_by_freq: bool, sparse: bool, per_sample_weights: Tensor | None
) -> None:
    if per_sample_weights is not None and input.shape != per_sample_weights.shape:
        raise ValueError(
            f"embedding_bag: If per_sample_weights ({per_sample_weights.shape}) is not None, "
            f"then it must have the same shape as the input ({input.shape})"
        )
    if weight.dim() != 2:
        raise ValueError(
            f"weight has to be a 2D Tensor, but got Tensor of dimension {weight.dim()}\nin embedding_bag()"
        )
    if mode not in ("sum", "mean", "max"):
        raise ValueError(f"mode has to be one of sum, mean or max, got {mode}\nin embedding_bag()")
    if mode == "max" and scale_grad_by_freq:
        raise ValueError("max mode does not support scaling the gradient by the frequency\nin embedding_bag()")
    if sparse:
        _refuse_sparse("embedding_bag")
    if input.dtype not in (rushlight.int64, rushlight.int32):
        raise RuntimeError(
            f"Expected tensor for argument 'indices' to have one of the following scalar types: Long, Int; "
            f"but got {input.dtype} instead (while checking arguments for embedding_bag)"
        )
    if per_sample_weights is None:
        return
    if mode != "sum":
        raise NotImplementedError(
            "embedding_bag: per_sample_weights was not None. per_sample_weights is only supported for mode='sum' "
            f"(got mode='{mode}')."
        )
    if per_sample_weights.dtype != weight.dtype:
        raise RuntimeError(
            "Expected weight and per_sample_weights to have the same type, "
            f"but got {weight.dtype} and {per_sample_weights.dtype} (while checking arguments for embedding_bag)"
        )


def _flat_bags(input: Tensor, offsets: Tensor | None, include_last_offset: bool) -> tuple[Tensor, _Integers]:
    """All indices in one row, and where each bag starts, with the end as the last entry."""
    if input.dim() == 2:
        if offsets is not None:
            raise ValueError(
                "if input is 2D, then offsets has to be None, as input is treated is a mini-batch of fixed length "
                f"sequences. However, found offsets of type {type(offsets)}\nin embedding_bag()"
            )
        return input.reshape(-1), np.arange(input.shape[0] + 1) * input.shape[1]
    if input.dim() != 1:
        raise ValueError(
            f"input has to be 1D or 2D Tensor, but got Tensor of dimension {input.dim()}\nin embedding_bag()"
        )
    if offsets is None:
        raise ValueError("offsets has to be a 1D Tensor but got None\nin embedding_bag()")
    if offsets.dim() != 1:
        raise ValueError(f"offsets has to be a 1D Tensor, got {offsets.dim()} dimensions\nin embedding_bag()")
    starts = offsets.detach().numpy().astype(np.int64)
    length = input.shape[0]
    if starts.size and starts[0]:
        raise RuntimeError(
            "offsets[0] has to be 0, i.e., the first sequence in the mini-batch has to start from position 0. "
            f"However, got {starts[0]}\nin embedding_bag()"
        )
    if starts.size and starts[-1] > length:
        raise RuntimeError(
            f"offsets[-1] can not be greater than input's length {length} but got offsets[-1] of {starts[-1]}"
            "\nin embedding_bag()"
        )
    if (np.diff(starts) < 0).any():
        raise RuntimeError(f"offsets must not decrease, got {starts.tolist()}\nin embedding_bag()")
    if include_last_offset:
        if not starts.size:
            raise RuntimeError("include_last_offset: number of offsets should be at least 1, got 0\nin embedding_bag()")
        return input[: int(starts[-1])], starts
    if not starts.size:
        return input[:0], np.zeros(1, np.int64)
    return input, np.append(starts, length)


@reading("rows")
def _greatest(rows: Tensor, bag: _Integers, bags: int) -> Tensor:
    """The greatest number of each column in each bag; the first of equal ones gets the gradient."""
    values = rows.detach()
    numbers = (values if values.dtype in (rushlight.float32, rushlight.float64) else values.float()).numpy()
    count, columns = numbers.shape
    best = np.full((bags, columns), -np.inf, numbers.dtype)
    np.maximum.at(best, bag, numbers)
    wins = (numbers == best[bag]) | np.isnan(numbers)
    first = np.full((bags, columns), count)
    np.minimum.at(first, bag, np.where(wins, np.arange(count)[:, None], count))
    # an empty bag points at the row of zeros after the last
    return rushlight.cat([rows, rows.new_zeros(1, columns)]).gather(0, rushlight.from_numpy(first))


def one_hot(tensor: Tensor, num_classes: int = -1) -> Tensor:
    """Classes (int64) of any shape as vectors of zeros with a one at the class: ``(*tensor.shape, num_classes)``.

    `num_classes` is one more than the greatest class by default. Another dtype, negative classes, and classes that are
    too great are a ``RuntimeError``.
    """
    return rushlight._C._nn.one_hot(tensor, num_classes)
