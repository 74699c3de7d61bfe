"""Runs a program written for PyTorch with rushlight in PyTorch's place.

`install` puts a finder before Python's own, which answers `import torch`, `import torch.nn.functional as F` or
`from torchvision import models` with rushlight's modules: the same module objects that `import rushlight` gives, so
`torch.nn is rushlight.nn`.  It holds for the program, for all it imports, and for the processes that
multiprocessing starts from it.  `run_script` and `run_module` then do what `python script.py` and
`python -m module` do.
"""

import builtins
import importlib
import importlib.util
import io
import os
import pkgutil
import sys
from collections.abc import Iterable, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, SourceFileLoader
from types import CodeType, ModuleType
from typing import TYPE_CHECKING

import rushlight
from rushlight._missing import TORCH_ROOTS, missing_message
from rushlight.version import __version__

if TYPE_CHECKING:
    from importlib.metadata import Distribution, DistributionFinder

__all__ = ["ProgramNotFound", "install", "run_module", "run_script", "uninstall"]


def _ours(name: str) -> str | None:
    """The module of rushlight which stands for PyTorch's module `name`."""
    root, dot, rest = name.partition(".")
    ours = TORCH_ROOTS.get(root)
    return ours + dot + rest if ours else None


class _AliasLoader(Loader):
    """Gives the module of rushlight itself, unchanged, under PyTorch's name."""

    def __init__(self, ours: str) -> None:
        self._ours = ours
        self._spec: ModuleSpec | None = None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        module = importlib.import_module(self._ours)
        self._spec = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        module.__spec__ = self._spec  # the import system has just replaced it by the alias's


class _TorchFinder(MetaPathFinder):
    """Answers for PyTorch's names, before any installed PyTorch could."""

    tensor_module = ""  # what Tensor.__module__ was before install()

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        ours = _ours(fullname)
        if ours is None:
            return None
        if not _exists(ours):
            if _asked_by_import():
                raise ModuleNotFoundError(
                    missing_message(fullname, _module_siblings(fullname, ours), "module "), name=fullname
                )
            return None
        spec = ModuleSpec(fullname, _AliasLoader(ours))
        spec.submodule_search_locations = [] if _is_package(ours) else None
        return spec

    def find_distributions(self, context: "DistributionFinder.Context") -> "Iterable[Distribution]":
        """`importlib.metadata.version("torch")` is the version of `import torch`."""
        return [_torch_distribution()] if context.name in (None, "torch") else []


_FINDER = _TorchFinder()


def _exists(ours: str) -> bool:
    return sys.modules.get(ours) is not None or _find_spec(ours) is not None


def _is_package(ours: str) -> bool:
    module = sys.modules.get(ours)
    if module is not None:
        return hasattr(module, "__path__")
    spec = importlib.util.find_spec(ours)
    return spec is not None and spec.submodule_search_locations is not None


def _asked_by_import() -> bool:
    """Is a module being imported, rather than looked for by `importlib.util.find_spec`, which answers None?

    Only an exception can put our message in the place of "No module named ...", and only an import may see it.
    """
    caller = sys._getframe(2)  # find_spec's caller is importlib's _find_spec, whose caller tells
    while caller.f_back is not None and caller.f_code.co_name == "_find_spec":
        caller = caller.f_back
    return caller.f_code.co_name == "_find_and_load_unlocked"


def _module_siblings(fullname: str, ours: str) -> tuple[str, ...]:
    """PyTorch's names of the modules that stand beside the missing one."""
    if "." not in fullname:
        return ()
    parent = sys.modules[ours.rpartition(".")[0]]
    found = {info.name for info in pkgutil.iter_modules(getattr(parent, "__path__", []))}
    return tuple(sorted(name for name in found if not name.startswith("_")))


def _torch_distribution() -> "Distribution":
    from importlib.metadata import Distribution

    class TorchDistribution(Distribution):
        def read_text(self, filename: str) -> str | None:
            return f"Metadata-Version: 2.1\nName: torch\nVersion: {__version__}\n" if filename == "METADATA" else None

        def locate_file(self, path: "str | os.PathLike[str]") -> "os.PathLike[str]":  # type: ignore[override]
            raise FileNotFoundError(f"rushlight stands in for torch and installs no file {path}")

    return TorchDistribution()


def install() -> None:
    """From now on `import torch` gives rushlight, in this process and in those that multiprocessing starts from it.

    ImportError if PyTorch itself has been imported already: its tensors and ours do not mix.
    """
    if _FINDER in sys.meta_path:
        return
    for root, ours in TORCH_ROOTS.items():
        present = sys.modules.get(root)
        if present is not None and present is not sys.modules.get(ours):
            raise ImportError(f"{root} has been imported from {getattr(present, '__file__', 'elsewhere')}", name=root)
    sys.meta_path.insert(0, _FINDER)
    _FINDER.tensor_module = rushlight.Tensor.__module__
    rushlight.Tensor.__module__ = "torch"
    _follow_spawned_processes()


def uninstall() -> None:
    """Takes back what `install` did; modules imported meanwhile keep what they have."""
    if _FINDER not in sys.meta_path:
        return
    sys.meta_path.remove(_FINDER)
    for name in [name for name in sys.modules if _ours(name) is not None]:
        del sys.modules[name]
    rushlight.Tensor.__module__ = _FINDER.tensor_module


class _InstallOnUnpickling:
    """Travels in the data that multiprocessing sends to a new interpreter, and redirects there when it is read."""

    def __reduce__(self) -> tuple[object, tuple[()]]:
        return install, ()


def _follow_spawned_processes() -> None:
    """Interpreters started by multiprocessing (spawn, forkserver) redirect before they import the main module."""
    from multiprocessing import spawn

    original = spawn.get_preparation_data
    if getattr(original, "_redirects", False):
        return

    def get_preparation_data(name: str) -> dict[str, object]:
        data = original(name)
        if _FINDER in sys.meta_path:
            data["rushlight"] = _InstallOnUnpickling()
        return data

    get_preparation_data._redirects = True  # type: ignore[attr-defined]
    spawn.get_preparation_data = get_preparation_data


# ---- as `python script.py` and `python -m module` --------------------------------------------------------------------


class ProgramNotFound(Exception):
    """There is nothing to run; `exit_code` is the one that Python would end with."""

    def __init__(self, message: str, exit_code: int = 1) -> None:
        super().__init__(message)
        self.exit_code = exit_code


def run_script(path: str, arguments: Sequence[str]) -> None:
    """Runs a file, or a folder or zip archive with a `__main__.py`, as `python path arguments...` does.

    ProgramNotFound if it cannot be read; what the program raises arrives as it is.
    """
    importer = pkgutil.get_importer(path)
    if importer is not None:  # a folder or an archive
        spec = importer.find_spec("__main__")
        if spec is None:
            raise ProgramNotFound(f"can't find '__main__' module in {os.path.abspath(path)!r}")
        _prepare([path, *arguments], os.path.abspath(path))
        _execute(_main_module(spec), None)
        return
    file_name = os.path.abspath(path)
    try:
        with io.open_code(file_name) as file:
            source = file.read()
    except OSError as error:
        raise ProgramNotFound(f"can't open file {file_name!r}: [Errno {error.errno}] {error.strerror}", 2) from None
    module = ModuleType("__main__")
    module.__dict__.update(
        __file__=file_name, __cached__=None, __loader__=SourceFileLoader("__main__", file_name), __builtins__=builtins
    )
    _prepare([path, *arguments], os.path.dirname(os.path.realpath(path)))
    _execute(module, source)


def run_module(name: str, arguments: Sequence[str]) -> None:
    """Runs a module, or the `__main__` of a package, as `python -m name arguments...` does.

    ProgramNotFound if there is no such module; what the program raises arrives as it is.
    """
    _prepare(["-m", *arguments], os.getcwd())
    spec = _runnable_spec(name)
    sys.argv[0] = spec.origin or name
    _execute(_main_module(spec), None)


def _prepare(argv: list[str], first_path: str) -> None:
    sys.argv = argv
    if not sys.flags.isolated and not getattr(sys.flags, "safe_path", False):  # python -I, python -P
        sys.path[0] = first_path
    install()


def _runnable_spec(name: str) -> ModuleSpec:
    spec = _find_spec(name)
    if spec is not None and spec.submodule_search_locations is not None:
        spec = _find_spec(name + ".__main__")
        if spec is None:
            raise ProgramNotFound(
                f"No module named {name}.__main__; {name!r} is a package and cannot be directly executed"
            )
    if spec is None:
        raise ProgramNotFound(f"No module named {name}")
    if not hasattr(spec.loader, "get_code"):
        raise ProgramNotFound(f"No code object available for {name}")
    return spec


def _find_spec(name: str) -> ModuleSpec | None:
    try:
        return importlib.util.find_spec(name)
    except ModuleNotFoundError as error:
        if error.name is not None and (name == error.name or name.startswith(error.name + ".")):
            return None
        raise


def _main_module(spec: ModuleSpec) -> ModuleType:
    module = ModuleType("__main__")
    module.__dict__.update(
        __spec__=spec,
        __loader__=spec.loader,
        __file__=spec.origin,
        __cached__=spec.cached,
        __package__=spec.parent,
        __builtins__=builtins,
    )
    return module


def _execute(module: ModuleType, source: bytes | None) -> None:
    """Runs the main module from its source, or from the code that its loader has."""
    sys.modules["__main__"] = module
    try:
        if source is not None:
            code: CodeType = compile(source, str(module.__file__), "exec", dont_inherit=True)
        else:
            assert module.__spec__ is not None
            code = module.__spec__.loader.get_code(module.__spec__.name)  # type: ignore[union-attr]
        exec(code, module.__dict__)
    except SystemExit:
        raise
    except BaseException:
        _hide_own_frames()
        raise


def _hide_own_frames() -> None:
    """The traceback about to be printed starts at the program's first line, as under `python`.

    The exception goes on to the interpreter, which knows what to do with it (a KeyboardInterrupt ends the process by
    a signal); only the hook that prints it, the program's own perhaps, is given a shorter traceback.
    """
    hook = sys.excepthook

    def print_program_frames(kind: type[BaseException], error: BaseException, traceback: object) -> None:
        entry = error.__traceback__
        while entry is not None and entry.tb_frame.f_code is not _execute.__code__:
            entry = entry.tb_next
        if entry is not None:
            error.__traceback__ = entry.tb_next
        hook(kind, error, error.__traceback__)

    sys.excepthook = print_program_frames
