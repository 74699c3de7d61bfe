"""Normalisation layers against their formulas, and their running statistics."""

import pytest

import rushlight as torch
from rushlight import nn
from rushlight.nn import functional as F

BATCH = [
    (nn.BatchNorm1d, (5, 3)),
    (nn.BatchNorm1d, (4, 3, 2)),
    (nn.BatchNorm2d, (2, 3, 4, 5)),
    (nn.BatchNorm3d, (2, 3, 2, 3, 2)),
]


def random(*shape):
    return torch.randn(*shape, dtype=torch.float64) * 2 + 1


def by_channel(tensor, x, dim=1):
    shape = [1] * x.dim()
    shape[dim] = -1
    return tensor.reshape(shape)


def shuffled(layer):
    """The layer in float64, with an affine map that is not the identity."""
    layer.double()
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.copy_(random(*parameter.shape))
    return layer


def normalised(x, dims, eps):
    mean = x.mean(dims, keepdim=True)
    return (x - mean) / ((x - mean) ** 2).mean(dims, keepdim=True).add(eps).sqrt()


# Batches ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("kind", "shape"), BATCH)
@pytest.mark.parametrize("options", [{}, {"affine": False}, {"bias": False}, {"eps": 0.1}])
def test_batch_norm_in_training(kind, shape, options):
    layer = shuffled(kind(3, **options))
    x = random(*shape)
    dims = [d for d in range(x.dim()) if d != 1]
    expected = normalised(x, dims, layer.eps)
    if layer.weight is not None:
        expected = expected * by_channel(layer.weight, x)
    if layer.bias is not None:
        expected = expected + by_channel(layer.bias, x)
    assert torch.allclose(layer(x), expected)
    assert torch.allclose(layer.running_mean, 0.1 * x.mean(dims))
    assert torch.allclose(layer.running_var, 0.9 + 0.1 * x.var(dims, unbiased=True))
    assert layer.num_batches_tracked.item() == 1


@pytest.mark.parametrize(("kind", "shape"), BATCH)
def test_batch_norm_in_evaluation_uses_the_running_statistics(kind, shape):
    layer = shuffled(kind(3)).eval()
    layer.running_mean.copy_(random(3))
    layer.running_var.copy_(random(3).abs())
    x = random(*shape)
    scaled = (x - by_channel(layer.running_mean, x)) / (by_channel(layer.running_var, x) + layer.eps).sqrt()
    assert torch.allclose(layer(x), scaled * by_channel(layer.weight, x) + by_channel(layer.bias, x))
    assert layer.num_batches_tracked.item() == 0


def test_without_tracking_evaluation_normalises_by_the_batch():
    layer = nn.BatchNorm1d(3, track_running_stats=False).double().eval()
    x = random(6, 3)
    assert torch.allclose(layer(x), normalised(x, [0], layer.eps))
    assert list(layer.state_dict()) == ["weight", "bias"]


def test_without_a_momentum_statistics_are_averages_of_all_batches():
    layer = nn.BatchNorm1d(3, momentum=None).double()
    batches = [random(6, 3) for _ in range(3)]
    for batch in batches:
        layer(batch)
    assert torch.allclose(layer.running_mean, torch.stack([b.mean(0) for b in batches]).mean(0))


def test_statistics_are_reset():
    layer = nn.BatchNorm1d(3)
    layer(torch.rand(4, 3))
    layer.reset_running_stats()
    assert layer.running_mean.tolist() == [0.0] * 3 and layer.running_var.tolist() == [1.0] * 3
    assert layer.num_batches_tracked.item() == 0


def test_gradients_of_batch_norm_sum_to_nothing():
    layer = nn.BatchNorm1d(3).double()
    x = random(5, 3).requires_grad_()
    (layer(x) * random(5, 3)).sum().backward()
    assert torch.allclose(x.grad.sum(0), torch.zeros(3, dtype=torch.float64), atol=1e-12)
    assert torch.allclose((x.grad * x.detach()).sum(0), torch.zeros(3, dtype=torch.float64), atol=1e-4)


@pytest.mark.parametrize(
    ("layer", "shape", "text"),
    [
        ("nn.BatchNorm1d(3)", (3,), r"expected 2D or 3D input \(got 1D input\)"),
        ("nn.BatchNorm2d(3)", (3, 3, 3), r"expected 4D input \(got 3D input\)"),
        ("nn.BatchNorm3d(3)", (3, 3, 3), r"expected 5D input \(got 3D input\)"),
        ("nn.BatchNorm1d(3)", (1, 3), r"Expected more than 1 value per channel when training, got input size"),
        ("nn.SyncBatchNorm(3)", (3,), r"expected at least 2D input \(got 1D input\)"),
        ("nn.SyncBatchNorm(0)", (3, 0), r"number of input channels should be non-zero"),
        ("nn.InstanceNorm1d(3)", (3,), r"expected 2D or 3D input \(got 1D input\)"),
        ("nn.InstanceNorm2d(3)", (2, 3), r"expected 3D or 4D input \(got 2D input\)"),
        ("nn.InstanceNorm1d(3)", (2, 3, 1), r"Expected more than 1 spatial element when training"),
        ("nn.InstanceNorm1d(3, affine=True)", (2, 4, 5), r"size at dim=1 to match num_features \(3\), but got: 4"),
        ("nn.InstanceNorm1d(3, affine=True)", (4, 5), r"size at dim=0 to match num_features \(3\), but got: 4"),
    ],
)
def test_inputs_that_are_refused(layer, shape, text):
    with pytest.raises(ValueError, match=text):
        eval(layer)(torch.rand(*shape))


def test_conversion_to_synchronised_batch_norm():
    net = nn.Sequential(nn.BatchNorm2d(3, bias=False), nn.Sequential(nn.BatchNorm1d(2, affine=False), nn.ReLU()))
    net.eval()
    weight = net[0].weight
    sync = nn.SyncBatchNorm.convert_sync_batchnorm(net)
    assert type(sync[0]) is type(sync[1][0]) is nn.SyncBatchNorm and type(sync[1][1]) is nn.ReLU
    assert sync[0].weight is weight and sync[0].bias is None and not sync[0].training
    with pytest.raises(NotImplementedError, match="process_group"):
        nn.SyncBatchNorm(3, process_group=object())


# Instances --------------------------------------------------------------------------------------------------------

INSTANCE = [(nn.InstanceNorm1d, (4, 3, 5)), (nn.InstanceNorm2d, (2, 3, 4, 5)), (nn.InstanceNorm3d, (2, 3, 2, 3, 2))]


@pytest.mark.parametrize(("kind", "shape"), INSTANCE)
@pytest.mark.parametrize("affine", [True, False])
def test_instance_norm(kind, shape, affine):
    layer = shuffled(kind(3, affine=affine))
    x = random(*shape)
    expected = normalised(x, list(range(2, x.dim())), layer.eps)
    if affine:
        expected = expected * by_channel(layer.weight, x) + by_channel(layer.bias, x)
    assert torch.allclose(layer(x), expected)
    assert torch.allclose(layer.eval()(x), expected)
    assert torch.allclose(layer(x[0]), expected[0])
    assert torch.allclose(layer(x.transpose(-1, -2).contiguous().transpose(-1, -2)), expected)


def test_running_statistics_of_instances_are_averages_over_the_samples():
    layer = nn.InstanceNorm1d(3, track_running_stats=True).double()
    x = random(4, 3, 6)
    layer(x)
    assert torch.allclose(layer.running_mean, 0.1 * x.mean(2).mean(0))
    assert torch.allclose(layer.running_var, 0.9 + 0.1 * x.var(2, unbiased=True).mean(0))
    mean, var = layer.running_mean.clone(), layer.running_var.clone()
    expected = (x - by_channel(mean, x)) / (by_channel(var, x) + layer.eps).sqrt()
    assert torch.allclose(layer.eval()(x), expected)
    assert torch.equal(layer.running_mean, mean)


def test_instance_norm_of_other_channels_warns_without_an_affine_map():
    with pytest.warns(UserWarning, match="size at dim=1 does not match num_features"):
        nn.InstanceNorm1d(3)(torch.rand(2, 4, 5))


def test_running_statistics_of_early_versions_are_reported():
    with pytest.raises(RuntimeError, match=r'running stats buffer\(s\) "running_mean" and "running_var" for Instance'):
        nn.InstanceNorm1d(2).load_state_dict({"running_mean": torch.ones(2), "running_var": torch.ones(2)})


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ({"running_mean": torch.zeros(3)}, ValueError, "must either both be None or neither"),
        ({"use_input_stats": False}, RuntimeError, "to be defined when use_input_stats is false"),
    ],
)
def test_statistics_that_instance_norm_refuses(arguments, error, text):
    with pytest.raises(error, match=text):
        F.instance_norm(torch.rand(2, 3, 4), **arguments)


# Layers, groups, neighbours ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [{}, {"bias": False}, {"elementwise_affine": False}, {"eps": 0.1}])
@pytest.mark.parametrize("size", [5, (5,), [4, 5], (3, 4, 5)])
def test_layer_norm(size, options):
    layer = shuffled(nn.LayerNorm(size, **options))
    x = random(3, 4, 5)
    expected = normalised(x, [-1 - d for d in range(len(layer.normalized_shape))], layer.eps)
    for name, combine in (("weight", torch.mul), ("bias", torch.add)):
        if getattr(layer, name) is not None:
            expected = combine(expected, getattr(layer, name))
    assert torch.allclose(layer(x), expected)


@pytest.mark.parametrize("eps", [None, 0.1])
def test_rms_norm(eps):
    layer = shuffled(nn.RMSNorm((4, 5), eps=eps))
    x = random(3, 4, 5)
    floor = torch.finfo(torch.float64).eps if eps is None else eps
    expected = x / (x**2).mean((-1, -2), keepdim=True).add(floor).sqrt() * layer.weight
    assert torch.allclose(layer(x), expected)


@pytest.mark.parametrize("shape", [(2, 4), (2, 4, 3), (2, 4, 3, 5)])
@pytest.mark.parametrize("groups", [1, 2])
def test_group_norm(shape, groups):
    layer = shuffled(nn.GroupNorm(groups, 4))
    x = random(*shape)
    parts = normalised(x.reshape(2, groups, -1), [2], layer.eps).reshape(shape)
    assert torch.allclose(layer(x), parts * by_channel(layer.weight, x) + by_channel(layer.bias, x))


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: nn.GroupNorm(2, 3), ValueError, r"num_channels \(3\) must be divisible by num_groups \(2\)"),
        (lambda: F.group_norm(torch.ones(2), 1), RuntimeError, "Expected at least 2 dimensions .* received 1"),
        (lambda: F.group_norm(torch.ones(1, 2), 2), ValueError, "Expected more than 1 value per channel"),
        (lambda: F.local_response_norm(torch.ones(2, 3), 2), ValueError, r"input \(got 2 dimensions\)"),
        (lambda: nn.CrossMapLRN2d(2)(torch.ones(2, 3, 4)), ValueError, "Expected input to be 4D, got 3D instead"),
    ],
)
def test_what_is_refused(call, error, text):
    with pytest.raises(error, match=text):
        call()


@pytest.mark.parametrize("shape", [(2, 7, 3), (2, 7, 3, 4), (1, 7, 2, 2, 2)])
@pytest.mark.parametrize("size", [1, 2, 3, 5])
def test_local_response_norm(shape, size):
    x = random(*shape)
    layer = nn.LocalResponseNorm(size, alpha=0.3, beta=0.6, k=1.2)
    squares = x**2
    means = torch.zeros_like(x)
    for channel in range(7):
        start = max(0, channel - size // 2)
        means[:, channel] = squares[:, start : channel + (size - 1) // 2 + 1].sum(1) / size
    assert torch.allclose(layer(x), x / (1.2 + 0.3 * means) ** 0.6)


def test_cross_map_norm_sums_over_a_window_of_channels():
    x = torch.full((1, 6, 1, 1), 1.0, dtype=torch.float64)
    result = nn.CrossMapLRN2d(3, alpha=3.0, beta=1.0, k=0.0)(x)
    # PyTorch keeps the first channel's square in every later sum.
    assert torch.allclose(1 / result.flatten(), torch.tensor([2.0, 3, 4, 4, 4, 3], dtype=torch.float64))
