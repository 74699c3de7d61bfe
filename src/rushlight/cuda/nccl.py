"""`torch.cuda.nccl`: communication between CUDA devices, of which there are none."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from rushlight._absent_device import unavailable
from rushlight._missing import lazy_module

if TYPE_CHECKING:
    from rushlight import Tensor

_NO_NCCL = "PyTorch is not compiled with NCCL support"


def is_available(tensors: "Iterable[Tensor]") -> bool:
    """Whether NCCL can reduce these tensors: no."""
    return False


version = unavailable("torch.cuda.nccl.version", _NO_NCCL, RuntimeError)
all_reduce = unavailable("torch.cuda.nccl.all_reduce", _NO_NCCL, RuntimeError)
broadcast = unavailable("torch.cuda.nccl.broadcast", _NO_NCCL, RuntimeError)
unique_id = unavailable("torch.cuda.nccl.unique_id", _NO_NCCL, RuntimeError)

__getattr__, __dir__ = lazy_module(__name__)
