"""Loaders with workers: the same batches as without, in shared memory, from processes that leave nothing behind."""

import gc
import multiprocessing
import os
import random
import signal
import subprocess
import sys
import textwrap
import time

import numpy as np
import pytest

import rushlight as torch
from rushlight import nn
from rushlight.utils.data import DataLoader, Dataset, IterableDataset, TensorDataset, get_worker_info
from rushlight.utils.data._utils import shared_block

pytestmark = pytest.mark.filterwarnings("ignore:This DataLoader will create")


class Squares(Dataset):
    def __init__(self, n=20, shape=()):
        self.n, self.shape = n, shape

    def __len__(self):
        return self.n

    def __getitem__(self, index):
        return torch.full(self.shape, float(index * index)), index


class Noise(Dataset):
    """Random numbers of every generator that a worker seeds."""

    def __len__(self):
        return 16

    def __getitem__(self, index):
        return index, random.random(), np.random.rand(), torch.rand(2)


class Shard(IterableDataset):
    """A stream of which every worker yields a part, of a length of its own."""

    def __init__(self, lengths):
        self.lengths = lengths

    def __iter__(self):
        worker = get_worker_info()
        return iter([worker.id * 100 + i for i in range(self.lengths[worker.id])])


class Returned(Dataset):
    """Gives the items of a list as they are."""

    def __init__(self, items):
        self.items = items

    def __len__(self):
        return len(self.items)

    def __getitem__(self, index):
        return self.items[index]


def first(samples):
    return samples[0]


def lists(loader):
    return [[part.tolist() for part in batch] for batch in loader]


def children():
    return len(multiprocessing.active_children())


def open_files():
    return len(os.listdir("/proc/self/fd"))


@pytest.mark.parametrize("workers", [1, 2, 3])
@pytest.mark.parametrize(
    "options", [{}, {"drop_last": True}, {"prefetch_factor": 5}, {"persistent_workers": True}], ids=str
)
def test_same_batches_in_the_same_order(workers, options):
    expected = lists(DataLoader(Squares(), 3, drop_last=options.get("drop_last", False)))
    loader = DataLoader(Squares(), 3, num_workers=workers, **options)
    assert lists(loader) == lists(loader) == expected
    assert len(loader) == len(expected)
    del loader
    assert children() == 0


def test_equal_seeds_give_equal_random_numbers():
    def batches(**options):
        torch.manual_seed(4)
        return lists(DataLoader(Noise(), 4, shuffle=True, num_workers=2, **options))

    first_run = batches()
    assert batches() == first_run
    assert batches(prefetch_factor=4) == first_run
    every = [number for batch in first_run for part in batch[1:] for number in np.ravel(part)]
    assert len(set(every)) == len(every)


def test_epochs_differ_in_their_random_numbers():
    loader = DataLoader(Noise(), 4, num_workers=2)
    assert lists(loader) != lists(loader)


def test_worker_info():
    class Info(Dataset):
        def __len__(self):
            return 4

        def __getitem__(self, index):
            info = get_worker_info()
            assert info.dataset is self
            try:
                info.id = 5
            except RuntimeError as error:
                return info.id, info.num_workers, info.seed, str(error), repr(info)[:25], torch.get_num_threads()

    rows = list(DataLoader(Info(), None, num_workers=2))
    assert [row[:2] for row in rows] == [[0, 2], [1, 2], [0, 2], [1, 2]]
    assert rows[1][2] - rows[0][2] == 1
    assert {row[3] for row in rows} == {"Cannot assign attributes to WorkerInfo objects"}
    assert rows[0][4] == "WorkerInfo(id=0, num_work"
    assert {row[5] for row in rows} == {1}


def test_worker_init_fn():
    class Marked(Returned):
        def __getitem__(self, index):
            return self.mark

    def mark(worker_id):
        info = get_worker_info()
        assert info.id == worker_id
        info.dataset.mark = worker_id + 10

    dataset = Marked(list(range(4)))
    assert list(DataLoader(dataset, None, num_workers=2, worker_init_fn=mark)) == [10, 11, 10, 11]
    assert not hasattr(dataset, "mark")


@pytest.mark.parametrize(
    ("lengths", "expected"),
    [
        ([5, 2], [[0, 1], [100, 101], [2, 3], [4]]),
        ([1, 5], [[0], [100, 101], [102, 103], [104]]),
        ([0, 0], []),
        ([4, 0, 3], [[0, 1], [200, 201], [2, 3], [202]]),
    ],
)
@pytest.mark.parametrize("persistent", [False, True])
def test_iterable(lengths, expected, persistent):
    loader = DataLoader(Shard(lengths), 2, num_workers=len(lengths), persistent_workers=persistent)
    assert [batch.tolist() for batch in loader] == expected
    assert [batch.tolist() for batch in loader] == expected


def test_iterable_without_batches():
    assert list(DataLoader(Shard([2, 3]), None, num_workers=2)) == [0, 100, 1, 101, 102]


def test_out_of_order():
    class Slow(Dataset):
        def __len__(self):
            return 6

        def __getitem__(self, index):
            time.sleep(0.3 if index == 0 else 0)
            return index

    given = list(DataLoader(Slow(), None, num_workers=2, in_order=False))
    assert sorted(given) == list(range(6))
    assert given[0] != 0
    assert list(DataLoader(Slow(), None, num_workers=2)) == list(range(6))


def test_what_a_batch_may_hold():
    parameter = nn.Parameter(torch.ones(2))
    items = [
        torch.arange(100_000.0),
        torch.arange(12.0).reshape(3, 4).t(),
        torch.zeros(0, 3),
        torch.tensor(True),
        torch.arange(1000)[::7],
        torch.ones(1).expand(5),
        torch.ones(3, requires_grad=True),
        parameter,
        np.arange(50_000.0).reshape(100, 500),
        np.arange(10)[::3],
        {"text": "x" * 100_000, "nested": [(torch.ones(2), None)]},
        [],
        b"bytes" * 1000,
        torch.arange(6, dtype=torch.int8),
        torch.ones(4, dtype=torch.bfloat16),
    ]
    for item, got in zip(items, DataLoader(Returned(items), None, num_workers=2, collate_fn=lambda x: x), strict=True):
        assert type(got) is type(item)
        if isinstance(item, torch.Tensor):
            assert (got.dtype, got.shape, got.requires_grad) == (item.dtype, item.shape, item.requires_grad)
            assert got.tolist() == item.tolist()
            if got.is_contiguous():
                got.detach().zero_()  # it may be written to
        elif isinstance(item, np.ndarray):
            assert got.tolist() == item.tolist()
            got += 1
        elif isinstance(item, dict):
            assert got["text"] == item["text"]
            assert got["nested"][0][0].tolist() == [1.0, 1.0]
        else:
            assert got == item


def test_strides_and_shared_memory_of_a_sample_are_kept():
    base = torch.arange(40_000.0).reshape(200, 200)
    sample = {"whole": base, "turned": base.t(), "row": base[3]}
    (got,) = DataLoader(Returned([sample]), None, num_workers=1, collate_fn=lambda x: x)
    assert got["turned"].stride() == (1, 200)
    assert got["whole"].untyped_storage().data_ptr() == got["turned"].untyped_storage().data_ptr()
    got["whole"][3, 5] = -1.0
    assert got["turned"][5, 3] == -1.0
    assert got["row"].tolist() == base[3].tolist()


def test_a_small_view_does_not_bring_its_large_storage():
    big = torch.zeros(1 << 20)
    (got,) = DataLoader(Returned([big[5:7]]), None, num_workers=1, collate_fn=lambda x: x)
    assert got.untyped_storage().nbytes() == 8


@pytest.mark.parametrize("shape", [(), (300, 300)])
def test_batches_that_are_kept_stay_as_they_are(shape):
    """More batches are kept than there are blocks to lend; none is overwritten by a later one."""
    loader = DataLoader(Squares(100, shape), 1, num_workers=2)
    kept = [batch for _ in range(2) for batch in loader]
    assert len(kept) > 2 * shared_block.MOST_LEASES
    assert all((values == index.item() ** 2).all() for values, index in kept)


def test_batches_outlive_their_loader():
    loader = DataLoader(Squares(8, (200, 200)), 2, num_workers=2)
    batches = list(loader)
    views = [values[1, 0, :5] for values, _ in batches]
    arrays = [values.numpy()[0] for values, _ in batches]
    del loader, batches
    gc.collect()
    assert [view[0].item() for view in views] == [1.0, 9.0, 25.0, 49.0]
    assert [array[0, 0] for array in arrays] == [0.0, 4.0, 16.0, 36.0]


def test_growing_batches():
    items = [torch.full((size,), float(size)) for size in (20_000, 50_000, 30_000, 200_000, 20_000, 400_000) * 3]
    for item, got in zip(items, DataLoader(Returned(items), None, num_workers=2, collate_fn=lambda x: x), strict=True):
        assert got.shape == item.shape
        assert (got == item[0]).all()


def test_a_process_forked_by_the_caller_keeps_the_batches_it_sees():
    """A batch that a fork has come to see is not written to again, even when this process lets go of it."""
    iterator = iter(DataLoader(Squares(60, (200, 200)), 1, num_workers=1))
    batch = next(iterator)
    numbers = batch[0].numpy()  # NumPy starts no threads, which a forked process does not have
    go = os.pipe()
    child = os.fork()
    if child == 0:
        os.read(go[0], 1)
        os._exit(0 if (numbers == 0.0).all() else 3)
    del batch, numbers
    for other in iterator:
        assert (other[0] == other[1].item() ** 2).all()
    os.write(go[1], b"x")
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    for descriptor in go:
        os.close(descriptor)


def test_large_indices_and_results_do_not_block_each_other():
    """Neither end waits for the other to read, whatever the sizes of what they say."""
    dataset = Returned(["x" * 3000] * 300)
    index = list(range(300)) * 200
    loader = DataLoader(dataset, batch_sampler=[index] * 6, num_workers=1, prefetch_factor=6, collate_fn=len)
    assert list(loader) == [len(index)] * 6
    texts = DataLoader(dataset, batch_sampler=[index[:600]] * 8, num_workers=1, prefetch_factor=8, collate_fn=list)
    assert [len(batch) for batch in texts] == [600] * 8


def test_persistent_workers_stay():
    class Pid(Dataset):
        def __len__(self):
            return 4

        def __getitem__(self, index):
            return os.getpid()

    loader = DataLoader(Pid(), None, num_workers=2, persistent_workers=True)
    assert set(loader) == set(loader)
    assert iter(loader) is iter(loader)
    assert len(set(loader) | set(DataLoader(Pid(), None, num_workers=2))) == 4
    iterator = iter(loader)
    next(iterator)
    assert len(list(loader)) == 4  # what is left of an epoch that was given up is not mixed into the next


def test_several_loaders_at_a_time():
    first_loader = iter(DataLoader(Squares(), None, num_workers=2))
    second_loader = iter(DataLoader(Squares(), None, num_workers=2))
    pairs = list(zip(first_loader, second_loader, strict=True))
    assert [a[1] for a, _ in pairs] == [b[1] for _, b in pairs] == list(range(20))
    del first_loader, second_loader, pairs
    assert children() == 0


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_start_methods(method):
    if method not in multiprocessing.get_all_start_methods():
        pytest.skip(f"this system has no {method}")
    dataset = TensorDataset(torch.arange(50_000.0).reshape(5, 10_000), torch.arange(5))
    loader = DataLoader(dataset, 2, num_workers=1, multiprocessing_context=method)
    assert loader.multiprocessing_context.get_start_method() == method
    assert [batch[1].tolist() for batch in loader] == [[0, 1], [2, 3], [4]]
    other = DataLoader(dataset, 5, num_workers=1, multiprocessing_context=multiprocessing.get_context(method))
    ((values, _),) = other
    assert values[4, 9_999].item() == 49_999.0


def test_start_method_can_be_changed():
    loader = DataLoader(Squares(), num_workers=1)
    loader.multiprocessing_context = "fork"
    assert loader.multiprocessing_context.get_start_method() == "fork"
    assert len(list(loader)) == 20


# What is left behind.


def test_nothing_is_left_after_an_epoch_or_a_part_of_one():
    gc.collect()
    before = open_files()
    for _ in range(3):
        list(DataLoader(Squares(8, (200, 200)), 2, num_workers=2))
        for _batch in DataLoader(Squares(8, (200, 200)), 2, num_workers=2):
            break
        next(iter(DataLoader(Squares(), num_workers=2)))
    del _batch
    gc.collect()
    assert children() == 0
    assert open_files() <= before + 1  # the standard library opens a source of random bytes once


@pytest.mark.parametrize("persistent", [False, True])
def test_a_hundred_epochs_need_what_two_need(persistent):
    loader = DataLoader(Squares(12, (100, 100)), 3, num_workers=2, persistent_workers=persistent)

    def resident():
        with open("/proc/self/statm") as statm:
            return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    for epoch in range(100):
        assert sum(len(index) for _, index in loader) == 12
        if epoch == 2:
            gc.collect()
            files, processes, memory = open_files(), children(), resident()
    gc.collect()
    assert open_files() == files
    assert children() == processes
    assert resident() - memory < 8 << 20


ENDINGS = {
    "at exit": "",
    "by an exception": "raise SystemExit(7)",
    "by a signal": "os.kill(os.getpid(), signal.SIGKILL)",
    "by an exit without cleaning": "os._exit(3)",
}


@pytest.mark.parametrize("ending", ENDINGS)
def test_workers_end_with_their_program(ending, tmp_path):
    """However the program ends, while its loaders are at work, no worker is left."""
    script = tmp_path / "program.py"
    script.write_text(
        textwrap.dedent(
            """
            import os, signal, sys
            from rushlight.utils.data import DataLoader
            persistent = DataLoader(range(1000), num_workers=2, persistent_workers=True)
            iterators = [iter(persistent), iter(DataLoader(range(1000), num_workers=1))]
            for iterator in iterators:
                next(iterator)
            workers = [worker.process.pid for it in iterators for worker in it._workers._workers]
            print(*workers, flush=True)
            """
        )
        + ENDINGS[ending]
        + "\n"
    )
    finished = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=60, check=False)
    pids = list(map(int, finished.stdout.split()))
    assert len(pids) == 3, finished.stderr
    deadline = time.monotonic() + 15
    left = pids
    while left and time.monotonic() < deadline:
        left = [pid for pid in left if os.path.exists(f"/proc/{pid}") and state_of(pid) != "Z"]
        time.sleep(0.05)
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    assert left == []
    if ending == "at exit":
        assert finished.stderr == ""


def state_of(pid):
    try:
        with open(f"/proc/{pid}/stat") as stat:
            return stat.read().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return "Z"
