"""Settings of :func:`rushlight.nn.functional.linear_cross_entropy`."""

from __future__ import annotations

import dataclasses
from typing import Literal

import rushlight

__all__ = ["LinearCrossEntropyOptions"]


@dataclasses.dataclass
class LinearCrossEntropyOptions:
    """How many rows' logits a linear cross entropy holds at a time.

    `batch_chunk_size` tells it outright; else `chunking_method` ``"aspect_ratio:k"`` holds about `k` times as many
    numbers as all inputs have (``"auto"``: 2). The others are accepted with PyTorch's values: sums are kept in the
    dtype of the operands, and the graph may be retained and differentiated again in any case. Bad values are a
    ``ValueError``.
    """

    allow_retain_graph: bool = False
    batch_chunk_size: int | None = None
    chunking_method: str | None = "auto"
    acc_policy: Literal["accurate", "balanced", "compact", "auto"] = "auto"
    acc_dtype: rushlight.dtype | None = None

    def __post_init__(self) -> None:
        size, method = self.batch_chunk_size, self.chunking_method
        if size is not None and not (isinstance(size, int) and size > 0):
            raise ValueError(f"batch_chunk_size must be positive int or None, got {size}")
        if method not in (None, "auto", "aspect_ratio"):
            kind, _, ratio = method.partition(":")
            if kind != "aspect_ratio" or not ratio.isdecimal() or int(ratio) == 0:
                raise ValueError(f"invalid chunking_method: {method!r}")
        if self.acc_policy not in ("accurate", "balanced", "compact", "auto"):
            raise ValueError(f"invalid acc_policy: {self.acc_policy!r}")
        accepted = (None, rushlight.float16, rushlight.bfloat16, rushlight.float32, rushlight.float64)
        if not any(self.acc_dtype is d for d in accepted):
            raise ValueError(
                f"acc_dtype must be one of {{{', '.join(map(str, accepted))}}}, got {self.acc_dtype!r}. "
                "Pass acc_dtype=None to let the operator choose."
            )
