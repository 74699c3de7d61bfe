"""The type stubs of packages that only gather names: what `__init__.py` imports, and what it loads on first use."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

from ..._creation import _LegacyType
from ..._missing import LAZY

_HEAD = """# The names of the package, for type checkers: derived from __init__.py by `python -m rushlight.operators.stubs`.

"""


class PackageStub:
    """The stub of one package."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.package: Any = import_module(name)
        self.submodules: set[str] = set()
        self.absent: list[str] = []  # declared, and not written yet
        self.sources: dict[str, str] = {}  # the module that each name comes from last
        self.paths: dict[str, str] = {}  # names that are attributes of another module's attributes
        self._read_imports()
        self._read_lazy()

    def _read_imports(self) -> None:
        for name in getattr(self.package, "_private", ()):  # the core's names that * leaves out
            if name in vars(self.package):
                self.sources[name] = "._C"
        tree = ast.parse(Path(self.package.__file__).read_text(encoding="utf-8"))
        for statement in tree.body:
            if not isinstance(statement, ast.ImportFrom) or statement.level != 1:
                continue
            names = self._imported(statement)
            if statement.module is None:
                self.submodules.update(names)
            else:
                self.sources.update(dict.fromkeys(names, f".{statement.module}"))

    def _imported(self, statement: ast.ImportFrom) -> Iterable[str]:
        """The public names of one import."""
        if statement.names[0].name == "*":
            return [n for n in _public(f"{self.name}.{statement.module}") if hasattr(self.package, n)]
        shown = getattr(self.package, "__all__", None)
        if shown is None:
            return [a.name for a in statement.names if a.asname == a.name]
        return [a.name for a in statement.names if not a.asname and a.name in shown]

    def _read_lazy(self) -> None:
        submodules, names = LAZY[self.name]
        for name in submodules:
            if find_spec(f"{self.name}.{name}"):
                self.submodules.add(name)
            else:
                self.absent.append(name)
        for name, origin in names.items():
            module, _, path = origin.partition(":")
            if name in self.sources:
                continue
            if "." in path or (path and path != name):
                self.paths[name] = path
            elif hasattr(source := import_module(module), name):
                within = hasattr(source, "__path__") and find_spec(f"{module}.{name}")
                self.sources[name] = f"{module}.{name}" if within else module  # a file may have its function's name
            else:
                self.absent.append(name)

    def text(self) -> str:
        """The stub, laid out as `ruff format` does."""
        names = {name: module for name, module in self.sources.items() if name not in self.submodules}
        legacy = sorted([name for name in names if type(getattr(self.package, name)) is _LegacyType])
        modules: dict[str, list[str]] = {}
        for name in sorted(names.keys() - set(legacy)):
            modules.setdefault(names[name], []).append(name)
        text = _HEAD
        if self.absent:
            text += "from typing import Any\n\n"
        if self.paths:
            text += "from rushlight import _C as _C\n\n"
        text += _import(".", sorted(self.submodules))
        text += "".join([_import(module, modules[module]) for module in sorted(modules)])
        text += "".join([f"\n{name} = {self.paths[name]}" for name in sorted(self.paths)]) + "\n" * bool(self.paths)
        if legacy:  # made in a loop; a tensor is an instance of the one of its type
            text += "\n" + "".join([f"class {name}(Tensor): ...\n" for name in legacy])
        if self.absent:
            text += "\n# not there yet\n" + "".join([f"{name}: Any\n" for name in sorted(self.absent)])
        return text


def _public(module: str) -> list[str]:
    """What * imports from a module, but for the modules and type names that it itself imports."""
    source = import_module(module)
    names = getattr(source, "__all__", None)
    if names is not None:
        return list(names)
    return [
        name
        for name, value in vars(source).items()
        if name[0] != "_" and name not in ("Any", "annotations") and not isinstance(value, ModuleType)
    ]


def _import(module: str, names: list[str]) -> str:
    if not names:
        return ""
    if len(names) == 1:
        return f"from {module} import {names[0]} as {names[0]}\n"
    return f"from {module} import (\n" + "".join([f"    {name} as {name},\n" for name in names]) + ")\n"
