"""Losses against their formulas in NumPy, their derivatives against differences, and what they refuse."""

import itertools
import math

import numpy as np
import pytest

import rushlight as torch
import rushlight.nn.functional as F
from rushlight import nn
from rushlight.autograd import gradcheck, gradgradcheck

REDUCE = {"none": lambda x: x, "mean": np.mean, "sum": np.sum}
KINDS = list(REDUCE)


def draw(*shape, seed=0, low=-2.0, high=2.0):
    return np.random.default_rng(seed).uniform(low, high, shape)


def leaf(array):
    return torch.tensor(array, dtype=torch.float64, requires_grad=True)


def const(array):
    return torch.tensor(array, dtype=torch.float64)


def close(found, expected, **tolerance):
    np.testing.assert_allclose(found.detach().numpy(), expected, **({"rtol": 1e-10, "atol": 1e-12} | tolerance))


def log_softmax(x, axis):
    x = x - x.max(axis, keepdims=True)
    return x - np.log(np.exp(x).sum(axis, keepdims=True))


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


ELEMENTWISE = {
    "l1_loss": ({}, lambda x, t: np.abs(x - t)),
    "mse_loss": ({}, lambda x, t: (x - t) ** 2),
    "smooth_l1_loss": (
        {"beta": 0.7},
        lambda x, t: np.where(np.abs(x - t) < 0.7, (x - t) ** 2 / 1.4, np.abs(x - t) - 0.35),
    ),
    "huber_loss": (
        {"delta": 0.7},
        lambda x, t: np.where(np.abs(x - t) < 0.7, (x - t) ** 2 / 2, 0.7 * (np.abs(x - t) - 0.35)),
    ),
    "soft_margin_loss": ({}, lambda x, t: np.log1p(np.exp(-t * x))),
    "binary_cross_entropy_with_logits": ({}, lambda x, t: np.log1p(np.exp(x)) - t * x),
    "poisson_nll_loss": ({}, lambda x, t: np.exp(x) - t * x),
    "kl_div": ({"log_target": True}, lambda x, t: np.exp(t) * (t - x)),
}


@pytest.mark.filterwarnings("ignore:reduction")
@pytest.mark.parametrize("reduction", KINDS)
@pytest.mark.parametrize("name", ELEMENTWISE)
def test_elementwise_formulas(name, reduction):
    options, formula = ELEMENTWISE[name]
    for shape in [(4, 3), (), (2, 3, 2)]:
        x, t = draw(*shape), draw(*shape, seed=1)
        function = getattr(F, name)
        close(function(leaf(x), const(t), reduction=reduction, **options), REDUCE[reduction](formula(x, t)))
        assert gradcheck(lambda a: function(a, const(t), reduction=reduction, **options), leaf(x))
        assert gradgradcheck(lambda a: function(a, const(t), reduction=reduction, **options), leaf(x))


@pytest.mark.parametrize("reduction", KINDS)
def test_binary_cross_entropy(reduction):
    x, t, w = draw(4, 3, low=0.05, high=0.95), draw(4, 3, seed=1, low=0, high=1), draw(3, low=0.5, high=2)
    expected = -w * (t * np.log(x) + (1 - t) * np.log(1 - x))
    close(F.binary_cross_entropy(leaf(x), const(t), const(w), reduction=reduction), REDUCE[reduction](expected))
    logits = np.log(x / (1 - x))
    found = F.binary_cross_entropy_with_logits(leaf(logits), const(t), const(w), reduction=reduction)
    close(found, REDUCE[reduction](expected))
    positive = draw(3, seed=2, low=0.5, high=3)
    weighted = -(positive * t * np.log(x) + (1 - t) * np.log(1 - x))
    found = F.binary_cross_entropy_with_logits(leaf(logits), const(t), pos_weight=const(positive), reduction=reduction)
    close(found, REDUCE[reduction](weighted))


def test_saturated_binary_cross_entropy_stays_finite():
    x = torch.tensor([0.0, 1.0], requires_grad=True)
    loss = F.binary_cross_entropy(x, torch.tensor([1.0, 0.0]), reduction="none")
    assert loss.tolist() == [100.0, 100.0]
    loss.sum().backward()
    assert bool(x.grad.isfinite().all())
    logits = torch.tensor([-1e4, 1e4])
    assert F.binary_cross_entropy_with_logits(logits, torch.tensor([1.0, 1.0]), reduction="none").tolist() == [1e4, 0.0]


def test_element_weights_average_by_weight_or_by_element():
    x, t, w = const([1.0, 2.0]), const([3.0, 8.0]), const([1.0, 3.0])
    close(F.l1_loss(x, t, weight=w), (2 + 18) / 4)
    close(F.mse_loss(x, t, weight=w), (4 + 108) / 4)
    close(F.huber_loss(x, t, weight=w), (1.5 + 16.5) / 2)
    with pytest.raises(ValueError, match=r"must have the same size.*\(2,\), got \(1,\)"):
        F.mse_loss(x, t, weight=w[:1])


def cross_entropy(x, target, weight, ignored, smoothing, reduction):
    """Element by element, for logits (N, C, *)."""
    classes = x.shape[1]
    logp = log_softmax(x, 1)
    losses, weights = np.zeros(target.shape), np.zeros(target.shape)
    for place in np.ndindex(target.shape):
        label = target[place]
        if label == ignored:
            continue
        row = logp[(place[0], slice(None), *place[1:])]
        weights[place] = weight[label]
        losses[place] = -(1 - smoothing) * weight[label] * row[label] - smoothing / classes * (weight * row).sum()
    if reduction == "mean":
        return losses.sum() / weights.sum()
    return REDUCE[reduction](losses)


@pytest.mark.parametrize("reduction", KINDS)
@pytest.mark.parametrize("shape", [(4, 3), (2, 3, 2), (1, 3, 2, 2)])
def test_cross_entropy_of_classes(shape, reduction):
    rng = np.random.default_rng(0)
    x, target = draw(*shape), rng.integers(0, shape[1], (shape[0], *shape[2:]))
    for weight, ignored, smoothing in itertools.product(
        [np.ones(shape[1]), draw(shape[1], low=0.2)], [-100, 1], [0.0, 0.3]
    ):

        def loss(a):
            return F.cross_entropy(
                a,
                torch.tensor(target),
                const(weight),
                ignore_index=ignored,
                label_smoothing=smoothing,
                reduction=reduction,
            )

        close(loss(leaf(x)), cross_entropy(x, target, weight, ignored, smoothing, reduction))
        assert gradcheck(loss, leaf(x))
    unweighted = F.nll_loss(const(log_softmax(x, 1)), torch.tensor(target), reduction=reduction)
    close(unweighted, cross_entropy(x, target, np.ones(shape[1]), -100, 0.0, reduction))


def test_cross_entropy_of_probabilities():
    x, t = draw(4, 3), draw(4, 3, seed=1, low=0, high=1)
    close(F.cross_entropy(leaf(x), leaf(t), reduction="none"), -(t * log_softmax(x, 1)).sum(1))
    smooth = 0.8 * t + 0.2 / 3
    close(F.cross_entropy(leaf(x), leaf(t), label_smoothing=0.2), -(smooth * log_softmax(x, 1)).sum(1).mean())
    assert gradcheck(F.cross_entropy, (leaf(x), leaf(t)))
    close(F.cross_entropy(leaf(x[0]), leaf(t[0])), -(t[0] * log_softmax(x[:1], 1)[0]).sum())


def test_one_hot_probabilities_are_classes():
    x, labels = draw(5, 4), np.array([0, 3, 1, 1, 2])
    close(F.cross_entropy(const(x), const(np.eye(4)[labels])), F.cross_entropy(const(x), torch.tensor(labels)).numpy())


def test_where_no_class_counts():
    x, t = leaf(draw(3, 4)), torch.full((3,), -100)
    assert math.isnan(F.cross_entropy(x, t).item())
    assert F.cross_entropy(x, t, reduction="sum").item() == 0
    assert F.cross_entropy(x, t, reduction="none").tolist() == [0, 0, 0]


def test_class_refusals():
    x, t = leaf(draw(3, 4)), torch.tensor([0, 1, 2])
    with pytest.raises(ValueError, match=r"input batch_size \(3\) to match target batch_size \(2\)"):
        F.cross_entropy(x, t[:2])
    with pytest.raises(IndexError, match="Target 4 is out of bounds"):
        F.nll_loss(x, torch.tensor([0, 4, 1]))
    with pytest.raises(RuntimeError, match="all 4 classes"):
        F.cross_entropy(x, t, const(np.ones(3)))
    with pytest.raises(RuntimeError, match=r"label_smoothing must be between 0.0 and 1.0. Got: 1.5"):
        F.cross_entropy(x, t, label_smoothing=1.5)
    with pytest.raises(RuntimeError, match="ignore_index is not supported for floating point target"):
        F.cross_entropy(x, x.detach(), ignore_index=1)
    with pytest.raises(ValueError, match="average is not a valid value for reduction"):
        F.cross_entropy(x, t, reduction="average")


@pytest.mark.parametrize("reduction", KINDS)
def test_kullback_leibler(reduction):
    x, t = log_softmax(draw(3, 4), 1), np.exp(log_softmax(draw(3, 4, seed=1), 1))
    t[0, 0] = 0.0  # 0 log 0 is 0
    expected = np.where(t > 0, t * (np.log(np.where(t > 0, t, 1)) - x), 0)
    if reduction == "mean":
        with pytest.warns(UserWarning, match="'batchmean' divides only by the batch size"):
            close(F.kl_div(const(x), const(t), reduction=reduction), expected.mean())
    else:
        close(F.kl_div(const(x), const(t), reduction=reduction), REDUCE[reduction](expected))
    close(F.kl_div(const(x), const(t), reduction="batchmean"), expected.sum() / 3)


@pytest.mark.parametrize("reduction", KINDS)
@pytest.mark.parametrize("p,margin", [(1, 1.0), (2, 0.4)])
def test_multi_margin(p, margin, reduction):
    x, t, w = draw(4, 3), np.array([0, 2, 1, 1]), draw(3, low=0.5)
    expected = np.array(
        [
            sum(max(0, margin - row[y] + row[j]) ** p * w[y] for j in range(3) if j != y) / 3
            for row, y in zip(x, t, strict=True)
        ]
    )
    options = {"p": p, "margin": margin, "reduction": reduction}
    close(F.multi_margin_loss(leaf(x), torch.tensor(t), weight=const(w), **options), REDUCE[reduction](expected))
    assert gradcheck(lambda a: F.multi_margin_loss(a, torch.tensor(t), **options), leaf(x))


def test_multilabel_margin():
    x, t = draw(3, 4), np.array([[0, 2, -1, 1], [-1, 0, 1, 2], [3, 2, 1, 0]])
    expected = []
    for row, labels in zip(x, t, strict=True):
        listed = list(itertools.takewhile(lambda y: y >= 0, labels))
        others = [j for j in range(4) if j not in listed]
        expected.append(sum(max(0, 1 - (row[y] - row[j])) for y in listed for j in others) / 4)
    close(F.multilabel_margin_loss(leaf(x), torch.tensor(t), reduction="none"), expected)
    close(F.multilabel_margin_loss(leaf(x[0]), torch.tensor(t[0])), expected[0])
    assert gradcheck(lambda a: F.multilabel_margin_loss(a, torch.tensor(t)), leaf(x))


def test_derivative_at_the_margin_is_zero():
    x = torch.tensor([[1.0, 0.0]], requires_grad=True)
    F.multi_margin_loss(x, torch.tensor([0])).backward()
    assert x.grad.tolist() == [[0.0, 0.0]]


def test_embeddings():
    a, b, y = draw(4, 3), draw(4, 3, seed=1), np.array([1.0, -1, 1, -1])
    cosine = (a * b).sum(1) / np.linalg.norm(a, axis=1) / np.linalg.norm(b, axis=1)
    expected = np.where(y == 1, 1 - cosine, np.maximum(0, cosine - 0.1))
    close(F.cosine_embedding_loss(leaf(a), leaf(b), const(y), margin=0.1, reduction="none"), expected, rtol=1e-6)
    close(
        F.hinge_embedding_loss(leaf(a[:, 0]), const(y), reduction="none"),
        np.where(y == 1, a[:, 0], np.maximum(0, 1 - a[:, 0])),
    )
    expected = np.maximum(0, -y * (a[:, 0] - b[:, 0]) + 0.3)
    close(F.margin_ranking_loss(leaf(a[:, 0]), leaf(b[:, 0]), const(y), margin=0.3, reduction="none"), expected)
    assert gradcheck(lambda u, v: F.cosine_embedding_loss(u, v, const(y)), (leaf(a), leaf(b)))


@pytest.mark.parametrize("swap", [False, True])
def test_triplets(swap):
    a, p, n = draw(4, 3), draw(4, 3, seed=1), draw(4, 3, seed=2)

    def distance(u, v):
        return np.linalg.norm(u - v + 1e-6, axis=1)

    far = np.minimum(distance(a, n), distance(p, n)) if swap else distance(a, n)
    expected = np.maximum(0, distance(a, p) - far + 0.5)
    close(F.triplet_margin_loss(leaf(a), leaf(p), leaf(n), 0.5, swap=swap, reduction="none"), expected)
    manhattan = lambda u, v: (u - v).abs().sum(-1)  # noqa: E731
    found = F.triplet_margin_with_distance_loss(leaf(a), leaf(p), leaf(n), distance_function=manhattan, swap=swap)
    near, far = np.abs(a - p).sum(1), np.abs(a - n).sum(1)
    far = np.minimum(far, np.abs(p - n).sum(1)) if swap else far
    close(found, np.maximum(0, near - far + 1).mean())
    assert gradcheck(lambda *x: F.triplet_margin_loss(*x, swap=swap), (leaf(a), leaf(p), leaf(n)))


def test_likelihoods():
    x, t, v = draw(3, 4), draw(3, 4, seed=1, low=0.5, high=3), draw(3, 1, seed=2, low=0.1, high=1)
    stirling = np.where(t > 1, t * np.log(t) - t + 0.5 * np.log(2 * np.pi * t), 0)
    close(F.poisson_nll_loss(leaf(x), const(t), full=True, reduction="none"), np.exp(x) - t * x + stirling)
    rate = np.exp(x)
    close(
        F.poisson_nll_loss(leaf(rate), const(t), log_input=False, reduction="sum"),
        (rate - t * np.log(rate + 1e-8)).sum(),
    )
    expected = 0.5 * (np.log(v) + (x - t) ** 2 / v + np.log(2 * np.pi))
    close(F.gaussian_nll_loss(leaf(x), const(t), const(v), full=True, reduction="none"), expected)
    close(F.gaussian_nll_loss(leaf(x), const(t), 0.5), (0.5 * (np.log(0.5) + (x - t) ** 2 / 0.5)).mean())
    assert gradcheck(F.gaussian_nll_loss, (leaf(x), leaf(t), leaf(v)))
    with pytest.raises(ValueError, match="var has negative entry"):
        F.gaussian_nll_loss(const(x), const(t), const(-v))
    with pytest.raises(ValueError, match=r"var is of incorrect size. Got \(2,\) for an input of \(3, 4\)"):
        F.gaussian_nll_loss(const(x), const(t), const(v.ravel()[:2]))


def test_variance_is_clamped_and_not_changed():
    var = torch.zeros(2)
    loss = F.gaussian_nll_loss(torch.ones(2), torch.zeros(2), var, eps=0.5)
    assert loss.item() == pytest.approx(0.5 * (math.log(0.5) + 2))
    assert var.tolist() == [0.0, 0.0]


def test_shapes_that_differ():
    a, b = const(np.ones((3, 1))), const(np.zeros(2))
    for function in (F.l1_loss, F.mse_loss, F.smooth_l1_loss, F.huber_loss):
        with pytest.warns(UserWarning, match="is different to the input size"):
            assert function(a, b, reduction="none").shape == (3, 2)
    with pytest.raises(ValueError, match="is different to the input size"):
        F.binary_cross_entropy(a, b)
    with pytest.raises(ValueError, match="must be the same as input size"):
        F.binary_cross_entropy_with_logits(a, b)
    with pytest.raises(RuntimeError, match="All input tensors should have same dimension"):
        F.margin_ranking_loss(a, a, b)
    with pytest.raises(RuntimeError, match="0D or 1D target tensor expected"):
        F.cosine_embedding_loss(a, a, a)


def test_deprecated_flags():
    x, t = const([1.0, 2.0]), const([0.0, 0.0])
    for size_average, reduce, expected in (
        (False, None, 5.0),
        (None, None, 2.5),
        (True, True, 2.5),
        (False, True, 5.0),
    ):
        if size_average is None and reduce is None:
            assert F.mse_loss(x, t, size_average, reduce).item() == expected
            continue
        with pytest.warns(UserWarning, match="please use reduction="):
            assert F.mse_loss(x, t, size_average, reduce).item() == expected
    with pytest.warns(UserWarning, match="reduction='none'"):
        assert nn.MSELoss(reduce=False).reduction == "none"


def test_empty_batches():
    x = torch.zeros(0, 3, requires_grad=True)
    assert math.isnan(F.mse_loss(x, torch.zeros(0, 3)).item())
    assert F.mse_loss(x, torch.zeros(0, 3), reduction="sum").item() == 0
    assert math.isnan(F.cross_entropy(x, torch.zeros(0).long()).item())
    F.cross_entropy(x, torch.zeros(0).long(), reduction="sum").backward()
    assert x.grad.shape == (0, 3)


def test_weights_are_buffers():
    loss = nn.CrossEntropyLoss(torch.tensor([1.0, 2.0]), ignore_index=1, label_smoothing=0.1)
    assert list(loss.state_dict()) == ["weight"]
    assert loss.double().weight.dtype is torch.float64
    assert list(nn.CrossEntropyLoss().state_dict()) == []
    assert list(nn.BCEWithLogitsLoss(pos_weight=torch.ones(2)).state_dict()) == ["pos_weight"]


def test_modules_hand_on_their_settings():
    x, t = draw(4, 3), draw(4, 3, seed=1)
    close(
        nn.SmoothL1Loss(beta=0.3, reduction="sum")(const(x), const(t)),
        F.smooth_l1_loss(const(x), const(t), beta=0.3, reduction="sum").numpy(),
    )
    close(nn.HuberLoss(delta=0.3)(const(x), const(t)), F.huber_loss(const(x), const(t), delta=0.3).numpy())
    labels = torch.tensor([0, 1, 2, 1])
    module = nn.CrossEntropyLoss(const([1.0, 2, 3]), ignore_index=1, label_smoothing=0.2, reduction="sum")
    expected = F.cross_entropy(
        const(x), labels, const([1.0, 2, 3]), ignore_index=1, label_smoothing=0.2, reduction="sum"
    )
    close(module(const(x), labels), expected.numpy())
    with pytest.raises(ValueError, match="expected margin to be greater than 0, got 0"):
        nn.TripletMarginLoss(margin=0)
    with pytest.warns(FutureWarning, match="NLLLoss2d"):
        assert isinstance(nn.NLLLoss2d(), nn.NLLLoss)


@pytest.mark.parametrize("size", [1, 2, 100])
def test_linear_cross_entropy_a_few_rows_at_a_time(size):
    args = leaf(draw(4, 2)), leaf(draw(3, 2, seed=1)), leaf(draw(3, seed=2))
    t = torch.tensor([0, 1, 2, 2])
    few = nn.LinearCrossEntropyOptions(batch_chunk_size=size)
    for reduction in KINDS:

        def loss(x, w, b, options=few, reduction=reduction):
            settings = {"linear_bias": b, "ignore_index": 1, "reduction": reduction}
            return F.linear_cross_entropy(x, w, t, options=options, **settings)

        close(loss(*args), loss(*args, options=None).detach().numpy())
        assert gradcheck(loss, args)
    assert gradgradcheck(loss, args)


def test_adaptive_softmax_is_a_distribution():
    torch.manual_seed(0)
    module = nn.AdaptiveLogSoftmaxWithLoss(8, 20, [4, 10], div_value=2.0).double()
    x = leaf(draw(6, 8) * 3)
    logp = module.log_prob(x)
    close(logp.exp().sum(1), np.ones(6))
    target = torch.tensor([0, 3, 4, 9, 10, 19])
    output, loss = module(x, target)
    close(output, logp.detach().numpy()[np.arange(6), target.numpy()])
    close(loss, -output.detach().numpy().mean())
    assert module.predict(x).tolist() == logp.argmax(1).tolist()
    with pytest.raises(RuntimeError, match=r"Target values should be in \[0, 19\]"):
        module(x, target + 1)
