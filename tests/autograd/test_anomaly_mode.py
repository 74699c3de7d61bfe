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
    frame = sys._getframe()
    where = _location.line(frame)
    assert where == f"{__file__}:{frame.f_lineno - 1} in {frame.f_code.co_name}"
    trace = _location.stack(frame)
    assert trace.endswith("trace = _location.stack(frame)\n")
    assert f'File "{__file__}", line {frame.f_lineno - 2}, in {frame.f_code.co_name}\n' in trace
    assert trace.count("  File ") > 1
