"""Resizing and sampling by properties that tell them; folding and shuffles by their definition."""

import itertools

import numpy as np
import pytest

import rushlight as torch
import rushlight.nn.functional as F
from rushlight import nn
from rushlight.autograd import gradcheck, gradgradcheck

SMOOTH = [(1, "linear"), (2, "bilinear"), (2, "bicubic"), (3, "trilinear")]
ALL = [*SMOOTH, *((n, m) for n in (1, 2, 3) for m in ("nearest", "nearest-exact", "area"))]


def draw(*shape, seed=0, grad=False):
    return torch.tensor(np.random.default_rng(seed).normal(size=shape), requires_grad=grad)


def close(found, expected, **tolerance):
    np.testing.assert_allclose(found.detach().numpy(), expected, **({"rtol": 1e-9, "atol": 1e-12} | tolerance))


@pytest.mark.parametrize("dims,mode", ALL)
def test_constants_stay(dims, mode):
    x = torch.full((2, 3, *[5] * dims), 1.7, dtype=torch.float64)
    for size in (1, 3, 5, 8, 11):
        y = F.interpolate(x, size=size, mode=mode)
        assert y.shape == (2, 3, *[size] * dims)
        close(y, np.full(y.shape, 1.7))


@pytest.mark.parametrize("dims,mode", SMOOTH)
def test_aligned_corners_keep_ramps(dims, mode):
    ramp = torch.arange(5.0, dtype=torch.float64).reshape(1, 1, *[1] * (dims - 1), 5).expand(1, 1, *[4] * (dims - 1), 5)
    y = F.interpolate(ramp, size=(*[7] * (dims - 1), 9), mode=mode, align_corners=True)
    if mode == "bicubic":  # the border repeats itself for the outer neighbours
        y, expected = y[..., 2:7], np.linspace(0, 4, 9)[2:7]
    else:
        expected = np.linspace(0, 4, 9)
    close(y, np.broadcast_to(expected, y.shape))


@pytest.mark.parametrize("dims,mode", ALL)
def test_same_size_is_the_same(dims, mode):
    x = draw(2, 3, *[4] * dims)
    close(F.interpolate(x, size=4, mode=mode), x.numpy())


def test_linear_by_hand():
    x = torch.tensor([[[0.0, 10.0, 20.0]]])
    assert F.interpolate(x, scale_factor=2, mode="linear").flatten().tolist() == [0, 2.5, 7.5, 12.5, 17.5, 20]
    assert F.interpolate(x, size=5, mode="linear", align_corners=True).flatten().tolist() == [0, 5, 10, 15, 20]
    assert F.interpolate(x, scale_factor=2).flatten().tolist() == [0, 0, 10, 10, 20, 20]
    assert F.interpolate(x, size=2, mode="nearest-exact").flatten().tolist() == [0, 20]
    assert F.interpolate(x, size=2).flatten().tolist() == [0, 10]


def test_axes_are_independent():
    x = draw(1, 2, 5, 6)
    both = F.interpolate(x, size=(7, 4), mode="bicubic")
    first = F.interpolate(F.interpolate(x, size=(7, 6), mode="bicubic"), size=(7, 4), mode="bicubic")
    close(both, first.numpy())


def test_factor_or_sizes_give_the_step():
    x = torch.arange(10.0, dtype=torch.float64).reshape(1, 1, 10)
    given = F.interpolate(x, scale_factor=0.35, mode="linear")  # 3 elements, 1 / 0.35 apart
    close(given.flatten(), (np.arange(3) + 0.5) / 0.35 - 0.5)
    derived = F.interpolate(x, scale_factor=0.35, mode="linear", recompute_scale_factor=True)
    close(derived.flatten(), (np.arange(3) + 0.5) * 10 / 3 - 0.5)


def test_antialias_averages_what_it_skips():
    x = torch.zeros(1, 1, 1, 16, dtype=torch.float64)
    x[..., ::2] = 1.0
    plain = F.interpolate(x, size=(1, 4), mode="bilinear")
    smooth = F.interpolate(x, size=(1, 4), mode="bilinear", antialias=True)
    assert (smooth - 0.5).abs().max() < 0.1
    assert plain.shape == smooth.shape
    for mode in ("bilinear", "bicubic", "lanczos"):
        ones = F.interpolate(torch.ones(1, 1, 9, 7), size=(4, 3), mode=mode, antialias=True)
        close(ones, np.ones((1, 1, 4, 3)), rtol=1e-5)


def test_nan_stays_where_it_is():
    x = torch.zeros(1, 1, 8)
    x[0, 0, 0] = float("nan")
    y = F.interpolate(x, size=16, mode="linear")
    assert y[0, 0, 3:].isfinite().all()
    assert y[0, 0, 0].isnan()


@pytest.mark.parametrize("dims,mode", ALL)
def test_derivatives(dims, mode):
    x = draw(1, 2, *[3] * dims, grad=True)
    for size in (2, 4):
        assert gradcheck(lambda x: F.interpolate(x, size=size, mode=mode), x)
    if mode == "bilinear":
        assert gradcheck(lambda x: F.interpolate(x, size=2, mode=mode, antialias=True), x)
        assert gradgradcheck(lambda x: F.interpolate(x, size=4, mode=mode) ** 2, x)


def test_bytes_are_rounded():
    x = torch.tensor([[[[0, 255]]]], dtype=torch.uint8)
    y = F.interpolate(x, size=(1, 4), mode="bilinear")
    assert y.dtype is torch.uint8
    assert y.flatten().tolist() == [0, 64, 191, 255]
    assert F.interpolate(x, size=(1, 4), mode="bicubic").max().item() == 255


def test_resize_refusals():
    x = draw(1, 2, 3, 3)
    for options, kind, phrase in [
        ({}, ValueError, "either size or scale_factor should be defined"),
        ({"size": 2, "scale_factor": 2.0}, ValueError, "only one of size or scale_factor"),
        ({"size": (2,)}, ValueError, r"spatial dimensions of \[3, 3\] and output size of \(2,\)"),
        ({"size": 2, "align_corners": True}, ValueError, "align_corners option can only be set"),
        ({"size": 2, "mode": "linear"}, NotImplementedError, "Got 4D input, but linear mode needs 3D input"),
        ({"size": 2, "mode": "cubic"}, NotImplementedError, r"\(got cubic\)"),
        ({"size": 0}, RuntimeError, r"input \(H: 3, W: 3\) output \(H: 0, W: 0\)"),
        ({"size": 2, "mode": "lanczos"}, ValueError, "Lanczos mode requires antialias=True"),
        ({"size": 2, "antialias": True}, ValueError, "Anti-alias option is restricted"),
    ]:
        with pytest.raises(kind, match=phrase):
            F.interpolate(x, **options)
    with pytest.raises(NotImplementedError, match="not implemented for"):
        F.interpolate(x.long(), size=2)
    with pytest.warns(UserWarning, match="`nn.functional.upsample` is deprecated"):
        F.upsample(x, 2)


def test_resize_modules():
    x = draw(1, 2, 3, 3)
    close(nn.Upsample(scale_factor=2, mode="bilinear")(x), F.interpolate(x, scale_factor=2, mode="bilinear").numpy())
    close(nn.UpsamplingBilinear2d(size=5)(x), F.interpolate(x, size=5, mode="bilinear", align_corners=True).numpy())
    close(nn.UpsamplingNearest2d(scale_factor=2)(x), F.interpolate(x, scale_factor=2).numpy())
    assert repr(nn.Upsample(scale_factor=(2, 3))) == "Upsample(scale_factor=(2.0, 3.0), mode='nearest')"


# grids ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("corners", [False, True])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("mode", ["bilinear", "nearest", "bicubic"])
def test_identity_grid(mode, padding, corners):
    x = draw(2, 3, 4, 5)
    theta = torch.tensor([[[1.0, 0, 0], [0, 1, 0]]] * 2, dtype=torch.float64)
    grid = F.affine_grid(theta, (2, 3, 4, 5), corners)
    close(F.grid_sample(x, grid, mode, padding, corners), x.numpy(), atol=1e-9)
    flip = F.affine_grid(theta * torch.tensor([-1.0, 1, 1]).double(), (2, 3, 4, 5), corners)
    close(F.grid_sample(x, flip, mode, padding, corners), x.numpy()[..., ::-1], atol=1e-9)


def test_identity_grid_of_a_volume():
    x = draw(1, 2, 3, 4, 5)
    theta = torch.eye(3, 4, dtype=torch.float64)[None]
    for corners, mode in itertools.product([False, True], ["bilinear", "nearest"]):
        grid = F.affine_grid(theta, x.shape, corners)
        close(F.grid_sample(x, grid, mode, align_corners=corners), x.numpy(), atol=1e-9)


def test_outside_the_image():
    x = torch.tensor([[[[1.0, 2.0, 3.0]]]])
    places = torch.tensor([[[[-3.0, 0.0], [3.0, 0.0], [-5 / 3, 0.0]]]])
    sample = lambda padding: F.grid_sample(x, places, "bilinear", padding, False).flatten().tolist()  # noqa: E731
    assert sample("zeros") == [0, 0, 0]
    assert sample("border") == [1, 3, 1]
    assert sample("reflection") == pytest.approx([3, 1, 1.5], abs=1e-5)


def test_places_that_are_no_numbers_do_not_crash():
    x = draw(1, 1, 3, 3).float()
    places = torch.tensor([float("nan"), float("inf"), -float("inf"), 1e30, -1e30, 0.0]).reshape(1, 1, 3, 2)
    for mode, padding in itertools.product(["bilinear", "nearest", "bicubic"], ["zeros", "border", "reflection"]):
        assert F.grid_sample(x, places, mode, padding, False).shape == (1, 1, 1, 3)


@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("mode", ["bilinear", "bicubic", "nearest"])
def test_grid_derivatives(mode, padding):
    x = draw(1, 2, 3, 4, grad=True)
    grid = torch.tensor(np.random.default_rng(1).uniform(-1.4, 1.4, (1, 2, 3, 2)), requires_grad=True)
    assert gradcheck(lambda x, g: F.grid_sample(x, g, mode, padding, False), (x, grid))
    if mode == "bilinear":
        assert gradcheck(lambda t: F.affine_grid(t, (2, 1, 3, 2), False), draw(2, 2, 3, grad=True))


def test_grid_refusals():
    x, grid = draw(2, 3, 4, 5), draw(2, 6, 7, 2)
    for args, kind, phrase in [
        ((x, grid, "linear"), ValueError, "expected mode to be"),
        ((x, grid, "bilinear", "wrap"), ValueError, "expected padding_mode to be"),
        ((x, grid[:1]), RuntimeError, "same batch size"),
        ((x, grid[..., :1]), RuntimeError, "size 2 in last dimension"),
        ((x, grid.float()), RuntimeError, "dtype"),
        ((x[:, :, :0], grid), RuntimeError, "dimension 2 being empty"),
    ]:
        with pytest.raises(kind, match=phrase):
            F.grid_sample(*args, align_corners=False)
    with pytest.warns(UserWarning, match="align_corners=False"):
        F.grid_sample(x, grid)
    with pytest.raises(ValueError, match="Nx2x3"):
        F.affine_grid(draw(2, 3, 4), (2, 3, 4, 5), False)


# blocks ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "kernel,dilation,padding,stride", list(itertools.product([1, (2, 3)], [1, (2, 1)], [0, (1, 2)], [1, (3, 2)]))
)
def test_blocks_by_their_definition(kernel, dilation, padding, stride):
    x = draw(2, 3, 7, 8)
    (kh, kw), (dh, dw), (ph, pw), (sh, sw) = (
        (v, v) if isinstance(v, int) else v for v in (kernel, dilation, padding, stride)
    )
    padded = np.pad(x.numpy(), ((0, 0), (0, 0), (ph, ph), (pw, pw)))
    columns = []
    for top in range(0, padded.shape[2] - dh * (kh - 1), sh):
        for left in range(0, padded.shape[3] - dw * (kw - 1), sw):
            block = padded[:, :, top : top + dh * (kh - 1) + 1 : dh, left : left + dw * (kw - 1) + 1 : dw]
            columns.append(block.reshape(2, -1))
    y = F.unfold(x, kernel, dilation, padding, stride)
    close(y, np.stack(columns, 2))
    # fold is the transpose
    z = draw(*y.shape, seed=1)
    folded = F.fold(z, (7, 8), kernel, dilation, padding, stride)
    assert (folded * x).sum().item() == pytest.approx((z * y).sum().item())


def test_block_derivatives_and_refusals():
    assert gradcheck(lambda x: F.unfold(x, 2, padding=1), draw(1, 2, 3, 3, grad=True))
    assert gradcheck(lambda x: F.fold(x, 3, 2), draw(1, 4, 4, grad=True))
    with pytest.raises(RuntimeError, match=r"sliding blocks as \(0, 0\)"):
        F.unfold(draw(1, 2, 3, 3), 4)
    with pytest.raises(RuntimeError, match=r"sliding blocks 2 \* 2 = 4, but got input.size\(2\)=5"):
        F.fold(draw(1, 4, 5), 3, 2)
    assert repr(nn.Fold(4, 2)) == "Fold(output_size=4, kernel_size=2, dilation=1, padding=0, stride=1)"
    x = draw(1, 2, 4, 4)
    close(nn.Fold(4, 2, stride=2)(nn.Unfold(2, stride=2)(x)), x.numpy())


def test_shuffles():
    x = torch.arange(8).reshape(1, 4, 1, 2)
    assert F.pixel_shuffle(x, 2).tolist() == [[[[0, 2, 1, 3], [4, 6, 5, 7]]]]
    assert torch.equal(F.pixel_unshuffle(F.pixel_shuffle(x, 2), 2), x)
    assert F.channel_shuffle(torch.arange(6).reshape(1, 6, 1), 2).flatten().tolist() == [0, 3, 1, 4, 2, 5]
    y = draw(2, 3, 8, 4, 4)
    assert torch.equal(nn.PixelUnshuffle(2)(nn.PixelShuffle(2)(y)), y)
    for call, phrase in [
        (lambda: F.pixel_shuffle(x[:, :3], 2), "size\\(-3\\)=3 is not divisible by 4"),
        (lambda: F.pixel_unshuffle(x, 2), "height to be divisible"),
        (lambda: F.pixel_shuffle(x, 0), "positive upscale_factor"),
        (lambda: F.channel_shuffle(x, 3), "Got 4 channels and 3 groups"),
    ]:
        with pytest.raises(RuntimeError, match=phrase):
            call()


def test_distances():
    a, b = draw(4, 3), draw(4, 3, seed=1)
    close(F.pairwise_distance(a, b), np.linalg.norm(a.numpy() - b.numpy() + 1e-6, axis=1))
    cosine = (a.numpy() * b.numpy()).sum(1) / np.linalg.norm(a.numpy(), axis=1) / np.linalg.norm(b.numpy(), axis=1)
    close(F.cosine_similarity(a, b), cosine)
    pairs = list(itertools.combinations(a.numpy(), 2))
    for p in (1.0, 2.0, 3.0, float("inf")):
        close(F.pdist(a, p), [np.linalg.norm(u - v, p) for u, v in pairs])
    close(F.pdist(a, 0.0), [np.count_nonzero(u - v) for u, v in pairs])
    close(F.normalize(a, dim=0).norm(dim=0), np.ones(3))
    assert F.normalize(torch.zeros(1, 3)).tolist() == [[0, 0, 0]]
    assert gradcheck(F.cosine_similarity, (draw(2, 3, grad=True), draw(2, 3, seed=1, grad=True)))
    assert gradcheck(F.pdist, draw(4, 2, grad=True))
    equal = torch.zeros(2, 3, requires_grad=True)
    F.pdist(equal).sum().backward()
    assert equal.grad.abs().sum().item() == 0
    assert repr(nn.CosineSimilarity(0)) == "CosineSimilarity()"


def test_gumbel_softmax():
    torch.manual_seed(0)
    logits = torch.log(torch.tensor([0.2, 0.3, 0.5])).expand(4000, 3).clone().requires_grad_()
    soft = F.gumbel_softmax(logits, tau=0.7)
    close(soft.sum(1), np.ones(4000), rtol=1e-5)
    hard = F.gumbel_softmax(logits, hard=True)
    assert set(hard.detach().flatten().tolist()) == {0.0, 1.0}
    np.testing.assert_allclose(hard.mean(0).detach().numpy(), [0.2, 0.3, 0.5], atol=0.05)
    (hard * torch.arange(3.0)).sum().backward()
    assert logits.grad.abs().sum().item() > 0


@pytest.mark.parametrize("p", [0.0, 1.0, 2.0, 3.0, float("inf")])
def test_all_distances(p):
    for rows in (3, 30):
        a, b = draw(2, rows, 3), draw(4, 3, seed=1)
        a[0, 0] = b[0]
        expected = [[[np.linalg.norm(u - v, p) for v in b.numpy()] for u in part] for part in a.numpy()]
        close(torch.cdist(a, b, p), expected, atol=1e-7)
    leaf = b.clone().requires_grad_()
    torch.cdist(leaf, b, p).sum().backward()
    assert bool(leaf.grad.isfinite().all())
    assert gradcheck(lambda a, b: torch.cdist(a, b, p), (draw(3, 2, grad=True), draw(2, 2, seed=1, grad=True)))
    with pytest.raises(RuntimeError, match="X1: 3 X2: 2"):
        torch.cdist(a, b[:, :2])
