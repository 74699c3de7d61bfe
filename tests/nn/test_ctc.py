"""Connectionist temporal classification against the sum over all alignments."""

import itertools

import numpy as np
import pytest

import rushlight as torch
import rushlight.nn.functional as F
from rushlight.autograd import gradcheck


def collapsed(path, blank):
    """What a path of classes spells: repetitions joined, blanks left out."""
    return [c for c, _ in itertools.groupby(path) if c != blank]


def loss_by_enumeration(logp, labels, blank):
    time, classes = logp.shape
    total = 0.0
    for path in itertools.product(range(classes), repeat=time):
        if collapsed(path, blank) == list(labels):
            total += np.exp(sum(logp[t, c] for t, c in enumerate(path)))
    return -np.log(total) if total else np.inf


def logits(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape)


def normalized(x):
    return x - np.log(np.exp(x).sum(-1, keepdims=True))


@pytest.mark.parametrize("blank", [0, 2])
@pytest.mark.parametrize("labels", [[], [1], [1, 1], [1, 3], [3, 1, 3], [1, 1, 1], [1, 3, 3, 1]])
def test_sum_over_alignments(labels, blank):
    logp = normalized(logits(4, 4))
    found = F.ctc_loss(torch.tensor(logp), torch.tensor(labels, dtype=torch.int64), [4], [len(labels)], blank)
    expected = loss_by_enumeration(logp, labels, blank) / max(len(labels), 1)
    assert found.item() == pytest.approx(expected)


def test_batch_of_different_lengths():
    logp = normalized(logits(5, 3, 3))
    labels, steps = [[1, 2], [2], []], [5, 3, 2]
    expected = [loss_by_enumeration(logp[:t, n], y, 0) for n, (y, t) in enumerate(zip(labels, steps, strict=True))]
    padded = torch.tensor([[1, 2], [2, 0], [0, 0]])
    row = torch.tensor([1, 2, 2])
    for targets in (padded, row, padded.to(torch.int32)):
        for lengths in ((steps, [2, 1, 0]), (torch.tensor(steps), torch.tensor([2, 1, 0]))):
            found = F.ctc_loss(torch.tensor(logp), targets, *lengths, reduction="none")
            np.testing.assert_allclose(found.numpy(), expected)
    mean = F.ctc_loss(torch.tensor(logp), padded, steps, [2, 1, 0])
    assert mean.item() == pytest.approx(np.mean([expected[0] / 2, expected[1], expected[2]]))


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
def test_gradient_of_the_logits(reduction):
    x = torch.tensor(logits(5, 2, 4), requires_grad=True)
    targets = torch.tensor([[1, 1], [3, 2]])

    def loss(x):
        return F.ctc_loss(x.log_softmax(-1), targets, [5, 4], [2, 1], reduction=reduction)

    assert gradcheck(loss, x)
    loss(x).sum().backward()
    assert x.grad[4, 1].abs().sum().item() == 0  # past the sample's end


def test_float32():
    x = logits(30, 2, 5).astype(np.float32)
    targets = torch.tensor([[1, 2, 3, 4, 4], [1, 1, 1, 2, 2]])
    exact = F.ctc_loss(torch.tensor(x, dtype=torch.float64).log_softmax(-1), targets, [30, 30], [5, 5])
    found = F.ctc_loss(torch.tensor(x).log_softmax(-1), targets, [30, 30], [5, 5])
    assert found.dtype is torch.float32
    assert found.item() == pytest.approx(exact.item(), rel=1e-5)


def test_too_short():
    x = torch.tensor(logits(2, 2, 3), requires_grad=True)
    targets = torch.tensor([[1, 1], [1, 2]])
    loss = F.ctc_loss(x.log_softmax(-1), targets, [2, 2], [2, 2], reduction="none")
    assert loss[0].item() == np.inf
    assert np.isfinite(loss[1].item())
    loss.sum().backward()
    assert bool(x.grad[:, 0].isnan().all())
    assert bool(x.grad[:, 1].isfinite().all())
    x.grad = None
    loss = F.ctc_loss(x.log_softmax(-1), targets, [2, 2], [2, 2], reduction="none", zero_infinity=True)
    loss.sum().backward()
    assert loss[0].item() == 0
    assert x.grad[:, 0].tolist() == [[0.0] * 3] * 2


def test_impossible_class_has_no_gradient_and_no_nan():
    logp = normalized(logits(4, 1, 3))
    logp[:, :, 2] = -np.inf
    x = torch.tensor(logp, requires_grad=True)
    F.ctc_loss(x, torch.tensor([[1, 1]]), [4], [2]).backward()
    assert x.grad[:, 0, 2].tolist() == [0.0] * 4
    assert bool(x.grad.isfinite().all())


def test_underflow():
    x = torch.tensor(logits(300, 1, 4) * 40, requires_grad=True)
    targets = torch.tensor([[1, 2, 3] * 20])
    loss = F.ctc_loss(x.log_softmax(-1), targets, [300], [60])
    loss.backward()
    assert np.isfinite(loss.item())
    np.testing.assert_allclose(x.grad.sum(-1).numpy(), 0, atol=1e-12)


def test_refusals():
    logp, targets = torch.tensor(normalized(logits(5, 2, 4))), torch.tensor([[1, 2], [1, 3]])
    for bad, phrase in [
        ((logp, targets, [6, 5], [2, 2]), "input_lengths to have value between 0 and 5"),
        ((logp, targets, [5], [2, 2]), "input_lengths must be of size batch_size: expected 2, got 1"),
        ((logp, targets, [5, 5], [2, 3]), "at least 3 at dimension 1"),
        ((logp, torch.tensor([1, 2, 3]), [5, 5], [2, 2]), "size 4 at dimension 0, the sum of target_lengths"),
        ((logp, targets, [5, 5], [2, 2], 4), "blank must be in label range"),
        ((logp, targets + 1, [5, 5], [2, 2]), r"expected labels in \[0, 4\)"),
        ((logp, targets, torch.tensor([5.0, 5.0]), [2, 2]), "input_lengths must be integral"),
        ((logp[:0], targets, [0, 0], [2, 2]), "log_probs tensor must not be empty"),
        ((logp[0, 0], targets, [5, 5], [2, 2]), "expected log_probs with 2 or 3 dimensions"),
    ]:
        with pytest.raises(RuntimeError, match=phrase):
            F.ctc_loss(*bad)
    x = logp.clone().requires_grad_()
    first = torch.autograd.grad(F.ctc_loss(x, targets, [5, 5], [2, 2]), x, create_graph=True)[0]
    with pytest.raises(RuntimeError, match="is not implemented"):
        first.sum().backward()
