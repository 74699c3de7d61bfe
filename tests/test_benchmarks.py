"""The workloads of `benchmarks` run, and its command says what it finds."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from benchmarks import family, program, where  # noqa: F401  (the first two fill the table)
from benchmarks.jax_idiom import BUILDERS
from benchmarks.workload import WORKLOADS, workload

import rushlight

TOP = Path(__file__).parent.parent
SLOW = {"elementwise_1e7", "deep_graph", "resnet18_4_224", "resnet18_8_64"}  # the same code as their smaller siblings


@pytest.mark.parametrize("name", [n for n in WORKLOADS if n not in SLOW])
def test_workloads_run(name: str) -> None:
    step = WORKLOADS[name].build(rushlight)
    step()
    step()


def test_names_are_taken_once() -> None:
    with pytest.raises(ValueError, match="two workloads are called mul_small"):
        workload("program", "mul_small")(lambda torch: lambda: None)
    assert set(BUILDERS) <= set(WORKLOADS)


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "benchmarks", "--rounds", "1", "--seconds", "0.01", *arguments]
    return subprocess.run(command, cwd=TOP, capture_output=True, text=True)


def test_command_compares() -> None:
    done = run("--against", "rushlight", "--only", "mul_small", "--json")
    assert done.returncode == 0, done.stderr
    row = json.loads(done.stdout)
    assert row["name"] == "mul_small" and row["theirs"] > 0 and row["ours_bytes"] > 2**20
    assert row["ratio"] == pytest.approx(row["theirs"] / row["ours"])


def test_command_names_what_failed() -> None:
    done = run("--against", "no_such_package", "--only", "scalar")
    assert done.returncode == 1
    scalars = [name for name, w in WORKLOADS.items() if w.group == "scalar"]
    assert done.stdout.count("No module named 'no_such_package'") == len(scalars)


def test_command_refuses_unknown_workloads() -> None:
    done = run("--only", "no_such_workload")
    assert done.returncode == 2 and "no_such_workload" in done.stderr


def test_samples_are_sorted_into_parts() -> None:
    report = """# Overhead ;Shared Object ;Symbol
 40.00% ;libgomp.so.1.0.0 ;[.] 0x000000000001f622
 20.50% ;_C.cpython-311-x86_64-linux-gnu.so ;[.] rushlight::v4::(anonymous namespace)::fold_line<float>
 10.50% ;_C.cpython-311-x86_64-linux-gnu.so ;[.] rushlight::Run::step(rushlight::Task&)
 10.00% ;[JIT] tid 1484 ;[.] 0x00007f9c8dc9602b
 9.00% ;_C_onednn.so ;[.] rushlight::product
 5.00% ;libscipy_openblas.so ;[.] sgemm_kernel
 3.00% ;libpython3.11.so.1.0 ;[.] _PyEval_EvalFrameDefault
 2.00% ;something else ;[.] f
"""
    assert where.shares(report) == {
        "wait": 40.0,
        "kernel": 20.5,
        "core": 10.5,
        "convolution": 19.0,
        "product": 5.0,
        "python": 3.0,
        "other": 2.0,
    }
    assert set(where.shares(report)) <= set(where.PARTS)
