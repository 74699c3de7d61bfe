"""rushlight's own version, and the PyTorch version whose interface it offers.

This file is the single source: pyproject.toml reads VERSION from it.  `rushlight.__version__` joins both, so that a
program which compares `torch.__version__` finds the interface that it asks about.
"""

from rushlight.torch_version import TorchVersion

__all__ = ["TORCH_API", "VERSION", "__version__", "cuda", "debug", "git_version", "hip", "rocm", "xpu"]

VERSION = "0.1.0"
TORCH_API = "2.13.0"
__version__ = TorchVersion(f"{TORCH_API}+rushlight.{VERSION}")

debug = False
cuda: str | None = None
hip: str | None = None
rocm: str | None = None
xpu: str | None = None
git_version = "Unknown"
