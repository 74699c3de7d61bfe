"""Loaders: batches of a dataset, made here or by worker processes."""

from __future__ import annotations

import warnings
import weakref
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import rushlight

from ._utils.collate import default_collate, default_convert
from ._utils.exception import ExceptionWrapper
from ._utils.fetch import IterableFetcher, MapFetcher
from ._utils.request import Assignment, Ended, Resumed
from ._utils.worker_info import WorkerInfo, get_worker_info
from .dataset import Dataset, IterableDataset
from .sampler import BatchSampler, RandomSampler, Sampler, SequentialSampler

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from multiprocessing.context import BaseContext

    from rushlight import Generator

    from ._utils.workers import Workers

__all__ = ["DataLoader", "WorkerInfo", "default_collate", "default_convert", "get_worker_info"]

_T_co = TypeVar("_T_co", covariant=True)

DEFAULT_PREFETCH_FACTOR = 2
HANGING_JOIN_SECONDS = 0.5  # for the end of workers that have not answered in time


class _DatasetKind:
    """How a dataset gives its samples."""

    Map = 0
    Iterable = 1


class _InfiniteConstantSampler(Sampler[None]):
    """The indices of an iterable dataset: none, for ever."""

    def __iter__(self) -> Iterator[None]:
        while True:
            yield None


class DataLoader(Generic[_T_co]):
    """Batches of a dataset, epoch by epoch.

    Arguments are PyTorch's. ``num_workers`` processes make batches ahead, ``prefetch_factor`` each; their tensors
    arrive in shared memory. ``generator`` seeds the sampler and the workers. ``pin_memory`` is accepted and does
    nothing on a CPU. An exception in a worker is raised here, with its traceback; a worker that dies or, beyond
    ``timeout`` seconds, does not answer is reported with ``RuntimeError``. Contradicting arguments raise
    ``ValueError``.
    """

    dataset: Dataset[_T_co]
    batch_size: int | None
    num_workers: int
    pin_memory: bool
    drop_last: bool
    timeout: float
    sampler: Sampler[Any] | Iterable[Any]
    prefetch_factor: int | None
    _iterator: _BaseDataLoaderIter | None
    __initialized = False
    __multiprocessing_context: Any = None

    def __init__(
        self,
        dataset: Dataset[_T_co],
        batch_size: int | None = 1,
        shuffle: bool | None = None,
        sampler: Sampler[Any] | Iterable[Any] | None = None,
        batch_sampler: Sampler[list[Any]] | Iterable[list[Any]] | None = None,
        num_workers: int = 0,
        collate_fn: Callable[[list[Any]], Any] | None = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        timeout: float = 0,
        worker_init_fn: Callable[[int], None] | None = None,
        multiprocessing_context: BaseContext | str | None = None,
        generator: Generator | None = None,
        *,
        prefetch_factor: int | None = None,
        persistent_workers: bool = False,
        pin_memory_device: str = "",
        in_order: bool = True,
    ) -> None:
        _check_worker_options(num_workers, timeout, prefetch_factor, persistent_workers)
        self.dataset = dataset
        if num_workers:
            from ._utils import workers  # noqa: F401 - loaded now, not in the time of the first epoch
        self.num_workers = num_workers
        self.prefetch_factor = DEFAULT_PREFETCH_FACTOR if num_workers and prefetch_factor is None else prefetch_factor
        self.pin_memory = pin_memory
        self.pin_memory_device = pin_memory_device
        self.timeout = timeout
        self.worker_init_fn = worker_init_fn
        self.in_order = in_order
        self.multiprocessing_context = multiprocessing_context
        if isinstance(dataset, IterableDataset):
            self._dataset_kind = _DatasetKind.Iterable
            _check_iterable_options(shuffle, sampler, batch_sampler)
        else:
            self._dataset_kind = _DatasetKind.Map
            shuffle = bool(shuffle)
        if sampler is not None and shuffle:
            raise ValueError("sampler option is mutually exclusive with shuffle")
        if batch_sampler is not None:
            if batch_size != 1 or shuffle or sampler is not None or drop_last:
                raise ValueError(
                    "batch_sampler option is mutually exclusive with batch_size, shuffle, sampler, and drop_last"
                )
            batch_size, drop_last = None, False
        elif batch_size is None and drop_last:
            raise ValueError("batch_size=None option disables auto-batching and is mutually exclusive with drop_last")
        if sampler is None:
            sampler = self._default_sampler(bool(shuffle), generator)
        if batch_size is not None:
            batch_sampler = BatchSampler(sampler, batch_size, drop_last)
        self.batch_size = batch_size
        self.drop_last = drop_last
        self.sampler = sampler
        self.batch_sampler = batch_sampler
        self.generator = generator
        self.collate_fn = collate_fn or (default_collate if self._auto_collation else default_convert)
        self.persistent_workers = persistent_workers
        self._IterableDataset_len_called: int | None = None
        self._iterator = None
        self.__initialized = True
        self.check_worker_number_rationality()

    def _default_sampler(self, shuffle: bool, generator: Generator | None) -> Sampler[Any]:
        if self._dataset_kind == _DatasetKind.Iterable:
            return _InfiniteConstantSampler()
        if shuffle:
            return RandomSampler(self.dataset, generator=generator)  # type: ignore[arg-type]
        return SequentialSampler(self.dataset)  # type: ignore[arg-type]

    @property
    def multiprocessing_context(self) -> BaseContext | None:
        """How worker processes are started: a start method's name or a context of ``multiprocessing``."""
        context: BaseContext | None = self.__multiprocessing_context
        return context

    @multiprocessing_context.setter
    def multiprocessing_context(self, context: BaseContext | str | None) -> None:
        if context is not None:
            if self.num_workers == 0:
                raise ValueError(
                    "multiprocessing_context can only be used with multi-process loading (num_workers > 0), but got "
                    f"num_workers={self.num_workers}"
                )
            context = _context_of(context)
        self.__multiprocessing_context = context

    def __setattr__(self, name: str, value: Any) -> None:
        if self.__initialized and name in _FIXED_ATTRIBUTES:
            raise ValueError(f"{name} attribute should not be set after {type(self).__name__} is initialized")
        super().__setattr__(name, value)

    def __iter__(self) -> _BaseDataLoaderIter:
        if not (self.persistent_workers and self.num_workers > 0):
            return self._get_iterator()
        if self._iterator is None:
            self._iterator = self._get_iterator()
        else:
            self._iterator._reset(self)
        return self._iterator

    def _get_iterator(self) -> _BaseDataLoaderIter:
        if self.num_workers == 0:
            return _SingleProcessDataLoaderIter(self)
        self.check_worker_number_rationality()
        return _MultiProcessingDataLoaderIter(self)

    @property
    def _auto_collation(self) -> bool:
        return self.batch_sampler is not None

    @property
    def _index_sampler(self) -> Any:
        return self.sampler if self.batch_sampler is None else self.batch_sampler

    def __len__(self) -> int:
        if self._dataset_kind == _DatasetKind.Map:
            return len(self._index_sampler)
        length = self._IterableDataset_len_called = len(self.dataset)  # type: ignore[arg-type]
        if self.batch_size is None:
            return length
        return length // self.batch_size if self.drop_last else -(-length // self.batch_size)

    def check_worker_number_rationality(self) -> None:
        """Warn when there are more workers than processors that this process may use."""
        if not self.num_workers:
            return
        available = _available_processors()
        if available is not None and self.num_workers > available:
            warnings.warn(
                f"This DataLoader will create {self.num_workers} worker processes in total. Our suggested max number "
                f"of worker in current system is {available}, which is smaller than what this DataLoader is going to "
                "create. Please be aware that excessive worker creation might get DataLoader running slow or even "
                "freeze, lower the worker number to avoid potential slowness/freeze if necessary.",
                stacklevel=3,
            )


_FIXED_ATTRIBUTES = frozenset({"batch_size", "batch_sampler", "sampler", "drop_last", "dataset", "persistent_workers"})


def _check_worker_options(
    num_workers: int, timeout: float, prefetch_factor: int | None, persistent_workers: bool
) -> None:
    if num_workers < 0:
        raise ValueError("num_workers option should be non-negative; use num_workers=0 to disable multiprocessing.")
    if timeout < 0:
        raise ValueError("timeout option should be non-negative")
    if num_workers == 0 and prefetch_factor is not None:
        raise ValueError(
            "prefetch_factor option could only be specified in multiprocessing.let num_workers > 0 to enable "
            "multiprocessing, otherwise set prefetch_factor to None."
        )
    if prefetch_factor is not None and prefetch_factor < 0:
        raise ValueError("prefetch_factor option should be non-negative")
    if persistent_workers and num_workers == 0:
        raise ValueError("persistent_workers option needs num_workers > 0")


def _check_iterable_options(shuffle: Any, sampler: Any, batch_sampler: Any) -> None:
    if shuffle not in (None, False):
        raise ValueError(
            f"DataLoader with IterableDataset: expected unspecified shuffle option, but got shuffle={shuffle}"
        )
    for name, value in (("sampler", sampler), ("batch_sampler", batch_sampler)):
        if value is not None:
            raise ValueError(
                f"DataLoader with IterableDataset: expected unspecified {name} option, but got {name}={value}"
            )


def _context_of(context: Any) -> BaseContext:
    import multiprocessing
    from multiprocessing.context import BaseContext

    if isinstance(context, str):
        valid = multiprocessing.get_all_start_methods()
        if context not in valid:
            raise ValueError(
                f"multiprocessing_context option should specify a valid start method in {valid!r}, but got "
                f"multiprocessing_context={context!r}"
            )
        return multiprocessing.get_context(context)
    if not isinstance(context, BaseContext):
        raise TypeError(
            "multiprocessing_context option should be a valid context object or a string specifying the start "
            f"method, but got multiprocessing_context={context}"
        )
    return context


def _available_processors() -> int | None:
    import os

    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count()


class _BaseDataLoaderIter(Iterator[Any]):
    """One epoch of a loader, or several with persistent workers."""

    def __init__(self, loader: DataLoader[Any]) -> None:
        self._dataset = loader.dataset
        self._dataset_kind = loader._dataset_kind
        self._auto_collation = loader._auto_collation
        self._drop_last = loader.drop_last
        self._index_sampler = loader._index_sampler
        self._num_workers = loader.num_workers
        self._timeout = loader.timeout
        self._collate_fn = loader.collate_fn
        self._persistent_workers = loader.persistent_workers
        self._IterableDataset_len_called = loader._IterableDataset_len_called
        self._num_yielded = 0
        if loader.pin_memory:
            _warn_of_pinning(loader)
        self._sampler_iter = iter(self._index_sampler)
        self._base_seed = int(rushlight.empty((), dtype=rushlight.int64).random_(generator=loader.generator).item())

    def __iter__(self) -> _BaseDataLoaderIter:
        return self

    def _reset(self, loader: DataLoader[Any]) -> None:
        self._sampler_iter = iter(self._index_sampler)
        self._num_yielded = 0
        self._IterableDataset_len_called = loader._IterableDataset_len_called

    def _next_data(self) -> Any:
        raise NotImplementedError

    def __next__(self) -> Any:
        data = self._next_data()
        self._num_yielded += 1
        expected = self._IterableDataset_len_called
        if expected is not None and self._dataset_kind == _DatasetKind.Iterable and self._num_yielded > expected:
            self._warn_of_length(expected)
        return data

    def _warn_of_length(self, expected: int) -> None:
        message = (
            f"Length of IterableDataset {self._dataset} was reported to be {expected} (when accessing "
            f"len(dataloader)), but {self._num_yielded} samples have been fetched. "
        )
        if self._num_workers > 0:
            message += (
                "For multiprocessing data-loading, this could be caused by not properly configuring the "
                "IterableDataset replica at each worker. Please see "
                "https://pytorch.org/docs/stable/data.html#torch.utils.data.IterableDataset for examples."
            )
        warnings.warn(message, stacklevel=3)

    def __len__(self) -> int:
        return len(self._index_sampler)

    def __getstate__(self) -> Any:
        raise NotImplementedError("{} cannot be pickled", type(self).__name__)


def _warn_of_pinning(loader: DataLoader[Any]) -> None:
    if loader.pin_memory_device:
        warnings.warn(
            "pin_memory_device is deprecated, the current accelerator will be used as the device,"
            f"ignore pin_memory_device='{loader.pin_memory_device}'.",
            stacklevel=4,
        )
    warnings.warn(
        "'pin_memory' argument is set as true but no accelerator is found, then device pinned memory won't be used.",
        stacklevel=4,
    )


class _SingleProcessDataLoaderIter(_BaseDataLoaderIter):
    """An epoch whose batches are made here, when they are asked for."""

    def __init__(self, loader: DataLoader[Any]) -> None:
        super().__init__(loader)
        kind = IterableFetcher if self._dataset_kind == _DatasetKind.Iterable else MapFetcher
        self._dataset_fetcher = kind(self._dataset, self._auto_collation, self._collate_fn, self._drop_last)

    def _next_data(self) -> Any:
        return self._dataset_fetcher.fetch(next(self._sampler_iter))


class _MultiProcessingDataLoaderIter(_BaseDataLoaderIter):
    """An epoch whose batches are made by workers, ahead of time.

    Tasks are numbered. Each goes to the next worker in turn, so that which worker makes which batch, and with it the
    worker's random numbers, does not depend on timing; results wait in ``_results`` until their turn comes. With
    ``in_order=False`` tasks go to workers that have fewest, and results are given as they come.
    """

    def __init__(self, loader: DataLoader[Any]) -> None:
        super().__init__(loader)
        from ._utils.workers import Workers

        self._prefetch_factor = loader.prefetch_factor or 0
        self._in_order = loader.in_order
        context = loader.multiprocessing_context
        if context is None:
            import multiprocessing

            context = multiprocessing.get_context()
        assignments = [
            Assignment(
                worker_id=worker_id,
                num_workers=self._num_workers,
                dataset=self._dataset,
                iterable=self._dataset_kind == _DatasetKind.Iterable,
                auto_collation=self._auto_collation,
                collate_fn=self._collate_fn,
                drop_last=self._drop_last,
                base_seed=self._base_seed,
                init_fn=loader.worker_init_fn,
            )
            for worker_id in range(self._num_workers)
        ]
        self._workers: Workers = Workers(context, assignments)
        self._finalizer = weakref.finalize(self, self._workers.shut_down)
        self._begin()

    def _reset(self, loader: DataLoader[Any]) -> None:
        super()._reset(loader)
        self._workers.resume()
        waiting = self._num_workers
        while waiting:
            # Batches of an epoch that was left early come before a worker's answer, and go unused.
            waiting -= sum(isinstance(value, Resumed) for _, value in self._receive())
        self._begin()

    def _begin(self) -> None:
        self._next_task = 0  # the number of the next task to give out
        self._next_result = 0  # the number of the next result to yield, in order
        self._results: dict[int, Any] = {}
        self._worker_of_task: dict[int, int] = {}
        self._open_tasks = [0] * self._num_workers
        self._active = [True] * self._num_workers
        self._turn = 0
        for _ in range(self._prefetch_factor * self._num_workers):
            self._give_task()

    def _give_task(self) -> None:
        """Give the next index to the worker whose turn it is, if there is one of each."""
        worker = self._choose_worker()
        if worker is None:
            return
        try:
            index = next(self._sampler_iter)
        except StopIteration:
            return
        self._turn = (worker + 1) % self._num_workers
        self._worker_of_task[self._next_task] = worker
        self._open_tasks[worker] += 1
        self._workers.fetch(worker, self._next_task, index)
        self._next_task += 1

    def _choose_worker(self) -> int | None:
        for step in range(self._num_workers):
            worker = (self._turn + step) % self._num_workers
            if self._active[worker] and (self._in_order or self._open_tasks[worker] < self._prefetch_factor):
                return worker
        return None

    def _next_data(self) -> Any:
        while True:
            task = self._ready_task()
            if task is None:
                self._end_epoch()
                raise StopIteration
            if task in self._results:
                value = self._results.pop(task)
                self._finish(task, value)
                if isinstance(value, ExceptionWrapper):
                    value.reraise()
                if not isinstance(value, Ended):
                    return value
            else:
                for received, value in self._receive():
                    self._store(received, value)

    def _ready_task(self) -> int | None:
        """The task whose result is to be yielded next, whether it is here or not; None at the end of the epoch."""
        if not self._worker_of_task:
            self._give_task()  # with prefetch_factor=0 nothing is asked for in advance
            if not self._worker_of_task:
                return None
        if not self._in_order:
            return next(iter(self._results), next(iter(self._worker_of_task)))
        return next(iter(self._worker_of_task))

    def _store(self, task: int, value: Any) -> None:
        self._results[task] = value
        if isinstance(value, Ended):
            self._active[value.worker_id] = False

    def _finish(self, task: int, value: Any) -> None:
        """Forget a task whose result is used, and give out another in its place."""
        self._open_tasks[self._worker_of_task.pop(task)] -= 1
        self._give_task()

    def _receive(self) -> list[tuple[int, Any]]:
        """The results that arrive next. Raises ``RuntimeError`` if none do in time, or a worker has died."""
        answers = self._workers.wait(self._timeout or None)
        if not answers:
            self._workers.patience = HANGING_JOIN_SECONDS
            raise RuntimeError(f"DataLoader timed out after {self._timeout} seconds")
        return answers

    def _end_epoch(self) -> None:
        if not self._persistent_workers:
            self._finalizer()
