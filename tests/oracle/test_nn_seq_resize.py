"""Resizing, sampling by a grid, folding, shuffles and distances against PyTorch's."""

import itertools
import random

import pytest

torch = pytest.importorskip("torch", reason="the oracle is installed by .ci/run only")

from nn_twin import Twins, array, same, same_error, same_module, same_warning  # noqa: E402

import rushlight  # noqa: E402

pytestmark = [pytest.mark.oracle, pytest.mark.filterwarnings("ignore")]

F = "nn.functional."
F64 = torch.float64


def randn(*shape, dtype=F64, grad=True):
    return torch.randn(shape, dtype=dtype).requires_grad_(grad)


MODES = [(dims, mode) for dims in (1, 2, 3) for mode in ("nearest", "nearest-exact", "area")]
MODES += [(1, "linear"), (2, "bilinear"), (2, "bicubic"), (3, "trilinear")]


@pytest.mark.parametrize("dtype", [torch.float32, F64])
@pytest.mark.parametrize("dims,mode", MODES)
def test_sizes(dims, mode, dtype):
    choose = random.Random(f"{dims}{mode}")
    torch.manual_seed(0)
    for corners in [None] if mode in ("area", "nearest", "nearest-exact") else [False, True]:
        for _ in range(8):
            x = randn(2, 3, *(choose.randint(1, 11) for _ in range(dims)), dtype=dtype)
            size = [choose.randint(1, 19) for _ in range(dims)]
            same(F + "interpolate", x, size=size, mode=mode, align_corners=corners)
            same(F + "interpolate", x, size=size[0], mode=mode, align_corners=corners)


@pytest.mark.parametrize("dims,mode", MODES)
def test_factors(dims, mode):
    choose = random.Random(f"{dims}{mode}")
    for corners in [None] if mode in ("area", "nearest", "nearest-exact") else [False, True]:
        for recompute in (None, True, False):
            for _ in range(5):
                shape = [choose.randint(2, 11) for _ in range(dims)]
                factors = [choose.choice([0.5, 0.7, 1.3, 2.0, 2.6, 3.0]) for _ in range(dims)]
                # PyTorch's gradient of "nearest" contradicts its result where a factor doubles a size by rounding
                options = {"scale_factor": factors, "mode": mode, "recompute_scale_factor": recompute}
                same(F + "interpolate", randn(2, 3, *shape, grad=mode != "nearest"), align_corners=corners, **options)


def test_nearest_of_all_small_sizes():
    """Where two elements are equally near, rounding decides."""
    ours, theirs = rushlight.nn.functional.interpolate, torch.nn.functional.interpolate
    for length, dtype in itertools.product(range(1, 30), [torch.float32, F64]):
        for size, mode, dims in itertools.product(range(1, 40), ["nearest", "nearest-exact"], [1, 2, 3]):
            x = torch.arange(length, dtype=dtype).reshape(1, 1, *[1] * (dims - 1), length)
            sizes = (1,) * (dims - 1) + (size,)
            expected = theirs(x, size=sizes, mode=mode)
            assert ours(Twins()(x), size=sizes, mode=mode).flatten().tolist() == expected.flatten().tolist()


def test_nearest_factors_that_nearly_double():
    for factor in (1.01, 1.07, 1.2, 2.05, 2.2):
        for length in range(2, 12):
            for dims in (1, 2, 3):
                x = torch.arange(float(length)).reshape(1, 1, *[1] * (dims - 1), length)
                factors = (1.0,) * (dims - 1) + (factor,)
                same(F + "interpolate", x, scale_factor=factors)
                same(F + "interpolate", x, scale_factor=factors, mode="nearest-exact")


@pytest.mark.parametrize("mode", ["bilinear", "bicubic", "lanczos"])
def test_antialias(mode):
    choose = random.Random(mode)
    for corners in [None] if mode == "lanczos" else [False, True]:
        for _ in range(12):
            x = randn(2, 3, choose.randint(1, 15), choose.randint(1, 15))
            # a result one element wide is a known fault of PyTorch's
            size = choose.randint(1, 20), choose.randint(2, 20)
            same(F + "interpolate", x, size=size, mode=mode, align_corners=corners, antialias=True)


@pytest.mark.parametrize("antialias", [False, True])
@pytest.mark.parametrize("mode", ["nearest", "nearest-exact", "bilinear", "bicubic"])
def test_bytes(mode, antialias):
    if antialias and mode.startswith("nearest"):
        same_error(F + "interpolate", torch.zeros(1, 1, 2, 2), size=3, mode=mode, antialias=True, phrase="Anti-alias")
        return
    x = torch.randint(0, 256, (2, 3, 20, 17), dtype=torch.uint8)
    for size in [(7, 9), (31, 40), (20, 8)]:
        found = rushlight.nn.functional.interpolate(Twins()(x), size=size, mode=mode, antialias=antialias)
        expected = torch.nn.functional.interpolate(x, size=size, mode=mode, antialias=antialias)
        assert found.dtype is rushlight.uint8
        difference = abs(array(found).astype(int) - array(expected).astype(int))
        # PyTorch computes with weights of 16 bits here
        assert difference.max() <= (0 if mode.startswith("nearest") else 2)
        assert (difference > 1).mean() < 1e-3


def test_resize_refusals():
    f, x3, x4, x5 = F + "interpolate", randn(2, 3, 5), randn(2, 3, 5, 4), randn(2, 3, 4, 5, 3)
    same_error(f, x4, phrase="either size or scale_factor should be defined")
    same_error(f, x4, size=3, scale_factor=2.0, phrase="only one of size or scale_factor should be defined")
    same_error(f, x4, size=(3,), phrase="Input and output must have the same number of spatial dimensions")
    same_error(
        f, x4, scale_factor=(2.0,), phrase="Input and scale_factor must have the same number of spatial dimensions"
    )
    same_error(f, x4, size=3, align_corners=False, phrase="align_corners option can only be set with the interpolating")
    same_error(f, x4, size=3, recompute_scale_factor=True, phrase="not meaningful with an explicit size")
    same_error(f, x3, size=3, mode="bilinear", phrase="Got 3D input, but bilinear mode needs 4D input")
    same_error(f, x4, size=3, mode="linear", phrase="Got 4D input, but linear mode needs 3D input")
    same_error(f, x4, size=3, mode="trilinear", phrase="Got 4D input, but trilinear mode needs 5D input")
    for x, mode in ((x5, "bicubic"), (x4, "x"), (randn(3, 4), "nearest"), (randn(1, 1, 1, 1, 1, 1), "nearest")):
        same_error(f, x, size=3, mode=mode, phrase="Input Error: Only 3D, 4D and 5D input Tensors supported")
    same_error(f, x4, size=3, mode="lanczos", phrase="Lanczos mode requires antialias=True")
    same_error(f, x3, size=3, mode="linear", antialias=True, phrase="Anti-alias option is restricted")
    for bad in ({"size": 0}, {"scale_factor": 0.1}, {"scale_factor": -1.0}):
        same_error(f, x4, phrase="Input and output sizes should be greater than 0", **bad)
    same_error(f, randn(2, 0, 4, 4), size=2, phrase="Non-empty 4D data tensor expected")
    same_error(f, randn(2, 1, 0, 4), size=2, phrase="Input and output sizes should be greater than 0")
    same_error(f, x4, size=2.5)
    same_error(f, x4.long(), size=2, mode="bilinear", phrase="not implemented for")
    same(f, randn(0, 3, 4, 4), size=2)
    for name in ("upsample", "upsample_nearest", "upsample_bilinear"):
        same(F + name, x4, 3)
        same_warning(F + name, x4, 3, phrase=f"`nn.functional.{name}` is deprecated")


def test_resize_modules():
    x = randn(2, 3, 4, 5)
    same_module("Upsample", (), {"size": 3}, [x])
    same_module("Upsample", (), {"scale_factor": (2, 1.5), "mode": "bicubic", "align_corners": True}, [x])
    same_module("Upsample", (), {"scale_factor": 1.7, "mode": "bilinear", "recompute_scale_factor": True}, [x])
    same_module("UpsamplingNearest2d", (), {"scale_factor": 2}, [x])
    same_module("UpsamplingBilinear2d", ((7, 3),), {}, [x])


# grids ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "dims,mode", [(2, "bilinear"), (2, "nearest"), (2, "bicubic"), (3, "bilinear"), (3, "nearest")]
)
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("corners", [False, True])
def test_grid_sample(corners, padding, dims, mode):
    choose = random.Random(f"{dims}{mode}")
    torch.manual_seed(0)
    for spread in (0.5, 1.0, 4.0):
        x = randn(2, 3, *(choose.randint(1, 6) for _ in range(dims)))
        grid = (torch.randn(2, *[4] * (dims - 1), 5, dims, dtype=F64) * spread).requires_grad_()
        same(F + "grid_sample", x, grid, mode, padding, corners, second=mode == "bilinear")
    # places on the borders and on the elements
    places = torch.randint(-3, 4, (2, *[4] * dims, dims)).to(F64) / 2
    same(F + "grid_sample", randn(2, 3, *[3] * dims), places.requires_grad_(), mode, padding, corners)
    same(F + "grid_sample", randn(2, 3, *[1] * dims), places, mode, padding, corners)
    same(F + "grid_sample", randn(2, 0, *[3] * dims), places, mode, padding, corners)
    same(F + "grid_sample", randn(2, 3, *[3] * dims), places[:, :0], mode, padding, corners)


def test_grid_refusals():
    f, x, g = F + "grid_sample", randn(2, 3, 5, 4), randn(2, 6, 7, 2)
    same_error(f, x, g, mode="x", phrase="expected mode to be 'bilinear', 'nearest' or 'bicubic', but got: 'x'")
    same_error(f, x, g, padding_mode="x", phrase="expected padding_mode to be 'zeros', 'border', or 'reflection'")
    same_error(f, x, g[:1], phrase="expected grid and input to have same batch size")
    same_error(f, x, randn(2, 6, 7, 3), phrase="expected grid to have size 2 in last dimension")
    same_error(f, x, randn(2, 6, 2), phrase="grid with same number of dimensions")
    same_error(
        f, randn(2, 3, 4, 5, 3), randn(2, 6, 7, 2, 3), "bicubic", phrase="bicubic interpolation only supports 4D"
    )
    same_error(f, randn(2, 3, 0, 4), g, phrase="non-empty spatial dimensions")
    same_error(f, x, g.float())
    same_warning(f, x, g, phrase="Default grid_sample and affine_grid behavior has changed to align_corners=False")


@pytest.mark.parametrize("corners", [False, True])
def test_affine_grid(corners):
    for batch, height, width in [(2, 4, 5), (1, 1, 3), (3, 7, 2)]:
        same(F + "affine_grid", randn(batch, 2, 3), (batch, 1, height, width), corners)
        same(F + "affine_grid", randn(batch, 2, 3, dtype=torch.float32), (batch, 1, height, width), corners)
        same(F + "affine_grid", randn(batch, 3, 4), [batch, 1, height, width, 3], corners)


def test_affine_refusals():
    f, t = F + "affine_grid", randn(2, 2, 3)
    same_error(f, t, (2, 3, 4), phrase="affine_grid only supports 4D and 5D sizes")
    same_error(f, randn(2, 3, 4), (2, 3, 4, 5), phrase="Expected a batch of 2D affine matrices of shape Nx2x3")
    same_error(f, t, (2, 3, 4, 5, 6), phrase="Expected a batch of 3D affine matrices of shape Nx3x4")
    same_error(f, t.long(), (2, 3, 4, 5), phrase="Expected theta to have floating point type")
    same_error(f, t, (2, 3, 0, 5), phrase="Expected non-zero, positive output size")
    same_error(f, t, (3, 3, 4, 5), phrase="Expected size for first")
    same_warning(f, t, (2, 3, 1, 5), True, phrase="for unit-size grids when align_corners=True")


# blocks ---------------------------------------------------------------------------------------------------------------


def test_blocks():
    for k, d, p, s in itertools.product((1, 2, (2, 3)), (1, (2, 1)), (0, (1, 2)), (1, (2, 1), 3)):
        same(F + "unfold", randn(2, 3, 7, 8), k, d, p, s)
        same(F + "unfold", randn(3, 7, 8), k, d, p, s)
        columns = torch.nn.functional.unfold(torch.zeros(2, 3, 7, 8), k, d, p, s).shape
        same(F + "fold", randn(*columns), (7, 8), k, d, p, s)
        same(F + "fold", randn(*columns[1:]), (7, 8), k, d, p, s)
    same(F + "unfold", randn(0, 3, 5, 4), 2)
    same(F + "fold", randn(0, 12, 9), 4, 2)
    same(F + "unfold", randn(1, 2, 4, 4, dtype=torch.complex64), 2)
    same_module("Unfold", ((2, 3), 1, (0, 1), 2), {}, [randn(2, 3, 7, 8)])
    same_module("Fold", ((4, 4), 2), {"dilation": 2, "padding": 1}, [randn(2, 12, 16)])


def test_block_refusals():
    f, x = F + "unfold", randn(2, 3, 5, 4)
    same_error(f, x, 9, phrase="calculated shape of the array of sliding blocks as (-3, -4)")
    same_error(f, x, 0, phrase="kernel size should be greater than zero")
    same_error(f, x, 2, 0, phrase="dilation should be greater than zero")
    same_error(f, x, 2, stride=0, phrase="stride should be greater than zero")
    same_error(f, x, 2, padding=-1, phrase="padding should be non-negative")
    same_error(f, randn(2, 0, 5, 4), 2, phrase="Expected 3D or 4D (batch mode) tensor")
    same_error(f, randn(2, 3, 4, 5, 3), 2, phrase="Expected 3D or 4D (batch mode) tensor")
    same_error(f, x, (1, 2, 3), phrase="It is expected kernel_size equals to 2, but got size 3")
    same_error(f, x.long(), 2, phrase="not implemented for")
    f = F + "fold"
    same_error(
        f,
        randn(2, 12, 11),
        (5, 4),
        2,
        phrase="calculated number of sliding blocks 4 * 3 = 12, but got input.size(2)=11",
    )
    same_error(f, randn(2, 11, 12), (5, 4), 2, phrase="to be divisible by the product of kernel_size")
    same_error(f, randn(12), (5, 4), 2, phrase="Expected 2D or 3D (batch mode) tensor")
    same_error(f, randn(2, 12, 12), (5, 4), 2, stride=0, phrase="stride should be greater than zero")
    same_error(f, randn(2, 12, 12), (1, 1), 2, phrase="sliding blocks 0 * 0 = 0")


def test_shuffles():
    for shape in [(8, 3, 2), (2, 8, 3, 3), (2, 2, 8, 1, 3), (0, 8, 2, 2)]:
        # PyTorch's derivative fails for an empty tensor
        same(F + "pixel_shuffle", randn(*shape, grad=shape[0] > 0), 2)
    for shape in [(2, 4, 6), (2, 2, 4, 4), (2, 1, 3, 2, 4)]:
        same(F + "pixel_unshuffle", randn(*shape), 2)
    for shape in [(2, 6, 3), (2, 6, 3, 3), (0, 6, 3, 3), (2, 6, 3, 2, 1)]:
        same(F + "channel_shuffle", randn(*shape), 3)
        same(F + "native_channel_shuffle", randn(*shape, grad=False), 2)
    same_module("PixelShuffle", (2,), {}, [randn(2, 8, 3, 3)])
    same_module("PixelUnshuffle", (2,), {}, [randn(2, 2, 4, 4)])
    same_module("ChannelShuffle", (2,), {}, [randn(2, 4, 3, 3)])


def test_shuffle_refusals():
    f = F + "pixel_shuffle"
    same_error(f, randn(7, 3, 3), 2, phrase="input.size(-3)=7 is not divisible by 4")
    same_error(f, randn(3, 3), 2, phrase="expects input to have at least 3 dimensions")
    same_error(f, randn(8, 3, 3), 0, phrase="expects a positive upscale_factor, but got 0")
    same_error(f, randn(8, 3, 3), 2.0, phrase="must be int, not float")
    f = F + "pixel_unshuffle"
    same_error(f, randn(2, 3, 4), 2, phrase="input.size(-2)=3 is not divisible by 2")
    same_error(f, randn(2, 4, 3), 2, phrase="input.size(-1)=3 is not divisible by 2")
    same_error(f, randn(4, 4), 2, phrase="expects input to have at least 3 dimensions")
    same_error(f, randn(1, 4, 4), -1, phrase="expects a positive downscale_factor")
    f = F + "channel_shuffle"
    same_error(f, randn(2, 4), 2, phrase="channel_shuffle expects input with > 2 dims")
    same_error(f, randn(2, 5, 3, 3), 2, phrase="Number of channels must be divisible by groups")
    same_error(f, randn(2, 4, 3, 3), 0, phrase="Number of groups to divide channels in must be positive")


# distances ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("p", [0.5, 1.0, 2.0, 3.0, float("inf")])
def test_distances(p):
    for a, b in [((4, 3), (4, 3)), ((3,), (3,)), ((4, 1, 3), (2, 3)), ((2, 5, 4, 3), (5, 1, 3))]:
        same(F + "pairwise_distance", randn(*a), randn(*b), p, second=p in (2.0, 3.0))
        same(F + "pairwise_distance", randn(*a), randn(*b), p, 1e-3, True)
    same(F + "pdist", randn(5, 3), p)
    same(F + "pdist", randn(1, 3, grad=False), p)  # PyTorch's backward crashes for no pairs
    same(F + "pdist", randn(0, 3, grad=False), p)
    equal = randn(4, 3).detach()
    equal[1] = equal[0]
    same(F + "pdist", equal.requires_grad_(), p)
    same_module("PairwiseDistance", (p,), {"keepdim": True}, [randn(4, 3), randn(4, 3)])


def test_pdist_of_other_kinds():
    same(F + "pdist", randn(5, 3), 0.0)
    same(F + "pdist", randn(3, 0, grad=False))
    same(F + "pdist", randn(3, 0, grad=False), float("inf"))
    same_error(F + "pdist", randn(3), phrase="pdist only supports 2D tensors")
    same_error(F + "pdist", randn(3, 2), -1.0, phrase="pdist only supports non-negative p values")
    same_error(F + "pdist", torch.ones(3, 2).long(), phrase="pdist only supports floating-point dtypes")


def test_cosines():
    for a, b, dim in [
        ((4, 3), (4, 3), 1),
        ((4, 3), (4, 3), 0),
        ((3,), (3,), 0),
        ((4, 1, 3), (2, 3), -1),
        ((4, 1), (4, 3), 1),
    ]:
        same(F + "cosine_similarity", randn(*a), randn(*b), dim, second=True)
    small = randn(4, 3).detach() * 1e-9
    same(F + "cosine_similarity", small.requires_grad_(), randn(4, 3), eps=1e-6)
    same(F + "cosine_similarity", torch.zeros(2, 3, requires_grad=True), torch.ones(2, 3))
    same(F + "cosine_similarity", torch.ones(2, 3).long(), torch.ones(2, 3))
    same_error(F + "cosine_similarity", torch.ones(2, 3).long(), torch.ones(2, 3).long(), phrase="to be floating point")
    same_error(F + "cosine_similarity", randn(3), randn(3), phrase="Dimension out of range")
    same_module("CosineSimilarity", (0, 1e-3), {}, [randn(4, 3), randn(4, 3)])


def test_normalize():
    for p, dim in [(2.0, 1), (1.0, 0), (3.0, -1), (float("inf"), 1), (2.0, (0, 1))]:
        same(F + "normalize", randn(4, 3), p, dim)
    same(F + "normalize", torch.zeros(2, 3, requires_grad=True))
    same(F + "normalize", randn(2, 3, dtype=torch.complex64))

    def into(package, x):
        out = package.empty(2, 3)
        return package.nn.functional.normalize(x, out=out), out

    same(into, torch.randn(2, 3))
    same_error(F + "normalize", torch.ones(2, 3).long(), phrase="floating point or complex")


def test_gumbel_softmax():
    for options in ({}, {"tau": 0.5}, {"hard": True}, {"hard": True, "dim": 0}):
        same(F + "gumbel_softmax", randn(4, 3), seed=5, **options)
        same(F + "gumbel_softmax", randn(4, 3, dtype=torch.float32), seed=6, **options)
    same_warning(F + "gumbel_softmax", randn(4, 3), eps=1e-3, phrase="`eps` parameter is deprecated")


@pytest.mark.parametrize("p", [0.0, 0.5, 1.0, 2.0, 3.0, float("inf")])
def test_all_distances(p):
    for a, b in [((3, 2), (4, 2)), ((2, 1, 3, 2), (4, 5, 2)), ((30, 3), (27, 3)), ((0, 2), (3, 2))]:
        for mode in ("use_mm_for_euclid_dist_if_necessary", "use_mm_for_euclid_dist", "donot_use_mm_for_euclid_dist"):
            same("cdist", randn(*a), randn(*b), p, mode)
    same("cdist", randn(4, 0, grad=False), randn(3, 0, grad=False), p)


def test_all_distances_refusals():
    same_error("cdist", randn(3), randn(3, 2), phrase="cdist only supports at least 2D tensors, X1 got: 1D")
    same_error("cdist", randn(3, 2), randn(3, 4), phrase="the same number of columns. X1: 2 X2: 4")
    same_error("cdist", randn(3, 2), randn(3, 2), -1.0, phrase="cdist only supports non-negative p values")
    same_error("cdist", torch.ones(3, 2).long(), randn(3, 2), phrase="cdist only supports floating-point dtypes, X1")
    same_error("cdist", randn(3, 2), randn(3, 2).float(), phrase="expected scalar type")
    same_error("cdist", randn(3, 2), randn(3, 2), 2.0, "x", phrase="x is not a valid value for compute_mode")
