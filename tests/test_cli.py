"""The command `rushlight` apart from what `run` does with a program."""

import subprocess
import sys

import numpy as np
import pytest

import rushlight
from rushlight import cli
from rushlight.version import TORCH_API, VERSION


def test_the_version_names_the_interface_too(capsys):
    with pytest.raises(SystemExit) as ended:
        cli.main(["--version"])
    assert ended.value.code == 0
    assert capsys.readouterr().out == f"rushlight {VERSION} (interface of PyTorch {TORCH_API})\n"


@pytest.mark.parametrize(
    "arguments",
    [[], ["walk"], ["run"], ["run", "-m"], ["demo", "--epochs", "0"], ["demo", "--epochs", "x"], ["info", "a", "b"]],
)
def test_wrong_command_lines_end_with_usage_and_code_2(arguments, capsys):
    with pytest.raises(SystemExit) as ended:
        cli.main(arguments)
    assert ended.value.code == 2
    output = capsys.readouterr()
    assert output.out == ""
    assert output.err.startswith("usage: rushlight")


def test_the_module_is_the_command():
    result = subprocess.run(
        [sys.executable, "-m", "rushlight", "--version"], capture_output=True, text=True, timeout=60
    )
    assert (result.returncode, result.stdout.split()[:2]) == (0, ["rushlight", VERSION])


def test_info_shows_what_the_core_says_of_itself(capsys):
    assert cli.main(["info"]) == 0
    lines = capsys.readouterr().out.splitlines()
    facts = {line.split(":")[0].strip(): line.split(":", 1)[1].strip() for line in lines}
    build, memory = rushlight._C._build_info(), rushlight.memory_stats()
    assert facts["rushlight"] == VERSION
    assert facts["interface"] == f"PyTorch {TORCH_API}"
    assert {key.replace("_", " ") for key in (*build, *memory)} <= facts.keys()
    assert facts["threads"] == str(build["threads"])
    for library, version in build["libraries"].items():
        assert facts[library] == version


def test_info_lists_a_file(tmp_path, capsys):
    np.savez(tmp_path / "state.npz", weight=np.zeros((2, 3), np.float32))
    assert cli.main(["info", str(tmp_path / "state.npz")]) == 0
    output = capsys.readouterr().out
    assert all(word in output for word in ("state.npz", "weight", "float32", "[2, 3]", "24 B"))


@pytest.mark.parametrize(
    ("content", "words"), [(None, "No such file"), (b"", "empty"), (b"not a checkpoint at all", "state.pt")]
)
def test_files_that_cannot_be_listed_end_with_code_1(tmp_path, capsys, content, words):
    path = tmp_path / "state.pt"
    if content is not None:
        path.write_bytes(content)
    assert cli.main(["info", str(path)]) == 1
    output = capsys.readouterr()
    assert output.out == ""
    assert output.err.startswith("rushlight: ")
    assert words in output.err


def test_facts_are_indented_by_topic():
    report = cli._report({"cpu_features": ["avx2", "fma"], "libraries": {"A": "1"}}, {"cached_bytes": 1234567})
    assert report[3:] == [
        "cpu features: avx2 fma",
        "libraries:",
        "  A: 1",
        "allocator:",
        "  cached bytes: 1,234,567",
    ]
