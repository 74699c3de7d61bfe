"""Signals, images and volumes at another size."""

from __future__ import annotations

from collections.abc import Sequence

from rushlight import Tensor

from .. import functional as F
from .module import Module

__all__ = ["Upsample", "UpsamplingBilinear2d", "UpsamplingNearest2d"]

_Size = int | Sequence[int]
_Factor = float | Sequence[float]


class Upsample(Module):
    """``(N, C, *d)`` to ``(N, C, *size)``, or to sizes times `scale_factor`, as by ``nn.functional.interpolate``."""

    def __init__(
        self,
        size: _Size | None = None,
        scale_factor: _Factor | None = None,
        mode: str = "nearest",
        align_corners: bool | None = None,
        recompute_scale_factor: bool | None = None,
    ) -> None:
        super().__init__()
        self.name = type(self).__name__
        self.size = size
        self.scale_factor: float | tuple[float, ...] | None
        if isinstance(scale_factor, (tuple, list)):
            self.scale_factor = tuple(float(factor) for factor in scale_factor)
        else:
            self.scale_factor = float(scale_factor) if scale_factor else None  # type: ignore[arg-type]
        self.mode = mode
        self.align_corners = align_corners
        self.recompute_scale_factor = recompute_scale_factor

    def forward(self, input: Tensor) -> Tensor:
        return F.interpolate(
            input, self.size, self.scale_factor, self.mode, self.align_corners, self.recompute_scale_factor
        )

    def extra_repr(self) -> str:
        target = f"size={self.size}" if self.scale_factor is None else f"scale_factor={self.scale_factor}"
        return f"{target}, mode={self.mode!r}"


class UpsamplingNearest2d(Upsample):
    """:class:`Upsample` of images in the mode ``"nearest"``."""

    def __init__(self, size: _Size | None = None, scale_factor: _Factor | None = None) -> None:
        super().__init__(size, scale_factor, mode="nearest")


class UpsamplingBilinear2d(Upsample):
    """:class:`Upsample` of images in the mode ``"bilinear"`` with aligned corners."""

    def __init__(self, size: _Size | None = None, scale_factor: _Factor | None = None) -> None:
        super().__init__(size, scale_factor, mode="bilinear", align_corners=True)
