"""How attention is computed, and masks for it."""

from __future__ import annotations

import contextlib
import enum
from collections.abc import Iterator, Sequence

from ..._missing import lazy_module

__all__ = ["SDPBackend", "bias", "flex_attention", "sdpa_kernel"]


class SDPBackend(enum.Enum):
    """PyTorch's names for ways of computing ``scaled_dot_product_attention``; there is one way here."""

    ERROR = -1
    MATH = 0
    FLASH_ATTENTION = 1
    EFFICIENT_ATTENTION = 2
    CUDNN_ATTENTION = 3
    OVERRIDEABLE = 4


@contextlib.contextmanager
def sdpa_kernel(backends: Sequence[SDPBackend] | SDPBackend, set_priority: bool = False) -> Iterator[None]:
    """Accepts a choice of backends, which changes nothing; something else than :class:`SDPBackend` is refused.

    An ``AssertionError``, as in PyTorch.
    """
    if not isinstance(backends, (SDPBackend, list)):
        raise AssertionError(
            "Backend must be an instance of SDPBackend or a list of SDPBackend instances, "
            f"got {type(backends).__name__}"
        )
    yield


__getattr__, __dir__ = lazy_module(__name__, submodules=("bias", "flex_attention"))
