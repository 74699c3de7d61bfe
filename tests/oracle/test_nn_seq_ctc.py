"""Connectionist temporal classification against PyTorch's: values, gradients, lengths, refusals."""

import random

import pytest

torch = pytest.importorskip("torch", reason="the oracle is installed by .ci/run only")

from nn_twin import same, same_error, same_module  # noqa: E402

pytestmark = pytest.mark.oracle


def loss(package, x, *args, **kwargs):
    return package.nn.functional.ctc_loss(x.log_softmax(-1), *args, **kwargs)


@pytest.mark.parametrize("seed", range(60))
def test_random_batches(seed):
    choose = random.Random(seed)
    torch.manual_seed(seed)
    time, batch, classes, longest = (choose.randint(1, n) for n in (12, 5, 6, 5))
    classes += 1
    x = torch.randn(time, batch, classes, dtype=choose.choice([torch.float32, torch.float64])).requires_grad_()
    blank = choose.randrange(classes)
    labels = [c for c in range(classes) if c != blank]
    steps = [choose.randint(0, time) for _ in range(batch)]
    counts = [choose.randint(0, longest) for _ in range(batch)]
    padded = torch.tensor([[choose.choice(labels) for _ in range(longest)] for _ in range(batch)])
    options = {"blank": blank, "zero_infinity": choose.random() < 0.5}
    for reduction in ("none", "mean", "sum"):
        same(loss, x, padded, steps, counts, reduction=reduction, **options)
        same(loss, x, padded, torch.tensor(steps), torch.tensor(counts), reduction=reduction, **options)
        if sum(counts):
            row = torch.cat([padded[i, :n] for i, n in enumerate(counts)])
            same(loss, x, row, steps, counts, reduction=reduction, **options)


def test_one_sample():
    x = torch.randn(6, 4, dtype=torch.float64, requires_grad=True)
    for targets, lengths in (
        (torch.tensor([1, 2]), ((6,), (2,))),
        (torch.tensor([[1, 2]]), (torch.tensor([6]), torch.tensor([2]))),
        (torch.tensor([1, 2]), (torch.tensor(6), torch.tensor(2))),
    ):
        same(loss, x, targets, *lengths, reduction="none")
        same(loss, x, targets, *lengths)


def test_too_short_for_its_labels():
    x = torch.randn(5, 2, 4, dtype=torch.float64, requires_grad=True)
    targets = torch.tensor([[1, 1, 1, 1], [1, 3, 3, 2]])
    for zero in (False, True):
        same(loss, x, targets, (5, 4), (4, 2), reduction="none", zero_infinity=zero)
        same(loss, x, targets, (5, 4), (4, 2), zero_infinity=zero)


def test_long_and_certain():
    """Probabilities that underflow outside of log space."""
    x = torch.randn(400, 2, 5, dtype=torch.float64) * 30
    targets = torch.randint(1, 5, (2, 90))
    same(loss, x.requires_grad_(), targets, (400, 380), (90, 80), reduction="none")


def test_refusals():
    f = "nn.functional.ctc_loss"
    x, t = torch.randn(5, 2, 4).log_softmax(-1), torch.tensor([[1, 2], [1, 3]])
    same_error(f, x, t, torch.tensor([5.0, 5]), torch.tensor([2, 2]), phrase="input_lengths must be integral")
    same_error(f, x, t, (6, 5), (2, 2), phrase="Expected input_lengths to have value")
    same_error(f, x, t, (-1, 5), (2, 2), phrase="Expected input_lengths to have value")
    same_error(f, x, t, (5, 5), (-1, 2), phrase="Expected target_lengths to have value at least 0")
    same_error(f, x, t, (5,), (2, 2), phrase="input_lengths must be of size batch_size")
    same_error(f, x, t, (5, 5), (2,), phrase="target_lengths must be of size batch_size")
    same_error(f, x, t, (5, 5), (2, 3), phrase="Expected tensor to have size")
    same_error(f, x, t.flatten(), (5, 5), (2, 3), phrase="Expected tensor to have size 5 at dimension 0")
    same_error(f, x, t[:1], (5, 5), (2, 2), phrase="Expected tensor to have size 2 at dimension 0")
    same_error(f, x, t[None], (5, 5), (2, 2), phrase="Expected 1 to 2 dimensions")
    same_error(f, x, t, (5, 5), (2, 2), blank=4, phrase="blank must be in label range")
    same_error(f, x, t, (5, 5), (2, 2), reduction="x", phrase="not a valid value for reduction")
    same_error(f, x.long(), t, (5, 5), (2, 2), phrase="not implemented for")
    same_error(f, x[None], t, (5, 5), (2, 2))
    same_error(f, x[:0], t, (0, 0), (2, 2), phrase="log_probs tensor must not be empty")


def test_second_derivative_is_refused():
    def call(package, x, t):
        y = loss(package, x, t, (5, 5), (2, 2))
        first = package.autograd.grad(y, x, create_graph=True)[0]
        return package.autograd.grad(first.sum(), x)

    x = torch.randn(5, 2, 4, requires_grad=True)
    same_error(call, x, torch.tensor([[1, 2], [1, 3]]), phrase="is not implemented")


def test_module():
    x = torch.randn(5, 2, 4, dtype=torch.float64).log_softmax(-1).requires_grad_()
    t = torch.tensor([[0, 2], [1, 0]])
    same_module("CTCLoss", (), {"blank": 3, "reduction": "sum", "zero_infinity": True}, [x, t, (5, 4), (2, 1)])
    same_module("CTCLoss", (3,), {}, [x, t, (5, 4), (2, 1)])
