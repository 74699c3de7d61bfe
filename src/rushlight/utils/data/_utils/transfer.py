"""Batches on their way from a worker to the loader: a pickle, and the numbers beside it.

Pickle's protocol 5 hands over the memory of arrays and, through the reducer below, of tensors, instead of copying it
into the pickle. Small memory then travels in the message, large memory in a shared block.
"""

from __future__ import annotations

import pickle
from io import BytesIO
from typing import TYPE_CHECKING, Any

import rushlight

from ....io import memory
from ....multiprocessing.reductions import check_can_be_sent
from .shared_block import Block, BlockReader, BlockWriter

if TYPE_CHECKING:
    from collections.abc import Callable

SMALL = 1 << 16  # bytes that are cheaper to send than to share
_SPARSE = 2  # a tensor over a storage more than this many times its size is sent without the rest of the storage


class _StorageBytes:
    """A storage in a pickle: its memory, once however many tensors view it."""

    __slots__ = ("storage",)

    def __init__(self, storage: Any) -> None:
        self.storage = storage

    def __reduce__(self) -> tuple[Callable[[Any], Any], tuple[Any]]:
        return _rebuild_storage, (pickle.PickleBuffer(memory.as_bytes(self.storage)),)


def _rebuild_storage(buffer: Any) -> Any:
    return memory.from_buffer(buffer, 0, memoryview(buffer).nbytes)


def _rebuild_tensor(storage: Any, dtype: Any, offset: int, size: Any, stride: Any, requires_grad: bool) -> Any:
    tensor = memory.tensor_over(storage, dtype, offset, size, stride)
    return tensor.requires_grad_() if requires_grad else tensor


def _rebuild_parameter(tensor: Any, requires_grad: bool) -> Any:
    return rushlight.nn.Parameter(tensor, requires_grad)


def _pickler_class() -> type[pickle.Pickler]:
    from multiprocessing.reduction import ForkingPickler

    class BatchPickler(ForkingPickler):
        """Pickles a batch, whose tensors and arrays give their memory to ``take_buffer``."""

        def __init__(self, file: Any, take_buffer: Callable[[Any], Any]) -> None:
            super().__init__(file, 5, True, take_buffer)
            self._storages: dict[int, _StorageBytes] = {}

        def reducer_override(self, obj: Any) -> Any:
            kind = type(obj)
            if kind is rushlight.Tensor:
                return self._reduce_tensor(obj)
            if kind is rushlight.nn.Parameter and not obj.__dict__:
                return _rebuild_parameter, (obj.detach(), obj.requires_grad)
            return NotImplemented

        def _reduce_tensor(self, tensor: Any) -> Any:
            check_can_be_sent(tensor)
            if tensor.device.type != "cpu" or tensor.__dict__:
                return NotImplemented
            requires_grad, tensor = tensor.requires_grad, tensor.detach()
            storage = tensor.untyped_storage()
            if storage.nbytes() > _SPARSE * tensor.numel() * tensor.element_size():
                tensor = tensor.clone()
                storage = tensor.untyped_storage()
            view = tensor.storage_offset(), tuple(tensor.shape), tensor.stride()
            return _rebuild_tensor, (self._bytes_of(storage), tensor.dtype, *view, requires_grad)

        def _bytes_of(self, storage: Any) -> _StorageBytes:
            # Storages are kept until the end, so that no identity is used twice.
            return self._storages.setdefault(storage._identity(), _StorageBytes(storage))

    return BatchPickler


class BatchSender:
    """Makes messages of batches, in a worker."""

    def __init__(self, blocks: BlockWriter) -> None:
        self._blocks = blocks
        self._pickler = _pickler_class()

    def message(self, task: int, value: Any) -> bytes:
        """The message that gives ``value`` as the result of ``task``. Raises what pickling ``value`` raises."""
        parts: list[memoryview] = []
        file = BytesIO()
        self._pickler(file, lambda buffer: parts.append(buffer.raw())).dump(value)  # type: ignore[call-arg, arg-type]
        pickled = file.getbuffer()
        sizes = [len(part) for part in parts]
        if sum(sizes) <= SMALL:
            envelope: Any = (task, bytes(pickled), [bytearray(part) for part in parts])
        else:
            block, dropped = self._blocks.write(parts)
            envelope = (task, bytes(pickled), (*block, sizes, dropped))
        return pickle.dumps(envelope, 5)


class BatchReceiver:
    """Makes batches of messages, in the loader."""

    def __init__(self, blocks: BlockReader) -> None:
        self.blocks = blocks

    def open(self, message: bytearray) -> tuple[int, Any]:
        """The task and its result; the result's large tensors view the worker's block."""
        task, pickled, memory_of = pickle.loads(message)
        if isinstance(memory_of, tuple):
            offset, capacity, sizes, dropped = memory_of
            memory_of = self.blocks.open(Block(offset, capacity), sizes, dropped)
        return task, pickle.loads(pickled, buffers=memory_of)
