"""Short-time Fourier transforms: by their definition, and back; derivatives, batches, refusals."""

import warnings

import pytest

import rushlight as torch
from rushlight.autograd import gradcheck, gradgradcheck
from rushlight.func import vmap

DOUBLE = torch.float64


@pytest.fixture(autouse=True)
def _quiet():
    torch.manual_seed(0)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="A window was not provided")
        yield


def window(n):
    return torch.hann_window(n, dtype=DOUBLE)


def by_definition(x, w, n, hop):
    frames = [x[i : i + n] * w for i in range(0, len(x) - n + 1, hop)]
    return torch.stack([torch.fft.fft(f) for f in frames], 1)


@pytest.mark.parametrize("hop", [1, 2, 3])
def test_definition(hop):
    x, w = torch.randn(21, dtype=DOUBLE), window(8)
    whole = by_definition(x, w, 8, hop)
    found = torch.stft(x, 8, hop, window=w, center=False, onesided=False, return_complex=True)
    torch.testing.assert_close(found, whole)
    half = torch.stft(x, 8, hop, window=w, center=False, return_complex=True)
    torch.testing.assert_close(half, whole[:5])
    scaled = torch.stft(x, 8, hop, window=w, center=False, normalized=True, return_complex=True)
    torch.testing.assert_close(scaled, whole[:5] / 8**0.5)
    centred = torch.stft(x, 8, hop, window=w, return_complex=True, pad_mode="constant")
    padded = torch.nn.functional.pad(x, (4, 4))
    torch.testing.assert_close(centred, by_definition(padded, w, 8, hop)[:5])
    z = torch.complex(x, x.flip(0))
    torch.testing.assert_close(torch.stft(z, 8, hop, window=w, center=False), by_definition(z, w, 8, hop))


def test_short_windows_stand_in_the_middle():
    x, w = torch.randn(20, dtype=DOUBLE), window(5)
    filled = torch.cat([torch.zeros(1, dtype=DOUBLE), w, torch.zeros(2, dtype=DOUBLE)])
    found = torch.stft(x, 8, 2, 5, w, center=False, return_complex=True)
    torch.testing.assert_close(found, by_definition(x, filled, 8, 2)[:5])
    aligned = torch.stft(x, 8, 2, 5, w, center=False, return_complex=True, align_to_window=True)
    assert aligned.shape[1] == (20 - 5) // 2 + 1
    first = torch.fft.rfft(torch.cat([torch.zeros(1, dtype=DOUBLE), x[:7]]) * filled)
    torch.testing.assert_close(aligned[:, 0], first)


@pytest.mark.parametrize("onesided", [True, False])
@pytest.mark.parametrize("normalized", [True, False])
@pytest.mark.parametrize("shape", [(24,), (2, 24)])
def test_back_again(shape, normalized, onesided):
    x, w = torch.randn(*shape, dtype=DOUBLE), window(8)
    how = {"hop_length": 2, "window": w, "normalized": normalized, "onesided": onesided}
    spectra = torch.stft(x, 8, **how, return_complex=True)
    torch.testing.assert_close(torch.istft(spectra, 8, **how), x)
    torch.testing.assert_close(spectra.istft(8, **how, length=20), x[..., :20])
    if not onesided:
        z = torch.istft(spectra, 8, **how, return_complex=True)
        torch.testing.assert_close(z.real, x)
        assert z.is_complex() and float(z.imag.abs().max()) < 1e-12
    with pytest.warns(UserWarning, match="length of signal is shorter than the length parameter"):
        longer = torch.istft(spectra, 8, **how, length=40)
    assert longer.shape[-1] == 40 and not longer[..., 28:].any()


def test_real_and_imaginary_parts():
    x = torch.randn(20)
    with pytest.warns(UserWarning, match="return_complex=False is deprecated"):
        parts = x.stft(8, return_complex=False)
    torch.testing.assert_close(torch.view_as_complex(parts), torch.stft(x, 8, return_complex=True))


def test_derivatives_and_batches():
    x, w = torch.randn(2, 12, dtype=DOUBLE, requires_grad=True), window(4).add(0.5).requires_grad_()
    forth = lambda x, w: torch.stft(x, 4, window=w, return_complex=True)  # noqa: E731
    assert gradcheck(forth, (x, w), check_forward_ad=True, check_batched_grad=True, fast_mode=True)
    assert gradgradcheck(forth, (x, w), fast_mode=True)
    spectra = forth(x, w).detach().requires_grad_()
    back = lambda s, w: torch.istft(s, 4, window=w)  # noqa: E731
    assert gradcheck(back, (spectra, w), check_forward_ad=True, check_batched_grad=True, fast_mode=True)
    assert gradgradcheck(back, (spectra, w), fast_mode=True)
    x, w, spectra = x.detach(), w.detach(), spectra.detach()
    for dims, given in (((0, None), (x, w)), ((None, 0), (x[0], torch.stack([w, w * 2])))):
        found = vmap(forth, dims)(*given)
        rows = [forth(*[t if d is None else t[i] for d, t in zip(dims, given)]) for i in range(2)]
        torch.testing.assert_close(found, torch.stack(rows))
    torch.testing.assert_close(vmap(lambda s: back(s, w))(spectra), back(spectra, w))


REFUSED = [
    (lambda x: torch.stft(x, 8), "stft requires the return_complex parameter be given for real inputs"),
    (lambda x: torch.stft(x, 8, window=torch.ones(5), return_complex=True), "of size equal to win_length=8"),
    (lambda x: torch.stft(x, 8, win_length=9, return_complex=True), "expected 0 < win_length <= n_fft"),
    (lambda x: torch.stft(x, 8, 0, return_complex=True), "expected hop_length > 0, but got hop_length=0"),
    (lambda x: torch.stft(x, 30, center=False, return_complex=True), "expected 0 < n_fft < 20, but got n_fft=30"),
    (lambda x: torch.stft(x.long(), 8, return_complex=True), "expected a tensor of floating point or complex values"),
    (lambda x: torch.stft(x + 0j, 8, onesided=True), "Cannot have onesided output if window or input is complex"),
    (lambda x: torch.stft(x, 8, align_to_window=True, return_complex=True), "only be set when center = false"),
    (lambda x: torch.istft(x, 8), "istft requires a complex-valued input tensor"),
    (lambda x: torch.istft(_spectra(x), 10), "expected the frequency dimension .* to match n_fft / 2"),
    (lambda x: torch.istft(_spectra(x), 8, 9), "expected 0 < hop_length <= win_length"),
    (lambda x: torch.istft(_spectra(x), 8, window=torch.zeros(8)), "window overlap add min"),
    (lambda x: torch.istft(_spectra(x), 8, window=torch.ones(5)), "Invalid window shape"),
    (lambda x: torch.istft(_spectra(x)[:, :0], 8), "input tensor cannot be empty"),
    (lambda x: torch.istft(_spectra(x)[None, None], 8), "expected a tensor with 3 or 4 dimensions, but got 5"),
    (lambda x: torch.istft(_spectra(x), 8, return_complex=True), "Cannot have onesided output"),
]


def _spectra(x):
    return torch.stft(x, 8, return_complex=True)


@pytest.mark.parametrize(("call", "message"), REFUSED)
def test_refusals(call, message):
    with pytest.raises(RuntimeError, match=message):
        call(torch.randn(20))


def test_a_missing_window_is_spoken_of():
    x = torch.randn(20)
    with pytest.warns(UserWarning, match="A window was not provided"):
        torch.stft(x, 8, return_complex=True)
