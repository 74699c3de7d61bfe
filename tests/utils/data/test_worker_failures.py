"""Workers that raise, hang, are killed or end: each is reported, and nothing is left behind."""

import gc
import multiprocessing
import os
import signal
import sys
import time

import pytest

import rushlight as torch
from rushlight.utils.data import DataLoader, Dataset, IterableDataset


class TwoArguments(Exception):
    def __init__(self, first, second):
        super().__init__(first)


class Misbehaving(Dataset):
    """Nine good samples, and one whose fetching goes wrong."""

    def __init__(self, action, at=5):
        self.action, self.at = action, at

    def __len__(self):
        return 10

    def __getitem__(self, index):
        if index == self.at:
            self.action()
        return index


def raising(error):
    def action():
        raise error

    return action


def killing(number):
    return lambda: os.kill(os.getpid(), number)


def run(action, **options):
    """The samples that came, the exception after them, and the iterator."""
    iterator, samples = iter(DataLoader(Misbehaving(action), None, num_workers=2, **options)), []
    try:
        samples.extend(iterator)
    except Exception as error:
        return samples, error, iterator
    return samples, None, iterator


@pytest.fixture(autouse=True)
def nothing_is_left():
    yield
    gc.collect()
    assert multiprocessing.active_children() == []


def test_an_exception_comes_with_its_traceback():
    samples, error, iterator = run(raising(ValueError("bad sample")))
    assert samples == [0, 1, 2, 3, 4]
    assert type(error) is ValueError
    text = str(error)
    assert text.startswith(
        "Caught ValueError in DataLoader worker process 1.\nOriginal Traceback (most recent call last):"
    )
    assert "in __getitem__" in text
    assert "test_worker_failures.py" in text
    assert text.endswith("ValueError: bad sample\n")
    assert list(iterator) == [6, 7, 8, 9]


def test_a_key_error_keeps_its_line_breaks():
    _, error, _ = run(raising(KeyError("absent")))
    assert type(error) is KeyError
    assert "\nKeyError: 'absent'\n" in str(error)


def test_exceptions_that_cannot_be_made_again():
    _, error, iterator = run(raising(TwoArguments("one", "two")))
    assert type(error) is RuntimeError
    assert str(error).startswith("Caught TwoArguments in DataLoader worker process 1.")
    assert list(iterator) == [6, 7, 8, 9]


def test_exceptions_of_classes_that_only_the_worker_knows():
    def action():
        class Secret(Exception):
            pass

        raise Secret("told")

    samples, error, iterator = run(action)
    assert samples == [0, 1, 2, 3, 4]
    assert type(error) is RuntimeError
    assert "Secret: told" in str(error)
    assert list(iterator) == [6, 7, 8, 9]


def test_samples_that_cannot_be_sent():
    class Unsendable(Dataset):
        def __len__(self):
            return 3

        def __getitem__(self, index):
            return (lambda: 1) if index == 1 else index

    iterator = iter(DataLoader(Unsendable(), None, num_workers=1, collate_fn=lambda x: x))
    assert next(iterator) == 0
    with pytest.raises((AttributeError, TypeError), match=r"(?s)in DataLoader worker process 0.*lambda"):
        next(iterator)
    assert next(iterator) == 2


def test_tensors_with_a_history_are_not_sent():
    class Computed(Dataset):
        def __len__(self):
            return 1

        def __getitem__(self, index):
            return torch.ones(2, requires_grad=True) * 2

    with pytest.raises(RuntimeError, match="Cowardly refusing to serialize non-leaf tensor which requires_grad"):
        list(DataLoader(Computed(), None, num_workers=1))


def test_errors_of_worker_init_fn_and_collate_fn():
    def fail(argument):
        raise OSError("no scratch space")

    with pytest.raises(OSError, match=r"(?s)Caught OSError in DataLoader worker process 0.*no scratch space"):
        list(DataLoader(range(3), num_workers=1, worker_init_fn=fail))
    with pytest.raises(OSError, match="no scratch space"):
        list(DataLoader(range(3), num_workers=1, collate_fn=fail))


def test_errors_of_iterable_datasets():
    class NeverStarts(IterableDataset):
        def __iter__(self):
            raise ValueError("never starts")

    class Stops(IterableDataset):
        def __iter__(self):
            yield 1
            raise ValueError("stops early")

    with pytest.raises(ValueError, match="never starts"):
        list(DataLoader(NeverStarts(), None, num_workers=1))
    iterator = iter(DataLoader(Stops(), None, num_workers=1))
    assert next(iterator) == 1
    with pytest.raises(ValueError, match="stops early"):
        next(iterator)


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (signal.SIGKILL, "is killed by signal: Killed. "),
        (signal.SIGTERM, "is killed by signal: Terminated. "),
        (signal.SIGSEGV, "is killed by signal: Segmentation fault. "),
        (signal.SIGBUS, "out of shared memory"),
    ],
)
def test_a_killed_worker_is_noticed(number, words):
    started = time.monotonic()
    samples, error, iterator = run(killing(number))
    assert samples == [0, 1, 2, 3, 4]
    assert type(error) is RuntimeError
    assert "DataLoader worker (pid(s) " in str(error)
    assert "exited unexpectedly" in str(error)
    assert words in str(error)
    assert words in str(error.__cause__)
    assert time.monotonic() - started < 20
    with pytest.raises(RuntimeError, match="exited unexpectedly"):
        next(iterator)


@pytest.mark.parametrize("code", [0, 3])
def test_a_worker_that_exits_is_noticed(code):
    for action in (lambda: os._exit(code), lambda: sys.exit(code)):
        _, error, _ = run(action)
        assert type(error) is RuntimeError
        assert f"exited unexpectedly with exit code {code}" in str(error)


def test_a_worker_killed_while_nobody_waits():
    iterator = iter(DataLoader(range(100), None, num_workers=2))
    assert next(iterator) == 0
    os.kill(iterator._workers._workers[1].process.pid, signal.SIGKILL)
    time.sleep(0.2)
    with pytest.raises(RuntimeError, match="is killed by signal: Killed"):
        list(iterator)


def test_a_hanging_worker_is_reported_and_ended():
    samples, error, iterator = run(lambda: time.sleep(600), timeout=0.5)
    assert samples == [0, 1, 2, 3, 4]
    assert type(error) is RuntimeError
    assert str(error) == "DataLoader timed out after 0.5 seconds"
    with pytest.raises(RuntimeError, match=r"DataLoader timed out after 0.5 seconds"):
        next(iterator)


def test_a_worker_that_ignores_being_asked_to_end():
    def stubborn():
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        while True:
            time.sleep(600)

    from rushlight.utils.data._utils import workers

    before, workers.JOIN_SECONDS = workers.JOIN_SECONDS, 0.5
    try:
        _, error, iterator = run(stubborn, timeout=0.5)
        assert "timed out" in str(error)
        pids = [worker.process.pid for worker in iterator._workers._workers]
        iterator._finalizer()
        assert not any(os.path.exists(f"/proc/{pid}") for pid in pids)
    finally:
        workers.JOIN_SECONDS = before


def test_a_slow_worker_is_no_hanging_worker():
    samples, error, _ = run(lambda: time.sleep(0.5), timeout=20)
    assert samples == list(range(10))
    assert error is None


def test_processes_that_cannot_be_started(monkeypatch):
    from multiprocessing.context import ForkProcess

    started = []
    start = ForkProcess.start

    def fail_at_second(self):
        started.append(self)
        if len(started) == 2:
            raise OSError("no more processes")
        start(self)

    monkeypatch.setattr(ForkProcess, "start", fail_at_second)
    with pytest.raises(OSError, match="no more processes"):
        iter(DataLoader(range(3), num_workers=2, multiprocessing_context="fork"))


def test_interrupting_the_loader_ends_its_workers():
    def interrupt(number, frame):
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        iterator = iter(DataLoader(Misbehaving(lambda: time.sleep(600), at=0), None, num_workers=1))
        iterator._workers.patience = 0.5
        signal.setitimer(signal.ITIMER_REAL, 0.3)
        with pytest.raises(KeyboardInterrupt):
            next(iterator)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
