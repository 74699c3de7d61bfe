"""Regions in which operators choose their precision, and the marks that custom functions carry for them.

On a build for CPUs the regions for other devices are switched off, as PyTorch switches them off; a region for the CPU
would change the dtypes of results, which rushlight's operators do not do, and says so.
"""

import functools
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import rushlight

if TYPE_CHECKING:
    from rushlight import dtype as Dtype

Function = TypeVar("Function", bound=Callable[..., Any])

_DEVICES = ("cpu", "cuda", "xpu", "mps", "mtia", "hpu", "xla", "ipu", "maia", "privateuseone")


def is_autocast_available(device_type: str) -> bool:
    """Whether `autocast(device_type)` changes anything: on no device."""
    _check_device_type(device_type)
    return False


def is_autocast_enabled(device_type: str = "cuda") -> bool:
    """Whether the caller stands in a region that changes precision: never."""
    _check_device_type(device_type)
    return False


def get_autocast_dtype(device_type: str) -> "Dtype":
    """The dtype that a region for this device has if it is given none."""
    return rushlight.bfloat16 if _check_device_type(device_type) == "cpu" else rushlight.float16


def is_autocast_cache_enabled() -> bool:
    """Whether casts of parameters would be kept within a region: yes, as PyTorch has it."""
    return True


def clear_autocast_cache() -> None:
    """Forgets the casts that were kept: there are none."""


class autocast:
    """A region (`with autocast("cuda"):`, or as a decorator) that leaves operators as they are.

    For a device that is not there it is switched off, with PyTorch's warning for CUDA.  For the CPU it is accepted with
    `enabled=False`, or with a dtype for which PyTorch switches it off.  NotImplementedError where PyTorch would compute
    in bfloat16 or float16, RuntimeError for an unknown device.
    """

    def __init__(
        self,
        device_type: str,
        dtype: "Dtype | None" = None,
        enabled: bool = True,
        cache_enabled: bool | None = None,
    ) -> None:
        self.device = _check_device_type(device_type)
        self.fast_dtype = dtype or get_autocast_dtype(self.device)
        self._enabled = False
        self._cache_enabled = True if cache_enabled is None else cache_enabled
        if not enabled:
            return
        if self.device == "cuda":
            warnings.warn("CUDA is not available or torch_xla is imported. Disabling autocast.", stacklevel=2)
        elif self.device == "cpu" and self.fast_dtype in (rushlight.bfloat16, rushlight.float16):
            raise NotImplementedError(
                f"rushlight has no 'torch.autocast(\"cpu\")': operators keep the dtypes of their arguments, none is "
                f"cast to {self.fast_dtype}; use enabled=False, or cast the model and its inputs"
            )
        elif self.device == "cpu":
            message = (
                "In CPU autocast, but the target dtype is not supported. Disabling autocast.\n"
                "CPU Autocast only supports dtypes of torch.bfloat16, torch.float16 currently."
            )
            warnings.warn(message, stacklevel=2)

    def __enter__(self) -> "autocast":
        return self

    def __exit__(self, *error: object) -> None:
        return None

    def __call__(self, func: Function) -> Function:
        return func


def custom_fwd(fwd: Any = None, *, device_type: str, cast_inputs: "Dtype | None" = None) -> Any:
    """Marks the forward of an `autograd.Function`, which runs as it is because no region changes precision."""
    _check_device_type(device_type)
    if fwd is None:
        return functools.partial(custom_fwd, device_type=device_type, cast_inputs=cast_inputs)
    return fwd


def custom_bwd(bwd: Any = None, *, device_type: str) -> Any:
    """Marks the backward of an `autograd.Function`, which runs as it is because no region changes precision."""
    _check_device_type(device_type)
    if bwd is None:
        return functools.partial(custom_bwd, device_type=device_type)
    return bwd


def _check_device_type(device_type: str) -> str:
    """The kind of the device, without its number."""
    if not isinstance(device_type, str):
        raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
    kind = device_type.partition(":")[0]
    if kind not in _DEVICES:
        raise RuntimeError(
            f"Expected one of {', '.join(_DEVICES)} device type at start of device string: {device_type}"
        )
    return kind
