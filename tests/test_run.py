"""`rushlight run`: what `python` does with a program, and rushlight where the program asks for torch."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

RUSHLIGHT = [sys.executable, "-m", "rushlight", "run"]
PYTHON = [sys.executable]


def launch(command, *arguments, cwd):
    return subprocess.run(
        [*command, *map(str, arguments)], cwd=cwd, capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL
    )


def outcome(result):
    return result.stdout, result.stderr, result.returncode


def run_source(tmp_path, source, *arguments):
    (tmp_path / "program.py").write_text(source)
    return launch(RUSHLIGHT, "program.py", *arguments, cwd=tmp_path)


def printed(tmp_path, source, *arguments):
    result = run_source(tmp_path, source, *arguments)
    assert result.returncode == 0, result.stderr
    return result.stdout


# ---- the redirect ----------------------------------------------------------------------------------------------------


def test_torch_and_its_submodules_are_the_very_modules_of_rushlight(tmp_path):
    source = """
import torch, torch.nn, torch.nn.functional as F, rushlight
from torch import nn, optim
from torch.utils.data import DataLoader
import rushlight.nn.functional, rushlight.utils.data
print(torch is rushlight, torch.nn is nn is rushlight.nn, F is rushlight.nn.functional, optim is rushlight.optim,
      DataLoader is rushlight.utils.data.DataLoader)
"""
    assert printed(tmp_path, source) == "True True True True True\n"


def test_aliases_leave_the_modules_as_they_are(tmp_path):
    source = """
import rushlight.utils.data
before = rushlight.utils.data.__spec__, rushlight.utils.data.__name__
import torch.utils.data
print(before == (torch.utils.data.__spec__, torch.utils.data.__name__), before[1])
"""
    assert printed(tmp_path, source) == "True rushlight.utils.data\n"


def test_modules_that_the_program_imports_see_it_too(tmp_path):
    (tmp_path / "library.py").write_text("import torch\n")
    assert printed(tmp_path, "import library, rushlight; print(library.torch is rushlight)") == "True\n"


def test_programs_that_look_at_names_and_versions_are_content(tmp_path):
    source = """
import torch, importlib.metadata
print(torch.Tensor.__module__, torch.__version__ >= (2, 4), torch.__version__ < "3", torch.__version__.split("+")[0])
print(importlib.metadata.version("torch") == torch.__version__)
"""
    assert printed(tmp_path, source) == "torch True True 2.13.0\nTrue\n"


@pytest.mark.parametrize(
    ("statement", "error", "name", "nearest"),
    [
        ("torch.relu9", "AttributeError", "'torch.relu9'", "torch.relu"),
        ("from torch import relu9", "ImportError", "'torch.relu9'", "torch.relu"),
        ("import torch.cudaa", "ModuleNotFoundError", "'torch.cudaa'", "torch.cuda"),
        ("from torch.cudaa.amp import autocast", "ModuleNotFoundError", "'torch.cudaa'", "torch.cuda"),
        ("torch.cuda.is_availabel()", "AttributeError", "'torch.cuda.is_availabel'", "torch.cuda.is_available"),
        ("from torch.cuda import is_availabel", "ImportError", "'torch.cuda.is_availabel'", "torch.cuda.is_available"),
    ],
)
def test_what_is_not_there_is_named_with_the_nearest_names(tmp_path, statement, error, name, nearest):
    source = f"""
import torch
try:
    {statement}
except Exception as e:
    print(type(e).__name__, e)
"""
    kind, message = printed(tmp_path, source).split(" ", 1)
    assert kind == error
    assert name in message.split(";")[0]
    assert nearest in message.split("nearest: ")[1].strip().split(", ")


def test_asking_for_a_missing_module_without_importing_it_answers_none(tmp_path):
    source = """
import importlib.util, torch
print(importlib.util.find_spec("torch.no_such_room"), importlib.util.find_spec("torch.cuda") is not None)
print(hasattr(torch, "no_such_name"), getattr(torch, "no_such_name", 3))
"""
    assert printed(tmp_path, source) == "None True\nFalse 3\n"


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_processes_started_by_multiprocessing_are_redirected(tmp_path, method):
    source = f"""
import multiprocessing, sys, torch
def work(queue):
    import rushlight
    queue.put((torch is rushlight, __name__, sys.argv[1:]))
if __name__ == "__main__":
    context = multiprocessing.get_context({method!r})
    queue = context.Queue()
    process = context.Process(target=work, args=(queue,))
    process.start()
    print(queue.get(timeout=60))
    process.join()
"""
    assert printed(tmp_path, source, "a") == "(True, '__mp_main__', ['a'])\n"


def test_install_refuses_to_mix_with_an_imported_torch(tmp_path):
    source = """
import sys, types
from rushlight.run import uninstall, install
uninstall()
sys.modules["torch"] = types.ModuleType("torch")
try:
    install()
except ImportError as e:
    print(e.name)
"""
    assert printed(tmp_path, source) == "torch\n"


# ---- as python does --------------------------------------------------------------------------------------------------

SAME_AS_PYTHON = {
    "environment": """
import sys
print(sys.argv, sys.path[0], __name__, __file__, __spec__, __package__, __doc__)
print(sys.modules["__main__"].__dict__ is globals())
""",
    "pickled classes of the main module": """
import pickle
class Thing: pass
print(type(pickle.loads(pickle.dumps(Thing()))) is Thing)
""",
    "traceback": """
def inner():
    raise ValueError("here")
try:
    inner()
except ValueError as error:
    raise RuntimeError("there") from error
""",
    "excepthook": """
import sys
sys.excepthook = lambda kind, error, entry: print(kind.__name__, entry.tb_frame.f_code.co_name, entry.tb_next)
1 / 0
""",
    "syntax error": "x = = 1\n",
    "exit with a number": "import sys; sys.exit(7)",
    "exit with a message": "import sys; sys.exit('no')",
    "interrupt": "raise KeyboardInterrupt",
    "atexit": "import atexit, __main__; x = 3; atexit.register(lambda: print(__main__.x))",
    "future": "from __future__ import annotations\ndef f(x: nowhere): pass\nprint(f.__annotations__)",
}


@pytest.mark.parametrize("source", SAME_AS_PYTHON.values(), ids=SAME_AS_PYTHON.keys())
def test_scripts_end_as_under_python(tmp_path, source):
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "program.py").write_text(source)
    arguments = ("sub/program.py", "-m", "--flag", "--", "x y")
    ours = launch(RUSHLIGHT, *arguments, cwd=tmp_path)
    assert outcome(ours) == outcome(launch(PYTHON, *arguments, cwd=tmp_path))


PRINT_PLACE = "import sys; print(sys.argv, sys.path[0], __name__, __package__, __spec__.name, __file__)\n"


@pytest.mark.parametrize("target", ["package", "package.module", "package.__main__"])
def test_modules_run_as_under_python(tmp_path, target):
    package = tmp_path / "package"
    package.mkdir()
    for name in ("__main__.py", "module.py"):
        (package / name).write_text(PRINT_PLACE)
    (package / "__init__.py").write_text("import sys; print(sys.argv)\n")
    ours = launch(RUSHLIGHT, "-m", target, "-q", "--x=1", cwd=tmp_path)
    assert ours.returncode == 0
    assert outcome(ours) == outcome(launch(PYTHON, "-m", target, "-q", "--x=1", cwd=tmp_path))


@pytest.mark.parametrize("kind", ["folder", "archive"])
def test_folders_and_archives_run_as_under_python(tmp_path, kind):
    folder = tmp_path / "program"
    folder.mkdir()
    (folder / "__main__.py").write_text(PRINT_PLACE + "import beside\n")
    (folder / "beside.py").write_text("print(__name__)\n")
    target = folder
    if kind == "archive":
        target = tmp_path / "program.zip"
        with zipfile.ZipFile(target, "w") as archive:
            for path in folder.iterdir():
                archive.write(path, path.name)
    ours = launch(RUSHLIGHT, target, "a", cwd=tmp_path)
    assert ours.returncode == 0
    assert outcome(ours) == outcome(launch(PYTHON, target, "a", cwd=tmp_path))


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["absent.py"], 2, ["can't open file", "absent.py", "No such file"]),
        (["-m", "absent_module"], 1, ["No module named absent_module"]),
        (["-m", "absent_package.module"], 1, ["No module named absent_package.module"]),
        (["-m", "package"], 1, ["No module named package.__main__", "cannot be directly executed"]),
        (["package"], 1, ["can't find '__main__' module in", "package"]),
    ],
)
def test_programs_that_are_not_there(tmp_path, arguments, code, words):
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "__init__.py").touch()
    result = launch(RUSHLIGHT, *arguments, cwd=tmp_path)
    assert result.returncode == code
    assert result.stdout == ""
    assert "Traceback" not in result.stderr
    assert all(word in result.stderr for word in words), result.stderr


def test_pytest_runs_under_it(tmp_path):
    (tmp_path / "test_it.py").write_text("import torch, rushlight\ndef test(): assert torch is rushlight\n")
    result = launch(RUSHLIGHT, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_it.py", cwd=tmp_path)
    assert result.returncode == 0, result.stdout
    assert "1 passed" in result.stdout


def test_the_safe_path_option_of_python_is_kept(tmp_path):
    if not hasattr(sys.flags, "safe_path"):
        pytest.skip("Python has -P since 3.11")
    (tmp_path / "program.py").write_text("import sys; print(sys.path)")
    ours = launch([sys.executable, "-P", "-m", "rushlight", "run"], "program.py", cwd=tmp_path)
    assert outcome(ours) == outcome(launch([sys.executable, "-P"], "program.py", cwd=tmp_path))
    assert str(Path(tmp_path)) not in ours.stdout
