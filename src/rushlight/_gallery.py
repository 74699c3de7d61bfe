"""A gallery of grey images as SVG, complete in itself: what was shown to a network, and what it read."""

import base64
import struct
import zlib
from collections.abc import Sequence
from html import escape

from rushlight._chart import FONT

CELL, PICTURE, MARGIN = 72, 48, 20  # pixels: of an image with its caption, of an image, around all
HEAD = 44


def gallery(
    images: Sequence[Sequence[Sequence[float]]],
    captions: Sequence[str],
    marked: Sequence[bool],
    title: str,
    columns: int = 8,
) -> str:
    """The text of an SVG file with each image (rows of numbers from 0, white, to 1, black) over its caption.

    Captions of marked images are red.
    """
    rows = -(-len(images) // columns)
    width, height = 2 * MARGIN + columns * CELL, HEAD + rows * CELL + MARGIN
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
        f'font-family="{FONT}" font-size="13">',
        f'<rect width="{width}" height="{height}" rx="6" fill="#ffffff"/>',
        f'<text x="{MARGIN}" y="26" font-size="15" font-weight="bold" fill="#222222">{escape(title)}</text>',
    ]
    for i, (image, caption, mark) in enumerate(zip(images, captions, marked, strict=True)):
        x, y = MARGIN + i % columns * CELL + (CELL - PICTURE) / 2, HEAD + i // columns * CELL
        data = base64.b64encode(_png(image)).decode()
        lines += [
            f'<image x="{x:g}" y="{y}" width="{PICTURE}" height="{PICTURE}" style="image-rendering: pixelated" '
            f'href="data:image/png;base64,{data}"/>',
            f'<text x="{x + PICTURE / 2:g}" y="{y + PICTURE + 15}" text-anchor="middle" '
            f'fill="{"#c0392b" if mark else "#555555"}">{escape(caption)}</text>',
        ]
    return "\n".join([*lines, "</svg>"]) + "\n"


def _png(image: Sequence[Sequence[float]]) -> bytes:
    """A PNG file of 8-bit grey pixels."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", len(image[0]), len(image), 8, 0, 0, 0, 0)
    pixels = b"".join(b"\0" + bytes(round(255 * (1 - value)) for value in row) for row in image)
    return (
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(pixels, 9)) + chunk(b"IEND", b"")
    )
