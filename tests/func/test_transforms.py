"""func: levels, nesting, what is refused, and what is left behind."""

from __future__ import annotations

import threading
import warnings

import pytest

import rushlight as torch
from rushlight import _C
from rushlight.func import functional_call, grad, hessian, jacfwd, jacrev, jvp, linearize, vjp, vmap

F = torch.nn.functional


def numbers(*shape):
    return torch.arange(1.0, 1 + torch.zeros(shape).numel(), dtype=torch.float64).view(shape).mul(0.37).sin()


def test_levels_are_closed_after_an_error():
    with pytest.raises(RuntimeError, match="data-dependent"):
        vmap(lambda x: vmap(grad(lambda y: y if y > 0 else -y))(x))(numbers(2, 3))
    assert _C._transform_depth() == 0
    assert vmap(lambda x: x * 2)(torch.ones(2)).tolist() == [2.0, 2.0]


def test_gradients_are_recorded_again_after_an_error():
    before = torch.is_grad_enabled()
    with torch.no_grad(), pytest.raises(RuntimeError, match="scalar"):
        grad(lambda x: x)(numbers(2))
    assert torch.is_grad_enabled() is before


def test_a_tensor_that_left_its_vmap_is_refused():
    leaked = []
    vmap(lambda x: leaked.append(x * 2) or x)(numbers(2, 3))
    with pytest.raises(RuntimeError, match="vmap"):
        (leaked[0] + 1).sum().item()


def test_the_function_runs_once_for_all_samples():
    calls = []
    vmap(lambda x: calls.append(tuple(x.shape)) or x.sum())(numbers(5, 3))
    assert calls == [(3,)]


def test_threads_have_their_own_levels():
    inside, done = threading.Event(), threading.Event()
    seen = []

    def hold(x):
        inside.set()
        assert done.wait(60)
        return x * 2

    class Plain(torch.autograd.Function):  # without setup_context: refused inside of transforms alone
        @staticmethod
        def forward(ctx, x):
            return x * 3

        @staticmethod
        def backward(ctx, g):
            return g * 3

    thread = threading.Thread(target=lambda: seen.append(vmap(hold)(numbers(3, 2))))
    thread.start()
    assert inside.wait(60)
    ours = vmap(lambda x: x.sum())(numbers(4, 2))
    leaf = torch.ones(2, requires_grad=True)
    try:
        Plain.apply(leaf).sum().backward()
    finally:
        done.set()
        thread.join()
    assert leaf.grad.tolist() == [3.0, 3.0]
    assert ours.shape == (4,) and seen[0].tolist() == (numbers(3, 2) * 2).tolist()


def test_operators_without_a_rule_are_looped_over_with_a_warning():
    from rushlight._vmap import table

    def softmax(x, dim):
        return x.softmax(dim)

    with pytest.warns(UserWarning, match="no batching rule for softmax"):
        result = table.looped(softmax, 1, 2, 1, numbers(2, 3), 0)
    assert torch.allclose(result, numbers(2, 3).softmax(1))


def test_a_batch_of_no_samples():
    assert vmap(lambda x: (x * 2).sum())(torch.ones(0, 3)).shape == (0,)
    assert vmap(lambda x: x @ torch.ones(3, 2))(torch.ones(0, 3)).shape == (0, 2)
    assert vmap(grad(lambda x: (x**2).sum()))(torch.ones(0, 3)).shape == (0, 3)


def test_three_levels_of_vmap():
    x, y, z = numbers(2, 3), numbers(4, 3), numbers(5, 3)
    result = vmap(lambda a: vmap(lambda b: vmap(lambda c: (a * b).dot(c))(z))(y))(x)
    assert torch.allclose(result, torch.einsum("ai,bi,ci->abc", x, y, z))


def test_matrices_are_differentiated_sample_by_sample():
    a = numbers(3, 2, 2) + 3 * torch.eye(2, dtype=torch.float64)
    f = lambda m: torch.linalg.inv(m).sum()  # noqa: E731
    each = torch.stack([grad(f)(m) for m in a])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert torch.allclose(vmap(grad(f))(a), each)


def test_gradients_of_parameters_of_each_sample():
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU(), torch.nn.Linear(4, 2)).double()
    parameters = {k: p.detach() for k, p in model.named_parameters()}
    x, target = numbers(6, 3), torch.tensor([0, 1, 0, 1, 1, 0])

    def loss(p, a, t):
        return F.cross_entropy(functional_call(model, p, (a.unsqueeze(0),)), t.unsqueeze(0))

    found = vmap(grad(loss), in_dims=(None, 0, 0))(parameters, x, target)
    for i in range(6):
        model.zero_grad()
        F.cross_entropy(model(x[i : i + 1]), target[i : i + 1]).backward()
        for name, p in model.named_parameters():
            assert torch.allclose(found[name][i], p.grad)


def test_parameters_that_require_grad_keep_the_path():
    w = numbers(3).requires_grad_()
    g = vmap(grad(lambda x: (x * w).sin().sum()))(numbers(2, 3))
    assert g.requires_grad
    (second,) = torch.autograd.grad(g.sum(), w)
    x = numbers(2, 3)
    assert torch.allclose(second, ((x * w).cos() - x * w * (x * w).sin()).sum(0))


def test_results_of_a_level_have_no_history_of_it():
    gradient, value = torch.func.grad_and_value(lambda x: (x**3).sum())(numbers(3))
    assert not gradient.requires_grad and not value.requires_grad
    out, pull = vjp(torch.sin, numbers(3))
    assert not out.requires_grad and not pull(numbers(3))[0].requires_grad


def test_a_vjp_function_may_be_called_again_and_in_a_vmap():
    w, x = numbers(3, 3), numbers(3)
    _, pull = vjp(lambda m, v: torch.tanh(m @ v), w, x)
    basis = torch.eye(3, dtype=torch.float64)
    rows = [pull(b) for b in basis]
    together = vmap(pull)(basis)
    for k in range(2):
        assert torch.allclose(together[k], torch.stack([row[k] for row in rows]))


@pytest.mark.parametrize("body, runs", [(lambda x: (x.outer(x).tanh() @ x).softmax(0), 1), (lambda x: x.cumprod(0), 2)])
def test_how_often_a_jacobian_runs_the_function(body, runs):
    calls = []
    x = numbers(4)

    def function(x):
        calls.append(tuple(x.shape))
        return body(x)

    jacobian = jacrev(function)(x)
    assert calls == [(4,)] * runs
    y = x.clone().requires_grad_()
    rows = [torch.autograd.grad(body(y)[i], y)[0] for i in range(4)]
    torch.testing.assert_close(jacobian, torch.stack(rows))


@pytest.mark.parametrize("body", [lambda x: x.sin() @ x.cos(), lambda x: x.cumprod(0).sin().sum()])
def test_jacobians_of_each_sample_and_of_jacobians(body):
    x = numbers(3, 4)
    each = vmap(jacrev(jacrev(body)))(x)
    assert each.shape == (3, 4, 4)
    torch.testing.assert_close(each, torch.stack([hessian(body)(row) for row in x]))
    torch.testing.assert_close(jacfwd(jacrev(body))(x[1]), each[1])
    two = vmap(vmap(vjp(lambda y: y.sin(), x[0])[1]))(torch.eye(4, dtype=torch.float64).expand(2, 4, 4))[0]
    torch.testing.assert_close(two, torch.diag(x[0].cos()).expand(2, 4, 4))


def test_cotangents_of_several_outputs_of_which_one_is_batched():
    x = numbers(3)
    (_, pull) = vjp(lambda x: (x.sin(), x.cos(), torch.ones(2, dtype=x.dtype)), x)
    ones = torch.ones(3, dtype=x.dtype)
    batch = numbers(5, 3)
    (got,) = vmap(lambda v: pull((v, ones, ones[:2])))(batch)
    torch.testing.assert_close(got, batch * x.cos() - x.sin())
    with pytest.raises(RuntimeError, match="Mismatch in shape"):
        vmap(lambda v: pull((v, ones[:2], ones[:2])))(batch)
    (none,) = vmap(vjp(lambda x: torch.ones(3, dtype=x.dtype), x)[1])(batch)
    assert none.tolist() == [[0.0] * 3] * 5


def test_a_jacobian_keeps_the_path_to_what_it_depends_on():
    weight = numbers(3, 3).requires_grad_()
    x = numbers(3)
    jacobian = jacrev(lambda x: (weight @ x).tanh())(x)
    jacobian.pow(2).sum().backward()
    slope = 1 - (weight.detach() @ x).tanh().pow(2)
    assert jacobian.requires_grad
    torch.testing.assert_close(jacobian.detach(), slope[:, None] * weight.detach())
    other = weight.detach().clone().requires_grad_()
    ((1 - (other @ x).tanh().pow(2))[:, None] * other).pow(2).sum().backward()
    torch.testing.assert_close(weight.grad, other.grad)


def test_batched_cotangents_of_a_plain_graph():
    x = numbers(3).requires_grad_()
    y, z = x.sin(), x.cumprod(0)  # a row at a time
    rows = numbers(4, 3)
    (got,) = torch.autograd.grad((y,), (x,), (rows,), is_grads_batched=True, retain_graph=True)
    torch.testing.assert_close(got, rows * x.detach().cos())
    each = [torch.autograd.grad((y, z), (x,), (row, row), retain_graph=True)[0] for row in rows]
    (both,) = torch.autograd.grad((y, z), (x,), (rows, rows), is_grads_batched=True)
    torch.testing.assert_close(both, torch.stack(each))


def test_random_numbers_of_a_vjp_are_those_of_its_forward():
    x = numbers(6)
    torch.manual_seed(0)
    out, pull = vjp(lambda v: F.dropout(v, 0.5), x)
    rows = vmap(pull)(torch.eye(6, dtype=torch.float64))[0]
    assert torch.allclose(rows.diagonal(), out / x)


@pytest.mark.parametrize("chunk_size", [1, 2, 100])
def test_chunks_of_a_jacobian(chunk_size):
    f = lambda x: torch.tanh(numbers(5, 3) @ x)  # noqa: E731
    assert torch.allclose(jacrev(f, chunk_size=chunk_size)(numbers(3)), jacfwd(f)(numbers(3)))


def test_hessian_of_a_quadratic_form():
    a = numbers(3, 3)
    h = hessian(lambda x: x @ a @ x)(numbers(3))
    assert torch.allclose(h, a + a.T)


def test_linearize_runs_the_function_once():
    calls = []

    def f(x):
        calls.append(1)
        return x**3

    out, push = linearize(f, numbers(3))
    for k in (1.0, 2.0):
        assert torch.allclose(push(k * numbers(3)), k * 3 * numbers(3) ** 3)
    assert len(calls) == 1 and torch.allclose(out, numbers(3) ** 3)
    assert torch.allclose(vmap(push)(torch.eye(3, dtype=torch.float64)), jacfwd(f)(numbers(3)).T)


def test_jvp_nests_without_confusing_its_levels():
    x = numbers(3)
    one = torch.ones(3, dtype=torch.float64)
    inner = lambda y: jvp(lambda z: y * z, (x,), (one,))[1]  # noqa: E731
    assert torch.allclose(jvp(inner, (x,), (one,))[1], one)


def test_in_place_changes_stay_within_the_sample():
    base = numbers(3)

    def f(x):
        y = base + x
        y[0] = 7
        y[1:] *= x[1:]
        return y

    x = numbers(2, 3)
    expected = torch.stack([f(row) for row in x])
    assert torch.allclose(vmap(f)(x), expected)
    assert torch.allclose(vmap(f, in_dims=1)(x.T), expected)
    assert torch.allclose(base, numbers(3))


def test_a_shared_tensor_is_not_changed_by_a_refused_write():
    shared = torch.zeros(3)
    for write in (lambda x: shared.add_(x), lambda x: shared.__setitem__(0, x[0]), lambda x: shared.copy_(x)):
        with pytest.raises(RuntimeError, match="vmap|broadcast"):
            vmap(write)(torch.ones(2, 3))
    assert shared.tolist() == [0.0, 0.0, 0.0]


def test_printing_says_that_a_tensor_is_batched():
    shown = []
    vmap(lambda x: shown.append(repr(x)) or x)(torch.ones(2, 3))
    assert shown[0].startswith("BatchedTensor(lvl=") and "bdim=0" in shown[0]


def test_randomness_of_dropout():
    x = torch.ones(4, 64)
    same = vmap(lambda a: F.dropout(a, 0.5), randomness="same")(x)
    different = vmap(lambda a: F.dropout(a, 0.5), randomness="different")(x)
    assert (same == same[0]).all() and not (different == different[0]).all()
    with pytest.raises(RuntimeError, match="randomness error mode"):
        vmap(lambda a: F.dropout(a, 0.5))(x)
    assert vmap(lambda a: F.dropout(a, 0.5, training=False))(x).tolist() == x.tolist()


def test_different_draws_are_those_of_the_whole_batch():
    torch.manual_seed(3)
    drawn = vmap(lambda a: torch.randn(2) + 0 * a, randomness="different")(torch.zeros(5))
    torch.manual_seed(3)
    assert drawn.tolist() == torch.randn(5, 2).tolist()


@pytest.mark.parametrize("p", [0.3, 0.8])
def test_the_same_alpha_dropout_is_that_of_one_sample(p):
    x = numbers(3, 4, 5)
    for function, shape in ((F.alpha_dropout, (4, 5)), (F.feature_alpha_dropout, (4, 5))):
        torch.manual_seed(4)
        ours = vmap(lambda x, f=function: f(x, p, training=True), randomness="same")(x)
        torch.manual_seed(4)
        zeros = function(torch.zeros(shape, dtype=x.dtype), p, training=True)
        torch.manual_seed(4)
        slope = function(torch.ones(shape, dtype=x.dtype), p, training=True) - zeros
        torch.testing.assert_close(ours, x * slope + zeros)


@pytest.mark.parametrize("grouped", [False, True])
def test_attention_with_dropout_draws_as_vmap_wants(grouped):
    torch.manual_seed(1)
    q, k, v = (
        torch.randn(3, 4, 6, 8),
        torch.randn(3, 2 if grouped else 4, 6, 8),
        torch.randn(3, 2 if grouped else 4, 6, 8),
    )

    def attend(q, k, v):
        return F.scaled_dot_product_attention(q, k, v, dropout_p=0.5, enable_gqa=grouped)

    with pytest.raises(RuntimeError, match="randomness error mode"):
        vmap(attend)(q, k, v)
    with pytest.raises(RuntimeError, match="randomness error mode"):
        vmap(lambda x: x + attend(q[0], k[0], v[0]))(torch.ones(2))
    equal = [t[:1].expand(t.shape) for t in (q, k, v)]
    same = vmap(attend, randomness="same")(*equal)
    assert torch.equal(same[0], same[1]) and torch.equal(same[0], same[2])
    different = vmap(attend, randomness="different")(*equal)
    assert not torch.equal(different[0], different[1]) and not torch.equal(different[0], different[2])
    mean = vmap(lambda x: attend(q[0], k[0], v[0]), randomness="different")(torch.ones(4000)).mean(0)
    whole = F.scaled_dot_product_attention(q[0], k[0], v[0], enable_gqa=grouped)
    assert (mean - whole).abs().max() < 0.15
