"""Anomaly mode: where a failing derivative was recorded, and where NaN first appears."""

import sys
import warnings

import pytest

import rushlight as torch
from rushlight.autograd import Function, _location, detect_anomaly, set_detect_anomaly
from rushlight.autograd.anomaly_mode import detect_anomaly as same_detect_anomaly


@pytest.fixture(autouse=True)
def anomaly_mode_is_off_afterwards():
    yield
    assert not torch.is_anomaly_enabled()
    set_detect_anomaly(False)


class Broken(Function):
    @staticmethod
    def forward(ctx, x, error):
        ctx.error = error
        return x * 1

    @staticmethod
    def backward(ctx, g):
        if ctx.error is None:
            return g * float("nan"), None
        raise ctx.error


def where_it_is_recorded(x, error):
    return Broken.apply(x, error)


def test_block_sets_and_restores_the_mode():
    assert not torch.is_anomaly_enabled()
    with pytest.warns(UserWarning, match="Anomaly Detection has been enabled"):
        context = detect_anomaly(check_nan=False)
    assert not torch.is_anomaly_enabled()
    with context:
        assert torch.is_anomaly_enabled()
        assert not torch.is_anomaly_check_nan_enabled()
        with set_detect_anomaly(False):
            assert not torch.is_anomaly_enabled()
        assert torch.is_anomaly_enabled()
    assert not torch.is_anomaly_enabled()
    assert same_detect_anomaly is detect_anomaly is torch.autograd.detect_anomaly


def test_function_switches_at_once():
    set_detect_anomaly(True)
    assert torch.is_anomaly_enabled()
    assert torch.is_anomaly_check_nan_enabled()
    set_detect_anomaly(False)
    assert not torch.is_anomaly_enabled()


def test_mode_is_restored_after_an_exception():
    with pytest.raises(LookupError), set_detect_anomaly(True):
        raise LookupError


def test_nan_is_an_error():
    x = torch.tensor([-1.0], requires_grad=True)
    with set_detect_anomaly(True), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        y = Broken.apply(x, None)
        with pytest.raises(RuntimeError, match="Function 'BrokenBackward' returned nan values in its 0th output"):
            y.sum().backward()
        z = torch.sqrt(x)
        with pytest.raises(RuntimeError, match="'SqrtBackward0' returned nan values in its 0th output"):
            z.sum().backward()
    assert x.grad is None


def test_nan_is_no_error_if_not_checked():
    x = torch.tensor([1.0], requires_grad=True)
    with set_detect_anomaly(True, check_nan=False):
        Broken.apply(x, None).sum().backward()
    assert x.grad.isnan().all()
    Broken.apply(x, None).sum().backward()


def test_lines_of_the_forward_are_shown():
    x = torch.tensor([1.0], requires_grad=True)
    with set_detect_anomaly(True):
        y = where_it_is_recorded(x, ValueError("mine"))
        with (
            pytest.warns(UserWarning, match=r"(?s)Error detected in BrokenBackward.*where_it_is_recorded"),
            pytest.raises(ValueError, match="mine"),
        ):
            y.sum().backward()


def test_forward_outside_has_no_lines():
    x = torch.tensor([1.0], requires_grad=True)
    y = where_it_is_recorded(x, ValueError("mine"))
    with (
        set_detect_anomaly(True),
        pytest.warns(UserWarning, match="Error detected in BrokenBackward. No forward pass information"),
        pytest.raises(ValueError, match="mine"),
    ):
        y.sum().backward()


def test_exception_stays_the_same_object():
    x = torch.tensor([1.0], requires_grad=True)
    error = KeyError("mine")
    with set_detect_anomaly(True), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        y = where_it_is_recorded(x, error)
        with pytest.raises(KeyError) as info:
            y.sum().backward()
    assert info.value is error


def test_in_place_error_under_anomaly_names_the_forward_line():
    def saves(t):
        return t.exp()

    x = torch.tensor([1.0], requires_grad=True)
    with set_detect_anomaly(True), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        y = saves(x)
        y.add_(1)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            y.sum().backward()
    assert any("ExpBackward0" in str(w.message) and "saves" in str(w.message) for w in caught)


def test_set_record_locations_takes_a_bool():
    with pytest.raises(TypeError, match="must be bool"):
        torch.autograd.set_record_locations(1)
    torch.autograd.set_record_locations(False)


def test_recorded_locations_name_both_lines():
    def modifies(t):
        t.add_(1)

    def needs(t):
        return t * t

    x = torch.tensor([1.0], requires_grad=True)
    torch.autograd.set_record_locations(True)
    try:
        y = x * 1
        z = needs(y)
        modifies(y)
        with pytest.raises(RuntimeError, match="modified by an inplace operation") as info:
            z.sum().backward()
    finally:
        torch.autograd.set_record_locations(False)
    text = str(info.value)
    for function in (modifies, needs):
        number = function.__code__.co_firstlineno + 1
        assert f"{function.__code__.co_filename}:{number} in {function.__name__}" in text


def test_location_is_that_of_the_caller_outside_of_the_package():
    place = torch._C._capture_place()
    line, name = here() - 1, sys._getframe().f_code.co_name
    assert _location.line_of(place) == f"{__file__}:{line} in {name}"
    trace = _location.stack_of(place)
    assert trace.endswith("place = torch._C._capture_place()\n")
    assert f'File "{__file__}", line {line}, in {name}\n' in trace
    assert trace.count("  File ") > 1
    assert _location.lines_of(place)[0] == f"{__file__}({line}): {name}"


# --- beyond PyTorch: infinities, forward, statistics -----------------------------------------------------------------


def here():
    return sys._getframe(1).f_lineno


def test_forward_names_the_first_operation_its_inputs_and_the_line():
    x = torch.tensor([4.0, -1.0, 0.25], requires_grad=True)
    with set_detect_anomaly(True, check_forward=True):
        y = x * 2
        with pytest.raises(RuntimeError, match="Operation 'log' returned nan values in its 0th output") as info:
            (y.log() + 1).sum()
        line = here() - 1
        (x * 3).sum().backward()
    text = str(info.value)
    assert f"{__file__}:{line} in test_forward_names" in text
    assert "Input 0: torch.float32 [3], min -2, max 8, mean 2.16667, 0 nan, 0 inf, of 3" in text
    assert "Result: torch.float32 [3]" in text
    assert "1 nan, 0 inf, of 3" in text


@pytest.mark.parametrize(
    ("name", "operation"),
    [
        ("div", lambda x: (x - x) / (x - x)),
        ("div", lambda x: 0 / (x - x)),
        ("pow", lambda x: (-x) ** 0.5),
        ("div_", lambda x: (x - x).div_(torch.zeros(2))),
        ("log", lambda x: (x - 5).log()),
        ("log", lambda x: torch.log(x - 5, out=torch.empty(2))),
        ("max", lambda x: torch.stack([x, (x - 5).sqrt()]).max(0)),
        ("__setitem__", lambda x: x.clone().__setitem__(0, float("nan"))),
    ],
)
def test_forward_of_every_kind_of_call(name, operation):
    x = torch.tensor([1.0, 2.0])
    if name == "max":  # the square root is the first
        name = "sqrt"
    if name == "__setitem__":  # a value that holds NaN has been given, not computed

        def operation(x):
            x = x.clone()
            x[0] = 0.0
            return x / x

        name = "div"
    with (
        set_detect_anomaly(True, check_forward=True),
        pytest.raises(RuntimeError, match=f"Operation '{name}' returned nan values"),
    ):
        operation(x)


def test_forward_that_was_given_nan_is_not_its_origin():
    x = torch.tensor([1.0, float("nan")])
    with set_detect_anomaly(True, check_forward=True):
        assert (x * 2 + 1).isnan().tolist() == [False, True]
        x += 1
        assert x[0].item() == 2.0


def test_infinity_only_if_asked():
    x = torch.tensor([0.0, 1.0], requires_grad=True)
    with set_detect_anomaly(True, check_forward=True):
        x.log()
        x.sqrt().sum().backward()
    with set_detect_anomaly(True, check_inf=True, check_forward=True):
        with pytest.raises(RuntimeError, match="Operation 'log' returned inf values"):
            x.log()
        y = x.sqrt()
        with (
            pytest.warns(UserWarning, match="Error detected in SqrtBackward0"),
            pytest.raises(RuntimeError, match="Function 'SqrtBackward0' returned inf values in its 0th output") as info,
        ):
            y.sum().backward()
        line = here() - 6
    text = str(info.value)
    assert f"Its operation was called here: {__file__}:{line}" in text
    assert "Gradient 0: torch.float32 [2], min 1, max 1, mean 1, 0 nan, 0 inf, of 2" in text


def test_backward_error_gives_the_line_and_what_came_in():
    x = torch.tensor([-1.0], requires_grad=True)
    with set_detect_anomaly(True), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        y = torch.sqrt(x)
        line = here() - 1
        with pytest.raises(RuntimeError, match="'SqrtBackward0' returned nan values") as info:
            (y * 3).sum().backward()
    assert f"{__file__}:{line}" in str(info.value)
    assert "Gradient 0: torch.float32 [1], min 3, max 3" in str(info.value)


def test_branch_not_taken_is_explained():
    """The most reported NaN of all: where() gives a gradient of 0 to the branch not taken, whose derivative is nan."""
    x = torch.tensor([0.0, 4.0], requires_grad=True)
    with set_detect_anomaly(True), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        y = torch.where(x > 0, x.sqrt(), 0.0)
        with pytest.raises(RuntimeError, match="'SqrtBackward0' returned nan values") as info:
            y.sum().backward()
        assert "0 times an infinite derivative" in str(info.value)
        assert "torch.where(mask, f(torch.where(mask, x, 1.0)), 0.0)" in str(info.value)
        torch.where(x > 0, torch.where(x > 0, x, 1.0).sqrt(), 0.0).sum().backward()
        assert x.grad.tolist() == [0.0, 0.25]
        y = torch.tensor([-1.0], requires_grad=True).sqrt()
        with pytest.raises(RuntimeError, match="returned nan values") as info:
            y.sum().backward()
        assert "0 times" not in str(info.value)


def test_large_results_are_checked_at_once():
    x = torch.full((1 << 17,), -1.0)
    with (
        set_detect_anomaly(True, check_forward=True),
        pytest.raises(RuntimeError, match="Operation 'sqrt' returned nan"),
    ):
        x.sqrt()


def test_everything_is_off_afterwards():
    with pytest.warns(UserWarning, match="Anomaly Detection"):
        context = detect_anomaly(check_inf=True, check_forward=True)
    with context, set_detect_anomaly(False):
        assert torch.tensor([-1.0]).log().isnan().all()
    with context, pytest.raises(RuntimeError, match="Operation 'log'"):
        torch.tensor([-1.0]).log()
    assert torch.tensor([-1.0]).log().isnan().all()
    assert torch.tensor([0.0]).log().isinf().all()
    x = torch.zeros(1, requires_grad=True)
    x.sqrt().sum().backward()
    assert x.grad.isinf().all()


def test_checks_reach_subclasses():
    class Mine(torch.Tensor):
        pass

    x = torch.zeros(2).as_subclass(Mine) if hasattr(torch.Tensor, "as_subclass") else torch.nn.Parameter(torch.zeros(2))
    with (
        set_detect_anomaly(True, check_forward=True),
        pytest.raises(RuntimeError, match="Operation 'div' returned nan"),
    ):
        x / x


# ---- large tensors, whose gradients are pending work


def test_the_first_bad_gradient_of_a_pending_chain_is_named():
    x = torch.full((100_000,), 4.0, requires_grad=True)
    with torch.autograd.detect_anomaly(), pytest.raises(RuntimeError, match="'SqrtBackward0' returned nan"):
        ((((x - 4).sqrt() * 0) + x) * 2).tanh().sum().backward()
    assert x.grad is None


def test_a_bad_pending_gradient_is_found_before_a_hook_runs():
    seen = []
    x = torch.full((100_000,), 4.0, requires_grad=True)
    y = x - 4
    y.register_hook(lambda g: seen.append("hook"))
    with torch.autograd.detect_anomaly(), pytest.raises(RuntimeError, match="'SqrtBackward0' returned nan"):
        (y.sqrt() * 0).exp().sum().backward()
    assert seen == [] and x.grad is None


def test_a_pending_chain_is_looked_at_in_few_passes():
    x = torch.randn(100_000, requires_grad=True)
    with torch.autograd.detect_anomaly():
        y = ((x * 2 + 1).sin() * 3).exp().sum()
        before = torch._C._deferral_stats()["passes"]
        y.backward()
        assert torch._C._deferral_stats()["passes"] - before <= 2
    assert torch.allclose(x.grad, ((x * 2 + 1).sin() * 3).exp() * 6 * (x * 2 + 1).cos())


def test_gradients_that_are_looked_at_are_not_written():
    x = torch.randn(100_000, requires_grad=True)
    y = (0.5 * x * (1 + torch.tanh(0.8 * (x + 0.04 * x * x * x)))).sum()
    torch.reset_peak_memory_stats()
    before = torch.memory_stats()["allocated_bytes"]
    with torch.autograd.detect_anomaly():
        y.backward()
    assert torch.memory_stats()["peak_bytes"] - before < 3 * x.nbytes


@pytest.mark.parametrize("where", [0, 50_000, 99_999])
def test_a_bad_pending_gradient_that_the_next_operation_hides_is_found(where):
    """d relu is 0 where its operand is negative: the NaN from above it does not reach the leaf."""
    start = torch.ones(100_000)
    start[where] = -1
    x = start.clone().requires_grad_()
    y = (x * 2).relu()  # 0 there, where the square root's derivative is infinite
    with torch.autograd.detect_anomaly(), pytest.raises(RuntimeError, match="'SqrtBackward0' returned nan"):
        (y.sqrt() * (start > 0)).sum().backward()
    assert x.grad is None
    (((x * 2).relu()).sqrt() * (start > 0)).sum().backward()
    assert x.grad.isfinite().all()  # hidden, indeed


def test_an_overflow_of_a_sum_of_gradients_is_no_fault_of_an_operation():
    x = torch.ones(100_000, requires_grad=True)
    with torch.autograd.detect_anomaly(check_inf=True):
        (x * 3e38 + x * 3e38).sum().backward()
    assert x.grad.isinf().all()


@pytest.mark.parametrize("ask", [False, True])
def test_infinity_in_a_pending_chain_only_if_asked(ask):
    x = torch.full((100_000,), 4.0)
    x[5] = 0
    x.requires_grad_()
    with torch.autograd.detect_anomaly(check_inf=ask):
        y = (x.log() * 2 + 1).sum()
        if ask:
            with pytest.raises(RuntimeError, match="'LogBackward0' returned inf"):
                y.backward()
        else:
            y.backward()
            assert x.grad[5].item() == float("inf")
