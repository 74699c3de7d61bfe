"""`torch.backends`: what was built in, and switches that programs set.

The switches of backends which are not there keep what is assigned to them and change nothing.
"""

from rushlight._missing import lazy_module

SUBMODULES = ("cpu", "cuda", "cudnn", "mha", "mkl", "mkldnn", "mps", "nnpack", "openmp", "opt_einsum")

__getattr__, __dir__ = lazy_module(__name__, SUBMODULES)
