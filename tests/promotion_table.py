"""PyTorch's rules of type promotion, read from tables/promotion.txt."""

from __future__ import annotations

from pathlib import Path

NAMES = {
    "b": "bool",
    "u1": "uint8",
    "i1": "int8",
    "i2": "int16",
    "i4": "int32",
    "i8": "int64",
    "f2": "float16",
    "bf": "bfloat16",
    "f4": "float32",
    "f8": "float64",
    "c4": "complex32",
    "c8": "complex64",
    "c16": "complex128",
}
NUMBERS = {"bool": True, "int": 3, "float": 0.5, "complex": 2j}


def tables() -> dict[str, dict[tuple[str, str], str]]:
    """Per title: what stands at (row, column)."""
    text = Path(__file__).with_name("tables").joinpath("promotion.txt").read_text(encoding="utf-8")
    found: dict[str, dict[tuple[str, str], str]] = {}
    for block in text.split("\n\n")[1:]:
        title, head, *lines = block.strip("\n").split("\n")
        entries = found.setdefault(title.removeprefix("# ").partition(":")[0], {})
        for line in lines:
            row, *cells = line.split()
            for column, cell in zip(head.split(), cells, strict=True):
                entries[NAMES[row], NAMES.get(column, column)] = NAMES.get(cell, cell)
    return found
