"""linspace: the bits of PyTorch's points."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import rushlight

torch = pytest.importorskip("torch", reason="the oracle is installed by .ci/run only")
pytestmark = pytest.mark.oracle

REAL = ["float32", "float64", "float16", "bfloat16", "int32", "int64"]
RANGES = [(0.1, 2.0, 20), (0.1, 3, 35), (0, 1, 700), (-5, 7, 33), (0, 10, 7), (0.5, -7.5, 31), (1, 1, 1), (3, 4, 0)]


def points(t: Any, range_: tuple[Any, ...], dtype: str) -> np.ndarray:
    made = t.linspace(*range_, dtype=getattr(t, dtype))
    return np.asarray((made.float() if dtype.endswith("float16") else made).numpy())


@pytest.mark.parametrize("dtype", [*REAL, "complex64", "complex128"])
@pytest.mark.parametrize("range_", RANGES)
def test_linspace_has_the_same_bits(range_: tuple[Any, ...], dtype: str) -> None:
    np.testing.assert_array_equal(points(rushlight, range_, dtype), points(torch, range_, dtype))


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_linspace_between_complex_numbers(dtype: str) -> None:
    range_ = (1j, 2 + 3j, 37)
    np.testing.assert_array_equal(points(rushlight, range_, dtype), points(torch, range_, dtype))


@pytest.mark.parametrize("t", [rushlight, torch], ids=["rushlight", "torch"])
def test_refusals(t: Any) -> None:
    with pytest.raises(RuntimeError, match="number of steps must be non-negative"):
        t.linspace(0, 1, -1)
    with pytest.raises(NotImplementedError, match="not implemented for 'Bool'"):
        t.linspace(0, 1, 3, dtype=t.bool)
