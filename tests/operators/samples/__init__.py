"""Sample inputs of every operator, by family: one file per file of operators."""

from __future__ import annotations

from collections.abc import Iterator

from . import (  # noqa: F401
    automatic,
    chosen,
    complex,
    conv,
    copying,
    factory,
    grid,
    index,
    join,
    loss,
    matmul,
    network,
    norm,
    order,
    pad,
    part,
    pointwise,
    random,
    reduction,
    special,
    view,
)
from .sample import COMPLEX, DTYPES, FLOATS, INTEGERS, TOLERANCE, Family, Maker, Sample, families, over

__all__ = [
    "COMPLEX",
    "DTYPES",
    "FLOATS",
    "INTEGERS",
    "TOLERANCE",
    "Family",
    "Maker",
    "Sample",
    "families",
    "family_of",
    "over",
    "samples_of",
]


def family_of(name: str) -> Family | None:
    """How the operator is tried: by samples written for it, or made from its signature."""
    if name not in families:
        made = automatic.family(name)
        if made is None:
            return None
        families[name] = made
    return families[name]


def samples_of(name: str, dtype: str, large: bool = False) -> Iterator[Sample]:
    """The operator's samples in one type; always the same numbers."""
    family = family_of(name)
    if family is None or dtype not in family.dtypes:
        return iter(())
    make = family.large if large else family.make
    return make(Maker(dtype, name)) if make else iter(())
