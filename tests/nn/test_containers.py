"""Containers: indices, slices, arithmetic, what they register and refuse."""

import copy
import pickle
from collections import OrderedDict

import pytest

import rushlight as torch
from rushlight import nn


def layers(n):
    return [nn.Linear(i + 1, i + 2) for i in range(n)]


def names(container):
    return list(container._modules)


# Sequential -------------------------------------------------------------------------------------------------------


def test_sequential_calls_its_modules_in_order():
    first, second = nn.Linear(2, 3), nn.Linear(3, 1)
    x = torch.ones(4, 2)
    assert torch.equal(nn.Sequential(first, second)(x), second(first(x)))
    assert nn.Sequential()(x) is x


def test_sequential_by_names():
    net = nn.Sequential(OrderedDict(a=nn.ReLU(), b=nn.Tanh()))
    assert names(net) == ["a", "b"] and net.b is net[1]
    assert names(net[1:]) == ["b"]
    del net[0]
    assert names(net) == ["0"]


@pytest.mark.parametrize("given", [3, [nn.ReLU()], {"a": nn.ReLU()}, torch.ones(1)])
def test_sequential_takes_modules_only(given):
    with pytest.raises(TypeError, match="is not a Module subclass"):
        nn.Sequential(given)


def test_sequential_indices():
    a, b, c = layers(3)
    net = nn.Sequential(a, b, c)
    assert net[0] is a and net[-1] is c and len(net) == 3 and list(net) == [a, b, c]
    part = net[::2]
    assert type(part) is nn.Sequential and list(part) == [a, c] and names(part) == ["0", "2"]
    assert list(net[::-1]) == [c, b, a]
    for index in (3, -4):
        with pytest.raises(IndexError, match=f"index {index} is out of range"):
            net[index]
    with pytest.raises(TypeError):
        net["0"]


def test_sequential_replacement_and_deletion():
    a, b, c = layers(3)
    net = nn.Sequential(a, b, c)
    net[1] = c
    assert list(net) == [a, c, c]
    with pytest.raises(TypeError, match="cannot assign 'int' as child module '0'"):
        net[0] = 3
    with pytest.raises(IndexError):
        net[3] = a
    del net[0]
    assert names(net) == ["0", "1"] and list(net) == [c, c]
    del net[:]
    assert len(net) == 0
    with pytest.raises(IndexError):
        del net[0]


def test_sequential_growth():
    a, b, c = layers(3)
    net = nn.Sequential(a)
    assert net.append(c) is net and net.insert(1, b) is net
    assert list(net) == [a, b, c] and names(net) == ["0", "1", "2"]
    assert net.insert(-1, a)[2] is a
    assert net.pop(2) is a and net.pop(-1) is c and list(net) == [a, b]
    assert net.extend([c, c]) is net and len(net) == 4
    assert net.insert(4, a)[4] is a
    for index in (9, -9):
        with pytest.raises(IndexError, match=f"Index out of range: {index}"):
            net.insert(index, a)
    with pytest.raises(AssertionError, match="module should be of type"):
        net.insert(0, 3)
    with pytest.raises(TypeError, match="int is not a Module subclass"):
        net.append(3)
    assert len(net) == 5


def test_sequential_arithmetic():
    a, b = layers(2)
    net = nn.Sequential(a)
    total = net + nn.Sequential(b)
    assert list(total) == [a, b] and list(net) == [a]
    net += nn.Sequential(b)
    assert list(net) == [a, b]
    assert list(net * 2) == [a, b, a, b] and list(2 * net) == [a, b, a, b]
    net *= 2
    assert list(net) == [a, b, a, b]
    with pytest.raises(ValueError, match="add operator supports only objects of Sequential class"):
        net + [a]
    with pytest.raises(ValueError, match="Non-positive multiplication factor 0"):
        net * 0
    with pytest.raises(TypeError, match="unsupported operand type"):
        net * 1.5


# ModuleList -------------------------------------------------------------------------------------------------------


def test_module_list():
    a, b, c = layers(3)
    modules = nn.ModuleList([a, b])
    modules.append(c)
    assert len(list(modules.parameters())) == 6
    assert modules[-1] is c and type(modules[1:]) is nn.ModuleList and names(modules[1:]) == ["0", "1"]
    modules.insert(0, c)
    modules.insert(99, a)
    modules.insert(-1, b)
    assert list(modules) == [c, a, b, c, b, a] and names(modules) == list("012345")
    del modules[1:3]
    assert list(modules) == [c, c, b, a]
    assert modules.pop(0) is c
    modules += [b]
    assert list(modules + [c]) == [c, b, a, b, c] and len(modules) == 4
    assert modules.extend([a, c]) is modules
    assert c in modules and next(reversed(list(modules))) is c
    for refused in (3, nn.ReLU()):
        with pytest.raises(TypeError, match=r"ModuleList\.extend should be called with an iterable"):
            modules.extend(refused)
    for call in (lambda: nn.ModuleList([3]), lambda: modules.append(3), lambda: modules.insert(0, 3)):
        with pytest.raises(TypeError, match="int is not a Module subclass"):
            call()
    with pytest.raises(IndexError, match="index 9 is out of range"):
        modules[9]
    with pytest.raises(NotImplementedError):
        modules(1)


def test_module_list_extended_by_itself():
    modules = nn.ModuleList(layers(2))
    modules.extend(modules)
    assert len(modules) == 4


def test_module_list_shows_equal_neighbours_once():
    modules = nn.ModuleList([nn.ReLU(), nn.ReLU(), nn.Tanh(), nn.ReLU()])
    assert repr(modules) == "ModuleList(\n  (0-1): 2 x ReLU()\n  (2): Tanh()\n  (3): ReLU()\n)"
    assert repr(nn.ModuleList()) == "ModuleList()"


# ModuleDict -------------------------------------------------------------------------------------------------------


def test_module_dict():
    a, b = layers(2)
    modules = nn.ModuleDict({"b": a, "a": b})
    assert list(modules) == ["b", "a"] and modules["b"] is a and "a" in modules and len(modules) == 2
    assert list(modules.keys()) == ["b", "a"] and list(modules.values()) == [a, b]
    assert list(modules.items()) == [("b", a), ("a", b)]
    modules["c"] = a
    modules.update([("a", a), ["d", b]])
    assert list(modules) == ["b", "a", "c", "d"] and modules["a"] is a
    modules.update(nn.ModuleDict({"e": b}))
    assert modules.pop("e") is b
    del modules["d"]
    with pytest.raises(KeyError):
        modules["d"]
    modules.clear()
    assert len(modules) == 0 and not list(modules.parameters())


@pytest.mark.parametrize(
    ("key", "value", "error"),
    [
        ("keys", nn.ReLU(), KeyError),
        ("a.b", nn.ReLU(), KeyError),
        ("", nn.ReLU(), KeyError),
        (3, nn.ReLU(), TypeError),
        ("a", 3, TypeError),
    ],
)
def test_module_dict_refuses(key, value, error):
    modules = nn.ModuleDict()
    with pytest.raises(error):
        modules[key] = value
    assert len(modules) == 0


@pytest.mark.parametrize(
    ("given", "error", "text"),
    [
        (3, TypeError, "should be called with an iterable of key/value pairs, but got int"),
        ([3], TypeError, "update sequence element #0 should be Iterable"),
        ([("a", nn.ReLU()), ("b",)], ValueError, "update sequence element #1 has length 1; 2 is required"),
    ],
)
@pytest.mark.parametrize("kind", ["ModuleDict", "ParameterDict"])
def test_dictionaries_refuse_what_is_no_pair(kind, given, error, text):
    with pytest.raises(error, match=text):
        getattr(nn, kind)().update(given)


# ParameterList ----------------------------------------------------------------------------------------------------


def test_parameter_list():
    first = nn.Parameter(torch.ones(2))
    values = nn.ParameterList([first, torch.zeros(1, 2), 3])
    assert values[0] is first and isinstance(values[1], nn.Parameter) and values[2] == 3
    assert [n for n, _ in values.named_parameters()] == ["0", "1"] and len(values) == 3
    values.append(torch.ones(1))
    values += [4]
    assert values.extend((5,)) is values and list(values)[-2:] == [4, 5] and len(values) == 6
    values[2] = torch.full((1,), 7.0)
    assert isinstance(values[2], nn.Parameter) and values[-1] == 5
    assert type(values[1:3]) is nn.ParameterList and len(values[1:3]) == 2
    with pytest.raises(IndexError, match="index 9 is out of range"):
        values[9]
    with pytest.raises(TypeError, match="as parameter '0'"):
        values[0] = 3
    for refused in (3, torch.ones(2)):
        with pytest.raises(TypeError, match=r"ParameterList.extend should be called with an iterable"):
            values.extend(refused)
    with pytest.raises(RuntimeError, match="ParameterList should not be called"):
        values(1)


def test_parameter_list_prints_shapes_and_types():
    values = nn.ParameterList([torch.zeros(1, 2), "x"])
    assert repr(values) == (
        "ParameterList(\n    (0): Parameter containing: [torch.float32 of size 1x2]\n    (1): Object of type: str\n)"
    )


def test_parameter_list_copies():
    values = nn.ParameterList([torch.zeros(2), 3])
    for other in (copy.deepcopy(values), pickle.loads(pickle.dumps(values))):
        assert len(other) == 2 and other[1] == 3 and isinstance(other[0], nn.Parameter)
        assert other[0].data_ptr() != values[0].data_ptr()
        other.append(torch.ones(1))
        assert len(values) == 2


# ParameterDict ----------------------------------------------------------------------------------------------------


def test_parameter_dict():
    values = nn.ParameterDict({"b": torch.ones(2), "a": 1})
    assert list(values) == ["a", "b"], "a plain dictionary comes in sorted order"
    assert list(nn.ParameterDict([("b", 1), ("a", 2)])) == ["b", "a"]
    assert isinstance(values["b"], nn.Parameter) and values["a"] == 1 and "c" not in values
    values["c"] = torch.ones(1)
    assert [n for n, _ in values.named_parameters()] == ["b", "c"]
    assert values.get("z") is None and values.get("z", 3) == 3 and values.get("a") == 1
    assert values.setdefault("a", 9) == 1 and values.setdefault("d", 9) == 9
    assert list(values.keys()) == ["a", "b", "c", "d"] == [k for k, _ in values.items()]
    assert next(iter(values.values())) == 1 and list(reversed(values)) == ["d", "c", "b", "a"]
    assert values.pop("a") == 1 and values.popitem() == ("d", 9) and list(values) == ["b", "c"]
    del values["b"]
    assert list(values) == ["c"] and [n for n, _ in values.named_parameters()] == ["c"]
    values.clear()
    assert len(values) == 0
    with pytest.raises(KeyError):
        values.popitem()
    with pytest.raises(KeyError):
        del values["zz"]
    with pytest.raises(RuntimeError, match="ParameterDict should not be called"):
        values(1)


def test_parameter_dict_merges():
    one, two = nn.ParameterDict({"a": 1}), nn.ParameterDict({"a": 2, "b": 3})
    assert dict((one | two).items()) == {"a": 2, "b": 3} and dict(one.items()) == {"a": 1}
    assert dict(({"c": 4} | one).items()) == {"c": 4, "a": 1}
    one |= two
    assert dict(one.items()) == {"a": 2, "b": 3}
    assert dict(one.copy().items()) == dict(one.items())
    assert dict(one.fromkeys(["x", "y"], 5).items()) == {"x": 5, "y": 5}


def test_parameter_dict_keys_are_strings():
    values = nn.ParameterDict()
    for call in (lambda: values[3], lambda: values.__setitem__(3, 1)):
        with pytest.raises(TypeError, match=r"cannot be used as a key as it is not a string \(type is 'int'\)"):
            call()
    for key in ("a.b", "forward"):
        with pytest.raises(KeyError):
            values[key] = torch.ones(1)
    assert list(values) == []


def test_container_is_deprecated():
    with pytest.warns(FutureWarning, match=r"nn\.Container"):
        container = nn.Container(a=nn.ReLU())
    assert list(container._modules) == ["a"]
