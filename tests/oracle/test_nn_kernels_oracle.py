"""Products, convolutions, pools, normalisation and embedding beside PyTorch's: values and derivatives of two orders."""

import numpy as np
import pytest

import rushlight

torch = pytest.importorskip("torch", reason="the oracle is installed by .ci/run only")
pytestmark = pytest.mark.oracle

F = "nn.functional."
IMAGE, VOLUME, SEQUENCE = (2, 4, 9, 8), (2, 2, 5, 6, 5), (2, 3, 11)
# name, shapes of the inputs that require grad, further arguments
CASES = [
    ("mm", [(3, 4), (4, 5)], {}),
    ("bmm", [(2, 3, 4), (2, 4, 5)], {}),
    ("mv", [(3, 4), (4,)], {}),
    ("dot", [(4,), (4,)], {}),
    ("vdot", [(4,), (4,)], {}),
    ("outer", [(4,), (3,)], {}),
    ("inner", [(2, 4), (3, 2, 4)], {}),
    ("matmul", [(4,), (2, 4, 3)], {}),
    ("matmul", [(2, 1, 3, 4), (5, 4, 2)], {}),
    ("matmul", [(3, 4), (2, 4, 5)], {}),
    ("addmm", [(5,), (3, 4), (4, 5)], {"beta": 0.5, "alpha": -1.5}),
    ("addmv", [(3,), (3, 4), (4,)], {"beta": 2, "alpha": 3}),
    ("addr", [(3, 1), (3,), (4,)], {"beta": 0.5, "alpha": 2}),
    ("baddbmm", [(3, 5), (2, 3, 4), (2, 4, 5)], {"beta": 0, "alpha": 2}),
    ("addbmm", [(3, 5), (2, 3, 4), (2, 4, 5)], {"beta": 0.5, "alpha": 2}),
    (F + "linear", [(2, 3, 4), (5, 4), (5,)], {}),
    (F + "linear", [(4,), (5, 4)], {}),
    (F + "conv1d", [SEQUENCE, (4, 3, 3), (4,)], {"padding": 1, "stride": 2}),
    (F + "conv2d", [IMAGE, (6, 4, 3, 2), (6,)], {"stride": (2, 1), "padding": (1, 2), "dilation": (2, 1)}),
    (F + "conv2d", [IMAGE, (6, 2, 3, 3)], {"groups": 2, "padding": "same"}),
    (F + "conv2d", [IMAGE, (8, 1, 3, 3), (8,)], {"groups": 4, "padding": 1}),
    (F + "conv2d", [IMAGE, (4, 1, 3, 3), (4,)], {"groups": 4, "padding": 1, "stride": 2}),
    (F + "conv2d", [IMAGE[1:], (3, 4, 1, 1), (3,)], {}),
    (F + "conv3d", [VOLUME, (3, 2, 2, 3, 2), (3,)], {"padding": 1, "stride": (1, 2, 1)}),
    (F + "conv_transpose1d", [SEQUENCE, (3, 4, 3), (4,)], {"stride": 2, "padding": 1}),
    (F + "conv_transpose2d", [IMAGE, (4, 3, 3, 3), (6,)], {"stride": 2, "groups": 2, "output_padding": 1}),
    (F + "conv_transpose3d", [VOLUME, (2, 3, 2, 2, 2)], {"stride": 2, "dilation": 2}),
    (F + "max_pool1d", [SEQUENCE], {"kernel_size": 3, "stride": 2, "padding": 1}),
    (F + "max_pool2d", [IMAGE], {"kernel_size": 3, "stride": 2, "padding": 1, "ceil_mode": True}),
    (F + "max_pool3d", [VOLUME], {"kernel_size": 2, "stride": 1, "dilation": 2}),
    (F + "avg_pool1d", [SEQUENCE], {"kernel_size": 3, "stride": 2, "padding": 1, "count_include_pad": False}),
    (F + "avg_pool2d", [IMAGE], {"kernel_size": 3, "stride": 2, "padding": 1, "ceil_mode": True}),
    (F + "avg_pool3d", [VOLUME], {"kernel_size": 2, "divisor_override": 3}),
    (F + "adaptive_avg_pool1d", [SEQUENCE], {"output_size": 4}),
    (F + "adaptive_avg_pool2d", [IMAGE], {"output_size": (4, 3)}),
    (F + "adaptive_avg_pool2d", [IMAGE], {"output_size": 1}),
    (F + "adaptive_avg_pool3d", [VOLUME], {"output_size": (2, 3, 4)}),
    (F + "adaptive_max_pool1d", [SEQUENCE], {"output_size": 4}),
    (F + "adaptive_max_pool2d", [IMAGE], {"output_size": (4, 3)}),
    (F + "adaptive_max_pool3d", [VOLUME], {"output_size": (2, 3, 4)}),
    (F + "layer_norm", [(3, 4, 5)], {"normalized_shape": (4, 5)}),
    (F + "rms_norm", [(3, 5)], {"normalized_shape": (5,)}),
    (F + "group_norm", [(2, 6, 4)], {"num_groups": 3}),
    (F + "instance_norm", [(2, 3, 4)], {}),
]


def function_of(package, name):
    for part in name.split("."):
        package = getattr(package, part)
    return package


def results(package, function, arrays, dtype, orders=2):
    """The value and its derivatives with respect to all inputs, as arrays."""
    inputs = [package.from_numpy(a.copy()).to(getattr(package, dtype)).requires_grad_() for a in arrays]
    value = function(*inputs)
    out, current = [value], value
    for order in range(orders):
        total = (current * current).sum()
        derivatives = package.autograd.grad(total, inputs, create_graph=order + 1 < orders, allow_unused=True)
        given = [d for d in derivatives if d is not None]
        out += given
        current = sum((d * d).sum() for d in given)
    return [t.detach().numpy() for t in out]


@pytest.mark.parametrize(("dtype", "tolerance"), [("float64", 1e-8), ("float32", 2e-3)])
@pytest.mark.parametrize(("name", "shapes", "options"), CASES, ids=lambda v: v if isinstance(v, str) else None)
def test_values_and_derivatives(name, shapes, options, dtype, tolerance):
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal(shape) for shape in shapes]
    orders = 2 if dtype == "float64" else 1

    def of(package):
        function = function_of(package, name)
        return results(package, lambda *inputs: function(*inputs, **options), arrays, dtype, orders)

    ours, theirs = of(rushlight), of(torch)
    assert len(ours) == len(theirs)
    for found, expected in zip(ours, theirs, strict=True):
        assert found.shape == expected.shape and found.dtype == expected.dtype
        np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance * max(1, np.abs(expected).max()))


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("shape", [(6, 3), (4, 3, 2), (2, 3, 4, 5), (2, 3, 2, 2, 2)])
def test_batch_norm_and_its_running_statistics(shape, training):
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal(shape), rng.standard_normal(3), rng.standard_normal(3)]
    mean, var = rng.standard_normal(3), rng.random(3) + 0.1
    found = []
    for package in (rushlight, torch):
        running = [package.from_numpy(a.copy()) for a in (mean, var)]
        norm = package.nn.functional.batch_norm

        def function(x, w, b, norm=norm, running=running):
            return norm(x, *running, w, b, training, 0.3)

        found.append([*results(package, function, arrays, "float64"), *(t.numpy() for t in running)])
    for ours, theirs in zip(*found, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-7, atol=1e-9 * max(1, np.abs(theirs).max()))


@pytest.mark.parametrize("options", [{}, {"padding_idx": 2}, {"scale_grad_by_freq": True}])
def test_embedding(options):
    indices = np.array([[0, 2, 2], [4, 1, 0]])
    arrays = [np.random.default_rng(0).standard_normal((5, 3))]
    ours, theirs = (
        results(
            package,
            lambda w, p=package: p.nn.functional.embedding(p.from_numpy(indices), w, **options),
            arrays,
            "float64",
            1 if options.get("scale_grad_by_freq") else 2,  # PyTorch's second derivative leaves the scale out
        )
        for package in (rushlight, torch)
    )
    for found, expected in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-10)


@pytest.mark.parametrize("kind", ["max_pool", "adaptive_max_pool"])
@pytest.mark.parametrize(("n", "shape"), [(1, SEQUENCE), (2, IMAGE), (3, VOLUME)])
def test_places_of_maxima_among_equal_numbers_and_nans(kind, n, shape):
    x = np.random.default_rng(0).integers(0, 3, shape).astype(np.float64)
    x[np.random.default_rng(1).random(shape) < 0.1] = np.nan
    found = []
    for package in (rushlight, torch):
        function = getattr(package.nn.functional, f"{kind}{n}d")
        found.append([t.numpy() for t in function(package.from_numpy(x.copy()), 3, return_indices=True)])
    for ours, theirs in zip(*found, strict=True):
        np.testing.assert_array_equal(ours, theirs)


def raised(call):
    with pytest.raises(Exception) as caught:
        call()
    return type(caught.value).__name__, str(caught.value).split("\n")[0]


@pytest.mark.parametrize(
    "call",
    [
        lambda p, o: p.mm(o(2, 3), o(4, 5)),
        lambda p, o: p.mm(o(2, 3), o(3, 4).double()),
        lambda p, o: p.bmm(o(1, 2, 3), o(2, 3, 4)),
        lambda p, o: p.mv(o(2, 3), o(4)),
        lambda p, o: p.dot(o(3), o(4)),
        lambda p, o: p.addmm(o(5), o(2, 3), o(3, 4)),
        lambda p, o: p.addmv(o(3), o(2, 3), o(3)),
        lambda p, o: p.nn.functional.linear(o(2, 3), o(4, 5)),
        lambda p, o: p.nn.functional.conv2d(o(1, 3, 8, 8), o(4, 2, 3, 3)),
        lambda p, o: p.nn.functional.conv2d(o(1, 3, 8, 8), o(4, 3, 9, 3)),
        lambda p, o: p.nn.functional.conv2d(o(1, 3, 8, 8), o(4, 3, 3, 3), o(3)),
        lambda p, o: p.nn.functional.conv2d(o(3, 3), o(4, 3, 3, 3)),
        lambda p, o: p.nn.functional.conv_transpose2d(o(1, 3, 8, 8), o(4, 4, 3, 3)),
        lambda p, o: p.nn.functional.max_pool2d(o(1, 3, 8, 8), 9),
        lambda p, o: p.nn.functional.max_pool2d(o(1, 3, 8, 8), 3, padding=2),
        lambda p, o: p.nn.functional.layer_norm(o(2, 3), (5,)),
        lambda p, o: p.nn.functional.batch_norm(o(2, 3), o(4), o(3)),
        lambda p, o: p.nn.functional.group_norm(o(2, 6, 4), 4),
        lambda p, o: p.nn.functional.embedding(p.tensor([3]), o(3, 2)),
    ],
)
def test_errors_are_worded_alike(call):
    assert raised(lambda: call(rushlight, rushlight.ones)) == raised(lambda: call(torch, torch.ones))
