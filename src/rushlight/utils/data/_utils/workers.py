"""The worker processes of one loader, from their start to their end."""

from __future__ import annotations

import contextlib
import os
import pickle
import select
import signal
import time
from typing import TYPE_CHECKING, Any

import numpy.random  # noqa: F401 - every worker seeds it, so it is imported once, before they start

from ....multiprocessing.shared_file import SharedFile
from .channel import Channel
from .request import Assignment, Fetch, Request, Resume, Stop
from .shared_block import BlockReader, forking_workers
from .transfer import BatchReceiver
from .worker import work

if TYPE_CHECKING:
    from collections.abc import Sequence
    from multiprocessing.context import BaseContext

JOIN_SECONDS = 5.0


class Worker:
    """One process, the channel to it, and the blocks it shares with the loader."""

    def __init__(self, context: BaseContext, assignment: Assignment) -> None:
        self.file = SharedFile()
        self.receiver = BatchReceiver(BlockReader(self.file))
        self.channel, theirs = Channel.pair()
        self.process = context.Process(  # type: ignore[attr-defined]  # every concrete context has it
            target=work, args=(assignment, theirs, self.file), daemon=True
        )
        with theirs, forking_workers():
            self.process.start()

    def send(self, request: Request) -> None:
        """Send a request; a worker that is gone is noticed when its answers are waited for."""
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self.channel.post(pickle.dumps(request, 5))

    def fetch(self, task: int, index: Any) -> None:
        self.send(Fetch(task, index, self.receiver.blocks.take_returned()))

    def answers(self) -> list[tuple[int, Any]]:
        """The tasks and results that have arrived."""
        try:
            return [self.receiver.open(message) for message in self.channel.receive()]
        except EOFError:
            return []

    def death(self) -> str:
        """How the process ended, in PyTorch's words."""
        code = self.process.exitcode
        name = f"DataLoader worker (pid {self.process.pid})"
        if code is not None and code < 0:
            hint = (
                " It is possible that dataloader's workers are out of shared memory." if -code == signal.SIGBUS else ""
            )
            return f"{name} is killed by signal: {signal.strsignal(-code)}.{hint} "
        return (
            f"{name} exited unexpectedly with exit code {code}. Details are lost due to multiprocessing. "
            "Rerunning with num_workers=0 may give better error trace."
        )


class Workers:
    """All workers of a loader: starts them, waits for them, ends them, each thing once."""

    def __init__(self, context: BaseContext, assignments: Sequence[Assignment]) -> None:
        self.patience = JOIN_SECONDS  # how long the end of a worker is waited for before it is forced
        self._owner = os.getpid()
        self._death: RuntimeError | None = None
        self._workers: list[Worker] = []
        self._poll = select.poll()
        self._by_descriptor: dict[int, Worker] = {}
        try:
            for assignment in assignments:
                self._start(context, assignment)
        except BaseException:
            self.shut_down()
            raise

    def _start(self, context: BaseContext, assignment: Assignment) -> None:
        worker = Worker(context, assignment)
        self._workers.append(worker)
        for descriptor in (worker.channel.fileno(), worker.process.sentinel):
            self._by_descriptor[descriptor] = worker
            self._poll.register(descriptor, select.POLLIN)

    def fetch(self, worker: int, task: int, index: Any) -> None:
        """Ask a worker for a batch, and return to it the blocks that are no longer read."""
        if self._death is None:
            self._workers[worker].fetch(task, index)

    def resume(self) -> None:
        """Ask every worker to start another epoch."""
        for worker in self._workers:
            worker.send(Resume())

    def wait(self, timeout: float | None) -> list[tuple[int, Any]]:
        """The answers that arrive next, none if ``timeout`` seconds pass first.

        Raises ``RuntimeError`` when a worker has ended, after the answers that it gave.
        """
        if self._death is not None:
            raise self._death
        deadline = None if timeout is None else time.monotonic() + timeout
        while True:
            for worker in self._workers:
                if worker.channel.unsent:
                    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                        worker.channel.flush()
            waiting = any(worker.channel.unsent for worker in self._workers)
            left = None if deadline is None else max(0.0, deadline - time.monotonic())
            ready = self._poll.poll(_milliseconds(left, 0.01 if waiting else None))
            workers = dict.fromkeys(self._by_descriptor[descriptor] for descriptor, _ in ready)
            answers = [answer for worker in workers for answer in worker.answers()]
            if answers:
                return answers
            self._check(workers)
            if left == 0.0:
                return []

    def _check(self, workers: dict[Worker, None]) -> None:
        """Report workers that have ended, having given all their answers."""
        dead = []
        for worker in workers:
            worker.process.join(0.1)  # a closed channel comes a moment before the end of its process
            if worker.process.exitcode is not None:
                dead.append(worker)
        if dead:
            pids = ", ".join(str(worker.process.pid) for worker in dead)
            cause = RuntimeError(dead[0].death())
            self._death = RuntimeError(f"DataLoader worker (pid(s) {pids}) exited unexpectedly: {cause}")
            self.shut_down()
            raise self._death from cause

    def shut_down(self) -> None:
        """End all workers, by force those that do not answer in time, and let go of everything shared with them."""
        if os.getpid() != self._owner:
            return
        workers, self._workers = self._workers, []
        for worker in workers:
            worker.send(Stop())
        deadline = time.monotonic() + self.patience
        for worker in workers:
            worker.process.join(max(0.0, deadline - time.monotonic()))
            if worker.process.exitcode is None:
                worker.process.terminate()
                worker.process.join(JOIN_SECONDS)
            if worker.process.exitcode is None:
                worker.process.kill()
                worker.process.join()
            worker.channel.close()
            worker.file.close()
            worker.process.close()


def _milliseconds(*seconds: float | None) -> float | None:
    """The shortest of the given times, None for no limit."""
    given = [value for value in seconds if value is not None]
    return min(given) * 1000 if given else None
