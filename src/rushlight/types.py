"""Names for the types that PyTorch's functions take, as in ``torch.types``."""

import builtins
import os
from collections.abc import Sequence
from typing import IO, TypeAlias

from rushlight import Size, Tensor, device, dtype, layout

__all__ = ["Device", "FileLike", "Number"]

_int = builtins.int
_float = builtins.float
_bool = builtins.bool
_complex = builtins.complex
_bytes = builtins.bytes
_str = builtins.str
_dtype = dtype
_device = device
_layout = layout

Number: TypeAlias = int | float | bool
_Number = (int, float, bool)  # for isinstance
Device: TypeAlias = device | str | int | None
FileLike: TypeAlias = str | os.PathLike[str] | IO[bytes]
_size = Size | list[int] | tuple[int, ...]
_TensorOrTensors = Tensor | Sequence[Tensor]
_TensorOrOptionalTensors = Tensor | Sequence[Tensor | None]
