"""Tools around tensors and modules, by topic, as in ``torch.utils``."""

from rushlight._missing import lazy_module

__getattr__, __dir__ = lazy_module(__name__, submodules=("checkpoint", "data", "hooks"))
