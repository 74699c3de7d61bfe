"""Samplers: the order in which a loader asks a dataset for its samples.

Random samplers draw exactly what PyTorch's draw, in the same order, so that equal seeds give equal batches.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence, Sized
from itertools import islice
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import rushlight

if TYPE_CHECKING:
    from rushlight import Generator

__all__ = [
    "BatchSampler",
    "RandomSampler",
    "Sampler",
    "SequentialSampler",
    "SubsetRandomSampler",
    "WeightedRandomSampler",
]

_T_co = TypeVar("_T_co", covariant=True)

_DRAWN_AT_ONCE = 32


class Sampler(Generic[_T_co]):
    """An order of indices, or of lists of them; subclasses implement ``__iter__`` and, where known, ``__len__``."""

    def __iter__(self) -> Iterator[_T_co]:
        raise NotImplementedError


class SequentialSampler(Sampler[int]):
    """The indices of ``data_source`` in their order."""

    data_source: Sized

    def __init__(self, data_source: Sized) -> None:
        self.data_source = data_source

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self.data_source)))

    def __len__(self) -> int:
        return len(self.data_source)


def _positive(name: str, value: Any) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or value <= 0:
        raise ValueError(f"{name} should be a positive integer value, but got {name}={value}")


class RandomSampler(Sampler[int]):
    """The indices of ``data_source`` in random order, or ``num_samples`` of them drawn with replacement.

    Without replacement and with ``num_samples`` above the length, whole permutations follow one another. Raises
    ``TypeError`` for a ``replacement`` that is no bool and ``ValueError`` for a ``num_samples`` that is not positive.
    """

    data_source: Sized
    replacement: bool

    def __init__(
        self,
        data_source: Sized,
        replacement: bool = False,
        num_samples: int | None = None,
        generator: Generator | None = None,
    ) -> None:
        self.data_source = data_source
        self.replacement = replacement
        self._num_samples = num_samples
        self.generator = generator
        if not isinstance(replacement, bool):
            raise TypeError(f"replacement should be a boolean value, but got replacement={replacement}")
        _positive("num_samples", self.num_samples)

    @property
    def num_samples(self) -> int:
        """How many indices an iteration gives."""
        return len(self.data_source) if self._num_samples is None else self._num_samples

    def __iter__(self) -> Iterator[int]:
        n, left = len(self.data_source), self.num_samples
        generator = self.generator
        if generator is None:
            seed = int(rushlight.empty((), dtype=rushlight.int64).random_().item())
            generator = rushlight.Generator()
            generator.manual_seed(seed)
        if self.replacement:
            for count in [_DRAWN_AT_ONCE] * (left // _DRAWN_AT_ONCE) + [left % _DRAWN_AT_ONCE]:
                drawn = rushlight.randint(high=n, size=(count,), dtype=rushlight.int64, generator=generator)
                yield from drawn.tolist()
        else:
            for _ in range(left // n):
                yield from rushlight.randperm(n, generator=generator).tolist()
            yield from rushlight.randperm(n, generator=generator).tolist()[: left % n]

    def __len__(self) -> int:
        return self.num_samples


class SubsetRandomSampler(Sampler[int]):
    """The given indices in random order."""

    indices: Sequence[int]

    def __init__(self, indices: Sequence[int], generator: Generator | None = None) -> None:
        self.indices = indices
        self.generator = generator

    def __iter__(self) -> Iterator[int]:
        for i in rushlight.randperm(len(self.indices), generator=self.generator).tolist():
            yield self.indices[i]

    def __len__(self) -> int:
        return len(self.indices)


class WeightedRandomSampler(Sampler[int]):
    """``num_samples`` indices drawn with probabilities proportional to ``weights``.

    Raises ``ValueError`` for weights that are not one-dimensional, a ``num_samples`` that is not positive and a
    ``replacement`` that is no bool.
    """

    weights: rushlight.Tensor
    num_samples: int
    replacement: bool

    def __init__(
        self,
        weights: Sequence[float],
        num_samples: int,
        replacement: bool = True,
        generator: Generator | None = None,
    ) -> None:
        _positive("num_samples", num_samples)
        if not isinstance(replacement, bool):
            raise ValueError(f"replacement should be a boolean value, but got replacement={replacement}")
        weights_tensor = rushlight.as_tensor(weights, dtype=rushlight.double)
        if weights_tensor.dim() != 1:
            raise ValueError(
                f"weights should be a 1d sequence but given weights have shape {tuple(weights_tensor.shape)}"
            )
        self.weights = weights_tensor
        self.num_samples = num_samples
        self.replacement = replacement
        self.generator = generator

    def __iter__(self) -> Iterator[int]:
        drawn = rushlight.multinomial(self.weights, self.num_samples, self.replacement, generator=self.generator)
        yield from drawn.tolist()

    def __len__(self) -> int:
        return self.num_samples


class BatchSampler(Sampler[list[int]]):
    """Lists of ``batch_size`` successive indices of another sampler; the last is shorter, or left out.

    Raises ``ValueError`` for a ``batch_size`` that is not a positive integer and a ``drop_last`` that is no bool.
    """

    def __init__(self, sampler: Sampler[int] | Iterable[int], batch_size: int, drop_last: bool) -> None:
        _positive("batch_size", batch_size)
        if not isinstance(drop_last, bool):
            raise ValueError(f"drop_last should be a boolean value, but got drop_last={drop_last}")
        self.sampler = sampler
        self.batch_size = batch_size
        self.drop_last = drop_last

    def __iter__(self) -> Iterator[list[int]]:
        indices, size = iter(self.sampler), self.batch_size
        while batch := list(islice(indices, size)):
            if self.drop_last and len(batch) < size:
                return
            yield batch

    def __len__(self) -> int:
        count = len(self.sampler)  # type: ignore[arg-type]
        return count // self.batch_size if self.drop_last else -(-count // self.batch_size)
