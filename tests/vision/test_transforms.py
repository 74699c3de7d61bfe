"""Transforms of images: PIL images and tensors give the same, random ones draw what torchvision draws."""

import math
import random

import numpy as np
import pytest

import rushlight as torch
from rushlight.vision import transforms as T
from rushlight.vision.transforms import functional as F

Image = pytest.importorskip("PIL.Image", reason="Pillow is an extra")


def picture(height=12, width=17, channels=3):
    pixels = np.random.RandomState(0).randint(0, 256, (height, width, channels), dtype=np.uint8)
    return Image.fromarray(pixels if channels > 1 else pixels[:, :, 0])


def tensor(height=12, width=17, channels=3):
    return F.pil_to_tensor(picture(height, width, channels))


def same(image, result):
    """A PIL image and a tensor show the same."""
    return torch.equal(F.pil_to_tensor(image), result)


# --- conversions ----------------------------------------------------------------------------------------------------


def test_to_tensor():
    image = picture()
    result = T.ToTensor()(image)
    assert (tuple(result.shape), result.dtype) == ((3, 12, 17), torch.float32)
    assert result.is_contiguous()
    np.testing.assert_array_equal(result.numpy(), np.asarray(image).transpose(2, 0, 1).astype(np.float32) / 255)
    array = np.asarray(image)
    assert torch.equal(T.ToTensor()(array), result)
    assert torch.equal(T.ToTensor()(array[:, :, 0]), result[:1])


@pytest.mark.parametrize(
    ("mode", "value", "expected", "dtype"),
    [
        ("L", 51, 0.2, torch.float32),
        ("1", 1, 1.0, torch.float32),
        ("I", 70000, 70000, torch.int32),
        ("F", 0.5, 0.5, torch.float32),
        ("I;16", 300, 300, torch.int16),
    ],
)
def test_to_tensor_of_other_modes(mode, value, expected, dtype):
    result = F.to_tensor(Image.new(mode, (3, 2), value))
    assert result.dtype == dtype
    assert tuple(result.shape) == (1, 2, 3)
    assert result.flatten().tolist() == pytest.approx([expected] * 6)


def test_to_tensor_keeps_arrays_of_other_dtypes():
    assert F.to_tensor(np.ones((2, 3), np.float64)).dtype == torch.float64


def test_pil_to_tensor_does_not_scale():
    result = T.PILToTensor()(picture())
    assert result.dtype == torch.uint8
    np.testing.assert_array_equal(result.numpy(), np.asarray(picture()).transpose(2, 0, 1))


@pytest.mark.parametrize("channels", [1, 3, 4])
def test_to_pil_image_and_back(channels):
    pixels = torch.randint(0, 256, (channels, 5, 4), dtype=torch.uint8)
    image = T.ToPILImage()(pixels)
    assert image.mode == {1: "L", 3: "RGB", 4: "RGBA"}[channels]
    assert same(image, pixels)
    assert same(F.to_pil_image(pixels.float() / 255 + 1e-3), pixels)
    assert same(F.to_pil_image(pixels.permute(1, 2, 0).numpy()), pixels)


@pytest.mark.parametrize(("dtype", "mode"), [(torch.int32, "I"), (torch.int16, "I;16")])
def test_to_pil_image_of_wide_integers(dtype, mode):
    image = F.to_pil_image(torch.tensor([[[1, 300], [2, 4]]], dtype=dtype))
    assert image.mode == mode
    assert np.asarray(image).tolist() == [[1, 300], [2, 4]]


def test_to_pil_image_modes():
    assert F.to_pil_image(torch.rand(1, 2, 2), mode="F").mode == "F"
    assert F.to_pil_image(torch.zeros(3, 2, 2, dtype=torch.uint8), mode="HSV").mode == "HSV"
    assert F.to_pil_image(torch.zeros(2, 2, 2, dtype=torch.uint8)).mode == "LA"
    assert F.to_pil_image(torch.zeros(4, 2, 2, dtype=torch.uint8), mode="CMYK").mode == "CMYK"


@pytest.mark.parametrize(
    ("value", "dtype", "out", "expected"),
    [
        (255, torch.uint8, torch.float32, 1.0),
        (0.5, torch.float32, torch.uint8, 127),
        (1.0, torch.float32, torch.uint8, 255),
        (0.0, torch.float32, torch.uint8, 0),
        (255, torch.uint8, torch.int16, 255 * 128),
        (32767, torch.int16, torch.uint8, 255),
        (0.25, torch.float32, torch.float64, 0.25),
        (7, torch.uint8, torch.uint8, 7),
    ],
)
def test_convert_image_dtype(value, dtype, out, expected):
    result = T.ConvertImageDtype(out)(torch.full((1, 1, 1), value, dtype=dtype))
    assert result.dtype == out
    assert result.item() == expected


def test_every_integer_gets_an_equal_part():
    counts = torch.bincount(F.convert_image_dtype(torch.linspace(0, 1, 25601), torch.uint8).long(), minlength=256)
    assert counts.min().item() >= 99
    assert counts.max().item() <= 101


def test_normalize():
    image = torch.ones(2, 3, 4, 5)
    result = T.Normalize((0.5, 0.25, 0.0), (0.5, 0.5, 2.0))(image)
    assert result[1, :, 0, 0].tolist() == [1.0, 1.5, 0.5]
    assert image.min().item() == 1.0
    same_tensor = F.normalize(image, [0.5] * 3, [0.5] * 3, inplace=True)
    assert same_tensor is image


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: F.to_tensor([1]), TypeError, "pic should be PIL Image or ndarray. Got <class 'list'>"),
        (lambda: F.to_tensor(np.ones(3)), ValueError, "pic should be 2/3 dimensional. Got 1 dimensions."),
        (lambda: F.pil_to_tensor(np.ones((2, 2))), TypeError, "pic should be PIL Image. Got <class 'numpy.ndarray'>"),
        (lambda: F.to_pil_image(3), TypeError, "pic should be Tensor or ndarray. Got <class 'int'>."),
        (lambda: F.to_pil_image(torch.ones(2)), ValueError, "pic should be 2/3 dimensional. Got 1 dimensions."),
        (lambda: F.to_pil_image(torch.ones(5, 2, 2)), ValueError, "pic should not have > 4 channels. Got 5 channels."),
        (lambda: F.to_pil_image(np.ones((2, 2, 1), np.float64)), TypeError, "Input type float64 is not supported"),
        (
            lambda: F.to_pil_image(torch.ones(1, 2, 2), mode="RGB"),
            ValueError,
            "Incorrect mode (RGB) supplied for input",
        ),
        (lambda: F.to_pil_image(torch.ones(3, 2, 2), mode="L"), ValueError, "Only modes ['RGB', 'YCbCr', 'HSV'] are"),
        (lambda: F.convert_image_dtype(3), TypeError, "Input img should be Tensor Image"),
        (
            lambda: F.convert_image_dtype(torch.ones(1), torch.int32),
            RuntimeError,
            "The cast from torch.float32 to torch.int32 cannot be performed safely.",
        ),
        (lambda: F.normalize([1], [0], [1]), TypeError, "img should be Tensor Image. Got <class 'list'>"),
        (
            lambda: F.normalize(torch.ones(3, 2, 2, dtype=torch.uint8), [0], [1]),
            TypeError,
            "Input tensor should be a float tensor. Got torch.uint8.",
        ),
        (lambda: F.normalize(torch.ones(2, 2), [0], [1]), ValueError, "Expected tensor to be a tensor image of size"),
        (lambda: F.normalize(torch.ones(1, 2, 2), [0], [0]), ValueError, "std evaluated to zero after conversion to"),
        (lambda: F.hflip(3), TypeError, "img should be PIL Image or Tensor. Got <class 'int'>"),
        (lambda: F.get_dimensions(torch.ones(3)), TypeError, "Tensor is not a torch image."),
        (
            lambda: F.resize(tensor(), [1, 2, 3]),
            ValueError,
            "Size must be an int or a 1 or 2 element tuple/list, not a 3",
        ),
        (lambda: F.resize(tensor(), 5, max_size=5), ValueError, "max_size = 5 must be strictly greater than"),
        (
            lambda: F.resize(tensor(), [5, 6], max_size=9),
            ValueError,
            "max_size should only be passed if size specifies",
        ),
        (lambda: F.resize(tensor(), 5, interpolation="bilinear"), TypeError, "Argument interpolation should be a"),
        (
            lambda: F.resize(tensor(), 5, T.InterpolationMode.LANCZOS),
            ValueError,
            "This interpolation mode is unsupported with Tensor input",
        ),
        (lambda: T.Resize(3.5), TypeError, "Size should be int or sequence. Got <class 'float'>"),
        (lambda: F.pad(tensor(), "1"), TypeError, "Got inappropriate padding arg"),
        (
            lambda: F.pad(tensor(), [1, 2, 3]),
            ValueError,
            "Padding must be an int or a 1, 2, or 4 element tuple, not a 3",
        ),
        (lambda: F.pad(tensor(), 1, padding_mode="x"), ValueError, "Padding mode should be either constant, edge"),
        (lambda: T.CenterCrop((1, 2, 3)), ValueError, "Please provide only two dimensions (h, w) for size."),
        (
            lambda: T.RandomCrop(20)(tensor()),
            ValueError,
            "Required crop size (20, 20) is larger than input image size (12, 17)",
        ),
        (lambda: F.rgb_to_grayscale(tensor(), 2), ValueError, "num_output_channels should be either 1 or 3"),
        (lambda: F.to_grayscale(tensor()), TypeError, "Input should be PIL Image"),
        (lambda: F.adjust_hue(tensor(), 0.6), ValueError, "hue_factor (0.6) is not in [-0.5, 0.5]."),
        (lambda: F.adjust_brightness(tensor(), -1), ValueError, "brightness_factor (-1) is not non-negative."),
        (lambda: T.ColorJitter(-1), ValueError, "If brightness is a single number, it must be non negative."),
        (lambda: T.ColorJitter(hue=0.7), ValueError, "hue values should be between (-0.5, 0.5)"),
        (lambda: T.ColorJitter("x"), TypeError, "brightness should be a single number or a list/tuple with length 2."),
        (lambda: T.Lambda(3), TypeError, "Argument lambd should be callable, got 'int'"),
    ],
)
def test_refusals(call, error, message):
    with pytest.raises(error) as info:
        call()
    assert info.type is error
    assert message in str(info.value)


# --- places ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("size", "options", "expected"),
    [
        (6, {}, (6, 8)),
        ([6], {}, (6, 8)),
        ((7, 5), {}, (7, 5)),
        (24, {}, (24, 34)),
        (12, {}, (12, 17)),
        (10, {"max_size": 12}, (8, 12)),
    ],
)
def test_resized_shape(size, options, expected):
    for image in (picture(), tensor()):
        assert tuple(F.get_dimensions(T.Resize(size, **options)(image))[1:]) == expected
    assert F.get_image_size(T.Resize(size, **options)(picture())) == [expected[1], expected[0]]
    upright = T.Resize(size, **options)(tensor(17, 12))
    if not isinstance(size, tuple):
        assert tuple(upright.shape[1:]) == expected[::-1]


@pytest.mark.parametrize("mode", [T.InterpolationMode.BILINEAR, T.InterpolationMode.BICUBIC])
@pytest.mark.parametrize("size", [(6, 9), (25, 40), (12, 5)])
def test_resized_tensors_look_like_resized_pictures(mode, size):
    smooth = np.add.outer(np.arange(12) * 9, np.arange(17) * 8)[:, :, None].repeat(3, 2).astype(np.uint8)
    image = Image.fromarray(smooth)
    result = F.resize(F.pil_to_tensor(image), size, mode)
    assert result.dtype == torch.uint8
    difference = result.int() - F.pil_to_tensor(F.resize(image, size, mode)).int()
    assert difference.abs().max().item() <= 1


def test_nearest():
    image = torch.arange(4.0).reshape(1, 2, 2)
    expected = image.repeat_interleave(2, -1).repeat_interleave(2, -2)
    assert torch.equal(F.resize(image, [4, 4], T.InterpolationMode.NEAREST), expected)
    assert torch.equal(F.resize(image[0], [4, 4], 0), expected[0])


@pytest.mark.parametrize("size", [(4, 6), (5, 7), 3, (20, 9), (30, 31), (12, 17)])
def test_center_crop(size):
    image, result = T.CenterCrop(size)(picture()), T.CenterCrop(size)(tensor())
    assert same(image, result)
    expected = size if isinstance(size, tuple) else (size, size)
    assert tuple(result.shape[1:]) == expected


def test_center_crop_is_in_the_middle():
    image = torch.arange(25.0).reshape(1, 5, 5)
    assert F.center_crop(image, 3).tolist() == [[[6.0, 7.0, 8.0], [11.0, 12.0, 13.0], [16.0, 17.0, 18.0]]]


@pytest.mark.parametrize("place", [(0, 0, 12, 17), (2, 3, 4, 5), (-2, -3, 6, 8), (8, 12, 9, 11), (20, 30, 2, 2)])
def test_crop(place):
    assert same(F.crop(picture(), *place), F.crop(tensor(), *place))


@pytest.mark.parametrize("mode", ["constant", "edge", "reflect", "symmetric"])
@pytest.mark.parametrize("padding", [2, (1, 3), (1, 2, 3, 4)])
@pytest.mark.parametrize("channels", [1, 3])
def test_pad(mode, padding, channels):
    image = F.pad(picture(channels=channels), padding, padding_mode=mode)
    result = T.Pad(padding, padding_mode=mode)(tensor(channels=channels))
    assert same(image, result)
    edges = [padding] * 4 if isinstance(padding, int) else list(padding) * (4 // len(padding))
    assert tuple(result.shape[1:]) == (12 + edges[1] + edges[3], 17 + edges[0] + edges[2])
    floats = F.pad(tensor(channels=channels).float(), padding, padding_mode=mode)
    assert torch.equal(floats, result.float())


def test_pad_fill():
    assert F.pad(tensor(), 1, fill=7)[:, 0].unique().tolist() == [7]
    assert np.asarray(F.pad(picture(), 1, fill=(1, 2, 3)))[0, 0].tolist() == [1, 2, 3]
    with pytest.raises(ValueError, match="The number of elements in 'fill' does not match"):
        F.pad(picture(), 1, fill=(1, 2))


def test_flips():
    pixels = tensor()
    assert torch.equal(F.hflip(pixels), pixels[..., torch.arange(16, -1, -1)])
    assert torch.equal(F.vflip(pixels), pixels[:, torch.arange(11, -1, -1)])
    assert same(F.hflip(picture()), F.hflip(pixels))
    assert same(F.vflip(picture()), F.vflip(pixels))


# --- random transforms ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [T.RandomHorizontalFlip, T.RandomVerticalFlip])
def test_flips_draw_one_number(make):
    flip = F.hflip if make is T.RandomHorizontalFlip else F.vflip
    torch.manual_seed(5)
    numbers = [torch.rand(1).item() for _ in range(20)]
    torch.manual_seed(5)
    for number in numbers:
        expected = flip(tensor()) if number < 0.3 else tensor()
        assert torch.equal(make(p=0.3)(tensor()), expected)
    assert torch.equal(make(p=0)(tensor()), tensor())


def test_random_crop_draws_top_and_left():
    torch.manual_seed(3)
    top, left = torch.randint(0, 12 - 5 + 1, (1,)).item(), torch.randint(0, 17 - 6 + 1, (1,)).item()
    torch.manual_seed(3)
    assert torch.equal(T.RandomCrop((5, 6))(tensor()), tensor()[:, top : top + 5, left : left + 6])
    state = torch.get_rng_state()
    assert torch.equal(T.RandomCrop((12, 17))(tensor()), tensor())
    assert torch.equal(torch.get_rng_state(), state)  # nothing to choose, nothing drawn


def test_random_crop_pads():
    torch.manual_seed(0)
    assert tuple(T.RandomCrop((20, 30), pad_if_needed=True)(tensor()).shape) == (3, 20, 30)
    padded = F.pad(tensor(), 4)
    torch.manual_seed(1)
    top, left = torch.randint(0, 20 - 12 + 1, (1,)).item(), torch.randint(0, 25 - 17 + 1, (1,)).item()
    torch.manual_seed(1)
    result = T.RandomCrop((12, 17), padding=4)(tensor())
    assert torch.equal(result, padded[:, top : top + 12, left : left + 17])
    torch.manual_seed(1)
    assert same(T.RandomCrop((12, 17), padding=4)(picture()), result)


def test_random_resized_crop_draws_area_aspect_and_place():
    scale, ratio = (0.2, 0.6), (0.5, 2.0)
    torch.manual_seed(8)
    for _ in range(10):
        area = 12 * 17 * torch.empty(1).uniform_(*scale).item()
        low, high = torch.log(torch.tensor(ratio)).tolist()
        aspect = torch.exp(torch.empty(1).uniform_(low, high)).item()
        w, h = round(math.sqrt(area * aspect)), round(math.sqrt(area / aspect))
        if w <= 17 and h <= 12:
            top, left = torch.randint(0, 12 - h + 1, (1,)).item(), torch.randint(0, 17 - w + 1, (1,)).item()
            break
    torch.manual_seed(8)
    assert T.RandomResizedCrop.get_params(tensor(), scale, ratio) == (top, left, h, w)
    torch.manual_seed(8)
    result = T.RandomResizedCrop((4, 6), scale, ratio)(tensor())
    assert torch.equal(result, F.resize(tensor()[:, top : top + h, left : left + w], [4, 6]))


@pytest.mark.parametrize(
    ("ratio", "expected"),
    [((10.0, 11.0), (5, 0, 2, 17)), ((0.01, 0.02), (0, 8, 12, 0)), ((1.4, 1.5), (0, 0, 12, 17))],
)
def test_random_resized_crop_falls_back_to_the_middle(ratio, expected):
    assert T.RandomResizedCrop.get_params(tensor(), (5.0, 6.0), ratio) == expected


def test_random_apply_choice_and_order():
    torch.manual_seed(2)
    numbers = [torch.rand(1).item() for _ in range(10)]
    torch.manual_seed(2)
    apply = T.RandomApply([lambda x: x + 1, lambda x: x * 2], p=0.4)
    assert [apply(1) for _ in numbers] == [1 if number > 0.4 else 4 for number in numbers]
    random.seed(0)
    seen = {T.RandomOrder([lambda x: x + 1, lambda x: x * 2])(3) for _ in range(20)}
    assert seen == {7, 8}
    seen = {T.RandomChoice([lambda x: x + 1, lambda x: x * 2, lambda x: -x], p=[1, 1, 0])(3) for _ in range(30)}
    assert seen == {4, 6}


# --- colours --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("channels", [1, 3])
def test_grayscale(channels):
    result = T.Grayscale(channels)(tensor())
    assert tuple(result.shape) == (channels, 12, 17)
    r, g, b = tensor().float()
    assert torch.equal(result[0], (0.2989 * r + 0.587 * g + 0.114 * b).to(torch.uint8))
    difference = F.pil_to_tensor(T.Grayscale(channels)(picture())).int() - result.int()
    assert difference.abs().max().item() <= 1
    assert torch.equal(T.RandomGrayscale(p=1.0)(tensor()), T.Grayscale(3)(tensor()))
    assert torch.equal(T.RandomGrayscale(p=0.0)(tensor()), tensor())


@pytest.mark.parametrize(
    ("change", "factors"),
    [
        (F.adjust_brightness, (0.0, 0.4, 1.0, 1.9)),
        (F.adjust_contrast, (0.0, 0.4, 1.0, 1.9)),
        (F.adjust_saturation, (0.0, 0.4, 1.0, 1.9)),
        (F.adjust_hue, (-0.5, -0.2, 0.0, 0.3, 0.5)),
    ],
)
def test_adjusted_tensors_look_like_adjusted_pictures(change, factors):
    for factor in factors:
        result = change(tensor(), factor)
        assert result.dtype == torch.uint8
        difference = F.pil_to_tensor(change(picture(), factor)).int() - result.int()
        # Hues of 8 bits are coarse: PIL's may be far off in single pixels.
        assert difference.abs().float().mean().item() <= (5 if change is F.adjust_hue else 1)
        floats = change(tensor().float() / 255, factor)
        assert (floats * 255 - result.float()).abs().max().item() <= 2


def test_hue_turns_colours():
    red = torch.tensor([1.0, 0.0, 0.0]).reshape(3, 1, 1)
    for factor, colour in [(1 / 3, [0, 1, 0]), (-1 / 3, [0, 0, 1]), (0.5, [0, 1, 1]), (1 / 6, [1, 1, 0])]:
        assert F.adjust_hue(red, factor).flatten().tolist() == pytest.approx(colour, abs=1e-5)
    grey = torch.full((3, 1, 1), 0.4)
    assert F.adjust_hue(grey, 0.3).flatten().tolist() == pytest.approx([0.4] * 3)


def test_color_jitter_draws_an_order_and_factors():
    jitter = T.ColorJitter(0.4, (0.5, 0.7), 0, 0.1)
    torch.manual_seed(4)
    order = torch.randperm(4).tolist()
    factors = [torch.empty(1).uniform_(*interval).item() for interval in ((0.6, 1.4), (0.5, 0.7), (-0.1, 0.1))]
    factors.insert(2, None)
    changes = [F.adjust_brightness, F.adjust_contrast, None, F.adjust_hue]
    expected = tensor()
    for i in order:
        if changes[i] is not None:
            expected = changes[i](expected, factors[i])
    torch.manual_seed(4)
    assert torch.equal(jitter(tensor()), expected)
    assert torch.equal(T.ColorJitter()(tensor()), tensor())


# --- together -------------------------------------------------------------------------------------------------------


def test_compose():
    transform = T.Compose([T.Resize(8), T.CenterCrop(8), T.ToTensor(), T.Normalize([0.5] * 3, [0.5] * 3)])
    result = transform(picture())
    assert tuple(result.shape) == (3, 8, 8)
    assert -1 <= result.min().item() < result.max().item() <= 1
    assert T.Compose([T.Lambda(lambda x: x + 1), T.Lambda(lambda x: x * 2)])(1) == 4


@pytest.mark.parametrize(
    ("transform", "text"),
    [
        (
            T.Resize(256),
            "Resize(size=256, interpolation=bilinear, max_size=None, antialias=True)",
        ),
        (T.CenterCrop(224), "CenterCrop(size=(224, 224))"),
        (T.Pad(2), "Pad(padding=2, fill=0, padding_mode=constant)"),
        (T.RandomCrop(32, padding=4), "RandomCrop(size=(32, 32), padding=4)"),
        (T.RandomHorizontalFlip(), "RandomHorizontalFlip(p=0.5)"),
        (
            T.RandomResizedCrop(224),
            "RandomResizedCrop(size=(224, 224), scale=(0.08, 1.0), ratio=(0.75, 1.3333), interpolation=bilinear, "
            "antialias=True)",
        ),
        (T.Normalize((0.5,), (0.2,)), "Normalize(mean=(0.5,), std=(0.2,))"),
        (T.ToPILImage(), "ToPILImage()"),
        (T.ToPILImage("RGB"), "ToPILImage(mode=RGB)"),
        (T.Grayscale(3), "Grayscale(num_output_channels=3)"),
        (T.ColorJitter(0.5), "ColorJitter(brightness=(0.5, 1.5), contrast=None, saturation=None, hue=None)"),
        (T.Compose([T.ToTensor(), T.PILToTensor()]), "Compose(\n    ToTensor()\n    PILToTensor()\n)"),
    ],
)
def test_printed_forms(transform, text):
    assert repr(transform) == text


def test_what_is_not_there_is_named():
    with pytest.raises(AttributeError, match=r"torchvision\.transforms\.ElasticTransform"):
        T.ElasticTransform()
