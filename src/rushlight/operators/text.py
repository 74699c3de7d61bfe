"""What operators say of themselves: `__signature__` and `__doc__`, made when somebody looks (core/python/operator_type.cpp)."""

from __future__ import annotations

from ast import literal_eval
from inspect import Parameter as SignatureParameter
from inspect import Signature
from keyword import iskeyword
from typing import Any

from . import trace
from .declare import declared
from .registry import OUT, Overload, Parameter, forms_of, operators, overloads_of

OMITTED = ...  # the default of a parameter that some overloads do not have

_INFIX = {
    "add": ("+", 6),
    "sub": ("-", 6),
    "mul": ("*", 7),
    "div": ("/", 7),
    "eq": ("==", 4),
    "ne": ("!=", 4),
    "lt": ("<", 4),
    "le": ("<=", 4),
    "gt": (">", 4),
    "ge": (">=", 4),
    "logical_and": ("&", 5),
    "logical_or": ("|", 5),
    "pow": ("**", 9),
    "pow_number": ("**", 9),
    "pow_of_number": ("**", 9),
    "power": ("**", 9),
}
_POWERS = {"pow_2": "2", "pow_3": "3", "square": "2", "pow_half": "0.5", "pow_minus_1": "-1"}


def public_name(p: Parameter) -> str:
    """The parameter's name for Python: PyTorch's functions call the tensor `input`, and `from` is a keyword."""
    return "input" if p.name == "self" else p.name + "_" if iskeyword(p.name) else p.name


def _default(p: Parameter) -> Any:
    if p.default is None:
        return SignatureParameter.empty
    return literal_eval(p.default)


def signature_of(function: Any) -> Signature:
    """The signature of the overload with the most parameters; what other overloads lack becomes optional."""
    overloads = overloads_of(function)
    longest = max(overloads, key=lambda o: len(o.parameters))
    everywhere = set.intersection(*[{p.name for p in o.parameters} for o in overloads])
    parameters: list[SignatureParameter] = []
    optional = False
    for p in sorted(longest.parameters, key=lambda p: p.keyword_only):
        default = _default(p)
        if default is SignatureParameter.empty and (p.name not in everywhere or (optional and not p.keyword_only)):
            default = None if p.optional else OMITTED
        optional = optional or default is not SignatureParameter.empty
        kind = SignatureParameter.KEYWORD_ONLY if p.keyword_only else SignatureParameter.POSITIONAL_OR_KEYWORD
        parameters.append(SignatureParameter(public_name(p), kind, default=default))
    if takes_out(function, longest):
        parameters.append(SignatureParameter("out", SignatureParameter.KEYWORD_ONLY, default=None))
    return Signature(parameters)


def takes_out(function: Any, overload: Overload) -> bool:
    """Is there an `out=` beside the parameters that the overload names?"""
    own = any(p.name == "out" for p in overload.parameters)
    return not own and not function.inplace and OUT in forms_of(function)


def doc_of(function: Any) -> str:
    """The docstring: how it is called, what it does, and the formulas of a declared operator and its derivatives."""
    name = function.__name__
    base = name[:-1] if function.inplace else name
    overloads = overloads_of(function)
    if len(overloads) > 1:
        head = "\n".join([o.signature + " -> " + o.returns for o in overloads])
    else:
        head = f"{name}{signature_of(function)} -> {overloads[0].returns}"
    if function.pointwise:
        body = _declared_text(base, [public_name(p) for p in overloads[0].parameters])
    else:
        body = function.summary or _of_functional_form(name)
    if function.inplace:
        body = f"In-place form of {base}.\n\n{body}"
    return f"{head}\n\n{body}"


def _of_functional_form(name: str) -> str:
    """The text of an in-place form that has an implementation, but no sentence of its own."""
    functional = operators().get(name[:-1]) if name.endswith("_") else None
    return f"In-place form of {functional.name}.\n\n{functional.callable.summary}" if functional else ""


def _declared_text(name: str, parameters: list[str]) -> str:
    definition = trace.definition(name)
    names = parameters[: definition.arity]
    if declared[name].doc:
        lines = [declared[name].doc]
    elif definition.body is not None:
        lines = [f"{formula(definition.body, names)}, element by element."]
    else:
        lines = [f"{name}({', '.join(names)}), element by element."]
    gradients = [
        f"    {names[i]}: {formula(rule, [*names, 'result', 'grad'])}"
        for i in range(definition.arity)
        if (rule := trace.derive(name, i)) is not None
    ]
    if gradients:
        lines += ["", "Gradients:", "", *gradients]
    return "\n".join(lines)


def formula(traced: trace.Traced, names: list[str]) -> str:
    """A traced expression as Python writes it."""
    constants, calls, output = traced
    slots = [(n, 10) for n in names] + [
        (f"{c:.6g}" if isinstance(c, float) else str(c), 10 if isinstance(c, complex) or c >= 0 else 8)
        for c in constants
    ]
    for name, args in calls:
        slots.append(_call(name, [slots[a] for a in args]))
    return slots[output][0]


def _call(name: str, args: list[tuple[str, int]]) -> tuple[str, int]:
    """(text, how strongly it binds) of one call."""

    def inside(at: int, strength: int) -> str:
        text, own = args[at]
        return text if own >= strength else f"({text})"

    if name == "rsub":
        return _call("sub", args[::-1])
    if name == "neg":
        return f"-{inside(0, 8)}", 8
    if name == "logical_not":
        return f"~{inside(0, 8)}", 8
    if name in _POWERS:
        return f"{inside(0, 10)} ** {_POWERS[name]}", 9
    if name in _INFIX:
        sign, strength = _INFIX[name]
        left = inside(0, strength + (sign == "**" or strength == 4))
        return f"{left} {sign} {inside(1, strength + 1)}", strength
    return f"{name}({', '.join([text for text, _ in args])})", 10
