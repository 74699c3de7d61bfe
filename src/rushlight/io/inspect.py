"""What a checkpoint holds, found out without building any of it."""

from __future__ import annotations

from collections import OrderedDict
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple

from . import rebuild
from .torch_names import ITEM_SIZES, QUANTIZED_STORAGES, THEIRS
from .world import CheckpointWorld, StorageType

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping


class StorageInfo(NamedTuple):
    """A storage by its key in the file; ``nbytes`` is what the file says of it."""

    key: str
    nbytes: int


class TensorInfo(NamedTuple):
    """A tensor as a file describes it."""

    dtype: str
    shape: tuple[int, ...]
    storage: StorageInfo | None

    @property
    def numel(self) -> int:
        return prod(self.shape)

    @property
    def nbytes(self) -> int:
        return self.numel * ITEM_SIZES[self.dtype]


class DtypeName(str):
    """A dtype by name, in this package or not."""

    __slots__ = ()


class Opaque:
    """An object of a class that is not built here; ``parts`` are what it would have been built from."""

    __slots__ = ("name", "parts")

    def __init__(self, name: str) -> None:
        self.name = name
        self.parts: list[Any] = []


class InspectingWorld(CheckpointWorld):
    """Descriptions in place of tensors, and opaque objects in place of instances of unknown classes.

    ``storage_size`` gives the bytes of a storage by its type, key and number of elements, and may check them.
    """

    def __init__(
        self,
        where: str,
        storage_size: Callable[[StorageType, str, int], int],
        allowed: Mapping[str, Any] | None = None,
    ) -> None:
        self.unknown: list[str] = []
        self._storages: dict[str, StorageInfo] = {}
        self._storage_size = storage_size
        self._permitted = frozenset(allowed or ())
        super().__init__(where, self._describe_storage, {})

    def _describe_storage(self, storage_type: StorageType, key: str, tag: str, numel: int, rest: Any) -> StorageInfo:
        if key not in self._storages:
            self._storages[key] = StorageInfo(key, self._storage_size(storage_type, key, numel))
        return self._storages[key]

    def _add_tensors(self) -> None:
        add = self._add
        add("torch.Size", make_shape, make_shape)
        add("torch.device", make_device, make_device)
        add("torch.serialization._get_layout", make_layout_name, make_layout_name)
        builders: dict[str, Callable[..., Any]] = {
            "torch._utils._rebuild_tensor": self._rebuild_tensor,
            "torch._utils._rebuild_tensor_v2": self._rebuild_tensor_v2,
            "torch._utils._rebuild_tensor_v3": self._rebuild_tensor_v3,
            "torch._utils._rebuild_parameter": _first,
            "torch._utils._rebuild_parameter_with_state": _first,
            "torch._utils._rebuild_device_tensor_from_cpu_tensor": _first,
            "torch._utils._rebuild_meta_tensor_no_storage": _describe_meta,
            "torch._utils._rebuild_qtensor": self._rebuild_tensor_v2,
            "torch._tensor._rebuild_from_type_v2": self._rebuild_from_type,
        }
        for name, call in builders.items():
            add(name, call, call)
        for name in QUANTIZED_STORAGES:
            add(f"torch.{name}", StorageType(name.removesuffix("Storage").lower()))

    def _find_dtype(self, name: str) -> Any:
        return DtypeName(name)

    def find_global(self, module: str, name: str) -> Any:
        full_name = f"{module}.{name}"
        if full_name in self._known or (module == THEIRS and name in ITEM_SIZES):
            return super().find_global(module, name)
        if full_name not in self._permitted and not _always_known(full_name):
            self.unknown.append(full_name)
        return Opaque(full_name)

    def call(self, function: Any, args: tuple[Any, ...]) -> Any:
        if isinstance(function, Opaque):
            return self.new(function, args, {})
        return super().call(function, args)

    def new(self, cls: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if not isinstance(cls, Opaque):
            return super().new(cls, args, kwargs)
        made = Opaque(cls.name)
        made.parts += [*args, *kwargs.values()]
        return made

    def set_state(self, instance: Any, state: Any) -> None:
        if isinstance(instance, Opaque):
            instance.parts.append(state)
        elif not isinstance(instance, OrderedDict):  # what is kept beside a state dict's items is not shown
            super().set_state(instance, state)

    def extend(self, instance: Any, items: list[Any]) -> None:
        if not isinstance(instance, Opaque):
            super().extend(instance, items)
        instance.parts += items

    def _rebuild_tensor(self, storage: Any, offset: Any, size: Any, stride: Any) -> Any:
        return self._describe(storage, self._storage_dtype(storage), offset, size, stride)

    def _rebuild_tensor_v2(self, storage: Any, offset: Any, size: Any, stride: Any, *rest: Any) -> Any:
        return self._rebuild_tensor(storage, offset, size, stride)

    def _rebuild_tensor_v3(self, storage: Any, offset: Any, size: Any, stride: Any, *rest: Any) -> Any:
        if type(storage) is not StorageInfo or len(rest) < 3 or type(rest[2]) is not DtypeName:
            self.fail("A tensor is built over something that is not a storage, or without a dtype.")
        return self._describe(storage, rest[2], offset, size, stride)

    def _describe(self, storage: StorageInfo, dtype: str, offset: Any, size: Any, stride: Any) -> TensorInfo:
        rebuild.check_view(storage.nbytes, ITEM_SIZES[dtype], offset, size, stride)
        return TensorInfo(str(dtype), tuple(size), storage)

    def _rebuild_from_type(self, function: Any, cls: Any, args: Any, state: Any) -> Any:
        return self.call(function, args)


class UnknownGlobals(InspectingWorld):
    """Collects the names that `load` would refuse, in ``unknown``."""

    def __init__(self, where: str, allowed: Mapping[str, Any]) -> None:
        super().__init__(
            where, lambda storage_type, key, numel: numel * ITEM_SIZES[storage_type.dtype or "uint8"], allowed
        )


def make_shape(size: Any) -> tuple[int, ...]:
    return rebuild.check_sizes("size", size)


def make_device(*parts: Any) -> str:
    return ":".join(map(str, parts))


def make_layout_name(name: Any) -> str:
    return str(name)


def _first(data: Any, *rest: Any) -> Any:
    return data


def _describe_meta(dtype: Any, size: Any, *rest: Any) -> TensorInfo:
    if type(dtype) is not DtypeName:
        raise TypeError(f"a dtype is a {type(dtype).__name__}")
    return TensorInfo(str(dtype), rebuild.check_sizes("size", size), None)


def _always_known(full_name: str) -> bool:
    """Whether `load` knows the name although nothing here needs it."""
    module, _, name = full_name.rpartition(".")
    if full_name == "torch.nn.parameter.Parameter":
        return True
    if module == "torch._utils":
        return name in rebuild.UNSUPPORTED_KINDS
    return module == THEIRS and name.endswith("Tensor")


def tensors_in(value: Any) -> Iterator[tuple[str, TensorInfo]]:
    """The tensors inside of ``value`` with the path of keys that leads to each, in their order."""
    pending: list[tuple[str, Any]] = [("", value)]
    seen: set[int] = set()
    while pending:
        path, item = pending.pop()
        if isinstance(item, TensorInfo):
            yield path, item
            continue
        children = _children(item)
        if children and id(item) not in seen:
            seen.add(id(item))
            prefix = f"{path}." if path else ""
            pending += [(f"{prefix}{key}", child) for key, child in reversed(children)]


def _children(item: Any) -> list[tuple[Any, Any]]:
    if isinstance(item, dict):
        return list(item.items())
    if isinstance(item, (list, tuple)):
        return list(enumerate(item))
    if isinstance(item, Opaque):
        merged = [_children(part) if isinstance(part, dict) else [("", part)] for part in item.parts]
        return [pair for pairs in merged for pair in pairs]
    return []
