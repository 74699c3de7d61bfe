"""The names under which PyTorch's checkpoints mention storages, dtypes, rebuild functions and classes.

A file written here must name PyTorch's modules, and a file of PyTorch's must find this package's: the package is laid
out like torch, so one prefix stands for the other.
"""

from __future__ import annotations

OURS, THEIRS = "rushlight", "torch"

STORAGE_DTYPES = {
    "DoubleStorage": "float64",
    "FloatStorage": "float32",
    "HalfStorage": "float16",
    "BFloat16Storage": "bfloat16",
    "LongStorage": "int64",
    "IntStorage": "int32",
    "ShortStorage": "int16",
    "CharStorage": "int8",
    "ByteStorage": "uint8",
    "BoolStorage": "bool",
    "ComplexDoubleStorage": "complex128",
    "ComplexFloatStorage": "complex64",
}
STORAGE_OF_DTYPE = {dtype: storage for storage, dtype in STORAGE_DTYPES.items()}

# The bytes of one number of each dtype that a checkpoint may mention, those that are not in this package included.
ITEM_SIZES = {
    **dict.fromkeys(("bool", "uint8", "int8", "bits8", "qint8", "quint8", "float8_e8m0fnu", "float4_e2m1fn_x2"), 1),
    **dict.fromkeys(("float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz"), 1),
    **dict.fromkeys(("int16", "uint16", "float16", "bfloat16", "bits16"), 2),
    **dict.fromkeys(("int32", "uint32", "float32", "complex32", "qint32"), 4),
    **dict.fromkeys(("int64", "uint64", "float64", "complex64"), 8),
    "complex128": 16,
}

QUANTIZED_STORAGES = ("QInt8Storage", "QUInt8Storage", "QInt32Storage", "QUInt4x2Storage", "QUInt2x4Storage")


def to_torch(module: str) -> str:
    """The module's name in a file: this package's modules go by PyTorch's names."""
    head, dot, tail = module.partition(".")
    return THEIRS + dot + tail if head == OURS else module


def item_width(dtype: str) -> int:
    """The bytes that change places together when the order of bytes is another: half of a complex number."""
    size = ITEM_SIZES[dtype]
    return size // 2 if dtype.startswith("complex") else size
