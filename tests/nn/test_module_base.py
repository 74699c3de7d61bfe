"""The native base of modules: how attributes are found and calls go through."""

import pytest

import rushlight as torch
from rushlight import nn
from sample_modules import Net


def test_a_subclass_may_look_further():
    class Wrapper(nn.Module):
        def __init__(self, inner):
            super().__init__()
            self.inner = inner

        def __getattr__(self, name):
            try:
                return super().__getattr__(name)
            except AttributeError:
                return getattr(self.inner, name)

    wrapper = Wrapper(Net())
    assert wrapper.scale is wrapper.inner.scale and wrapper.name == "net"
    with pytest.raises(AttributeError, match="'Net' object has no attribute 'absent'"):
        _ = wrapper.absent


def test_a_way_to_look_that_is_added_later():
    class Plain(nn.Module):
        pass

    class Below(Plain):
        pass

    below = Below()
    Plain.__getattr__ = lambda self, name: 7
    assert below.absent == 7
    del Plain.__getattr__
    with pytest.raises(AttributeError):
        _ = below.absent


def test_properties_and_class_attributes_come_before_members():
    class Shadowed(nn.Module):
        head = "class"

        @property
        def twice(self):
            return self.weight * 2

        @property
        def failing(self):
            raise AttributeError("own words")

        @property
        def wrong(self):
            raise KeyError("own words")

    shadowed = Shadowed()
    shadowed.weight = nn.Parameter(torch.ones(1))
    shadowed.head = nn.ReLU()
    assert shadowed.head == "class" and isinstance(shadowed._modules["head"], nn.ReLU)
    assert shadowed.twice.item() == 2
    with pytest.raises(AttributeError, match="own words"):
        _ = shadowed.failing
    with pytest.raises(KeyError, match="own words"):
        _ = shadowed.wrong


def test_subclasses_with_arguments_of_their_own():
    class Tagged:
        def __init_subclass__(cls, tag=None, **rest):
            super().__init_subclass__(**rest)
            cls.tag = tag

    class Both(nn.Module, Tagged, tag=5):
        pass

    assert Both.tag == 5 and Both().training
    with pytest.raises(TypeError, match="__init_subclass__"):

        class Refused(nn.Module, tag=5):
            pass


def test_forward_of_an_instance_comes_first():
    net = nn.Identity()
    net.forward = lambda x: x + 1
    assert net(1) == 2


def test_many_arguments():
    class Many(nn.Module):
        def forward(self, *args, **kwargs):
            return len(args), kwargs

    for n in (0, 1, 7, 8, 20):
        assert Many()(*range(n), a=1) == (n, {"a": 1})
    with pytest.raises(TypeError, match="positional argument"):
        nn.ReLU()(1, 2, 3)


def test_static_and_class_methods_as_forward():
    class Static(nn.Module):
        @staticmethod
        def forward(x):
            return x

    class OfClass(nn.Module):
        @classmethod
        def forward(cls, x):
            return cls, x

    assert Static()(3) == 3 and OfClass()(3) == (OfClass, 3)


def test_a_call_of_ones_own():
    class Own(nn.Module):
        def __call__(self, *args):
            return ["own", super().__call__(*args)]

        def forward(self, x):
            return x

    assert Own()(1) == ["own", 1]


def test_members_are_found_while_an_error_is_handled():
    net = Net()
    try:
        raise ValueError("outer")
    except ValueError as error:
        assert net.scale is net._parameters["scale"] and not hasattr(net, "absent")
        assert str(error) == "outer"
