"""Between PIL images, NumPy arrays and tensors, and between dtypes."""

from typing import TYPE_CHECKING, Any

import numpy as np

import rushlight
from rushlight import Tensor

if TYPE_CHECKING:
    from PIL.Image import Image

__all__ = ["convert_image_dtype", "pil_to_tensor", "to_pil_image", "to_tensor"]

# What to_tensor makes of PIL's modes that are not of 8 bits.
_WIDE_MODES = {"I": np.int32, "I;16": np.int16, "F": np.float32}
# PIL's mode of an array with that dtype and one channel, and what more channels may be.
_ONE_CHANNEL = {"uint8": "L", "int16": "I;16", "uint16": "I;16", "int32": "I", "float32": "F"}
_CHANNELS = {2: ("LA",), 3: ("RGB", "YCbCr", "HSV"), 4: ("RGBA", "CMYK", "RGBX")}


def _pixels(image: "Image", dtype: Any = None) -> Tensor:
    """The pixels of a PIL image, of shape (channels, height, width)."""
    array = np.array(image, dtype=dtype, copy=True)
    tensor = rushlight.from_numpy(array).view(image.height, image.width, len(image.getbands()))
    return tensor.permute(2, 0, 1).contiguous()


def pil_to_tensor(pic: Any) -> Tensor:
    """The pixels of a PIL image, unscaled, of shape (channels, height, width).

    Raises:
        TypeError: it is no PIL image.
    """
    from PIL import Image

    if not isinstance(pic, Image.Image):
        raise TypeError(f"pic should be PIL Image. Got {type(pic)}")
    return _pixels(pic)


def to_tensor(pic: Any) -> Tensor:
    """The pixels of a PIL image or of an array of shape (height, width[, channels]), as (channels, height, width).

    Pixels of 8 bits are scaled to [0, 1], in the default dtype.

    Raises:
        TypeError: it is neither.
        ValueError: the array has other than two or three dimensions.
    """
    if isinstance(pic, np.ndarray):
        if pic.ndim not in (2, 3):
            raise ValueError(f"pic should be 2/3 dimensional. Got {pic.ndim} dimensions.")
        array = pic[:, :, None] if pic.ndim == 2 else pic
        tensor = rushlight.from_numpy(array.transpose((2, 0, 1))).contiguous()
    else:
        from PIL import Image

        if not isinstance(pic, Image.Image):
            raise TypeError(f"pic should be PIL Image or ndarray. Got {type(pic)}")
        tensor = _pixels(pic, _WIDE_MODES.get(pic.mode, np.uint8))
        if pic.mode == "1":
            tensor = 255 * tensor
    if tensor.dtype == rushlight.uint8:
        return tensor.to(rushlight.get_default_dtype()).div(255)
    return tensor


def convert_image_dtype(image: Tensor, dtype: Any = None) -> Tensor:
    """Converts to ``dtype`` (float32 by default) and scales: floats are in [0, 1], integers up to their greatest.

    Raises:
        TypeError: it is no tensor.
        RuntimeError: floats do not represent the integers of that dtype.
    """
    if not isinstance(image, Tensor):
        raise TypeError("Input img should be Tensor Image")
    dtype = rushlight.float32 if dtype is None else dtype
    if image.dtype == dtype:
        return image
    if image.is_floating_point():
        if dtype.is_floating_point:
            return image.to(dtype)
        wide = {
            rushlight.float32: (rushlight.int32, rushlight.int64),
            rushlight.float64: (rushlight.int64,),
        }
        if dtype in wide.get(image.dtype, ()):
            raise RuntimeError(f"The cast from {image.dtype} to {dtype} cannot be performed safely.")
        # Each integer gets an equal part of [0, 1], the last one with its end.
        return image.mul(rushlight.iinfo(dtype).max + 1.0 - 1e-3).to(dtype)
    before = rushlight.iinfo(image.dtype).max
    if dtype.is_floating_point:
        return image.to(dtype) / before
    after = rushlight.iinfo(dtype).max
    if before > after:
        factor = (before + 1) // (after + 1)
        return rushlight.div(image, factor, rounding_mode="floor").to(dtype)
    return image.to(dtype) * ((after + 1) // (before + 1))


def to_pil_image(pic: Any, mode: str | None = None) -> "Image":
    """A PIL image of a tensor (channels, height, width) or an array (height, width, channels).

    Floats of a tensor are taken to be in [0, 1]. ``mode`` is PIL's name of what the channels are; by default one
    channel is grey, three are RGB and four RGBA.

    Raises:
        TypeError: it is neither, or of a dtype that PIL has no mode for.
        ValueError: the shape or the mode does not fit.
    """
    from PIL import Image

    if isinstance(pic, Tensor):
        if pic.ndim not in (2, 3):
            raise ValueError(f"pic should be 2/3 dimensional. Got {pic.ndim} dimensions.")
        if pic.ndim == 3 and pic.shape[-3] > 4:
            raise ValueError(f"pic should not have > 4 channels. Got {pic.shape[-3]} channels.")
        tensor = pic.detach() if pic.ndim == 3 else pic.detach()[None]
        if tensor.is_floating_point() and mode != "F":
            tensor = tensor.mul(255).to(rushlight.uint8)
        array = tensor.permute(1, 2, 0).numpy()
    elif isinstance(pic, np.ndarray):
        if pic.ndim not in (2, 3):
            raise ValueError(f"pic should be 2/3 dimensional. Got {pic.ndim} dimensions.")
        array = pic[:, :, None] if pic.ndim == 2 else pic
        if array.shape[-1] > 4:
            raise ValueError(f"pic should not have > 4 channels. Got {array.shape[-1]} channels.")
    else:
        raise TypeError(f"pic should be Tensor or ndarray. Got {type(pic)}.")
    return _image(np.ascontiguousarray(array), mode, Image)


def _image(array: Any, mode: str | None, pil: Any) -> "Image":
    channels = array.shape[2]
    if channels == 1:
        expected = _ONE_CHANNEL.get(array.dtype.name)
        if mode is not None and mode != expected:
            raise ValueError(f"Incorrect mode ({mode}) supplied for input type {array.dtype}. Should be {expected}")
        array, mode = array[:, :, 0], expected
        if array.dtype == np.int16:
            array = array.view(np.uint16)
    else:
        permitted = _CHANNELS[channels]
        if mode is not None and mode not in permitted:
            raise ValueError(f"Only modes {list(permitted)} are supported for {channels}D inputs")
        if array.dtype != np.uint8:
            mode = None
        elif mode is None:
            mode = permitted[0]
    if mode is None:
        raise TypeError(f"Input type {array.dtype} is not supported")
    # PIL finds the common modes from the array alone.
    image: Image = pil.fromarray(array, mode=mode if mode in ("YCbCr", "HSV", "CMYK", "RGBX") else None)
    return image
