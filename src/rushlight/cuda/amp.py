"""`torch.cuda.amp`: the old names of mixed precision on CUDA, switched off because there is no such device."""

import warnings
from typing import TYPE_CHECKING, Any

import rushlight
from rushlight import amp
from rushlight._missing import lazy_module

if TYPE_CHECKING:
    from rushlight import dtype as Dtype

__all__ = ["GradScaler", "autocast", "custom_bwd", "custom_fwd"]


class autocast(amp.autocast):
    """`torch.amp.autocast("cuda", ...)`, which changes nothing."""

    def __init__(self, enabled: bool = True, dtype: "Dtype | None" = None, cache_enabled: bool = True) -> None:
        _deprecated("autocast")
        super().__init__("cuda", dtype=dtype or rushlight.float16, enabled=enabled, cache_enabled=cache_enabled)


class GradScaler(amp.GradScaler):
    """`torch.amp.GradScaler("cuda", ...)`, through which everything passes unchanged."""

    def __init__(
        self,
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        _deprecated("GradScaler")
        super().__init__("cuda", init_scale, growth_factor, backoff_factor, growth_interval, enabled)


def custom_fwd(fwd: Any = None, *, cast_inputs: "Dtype | None" = None) -> Any:
    """`torch.amp.custom_fwd(..., device_type="cuda")`."""
    _deprecated("custom_fwd")
    return amp.custom_fwd(fwd, device_type="cuda", cast_inputs=cast_inputs)


def custom_bwd(bwd: Any = None) -> Any:
    """`torch.amp.custom_bwd(..., device_type="cuda")`."""
    _deprecated("custom_bwd")
    return amp.custom_bwd(bwd, device_type="cuda")


def _deprecated(name: str) -> None:
    message = f"`torch.cuda.amp.{name}(args...)` is deprecated. Please use `torch.amp.{name}('cuda', args...)` instead."
    warnings.warn(message, FutureWarning, stacklevel=3)


__getattr__, __dir__ = lazy_module(__name__)
