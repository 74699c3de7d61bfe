"""Complex numbers: the convention of conjugates, parts as views, and types that meet."""

import numpy as np
import pytest

import rushlight as torch
from rushlight.autograd import forward_ad, gradcheck, gradgradcheck


def numbers(*values):
    return torch.tensor(values, dtype=torch.complex128)


def leaf(*values):
    return numbers(*values).requires_grad_()


def grads(loss, *inputs):
    return [g.tolist() for g in torch.autograd.grad(loss, inputs)]


# ---- the convention


def test_the_gradient_is_that_of_both_parts():
    z = leaf(3 + 4j)
    assert grads(z.real.sum(), z) == [[1]] and grads(z.imag.sum(), z) == [[1j]]
    assert grads(z.abs().sum(), z) == [[pytest.approx(0.6 + 0.8j)]]
    assert grads((z * z).real.sum(), z) == [[6 - 8j]], "twice the conjugate"
    assert grads((z * z.conj()).real.sum(), z) == [[6 + 8j]], "of x² + y²"


def test_a_step_against_the_gradient_goes_down():
    z = leaf(0.3 - 0.2j, 1j)
    for _ in range(200):
        loss = ((z * z + 1).abs() ** 2).sum()
        (g,) = torch.autograd.grad(loss, z)
        with torch.no_grad():
            z -= 0.05 * g
    assert loss.item() < 1e-3


@pytest.mark.parametrize("value", [0, 0j, -0.0])
def test_subgradients_at_zero(value):
    z = leaf(value)
    for f in (torch.abs, torch.angle, lambda z: z.sgn().real, lambda z: z.norm(), lambda z: (z**0).real):
        assert grads(f(z).sum(), z) == [[0]]


def test_real_tensors_get_real_gradients():
    x = torch.tensor([2.0, 3.0], requires_grad=True)
    loss = ((x * (1 + 2j)) ** 2).real.sum() + (1j / x).imag.sum()
    (g,) = torch.autograd.grad(loss, x)
    assert g.dtype == torch.float32
    np.testing.assert_allclose(g.numpy(), 2 * x.detach().numpy() * -3 - 1 / x.detach().numpy() ** 2, rtol=1e-6)


def test_real_tensors_within_a_complex_computation():
    def function(x, z):
        size = (x * z).abs()
        return (torch.complex(x, size) * z.conj()).sin() * x, torch.polar(size, x) / z

    inputs = torch.tensor([0.3, -1.2], dtype=torch.float64, requires_grad=True), leaf(1 + 2j, -0.5j)
    assert gradcheck(function, inputs, check_forward_ad=True)
    assert gradgradcheck(function, inputs)


def test_second_derivatives_of_what_is_not_holomorphic():
    def function(z):
        return z.abs() * z.sgn(), z.angle() * z.conj(), z.norm(dim=0), z.var()

    assert gradgradcheck(function, leaf(1 + 2j, -0.5j, 0.25 - 1j), check_fwd_over_rev=True)


def test_fused_functions():
    @torch.pointwise
    def function(z, w):
        return z.abs() * w + (z * w).exp() / (z.angle() + 2)

    z, w = leaf(1 + 2j, -0.5j), leaf(0.3, 2 - 1j)
    plain = z.abs() * w + (z * w).exp() / (z.angle() + 2)
    assert torch.allclose(function(z, w), plain)
    ours = torch.autograd.grad(function(z, w), (z, w), numbers(1j, 2))
    known = torch.autograd.grad(plain, (z, w), numbers(1j, 2))
    for a, b in zip(ours, known, strict=True):
        assert torch.allclose(a, b)
    assert gradgradcheck(function, (z, w))


@pytest.mark.parametrize("n", [1000, 300_000])
def test_large_programs(n):
    """Work that waits for its reader, and threads."""
    rng = np.random.default_rng(3)
    x = torch.tensor(rng.normal(size=n) + 1j * rng.normal(size=n), requires_grad=True)
    y = ((x * 2 + 1j) * x.conj()).exp().abs().log()
    (g,) = torch.autograd.grad(y.sum(), x)
    z = x.detach().numpy()
    np.testing.assert_allclose(y.detach().numpy(), ((z * 2 + 1j) * z.conj()).real, 1e-9, 1e-9)
    np.testing.assert_allclose(g.numpy(), 4 * z + 1j, 1e-9, 1e-9)


# ---- parts are views


def test_parts_share_memory():
    z = numbers(1 + 2j, 3 + 4j)
    z.real[0] = 5
    torch.view_as_real(z)[1, 1] = 6
    z.imag += 1
    assert z.tolist() == [5 + 3j, 3 + 7j]
    assert z.real._base is z and z.imag.data_ptr() == z.data_ptr() + 8
    x = torch.tensor([1.0, 2.0])
    assert x.real is x
    x.real = 3.0
    assert x.tolist() == [3.0, 3.0]


def test_parts_are_assigned():
    z = numbers(1 + 2j, 3 + 4j)
    z.real, z.imag = torch.tensor([7.0, 8.0]), -1
    assert z.tolist() == [7 - 1j, 8 - 1j]
    with pytest.raises(RuntimeError, match="must match the size"):
        z.real = torch.ones(3)
    with pytest.raises(RuntimeError, match="imag is not implemented for tensors with non-complex dtypes"):
        z.real.imag = 1
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        leaf(1).real = 2.0


def test_changes_of_a_part_are_recorded():
    z = leaf(1 + 2j)
    w = z * 1
    w.real.mul_(w.imag * 1)
    assert type(w.grad_fn).__name__ == "CopySlices"
    assert torch.autograd.grad(w.real.sum(), z, retain_graph=True)[0].tolist() == [2 + 1j]
    assert grads(w.imag.sum(), z) == [[1j]]


def test_views_made_before_see_changes_made_after():
    z = leaf(1 + 2j, 3)
    w = z * 1
    imag = w[1:].imag
    w.mul_(1j)
    assert imag.tolist() == [3.0] and grads(imag.sum(), z) == [[0, 1]]
    x = torch.tensor([1.0, 2.0, 3.0, 4.0], requires_grad=True)
    y = x * 1
    pair = torch.view_as_complex(y[2:])
    y.mul_(2)
    assert pair.item() == 6 + 8j and grads((pair * (1 + 1j)).real, x) == [[0, 0, 2, -2]]


def test_tangents_of_parts():
    with forward_ad.dual_level():
        z = forward_ad.make_dual(numbers(1 + 2j), numbers(1j)) * 1
        z.real.add_(z.imag)
        z.imag.mul_(2)
        assert forward_ad.unpack_dual(z).tangent.tolist() == [1 + 2j]
        assert forward_ad.unpack_dual(z.imag).tangent.tolist() == [2.0]
        x = forward_ad.make_dual(torch.ones(2), torch.tensor([3.0, 4.0])) * 1
        torch.view_as_complex(x).mul_(1j)
        assert forward_ad.unpack_dual(x).tangent.tolist() == [-4.0, 3.0]


def test_gradients_of_expanded_pairs():
    z = leaf(1 + 2j, 3)
    (g,) = torch.autograd.grad(torch.view_as_real(z), z, torch.ones(()).double().expand(2, 2))
    assert g.tolist() == [1 + 1j, 1 + 1j]


# ---- what is kept and refused


def test_hooks_of_real_tensors_see_real_gradients():
    x = torch.tensor([1.0], requires_grad=True)
    y = x * 2
    z = y * 1j
    seen = []
    y.register_hook(lambda g: seen.append(g.dtype))
    z.grad_fn.register_hook(lambda given, _: seen.append(given[0].dtype))
    z.abs().sum().backward()
    assert seen == [torch.float32, torch.float32]


def test_outputs_of_two_types():
    class Parts(torch.autograd.Function):
        @staticmethod
        def forward(ctx, z):
            return z.abs(), z * 1j

        @staticmethod
        def backward(ctx, g, h):
            assert not g.is_complex() and h.is_complex()
            return h * -1j + g

    z = leaf(1 + 2j)
    size, turned = Parts.apply(z)
    assert grads(size.sum() + (turned * turned).real.sum(), z) == [[1 - 2 + 4j]]


def test_conversion_tells_of_what_is_lost():
    import subprocess
    import sys

    program = "import rushlight as torch; torch.tensor(1j).to(torch.float32); torch.zeros(1).copy_(torch.tensor(1j))"
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert run.stderr.count("Casting complex values to real discards the imaginary part") == 1


@pytest.mark.parametrize("name", ["max", "sort", "argmin", "floor", "sign", "relu", "clamp_min", "lt", "erf", "frac"])
def test_what_orders_numbers_is_refused(name):
    z = numbers(1 + 2j, 3)
    arguments = (z,) if name == "lt" else (0,) if name in ("max", "clamp_min") else ()
    with pytest.raises(RuntimeError, match=r"complex|Complex"):
        getattr(z, name)(*arguments)


def test_half_precision_is_refused_by_name():
    for make in (lambda: numbers(1).chalf(), lambda: torch.complex(torch.ones(1).half(), torch.ones(1).half())):
        with pytest.raises(NotImplementedError, match="complex32"):
            make()


def test_absolute_values_are_not_written_to_complex_tensors():
    z = numbers(3 + 4j)
    with pytest.raises(RuntimeError, match="In-place abs is not supported for complex tensors"):
        z.abs_()
    assert z.tolist() == [3 + 4j] and z._version == 0


EVERYWHERE = [
    (-0.5 + 0.3j),
    (-0.5 - 0.3j),
    (2 + 1j),
    (-2 + 1j),
    (-2 - 1j),
    (0.3 - 2j),
    (-0.3 - 2j),
    (-0.3 + 2j),
    (1.5 - 0.7j),
]


@pytest.mark.parametrize(
    "name",
    ["exp", "log", "log10", "sin", "cos", "tan", "sinh", "cosh", "tanh", "asin", "acos", "atan", "asinh", "acosh"]
    + ["atanh", "sqrt", "rsqrt", "reciprocal", "square", "sigmoid", "log1p", "expm1", "sgn", "abs", "angle", "sinc"],
)
def test_derivatives_in_every_quadrant(name):
    z = torch.tensor(EVERYWHERE, dtype=torch.complex128, requires_grad=True)
    assert torch.autograd.gradcheck(getattr(torch, name), (z,), check_forward_ad=True)
