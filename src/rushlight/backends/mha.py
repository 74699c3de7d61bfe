"""`torch.backends.mha`: whether attention layers may take their fused path in evaluation."""

from rushlight._missing import lazy_module

_fastpath_enabled = True


def get_fastpath_enabled() -> bool:
    """Whether the fused path may be taken."""
    return _fastpath_enabled


def set_fastpath_enabled(value: bool) -> None:
    """Says whether the fused path may be taken."""
    global _fastpath_enabled
    _fastpath_enabled = value


__getattr__, __dir__ = lazy_module(__name__)
