"""Loaders without workers: batches, epochs, arguments."""

import warnings

import pytest

import rushlight as torch
from rushlight.utils.data import (
    BatchSampler,
    DataLoader,
    Dataset,
    IterableDataset,
    RandomSampler,
    SequentialSampler,
    TensorDataset,
    get_worker_info,
    random_split,
)


class Count(IterableDataset):
    def __init__(self, n, length=None):
        self.n, self.length = n, length

    def __iter__(self):
        return iter(range(self.n))

    def __len__(self):
        if self.length is None:
            raise TypeError("object of type 'Count' has no len()")
        return self.length


def lists(loader):
    return [batch.tolist() for batch in loader]


def test_batches():
    loader = DataLoader(range(7), batch_size=3)
    assert len(loader) == 3
    assert lists(loader) == lists(loader) == [[0, 1, 2], [3, 4, 5], [6]]
    assert lists(DataLoader(range(7), 3, drop_last=True)) == [[0, 1, 2], [3, 4, 5]]
    assert lists(DataLoader(range(3))) == [[0], [1], [2]]
    assert lists(DataLoader([])) == []


def test_shuffling():
    loader = DataLoader(range(100), batch_size=100, shuffle=True)
    (first,), (second,) = lists(loader), lists(loader)
    assert sorted(first) == sorted(second) == list(range(100))
    assert first != second
    assert isinstance(loader.sampler, RandomSampler)


def test_equal_seeds_give_equal_batches():
    def batches(**options):
        return lists(DataLoader(range(20), 4, shuffle=True, **options))

    torch.manual_seed(1)
    first = batches()
    torch.manual_seed(1)
    assert batches() == first
    assert batches(generator=torch.Generator().manual_seed(2)) == batches(generator=torch.Generator().manual_seed(2))


def test_one_number_is_drawn_per_epoch_and_one_for_the_order():
    def drawn(loader):
        torch.manual_seed(0)
        list(loader)
        return torch.rand(1).item()

    def after(draws):
        torch.manual_seed(0)
        for _ in range(draws):
            torch.empty((), dtype=torch.int64).random_()
        return torch.rand(1).item()

    assert drawn(DataLoader(range(4))) == after(1)
    assert drawn(DataLoader(range(4), shuffle=True)) == after(2)
    assert drawn(DataLoader(range(4), generator=torch.Generator())) == after(0)


def test_without_batches():
    assert list(DataLoader(range(3), batch_size=None)) == [0, 1, 2]
    rows = list(DataLoader(TensorDataset(torch.arange(4).reshape(2, 2)), batch_size=None))
    assert [row[0].tolist() for row in rows] == [[0, 1], [2, 3]]
    whole = DataLoader(range(10), sampler=[range(3), range(5)], batch_size=None, collate_fn=list)
    assert list(whole.sampler) == [range(3), range(5)]


def test_samplers_of_the_caller():
    assert lists(DataLoader(range(10), sampler=[3, 1], batch_size=2)) == [[3, 1]]
    assert lists(DataLoader(range(10), batch_sampler=[[5], [6, 7]])) == [[5], [6, 7]]
    sampler = BatchSampler(SequentialSampler(range(4)), 2, False)
    loader = DataLoader(range(4), batch_sampler=sampler)
    assert loader.batch_size is None
    assert len(loader) == 2
    assert lists(loader) == [[0, 1], [2, 3]]


def test_collate_fn():
    assert list(DataLoader(range(4), 2, collate_fn=sum)) == [1, 5]
    assert list(DataLoader(range(2), None, collate_fn=lambda sample: -sample)) == [0, -1]


def test_datasets_that_give_many_at_once():
    class Many(Dataset):
        def __getitems__(self, indices):
            return [index * 2 for index in indices]

        def __len__(self):
            return 5

    assert lists(DataLoader(Many(), 2)) == [[0, 2], [4, 6], [8]]


def test_tensors_are_selected_as_rows_are_stacked():
    """Rows of plain tensors are taken out at once; the batches are those of one row after the other."""

    class Rows(TensorDataset):
        pass

    tensors = (
        torch.arange(24.0).reshape(8, 3),
        torch.arange(8),
        torch.zeros(8, 0),
        torch.arange(16).reshape(8, 2).t().t(),
    )
    for plain, slow in ((TensorDataset(*tensors), Rows(*tensors)),):
        for index in ([0, 5, 2], [7], [3, 3], [-1, 0]):
            fast_batch = next(iter(DataLoader(plain, batch_sampler=[index])))
            slow_batch = next(iter(DataLoader(slow, batch_sampler=[index])))
            assert type(fast_batch) is type(slow_batch) is list
            for a, b in zip(fast_batch, slow_batch, strict=True):
                assert (a.dtype, a.shape, a.stride(), a.tolist()) == (b.dtype, b.shape, b.stride(), b.tolist())
        with pytest.raises(IndexError):
            next(iter(DataLoader(plain, batch_sampler=[[8]])))
    part, _ = random_split(TensorDataset(torch.arange(10)), [6, 4], torch.Generator().manual_seed(0))
    assert [batch[0].tolist() for batch in DataLoader(part, 4)] == [part.indices[:4], part.indices[4:]]


def test_tensors_with_gradients_keep_them():
    weight = torch.arange(4.0, requires_grad=True)
    ((batch,),) = [next(iter(DataLoader(TensorDataset(weight), 2)))]
    batch.sum().backward()
    assert weight.grad.tolist() == [1.0, 1.0, 0.0, 0.0]


def test_batches_are_no_views():
    data = torch.zeros(4)
    for (batch,) in DataLoader(TensorDataset(data), 2):
        batch.add_(1)
    assert data.tolist() == [0.0] * 4


def test_iterable():
    assert lists(DataLoader(Count(5), 2)) == [[0, 1], [2, 3], [4]]
    assert lists(DataLoader(Count(5), 2, drop_last=True)) == [[0, 1], [2, 3]]
    assert lists(DataLoader(Count(4), 2)) == [[0, 1], [2, 3]]
    assert list(DataLoader(Count(2), None)) == [0, 1]
    assert lists(DataLoader(Count(0), 2)) == []


def test_length_of_iterable():
    assert len(DataLoader(Count(9, 5), 2)) == 3
    assert len(DataLoader(Count(9, 5), 2, drop_last=True)) == 2
    assert len(DataLoader(Count(9, 5), None)) == 5
    with pytest.raises(TypeError, match="has no len"):
        len(DataLoader(Count(9)))
    loader = DataLoader(Count(3, 2))
    len(loader)
    with pytest.warns(UserWarning, match="reported to be 2 .* but 3 samples have been fetched"):
        list(loader)


def test_iterators_are_independent():
    loader = DataLoader(range(4), 2)
    first, second = iter(loader), iter(loader)
    assert next(first).tolist() == next(second).tolist() == [0, 1]
    assert next(first).tolist() == [2, 3]
    with pytest.raises(StopIteration):
        next(first)
    with pytest.raises(StopIteration):
        next(first)
    assert iter(second) is second
    assert len(second) == 2
    with pytest.raises(NotImplementedError):
        __import__("pickle").dumps(second)


def test_errors_of_the_dataset_come_through():
    class Broken(Dataset):
        def __len__(self):
            return 3

        def __getitem__(self, index):
            if index == 1:
                raise KeyError("broken")
            return index

    iterator = iter(DataLoader(Broken()))
    assert next(iterator).tolist() == [0]
    with pytest.raises(KeyError, match="broken"):
        next(iterator)
    assert next(iterator).tolist() == [2]


def test_no_worker_here():
    assert get_worker_info() is None


def test_pin_memory_is_accepted():
    with pytest.warns(UserWarning, match="no accelerator is found, then device pinned memory won't be used"):
        assert lists(DataLoader(range(2), pin_memory=True)) == [[0], [1]]
    with pytest.warns(UserWarning, match="pin_memory_device is deprecated"):
        list(DataLoader(range(2), pin_memory=True, pin_memory_device="cuda"))


REFUSED = [
    ({"num_workers": -1}, "num_workers option should be non-negative; use num_workers=0 to disable multiprocessing."),
    ({"timeout": -1}, "timeout option should be non-negative"),
    ({"prefetch_factor": 2}, "prefetch_factor option could only be specified in multiprocessing"),
    ({"prefetch_factor": -1, "num_workers": 1}, "prefetch_factor option should be non-negative"),
    ({"persistent_workers": True}, "persistent_workers option needs num_workers > 0"),
    ({"sampler": [1], "shuffle": True}, "sampler option is mutually exclusive with shuffle"),
    ({"batch_sampler": [[1]], "batch_size": 2}, "batch_sampler option is mutually exclusive with batch_size"),
    ({"batch_sampler": [[1]], "drop_last": True}, "batch_sampler option is mutually exclusive with batch_size"),
    ({"batch_sampler": [[1]], "shuffle": True}, "batch_sampler option is mutually exclusive with batch_size"),
    ({"batch_sampler": [[1]], "sampler": [1]}, "batch_sampler option is mutually exclusive with batch_size"),
    ({"batch_size": None, "drop_last": True}, "batch_size=None option disables auto-batching"),
    ({"batch_size": 0}, "batch_size should be a positive integer value, but got batch_size=0"),
    ({"batch_size": 2.0}, "batch_size should be a positive integer value, but got batch_size=2.0"),
    ({"multiprocessing_context": "fork"}, "multiprocessing_context can only be used with multi-process loading"),
    ({"multiprocessing_context": "spork", "num_workers": 1}, "should specify a valid start method in"),
]


@pytest.mark.parametrize(("options", "message"), REFUSED, ids=[str(options) for options, _ in REFUSED])
def test_contradicting_options(options, message):
    with pytest.raises(ValueError, match=message):
        DataLoader(range(4), **options)


@pytest.mark.parametrize("options", [{"shuffle": True}, {"sampler": [1]}, {"batch_sampler": [[1]]}], ids=str)
def test_options_that_iterable_datasets_have_no_use_for(options):
    (name,) = options
    with pytest.raises(ValueError, match=f"DataLoader with IterableDataset: expected unspecified {name} option"):
        DataLoader(Count(3), **options)


def test_other_refusals():
    with pytest.raises(TypeError, match="valid context object or a string"):
        DataLoader(range(4), num_workers=1, multiprocessing_context=3)
    with pytest.raises(ValueError, match="num_samples=0"):
        DataLoader([], shuffle=True)
    loader = DataLoader(range(4))
    for name in ("batch_size", "batch_sampler", "sampler", "drop_last", "dataset", "persistent_workers"):
        with pytest.raises(ValueError, match=f"{name} attribute should not be set after DataLoader is initialized"):
            setattr(loader, name, None)
    loader.timeout = 3


def test_too_many_workers():
    with pytest.warns(UserWarning, match="This DataLoader will create 5000 worker processes in total"):
        DataLoader(range(4), num_workers=5000)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        DataLoader(range(4), num_workers=1)
