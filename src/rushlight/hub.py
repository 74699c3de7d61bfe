"""Files of weights from the network, kept where PyTorch keeps them, and models of a directory with a ``hubconf.py``."""

import os
import re
import sys
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import rushlight

from ._missing import lazy_module
from .io.atomic_file import atomic_path

if TYPE_CHECKING:
    from types import ModuleType

__all__ = ["download_url_to_file", "get_dir", "load", "load_state_dict_from_url", "set_dir"]

# The first digits of a file's SHA-256 stand in its name: resnet18-f37072fd.pth
HASH_REGEX = re.compile(r"-([a-f0-9]*)\.")
CHUNK = 128 * 1024
TIMEOUT = 60.0  # seconds without an answer

_hub_dir: str | None = None


def get_dir() -> str:
    """The directory of downloaded files: that of :func:`set_dir`, or ``$TORCH_HOME/hub``.

    ``$TORCH_HOME`` is ``$XDG_CACHE_HOME/torch`` where it is not set, and ``$XDG_CACHE_HOME`` is ``~/.cache``.
    """
    if _hub_dir is not None:
        return _hub_dir
    cache = os.getenv("XDG_CACHE_HOME", "~/.cache")
    return os.path.join(os.path.expanduser(os.getenv("TORCH_HOME", os.path.join(cache, "torch"))), "hub")


def set_dir(d: str | os.PathLike[str]) -> None:
    """Sets the directory of downloaded files."""
    global _hub_dir
    _hub_dir = os.path.expanduser(os.fspath(d))


def download_url_to_file(url: str, dst: str, hash_prefix: str | None = None, progress: bool = True) -> None:
    """Downloads a file to the path ``dst``, which appears whole or not at all.

    ``hash_prefix`` begins the SHA-256 that the file must have; ``progress`` shows a bar on stderr, by tqdm where it is
    installed.

    Raises:
        urllib.error.URLError: there is no answer, or less of the file than promised.
        urllib.error.HTTPError: the answer is an error.
        RuntimeError: the file has another checksum.
    """
    from hashlib import sha256

    dst = os.path.expanduser(dst)
    with _opened(url, dst) as response:
        length = response.headers.get("Content-Length")
        total = int(length) if length else None
        digest = sha256()
        done = 0
        with atomic_path(dst) as temporary, open(temporary, "wb") as file, _bar(total, progress) as bar:
            while chunk := response.read(CHUNK):
                file.write(chunk)
                digest.update(chunk)
                done += len(chunk)
                if bar is not None:
                    bar.update(len(chunk))
            if total is not None and done != total:
                raise _no_file(url, dst, f"the connection ended after {done} of {total} bytes")
            if hash_prefix is not None and not digest.hexdigest().startswith(hash_prefix):
                raise RuntimeError(f'invalid hash value (expected "{hash_prefix}", got "{digest.hexdigest()}")')


def _opened(url: str, dst: str) -> Any:
    """The answer to a request for ``url``."""
    from urllib.error import HTTPError, URLError
    from urllib.request import Request, urlopen

    try:
        return urlopen(Request(url, headers={"User-Agent": "torch.hub"}), timeout=TIMEOUT)
    except HTTPError:
        raise
    except URLError as error:
        raise _no_file(url, dst, str(error.reason)) from error


def _no_file(url: str, dst: str, reason: str) -> Exception:
    from urllib.error import URLError

    return URLError(f"{reason}; {url} could not be downloaded. Without a network, put that file at {dst}")


def _bar(total: int | None, progress: bool) -> AbstractContextManager[Any]:
    if not progress:
        return nullcontext()
    try:
        from tqdm import tqdm
    except ImportError:
        return nullcontext()
    bar: AbstractContextManager[Any] = tqdm(total=total, unit="B", unit_scale=True, unit_divisor=1024)
    return bar


def load_state_dict_from_url(
    url: str,
    model_dir: str | None = None,
    map_location: Any = None,
    progress: bool = True,
    check_hash: bool = False,
    file_name: str | None = None,
    weights_only: bool = False,
) -> dict[str, Any]:
    """Loads the checkpoint at ``url``, which is downloaded to ``model_dir`` unless it is there already.

    ``model_dir`` is ``checkpoints`` in :func:`get_dir` by default, ``file_name`` the last part of the address.
    ``check_hash`` compares a download with the SHA-256 whose first digits stand in its name; ``map_location`` and
    ``weights_only`` are those of ``load``. A zip file with the checkpoint in it is unpacked.

    Raises:
        urllib.error.URLError: the file is not there and cannot be downloaded.
        RuntimeError: the file has another checksum.
    """
    from urllib.parse import urlparse

    folder = os.path.join(get_dir(), "checkpoints") if model_dir is None else model_dir
    name = file_name if file_name is not None else os.path.basename(urlparse(url).path)
    path = os.path.join(folder, name)
    if not os.path.exists(path):
        os.makedirs(folder, exist_ok=True)
        sys.stderr.write(f'Downloading: "{url}" to {path}\n')
        match = HASH_REGEX.search(name) if check_hash else None
        download_url_to_file(url, path, match.group(1) if match else None, progress=progress)
    source = _unpacked(path) if _is_zipped_checkpoint(path) else path
    result: dict[str, Any] = rushlight.load(source, map_location=map_location, weights_only=weights_only)
    return result


def _is_zipped_checkpoint(path: str) -> bool:
    """Whether the file is a zip with one file in it; checkpoints in PyTorch's own zip format have several."""
    from zipfile import ZipFile, is_zipfile

    if not is_zipfile(path):
        return False
    with ZipFile(path) as archive:
        members = archive.infolist()
    return len(members) == 1 and not members[0].is_dir()


def _unpacked(path: str) -> BinaryIO:
    from io import BytesIO
    from zipfile import ZipFile

    with ZipFile(path) as archive:
        return BytesIO(archive.read(archive.infolist()[0]))


def load(repo_or_dir: str, model: str, *args: Any, source: str = "github", **kwargs: Any) -> Any:
    """Calls the function ``model`` of the ``hubconf.py`` in the directory ``repo_or_dir``; ``source`` is ``"local"``.

    This runs that file. The options of downloads (``trust_repo``, ``force_reload``, ``verbose``, ``skip_validation``)
    are accepted and have no effect.

    Raises:
        NotImplementedError: ``source`` is ``"github"``: programs are not downloaded.
        ValueError: ``source`` is something else.
        RuntimeError: the file lacks the function, or names packages that are not installed.
    """
    source = source.lower()
    if source == "github":
        raise NotImplementedError(
            f"rushlight does not download programs from GitHub: clone {repo_or_dir} and pass the directory with "
            "source='local'"
        )
    if source != "local":
        raise ValueError(f'Unknown source: "{source}". Allowed values: "github" | "local".')
    for option in ("trust_repo", "force_reload", "verbose", "skip_validation"):
        kwargs.pop(option, None)
    folder = os.path.expanduser(repo_or_dir)
    sys.path.insert(0, folder)
    try:
        return _entry(_hubconf(folder), model)(*args, **kwargs)
    finally:
        sys.path.remove(folder)


def _hubconf(folder: str) -> "ModuleType":
    from importlib.util import module_from_spec, spec_from_file_location

    path = Path(folder) / "hubconf.py"
    if not path.exists():
        raise FileNotFoundError(f"there is no hubconf.py in {folder}")
    spec = spec_from_file_location("hubconf", path)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _entry(module: "ModuleType", name: str) -> Any:
    from importlib.util import find_spec

    missing = [package for package in getattr(module, "dependencies", ()) if find_spec(package) is None]
    if missing:
        raise RuntimeError(f"Missing dependencies: {', '.join(missing)}")
    function = getattr(module, name, None)
    if not callable(function):
        raise RuntimeError(f"Cannot find callable {name} in hubconf")
    return function


__getattr__, __dir__ = lazy_module(__name__)
