"""Padding by a constant, by reflection, by the edge, and around a circle."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import rushlight
from rushlight import Tensor

__all__ = ["pad"]


def pad(input: Tensor, pad: Sequence[int], mode: str = "constant", value: float | None = None) -> Tensor:
    """Add `pad[0]` numbers before and `pad[1]` behind the last dimension, `pad[2]` and `pad[3]` for the one before...

    `mode` "constant" adds `value` (0 by default) in any dimension; "reflect" mirrors at the edge without repeating it,
    "replicate" repeats the edge, "circular" continues at the other side. These three pad the last one to three
    dimensions and leave one or two before them, and take no `value`. Negative padding cuts. Padding that does not fit
    the input raises RuntimeError, an unknown mode or number of dimensions NotImplementedError.
    """
    if mode == "constant":
        _check_length(input, pad)
        return rushlight.constant_pad_nd(input, pad, 0 if value is None else value)
    if mode not in _SOURCES:
        raise NotImplementedError(f"Unrecognised padding mode {mode}")
    if value:
        raise RuntimeError(f'Padding mode "{mode}" doesn\'t take in value argument')
    _check_length(input, pad)
    dims = len(pad) // 2
    if dims not in (1, 2, 3) or input.dim() - dims not in (1, 2):
        raise NotImplementedError(
            f"Padding size {len(pad)} is not supported for {input.dim()}D input tensor.\n"
            "Supported combinations for non-constant padding:\n"
            "  - 2D or 3D input: padding size = 2 (pads last dimension)\n"
            "  - 3D or 4D input: padding size = 4 (pads last 2 dimensions)\n"
            "  - 4D or 5D input: padding size = 6 (pads last 3 dimensions)"
        )
    sides = [(int(pad[2 * i]), int(pad[2 * i + 1])) for i in range(dims)]
    _check_fit(input, sides, mode)
    for i, (before, behind) in enumerate(sides):
        if before or behind:
            dim = input.dim() - 1 - i
            input = input.index_select(dim, _SOURCES[mode](before, behind, input.size(dim)))
    return input


def _reflected(before: int, behind: int, size: int) -> Tensor:
    last = size - 1
    return last - (last - rushlight.arange(-before, size + behind).abs()).abs()


def _replicated(before: int, behind: int, size: int) -> Tensor:
    return rushlight.arange(-before, size + behind).clamp(0, size - 1)


def _wrapped(before: int, behind: int, size: int) -> Tensor:
    # What negative padding cuts off is no part of the circle.
    first, end = max(-before, 0), size - max(-behind, 0)
    return first + rushlight.arange(-max(before, 0), end - first + max(behind, 0)).remainder(end - first)


# Where each number along a padded dimension comes from.
_SOURCES: dict[str, Callable[[int, int, int], Tensor]] = {
    "reflect": _reflected,
    "replicate": _replicated,
    "circular": _wrapped,
}


def _check_length(input: Tensor, pad: Sequence[int]) -> None:
    if isinstance(pad, int):
        raise TypeError("pad(): argument 'pad' (position 2) must be tuple of ints, not int")
    if len(pad) % 2:
        raise RuntimeError("Padding length must be divisible by 2")
    if len(pad) > 2 * input.dim():
        raise RuntimeError(
            "Padding length should be less than or equal to two times the input dimension but got padding length "
            f"{len(pad)} and input of dimension {input.dim()}"
        )


def _check_fit(input: Tensor, sides: Sequence[tuple[int, int]], mode: str) -> None:
    """Raise unless every padded dimension is long enough for `mode`."""
    dims = len(sides)
    shape = list(input.shape)
    if mode != "circular" and 0 in shape[input.dim() - dims - 1 :]:
        raise RuntimeError(
            f"Expected {dims + 1}D or {dims + 2}D (batch mode) tensor with possibly 0 batch size and other non-zero "
            f"dimensions for input, but got: {shape}"
        )
    for i, (before, behind) in enumerate(sides):
        dim = input.dim() - 1 - i
        size = shape[dim]
        if mode == "reflect" and (before >= size or behind >= size):
            raise RuntimeError(
                f"Argument #{4 + 2 * i}: Padding size should be less than the corresponding input dimension, but got: "
                f"padding ({before}, {behind}) at dimension {dim} of input {shape}"
            )
        result = size + before + behind
        if mode == "circular" and result < 0:
            raise RuntimeError("Negative padding value is resulting in an empty dimension")
        if mode == "circular" and max(before, behind) > size + min(before, 0) + min(behind, 0):
            raise RuntimeError("Padding value causes wrapping around more than once.")
        if mode != "circular" and result < 1:
            name = "WHD"[i]
            raise RuntimeError(f"input ({name}: {size}) is too small. Calculated output {name}: {result}")
