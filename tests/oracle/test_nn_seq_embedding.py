"""Embeddings, bags and one-hot encoding against PyTorch's."""

import itertools

import pytest

torch = pytest.importorskip("torch", reason="the oracle is installed by .ci/run only")

from nn_twin import Twins, assert_same, same, same_error, same_module, same_warning  # noqa: E402

import rushlight  # noqa: E402

pytestmark = [pytest.mark.oracle, pytest.mark.filterwarnings("ignore")]

F = "nn.functional."
F64 = torch.float64


def table(rows=6, columns=3, dtype=F64):
    return torch.randn(rows, columns, dtype=dtype).requires_grad_()


INDICES = [
    torch.tensor([[0, 1, 5], [5, 5, 2]]),
    torch.tensor(4),
    torch.tensor([], dtype=torch.int64),
    torch.tensor([3, 3], dtype=torch.int32),
]


@pytest.mark.parametrize("dtype", [torch.float32, F64])
@pytest.mark.parametrize("indices", INDICES)
def test_embedding(indices, dtype):
    torch.manual_seed(0)
    for padding, frequency in itertools.product([None, 5, -6], [False, True]):
        same(F + "embedding", indices, table(dtype=dtype), padding, scale_grad_by_freq=frequency)
    same(F + "embedding", indices, table(dtype=dtype), second=True)


@pytest.mark.parametrize("norm_type", [1.0, 2.0, 3.0, float("inf")])
def test_max_norm_changes_the_table(norm_type):
    weight = table().detach()
    copy = Twins()(weight.clone())
    indices = torch.tensor([[0, 0, 3], [5, 3, 1]])
    expected = torch.nn.functional.embedding(indices, weight, max_norm=0.7, norm_type=norm_type)
    found = rushlight.nn.functional.embedding(Twins()(indices), copy, max_norm=0.7, norm_type=norm_type)
    assert_same(found, expected)
    assert_same(copy, weight)
    assert copy._version == 1

    def lookup(package, weight):
        w = weight * 1  # the gradient is that of the scaled rows
        w = w.detach().requires_grad_()
        package.nn.functional.embedding(package.tensor([0, 1]), w, max_norm=0.7).sum().backward()
        return w.grad

    same(lookup, table())


def test_embedding_refusals():
    f, w = F + "embedding", table()
    same_error(f, torch.tensor([6]), w, phrase="index out of range in self")
    same_error(f, torch.tensor([-1]), w, phrase="index out of range in self")
    same_error(f, torch.tensor([1.0]), w)
    same_error(f, torch.tensor([1]), torch.zeros(5), phrase="'weight' must be 2-D")
    for padding in (6, -7):
        same_error(f, torch.tensor([1]), w, padding_idx=padding, phrase="Padding_idx must be within num_embeddings")
    with pytest.raises(NotImplementedError, match="sparse=True"):
        rushlight.nn.functional.embedding(rushlight.tensor([1]), rushlight.zeros(2, 2), sparse=True)
    for name in ("Embedding", "EmbeddingBag"):
        with pytest.raises(NotImplementedError, match="sparse=True"):
            getattr(rushlight.nn, name)(2, 3, sparse=True)


def bags(mode):
    """Ways of giving bags: input, offsets, include_last_offset."""
    row = torch.tensor([0, 1, 4, 4, 2, 5])
    yield row, torch.tensor([0, 2]), False
    yield row, torch.tensor([0, 0, 2, 2, 6]), False
    yield row, torch.tensor([0, 2, 6]), True
    yield row, torch.tensor([0, 3], dtype=torch.int32), False
    yield row.reshape(2, 3), None, False
    yield row[:0], torch.tensor([0]), False
    yield row[:0], torch.tensor([], dtype=torch.int64), False


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_bags(mode):
    torch.manual_seed(0)
    for input, offsets, last in bags(mode):
        for padding in (None, 4, -1):
            options = {"mode": mode, "include_last_offset": last, "padding_idx": padding}
            same(F + "embedding_bag", input, table(), offsets, **options)
            same(F + "embedding_bag", input, table(dtype=torch.float32), offsets, **options)
            if mode == "sum":
                weights = torch.randn(input.shape, dtype=F64).requires_grad_()
                same(F + "embedding_bag", input, table(), offsets, per_sample_weights=weights, **options)


def test_greatest_of_equal_and_of_nan():
    weight = torch.tensor([[1.0, 2.0], [1.0, 3.0], [float("nan"), 0.0]], requires_grad=True)
    same(F + "embedding_bag", torch.tensor([0, 1, 1, 0]), weight, torch.tensor([0, 2]), mode="max")


def test_bag_refusals():
    f, w, i, o = F + "embedding_bag", table(), torch.tensor([0, 1, 4, 4]), torch.tensor([0, 2])
    same_error(f, i, w, phrase="offsets has to be a 1D Tensor but got None")
    same_error(f, i.reshape(2, 2), w, o, phrase="if input is 2D, then offsets has to be None")
    same_error(f, i.reshape(2, 2, 1), w, phrase="input has to be 1D or 2D Tensor, but got Tensor of dimension 3")
    same_error(f, i, w, o[None], phrase="offsets has to be a 1D Tensor")
    same_error(f, i, w, torch.tensor([1, 2]), phrase="offsets[0] has to be 0")
    same_error(f, i, w, torch.tensor([0, 5]), phrase="offsets[-1] can not be greater than input's length")
    with pytest.raises(RuntimeError, match="offsets must not decrease"):  # PyTorch reads past its memory
        rushlight.nn.functional.embedding_bag(*(Twins()(t) for t in (i, w, torch.tensor([0, 3, 1]))))
    same_error(f, i, w, o, mode="x", phrase="mode has to be one of sum, mean or max")
    weights = torch.randn(4, dtype=F64)
    same_error(f, i, w, o, mode="mean", per_sample_weights=weights, phrase="only supported for mode='sum'")
    same_error(f, i, w, o, mode="sum", per_sample_weights=weights[:3], phrase="must have the same shape as the input")
    same_error(f, i, w, o, mode="sum", per_sample_weights=weights.float(), phrase="embedding_bag")
    same_error(f, i, w, o, mode="max", scale_grad_by_freq=True, phrase="max mode does not support scaling the gradient")
    same_error(
        f, torch.tensor([6]), w.float(), o[:1], mode="sum", phrase="takes value 6 which is not in the valid range"
    )
    same_error(f, torch.tensor([0, -1]), w.float(), o[:1], mode="sum", phrase="Index 1 of input takes value -1")
    same_error(f, torch.randn(4, dtype=F64), w, o)
    same_error(f, i, w, o, padding_idx=7, phrase="padding_idx must be within the number of embeddings")
    same_warning(f, w.detach(), i, o, phrase="Argument order of nn.functional.embedding_bag was changed")


def test_modules():
    indices = torch.tensor([[0, 1, 3], [2, 2, 1]])
    for options in (
        {},
        {"padding_idx": 1},
        {"padding_idx": -1},
        {"max_norm": 1.0, "norm_type": 1.0},
        {"_weight": torch.randn(4, 3)},
    ):
        same_module("Embedding", (4, 3), options, [indices])
        same_module("EmbeddingBag", (4, 3), options, [indices])
    # not for bags: PyTorch counts wrongly there
    same_module("Embedding", (4, 3), {"scale_grad_by_freq": True}, [indices])
    for options in ({"mode": "sum"}, {"mode": "max"}, {"include_last_offset": True}):
        same_module("EmbeddingBag", (4, 3), options, [indices.flatten(), torch.tensor([0, 3, 6])])


def test_given_tables():
    def load(package, name, rows, **options):
        module = getattr(package.nn, name).from_pretrained(rows, **options)
        return module(package.tensor([[0, 2]])), package.tensor(float(module.weight.requires_grad))

    for name in ("Embedding", "EmbeddingBag"):
        for options in ({}, {"freeze": False}, {"padding_idx": 2}, {"max_norm": 0.5}):
            same(load, name, torch.randn(3, 2), **options)
        same_error(load, name, torch.randn(3), phrase="expected to be 2-dimensional")
        same_error("nn." + name, 4, 3, _weight=torch.zeros(3, 3), phrase="Shape of weight does not match")
        same_error("nn." + name, 4, 3, padding_idx=4, phrase="adding_idx must be within num_embeddings")


def test_one_hot():
    f = F + "one_hot"
    for classes in (torch.tensor([[0, 2], [1, 1]]), torch.tensor(2), torch.zeros(0, 3).long()):
        same(f, classes, 3)
        same(f, classes, num_classes=5)
    same(f, torch.tensor([0, 4, 1]))
    same_error(f, torch.tensor([]).long(), phrase="Can not infer total number of classes from empty tensor")
    same_error(f, torch.tensor([-1]), phrase="Class values must be non-negative")
    same_error(f, torch.tensor([3]), 3, phrase="Class values must be smaller than num_classes")
    same_error(f, torch.tensor([3.0]), phrase="only applicable to index tensor")
    same_error(f, torch.tensor([3], dtype=torch.int32), phrase="only applicable to index tensor")
