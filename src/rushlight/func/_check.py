"""What the transforms ask of their arguments."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from rushlight import Tensor

from ..utils import _pytree as pytree

__all__ = ["Argnums", "check_argnums", "check_real", "name_of", "only_tensors", "replaced", "sliced"]

Argnums = int | tuple[int, ...]


def name_of(function: Callable[..., Any]) -> str:
    """The function's name, as errors give it."""
    return getattr(function, "__name__", None) or repr(function)


def only_tensors(tree: Any, who: str, what: str) -> None:
    """Refuse leaves that are no tensors."""
    for leaf in pytree.tree_leaves(tree):
        if not isinstance(leaf, Tensor):
            raise RuntimeError(f"{who}: expected {what} to return only tensors, got unsupported type {type(leaf)}")


def check_argnums(argnums: Any, count: int) -> Argnums:
    """The positions of the arguments to differentiate by, counted from the front."""
    if type(argnums) is int:
        return _position(argnums, count)
    if not isinstance(argnums, tuple):
        raise RuntimeError(f"argnums must be int or Tuple[int, ...], got: {type(argnums)}")
    if not argnums:
        raise RuntimeError("argnums must be non-empty")
    places = tuple([_position(a, count) for a in argnums])
    if len(set(places)) != len(places):
        raise RuntimeError(f"argnums elements must be unique, got {argnums}")
    return places


def _position(argnum: Any, count: int) -> int:
    if type(argnum) is not int:
        raise RuntimeError(f"argnums must be int or Tuple[int, ...], got: {type(argnum)} among them")
    if not -count <= argnum < count:
        raise RuntimeError(f"Got argnum={argnum}, but only {count} positional inputs")
    return argnum + count if argnum < 0 else argnum


def sliced(args: Sequence[Any], argnums: Argnums) -> Any:
    """The arguments to differentiate by: one, or a tuple."""
    return args[argnums] if isinstance(argnums, int) else tuple([args[a] for a in argnums])


def replaced(args: tuple[Any, ...], argnums: Argnums, new: Any) -> tuple[Any, ...]:
    """The arguments with new ones in these places."""
    changed = list(args)
    if isinstance(argnums, int):
        changed[argnums] = new
    else:
        for place, value in zip(argnums, new, strict=True):
            changed[place] = value
    return tuple(changed)


def check_real(caller: str, what: str, leaves: Iterable[Any]) -> None:
    """Refuse complex tensors, whose Jacobian would be one of real parts and imaginary parts."""
    for i, leaf in enumerate(leaves):
        if isinstance(leaf, Tensor) and leaf.is_complex():
            raise RuntimeError(
                f"{caller}: Expected all {what}s to be real but received complex tensor at flattened {what} idx: {i}"
            )
