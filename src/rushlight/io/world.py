"""What a checkpoint's pickle may name, and what becomes of it: the whole list of what loading a file can do.

A class or function that is not here, and that the caller has not allowed with
``rushlight.serialization.add_safe_globals``, ends the load with an error that names it.
"""

from __future__ import annotations

import pickle
from collections import Counter, OrderedDict
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import rushlight

from . import rebuild
from .torch_names import ITEM_SIZES, QUANTIZED_STORAGES, STORAGE_DTYPES, THEIRS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

# Modules that reach the operating system stay closed, whatever is allowed.
BLOCKED_MODULES = frozenset({"sys", "os", "posix", "nt"})

TEXT_ENCODINGS = frozenset({"latin1", "latin-1", "utf-8", "utf8", "ascii"})


class StorageType(NamedTuple):
    """The class of a storage as a checkpoint names it; ``dtype`` is None for bytes without one."""

    dtype: str | None


STORAGE_TYPES = {name: StorageType(dtype) for name, dtype in STORAGE_DTYPES.items()}
UNTYPED = StorageType(None)


def make_set(items: Any = ()) -> set[Any]:
    return set(_sequence("set", items))


def make_frozenset(items: Any = ()) -> frozenset[Any]:
    return frozenset(_sequence("frozenset", items))


def make_bytes(data: Any = b"") -> bytes:
    """Bytes of bytes: protocol 2 writes empty ones as a call without arguments."""
    if not isinstance(data, (bytes, bytearray)):  # a number would ask for that many bytes
        raise TypeError(f"bytes of a {type(data).__name__}")
    return bytes(data)


def make_bytearray(data: Any = b"", encoding: Any = "latin1") -> bytearray:
    if type(data) is str:
        return bytearray(encode(data, encoding))
    if not isinstance(data, (bytes, bytearray)):
        raise TypeError(f"bytearray of a {type(data).__name__}")
    return bytearray(data)


def make_complex(real: Any, imag: Any = 0.0) -> complex:
    if type(real) not in (int, float) or type(imag) not in (int, float):
        raise TypeError("the parts of a complex number must be numbers")
    return complex(real, imag)


def encode(text: Any, encoding: Any = "utf-8") -> bytes:
    """Bytes, as pickles of protocol 2 hold them: a string and an encoding."""
    if type(text) is not str or encoding not in TEXT_ENCODINGS:
        raise TypeError(f"{type(text).__name__} encoded as {encoding!r}; only text in {sorted(TEXT_ENCODINGS)} is")
    return text.encode(encoding)


def make_ordered_dict(items: Any = ()) -> OrderedDict[Any, Any]:
    if isinstance(items, dict):
        return OrderedDict(items)
    pairs = [tuple(_sequence("OrderedDict", pair)) for pair in _sequence("OrderedDict", items)]
    return OrderedDict(pairs)


def make_counter(counts: Any = None) -> Counter[Any]:
    if counts is not None and not isinstance(counts, dict):
        raise TypeError(f"Counter of a {type(counts).__name__}")
    return Counter(counts)


def make_size(sizes: Any) -> Any:
    return rushlight.Size(rebuild.check_sizes("size", sizes))


def make_layout(name: Any) -> Any:
    if name != "torch.strided":
        kind = "sparse tensors" if str(name).startswith("torch.sparse_") else "its tensors"
        raise NotImplementedError(f"the file holds the layout {name}; {kind} are not in rushlight, tensors are strided")
    return rushlight.strided


def _sequence(what: str, items: Any) -> Any:
    """``items``, if they are a container that was read from the file itself."""
    if not isinstance(items, (list, tuple, set, frozenset)):
        raise TypeError(f"{what} of a {type(items).__name__}")
    return items


class CheckpointWorld:
    """The names, calls and states that a checkpoint of tensors may use.

    ``allowed`` maps the names of the caller's own classes and functions to them; ``load_storage`` gives the storage
    for a storage type, key, location and number of elements, as the file at hand keeps it.
    """

    def __init__(
        self,
        where: str,
        load_storage: Callable[[StorageType, str, str, int, Any], Any],
        allowed: Mapping[str, Any],
        *,
        advice: str = "",
    ) -> None:
        self.where = where
        self._load_storage = load_storage
        self._allowed = allowed
        self._allowed_objects = {id(value) for value in allowed.values()}
        self._advice = advice
        self._dtype_of: dict[int, str | None] = {}
        self._known: dict[str, Any] = {}
        self._calls: dict[Any, Callable[..., Any]] = {}
        self._add_data()
        self._add_tensors()

    def fail(self, problem: str) -> NoReturn:
        raise pickle.UnpicklingError(f"{self.where}: Weights only load failed. {problem}{self._advice}")

    def _raise_named(self, error: RuntimeError) -> NoReturn:
        """Raise ``error`` again with the name of the file, unless it has it."""
        if type(error) not in (RuntimeError, NotImplementedError) or self.where in str(error):
            raise error
        raise type(error)(f"{self.where}: {error}") from error

    # The names.

    def _add(self, name: str, value: Any, call: Callable[..., Any] | None = None) -> None:
        self._known[name] = value
        if call is not None:
            self._calls[value] = call

    def _add_data(self) -> None:
        add = self._add
        add("builtins.set", set, make_set)
        add("builtins.frozenset", frozenset, make_frozenset)
        add("builtins.bytes", bytes, make_bytes)
        add("builtins.bytearray", bytearray, make_bytearray)
        add("builtins.complex", complex, make_complex)
        add("_codecs.encode", encode, encode)
        add("collections.OrderedDict", OrderedDict, make_ordered_dict)
        add("collections.Counter", Counter, make_counter)
        for name, storage_type in STORAGE_TYPES.items():
            add(f"torch.{name}", storage_type)
            add(f"torch.cuda.{name}", storage_type)
        add("torch.storage.UntypedStorage", UNTYPED)

    def _add_tensors(self) -> None:
        add = self._add
        add("torch.Size", rushlight.Size, make_size)
        add("torch.device", rushlight.device, rushlight.device)
        add("torch.Tensor", rushlight.Tensor)
        add("torch.nn.parameter.Parameter", rushlight.nn.Parameter)
        add("torch.serialization._get_layout", make_layout, make_layout)
        builders: dict[str, Callable[..., Any]] = {
            "torch._utils._rebuild_tensor": self._rebuild_tensor,
            "torch._utils._rebuild_tensor_v2": self._rebuild_tensor_v2,
            "torch._utils._rebuild_tensor_v3": self._rebuild_tensor_v3,
            "torch._utils._rebuild_parameter": rebuild.rebuild_parameter,
            "torch._utils._rebuild_parameter_with_state": rebuild.rebuild_parameter_with_state,
            "torch._utils._rebuild_meta_tensor_no_storage": rebuild.rebuild_meta_tensor,
            "torch._utils._rebuild_device_tensor_from_cpu_tensor": rebuild.rebuild_from_cpu_tensor,
            "torch._tensor._rebuild_from_type_v2": self._rebuild_from_type,
        }
        for name, call in builders.items():
            add(name, call, call)
        for name, kind in rebuild.UNSUPPORTED_KINDS.items():
            add(f"torch._utils.{name}", refuse := rebuild.unsupported(kind), refuse)

    def find_global(self, module: str, name: str) -> Any:
        full_name = f"{module}.{name}"
        if module.partition(".")[0] in BLOCKED_MODULES:
            self.fail(f"Trying to load unsupported GLOBAL {full_name} whose module {module} is blocked.")
        if full_name in self._allowed:
            return self._allowed[full_name]
        if full_name in self._known:
            return self._known[full_name]
        if module == THEIRS:
            if name in ITEM_SIZES:
                return self._find_dtype(name)
            if name in QUANTIZED_STORAGES:
                raise NotImplementedError(f"{self.where}: quantized tensors ({full_name}) are not in rushlight")
            if name.endswith("Tensor") and isinstance(found := getattr(rushlight, name, None), type):
                return found
        return self._find_unknown(full_name)

    def _find_dtype(self, name: str) -> Any:
        dtype = getattr(rushlight, name, None)
        if dtype is None:
            raise NotImplementedError(f"{self.where}: the dtype torch.{name} is not in rushlight")
        return dtype

    def _find_unknown(self, full_name: str) -> Any:
        self.fail(
            f"WeightsUnpickler error: Unsupported global: GLOBAL {full_name} was not an allowed global by default. "
            f"Please use `torch.serialization.add_safe_globals([{full_name}])` or the "
            f"`torch.serialization.safe_globals([{full_name}])` context manager to allowlist this global if you trust "
            "this class/function."
        )

    # Calls and states.

    def call(self, function: Any, args: tuple[Any, ...]) -> Any:
        make = self._callable(function)
        if make is function and id(function) in self._allowed_objects:
            return make(*args)  # the caller's own: its errors are the caller's
        try:
            return make(*args)
        except (TypeError, ValueError, OverflowError) as error:
            what = getattr(function, "__name__", str(function))
            raise pickle.UnpicklingError(
                f"{self.where}: Weights only load failed. {what} cannot be made from what the file gives: {error}."
            ) from error
        except RuntimeError as error:
            self._raise_named(error)

    def _callable(self, function: Any) -> Callable[..., Any]:
        if id(function) in self._allowed_objects:
            allowed: Callable[..., Any] = function
            return allowed
        try:
            make = self._calls.get(function)
        except TypeError:  # not hashable, hence nothing that find_global returned
            make = None
        if make is None:
            self.fail(f"Trying to call reduce for unrecognized function {_describe(function)}.")
        return make

    def new(self, cls: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if id(cls) in self._allowed_objects and isinstance(cls, type):
            return cls.__new__(cls, *args, **kwargs)
        if cls in (OrderedDict, Counter) and not args and not kwargs:
            return cls()
        return self.fail(f"Trying to create new object for unrecognized class {_describe(cls)}.")

    def set_state(self, instance: Any, state: Any) -> None:
        cls = type(instance)
        if id(cls) in self._allowed_objects:
            if hasattr(instance, "__setstate__"):
                instance.__setstate__(state)
            else:
                self._set_attributes(instance, state)
        elif cls in (OrderedDict, Counter):
            self._set_attributes(instance, state)
        else:
            self.fail(
                "Can only build Tensor, Parameter, OrderedDict or types allowlisted via `add_safe_globals`, "
                f"but got {cls.__module__}.{cls.__qualname__}."
            )

    def _set_attributes(self, instance: Any, state: Any) -> None:
        """Set the attributes of ``state``: a dictionary, or one and another for slots."""
        attributes, slots = state if type(state) is tuple and len(state) == 2 else (state, None)
        try:
            if attributes:
                instance.__dict__.update(rebuild.check_attributes(attributes))
            for name, value in rebuild.check_attributes(slots or {}).items():
                setattr(instance, name, value)
        except (TypeError, AttributeError) as error:
            self.fail(f"A {type(instance).__name__} cannot take its state: {error}.")

    def extend(self, instance: Any, items: list[Any]) -> None:
        if id(type(instance)) not in self._allowed_objects or not hasattr(instance, "extend"):
            self.fail(f"Can only append to lists, but got {_describe(type(instance))}.")
        instance.extend(items)

    # Storages and the tensors over them.

    def persistent_load(self, identifier: Any) -> Any:
        if type(identifier) is tuple and identifier[:1] == ("module",):
            self.fail(
                "Only persistent_load of storage is allowed, but got 'module': the file holds a whole module in the "
                "legacy format, with its source code."
            )
        if type(identifier) is not tuple or len(identifier) not in (5, 6) or identifier[0] != "storage":
            self.fail(f"A reference to a storage was expected, but got {_describe(identifier)}.")
        storage_type, key, location, numel = identifier[1:5]
        if type(storage_type) is not StorageType or type(key) is not str or type(location) is not str:
            self.fail(f"A reference to a storage has parts of the wrong types: {_describe(identifier)}.")
        if type(numel) is not int or numel < 0:
            self.fail(f"Storage {key!r} has {numel!r} elements.")
        try:
            storage = self._load_storage(storage_type, key, location, numel, identifier[5:])
        except RuntimeError as error:
            self._raise_named(error)
        if self._dtype_of.setdefault(id(storage), storage_type.dtype) != storage_type.dtype:
            self.fail(f"Storage {key!r} is used with two dtypes.")
        return storage

    def _storage_dtype(self, storage: Any) -> Any:
        name = self._dtype_of.get(id(storage), "")
        if not name:
            self.fail("A tensor is built over something that is not a storage with a dtype.")
        return self._find_dtype(name)

    def _rebuild_tensor(self, storage: Any, offset: Any, size: Any, stride: Any) -> Any:
        return rebuild.view_of(storage, self._storage_dtype(storage), offset, size, stride)

    def _rebuild_tensor_v2(
        self,
        storage: Any,
        offset: Any,
        size: Any,
        stride: Any,
        requires_grad: Any,
        backward_hooks: Any,
        metadata: Any = None,
    ) -> Any:
        tensor = self._rebuild_tensor(storage, offset, size, stride)
        return rebuild.finish(tensor, requires_grad, metadata)

    def _rebuild_tensor_v3(
        self,
        storage: Any,
        offset: Any,
        size: Any,
        stride: Any,
        requires_grad: Any,
        backward_hooks: Any,
        dtype: Any,
        metadata: Any = None,
    ) -> Any:
        if id(storage) not in self._dtype_of or not isinstance(dtype, rushlight.dtype):
            self.fail("A tensor is built over something that is not a storage, or without a dtype.")
        tensor = rebuild.view_of(storage, dtype, offset, size, stride)
        return rebuild.finish(tensor, requires_grad, metadata)

    def _rebuild_from_type(self, function: Any, cls: Any, args: Any, state: Any) -> Any:
        if cls not in (rushlight.Tensor, rushlight.nn.Parameter) and id(cls) not in self._allowed_objects:
            self.fail(f"Trying to build a tensor of the unrecognized class {_describe(cls)}.")
        tensor = self._callable(function)(*args)
        return rebuild.with_type_and_state(tensor, cls, state)


def _describe(value: Any) -> str:
    text = f"{value.__module__}.{value.__qualname__}" if isinstance(value, type) else repr(value)
    return text if len(text) <= 200 else text[:200] + "..."
