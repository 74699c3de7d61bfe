"""What trips people up, part four: derivatives at kinks, zeros and infinities, promotion, complex numbers, transforms.

Every test bears the number of a case of public reports; the values are PyTorch's.
"""

import math

import pytest

import rushlight as torch
from rushlight.testing import assert_close

NAN, INF = math.nan, math.inf
F = torch.nn.functional


def gradients(function, *inputs):
    """Return the gradients of the sum of ``function(*inputs)``, as lists, for inputs given as lists."""
    leaves = [torch.tensor(values, requires_grad=True) for values in inputs]
    grads = torch.autograd.grad(function(*leaves).sum(), leaves)
    lists = [grad.tolist() for grad in grads]
    return lists[0] if len(lists) == 1 else lists


def same(actual, expected):
    """Compare nested lists of numbers to float32 precision; NaN equals NaN."""
    assert_close(torch.tensor(actual), torch.tensor(expected), equal_nan=True)
    return True


# --- kinks, zeros, infinities ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("p", [1, 2, 3, INF])
def test_A71_norm_of_a_zero_vector(p):
    assert gradients(lambda x: torch.norm(x, p), [0.0, 0.0]) == [0.0, 0.0]
    assert gradients(lambda x: torch.linalg.vector_norm(x, p), [0.0, 0.0]) == [0.0, 0.0]


def test_A71_square_roots_at_zero():
    assert same(gradients(lambda x: (x * x).sum().sqrt(), [0.0, 0.0]), [NAN, NAN])
    assert gradients(torch.sqrt, [0.0]) == [INF]


def test_A71_second_derivative_of_the_norm_at_zero():
    x = torch.zeros(2, requires_grad=True)
    (first,) = torch.autograd.grad(x.norm(), x, create_graph=True)
    (second,) = torch.autograd.grad(first.sum(), x)
    assert same(second.tolist(), [NAN, NAN])


def test_A73_nan_in_the_branch_that_is_not_taken():
    zero = torch.zeros(())
    assert same(gradients(lambda x: torch.where(x > 0, x.sqrt(), zero), [-1.0, 4.0]), [NAN, 0.25])
    assert same(gradients(lambda x: x.sqrt().masked_fill(x < 0, 0.0), [-1.0, 4.0]), [NAN, 0.25])


def test_A73_double_where():
    def safe_sqrt(x):
        positive = x > 0
        return torch.where(positive, torch.where(positive, x, torch.ones(())).sqrt(), torch.zeros(()))

    assert gradients(safe_sqrt, [-1.0, 4.0]) == [0.0, 0.25]


def test_A75_logarithms_of_exponentials():
    assert same(gradients(F.logsigmoid, [-INF, 0.0, 200.0]), [1.0, 0.5, 0.0])
    assert same(gradients(lambda x: F.log_softmax(x, 0)[0], [0.0, -INF]), [0.0, 0.0])
    assert same(gradients(lambda x: torch.logsumexp(x, 0), [1.0, INF]), [0.0, NAN])


def test_A76_clamp():
    grads = gradients(lambda x: x.clamp(0.0, 1.0), [0.0, 1.0, 0.5, -1.0, 2.0, NAN])
    assert grads == [1.0, 1.0, 1.0, 0.0, 0.0, 0.0]


def test_A76_kinks_of_activations():
    assert gradients(F.relu, [0.0, -1.0, 1.0]) == [0.0, 0.0, 1.0]
    assert gradients(F.relu6, [0.0, 6.0, 3.0, 7.0]) == [0.0, 0.0, 1.0, 0.0]
    assert gradients(F.hardtanh, [-1.0, 1.0, 0.0, 2.0]) == [0.0, 0.0, 1.0, 0.0]


def test_A76_ties_are_shared():
    assert gradients(torch.maximum, [1.0, 2.0], [1.0, 3.0]) == [[0.5, 0.0], [0.5, 1.0]]
    assert gradients(torch.minimum, [1.0, 2.0], [1.0, 3.0]) == [[0.5, 1.0], [0.5, 0.0]]


def test_A79_powers():
    assert gradients(lambda x: x**0, [0.0, 2.0]) == [0.0, 0.0]
    assert gradients(lambda b: torch.zeros(1) ** b, [1.0]) == [0.0]
    assert gradients(torch.pow, [0.0], [0.0]) == [[0.0], [0.0]]
    base, exponent = gradients(torch.pow, [-2.0], [3.0])
    assert base == [12.0]
    assert same(exponent, [NAN])
    assert gradients(lambda b: 0**b, [1.0, 0.0]) == [0.0, 0.0]


def test_A83_products_with_zeros():
    assert gradients(torch.prod, [2.0, 0.0, 3.0]) == [0.0, 6.0, 0.0]
    assert gradients(torch.prod, [0.0, 0.0, 3.0]) == [0.0, 0.0, 0.0]
    assert gradients(lambda x: x.prod(1), [[2.0, 0.0, 3.0], [1.0, 2.0, 3.0]]) == [[0.0, 6.0, 0.0], [6.0, 3.0, 2.0]]
    assert gradients(lambda x: x.prod(0), [0.0]) == [1.0]
    assert gradients(lambda x: x.prod(1), [[0.0]]) == [[1.0]]


def test_A85_cumulative_products_with_zeros():
    assert gradients(lambda x: x.cumprod(0), [2.0, 0.0, 3.0, 4.0]) == [1.0, 32.0, 0.0, 0.0]
    assert gradients(lambda x: x.cumprod(0), [2.0, 0.0, 0.0, 3.0]) == [1.0, 2.0, 0.0, 0.0]


def test_A87_ends_of_domains():
    assert gradients(torch.log, [0.0]) == [INF]
    assert gradients(torch.acos, [1.0]) == [-INF]
    first, second = gradients(torch.xlogy, [0.0], [0.0])
    assert first == [0.0]
    assert same(second, [NAN])
    assert gradients(torch.nan_to_num, [NAN, INF, -INF, 2.0]) == [0.0, 0.0, 0.0, 1.0]


def test_A87_cross_entropy_of_a_confident_mistake():
    grads = gradients(lambda x: F.binary_cross_entropy(x, torch.tensor([1.0, 0.0])), [0.0, 1.0])
    assert same(grads, [-5e11, 5e11])


def test_A87_means_without_nan_and_quantiles():
    assert gradients(torch.nanmean, [NAN, 1.0, 3.0]) == [0.0, 0.5, 0.5]
    assert gradients(torch.nansum, [NAN, 1.0, 3.0]) == [0.0, 1.0, 1.0]
    assert gradients(lambda x: torch.quantile(x, 0.5), [1.0, 2.0, 3.0, 4.0]) == [0.0, 0.5, 0.5, 0.0]


# --- dtypes and shapes ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        (torch.ones(2, dtype=torch.float32), torch.tensor(2.0, dtype=torch.float64), "float32"),
        (torch.ones(2, dtype=torch.int64), 2.5, "float32"),
        (torch.ones(2, dtype=torch.int64), torch.tensor(2.5, dtype=torch.float64), "float64"),
        (torch.ones(2, dtype=torch.float16), torch.tensor(2.0, dtype=torch.float32), "float16"),
        (torch.tensor([True]), True, "bool"),
        (torch.ones(2, dtype=torch.uint8), torch.ones(2, dtype=torch.int8), "int16"),
        (torch.ones(2, dtype=torch.float32), torch.ones(2, dtype=torch.float64), "float64"),
        (torch.ones(2, dtype=torch.uint8), 300, "uint8"),
    ],
)
def test_A88_promotion(left, right, expected):
    dtype = getattr(torch, expected)
    assert (left + right).dtype == dtype
    assert (right + left).dtype == dtype
    assert torch.result_type(left, right) == dtype


@pytest.mark.parametrize(
    ("function", "value"),
    [
        (lambda x: x.cumsum(0), []),
        (lambda x: x.cumprod(0), []),
        (lambda x: x.sum(), 0.0),
        (lambda x: x.sum(0), [0.0, 0.0, 0.0]),
        (lambda x: x.prod(), 1.0),
        (lambda x: x.mean(), NAN),
    ],
)
def test_A90_dimensions_of_length_zero(function, value):
    x = torch.empty(0, 3, requires_grad=True)
    y = function(x)
    assert same(y.tolist(), value)
    y.sum().backward()
    assert x.grad.shape == (0, 3)


def test_A90_greatest_element_of_nothing():
    with pytest.raises(RuntimeError, match="Specify the reduction dim with the 'dim' argument"):
        torch.empty(0).max()
    with pytest.raises(IndexError, match="Expected reduction dim 0 to have non-zero size"):
        torch.empty(0, 3).max(0)
    values, indices = torch.empty(0, 3).max(1)
    assert (values.shape, indices.shape) == ((0,), (0,))


@pytest.mark.parametrize("name", ["scatter", "scatter_add"])
def test_A92_index_smaller_than_what_is_scattered(name):
    # PyTorch returns a gradient of the index's shape and then refuses it.
    src = torch.ones(3, 3, requires_grad=True)
    y = getattr(torch.zeros(3, 3), name)(0, torch.tensor([[0, 1]]), src)
    assert y.tolist() == [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 0.0]]
    (y * torch.tensor([[2.0], [3.0], [4.0]])).sum().backward()
    assert src.grad.tolist() == [[2.0, 3.0, 0.0], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]]


def test_A95_complex_gradients_are_conjugates():
    z = torch.tensor(1 + 1j, requires_grad=True)
    (grad,) = torch.autograd.grad(z**2, z, torch.tensor(1 + 0j))
    assert grad.item() == 2 - 2j
    z = torch.tensor(1 + 2j, requires_grad=True)
    (grad,) = torch.autograd.grad((z * z.conj()).real, z)
    assert grad.item() == 2 + 4j
    (grad,) = torch.autograd.grad(z.abs() ** 2, z)
    assert_close(grad, torch.tensor(2 + 4j))


def test_A95_backward_of_a_complex_scalar():
    z = torch.tensor(1 + 2j, requires_grad=True)
    with pytest.raises(RuntimeError, match="only for real scalar outputs but got torch.complex64"):
        (z * 2).backward()
    assert z.grad is None


def test_A95_real_leaf_through_complex_operations():
    x = torch.tensor(2.0, requires_grad=True)
    ((x * 1j) ** 2).real.backward()
    assert (x.grad.dtype, x.grad.item()) == (torch.float32, -4.0)


# --- checks and transforms ------------------------------------------------------------------------------------------

gradcheck = torch.autograd.gradcheck


def test_A96_gradcheck_in_single_precision():
    x = torch.tensor([1.0], requires_grad=True)
    with (
        pytest.warns(UserWarning, match="not a double precision floating point or complex"),
        pytest.raises(RuntimeError, match="Jacobian mismatch for output 0 with respect to input 0"),
    ):
        gradcheck(torch.exp, x)
    assert gradcheck(torch.exp, x.detach().to(torch.float64).requires_grad_())


def test_A96_gradcheck_of_overlapping_inputs():
    x = torch.ones(1, dtype=torch.float64).expand(3).requires_grad_()
    with pytest.raises(RuntimeError, match="0th input has a dimension with stride 0"):
        gradcheck(lambda x: x**2, x)


def test_A96_gradcheck_of_a_backward_that_is_not_deterministic():
    class Drifting(torch.autograd.Function):
        runs = 0

        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            Drifting.runs += 1
            return grad * (2 + Drifting.runs * 1e-9)

    x = torch.ones(2, dtype=torch.float64, requires_grad=True)
    with pytest.raises(RuntimeError, match="Backward is not reentrant"):
        gradcheck(Drifting.apply, x)
    assert gradcheck(Drifting.apply, x, nondet_tol=1e-6)


jacobian = torch.autograd.functional.jacobian


@pytest.mark.parametrize("options", [{}, {"vectorize": True}, {"vectorize": True, "strategy": "forward-mode"}])
def test_A101_jacobian(options):
    result = jacobian(lambda x: x**2, torch.tensor([1.0, 2.0]), **options)
    assert result.tolist() == [[2.0, 0.0], [0.0, 4.0]]


def test_A101_forward_mode_jacobian_without_vectorize_is_refused_at_once():
    calls = []
    with pytest.raises(ValueError, match="vectorize=True"):
        jacobian(lambda x: calls.append(x) or x**2, torch.ones(2), strategy="forward-mode")
    assert calls == []


def test_A101_jacobian_with_respect_to_an_unused_input():
    inputs = torch.tensor([1.0, 2.0]), torch.tensor([3.0])
    used, unused = jacobian(lambda x, y: x**2, inputs)
    assert used.tolist() == [[2.0, 0.0], [0.0, 4.0]]
    assert unused.tolist() == [[0.0], [0.0]]
    assert jacobian(lambda x: torch.ones(1), torch.ones(1)).tolist() == [[0.0]]
    with pytest.raises(RuntimeError, match="is independent of input 1.*strict mode"):
        jacobian(lambda x, y: x**2, inputs, strict=True)
    with pytest.raises(RuntimeError, match="does not require gradients.*strict mode"):
        jacobian(lambda x: torch.ones(1), torch.ones(1), strict=True)


def test_A101_vmap_and_random_numbers():
    def noisy(x):
        return x + torch.rand(1)

    with pytest.raises(RuntimeError, match="called random operation while in randomness error mode"):
        torch.func.vmap(noisy)(torch.zeros(3))
    same_everywhere = torch.func.vmap(noisy, randomness="same")(torch.zeros(3)).flatten().tolist()
    assert len(set(same_everywhere)) == 1
    different = torch.func.vmap(noisy, randomness="different")(torch.zeros(3)).flatten().tolist()
    assert len(set(different)) == 3


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (lambda x: x.item(), r"vmap.*\.item\(\)"),
        (lambda x: x if x > 0 else -x, "vmap.*data-dependent control flow"),
    ],
)
def test_A101_vmap_and_values_in_python(function, words):
    with pytest.raises(RuntimeError, match=words):
        torch.func.vmap(function)(torch.ones(2))


@pytest.mark.parametrize("name", ["add_", "mul_", "copy_"])
def test_A101_vmap_and_a_buffer_that_is_not_batched(name):
    buffer = torch.zeros(3)
    with pytest.raises(
        RuntimeError, match="vmap: inplace arithmetic.* is not possible|doesn't match the broadcast shape"
    ):
        torch.func.vmap(lambda x: getattr(buffer, name)(x))(torch.ones(2, 3))
    assert buffer.tolist() == [0.0, 0.0, 0.0]
