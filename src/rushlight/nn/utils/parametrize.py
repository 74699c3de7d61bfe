"""Parameters and buffers computed of others: registered, cached and removed."""

from __future__ import annotations

import copy
import functools
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import rushlight
from rushlight import Tensor

from ..modules.container import ModuleDict, ModuleList
from ..modules.module import Module
from ..parameter import Parameter

__all__ = [
    "ParametrizationList",
    "cached",
    "is_parametrized",
    "register_parametrization",
    "remove_parametrizations",
    "transfer_parametrizations_and_params",
    "type_before_parametrizations",
]

_cache_depth = 0
_cache: dict[tuple[int, str], Tensor] = {}


@contextmanager
def cached() -> Iterator[None]:
    """Within the ``with`` block each parametrized tensor is computed only once."""
    global _cache_depth
    _cache_depth += 1
    try:
        yield
    finally:
        _cache_depth -= 1
        if not _cache_depth:
            _cache.clear()


def _register(module: Module, name: str, tensor: Tensor) -> None:
    if isinstance(tensor, Parameter):
        module.register_parameter(name, tensor)
    else:
        module.register_buffer(name, tensor)


class ParametrizationList(ModuleList):
    """The modules that compute one tensor, one after another, and what they compute it of.

    That is ``original``, or ``original0``, ``original1`` and so on where the first module takes several tensors.
    Called, the list gives the tensor; :meth:`right_inverse` sets the originals so that it becomes a given one.
    """

    original: Tensor
    unsafe: bool

    def __init__(self, modules: Sequence[Module], original: Tensor, unsafe: bool = False) -> None:
        if not modules:
            raise ValueError("ParametrizationList requires one or more modules.")
        super().__init__(modules)
        self.unsafe = unsafe
        inverse = self._initial_inverse(original)
        self.is_tensor = isinstance(inverse, Tensor)
        if isinstance(inverse, Tensor):
            self.ntensors = 1
            if original.dtype != inverse.dtype:
                raise ValueError(
                    "When `right_inverse` outputs one tensor, it may not change the dtype.\n"
                    f"original.dtype: {original.dtype}\n"
                    f"right_inverse(original).dtype: {inverse.dtype}"
                )
            before = original.shape, original.dtype
            with rushlight.no_grad():
                original.data = inverse  # the same object, which optimizers may hold already
            _register(self, "original", original)
        else:
            before = original.shape, original.dtype
            self.ntensors = len(inverse)
            self._register_several(inverse, original)
        if not unsafe:
            self._check_result(self(), *before)

    def _initial_inverse(self, original: Tensor) -> Tensor | Sequence[Tensor]:
        """What the modules' right inverses make of `original`, where they have one."""
        value: Any = original
        with rushlight.no_grad():
            for module in reversed(self):  # type: ignore[call-overload]
                if hasattr(module, "right_inverse"):
                    try:
                        value = module.right_inverse(value)
                    except NotImplementedError:
                        continue
        if not isinstance(value, (Tensor, Sequence)):
            raise ValueError(
                "'right_inverse' must return a Tensor or a Sequence of tensors (list, tuple...). "
                f"Got {type(value).__name__}"
            )
        return value

    def _register_several(self, tensors: Sequence[Tensor], original: Tensor) -> None:
        for i, tensor in enumerate(tensors):
            if not isinstance(tensor, Tensor):
                raise ValueError(
                    "'right_inverse' must return a Tensor or a Sequence of tensors (list, tuple...). "
                    f"Got element {i} of the sequence with type {type(tensor).__name__}."
                )
            if isinstance(original, Parameter):
                tensor = Parameter(tensor, original.requires_grad)
            _register(self, f"original{i}", tensor.requires_grad_(original.requires_grad))

    def _check_result(self, result: Any, shape: Any, dtype: rushlight.dtype) -> None:
        if not isinstance(result, Tensor):
            raise ValueError(f"A parametrization must return a tensor. Got {type(result).__name__}.")
        if result.dtype != dtype:
            raise ValueError(
                "Registering a parametrization may not change the dtype of the tensor, unless `unsafe` flag is "
                f"enabled.\nunparametrized dtype: {dtype}\nparametrized dtype: {result.dtype}"
            )
        if result.shape != shape:
            raise ValueError(
                "Registering a parametrization may not change the shape of the tensor, unless `unsafe` flag is "
                f"enabled.\nunparametrized shape: {shape}\nparametrized shape: {result.shape}"
            )

    def _originals(self) -> list[Tensor]:
        if self.is_tensor:
            return [self.original]
        return [getattr(self, f"original{i}") for i in range(self.ntensors)]

    def right_inverse(self, value: Tensor) -> None:
        """Sets the originals to what the modules' ``right_inverse`` methods, last module first, make of `value`.

        A module without that method is a ``RuntimeError``, a result of another type, number or dtype a ``ValueError``.
        """
        found: Any = value
        with rushlight.no_grad():
            for module in reversed(self):  # type: ignore[call-overload]
                if not hasattr(module, "right_inverse"):
                    raise RuntimeError(f"parametrization {type(module).__name__} does not implement right_inverse.")
                found = module.right_inverse(found)
            if self.is_tensor:
                if not isinstance(found, Tensor):
                    raise ValueError(f"`right_inverse` should return a tensor. Got {type(found).__name__}")
                found = [found]
            elif not isinstance(found, Sequence):
                raise ValueError(f"'right_inverse' must return a sequence of tensors. Got {type(found)}.")
            elif len(found) != self.ntensors:
                raise ValueError(
                    f"'right_inverse' must return a sequence of tensors of length {self.ntensors}. "
                    f"Got a sequence of length {len(found)}."
                )
            for i, (original, tensor) in enumerate(zip(self._originals(), found, strict=True)):
                place = "`original`" if self.is_tensor else f"`original{i}`"
                if not isinstance(tensor, Tensor):
                    raise ValueError(f"`right_inverse` must return tensors. Got element {i} of type {type(tensor)}")
                if tensor.dtype != original.dtype:
                    raise ValueError(
                        f"The tensor returned by `right_inverse` has dtype {tensor.dtype} while {place} has dtype "
                        f"{original.dtype}"
                    )
                original.data = tensor

    def forward(self) -> Tensor:
        x: Any = self[0](*self._originals())
        for module in list(self)[1:]:
            x = module(x)
        result: Tensor = x
        return result


def _parametrized_property(name: str) -> property:
    def get(self: Module) -> Tensor:
        if not _cache_depth:
            return self.parametrizations[name]()  # type: ignore[no-any-return]
        key = (id(self), name)
        if key not in _cache:
            _cache[key] = self.parametrizations[name]()
        return _cache[key]

    def set(self: Module, value: Tensor) -> None:
        self.parametrizations[name].right_inverse(value)

    return property(get, set)


def _refuse_pickling(self: Module) -> Any:
    raise RuntimeError(
        "Serialization of parametrized modules is only supported through state_dict(): save that, and load it into a "
        "module with the same parametrizations."
    )


def _deepcopy(self: Module, memo: dict[int, Any]) -> Module:
    replica = type(self).__new__(type(self))
    memo[id(self)] = replica
    replica.__dict__ = copy.deepcopy(self.__dict__, memo)
    return replica


@functools.lru_cache(maxsize=256)
def _parametrized_class(base: type[Module], names: tuple[str, ...]) -> type[Module]:
    """A subclass of `base` whose attributes `names` are computed. Never changed, so modules and copies may share it."""
    body: dict[str, Any] = {"__getstate__": _refuse_pickling, "__module__": __name__}
    if not hasattr(base, "__deepcopy__"):
        body["__deepcopy__"] = _deepcopy
    body.update((name, _parametrized_property(name)) for name in names)
    return type(f"Parametrized{base.__name__}", (base,), body)


def type_before_parametrizations(module: Module) -> type:
    """The class of `module` without its parametrizations."""
    return type(module).__bases__[0] if is_parametrized(module) else type(module)


def is_parametrized(module: Module, tensor_name: str | None = None) -> bool:
    """Whether `module` has a parametrization, or one of `tensor_name`."""
    parametrizations = getattr(module, "parametrizations", None)
    if not isinstance(parametrizations, ModuleDict):
        return False
    return len(parametrizations) > 0 if tensor_name is None else tensor_name in parametrizations


def register_parametrization(
    module: Module, tensor_name: str, parametrization: Module, *, unsafe: bool = False
) -> Module:
    """Computes the parameter or buffer `tensor_name` of `module` by `parametrization`, after those that it has already.

    What it is computed of is then ``module.parametrizations.<tensor_name>.original``. Where `parametrization` has a
    method ``right_inverse``, the tensor may be assigned, and the first one keeps its value; where that returns several
    tensors, `parametrization` takes several. A change of shape or dtype is a ``ValueError`` unless `unsafe`, and so is
    an unknown name.
    """
    parametrization.train(module.training)
    if is_parametrized(module, tensor_name):
        if not unsafe:
            _check_further(getattr(module, tensor_name), parametrization, tensor_name)
        module.parametrizations[tensor_name].append(parametrization)
        module.parametrizations[tensor_name].unsafe |= unsafe
    elif tensor_name in module._buffers or tensor_name in module._parameters:
        base = type_before_parametrizations(module)
        listed = ParametrizationList([parametrization], getattr(module, tensor_name), unsafe=unsafe)
        delattr(module, tensor_name)
        if not is_parametrized(module):
            module.parametrizations = ModuleDict()
        module.parametrizations[tensor_name] = listed
        module.__class__ = _parametrized_class(base, tuple(module.parametrizations))
    else:
        raise ValueError(
            f"Module '{module}' does not have a parameter, a buffer, or a parametrized element with name "
            f"'{tensor_name}'"
        )
    return module


def _check_further(tensor: Tensor, parametrization: Module, name: str) -> None:
    """A further parametrization, and its right inverse, must keep dtype and shape."""
    result = parametrization(tensor)
    _check_like(
        result,
        tensor,
        f"A parametrization must return a tensor. Got {type(result).__name__}.",
        "Registering a parametrization may not change the {what} of the tensor, unless the `unsafe` flag is enabled.\n"
        f"module.{name}.{{what}}: {{before}}\nparametrization(module.{name}).{{what}}: {{after}}",
    )
    if not hasattr(parametrization, "right_inverse"):
        return
    try:
        inverse = parametrization.right_inverse(result)
    except NotImplementedError:
        return
    _check_like(
        inverse,
        tensor,
        f"parametrization.right_inverse must return a tensor. Got: {type(inverse).__name__}",
        f"The tensor returned by parametrization.right_inverse must have the same {{what}} as module.{name}, "
        f"unless the `unsafe` flag is enabled.\nmodule.{name}.{{what}}: {{before}}\nreturned {{what}}: {{after}}",
    )


def _check_like(result: Any, tensor: Tensor, no_tensor: str, differs: str) -> None:
    """``ValueError`` with one of the messages unless `result` is a tensor of the dtype and shape of `tensor`."""
    if not isinstance(result, Tensor):
        raise ValueError(no_tensor)
    for what in ("dtype", "shape"):
        before, after = getattr(tensor, what), getattr(result, what)
        if before != after:
            raise ValueError(differs.format(what=what, before=before, after=after))


def remove_parametrizations(module: Module, tensor_name: str, leave_parametrized: bool = True) -> Module:
    """Makes `tensor_name` a parameter or buffer again: with its computed value, or else with the original.

    No parametrization, and `leave_parametrized` false where there are several originals, are a ``ValueError``.
    """
    if not is_parametrized(module, tensor_name):
        raise ValueError(f"Module {module} does not have a parametrization on {tensor_name}")
    listed = module.parametrizations[tensor_name]
    if listed.is_tensor:
        restored = listed.original
        if leave_parametrized:
            with rushlight.no_grad():
                restored.data = getattr(module, tensor_name)
    elif leave_parametrized:
        computed = getattr(module, tensor_name)
        restored = Parameter(computed.detach()) if computed.requires_grad else computed
    else:
        raise ValueError(
            "Cannot leave unparametrized (`leave_parametrized=False`) a tensor that is parametrized in terms of a "
            "sequence of tensors."
        )
    base = type_before_parametrizations(module)
    del module.parametrizations[tensor_name]
    left = tuple(module.parametrizations)
    if not left:
        delattr(module, "parametrizations")
    module.__class__ = _parametrized_class(base, left) if left else base
    _register(module, tensor_name, restored)
    return module


def transfer_parametrizations_and_params(
    from_module: Module, to_module: Module, tensor_name: str | None = None
) -> Module:
    """Gives `to_module` the parametrizations of `from_module`, of one tensor or all, with what they compute them of."""
    if not is_parametrized(from_module):
        return to_module
    names = list(from_module.parametrizations) if tensor_name is None else [tensor_name]
    for name in names:
        given = from_module.parametrizations[name]
        if not hasattr(to_module, name):
            setattr(to_module, name, Parameter(getattr(from_module, name).detach()))
        for parametrization in given:
            register_parametrization(to_module, name, parametrization)
        received = to_module.parametrizations[name]
        if given.is_tensor:
            received.original = given.original
        else:
            for i in range(given.ntensors):
                setattr(received, f"original{i}", getattr(given, f"original{i}"))
    return to_module
