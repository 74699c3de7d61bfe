"""A file is replaced whole or not at all, by whatever the writing ends."""

import errno
import gc
import os
import pathlib
import resource
import signal
import stat

import pytest

import rushlight as torch
from rushlight.io import atomic_file, npz, safetensors


@pytest.fixture
def synced():
    """Files that wait for the disk."""
    torch.serialization.set_sync_options(True)
    yield
    torch.serialization.set_sync_options(False)


def leftovers(folder):
    return sorted(os.listdir(folder))


def test_replaces_and_keeps_permissions(tmp_path):
    path = tmp_path / "m.pt"
    torch.save([1], path)
    umask = os.umask(0)
    os.umask(umask)
    assert stat.S_IMODE(path.stat().st_mode) == 0o666 & ~umask
    path.chmod(0o640)
    torch.save([2], path)
    assert torch.load(path) == [2]
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert leftovers(tmp_path) == ["m.pt"]


def test_follows_links(tmp_path):
    (tmp_path / "versions").mkdir()
    target, link = tmp_path / "versions" / "1.pt", tmp_path / "latest.pt"
    torch.save([1], target)
    link.symlink_to(target)
    torch.save([2], link)
    assert link.is_symlink()
    assert torch.load(target) == [2]


def test_one_who_reads_the_old_file_keeps_it(tmp_path):
    path = tmp_path / "m.pt"
    torch.save(torch.arange(1000), path)
    mapped = torch.load(path, mmap=True)
    torch.save(torch.zeros(1000), path)
    assert mapped.tolist() == list(range(1000))


@pytest.mark.parametrize("zipped", [True, False])
def test_an_error_in_the_middle_leaves_the_old_file(tmp_path, monkeypatch, zipped):
    path = tmp_path / "m.pt"
    torch.save([1], path)
    before = path.read_bytes()
    calls = []

    def full(descriptor, data):
        calls.append(len(data))
        if len(calls) > 1:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return write(descriptor, data)

    write = os.write
    monkeypatch.setattr(atomic_file.os, "write", full)
    with pytest.raises(RuntimeError, match="No space left on device; the old file is unchanged") as caught:
        torch.save(torch.ones(10), path, _use_new_zipfile_serialization=zipped)
    monkeypatch.undo()
    assert str(path) in str(caught.value)
    assert path.read_bytes() == before
    assert leftovers(tmp_path) == ["m.pt"]


def test_a_full_disk(tmp_path):
    with pytest.raises(RuntimeError, match="/dev/full: writing failed with strerror: No space left on device"):
        torch.save(torch.ones(1000), "/dev/full")


def test_a_disk_that_fills_up_when_space_is_claimed(tmp_path, monkeypatch):
    def full(descriptor, offset, length):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(atomic_file.os, "posix_fallocate", full)
    monkeypatch.setattr(atomic_file, "LARGE", 1000)
    with pytest.raises(RuntimeError, match="No space left on device"):
        torch.save(torch.ones(1000), tmp_path / "m.pt")
    assert leftovers(tmp_path) == []


def test_large_files_claim_their_space_and_come_back(tmp_path, monkeypatch):
    """What is done for large files only, done for a small one."""
    monkeypatch.setattr(atomic_file, "LARGE", 1000)
    released = []
    monkeypatch.setattr(atomic_file.os, "posix_fadvise", lambda *arguments: released.append(arguments[1:]))
    gc.collect()  # what other tests left open
    before = len(os.listdir("/proc/self/fd"))
    for value in ([torch.arange(1000.0), torch.arange(5000)], [torch.arange(5000), torch.arange(1000.0)]):
        torch.save(value, tmp_path / "m.pt")
        loaded = torch.load(tmp_path / "m.pt")
        assert [a.tolist() for a in loaded] == [a.tolist() for a in value]
        assert (tmp_path / "m.pt").stat().st_size < 60_000
    assert released == [(0, 0, os.POSIX_FADV_DONTNEED)]  # of the file that was replaced
    assert len(os.listdir("/proc/self/fd")) == before


def test_without_unnamed_files(tmp_path, monkeypatch, synced):
    """Systems without files that have no name write to one with a name, and remove it after an error."""
    monkeypatch.setattr(atomic_file, "_open_unnamed", lambda folder: None)
    path = tmp_path / "m.pt"
    torch.save([1], path)
    assert torch.load(path) == [1]
    monkeypatch.setattr(atomic_file.os, "fsync", lambda descriptor: (_ for _ in ()).throw(OSError(errno.EIO, "broken")))
    with pytest.raises(RuntimeError, match="broken; the old file is unchanged"):
        torch.save([2], path)
    monkeypatch.undo()
    assert torch.load(path) == [1]
    assert leftovers(tmp_path) == ["m.pt"]


def test_waiting_for_the_disk(tmp_path, monkeypatch, synced):
    """The file is on the disk before it takes the old one's place, and its name afterwards."""
    calls = []
    fsync, replace = os.fsync, os.replace
    monkeypatch.setattr(
        atomic_file.os, "fsync", lambda fd: calls.append(stat.S_ISDIR(os.fstat(fd).st_mode)) or fsync(fd)
    )
    monkeypatch.setattr(atomic_file.os, "replace", lambda a, b: calls.append("replace") or replace(a, b))
    assert torch.serialization.get_sync_options()
    torch.save([1], tmp_path / "m.pt")
    assert calls == [False, "replace", True]
    calls.clear()
    pytest.importorskip("safetensors", reason="the package that writes the format")
    safetensors.save_file({"a": torch.ones(2)}, tmp_path / "m.safetensors")
    assert calls == [False, "replace", True]
    torch.serialization.set_sync_options(False)
    calls.clear()
    torch.save([2], tmp_path / "m.pt")
    assert calls == ["replace"]
    assert torch.load(tmp_path / "m.pt") == [2]


def test_an_error_while_pickling_touches_nothing(tmp_path):
    class Unwilling:
        def __reduce__(self):
            raise KeyError("unwilling")

    path = tmp_path / "m.pt"
    torch.save([1], path)
    with pytest.raises(KeyError, match="unwilling"):
        torch.save([2, Unwilling()], path)
    assert torch.load(path) == [1]


def test_folders_that_are_not_there(tmp_path):
    with pytest.raises(RuntimeError, match=r"Parent directory .*absent does not exist\."):
        torch.save([1], tmp_path / "absent" / "m.pt")
    with pytest.raises(RuntimeError, match="open file failed with strerror: Is a directory"):
        torch.save([1], tmp_path)
    with pytest.raises(FileNotFoundError, match=r"absent.pt"):
        torch.load(tmp_path / "absent.pt")
    with pytest.raises(IsADirectoryError):
        torch.load(tmp_path)


def in_child(action):
    """Run ``action`` in a child of this process, without the rights of root, and return what it returns: a text."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            if os.getuid() == 0:
                os.setuid(65534)
            os.write(write, action().encode())
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as answer:
        text = answer.read().decode()
    os.waitpid(child, 0)
    return text


def refusal(action, *arguments):
    try:
        action(*arguments)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return "nothing was raised"


WRITERS = {
    "zip": torch.save,
    "legacy": lambda value, path: torch.save(value, path, _use_new_zipfile_serialization=False),
    "npz": npz.save_file,
    "safetensors": safetensors.save_file,
}


@pytest.fixture
def shared_folder(tmp_path):
    """A folder that other users reach."""
    for folder in (tmp_path, *tmp_path.parents):
        if folder.stat().st_uid == os.getuid() and folder != pathlib.Path(folder.anchor):
            folder.chmod(folder.stat().st_mode | 0o711)
    return tmp_path


@pytest.mark.parametrize("kind", WRITERS)
def test_a_read_only_folder(shared_folder, kind):
    if kind == "safetensors":
        pytest.importorskip("safetensors", reason="the package that writes the format")
    path = shared_folder / "m.file"
    value = {"a": torch.ones(3)}
    WRITERS[kind](value, path)
    before = path.read_bytes()
    shared_folder.chmod(0o555)
    try:
        text = in_child(lambda: refusal(WRITERS[kind], value, path))
    finally:
        shared_folder.chmod(0o755)
    assert str(path) in text
    assert "Permission denied" in text
    if kind != "safetensors":
        assert text.startswith("RuntimeError: ")
    assert path.read_bytes() == before
    assert leftovers(shared_folder) == ["m.file"]


@pytest.mark.parametrize("kind", WRITERS)
@pytest.mark.parametrize("exists", [False, True])
def test_a_disk_that_is_full_in_the_middle(shared_folder, kind, exists):
    """No file may grow beyond a limit: the system stops the writing as a full disk does."""
    if kind == "safetensors":
        pytest.importorskip("safetensors", reason="the package that writes the format")
    path = shared_folder / "m.file"
    if exists:
        WRITERS[kind]({"a": torch.ones(3)}, path)
        before = path.read_bytes()
    shared_folder.chmod(0o777)

    def action():
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
        return refusal(WRITERS[kind], {"a": torch.ones(10), "b": torch.ones(100_000)}, path)

    text = in_child(action)
    assert str(path) in text
    assert "File too large" in text
    if kind != "safetensors":
        assert text.startswith("RuntimeError: ")
    assert leftovers(shared_folder) == (["m.file"] if exists else [])
    if exists:
        assert path.read_bytes() == before


def test_pipes_and_devices_are_written_directly(tmp_path):
    torch.save([1], os.devnull)
    assert stat.S_ISCHR(os.stat(os.devnull).st_mode)
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    torch.save([1, 2], pipe)
    data = os.read(reader, 1 << 16)
    os.close(reader)
    assert data.startswith(b"PK\x03\x04")
    assert leftovers(tmp_path) == ["pipe"]


def save_and_be_killed(path, moment):
    """In this process's child: save, and be killed at the given call of the operating system, if it comes to that."""
    calls = 0

    def counted(function):
        def call(*args, **kwargs):
            nonlocal calls
            calls += 1
            if calls == moment:
                os.kill(os.getpid(), signal.SIGKILL)
            return function(*args, **kwargs)

        return call

    for name in ("open", "write", "fsync", "link", "replace", "fchmod", "close"):
        setattr(atomic_file.os, name, counted(getattr(os, name)))
    torch.save({"new": torch.arange(100)}, path)


@pytest.mark.parametrize("waits", [False, True])
def test_a_writer_killed_at_any_moment_leaves_the_old_file_or_the_new(tmp_path, monkeypatch, waits):
    """The process is killed at each of its calls of the operating system in turn: the file is always whole."""
    monkeypatch.setattr(atomic_file._Options, "sync_to_disk", waits)
    path, outcomes = tmp_path / "m.pt", []
    for moment in range(1, 100):
        torch.save({"old": torch.arange(50)}, path)
        child = os.fork()
        if child == 0:
            try:
                save_and_be_killed(path, moment)
                os._exit(0)
            finally:
                os._exit(1)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        ((name, tensor),) = torch.load(path).items()
        assert tensor.tolist() == list(range({"old": 50, "new": 100}[name]))
        outcomes.append(name)
        if code == 0:
            break
        assert code == -signal.SIGKILL
        for left in set(leftovers(tmp_path)) - {"m.pt"}:
            (tmp_path / left).unlink()
    assert code == 0
    assert outcomes == sorted(outcomes, reverse=True)  # old until some moment, new from then on
    assert outcomes[0] == "old"
    assert len(outcomes) > 20
