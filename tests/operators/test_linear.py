"""Matrix products, products added to something, and the affine map of a layer."""

import itertools

import numpy as np
import pytest

import rushlight as torch


def numbers(*shape, seed=0):
    return torch.from_numpy(np.random.default_rng(seed).standard_normal(shape)).requires_grad_()


def close(found, expected, tolerance=1e-12):
    np.testing.assert_allclose(found.detach().numpy(), expected, rtol=tolerance, atol=tolerance)


def check_gradients(function, *inputs):
    assert torch.autograd.gradcheck(function, inputs)
    assert torch.autograd.gradgradcheck(function, inputs)


@pytest.mark.parametrize("shape", [(4,), (3, 4), (2, 3, 4), (2, 1, 3, 4)])
@pytest.mark.parametrize("with_bias", [True, False])
def test_linear_is_product_with_the_transpose(shape, with_bias):
    x, w = numbers(*shape), numbers(5, 4, seed=1)
    bias = numbers(5, seed=2) if with_bias else None
    expected = x.detach().numpy() @ w.detach().numpy().T
    if with_bias:
        expected = expected + bias.detach().numpy()
    result = torch.nn.functional.linear(x, w, bias)
    assert result.shape == (*shape[:-1], 5)
    close(result, expected)
    check_gradients(torch.nn.functional.linear, *[t for t in (x, w, bias) if t is not None])


def test_linear_is_one_node():
    x, w, b = numbers(3, 4), numbers(5, 4), numbers(5)
    node = torch.nn.functional.linear(x, w, b).grad_fn
    assert node.name() == "AddmmBackward0"
    assert [edge.name() for edge, _ in node.next_functions] == ["torch::autograd::AccumulateGrad"] * 3


@pytest.mark.parametrize("rows", [0, 1, 7])
def test_linear_of_strided_and_empty_input(rows):
    x = numbers(4, 2 * rows).detach().t()[::2] if rows else torch.empty(0, 4, dtype=torch.float64)
    w, b = numbers(5, 4, seed=1), numbers(5, seed=2)
    result = torch.nn.functional.linear(x, w, b)
    close(result, x.numpy() @ w.detach().numpy().T + b.detach().numpy())
    result.sum().backward()
    close(b.grad, np.full(5, rows))
    close(w.grad, np.broadcast_to(x.numpy().sum(0), (5, 4)))


def test_linear_refuses_what_does_not_fit():
    linear, ones = torch.nn.functional.linear, torch.ones
    with pytest.raises(RuntimeError, match=r"mat1 and mat2 shapes cannot be multiplied \(2x3 and 5x4\)"):
        linear(ones(2, 3), ones(4, 5))
    with pytest.raises(RuntimeError, match="expected m1 and m2 to have the same dtype, but got: float != double"):
        linear(ones(2, 3), ones(4, 3).double())
    with pytest.raises(RuntimeError, match=r"The expanded size of the tensor \(4\) must match the existing size \(5\)"):
        linear(ones(2, 3), ones(4, 3), ones(5))
    with pytest.raises(RuntimeError, match="both arguments to linear need to be at least 1D"):
        linear(torch.tensor(1.0), ones(3, 1))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.int64, torch.int8, torch.bfloat16])
def test_products_of_every_type(dtype):
    a = torch.arange(6).reshape(2, 3).to(dtype)
    b = torch.arange(12).reshape(3, 4).to(dtype)
    result = torch.mm(a, b)
    assert result.dtype == dtype
    assert result.double().tolist() == [[20.0, 23.0, 26.0, 29.0], [56.0, 68.0, 80.0, 92.0]]


@pytest.mark.parametrize("orders", list(itertools.product(("plain", "turned", "spread"), repeat=2)))
@pytest.mark.parametrize("sizes", [(1, 1, 1), (1, 5, 7), (6, 5, 1), (1, 1, 9), (33, 65, 70), (200, 100, 90)])
def test_products_read_any_layout(orders, sizes):
    def laid_out(rows, cols, order, seed):
        if order == "turned":
            return numbers(cols, rows, seed=seed).detach().t()
        if order == "spread":
            return numbers(rows, 3 * cols, seed=seed).detach()[:, ::3]
        return numbers(rows, cols, seed=seed).detach()

    m, k, n = sizes
    a, b = laid_out(m, k, orders[0], 0), laid_out(k, n, orders[1], 1)
    close(a @ b, a.numpy() @ b.numpy(), 1e-11)


@pytest.mark.parametrize("shapes", [((3,), (3,)), ((2, 3), (3,)), ((3,), (3, 2)), ((4, 2, 3), (3,)), ((3,), (4, 3, 2)),
                                    ((4, 2, 3), (3, 5)), ((2, 3), (4, 3, 5)), ((2, 1, 2, 3), (4, 3, 2))])  # fmt: skip
def test_matmul_broadcasts_batches(shapes):
    a, b = numbers(*shapes[0]), numbers(*shapes[1], seed=1)
    close(torch.matmul(a, b), np.matmul(a.detach().numpy(), b.detach().numpy()))
    check_gradients(torch.matmul, a, b)


ADDED = {
    "addmm": ((3, 5), (3, 4), (4, 5), lambda a, b: a @ b),
    "addmv": ((3,), (3, 4), (4,), lambda a, b: a @ b),
    "addr": ((3, 4), (3,), (4,), np.multiply.outer),
    "baddbmm": ((2, 3, 5), (2, 3, 4), (2, 4, 5), lambda a, b: a @ b),
    "addbmm": ((3, 5), (2, 3, 4), (2, 4, 5), lambda a, b: (a @ b).sum(0)),
}


@pytest.mark.parametrize("name", ADDED)
@pytest.mark.parametrize(("beta", "alpha"), [(1, 1), (0, 2), (0.5, -1.5)])
def test_products_added(name, beta, alpha):
    *shapes, product = ADDED[name]
    inputs = [numbers(*shape, seed=i) for i, shape in enumerate(shapes)]
    operator = getattr(torch, name)
    arrays = [t.detach().numpy() for t in inputs]
    expected = beta * arrays[0] + alpha * product(arrays[1], arrays[2])
    close(operator(*inputs, beta=beta, alpha=alpha), expected)
    check_gradients(lambda *t: operator(*t, beta=beta, alpha=alpha), *inputs)
    changed = inputs[0].detach().clone()
    assert getattr(changed, name + "_")(*inputs[1:], beta=beta, alpha=alpha) is changed
    close(changed, expected)


@pytest.mark.parametrize("name", ADDED)
def test_beta_zero_ignores_what_is_added_to(name):
    *shapes, product = ADDED[name]
    inputs = [numbers(*shape, seed=i).detach() for i, shape in enumerate(shapes)]
    inputs[0].fill_(float("nan"))
    close(getattr(torch, name)(*inputs, beta=0), product(inputs[1].numpy(), inputs[2].numpy()))


def test_added_product_broadcasts_and_sums_its_gradient():
    check_gradients(torch.addmm, numbers(5), numbers(3, 4, seed=1), numbers(4, 5, seed=2))
    check_gradients(torch.baddbmm, numbers(3, 1), numbers(2, 3, 4, seed=1), numbers(2, 4, 5, seed=2))


@pytest.mark.parametrize("name", ["dot", "vdot", "outer", "inner"])
def test_products_of_vectors(name):
    a, b = numbers(4), numbers(4, seed=1)
    close(getattr(torch, name)(a, b), getattr(np, name)(a.detach().numpy(), b.detach().numpy()))
    check_gradients(getattr(torch, name), a, b)


def test_products_over_nothing_are_zero():
    assert torch.mm(torch.ones(2, 0), torch.ones(0, 3)).tolist() == [[0.0] * 3] * 2
    assert torch.dot(torch.ones(0), torch.ones(0)).item() == 0
    assert torch.addmm(torch.ones(3), torch.ones(2, 0), torch.ones(0, 3), beta=2).tolist() == [[2.0] * 3] * 2
    assert torch.bmm(torch.ones(0, 2, 3), torch.ones(0, 3, 4)).shape == (0, 2, 4)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda o: torch.mm(o(2, 3), o(4)), "mat2 must be a matrix"),
        (lambda o: torch.mm(o(2, 3), o(4, 5)), r"mat1 and mat2 shapes cannot be multiplied \(2x3 and 4x5\)"),
        (lambda o: torch.bmm(o(1, 2, 3), o(2, 3, 4)), r"of batch2 tensor to be: \[1, 3\] but got: \[2, 3\]"),
        (lambda o: torch.mv(o(2, 3), o(4)), r"size mismatch, got input \(2\), mat \(2x3\), vec \(4\)"),
        (lambda o: torch.dot(o(3), o(4)), "inconsistent tensor size"),
        (lambda o: torch.addmm(o(5), o(2, 3), o(3, 4)), r"size of the tensor \(4\) must match the existing size \(5\)"),
        (lambda o: torch.inner(o(2, 3), o(4)), r"must match on both input tensors but got shapes \[2, 3\] and \[4\]"),
    ],
)  # fmt: skip
def test_products_refuse_what_does_not_fit(call, message):
    with pytest.raises(RuntimeError, match=message):
        call(torch.ones)


def test_truth_values_are_not_multiplied():
    with pytest.raises(NotImplementedError, match="\"addmm_impl_cpu_\" not implemented for 'Bool'"):
        torch.mm(torch.ones(2, 3).bool(), torch.ones(3, 2).bool())
