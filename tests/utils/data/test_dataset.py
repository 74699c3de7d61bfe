"""Datasets and their splitting."""

import pytest

import rushlight as torch
from rushlight.utils.data import (
    ChainDataset,
    ConcatDataset,
    Dataset,
    IterableDataset,
    StackDataset,
    Subset,
    TensorDataset,
    random_split,
)


class Count(IterableDataset):
    def __init__(self, n):
        self.n = n

    def __iter__(self):
        return iter(range(self.n))

    def __len__(self):
        return self.n


class Batched(Dataset):
    """Gives several samples at once, and remembers that it was asked to."""

    def __init__(self, wrong=0):
        self.asked = []
        self.wrong = wrong

    def __len__(self):
        return 10

    def __getitem__(self, index):
        return index * 10

    def __getitems__(self, indices):
        self.asked.append(indices)
        return [index * 10 for index in indices] + [None] * self.wrong


def test_base_classes():
    with pytest.raises(NotImplementedError, match=r"Subclasses of Dataset should implement __getitem__\."):
        Dataset()[0]
    with pytest.raises(TypeError, match="has no len"):
        len(Dataset())
    with pytest.raises(TypeError, match="abstract"):
        IterableDataset()
    assert issubclass(Dataset[int].__origin__, Dataset)


def test_tensors():
    dataset = TensorDataset(torch.arange(6).reshape(3, 2), torch.arange(3.0))
    assert len(dataset) == 3
    assert [part.tolist() for part in dataset[1]] == [[2, 3], 1.0]
    assert [part.tolist() for part in dataset[1:]] == [[[2, 3], [4, 5]], [1.0, 2.0]]
    assert dataset[-1][1].item() == 2.0
    with pytest.raises(IndexError):
        dataset[3]
    with pytest.raises(AssertionError, match="Size mismatch between tensors"):
        TensorDataset(torch.ones(2), torch.ones(3))


def test_stacked():
    pair = StackDataset(range(5), Batched().asked or range(10, 15))
    assert len(pair) == 5
    assert pair[3] == (3, 13)
    assert pair.__getitems__([0, 2]) == [(0, 10), (2, 12)]
    named = StackDataset(image=range(3), label="abc")
    assert named[1] == {"image": 1, "label": "b"}
    assert named.__getitems__([2, 0]) == [{"image": 2, "label": "c"}, {"image": 0, "label": "a"}]
    with pytest.raises(ValueError, match="At least one dataset should be passed"):
        StackDataset()
    with pytest.raises(ValueError, match="Size mismatch between datasets"):
        StackDataset(range(2), range(3))
    with pytest.raises(ValueError, match="both types are given"):
        StackDataset(range(2), a=range(2))


def test_stacked_asks_for_many_at_once():
    inner = Batched()
    assert StackDataset(inner, range(10)).__getitems__([1, 3]) == [(10, 1), (30, 3)]
    assert inner.asked == [[1, 3]]
    with pytest.raises(ValueError, match=r"Nested dataset's output size mismatch. Expected 2, got 3"):
        StackDataset(Batched(wrong=1)).__getitems__([1, 3])


def test_concatenated():
    both = ConcatDataset([range(3), range(10, 12), range(20, 24)])
    assert len(both) == 9
    assert [both[i] for i in range(9)] == [0, 1, 2, 10, 11, 20, 21, 22, 23]
    assert both[-1] == 23
    assert both[-9] == 0
    assert both.cumulative_sizes == [3, 5, 9]
    with pytest.warns(FutureWarning, match="renamed to `cumulative_sizes`"):
        assert both.cummulative_sizes == [3, 5, 9]
    with pytest.raises(ValueError, match="absolute value of index should not exceed dataset length"):
        both[-10]
    with pytest.raises(IndexError):
        both[9]
    with pytest.raises(AssertionError, match="datasets should not be an empty iterable"):
        ConcatDataset([])
    with pytest.raises(AssertionError, match="does not support IterableDataset"):
        ConcatDataset([Count(2)])


def test_sums():
    both = TensorDataset(torch.zeros(2)) + TensorDataset(torch.ones(1))
    assert isinstance(both, ConcatDataset)
    assert [sample[0].item() for sample in (both[i] for i in range(3))] == [0.0, 0.0, 1.0]
    chain = Count(2) + Count(3)
    assert isinstance(chain, ChainDataset)
    assert list(chain) == [0, 1, 0, 1, 2]


def test_chained():
    assert len(ChainDataset([Count(2), Count(3)])) == 5
    with pytest.raises(AssertionError, match="ChainDataset only supports IterableDataset"):
        list(ChainDataset([Count(1), range(3)]))
    with pytest.raises(AssertionError, match="ChainDataset only supports IterableDataset"):
        len(ChainDataset([range(3)]))


def test_subset():
    subset = Subset("abcdef", [5, 0, 3])
    assert len(subset) == 3
    assert [subset[i] for i in range(3)] == ["f", "a", "d"]
    assert subset.__getitems__([2, 0]) == ["d", "f"]
    inner = Batched()
    assert Subset(inner, [4, 2]).__getitems__([1, 0]) == [20, 40]
    assert inner.asked == [[2, 4]]
    many = TensorDataset(torch.arange(10))
    assert Subset(many, [7, 8, 9])[[0, 2]][0].tolist() == [7, 9]


def test_split_by_lengths():
    parts = random_split(range(10), [3, 7], torch.Generator().manual_seed(0))
    assert [len(part) for part in parts] == [3, 7]
    assert sorted(parts[0].indices + parts[1].indices) == list(range(10))
    again = random_split(range(10), [3, 7], torch.Generator().manual_seed(0))
    assert again[0].indices == parts[0].indices
    assert random_split(range(4), [0, 4])[0].indices == []
    for wrong in ([3, 4], []):
        with pytest.raises(ValueError, match="Sum of input lengths does not equal the length of the input dataset!"):
            random_split(range(10), wrong)
    with pytest.raises(ValueError, match="must not be negative"):
        random_split(range(10), [11, -1])


@pytest.mark.parametrize(
    ("fractions", "lengths"),
    [([0.5, 0.5], [5, 5]), ([0.33, 0.33, 0.34], [4, 3, 3]), ([0.99, 0.01], [10, 0]), ([1.0], [10])],
)
@pytest.mark.filterwarnings("ignore:Length of split")
def test_split_by_fractions(fractions, lengths):
    assert [len(part) for part in random_split(range(10), fractions)] == lengths


def test_split_refuses_fractions():
    with pytest.raises(ValueError, match="Fraction at index 0 is not between 0 and 1"):
        random_split(range(10), [-0.1, 1.1])
    for wrong in ([0.5, 0.6], [0.1, 0.2]):
        with pytest.raises(ValueError, match="Sum of input lengths"):
            random_split(range(10), wrong)
    with pytest.warns(UserWarning, match=r"Length of split at index 1 is 0. This might result in an empty dataset."):
        random_split(range(10), [0.99, 0.01])
