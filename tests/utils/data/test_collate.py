"""How samples become batches."""

import collections
import types

import numpy as np
import pytest

import rushlight as torch
from rushlight.utils.data import default_collate, default_convert
from rushlight.utils.data._utils.collate import collate

Pair = collections.namedtuple("Pair", "a b")


class Names(list):
    pass


class Fixed(list):
    def __init__(self, a, b):
        super().__init__([a, b])


def listed(value):
    """``value`` with its tensors as lists."""
    if isinstance(value, torch.Tensor):
        return value.tolist()
    if isinstance(value, dict):
        return {key: listed(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [listed(item) for item in value]
    return value


@pytest.mark.parametrize(
    ("batch", "expected", "dtype"),
    [
        ([1, 2], [1, 2], "int64"),
        ([1.0, 2.0], [1.0, 2.0], "float64"),
        ([True, False], [True, False], "bool"),
        ([np.int32(3), np.int32(4)], [3, 4], "int32"),
        ([np.float16(1), np.float16(2)], [1.0, 2.0], "float16"),
        ([np.bool_(True), np.bool_(False)], [True, False], "bool"),
        ([np.ones(2), np.zeros(2)], [[1.0, 1.0], [0.0, 0.0]], "float64"),
        ([np.array(1.0), np.array(2.0)], [1.0, 2.0], "float64"),
    ],
    ids=str,
)
def test_numbers_and_arrays(batch, expected, dtype):
    result = default_collate(batch)
    assert result.tolist() == expected
    assert result.dtype == getattr(torch, dtype)


def test_tensors():
    result = default_collate([torch.ones(2, 3), torch.zeros(2, 3)])
    assert result.shape == (2, 2, 3)
    assert default_collate([torch.tensor(1), torch.tensor(2)]).tolist() == [1, 2]
    assert default_collate([torch.ones(0), torch.ones(0)]).shape == (2, 0)
    with pytest.raises(RuntimeError, match="stack expects each tensor to be equal size"):
        default_collate([torch.ones(2), torch.ones(3)])


def test_strings():
    assert default_collate(["a", "b"]) == ["a", "b"]
    assert default_collate([b"a", b"b"]) == [b"a", b"b"]


def test_containers():
    assert listed(default_collate([(1, "a"), (2, "b")])) == [[1, 2], ["a", "b"]]
    assert default_collate([(1, "a"), (2, "b")])[1] == ("a", "b")
    assert listed(default_collate([[1, 2], [3, 4]])) == [[1, 3], [2, 4]]
    assert listed(default_collate([{"x": 1, "y": [2, 3]}, {"x": 4, "y": [5, 6]}])) == {
        "x": [1, 4],
        "y": [[2, 5], [3, 6]],
    }
    assert listed(default_collate([range(2), range(2)])) == [[0, 0], [1, 1]]
    pairs = default_collate([Pair(1, 2), Pair(3, 4)])
    assert type(pairs) is Pair
    assert listed(pairs) == [[1, 3], [2, 4]]


@pytest.mark.parametrize(
    "sample",
    [
        collections.OrderedDict(a=1),
        collections.defaultdict(int, {"a": 1}),
        types.MappingProxyType({"a": 1}),
        Names([1, 2]),
        Fixed(1, 2),
    ],
    ids=lambda sample: type(sample).__name__,
)
def test_types_of_containers_are_kept(sample):
    assert type(default_collate([sample, sample])) is type(sample)


def test_samples_are_not_changed():
    sample = {"a": 1}
    default_collate([sample, {"a": 2}])
    assert sample == {"a": 1}


@pytest.mark.parametrize("sample", [None, object(), {1, 2}, 1j], ids=["none", "object", "set", "complex"])
def test_other_types_are_refused(sample):
    with pytest.raises(
        TypeError, match="default_collate: batch must contain tensors, numpy arrays, numbers, dicts or li"
    ):
        default_collate([sample, sample])


def test_samples_that_do_not_fit_together():
    with pytest.raises(RuntimeError, match="each element in list of batch should be of equal size"):
        default_collate([[1, 2], [1]])
    with pytest.raises(KeyError, match="a"):
        default_collate([{"a": 1}, {"b": 1}])
    with pytest.raises(TypeError, match="found <U1"):
        default_collate([np.array("a"), np.array("b")])
    with pytest.raises(IndexError):
        default_collate([])


def test_own_functions_by_type():
    class Word:
        def __init__(self, text):
            self.text = text

    def join(batch, *, collate_fn_map=None):
        return " ".join(word.text for word in batch)

    assert collate(
        [(Word("a"), 1), (Word("b"), 2)], collate_fn_map={Word: join, int: lambda batch, **_: sum(batch)}
    ) == [
        "a b",
        3,
    ]


def test_convert():
    assert default_convert(3) == 3
    assert default_convert("a") == "a"
    assert default_convert(np.ones(2)).tolist() == [1.0, 1.0]
    assert listed(default_convert({"a": np.ones(1), "b": "x"})) == {"a": [1.0], "b": "x"}
    assert listed(default_convert((np.ones(1), 1))) == [[1.0], 1]
    assert type(default_convert(Pair(np.ones(1), 2))) is Pair
    assert default_convert([np.float32(2)])[0].dtype == torch.float32
    words = np.array(["a"])
    assert default_convert(words) is words
    tensor = torch.ones(1)
    assert default_convert(tensor) is tensor
