"""Scaling of losses, so that gradients in half precision do not vanish."""

import warnings
from collections.abc import Iterable
from enum import Enum
from typing import TYPE_CHECKING, Any

import rushlight

if TYPE_CHECKING:
    from rushlight import Tensor
    from rushlight.optim import Optimizer


class OptState(Enum):
    """What has been done with an optimizer since the last update of the scale."""

    READY = 0
    UNSCALED = 1
    STEPPED = 2


class _Progress:
    """The state of one optimizer; `found_inf` is None until its gradients have been looked at."""

    def __init__(self) -> None:
        self.stage = OptState.READY
        self.found_inf: bool | None = None


class GradScaler:
    """Multiplies losses by a scale, divides the gradients by it again, and skips steps whose gradients overflowed.

    The scale grows by `growth_factor` after `growth_interval` steps without overflow, and shrinks by `backoff_factor`
    after each with.  For `device="cuda"` the scaler is switched off with a warning, since there is no such device:
    everything passes through it unchanged.

    AssertionError for factors on the wrong side of 1.
    """

    def __init__(
        self,
        device: str = "cuda",
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        self._device = device
        self._enabled = enabled
        if enabled and device == "cuda":
            warnings.warn("torch.cuda.amp.GradScaler is enabled, but CUDA is not available.  Disabling.", stacklevel=2)
            self._enabled = False
        if self._enabled:
            if growth_factor <= 1.0:
                raise AssertionError(f"The growth factor must be > 1.0, found {growth_factor}.")
            if backoff_factor >= 1.0:
                raise AssertionError(f"The backoff factor must be < 1.0, found {backoff_factor}.")
        self._init_scale = init_scale
        self._growth_factor = growth_factor
        self._backoff_factor = backoff_factor
        self._growth_interval = growth_interval
        self._init_growth_tracker = 0
        self._growth_tracker = 0
        self._scale: Tensor | None = None  # made by the first call of scale()
        self._per_optimizer: dict[int, _Progress] = {}

    def scale(self, outputs: Any) -> Any:
        """Tensors multiplied by the scale, in the containers they came in; ValueError for anything else."""
        if not self._enabled:
            return outputs
        if self._scale is None:
            self._scale = rushlight.tensor(self._init_scale, dtype=rushlight.float32)
            self._growth_tracker = self._init_growth_tracker
        return _multiplied(outputs, self._scale)

    def unscale_(self, optimizer: "Optimizer") -> None:
        """Divides the gradients of the optimizer's parameters by the scale, once between two updates.

        RuntimeError if that has been done already, ValueError if a gradient is in float16.
        """
        if not self._enabled:
            return
        self._check_scale("unscale_")
        progress = self._progress(optimizer)
        if progress.stage is OptState.UNSCALED:
            raise RuntimeError("unscale_() has already been called on this optimizer since the last update().")
        if progress.stage is OptState.STEPPED:
            raise RuntimeError("unscale_() is being called after step().")
        self._unscale(optimizer, progress)

    def step(self, optimizer: "Optimizer", *args: Any, **kwargs: Any) -> float | None:
        """Calls `optimizer.step(*args, **kwargs)` with unscaled gradients, unless one of them is infinite or NaN.

        Returns what the optimizer returns, None if the step was left out.  RuntimeError if a closure is given or this
        is the second step since the last update; AssertionError if no parameter has a gradient.
        """
        if not self._enabled:
            loss: float | None = optimizer.step(*args, **kwargs)
            return loss
        if "closure" in kwargs:
            raise RuntimeError("Closure use is not currently supported if GradScaler is enabled.")
        self._check_scale("step")
        progress = self._progress(optimizer)
        if progress.stage is OptState.STEPPED:
            raise RuntimeError("step() has already been called since the last update().")
        if progress.stage is OptState.READY:
            self._unscale(optimizer, progress)
        if progress.found_inf is None:
            raise AssertionError("No inf checks were recorded for this optimizer.")
        result = None if progress.found_inf else optimizer.step(*args, **kwargs)
        progress.stage = OptState.STEPPED
        return result

    def update(self, new_scale: "float | Tensor | None" = None) -> None:
        """Adapts the scale to what was found since the last update, or sets it to `new_scale`."""
        if not self._enabled:
            return
        scale = self._check_scale("update")
        if new_scale is not None:
            with rushlight.no_grad():
                if isinstance(new_scale, rushlight.Tensor):
                    scale.copy_(new_scale)
                else:
                    scale.fill_(new_scale)
        else:
            found = [p.found_inf for p in self._per_optimizer.values() if p.found_inf is not None]
            if not found:
                raise AssertionError("No inf checks were recorded prior to update.")
            self._adapt(scale, any(found))
        self._per_optimizer.clear()

    def _adapt(self, scale: "Tensor", overflow: bool) -> None:
        if overflow:
            scale.mul_(self._backoff_factor)
            self._growth_tracker = 0
            return
        self._growth_tracker += 1
        if self._growth_tracker == self._growth_interval:
            grown = scale * self._growth_factor
            if grown.isfinite():
                scale.copy_(grown)
            self._growth_tracker = 0

    def _unscale(self, optimizer: "Optimizer", progress: _Progress) -> None:
        gradients = [
            parameter.grad
            for group in optimizer.param_groups
            for parameter in group["params"]
            if parameter.grad is not None
        ]
        if any(gradient.dtype == rushlight.float16 for gradient in gradients):
            raise ValueError("Attempting to unscale FP16 gradients.")
        assert self._scale is not None
        factor = 1.0 / self._scale.item()
        with rushlight.no_grad():
            for gradient in gradients:
                finite = bool(gradient.isfinite().all())
                progress.found_inf = progress.found_inf or not finite
                gradient.mul_(factor)
        progress.stage = OptState.UNSCALED

    def _progress(self, optimizer: "Optimizer") -> _Progress:
        return self._per_optimizer.setdefault(id(optimizer), _Progress())

    def _check_scale(self, call: str) -> "Tensor":
        if self._scale is None:
            raise AssertionError(
                f"Attempted {call} but _scale is None.  This may indicate your script did not use scaler.scale(loss or "
                "outputs) earlier in the iteration."
            )
        return self._scale

    def is_enabled(self) -> bool:
        """Whether the scaler does anything."""
        return self._enabled

    def get_scale(self) -> float:
        """The scale; 1.0 if the scaler is switched off."""
        if not self._enabled:
            return 1.0
        return self._init_scale if self._scale is None else float(self._scale.item())

    def get_growth_factor(self) -> float:
        """The factor by which the scale grows."""
        return self._growth_factor

    def set_growth_factor(self, new_factor: float) -> None:
        """Sets the factor by which the scale grows."""
        self._growth_factor = new_factor

    def get_backoff_factor(self) -> float:
        """The factor by which the scale shrinks."""
        return self._backoff_factor

    def set_backoff_factor(self, new_factor: float) -> None:
        """Sets the factor by which the scale shrinks."""
        self._backoff_factor = new_factor

    def get_growth_interval(self) -> int:
        """The number of steps without overflow after which the scale grows."""
        return self._growth_interval

    def set_growth_interval(self, new_interval: int) -> None:
        """Sets the number of steps without overflow after which the scale grows."""
        self._growth_interval = new_interval

    def _get_growth_tracker(self) -> int:
        """Steps without overflow since the scale last changed."""
        return self._growth_tracker if self._enabled else 0

    def state_dict(self) -> dict[str, Any]:
        """What `load_state_dict` needs to go on; empty if the scaler is switched off."""
        if not self._enabled:
            return {}
        return {
            "scale": self.get_scale(),
            "growth_factor": self._growth_factor,
            "backoff_factor": self._backoff_factor,
            "growth_interval": self._growth_interval,
            "_growth_tracker": self._get_growth_tracker(),
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Goes on from a saved state; RuntimeError if it is empty."""
        if not self._enabled:
            return
        if not state_dict:
            raise RuntimeError(
                "The source state dict is empty, possibly because it was saved from a disabled instance of GradScaler."
            )
        self._init_scale = state_dict["scale"]
        if self._scale is not None:
            self._scale.fill_(state_dict["scale"])
        self._growth_factor = state_dict["growth_factor"]
        self._backoff_factor = state_dict["backoff_factor"]
        self._growth_interval = state_dict["growth_interval"]
        self._init_growth_tracker = self._growth_tracker = state_dict["_growth_tracker"]


def _multiplied(outputs: Any, scale: "Tensor") -> Any:
    if isinstance(outputs, rushlight.Tensor):
        return outputs * scale
    if not isinstance(outputs, Iterable):
        raise ValueError("outputs must be a Tensor or an iterable of Tensors")
    scaled = (_multiplied(output, scale) for output in outputs)
    if isinstance(outputs, tuple) and hasattr(outputs, "_fields"):
        return type(outputs)(*scaled)
    return type(outputs)(scaled) if isinstance(outputs, (list, tuple)) else scaled
