"""Normalisation over layers, groups and batches: the kernels against their formulas."""

import numpy as np
import pytest

import rushlight as torch

F = torch.nn.functional


def numbers(*shape, seed=0, dtype=np.float64):
    return torch.from_numpy(np.random.default_rng(seed).standard_normal(shape).astype(dtype)).requires_grad_()


def normal(x, axes, eps=1e-5):
    return (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + eps)


def check_gradients(function, *inputs):
    """First derivatives by the kernels against differences, then the recorded formula against the kernels."""
    assert torch.autograd.gradcheck(function, inputs)
    assert torch.autograd.gradgradcheck(function, inputs)
    weight = numbers(*function(*inputs).shape, seed=9).detach()
    fused = torch.autograd.grad(function(*inputs), inputs, weight)
    recorded = torch.autograd.grad(function(*inputs), inputs, weight, create_graph=True)
    for a, b in zip(fused, recorded, strict=True):
        np.testing.assert_allclose(a.numpy(), b.detach().numpy(), rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("given", ["", "w", "wb"])
@pytest.mark.parametrize(("shape", "normalized"), [((4,), (4,)), ((3, 4), (4,)), ((2, 3, 4), (3, 4)), ((40, 3), (3,))])
def test_layer_norm(shape, normalized, given):
    inputs = [numbers(*shape), *(numbers(*normalized, seed=i) for i in range(1, 1 + len(given)))]
    arrays = [t.detach().numpy() for t in inputs]
    axes = tuple(range(-len(normalized), 0))
    expected = normal(arrays[0], axes)
    if given:
        expected = expected * arrays[1]
    if "b" in given:
        expected = expected + arrays[2]

    def function(x, *parameters):
        return F.layer_norm(x, normalized, *parameters)

    np.testing.assert_allclose(function(*inputs).detach().numpy(), expected, rtol=1e-10, atol=1e-12)
    check_gradients(function, *inputs)


@pytest.mark.parametrize("eps", [None, 0.1])
def test_rms_norm(eps):
    x, w = numbers(3, 4), numbers(4, seed=1)
    a = x.detach().numpy()
    expected = a / np.sqrt((a * a).mean(-1, keepdims=True) + (np.finfo(np.float64).eps if eps is None else eps))
    np.testing.assert_allclose(F.rms_norm(x, (4,), eps=eps).detach().numpy(), expected, rtol=1e-12)
    check_gradients(lambda x, w: F.rms_norm(x, (4,), w, eps), x, w)


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("shape", [(5, 3), (4, 3, 2), (2, 3, 4, 2), (70, 3), (2, 3, 2, 2, 2)])
def test_batch_norm(shape, training):
    x, w, b = numbers(*shape), numbers(3, seed=1), numbers(3, seed=2)
    axes = (0, *range(2, len(shape)))
    wide = (1, 3, *[1] * (len(shape) - 2))
    mean, var = numbers(3, seed=3).detach(), numbers(3, seed=4).detach() ** 2 + 0.1
    before = mean.numpy().copy(), var.numpy().copy()
    array = x.detach().numpy()
    if training:
        expected = normal(array, axes)
    else:
        expected = (array - before[0].reshape(wide)) / np.sqrt(before[1].reshape(wide) + 1e-5)
    expected = expected * w.detach().numpy().reshape(wide) + b.detach().numpy().reshape(wide)
    result = F.batch_norm(x, mean, var, w, b, training, 0.3)
    np.testing.assert_allclose(result.detach().numpy(), expected, rtol=1e-9, atol=1e-11)
    if training:
        np.testing.assert_allclose(mean.numpy(), 0.7 * before[0] + 0.3 * array.mean(axes), rtol=1e-12)
        np.testing.assert_allclose(var.numpy(), 0.7 * before[1] + 0.3 * array.var(axes, ddof=1), rtol=1e-12)
    else:
        assert (mean.numpy() == before[0]).all() and (var.numpy() == before[1]).all()
    frozen = mean.clone(), var.clone()
    check_gradients(lambda x, w, b: F.batch_norm(x, *(t.clone() for t in frozen), w, b, training, 0.3), x, w, b)


@pytest.mark.parametrize(("shape", "groups"), [((2, 6, 4), 3), ((3, 4), 2), ((2, 4, 2, 2), 1), ((2, 4, 3), 4)])
def test_group_norm(shape, groups):
    x, w, b = numbers(*shape), numbers(shape[1], seed=1), numbers(shape[1], seed=2)
    wide = (1, shape[1], *[1] * (len(shape) - 2))
    expected = normal(x.detach().numpy().reshape(shape[0], groups, -1), (2,)).reshape(shape)
    expected = expected * w.detach().numpy().reshape(wide) + b.detach().numpy().reshape(wide)
    np.testing.assert_allclose(F.group_norm(x, groups, w, b).detach().numpy(), expected, rtol=1e-9, atol=1e-11)
    check_gradients(lambda x, w, b: F.group_norm(x, groups, w, b), x, w, b)


def test_statistics_of_numbers_far_from_zero():
    x = torch.from_numpy((np.random.default_rng(0).standard_normal((4, 100_000)) + 1000).astype(np.float32))
    result = F.layer_norm(x, (100_000,)).numpy()
    np.testing.assert_allclose(result, normal(x.numpy().astype(np.float64), (1,)), atol=2e-4)


def test_same_bits_on_any_number_of_threads():
    x, w = numbers(333, 70, dtype=np.float32), numbers(70, seed=1, dtype=np.float32)

    def run():
        y = F.layer_norm(x, (70,), w, w)
        z = F.batch_norm(y.view(9, 37, 70), None, None, training=True)
        return [t.detach().numpy().tobytes() for t in (z, *torch.autograd.grad(z.square().sum(), (x, w)))]

    threads = torch.get_num_threads()
    try:
        torch.set_num_threads(1)
        alone = run()
        torch.set_num_threads(3)
        assert run() == alone
    finally:
        torch.set_num_threads(threads)


def test_strided_input_and_gradient():
    x = numbers(4, 6)
    a = F.layer_norm(x.t(), (4,))
    (g,) = torch.autograd.grad(a, x, numbers(4, 6, seed=1).detach().t())
    y = x.detach().t().contiguous().requires_grad_()
    (h,) = torch.autograd.grad(F.layer_norm(y, (4,)), y, numbers(4, 6, seed=1).detach().t())
    np.testing.assert_allclose(g.numpy(), h.numpy().T, rtol=1e-12)


def test_half_types_are_computed_in_float():
    x = numbers(5, 8, dtype=np.float32).detach().bfloat16()
    result = F.layer_norm(x, (8,), torch.ones(8), torch.zeros(8))
    assert result.dtype == torch.bfloat16
    assert result.float().tolist() == F.layer_norm(x.float(), (8,)).bfloat16().float().tolist()


def test_empty_input():
    assert F.layer_norm(torch.ones(0, 3), (3,)).shape == (0, 3)
    assert F.batch_norm(torch.ones(0, 3, 4), None, None, training=True).shape == (0, 3, 4)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda o: F.layer_norm(o(2, 3), (5,)),
            r"normalized_shape=\[5\], expected input with shape \[\*, 5\], but got",
        ),
        (lambda o: F.layer_norm(o(2, 3), ()), "Expected normalized_shape to be at least 1-dimensional"),
        (lambda o: F.layer_norm(o(2, 3), (3,), o(4)), r"weight of shape \[4\] and normalized_shape = \[3\]"),
        (lambda o: F.batch_norm(o(2, 3), o(4), o(3)), "running_mean should contain 3 elements not 4"),
        (lambda o: F.batch_norm(o(2, 3), None, None), "running_mean must be defined in evaluation mode"),
        (lambda o: torch.group_norm(o(2, 6), 4), r"input of shape \[2, 6\] and num_groups=4"),
        (lambda o: F.layer_norm(o(2, 3), (3,), o(3).double()), "mixed dtype"),
    ],
)
def test_refuses_what_does_not_fit(call, message):
    with pytest.raises(RuntimeError, match=message):
        call(torch.ones)


@pytest.mark.parametrize("training", [True, False])
def test_batch_norm_of_nothing_needs_no_channels(training):
    x, weight, bias = torch.zeros(0, requires_grad=True), torch.ones(1, requires_grad=True), torch.zeros(1)
    out = F.batch_norm(x, torch.zeros(3), torch.ones(3), weight, bias, training)
    out.sum().backward()
    assert out.shape == x.grad.shape == (0,) and weight.grad.tolist() == [0]
    with pytest.raises(IndexError, match=r"Dimension out of range \(expected to be in range of \[-1, 0\], but got 1\)"):
        F.batch_norm(torch.zeros(3), torch.zeros(3), torch.ones(3), training=training)


def test_second_derivatives_of_group_norm_of_nothing():
    x = torch.zeros(0, 4, 3, dtype=torch.float64, requires_grad=True)
    (slope,) = torch.autograd.grad(F.group_norm(x, 2).sum(), x, create_graph=True)
    assert slope.shape == x.shape
    assert torch.func.jvp(lambda t: F.group_norm(t, 2), (x.detach(),), (x.detach(),))[1].shape == x.shape
