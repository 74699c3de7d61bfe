"""Samples for operators that nobody wrote any for: the declared ones, and those whose signature says enough."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from rushlight.operators.registry import Overload, operators

from . import pointwise
from .sample import Family, Maker, Sample, families


def family(name: str) -> Family | None:
    """Samples of the operator by its signature; None where it takes more than a tensor, a dimension and switches.
    An in-place form with an implementation of its own is tried on the samples of the functional form."""
    if name.endswith("_") and name[:-1] in families:
        return families[name[:-1]]
    op = operators().get(name)
    if op is None:
        return None
    if op.pointwise:
        return pointwise.family(op)
    makes = [make for o in op.overloads if (make := _of_overload(o)) is not None]
    if not makes:
        return None

    def make(m: Maker) -> Iterator[Sample]:
        for one in makes:
            yield from one(m)

    return Family((name,), make)


def _of_overload(o: Overload) -> Callable[[Maker], Iterator[Sample]] | None:
    required = [p for p in o.parameters if p.default is None]
    if not required or required[0].type != "Tensor" or any(p.name != "dim" or p.type != "int" for p in required[1:]):
        return None
    if o.parameters[0].name not in ("self", "input") or any(p.type == "torch.Generator" for p in o.parameters):
        return None
    dims = [p for p in o.parameters if p.name == "dim" and p.type in ("int", "tuple of ints")]
    switches = [p for p in o.parameters[1:] if p.type == "bool" and p.name in ("keepdim", "descending", "stable")]

    def make(m: Maker) -> Iterator[Sample]:
        for shape in ((), (3,), (2, 3), (2, 0, 3)):
            calls: list[dict[str, Any]] = [] if dims and dims[0].default is None else [{}]
            if dims:
                calls += [{"dim": -1}] + ([{"dim": 0}] if len(shape) > 1 else [])
            for keywords in calls:
                yield Sample((m(*shape),), keywords)
                for p in switches:
                    yield Sample((m(*shape),), {**keywords, p.name: p.default != "True"})

    return make
