"""The page of operators, docs/operators.md: one table per family, derived from the registry."""

from __future__ import annotations

import re
from pathlib import Path

from ..registry import FUNCTION, INPLACE, METHOD, NN, OUT, Operator, operators
from .nodes import node_names

_HEAD = """# Operators

Derived from the registry by `python -m rushlight.operators.stubs`; do not change this page by hand.

rushlight has {count} operators, {differentiable} of them differentiable to any order. *Calls* are the declared signatures, as messages
show them; `Operand` is a tensor or a number. *Forms*: **f**unction of the package, **m**ethod of Tensor, **i**n-place
form `name_`, **o**ut= argument, **n**n: a function of `torch._C._nn`. *Node* is the name of the `grad_fn` that the
overloads record (– where there is no derivative, ✓ where the arguments decide).
"""
_POINTWISE = """
## pointwise

Declared in `src/rushlight/operators/pointwise.py` and the `pointwise_*.py` beside it: the node's
derivative is the formula in the operator's docstring.
"""
_TABLE = """
| operator | calls | forms | node | what it gives |
| --- | --- | --- | --- | --- |
"""
_FORMS = {FUNCTION: "f", METHOD: "m", INPLACE: "i", OUT: "o", NN: "n"}


def operators_page(checkout: Path) -> str:
    """The whole page; families are the files of src/core/operators."""
    table = operators()
    shown = {name: op for name, op in table.items() if not (name[-1] == "_" and name[:-1] in table)}
    sources = {f.stem: f.read_text(encoding="utf-8") for f in sorted((checkout / "src/core/operators").glob("*.cpp"))}
    homes = {name: file for file, text in sources.items() for name in re.findall(r'\{\s*"(\w+)\(', text)}
    families: dict[str, list[Operator]] = {}
    for name, op in shown.items():
        families.setdefault("" if op.pointwise else _home(name, homes, sources), []).append(op)
    text = _HEAD.format(count=len(shown), differentiable=sum([op.differentiable for op in shown.values()]))
    text += _POINTWISE + _rows(families.pop("", []))
    for family in sorted(families):
        text += f"\n## {family}\n" + _rows(families[family])
    return text


def _home(name: str, homes: dict[str, str], sources: dict[str, str]) -> str:
    """The file that defines an operator; of those whose definition a macro writes, the one that says the name most."""
    if name in homes:
        return homes[name]
    word = re.compile(rf"\b({name}|{name[:-2]})(?![a-z])" if re.search(r"[123]d$", name) else rf"\b{name}\b")
    return max(sources, key=lambda file: len(word.findall(sources[file])), default="native")


def _rows(family: list[Operator]) -> str:
    return _TABLE + "".join([f"| {' | '.join(_cells(op))} |\n" for op in family])


def _cells(op: Operator) -> list[str]:
    name = f"`{op.name}`"
    if op.aliases:
        name += " (" + ", ".join([f"`{a}`" for a in op.aliases if not (a[-1] == "_" and a[:-1] in op.aliases)]) + ")"
    calls = "<br>".join([f"`{signature}`" for signature in op.signatures])
    forms = "".join([letter for form, letter in _FORMS.items() if form in op.forms])
    nodes = ", ".join(node_names(op)) or ("✓" if op.differentiable else "–")
    return [cell.replace("|", "\\|") for cell in (name, calls, forms, nodes, _sentence(op))]


def _sentence(op: Operator) -> str:
    """The first sentence of the docstring, which stands behind the head."""
    paragraphs = [p for p in op.doc.split("\n\n")[1:] if not p.startswith("In-place form of")]
    return " ".join(paragraphs[0].split()).partition(". ")[0].rstrip(".") + "." if paragraphs and paragraphs[0] else ""
