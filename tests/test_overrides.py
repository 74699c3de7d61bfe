"""torch.overrides: types that take over calls, and subclasses of Tensor."""

import copy
import inspect
import pickle
import threading
import weakref

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


# ---- calls of the package


CALLS = []


class Recorded(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        CALLS.append(func)
        return super().__torch_function__(func, types, args, kwargs)


def recorded(function):
    """The functions that arrive while `function` runs on a Recorded tensor, and what it returns."""
    x = torch.tensor([1.0, 2.0, 3.0]).as_subclass(Recorded)
    CALLS.clear()
    result = function(x)
    return list(CALLS), result


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x.exp(),
        lambda x: torch.exp(x),
        lambda x: torch.add(torch.ones(3), x),
        lambda x: torch.add(torch.ones(3), other=x),
        lambda x: torch.ones(3).mul(x),
        lambda x: torch.cat([torch.ones(3), x]),
        lambda x: torch.where(x > 1, x, 0.0),
        lambda x: torch.nn.functional.relu(x),
        lambda x: x + 1,
        lambda x: 1 + x,
        lambda x: torch.ones(3) + x,
        lambda x: x - 1,
        lambda x: 1 - x,
        lambda x: torch.ones(3) - x,
        lambda x: 1 / x,
        lambda x: x**2,
        lambda x: 2**x,
        lambda x: -x,
        lambda x: abs(x),
        lambda x: x @ x,
        lambda x: x == 1,
        lambda x: x < torch.ones(3),
        lambda x: x[1:],
        lambda x: x[0],
        lambda x: x.T,
        lambda x: x.data,
        lambda x: x.detach(),
        lambda x: x.clone(),
        lambda x: x.sum(),
        lambda x: x.max(0)[0],
        lambda x: x.split(1)[2],
        lambda x: x.norm(),
        lambda x: x.to(torch.float64),
        lambda x: x.view(3, 1).expand(3, 2),
    ],
)
def test_results_are_of_the_subclass(function):
    calls, result = recorded(function)
    assert type(result) is Recorded
    assert calls
    plain = function(torch.tensor([1.0, 2.0, 3.0]))
    assert type(plain) is torch.Tensor
    assert torch.equal(result.as_subclass(torch.Tensor), plain)


def test_which_function_arrives():
    for function, names in (
        (lambda x: x + 1, ["add"]),
        (lambda x: torch.exp(x), ["exp"]),
        (lambda x: x.shape, ["__get__"]),
        (lambda x: x.backward, []),
        (lambda x: len(x), ["__len__"]),
        (lambda x: x.size(0), ["size"]),
        (lambda x: x.add_(1), ["add_"]),
        (lambda x: torch.stack([x, x]), ["stack"]),
    ):
        assert [f.__name__ for f in recorded(function)[0]] == names
    assert recorded(lambda x: x * 2)[0] == [torch.Tensor.mul]
    assert recorded(lambda x: x.shape)[0] == [torch.Tensor.shape.__get__]


def test_changes_in_place_give_the_same_object():
    x = torch.ones(3).as_subclass(Recorded)
    y = x
    x += 1
    assert x is y and x.mul_(2) is x and x.tolist() == [4, 4, 4]
    x[0] = 5
    x.requires_grad = True
    assert type(x) is Recorded and x.requires_grad is True and x[0].item() == 5


def test_comparison_with_what_is_no_operand():
    x = torch.ones(1).as_subclass(Recorded)
    assert (x == None) is False and (x != "a") is True  # noqa: E711
    with pytest.raises(TypeError):
        x + "a"
    with pytest.raises(TypeError):
        x < object()  # noqa: B015


def test_derivatives_go_through():
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = (x.as_subclass(Recorded) ** 2).sum()
    assert type(y) is Recorded
    y.backward()
    assert type(x.grad) is torch.Tensor and x.grad.tolist() == [2, 4]


def test_members_that_the_subclass_defines_come_first():
    class Own(torch.Tensor):
        shape = "mine"

        def exp(self):
            return "own"

        def sum(self, *args):
            return type(super().sum(*args))

    x = torch.ones(2).as_subclass(Own)
    assert x.exp() == "own" and x.shape == "mine" and x.sum() is Own
    assert type(torch.exp(x)) is Own and type(x + 1) is Own


def test_classes_below_a_subclass():
    class Lower(Recorded):
        pass

    x, y = torch.ones(2).as_subclass(Lower), torch.ones(2).as_subclass(Recorded)
    assert type(x + y) is type(y + x) is Lower
    assert type(torch.add(y, x)) is Lower

    class Beside(torch.Tensor):
        pass

    with pytest.raises(TypeError, match="no implementation found for 'torch.add'"):
        torch.add(y, torch.ones(2).as_subclass(Beside))


def test_foreign_types():
    class Quantity:
        def __init__(self, value):
            self.value = value

        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            if func is torch.mean:
                return "mean"
            if func is torch.add:
                return Quantity(torch.add(*[a.value if isinstance(a, cls) else a for a in args], **kwargs or {}))
            return NotImplemented

    assert torch.mean(Quantity(1)) == "mean"
    assert torch.add(torch.ones(1), Quantity(2), alpha=3).value.item() == 7
    assert torch.ones(1).add(Quantity(torch.ones(1))).value.item() == 2
    with pytest.raises(TypeError, match=r"no implementation found for 'torch.exp' on types that implement .*Quantity"):
        torch.exp(Quantity(1))
    with pytest.raises(TypeError, match=r"no implementation found for 'torch.cat'"):
        torch.cat([torch.ones(1), Quantity(1)])


WRITTEN_IN_PYTHON = [
    torch.nn.functional.softmax,
    torch.nn.functional.cross_entropy,
    torch.nn.functional.interpolate,
    torch.nn.init.normal_,
    torch.einsum,
    torch.tensordot,
    torch.linalg.svd,
    torch.fft.rfft,
    torch.special.softmax,
    torch.stft,
    torch.is_floating_point,
]


@pytest.mark.parametrize("function", WRITTEN_IN_PYTHON, ids=lambda f: f.__name__)
def test_functions_written_in_python_offer_their_calls(function):
    given = function("ab,b", Log(), 1, key=Log()) if function is torch.einsum else function(Log(), 1, key=[Log()])
    assert given[:3] == ("Log", function.__name__, ["Log"])
    functions = []

    class Whole(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            functions.append(func)
            return super().__torch_function__(func, types, args, kwargs)

    if function in (torch.nn.functional.softmax, torch.linalg.svd, torch.nn.init.normal_, torch.special.softmax):
        x = torch.rand(3, 3).as_subclass(Whole)
        result = function(x) if function in (torch.linalg.svd, torch.nn.init.normal_) else function(x, 0)
        assert functions == [function] and functions[0] is function  # once, not the operators inside
        assert type(result[0]) is Whole


def test_what_stands_for_a_function_passes_for_it():
    function = torch.nn.functional.softmax
    assert inspect.isfunction(function) and "dim" in inspect.signature(function).parameters
    assert function.__doc__ and function.__name__ == "softmax" and function.__wrapped__ == function
    assert pickle.loads(pickle.dumps(function)) is function and copy.deepcopy(function) is function
    assert {function: 1}[function.__wrapped__] == 1 and function != torch.nn.functional.softmin
    assert torch.pairwise_distance is torch.nn.functional.pairwise_distance
    assert torch.functional.einsum is torch.einsum and weakref.ref(function)() is function

    class Layer:
        soft = function

    assert Layer.soft is function and Layer().soft.__self__.__class__ is Layer  # it binds as functions do
    with pytest.raises(TypeError, match="expected a function written in Python"):
        _C._offered(print)


def test_operators_are_pickled_by_their_place():
    functional = torch.nn.functional
    for op in (torch.exp, functional.gelu, functional.linear, functional.logsigmoid, torch.special.ndtr):
        assert pickle.loads(pickle.dumps(op)) is op
    assert pickle.loads(pickle.dumps(torch.Tensor.addcdiv_)) is torch.Tensor.addcdiv_
    layer = torch.nn.TransformerEncoderLayer(4, 2, 8, activation=functional.gelu)
    assert pickle.loads(pickle.dumps(layer)).activation is functional.gelu


def test_every_function_of_tensors_offers_its_calls():
    plain = {"broadcast_shapes", "fftfreq", "rfftfreq", "calculate_gain"}
    for module in (torch.nn.functional, torch.linalg, torch.fft, torch.functional):
        for name in dir(module):
            function = getattr(module, name)
            if name[0] != "_" and inspect.isfunction(function) and function.__module__.startswith(module.__name__):
                assert name in plain or type(function) is _C._OfferedFunction, name
    assert type(torch._missing.lazy_module) is type(torch.save) is type(lambda: None)


def test_a_foreign_index():
    x = torch.ones(3)
    assert x[Log()][:3] == ("Log", "__getitem__", ["Log"])
    assert x[0, Log()][1] == "__getitem__"
    x[Log()] = 1
    x[0] = Log()
    with pytest.raises(IndexError):
        x[object()]
    with pytest.raises(TypeError):
        x[0] = object()
    assert x.tolist() == [1, 1, 1]


def test_errors_of_plain_calls_stay():
    for call in (lambda: torch.exp("x"), lambda: torch.add(torch.ones(1), [1]), lambda: torch.ones(1).exp(1, 2)):
        with pytest.raises(TypeError) as info:
            call()
        assert "implementation" not in str(info.value)
    with pytest.raises(RuntimeError, match="must match the size"):
        torch.add(torch.ones(2), torch.ones(3))


def test_nothing_is_asked_in_a_disabled_context():
    x = torch.ones(3).as_subclass(Recorded)
    CALLS.clear()
    with _C.DisableTorchFunctionSubclass():
        assert type(x + 1) is type(x.exp()) is type(torch.exp(x)) is torch.Tensor
        assert x.shape == (3,)
        with pytest.raises(TypeError):
            torch.exp(Log())
    assert CALLS == []


def test_parameters_and_modules_stay_plain():
    layer = torch.nn.Linear(3, 2)
    assert type(layer.weight + 1) is type(layer.weight.detach()) is torch.Tensor
    out = layer(torch.ones(1, 3).as_subclass(Recorded))
    assert type(out) is Recorded
    parameter = torch.nn.Parameter(torch.ones(2).as_subclass(Recorded))
    assert isinstance(parameter, torch.nn.Parameter) and type(parameter) is Recorded


def test_an_exception_of_the_type_arrives_as_itself():
    class Broken(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            raise KeyError(func.__name__)

    x = torch.ones(1).as_subclass(Broken)
    for call in (lambda: torch.exp(x), lambda: x.exp(), lambda: x.ndim, lambda: x.size()):
        with pytest.raises(KeyError):
            call()


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
    with pytest.raises(AttributeError, match=r"torch\.overrides\.redispatch_function"):
        torch.overrides.redispatch_function()
