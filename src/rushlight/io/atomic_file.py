"""Files that appear whole or not at all, whatever happens to the process that writes them."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

WRITE_LIMIT = 1 << 30  # one write call takes less than 2 GiB on every system
LARGE = 1 << 26  # from here on, space is claimed in advance and memory released


class _Options:
    """What the functions below set for the whole process."""

    sync_to_disk = False


def get_sync_options() -> bool:
    """Whether writing a file waits until the disk has it."""
    return _Options.sync_to_disk


def set_sync_options(sync_to_disk: bool) -> None:
    """Choose whether writing a file waits until the disk has it, before it takes the old one's place.

    Without, the default as in PyTorch, a file outlives the process at any moment, but a machine that loses its power
    within seconds of the writing may lose it, on some file systems with the file that it replaced.
    """
    _Options.sync_to_disk = sync_to_disk


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
    """The output into a file that is to take another's place once it is complete."""

    def __init__(self, descriptor: int) -> None:
        super().__init__(descriptor)
        self._written = self._reserved = 0

    def reserve(self, nbytes: int) -> None:
        """Claim disk space for a large output: a full disk is noticed before anything is written, and writing is faster."""
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
        return done

    def finish(self) -> None:
        """Give back space that was claimed and not used, and wait for the disk if that is asked for."""
        if self._reserved > self._written:
            os.ftruncate(self._descriptor, self._written)
        if _Options.sync_to_disk:
            os.fsync(self._descriptor)


@contextlib.contextmanager
def atomic_output(path: str | os.PathLike[str]) -> Iterator[Output]:
    """An output that becomes the file ``path`` when the block ends, and leaves no trace when it does not.

    The bytes go to a file beside ``path``, which takes the old file's place in one step: whenever the process ends,
    there is either the whole old file or the whole new one (see `set_sync_options` for machines that lose their
    power). On Linux the new file has no name until it is complete, so even a killed process leaves nothing behind.
    Links are followed, permissions kept; a path that is not a regular file (a pipe, a device) is written directly.

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
    _release_cache(target)
    try:
        yield temporary
        if os.path.exists(target):
            os.chmod(temporary, stat.S_IMODE(os.stat(target).st_mode))
        if _Options.sync_to_disk:
            _sync(temporary)
        os.replace(temporary, target)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
        raise
    _sync_name(os.path.dirname(target))


def _release_cache(path: str) -> None:
    """Let the system forget what it keeps in memory of a large file that is about to be replaced.

    The new file then finds memory that is warm, where it would wait for more than twice as much; what is not on the disk
    yet is kept.
    """
    if not hasattr(os, "posix_fadvise"):
        return
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:  # there is no old file, or none that may be read
        return
    try:
        if os.fstat(descriptor).st_size >= LARGE:
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    finally:
        os.close(descriptor)


def _temporary_name(target: str) -> str:
    folder, base = os.path.split(target)
    return os.path.join(folder, f".{base[:200]}.{os.urandom(8).hex()}.tmp")


@contextlib.contextmanager
def _replacement(target: str, folder: str, mode: int | None) -> Iterator[ReplacingOutput]:
    """The output into a new file that replaces ``target`` at the end of the block."""
    temporary = _temporary_name(target)
    _release_cache(target)
    descriptor, named = _open_unnamed(folder), False
    if descriptor is None:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
        named = True
    output = ReplacingOutput(descriptor)
    try:
        yield output
        if mode is not None:
            os.fchmod(descriptor, stat.S_IMODE(mode))
        output.finish()
        if not named:
            # Naming a directory makes Python call linkat, which follows the link in /proc to the file itself.
            os.link(f"/proc/self/fd/{descriptor}", temporary, src_dir_fd=descriptor, follow_symlinks=True)
            named = True
        os.replace(temporary, target)
        named = False
        _sync_name(folder)
    finally:
        os.close(descriptor)
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


def _sync(path: str) -> None:
    """Wait until the disk has what ``path`` names."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _sync_name(folder: str) -> None:
    """Wait for the new name too, if that is asked for; some file systems cannot, and the file is whole either way."""
    if _Options.sync_to_disk:
        with contextlib.suppress(OSError):
            _sync(folder)
