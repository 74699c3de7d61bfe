"""Galleries of images as SVG."""

import base64
import io
from xml.etree import ElementTree

import numpy as np
import pytest

from rushlight._gallery import gallery

SVG = "{http://www.w3.org/2000/svg}"


def parsed(count, **options):
    images = [[[i / 10, 1.0], [0.0, 0.5]] for i in range(count)]
    captions = [f"<{i}>" for i in range(count)]
    return ElementTree.fromstring(gallery(images, captions, [i == 1 for i in range(count)], "A & B", **options))


def test_every_image_has_its_caption_below():
    root = parsed(5, columns=3)
    title, *captions = root.iter(SVG + "text")
    assert title.text == "A & B"
    assert [c.text for c in captions] == ["<0>", "<1>", "<2>", "<3>", "<4>"]
    assert [c.get("fill") == "#c0392b" for c in captions] == [False, True, False, False, False]
    images = list(root.iter(SVG + "image"))
    places = [(float(i.get("x")), float(i.get("y"))) for i in images]
    assert len({y for _, y in places}) == 2
    assert places[0][0] == places[3][0] < places[1][0]
    assert all(float(c.get("y")) > float(i.get("y")) + 48 for c, i in zip(captions, images, strict=True))
    assert max(x for x, _ in places) + 48 < float(root.get("width"))
    assert max(y for _, y in places) + 48 < float(root.get("height"))


def test_images_are_png_files_of_grey_pixels():
    pil = pytest.importorskip("PIL.Image", reason="Pillow is an extra")
    image = list(parsed(4).iter(SVG + "image"))[3]
    kind, data = image.get("href").split(",")
    assert kind == "data:image/png;base64"
    pixels = np.asarray(pil.open(io.BytesIO(base64.b64decode(data))))
    assert pixels.tolist() == [[round(255 * 0.7), 0], [255, 128]]
