"""One table of all operators, read off the core's registry and the declarations: nothing here is kept by hand.

An operator says its own overloads, forms and sentence (`_C.Operator`). Where each is offered (torch, Tensor, torch._C._nn) is seen by looking there, so aliases are found
too. Signatures, docstrings, the type stub, the coverage page and the tests are derived from this table.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

from .. import _C

FUNCTION, METHOD, INPLACE, OUT, NN = "function", "method", "inplace", "out", "nn"
_BITS = {FUNCTION: 1, METHOD: 2, INPLACE: 4, OUT: 8, NN: 16}


@dataclass(frozen=True)
class Parameter:
    """One parameter: its type as in messages, whether None is accepted, and the default as Python writes it."""

    name: str
    type: str
    optional: bool
    keyword_only: bool
    default: str | None


@dataclass(frozen=True)
class Overload:
    """One way to call an operator."""

    signature: str
    returns: str  # Tensor, Tensor[], (Tensor, Tensor), bool, int, float, Scalar or None
    fields: tuple[str, ...]
    parameters: tuple[Parameter, ...]


@dataclass(frozen=True)
class Operator:
    """An operator, its forms, and the callables that offer them."""

    name: str
    forms: frozenset[str]
    callable: Any  # the function, or the method where there is none
    changing: Any | None  # the in-place form
    pointwise: bool
    names: tuple[tuple[str, str], ...]  # (place, name) of all forms, the aliases included

    @cached_property
    def overloads(self) -> tuple[Overload, ...]:
        """How the operator is called."""
        return overloads_of(self.callable)

    @property
    def signatures(self) -> tuple[str, ...]:
        """The declared signatures."""
        return tuple(self.callable.signatures)

    @property
    def doc(self) -> str:
        """The docstring."""
        return str(self.callable.__doc__)

    @property
    def differentiable(self) -> bool:
        """Has it a derivative with respect to some argument?"""
        return bool(self.callable.differentiable)

    @property
    def aliases(self) -> tuple[str, ...]:
        """Other names of the same callable."""
        return tuple(sorted({n for _, n in self.names} - {self.name, self.name + "_"}))


def overloads_of(function: Any) -> tuple[Overload, ...]:
    """The overloads of a callable of the core."""
    return tuple(
        [
            Overload(signature, returns, tuple(fields), tuple([Parameter(*p) for p in parameters]))
            for signature, returns, fields, parameters in function.overloads
        ]
    )


def _offered() -> Iterator[tuple[str, str, Any]]:
    """(place, name, callable) of every operator that the package offers."""
    for place, owner in ((FUNCTION, _C), (NN, _C._nn), (METHOD, _C.Tensor)):
        for name, value in vars(owner).items():
            if type(value) is _C.Operator:
                yield place, name, value


def forms_of(function: Any) -> set[str]:
    """The forms that the operator itself declares."""
    if function.pointwise:
        return {OUT}
    return {form for form, bit in _BITS.items() if function.forms & bit}


@cache
def operators() -> dict[str, Operator]:
    """All operators by name. The in-place form `name_` belongs to `name` where the core derives it from there."""
    places: dict[str, list[tuple[str, str]]] = {}
    plain: dict[str, Any] = {}
    changing: dict[str, Any] = {}
    forms: dict[str, set[str]] = {}
    for place, name, value in _offered():
        own = value.__name__
        base = own[:-1] if value.inplace else own
        places.setdefault(base, []).append((place, name))
        forms.setdefault(base, set()).add(INPLACE if value.inplace else place)
        (changing if value.inplace else plain)[base] = value
    for base, value in plain.items():
        forms[base] |= forms_of(value)
        written = plain.get(base + "_")  # an in-place form with an implementation of its own
        if written is not None and base not in changing:
            changing[base] = written
            forms[base].add(INPLACE)
    either = changing | plain
    return {
        name: Operator(
            name,
            frozenset(forms[name]),
            either[name],
            changing.get(name),
            either[name].pointwise,
            tuple(sorted(places[name])),
        )
        for name in sorted(places)
    }
