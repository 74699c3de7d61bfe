"""Modules: registration of members, attributes, searches, conversion, modes, printing, copies."""

import copy
import pickle
import re
import sys

import pytest

import rushlight as torch
from rushlight import nn
from sample_modules import Net


class Bare(nn.Module):
    def __init__(self):
        """Forgets to call the base class."""


def message(text):
    return "^" + re.escape(text) + "$"


# Registration -----------------------------------------------------------------------------------------------------


def test_members_live_in_their_dictionaries_only():
    net = Net()
    assert list(net._parameters) == ["scale"]
    assert list(net._buffers) == ["shift", "scratch"]
    assert list(net._modules) == ["body"]
    assert not {"scale", "shift", "scratch", "body"} & set(vars(net))
    assert net.scale is net._parameters["scale"]
    assert net.body is net._modules["body"]
    assert vars(net)["name"] == "net"


def test_what_is_put_into_the_dictionaries_is_seen_as_an_attribute():
    net = Net()
    new = nn.Parameter(torch.zeros(4))
    net._parameters["scale"] = new
    assert net.scale is new
    del net._parameters["scale"]
    assert not hasattr(net, "scale")


@pytest.mark.parametrize("value", ["nn.Parameter(torch.ones(1))", "nn.Linear(1, 1)", "nn.Buffer(torch.ones(1))"])
def test_assignment_before_init_is_refused(value):
    kind = "parameters" if "Parameter" in value else "module" if "Linear" in value else "buffer"
    with pytest.raises(AttributeError, match=f"cannot assign {kind} before Module.__init__\\(\\) call"):
        Bare().x = eval(value)


def test_registration_before_init_is_refused():
    with pytest.raises(AttributeError, match="cannot assign buffer before"):
        Bare().register_buffer("x", None)
    with pytest.raises(AttributeError, match="cannot assign parameter before"):
        Bare().register_parameter("x", None)
    with pytest.raises(AttributeError, match="has no attribute"):
        Bare()(1)


@pytest.mark.parametrize("kind", ["parameter", "buffer", "module"])
def test_names_that_cannot_be_registered(kind):
    module = nn.Module()
    register = module.add_module if kind == "module" else getattr(module, f"register_{kind}")
    with pytest.raises(TypeError, match=f"{kind} name should be a string. Got int"):
        register(3, None)
    with pytest.raises(KeyError, match="t contain"):
        register("a.b", None)
    with pytest.raises(KeyError, match="t be empty string"):
        register("", None)
    with pytest.raises(KeyError, match="attribute 'forward' already exists"):
        register("forward", None)
    assert not module._parameters and not module._buffers and not module._modules


def test_values_that_cannot_be_registered():
    module = nn.Module()
    with pytest.raises(
        TypeError, match=r"cannot assign 'int' object to parameter 'p' \(torch.nn.Parameter or None req"
    ):
        module.register_parameter("p", 3)
    with pytest.raises(TypeError, match="object to parameter 'p'"):
        module.register_parameter("p", torch.ones(1))
    with pytest.raises(TypeError, match="object to buffer 'b'"):
        module.register_buffer("b", 3)
    with pytest.raises(TypeError, match="int is not a Module subclass"):
        module.add_module("m", 3)
    assert dir(module) == dir(nn.Module())


def test_a_name_keeps_its_kind():
    net = Net()
    with pytest.raises(TypeError, match="as parameter 'scale'"):
        net.scale = torch.ones(4)
    with pytest.raises(TypeError, match="as parameter 'scale'"):
        net.scale = nn.Linear(1, 1)
    with pytest.raises(TypeError, match="as child module 'body'"):
        net.body = torch.ones(1)
    with pytest.raises(TypeError, match="as buffer 'shift'"):
        net.shift = 3
    net.scale = net.body = net.shift = None
    assert net._parameters == {"scale": None} and net._modules == {"body": None} and net._buffers["shift"] is None
    assert list(net.parameters()) == [] and list(net.children()) == []


def test_parameters_and_modules_displace_what_had_their_name():
    net = Net()
    net.name = nn.Linear(1, 1)
    assert "name" not in vars(net) and isinstance(net.name, nn.Linear)
    net.name = nn.Parameter(torch.ones(1))
    assert list(net._modules) == ["body"] and "name" in net._parameters
    net.scratch = nn.Parameter(torch.ones(1))
    assert net._non_persistent_buffers_set == set() and "scratch" in net._parameters


def test_a_buffer_takes_tensors_and_keeps_its_persistence():
    net = Net()
    net.scratch = torch.ones(5)
    assert net._buffers["scratch"].shape == (5,) and "scratch" not in net.state_dict()
    net.scratch = nn.Buffer(torch.ones(1))
    assert "scratch" in net.state_dict()
    net.made = nn.Buffer(torch.ones(1), persistent=False)
    assert net._non_persistent_buffers_set == {"made"}
    net.plain = torch.ones(1)
    assert "plain" not in net._buffers


def test_deletion():
    net = Net()
    del net.scale, net.shift, net.scratch, net.body, net.name
    assert not net._parameters and not net._buffers and not net._modules and not net._non_persistent_buffers_set
    with pytest.raises(AttributeError, match="'Net' object has no attribute 'scale'"):
        del net.scale
    with pytest.raises(AttributeError, match=message("'Net' object has no attribute 'shift'")):
        _ = net.shift


def test_dir_has_members_but_no_numbers():
    assert {"scale", "shift", "body", "name", "forward"} <= set(dir(Net()))
    assert not any(name[0].isdigit() for name in dir(nn.Sequential(nn.ReLU())))


def test_registration_hooks_replace_and_can_be_removed():
    from rushlight.nn.modules import module as hooks

    seen = []

    def double(module, name, value):
        seen.append(name)
        return nn.Parameter(value.detach() * 2) if isinstance(value, nn.Parameter) else None

    handles = [
        hooks.register_module_parameter_registration_hook(double),
        hooks.register_module_module_registration_hook(double),
        hooks.register_module_buffer_registration_hook(double),
    ]
    try:
        net = Net()
    finally:
        for handle in handles:
            handle.remove()
    assert seen[-1] == "scratch" and {"weight", "running_mean", "0", "body"} <= set(seen)
    assert net.scale.tolist() == [2.0] * 4
    assert Net().scale.tolist() == [1.0] * 4


# Searches ---------------------------------------------------------------------------------------------------------


def test_names_and_order_of_members():
    net = Net()
    assert [n for n, _ in net.named_parameters()] == [
        "scale",
        "body.0.weight",
        "body.0.bias",
        "body.1.weight",
        "body.1.bias",
    ]
    assert [n for n, _ in net.named_parameters("p", recurse=False)] == ["p.scale"]
    assert [n for n, _ in net.named_modules()] == ["", "body", "body.0", "body.1"]
    assert [n for n, _ in net.named_modules(prefix="p")] == ["p", "p.body", "p.body.0", "p.body.1"]
    assert [n for n, _ in net.named_children()] == ["body"]
    assert [n for n, _ in net.named_buffers()][:2] == ["shift", "scratch"]
    assert len(list(net.buffers())) == 5 and len(list(net.modules())) == 4


def test_shared_members_are_given_once_unless_asked_for():
    layer = nn.Linear(1, 1)
    twice = nn.Sequential(layer, layer, nn.Linear(1, 1))
    twice[2].weight = layer.weight
    assert [n for n, _ in twice.named_parameters()] == ["0.weight", "0.bias", "2.bias"]
    assert [n for n, _ in twice.named_parameters(remove_duplicate=False)] == [
        "0.weight",
        "0.bias",
        "1.weight",
        "1.bias",
        "2.weight",
        "2.bias",
    ]
    assert [n for n, _ in twice.named_modules()] == ["", "0", "2"]
    assert [n for n, _ in twice.named_modules(remove_duplicate=False)] == ["", "0", "1", "2"]
    assert list(twice.children()) == [layer, twice[2]]


def test_members_by_path():
    net = Net()
    assert net.get_submodule("") is net and net.get_submodule("body.1") is net.body[1]
    assert net.get_parameter("body.0.weight") is net.body[0].weight
    assert net.get_buffer("body.1.running_mean") is net.body[1].running_mean
    for call, text in [
        (lambda: net.get_submodule("body.9"), "Sequential has no attribute `9`"),
        (lambda: net.get_submodule("scale"), "`scale` is not an nn.Module"),
        (lambda: net.get_parameter("body.0.wight"), "Linear has no attribute `wight`"),
        (lambda: net.get_parameter("shift"), "`shift` is not an nn.Parameter"),
        (lambda: net.get_buffer("scale"), "`scale` is not a buffer"),
    ]:
        with pytest.raises(AttributeError, match=message(text)):
            call()


def test_set_submodule():
    net = Net()
    net.set_submodule("body.0", nn.Identity())
    assert isinstance(net.body[0], nn.Identity)
    net.set_submodule("body.new", nn.ReLU())
    assert isinstance(net.body.new, nn.ReLU)
    with pytest.raises(AttributeError, match="Sequential has no attribute `absent`"):
        net.set_submodule("body.absent", nn.ReLU(), strict=True)
    with pytest.raises(AttributeError, match=r"`scale` is not an nn.Module"):
        net.set_submodule("scale", nn.ReLU())
    with pytest.raises(ValueError, match="without a target name"):
        net.set_submodule("", nn.ReLU())
    with pytest.raises(ValueError, match=r"is not an nn.Module, found <class 'int'>"):
        net.set_submodule("body.0", 3)


def test_apply_goes_from_the_leaves_to_the_root():
    names = []
    net = Net()
    assert net.apply(lambda m: names.append(type(m).__name__)) is net
    assert names == ["Linear", "BatchNorm1d", "Sequential", "Net"]


# The call ---------------------------------------------------------------------------------------------------------


def test_a_call_passes_arguments_on():
    net = Net().eval()
    x = torch.ones(2, 3)
    assert torch.equal(net(x, factor=2), net.forward(x, 2))


def test_a_module_without_forward():
    with pytest.raises(NotImplementedError, match=r"Module \[Module\] is missing the required"):
        nn.Module()(1)


def test_constructor_arguments_that_nobody_takes():
    class Plain(nn.Module):
        pass

    with pytest.raises(TypeError, match=r"Plain.__init__\(\) takes 1 positional argument but 3 were given"):
        Plain(1, 2)
    with pytest.raises(TypeError, match=r"Plain.__init__\(\) got an unexpected keyword argument 'a'"):
        Plain(a=1)


def test_call_super_init_reaches_the_next_base():
    class Other:
        def __init__(self, size):
            self.size = size

    class Both(nn.Module, Other):
        call_super_init = True

    assert Both(3).size == 3


# Conversion -------------------------------------------------------------------------------------------------------


def test_conversion_keeps_the_parameters_and_their_gradients():
    net = Net()
    net.scale.grad = torch.ones(4)
    weight, grad = net.scale, net.scale.grad
    assert net.double() is net
    assert net.scale is weight and weight.grad is grad
    assert weight.dtype == grad.dtype == net.shift.dtype == torch.float64
    assert net.body[1].num_batches_tracked.dtype == torch.int64
    assert net.half().scale.dtype == torch.float16
    assert net.bfloat16().scale.dtype == torch.bfloat16
    assert net.float().scale.dtype == torch.float32
    assert net.scale.requires_grad and net.scale.is_leaf


@pytest.mark.parametrize(
    ("args", "kwargs"),
    [
        ((torch.float64,), {}),
        (("cpu", torch.float64), {}),
        (("cpu",), {"dtype": torch.float64}),
        ((), {"dtype": torch.float64}),
        ((torch.ones(1, dtype=torch.float64),), {}),
        ((torch.device("cpu"), torch.float64, True), {}),
        ((torch.float64, True), {}),
    ],
)
def test_forms_of_to(args, kwargs):
    net = Net().to(*args, **kwargs)
    assert net.scale.dtype == net.shift.dtype == torch.float64
    assert net.body[1].num_batches_tracked.dtype == torch.int64


def test_to_without_a_dtype_changes_nothing():
    net = Net()
    assert net.to("cpu") is net and net.to() is net
    assert net.scale.dtype == torch.float32


@pytest.mark.parametrize(
    ("args", "error"),
    [((torch.int32,), TypeError), (("cpu", torch.bool), TypeError), ((torch.float64, torch.float64), TypeError)],
)
def test_to_refuses(args, error):
    net = Net()
    with pytest.raises(error):
        net.to(*args)
    assert net.scale.dtype == torch.float32


def test_to_names_the_dtype_it_cannot_take():
    with pytest.raises(TypeError, match=r"nn.Module.to only accepts floating point or complex dtypes, but got desired"):
        Net().to(torch.int64)


def test_shared_parameters_stay_shared():
    net = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    net[1].weight = net[0].weight
    net.double()
    assert net[0].weight is net[1].weight and net[0].weight.dtype == torch.float64


def test_to_empty_keeps_shapes():
    net = Net().to_empty(device="cpu")
    assert net.scale.shape == (4,) and isinstance(net.scale, nn.Parameter)
    with pytest.raises(TypeError, match="device"):
        net.to_empty()


def test_what_is_not_available_says_so():
    with pytest.raises(NotImplementedError, match="compile"):
        Net().compile()


# Modes and gradients ----------------------------------------------------------------------------------------------


def test_train_and_eval_reach_all_modules():
    net = Net()
    assert all(m.training for m in net.modules())
    assert net.eval() is net and not any(m.training for m in net.modules())
    assert net.train() is net and net.body[1].training
    with pytest.raises(ValueError, match="training mode is expected to be boolean"):
        net.train(1)


def test_requires_grad_and_zero_grad():
    net = Net()
    net(torch.ones(2, 3)).sum().backward()
    assert net.scale.grad is not None
    kept = net.scale.grad
    net.zero_grad(set_to_none=False)
    assert net.scale.grad is kept and kept.tolist() == [0.0] * 4
    net.zero_grad()
    assert all(p.grad is None for p in net.parameters())
    assert net.requires_grad_(False) is net
    assert not any(p.requires_grad for p in net.parameters())


# Printing, copies -------------------------------------------------------------------------------------------------


def test_printed_form_of_a_tree():
    class Outer(nn.Module):
        def __init__(self, extra):
            super().__init__()
            self.extra = extra
            self.empty = nn.Sequential()
            self.list = nn.ModuleList([nn.ReLU()])
            self.absent = None
            self.register_module("none", None)

        def extra_repr(self):
            return self.extra

    assert repr(Outer("a=1\nb=2")) == (
        "Outer(\n  a=1\n  b=2\n  (empty): Sequential()\n  (list): ModuleList(\n    (0): ReLU()\n  )\n  (none): None\n)"
    )
    assert repr(Outer("a=1")).startswith("Outer(\n  a=1\n  (empty)")
    assert repr(nn.Module()) == "Module()"


def test_deepcopy_shares_nothing_but_keeps_sharing():
    net = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    net[1].weight = net[0].weight
    net.tag = object
    other = copy.deepcopy(net)
    assert other[0].weight is other[1].weight and other[0].weight is not net[0].weight
    assert torch.equal(other[0].weight, net[0].weight) and other.tag is object
    with torch.no_grad():
        other[0].weight.zero_()
    assert net[0].weight.abs().sum() > 0


def test_a_shallow_copy_shares_its_dictionaries():
    net = Net()
    assert copy.copy(net)._parameters is net._parameters


def test_pickle_round_trip():
    net = Net()
    net.eval()
    back = pickle.loads(pickle.dumps(net))
    assert type(back) is Net and not back.training and back.name == "net"
    assert isinstance(back.scale, nn.Parameter) and back._non_persistent_buffers_set == {"scratch"}
    for (name, mine), (other, theirs) in zip(net.state_dict().items(), back.state_dict().items(), strict=True):
        assert name == other and torch.equal(mine, theirs)


def test_state_of_an_early_version_gets_the_missing_fields():
    module = nn.Module.__new__(nn.Module)
    module.__setstate__({"training": True, "_parameters": {}, "_buffers": {}, "_modules": {}, "_backward_hooks": {}})
    assert repr(module) == "Module()"
    assert list(module.state_dict()) == []
    module.register_forward_pre_hook(lambda m, a: None)


def test_consume_prefix():
    from rushlight.nn.modules.utils import consume_prefix_in_state_dict_if_present

    state = nn.ModuleDict({"module": nn.Linear(1, 1)}).state_dict()
    state["other"] = 1
    consume_prefix_in_state_dict_if_present(state, "module.")
    assert sorted(state) == ["bias", "other", "weight"]
    assert set(state._metadata) == {""}
    nn.Linear(1, 1).load_state_dict(state, strict=False)


def test_a_call_without_hooks_runs_no_python_but_forward():
    """What holds the cost of a call: frames are counted, not time."""

    class Same(nn.Module):
        def forward(self, x):
            return x

    def frames(call):
        seen = []
        sys.setprofile(lambda frame, event, arg: seen.append(frame.f_code.co_name) if event == "call" else None)
        try:
            call()
        finally:
            sys.setprofile(None)
        return seen

    module, x = Same(), torch.ones(1)
    assert frames(lambda: module(x)) == ["<lambda>", "forward"]
    assert frames(lambda: nn.Sequential.__call__(nn.ReLU(), x)).count("_call_impl") == 0
    module.register_forward_hook(lambda *_: None)
    assert "_call_impl" in frames(lambda: module(x))
