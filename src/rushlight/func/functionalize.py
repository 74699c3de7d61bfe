"""``functionalize``: in-place operations as if they were not."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

__all__ = ["functionalize"]


def functionalize(func: Callable[..., Any], *, remove: str = "mutations") -> Callable[..., Any]:
    """Return a function that computes what ``func`` does, for tools that trace programs without in-place operations.

    Results, and what is left in arguments that ``func`` changes, are those of ``func``: rushlight traces no programs,
    so nothing has to be rewritten. ``remove`` is "mutations" or "mutations_and_views" (RuntimeError otherwise).
    """
    if remove not in ("mutations", "mutations_and_views"):
        raise RuntimeError(
            f"functionalize(f, remove='mutations'): received invalid argument for remove={remove}. Valid options are "
            "'mutations' (in-place operations) and 'mutations_and_views' (views as well)."
        )

    @functools.wraps(func)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        return func(*args, **kwargs)

    return wrapped
