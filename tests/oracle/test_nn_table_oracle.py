"""Every layer against PyTorch's: arguments and defaults, printed form, names and shapes of the state, attributes."""

import inspect

import pytest

import rushlight
import rushlight.nn as ours

torch = pytest.importorskip("torch", reason="the oracle is installed by .ci/run only")
pytestmark = [pytest.mark.oracle, pytest.mark.filterwarnings("ignore")]

CALLS = """
Linear(2, 3)
Linear(2, 3, bias=False)
Identity(1, a=2)
Bilinear(2, 3, 4)
Bilinear(2, 3, 4, bias=False)
LazyLinear(3)
LazyLinear(3, bias=False)
Conv1d(2, 4, 3)
Conv2d(2, 4, 3, 2, 1, 2, 2, False, "circular")
Conv2d(2, 4, (3, 5), padding="same", padding_mode="reflect")
Conv2d(2, 4, (3, 4), padding="valid", padding_mode="reflect")
Conv2d(2, 4, (3, 4), padding="same", dilation=2)
Conv2d(2, 4, [3, 3], [1, 1])
Conv3d(2, 4, 3, padding=(0, 1, 2), groups=2)
ConvTranspose1d(2, 4, 3, 2, 1, 1, 2, False, 3)
ConvTranspose2d(2, 4, 3)
ConvTranspose3d(2, 4, (3, 2, 1), stride=2, output_padding=1)
LazyConv1d(4, 3)
LazyConv2d(4, 3, 2, 1, bias=False)
LazyConv3d(4, 3)
LazyConvTranspose1d(4, 3)
LazyConvTranspose2d(4, 3, 2, 1, 1)
LazyConvTranspose3d(4, 3)
MaxPool1d(2)
MaxPool2d((2, 3), 1, 1, 1, True, True)
MaxPool3d(2, stride=None)
MaxUnpool1d(2)
MaxUnpool2d(2, 1, 1)
MaxUnpool3d((2, 2, 2))
AvgPool1d(2)
AvgPool2d(2)
AvgPool2d((2, 2), 1, 1, True, False, 3)
AvgPool3d(2)
FractionalMaxPool2d(2, output_size=3)
FractionalMaxPool3d(2, output_ratio=0.5)
LPPool1d(2, 3)
LPPool2d(2.0, (2, 3), 2, True)
LPPool3d(2, 3)
AdaptiveMaxPool1d(3)
AdaptiveMaxPool2d((3, None), True)
AdaptiveMaxPool3d(3)
AdaptiveAvgPool1d(3)
AdaptiveAvgPool2d((3, 4))
AdaptiveAvgPool3d((3, None, 2))
CircularPad1d(1)
CircularPad2d((1, 2, 3, 4))
CircularPad3d(1)
ConstantPad1d(1, 2.0)
ConstantPad2d(1, 2)
ConstantPad3d((1, 1, 1, 1, 1, 1), 2)
ReflectionPad1d(1)
ReflectionPad2d((1, 0, 1, 0))
ReflectionPad3d(1)
ReplicationPad1d(2)
ReplicationPad2d(2)
ReplicationPad3d(2)
ZeroPad1d(1)
ZeroPad2d((1, -1, 1, 1))
ZeroPad3d(1)
BatchNorm1d(3)
BatchNorm2d(3, affine=False)
BatchNorm3d(3, track_running_stats=False, momentum=None)
BatchNorm2d(3, bias=False, eps=1e-3)
SyncBatchNorm(3)
LazyBatchNorm1d()
LazyBatchNorm2d(affine=False)
LazyBatchNorm3d(track_running_stats=False)
LazyBatchNorm3d(bias=False)
InstanceNorm1d(3)
InstanceNorm2d(3, affine=True, track_running_stats=True)
InstanceNorm3d(3, affine=True, bias=False)
LazyInstanceNorm1d()
LazyInstanceNorm2d(affine=False)
LazyInstanceNorm3d()
LocalResponseNorm(2)
LocalResponseNorm(2, 1, 2, 3)
CrossMapLRN2d(2)
LayerNorm(3)
LayerNorm([2, 3], 1e-3, False)
LayerNorm((2,), bias=False)
GroupNorm(2, 4)
GroupNorm(2, 4, affine=False)
GroupNorm(2, 4, bias=False)
RMSNorm(3)
RMSNorm([2, 3], 1e-3, False)
Threshold(0.1, 2)
Threshold(0.1, 2, True)
ReLU()
ReLU(True)
RReLU()
RReLU(0.1, 0.2, True)
Hardtanh()
Hardtanh(-2, 2, True)
Hardtanh(min_value=-3, max_value=4)
ReLU6()
ReLU6(True)
Sigmoid()
Hardsigmoid(True)
Tanh()
SiLU(True)
Mish(True)
Hardswish(True)
ELU()
ELU(2.0, True)
CELU(2.0, True)
SELU(True)
GLU()
GELU()
GELU("tanh")
Hardshrink()
LeakyReLU()
LeakyReLU(0.2, True)
LogSigmoid()
Softplus()
Softshrink(0.3)
PReLU()
PReLU(3, 0.1)
Softsign()
Tanhshrink()
Softmin()
Softmax(dim=-1)
Softmax2d()
LogSoftmax(1)
Dropout()
Dropout(0.2, True)
Dropout1d()
Dropout2d()
Dropout3d()
AlphaDropout()
FeatureAlphaDropout()
Flatten()
Flatten(0, 1)
Unflatten(1, (2, 3))
Unflatten(1, [2, 3])
Sequential(nn.ReLU(), nn.Linear(1, 2))
ModuleList([nn.Linear(1, 1), nn.Linear(1, 1), nn.ModuleList([nn.ReLU()] * 3)])
ModuleDict({"b": nn.ReLU(), "a": nn.Tanh()})
ParameterList([nn.Parameter(torch.ones(2, 3)), torch.ones(1), 3, None])
ParameterList([torch.ones(1)])
ParameterDict({"b": torch.ones(2, 3), "a": 1})
ParameterDict([("b", torch.ones(2)), ("a", torch.ones(()))])
Container(a=nn.ReLU())
""".strip().splitlines()


def build(nn, package, call):
    return eval("nn." + call, {"nn": nn, "torch": package})


def pair(call):
    return build(ours, rushlight, call), build(torch.nn, torch, call)


def shapes(module):
    """The shape of each entry of the state, or None where it has none yet."""
    lazy = ours.parameter.UninitializedTensorMixin, torch.nn.parameter.UninitializedTensorMixin
    return [(k, None if isinstance(v, lazy) else tuple(v.shape)) for k, v in module.state_dict().items()]


def plain(module):
    """Names and values of the attributes that are no tensors, modules or hooks."""
    return {k: v for k, v in vars(module).items() if not k.startswith("_")}


@pytest.mark.parametrize("call", CALLS)
def test_printed_form(call):
    mine, theirs = pair(call)
    assert repr(mine) == repr(theirs)


@pytest.mark.parametrize("call", CALLS)
def test_names_and_shapes_of_the_state(call):
    mine, theirs = pair(call)
    assert shapes(mine) == shapes(theirs)
    assert [n for n, _ in mine.named_parameters()] == [n for n, _ in theirs.named_parameters()]
    assert [n for n, _ in mine.named_buffers()] == [n for n, _ in theirs.named_buffers()]
    assert list(mine._parameters) == list(theirs._parameters)
    assert list(mine._buffers) == list(theirs._buffers)


@pytest.mark.parametrize("call", CALLS)
def test_attributes(call):
    mine, theirs = pair(call)
    assert plain(mine) == plain(theirs)
    assert mine._version == theirs._version


NAMES = sorted({call.split("(")[0] for call in CALLS})


@pytest.mark.parametrize("name", NAMES)
def test_arguments_and_defaults(name):
    mine, theirs = (inspect.signature(getattr(nn, name).__init__) for nn in (ours, torch.nn))
    assert [(p.name, p.kind, p.default) for p in mine.parameters.values()] == [
        (p.name, p.kind, p.default) for p in theirs.parameters.values()
    ]


@pytest.mark.parametrize("name", NAMES)
def test_arguments_of_forward(name):
    mine, theirs = (inspect.signature(getattr(nn, name).forward) for nn in (ours, torch.nn))
    assert list(mine.parameters) == list(theirs.parameters)


METHODS = [name for name, value in vars(torch.nn.Module).items() if inspect.isfunction(value) and name[:2] != "__"]
# Of PyTorch's compilers and its data parallelism on GPUs.
ABSENT = {"_slow_forward", "_wrapped_call_impl", "_replicate_for_data_parallel"}


@pytest.mark.parametrize("name", sorted(set(METHODS) - ABSENT))
def test_methods_of_module(name):
    mine, theirs = (inspect.signature(getattr(nn.Module, name)) for nn in (ours, torch.nn))
    assert [(p.name, p.kind, p.default) for p in mine.parameters.values()] == [
        (p.name, p.kind, p.default) for p in theirs.parameters.values()
    ]


FIELDS = [
    "training",
    "_parameters",
    "_buffers",
    "_non_persistent_buffers_set",
    "_modules",
    "_is_full_backward_hook",
    "_forward_hooks",
    "_load_state_dict_post_hooks",
]


def test_fields_of_a_module():
    mine, theirs = vars(ours.Module()), vars(torch.nn.Module())
    assert set(mine) == set(theirs)
    assert {name: type(mine[name]) for name in FIELDS} == {name: type(theirs[name]) for name in FIELDS}


def test_the_table_has_every_layer_of_this_part():
    here = ["linear", "conv", "pooling", "padding", "batchnorm", "instancenorm", "normalization", "dropout", "flatten"]
    here += ["activation", "container"]
    for topic in here:
        module = getattr(torch.nn.modules, topic)
        assert set(module.__all__) - {"MultiheadAttention"} <= set(NAMES), topic
