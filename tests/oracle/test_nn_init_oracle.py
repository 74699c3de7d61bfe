"""The same seed must give PyTorch's numbers: every function of init, every layer's first parameters."""

import warnings

import numpy as np
import pytest

import rushlight
import rushlight.nn

torch = pytest.importorskip("torch", reason="the oracle is installed by .ci/run only")
pytestmark = [pytest.mark.oracle, pytest.mark.filterwarnings("ignore")]

FILLS = [
    ("uniform_", {}),
    ("uniform_", {"a": -3.0, "b": 0.5}),
    ("normal_", {}),
    ("normal_", {"mean": 2.0, "std": 0.1}),
    ("xavier_uniform_", {"gain": 1.7}),
    ("xavier_normal_", {}),
    ("kaiming_uniform_", {}),
    ("kaiming_uniform_", {"a": 0.3, "mode": "fan_out"}),
    ("kaiming_normal_", {"nonlinearity": "relu"}),
    ("sparse_", {"sparsity": 0.3}),
    ("eye_", {}),
    ("trunc_normal_", {}),
    ("trunc_normal_", {"std": 0.02}),
    ("trunc_normal_", {"mean": 1.9}),
    ("trunc_normal_", {"mean": 3.0}),
    ("trunc_normal_", {"a": -0.1, "b": 0.1}),
    ("trunc_normal_", {"a": 1.0, "b": 5.0}),
    ("trunc_normal_", {"mean": 0.5, "std": 2.0, "a": 0.0, "b": 1.0}),
]


def drawn(package, name, options, shape, dtype, seed, own):
    tensor = package.empty(*shape, dtype=getattr(package, dtype))
    generator = package.Generator().manual_seed(seed) if own else None
    package.manual_seed(seed + own)
    getattr(package.nn.init, name)(tensor, **options, **({"generator": generator} if own else {}))
    return np.asarray(tensor.detach().numpy()), np.asarray(package.rand(3).numpy())


@pytest.mark.parametrize("shape", [(1, 3), (3, 5), (17, 9)])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("name", "options"), FILLS)
def test_fills(name, options, dtype, shape):
    for seed in (0, 7):
        for own in (False, True):
            if own and name == "eye_":
                continue
            arguments = (name, options, shape, dtype, seed, own)
            mine, theirs = drawn(rushlight, *arguments), drawn(torch, *arguments)
            np.testing.assert_array_equal(mine[0], theirs[0])
            np.testing.assert_array_equal(mine[1], theirs[1], err_msg="the generator is elsewhere afterwards")


@pytest.mark.parametrize("shape", [(3, 5), (5, 3), (4, 2, 3)])
def test_orthogonal(shape):
    # LAPACK decides the last bits; the random numbers before it are equal.
    for seed in range(3):
        arguments = ("orthogonal_", {"gain": 1.3}, shape, "float64", seed, False)
        mine, theirs = drawn(rushlight, *arguments), drawn(torch, *arguments)
        np.testing.assert_allclose(mine[0], theirs[0], rtol=1e-10, atol=1e-12)
        np.testing.assert_array_equal(mine[1], theirs[1])


@pytest.mark.parametrize(("shape", "groups"), [((4, 2, 3), 1), ((4, 2, 3), 2), ((6, 2, 3, 4), 3), ((2, 2, 3, 3, 1), 1)])
def test_dirac(shape, groups):
    mine = rushlight.nn.init.dirac_(rushlight.ones(*shape), groups)
    theirs = torch.nn.init.dirac_(torch.ones(*shape), groups)
    np.testing.assert_array_equal(mine.numpy(), theirs.numpy())


LAYERS = [
    "Linear(3, 4)",
    "Linear(3, 4, bias=False)",
    "Linear(30, 40)",
    "Bilinear(2, 3, 4)",
    "Conv1d(2, 4, 3)",
    "Conv2d(4, 6, (3, 5), groups=2)",
    "Conv3d(1, 2, 2, bias=False)",
    "ConvTranspose1d(2, 4, 3)",
    "ConvTranspose2d(4, 6, 3, groups=2)",
    "ConvTranspose3d(1, 2, 2)",
    "BatchNorm2d(3)",
    "GroupNorm(2, 4)",
    "LayerNorm(4)",
    "RMSNorm(4)",
    "PReLU(3)",
    "Sequential(nn.Linear(2, 3), nn.Conv2d(1, 2, 3), nn.BatchNorm1d(2), nn.Linear(3, 2))",
]


@pytest.mark.parametrize("call", LAYERS)
def test_first_parameters_of_layers(call):
    states = []
    for package in (rushlight, torch):
        package.manual_seed(3)
        module = eval("nn." + call, {"nn": package.nn})
        states.append(
            [(k, np.asarray(v.numpy())) for k, v in module.state_dict().items()] + [("next", package.rand(3).numpy())]
        )
    for (mine, a), (theirs, b) in zip(*states, strict=True):
        assert mine == theirs
        np.testing.assert_array_equal(a, b, err_msg=mine)


def test_lazy_layers_draw_when_they_see_their_input():
    results = []
    for package in (rushlight, torch):
        package.manual_seed(3)
        net = package.nn.Sequential(package.nn.LazyConv2d(4, 3), package.nn.Flatten(), package.nn.LazyLinear(2))
        net(package.ones(1, 3, 5, 5))
        results.append([v.numpy() for v in net.state_dict().values()])
    for mine, theirs in zip(*results, strict=True):
        np.testing.assert_array_equal(mine, theirs)


def test_old_names_and_warnings():
    for package in (rushlight, torch):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            package.nn.init.kaiming_normal(package.ones(2, 2))
            package.nn.init.kaiming_normal_(package.ones(0, 2))
        assert [(w.category, str(w.message)) for w in caught] == [
            (FutureWarning, "`nn.init.kaiming_normal` is now deprecated in favor of `nn.init.kaiming_normal_`."),
            (UserWarning, "Initializing zero-element tensors is a no-op"),
        ]
