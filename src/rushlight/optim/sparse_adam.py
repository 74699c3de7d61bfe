"""SparseAdam needs sparse gradients, which rushlight's tensors do not have."""

from typing import Any

__all__ = ["SparseAdam"]


class SparseAdam:
    """Left out: it only takes sparse gradients. :class:`Adam` takes the dense ones that there are.

    Raises:
        NotImplementedError: always.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise NotImplementedError(
            "SparseAdam is not part of rushlight: it only takes sparse gradients, and gradients are dense here; "
            "use Adam instead"
        )
