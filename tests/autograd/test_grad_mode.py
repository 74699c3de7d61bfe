"""Switches of recording: as blocks, functions and decorators, nested, per thread, and what is made inside."""

import asyncio
import functools
import inspect
import subprocess
import sys
import threading

import pytest

import rushlight as torch
from rushlight.autograd.grad_mode import set_multithreading_enabled


@pytest.fixture
def x():
    return torch.ones(2, requires_grad=True)


def recording():
    return (torch.ones(1, requires_grad=True) * 2).requires_grad


# blocks


def test_no_grad_block(x):
    with torch.no_grad():
        y = x * 2
        assert not torch.is_grad_enabled()
    assert not y.requires_grad
    assert y.grad_fn is None
    assert y.is_leaf
    assert torch.is_grad_enabled()
    assert (x * 2).requires_grad


def test_enable_grad_inside_no_grad(x):
    with torch.no_grad():
        with torch.enable_grad():
            assert (x * 2).requires_grad
        assert not (x * 2).requires_grad


def test_as_target_is_none():
    with torch.no_grad() as target:
        assert target is None


def test_mode_is_restored_after_an_exception():
    for context in (torch.no_grad, torch.inference_mode):
        with pytest.raises(ZeroDivisionError), context():
            raise ZeroDivisionError
        assert torch.is_grad_enabled()
        assert not torch.is_inference_mode_enabled()


def test_set_grad_enabled_is_a_function_and_a_block(x):
    torch.set_grad_enabled(False)
    try:
        assert not (x * 2).requires_grad
        with torch.set_grad_enabled(True):
            assert (x * 2).requires_grad
        assert not torch.is_grad_enabled()
    finally:
        torch.set_grad_enabled(True)
    assert (x * 2).requires_grad


def test_set_grad_enabled_switches_when_made_not_when_entered():
    guard = torch.set_grad_enabled(False)
    try:
        assert not torch.is_grad_enabled()
        with guard:
            assert not torch.is_grad_enabled()
        assert torch.is_grad_enabled()
    finally:
        torch.set_grad_enabled(True)


@pytest.mark.parametrize("bad", [1, 0, "True", None, 1.0])
def test_modes_are_bools(bad):
    with pytest.raises(TypeError, match=r"set_grad_enabled\(\).*must be bool"):
        torch.set_grad_enabled(bad)
    with pytest.raises(TypeError, match="must be bool"):
        torch.inference_mode(bad)
    assert torch.is_grad_enabled()
    assert not torch.is_inference_mode_enabled()


def test_repr_of_set_grad_enabled():
    guard = torch.set_grad_enabled(True)
    assert repr(guard) == str(guard) == "torch.autograd.grad_mode.set_grad_enabled(mode=True)"


def test_created_inside_no_grad_may_require_grad(x):
    with torch.no_grad():
        leaf = torch.ones(2, requires_grad=True)
        assert leaf.requires_grad
        y = x * 2
        y.requires_grad_()
    assert y.is_leaf
    y.sum().backward()
    assert y.grad.tolist() == [1.0, 1.0]
    assert x.grad is None


def test_leaf_may_be_changed_in_place_inside_no_grad(x):
    with torch.no_grad():
        x += 1
        x.mul_(2)
    assert x.requires_grad
    assert x.is_leaf
    assert x.tolist() == [4.0, 4.0]


def test_view_made_inside_no_grad_refuses_change_outside(x):
    with torch.no_grad():
        view = x[:1]
    assert view.requires_grad  # as its base does
    with pytest.raises(RuntimeError, match="no_grad mode"):
        view.mul_(2)
    assert x.tolist() == [1.0, 1.0]


def test_backward_works_inside_no_grad(x):
    y = (x * x).sum()
    with torch.no_grad():
        y.backward()
        assert not torch.is_grad_enabled()
    assert x.grad.tolist() == [2.0, 2.0]


def test_create_graph_records_inside_no_grad(x):
    y = (x**3).sum()
    with torch.no_grad():
        (g,) = torch.autograd.grad(y, x, create_graph=True)
    assert g.requires_grad


# inference mode


def test_inference_mode_block(x):
    with torch.inference_mode():
        y = x * 2
        assert torch.is_inference_mode_enabled()
        assert not torch.is_grad_enabled()
    assert not torch.is_inference_mode_enabled()
    assert torch.is_grad_enabled()
    assert y.is_inference()
    assert not y.requires_grad
    assert not x.is_inference()


def test_inference_mode_false_is_a_block_of_normal_mode(x):
    with torch.inference_mode():
        with torch.inference_mode(False):
            assert not torch.is_inference_mode_enabled()
            assert torch.is_grad_enabled()
            y = x * 2
            assert y.requires_grad
            assert not y.is_inference()
        assert torch.is_inference_mode_enabled()
        assert not torch.is_grad_enabled()


def test_inference_mode_false_inside_no_grad_records(x):
    with torch.no_grad():
        with torch.inference_mode(False):
            assert (x * 2).requires_grad
        assert not torch.is_grad_enabled()


def test_enable_grad_does_not_lift_inference_mode(x):
    with torch.inference_mode(), torch.enable_grad():
        assert torch.is_grad_enabled()
        assert not (x * 2).requires_grad


def test_inference_tensors_stay_out_of_graphs(x):
    with torch.inference_mode():
        frozen = torch.ones(2)
    with pytest.raises(RuntimeError, match="Inference tensors cannot be saved for backward"):
        x * frozen
    with pytest.raises(RuntimeError, match="Inplace update to inference tensor outside InferenceMode"):
        frozen.add_(1)
    with pytest.raises(RuntimeError, match="requires_grad=True on inference tensor"):
        frozen.requires_grad_()
    with pytest.raises(RuntimeError, match="Inference tensors do not track version counter"):
        _ = frozen._version
    assert (x + frozen).requires_grad


def test_refused_change_of_an_inference_tensor_changes_nothing():
    with torch.inference_mode():
        frozen = torch.ones(2)
    with pytest.raises(RuntimeError, match="inference tensor"):
        frozen.add_(1)
    assert frozen.tolist() == [1.0, 1.0]


def test_inference_tensors_change_inside_and_are_freed_by_clone(x):
    with torch.inference_mode():
        frozen = torch.ones(2)
        frozen.add_(1)
    thawed = frozen.clone()
    assert not thawed.is_inference()
    (x * thawed).sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]


def test_normal_tensor_changed_in_inference_mode_is_noticed(x):
    y = x * 1
    z = y * y
    with torch.inference_mode():
        y.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.sum().backward()


# decorators

DECORATORS = [torch.no_grad, torch.no_grad(), torch.inference_mode, torch.inference_mode(), torch.inference_mode(True)]


@pytest.mark.parametrize("decorator", DECORATORS)
def test_decorates_functions(decorator):
    @decorator
    def func(a, *, b=1):
        """Doc."""
        return a + b, recording()

    assert func(1, b=2) == (3, False)
    assert func.__name__ == "func"
    assert func.__doc__ == "Doc."
    assert list(inspect.signature(func).parameters) == ["a", "b"]
    assert recording()


def test_enable_grad_decorates():
    @torch.enable_grad()
    def func():
        return recording()

    with torch.no_grad():
        assert func()
        assert not recording()


def test_set_grad_enabled_decorates_without_switching():
    @torch.set_grad_enabled(False)
    def func():
        return recording()

    assert recording()
    assert not func()
    assert recording()


def test_inference_mode_false_decorates():
    @torch.inference_mode(False)
    def func():
        return recording()

    with torch.inference_mode():
        assert func()


def test_decorates_methods_and_other_callables():
    class Model:
        @torch.no_grad()
        def method(self):
            return recording()

        @classmethod
        @torch.no_grad()
        def of_class(cls):
            return recording()

        def __call__(self):
            return recording()

    assert not Model().method()
    assert not Model.of_class()
    assert not torch.no_grad()(Model())()
    assert not torch.no_grad()(functools.partial(recording))()
    assert not torch.no_grad()(lambda: recording())()


def test_decorated_function_may_recurse_and_raise():
    @torch.no_grad()
    def count(n):
        assert not recording()
        if n == 0:
            raise ValueError("end")
        count(n - 1)

    with pytest.raises(ValueError, match="end"):
        count(3)
    assert recording()


def test_decorating_what_cannot_be_called():
    for decorator in (torch.no_grad, torch.no_grad(), torch.enable_grad()):
        with pytest.raises(TypeError, match="int"):
            decorator(3)


def test_decorating_a_class_warns_and_guards_construction():
    class Model:
        def __init__(self):
            self.recorded = recording()

        def method(self):
            return recording()

    with pytest.warns(FutureWarning, match="Decorating classes is deprecated"):
        make = torch.no_grad()(Model)
    model = make()
    assert isinstance(model, Model)
    assert not model.recorded
    assert model.method()


def test_decorated_generator_is_guarded_between_its_yields_only():
    @torch.no_grad()
    def numbers(n):
        for i in range(n):
            assert not recording()
            yield i
        assert not recording()
        return "done"

    seen = []

    def outer():
        seen.append((yield from numbers(2)))

    for i in outer():
        assert recording()
        seen.append(i)
    assert seen == [0, 1, "done"]
    assert inspect.isgeneratorfunction(numbers)


def test_decorated_generator_takes_values_and_exceptions():
    @torch.no_grad()
    def echo():
        received = yield recording()
        while True:
            try:
                received = yield received, recording()
            except KeyError as error:
                received = error.args[0]

    generator = echo()
    assert next(generator) is False
    assert generator.send("a") == ("a", False)
    assert generator.throw(KeyError("b")) == ("b", False)
    with pytest.raises(ZeroDivisionError):
        generator.throw(ZeroDivisionError)
    with pytest.raises(StopIteration):
        next(generator)
    assert recording()


def test_decorated_generator_is_closed_inside():
    closed = []

    @torch.no_grad()
    def guarded():
        try:
            yield 1
        finally:
            closed.append(recording())

    generator = guarded()
    next(generator)
    generator.close()
    assert closed == [False]
    assert recording()


def test_decorated_generator_sees_the_mode_of_its_caller_restored():
    @torch.enable_grad()
    def guarded():
        while True:
            yield recording()

    generator = guarded()
    with torch.no_grad():
        assert next(generator)
        assert not torch.is_grad_enabled()
    assert next(generator)
    assert torch.is_grad_enabled()


def test_decorated_coroutine_is_guarded_between_its_awaits():
    states = []

    @torch.no_grad()
    async def guarded(n):
        for _ in range(n):
            states.append(recording())
            await asyncio.sleep(0)
        return n

    async def free():
        for _ in range(3):
            states.append(recording())
            await asyncio.sleep(0)

    async def main():
        return await asyncio.gather(guarded(3), free())

    assert inspect.iscoroutinefunction(guarded)
    assert asyncio.run(main()) == [3, None]
    assert states == [False, True] * 3


def test_decorated_coroutine_passes_exceptions_on():
    @torch.no_grad()
    async def guarded():
        try:
            await asyncio.sleep(30)
        except asyncio.CancelledError:
            assert not recording()
            raise

    async def main():
        task = asyncio.create_task(guarded())
        await asyncio.sleep(0)
        task.cancel()
        await task

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(main())
    assert recording()


# threads


def test_modes_belong_to_their_thread():
    inside, done = threading.Event(), threading.Event()
    seen = {}

    def worker():
        seen["fresh"] = (torch.is_grad_enabled(), torch.is_inference_mode_enabled())
        with torch.inference_mode():
            inside.set()
            done.wait(10)

    with torch.no_grad():
        thread = threading.Thread(target=worker)
        thread.start()
        assert inside.wait(10)
        assert not torch.is_inference_mode_enabled()
        done.set()
        thread.join()
    assert seen["fresh"] == (True, False)
    assert torch.is_grad_enabled()


def test_one_decorated_function_in_many_threads():
    @torch.no_grad()
    def func(barrier):
        barrier.wait(10)
        return recording()

    barrier = threading.Barrier(4)
    results = []
    threads = [threading.Thread(target=lambda: results.append((func(barrier), recording()))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [(False, True)] * 4


def test_set_multithreading_enabled():
    before = torch.autograd.is_multithreading_enabled()
    with set_multithreading_enabled(False):
        assert not torch.autograd.is_multithreading_enabled()
    assert torch.autograd.is_multithreading_enabled() == before
    set_multithreading_enabled(not before)
    assert torch.autograd.is_multithreading_enabled() != before
    set_multithreading_enabled(before)
    with pytest.raises(TypeError, match="must be bool"):
        set_multithreading_enabled(1)


@pytest.mark.filterwarnings("ignore:Using backward")
def test_backward_sees_the_callers_mode_restored(x):
    states = []
    y = x * 2
    y.register_hook(lambda grad: states.append(torch.is_grad_enabled()))
    y.sum().backward(retain_graph=True)
    y.sum().backward(create_graph=True)
    assert states == [False, True]
    assert torch.is_grad_enabled()


def test_anomaly_mode_by_its_function():
    torch.set_anomaly_enabled(True, False)
    try:
        assert torch.is_anomaly_enabled() and not torch.is_anomaly_check_nan_enabled()
    finally:
        torch.set_anomaly_enabled(False)
    assert not torch.is_anomaly_enabled() and torch.is_anomaly_check_nan_enabled()


def test_gradients_are_laid_out_for_their_parameters_whatever_is_allowed():
    x = torch.ones(3, 2).t().requires_grad_()
    with torch.autograd.enforce_grad_layout_policy(False):
        (x * torch.ones(2, 3)).sum().backward()
    assert x.grad.stride() == x.stride()


def test_a_number_of_a_tensor_that_requires_grad_is_warned_of_once():
    program = (
        "import warnings, rushlight as torch; warnings.simplefilter('always'); x = torch.ones((), requires_grad=True)\n"
        "with warnings.catch_warnings(record=True) as seen:\n"
        "    warnings.simplefilter('always'); float(x.detach()); x.item(); float(x); float(x); int(x)\n"
        "assert [str(w.message)[:30] for w in seen] == ['Converting a tensor with requi'], seen"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
