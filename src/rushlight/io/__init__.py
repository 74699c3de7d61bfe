"""Reading and writing files of tensors: PyTorch's formats, safetensors, NumPy archives.

``rushlight.save`` and ``rushlight.load`` are in ``rushlight.serialization``; here is what they stand on, and
`describe`, which lists a file's tensors without loading them.
"""

from __future__ import annotations

from .describe import describe

__all__ = ["describe"]
