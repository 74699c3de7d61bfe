"""Distinct elements and membership, composed of operators of the core."""

from __future__ import annotations

from typing import Any

from .. import _C

__all__ = ["isin", "unique", "unique_consecutive"]

Tensor = _C.Tensor


def _chosen(parts: tuple[Tensor, Tensor, Tensor], inverse: bool, counts: bool) -> Any:
    values, places, numbers = parts
    if not inverse and not counts:
        return values
    return (values, *([places] if inverse else []), *([numbers] if counts else []))


def unique(
    input: Tensor,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
) -> Any:
    """Return the distinct elements (slices along ``dim``) in ascending order, NaN last.

    ``return_inverse`` adds where each input went, ``return_counts`` how many became each output.
    """
    return _chosen(_C._unique2(input, sorted, return_inverse, return_counts, dim), return_inverse, return_counts)


def unique_consecutive(
    input: Tensor, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> Any:
    """Return one element (slice along ``dim``) of each run of equal ones; the other results as for :func:`unique`."""
    return _chosen(_C._unique_consecutive(input, return_inverse, return_counts, dim), return_inverse, return_counts)


def isin(
    elements: Tensor | float, test_elements: Tensor | float, *, assume_unique: bool = False, invert: bool = False
) -> Tensor:
    """Return for each element whether it equals one of ``test_elements`` (or none of them, with ``invert``).

    ``assume_unique`` is a promise that is not needed. NaN equals nothing. Two numbers: ValueError.
    """
    if not isinstance(elements, Tensor):
        if not isinstance(test_elements, Tensor):
            raise ValueError("isin(): one of elements and test_elements must be a Tensor")
        found = (test_elements == elements).any()
    elif not isinstance(test_elements, Tensor):
        found = elements == test_elements
    elif test_elements.numel() == 0:
        found = _C.zeros(elements.shape, dtype=_C.bool)
    else:
        ordered = test_elements.detach().flatten().sort()[0]
        places = _C.searchsorted(ordered, elements.detach()).clamp(max=ordered.numel() - 1)
        found = ordered[places] == elements
    return ~found if invert else found


for _function in (unique, unique_consecutive):
    setattr(Tensor, _function.__name__, _function)
