"""torch.overrides: types that take over calls, and subclasses of Tensor."""

import inspect
import threading

import pytest

import rushlight as torch
from rushlight import _C
from rushlight.overrides import (
    get_default_nowrap_functions,
    get_ignored_functions,
    get_overridable_functions,
    get_testing_overrides,
    handle_torch_function,
    has_torch_function,
    is_tensor_like,
    is_tensor_method_or_property,
    resolve_name,
    wrap_torch_function,
)


class Log:
    """Takes over every call, and says which."""

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return cls.__name__, func.__name__, [t.__name__ for t in types], args, kwargs or {}


class Deeper(Log):
    pass


class Silent:
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return NotImplemented


class Sub(torch.Tensor):
    pass


class Off(torch.Tensor):
    __torch_function__ = _C._disabled_torch_function_impl


def sub(n=3):
    return torch.ones(n).as_subclass(Sub)


def double(x, *rest, **keywords):
    if has_torch_function((x, *rest)):
        return handle_torch_function(double, (x, *rest), x, *rest, **keywords)
    return 2 * x


# ---- who takes over


def test_who_takes_over():
    assert has_torch_function((Log(),)) and has_torch_function([torch.ones(1), sub()])
    assert not has_torch_function(())
    assert not has_torch_function((torch.ones(1), 3, "x", None, object()))
    assert not has_torch_function((torch.nn.Parameter(torch.ones(1)), torch.ones(1).as_subclass(Off)))


def test_a_plain_call_is_not_disturbed():
    assert double(torch.ones(2)).tolist() == [2, 2]
    assert double(torch.nn.Parameter(torch.ones(2))).tolist() == [2, 2]


def test_the_call_arrives_whole():
    assert double(Log(), 1, flag=True)[1:3] == ("double", ["Log"])
    log = Log()
    name, _, _, args, keywords = double(log, 1, flag=True)
    assert (name, args, keywords) == ("Log", (log, 1), {"flag": True})


def test_subclasses_come_before_their_bases_and_types_are_named_once():
    result = double(Log(), Log(), Deeper(), torch.ones(1))
    assert result[0] == "Deeper"
    assert result[2] == ["Deeper", "Log"]
    assert double(Silent(), Log())[2] == ["Silent", "Log"]
    assert double(Log(), Silent())[0] == "Log"


def test_nobody_implements_it():
    with pytest.raises(
        TypeError, match=r"no implementation found for '.*double' on types that implement __torch_function__: .*Silent"
    ):
        double(Silent())


def test_the_decorator():
    @wrap_torch_function(lambda a, b=None: (a, b))
    def add(a, b=None):
        """Adds."""
        return a if b is None else a + b

    assert add.__doc__ == "Adds."
    assert add(1, 2) == 3
    assert add(1, b=Log())[:2] == ("Log", "add")
    assert add(a=Log())[4].keys() == {"a"}


def test_it_can_be_turned_off_per_thread():
    seen = []
    with _C.DisableTorchFunctionSubclass():
        assert not has_torch_function((Log(),)) and not _C._is_torch_function_enabled()
        thread = threading.Thread(target=lambda: seen.append(has_torch_function((Log(),))))
        thread.start()
        thread.join()
        with _C.DisableTorchFunctionSubclass():
            pass
        assert not has_torch_function((Log(),))
    assert seen == [True]
    assert has_torch_function((Log(),)) and _C._is_torch_function_enabled()
    with pytest.raises(ValueError), _C.DisableTorchFunctionSubclass():
        raise ValueError
    assert _C._is_torch_function_enabled()


# ---- subclasses of Tensor


def test_as_subclass():
    x = torch.ones(3, requires_grad=True)
    y = x.as_subclass(Sub)
    assert type(y) is Sub and y.grad_fn.name() == "AliasBackward0" and y._base is x
    (y * torch.tensor([1.0, 2.0, 3.0])).sum().backward()
    assert x.grad.tolist() == [1, 2, 3]
    assert y.data_ptr() == x.data_ptr()
    assert repr(torch.ones(2).as_subclass(Sub)) == "Sub([1., 1.])"
    for wrong in (int, 3, None):
        with pytest.raises(TypeError):
            x.as_subclass(wrong)


def test_what_tensor_does_itself():
    x = sub()
    result = Sub.__torch_function__(torch.add, (Sub, torch.Tensor), (x, torch.ones(3)), {"alpha": 2})
    assert type(result) is Sub and result.tolist() == [3, 3, 3]
    parts = Sub.__torch_function__(torch.split, (Sub,), (x, 1))
    assert [type(p) for p in parts] == [Sub] * 3 and type(parts) is tuple
    assert Sub.__torch_function__(torch.numel, (Sub,), (x,)) == 3
    assert Sub.__torch_function__(torch.add, (Sub, Log), (x, x)) is NotImplemented
    assert type(torch.Tensor.__torch_function__(torch.add, (torch.Tensor,), (torch.ones(1), 1))) is torch.Tensor
    assert Off.__torch_function__(torch.numel, (Off,), (x,)) == 3


def test_a_method_that_extends_the_default():
    calls = []

    class Recorded(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            calls.append(func.__name__)
            return super().__torch_function__(func, types, args, kwargs)

    x = torch.ones(2).as_subclass(Recorded)
    result = handle_torch_function(torch.exp, (x,), x)
    assert type(result) is Recorded and calls == ["exp"]


# ---- questions


def test_is_tensor_like():
    assert all(map(is_tensor_like, (torch.ones(1), torch.nn.Parameter(torch.ones(1)), sub(), Log())))
    assert not any(map(is_tensor_like, (3, None, [torch.ones(1)], object())))


def test_methods_and_properties():
    assert is_tensor_method_or_property(torch.Tensor.view)
    assert is_tensor_method_or_property(torch.Tensor.backward)
    assert is_tensor_method_or_property(torch.Tensor.shape.__get__)
    assert not is_tensor_method_or_property(torch.nn.functional.relu)
    assert not is_tensor_method_or_property(double)


def test_names_of_functions():
    assert resolve_name(torch.exp) == "torch.exp"
    assert resolve_name(torch.Tensor.view) == "torch.Tensor.view"
    assert resolve_name(torch.nn.functional.relu) == "torch.nn.functional.relu"
    assert resolve_name(double) is None


def test_tables_of_functions():
    table = get_overridable_functions()
    assert torch.add in table[torch] and torch.Tensor.backward in table[torch.Tensor]
    assert torch.nn.functional.cross_entropy in table[torch.nn.functional]
    assert torch.zeros not in table[torch]
    assert torch.zeros in get_ignored_functions() and torch.add not in get_ignored_functions()
    assert torch.Tensor.grad.__get__ in get_default_nowrap_functions()


def test_testing_overrides_take_the_same_arguments():
    overrides = get_testing_overrides()
    for function in (torch.add, torch.nn.functional.mse_loss, torch.cat, torch.Tensor.backward):
        assert inspect.signature(overrides[function]).parameters == inspect.signature(function).parameters
    assert overrides[torch.add](1, 2, alpha=3) == -1
    with pytest.raises(TypeError):
        overrides[torch.add](1, 2, 3, 4)
    assert len(overrides) > 400


def test_what_is_not_there_is_named():
    with pytest.raises(AttributeError, match=r"torch\.overrides\.TorchFunctionMode"):
        torch.overrides.TorchFunctionMode()
