"""Samplers: what they give, how often, and what they refuse."""

import collections

import pytest

import rushlight as torch
from rushlight.utils.data import (
    BatchSampler,
    DistributedSampler,
    RandomSampler,
    Sampler,
    SequentialSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
)


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def test_base_class():
    with pytest.raises(NotImplementedError):
        iter(Sampler())
    with pytest.raises(TypeError):
        Sampler(range(3))


def test_sequential():
    sampler = SequentialSampler("abc")
    assert list(sampler) == [0, 1, 2]
    assert len(sampler) == 3


def test_random_is_a_permutation():
    sampler = RandomSampler(range(50))
    first, second = list(sampler), list(sampler)
    assert sorted(first) == sorted(second) == list(range(50))
    assert first != second
    assert list(RandomSampler(range(50), generator=seeded())) == list(RandomSampler(range(50), generator=seeded()))


def test_random_of_another_number():
    sampler = RandomSampler(range(5), num_samples=12)
    drawn = list(sampler)
    assert len(sampler) == len(drawn) == 12
    assert sorted(drawn[:5]) == sorted(drawn[5:10]) == list(range(5))
    assert len(set(drawn[10:])) == 2
    assert len(list(RandomSampler(range(5), num_samples=3))) == 3


@pytest.mark.parametrize("number", [1, 31, 32, 33, 100])
def test_random_with_replacement(number):
    drawn = list(RandomSampler(range(4), replacement=True, num_samples=number, generator=seeded()))
    assert len(drawn) == number
    assert set(drawn) <= set(range(4))
    assert number < 33 or set(drawn) == set(range(4))


def test_random_depends_on_the_global_seed():
    torch.manual_seed(3)
    first = list(RandomSampler(range(20)))
    torch.manual_seed(3)
    assert list(RandomSampler(range(20))) == first


def test_random_refuses():
    with pytest.raises(TypeError, match="replacement should be a boolean value, but got replacement=3"):
        RandomSampler(range(3), replacement=3)
    for wrong in (0, -3, 1.5, True):
        with pytest.raises(
            ValueError, match=f"num_samples should be a positive integer value, but got num_samples={wrong}"
        ):
            RandomSampler(range(3), num_samples=wrong)
    with pytest.raises(ValueError, match="num_samples=0"):
        RandomSampler([])


def test_subset():
    sampler = SubsetRandomSampler([10, 20, 30], seeded())
    assert sorted(sampler) == [10, 20, 30]
    assert len(sampler) == 3


def test_weighted():
    sampler = WeightedRandomSampler([0.0, 1.0, 3.0], 2000, generator=seeded())
    counts = collections.Counter(sampler)
    assert len(sampler) == sum(counts.values()) == 2000
    assert set(counts) == {1, 2}
    assert 2.3 < counts[2] / counts[1] < 4.0
    assert sorted(WeightedRandomSampler([1.0, 2.0, 3.0], 3, replacement=False)) == [0, 1, 2]


def test_weighted_refuses():
    with pytest.raises(ValueError, match="num_samples should be a positive integer value, but got num_samples=0"):
        WeightedRandomSampler([1, 2], 0)
    with pytest.raises(ValueError, match="replacement should be a boolean value, but got replacement=1"):
        WeightedRandomSampler([1, 2], 2, replacement=1)
    with pytest.raises(ValueError, match=r"1d sequence but given weights have shape \(1, 2\)"):
        WeightedRandomSampler([[1, 2]], 2)
    with pytest.raises(RuntimeError, match="without replacement"):
        list(WeightedRandomSampler([1.0, 2.0], 3, replacement=False))
    with pytest.raises(RuntimeError, match="< 0"):
        list(WeightedRandomSampler([1.0, -2.0], 3))


@pytest.mark.parametrize(
    ("drop_last", "batches"), [(False, [[0, 1, 2], [3, 4, 5], [6, 7]]), (True, [[0, 1, 2], [3, 4, 5]])]
)
def test_batches(drop_last, batches):
    sampler = BatchSampler(SequentialSampler(range(8)), 3, drop_last)
    assert list(sampler) == batches
    assert len(sampler) == len(batches)
    assert list(BatchSampler(iter(range(8)), 3, drop_last)) == batches
    assert list(BatchSampler([], 3, drop_last)) == []


def test_batches_refuse():
    for wrong in (0, -1, True, 2.0, "a"):
        with pytest.raises(
            ValueError, match=f"batch_size should be a positive integer value, but got batch_size={wrong}"
        ):
            BatchSampler(range(3), wrong, False)
    with pytest.raises(ValueError, match="drop_last should be a boolean value, but got drop_last=0"):
        BatchSampler(range(3), 2, 0)


@pytest.mark.parametrize("length", [1, 2, 7, 9, 10])
@pytest.mark.parametrize("replicas", [1, 2, 3, 5])
@pytest.mark.parametrize("drop_last", [False, True])
def test_distributed_covers_everything_evenly(length, replicas, drop_last):
    samplers = [DistributedSampler(range(length), replicas, rank, drop_last=drop_last) for rank in range(replicas)]
    parts = [list(sampler) for sampler in samplers]
    assert {len(part) for part in parts} == {len(samplers[0])}
    together = [index for part in parts for index in part]
    if drop_last:
        assert len(set(together)) == len(together) == length // replicas * replicas
    else:
        assert set(together) == set(range(length))
        assert len(together) - length < replicas


def test_distributed_epochs_and_order():
    sampler = DistributedSampler(range(20), 2, 1, seed=7)
    first = list(sampler)
    assert list(sampler) == first
    sampler.set_epoch(1)
    assert list(sampler) != first
    assert list(DistributedSampler(range(5), 2, 0, shuffle=False)) == [0, 2, 4]
    with pytest.raises(ValueError, match=r"Invalid rank 2, rank should be in the interval \[0, 1\]"):
        DistributedSampler(range(5), 2, 2)
