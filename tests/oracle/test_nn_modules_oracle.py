"""Every module on inputs: results, gradients of inputs and parameters, buffers afterwards, in training and evaluation.

A line of the table is a constructor and its inputs: `x` draws numbers that want a gradient, `u` such between 0 and 1,
`k` classes, `t` signs, `c` numbers and `w` weights that do not.
"""

import inspect

import pytest
from nn_twin import same_module

torch = pytest.importorskip("torch", reason="the oracle is installed by .ci/run only")
pytestmark = [pytest.mark.oracle, pytest.mark.filterwarnings("ignore")]

TABLE = """
Linear(3, 4)                                                | x(2, 5, 3)
Linear(3, 4, bias=False)                                    | x(3)
Bilinear(2, 3, 4)                                           | x(5, 2), x(5, 3)
Identity()                                                  | x(2, 3)
Conv1d(4, 6, 3, stride=2, padding=1, groups=2)              | x(2, 4, 9)
Conv2d(3, 4, 3, padding="same", padding_mode="reflect")     | x(2, 3, 6, 7)
Conv2d(4, 4, (3, 2), stride=(2, 1), dilation=2, bias=False) | x(4, 9, 8)
Conv3d(2, 3, 2, padding=1)                                  | x(2, 2, 3, 4, 5)
ConvTranspose1d(4, 2, 3, stride=2, output_padding=1)        | x(2, 4, 5)
ConvTranspose2d(4, 6, 3, padding=1, groups=2, dilation=2)   | x(2, 4, 5, 6)
ConvTranspose3d(2, 3, 2, stride=2)                          | x(2, 2, 3, 2, 3)
MaxPool1d(2)                                                | x(2, 3, 7)
MaxPool2d((2, 3), 1, 1)                                     | x(2, 3, 6, 7)
MaxPool3d(2, ceil_mode=True)                                | x(2, 3, 5, 4, 5)
AvgPool1d(3, 2, 1)                                          | x(2, 3, 7)
AvgPool2d(2, divisor_override=3)                            | x(2, 3, 6, 7)
AvgPool3d(2, padding=1, count_include_pad=False)            | x(2, 3, 5, 4, 5)
LPPool1d(2, 3)                                              | u(2, 3, 7)
LPPool2d(3, 2)                                              | u(2, 3, 6, 6)
LPPool3d(2, 2)                                              | u(2, 3, 4, 4, 4)
FractionalMaxPool2d(2, output_size=3)                       | x(2, 3, 7, 7)
FractionalMaxPool3d(2, output_ratio=0.5)                    | x(2, 3, 6, 6, 6)
AdaptiveMaxPool1d(3)                                        | x(2, 3, 7)
AdaptiveMaxPool2d((3, None))                                | x(2, 3, 7, 5)
AdaptiveMaxPool3d(2)                                        | x(2, 3, 5, 4, 5)
AdaptiveAvgPool1d(3)                                        | x(2, 3, 7)
AdaptiveAvgPool2d((3, 4))                                   | x(2, 3, 7, 5)
AdaptiveAvgPool3d((3, None, 2))                             | x(2, 3, 5, 4, 5)
MaxUnpool1d(2)                                              | x(1, 1, 2), k(1, 1, 1, 2) + torch.tensor([0, 2])
MaxUnpool2d(2)                                              | x(1, 1, 1, 2), k(1, 1, 1, 1, 2) + torch.tensor([1, 6])
ReflectionPad1d((2, 1))                                     | x(2, 3, 5)
ReflectionPad2d((1, 2, 0, 1))                               | x(2, 3, 5, 4)
ReflectionPad3d(1)                                          | x(2, 3, 3, 4, 5)
ReplicationPad1d(2)                                         | x(2, 3, 5)
ReplicationPad2d((1, -1, 2, 0))                             | x(2, 3, 5, 4)
ReplicationPad3d(1)                                         | x(2, 3, 3, 4, 5)
CircularPad1d(2)                                            | x(2, 3, 5)
CircularPad2d((1, 2, 3, 1))                                 | x(2, 3, 5, 4)
CircularPad3d(1)                                            | x(2, 3, 3, 4, 5)
ConstantPad1d((1, -1), 2.0)                                 | x(2, 3, 5)
ConstantPad2d(1, -3.5)                                      | x(2, 3, 5, 4)
ConstantPad3d(1, 2)                                         | x(2, 3, 3, 4, 5)
ZeroPad1d(2)                                                | x(2, 3, 5)
ZeroPad2d((1, 2, 0, 3))                                     | x(2, 3, 5, 4)
ZeroPad3d(1)                                                | x(2, 3, 3, 4, 5)
BatchNorm1d(3)                                              | x(5, 3)
BatchNorm1d(3, momentum=None)                               | x(5, 3, 4)
BatchNorm2d(3, affine=False)                                | x(4, 3, 2, 3)
BatchNorm3d(3, track_running_stats=False)                   | x(2, 3, 2, 3, 2)
InstanceNorm1d(3)                                           | x(2, 3, 5)
InstanceNorm2d(3, affine=True, track_running_stats=True)    | x(2, 3, 4, 3)
InstanceNorm3d(3, affine=True)                              | x(2, 3, 2, 3, 4)
LayerNorm((2, 3))                                           | x(4, 2, 3)
LayerNorm(3, bias=False)                                    | x(4, 2, 3)
GroupNorm(2, 4)                                             | x(3, 4, 5)
RMSNorm(3)                                                  | x(4, 2, 3)
LocalResponseNorm(2)                                        | x(2, 5, 4, 3)
ELU(0.7)                                                    | x(3, 4)
CELU(0.7)                                                   | x(3, 4)
SELU()                                                      | x(3, 4)
GELU()                                                      | x(3, 4)
GELU("tanh")                                                | x(3, 4)
GLU(0)                                                      | x(4, 3)
Hardshrink(0.3)                                             | x(3, 4)
Hardsigmoid()                                               | 4 * x(3, 4)
Hardswish()                                                 | 4 * x(3, 4)
Hardtanh(-0.5, 0.7)                                         | x(3, 4)
LeakyReLU(0.2)                                              | x(3, 4)
LogSigmoid()                                                | 9 * x(3, 4)
LogSoftmax(1)                                               | x(3, 4)
Mish()                                                      | x(3, 4)
PReLU()                                                     | x(3, 4)
PReLU(4)                                                    | x(3, 4, 2)
ReLU()                                                      | x(3, 4)
ReLU6()                                                     | 5 * x(3, 4)
RReLU(0.1, 0.3)                                             | x(3, 4)
Sigmoid()                                                   | x(3, 4)
SiLU()                                                      | x(3, 4)
Softmax(0)                                                  | x(3, 4)
Softmax2d()                                                 | x(2, 3, 4, 5)
Softmin(1)                                                  | x(3, 4)
Softplus(2, 1)                                              | x(3, 4)
Softshrink(0.3)                                             | x(3, 4)
Softsign()                                                  | x(3, 4)
Tanh()                                                      | x(3, 4)
Tanhshrink()                                                | x(3, 4)
Threshold(0.1, 2.0)                                         | x(3, 4)
Dropout(0.4)                                                | x(30, 4)
Dropout1d(0.4)                                              | x(5, 6, 4)
Dropout2d(0.4)                                              | x(5, 6, 4, 2)
Dropout3d(0.4)                                              | x(5, 6, 4, 2, 2)
AlphaDropout(0.4)                                           | x(30, 4)
FeatureAlphaDropout(0.4)                                    | x(5, 6, 4)
Embedding(7, 3, padding_idx=2)                              | k(7, 4, 5)
Embedding(7, 3, scale_grad_by_freq=True)                    | k(7, 9)
EmbeddingBag(7, 3)                                          | k(7, 4, 5)
EmbeddingBag(7, 3, mode="sum", padding_idx=1)               | k(7, 9), torch.tensor([0, 2, 2, 6])
EmbeddingBag(7, 3, mode="max")                              | k(7, 4, 5)
RNN(3, 4, 2, bidirectional=True)                            | x(5, 2, 3)
RNN(3, 4, nonlinearity="relu", bias=False)                  | x(5, 2, 3), x(1, 2, 4)
GRU(3, 4, 2, batch_first=True)                              | x(2, 5, 3)
GRU(3, 4, bidirectional=True)                               | x(5, 3)
LSTM(3, 4, 2, bidirectional=True, proj_size=2)              | x(5, 2, 3)
LSTM(3, 40, batch_first=True)                               | x(9, 6, 3), (x(1, 9, 40), x(1, 9, 40))
LSTM(3, 4, 2, dropout=0.5)                                  | x(5, 2, 3)
RNNCell(3, 4)                                               | x(2, 3), x(2, 4)
GRUCell(3, 4, bias=False)                                   | x(2, 3), x(2, 4)
LSTMCell(3, 4)                                              | x(2, 3), (x(2, 4), x(2, 4))
MultiheadAttention(6, 2, add_bias_kv=True)                  | x(4, 2, 6), x(5, 2, 6), x(5, 2, 6)
MultiheadAttention(6, 3, kdim=4, vdim=5, batch_first=True)  | x(2, 4, 6), x(2, 5, 4), x(2, 5, 5)
TransformerEncoderLayer(6, 2, 8)                            | x(4, 2, 6)
TransformerEncoderLayer(6, 2, 8, 0.0, "gelu", norm_first=True, batch_first=True) | x(2, 4, 6)
TransformerDecoderLayer(6, 2, 8, 0.0)                       | x(4, 2, 6), x(5, 2, 6)
Transformer(6, 2, 1, 1, 8, 0.0)                             | x(4, 2, 6), x(5, 2, 6)
L1Loss()                                                    | x(3, 4), x(3, 4)
MSELoss(reduction="sum")                                    | x(3, 4), x(3, 4)
SmoothL1Loss(beta=0.5)                                      | x(3, 4), x(3, 4)
HuberLoss(delta=0.5)                                        | x(3, 4), x(3, 4)
KLDivLoss(reduction="batchmean")                            | x(3, 4), u(3, 4)
NLLLoss(w(4), ignore_index=1)                               | x(6, 4), k(4, 6)
CrossEntropyLoss(w(4), label_smoothing=0.1)                 | x(6, 4), k(4, 6)
CrossEntropyLoss(reduction="none")                          | x(6, 4, 3), k(4, 6, 3)
CrossEntropyLoss()                                          | x(6, 4), u(6, 4)
PoissonNLLLoss(full=True)                                   | x(3, 4), 3 * c(3, 4)
GaussianNLLLoss()                                           | x(3, 4), x(3, 4), u(3, 4)
BCELoss(w(4))                                               | u(3, 4), c(3, 4)
BCEWithLogitsLoss(pos_weight=w(4))                          | x(3, 4), c(3, 4)
SoftMarginLoss()                                            | x(3, 4), t(3, 4)
HingeEmbeddingLoss(0.5)                                     | x(3, 4), t(3, 4)
MarginRankingLoss(0.3)                                      | x(5), x(5), t(5)
MultiLabelMarginLoss()                                      | x(2, 4), torch.tensor([[3, 0, -1, 1], [1, -1, 0, 2]])
MultiLabelSoftMarginLoss(w(4))                              | x(3, 4), c(3, 4).round()
MultiMarginLoss(p=2, weight=w(4))                           | x(6, 4), k(4, 6)
CosineEmbeddingLoss(0.1)                                    | x(5, 3), x(5, 3), t(5)
TripletMarginLoss(swap=True)                                | x(5, 3), x(5, 3), x(5, 3)
TripletMarginWithDistanceLoss()                             | x(5, 3), x(5, 3), x(5, 3)
CTCLoss()                                                   | x(7, 2, 4).log_softmax(2), k(3, 2, 3) + 1, torch.tensor([7, 6]), torch.tensor([3, 2])
CosineSimilarity()                                          | x(5, 3), x(5, 3)
PairwiseDistance(3)                                         | x(5, 3), x(5, 3)
Flatten()                                                   | x(2, 3, 4)
Unflatten(1, (2, 3))                                        | x(2, 6)
Fold((4, 5), 2)                                             | x(2, 12, 12)
Unfold(2, padding=1)                                        | x(2, 3, 4, 5)
PixelShuffle(2)                                             | x(2, 8, 3, 2)
PixelUnshuffle(2)                                           | x(2, 3, 4, 6)
ChannelShuffle(2)                                           | x(2, 4, 3, 2)
Upsample(scale_factor=2)                                    | x(2, 3, 4)
Upsample((5, 7), mode="bilinear", align_corners=True)       | x(2, 3, 4, 3)
UpsamplingNearest2d(scale_factor=2)                         | x(2, 3, 4, 3)
UpsamplingBilinear2d((5, 6))                                | x(2, 3, 4, 3)
"""


class Constructors(dict):
    """Any name of a module as a function that gives the name and the arguments."""

    def __missing__(self, name):
        if not hasattr(torch.nn, name):
            raise KeyError(name)
        return lambda *args, **kwargs: (name, args, kwargs)


def makers(dtype):
    generator = torch.Generator().manual_seed(1)

    def normal(*shape):
        return torch.randn(shape, generator=generator, dtype=torch.float64).to(dtype)

    def uniform(*shape):
        return (0.05 + 0.9 * torch.rand(shape, generator=generator, dtype=torch.float64)).to(dtype)

    return {
        "torch": torch,
        "x": lambda *shape: normal(*shape).requires_grad_(),
        "u": lambda *shape: uniform(*shape).requires_grad_(),
        "c": uniform,
        "w": uniform,
        "k": lambda classes, *shape: torch.randint(classes, shape, generator=generator),
        "t": lambda *shape: 2 * torch.randint(2, shape, generator=generator).to(dtype) - 1,
    }


@pytest.mark.parametrize("training", [True, False], ids=["training", "evaluation"])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=["float64", "float32"])
@pytest.mark.parametrize("line", TABLE.strip().splitlines(), ids=lambda line: line.partition("|")[0].strip())
def test_results_gradients_and_buffers(line, dtype, training):
    constructor, _, inputs = line.partition("|")
    names = Constructors(makers(dtype))
    name, args, kwargs = eval(constructor.strip(), {}, names)
    operands = eval(f"[{inputs.strip()}]", {}, names)
    # what is computed from a leaf is a leaf itself in this comparison
    operands = [x.detach().requires_grad_() if isinstance(x, torch.Tensor) and x.requires_grad else x for x in operands]
    if "dtype" in inspect.signature(getattr(torch.nn, name)).parameters or name in ("RNN", "LSTM", "GRU"):
        kwargs["dtype"] = dtype
    same_module(name, args, kwargs, operands, training)


def test_every_module_is_in_the_table():
    """But for containers, for shapes found at the first call, and for what has tests of its own."""
    apart = {"AdaptiveLogSoftmaxWithLoss", "LinearCrossEntropyLoss", "MaxUnpool3d", "NLLLoss2d", "SyncBatchNorm"}
    apart |= {"CrossMapLRN2d"}  # PyTorch's gradient of it fails PyTorch's gradcheck
    containers = {"Module", "Sequential", "ModuleList", "ModuleDict", "ParameterList", "ParameterDict", "Container"}
    bases = {"RNNBase", "RNNCellBase", "Transformer", "TransformerEncoder", "TransformerDecoder"}
    named = {line.partition("(")[0] for line in TABLE.strip().splitlines()}
    every = {
        name
        for name, value in vars(torch.nn).items()
        if isinstance(value, type) and issubclass(value, torch.nn.Module) and not name.startswith("Lazy")
    }
    assert every - apart - containers - bases - {"DataParallel"} <= named
