"""How tensors and storages go to other processes: their memory is shared, only its description is sent."""

from __future__ import annotations

from typing import Any

import rushlight

from ..io import memory
from . import shared_storage
from .shared_file import SharedFile

NON_LEAF = (
    "Cowardly refusing to serialize non-leaf tensor which requires_grad, since autograd does not support crossing "
    "process boundaries.  If you just want to transfer the data, call detach() on the tensor before serializing "
    "(e.g., putting it on the queue)."
)


def reduce_storage(storage: Any) -> tuple[Any, ...]:
    """A storage as a place in a shared file; it is moved there first, if it is not in one."""
    if storage.nbytes() == 0:
        return memory.allocate, (0,)
    place = shared_storage.place_of(shared_storage.share(storage))
    return rebuild_storage, (place.segment.file, place.segment.size, place.offset, place.nbytes)


def rebuild_storage(file: SharedFile, size: int, offset: int, nbytes: int) -> Any:
    return shared_storage.storage_at(file, size, offset, nbytes)


def check_can_be_sent(tensor: rushlight.Tensor) -> None:
    """Refuse tensors with a history, which stays in this process."""
    if tensor.requires_grad and not tensor.is_leaf:
        raise RuntimeError(NON_LEAF)


def reduce_tensor(tensor: rushlight.Tensor) -> tuple[Any, ...]:
    """A tensor as its storage and its view of it."""
    check_can_be_sent(tensor)
    view = tensor.storage_offset(), tuple(tensor.shape), tensor.stride()
    attributes = dict(tensor.__dict__)
    return rebuild_tensor, (tensor.untyped_storage(), tensor.dtype, *view, tensor.requires_grad, attributes)


def rebuild_tensor(
    storage: Any, dtype: Any, offset: int, size: Any, stride: Any, requires_grad: bool, attributes: dict[str, Any]
) -> rushlight.Tensor:
    tensor = memory.tensor_over(storage, dtype, offset, size, stride)
    if requires_grad:
        tensor.requires_grad_()
    if attributes:
        tensor.__dict__.update(attributes)
    return tensor


def reduce_parameter(parameter: Any) -> tuple[Any, ...]:
    return rebuild_parameter, (parameter.detach(), parameter.requires_grad, dict(parameter.__dict__))


def rebuild_parameter(tensor: rushlight.Tensor, requires_grad: bool, attributes: dict[str, Any]) -> Any:
    parameter = rushlight.nn.Parameter(tensor, requires_grad)
    parameter.__dict__.update(attributes)
    return parameter


def init_reductions() -> None:
    """Let the queues, pipes and processes of ``multiprocessing`` share tensors instead of copying them."""
    from multiprocessing.reduction import ForkingPickler

    ForkingPickler.register(rushlight.Tensor, reduce_tensor)
    ForkingPickler.register(rushlight.nn.Parameter, reduce_parameter)
    ForkingPickler.register(rushlight.UntypedStorage, reduce_storage)
