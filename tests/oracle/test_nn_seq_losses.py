"""Losses against PyTorch's: values, gradients, second derivatives, refusals."""

import itertools

import pytest

torch = pytest.importorskip("torch", reason="the oracle is installed by .ci/run only")

from nn_twin import same, same_error, same_module, same_warning  # noqa: E402

pytestmark = [pytest.mark.oracle, pytest.mark.filterwarnings("ignore")]

DTYPES = [torch.float32, torch.float64]
REDUCTIONS = ["none", "mean", "sum"]
F = "nn.functional."


def randn(*shape, dtype=torch.float64, grad=True):
    return torch.randn(shape, dtype=dtype).requires_grad_(grad)


def rand(*shape, dtype=torch.float64, grad=True, low=0.1, high=0.9):
    return (torch.rand(shape, dtype=dtype) * (high - low) + low).requires_grad_(grad)


def signs(*shape, dtype=torch.float64):
    return torch.randint(0, 2, shape).to(dtype) * 2 - 1


ELEMENTWISE = {
    "l1_loss": [{}],
    "mse_loss": [{}],
    "smooth_l1_loss": [{}, {"beta": 0.3}, {"beta": 0.0}],
    "huber_loss": [{}, {"delta": 0.3}],
    "kl_div": [{}, {"log_target": True}],
    "poisson_nll_loss": [{}, {"full": True}, {"log_input": False, "full": True}],
    "soft_margin_loss": [{}],
    "multilabel_soft_margin_loss": [{}],
    "hinge_embedding_loss": [{}, {"margin": 0.2}],
    "binary_cross_entropy": [{}],
    "binary_cross_entropy_with_logits": [{}],
}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("name", ELEMENTWISE)
def test_elementwise(name, reduction, dtype):
    torch.manual_seed(0)
    for options in ELEMENTWISE[name]:
        for shape in [(3, 4), (5,), (2, 0), (2, 3, 2)]:
            probabilities = name in ("binary_cross_entropy", "poisson_nll_loss")
            x = rand(*shape, dtype=dtype) if probabilities else randn(*shape, dtype=dtype)
            learns = name not in ("soft_margin_loss", "hinge_embedding_loss", "multilabel_soft_margin_loss")
            if name in ("soft_margin_loss", "hinge_embedding_loss"):
                t = signs(*shape, dtype=dtype)
            else:
                t = rand(*shape, dtype=dtype, grad=learns, high=3.0 if name.startswith("poisson") else 0.9)
            # PyTorch has no second derivative by the target for some; the input's is compared
            same(F + name, x, t.detach(), reduction=reduction, second=dtype == torch.float64, **options)
            same(F + name, x, t, reduction=reduction, **options)


@pytest.mark.parametrize("name", ["l1_loss", "mse_loss", "huber_loss"])
def test_element_weights(name):
    x, t, w = randn(3, 4), randn(3, 4), rand(3, 4)
    for reduction in REDUCTIONS:
        same(F + name, x, t, weight=w, reduction=reduction)
    same_error(F + name, x, t, weight=rand(4), phrase="must have the same size")
    same_error(F + name, x, t, weight=w, reduction="x", phrase="reduction mode")


@pytest.mark.parametrize("name", ["binary_cross_entropy", "binary_cross_entropy_with_logits"])
def test_binary_weights(name):
    x, t = rand(3, 4), rand(3, 4, grad=False)
    for weight, reduction in itertools.product([rand(3, 4, grad=False), rand(4, grad=False)], REDUCTIONS):
        same(F + name, x, t, weight=weight, reduction=reduction)
        if name.endswith("logits"):
            same(F + name, x, t, weight=weight, pos_weight=rand(4, grad=False), reduction=reduction)
    # saturated logits and probabilities
    same(F + name, torch.tensor([0.0, 1.0, 1.0, 0.0], requires_grad=True), torch.tensor([0.0, 1.0, 0.0, 1.0]))
    if name.endswith("logits"):
        same(F + name, torch.tensor([-500.0, 500.0, 0.0], requires_grad=True), torch.tensor([1.0, 0.0, 0.5]))


SHAPES = [((4,), ()), ((3, 4), (3,)), ((2, 4, 5), (2, 5)), ((2, 4, 3, 2), (2, 3, 2)), ((2, 4, 2, 1, 3), (2, 2, 1, 3))]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape,target", SHAPES)
@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_classes(reduction, shape, target, dtype):
    torch.manual_seed(1)
    x, t = randn(*shape, dtype=dtype), torch.randint(0, 4, target)
    second = dtype == torch.float64
    for weight, ignored, smoothing in itertools.product(
        [None, rand(4, dtype=dtype, grad=False)], [-100, 1], [0.0, 0.3]
    ):
        options = {"weight": weight, "ignore_index": ignored, "reduction": reduction}
        same(F + "cross_entropy", x, t, label_smoothing=smoothing, second=second, **options)
        if not smoothing:
            same(F + "nll_loss", x, t, **options)


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("shape", [(4,), (3, 4), (2, 4, 5)])
def test_class_probabilities(shape, reduction):
    x, t = randn(*shape), rand(*shape)
    for weight, smoothing in itertools.product([None, rand(4, grad=False)], [0.0, 0.2]):
        same(F + "cross_entropy", x, t, weight=weight, reduction=reduction, label_smoothing=smoothing, second=True)


def test_no_class_counts():
    x, t = randn(3, 4), torch.full((3,), -100)
    for name in ("cross_entropy", "nll_loss"):
        same(F + name, x, t)
        same(F + name, x, t, reduction="sum")
        same(F + name, randn(0, 4), t[:0])
    same(F + "cross_entropy", x, t, label_smoothing=0.1)
    same(F + "cross_entropy", randn(0, 4), randn(0, 4, grad=False))


def test_class_refusals():
    x = randn(3, 4)
    t = torch.tensor([0, 1, 2])
    for name in ("cross_entropy", "nll_loss"):
        same_error(F + name, x, t[:2], phrase="Expected input batch_size (3) to match target batch_size (2).")
        same_error(F + name, x, torch.tensor([0, 1, 4]), phrase="Target 4 is out of bounds.")
        same_error(F + name, x, torch.tensor([0, 1, -1]), phrase="Target -1 is out of bounds.")
        same_error(F + name, x, randn(3, grad=False), phrase="expected")
        same_error(F + name, x, t, weight=rand(3, grad=False), phrase="all 4 classes")
        same_error(F + name, x, t, reduction="x", phrase="x is not a valid value for reduction")
        same_error(F + name, randn(3, 4, 5), torch.zeros(3, 6).long(), phrase="Expected target size [3, 5], got [3, 6]")
    same_error(F + "cross_entropy", x, t, label_smoothing=2.0, phrase="label_smoothing must be between 0.0 and 1.0")
    same_error(F + "cross_entropy", x, rand(3, 4), ignore_index=1, phrase="ignore_index is not supported for floating")
    same_error(F + "cross_entropy", x, rand(3, 4, grad=False), weight=rand(2, grad=False), phrase="all 4 classes")


@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_margins(reduction):
    torch.manual_seed(2)
    x, t = randn(5, 4), torch.randint(0, 4, (5,))
    for p, margin, weight in itertools.product([1, 2], [1.0, 0.3], [None, rand(4, grad=False)]):
        same(F + "multi_margin_loss", x, t, p=p, margin=margin, weight=weight, reduction=reduction)
    same(F + "multi_margin_loss", randn(4), torch.tensor(2), reduction=reduction)
    same(F + "multi_margin_loss", randn(4), torch.tensor([2]), reduction=reduction)
    labels = torch.tensor([[0, 2, -1, 1], [-1, 0, 1, 2], [3, 3, 0, -1], [3, 2, 1, 0], [1, -1, -1, -1]])
    same(F + "multilabel_margin_loss", x, labels, reduction=reduction)
    same(F + "multilabel_margin_loss", randn(4), labels[0], reduction=reduction)
    a, b = randn(5, 4), randn(5, 4)
    same(F + "margin_ranking_loss", a, b, signs(5, 4), margin=0.2, reduction=reduction, second=True)
    same(F + "margin_ranking_loss", randn(5, 1), randn(1, 4), signs(5, 4), reduction=reduction)
    same(F + "cosine_embedding_loss", a, b, signs(5), margin=0.1, reduction=reduction, second=True)
    same(F + "cosine_embedding_loss", randn(4), randn(4), torch.tensor(-1), reduction=reduction)
    for p, swap in itertools.product([1, 2, 3.5], [False, True]):
        c = randn(5, 4)
        same(F + "triplet_margin_loss", a, b, c, margin=0.7, p=p, swap=swap, reduction=reduction, second=p == 2)
    same(F + "triplet_margin_with_distance_loss", a, b, c, swap=True, reduction=reduction)
    same(F + "multilabel_soft_margin_loss", a, rand(5, 4), weight=rand(4, grad=False), reduction=reduction)


def test_margins_on_the_kink():
    x = torch.tensor([[1.0, 0.0, 2.0]], dtype=torch.float64, requires_grad=True)
    same(F + "multi_margin_loss", x, torch.tensor([0]))
    same(F + "multilabel_margin_loss", x, torch.tensor([[0, -1, -1]]))
    same(F + "margin_ranking_loss", x, x.detach() + 1, torch.ones(1, 3), margin=-1.0)
    same(F + "hinge_embedding_loss", torch.ones(3, requires_grad=True), -torch.ones(3))


def test_margin_refusals():
    x, t = randn(3, 4), torch.tensor([0, 1, 2])
    same_error(F + "multi_margin_loss", x, t, p=3, phrase="only p == 1 and p == 2 supported")
    same_error(F + "multi_margin_loss", x, t, weight=rand(2, 2, grad=False), phrase="weight must be one-dimensional")
    same_error(F + "multi_margin_loss", x, t, weight=rand(3, grad=False), phrase="inconsistent weight size, expected 4")
    same_error(F + "multi_margin_loss", x, t[:2], phrase="Expected target size [3], but got [2]")
    same_error(F + "multi_margin_loss", x, torch.tensor([0, 1, 4]), phrase="target out of range")
    same_error(F + "multi_margin_loss", randn(2, 3, 4), t, phrase="Expected non-empty vector or matrix")
    same_error(F + "multilabel_margin_loss", x, torch.zeros(3, 3).long(), phrase="inconsistent target size")
    same_error(F + "multilabel_margin_loss", x, torch.full((3, 4), 4), phrase="out of range")
    same_error(F + "margin_ranking_loss", x, x, t, phrase="All input tensors should have same dimension")
    same_error(F + "cosine_embedding_loss", x, x, x, phrase="0D or 1D target tensor expected")
    same_error(F + "cosine_embedding_loss", x, x, torch.tensor(1), phrase="0D target tensor expects 1D input")
    same_error(F + "triplet_margin_loss", x, x, t, phrase="anchor 2D, positive 2D, and negative 1D")
    same_error(F + "triplet_margin_loss", x, x, x, margin=0, phrase="margin must be greater than 0")
    same_error(F + "soft_margin_loss", randn(3, 1), signs(3, 2), phrase="doesn't match the broadcast shape")
    same_error(F + "multilabel_soft_margin_loss", x, x, reduction="x", phrase="x is not valid")


@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_gaussian(reduction):
    x, t = randn(3, 4), randn(3, 4)
    for var in (rand(3, 4), rand(3), rand(3, 1), rand(1, 4), torch.zeros(3, 4, dtype=torch.float64)):
        for full in (False, True):
            same(F + "gaussian_nll_loss", x, t, var, full=full, reduction=reduction, second=True)
    same(F + "gaussian_nll_loss", x, t, 0.3, reduction=reduction)
    same(F + "gaussian_nll_loss", x, t, rand(3, 4, low=0.0, high=0.5), eps=0.25, reduction=reduction)


def test_gaussian_refusals():
    x = randn(3, 4)
    same_error(F + "gaussian_nll_loss", x, x, -rand(3, 4), phrase="var has negative entry/entries")
    same_error(F + "gaussian_nll_loss", x, x, -1.0, phrase="var has negative entry/entries")
    same_error(F + "gaussian_nll_loss", x, x, rand(4), phrase="var is of incorrect size")
    same_error(F + "gaussian_nll_loss", x, x, rand(3, 4), reduction="x", phrase="x is not valid")


def test_batchmean():
    for shape in [(3, 4), (2, 3, 4), ()]:
        same(F + "kl_div", randn(*shape), rand(*shape), reduction="batchmean")
    same(F + "kl_div", randn(0, 4), rand(0, 4), reduction="batchmean")
    zeros = torch.tensor([[0.0, 0.5, 0.5]], dtype=torch.float64)
    same(F + "kl_div", randn(1, 3), zeros, reduction="sum")
    same_error(F + "kl_div", torch.ones(3).long(), torch.ones(3).long(), phrase="Integral inputs not supported")


def test_elementwise_refusals_and_warnings():
    a, b = randn(3, 1), randn(2)
    for name in ("l1_loss", "mse_loss", "smooth_l1_loss", "huber_loss"):
        same(F + name, a, b)
        same_warning(F + name, a, b, phrase="is different to the input size")
        same_error(F + name, randn(3, 4), b, phrase="must match the size of tensor b")
        same_error(F + name, a, a, reduction="x", phrase="not a valid value for reduction")
    same_error(F + "binary_cross_entropy", rand(3, 1), rand(2), phrase="is different to the input size")
    same_error(F + "binary_cross_entropy", torch.tensor([2.0]), torch.tensor([1.0]), phrase="between 0 and 1")
    same_error(F + "binary_cross_entropy_with_logits", a, b, phrase="must be the same as input size")
    same_error(F + "smooth_l1_loss", a, a, beta=-1.0, phrase="does not support negative values for beta")
    same_error(F + "huber_loss", a, a, delta=0.0, phrase="does not support non-positive values for delta")
    same_warning(F + "mse_loss", a, a, size_average=False, phrase="please use reduction='sum' instead")
    same_warning(F + "cross_entropy", randn(3, 4), torch.tensor([0, 1, 2]), reduce=False, phrase="reduction='none'")
    same_warning(F + "kl_div", randn(3), rand(3), phrase="'batchmean' divides only by the batch size")
    for flags in itertools.product([None, True, False], repeat=2):
        same(F + "mse_loss", a, a.detach() + 1, size_average=flags[0], reduce=flags[1])


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("outer", [(), (2,), (2, 3)])
def test_linear_cross_entropy(outer, bias):
    x, w = randn(5, 3), randn(4, *outer, 3)
    b = randn(4, *outer) if bias else None
    t = torch.randint(0, 4, (5, *outer))
    for reduction in REDUCTIONS:
        options = {"linear_bias": b, "reduction": reduction, "weight": rand(4, grad=False)}
        same(F + "linear_cross_entropy", x, w, t, ignore_index=1, label_smoothing=0.1, second=True, **options)
        same(F + "linear_cross_entropy", x, w, rand(5, 4, *outer), **options)


def test_linear_cross_entropy_a_few_rows_at_a_time():
    def call(package, x, w, b, t, reduction, size):
        options = package.nn.LinearCrossEntropyOptions(batch_chunk_size=size)
        f = package.nn.functional.linear_cross_entropy
        return f(x, w, t, linear_bias=b, reduction=reduction, ignore_index=2, options=options)

    x, w, b, t = randn(7, 3), randn(4, 3), randn(4), torch.randint(0, 4, (7,))
    for reduction, size in itertools.product(REDUCTIONS, [1, 3, 7, 20]):
        same(call, x, w, b, t, reduction, size)
    same(call, randn(3), w, b, torch.tensor(1), "mean", 2)


def test_linear_cross_entropy_refusals():
    f, t = F + "linear_cross_entropy", torch.tensor([0, 1, 2])
    same_error(f, randn(3, 6), randn(4, 5), t, phrase="last dimensions (in_features), got 6 and 5")
    same_error(f, randn(2, 3, 5), randn(4, 5), t, phrase="expected input with dimensionality 1 or 2, got 3")
    same_error(f, randn(3, 5), randn(5), t, phrase="expected linear_weight with dimensionality at least 2, got 1")
    same_error(f, randn(5), randn(4, 2, 5), t, phrase="requires batched input")
    same_error(f, randn(3, 5), randn(4, 5), t, linear_bias=randn(3), phrase="expected linear_bias shape (4,), got (3,)")
    same_error(f, randn(3, 5), randn(4, 5), rand(3, 4), ignore_index=1, phrase="ignore_index cannot be specified")
    for bad in ({"batch_chunk_size": 0}, {"chunking_method": "x"}, {"acc_policy": "x"}, {"acc_dtype": torch.int32}):
        same_error("nn.LinearCrossEntropyOptions", **bad)


MODULES = [
    ("L1Loss", {"reduction": "sum"}, "xx"),
    ("MSELoss", {}, "xx"),
    ("SmoothL1Loss", {"beta": 0.5}, "xx"),
    ("HuberLoss", {"delta": 0.5}, "xx"),
    ("KLDivLoss", {"reduction": "batchmean", "log_target": True}, "xx"),
    ("NLLLoss", {"weight": torch.rand(4, dtype=torch.float64), "ignore_index": 2}, "xt"),
    ("CrossEntropyLoss", {"weight": torch.rand(4, dtype=torch.float64), "label_smoothing": 0.1}, "xt"),
    ("PoissonNLLLoss", {"full": True, "log_input": False, "eps": 1e-3}, "pp"),
    ("GaussianNLLLoss", {"full": True, "eps": 0.3}, "xxp"),
    ("BCELoss", {"weight": torch.rand(4, dtype=torch.float64)}, "pp"),
    ("BCEWithLogitsLoss", {"pos_weight": torch.rand(4, dtype=torch.float64)}, "xp"),
    ("SoftMarginLoss", {}, "xs"),
    ("HingeEmbeddingLoss", {"margin": 0.5}, "xs"),
    ("MarginRankingLoss", {"margin": 0.5}, "xxs"),
    ("MultiLabelMarginLoss", {}, "xT"),
    ("MultiLabelSoftMarginLoss", {"weight": torch.rand(4, dtype=torch.float64)}, "xp"),
    ("MultiMarginLoss", {"p": 2, "margin": 0.5}, "xt"),
    ("CosineEmbeddingLoss", {"margin": 0.1}, "xxr"),
    ("TripletMarginLoss", {"margin": 0.5, "p": 3, "swap": True}, "xxx"),
    ("TripletMarginWithDistanceLoss", {"margin": 0.5, "swap": True}, "xxx"),
]


@pytest.mark.parametrize("name,options,kinds", MODULES, ids=lambda v: v if isinstance(v, str) else None)
def test_modules(name, options, kinds):
    make = {
        "x": lambda: randn(5, 4),
        "p": lambda: rand(5, 4, grad=False),
        "t": lambda: torch.randint(0, 4, (5,)),
        "T": lambda: torch.tensor([[0, 2, -1, 1]] * 5),
        "s": lambda: signs(5, 4),
        "r": lambda: signs(5),
    }
    same_module(name, (), options, [make[k]() for k in kinds])
    same_module(name, (), {}, [make[k]() for k in kinds])


def test_module_refusals():
    same_error("nn.TripletMarginLoss", margin=0, phrase="expected margin to be greater than 0, got 0")
    same_error("nn.TripletMarginWithDistanceLoss", margin=-1.0, phrase="expected margin to be greater than 0")
    same_error("nn.MultiMarginLoss", p=3, phrase="only p == 1 and p == 2")
    same_error("nn.MultiMarginLoss", weight=rand(2, 2), phrase="expected weight to be None or 1D tensor, got 2D")
    same_error(
        "nn.LinearCrossEntropyLoss",
        3,
        4,
        weight=rand(3, grad=False),
        phrase="expected weight shape to be (4,), got (3,)",
    )
    same_warning("nn.NLLLoss2d", phrase="`NLLLoss2d` has been deprecated")


def test_linear_cross_entropy_module():
    x = torch.randn(5, 3).requires_grad_()
    same_module("LinearCrossEntropyLoss", (3, 4), {}, [x, torch.randint(0, 4, (5,))])
    options = {"out_features": (2,), "bias": True, "weight": torch.rand(4), "label_smoothing": 0.1}
    same_module("LinearCrossEntropyLoss", (3, 4), options, [x, torch.randint(0, 4, (5, 2))])


def test_adaptive_softmax():
    x, t = torch.randn(30, 16).requires_grad_(), torch.randint(0, 20, (30,))
    for options in ({}, {"head_bias": True, "div_value": 2.0}):
        same_module("AdaptiveLogSoftmaxWithLoss", (16, 20, [4, 10, 15]), options, [x, t])
        same_module("AdaptiveLogSoftmaxWithLoss", (16, 20, [4, 10, 15]), options, [x[0], t[0]])

    def predicted(package, x, cutoffs):
        package.manual_seed(0)
        module = package.nn.AdaptiveLogSoftmaxWithLoss(16, 20, cutoffs)
        return module.log_prob(x), module.predict(x)

    same(predicted, x.detach(), [4, 10, 15])
    same(predicted, x.detach() * 10, [1, 19])

    def refused(package, *args):
        return package.nn.AdaptiveLogSoftmaxWithLoss(16, 20, [4, 10])(*args)

    for cutoffs in ([], [10, 4], [4, 20], [4, 4], [0, 4], [1.5, 4]):
        same_error("nn.AdaptiveLogSoftmaxWithLoss", 16, 20, cutoffs, phrase="cutoffs should be a sequence of")
    same_error(refused, x, t[:3], phrase="same size in the batch dimension")
    same_error(refused, x, torch.full((30,), 20), phrase="Target values should be in [0, 19]")
    same_error(refused, x, torch.zeros(30, 2).long(), phrase="0D or 1D target tensor expected")


@pytest.mark.parametrize("reduction", [0, 1, 2])
def test_operators_that_take_the_reductions_number(reduction):
    a, b, c = randn(5, 4), randn(5, 4), randn(5, 4)
    same("cosine_embedding_loss", a, b, signs(5), 0.1, reduction)
    same("hinge_embedding_loss", a, signs(5, 4), 0.5, reduction)
    same("margin_ranking_loss", a, b, signs(5, 4), 0.2, reduction)
    same("triplet_margin_loss", a, b, c, 0.7, 3.0, swap=True, reduction=reduction)
    same("kl_div", a, rand(5, 4), reduction)
    same("kl_div", a, b, reduction, log_target=True)
    same("poisson_nll_loss", a, rand(5, 4), True, True, 1e-8, reduction)
    logp = randn(5, 2, 4).log_softmax(-1).detach().requires_grad_()
    same("ctc_loss", logp, torch.tensor([[1, 2], [1, 3]]), (5, 4), (2, 2), 0, reduction, True)
