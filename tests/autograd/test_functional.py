"""Jacobians, Hessians and products with vectors: values by hand, structure of the results, every refusal."""

import pytest

import rushlight as torch
from rushlight.autograd.functional import hessian, hvp, jacobian, jvp, vhp, vjp
from rushlight.testing import assert_close

F64 = torch.float64


def vector(*numbers, dtype=F64, requires_grad=False):
    return torch.tensor(numbers, dtype=dtype, requires_grad=requires_grad)


def cube(x):
    return (x**3).sum()


def mixed(x, y):
    """Two outputs of different shapes; the second does not depend on y."""
    return x[:2] * y.sum(), (x**2).sum()


# jacobian


def test_jacobian_of_tensor_to_tensor_is_a_tensor():
    x = vector(1.0, 2.0, 3.0)
    result = jacobian(lambda x: torch.stack([x[0] * x[1], x[2] ** 2]), x)
    assert_close(result, vector(2.0, 1.0, 0.0, 0.0, 0.0, 6.0).view(2, 3))
    assert not result.requires_grad
    assert not x.requires_grad


def test_jacobian_shape_is_output_then_input():
    x = torch.ones(2, 3, dtype=F64)
    assert jacobian(lambda x: x.sum(0).view(3, 1), x).shape == (3, 1, 2, 3)
    assert jacobian(lambda x: x.sum(), x).shape == (2, 3)
    assert jacobian(lambda x: x * 2, torch.tensor(3.0)).shape == ()


def test_jacobian_of_tuples_is_nested_by_output_then_input():
    x, y = vector(1.0, 2.0, 3.0), vector(4.0, 5.0)
    result = jacobian(mixed, (x, y))
    assert isinstance(result, tuple)
    assert all(isinstance(row, tuple) for row in result)
    assert_close(result[0][0], vector(9.0, 0.0, 0.0, 0.0, 9.0, 0.0).view(2, 3))
    assert_close(result[0][1], vector(1.0, 1.0, 2.0, 2.0).view(2, 2))
    assert_close(result[1][0], 2 * x)
    assert_close(result[1][1], torch.zeros(2, dtype=F64))


def test_jacobian_keeps_one_sided_tuples():
    x = vector(1.0, 2.0)
    assert isinstance(jacobian(lambda x: (x * 2,), x), tuple)
    assert isinstance(jacobian(lambda x: x * 2, (x,)), tuple)
    (only,) = jacobian(lambda x: x * 2, (x,))
    assert_close(only, 2 * torch.eye(2, dtype=F64))
    ((only,),) = jacobian(lambda x: (x * 2,), (x,))
    assert_close(only, 2 * torch.eye(2, dtype=F64))


def test_jacobian_of_identity():
    x = vector(1.0, 2.0)
    assert_close(jacobian(lambda x: x, x), torch.eye(2, dtype=F64))
    x.requires_grad_()
    assert_close(jacobian(lambda x: x, x, create_graph=True), torch.eye(2, dtype=F64))


def test_jacobian_takes_dtype_of_input():
    x, y = vector(1.0, 2.0, dtype=torch.float32), vector(3.0, 4.0)
    by_x, by_y = jacobian(lambda x, y: (x * y).sum(), (x, y))
    assert by_x.dtype == torch.float32
    assert by_y.dtype == F64


@pytest.mark.parametrize("n", [0, 1, 3])
@pytest.mark.parametrize("m", [0, 1, 3])
def test_jacobian_of_empty_inputs_and_outputs(n, m):
    x = torch.ones(n, dtype=F64)
    weight = torch.ones(m, n, dtype=F64)
    result = jacobian(lambda x: weight @ x, x)
    assert result.shape == (m, n)
    assert result.dtype == F64
    assert_close(result, weight)


def test_jacobian_of_strided_and_expanded_inputs():
    base = torch.arange(12.0, dtype=F64).view(3, 4)
    for x in (base.t(), base[:, ::2], base[:1].expand(3, 4)):
        expected = torch.diag((2 * x).reshape(-1)).view(*x.shape, *x.shape)
        assert_close(jacobian(lambda x: x**2, x), expected)


def test_jacobian_of_many_outputs_makes_unit_vectors_in_blocks():
    x = vector(1.0, 2.0)
    result = jacobian(lambda x: x[0] * torch.arange(3000.0, dtype=F64) + x[1], x)
    assert_close(result[:, 0], torch.arange(3000.0, dtype=F64))
    assert_close(result[:, 1], torch.ones(3000, dtype=F64))


def test_jacobian_integer_output_has_zero_rows():
    assert_close(jacobian(lambda x: x.argmax(), vector(1.0, 2.0)), torch.zeros(2, dtype=F64))


def test_jacobian_calls_func_once():
    calls = []

    def func(x):
        calls.append(1)
        return x.exp()

    jacobian(func, torch.ones(5))
    assert len(calls) == 1


def test_jacobian_create_graph_is_differentiable():
    x = vector(1.0, 2.0, requires_grad=True)
    result = jacobian(lambda x: x**3, x, create_graph=True)
    assert result.requires_grad
    (second,) = torch.autograd.grad(result.sum(), x)
    assert_close(second, 6 * x.detach())


def test_jacobian_create_graph_reaches_behind_the_input():
    w = vector(2.0, 3.0, requires_grad=True)
    result = jacobian(lambda x: (x**2).sum(), w * 5, create_graph=True)
    (through,) = torch.autograd.grad(result.sum(), w)
    assert_close(through, vector(10.0, 10.0))


def test_only_what_func_does_with_its_argument_counts():
    x = vector(2.0, requires_grad=True)
    elsewhere = x * 3
    assert_close(jacobian(lambda x: x * elsewhere, x, create_graph=True).detach(), vector(6.0).view(1, 1))
    assert_close(hessian(lambda x: (x * elsewhere).sum(), x), torch.zeros(1, 1, dtype=F64))


def test_inputs_are_left_as_they_were():
    x = vector(1.0, 2.0, requires_grad=True)
    jacobian(cube, x)
    hessian(cube, x)
    hvp(cube, x, x)
    assert x.grad is None
    assert x.is_leaf
    assert x._version == 0


def test_runs_in_no_grad_and_leaves_the_mode():
    x = vector(1.0, 2.0)
    with torch.no_grad():
        assert_close(hessian(cube, x), torch.diag(6 * x))
        value, product = vjp(cube, x)
        assert_close(product, 3 * x**2)
        assert not torch.is_grad_enabled()
    assert not value.requires_grad
    assert torch.is_grad_enabled()


def test_grad_mode_is_restored_when_func_raises():
    with torch.no_grad():
        with pytest.raises(ZeroDivisionError):
            jacobian(lambda x: 1 // 0, vector(1.0))
        assert not torch.is_grad_enabled()


# hessian


def test_hessian_of_one_input():
    x = vector(1.0, 2.0, 3.0)
    result = hessian(lambda x: x[0] ** 2 * x[1] + x[2], x)
    assert_close(result, vector(4.0, 2.0, 0.0, 2.0, 0.0, 0.0, 0.0, 0.0, 0.0).view(3, 3))


def test_hessian_of_two_inputs_has_all_blocks():
    x, y = vector(1.0, 2.0), vector(3.0)
    (xx, xy), (yx, yy) = hessian(lambda x, y: (x**2 * y).sum() + y.sum() ** 3, (x, y))
    assert_close(xx, torch.diag(vector(6.0, 6.0)))
    assert_close(xy, vector(2.0, 4.0).view(2, 1))
    assert_close(yx, vector(2.0, 4.0).view(1, 2))
    assert_close(yy, vector(18.0).view(1, 1))


def test_hessian_shape_for_matrices():
    x = torch.ones(2, 3, dtype=F64)
    assert hessian(cube, x).shape == (2, 3, 2, 3)


def test_hessian_of_rosenbrock():
    def rosenbrock(x):
        return (100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()

    x = torch.full((4,), 0.5, dtype=F64)
    result = hessian(rosenbrock, x)
    diagonal = [1200 * 0.25 - 400 * 0.5 + 2 + (200 if i else 0) for i in range(3)] + [200.0]
    expected = torch.diag(torch.tensor(diagonal, dtype=F64))
    for i in range(3):
        expected[i, i + 1] = expected[i + 1, i] = -400 * 0.5
    assert_close(result, expected)


def test_hessian_of_linear_function_is_zero():
    x, y = vector(1.0, 2.0), vector(3.0)
    blocks = hessian(lambda x, y: x.sum() + 2 * y.sum(), (x, y))
    for row, first in zip(blocks, (2, 1), strict=True):
        for block, second in zip(row, (2, 1), strict=True):
            assert_close(block, torch.zeros(first, second, dtype=F64))


def test_hessian_of_empty_input():
    assert hessian(cube, torch.ones(0)).shape == (0, 0)


def test_hessian_accepts_one_element_of_any_shape():
    assert_close(hessian(lambda x: cube(x).view(1, 1), vector(2.0)), vector(12.0).view(1, 1))


def test_hessian_create_graph_gives_third_derivatives():
    x = vector(2.0, 3.0, requires_grad=True)
    result = hessian(lambda x: (x**4).sum(), x, create_graph=True)
    (third,) = torch.autograd.grad(result.sum(), x)
    assert_close(third, 24 * x.detach())


# products


def test_vjp_with_and_without_v():
    x = vector(1.0, 2.0)
    value, product = vjp(lambda x: x**2, x, vector(3.0, 5.0))
    assert_close(value, x**2)
    assert_close(product, vector(6.0, 20.0))
    value, product = vjp(cube, x)
    assert_close(value, torch.tensor(9.0, dtype=F64))
    assert_close(product, 3 * x**2)


def test_vjp_of_tuples():
    x, y = vector(1.0, 2.0, 3.0), vector(4.0, 5.0)
    v = (vector(1.0, -1.0), torch.tensor(2.0, dtype=F64))
    values, (by_x, by_y) = vjp(mixed, (x, y), v)
    assert isinstance(values, tuple)
    assert_close(values[1], torch.tensor(14.0, dtype=F64))
    assert_close(by_x, vector(9.0 + 4.0, -9.0 + 8.0, 12.0))
    assert_close(by_y, vector(-1.0, -1.0))


def test_jvp_of_tuples():
    x, y = vector(1.0, 2.0, 3.0), vector(4.0, 5.0)
    v = (vector(1.0, 0.0, 2.0), vector(1.0, 1.0))
    values, products = jvp(mixed, (x, y), v)
    assert isinstance(values, tuple)
    assert_close(products[0], vector(9.0 + 2.0, 4.0))
    assert_close(products[1], torch.tensor(2.0 + 12.0, dtype=F64))


def test_jvp_without_v_needs_one_element():
    assert_close(jvp(lambda x: torch.cat([x, x**2]), vector(3.0))[1], vector(1.0, 6.0))


def test_jvp_and_vjp_agree_with_jacobian():
    x = vector(0.3, -1.2, 2.0)

    def func(x):
        return torch.stack([x[0] * x[1], x[1].sin(), x.sum(), x.prod()])

    j = jacobian(func, x)
    v, w = vector(1.0, -2.0, 0.5), vector(1.0, 2.0, -1.0, 0.25)
    assert_close(jvp(func, x, v)[1], j @ v)
    assert_close(vjp(func, x, w)[1], w @ j)


def test_hvp_and_vhp_agree_with_hessian():
    x = vector(0.3, -1.2, 2.0)

    def func(x):
        return (x.sin() * x.prod()).sum()

    h, v = hessian(func, x), vector(1.0, -2.0, 0.5)
    for product in (hvp, vhp):
        value, result = product(func, x, v)
        assert_close(value, func(x))
        assert_close(result, h @ v)


def test_hvp_is_h_times_v_and_vhp_v_times_h_where_that_differs():
    class Twisted(torch.autograd.Function):
        """A gradient field that is not a gradient: its Jacobian is not symmetric."""

        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x.sum()

        @staticmethod
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            return grad * torch.stack([x[1] * 3, x[0] * 0])

    x, v = vector(1.0, 2.0), vector(5.0, 7.0)
    assert_close(hvp(Twisted.apply, x, v)[1], vector(21.0, 0.0))
    assert_close(vhp(Twisted.apply, x, v)[1], vector(0.0, 15.0))


@pytest.mark.parametrize("product", [hvp, vhp])
def test_products_with_hessian_of_two_inputs(product):
    x, y = vector(1.0, 2.0), vector(3.0)
    value, (by_x, by_y) = product(lambda x, y: (x**2 * y).sum(), (x, y), (vector(1.0, 1.0), vector(2.0)))
    assert_close(value, torch.tensor(15.0, dtype=F64))
    assert_close(by_x, vector(6.0 + 4.0, 6.0 + 8.0))
    assert_close(by_y, vector(6.0))


@pytest.mark.parametrize("product", [hvp, vhp])
def test_products_with_hessian_fill_zeros(product):
    x, y = vector(1.0, 2.0), vector(3.0)
    value, (by_x, by_y) = product(lambda x, y: cube(x), (x, y), (vector(1.0, 1.0), vector(2.0)))
    assert_close(by_x, 6 * x)
    assert_close(by_y, torch.zeros(1, dtype=F64))


@pytest.mark.parametrize("product", [vjp, jvp, hvp, vhp])
def test_products_create_graph(product):
    x = vector(2.0, requires_grad=True)
    value, result = product(cube, x, create_graph=True)
    assert value.requires_grad
    assert result.requires_grad
    (by_x,) = torch.autograd.grad(result.sum(), x)
    assert_close(by_x, vector(12.0 if product in (vjp, jvp) else 6.0))
    value, result = product(cube, x)
    assert not value.requires_grad
    assert not result.requires_grad


@pytest.mark.parametrize("product", [jvp, hvp, vhp])
def test_products_are_differentiable_in_v(product):
    x, v = vector(1.0, 2.0), vector(3.0, 4.0, requires_grad=True)
    _, result = product(lambda x: (x**2 * x).sum(), x, v, create_graph=True)
    (by_v,) = torch.autograd.grad(result.sum(), v)
    assert_close(by_v, 3 * x**2 if product is jvp else 6 * x)


def test_v_that_requires_grad_does_not_leak_into_results():
    x, v = vector(1.0, 2.0), vector(3.0, 4.0, requires_grad=True)
    assert not vjp(lambda x: x, x, v)[1].requires_grad
    assert not jvp(lambda x: x, x, v)[1].requires_grad


def test_complex_products_follow_the_conjugate_convention():
    z, v = torch.tensor([1.0 + 1.0j]), torch.tensor([1.0 + 0.0j])
    assert_close(vjp(lambda z: z**2, z, v)[1], torch.tensor([2.0 - 2.0j]))
    assert_close(jvp(lambda z: z**2, z, v)[1], torch.tensor([2.0 + 2.0j]))


# vectorize and forward mode


@pytest.mark.parametrize("strategy", ["reverse-mode", "forward-mode"])
def test_vectorized_jacobian_equals_the_loop(strategy):
    x, y = vector(1.0, 2.0, 3.0), vector(4.0, 5.0)
    expected = jacobian(mixed, (x, y))
    result = jacobian(mixed, (x, y), vectorize=True, strategy=strategy)
    for row, expected_row in zip(result, expected, strict=True):
        for block, expected_block in zip(row, expected_row, strict=True):
            assert_close(block, expected_block)
            assert not block.requires_grad


@pytest.mark.parametrize("strategy", ["reverse-mode", "forward-mode"])
def test_vectorized_hessian_equals_the_loop(strategy):
    x, y = vector(1.0, 2.0), vector(3.0)

    def func(x, y):
        return (x**3 * y).sum() + y.sum() ** 3

    result = hessian(func, (x, y), vectorize=True, outer_jacobian_strategy=strategy)
    for row, expected_row in zip(result, hessian(func, (x, y)), strict=True):
        for block, expected_block in zip(row, expected_row, strict=True):
            assert_close(block, expected_block)
            assert not block.requires_grad


def test_vectorized_jacobian_of_what_does_not_depend():
    x = vector(1.0, 2.0)
    assert_close(jacobian(lambda x: x.detach() * 2, x, vectorize=True), torch.zeros(2, 2, dtype=F64))
    first, second = jacobian(lambda x: (x.detach() * 2, x * 3), x, vectorize=True)
    assert_close(first, torch.zeros(2, 2, dtype=F64))
    assert_close(second, 3 * torch.eye(2, dtype=F64))


def test_vectorized_jacobian_create_graph():
    x = vector(1.0, 2.0, requires_grad=True)
    result = jacobian(lambda x: x**3, x, vectorize=True, create_graph=True)
    (second,) = torch.autograd.grad(result.sum(), x)
    assert_close(second, 6 * x.detach())


def test_forward_mode_takes_dtype_of_output():
    x = vector(1.0, 2.0, dtype=torch.float32)
    assert jacobian(lambda x: x.double(), x, vectorize=True, strategy="forward-mode").dtype == F64
    assert jacobian(lambda x: x.double(), x).dtype == torch.float32


def test_forward_mode_alone_is_refused_before_func_runs():
    def func(x):
        raise AssertionError("func was run")

    with pytest.raises(NotImplementedError, match="vectorize=True"):
        jacobian(func, vector(1.0), strategy="forward-mode")
    with pytest.raises(ValueError, match="forward-mode"):
        hessian(func, vector(1.0), outer_jacobian_strategy="forward-mode")


def test_options_that_exclude_each_other():
    x = vector(1.0)
    for arguments, error, words in (
        ({"strategy": "sideways"}, AssertionError, 'either "forward-mode" or "reverse-mode"'),
        ({"strategy": "forward-mode", "create_graph": True, "vectorize": True}, NotImplementedError, "create_graph"),
        ({"strategy": "forward-mode", "strict": True, "vectorize": True}, RuntimeError, "not supported together"),
        ({"strict": True, "vectorize": True}, RuntimeError, "not supported together"),
    ):
        with pytest.raises(error, match=words):
            jacobian(cube, x, **arguments)
        outer = {"outer_jacobian_strategy" if k == "strategy" else k: v for k, v in arguments.items()}
        with pytest.raises(error):
            hessian(cube, x, **outer)


# refusals

ALL = [jacobian, hessian, vjp, jvp, hvp, vhp]


@pytest.mark.parametrize("function", ALL)
def test_inputs_must_be_tensors(function):
    name = function.__name__
    with pytest.raises(TypeError, match=f"inputs given to {name} must be .* has type <class 'list'>"):
        function(cube, [vector(1.0)])
    with pytest.raises(TypeError, match=f"inputs given to {name} .* index 1 has type <class 'float'>"):
        function(cube, (vector(1.0), 2.0))


@pytest.mark.parametrize("function", ALL)
def test_outputs_must_be_tensors(function):
    with pytest.raises(TypeError, match="outputs of the user-provided function .* has type <class 'NoneType'>"):
        function(lambda x: None, vector(1.0))
    with pytest.raises(TypeError, match="index 1 has type <class 'int'>"):
        function(lambda x: (x, 3), vector(1.0))


@pytest.mark.parametrize("function", ALL)
def test_integer_inputs_have_no_gradient(function):
    with pytest.raises(RuntimeError, match="floating point"):
        function(lambda x: x.sum(), torch.tensor([1]))


@pytest.mark.parametrize("function", [hessian, hvp, vhp])
def test_scalar_functions_only(function):
    with pytest.raises(RuntimeError, match=f"given to {function.__name__} should return a single Tensor"):
        function(lambda x: (x.sum(),), vector(1.0))
    with pytest.raises(RuntimeError, match="should contain a single element"):
        function(lambda x: torch.cat([x, x]), vector(1.0))


def test_complex_outputs_are_refused_by_rows():
    z = torch.tensor([1.0 + 1.0j])
    with pytest.raises(RuntimeError, match="real scalar outputs but got .*complex64"):
        jacobian(lambda z: z**2, z)
    with pytest.raises(RuntimeError, match="real scalar outputs"):
        hessian(lambda z: (z * z.conj()).real.sum(), z)
    assert_close(jacobian(lambda z: z.abs(), z), torch.tensor([[2**-0.5 * (1.0 + 1.0j)]]))


@pytest.mark.parametrize("function", [jvp, hvp, vhp])
def test_v_has_the_shapes_of_the_inputs(function):
    x = vector(1.0, 2.0)
    with pytest.raises(RuntimeError, match="v can only be None if the input"):
        function(cube, x)
    with pytest.raises(
        RuntimeError, match=r"v has invalid size: should be torch.Size\(\[2\]\) but got torch.Size\(\[3\]\)"
    ):
        function(cube, x, vector(1.0, 2.0, 3.0))
    with pytest.raises(RuntimeError, match="should contain a single Tensor"):
        function(cube, x, (x, x))
    with pytest.raises(RuntimeError, match="invalid length: should be 2 but got 1"):
        function(lambda x, y: (x * y).sum(), (x, x), (x,))
    with pytest.raises(RuntimeError, match="Entry 1 in v has invalid size"):
        function(lambda x, y: (x * y).sum(), (x, x), (x, vector(1.0)))
    with pytest.raises(TypeError, match="v given to .* has type <class 'list'>"):
        function(cube, x, [x])


def test_v_of_vjp_has_the_shapes_of_the_outputs():
    x = vector(1.0, 2.0)
    with pytest.raises(RuntimeError, match="v can only be None if the user-provided function returns"):
        vjp(lambda x: x * 2, x)
    with pytest.raises(RuntimeError, match="invalid size"):
        vjp(lambda x: x * 2, x, vector(1.0))
    with pytest.raises(RuntimeError, match="Entry 0 in v has invalid size"):
        vjp(lambda x: (x * 2, x.sum()), x, (vector(1.0), torch.tensor(1.0)))


@pytest.mark.parametrize("function", ALL)
def test_changing_an_argument_in_place_is_refused(function):
    x = vector(2.0)
    with pytest.raises(RuntimeError, match="leaf Variable that requires grad"):
        function(lambda x: x.mul_(2).sum(), x)
    assert x.item() == 2.0


# strict

STRICT_CASES = [
    (jacobian, lambda x, y: x * 2, {}, "Output 0 .* is independent of input 1"),
    (jacobian, lambda x, y: (x * y).detach(), {}, "Output 0 .* does not require gradients"),
    (jacobian, lambda x, y: x * 2 + y, {"create_graph": True}, "jacobian .* independent of input 0.*create_graph=True"),
    (hessian, lambda x, y: (x + y).sum(), {}, "jacobian .* input 0 is independent.*linear function"),
    (hessian, lambda x, y: cube(x), {}, "jacobian .* input 1 is independent"),
    (hessian, lambda x, y: cube(x) + cube(y), {}, "Output 0 .* independent of input 1"),
    (hessian, lambda x, y: x.detach().sum(), {}, "does not require gradients"),
    (vjp, lambda x, y: x.sum(), {}, "output .* independent of input 1"),
    (vjp, lambda x, y: (x + y).sum(), {"create_graph": True}, "jacobian .* independent of input 0"),
    (jvp, lambda x, y: x.sum(), {}, "output .* independent of input 1"),
    (vhp, lambda x, y: cube(x), {}, "output .* independent of input 1"),
    (vhp, lambda x, y: (x + y).sum(), {}, "jacobian .* input 0 is independent"),
    (vhp, lambda x, y: cube(x) + (x * y).sum(), {"create_graph": True}, "hessian .* independent of input 1"),
    (hvp, lambda x, y: cube(x), {}, "output .* independent of input 1"),
    (hvp, lambda x, y: (x + y).sum(), {}, "jacobian .* input 0 is independent"),
    (hvp, lambda x, y: cube(x) + (x * y).sum(), {"create_graph": True}, "hessian .* independent of input 1"),
]


@pytest.mark.parametrize(("function", "func", "options", "words"), STRICT_CASES)
def test_strict_refuses_what_does_not_depend(function, func, options, words):
    x, y = vector(1.0, 2.0), vector(3.0, 4.0)
    arguments = {"v": (x, y)} if function in (jvp, hvp, vhp) else {}
    with pytest.raises(RuntimeError, match=words):
        function(func, (x, y), strict=True, **arguments, **options)
    function(func, (x, y), strict=False, **arguments, **options)


@pytest.mark.parametrize("function", ALL)
def test_strict_accepts_what_depends(function):
    x = vector(2.0)
    loose, strict = function(cube, x), function(cube, x, strict=True, create_graph=True)
    for a, b in zip(loose, strict, strict=True) if isinstance(loose, tuple) else [(loose, strict)]:
        assert_close(a, b.detach())
