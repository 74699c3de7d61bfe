"""Padding by a constant, by reflection, by the edge, and around a circle."""

from __future__ import annotations

from collections.abc import Sequence

from rushlight import _C, Tensor

__all__ = ["pad"]


def pad(input: Tensor, pad: Sequence[int], mode: str = "constant", value: float | None = None) -> Tensor:
    """Add `pad[0]` numbers before and `pad[1]` behind the last dimension, `pad[2]` and `pad[3]` for the one before...

    `mode` "constant" adds `value` (0 by default) in any dimension; "reflect" mirrors at the edge without repeating it,
    "replicate" repeats the edge, "circular" continues at the other side. These three pad the last one to three
    dimensions and leave one or two before them, and take no `value`. Negative padding cuts. Padding that does not fit
    the input raises RuntimeError, a single int TypeError, an unknown mode or number of dimensions NotImplementedError.
    """
    if isinstance(pad, int):
        raise TypeError(f"pad(): argument 'pad' (position 2) must be tuple of ints, not {type(pad).__name__}")
    return _C._nn.pad(input, pad, mode, value)
