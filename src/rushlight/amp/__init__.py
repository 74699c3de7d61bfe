"""`torch.amp`: mixed precision.  Losses are scaled on any device; autocast is there for devices that are not."""

from rushlight._missing import lazy_module

from .autocast_mode import autocast, custom_bwd, custom_fwd, is_autocast_available
from .grad_scaler import GradScaler

__all__ = ["GradScaler", "autocast", "custom_bwd", "custom_fwd", "is_autocast_available"]

__getattr__, __dir__ = lazy_module(__name__)
