"""`torch.cuda.nvtx`: marks for NVIDIA's profiler, which has nothing to see here."""

from rushlight._absent_device import unavailable, unavailable_class
from rushlight._missing import lazy_module

_NO_NVTX = "NVTX functions not installed. Are you sure you have a CUDA build?"

mark = unavailable("torch.cuda.nvtx.mark", _NO_NVTX, RuntimeError)
range_push = unavailable("torch.cuda.nvtx.range_push", _NO_NVTX, RuntimeError)
range_pop = unavailable("torch.cuda.nvtx.range_pop", _NO_NVTX, RuntimeError)
range_start = unavailable("torch.cuda.nvtx.range_start", _NO_NVTX, RuntimeError)
range_end = unavailable("torch.cuda.nvtx.range_end", _NO_NVTX, RuntimeError)
range = unavailable_class("torch.cuda.nvtx.range", _NO_NVTX)

__getattr__, __dir__ = lazy_module(__name__)
