"""Sequences of different lengths: padded to one length, or packed without padding."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

import rushlight
from rushlight import Tensor

if TYPE_CHECKING:
    from typing import Self

__all__ = [
    "PackedSequence",
    "invert_permutation",
    "pack_padded_sequence",
    "pack_sequence",
    "pad_packed_sequence",
    "pad_sequence",
    "unpack_sequence",
    "unpad_sequence",
]


class PackedSequence_(NamedTuple):
    """The fields of :class:`PackedSequence`."""

    data: Tensor
    batch_sizes: Tensor
    sorted_indices: Tensor | None
    unsorted_indices: Tensor | None


class PackedSequence(PackedSequence_):
    """Sequences without padding: all first elements, then all second ones, and so on, longest sequence first.

    `data` has as many rows as the sequences have elements, `batch_sizes` (int64) tells how many belong to each step;
    `sorted_indices` is the order of the sequences by length, `unsorted_indices` its inverse, both None where they came
    in that order. The functions of this module make it; the recurrent modules take it and return it.
    """

    def __new__(
        cls,
        data: Any,
        batch_sizes: Tensor | None = None,
        sorted_indices: Tensor | None = None,
        unsorted_indices: Tensor | None = None,
    ) -> Self:
        if batch_sizes is None:
            if not isinstance(data, (list, tuple)) or len(data) != 2:
                raise AssertionError("Expected data to be a list or tuple of length 2")
            data, batch_sizes = data
        if unsorted_indices is None:
            unsorted_indices = invert_permutation(sorted_indices)
        return super().__new__(cls, data, batch_sizes, sorted_indices, unsorted_indices)

    def to(self, *args: Any, **kwargs: Any) -> PackedSequence:
        """`data` converted as by :meth:`Tensor.to`; itself where nothing changes."""
        data = self.data.to(*args, **kwargs)
        return self if data is self.data else self._replace(data=data)

    def cpu(self) -> PackedSequence:
        return self

    def cuda(self, *args: Any, **kwargs: Any) -> PackedSequence:
        return self.to("cuda", *args, **kwargs)

    def pin_memory(self) -> PackedSequence:
        return self._replace(data=self.data.pin_memory())

    def is_pinned(self) -> bool:
        return False

    @property
    def is_cuda(self) -> bool:
        return False

    def double(self) -> PackedSequence:
        return self.to(rushlight.float64)

    def float(self) -> PackedSequence:
        return self.to(rushlight.float32)

    def half(self) -> PackedSequence:
        return self.to(rushlight.float16)

    def long(self) -> PackedSequence:
        return self.to(rushlight.int64)

    def int(self) -> PackedSequence:
        return self.to(rushlight.int32)

    def short(self) -> PackedSequence:
        return self.to(rushlight.int16)

    def char(self) -> PackedSequence:
        return self.to(rushlight.int8)

    def byte(self) -> PackedSequence:
        return self.to(rushlight.uint8)


def invert_permutation(permutation: Tensor | None) -> Tensor | None:
    """The inverse of a permutation of ``0 ... n - 1``; None for None."""
    if permutation is None:
        return None
    return rushlight.empty_like(permutation).scatter_(
        0, permutation, rushlight.arange(permutation.numel(), dtype=permutation.dtype)
    )


def pack_padded_sequence(
    input: Tensor, lengths: Tensor | Sequence[int], batch_first: bool = False, enforce_sorted: bool = True
) -> PackedSequence:
    """Packs the first ``lengths[n]`` elements of each sequence in a ``(T, N, *)``, `batch_first` ``(N, T, *)``, tensor.

    Lengths decrease, or `enforce_sorted` is false and they are sorted here. A length below 1, an empty input, lengths
    that are not one for each sequence, and unsorted ones are a ``RuntimeError``.
    """
    given = lengths.detach().numpy() if isinstance(lengths, Tensor) else np.asarray(lengths)
    if given.ndim != 1:
        raise RuntimeError(f"'lengths' argument should be a 1D CPU int64 tensor, but got {given.ndim}D")
    given = given.astype(np.int64)
    sorted_indices = None
    if not enforce_sorted:
        order = np.argsort(-given, kind="stable")
        given = given[order]
        sorted_indices = rushlight.from_numpy(order)
        input = input.index_select(0 if batch_first else 1, sorted_indices)
    if batch_first:
        input = input.transpose(0, 1)
    _check_lengths(input, given)
    counts = (given > np.arange(given[0])[:, None]).sum(1)
    if given[0] > input.shape[0]:
        raise RuntimeError(
            f"Expected lengths of at most {input.shape[0]}, the size of the padded input, got {given[0]}"
        )
    steps = [input[t, :count] for t, count in enumerate(counts.tolist())]
    return PackedSequence(rushlight.cat(steps), rushlight.from_numpy(counts), sorted_indices, None)


def _check_lengths(input: Tensor, lengths: np.ndarray[Any, np.dtype[np.int64]]) -> None:
    """`lengths`, one for each sequence of the time-major `input`, must be positive and decreasing."""
    if not input.numel():
        raise RuntimeError(f"Cannot pack empty tensors. Got shape {tuple(input.shape)}.")
    if lengths.size != input.shape[1]:
        raise RuntimeError(
            f"Expected `len(lengths)` to be equal to batch_size, but got {lengths.size} (batch_size={input.shape[1]})"
        )
    if lengths[-1] <= 0:
        raise RuntimeError(
            "Length of all samples has to be greater than 0, but found an element in 'lengths' that is <= 0"
        )
    if (np.diff(lengths) > 0).any():
        raise RuntimeError(
            "`lengths` array must be sorted in decreasing order when `enforce_sorted` is True. "
            "You can pass `enforce_sorted=False` to have it sorted, and the results put back in the given order."
        )


def pad_packed_sequence(
    sequence: PackedSequence,
    batch_first: bool = False,
    padding_value: float = 0.0,
    total_length: int | None = None,
) -> tuple[Tensor, Tensor]:
    """The reverse of :func:`pack_padded_sequence`: the padded tensor, and the lengths (int64), in the original order.

    `total_length` asks for more steps than the longest sequence has; fewer are a ``ValueError``.
    """
    counts = sequence.batch_sizes.numpy()
    steps = longest = len(counts)
    if total_length is not None:
        if total_length < longest:
            raise ValueError(
                "Expected total_length to be at least the length of the longest sequence in input, "
                f"but got total_length={total_length} and max sequence length being {longest}"
            )
        steps = total_length
    batch = int(counts[0])
    data, trailing = sequence.data, tuple(sequence.data.shape[1:])
    present = np.arange(batch) < counts[:, None]
    rows = rushlight.from_numpy(np.flatnonzero(present))
    padded = data.new_full((steps * batch, *trailing), padding_value).index_copy(0, rows, data)
    padded = padded.reshape(steps, batch, *trailing)
    lengths = rushlight.from_numpy(present.sum(0))
    if batch_first:
        padded = padded.transpose(0, 1)
    unsorted = sequence.unsorted_indices
    if unsorted is None:
        return padded, lengths
    return padded.index_select(0 if batch_first else 1, unsorted), lengths[unsorted]


def pad_sequence(
    sequences: Tensor | Iterable[Tensor],
    batch_first: bool = False,
    padding_value: float = 0.0,
    padding_side: str = "right",
) -> Tensor:
    """Tensors ``(L, *)`` in one of ``(max L, N, *)``, `batch_first` ``(N, max L, *)``, padded at `padding_side`."""
    items = list(sequences.unbind(0) if isinstance(sequences, Tensor) else sequences)
    if not items:
        raise RuntimeError("received an empty list of sequences")
    for i, item in enumerate(items):
        if not isinstance(item, Tensor):
            raise TypeError(f"expected Tensor as element {i} in argument 0, but got {type(item).__name__}")
        if not item.dim():
            raise RuntimeError(f"expected sequences with 1 or more dimensions, got 0 for element {i}")
    if padding_side not in ("left", "right"):
        raise RuntimeError(f"Expected padding_side to be one of left or right, but got {padding_side}.")
    lengths = np.array([item.shape[0] for item in items])
    batch, longest = len(items), int(lengths.max())
    missing = longest - lengths[:, None]
    place = np.arange(longest)
    sample, step = np.nonzero(place >= missing if padding_side == "left" else place < lengths[:, None])
    rows = sample * longest + step if batch_first else step * batch + sample
    first = items[0]
    trailing = tuple(first.shape[1:])
    padded = first.new_full((batch * longest, *trailing), padding_value)
    padded = padded.index_copy(0, rushlight.from_numpy(rows), rushlight.cat(items).to(first.dtype))
    return padded.reshape(*((batch, longest) if batch_first else (longest, batch)), *trailing)


def unpad_sequence(padded_sequences: Tensor, lengths: Tensor, batch_first: bool = False) -> list[Tensor]:
    """The reverse of :func:`pad_sequence`: a list of the first ``lengths[n]`` elements of each sequence."""
    if not batch_first:
        padded_sequences = padded_sequences.transpose(0, 1)
    return [s[:n] for s, n in zip(padded_sequences.unbind(0), lengths.tolist(), strict=False)]


def pack_sequence(sequences: Sequence[Tensor], enforce_sorted: bool = True) -> PackedSequence:
    """Packs tensors ``(Lᵢ, *)``; their lengths decrease unless `enforce_sorted` is false."""
    lengths = [len(s) for s in sequences]
    return pack_padded_sequence(pad_sequence(sequences), lengths, enforce_sorted=enforce_sorted)


def unpack_sequence(packed_sequences: PackedSequence) -> list[Tensor]:
    """The reverse of :func:`pack_sequence`."""
    padded, lengths = pad_packed_sequence(packed_sequences, batch_first=True)
    return unpad_sequence(padded, lengths, batch_first=True)
