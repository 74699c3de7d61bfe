"""The files that are derived from the registry and committed: they are what the registry gives now, and they are right."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

import rushlight
from rushlight import _C
from rushlight.operators.registry import operators
from rushlight.operators.stubs import derived_files

CHECKOUT = Path(__file__).resolve().parents[2]
FILES = derived_files(CHECKOUT)
UPDATE = "out of date: run `python -m rushlight.operators.stubs` in the checkout"


@pytest.mark.parametrize("path", FILES)
def test_the_committed_file_is_what_the_registry_gives(path):
    assert (CHECKOUT / path).read_text(encoding="utf-8") == FILES[path], UPDATE


def test_the_command_says_what_is_out_of_date_and_writes_it(tmp_path):
    for path in FILES:
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / "src/core").symlink_to(CHECKOUT / "src/core")  # which file defines an operator is read there
    command = [sys.executable, "-m", "rushlight.operators.stubs", "--check", str(tmp_path)]
    check = subprocess.run(command, capture_output=True, text=True)
    assert check.returncode == 1 and check.stdout.startswith("out of date: src/rushlight/_C.pyi")
    command.remove("--check")
    assert subprocess.run(command, capture_output=True, text=True).stdout.startswith("written: src/rushlight/_C.pyi")
    for path, content in FILES.items():
        assert (tmp_path / path).read_text(encoding="utf-8") == content
    assert subprocess.run([*command, "--check"], capture_output=True, text=True).stdout == ""


def _names(body):
    names = set()
    for statement in body:
        if isinstance(statement, ast.FunctionDef | ast.ClassDef):
            names.add(statement.name)
        elif isinstance(statement, ast.AnnAssign | ast.Assign):
            names.update([t.id for t in getattr(statement, "targets", None) or [statement.target]])
    return names


@pytest.mark.parametrize("owner", [_C, _C.Tensor, _C._nn, _C._optim, _C._Node, _C.Generator, _C.UntypedStorage])
def test_the_stub_has_every_name_of_the_core(owner):
    module = ast.parse(FILES["src/rushlight/_C.pyi"])
    name = getattr(owner, "__name__", "").rpartition(".")[2]
    body = module.body if owner is _C else next(c.body for c in module.body if getattr(c, "name", "") == name)
    given = {n for n in vars(owner) if n[:2] != "__"}
    assert given
    assert given - _names(body) == set()


def test_the_stub_of_the_package_has_every_name_of_the_package():
    module = ast.parse(FILES["src/rushlight/__init__.pyi"])
    names = {a.asname for s in module.body if isinstance(s, ast.ImportFrom) for a in s.names} | _names(module.body)
    public = {name for name in _C._operator_names if hasattr(rushlight, name)} | {"nn", "optim", "save", "FloatTensor"}
    assert public - names == set()


def test_types_of_parameters_results_and_forms():
    stub = FILES["src/rushlight/_C.pyi"]
    for line in (
        "def add(input: _Operand, other: _Operand, *, alpha: _Number = 1, out: Tensor | None = None) -> Tensor: ...",
        "    def add_(self, other: _Operand, *, alpha: _Number = 1) -> Self: ...",
        "    def view(self, *size: _int) -> Tensor: ...",
        "        largest: _bool = True,\n        sorted: _bool = True,\n        *,\n        out: Sequence[Tensor] | None = None,\n"
        "    ) -> _topk_result: ...",
        "class _topk_result(NamedTuple):\n    values: Tensor\n    indices: Tensor\n",
        "float32: _dtype\n",
        "    def backward(\n        self,\n        gradient: Tensor | None = None,\n",
    ):
        assert line in stub, line


def test_every_operator_has_a_signature_for_each_of_its_names():
    stub = FILES["src/rushlight/_C.pyi"]
    for operator in operators().values():
        for _, name in operator.names:
            assert f"def {name}(" in stub, name


def _rows():
    """Per operator of the page: its cells."""
    cell = re.compile(r"(?<!\\)\|")
    lines = [line for line in FILES["docs/operators.md"].split("\n") if line.startswith("| `")]
    rows = [[part.strip() for part in cell.split(line)[1:-1]] for line in lines]
    return {row[0].split("`")[1]: row for row in rows}


ROWS = _rows()


def test_the_page_has_each_operator_once_with_what_it_says_of_itself():
    table = operators()
    assert set(ROWS) == {name for name in table if not (name[-1] == "_" and name[:-1] in table)}
    assert FILES["docs/operators.md"].count("\n| `") == len(ROWS)
    for name, (_, calls, forms, node, sentence) in ROWS.items():
        assert all(f"`{s}`" in calls.replace("\\|", "|") for s in table[name].signatures)
        assert forms and sentence.endswith(".")
        assert (node == "–") == (not table[name].differentiable), name


@pytest.mark.parametrize(
    ("name", "nodes"),
    [
        ("mul", "MulBackward0"),
        ("exp", "ExpBackward0"),
        ("gelu", "GeluBackward0"),
        ("sum", "SumBackward0, SumBackward1"),
        ("max", "MaxBackward1, MaximumBackward0, MaxBackward0"),
        ("matmul", "MmBackward0"),
        ("conv2d", "ConvolutionBackward0"),
        ("index_select", "IndexSelectBackward0"),
        ("copy_", "CopyBackwards"),
        ("argmax", "–"),
        ("eq", "–"),
    ],
)
def test_the_nodes_of_the_page(name, nodes):
    assert ROWS[name][3] == nodes
