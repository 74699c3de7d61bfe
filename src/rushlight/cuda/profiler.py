"""`torch.cuda.profiler`: NVIDIA's profiler, which has nothing to see here."""

from rushlight._absent_device import unavailable, unavailable_class
from rushlight._missing import lazy_module

_NOT_COMPILED = "Torch not compiled with CUDA enabled"

start = unavailable("torch.cuda.profiler.start", _NOT_COMPILED)
stop = unavailable("torch.cuda.profiler.stop", _NOT_COMPILED)
profile = unavailable_class("torch.cuda.profiler.profile", _NOT_COMPILED, AssertionError)

__getattr__, __dir__ = lazy_module(__name__)
