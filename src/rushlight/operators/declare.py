"""Declaring a pointwise operator: its loop or expression, its derivative, and the forms it has in the package."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from .. import _C
from . import trace

# what a `rule` means: whether whole numbers become the default floating type, and the kinds that are refused
RULES = {
    "promote": (False, ""),
    "float": (True, ""),
    "not_bool": (False, "b"),
    "whole": (False, "bfc"),
    "integral": (False, "fc"),
    "floating": (False, "bi"),
    "real": (False, "bic"),
}

Rule: TypeAlias = Callable[..., Any]
Rules: TypeAlias = Rule | Sequence[Rule | None]

INPUT = (("input",),)
PAIR = (("input",), ("other",))

declared: dict[str, Declaration] = {}


class Declaration:
    """One operator: its name in the core, where the package offers it, and what its documentation says."""

    def __init__(self, name: str, function: Any, forms: frozenset[str], doc: str) -> None:
        self.name = name
        self.function = function
        self.forms = forms
        self.doc = doc


def _rules(rules: Rules | None) -> tuple[Rule | None, ...] | None:
    if rules is None:
        return None
    return (rules,) if callable(rules) else tuple(rules)


def _node_name(name: str) -> str:
    return "".join([part[:1].upper() + part[1:] for part in name.split("_")]) + "Backward0"


def pointwise(
    name: str,
    body: Rule | trace.Traced | None = None,
    *,
    loop: str | Any | None = None,
    derivative: Rules | None = None,
    vjp: Rules | None = None,
    complex_vjp: Rules | None = None,
    params: Sequence[tuple[Any, ...]] = INPUT,
    rule: str = "promote",
    node: str | None = None,
    promoted: int = 0xFFFFFFFF,
    operands: str = "",
    refuses: str | dict[str, str] = "",
    forms: str = "function method inplace",
    doc: str = "",
) -> Any:
    """Declare the operator ``name`` and return the callable object.

    ``loop`` names a loop of the core, or is a NumPy ufunc whose loops are taken; ``body`` is an expression of operators
    declared before, or one that was traced; beside it, a loop computes the same in one pass. ``derivative`` (per
    input, ``f(*inputs, result)``) is multiplied by the gradient; ``vjp`` (per input, ``f(gradient, *inputs, result)``) is the gradient itself, where the product would be
    wrong at infinities. A body without either is derived by the chain rule. For complex numbers the factor is
    conjugated (see :mod:`.trace`); ``complex_vjp`` is the rule, as it stands, of what is not holomorphic.

    ``rule`` says what types it takes: promote, float (integers become the default floating type), floating, real (no
    complex ones either), integral, whole (no bool either), not_bool; ``refuses`` names further kinds (b, i, f, c) that
    it does not take, or says a sentence of each ("any bool": of a bool operand among others). ``operands`` has a letter
    per operand: t (a tensor), n (a number), e (either); unless given, t for the first, n where there is a default.
    ``forms``: function, method, inplace, nn (in torch._C._nn), special (in torch.special); none: the package does not
    offer it.
    """
    if loop is not None and not isinstance(loop, str):
        _C._add_ufunc(name, loop)
        loop = name
    traced = trace.trace(body, len(params)) if callable(body) else body
    definition = trace.Definition(name, len(params), traced, _rules(derivative), _rules(vjp), _rules(complex_vjp))
    differentiable = derivative is not None or vjp is not None or _has_derivative(definition)
    derive = (lambda i, complex: trace.derive(name, i, complex)) if differentiable else None
    floating, kinds = RULES[rule]
    sentences = refuses if isinstance(refuses, dict) else dict.fromkeys(refuses, "")
    refusals = (*[sentences.get(kind, "" if kind in kinds else None) for kind in "bifc"], sentences.get("any bool"))
    takes = operands or "t" + "".join(["n" if len(p) > 1 else "e" for p in params[1:]])
    function = _C._pointwise(
        name, tuple(params), takes, floating, refusals, node or _node_name(name), loop, traced, derive, promoted
    )
    declared[name] = Declaration(name, function, frozenset(forms.split()), doc)
    if doc:
        function.__doc__ = doc
    return function


def _has_derivative(definition: trace.Definition) -> bool:
    """A composite is differentiable where something in it is."""
    if definition.body is None:
        return False
    return any(trace.is_differentiable(name) for name, _ in definition.body[1])


def install() -> None:
    """Put every declared operator where its forms say: the core's module, Tensor, torch._C._nn."""
    tensor, nn = _C.Tensor, _C._nn
    for name, d in declared.items():
        places: list[Any] = []
        if "function" in d.forms:
            places.append(_C)
        if "nn" in d.forms:
            places.append(nn)
        for place in places:
            setattr(place, name, d.function)
        if "method" in d.forms:
            setattr(tensor, name, d.function)
        if "inplace" in d.forms:
            changing = _C._pointwise_inplace(name)
            for place in [*places, tensor] if "method" in d.forms or not places else places:
                setattr(place, name + "_", changing)
