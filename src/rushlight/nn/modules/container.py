"""Containers of modules: in sequence, in a list, in a dictionary."""

from __future__ import annotations

import operator
import warnings
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, islice
from typing import Any, Self

import rushlight

from .module import Module, _addindent
from .parameter_container import ParameterDict, ParameterList, _pairs

__all__ = ["Container", "ModuleDict", "ModuleList", "ParameterDict", "ParameterList", "Sequential"]


class _Sequence(Module):
    """What `Sequential` and `ModuleList` share: submodules by their place, which is also their name."""

    def _key(self, idx: Any) -> str:
        """The name of the submodule at place `idx`; IndexError where there is none."""
        size = len(self)
        place = operator.index(idx)
        if not -size <= place < size:
            raise IndexError(f"index {place} is out of range")
        return next(islice(self._modules, place % size, None))

    def _replace(self, modules: Iterable[Any]) -> None:
        """Hold `modules`, named by their places, and nothing else."""
        self._modules = {str(place): module for place, module in enumerate(modules)}

    def __setitem__(self, idx: Any, module: Module) -> None:
        setattr(self, self._key(idx), module)

    def __delitem__(self, idx: Any) -> None:
        for key in list(self._modules)[idx] if isinstance(idx, slice) else [self._key(idx)]:
            delattr(self, key)
        self._replace(self._modules.values())

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._modules.values())

    def append(self, module: Module) -> Self:
        """Add `module` at the end; TypeError if it is none."""
        self.add_module(str(len(self)), module)
        return self

    def pop(self, key: Any) -> Any:
        """Take out the module at place `key` and return it."""
        module = self._modules[self._key(key)]
        del self[key]
        return module


class Sequential(_Sequence):
    """Modules that are called one after the other, each on the result of the one before.

    Takes modules, or one ordered dictionary of them whose keys become their names.
    """

    _modules: dict[str, Any]

    def __init__(self, *args: Any) -> None:
        super().__init__()
        named = len(args) == 1 and isinstance(args[0], OrderedDict)
        for key, module in args[0].items() if named else ((str(place), arg) for place, arg in enumerate(args)):
            self.add_module(key, module)

    def forward(self, input: Any) -> Any:
        for module in self._modules.values():
            input = module(input)
        return input

    def __getitem__(self, idx: Any) -> Any:
        if isinstance(idx, slice):
            return type(self)(OrderedDict(list(self._modules.items())[idx]))
        return self._modules[self._key(idx)]

    def _check_addend(self, other: Any) -> None:
        if not isinstance(other, Sequential):
            raise ValueError(f"add operator supports only objects of Sequential class, but {type(other)} is given.")

    def __add__(self, other: Sequential) -> Sequential:
        self._check_addend(other)
        return Sequential(*self, *other)

    def __iadd__(self, other: Sequential) -> Self:
        self._check_addend(other)
        return self.extend(list(other))

    def _repeats(self, other: Any) -> int:
        if not isinstance(other, int):
            raise TypeError(f"unsupported operand type(s) for *: {type(self)} and {type(other)}")
        if other <= 0:
            raise ValueError(f"Non-positive multiplication factor {other} for {type(self)}")
        return other

    def __mul__(self, other: int) -> Sequential:
        return Sequential(*list(self) * self._repeats(other))

    __rmul__ = __mul__

    def __imul__(self, other: int) -> Self:
        return self.extend(list(self) * (self._repeats(other) - 1))

    def insert(self, index: int, module: Module) -> Self:
        """Put `module` before place `index`; IndexError where there is none."""
        if not isinstance(module, Module):
            raise AssertionError(f"module should be of type: {Module}")
        size = len(self)
        if not -size <= index <= size:
            raise IndexError(f"Index out of range: {index}")
        modules = list(self)
        modules.insert(index, module)
        self._replace(modules)
        return self

    def extend(self, sequential: Iterable[Module]) -> Self:
        """Add all modules of `sequential` at the end."""
        for module in sequential:
            self.append(module)
        return self


class ModuleList(_Sequence):
    """A list of modules whose parameters are registered; it has no `forward`."""

    _modules: dict[str, Any]

    def __init__(self, modules: Iterable[Module] | None = None) -> None:
        super().__init__()
        if modules is not None:
            self.extend(modules)

    def __getitem__(self, idx: Any) -> Any:
        if isinstance(idx, slice):
            return type(self)(list(self)[idx])
        return self._modules[self._key(idx)]

    def __iadd__(self, modules: Iterable[Module]) -> Self:
        return self.extend(modules)

    def __add__(self, other: Iterable[Module]) -> ModuleList:
        return ModuleList(chain(self, other))

    def __repr__(self) -> str:
        if not self._modules:
            return f"{self._get_name()}()"
        # Equal neighbours are shown once, with the range of their places.
        runs: list[list[Any]] = []
        for place, text in enumerate(map(repr, self)):
            if runs and runs[-1][2] == text:
                runs[-1][1] = place
            else:
                runs.append([place, place, text])
        lines = [
            f"({first}): {_addindent(text, 2)}"
            if first == last
            else f"({first}-{last}): {last - first + 1} x {_addindent(text, 2)}"
            for first, last, text in runs
        ]
        return f"{self._get_name()}(\n  " + "\n  ".join(lines) + "\n)"

    def insert(self, index: int, module: Module) -> None:
        """Put `module` before place `index`, as `list.insert` does."""
        if module is not None and not isinstance(module, Module):
            raise TypeError(f"{rushlight.typename(module)} is not a Module subclass")
        modules = list(self)
        modules.insert(index, module)
        self._replace(modules)

    def extend(self, modules: Iterable[Module]) -> Self:
        """Add all of `modules` at the end; TypeError if it is not iterable."""
        if not isinstance(modules, Iterable):
            raise TypeError(f"ModuleList.extend should be called with an iterable, but got {type(modules).__name__}")
        for module in list(modules):
            self.append(module)
        return self


class ModuleDict(Module):
    """A dictionary of modules whose parameters are registered; it keeps the order of insertion, and has no `forward`.

    Keys are names of submodules: strings without a dot that are no attributes of the dictionary.
    """

    _modules: dict[str, Any]

    def __init__(self, modules: Mapping[str, Module] | Iterable[tuple[str, Module]] | None = None) -> None:
        super().__init__()
        if modules is not None:
            self.update(modules)

    def __getitem__(self, key: str) -> Any:
        return self._modules[key]

    def __setitem__(self, key: str, module: Module) -> None:
        self.add_module(key, module)

    def __delitem__(self, key: str) -> None:
        del self._modules[key]

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[str]:
        return iter(self._modules)

    def __contains__(self, key: object) -> bool:
        return key in self._modules

    def clear(self) -> None:
        """Take out all modules."""
        self._modules.clear()

    def pop(self, key: str) -> Any:
        """Take out the module under `key` and return it; KeyError where there is none."""
        return self._modules.pop(key)

    def keys(self) -> Any:
        """The keys."""
        return self._modules.keys()

    def items(self) -> Any:
        """The pairs of key and module."""
        return self._modules.items()

    def values(self) -> Any:
        """The modules."""
        return self._modules.values()

    def update(self, modules: Any) -> None:
        """Add the modules of a mapping or of an iterable of pairs, over those that have the same keys.

        Anything else raises TypeError, an entry that is no pair ValueError.
        """
        if not isinstance(modules, Iterable):
            raise TypeError(
                "ModuleDict.update should be called with an iterable of key/value pairs, but got "
                + type(modules).__name__
            )
        pairs = modules.items() if isinstance(modules, (ModuleDict, Mapping)) else _pairs("ModuleDict", modules)
        for key, module in pairs:
            self[key] = module


class Container(Module):
    """The deprecated base class of modules that hold others."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__()
        warnings.warn(
            "`nn.Container` is deprecated. All of its functionality is now implemented in `nn.Module`. Subclass that "
            "instead.",
            FutureWarning,
            stacklevel=2,
        )
        for key, module in kwargs.items():
            self.add_module(key, module)
