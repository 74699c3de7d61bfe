"""Files that appear whole or not at all, whatever happens to the process that writes them."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator
    from concurrent.futures import Future, ThreadPoolExecutor

WRITE_LIMIT = 1 << 30  # one write call takes less than 2 GiB on every system
LARGE = 1 << 26  # what is claimed in advance, and sent to the disk before the end


class Output:
    """An unbuffered output that takes any bytes-like object and writes all of it."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def write(self, data: Any) -> int:
        view = memoryview(data)
        done = 0
        while done < len(view):
            done += os.write(self._descriptor, view[done : done + WRITE_LIMIT])
        return done


class ReplacingOutput(Output):
    """The output into a file that is to take another's place once it is on the disk.

    Large files claim their space in advance and start on their way to the disk while they are written: measured, this
    halves the time until they are safe there.
    """

    def __init__(self, descriptor: int) -> None:
        super().__init__(descriptor)
        self._written = self._reserved = self._unsynced = 0
        self._executor: ThreadPoolExecutor | None = None
        self._syncs: list[Future[None]] = []

    def reserve(self, nbytes: int) -> None:
        """Claim disk space for a large output, so that a full disk is noticed before anything is written."""
        if nbytes < LARGE or not hasattr(os, "posix_fallocate"):
            return
        try:
            os.posix_fallocate(self._descriptor, 0, nbytes)
            self._reserved = nbytes
        except OSError as error:
            if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
                raise
            # Some file systems cannot claim space; they say so when it runs out.

    def write(self, data: Any) -> int:
        done = super().write(data)
        self._written += done
        self._unsynced += done
        if self._unsynced >= LARGE:
            self._sync_early()
        return done

    def _sync_early(self) -> None:
        if self._executor is None:
            from concurrent.futures import ThreadPoolExecutor

            self._executor = ThreadPoolExecutor(1, "sync")
        if all(sync.done() for sync in self._syncs):
            self._syncs.append(self._executor.submit(os.fsync, self._descriptor))
            self._unsynced = 0

    def sync(self) -> None:
        """Wait until everything is on the disk."""
        if self._reserved > self._written:
            os.ftruncate(self._descriptor, self._written)
        for sync in self._syncs:
            sync.result()  # an error is reported to one call only
        os.fsync(self._descriptor)

    def close(self) -> None:
        if self._executor is not None:
            self._executor.shutdown()
        os.close(self._descriptor)


@contextlib.contextmanager
def atomic_output(path: str | os.PathLike[str]) -> Iterator[Output]:
    """An output that becomes the file ``path`` when the block ends, and leaves no trace when it does not.

    The bytes go to a file beside ``path``, reach the disk, and take the old file's place in one step: after a crash at
    any moment there is either the whole old file or the whole new one. On Linux the new file has no name until it is
    complete, so even a killed process leaves nothing behind. Links are followed, permissions kept; a path that is
    not a regular file (a pipe, a device) is written directly.

    Raises ``RuntimeError`` when the file cannot be opened or written, as ``torch.save`` does.
    """
    name = os.fspath(path)
    target = os.path.realpath(name)
    try:
        mode = os.stat(target).st_mode
    except OSError:
        mode = None
    folder = os.path.dirname(target)
    if not os.path.isdir(folder):
        raise RuntimeError(f"Parent directory {os.path.dirname(name) or folder} does not exist.")
    if mode is not None and stat.S_ISDIR(mode):
        raise RuntimeError(f"{name}: open file failed with strerror: Is a directory")
    try:
        if mode is not None and not stat.S_ISREG(mode):
            with open(target, "wb", buffering=0) as file:
                yield Output(file.fileno())
        else:
            with _replacement(target, folder, mode) as output:
                yield output
    except OSError as error:
        old = "" if mode is None or not stat.S_ISREG(mode) else "; the old file is unchanged"
        raise RuntimeError(f"{name}: writing failed with strerror: {error.strerror or error}{old}") from error


@contextlib.contextmanager
def atomic_path(path: str | os.PathLike[str]) -> Iterator[str]:
    """The path of a file beside ``path``, for another library to write, that replaces ``path`` at the block's end."""
    target = os.path.realpath(path)
    temporary = _temporary_name(target)
    try:
        yield temporary
        descriptor = os.open(temporary, os.O_RDONLY)
        try:
            if os.path.exists(target):
                os.fchmod(descriptor, stat.S_IMODE(os.stat(target).st_mode))
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        os.replace(temporary, target)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
        raise
    _sync_folder(os.path.dirname(target))


def _temporary_name(target: str) -> str:
    folder, base = os.path.split(target)
    return os.path.join(folder, f".{base[:200]}.{os.urandom(8).hex()}.tmp")


@contextlib.contextmanager
def _replacement(target: str, folder: str, mode: int | None) -> Iterator[ReplacingOutput]:
    """The output into a new file that replaces ``target`` at the end of the block."""
    temporary = _temporary_name(target)
    descriptor, named = _open_unnamed(folder), False
    if descriptor is None:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
        named = True
    output = ReplacingOutput(descriptor)
    try:
        yield output
        if mode is not None:
            os.fchmod(descriptor, stat.S_IMODE(mode))
        output.sync()
        if not named:
            # Naming a directory makes Python call linkat, which follows the link in /proc to the file itself.
            os.link(f"/proc/self/fd/{descriptor}", temporary, src_dir_fd=descriptor, follow_symlinks=True)
            named = True
        os.replace(temporary, target)
        named = False
        _sync_folder(folder)
    finally:
        output.close()
        if named:
            os.unlink(temporary)


def _open_unnamed(folder: str) -> int | None:
    """A new file without a name in ``folder``, where the system and the file system can make one."""
    if not hasattr(os, "O_TMPFILE") or not os.path.isdir("/proc/self/fd"):
        return None
    try:
        return os.open(folder, os.O_WRONLY | os.O_TMPFILE | os.O_CLOEXEC, 0o666)
    except OSError:
        return None


def _sync_folder(folder: str) -> None:
    """Let the new name reach the disk too; some file systems cannot, and the file is whole either way."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        with contextlib.suppress(OSError):
            os.fsync(descriptor)
    finally:
        os.close(descriptor)
