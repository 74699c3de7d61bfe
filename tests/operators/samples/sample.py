"""What a sample is, how families offer them, and the numbers that they are made of."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

import rushlight

INTEGERS = ("uint8", "int8", "int16", "int32", "int64")
FLOATS = ("float16", "bfloat16", "float32", "float64")
COMPLEX = ("complex64", "complex128")
DTYPES = ("bool", *INTEGERS, *FLOATS, *COMPLEX)

# (rtol, atol) of results that were computed in the type; what is not here is compared exactly
TOLERANCE = {
    "float16": (2e-3, 1e-3),
    "bfloat16": (1.6e-2, 1e-2),
    "float32": (2e-5, 1e-6),
    "float64": (1e-10, 1e-12),
    "complex64": (2e-5, 1e-6),
    "complex128": (1e-10, 1e-12),
}


@dataclass
class Sample:
    """One call: positional arguments (the first is `self` where the operator is a method) and keywords."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any] = field(default_factory=dict)
    derivatives: bool = True  # False: at a kink or where numbers are not finite, so only values are compared
    variables: int | None = None  # how many of its floating tensors have derivatives; None: all
    values: bool = True  # False: the numbers are not defined (empty) and only shape and type are compared

    def map(self, f: Callable[[rushlight.Tensor], Any]) -> Sample:
        """The same call with every tensor replaced, those in lists too."""
        return replace(self, args=over(self.args, f), kwargs=over(self.kwargs, f))

    def tensors(self) -> list[rushlight.Tensor]:
        """All tensors, in order."""
        found: list[rushlight.Tensor] = []
        self.map(found.append)
        return found

    def __repr__(self) -> str:
        def show(t: rushlight.Tensor) -> str:
            return f"<{str(t.dtype).removeprefix('torch.')}{list(t.shape)}>"

        parts = self.map(show)
        return ", ".join([*map(str, parts.args), *[f"{k}={v}" for k, v in parts.kwargs.items()]])


def over(value: Any, f: Callable[[rushlight.Tensor], Any]) -> Any:
    """`f` of the tensors in nested tuples, lists and dictionaries."""
    if isinstance(value, rushlight.Tensor):
        return f(value)
    if isinstance(value, tuple | list) and not isinstance(value, rushlight.Size):
        parts = [over(v, f) for v in value]
        return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
    if isinstance(value, dict):
        return {k: over(v, f) for k, v in value.items()}
    return value


class Maker:
    """Makes tensors of one type. Floating numbers are multiples of 1/64, but not of 1/16: exact in every type,
    different within a tensor while there are enough, different from those of the two tensors made before, and never at
    a kink such as 0, 1/2 or 3."""

    def __init__(self, dtype: str, seed: str) -> None:
        self.dtype = dtype
        self.random = np.random.default_rng(zlib.crc32(seed.encode()))
        self.count = 0

    @property
    def is_floating(self) -> bool:
        return self.dtype in FLOATS

    @property
    def is_complex(self) -> bool:
        return self.dtype in COMPLEX

    def __call__(self, *shape: int, low: float = -2, high: float = 2, dtype: str | None = None) -> rushlight.Tensor:
        """A tensor of numbers between low and high."""
        dtype = dtype or self.dtype
        n = int(np.prod(shape))
        if dtype == "bool":
            numbers: Any = self.random.integers(0, 2, n).astype(bool)
        elif dtype in INTEGERS:
            first, last = int(np.ceil(low)), int(np.floor(high))
            numbers = self.random.integers(max(first, 0) if dtype == "uint8" else first, max(last, 1) + 1, n)
        elif dtype in COMPLEX:
            numbers = self._grid(n, low, high) + 1j * self._grid(n, low, high)
        else:
            numbers = self._grid(n, low, high)
        return rushlight.tensor(numbers.reshape(shape)).to(getattr(rushlight, dtype))

    def _grid(self, n: int, low: float, high: float) -> Any:
        step, shift = 1 / 16, (2 / 64, 1 / 64, 3 / 64)[self.count % 3]
        self.count += 1
        first, last = int(np.ceil((low - shift) / step)), int(np.floor((high - shift) / step))
        places = np.arange(first, last + 1)
        chosen = self.random.choice(places, n, replace=n > len(places))
        return chosen * step + shift

    def index(self, *shape: int, below: int, dtype: str = "int64", distinct: bool = False) -> rushlight.Tensor:
        """Positions from 0 to below - 1."""
        n = int(np.prod(shape))
        numbers = self.random.permutation(below)[:n] if distinct else self.random.integers(0, max(below, 1), n)
        return rushlight.tensor(numbers.reshape(shape)).to(getattr(rushlight, dtype))

    def mask(self, *shape: int) -> rushlight.Tensor:
        """A tensor of bools."""
        return self(*shape, dtype="bool")

    def numbers(self, *values: float) -> rushlight.Tensor:
        """These numbers."""
        return rushlight.tensor(list(values), dtype=rushlight.float64).to(getattr(rushlight, self.dtype))

    def special(self) -> rushlight.Tensor:
        """Zeros, infinities and NaN where the type has them; the ends of its range where it has not."""
        if self.is_floating:
            return self.numbers(0.0, -0.0, 1.0, -1.0, 0.5, float("inf"), -float("inf"), float("nan"), 2.0**-14, 30000.0)
        if self.dtype in INTEGERS:
            ends = np.iinfo(self.dtype)
            return rushlight.tensor(np.array([0, 1, ends.max, ends.min, 2], dtype=self.dtype))
        return self(4)


@dataclass
class Family:
    """How an operator is tried."""

    names: tuple[str, ...]
    make: Callable[[Maker], Iterator[Sample]]
    reference: Callable[..., Any] | None = None  # in NumPy; None: the operator in float64
    large: Callable[[Maker], Iterator[Sample]] | None = None  # enough work for several threads
    dtypes: Sequence[str] = DTYPES
    reshapes: bool = False  # the in-place form changes shape and strides, and writes no numbers
    random: bool = False  # the result is drawn: shapes, types and seeds are compared, not values
    writes: int | None = None  # the argument that is written to beside the result
    bits: bool = True  # False: a library computes it, whose roundings may depend on the number of threads
    own_precision: bool = False  # the reference depends on the type: it is not given more precise numbers
    strides: bool = False  # the result shows the strides of its input, so that layouts differ by design
    tolerance: dict[str, tuple[float, float]] = field(default_factory=dict)

    def allowed(self, dtype: str) -> tuple[float, float]:
        return self.tolerance.get(dtype, TOLERANCE.get(dtype, (0.0, 0.0)))


families: dict[str, Family] = {}


def samples(*names: str, **options: Any) -> Callable[[Any], Any]:
    """Declares that the generator below makes the samples of these operators (of each in turn)."""

    def declare(make: Any) -> Any:
        for name in names:
            if name in families:
                raise ValueError(f"{name} has samples already")
            families[name] = Family(names, make, **options)
        return make

    return declare
