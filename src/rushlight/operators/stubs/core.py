"""The type stub of the core, `_C.pyi`: operators from the registry, the rest from `_C.pyi.in`.

A name of the core that neither gives gets a signature without types, so the stub always has every name.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import FunctionType
from typing import Any, TypeAlias

from ... import _C
from ..registry import Overload, Parameter, overloads_of
from ..text import public_name, takes_out

WIDTH = 120  # as pyproject.toml tells the formatter

_TYPES = {
    "Tensor": "Tensor",
    "tuple of Tensors": "Sequence[Tensor]",
    "Operand": "_Operand",
    "Number": "_Number",
    "int": "_int",
    "tuple of ints": "_Ints",
    "bool": "_bool",
    "float": "_float",
    "torch.dtype": "_dtype",
    "str": "str",
    "torch.device": "_Device",
    "torch.layout": "_layout",
    "torch.memory_format": "_memory_format",
    "torch.Generator": "Generator",
    "object": "Any",
}
_NONE_TOO = {"torch.device", "torch.layout", "torch.memory_format", "torch.Generator"}
_RETURNS = {
    "Tensor": "Tensor",
    "Tensor[]": "tuple[Tensor, ...]",
    "Tensor or Tensor[]": "Any",  # an argument chooses
    "bool": "_bool",
    "int": "_int",
    "float": "_float",
    "Scalar": "_int | _float | _bool",
    "None": "None",
}
_BUILTINS = {
    "int",
    "bool",
    "float",
    "complex",
    "dtype",
    "device",
    "layout",
    "memory_format",
}  # Tensor has methods so named
_PYTHON_NAMES = {"str", "bytes", "object", "type", "tuple", "list", "dict", "None", "Tensor", "Size", "Generator"}
_PYTHON_NAMES |= {"Any", "Callable", "Iterable", "Iterator", "Sequence", "SupportsIndex", "Literal"}
_CORE_NAMES = {"UntypedStorage", "Operator"}


@dataclass(frozen=True)
class Definition:
    """A function of the stub."""

    name: str
    parameters: tuple[str, ...]
    returns: str

    def laid_out(self, indent: str) -> str:
        """As `ruff format` breaks it."""
        head, tail = f"{indent}def {self.name}(", f") -> {self.returns}: ..."
        inside = ", ".join(self.parameters)
        if len(head + inside + tail) <= WIDTH:
            return head + inside + tail
        if len(indent) + 4 + len(inside) <= WIDTH:
            return f"{head}\n{indent}    {inside}\n{indent}{tail}"
        return head + "".join([f"\n{indent}    {p}," for p in self.parameters]) + f"\n{indent}{tail}"


Line: TypeAlias = str | Definition
Lines: TypeAlias = list[Line]


def _laid_out(lines: Lines, indent: str) -> str:
    return "\n".join([line.laid_out(indent) if isinstance(line, Definition) else indent + line for line in lines])


def template() -> str:
    """The part of the stub that is written by hand."""
    return Path(__file__).with_name("_C.pyi.in").read_text(encoding="utf-8")


def core_stub() -> str:
    """The whole stub, laid out as `ruff format` does."""
    source = template()
    written = _written(source)
    _check_written(written)
    tuples: dict[str, str] = {}
    sections = {
        "    # <methods of Tensor>": _members(_C.Tensor, written["Tensor"], tuples, method=True),
        "    # <functions of _nn>": _members(_C._nn, written["_nn"], tuples, method=False),
        "    # <functions of _optim>": _members(_C._optim, written["_optim"], tuples, method=False),
        "# <functions>": _functions(written[""], tuples),
    }
    for marker, lines in sections.items():
        indent = marker[: len(marker) - len(marker.lstrip())]
        source = source.replace(marker, _laid_out(lines, indent))
    return source.replace("class Tensor:\n", "".join(tuples.values()) + "class Tensor:\n", 1)


def _written(source: str) -> dict[str, set[str]]:
    """The names that the template defines: of the module under "", of a class under its name."""
    names: dict[str, set[str]] = {"": set()}

    def collect(body: list[ast.stmt], into: set[str]) -> None:
        for statement in body:
            if isinstance(statement, ast.FunctionDef | ast.ClassDef):
                into.add(statement.name)
            elif isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
                into.add(statement.target.id)
            elif isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
                into.add(statement.targets[0].id)
            if isinstance(statement, ast.ClassDef):
                collect(statement.body, names.setdefault(statement.name, set()))

    collect(ast.parse(_filled(source)).body, names[""])
    return names


def _filled(source: str) -> str:
    """The template with its markers replaced by something that Python parses."""
    return "\n".join([line.replace("# <", "...  # <") if "# <" in line else line for line in source.split("\n")])


def _check_written(written: dict[str, set[str]]) -> None:
    """Refuse a template with names that the core no longer has."""
    for owner, names in written.items():
        place = getattr(_C, owner) if owner else _C
        absent = [name for name in names if not hasattr(place, name) and not _is_alias(owner, name)]
        if absent:
            raise ValueError(
                f"_C.pyi.in names what the core does not have: {owner or '_C'}: {', '.join(sorted(absent))}"
            )


def _is_alias(owner: str, name: str) -> bool:
    """Is the name one of the template's own, for types?"""
    return (
        not owner
        and name[0] == "_"
        and name[1:2] != "_"
        and (": TypeAlias" in _line_of(name) or "TypeVar(" in _line_of(name))
    ) or name in (
        "__buffer__",
        "__getattr__",
    )


def _line_of(name: str) -> str:
    return next((line for line in template().split("\n") if line.startswith(name)), "")


def _members(owner: Any, written: set[str], tuples: dict[str, str], method: bool) -> Lines:
    """The definitions of a class's names that are not written by hand."""
    lines: Lines = []
    for name in sorted(vars(owner)):
        value = vars(owner)[name]
        if name in written or (name[:2] == "__" and not isinstance(value, FunctionType)):
            continue
        if isinstance(value, _C.Operator):
            lines += _operator(name, value, tuples, method)
        elif isinstance(value, FunctionType):
            lines.append(_python_function(name, value))
        elif isinstance(value, property):
            lines += ["@property", Definition(name, ("self",), "Any")]
        elif method:
            lines += [Definition(name, ("self", "*args: Any", "**kwargs: Any"), "Any")]
        else:
            lines += ["@staticmethod", _builtin(name)]
    return lines


def _functions(written: set[str], tuples: dict[str, str]) -> Lines:
    """The definitions of the module's names that are not written by hand."""
    lines: Lines = []
    values: Lines = []
    for name in sorted(vars(_C)):
        value = vars(_C)[name]
        if name in written or name[:2] == "__":
            continue
        if isinstance(value, _C.Operator):
            lines += _operator(name, value, tuples, None)
        elif isinstance(value, FunctionType):
            lines.append(_python_function(name, value))
        elif isinstance(value, type):
            lines += [f"class {name}:", "    def __getattr__(self, name: str) -> Any: ..."]
        elif callable(value):
            lines.append(_builtin(name))
        elif type(value).__name__ in vars(_C):
            values.append(f"{name}: {_own_type(type(value).__name__)}")
        else:
            values.append(f"{name}: Any" if not isinstance(value, list) else f"{name}: list[str]")
    return [*values, "", *lines]


def _own_type(name: str) -> str:
    return "_" + name if name in _BUILTINS else name


def _builtin(name: str) -> Definition:
    """A function of the core that says no types."""
    if name.startswith("_foreach_"):
        returns = "tuple[Tensor, ...]" if name[-1] != "_" else "Sequence[Tensor]"
        return Definition(name, ("self: Sequence[Tensor]", "*args: Any", "**kwargs: Any"), returns)
    return Definition(name, ("*args: Any", "**kwargs: Any"), "Any")


# ---- operators


def _operator(name: str, function: Any, tuples: dict[str, str], method: bool | None) -> Lines:
    """The definitions of an operator under one of its names; `method`: None for a function of the module itself."""
    found: dict[Definition, None] = {}
    for overload in overloads_of(function):
        returns = _returned(overload, tuples)
        if method and name[-1] == "_" and name[:2] != "__" and returns == "Tensor":
            returns = "Self"
        for parameters in _calls(function, overload, bool(method)):
            found[Definition(name, tuple(parameters), returns)] = None
    lines: Lines = []
    for definition in found:
        if len(found) > 1:
            lines.append("@overload")
        if method is False:
            lines.append("@staticmethod")
        lines.append(definition)
    return lines


def _returned(overload: Overload, tuples: dict[str, str]) -> str:
    if overload.returns in _RETURNS:
        return _RETURNS[overload.returns]
    if not overload.fields:
        return "tuple[" + overload.returns.strip("()") + "]"
    name = f"_{overload.signature.partition('(')[0].strip('_')}_result"
    text = f"class {name}(NamedTuple):\n" + "".join([f"    {field}: Tensor\n" for field in overload.fields]) + "\n"
    while tuples.setdefault(name, text) != text:
        name += "_"
        text = f"class {name}(NamedTuple):\n" + text.partition("\n")[2]
    return name


def _calls(function: Any, overload: Overload, method: bool) -> Iterator[list[str]]:
    """The parameter lists of an overload: as declared, and with the sizes of a last parameter spread out."""
    positional = [p for p in overload.parameters if not p.keyword_only]
    keywords = [_parameter(p) for p in overload.parameters if p.keyword_only]
    if takes_out(function, overload):
        several = overload.returns[0] == "("
        keywords.append(f"out: {'Sequence[Tensor]' if several else 'Tensor'} | None = None")
    first = ["self"] if method else [_parameter(p) for p in positional[:1]]
    plain = first + [_parameter(p) for p in positional[1:]]
    yield plain + (["*"] if keywords else []) + keywords
    if _spreads(positional):
        yield plain[:-1] + [f"*{public_name(positional[-1])}: _int"] + keywords


def _spreads(positional: list[Parameter]) -> bool:
    """May the ints of the last parameter be given one by one? (parse() in core/python/operator.cpp)"""
    if not positional or positional[-1].type != "tuple of ints" or positional[-1].optional:
        return False
    return len(positional) == 1 or (len(positional) == 2 and positional[0].type == "Tensor")


def _parameter(p: Parameter) -> str:
    text = f"{public_name(p)}: {_TYPES[p.type]}"
    if p.optional or p.type in _NONE_TOO:
        text += " | None"
    if p.default is None:
        return text
    return f"{text} = {'...' if p.default[0] == '[' else p.default.replace(chr(39), chr(34))}"


# ---- functions written in Python


def _python_function(name: str, function: FunctionType) -> Definition:
    """A function of Python that the package puts among the core's names; its own annotations are taken."""
    signature = inspect.signature(function)
    parameters: list[str] = []
    star = False
    for p in signature.parameters.values():
        if p.kind is p.KEYWORD_ONLY and not star:
            parameters.append("*")
        star = star or p.kind in (p.KEYWORD_ONLY, p.VAR_POSITIONAL)
        if not parameters and p.name in ("self", "input"):
            parameters.append("self")
            continue
        prefix = "*" if p.kind is p.VAR_POSITIONAL else "**" if p.kind is p.VAR_KEYWORD else ""
        default = "" if p.default is p.empty else " = " + _literal(p.default)
        parameters.append(f"{prefix}{p.name}: {_annotation(p.annotation)}{default}")
        if p.kind is p.POSITIONAL_ONLY:
            parameters.append("/")
    return Definition(name, tuple(parameters), _annotation(signature.return_annotation))


def _literal(value: Any) -> str:
    if isinstance(value, str):
        return f'"{value}"'
    return repr(value) if value is None or type(value) in (bool, int, float) else "..."


def _annotation(text: Any) -> str:
    """An annotation in the names of the stub; Any where it uses a name that the stub does not have."""
    if not isinstance(text, str):
        return "Any"

    class Renamed(ast.NodeTransformer):
        known = True

        def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
            if isinstance(node.value, ast.Name) and node.value.id in ("_C", "rushlight", "torch"):
                return self.visit_Name(ast.Name(node.attr))
            self.known = False
            return node

        def visit_Name(self, node: ast.Name) -> ast.expr:
            if node.id in _BUILTINS:
                return ast.Name("_" + node.id)
            self.known = self.known and node.id in _PYTHON_NAMES | _CORE_NAMES
            return node

    renamed = Renamed()
    tree = renamed.visit(ast.parse(text, mode="eval"))
    return ast.unparse(tree).replace("'", '"') if renamed.known else "Any"
