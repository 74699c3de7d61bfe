"""Parameters and buffers: what they share, what they are instances of, copies, and those without a shape."""

import copy
import pickle

import pytest

import rushlight as torch
from rushlight import nn
from rushlight.nn.parameter import is_lazy


class Sub(torch.Tensor):
    pass


def test_a_parameter_is_a_leaf_over_the_same_memory():
    data = torch.zeros(2, 3)
    parameter = nn.Parameter(data)
    assert type(parameter) is nn.Parameter and isinstance(parameter, torch.Tensor)
    assert parameter.requires_grad and parameter.is_leaf and not data.requires_grad
    data[0, 0] = 5
    assert parameter[0, 0].item() == 5
    assert not nn.Parameter(data, requires_grad=False).requires_grad
    assert nn.Parameter().shape == (0,)


def test_a_parameter_of_a_result_is_a_leaf_again():
    x = torch.ones(2, requires_grad=True)
    parameter = nn.Parameter(x * 2)
    assert parameter.is_leaf and parameter.grad_fn is None


def test_a_parameter_of_a_parameter_is_a_new_one():
    first = nn.Parameter(torch.ones(2))
    first.tag = 1
    second = nn.Parameter(first)
    assert second is not first and second.data_ptr() == first.data_ptr() and not hasattr(second, "tag")


def test_results_are_plain_tensors():
    parameter = nn.Parameter(torch.ones(2, 2))
    for result in (parameter + 1, parameter.detach(), parameter.data, parameter.clone(), parameter[0], parameter.T):
        assert type(result) is torch.Tensor


@pytest.mark.parametrize("data", [3, [1.0], "x"])
def test_only_tensors_become_parameters(data):
    with pytest.raises(AttributeError, match="has no attribute 'detach'"):
        nn.Parameter(data)


def test_integers_have_no_gradient():
    with pytest.raises(RuntimeError, match="Only Tensors of floating point and complex dtype can require gradients"):
        nn.Parameter(torch.ones(2, dtype=torch.int64))
    assert nn.Parameter(torch.ones(2, dtype=torch.int64), requires_grad=False).dtype == torch.int64


def test_instances():
    tensor = torch.ones(1)
    assert not isinstance(tensor, nn.Parameter) and not isinstance(tensor, nn.Buffer)
    assert not isinstance(3, nn.Parameter) and not isinstance(None, nn.Buffer)
    assert isinstance(nn.Parameter(tensor), nn.Parameter)
    assert isinstance(nn.Buffer(tensor), nn.Buffer) and not isinstance(nn.Buffer(tensor), nn.Parameter)
    assert isinstance(nn.UninitializedParameter(), nn.Parameter)
    assert not isinstance(nn.Parameter(tensor), nn.UninitializedParameter)
    assert issubclass(nn.UninitializedParameter, nn.Parameter)


def test_printed_form():
    assert repr(nn.Parameter(torch.ones(1))) == "Parameter containing:\ntensor([1.], requires_grad=True)"


@pytest.mark.parametrize("requires_grad", [True, False])
def test_copies(requires_grad):
    parameter = nn.Parameter(torch.arange(6.0).reshape(2, 3).T, requires_grad)
    parameter.tag = "kept by pickle"
    parameter.grad = torch.ones(3, 2)
    deep = copy.deepcopy(parameter)
    loaded = pickle.loads(pickle.dumps(parameter))
    for other in (deep, loaded):
        assert type(other) is nn.Parameter and torch.equal(other, parameter) and other.requires_grad is requires_grad
        assert other.data_ptr() != parameter.data_ptr() and other.grad is None
    assert deep.stride() == parameter.stride()
    assert loaded.tag == "kept by pickle" and not hasattr(deep, "tag")
    one, two = copy.deepcopy([parameter, parameter])
    assert one is two


def test_a_parameter_of_a_subclass_stays_one():
    parameter = nn.Parameter(torch.ones(2).as_subclass(Sub))
    assert type(parameter) is Sub and isinstance(parameter, nn.Parameter) and parameter.requires_grad
    module = nn.Module()
    module.weight = parameter
    assert list(module.parameters()) == [parameter]


def test_a_subclass_that_detaches_to_another_type():
    class Odd(torch.Tensor):
        def detach(self):
            return torch.ones(1)

    with pytest.raises(RuntimeError, match=r"requires that detach\(\) returns an instance of the same type"):
        nn.Parameter(torch.ones(1).as_subclass(Odd))


def test_a_buffer_is_an_alias_that_says_how_to_save_it():
    data = torch.zeros(2)
    buffer = nn.Buffer(data, persistent=False)
    assert type(buffer) is torch.Tensor and buffer is not data and buffer.data_ptr() == data.data_ptr()
    assert buffer.persistent is False and nn.Buffer(data).persistent is True and not hasattr(data, "persistent")
    assert nn.Buffer().shape == (0,)
    with pytest.raises(AttributeError):
        nn.Buffer(3)


# Without a shape --------------------------------------------------------------------------------------------------


def test_materialisation():
    parameter = nn.UninitializedParameter(dtype=torch.float64)
    assert is_lazy(parameter) and repr(parameter) == "<UninitializedParameter>"
    same = parameter
    parameter.materialize((2, 3))
    assert same is parameter and type(parameter) is nn.Parameter and parameter.requires_grad
    assert parameter.shape == (2, 3) and parameter.dtype == torch.float64 and not is_lazy(parameter)
    buffer = nn.UninitializedBuffer(persistent=False)
    assert is_lazy(buffer) and isinstance(buffer, nn.Buffer) and not buffer.requires_grad
    buffer.materialize(4, dtype=torch.int32)
    assert type(buffer) is torch.Tensor and buffer.shape == (4,) and buffer.dtype == torch.int32
    assert isinstance(buffer, nn.Buffer) and buffer.persistent is False


@pytest.mark.parametrize("kind", [nn.UninitializedParameter, nn.UninitializedBuffer])
def test_what_needs_a_shape_is_refused(kind):
    lazy = kind()
    with pytest.raises(RuntimeError, match="Can't access the shape of an uninitialized parameter or buffer"):
        _ = lazy.shape
    with pytest.raises(RuntimeError, match="Can't share memory on an uninitialized parameter or buffer"):
        lazy.share_memory_()
    for call in (lambda: lazy + 1, lambda: torch.add(lazy, 1), lambda: len(lazy), lambda: lazy.detach()):
        with pytest.raises(ValueError, match="Attempted to use an uninitialized parameter in"):
            call()


def test_what_needs_no_shape_works():
    lazy = nn.UninitializedParameter()
    assert lazy.dtype == torch.float32 and lazy.requires_grad and lazy.is_leaf and lazy.is_floating_point()
    assert lazy.to(torch.float64).dtype == torch.float64
    assert hash(lazy) == hash(lazy)


def test_copies_without_a_shape():
    lazy = nn.UninitializedParameter(requires_grad=False, dtype=torch.float64)
    for other in (copy.deepcopy(lazy), pickle.loads(pickle.dumps(lazy))):
        assert type(other) is nn.UninitializedParameter and not other.requires_grad
    assert copy.deepcopy(lazy).dtype == torch.float64
