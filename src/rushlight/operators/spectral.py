"""Short-time Fourier transforms: spectra of windows that move over a signal, and the signal of such spectra."""

from __future__ import annotations

import warnings

import rushlight
from rushlight import Tensor

from ..fft.primitive import FftC2C, FftC2R, FftR2C, Scale
from .operation import every_sample

__all__ = ["istft", "stft"]


def _scale(normalized: bool, forward: bool) -> Scale:
    if normalized:
        return "1/sqrt(n)"
    return "1" if forward else "1/n"


def _described(name: str, input: Tensor, n_fft: int, hop: int, length: int, window: Tensor | None) -> str:
    shown = None if window is None else list(window.shape)
    return (
        f"{name}(tensor of {input.dtype} {list(input.shape)}, n_fft={n_fft}, hop_length={hop}, win_length={length}, "
        f"window={shown})"
    )


def _completed(window: Tensor | None, n_fft: int, length: int, dtype: rushlight.dtype) -> Tensor:
    """The window of `length` numbers in the middle of `n_fft`, zeros beside it; ones where there is none."""
    if window is None:
        window = rushlight.ones(length, dtype=dtype)
    if length == n_fft:
        return window
    left = (n_fft - length) // 2
    return rushlight.cat([window.new_zeros(left), window, window.new_zeros(n_fft - length - left)])


def stft(
    input: Tensor,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Tensor | None = None,
    center: bool = True,
    pad_mode: str = "reflect",
    normalized: bool = False,
    onesided: bool | None = None,
    return_complex: bool | None = None,
    align_to_window: bool | None = None,
) -> Tensor:
    """Return X[k, m] = sum of window[j] input[m hop + j] exp(-2πi jk / n_fft), frequencies by places in time.

    ``input``: ``(T,)`` or ``(B, T)``, real or complex; the result ``(n_fft // 2 + 1, M)`` of real numbers (``onesided``)
    or ``(n_fft, M)``, with the batch before. ``hop_length`` is n_fft // 4 by default. ``window`` has ``win_length``
    numbers, n_fft by default; a shorter one stands in the middle. ``center``: the signal is continued at both ends, as
    ``pad_mode`` says, so that place m is in the middle of window m. ``normalized``: times 1/√n_fft. Without
    ``return_complex`` real and imaginary parts stand along a new last dimension. Without ``center``,
    ``align_to_window`` lets a window shorter than n_fft start with the signal.
    """
    hop = n_fft // 4 if hop_length is None else hop_length
    length = n_fft if win_length is None else win_length
    if window is None:
        warnings.warn(
            "A window was not provided. A rectangular window will be applied,which is known to cause spectral leakage. "
            "Other windows such as torch.hann_window or torch.hamming_window are recommended to reduce spectral "
            "leakage.To suppress this warning and use a rectangular window, explicitly set "
            "`window=torch.ones(n_fft, device=<device>)`.",
            UserWarning,
            stacklevel=2,
        )
    if center and align_to_window is not None:
        raise RuntimeError("stft align_to_window should only be set when center = false")
    x = input
    if center:
        shape = (1,) * (3 - x.dim()) + tuple(x.shape)
        padded = rushlight.nn.functional.pad(x.reshape(shape), (n_fft // 2, n_fft // 2), pad_mode)
        x = padded.reshape((*x.shape[:-1], padded.shape[-1]))
    wanted = _is_complex_wanted(x, window, return_complex)
    what = _described("stft", x, n_fft, hop, length, window)
    if not (x.is_floating_point() or x.is_complex()):
        raise RuntimeError(f"{what}: expected a tensor of floating point or complex values")
    if x.dim() not in (1, 2):
        raise RuntimeError(f"{what}: expected a 1D or 2D tensor")
    _check_sizes(what, x.shape[-1], n_fft, hop, length, window)
    real = not (x.is_complex() or (window is not None and window.is_complex()))
    if onesided and not real:
        raise RuntimeError("Cannot have onesided output if window or input is complex")
    frames = _frames(x, n_fft, hop, length, bool(align_to_window))
    if window is not None or length < n_fft:
        frames = frames * _completed(window, n_fft, length, x.dtype)
    if real:
        spectra: Tensor = FftR2C.apply(frames, (-1,), _scale(normalized, True), True, onesided is not False)
    else:
        spectra = FftC2C.apply(frames, (-1,), _scale(normalized, True), True)
    spectra = spectra.transpose(-2, -1)
    return spectra if wanted else rushlight.view_as_real(spectra)


def _is_complex_wanted(x: Tensor, window: Tensor | None, return_complex: bool | None) -> bool:
    if return_complex is None:
        if not (x.is_complex() or (window is not None and window.is_complex())):
            raise RuntimeError(
                "stft requires the return_complex parameter be given for real inputs, and will further require that "
                "return_complex=True in a future PyTorch release."
            )
        return True
    if not return_complex:
        warnings.warn(
            "stft with return_complex=False is deprecated. In a future pytorch release, stft will return complex "
            "tensors for all inputs, and return_complex=False will raise an error.\nNote: you can still call "
            "torch.view_as_real on the complex output to recover the old return format.",
            UserWarning,
            stacklevel=3,
        )
    return return_complex


def _check_sizes(what: str, count: int, n_fft: int, hop: int, length: int, window: Tensor | None) -> None:
    if n_fft <= 0 or n_fft > count:
        raise RuntimeError(f"{what}: expected 0 < n_fft < {count}, but got n_fft={n_fft}")
    if hop <= 0:
        raise RuntimeError(f"{what}: expected hop_length > 0, but got hop_length={hop}")
    if length <= 0 or length > n_fft:
        raise RuntimeError(f"{what}: expected 0 < win_length <= n_fft, but got win_length={length}")
    if window is not None and (window.dim() != 1 or window.shape[0] != length):
        raise RuntimeError(
            f"{what}: expected a 1D window tensor of size equal to win_length={length}, but got window with size "
            f"{list(window.shape)}"
        )


def _frames(x: Tensor, n_fft: int, hop: int, length: int, aligned: bool) -> Tensor:
    """The parts of the signal that lie under each place of the window: ``(..., M, n_fft)``."""
    if aligned:  # the window's zeros reach beyond both ends
        left = (n_fft - length) // 2
        x = rushlight.cat(
            [x.new_zeros((*x.shape[:-1], left)), x, x.new_zeros((*x.shape[:-1], n_fft - length - left))], -1
        )
    return x.unfold(-1, n_fft, hop)


def istft(
    input: Tensor,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Tensor | None = None,
    center: bool = True,
    normalized: bool = False,
    onesided: bool | None = None,
    length: int | None = None,
    return_complex: bool = False,
) -> Tensor:
    """Return the signal of the spectra of :func:`stft`: the least squares estimate of Griffin and Lim (1984).

    The inverse transforms, times the window, are added where they overlap and divided by the sum of the windows'
    squares, which must not vanish. ``input``: ``(F, M)`` or ``(B, F, M)``, complex; the result ``(T,)`` or ``(B, T)``,
    cut off or completed by zeros to ``length``, real unless ``return_complex``.
    """
    size = n_fft if win_length is None else win_length
    hop = n_fft // 4 if hop_length is None else hop_length
    if not input.is_complex():
        raise RuntimeError(
            "istft requires a complex-valued input tensor matching the output from stft with return_complex=True."
        )
    what = _described("istft", input, n_fft, hop, size, window)
    if input.numel() == 0:
        raise RuntimeError(f"{what}: input tensor cannot be empty.")
    if input.dim() not in (2, 3):
        raise RuntimeError(f"{what}: expected a tensor with 3 or 4 dimensions, but got {input.dim() + 1}")
    bins = input.shape[-2]
    half = onesided if onesided is not None else bins != n_fft
    expected = n_fft // 2 + 1 if half else n_fft
    if bins != expected:
        raise RuntimeError(
            f"{what}: expected the frequency dimension (3rd to the last) of the input tensor to match n_fft"
            f"{' / 2 + 1' if half else ''} when onesided={half}, but got {bins}"
        )
    if not 0 < hop <= size:
        raise RuntimeError(f"{what}: expected 0 < hop_length <= win_length")
    if not 0 < size <= n_fft:
        raise RuntimeError(f"{what}: expected 0 < win_length <= n_fft")
    _check_inverse_window(what, window, size, half, return_complex)
    signal, weight = _overlapped(input, n_fft, hop, size, window, normalized, half, return_complex)
    start = n_fft // 2 if center else 0
    total = signal.shape[-1]
    end = start + length if length is not None else total - n_fft // 2 if center else total
    signal, weight = signal[..., start:end], weight[start:end]
    least = float(every_sample(weight).detach().abs().amin()) if weight.numel() else 0.0
    if not least > 1e-11:
        raise RuntimeError(f"{what} window overlap add min: {least}")
    signal = signal / weight
    missing = end - start - signal.shape[-1]
    if missing <= 0:
        return signal
    warnings.warn(
        "The length of signal is shorter than the length parameter. Result is being padded with zeros in the tail. "
        "Please check your center and hop_length settings.",
        UserWarning,
        stacklevel=2,
    )
    return rushlight.cat([signal, signal.new_zeros((*signal.shape[:-1], missing))], -1)


def _check_inverse_window(what: str, window: Tensor | None, size: int, half: bool, return_complex: bool) -> None:
    if window is None:
        warnings.warn(
            "A window was not provided. A rectangular window will be applied.Please provide the same window used by "
            "stft to make the inversion lossless.To suppress this warning and use a rectangular window, explicitly set "
            "`window=torch.ones(n_fft, device=<device>)`.",
            UserWarning,
            stacklevel=3,
        )
    elif window.dim() != 1 or window.shape[0] != size:
        raise RuntimeError(f"{what}: Invalid window shape. window has to be 1D and length of `win_length`")
    if not return_complex and window is not None and window.is_complex():
        raise RuntimeError("Complex windows are incompatible with return_complex=False")
    if return_complex and half:
        raise RuntimeError("Cannot have onesided output if window or input is complex")


def _overlapped(
    input: Tensor,
    n_fft: int,
    hop: int,
    size: int,
    window: Tensor | None,
    normalized: bool,
    half: bool,
    return_complex: bool,
) -> tuple[Tensor, Tensor]:
    """The windowed parts added where they overlap, and the windows' squares likewise."""
    spectra, scale = input.transpose(-2, -1), _scale(normalized, False)
    if return_complex:
        parts: Tensor = FftC2C.apply(spectra, (-1,), scale, False)
    else:
        parts = FftC2R.apply(spectra if half else spectra[..., : n_fft // 2 + 1], (-1,), scale, n_fft)
    whole = _completed(window, n_fft, size, parts.real.dtype)
    count = parts.shape[-2]
    places = (rushlight.arange(count).unsqueeze(1) * hop + rushlight.arange(n_fft)).reshape(-1)
    total = n_fft + hop * (count - 1)
    added = (parts * whole).flatten(-2)
    signal = added.new_zeros((*added.shape[:-1], total)).index_add(-1, places, added)
    squares = whole.square().expand(count, n_fft).reshape(-1)
    return signal, squares.new_zeros(total).index_add(0, places, squares)
