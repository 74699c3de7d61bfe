"""Arguments given as one number or as one per dimension, and names in state dicts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .._sizes import _list_with_default, _ntuple, _pair, _quadruple, _single, _triple

__all__ = [
    "_list_with_default",
    "_ntuple",
    "_pair",
    "_quadruple",
    "_reverse_repeat_tuple",
    "_single",
    "_triple",
    "consume_prefix_in_state_dict_if_present",
]


def _reverse_repeat_tuple(t: Sequence[Any], n: int) -> tuple[Any, ...]:
    """The entries of `t` in reverse order, each `n` times: how `functional.pad` orders its argument."""
    return tuple(x for x in reversed(t) for _ in range(n))


def consume_prefix_in_state_dict_if_present(state_dict: dict[str, Any], prefix: str) -> None:
    """Take `prefix` off the keys of `state_dict` and of its metadata that start with it, in place."""
    for key in list(state_dict):
        if key.startswith(prefix):
            state_dict[key[len(prefix) :]] = state_dict.pop(key)
    metadata = getattr(state_dict, "_metadata", {})
    for key in list(metadata):
        # The module that owned the prefix is recorded without the final dot.
        if f"{key}.".startswith(prefix):
            metadata[key[len(prefix) :]] = metadata.pop(key)
