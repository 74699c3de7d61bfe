"""Functions of nn against PyTorch's: results, gradients, random numbers, warnings and errors."""

import re
import warnings

import numpy as np
import pytest

import rushlight
import rushlight.nn.functional

torch = pytest.importorskip("torch", reason="the oracle is installed by .ci/run only")
pytestmark = [pytest.mark.oracle, pytest.mark.filterwarnings("ignore")]

TOLERANCE = {"float64": 1e-9, "float32": 2e-5}
ROUNDED = ("F.celu(", "F.hardsigmoid(")  # PyTorch rounds their constants to float32 whatever the type

# x(...): normal numbers that require grad; u(...): the same from (0, 1); i(n, ...): integers below n.
CALLS = """
F.threshold(x(3, 4), 0.1, 2.0)
F.relu(x(3, 4))
F.relu6(x(3, 4) * 4)
F.glu(x(3, 4))
F.glu(x(4, 2, 3), 0)
F.hardtanh(x(3, 4), -0.5, 0.7)
F.elu(x(3, 4), 0.7)
F.selu(x(3, 4))
F.celu(x(3, 4), 0.7)
F.leaky_relu(x(3, 4), 0.3)
F.rrelu(x(3, 4), 0.1, 0.4)
F.prelu(x(2, 3, 4), u(3))
F.prelu(x(2, 3, 4), u(1))
F.gelu(x(3, 4))
F.gelu(x(3, 4), approximate="tanh")
F.logsigmoid(x(3, 4) * 9)
F.hardshrink(x(3, 4), 0.6)
F.softshrink(x(3, 4), 0.6)
F.tanhshrink(x(3, 4))
F.softsign(x(3, 4))
F.softplus(x(3, 4), 2.0, 1.0)
F.tanh(x(3, 4))
F.sigmoid(x(3, 4))
F.hardsigmoid(x(3, 4) * 4)
F.hardswish(x(3, 4) * 4)
F.silu(x(3, 4))
F.mish(x(3, 4))
F.softmax(x(3, 4), 1)
F.softmax(x(3, 4))
F.softmin(x(2, 3, 4), 0)
F.log_softmax(x(2, 3, 4), -1, dtype=p.float64)
F.relu(x(3, 4) * 1, inplace=True)
F.elu(x(3, 4) * 1, 0.7, True)
F.leaky_relu(x(3, 4) * 1, 0.3, True)
F.hardtanh(x(3, 4) * 1, -0.5, 0.7, True)
F.threshold(x(3, 4) * 1, 0.1, 2.0, True)
F.linear(x(2, 3), x(4, 3), x(4))
F.linear(x(2, 5, 3), x(4, 3))
F.linear(x(3), x(4, 3), x(4))
F.linear(x(3), x(3))
F.bilinear(x(2, 5, 3), x(2, 5, 4), x(6, 3, 4), x(6))
F.bilinear(x(3), x(4), x(6, 3, 4))
F.conv1d(x(2, 4, 9), x(6, 2, 3), x(6), 2, 1, 1, 2)
F.conv1d(x(4, 9), x(6, 4, 5), None, padding="same")
F.conv2d(x(2, 3, 7, 6), x(4, 3, 3, 2), x(4), (2, 1), (1, 2), (1, 2))
F.conv2d(x(1, 4, 5, 5), x(4, 1, 3, 3), padding="valid", groups=4)
F.conv3d(x(1, 2, 4, 5, 4), x(3, 2, 2, 3, 2), x(3), padding=1)
F.conv_transpose1d(x(2, 4, 5), x(4, 3, 3), x(6), 2, 1, 1, 2)
F.conv_transpose2d(x(2, 3, 4, 5), x(3, 4, 3, 2), x(4), (2, 1), 1, (1, 0), 1, (1, 2))
F.conv_transpose3d(x(1, 2, 3, 2, 3), x(2, 2, 2, 2, 2), stride=2)
F.conv_tbc(x(5, 2, 3), x(2, 3, 4), x(4), 1)
F.max_pool1d(x(2, 3, 9), 3, 2, 1)
F.max_pool1d(x(3, 9), 3, 2, 1, 1, True, True)
F.max_pool2d(x(2, 3, 6, 7), (2, 3))
F.max_pool2d(x(3, 6, 7), 2, 1, 1, 2, True)
F.max_pool2d_with_indices(x(2, 3, 6, 7), 3, 2, 1)
F.max_pool3d(x(1, 2, 4, 5, 6), 2, return_indices=True)
F.avg_pool1d(x(2, 3, 9), 3, 2, 1)
F.avg_pool2d(x(2, 3, 6, 7), 3, 2, 1, True, False)
F.avg_pool2d(x(3, 6, 7), 2, divisor_override=3)
F.avg_pool3d(x(1, 2, 4, 5, 6), 2, 1)
F.adaptive_avg_pool1d(x(2, 3, 9), 4)
F.adaptive_avg_pool2d(x(2, 3, 6, 7), (None, 3))
F.adaptive_avg_pool3d(x(1, 2, 4, 5, 6), 3)
F.adaptive_max_pool1d(x(2, 3, 9), 4)
F.adaptive_max_pool2d(x(2, 3, 6, 7), (2, None), return_indices=True)
F.adaptive_max_pool3d_with_indices(x(1, 2, 4, 5, 6), 2)
F.lp_pool1d(x(2, 3, 9), 2, 3)
F.lp_pool1d(x(2, 3, 9), 3.0, 2, 1, True)
F.lp_pool2d(u(2, 3, 6, 7), 1.5, (2, 3), 2)
F.lp_pool3d(x(1, 2, 4, 5, 6), 2, 2)
F.max_unpool1d(x(2, 3), i(6, 2, 3), 2)
F.max_unpool2d(*F.max_pool2d(x(2, 3, 7, 6), 2, return_indices=True), 2, output_size=(7, 6))
F.max_unpool2d(*F.max_pool2d(x(3, 6, 6), 3, 2, 1, return_indices=True), 3, 2, 1, (6, 6))
F.max_unpool3d(*F.max_pool3d(x(1, 2, 4, 4, 6), 2, return_indices=True), 2)
F.fractional_max_pool2d(x(2, 3, 9, 8), 2, output_size=(4, 5))
F.fractional_max_pool2d(x(3, 9, 8), (3, 2), output_ratio=(0.5, 0.6), return_indices=True)
F.fractional_max_pool2d_with_indices(x(2, 3, 9, 8), 2, 4, _random_samples=u(2, 3, 2).detach())
F.fractional_max_pool3d(x(2, 3, 7, 9, 8), 2, output_size=(4, 5, 3), return_indices=True)
F.fractional_max_pool3d(x(3, 7, 9, 8), (2, 3, 2), output_ratio=0.5 if p is rushlight else (0.5, 0.5, 0.5))
F.batch_norm(x(4, 3), zeros(3), ones(3), x(3), x(3), True)
F.batch_norm(x(4, 3, 2, 2), None, None, None, None, True, 0.2, 1e-3)
F.batch_norm(x(4, 3, 2), zeros(3), ones(3), x(3), x(3))
F.instance_norm(x(4, 3, 5))
F.instance_norm(x(4, 3, 2, 3), zeros(3), ones(3), x(3), x(3))
F.instance_norm(x(4, 3, 2, 3), zeros(3), ones(3), x(3), None, False)
F.layer_norm(x(4, 3, 5), (3, 5), x(3, 5), x(3, 5))
F.layer_norm(x(4, 3, 5), [5])
F.rms_norm(x(4, 3, 5), (3, 5), x(3, 5))
F.rms_norm(x(4, 3, 5), (5,), eps=0.1)
F.group_norm(x(2, 6, 5), 3, x(6), x(6))
F.group_norm(x(2, 6), 2)
F.local_response_norm(x(2, 5, 4), 3, 0.3, 0.6, 1.2)
F.local_response_norm(x(2, 5, 3, 4), 2, 0.3)
F.local_response_norm(x(2, 5, 2, 2, 3), 5, 0.3)
F.pad(x(2, 3), (1, 2))
F.pad(x(2, 3), (-1, 2, 1, -1), value=3.0)
F.pad(x(2, 5), (3, 2), "reflect")
F.pad(x(1, 4, 5), (3, -1, 1, 2), "reflect")
F.pad(x(2, 3, 4, 5, 3), (2, 1, 0, 3, 1, 2), "reflect")
F.pad(x(2, 3), (4, 0), "replicate")
F.pad(x(2, 3, 4, 5), (1, 2, -1, 3), "replicate")
F.pad(x(3, 4, 5, 3), (1, 2, 1, 3, 0, 1), "replicate")
F.pad(x(2, 3), (3, 2), "circular")
F.pad(x(2, 3, 4, 5), (1, 2, -1, 3), "circular")
F.pad(x(3, 4, 5, 3), (1, 2, 1, 3, 0, 1), "circular")
nn.CrossMapLRN2d(3, 0.5)(x(2, 7, 2, 3).detach())
nn.CrossMapLRN2d(4, 0.5)(x(2, 7, 2, 3).detach())
nn.CrossMapLRN2d(5, 0.5, k=2)(x(2, 2, 2, 3).detach())
""".strip().splitlines()

RANDOM = """
F.dropout(x(5, 7), 0.3)
F.dropout(x(5, 7), 0.3, inplace=False, training=False)
F.dropout(x(5, 7), 1.0)
F.dropout(x(5, 7) * 1, 0.4, True, True)
F.dropout1d(x(5, 7, 2), 0.3)
F.dropout1d(x(7, 2), 0.3)
F.dropout2d(x(5, 7, 2, 3), 0.3)
F.dropout2d(x(5, 7, 2), 0.3)
F.dropout3d(x(5, 7, 2, 3, 1), 0.3)
F.dropout3d(x(7, 2, 3, 1), 0.3)
F.alpha_dropout(x(5, 7), 0.3, True)
F.alpha_dropout(x(5, 7) * 1, 0.3, True, True)
F.feature_alpha_dropout(x(5, 7, 2), 0.3, True)
F.rrelu(x(3, 5), 0.1, 0.4, True)
F.rrelu(x(3, 5) * 1, 0.1, 0.4, True, True)
F.fractional_max_pool2d(x(2, 3, 9, 8), 2, output_size=4)
F.fractional_max_pool3d(x(3, 9, 8, 7), 2, output_size=4)
""".strip().splitlines()

ERRORS = """
F.dropout(one(2), 1.5)
F.alpha_dropout(one(2), -0.5)
F.dropout1d(one(2))
F.dropout1d(one(2, 2, 2, 2))
F.dropout2d(one(2))
F.feature_alpha_dropout(one(2), 0.5, True)
F.hardtanh(one(2), 1, -1)
F.glu(one())
F.rrelu(one(2), 1.0, 0.5)
F.adaptive_avg_pool2d(one(4, 4), (None, 3))
F.adaptive_max_pool2d(one(4, 4, 4), (1, 2, 3))
F.fractional_max_pool2d(one(1, 4, 4), 2)
F.fractional_max_pool2d(one(1, 4, 4), 2, output_size=4)
F.fractional_max_pool2d(one(1, 4, 4), 5, output_size=2)
F.fractional_max_pool2d(one(1, 4, 4), 2, output_size=2, _random_samples=one(1, 2))
F.fractional_max_pool2d(one(1, 4, 4), 2, output_size=2, _random_samples=one(1, 1, 3))
F.fractional_max_pool2d(one(1, 1, 4, 4), (2, 2, 2), output_size=2)
F.fractional_max_pool2d(one(2, 1, 4, 4), 2, output_size=1, _random_samples=one(1, 1, 2))
F.fractional_max_pool2d(one(2, 1, 4, 4), 2, output_size=1, _random_samples=one(2, 2, 2))
F.max_unpool1d(one(1, 2), i(1, 1, 2) + 5, 2)
F.max_unpool1d(one(2), i(1, 2), 2)
F.max_unpool1d(one(1, 2), i(1, 1, 2), 2, output_size=(1, 3))
F.max_unpool1d(one(1, 2), i(1, 1, 2), 2, output_size=(7,))
F.max_unpool2d(one(1, 2, 2), i(1, 1, 2, 2) - 1, 2)
F.max_unpool2d(one(1, 2, 2), i(1, 1, 1, 2), 2)
F.max_unpool2d(one(1, 2, 2), i(1, 1, 2, 2), 2, output_size=(9, 9))
F.max_unpool3d(one(1, 2, 2, 2), i(1, 1, 2, 2, 2) + 99, 2)
F.max_unpool3d(one(2, 2, 2), i(1, 2, 2, 2), 2)
F.batch_norm(one(1, 3), None, None, training=True)
F.instance_norm(one(2, 3))
F.instance_norm(one(2, 3, 2), use_input_stats=False)
F.instance_norm(one(2, 3, 2), one(3))
F.group_norm(one(2), 1)
F.group_norm(one(1, 2), 2)
F.pad(one(2), (1,))
F.pad(one(2), (1, 1, 1, 1))
F.pad(one(2), (1, 1), "foo")
F.pad(one(2), (1, 1), "reflect")
F.pad(one(2, 2), (2, 1), "reflect")
F.pad(one(2, 2), (1, 1, 1, 1), "reflect")
F.pad(one(1, 2, 2), (1, 1), "reflect", value=3)
F.pad(one(2, 2), (-3, 1), "reflect")
F.pad(one(1, 1, 2, 2), (1, 1, 2, 2), "reflect")
F.pad(one(2, 2), (3, 3), "circular")
F.pad(one(2, 2), (-3, 0), "circular")
F.pad(one(2, 2), (-3, 0), "replicate")
F.pad(one(0, 2), (1, 1), "replicate")
F.pad(one(2, 2), 1)
F.bilinear(one(2, 3), one(3, 4), one(5, 3, 4))
F.bilinear(one(2, 3), one(2, 3), one(5, 3, 4))
F.bilinear(one(2, 3), one(2, 2, 4), one(5, 3, 4))
F.bilinear(one(2, 3), one(2, 4), one(5, 3, 4), one(4))
F.conv_tbc(one(5, 2, 3), one(2, 3, 4), one(3), 1)
F.conv_tbc(one(5, 2, 3), one(2, 2, 4), one(4), 1)
nn.Unflatten(1, 3)
nn.Unflatten(1, (2, "a"))
nn.Conv2d(3, 4, 3, groups=2)
nn.Conv2d(4, 4, 3, groups=0)
nn.Conv2d(2, 4, 3, padding="same", stride=2)
nn.ConvTranspose2d(2, 4, 3, padding_mode="circular")
nn.ConvTranspose2d(2, 4, 3, 2)(one(1, 2, 4, 4), output_size=(11, 10))
nn.ConvTranspose2d(2, 4, 3, 2)(one(1, 2, 4, 4), output_size=(9, 10, 1))
nn.BatchNorm1d(3)(one(3))
nn.BatchNorm2d(3)(one(3, 3, 3))
nn.InstanceNorm1d(3, affine=True)(one(2, 4, 4))
nn.GroupNorm(2, 3)
nn.FractionalMaxPool2d(2)
nn.FractionalMaxPool2d(2, output_ratio=1.5)
nn.FractionalMaxPool3d((2, 0, 1), output_size=2)
nn.Hardtanh(2, -2)
nn.Softmax2d()(one(2, 2))
nn.Dropout(2)
nn.Bilinear(0, 3, 4)
nn.Sequential(3)
nn.ModuleList(3)
nn.ModuleDict({"keys": nn.ReLU()})
nn.ParameterDict({3: 4})
""".strip().splitlines()


class Numbers:
    """Tensors of one package from one stream of numbers, and the leaves among them."""

    def __init__(self, package, dtype):
        self.package, self.dtype = package, dtype
        self.random = np.random.default_rng(0)
        self.leaves = []

    def leaf(self, array):
        tensor = self.package.from_numpy(array.astype(self.dtype)).requires_grad_()
        self.leaves.append(tensor)
        return tensor

    def scope(self):
        package, random = self.package, self.random
        return {
            "p": package,
            "nn": package.nn,
            "F": package.nn.functional,
            "rushlight": rushlight,
            "x": lambda *shape: self.leaf(random.standard_normal(shape)),
            "u": lambda *shape: self.leaf(random.uniform(0.05, 0.95, shape)),
            "i": lambda n, *shape: package.from_numpy(random.permuted(np.arange(np.prod(shape)) % n).reshape(shape)),
            "ones": lambda *shape: package.ones(*shape, dtype=getattr(package, self.dtype)),
            "one": lambda *shape: package.ones(shape),
            "zeros": lambda *shape: package.zeros(*shape, dtype=getattr(package, self.dtype)),
        }


def run(package, call, dtype):
    """The tensors that `call` gives, and the gradients of its leaves for a fixed cotangent."""
    numbers = Numbers(package, dtype)
    package.manual_seed(5)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = eval(call, numbers.scope())
    results = list(result) if isinstance(result, tuple) else [result]
    floating = [r for r in results if r.requires_grad]
    if floating:
        cotangents = np.random.default_rng(1)
        sum(
            (
                r * package.from_numpy(cotangents.standard_normal(tuple(r.shape)).astype(str(r.dtype).split(".")[-1]))
            ).sum()
            for r in floating
        ).backward()
    arrays = [np.asarray(r.detach().numpy()) for r in results]
    arrays += [np.zeros(()) if leaf.grad is None else np.asarray(leaf.grad.numpy()) for leaf in numbers.leaves]
    arrays.append(np.asarray(package.rand(2).numpy()))
    return arrays, [w.category for w in caught]


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("call", CALLS + RANDOM)
def test_results_and_gradients(call, dtype):
    (mine, warned), (theirs, expected) = run(rushlight, call, dtype), run(torch, call, dtype)
    assert len(mine) == len(theirs)
    for a, b in zip(mine, theirs, strict=True):
        assert a.shape == b.shape and a.dtype == b.dtype
        tolerance = max(TOLERANCE[dtype], 1e-6 if call.startswith(ROUNDED) else 0)
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)
    assert warned == expected


def failure(package, call):
    with pytest.raises(Exception) as caught:
        eval(call, Numbers(package, "float32").scope())
    return type(caught.value), str(caught.value)


def plain(message):
    """A message without what functions and layers add, without the packages' own names, in single spaces."""
    first = re.split(r"\n(?=in \w|\w+\(.*(expected|found) )", message)[0]
    return " ".join(first.split()).replace("_out()", "()")


@pytest.mark.parametrize("call", ERRORS)
def test_errors(call):
    (mine, my_text), (theirs, their_text) = failure(rushlight, call), failure(torch, call)
    assert mine is theirs
    assert plain(my_text) == plain(their_text) or plain(their_text).startswith(plain(my_text))
