"""Discrete Fourier transforms by PyTorch's names in ``torch.fft``: over NumPy's, with derivatives of any order."""

from .._missing import lazy_module
from .frequency import fftfreq, fftshift, ifftshift, rfftfreq
from .hermitian import hfft, hfft2, hfftn, ihfft, ihfft2, ihfftn, irfft, irfft2, irfftn, rfft, rfft2, rfftn
from .transform import fft, fft2, fftn, ifft, ifft2, ifftn

__all__ = [
    "fft",
    "fft2",
    "fftfreq",
    "fftn",
    "fftshift",
    "hfft",
    "hfft2",
    "hfftn",
    "ifft",
    "ifft2",
    "ifftn",
    "ifftshift",
    "ihfft",
    "ihfft2",
    "ihfftn",
    "irfft",
    "irfft2",
    "irfftn",
    "rfft",
    "rfft2",
    "rfftfreq",
    "rfftn",
]

__getattr__, __dir__ = lazy_module(__name__, offers=("rushlight.fft.",))
