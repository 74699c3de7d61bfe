"""The pickler of checkpoints: tensors become references to storages, and classes go by PyTorch's names."""

from __future__ import annotations

import pickle
import sys
from collections import OrderedDict
from typing import IO, TYPE_CHECKING, Any, NamedTuple

import rushlight

from ..utils.hooks import warn_if_has_hooks
from . import location
from .torch_names import OURS, STORAGE_OF_DTYPE, THEIRS, to_torch

if TYPE_CHECKING:
    from collections.abc import Callable

    Reduced = str | tuple[Any, ...]


class Name:
    """A function or class of PyTorch's that a file mentions and that nobody here calls."""

    __slots__ = ("module", "name")

    def __init__(self, module: str, name: str) -> None:
        self.module = module
        self.name = name

    def __call__(self) -> None:
        raise TypeError(f"{self.module}.{self.name} only stands for a name in a file")


REBUILD_TENSOR = Name("torch._utils", "_rebuild_tensor_v2")
REBUILD_TENSOR_OF_DTYPE = Name("torch._utils", "_rebuild_tensor_v3")
REBUILD_META_TENSOR = Name("torch._utils", "_rebuild_meta_tensor_no_storage")
REBUILD_PARAMETER = Name("torch._utils", "_rebuild_parameter")
REBUILD_PARAMETER_WITH_STATE = Name("torch._utils", "_rebuild_parameter_with_state")
REBUILD_FROM_TYPE = Name("torch._tensor", "_rebuild_from_type_v2")
GET_LAYOUT = Name("torch.serialization", "_get_layout")
DEVICE = Name("torch", "device")
SIZE = Name("torch", "Size")
UNTYPED_STORAGE = Name("torch.storage", "UntypedStorage")
STORAGES = {dtype: Name("torch", storage) for dtype, storage in STORAGE_OF_DTYPE.items()}


class StorageReference(NamedTuple):
    """Where a storage would stand in the pickle; `CheckpointPickler.persistent_id` writes the reference to it."""

    storage: Any
    dtype: str | None


class _Reducers(dict[type, "Callable[[Any, Any], Any] | None"]):
    """How a pickler reduces an object of a type, found once per type: None leaves it to the standard pickler."""

    def __init__(self, base: dict[type, Callable[[Any, Any], Any]]) -> None:
        self._base = base

    def __missing__(self, cls: type) -> Callable[[Any, Any], Any] | None:
        found = next((reduce for base, reduce in self._base.items() if issubclass(cls, base)), None)
        standard = (rushlight.Tensor.__reduce_ex__, rushlight.nn.Parameter.__reduce_ex__)
        if issubclass(cls, rushlight.Tensor) and cls.__reduce_ex__ not in standard:
            found = None  # a subclass that reduces itself knows better
        self[cls] = found
        return found


class CheckpointPickler(pickle._Pickler):
    """Pickles an object for a checkpoint and collects the storages that its tensors view.

    ``storage_id(key, nbytes, ...)`` differs between formats, so the subclass for a format makes the tuple. The
    standard library's pickler in Python is used because it lets a class be written under another module's name.
    """

    # of the standard library's class, which typeshed does not describe
    proto: int
    write: Callable[[bytes], object]
    save: Callable[[Any], None]
    memoize: Callable[[Any], None]

    def __init__(self, file: IO[bytes], protocol: int) -> None:
        super().__init__(file, protocol=protocol)
        self.storages: dict[str, StorageReference] = {}
        self._keys: dict[int, str] = {}
        self._dtypes: dict[int, str] = {}
        # Functions of the pickler, not methods: those would keep it, and every tensor in its memo, alive.
        self._reducers = _Reducers(
            {
                Name: lambda pickler, name: name.name,
                rushlight.nn.Parameter: CheckpointPickler._reduce_parameter,
                rushlight.Tensor: CheckpointPickler._reduce_tensor_object,
                rushlight.dtype: lambda pickler, dtype: _short_name(dtype),
                rushlight.device: lambda pickler, device: _reduce_device(device),
                rushlight.layout: lambda pickler, layout: (GET_LAYOUT, (f"torch.{_short_name(layout)}",)),
                rushlight.Size: lambda pickler, size: (SIZE, (tuple(size),)),
            }
        )

    def storage_id(self, kind: Name, key: str, tag: str, numel: int) -> tuple[Any, ...]:
        """What stands for a storage in the pickle."""
        raise NotImplementedError

    def reducer_override(self, obj: Any) -> Any:
        reduce = self._reducers[type(obj)]
        return NotImplemented if reduce is None else reduce(self, obj)

    def persistent_id(self, obj: Any) -> Any:
        if type(obj) is StorageReference:
            return self._reference(obj.storage, obj.dtype)
        if isinstance(obj, rushlight.UntypedStorage):
            return self._reference(obj, None)
        return None

    def save_global(self, obj: Any, name: str | None = None) -> None:
        if isinstance(obj, Name):
            self._write_global(obj, obj.module, obj.name)
        elif isinstance(obj, rushlight.dtype):
            self._write_global(obj, THEIRS, _short_name(obj))
        else:
            module = getattr(obj, "__module__", None)
            if isinstance(module, str) and module.partition(".")[0] == OURS:
                self._save_our_global(obj, module, name or obj.__qualname__)
            else:
                super().save_global(obj, name)  # type: ignore[misc]  # typeshed leaves the method out

    def _save_our_global(self, obj: Any, module: str, name: str) -> None:
        found = sys.modules.get(module)
        for part in name.split("."):
            found = getattr(found, part, None)
        if found is not obj:
            raise pickle.PicklingError(f"Can't pickle {obj!r}: it's not found as {module}.{name}")
        self._write_global(obj, to_torch(module), name)

    def _write_global(self, obj: Any, module: str, name: str) -> None:
        if self.proto >= 4:
            self.save(module)
            self.save(name)
            self.write(pickle.STACK_GLOBAL)
        else:
            self.write(pickle.GLOBAL + f"{module}\n{name}\n".encode())
        self.memoize(obj)

    # Storages.

    def _reference(self, storage: Any, dtype: str | None) -> tuple[Any, ...]:
        identity, nbytes = storage._identity(), storage.nbytes()
        if nbytes and self._dtypes.setdefault(identity, dtype or "uint8") != (dtype or "uint8"):
            raise RuntimeError("Cannot save multiple tensors or storages that view the same data as different types")
        key = self._keys.get(identity)
        if key is None:
            key = str(len(self.storages))
            self.storages[key] = StorageReference(storage, dtype)
            self._keys[identity] = key
        kind = UNTYPED_STORAGE if dtype is None else STORAGES[dtype]
        item_size = 1 if dtype is None else getattr(rushlight, dtype).itemsize
        return self.storage_id(kind, key, location.location_tag(storage), nbytes // item_size)

    # Tensors.

    def _reduce_tensor_object(self, tensor: rushlight.Tensor) -> Reduced:
        """Any tensor but a parameter: those of a subclass or with attributes of their own say so."""
        function, args = self._reduce_tensor(tensor)
        cls, state = type(tensor), _attributes(tensor)
        if cls is rushlight.Tensor and not state:
            return function, args
        cls_written = Name(THEIRS, "Tensor") if cls is rushlight.Tensor else cls
        return REBUILD_FROM_TYPE, (function, cls_written, args, state)

    def _reduce_parameter(self, parameter: Any) -> Reduced:
        function, args = self._reduce_tensor(parameter.detach())
        data, state = _Reduced(function, args), _attributes(parameter)
        if type(parameter) is not rushlight.nn.Parameter:
            whole: tuple[Any, ...] = (data, parameter.requires_grad, OrderedDict())
            return REBUILD_FROM_TYPE, (REBUILD_PARAMETER, type(parameter), whole, state)
        if state:
            return REBUILD_PARAMETER_WITH_STATE, (data, parameter.requires_grad, OrderedDict(), state)
        return REBUILD_PARAMETER, (data, parameter.requires_grad, OrderedDict())

    def _reduce_tensor(self, tensor: rushlight.Tensor) -> tuple[Name, tuple[Any, ...]]:
        dtype = _short_name(tensor.dtype)
        if tensor.device.type == "meta":
            return REBUILD_META_TENSOR, (tensor.dtype, tuple(tensor.shape), tensor.stride(), tensor.requires_grad)
        if tensor._hooks():
            warn_if_has_hooks(tensor)
        typed = dtype in STORAGES
        args: tuple[Any, ...] = (
            StorageReference(tensor.untyped_storage(), dtype if typed else None),
            tensor.storage_offset(),
            tuple(tensor.shape),
            tensor.stride(),
            tensor.requires_grad,
            OrderedDict(),  # the place of backward hooks, which are never saved
        )
        if not typed:
            args += (tensor.dtype,)
        return (REBUILD_TENSOR if typed else REBUILD_TENSOR_OF_DTYPE), args


class _Reduced:
    """The tensor inside of a parameter, already reduced."""

    __slots__ = ("args", "function")

    def __init__(self, function: Name, args: tuple[Any, ...]) -> None:
        self.function = function
        self.args = args

    def __reduce__(self) -> tuple[Any, ...]:
        return self.function, self.args


def _attributes(tensor: Any) -> dict[str, Any] | None:
    return dict(tensor.__dict__) or None


def _reduce_device(device: Any) -> Reduced:
    return DEVICE, ((device.type,) if device.index is None else (device.type, device.index))


def _short_name(value: Any) -> str:
    """The name of a dtype or layout without its module."""
    return str(value).rpartition(".")[2]
