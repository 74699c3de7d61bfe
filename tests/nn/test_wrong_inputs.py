"""Every layer, given what does not fit: the error names it, says what was expected and found, and changes nothing."""

import re

import pytest

import rushlight as torch
from rushlight import nn


def t(*shape):
    return torch.ones(shape)


def i(*shape):
    return torch.zeros(shape, dtype=torch.int64)


def recurrent(name):
    make = f"nn.{name}(3, 4)"
    state = "(t(1, 5, 4), t(1, 5, 4))" if name == "LSTM" else "t(1, 5, 4)"
    return [(make, "t(7, 5, 2)"), (make, "t(3)"), (make, f"t(7, 6, 3), {state}"), (make, "t(7, 5, 3).double()")]


def cell(name):
    make = f"nn.{name}(3, 4)"
    state = "(t(5, 2), t(5, 2))" if name == "LSTMCell" else "t(5, 2)"
    return [(make, "t(5, 2)"), (make, "t(1, 5, 3)"), (make, f"t(5, 3), {state}")]


def in_space(name, arguments, channels, dims):
    """Too many dimensions, too few, and the wrong channels, where the layer has some."""
    make, space = f"nn.{name}{dims}d({arguments})", ", ".join(["4"] * dims)
    wrong = [f"t(2, 3, 3, {space})", "t(3)"]
    return [(make, inputs) for inputs in (wrong + [f"t(2, {channels}, {space})"] if channels else wrong)]


SPATIAL = {
    "Conv": ("3, 5, 2", 2),
    "ConvTranspose": ("3, 5, 2", 2),
    "LazyConv": ("5, 2", 0),
    "LazyConvTranspose": ("5, 2", 0),
    "BatchNorm": ("3", 2),
    "LazyBatchNorm": ("", 0),
    "InstanceNorm": ("3, affine=True", 2),
    "LazyInstanceNorm": ("affine=True", 0),
    "MaxPool": ("2", 0),
    "AvgPool": ("2", 0),
    "AdaptiveMaxPool": ("2", 0),
    "AdaptiveAvgPool": ("2", 0),
    "LPPool": ("2, 2", 0),
    "ReflectionPad": ("1", 0),
    "ReplicationPad": ("1", 0),
    "CircularPad": ("1", 0),
}
PAIRS = ("MSELoss", "L1Loss", "SmoothL1Loss", "HuberLoss", "KLDivLoss", "PoissonNLLLoss", "HingeEmbeddingLoss")
CLASSES = ("CrossEntropyLoss", "NLLLoss", "NLLLoss2d", "MultiMarginLoss")

WRONG = [
    *[case for name, (args, n) in SPATIAL.items() for dims in (1, 2, 3) for case in in_space(name, args, n, dims)],
    *[case for name in ("RNN", "GRU", "LSTM") for case in recurrent(name)],
    *[case for name in ("RNNCell", "GRUCell", "LSTMCell") for case in cell(name)],
    *[(f"nn.{name}()", "t(2, 3), t(2, 4)") for name in (*PAIRS, "BCELoss", "BCEWithLogitsLoss", "SoftMarginLoss")],
    *[(f"nn.{name}()", "t(2, 3), i(3)") for name in CLASSES],
    *[
        (f"nn.{kind}Pad{n}d(1{', 2.0' * (kind == 'Constant')})", "t()")
        for kind in ("Constant", "Zero")
        for n in (1, 2, 3)
    ],
    *[(f"nn.MaxUnpool{n}d(2)", "t(2), i(2)") for n in (1, 2, 3)],
    *[(f"nn.FractionalMaxPool{n}d(2, output_size=2)", "t(4, 4)") for n in (2, 3)],
    ("nn.MaxPool2d(5)", "t(1, 3, 2, 2)"),
    ("nn.AvgPool3d(3)", "t(3, 2, 4, 4)"),
    ("nn.MaxUnpool2d(2)", "t(1, 3, 2, 2), i(1, 3, 2, 1)"),
    ("nn.Conv2d(3, 5, 7)", "t(1, 3, 5, 5)"),
    ("nn.Conv2d(3, 5, 2)", "t(1, 3, 5, 5).double()"),
    ("nn.BatchNorm1d(3)", "t(1, 3)"),
    ("nn.BatchNorm2d(3)", "t(2, 3, 4, 4).double()"),
    ("nn.SyncBatchNorm(3)", "t(2, 4, 4)"),
    ("nn.LayerNorm((2, 3))", "t(4, 3, 3)"),
    ("nn.LayerNorm((2, 3))", "t(3)"),
    ("nn.RMSNorm(3)", "t(2, 2)"),
    ("nn.GroupNorm(2, 4)", "t(2, 6)"),
    ("nn.LocalResponseNorm(2)", "t(2, 3)"),
    ("nn.CrossMapLRN2d(2)", "t(2, 3)"),
    ("nn.Linear(3, 4)", "t(2, 4)"),
    ("nn.Linear(3, 4)", "t(2, 3).double()"),
    ("nn.Bilinear(3, 4, 5)", "t(2, 4), t(2, 4)"),
    ("nn.Bilinear(3, 4, 5)", "t(2, 3), t(3, 4)"),
    ("nn.Embedding(3, 4)", "t(2)"),
    ("nn.Embedding(3, 4)", "i(2) + 3"),
    ("nn.EmbeddingBag(3, 4)", "i(2, 2, 2)"),
    ("nn.EmbeddingBag(3, 4)", "i(2)"),
    ("nn.MultiheadAttention(4, 2)", "t(5, 2, 3), t(5, 2, 3), t(5, 2, 3)"),
    ("nn.MultiheadAttention(4, 2)", "t(5, 2, 4), t(5, 3, 4), t(6, 3, 4)"),
    ("nn.Transformer(4, 2, 1, 1, 8)", "t(5, 2, 4), t(5, 3, 4)"),
    ("nn.TransformerEncoderLayer(4, 2, 8)", "t(5, 2, 3)"),
    ("nn.TransformerDecoderLayer(4, 2, 8)", "t(5, 2, 3), t(5, 2, 3)"),
    ("nn.TransformerEncoder(nn.TransformerEncoderLayer(4, 2, 8), 1)", "t(5, 2, 3)"),
    ("nn.TransformerDecoder(nn.TransformerDecoderLayer(4, 2, 8), 1)", "t(5, 2, 3), t(5, 2, 3)"),
    ("nn.AdaptiveLogSoftmaxWithLoss(4, 6, [2])", "t(2, 3), i(2)"),
    ("nn.AdaptiveLogSoftmaxWithLoss(4, 6, [2])", "t(2, 4), i(3)"),
    ("nn.PReLU(3)", "t(2, 4)"),
    ("nn.GLU()", "t(2, 3)"),
    ("nn.Softmax2d()", "t(2, 3)"),
    ("nn.PixelShuffle(2)", "t(2, 3, 4, 4)"),
    ("nn.PixelUnshuffle(2)", "t(2, 3, 5, 4)"),
    ("nn.ChannelShuffle(2)", "t(2, 3, 4, 4)"),
    ("nn.Fold(4, 2)", "t(2, 3, 9)"),
    ("nn.Unfold(2)", "t(3, 3)"),
    ("nn.Unfold(5)", "t(2, 3, 4, 4)"),
    ("nn.Flatten(1, 2)", "t(3)"),
    ("nn.Unflatten(1, (2, 2))", "t(2, 3)"),
    ("nn.Upsample(scale_factor=2, mode='bilinear')", "t(2, 3, 4)"),
    ("nn.UpsamplingBilinear2d(scale_factor=2)", "t(2, 3, 4)"),
    ("nn.UpsamplingNearest2d(scale_factor=2)", "t(2, 3)"),
    ("nn.CosineSimilarity()", "t(2, 3), t(2, 4)"),
    ("nn.PairwiseDistance()", "t(2, 3), t(2, 4)"),
    ("nn.GaussianNLLLoss()", "t(2, 3), t(2, 3), t(2, 2)"),
    ("nn.MultiLabelMarginLoss()", "t(2, 3), i(2, 4)"),
    ("nn.MultiLabelSoftMarginLoss()", "t(2, 3), t(2, 4)"),
    ("nn.MarginRankingLoss()", "t(3), t(3), t(3, 3)"),
    ("nn.CosineEmbeddingLoss()", "t(2, 3), t(2, 3), t(2, 3)"),
    ("nn.TripletMarginLoss()", "t(2, 3), t(2, 3), t(3)"),
    ("nn.TripletMarginWithDistanceLoss()", "t(2, 3), t(2, 3), t(3)"),
    ("nn.CTCLoss()", "t(4, 5), i(3), i(2), i(2)"),
    ("nn.CTCLoss()", "t(5, 2, 4), i(2, 3), i(3) + 2, i(2) + 1"),
    ("nn.LinearCrossEntropyLoss(3, 4)", "t(2, 5), i(2)"),
    ("nn.LazyLinear(3)", "t()"),
]
# Layers whose input is checked by a layer inside.
INNER = {
    "TransformerEncoder": "MultiheadAttention",
    "TransformerDecoder": "MultiheadAttention",
    "AdaptiveLogSoftmaxWithLoss": "Linear",
}
# Words by which PyTorch says what it wants, where we do not add it.
WANTED = (
    "expect|should|must|has to|needs|match|incorrect|supported|multiply up|divisible|even|out of range|small|greater"
)
# Layers that take any shape, and what is no layer.
NAMES = """
ELU GELU CELU SELU Hardshrink Hardsigmoid Hardswish Hardtanh LeakyReLU LogSigmoid Mish ReLU ReLU6 RReLU SiLU Sigmoid
Softplus Softshrink Softsign Tanh Tanhshrink Threshold LogSoftmax Softmax Softmin
AlphaDropout Dropout Dropout1d Dropout2d Dropout3d FeatureAlphaDropout Identity
Container LinearCrossEntropyOptions Module ModuleDict ModuleList ParameterDict ParameterList RNNBase RNNCellBase Sequential
"""
ANY = set(NAMES.split())


def name_of(make):
    return re.match(r"nn\.(\w+)", make)[1]


def test_every_layer_is_here():
    known = {name_of(make) for make, _ in WRONG} | ANY
    assert sorted(set(nn.modules.__all__) - known) == [] and known <= set(nn.modules.__all__)


@pytest.mark.parametrize(("make", "inputs"), WRONG, ids=[f"{make}({inputs})" for make, inputs in WRONG])
def test_a_wrong_input_is_reported_by_the_layer(make, inputs):
    torch.manual_seed(0)
    layer, arguments = eval(make), eval(f"({inputs},)")
    before = {name: value.clone() for name, value in layer.state_dict().items() if not nn.parameter.is_lazy(value)}
    with pytest.raises((RuntimeError, ValueError, IndexError, AssertionError)) as caught:
        layer(*arguments)
    text = str(caught.value)
    name = name_of(make)
    names = [name, name.removeprefix("Lazy"), INNER.get(name.removesuffix("Layer"), name)]
    assert any(f"\n{name}(" in text for name in names), text
    assert re.search(r"found \(", text), text
    assert re.search(WANTED, text, re.IGNORECASE), text
    after = layer.state_dict()
    assert all(torch.equal(value, after[name]) for name, value in before.items())


FUNCTIONAL = [
    ("linear", "t(2, 3), t(4, 5)"),
    ("bilinear", "t(2, 3), t(2, 3), t(2, 4, 5)"),
    ("conv1d", "t(1, 3, 5), t(2, 4, 3)"),
    ("conv2d", "t(1, 3, 5, 5), t(2, 4, 3, 3)"),
    ("conv_transpose2d", "t(1, 3, 5, 5), t(4, 2, 3, 3)"),
    ("conv_tbc", "t(5, 2, 3), t(2, 4, 4), t(4)"),
    ("max_pool1d", "t(3, 2), 5"),
    ("max_pool2d", "t(3, 2, 2), 5"),
    ("avg_pool3d", "t(3, 2), 5"),
    ("lp_pool2d", "t(2), 2, 2"),
    ("adaptive_avg_pool2d", "t(2), 2"),
    ("max_unpool2d", "t(1, 2, 2), i(1, 2, 1), 2"),
    ("fractional_max_pool2d", "t(4, 4), 2, 2"),
    ("pad", "t(2, 3), (1, 1, 1, 1, 1, 1)"),
    ("batch_norm", "t(2, 3), t(4), t(4)"),
    ("instance_norm", "t(2, 3, 1)"),
    ("layer_norm", "t(2, 3), (4,)"),
    ("rms_norm", "t(2, 3), (4,)"),
    ("group_norm", "t(2), 2"),
    ("local_response_norm", "t(2, 3), 2"),
    ("embedding", "t(2), t(3, 4)"),
    ("embedding_bag", "i(2, 2, 2), t(3, 4)"),
    ("scaled_dot_product_attention", "t(2, 3, 4), t(2, 3, 5), t(2, 3, 4)"),
    ("cross_entropy", "t(2, 3), i(3)"),
    ("nll_loss", "t(2, 3), i(3)"),
    ("mse_loss", "t(2, 3), t(2, 4)"),
    ("binary_cross_entropy", "t(2, 3), t(2, 4)"),
    ("binary_cross_entropy_with_logits", "t(2, 3), t(2, 4)"),
    ("gaussian_nll_loss", "t(2, 3), t(2, 3), t(2, 2)"),
    ("cosine_embedding_loss", "t(2, 3), t(2, 3), t(2, 3)"),
    ("triplet_margin_loss", "t(2, 3), t(2, 3), t(3)"),
    ("multi_margin_loss", "t(2, 3), i(3)"),
    ("ctc_loss", "t(5, 2, 4), i(2, 3), i(3) + 2, i(2) + 1"),
    ("interpolate", "t(2, 3, 4), 2, mode='bilinear'"),
    ("grid_sample", "t(2, 3, 4, 4), t(2, 3, 4, 3)"),
    ("affine_grid", "t(2, 3, 3), [2, 3, 4, 4]"),
    ("fold", "t(2, 3, 9), 4, 2"),
    ("unfold", "t(3, 3), 2"),
    ("pixel_shuffle", "t(2, 3, 4, 4), 2"),
    ("pdist", "t(3)"),
    ("cosine_similarity", "i(2, 3), i(2, 3)"),
]


@pytest.mark.filterwarnings("ignore:Using a target size")
@pytest.mark.parametrize(("name", "arguments"), FUNCTIONAL, ids=[name for name, _ in FUNCTIONAL])
def test_a_wrong_input_is_reported_by_the_function(name, arguments):
    arguments = arguments.replace("mode=", "None, ")
    with pytest.raises((RuntimeError, ValueError, IndexError, AssertionError, NotImplementedError)) as caught:
        eval(f"nn.functional.{name}({arguments})")
    text = str(caught.value)
    asked = {"grid_sample": "grid_sampler", "lp_pool2d": "avg_pool2d", "nll_loss": "nll_loss_nd"}.get(name, name)
    assert re.search(rf"\b{asked}(_loss)?\b", text), text


def test_a_misfitting_input_is_reported_with_the_layer():
    net = nn.Sequential(nn.Linear(3, 4), nn.Linear(5, 2))
    with pytest.raises(RuntimeError) as caught:
        net(torch.ones(2, 3))
    text = str(caught.value)
    assert "Linear(in_features=5, out_features=2, bias=True)" in text
    assert "expected an input of shape (*, 5), found (2, 4)" in text
    assert text.count("expected an input") == 1


@pytest.mark.parametrize(
    ("layer", "shape", "expected"),
    [
        ("nn.Conv2d(3, 4, 1)", (1, 2, 5, 5), "(N, 3, H, W) or (3, H, W)"),
        ("nn.Conv1d(3, 4, 1)", (2, 5), "(N, 3, L) or (3, L)"),
        ("nn.ConvTranspose3d(3, 4, 1)", (2, 5, 5, 5), "(N, 3, D, H, W) or (3, D, H, W)"),
        ("nn.BatchNorm1d(3)", (2, 4), "(N, 3) or (N, 3, L)"),
        ("nn.BatchNorm2d(3)", (2, 3, 4), "(N, 3, H, W)"),
        ("nn.InstanceNorm1d(3, affine=True)", (2, 4, 5), "(N, 3, L) or (3, L)"),
        ("nn.LayerNorm((2, 3))", (4, 3, 3), "(*, 2, 3)"),
        ("nn.GroupNorm(2, 4)", (2, 6), "(N, 4, *)"),
        ("nn.RMSNorm(3)", (2, 2), "(*, 3)"),
        ("nn.Bilinear(3, 3, 2)", (2, 2), "(*, 3)"),
        ("nn.LSTM(3, 4)", (2, 2, 5), "(T, N, 3) or (T, 3)"),
        ("nn.GRU(3, 4, batch_first=True)", (2, 5), "(N, T, 3) or (T, 3)"),
        ("nn.RNNCell(3, 4)", (2, 5), "(N, 3) or (3,)"),
        ("nn.PReLU(num_parameters=3)", (2, 5), "(N, 3, *)"),
    ],
)
def test_every_layer_says_what_it_expects(layer, shape, expected):
    layer = eval(layer)
    arguments = [torch.ones(*shape)] * (2 if isinstance(layer, nn.Bilinear) else 1)
    with pytest.raises((RuntimeError, ValueError)) as caught:
        layer(*arguments)
    assert f"{layer} expected an input of shape {expected}, found {shape}" in str(caught.value)


@pytest.mark.parametrize("name", ["MSELoss", "L1Loss", "HuberLoss", "KLDivLoss", "BCELoss", "SoftMarginLoss"])
def test_every_loss_says_what_it_expects(name):
    with pytest.raises((RuntimeError, ValueError)) as caught:
        getattr(nn, name)()(torch.ones(2, 3), torch.ones(2, 4))
    assert str(caught.value).endswith(f"{name}() expected input and target of one shape, found (2, 3) and (2, 4)")


@pytest.mark.parametrize("name", ["CrossEntropyLoss", "NLLLoss", "MultiMarginLoss"])
def test_losses_of_classes_say_what_they_expect(name):
    expected = "expected an input of shape (N, C, *) and a target of shape (N, *), found (2, 3) and (3,)"
    with pytest.raises((RuntimeError, ValueError)) as caught:
        getattr(nn, name)()(torch.ones(2, 3), torch.zeros(3).long())
    assert str(caught.value).endswith(f"{name}() {expected}")


def test_errors_about_something_else_are_left_alone():
    class Failing(nn.Linear):
        def forward(self, input):
            raise ValueError("own words")

    with pytest.raises(ValueError, match="^own words$"):
        Failing(2, 2)(torch.ones(1, 2))


def test_only_the_innermost_layer_reports():
    net = nn.Sequential(nn.Sequential(nn.MaxPool2d(5)))
    with pytest.raises(RuntimeError) as caught:
        net(t(1, 3, 2, 2))
    assert str(caught.value).count("MaxPool2d(") == 1 and "Sequential" not in str(caught.value)


def test_errors_of_other_code_are_left_alone():
    class Own(nn.Module):
        def forward(self, x):
            raise ValueError("own words")

    encoder = nn.TransformerEncoderLayer(4, 2, 8, activation=Own())
    hooked = nn.Linear(4, 4)
    hooked.register_forward_pre_hook(lambda module, args: Own()(*args))
    for layer in (nn.Sequential(Own()), encoder, hooked):
        with pytest.raises(ValueError, match="^own words$"):
            layer(t(5, 2, 4))


def test_a_batch_that_does_not_fit_is_not_counted():
    norm = nn.BatchNorm1d(3, momentum=None)
    with pytest.raises(RuntimeError, match="expected an input of shape"):
        norm(t(2, 4))
    assert norm.num_batches_tracked == 0
    norm(torch.tensor([[0.0, 1.0, 2.0], [2.0, 3.0, 4.0]]))
    assert norm.num_batches_tracked == 1 and norm.running_mean.tolist() == [1.0, 2.0, 3.0]


@pytest.mark.parametrize(
    "call",
    [
        lambda: nn.AdaptiveAvgPool2d(1)(torch.tensor(1.0)),
        lambda: nn.AdaptiveAvgPool2d(1)(torch.ones(3)),
        lambda: nn.AdaptiveAvgPool3d(1)(torch.ones(3, 3)),
        lambda: nn.CTCLoss()(torch.tensor(1.0), torch.tensor(1), torch.tensor(1), torch.tensor(1)),
        lambda: nn.Unfold(2)(torch.tensor(1.0)),
    ],
)
def test_dimensions_that_are_looked_for_in_vain(call):
    with pytest.raises(IndexError):
        call()
