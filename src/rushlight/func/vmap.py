"""``vmap``: a function of one sample, applied to a batch at once."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import rushlight
from rushlight import _C, Tensor

from .._vmap.levels import batching
from ..utils import _pytree as pytree
from ._check import name_of

__all__ = ["vmap"]

RANDOMNESS = ("error", "different", "same")


def vmap(
    func: Callable[..., Any],
    in_dims: Any = 0,
    out_dims: Any = 0,
    randomness: str = "error",
    *,
    chunk_size: int | None = None,
) -> Callable[..., Any]:
    """Return a function that applies ``func`` to every slice of its arguments, and stacks what it returns.

    ``in_dims`` says which dimension of each argument counts the samples: an int for all, or a structure of ints and
    None (the same for all samples) that matches the arguments. ``out_dims`` says where that dimension comes in the
    results (None: a result that is the same for all). Arguments and results may be nested Python containers; keyword
    arguments are the same for all samples. ``randomness``: "error" refuses random operations, "same" draws
    once for all samples, "different" for each. ``chunk_size`` computes at most so many samples at a time.

    ``func`` runs once, on tensors of the shapes of one sample; what it needs numbers for in Python (``item``, ``if``)
    raises RuntimeError. Raises ValueError for ``in_dims`` and ``out_dims`` that do not fit, and for results that are
    not tensors.
    """
    _check_randomness(randomness)
    if chunk_size is not None and not chunk_size > 0:
        raise ValueError(f"vmap: chunk_size should be None or greater than 0. (got {chunk_size})")

    @functools.wraps(func)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        places, leaves, spec = _check_inputs(in_dims, args, func)
        size = _batch_size(places, leaves, func)
        step = size if chunk_size is None else chunk_size
        if step >= size:
            return _run(func, size, places, leaves, spec, kwargs, out_dims, randomness)
        parts = []
        for start in range(0, size, step):
            count = min(step, size - start)
            some = [t if p is None else t.narrow(p, start, count) for t, p in zip(leaves, places, strict=True)]
            parts.append(_run(func, count, places, some, spec, kwargs, out_dims, randomness))
        return _joined(parts, out_dims)

    return wrapped


def _check_randomness(randomness: str) -> None:
    if randomness not in RANDOMNESS:
        raise RuntimeError(f"Only allowed values for randomness are 'error', 'different', or 'same'. Got {randomness}")


def _check_inputs(in_dims: Any, args: tuple[Any, ...], func: Any) -> tuple[list[Any], list[Any], Any]:
    """The dimension of every leaf of the arguments, the leaves, and their structure."""
    if not isinstance(in_dims, (int, tuple)):
        raise ValueError(
            f"vmap({name_of(func)}, in_dims={in_dims}, ...)(<inputs>): expected `in_dims` to be int or a (potentially "
            f"nested) tuple matching the structure of inputs, got: {type(in_dims)}."
        )
    if not args:
        raise ValueError(
            f"vmap({name_of(func)})(<inputs>): got no inputs. Maybe you forgot to add inputs, or you are trying to vmap "
            "over a function with no inputs, which is unsupported."
        )
    leaves, spec = pytree.tree_flatten(args)
    if in_dims == 0 and all(isinstance(t, Tensor) and t.dim() for t in leaves):
        return [0] * len(leaves), leaves, spec
    places = pytree._broadcast_to_and_flatten(in_dims, spec)
    if places is None:
        raise ValueError(
            f"vmap({name_of(func)}, in_dims={in_dims}, ...)(<inputs>): in_dims is not compatible with the structure of "
            f"`inputs`. in_dims has structure {pytree.tree_structure(in_dims)} but inputs has structure {spec}."
        )
    for i, (leaf, place) in enumerate(zip(leaves, places, strict=True)):
        who = f"vmap({name_of(func)}, in_dims={in_dims}, ...)(<inputs>): Got in_dim={place} for "
        if place is None:
            continue
        if type(place) is not int:
            raise ValueError(f"{who}an input but in_dim must be either an integer dimension or None.")
        if not isinstance(leaf, Tensor):
            raise ValueError(
                f"{who}an input but the input is of type {type(leaf)}. We cannot vmap over non-Tensor arguments, please "
                "use None as the respective in_dim"
            )
        count = leaf.dim()
        if not -count <= place < count:
            raise ValueError(
                f"{who}some input, but that input is a Tensor of dimensionality {count} so expected in_dim to satisfy "
                f"-{count} <= in_dim < {count}."
            )
        places[i] = place % count
    return places, leaves, spec


def _batch_size(places: list[Any], leaves: list[Any], func: Any) -> int:
    sizes = [leaf.shape[place] for leaf, place in zip(leaves, places, strict=True) if place is not None]
    if not sizes:
        raise ValueError(
            f"vmap({name_of(func)}): at least one input must be mapped over, but in_dims is None for all of them"
        )
    if len(set(sizes)) > 1:
        raise ValueError(
            f"vmap: Expected all tensors to have the same size in the mapped dimension, got sizes {sizes} for the "
            "mapped dimension"
        )
    return int(sizes[0])


def _run(
    func: Any,
    size: int,
    places: list[Any],
    leaves: list[Any],
    spec: Any,
    kwargs: dict[str, Any],
    out_dims: Any,
    randomness: str,
) -> Any:
    with batching(size, randomness) as level:
        args = pytree.tree_unflatten(_wrapped(leaves, places, level), spec)
        return unwrapped(func(*args, **kwargs), level, size, out_dims, func)


def _wrapped(leaves: list[Any], places: list[Any], level: int) -> list[Any]:
    wrapped = []
    for leaf, place in zip(leaves, places, strict=True):
        if place is None:
            wrapped.append(leaf)
        else:
            wrapped.append(_C._batch(leaf.movedim(place, 0) if place else leaf, level))
    return wrapped


def unwrapped(outputs: Any, level: int, size: int, out_dims: Any, func: Any) -> Any:
    """The values of results, their batch where ``out_dims`` wants it."""
    if isinstance(outputs, Tensor) and type(out_dims) is int:
        return _placed(outputs, out_dims, level, size, func)
    leaves, spec = pytree.tree_flatten(outputs)
    places = _out_places(out_dims, spec, outputs, func)
    results = []
    for leaf, place in zip(leaves, places, strict=True):
        if place is None and not isinstance(leaf, Tensor):
            results.append(leaf)
            continue
        if not isinstance(leaf, Tensor):
            raise ValueError(
                f"vmap({name_of(func)}, ...): `{name_of(func)}` must only return Tensors, got type {type(leaf)}. Did "
                "you mean to set out_dims= to None for output?"
            )
        results.append(_placed(leaf, place, level, size, func))
    return pytree.tree_unflatten(results, spec)


def _out_places(out_dims: Any, spec: Any, outputs: Any, func: Any) -> list[Any]:
    who = f"vmap({name_of(func)}, ..., out_dims={out_dims})"
    for place in pytree.tree_leaves(out_dims) if out_dims is not None else ():
        if place is not None and type(place) is not int:
            raise ValueError(
                f"{who}: `out_dims` must be an int, None or a python collection of ints representing where in the "
                "outputs the vmapped dimension should appear."
            )
    if isinstance(outputs, Tensor) and isinstance(out_dims, (tuple, list)) and len(out_dims) == 1:
        return list(out_dims)
    places: list[Any] | None
    if out_dims is None or type(out_dims) is int:
        places = [out_dims] * spec.num_leaves
    else:
        places = pytree._broadcast_to_and_flatten(out_dims, spec)
    if places is None:
        raise ValueError(
            f"{who}(<inputs>): out_dims is not compatible with the structure of `outputs`. out_dims has structure "
            f"{pytree.tree_structure(out_dims)} but outputs has structure {spec}."
        )
    return places


def _placed(leaf: Tensor, place: int | None, level: int, size: int, func: Any) -> Tensor:
    value: Tensor | None = _C._value_at(leaf, level)
    if place is None:
        if value is not None:
            raise ValueError(
                f"vmap({name_of(func)}, ...): `{name_of(func)}` can not return a BatchedTensor when out_dim is None"
            )
        return leaf
    if value is None:
        value = leaf.expand(size, *leaf.shape)
    if place == 0:
        return value
    return value.movedim(0, place)


def _joined(parts: list[Any], out_dims: Any) -> Any:
    """The results of chunks, one behind the other."""
    flat = [pytree.tree_flatten(part) for part in parts]
    spec = flat[0][1]
    if out_dims is None or type(out_dims) is int:
        places: Any = [out_dims] * spec.num_leaves
    elif isinstance(parts[0], Tensor):
        places = list(out_dims)
    else:
        places = pytree._broadcast_to_and_flatten(out_dims, spec)
    columns = zip(*[leaves for leaves, _ in flat], strict=True)
    results = [
        column[0] if place is None else rushlight.cat(list(column), place)
        for column, place in zip(columns, places, strict=True)
    ]
    return pytree.tree_unflatten(results, spec)


def debug_unwrap(tensor: Tensor, *, recurse: bool = True) -> Tensor:
    """Return the numbers of all samples, where ``tensor`` stands for one sample: for a look at them, not for use.

    ``recurse=False`` takes off the innermost vmap only.
    """
    if not isinstance(tensor, Tensor):
        raise TypeError(f"debug_unwrap() expects a Tensor, but got {type(tensor).__name__}")
    value, levels = _C._unbatch(tensor)
    unwrapped: Tensor = value if recurse or len(levels) < 2 else _C._value_at(tensor, levels[-1])
    return unwrapped
