"""Fourier transforms: values, types, gradients and refusals as PyTorch has them."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import rushlight

torch = pytest.importorskip("torch", reason="the oracle is installed by .ci/run only")
pytestmark = pytest.mark.oracle

LINES = ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft"]
PLANES = ["fft2", "ifft2", "rfft2", "irfft2", "hfft2", "ihfft2"]
MANY = ["fftn", "ifftn", "rfftn", "irfftn", "hfftn", "ihfftn"]
DTYPES = ["float32", "float64", "complex64", "complex128", "int64", "bool"]


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def array(dtype: str, *shape: int, seed: int = 3) -> Any:
    random = np.random.default_rng(seed)
    a = random.normal(size=shape)
    return (a + 1j * random.normal(size=shape) if "complex" in dtype else a * 3).astype(dtype)


def outcome(library: Any, program: Callable[[Any], Any]) -> Any:
    try:
        return program(library)
    except Exception as error:
        return type(error), str(error).splitlines()[0]


def compare(program: Callable[[Any], Any], tolerance: float = 1e-8) -> None:
    ours, theirs = outcome(rushlight, program), outcome(torch, program)
    if isinstance(theirs, tuple):
        assert isinstance(ours, tuple), f"PyTorch raises {theirs}"
        assert ours[0] is theirs[0]
        assert ours[1] == theirs[1]
        return
    assert not isinstance(ours, tuple), ours
    assert str(ours.dtype) == str(theirs.dtype) and tuple(ours.shape) == tuple(theirs.shape)
    theirs = theirs.detach().resolve_conj()
    np.testing.assert_allclose(ours.detach().numpy(), theirs.numpy(), rtol=tolerance, atol=tolerance)


def with_gradient(function: Callable[..., Any], a: Any) -> Callable[[Any], Any]:
    """The gradient of a sum of squares, joined to the result where the types allow both."""

    def program(library: Any) -> Any:
        x = library.from_numpy(a.copy()).requires_grad_()
        y = function(library, x)
        (slope,) = library.autograd.grad(
            (y * library.arange(1, y.numel() + 1).reshape(y.shape)).abs().square().sum(), x
        )
        return slope

    return program


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", LINES)
def test_lines(name: str, dtype: str) -> None:
    tolerance = 1e-4 if dtype in ("float32", "complex64", "int64", "bool") else 1e-9
    for (shape, dim), n, norm in itertools.product(
        [((5,), -1), ((2, 4, 3), 1)], [None, 1, 3, 6, 0, -1], [None, "backward", "ortho", "forward", "none"]
    ):
        a = array(dtype, *shape)
        compare(lambda t: getattr(t.fft, name)(t.from_numpy(a), n, dim, norm), tolerance)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", PLANES + MANY)
def test_several_dimensions(name: str, dtype: str) -> None:
    tolerance = 1e-4 if dtype in ("float32", "complex64", "int64", "bool") else 1e-9
    a = array(dtype, 2, 4, 3)
    arguments = [
        *[{}, {"s": (3, 2)}, {"s": (-1, 4)}, {"dim": (0, 1)}, {"s": (3, 4), "dim": (2, 0)}, {"s": (1,), "dim": (1,)}],
        *[{"dim": ()}, {"s": (2, 0)}, {"s": (2, 2), "dim": (1, 1)}, {"s": (2,), "dim": (0, 1)}, {"dim": (0, 5)}],
        *[{"s": (2, 2, 2, 2)}, {"norm": "ortho"}, {"norm": "forward"}, {"norm": "x"}],
    ]
    for how in arguments:
        if name in PLANES and how.get("s") == (2, 2, 2, 2):
            continue
        compare(lambda t: getattr(t.fft, name)(t.from_numpy(a), **how), tolerance)


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("name", LINES + PLANES + MANY)
def test_gradients(name: str, dtype: str) -> None:
    if name.startswith(("rfft", "ihfft")) and "complex" in dtype:
        return
    for how in [{}, {"norm": "ortho"}, {"n": 3, "dim": 1} if name in LINES else {"s": (3, 5), "dim": (0, 2)}]:
        function = lambda t, x, how=how: getattr(t.fft, name)(x, **how)  # noqa: E731
        compare(with_gradient(function, array(dtype, 2, 4, 3)))


def test_frequencies() -> None:
    for n, d in itertools.product([1, 2, 5, 8], [1.0, 0.25]):
        compare(lambda t: t.fft.fftfreq(n, d))
        compare(lambda t: t.fft.rfftfreq(n, d, dtype=t.float64))


WINDOWED = [
    {"n_fft": 8},
    {"n_fft": 8, "hop_length": 3},
    {"n_fft": 8, "win_length": 5},
    {"n_fft": 7, "center": False},
    {"n_fft": 8, "win_length": 4, "center": False, "align_to_window": True},
    {"n_fft": 8, "pad_mode": "constant"},
    {"n_fft": 8, "normalized": True},
    {"n_fft": 8, "onesided": False},
    {"n_fft": 8, "return_complex": False},
    {"n_fft": 60, "center": False},
]


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("how", WINDOWED)
@pytest.mark.parametrize("windowed", [True, False])
def test_short_time_transforms(how: dict[str, Any], windowed: bool, dtype: str) -> None:
    for shape in [(24,), (2, 24)]:

        def function(t: Any, x: Any) -> Any:
            size = how.get("win_length", how["n_fft"])
            window = t.hann_window(size, dtype=t.float64) if windowed else None
            return t.stft(x, **{"return_complex": True, **how}, window=window)

        if how["n_fft"] < 24:
            compare(lambda t: function(t, t.from_numpy(array(dtype, *shape))))
            compare(with_gradient(function, array(dtype, *shape)))


@pytest.mark.parametrize(
    "how",
    [
        *[{}, {"length": 15}, {"length": 30}, {"center": False}, {"normalized": True}, {"hop_length": 3}],
        *[{"onesided": True}, {"win_length": 6}],
    ],
)
def test_signals_of_spectra(how: dict[str, Any]) -> None:
    a = array("complex128", 5, 9)

    def function(t: Any, x: Any) -> Any:
        window = t.ones(how.get("win_length", 8), dtype=t.float64) * 0.5
        return t.istft(x, 8, window=window, **how)

    compare(lambda t: function(t, t.from_numpy(a)))
    compare(with_gradient(function, a))
