"""Axes by name: ``rearrange``, the function of the package einops that PyTorch has, too."""

from __future__ import annotations

import functools
import math
import re
from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

import rushlight
from rushlight import Tensor

__all__ = ["rearrange"]

REST = "..."
Groups = tuple[tuple[str, ...], ...]


class Pattern(NamedTuple):
    """Both sides: for each dimension the axes that it is made of; none for a dimension of size 1."""

    left: Groups
    right: Groups


@functools.lru_cache(256)
def _parse(pattern: str) -> Pattern:
    left, arrow, right = pattern.partition("->")
    if not arrow or "->" in right:
        raise ValueError(f"Pattern must contain a single '->' separator, but got {pattern!r}")
    sides = Pattern(_side(left, pattern), _side(right, pattern))
    names = [[name for group in side for name in group] for side in sides]
    for side in names:
        repeated = [name for name, count in Counter(side).items() if count > 1]
        if repeated:
            raise ValueError(f"Indexing expression contains duplicate dimension {repeated[0]!r}: {pattern!r}")
    if set(names[0]) != set(names[1]):
        lone = sorted(set(names[0]) ^ set(names[1]))
        raise ValueError(
            f"Identifiers should be the same on both sides of {pattern!r}, but {lone} are on one side only"
        )
    if any(REST in group and group != (REST,) for group in sides.left):
        raise ValueError(f"an ellipsis inside parentheses on the left side of {pattern!r} is not allowed")
    return sides


def _side(text: str, pattern: str) -> Groups:
    groups: list[tuple[str, ...]] = []
    inside: list[str] | None = None
    for token in re.findall(r"\.\.\.|\w+|\S", text):
        if token == "(" and inside is None:
            inside = []
        elif token == ")" and inside is not None:
            groups.append(tuple(inside))
            inside = None
        elif token == "1":
            if inside is None:
                groups.append(())
        elif token == REST or token.isidentifier():
            if inside is None:
                groups.append((token,))
            else:
                inside.append(token)
        else:
            raise ValueError(
                f"unexpected {token!r} in {pattern!r}: expected names, 1, '...' and parentheses, not nested"
            )
    if inside is not None:
        raise ValueError(f"a parenthesis is not closed in {pattern!r}")
    return tuple(groups)


def _sizes(left: Groups, shape: Sequence[int], lengths: dict[str, int], pattern: str) -> dict[str, tuple[int, ...]]:
    """The size of every axis; those of the ellipsis are as many as there are."""
    rest = len(shape) - len(left) + 1 if (REST,) in left else 0
    if ((REST,) in left and rest < 0) or ((REST,) not in left and len(left) != len(shape)):
        relation = "less than or equal" if (REST,) in left else "equal"
        raise ValueError(
            f"Number of dimensions in pattern ({len(left) - ((REST,) in left)}) must be {relation} to the number of "
            f"dimensions in the tensor ({len(shape)}): {pattern!r}"
        )
    sizes: dict[str, tuple[int, ...]] = {}
    at = 0
    for group in left:
        if group == (REST,):
            sizes[REST] = tuple(shape[at : at + rest])
            at += rest
            continue
        known = math.prod([lengths[name] for name in group if name in lengths])
        open_axes = [name for name in group if name not in lengths]
        if len(open_axes) > 1:
            raise ValueError(f"the sizes of {open_axes} in {pattern!r} cannot be told: give all but one of them")
        missing = shape[at] // known if open_axes and known else 1
        if known * missing != shape[at]:
            raise ValueError(
                f"a dimension of size {shape[at]} is not made of {group} in {pattern!r} with lengths {lengths}"
            )
        sizes.update({name: (lengths.get(name, missing),) for name in group})
        at += 1
    return sizes


def rearrange(tensor: Tensor | list[Tensor] | tuple[Tensor, ...], pattern: str, **axes_lengths: int) -> Tensor:
    """Return the tensor with its axes transposed, split and merged as ``pattern`` says: ``"b (h w) c -> b c h w"``.

    Names stand for axes, parentheses for several in one dimension, ``1`` for one of size 1, ``...`` for any number of
    axes. ``axes_lengths`` gives the sizes that the shape does not tell. A list of tensors is stacked first. Raises
    ValueError for a pattern that is none, or that does not fit the shape.
    """
    if not isinstance(tensor, Tensor):
        tensor = rushlight.stack(tensor)
    left, right = _parse(pattern)
    unknown = set(axes_lengths) - {name for group in left for name in group}
    if unknown:
        raise ValueError(f"Identifiers not found in rearrange expression: {unknown}, in {pattern!r}")
    sizes = _sizes(left, tensor.shape, axes_lengths, pattern)
    places: dict[str, list[int]] = {}
    count = 0
    for name in [name for group in left for name in group]:
        places[name] = list(range(count, count + len(sizes[name])))
        count += len(sizes[name])
    order = [place for group in right for name in group for place in places[name]]
    split = tensor.reshape([size for group in left for name in group for size in sizes[name]])
    shape: list[Any] = []
    for group in right:
        merged = [size for name in group for size in sizes[name]]
        shape += merged if group == (REST,) else [math.prod(merged)]
    return split.permute(order).reshape(shape)
