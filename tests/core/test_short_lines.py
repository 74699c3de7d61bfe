"""Softmax and its kin along lines of a few elements are computed for many lines at once (kernels/softmax.cpp)."""

from __future__ import annotations

import numpy as np
import pytest

import rushlight as torch
import rushlight.nn.functional as F

LINES = [(63,), (64,), (65,), (1000,), (7, 130)]


def reference(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


@pytest.fixture(params=LINES, ids=str)
def lines(request):
    return request.param


@pytest.mark.parametrize("dtype, close", [("float32", 2e-6), ("float64", 1e-13)])
@pytest.mark.parametrize("length", [1, 2, 3, 16, 17])
def test_values_and_gradients(lines, length, dtype, close):
    rng = np.random.default_rng(3)
    array, weight = rng.normal(size=(*lines, length)).astype(dtype), rng.normal(size=(*lines, length)).astype(dtype)
    p = reference(array.astype("float64"))
    x, g = torch.from_numpy(array).requires_grad_(), torch.from_numpy(weight)
    for function, value, gradient in (
        (F.softmax, p, p * (weight - (weight * p).sum(-1, keepdims=True))),
        (F.log_softmax, np.log(p), weight - p * weight.sum(-1, keepdims=True)),
    ):
        y = function(x, -1)
        np.testing.assert_allclose(y.detach().numpy(), value, rtol=close, atol=close)
        np.testing.assert_allclose(torch.autograd.grad(y, x, g)[0].numpy(), gradient, rtol=close * 5, atol=close * 5)
    largest = array.astype("float64").max(-1)
    expected = largest + np.log(np.exp(array - largest[..., None]).sum(-1))
    np.testing.assert_allclose(x.logsumexp(-1).detach().numpy(), expected, rtol=close, atol=close)


@pytest.mark.parametrize("dtype, close", [("float32", 2e-6), ("float64", 1e-13)])
@pytest.mark.parametrize("options", [{}, {"label_smoothing": 0.1}, {"weight": True}, {"ignore_index": 1}])
@pytest.mark.parametrize("classes", [2, 5, 16, 17])
def test_cross_entropy(classes, options, dtype, close):
    rng = np.random.default_rng(5)
    array, chosen = rng.normal(size=(500, classes)).astype(dtype), rng.integers(0, classes, 500)
    options = dict(options)
    if "weight" in options:
        options["weight"] = torch.linspace(0.5, 2, classes, dtype=getattr(torch, dtype))
    x, y = torch.from_numpy(array).requires_grad_(), torch.from_numpy(chosen)
    loss = F.cross_entropy(x, y, **options)
    whole = torch.from_numpy(np.ascontiguousarray(array.T)[None]).requires_grad_()  # one block: lines side by side
    other = F.cross_entropy(whole, y[None], **options)
    assert loss.item() == pytest.approx(other.item(), rel=close)
    loss.backward()
    other.backward()
    np.testing.assert_allclose(x.grad.numpy(), whole.grad[0].numpy().T, rtol=close * 10, atol=close)


def test_numbers_that_are_not_finite(lines):
    x = torch.zeros(*lines, 3)
    x[..., 1] = -float("inf")
    x.view(-1, 3)[5] = float("nan")
    x.view(-1, 3)[6] = -float("inf")
    y = x.softmax(-1).view(-1, 3)
    assert y[0].tolist() == [0.5, 0.0, 0.5]
    assert y[5].isnan().all() and y[6].isnan().all()
    assert x.logsumexp(-1).view(-1)[6].item() == -float("inf")


def test_halves_and_threads():
    x = torch.randn(3000, 4)
    results = []
    for threads in (1, 2, 3):
        torch.set_num_threads(threads)
        results.append(x.softmax(-1))
    torch.set_num_threads(2)
    assert torch.equal(results[0], results[1]) and torch.equal(results[0], results[2])
    for half in (torch.float16, torch.bfloat16):
        assert torch.allclose(x.to(half).softmax(-1).float(), results[0], atol=1e-2)
