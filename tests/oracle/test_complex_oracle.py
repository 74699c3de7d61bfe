"""Complex numbers against PyTorch: programs over parts in place, transforms, hooks, optimizers, mixed types, refusals."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import rushlight

torch = pytest.importorskip("torch", reason="the oracle is installed by .ci/run only")
pytestmark = pytest.mark.oracle

CASES: dict[str, Any] = {}


def case(function: Any) -> Any:
    CASES[function.__name__.strip("_").replace("_", " ")] = function
    return function


def numbers(t: Any, *values: complex) -> Any:
    return t.tensor(values, dtype=t.complex128)


def reals(t: Any, *values: float) -> Any:
    return t.tensor(values, dtype=t.float64)


def leaf(t: Any, *values: complex) -> Any:
    return numbers(t, *values).requires_grad_()


# ---- parts, changed in place


@case
def parts_changed_in_place(t):
    z = leaf(t, 1 + 2j, 3 - 1j)
    w = z * 1
    w.real.mul_(w.imag)
    w.imag[0] = 5
    (w.abs() ** 2).sum().backward()
    return z.grad


@case
def views_of_parts_see_changes_of_the_whole(t):
    z = leaf(t, 1 + 2j, 3 - 1j)
    w = z * 1
    real, imag = w.real, w.imag
    real.mul_(2)
    imag.add_(real)
    w.mul_(1j)
    return t.autograd.grad((real * imag).sum(), z), type(real.grad_fn).__name__


@case
def pairs_changed_in_place(t):
    z = leaf(t, 1 + 2j, 3 - 1j)
    w = z * 1
    pairs = t.view_as_real(w)
    pairs[0] = pairs[1] * 3
    w += 1j
    return t.autograd.grad(pairs.sum() + w.imag.prod(), z)


@case
def complex_views_of_real_numbers(t):
    x = t.arange(12, dtype=t.float64).reshape(3, 4).requires_grad_()
    y = x * 1
    z = t.view_as_complex(y[1:, 2:])
    z.mul_(1 + 2j)
    z[0] = z[1].conj()
    return t.autograd.grad((y**2).sum(), x), z


@case
def parts_are_assigned(t):
    z, a = leaf(t, 1 + 2j, 3 - 1j), reals(t, 1.0, 2.0).requires_grad_()
    w = z * 1
    w.real = a * a
    w.imag = t.tensor(2.0)
    return t.autograd.grad((w * w).real.sum(), (z, a)), w


@case
def parts_of_a_transposed_tensor(t):
    z = (t.arange(6, dtype=t.float64).reshape(2, 3) * (1 + 1j)).requires_grad_()
    w = (z * 1).t()
    w.real.mul_(w.imag)
    return t.autograd.grad((w + 1).abs().sum(), z), w.real.stride(), w.imag.storage_offset()


@case
def a_part_of_a_leaf(t):
    leaf(t, 1 + 2j).real.mul_(2)


@case
def a_part_of_a_leaf_unrecorded(t):
    z = leaf(t, 1 + 2j)
    with t.no_grad():
        z.real.mul_(2)
    return z, z.imag.requires_grad


@case
def views_refused(t):
    return t.view_as_real(reals(t, 1.0))


@case
def views_refused_of_three(t):
    return t.view_as_complex(reals(t, 1.0, 2.0, 3.0))


@case
def views_refused_of_strides(t):
    return t.view_as_complex(reals(t, 1.0, 2.0, 3.0, 4.0).reshape(2, 2).t())


@case
def views_refused_of_whole_numbers(t):
    return t.view_as_complex(t.ones(2, dtype=t.int64))


@case
def imaginary_part_refused(t):
    return reals(t, 1.0).imag


@case
def parts_of_two_types(t):
    return t.complex(t.ones(2), t.ones(2, dtype=t.float64))


@case
def parts_of_whole_numbers(t):
    return t.complex(t.ones(2, dtype=t.int64), t.ones(2, dtype=t.int64))


@case
def absolute_value_in_place(t):
    return numbers(t, 1j).abs_()


# ---- gradients


@case
def real_inputs_get_real_parts(t):
    x = t.tensor(2.0, dtype=t.float64, requires_grad=True)
    cotangents = t.tensor(1j, dtype=t.complex128), t.tensor(1 + 1j, dtype=t.complex128)
    return t.autograd.grad(x * (1 + 1j), x, cotangents[0]), t.autograd.grad((x * 1j) ** 2, x, cotangents[1])


@case
def complex_outputs_need_a_gradient(t):
    z = leaf(t, 1 + 2j)
    return t.autograd.grad(z * 2, z)


@case
def real_gradients_of_complex_outputs(t):
    z = leaf(t, 1 + 2j)
    return t.autograd.grad(z * 2, z, reals(t, 1.0))


@case
def accumulation(t):
    z = leaf(t, 1 + 2j)
    z.abs().sum().backward()
    z.real.sum().backward()
    z.sum().real.backward()
    return z.grad


@case
def powers_of_numbers_and_by_numbers(t):
    x = t.tensor(2.0, dtype=t.float64, requires_grad=True)
    grads = t.autograd.grad((1j**x).imag, x), t.autograd.grad((x**1j).imag, x), t.autograd.grad((1j / x).imag, x)
    return x**1j, 1j**x, x + 1j, 1j / x, 1j - x, grads


@case
def zeros_to_powers(t):
    z, e = leaf(t, 0, 0, 0, 1), leaf(t, 0, 2, 1 + 1j, 0)
    return t.autograd.grad((z**2 + z ** e.detach()[1] + z.detach()[3] ** e).real.sum(), (z, e))


@case
def copies_into_real_numbers(t):
    z = leaf(t, 1 + 2j)
    y = t.zeros(1, dtype=t.float64)
    y.copy_(z * 1)
    y.sum().backward()
    return z.grad


@case
def copies_of_real_numbers(t):
    x = reals(t, 2.0).requires_grad_()
    y = numbers(t, 1j) * 1
    y.copy_(x)
    (y * 1j).imag.sum().backward()
    return x.grad


@case
def elements_written_to(t):
    x, z = reals(t, 2.0).requires_grad_(), leaf(t, 1 + 2j, 3)
    w = z * 1
    w[0] = x.squeeze()
    w[t.tensor([1])] = w[t.tensor([0])] * 1j
    return t.autograd.grad((w * w).imag.sum(), (x, z))


@case
def hooks_get_real_gradients_of_real_tensors(t):
    x = reals(t, 2.0, 3.0).requires_grad_()
    y = x * 1
    seen: list[Any] = []
    y.register_hook(lambda g: seen.append(g.dtype == t.float64))
    z = y * 1j
    z.grad_fn.register_hook(lambda given, _: seen.append([g for g in given if g is not None]))
    z.abs().sum().backward()
    return seen, x.grad


@case
def functions_of_several_types(t):
    class Both(t.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.abs(), x * 2

        @staticmethod
        def backward(ctx, g, h):
            return h * 2 + g

    z = leaf(t, 1 + 2j)
    size, twice = Both.apply(z)
    (size.sum() + twice.imag.sum()).backward()
    return z.grad


@case
def gradients_of_another_type(t):
    z = leaf(t, 1 + 2j)
    z.grad = reals(t, 1.0)


# ---- transforms


def square(z):
    return z * z


@case
def functional_jacobian(t):
    return t.autograd.functional.jacobian(square, numbers(t, 1 + 2j, 2))


@case
def functional_jacobian_of_a_size(t):
    z = numbers(t, 1 + 2j, 2)
    jacobian = t.autograd.functional.jacobian
    return jacobian(lambda z: z.abs(), z), jacobian(lambda z: z.abs(), z, vectorize=True)


@case
def functional_jacobian_at_once(t):
    z = numbers(t, 1 + 2j, 2)
    jacobian = t.autograd.functional.jacobian
    return jacobian(square, z, vectorize=True), jacobian(square, z, vectorize=True, strategy="forward-mode")


@case
def functional_hessian(t):
    return t.autograd.functional.hessian(lambda z: (z * z.conj()).real.sum(), numbers(t, 1 + 2j, 2))


@case
def jacrev_of_complex_inputs(t):
    return t.func.jacrev(square)(numbers(t, 1 + 2j, 2))


@case
def jacrev_of_complex_outputs(t):
    return t.func.jacrev(lambda x: x * 1j)(reals(t, 1.0))


@case
def jacfwd_of_complex_inputs(t):
    return t.func.jacfwd(square)(numbers(t, 1 + 2j, 2))


@case
def jacfwd_of_complex_outputs(t):
    return t.func.jacfwd(lambda x: x * 1j)(reals(t, 1.0))


@case
def func_grad(t):
    return t.func.grad(lambda z: (z * z).real.sum())(numbers(t, 1 + 2j, 2))


@case
def func_grad_of_a_complex_function(t):
    return t.func.grad(lambda z: (z * z).sum())(numbers(t, 1 + 2j, 2))


@case
def products_with_jacobians(t):
    z, v = numbers(t, 1 + 2j, 2), numbers(t, 1j, 1)
    output, pull = t.func.vjp(lambda z: z.exp(), z)
    return output, pull(v), t.func.jvp(lambda z: z.exp().abs(), (z,), (v,))


@case
def real_tangents_of_complex_inputs(t):
    z = numbers(t, 1 + 2j, 2)
    return t.func.jvp(lambda z: z.exp().abs(), (z,), (reals(t, 1.0, 1.0),))


@case
def tangents_of_parts_changed_in_place(t):
    forward = t.autograd.forward_ad
    with forward.dual_level():
        z = forward.make_dual(numbers(t, 1 + 2j, 2), numbers(t, 1j, 1)) * 1
        z.imag.mul_(z.real)
        return [forward.unpack_dual(x).tangent for x in (z, z.real, t.view_as_real(z))]


@case
def batches(t):
    z = numbers(t, 1 + 2j, 2)
    mapped = t.vmap(lambda z: (z.real * z.imag, z.conj().abs(), t.view_as_real(z).sum(), t.complex(z.imag, z.real)))
    return mapped(z), t.vmap(t.func.grad(lambda z: (z * z).abs()))(z)


@case
def checks_of_gradients(t):
    z, x = leaf(t, 1 + 2j, -0.5 + 0.3j), reals(t, 1.0, 2.0).requires_grad_()

    def function(z, x):
        return z * x.exp(), (z * x).abs(), z.real + x

    check, twice = t.autograd.gradcheck, t.autograd.gradgradcheck
    return (
        check(function, (z, x)),
        check(function, (z, x), fast_mode=True),
        check(function, (z, x), check_forward_ad=True, check_batched_grad=True, check_batched_forward_grad=True),
        twice(function, (z, x)),
        twice(function, (z, x), fast_mode=True, check_fwd_over_rev=True),
    )


# ---- around


@case
def optimizers(t):
    found = []
    for name, options in (
        ("SGD", {"lr": 0.1, "momentum": 0.9, "nesterov": True, "weight_decay": 0.1}),
        ("Adam", {"lr": 0.1}),
        ("AdamW", {"lr": 0.1, "amsgrad": True}),
        ("RMSprop", {"lr": 0.1, "centered": True, "momentum": 0.5}),
        ("Adagrad", {"lr": 0.1, "initial_accumulator_value": 0.2}),
        *[(name, {}) for name in ("Adadelta", "Adamax", "NAdam", "RAdam", "Rprop", "ASGD")],
        ("LBFGS", {"lr": 0.1, "max_iter": 4}),
    ):
        z = leaf(t, 1 + 2j, -0.5 + 0.3j)
        optimizer = getattr(t.optim, name)([z], **options)

        def closure(z=z, optimizer=optimizer):
            optimizer.zero_grad()
            loss = ((z * z - 1).abs() ** 2).sum() + z.real.sum()
            loss.backward()
            return loss

        for _ in range(3):
            optimizer.step(closure)
        found.append((name, z))
    return found


@case
def clipping(t):
    z = leaf(t, 3 + 4j, 1)
    (z * z).real.sum().backward()
    return t.nn.utils.clip_grad_norm_([z], 1.0), z.grad


@case
def adjoints(t):
    z = numbers(t, 1j, 2, 3 + 1j, 4).reshape(2, 2)
    return z.H, z.mH, z.adjoint(), t.conj(z), z.conj_physical(), t.resolve_conj(z), z.resolve_neg(), z.imag.neg()


@case
def python_numbers(t):
    z = numbers(t, 3 + 4j)
    return z.item(), complex(z[0]), z.tolist(), t.tensor(2.0) * 1j, t.is_complex(z), z.real.item()


@case
def as_a_real_number(t):
    return float(numbers(t, 1j)[0])


@case
def as_a_whole_number(t):
    return int(numbers(t, 2 + 1j)[0])


@case
def as_real_numbers(t):
    return float(numbers(t, 2)[0]), int(numbers(t, 2)[0])


@case
def written_to_real_numbers(t):
    t.zeros(2)[0] = 1j


@case
def real_numbers_made_of_complex_ones(t):
    return t.tensor([1j], dtype=t.float32)


@case
def types(t):
    z, x = numbers(t, 1 + 2j).to(t.complex64), reals(t, 1.0)
    pairs = (z, x), (z, t.ones((), dtype=t.float64)), (t.ones(1, dtype=t.int64), z), (x.float(), numbers(t, 1j)[0])
    return (
        [a * b for a, b in pairs],
        x.float() * 1j,
        t.ones(2, dtype=t.int64) + 1j,
        t.result_type(x, 1j) == t.complex128,
    )


@case
def logarithms_of_sums(t):
    z = leaf(t, 1 + 2j, -0.5 + 0.3j, complex(-np.inf, 1), 700 + 1j)
    results = t.logsumexp(z, 0), t.logcumsumexp(z, 0), t.logaddexp(z, z.flip(0))
    return results, t.autograd.grad(results[0].imag, z)


# ---- layers and composites


@case
def layers(t):
    t.manual_seed(0)
    model = t.nn.Sequential(
        t.nn.Linear(2, 4, dtype=t.complex64), t.nn.Tanh(), t.nn.Linear(4, 1, bias=False, dtype=t.complex64)
    )
    optimizer = t.optim.Adam(model.parameters(), 1e-2)
    x = t.randn(8, 2, dtype=t.complex64)
    for _ in range(5):
        optimizer.zero_grad()
        loss = (model(x) - x.square().sum(1, keepdim=True)).abs().pow(2).mean()
        loss.backward()
        optimizer.step()
    return loss, [p.grad for p in model.parameters()], t.nn.Linear(2, 2).to(t.complex64).weight


@case
def convolutions(t):
    t.manual_seed(0)
    layer = t.nn.Conv1d(2, 3, 2, dtype=t.complex64)
    layer(t.randn(2, 2, 5, dtype=t.complex64)).abs().sum().backward()
    return layer.weight.grad, layer.bias.grad


@case
def initial_values(t):
    t.manual_seed(0)
    w, found = t.empty(3, 2, dtype=t.complex64), []
    for name in ("uniform_", "normal_", "xavier_uniform_", "kaiming_normal_", "ones_"):
        getattr(t.nn.init, name)(w)
        found.append(w.clone())
    return found


@case
def functions_of_nn(t):
    f, z = t.nn.functional, leaf(t, 1 + 2j, 2, 3j)
    results = [f.tanhshrink(z), f.softsign(z), f.normalize(z, dim=0), f.l1_loss(z, z.detach() + 1j)]
    results += [f.pad(z.reshape(1, 3), (1, 1), mode=mode) for mode in ("constant", "reflect", "replicate", "circular")]
    return results, t.autograd.grad(sum(r.abs().sum() for r in results), z)


@case
def contractions(t):
    a = t.complex(t.arange(6.0).reshape(2, 3), t.ones(2, 3)).requires_grad_()
    b = a.detach().t().contiguous().requires_grad_()
    y = t.einsum("ij,jk,ik->i", a, b, a[:, :2])
    z = t.tensordot(a, a.conj(), ([1], [1]))
    return y, z, t.autograd.grad(y.abs().sum() + z.abs().sum(), (a, b))


@case
def moments_and_products(t):
    a = leaf(t, 1 + 2j, 0, 3j, -1)
    losses = (a.std(), a.var(unbiased=False), a.cumprod(0).abs().sum(), a.prod().imag, a.cumsum(0).abs().sum())
    both = [part.abs() for part in (*t.var_mean(a), *t.std_mean(a))]
    return [t.autograd.grad(loss, a) for loss in (*losses, sum(both))], t.cov(a.detach()), both


@case
def norms(t):
    a = leaf(t, 1 + 2j, 0, 3j, -1)
    values = [t.linalg.vector_norm(a, p) for p in (0.5, 1, 1.5, 2, 3, float("inf"), -float("inf"))]
    return values, [t.autograd.grad(v, a) for v in values], t.dist(a, a.flip(0))


@case
def places_written_to(t):
    z, s, i = leaf(t, 0, 1j, 2), leaf(t, 1j, 2), t.tensor([0, 2])
    written = (z.scatter(0, i, s), z.scatter_add(0, i, s), z.index_add(0, i, s), z.index_copy(0, i, s))
    return written, [t.autograd.grad(w.abs().sum() + w.real.sum(), (z, s)) for w in (*written, z.index_put((i,), s))]


@case
def checkpoints(t):
    z = leaf(t, 0.5 + 1j, 2)
    t.utils.checkpoint.checkpoint(lambda z: (z * z).exp().abs(), z, use_reentrant=False).sum().backward()
    return z.grad


def shown(value: Any) -> Any:
    """Nested results as types, shapes and numbers."""
    if isinstance(value, tuple | list):
        return [shown(v) for v in value]
    if isinstance(value, torch.Tensor | rushlight.Tensor):
        plain = value.detach()
        array = plain.resolve_conj().resolve_neg().numpy()
        return str(value.dtype).rpartition(".")[2], np.array(array)
    return value


def assert_same(ours: Any, theirs: Any) -> None:
    assert type(ours) is type(theirs), f"{ours}, PyTorch: {theirs}"
    if isinstance(ours, list | tuple):
        assert len(ours) == len(theirs)
        for a, b in zip(ours, theirs, strict=True):
            assert_same(a, b)
    elif isinstance(ours, np.ndarray):
        assert ours.shape == theirs.shape
        np.testing.assert_allclose(ours, theirs, 1e-5, 1e-7)
    elif isinstance(ours, float | complex):
        assert ours == pytest.approx(theirs)
    else:
        assert ours == theirs


@pytest.mark.parametrize("name", CASES)
def test_complex(name: str) -> None:
    outcomes = []
    for package in (rushlight, torch):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                outcomes.append(shown(CASES[name](package)))
            except Exception as error:
                outcomes.append(error)
    ours, theirs = outcomes
    if isinstance(theirs, Exception) or isinstance(ours, Exception):
        assert isinstance(ours, Exception), f"{ours}, PyTorch: {theirs!r}"
        assert isinstance(theirs, Exception), f"{ours!r}, PyTorch: {theirs}"
        assert isinstance(ours, type(theirs)), f"{ours!r}, PyTorch: {theirs!r}"
        assert str(ours)[:60] == str(theirs)[:60]
    else:
        assert_same(ours, theirs)
