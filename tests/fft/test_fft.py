"""torch.fft: values against NumPy, derivatives in every mode, batches, forms, refusals."""

import itertools

import numpy as np
import pytest

import rushlight as torch
from rushlight import fft
from rushlight.autograd import gradcheck, gradgradcheck
from rushlight.func import vmap

DOUBLE, COMPLEX = torch.float64, torch.complex128
LINES = ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft"]
MANY = ["fft2", "ifft2", "fftn", "ifftn", "rfft2", "irfft2", "rfftn", "irfftn", "hfft2", "hfftn", "ihfft2", "ihfftn"]
IN_NUMPY = [n for n in MANY if hasattr(np.fft, n)]
NORMS = [None, "backward", "ortho", "forward"]
OF_REALS = {"rfft", "rfft2", "rfftn", "ihfft", "ihfft2", "ihfftn"}


@pytest.fixture(autouse=True)
def _seed():
    torch.manual_seed(0)


def made(name, *shape, dtype=None):
    return torch.randn(*shape, dtype=dtype or (DOUBLE if name in OF_REALS else COMPLEX))


def close(a, b):
    torch.testing.assert_close(a, torch.as_tensor(b), rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("name", LINES)
def test_lines(name, norm):
    for (shape, dim), n in itertools.product([((6,), -1), ((3, 5), 0), ((2, 4, 3), 1)], [None, 2, 3, 7]):
        x = made(name, *shape)
        close(getattr(fft, name)(x, n, dim, norm), getattr(np.fft, name)(x.numpy(), n, dim, norm))


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("name", IN_NUMPY)
def test_several_dimensions(name, norm):
    x = made(name, 3, 4, 5)
    ours, theirs = getattr(fft, name), getattr(np.fft, name)
    close(ours(x, norm=norm), theirs(x.numpy(), norm=norm))
    for s, dim in [((2, 6), (0, 2)), ((4, 3), (-1, 0)), (None, (2, 1))]:
        close(ours(x, s, dim, norm), theirs(x.numpy(), s, dim, norm))


def test_sizes_may_be_left_as_they_are():
    x = made("fftn", 3, 4, 5)
    close(fft.fftn(x, (-1, 6)), fft.fftn(x, (4, 6), (1, 2)))
    close(fft.rfftn(x.real, (2, -1)), fft.rfftn(x.real, (2, 5)))
    assert fft.irfftn(x, (3, -1)).shape == (3, 3, 8)


@pytest.mark.parametrize("name", ["hfft2", "hfftn", "ihfft2", "ihfftn"])
def test_hermitian_transforms_of_planes_are_those_of_lines(name):
    x = made(name, 4, 5)
    if name.startswith("ih"):
        close(getattr(fft, name)(x), fft.ifft(fft.ihfft(x, dim=-1), dim=-2))
    else:
        close(getattr(fft, name)(x), fft.hfft(fft.fft(x, dim=-2), dim=-1))


@pytest.mark.parametrize("size", [1, 2, 5, 6])
@pytest.mark.parametrize("norm", NORMS)
def test_inverses(size, norm):
    z, x = made("fft", 2, size), made("rfft", 2, size)
    close(fft.ifft(fft.fft(z, norm=norm), norm=norm), z)
    close(fft.ifft2(fft.fft2(z, norm=norm), norm=norm), z)
    close(fft.irfft(fft.rfft(x, norm=norm), size, norm=norm), x)
    close(fft.irfftn(fft.rfftn(x, norm=norm), x.shape, norm=norm), x)
    close(fft.hfft(fft.ihfft(x, norm=norm), size, norm=norm), x)
    close(fft.hfftn(fft.ihfftn(x, norm=norm), x.shape, norm=norm), x)


def test_types():
    for given, spectrum in [(torch.float32, torch.complex64), (torch.float64, torch.complex128)]:
        x = torch.randn(4, dtype=given)
        assert fft.fft(x).dtype == fft.rfft(x).dtype == fft.ihfft(x).dtype == spectrum
        assert fft.irfft(x).dtype == fft.hfft(x).dtype == given
        z = x.to(spectrum)
        assert fft.fftn(z).dtype == fft.ifft(z).dtype == spectrum and fft.irfft(z).dtype == given
    for given in (torch.int64, torch.bool, torch.uint8):
        x = torch.tensor([1, 0, 1, 1], dtype=given)
        assert fft.fft(x).dtype == fft.rfft(x).dtype == torch.complex64
        torch.testing.assert_close(fft.fft(x), fft.fft(x.float()))


def test_layouts():
    x = torch.randn(4, 6, dtype=COMPLEX)
    for view in (x.T, x[::2, 1:], x[:, :1].expand(4, 3), x[:1, 2:]):
        close(fft.fft(view), np.fft.fft(view.numpy()))
    assert fft.fft(torch.zeros(0, 3)).shape == (0, 3) and fft.rfft(torch.zeros(0, 4)).shape == (0, 3)
    close(fft.fftn(torch.tensor(2.0, dtype=DOUBLE)), torch.tensor(2, dtype=COMPLEX))


# ---- derivatives


@pytest.mark.parametrize("norm", [None, "ortho", "forward"])
@pytest.mark.parametrize("name", LINES + MANY)
def test_derivatives_in_every_mode(name, norm):
    how = {"dim": (0, 2)} if name in MANY else {"dim": 1}
    sizes = [{"s": (5, 2)}, {"s": (2, 4)}, {}] if name in MANY else [{"n": 5}, {"n": 2}, {}]
    for kind, size in itertools.product({DOUBLE, DOUBLE if name in OF_REALS else COMPLEX}, sizes):
        x = made(name, 3, 3, 3, dtype=kind).requires_grad_()
        function = lambda t, size=size: getattr(fft, name)(t, **size, **how, norm=norm)  # noqa: E731
        modes = {"check_forward_ad": True, "check_batched_grad": True}
        assert gradcheck(function, (x,), fast_mode=True, **modes)
        assert gradgradcheck(lambda t: function(t).abs().square(), (x,), fast_mode=True)


@pytest.mark.parametrize("name", [*LINES, *MANY, "fftshift", "ifftshift"])
def test_batches(name):
    x = made(name, 3, 4, 5)
    function = getattr(fft, name)
    for dim in (0, 2):
        found = vmap(function, in_dims=dim)(x)
        close(found, torch.stack([function(part) for part in x.unbind(dim)]))
    nested = vmap(vmap(lambda t: fft.fft(t, 6, 0)))(x)
    close(nested, fft.fft(x, 6, 2))


def test_gradients_are_recorded_as_transforms():
    x = made("rfft", 5).requires_grad_()
    spectrum = fft.rfft(x)
    assert spectrum.grad_fn.name() == "FftR2CBackward0" and fft.irfft(spectrum).grad_fn.name() == "FftC2RBackward0"
    energy = spectrum.abs().square().sum()
    (slope,) = torch.autograd.grad(energy, x, create_graph=True)
    twice = fft.ifft(fft.fft(x) * torch.tensor([1, 1, 1, 0, 0])).real * 2 * 5
    close(slope.detach(), twice.detach())


# ---- frequencies


def test_frequencies():
    for n in (1, 2, 5, 8):
        close(fft.fftfreq(n, 0.5, dtype=DOUBLE), np.fft.fftfreq(n, 0.5))
        close(fft.rfftfreq(n, 0.5, dtype=DOUBLE), np.fft.rfftfreq(n, 0.5))
    assert fft.fftfreq(4).dtype == torch.float32 and fft.fftfreq(4, requires_grad=True).requires_grad
    out = torch.empty(0, dtype=DOUBLE)
    assert fft.fftfreq(4, out=out) is out and out.tolist() == [0, 0.25, -0.5, -0.25]
    assert fft.fftfreq(0).shape == (0,)
    with pytest.raises(RuntimeError, match="fftfreq requires a floating point or complex dtype"):
        fft.fftfreq(4, dtype=torch.int64)


def test_shifts():
    x = torch.arange(12).reshape(3, 4)
    for dim in (None, 0, -1, (0, 1)):
        assert fft.fftshift(x, dim).tolist() == np.fft.fftshift(x.numpy(), dim).tolist()
        assert fft.ifftshift(x, dim).tolist() == np.fft.ifftshift(x.numpy(), dim).tolist()
    with pytest.raises(IndexError, match="Dimension out of range"):
        fft.fftshift(x, 2)


# ---- forms and refusals


def test_out():
    x = torch.randn(4)
    out = torch.empty(0, dtype=torch.complex64)
    assert fft.fft(x, out=out) is out
    torch.testing.assert_close(out, fft.fft(x))
    with pytest.raises(RuntimeError, match="fft expects a complex output tensor, but got Float"):
        fft.fft(x, out=torch.empty(4))
    with pytest.raises(RuntimeError, match="irfft expects a floating point output tensor, but got ComplexFloat"):
        fft.irfft(x, out=out)
    with pytest.raises(RuntimeError, match="don't support automatic differentiation"):
        fft.fft(x.requires_grad_(), out=out)


REFUSED = [
    (lambda x: fft.fft(x, 0), RuntimeError, r"Invalid number of data points \(0\) specified"),
    (lambda x: fft.irfft(x[:1]), RuntimeError, r"Invalid number of data points \(0\) specified"),
    (lambda x: fft.rfftn(x, (0,)), RuntimeError, r"Invalid number of data points \(0\) specified"),
    (lambda x: fft.fft(x[:0]), RuntimeError, r"Invalid number of data points \(0\) specified"),
    (lambda x: fft.fft(x, norm="x"), RuntimeError, 'Invalid normalization mode: "x"'),
    (lambda x: fft.fft(x, dim=3), IndexError, r"Dimension out of range \(expected to be in range of \[-1, 0\], but"),
    (lambda x: fft.fft(x[0]), IndexError, "Dimension specified as -1 but tensor has no dimensions"),
    (lambda x: fft.fft2(x), IndexError, "Dimension out of range"),
    (lambda x: fft.fftn(x, dim=(0, -1)), RuntimeError, "FFT dims must be unique"),
    (lambda x: fft.fftn(x, (2, 2)), RuntimeError, "Got shape with 2 values but input tensor only has 1 dimensions"),
    (lambda x: fft.fftn(x, (2, 2), 0), RuntimeError, "dim and shape arguments must have the same length"),
    (lambda x: fft.rfft(x + 0j), RuntimeError, "rfft expects a real input tensor, but got ComplexFloat"),
    (lambda x: fft.rfftn(x + 0j), RuntimeError, "rfftn expects a real-valued input tensor, but got ComplexFloat"),
    (lambda x: fft.ihfft(x + 0j), RuntimeError, "ihfft expects a real input tensor, but got ComplexFloat"),
    (lambda x: fft.ihfftn(x + 0j), RuntimeError, "Only supports floating-point dtypes, but found: ComplexFloat"),
    (lambda x: fft.fft(x.half()), RuntimeError, "Unsupported dtype Half"),
    (lambda x: fft.irfftn(x, dim=()), RuntimeError, "irfftn must transform at least one axis"),
    (lambda x: fft.fft([1.0]), TypeError, "argument 'input' .* must be Tensor, not list"),
    (lambda x: fft.fft(x, 2.5), TypeError, "argument 'n' must be int, not float"),
]


@pytest.mark.parametrize(("call", "error", "message"), REFUSED)
def test_refusals(call, error, message):
    with pytest.raises(error, match=message):
        call(torch.randn(4))
