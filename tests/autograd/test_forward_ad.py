"""Forward mode: levels, duals, views and changes in place, custom Functions, mixed orders, memory, refusals."""

import gc
import itertools
import weakref

import pytest

import rushlight as torch
from rushlight import _C
from rushlight.autograd import Function, forward_ad, grad, gradcheck, gradgradcheck
from rushlight.testing import assert_close


def vector(*numbers):
    return torch.tensor(numbers, dtype=torch.float64)


def tangent_of(tensor):
    return forward_ad.unpack_dual(tensor).tangent


@pytest.fixture
def x():
    return vector(1.0, 2.0, 3.0)


@pytest.fixture
def t():
    return vector(1.0, 10.0, 100.0)


@pytest.fixture
def dual(x, t):
    with forward_ad.dual_level():
        yield forward_ad.make_dual(x, t)


# ---- levels


def test_levels_open_and_close(x, t):
    assert forward_ad.enter_dual_level() == 0
    with pytest.raises(RuntimeError, match="Nested forward mode AD is not supported"):
        forward_ad.enter_dual_level()
    with pytest.raises(RuntimeError, match="not the last one that was created"):
        forward_ad.exit_dual_level(level=3)
    dual = forward_ad.make_dual(x, t)
    assert tangent_of(dual) is not None
    forward_ad.exit_dual_level()
    assert forward_ad.unpack_dual(dual) == (dual, None)
    with pytest.raises(RuntimeError, match="Dual level must be a positive number"):
        forward_ad.exit_dual_level()


def test_a_level_is_closed_by_an_error(x, t):
    with pytest.raises(ZeroDivisionError), forward_ad.dual_level():
        raise ZeroDivisionError
    assert _C._tangent_levels() == 0
    with forward_ad.dual_level() as level:
        assert level == 0


def test_dual_level_is_a_decorator(x, t):
    @forward_ad.dual_level()
    def slope():
        return tangent_of(forward_ad.make_dual(x, t) * 2)

    assert_close(slope(), 2 * t)
    assert_close(slope(), 2 * t)


def test_tangents_of_a_closed_level_are_forgotten(x, t):
    with forward_ad.dual_level():
        kept = forward_ad.make_dual(x, t)
    with forward_ad.dual_level():
        assert tangent_of(kept) is None
        assert tangent_of(kept * 2) is None


def test_exit_frees_tangents(x):
    with forward_ad.dual_level():
        given = torch.ones(3, dtype=torch.float64)
        alive = weakref.ref(given)
        dual = forward_ad.make_dual(x, given)
        del given
        assert alive() is not None
    assert alive() is None and dual.shape == (3,)


def test_nested_levels_give_second_derivatives(x):
    ones = torch.ones_like(x)
    outer = _C._enter_tangent_level()
    first = _C._make_dual(x, ones, outer)
    inner = _C._enter_tangent_level()
    y = _C._make_dual(first, ones, inner).sin() * first
    value, slope = _C._unpack_dual(y, inner)
    # y = sin(x) c at c = x: the inner derivative is cos(x) c, its total derivative cos(x) - x sin(x)
    assert_close(_C._unpack_dual(value, outer)[1], x.cos() * x + x.sin())
    assert_close(_C._unpack_dual(slope, outer)[0], x.cos() * x)
    assert_close(_C._unpack_dual(slope, outer)[1], x.cos() - x * x.sin())
    _C._exit_tangent_level(inner)
    assert_close(_C._unpack_dual(y, outer)[1], x.cos() * x + x.sin())
    _C._exit_tangent_level(outer)


@pytest.mark.parametrize("f", [lambda a: a.prod(), lambda a: a.softmax(0)[1], lambda a: (a @ a.outer(a) @ a).sin()])
def test_hessians_by_nested_levels(f, x):
    expected = torch.autograd.functional.hessian(f, x)
    units = torch.eye(3, dtype=torch.float64)
    for i, j in itertools.product(range(3), range(3)):
        outer = _C._enter_tangent_level()
        first = _C._make_dual(x, units[i], outer)
        inner = _C._enter_tangent_level()
        slope = _C._unpack_dual(f(_C._make_dual(first, units[j], inner)), inner)[1]
        _C._exit_tangent_level(inner)
        assert_close(_C._unpack_dual(slope, outer)[1], expected[i, j])
        _C._exit_tangent_level(outer)


# ---- duals


def test_make_dual_takes_the_tangent_itself(x, t):
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(x, t)
        primal, tangent = forward_ad.unpack_dual(dual)
        assert tangent.data_ptr() == t.data_ptr()
        assert primal.data_ptr() == dual.data_ptr() == x.data_ptr()
        assert tangent_of(primal) is None and tangent_of(x) is None


def test_a_tangent_is_laid_out_like_its_primal():
    rows = torch.randn(3, 4).t()
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(rows, torch.arange(12.0).reshape(4, 3))
        assert tangent_of(dual).stride() == rows.stride()
        assert_close(tangent_of(dual[1:, 0]), torch.tensor([3.0, 6.0, 9.0]))


def test_dual_parameters(t):
    weight = torch.nn.Parameter(vector(1.0, 2.0, 3.0))
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(weight, t)
        assert dual.requires_grad and not dual.is_leaf
        assert_close(grad(dual.sum(), weight)[0], torch.ones(3, dtype=torch.float64))


@pytest.mark.parametrize(
    ("tensor", "tangent", "error", "message"),
    [
        (torch.ones(3), torch.ones(4), RuntimeError, r"different size .* of size \[3\] .* of size \[4\]"),
        (torch.ones(3), torch.ones(1, 3), RuntimeError, r"different size"),
        (torch.ones(3), torch.ones(()), RuntimeError, r"different size .* of size \[\]"),
        (torch.ones(3, dtype=torch.int64), torch.ones(3), ValueError, "Expected primal .* got: torch.int64"),
        (torch.ones(3), torch.ones(3, dtype=torch.int64), ValueError, "Expected tangent .* got: torch.int64"),
        (3, torch.ones(3), AttributeError, "is_floating_point"),
        (torch.ones(3), None, AttributeError, "is_floating_point"),
    ],
)
def test_bad_duals_are_refused(tensor, tangent, error, message):
    with forward_ad.dual_level(), pytest.raises(error, match=message):
        forward_ad.make_dual(tensor, tangent)


def test_levels_are_checked(x, t):
    with pytest.raises(RuntimeError, match="no level exists"):
        forward_ad.make_dual(x, t)
    with forward_ad.dual_level():
        with pytest.raises(RuntimeError, match="Invalid level given to _make_dual"):
            forward_ad.make_dual(x, t, level=5)
        assert tangent_of(x) is None
        assert forward_ad.unpack_dual(forward_ad.make_dual(x, t), level=5).tangent is None
        with pytest.raises(TypeError, match="must be Tensor, not int"):
            forward_ad.unpack_dual(3)


def test_a_dual_gets_no_second_tangent(dual, t):
    with pytest.raises(RuntimeError, match="already has a forward gradient at the same level 0"):
        forward_ad.make_dual(dual, t)
    with pytest.raises(RuntimeError, match="Setting a forward grad that itself has a forward gradient"):
        forward_ad.make_dual(torch.ones(3, dtype=torch.float64), dual)


def test_out_is_refused(dual, x):
    for call in (
        lambda: torch.add(dual, 1, out=torch.empty(3, dtype=torch.float64)),
        lambda: torch.add(x, 1, out=dual),
        lambda: torch.sum(dual, 0, out=torch.empty((), dtype=torch.float64)),
    ):
        with pytest.raises(NotImplementedError, match="Trying to use forward AD with .*_out that does not support it"):
            call()


def test_where_there_is_no_tangent(dual):
    for made in (dual.detach(), dual.data, dual == 1, dual.long(), torch.zeros_like(dual), dual.max(0)[1]):
        assert tangent_of(made) is None
    for made in (dual.floor(), dual.sign(), dual.round()):
        assert_close(tangent_of(made), torch.zeros(3, dtype=torch.float64))


def test_switches(dual, t):
    with torch.no_grad():
        assert_close(tangent_of(dual * 2), 2 * t)
    with torch.inference_mode():
        assert tangent_of(dual * 2) is None
    with forward_ad._set_fwd_grad_enabled(False):
        assert tangent_of(dual) is None and not forward_ad._is_fwd_grad_enabled()
        assert tangent_of(dual * 2) is None
    assert_close(tangent_of(dual), t)


def test_printing(dual):
    assert "tangent=tensor([  1.,  10., 100.]" in repr(dual)


# ---- views and changes in place


def test_views_share_tangents(dual, t):
    head = dual[:2]
    head.mul_(3)
    assert_close(tangent_of(dual), vector(3.0, 30.0, 100.0))
    assert_close(tangent_of(head), vector(3.0, 30.0))
    dual.add_(dual.detach())
    assert_close(tangent_of(head), vector(3.0, 30.0))
    assert_close(t, vector(3.0, 30.0, 100.0))  # it was taken itself, as PyTorch takes it


def test_a_view_gets_the_tangent_that_its_base_gets_later(x, t):
    base = torch.zeros(2, 3, dtype=torch.float64)
    row, before = base[1], base[:, 0]
    with forward_ad.dual_level():
        row.copy_(forward_ad.make_dual(x, t))
        assert_close(tangent_of(base), torch.stack([torch.zeros_like(t), t]))
        assert_close(tangent_of(before), vector(0.0, 1.0))
        base[0, 1] = forward_ad.make_dual(x, t)[2]
        assert_close(tangent_of(base[0]), vector(0.0, 100.0, 0.0))


def test_unpacked_primals_have_no_tangent_though_their_base_has(dual):
    product = dual * 2
    primal = forward_ad.unpack_dual(product).primal
    assert tangent_of(primal[1:]) is None and tangent_of(primal.view(3, 1) * 2) is None
    primal[0] = dual[1]
    assert_close(tangent_of(primal), vector(10.0, 0.0, 0.0))


def test_changes_of_shape_in_place(t):
    matrix, direction = torch.arange(6.0).reshape(2, 3), torch.arange(6.0).reshape(2, 3) + 1
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(matrix, direction).clone()
        dual.t_().unsqueeze_(0)
        assert_close(tangent_of(dual), direction.t().unsqueeze(0))


def test_overwriting_ends_a_tangent(x, t):
    with forward_ad.dual_level():
        for change in (
            lambda a: a.zero_(),
            lambda a: a.fill_(2.0),
            lambda a: a.normal_(),
            lambda a: a.copy_(torch.ones_like(x)),
        ):
            dual = forward_ad.make_dual(x.clone(), t.clone())
            change(dual)
            assert_close(tangent_of(dual), torch.zeros_like(t))


def test_a_tensor_becomes_dual_in_place(x, t):
    with forward_ad.dual_level():
        plain = x.clone()
        plain.mul_(forward_ad.make_dual(x, t))
        assert_close(tangent_of(plain), x * t)
        both = x.clone()
        both[1:] = forward_ad.make_dual(x, t)[1:].exp()
        assert_close(tangent_of(both), torch.cat([vector(0.0), (x.exp() * t)[1:]]))


def test_results_do_not_share_their_operands_tangent(x, t):
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(x.clone(), t.clone())
        shifted, copied, split = dual + 1, dual.clone(), torch.cat([dual])
        dual.mul_(5)
        for made in (shifted, copied, split):
            assert_close(tangent_of(made), t)


# ---- mixed orders


def test_reverse_over_forward(x, t):
    x.requires_grad_()
    t.requires_grad_()
    with forward_ad.dual_level():
        tangent = tangent_of((forward_ad.make_dual(x, t) ** 3).sum())
    by_x, by_t = grad(tangent, (x, t))
    assert_close(by_x, 6 * x * t)
    assert_close(by_t, 3 * x**2)


def test_forward_over_reverse_fills_grad(x, t):
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(x, t).requires_grad_()
        (dual**3).sum().backward()
        assert_close(tangent_of(dual.grad), 6 * x * t)
        (dual**2).sum().backward()
        assert_close(forward_ad.unpack_dual(dual.grad).primal, 3 * x**2 + 2 * x)
        assert_close(tangent_of(dual.grad), 6 * x * t + 2 * t)


def test_saved_outputs_keep_their_tangents(x, t):
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(x, t).requires_grad_()
        slope = grad(dual.sigmoid().sum(), dual)[0]
        s = x.sigmoid()
        assert_close(tangent_of(slope), s * (1 - s) * (1 - 2 * s) * t)


def test_saved_tensors_hooks_work_beside_tangents(x, t):
    packed = []
    weight = torch.eye(3, dtype=torch.float64).requires_grad_()
    with (
        forward_ad.dual_level(),
        torch.autograd.graph.saved_tensors_hooks(lambda s: packed.append(s) or s * 1, lambda s: s),
    ):
        out = weight @ forward_ad.make_dual(x, t)
        assert_close(tangent_of(out), t)
        assert sum(s.data_ptr() == x.data_ptr() for s in packed) == 1
        out.sum().backward()
    assert_close(weight.grad[0], x)


def test_gradcheck_in_all_modes(x):
    def f(a, b):
        return (a @ b).tanh(), (a * b).sum().exp()

    point = (torch.eye(3, dtype=torch.float64).requires_grad_(), (x / 4).requires_grad_())
    for fast_mode in (False, True):
        options = {"fast_mode": fast_mode, "check_undefined_grad": True}
        assert gradcheck(f, point, check_forward_ad=True, **options)
        assert gradcheck(f, point, check_forward_ad=True, check_backward_ad=False, **options)
        assert gradgradcheck(f, point, check_fwd_over_rev=True, fast_mode=fast_mode)


# ---- custom Functions


def custom(jvp, forward=lambda ctx, a: a * 2):
    def backward(ctx, *g):
        return g[0] * 2

    members = {"forward": forward, "backward": backward, "jvp": jvp}
    return type("Made", (Function,), {k: staticmethod(v) for k, v in members.items() if v})


def test_jvp_of_a_function(dual, x, t):
    def forward(ctx, a, b, n):
        ctx.save_for_forward(a)
        ctx.n = n
        return a**n + b

    def jvp(ctx, ta, tb, none):
        assert none is None and not tb.any()
        (a,) = ctx.saved_tensors if ctx.saved_tensors else ctx.saved_for_forward
        assert tangent_of(a) is None
        return ctx.n * a ** (ctx.n - 1) * ta

    assert_close(tangent_of(custom(jvp, forward).apply(dual, x, 3)), 3 * x**2 * t)


def test_jvp_is_differentiated(x, t):
    def forward(ctx, a):
        ctx.save_for_backward(a)
        ctx.save_for_forward(a)
        return a**2

    x.requires_grad_()
    with forward_ad.dual_level():
        made = custom(lambda ctx, ta: 2 * ctx.saved_for_forward[0] * ta, forward).apply(forward_ad.make_dual(x, t))
        assert_close(grad(tangent_of(made).sum(), x)[0], 2 * t)


def test_outputs_that_a_function_saved_keep_their_tangents(x, t):
    class Exp(torch.autograd.Function):
        @staticmethod
        def forward(ctx, a):
            y = a.exp()
            ctx.save_for_backward(y)
            ctx.save_for_forward(y)
            return y

        @staticmethod
        def backward(ctx, g):
            return g * ctx.saved_tensors[0]

        @staticmethod
        def jvp(ctx, ta):
            return ta * ctx.saved_for_forward[0]

    with forward_ad.dual_level():
        dual = forward_ad.make_dual(x, t).requires_grad_()
        assert_close(tangent_of(grad(Exp.apply(dual).sum(), dual)[0]), x.exp() * t)


def test_functions_without_jvp_are_refused(dual, x):
    assert_close(custom(None).apply(x), 2 * x)
    with pytest.raises(NotImplementedError, match="You must implement the jvp function"):
        custom(None).apply(dual)


def test_jvp_is_not_called_without_tangents(x):
    with forward_ad.dual_level():
        assert tangent_of(custom(lambda ctx, ta: 1 / 0).apply(x)) is None


def in_place(ctx, a):
    ctx.mark_dirty(a)
    return a.mul_(2)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (custom(lambda ctx, ta: (ta, ta)), r"expected 1 but got 2"),
        (custom(lambda ctx, ta: ta, lambda ctx, a: (a * 2, a * 3)), r"expected 2 but got 1"),
        (custom(lambda ctx, ta: 3), r"expected Variable or None \(got int\) for grad output 0"),
        (custom(lambda ctx, ta: ta[:2]), r"different size"),
        (custom(lambda ctx, ta: None), r"position 0"),
        (custom(lambda ctx, ta: ta * 1, lambda ctx, a: a.view(3, 1)), r"returning a view .* is not returning a view"),
        (custom(lambda ctx, ta: ta, lambda ctx, a: a), r"returning a view .* is not returning a view"),
        (custom(lambda ctx, ta: (ta, ta), lambda ctx, a: (a * 2, a.long())), r"position 1.* not a differentiable"),
    ],
)
def test_wrong_jvps_are_refused(function, message, dual):
    with pytest.raises(RuntimeError, match=message):
        function.apply(dual)


def test_functions_in_place(dual, t):
    changed = custom(lambda ctx, ta: ta.mul_(2), in_place).apply(dual.clone())
    assert_close(tangent_of(changed), 2 * t)
    with pytest.raises(RuntimeError, match="must modify the corresponding gradient inplace"):
        custom(lambda ctx, ta: ta * 2, in_place).apply(dual.clone())


def test_functions_of_views(dual, t):
    shown = custom(lambda ctx, ta: ta.view(3, 1), lambda ctx, a: a.view(3, 1)).apply(dual)
    assert_close(tangent_of(shown), t.view(3, 1))


def test_save_for_forward_takes_tensors(dual):
    def forward(ctx, a):
        ctx.save_for_forward(3)
        return a * 2

    with pytest.raises(AssertionError, match="save_for_forward expects all arguments to be tensors"):
        custom(lambda ctx, ta: ta, forward).apply(dual)


# ---- large tensors, which are pending until somebody looks


def test_large_tangents(t):
    n = 1 << 17
    x, along = torch.linspace(-2, 2, n, dtype=torch.float64), torch.linspace(1, 3, n, dtype=torch.float64)

    def f(a):
        return 0.5 * a * (1 + torch.tanh(0.8 * (a + 0.04 * a * a * a)))

    x.requires_grad_()
    expected = grad(f(x).sum(), x)[0] * along
    x.requires_grad_(False)
    for first in (0, 1):
        with forward_ad.dual_level():
            pair = forward_ad.unpack_dual(f(forward_ad.make_dual(x, along)))
            pair[first].sum()  # whichever is asked for first
            assert_close(pair.tangent, expected)
            assert_close(pair.primal, f(x))
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(x, along)
        for _ in range(60):  # more work than one pass takes
            dual = dual * 1.001 + 0.001
        assert_close(tangent_of(dual), along * 1.001**60)


def test_no_tensor_is_left_behind(x, t):
    gc.collect()
    x.requires_grad_()
    alive = []
    for _ in range(3):
        with forward_ad.dual_level():
            out = (forward_ad.make_dual(x, t).exp().tanh() ** 2).sum()
            alive.append(weakref.ref(out))
            grad(tangent_of(out), x)
        del out
    gc.collect()
    assert [a() for a in alive] == [None] * 3


def test_overwriting_an_expanded_view_reaches_the_tangent_of_its_base():
    with forward_ad.dual_level():
        base = forward_ad.make_dual(torch.arange(3.0), torch.ones(3))
        view = base.expand(2, 3)
        view.zero_()
        assert forward_ad.unpack_dual(base).tangent.tolist() == [0.0, 0.0, 0.0]
        assert forward_ad.unpack_dual(view).tangent.tolist() == [[0.0, 0.0, 0.0]] * 2


def test_saved_tensors_of_a_jvp_are_those_of_save_for_forward(x, t):
    class Scale(torch.autograd.Function):
        @staticmethod
        def forward(x, factor):
            return x * factor

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_forward(*inputs)
            ctx.save_for_backward(output)

        @staticmethod
        def jvp(ctx, tangent, factor_tangent):
            x, factor = ctx.saved_tensors
            return tangent * factor + x * factor_tangent

        @staticmethod
        def backward(ctx, gradient):
            (output,) = ctx.saved_tensors
            return gradient * output, None

    factor = torch.full_like(x, 3.0)
    for inputs in (x.detach(), x.detach().requires_grad_()):
        with forward_ad.dual_level():
            out = Scale.apply(forward_ad.make_dual(inputs, t), factor)
            assert torch.equal(forward_ad.unpack_dual(out).tangent, 3 * t)
    (gradient,) = torch.autograd.grad(out.sum(), inputs)
    assert torch.equal(gradient, 3 * inputs)


def test_jvp_of_a_view_gives_a_view_of_the_tangent(x, t):
    class Flat(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.view(-1)

        @staticmethod
        def jvp(ctx, tangent):
            return tangent.clone().view(-1)

    with forward_ad.dual_level(), pytest.raises(RuntimeError, match="jvp is not returning a view"):
        Flat.apply(forward_ad.make_dual(x, t))


@pytest.mark.parametrize("context", ["hooks", "checkpoint", "save_on_cpu", "memory_budget"])
def test_forward_over_reverse_where_saved_tensors_go_through_hooks(context):
    """What is saved keeps its tangents: inputs, and outputs of pointwise operations and of Functions."""

    class Exp(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            y = x.exp()
            ctx.save_for_backward(y)
            ctx.save_for_forward(y)
            return y

        @staticmethod
        def backward(ctx, gradient):
            return gradient * ctx.saved_tensors[0]

        @staticmethod
        def jvp(ctx, tangent):
            return tangent * ctx.saved_tensors[0]

    def function(x):
        return Exp.apply(x.sin()) * x.tanh() * (x @ x) + (x * x).exp()

    def second(wrapped):
        x = torch.tensor([0.5, -0.25, 1.0], dtype=torch.float64, requires_grad=True)
        with forward_ad.dual_level():
            dual = forward_ad.make_dual(x, torch.tensor([1.0, 2.0, -1.0], dtype=torch.float64))
            (gradient,) = torch.autograd.grad(wrapped(dual).sum(), dual)
            return forward_ad.unpack_dual(gradient).tangent

    graph = torch.autograd.graph
    contexts = {
        "hooks": lambda: graph.saved_tensors_hooks(torch.clone, lambda t: t),
        "save_on_cpu": graph.save_on_cpu,
        "memory_budget": lambda: graph.memory_budget(10**6),
    }

    def within(x):
        if context == "checkpoint":
            return torch.utils.checkpoint.checkpoint(function, x, use_reentrant=False)
        with contexts[context]():
            return function(x)

    torch.testing.assert_close(second(within), second(function))
