"""Comparing results: structures, types, shapes, numbers, and that inputs are as they were."""

from __future__ import annotations

from typing import Any

import numpy as np

import rushlight

from .sample import Sample, over


def dtype_name(t: rushlight.Tensor) -> str:
    """`float32` for `torch.float32`."""
    return str(t.dtype).removeprefix("torch.")


def array(t: rushlight.Tensor) -> Any:
    """A copy as an array (of float32 for bfloat16): the tensor's own memory is not handed out."""
    plain = t.detach()
    return (plain.float() if dtype_name(t) == "bfloat16" else plain.clone()).numpy()


def widened(t: rushlight.Tensor) -> Any:
    """The same, floating numbers in double precision."""
    return in_double(array(t))


def in_double(a: Any) -> Any:
    """Floating and complex arrays in double precision."""
    return a.astype(np.float64) if a.dtype.kind == "f" else a.astype(np.complex128) if a.dtype.kind == "c" else a


def parts(result: Any) -> list[Any]:
    """The tensors, numbers or arrays in a nested result, in order."""
    if isinstance(result, tuple | list):
        return [p for r in result for p in parts(r)]
    return [] if result is None else [result]


def tensors(result: Any) -> list[rushlight.Tensor]:
    """The tensors in a nested result, in order."""
    return [p for p in parts(result) if isinstance(p, rushlight.Tensor)]


def assert_close(got: Any, expected: Any, tolerance: tuple[float, float] = (0.0, 0.0), what: str = "") -> None:
    """Equal shapes; numbers within (rtol, atol), NaN equal to NaN. `expected` may be more precise than `got`."""
    if isinstance(got, rushlight.Tensor):
        wanted = (
            rushlight.tensor(np.asarray(expected)).to(got.dtype)
            if not isinstance(expected, rushlight.Tensor)
            else expected
        )
        assert tuple(got.shape) == tuple(wanted.shape), (
            f"{what}: shape {tuple(got.shape)}, expected {tuple(wanted.shape)}"
        )
        got, expected = widened(got), widened(wanted)
    np.testing.assert_allclose(got, expected, *tolerance, equal_nan=True, err_msg=what)


def assert_same(got: Any, expected: Any, tolerance: tuple[float, float] = (0.0, 0.0), what: str = "") -> None:
    """The same, and equal types and structure."""
    ours, theirs = parts(got), parts(expected)
    assert len(ours) == len(theirs), f"{what}: {len(ours)} results, expected {len(theirs)}"
    for a, b in zip(ours, theirs):
        assert type(a) is type(b), f"{what}: {type(a).__name__}, expected {type(b).__name__}"
        if isinstance(a, rushlight.Tensor):
            assert a.dtype == b.dtype, f"{what}: {a.dtype}, expected {b.dtype}"
        assert_close(a, b, tolerance, what)


def bits(result: Any) -> list[bytes]:
    """The results' numbers, to the bit."""
    return [array(t).tobytes() for t in tensors(result)]


class Unharmed:
    """Remembers tensors, and says whether they are as they were: numbers, shapes, strides, versions, gradients."""

    def __init__(self, *values: Any) -> None:
        self.known: list[tuple[rushlight.Tensor, Any]] = []
        for v in values:
            over(v.args + tuple(v.kwargs.values()) if isinstance(v, Sample) else v, self._keep)

    def _keep(self, t: rushlight.Tensor) -> None:
        self.known.append((t, self._state(t)))

    @staticmethod
    def _state(t: rushlight.Tensor) -> Any:
        return array(t).tobytes(), tuple(t.shape), t.stride(), t._version, t.dtype, t.requires_grad, t.grad is None

    def check(self, what: str, besides: Any = None) -> None:
        for t, state in self.known:
            if t is not besides:
                assert self._state(t) == state, f"{what}: an input was changed"
