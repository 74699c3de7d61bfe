"""Running one function in several processes, and reporting the first that fails."""

from __future__ import annotations

import contextlib
import multiprocessing
import multiprocessing.connection
import signal
import sys
import time
import traceback
import warnings
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from multiprocessing.context import BaseContext
    from multiprocessing.process import BaseProcess

__all__ = [
    "ProcessContext",
    "ProcessException",
    "ProcessExitedException",
    "ProcessRaisedException",
    "SpawnContext",
    "spawn",
    "start_processes",
]

LONGEST_REPORT = 1 << 15  # fits into a pipe, so that a failing process never waits for a reader
TERMINATION_SECONDS = 30.0


class ProcessException(Exception):
    """A process failed; ``error_index`` says which."""

    def __init__(self, msg: str, error_index: int, pid: int) -> None:
        super().__init__(msg)
        self.msg = msg
        self.error_index = error_index
        self.pid = pid

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.msg, self.error_index, self.pid)


class ProcessRaisedException(ProcessException):
    """A process raised an exception."""

    def __init__(self, msg: str, error_index: int, error_pid: int) -> None:
        super().__init__(msg, error_index, error_pid)


class ProcessExitedException(ProcessException):
    """A process ended with an exit code or by a signal."""

    def __init__(
        self, msg: str, error_index: int, error_pid: int, exit_code: int, signal_name: str | None = None
    ) -> None:
        super().__init__(msg, error_index, error_pid)
        self.exit_code = exit_code
        self.signal_name = signal_name

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.msg, self.error_index, self.pid, self.exit_code, self.signal_name)


def _run(fn: Callable[..., Any], index: int, args: tuple[Any, ...], errors: Any) -> None:
    """The body of a process: an exception goes to the parent as the text of its traceback."""
    _end_with_parent()
    try:
        fn(index, *args)
    except KeyboardInterrupt:
        pass  # the parent gets it too, and reports it
    except Exception:
        errors.put(traceback.format_exc()[-LONGEST_REPORT:])
        sys.exit(1)


def _end_with_parent() -> None:
    """Ask Linux for an interrupt when the parent dies, so that no process is left behind."""
    if sys.platform == "linux":
        import ctypes

        pr_set_pdeathsig = 1
        ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGINT)


class ProcessContext:
    """The processes that `start_processes` started."""

    def __init__(self, processes: Sequence[BaseProcess], error_queues: Sequence[Any]) -> None:
        self.processes = processes
        self.error_queues = error_queues
        self.sentinels = {process.sentinel: index for index, process in enumerate(processes)}

    def pids(self) -> list[int | None]:
        """The identifiers of the processes."""
        return [process.pid for process in self.processes]

    def join(self, timeout: float | None = None, grace_period: float | None = None) -> bool:
        """Wait until some process ends, or for ``timeout`` seconds; True when all have ended well.

        When one has failed, ends all others, after ``grace_period`` seconds if that is given, and raises
        `ProcessRaisedException` or `ProcessExitedException`.
        """
        if not self.sentinels:
            return True
        ready = multiprocessing.connection.wait(list(self.sentinels), timeout=timeout)
        failed = None
        for sentinel in ready:
            index = self.sentinels.pop(sentinel)  # type: ignore[arg-type]  # these are descriptors
            process = self.processes[index]
            process.join()
            if process.exitcode != 0:
                failed = index
                break
        if failed is None:
            return not self.sentinels
        self._end_all(grace_period)
        return self._report(failed)

    def _end_all(self, grace_period: float | None) -> None:
        if grace_period is not None:
            deadline = time.monotonic() + grace_period
            for process in self.processes:
                process.join(max(0.0, deadline - time.monotonic()))
        for process in self.processes:
            if process.is_alive():
                process.terminate()
        deadline = time.monotonic() + TERMINATION_SECONDS
        for process in self.processes:
            process.join(max(0.0, deadline - time.monotonic()))
            if process.is_alive():
                process.kill()
                process.join()

    def _report(self, index: int) -> NoReturn:
        process = self.processes[index]
        pid, exit_code = process.pid or 0, process.exitcode or 0
        if not self.error_queues[index].empty():
            report = self.error_queues[index].get()
            raise ProcessRaisedException(
                f"\n\n-- Process {index} terminated with the following error:\n{report}", index, pid
            )
        if exit_code < 0:
            name = str(-exit_code)
            with contextlib.suppress(ValueError):
                name = signal.Signals(-exit_code).name
            raise ProcessExitedException(f"process {index} terminated with signal {name}", index, pid, exit_code, name)
        raise ProcessExitedException(f"process {index} terminated with exit code {exit_code}", index, pid, exit_code)


class SpawnContext(ProcessContext):
    """The processes that `spawn` started."""


def start_processes(
    fn: Callable[..., Any],
    args: tuple[Any, ...] = (),
    nprocs: int = 1,
    join: bool = True,
    daemon: bool = False,
    start_method: str = "spawn",
) -> ProcessContext | None:
    """Run ``fn(i, *args)`` in ``nprocs`` processes.

    Waits for all of them and returns None, or with ``join=False`` returns their context. Raises
    `ProcessRaisedException` or `ProcessExitedException` for the first that fails, after ending the others.
    """
    context: BaseContext = multiprocessing.get_context(start_method)
    queues, processes = [], []
    for index in range(nprocs):
        queue = context.SimpleQueue()
        process = context.Process(target=_run, args=(fn, index, args, queue), daemon=daemon)  # type: ignore[attr-defined]
        process.start()
        queues.append(queue)
        processes.append(process)
    kind = SpawnContext if start_method == "spawn" else ProcessContext
    started = kind(processes, queues)
    if not join:
        return started
    while not started.join():
        continue
    return None


def spawn(
    fn: Callable[..., Any],
    args: tuple[Any, ...] = (),
    nprocs: int = 1,
    join: bool = True,
    daemon: bool = False,
    start_method: str = "spawn",
) -> ProcessContext | None:
    """Run ``fn(i, *args)`` in ``nprocs`` fresh processes; see `start_processes`."""
    if start_method != "spawn":
        warnings.warn(
            f"This method only supports start_method=spawn (got: {start_method}).\nTo use a different start_method "
            "use:\n\t\t torch.multiprocessing.start_processes(...)",
            FutureWarning,
            stacklevel=2,
        )
    return start_processes(fn, args, nprocs, join, daemon, start_method="spawn")
