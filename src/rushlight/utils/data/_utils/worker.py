"""The process that fetches batches for a loader."""

from __future__ import annotations

import os
import pickle
import random
import select
import sys
from collections import deque
from typing import TYPE_CHECKING, Any

import rushlight

from .channel import Channel
from .exception import ExceptionWrapper
from .fetch import IterableFetcher, MapFetcher
from .request import Assignment, Ended, Fetch, Request, Resume, Resumed
from .shared_block import BlockWriter
from .transfer import BatchSender
from .worker_info import WorkerInfo, get_worker_info, set_worker_info

if TYPE_CHECKING:
    import socket

    from ....multiprocessing.shared_file import SharedFile

__all__ = ["WorkerInfo", "get_worker_info", "work"]

PARENT_CHECK_SECONDS = 5.0


def work(assignment: Assignment, sock: socket.socket, file: SharedFile) -> None:
    """Answer requests until the loader says stop or is gone. The body of a worker's process."""
    try:
        _Worker(assignment, Channel(sock), BlockWriter(file)).run()
    except KeyboardInterrupt:
        pass  # the loader's process gets it too, and reports it
    except (EOFError, BrokenPipeError, ConnectionResetError):
        pass  # the loader is gone
    sys.stdout.flush()
    sys.stderr.flush()


class _Worker:
    def __init__(self, assignment: Assignment, channel: Channel, blocks: BlockWriter) -> None:
        self._assignment = assignment
        self._channel = channel
        self._blocks = blocks
        self._sender = BatchSender(blocks)
        self._requests: deque[Request] = deque()
        self._parent = os.getppid()
        self._where = f"in DataLoader worker process {assignment.worker_id}"
        self._fetcher: MapFetcher | IterableFetcher | None = None
        self._failure: ExceptionWrapper | None = None

    def run(self) -> None:
        self._prepare()
        self._start_epoch()
        while True:
            request = self._next_request()
            if isinstance(request, Fetch):
                self._blocks.release(request.returned)
                self._answer(request.task, self._fetch(request.index))
            elif isinstance(request, Resume):
                self._failure = None
                self._start_epoch()
                self._answer(-1, Resumed(self._assignment.worker_id))
            else:
                return

    def _prepare(self) -> None:
        """Set the seeds and call the user's function, as every worker does once."""
        worker_id, base_seed = self._assignment.worker_id, self._assignment.base_seed
        rushlight.set_num_threads(1)
        seed = base_seed + worker_id
        random.seed(seed)
        rushlight.manual_seed(seed)
        seed_numpy(base_seed, worker_id)
        set_worker_info(
            WorkerInfo(
                id=worker_id, num_workers=self._assignment.num_workers, seed=seed, dataset=self._assignment.dataset
            )
        )
        try:
            if self._assignment.init_fn is not None:
                self._assignment.init_fn(worker_id)
        except Exception:
            self._failure = ExceptionWrapper(self._where)

    def _start_epoch(self) -> None:
        given = self._assignment
        kind = IterableFetcher if given.iterable else MapFetcher
        try:
            self._fetcher = kind(given.dataset, given.auto_collation, given.collate_fn, given.drop_last)
        except Exception:
            self._failure = self._failure or ExceptionWrapper(self._where)

    def _fetch(self, index: Any) -> Any:
        if self._failure is not None:
            failure, self._failure = self._failure, None
            return failure
        if self._fetcher is None:
            return Ended(self._assignment.worker_id)
        try:
            return self._fetcher.fetch(index)
        except Exception as error:
            if isinstance(error, StopIteration) and self._assignment.iterable:
                self._fetcher = None
                return Ended(self._assignment.worker_id)
            # The wrapper holds text only: a traceback would keep the frames, and the batch, alive.
            return ExceptionWrapper(self._where)

    def _answer(self, task: int, value: Any) -> None:
        try:
            message = self._sender.message(task, value)
        except Exception:
            message = self._failure_message(task, value)
        self._channel.post(message)

    def _failure_message(self, task: int, value: Any) -> bytes:
        """The message for a result that cannot be pickled, be it a batch or an exception."""
        failure = value if isinstance(value, ExceptionWrapper) else ExceptionWrapper(self._where)
        if failure is value:
            failure.exc_type = RuntimeError  # its own class exists only here
        return self._sender.message(task, failure)

    def _next_request(self) -> Request:
        while not self._requests:
            events = select.POLLIN | (select.POLLOUT if self._channel.unsent else 0)
            poll = select.poll()
            poll.register(self._channel, events)
            ready = poll.poll(PARENT_CHECK_SECONDS * 1000)
            if not ready and os.getppid() != self._parent:
                raise EOFError
            self._channel.flush()
            if ready and ready[0][1] & ~select.POLLOUT:
                self._requests += [pickle.loads(message) for message in self._channel.receive()]
        return self._requests.popleft()


def seed_numpy(base_seed: int, worker_id: int) -> None:
    """Seed NumPy's global generator differently in every worker, with the state that PyTorch would give it."""
    import numpy

    mask = 0xFFFFFFFF
    words = numpy.random.SeedSequence([worker_id, base_seed & mask, base_seed >> 32 & mask, 0])
    numpy.random.seed(words.generate_state(4))
