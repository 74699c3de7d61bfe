"""gradcheck and gradgradcheck: what they accept, what they find, what they say, and every option."""

import warnings

import pytest

import rushlight as torch
from rushlight.autograd import Function, gradcheck, gradgradcheck
from rushlight.autograd.gradcheck import GradcheckError

BOTH_MODES = pytest.mark.parametrize("fast_mode", [False, True], ids=["slow", "fast"])


def real(*shape, seed=0):
    n = 1
    for size in shape:
        n *= size
    numbers = [((i * 37 + seed * 11) % 19) / 7 - 1.3 for i in range(n)]
    return torch.tensor(numbers, dtype=torch.float64).view(shape).requires_grad_()


def complex_(*shape, seed=0):
    return torch.complex(real(*shape, seed=seed).detach(), real(*shape, seed=seed + 3).detach()).requires_grad_()


def function(forward, backward):
    return type("Made", (Function,), {"forward": staticmethod(forward), "backward": staticmethod(backward)}).apply


wrong = function(lambda ctx, x: x * 2, lambda ctx, g: g * 2.1)
right = function(lambda ctx, x: x * 2, lambda ctx, g: g * 2)


# what is right


@BOTH_MODES
def test_accepts_what_is_right(fast_mode):
    x, y = real(2, 3), real(3, 2, seed=1)
    for func, inputs in (
        (torch.sin, (x,)),
        (lambda x: x.exp().sum(), (x,)),
        (lambda x, y: x @ y, (x, y)),
        (lambda x, y: (x @ y, x.sum(), y[0] * 2), (x, y)),
        (lambda x: x, (x,)),
        (lambda x: x.t()[1:], (x,)),
    ):
        assert gradcheck(func, inputs, fast_mode=fast_mode) is True
        assert gradgradcheck(func, inputs, fast_mode=fast_mode) is True


def test_inputs_may_be_a_tensor_a_tuple_or_a_list():
    x = real(2)
    assert gradcheck(torch.sin, x)
    assert gradcheck(torch.sin, (x,))
    assert gradcheck(torch.sin, [x])


@BOTH_MODES
def test_other_arguments_are_passed_through(fast_mode):
    x, constant = real(2), real(2, seed=1).detach()
    assert gradcheck(lambda x, c, k, name: x * c * k, (x, constant, 3, "text"), fast_mode=fast_mode)


@BOTH_MODES
@pytest.mark.parametrize("shape", [(), (0,), (1,), (2, 0, 3), (2, 1, 2)])
def test_shapes(shape, fast_mode):
    assert gradcheck(lambda x: x**2, (real(*shape),), fast_mode=fast_mode)
    assert gradcheck(lambda x: (x**2).sum(), (real(*shape),), fast_mode=fast_mode)


@BOTH_MODES
def test_strided_inputs(fast_mode):
    base = real(4, 6).detach()
    for x in (base.t(), base[::2, 1:], base.permute(1, 0)[::3]):
        assert gradcheck(torch.sin, (x.requires_grad_(),), fast_mode=fast_mode)


@BOTH_MODES
def test_inputs_that_are_not_leaves(fast_mode):
    x = real(3)
    y = x * 2
    assert gradcheck(torch.sin, (y,), fast_mode=fast_mode)


@BOTH_MODES
def test_inputs_keep_their_contents(fast_mode):
    x = real(2, 2)
    before, version = x.detach().clone(), x._version
    assert gradcheck(torch.exp, (x,), fast_mode=fast_mode)
    assert torch.equal(x.detach(), before)
    assert x._version == version
    assert x.grad is None


def test_inputs_keep_their_contents_when_func_raises():
    x = real(2)
    before = x.detach().clone()
    calls = []

    def func(x):
        calls.append(1)
        if len(calls) > 2:
            raise LookupError("stop")
        return x * 2

    with pytest.raises(LookupError):
        gradcheck(func, (x,))
    assert torch.equal(x.detach(), before)


def test_function_that_reads_its_input_from_elsewhere():
    x = real(3)
    assert gradcheck(lambda _: x**2, (x,))


@BOTH_MODES
def test_input_without_effect_on_one_output(fast_mode):
    x, y = real(2), real(3, seed=1)
    assert gradcheck(lambda x, y: (x * 2, y * 3), (x, y), fast_mode=fast_mode)
    assert gradcheck(lambda x, y: (x * 2).sum(), (x, y), fast_mode=fast_mode)


def test_outputs_without_gradient():
    x = real(3)
    assert gradcheck(lambda x: (x * 2, x.argmax(), torch.ones(2)), (x,))
    assert gradcheck(lambda x: torch.ones(2, dtype=torch.float64), (x,))
    assert gradcheck(lambda x: x.argmax(), (x,))


# complex numbers


@BOTH_MODES
@pytest.mark.parametrize(
    "func",
    [
        lambda z: z * z,
        lambda z: z.conj() * z * 3,
        lambda z: z.real * 2,
        lambda z: z.abs(),
        lambda z: torch.view_as_real(z).sum(),
        lambda z: z * (2 + 3j),
        lambda z: (z * z, z.imag),
    ],
)
def test_complex_inputs(func, fast_mode):
    assert gradcheck(func, (complex_(3),), fast_mode=fast_mode)
    assert gradgradcheck(func, (complex_(3),), fast_mode=fast_mode)


@BOTH_MODES
def test_complex_outputs_of_real_inputs(fast_mode):
    x = real(3)
    assert gradcheck(lambda x: torch.complex(x**2, x.sin()), (x,), fast_mode=fast_mode)
    assert gradcheck(lambda x: x * (1 + 2j), (x,), fast_mode=fast_mode)


@BOTH_MODES
def test_missing_conjugate_is_found(fast_mode):
    unconjugated = function(
        lambda ctx, z: ctx.save_for_backward(z) or z * z, lambda ctx, g: g * 2 * ctx.saved_tensors[0]
    )
    with pytest.raises(GradcheckError, match="part of complex outputs only, Jacobian mismatch"):
        gradcheck(unconjugated, (complex_(2),), fast_mode=fast_mode)


def test_error_in_the_imaginary_part_alone_is_found():
    def backward(ctx, g):
        return torch.complex(g.real, g.imag * 1.1)

    with pytest.raises(GradcheckError, match="While considering the imaginary part of complex outputs only"):
        gradcheck(function(lambda ctx, z: z * 1, backward), (complex_(2),))


# what is wrong


@BOTH_MODES
def test_wrong_factor_is_found(fast_mode):
    with pytest.raises(GradcheckError, match="Jacobian mismatch for output 0 with respect to input 0") as info:
        gradcheck(wrong, (real(2),), fast_mode=fast_mode)
    assert isinstance(info.value, RuntimeError)
    for words in ("numerical", "analytical", "2.1", "2.0"):
        assert words in str(info.value)
    assert gradcheck(wrong, (real(2),), fast_mode=fast_mode, raise_exception=False) is False


def test_message_shows_both_matrices_and_the_worst_entry():
    def backward(ctx, g):
        return g * torch.tensor([2.0, 2.0, 7.0], dtype=torch.float64)

    with pytest.raises(GradcheckError) as info:
        gradcheck(function(lambda ctx, x: x * 2, backward), (real(3),))
    text = str(info.value)
    assert text.index("numerical:") < text.index("analytical:")
    assert "tensor([[2" in text
    assert "element 2 of the input, element 2 of the output" in text


@BOTH_MODES
def test_numbers_in_the_message_count_all_outputs_and_inputs(fast_mode):
    def forward(ctx, x, y):
        return x * 2, y * 3

    broken = function(forward, lambda ctx, g, h: (g * 2, h * 4))
    with pytest.raises(GradcheckError, match="output 1 with respect to input 1"):
        gradcheck(broken, (real(2), real(2, seed=1)), fast_mode=fast_mode)
    with pytest.raises(GradcheckError, match="output 1 with respect to input 1"):
        gradcheck(broken, (real(2).detach(), real(2, seed=1)), fast_mode=fast_mode)


@BOTH_MODES
def test_missing_gradient_is_found(fast_mode):
    with pytest.raises(GradcheckError, match="Jacobian mismatch"):
        gradcheck(lambda x: x.detach() * 3 + x, (real(2),), fast_mode=fast_mode)


def test_outputs_that_lost_their_graph_are_found():
    with pytest.raises(GradcheckError, match="Numerical gradient for function expected to be zero"):
        gradcheck(lambda x: x.detach() * 3, (real(2),))


@BOTH_MODES
def test_nan_is_not_close_to_anything(fast_mode):
    with pytest.raises(GradcheckError, match="nan"):
        gradcheck(function(lambda ctx, x: x * 2, lambda ctx, g: g * float("nan")), (real(2),), fast_mode=fast_mode)


def test_tolerances():
    slightly = function(lambda ctx, x: x * 2, lambda ctx, g: g * 2.0001)
    assert gradcheck(slightly, (real(2),))
    with pytest.raises(GradcheckError):
        gradcheck(slightly, (real(2),), rtol=1e-6)
    assert gradcheck(slightly, (real(2),), rtol=0, atol=1e-3)
    assert gradcheck(wrong, (real(2),), rtol=0.1)


def test_step_of_the_difference():
    x = torch.tensor([1.0], dtype=torch.float64, requires_grad=True)
    assert gradcheck(lambda x: x**3, (x,), eps=1e-4)
    with pytest.raises(GradcheckError):  # the difference over a step of 1 has an error of 1
        gradcheck(lambda x: x**3, (x,), eps=1.0)


@BOTH_MODES
def test_second_derivative_wrong_alone(fast_mode):
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * (2 * x.detach() + 0 * x)

    square = function(lambda ctx, x: ctx.save_for_backward(x) or x * x, backward)
    assert gradcheck(square, (real(2),), fast_mode=fast_mode)
    with pytest.raises(GradcheckError, match="Jacobian mismatch"):
        gradgradcheck(square, (real(2),), fast_mode=fast_mode)
    assert gradgradcheck(square, (real(2),), raise_exception=False) is False


def test_fast_mode_shows_what_slow_mode_finds():
    with pytest.raises(
        GradcheckError, match=r"(?s)computed in fast mode.*in slow mode.*The max per-element difference"
    ):
        gradcheck(wrong, (real(2),), fast_mode=True)


def test_function_that_changes_its_output_shape_or_dtype():
    x = torch.tensor([0.0], dtype=torch.float64, requires_grad=True)
    with pytest.raises(AssertionError, match="return outputs with the same shape when inputs are perturbed at index"):
        gradcheck(lambda x: x.expand(2 if x.item() > 0 else 1) * 2, (x,))
    with pytest.raises(AssertionError, match="same dtype"):
        gradcheck(lambda x: x * 2 if x.item() > 0 else (x * 2).float(), (x,))


# rules of backward


def test_backward_that_is_not_linear_is_found():
    with pytest.raises(GradcheckError, match="backward not multiplied by grad_output"):
        gradcheck(
            function(lambda ctx, x: x.sum() * 2, lambda ctx, g: torch.full((2,), 2.0, dtype=torch.float64)), (real(2),)
        )


@BOTH_MODES
def test_backward_that_is_not_deterministic_is_found(fast_mode):
    state = [0]

    def backward(ctx, g):
        state[0] += 1
        return g * (2 + 1e-7 * (state[0] % 2))

    noisy = function(lambda ctx, x: x * 2, backward)
    with pytest.raises(GradcheckError, match="Backward is not reentrant"):
        gradcheck(noisy, (real(2),), fast_mode=fast_mode)
    assert gradcheck(noisy, (real(2),), nondet_tol=1e-6, fast_mode=fast_mode)


def test_nan_twice_is_deterministic():
    always_nan = function(lambda ctx, x: x * 2, lambda ctx, g: g * float("nan"))
    with pytest.raises(GradcheckError, match="Jacobian mismatch"):
        gradcheck(always_nan, (real(1),))


def test_undefined_gradients_are_zeros():
    def forward(ctx, x):
        ctx.set_materialize_grads(False)
        return x * 2, x * 3

    def careless(ctx, g, h):
        return g * 2 + h * 3

    def careful(ctx, g, h):
        return (0 if g is None else g * 2) + (0 if h is None else h * 3) if g is not None or h is not None else None

    def inventive(ctx, g, h):
        if g is None and h is None:
            return torch.ones(2, dtype=torch.float64)
        return careful(ctx, g, h)

    assert gradcheck(function(forward, careful), (real(2),))
    with pytest.raises((GradcheckError, TypeError), match="undefined output grads|NoneType"):
        gradcheck(function(forward, careless), (real(2),))


def test_undefined_gradients_that_make_gradients_are_found():
    def forward(ctx, x):
        ctx.set_materialize_grads(False)
        return x * 2

    inventive = function(forward, lambda ctx, g: torch.ones(2, dtype=torch.float64) if g is None else g * 2)
    with pytest.raises(GradcheckError, match="undefined or zero when all output grads are undefined or zero"):
        gradcheck(inventive, (real(2),))
    assert gradcheck(inventive, (real(2),), check_undefined_grad=False)


def test_dtype_of_gradients():
    x = torch.ones(2, dtype=torch.float64, requires_grad=True)
    assert gradcheck(right, (x,), check_grad_dtypes=True)


# options that need more


def test_batched_gradients():
    x, y = real(2, 3), real(3, 2, seed=1)
    assert gradcheck(lambda x, y: (x @ y, x * 2), (x, y), check_batched_grad=True)
    assert gradgradcheck(torch.sin, (real(3),), check_batched_grad=True)


def test_forward_mode():
    x, y = real(2, 3), real(3, 2, seed=1)
    for options in ({}, {"fast_mode": True}, {"check_backward_ad": False}):
        assert gradcheck(lambda x, y: (x @ y, x * 2), (x, y), check_forward_ad=True, **options)
    assert gradcheck(lambda z: z * z, (complex_(2),), check_forward_ad=True)


def test_forward_over_reverse():
    assert gradgradcheck(torch.sin, (real(3),), check_fwd_over_rev=True)
    assert gradgradcheck(
        torch.sin, (real(3),), check_fwd_over_rev=True, check_rev_over_rev=False, check_undefined_grad=False
    )


def test_batched_forward_mode():
    assert gradcheck(lambda x: x.sin() * 2, (real(3),), check_forward_ad=True, check_batched_forward_grad=True)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"check_backward_ad": False}, "at least one of check_forward_ad or check_backward_ad"),
        ({"check_backward_ad": False, "check_forward_ad": True, "check_batched_grad": True}, "check_batched_grad=True"),
        ({"check_batched_forward_grad": True}, "check_batched_forward_grad=True requires check_forward_ad"),
    ],
)
def test_options_that_exclude_each_other(options, words):
    with pytest.raises(AssertionError, match=words):
        gradcheck(torch.sin, (real(2),), **options)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"check_rev_over_rev": False}, "at least one of check_fwd_over_rev or check_rev_over_rev"),
        ({"check_rev_over_rev": False, "check_fwd_over_rev": True}, "check_undefined_grad=True requires"),
        (
            {
                "check_rev_over_rev": False,
                "check_fwd_over_rev": True,
                "check_undefined_grad": False,
                "check_batched_grad": True,
            },
            "check_batched_grad=True requires",
        ),
    ],
)
def test_options_of_gradgradcheck_that_exclude_each_other(options, words):
    with pytest.raises(AssertionError, match=words):
        gradgradcheck(torch.sin, (real(2),), **options)


def test_options_are_keywords_only():
    with pytest.raises(TypeError):
        gradcheck(torch.sin, (real(2),), 1e-6)


# inputs that are refused or warned about


def test_inputs_must_require_grad():
    for inputs in (real(2).detach(), (3,), ()):
        with pytest.raises(ValueError, match="at least one input tensor to require gradient"):
            gradcheck(torch.sin, inputs)
        with pytest.raises((ValueError, RuntimeError, TypeError)):
            gradcheck(torch.sin, inputs, raise_exception=False)


def test_single_precision_is_warned_about():
    x = torch.tensor([0.5], requires_grad=True)
    with pytest.warns(UserWarning, match="Input #0 requires gradient and is not a double precision"):
        gradcheck(lambda x: x * 2, (x,), eps=1e-3, atol=1e-2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        gradcheck(lambda x, c: x * c, (real(2), torch.ones(2)))


def test_single_precision_usually_fails():
    x = torch.tensor([0.3, 0.7], requires_grad=True)
    with pytest.warns(UserWarning, match="double precision"), pytest.raises(GradcheckError, match="mismatch"):
        gradcheck(torch.exp, (x,))


def test_inputs_that_overlap_themselves_are_refused():
    x = real(3).detach().expand(2, 3).requires_grad_()
    with pytest.raises(RuntimeError, match="The 1th input has a dimension with stride 0"):
        gradcheck(lambda x, y: x.sum() + y.sum(), (real(2), x))
    assert gradcheck(torch.sin, (real(1).detach().expand(1, 1).requires_grad_(),))


# gradgradcheck


def test_given_cotangents_are_used():
    x, v = real(2), real(2, seed=5)
    assert gradgradcheck(lambda x: x**2, (x,), v)
    assert gradgradcheck(lambda x: (x**2, x.sin()), (x,), (v, real(2, seed=6)))


def test_strided_cotangents():
    seen = []

    def backward(ctx, g):
        seen.append(g.is_contiguous())
        return g * 2

    def run(**options):
        seen.clear()
        assert gradgradcheck(function(lambda ctx, x: x * 2, backward), (real(2, 3),), **options)
        return all(seen)

    assert run()
    assert not run(gen_non_contig_grad_outputs=True)


def test_global_generator_is_not_used():
    torch.manual_seed(0)
    before = torch.rand(1)
    torch.manual_seed(0)
    gradgradcheck(torch.sin, (real(2),), fast_mode=True)
    assert torch.equal(torch.rand(1), before)


def test_whole_outputs_have_no_slope():
    assert gradcheck(lambda x: x.argmax(), (real(3),))
    assert gradcheck(lambda x: (x * 2, x > 0), (real(3),))


def test_jacobians_by_their_old_names():
    from rushlight.autograd.gradcheck import get_analytical_jacobian, get_numerical_jacobian

    x = real(2, 3)
    with pytest.warns(FutureWarning, match="get_numerical_jacobian"):
        (numerical,) = get_numerical_jacobian(lambda inputs: inputs[0].sum(1) * 2, (x,))
    with pytest.warns(FutureWarning, match="get_analytical_jacobian"):
        (analytical,), agree, sizes, types = get_analytical_jacobian((x,), x.sum(1) * 2)
    assert agree and sizes and types and analytical.shape == (6, 2)
    torch.testing.assert_close(numerical, analytical)
    with pytest.warns(FutureWarning), pytest.raises(ValueError, match="grad_out"):
        get_numerical_jacobian(lambda inputs: inputs[0], (x,), grad_out=2.0)
