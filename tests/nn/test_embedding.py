"""Embeddings and bags against loops in NumPy."""

import numpy as np
import pytest

import rushlight as torch
import rushlight.nn.functional as F
from rushlight import nn
from rushlight.autograd import gradcheck, gradgradcheck


def table(rows=6, columns=3, grad=True, seed=0):
    numbers = np.random.default_rng(seed).normal(size=(rows, columns))
    return torch.tensor(numbers, requires_grad=grad)


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32])
@pytest.mark.parametrize("indices", [[[0, 5], [5, 2]], 3, [], [[[1]]]])
def test_rows(indices, dtype):
    weight, index = table(), torch.tensor(indices, dtype=dtype)
    found = F.embedding(index, weight)
    assert found.shape == (*index.shape, 3)
    np.testing.assert_array_equal(found.detach().numpy(), weight.detach().numpy()[np.array(indices, dtype=int)])
    found.sum().backward()
    counts = np.bincount(np.array(indices, dtype=int).ravel(), minlength=6)
    np.testing.assert_array_equal(weight.grad.numpy(), np.repeat(counts[:, None], 3, 1))


def test_padding_and_frequency():
    weight, index = table(), torch.tensor([0, 0, 1, 5, 5, 5])
    F.embedding(index, weight, padding_idx=1).sum().backward()
    assert weight.grad[:, 0].tolist() == [2, 0, 0, 0, 0, 3]
    weight.grad = None
    F.embedding(index, weight, padding_idx=-1, scale_grad_by_freq=True).sum().backward()
    assert weight.grad[:, 0].tolist() == [1, 1, 0, 0, 0, 0]


def test_derivatives():
    index = torch.tensor([[0, 2], [2, 5]])
    assert gradcheck(lambda w: F.embedding(index, w), table())
    assert gradgradcheck(lambda w: F.embedding(index, w) ** 2, table())
    offsets, weights = (
        torch.tensor([0, 1, 1]),
        torch.tensor([0.5, 2.0, -1.0, 3.0], dtype=torch.float64, requires_grad=True),
    )
    flat = index.reshape(-1)
    for mode in ("sum", "mean", "max"):
        assert gradcheck(lambda w: F.embedding_bag(flat, w, offsets, mode=mode), table())
    assert gradcheck(
        lambda w, s: F.embedding_bag(flat, w, offsets, mode="sum", per_sample_weights=s), (table(), weights)
    )


@pytest.mark.parametrize("norm_type", [1.0, 2.0, float("inf")])
def test_max_norm_scales_the_rows_looked_up(norm_type):
    weight = table(grad=False)
    before = weight.clone()
    F.embedding(torch.tensor([0, 0, 3]), weight, max_norm=0.5, norm_type=norm_type)
    norms = np.linalg.norm(weight.numpy(), norm_type, axis=1)
    assert (norms[[0, 3]] <= 0.5).all()
    assert torch.equal(weight[[1, 2, 4, 5]], before[[1, 2, 4, 5]])
    small = weight.clone()
    F.embedding(torch.tensor([0, 3]), weight, max_norm=0.6, norm_type=norm_type)
    assert torch.equal(weight, small)


def bag_of(weight, index, mode, factors=None):
    rows = weight[index] if factors is None else weight[index] * factors[:, None]
    if not len(index):
        return np.zeros(weight.shape[1])
    return {"sum": np.sum, "mean": np.mean, "max": np.max}[mode](rows, axis=0)


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
@pytest.mark.parametrize("offsets", [[0], [0, 2], [0, 0, 2, 2, 6], [0, 6]])
def test_bags(offsets, mode):
    weight, index = table(), np.array([0, 1, 4, 4, 2, 5])
    parts = np.split(index, offsets[1:])
    expected = [bag_of(weight.detach().numpy(), part, mode) for part in parts]
    found = F.embedding_bag(torch.tensor(index), weight, torch.tensor(offsets), mode=mode)
    np.testing.assert_allclose(found.detach().numpy(), expected)
    closed = F.embedding_bag(
        torch.tensor(index), weight, torch.tensor([*offsets, 6]), mode=mode, include_last_offset=True
    )
    np.testing.assert_allclose(closed.detach().numpy(), expected)
    padded = F.embedding_bag(torch.tensor(index), weight, torch.tensor(offsets), mode=mode, padding_idx=4)
    expected = [bag_of(weight.detach().numpy(), part[part != 4], mode) for part in parts]
    np.testing.assert_allclose(padded.detach().numpy(), expected)


def test_bags_of_one_length_and_weights():
    weight, index = table(), np.array([[0, 1, 4], [4, 2, 5]])
    for mode in ("sum", "mean", "max"):
        expected = [bag_of(weight.detach().numpy(), row, mode) for row in index]
        np.testing.assert_allclose(F.embedding_bag(torch.tensor(index), weight, mode=mode).detach().numpy(), expected)
    factors = np.arange(6.0).reshape(2, 3)
    expected = [bag_of(weight.detach().numpy(), row, "sum", f) for row, f in zip(index, factors, strict=True)]
    found = F.embedding_bag(torch.tensor(index), weight, mode="sum", per_sample_weights=torch.tensor(factors))
    np.testing.assert_allclose(found.detach().numpy(), expected)


def test_bag_gradients():
    weight = table()
    F.embedding_bag(torch.tensor([[0, 0, 1]]), weight, mode="sum", scale_grad_by_freq=True).sum().backward()
    assert weight.grad[:, 0].tolist() == [1, 1, 0, 0, 0, 0]
    equal = torch.ones(3, 2, dtype=torch.float64, requires_grad=True)
    F.embedding_bag(torch.tensor([[1, 0, 2]]), equal, mode="max").sum().backward()
    assert equal.grad.tolist() == [[0, 0], [1, 1], [0, 0]]  # the first of equal ones


def test_refusals():
    weight, index = table(), torch.tensor([0, 1, 4, 4])
    with pytest.raises(IndexError):
        F.embedding(torch.tensor([6]), weight)
    with pytest.raises(IndexError):
        F.embedding(torch.tensor([-1]), weight)
    with pytest.raises(AssertionError, match="Padding_idx must be within num_embeddings, got 6 for 6"):
        F.embedding(index, weight, 6)
    for args, options, kind, phrase in [
        ((index, weight), {}, ValueError, "offsets has to be a 1D Tensor but got None"),
        ((index.reshape(2, 2), weight, torch.tensor([0])), {}, ValueError, "offsets has to be None"),
        ((index, weight, torch.tensor([1])), {}, RuntimeError, r"offsets\[0\] has to be 0"),
        ((index, weight, torch.tensor([0, 5])), {}, RuntimeError, "greater than input's length 4"),
        ((index, weight, torch.tensor([0, 3, 1])), {}, RuntimeError, "must not decrease"),
        ((index, weight, torch.tensor([0])), {"mode": "median"}, ValueError, "one of sum, mean or max"),
        ((torch.tensor([6]), weight, torch.tensor([0])), {}, RuntimeError, r"value 6 .* valid range \[0, 6\)"),
        ((index, weight, torch.tensor([0])), {"mode": "max", "scale_grad_by_freq": True}, ValueError, "max mode"),
        ((index, weight, torch.tensor([0])), {"per_sample_weights": index.double()}, NotImplementedError, "mode='sum'"),
    ]:
        with pytest.raises(kind, match=phrase):
            F.embedding_bag(*args, **options)
    for make in (nn.Embedding, nn.EmbeddingBag):
        with pytest.raises(NotImplementedError, match="sparse=True"):
            make(2, 3, sparse=True)


def test_modules():
    torch.manual_seed(0)
    module = nn.Embedding(5, 3, padding_idx=-2)
    assert module.padding_idx == 3
    assert module.weight[3].tolist() == [0, 0, 0]
    assert repr(module) == "Embedding(5, 3, padding_idx=3)"
    assert repr(nn.EmbeddingBag(5, 3, max_norm=1.0, mode="max")) == "EmbeddingBag(5, 3, max_norm=1.0, mode='max')"
    module(torch.tensor([3, 4])).sum().backward()
    assert module.weight.grad[3:, 0].tolist() == [0, 1]
    rows = torch.arange(6.0).reshape(3, 2)
    frozen = nn.Embedding.from_pretrained(rows)
    assert not frozen.weight.requires_grad
    assert frozen(torch.tensor([2])).tolist() == [[4, 5]]
    assert nn.EmbeddingBag.from_pretrained(rows, freeze=False, mode="sum").weight.requires_grad
    with pytest.raises(AssertionError, match=r"expected \(4, 2\), got \(3, 2\)"):
        nn.Embedding(4, 2, _weight=rows)
    with pytest.raises(AssertionError, match="2-dimensional"):
        nn.Embedding.from_pretrained(rows[0])


def test_one_hot():
    assert F.one_hot(torch.tensor([0, 2])).tolist() == [[1, 0, 0], [0, 0, 1]]
    assert F.one_hot(torch.tensor([[1]]), 2).tolist() == [[[0, 1]]]
    assert F.one_hot(torch.tensor(1), 3).tolist() == [0, 1, 0]
    assert F.one_hot(torch.zeros(0).long(), 3).shape == (0, 3)
    assert F.one_hot(torch.tensor([1])).dtype is torch.int64
    for bad, phrase in [
        ((torch.tensor([-1]),), "non-negative"),
        ((torch.tensor([3]), 3), "smaller than num_classes"),
        ((torch.tensor([1.0]),), "LongTensor"),
        ((torch.zeros(0).long(),), "Can not infer"),
    ]:
        with pytest.raises(RuntimeError, match=phrase):
            F.one_hot(*bad)
