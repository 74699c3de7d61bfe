"""Parameters, buffers and submodules as attributes of a module, and the ways to find them again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import rushlight
from rushlight import Tensor
from rushlight.utils.hooks import RemovableHandle

from ..parameter import Buffer, Parameter

_Hook = Callable[..., Any]


class _HookDict(dict[int, _Hook]):
    """A dictionary that a `RemovableHandle` can refer to weakly."""


_global_buffer_registration_hooks = _HookDict()
_global_module_registration_hooks = _HookDict()
_global_parameter_registration_hooks = _HookDict()


def _add_hook(hooks: dict[int, _Hook], hook: _Hook) -> RemovableHandle:
    handle = RemovableHandle(hooks)
    hooks[handle.id] = hook
    return handle


def register_module_buffer_registration_hook(hook: _Hook) -> RemovableHandle:
    """Call `hook(module, name, buffer)` whenever any module registers a buffer; a result replaces the buffer."""
    return _add_hook(_global_buffer_registration_hooks, hook)


def register_module_module_registration_hook(hook: _Hook) -> RemovableHandle:
    """Call `hook(module, name, submodule)` whenever any module registers a submodule; a result replaces it."""
    return _add_hook(_global_module_registration_hooks, hook)


def register_module_parameter_registration_hook(hook: _Hook) -> RemovableHandle:
    """Call `hook(module, name, param)` whenever any module registers a parameter; a result replaces it."""
    return _add_hook(_global_parameter_registration_hooks, hook)


def _filtered(hooks: dict[int, _Hook], module: Registration, name: str, value: Any) -> Any:
    """`value` as the registration `hooks` leave it."""
    for hook in hooks.values():
        replaced = hook(module, name, value)
        if replaced is not None:
            value = replaced
    return value


class Registration(rushlight._C._ModuleBase):
    """The part of `Module` that keeps parameters, buffers and submodules.

    They live in the dictionaries `_parameters`, `_buffers` and `_modules` and never in the instance's own
    dictionary; attribute access, which is the base type's, falls back to them. None stands for a name that is
    registered without a value.
    """

    _parameters: dict[str, Parameter | None]
    _buffers: dict[str, Tensor | None]
    _modules: dict[str, Any]
    _non_persistent_buffers_set: set[str]

    def _get_name(self) -> str:
        return type(self).__name__

    # Registration ---------------------------------------------------------------------------------------------------

    def _check_new_name(self, kind: str, name: Any, known: dict[str, Any], shown: str = "") -> None:
        """Raise unless `name` may stand for a member of the kind whose names are `known`."""
        if not isinstance(name, str):
            raise TypeError(f"{kind} name should be a string. Got {rushlight.typename(name)}")
        if hasattr(self, name) and name not in known:
            raise KeyError(f"attribute '{name}' already exists")
        if "." in name:
            raise KeyError(f'{kind} name can\'t contain "."{shown}')
        if name == "":
            raise KeyError(f'{kind} name can\'t be empty string ""')

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Add the buffer `tensor` (or None) under `name`: state that is not trained.

        Buffers move and convert with the module; only those with `persistent` are part of its `state_dict`. A name
        that is not a plain, free attribute name raises TypeError or KeyError, a value of another type TypeError.
        """
        if "_buffers" not in self.__dict__:
            raise AttributeError("cannot assign buffer before Module.__init__() call")
        self._check_new_name("buffer", name, self._buffers)
        if tensor is not None and not isinstance(tensor, Tensor):
            raise TypeError(
                f"cannot assign '{rushlight.typename(tensor)}' object to buffer '{name}' "
                "(torch Tensor or None required)"
            )
        self._buffers[name] = _filtered(_global_buffer_registration_hooks, self, name, tensor)
        if persistent:
            self._non_persistent_buffers_set.discard(name)
        else:
            self._non_persistent_buffers_set.add(name)

    def register_parameter(self, name: str, param: Parameter | None) -> None:
        """Add the parameter `param` (or None) under `name`.

        A name that is not a plain, free attribute name raises TypeError or KeyError, a value of another type
        TypeError, a tensor with a history ValueError.
        """
        if "_parameters" not in self.__dict__:
            raise AttributeError("cannot assign parameter before Module.__init__() call")
        self._check_new_name("parameter", name, self._parameters)
        if param is not None and not isinstance(param, Parameter):
            raise TypeError(
                f"cannot assign '{rushlight.typename(param)}' object to parameter '{name}' "
                "(torch.nn.Parameter or None required)"
            )
        if param is not None and param.grad_fn is not None:
            raise ValueError(
                f"Cannot assign non-leaf Tensor to parameter '{name}'. Model parameters must be created explicitly. "
                f"To express '{name}' as a function of another Tensor, compute the value in the forward() method."
            )
        self._parameters[name] = _filtered(_global_parameter_registration_hooks, self, name, param)

    def add_module(self, name: str, module: Any) -> None:
        """Add the submodule `module` (or None) under `name`.

        A name that is not a plain, free attribute name raises TypeError or KeyError, a value of another type
        TypeError.
        """
        if module is not None and not isinstance(module, Registration):
            raise TypeError(f"{rushlight.typename(module)} is not a Module subclass")
        self._check_new_name("module", name, self._modules, f", got: {name}")
        self._modules[name] = _filtered(_global_module_registration_hooks, self, name, module)

    def register_module(self, name: str, module: Any) -> None:
        """Add the submodule `module` (or None) under `name`; another name of `add_module`."""
        self.add_module(name, module)

    # Attributes -----------------------------------------------------------------------------------------------------

    def __setattr__(self, name: str, value: Any) -> None:
        # A name keeps its kind: once registered it takes None or another value of that kind, and nothing else.
        fields = self.__dict__
        is_tensor = isinstance(value, Tensor)
        if is_tensor and isinstance(value, Parameter):
            if "_parameters" not in fields:
                raise AttributeError("cannot assign parameters before Module.__init__() call")
            self._forget(name, fields, self._buffers, self._modules)
            self.register_parameter(name, value)
        elif name in fields.get("_parameters", ()):
            self._check_kind(name, value, value is None, "parameter", "torch.nn.Parameter")
            self.register_parameter(name, None)
        elif isinstance(value, Registration) or name in fields.get("_modules", ()):
            if "_modules" not in fields:
                raise AttributeError("cannot assign module before Module.__init__() call")
            self._check_kind(name, value, isinstance(value, Registration), "child module", "torch.nn.Module")
            self._forget(name, fields, self._parameters, self._buffers)
            self._modules[name] = _filtered(_global_module_registration_hooks, self, name, value)
        elif name in fields.get("_buffers", ()) or (is_tensor and isinstance(value, Buffer)):
            self._check_kind(name, value, is_tensor, "buffer", "torch.nn.Buffer, torch.Tensor")
            persistent = value.persistent if isinstance(value, Buffer) else name not in self._non_persistent_buffers_set
            # A subclass's register_buffer need not know the third argument.
            self.register_buffer(name, value, *(() if persistent else (False,)))
        else:
            super().__setattr__(name, value)

    def _check_kind(self, name: str, value: Any, fits: bool, kind: str, expected: str) -> None:
        if not fits and value is not None:
            raise TypeError(
                f"cannot assign '{rushlight.typename(value)}' as {kind} '{name}' ({expected} or None expected)"
            )

    def _forget(self, name: str, *places: dict[str, Any]) -> None:
        """Drop what `name` stood for in `places`, so that it can stand for something of another kind."""
        for place in places:
            place.pop(name, None)
        self._non_persistent_buffers_set.discard(name)

    def __delattr__(self, name: str) -> None:
        if name in self._parameters:
            del self._parameters[name]
        elif name in self._buffers:
            del self._buffers[name]
            self._non_persistent_buffers_set.discard(name)
        elif name in self._modules:
            del self._modules[name]
        else:
            super().__delattr__(name)

    def __dir__(self) -> list[str]:
        names = {*dir(type(self)), *self.__dict__, *self._parameters, *self._modules, *self._buffers}
        return sorted(name for name in names if not name[0].isdigit())

    # Finding members ------------------------------------------------------------------------------------------------

    def _named_members(
        self,
        get_members_fn: Callable[[Any], Iterable[tuple[str, Any]]],
        prefix: str = "",
        recurse: bool = True,
        remove_duplicate: bool = True,
    ) -> Iterator[tuple[str, Any]]:
        """The members that `get_members_fn` finds in this module and, with `recurse`, below it, with full names."""
        seen: set[Any] = set()
        owners = self.named_modules(prefix=prefix, remove_duplicate=remove_duplicate) if recurse else [(prefix, self)]
        for path, module in owners:
            for name, member in get_members_fn(module):
                if member is None or member in seen:
                    continue
                if remove_duplicate:
                    seen.add(member)
                yield (f"{path}.{name}" if path else name), member

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Parameter]]:
        """Names and parameters of this module and, with `recurse`, of all below it; each parameter once."""
        return self._named_members(lambda module: module._parameters.items(), prefix, recurse, remove_duplicate)

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        """The parameters of this module and, with `recurse`, of all below it; each once."""
        for _, parameter in self.named_parameters(recurse=recurse):
            yield parameter

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Tensor]]:
        """Names and buffers of this module and, with `recurse`, of all below it; each buffer once."""
        return self._named_members(lambda module: module._buffers.items(), prefix, recurse, remove_duplicate)

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        """The buffers of this module and, with `recurse`, of all below it; each once."""
        for _, buffer in self.named_buffers(recurse=recurse):
            yield buffer

    def named_children(self) -> Iterator[tuple[str, Any]]:
        """Names and submodules directly below this module, each submodule once."""
        seen: set[Any] = set()
        for name, module in self._modules.items():
            if module is not None and module not in seen:
                seen.add(module)
                yield name, module

    def children(self) -> Iterator[Any]:
        """The submodules directly below this module, each once."""
        for _, module in self.named_children():
            yield module

    def named_modules(
        self, memo: set[Any] | None = None, prefix: str = "", remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Any]]:
        """Full names and modules of the tree below and including this one, parents first.

        A module that occurs several times is given once unless `remove_duplicate` is False; `memo` holds those that
        were given already.
        """
        memo = set() if memo is None else memo
        if self in memo:
            return
        if remove_duplicate:
            memo.add(self)
        yield prefix, self
        for name, module in self._modules.items():
            if module is not None:
                yield from module.named_modules(memo, f"{prefix}.{name}" if prefix else name, remove_duplicate)

    def modules(self, remove_duplicate: bool = True) -> Iterator[Any]:
        """The modules of the tree below and including this one, parents first."""
        for _, module in self.named_modules(remove_duplicate=remove_duplicate):
            yield module

    # Members by path ------------------------------------------------------------------------------------------------

    def get_submodule(self, target: str) -> Any:
        """The module at the dotted path `target` (this one for ""); AttributeError where there is none."""
        module: Any = self
        for name in target.split(".") if target else ():
            if not hasattr(module, name):
                raise AttributeError(f"{module._get_name()} has no attribute `{name}`")
            module = getattr(module, name)
            if not isinstance(module, Registration):
                raise AttributeError(f"`{name}` is not an nn.Module")
        return module

    def set_submodule(self, target: str, module: Any, strict: bool = False) -> None:
        """Put `module` at the dotted path `target`, whose parent must exist; with `strict`, `target` itself too.

        An empty path or a value that is no module raises ValueError, a path that leads nowhere AttributeError.
        """
        if target == "":
            raise ValueError("Cannot set the submodule without a target name!")
        if not isinstance(module, Registration):
            raise ValueError(f"`module` is not an nn.Module, found {type(module)}")
        path, _, name = target.rpartition(".")
        parent = self.get_submodule(path)
        if strict and not hasattr(parent, name):
            raise AttributeError(f"{parent._get_name()} has no attribute `{name}`")
        if hasattr(parent, name) and not isinstance(getattr(parent, name), Registration):
            raise AttributeError(f"`{name}` is not an nn.Module")
        setattr(parent, name, module)

    def _get_member(self, target: str) -> tuple[Any, str, Any]:
        """The owner, name and value at the dotted path `target`."""
        path, _, name = target.rpartition(".")
        owner = self.get_submodule(path)
        if not hasattr(owner, name):
            raise AttributeError(f"{owner._get_name()} has no attribute `{name}`")
        return owner, name, getattr(owner, name)

    def get_parameter(self, target: str) -> Parameter:
        """The parameter at the dotted path `target`; AttributeError where there is none."""
        _, name, value = self._get_member(target)
        if not isinstance(value, Parameter):
            raise AttributeError(f"`{name}` is not an nn.Parameter")
        return value

    def get_buffer(self, target: str) -> Tensor:
        """The buffer at the dotted path `target`; AttributeError where there is none."""
        owner, name, value = self._get_member(target)
        if name not in owner._buffers:
            raise AttributeError(f"`{name}` is not a buffer")
        result: Tensor = value
        return result
