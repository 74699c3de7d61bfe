"""What operations cost in counts that no busy machine changes: instructions, calls, allocations, passes, frames.

The bounds lie about a half above what was counted when they were set, as another installation of Python can add a
quarter; a change that passes one makes rushlight slower and wants a reason. Instructions and calls are counted by callgrind, in one run of one program for all of them, with
what an empty call costs taken off.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import rushlight as torch
from rushlight import nn

counted_by_callgrind = pytest.mark.skipif(
    shutil.which("valgrind") is None or sys.version_info[:2] != (3, 11) or platform.machine() != "x86_64",
    reason="needs valgrind; the bounds are for CPython 3.11 on x86-64",
)

# The program calls this function of the C library, which nothing else calls, around what is to be counted.
MARK = "getloadavg"
REPEATS = 200
CALLS = ("malloc", "PyEval_SaveThread", "GOMP_parallel")

HEAD = f"""
import gc, os
import rushlight as torch
from rushlight import nn

def count(f):
    for _ in range(20):
        f()
    os.{MARK}()
    for _ in range({REPEATS}):
        f()
    os.{MARK}()

gc.disable()
torch.set_num_threads(2)
x, y, s = torch.ones(4), torch.ones(4), torch.tensor(1.5)
w = torch.ones(4, requires_grad=True)
matrix = torch.ones(4, 4)

def chain():
    z = w
    for _ in range(100):
        z = z * y
    return z.sum()

kept = chain()
single = (w * y).sum()
model = nn.Sequential(nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 4))
inputs, targets = torch.ones(32, 64), torch.ones(32, 4)
sgd = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9)
adam = torch.optim.Adam(model.parameters(), lr=1e-3)

def forward():
    return nn.functional.mse_loss(model(inputs), targets)

loss = forward()

def added():
    global x
    x += y

count(lambda: None)
"""

# What is counted, and its bounds: instructions, calls of malloc, of PyEval_SaveThread (the interpreter lock is given up)
# and of GOMP_parallel (threads are woken). The chains have 100 nodes.
BOUNDS = {
    "x * y": (1_900, 1, 0, 0),
    "w * y": (3_300, 3, 0, 0),
    "x * 2.0": (2_000, 1, 0, 0),
    "x < 0.5": (1_900, 1, 0, 0),
    "x[1]": (1_700, 3, 0, 0),
    "x[1:3]": (2_500, 3, 0, 0),
    "s.item()": (580, 1, 0, 0),
    "torch.tensor(1.0)": (4_500, 1, 0, 0),
    "x.shape": (510, 1, 0, 0),
    "added()": (2_000, 1, 0, 0),
    "list(x)": (7_100, 9, 0, 0),
    "matrix.t()": (2_600, 3, 0, 0),
    "matrix @ x": (2_800, 1, 0, 0),
    "matrix @ matrix": (3_800, 1, 0, 0),
    "torch.einsum('ij,j->i', matrix, x)": (28_000, 1, 0, 0),
    "x.sum()": (3_800, 1, 0, 0),
    "torch.zeros(4)": (3_400, 1, 0, 0),
    "chain()": (320_000, 3, 0, 0),
    "single.backward(retain_graph=True)": (19_000, 12, 0, 0),
    "kept.backward(retain_graph=True)": (240_000, 14, 0, 0),
    "forward()": (330_000, 5, 2, 0),
    "loss.backward(retain_graph=True)": (410_000, 17, 3, 0),
    "sgd.step()": (39_000, 8, 0, 0),
    "adam.step()": (63_000, 8, 0, 0),
}


def counted(tmp_path: Path) -> dict[str, list[float]]:
    """Per expression, the instructions and calls of one evaluation."""
    program = HEAD + "".join(f"count(lambda: {expression})\n" for expression in BOUNDS)
    command = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={tmp_path}/counts", f"--dump-before={MARK}"]
    command += ["--compress-strings=no", "--compress-pos=no", sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ | {"PYTHONHASHSEED": "0"})
    assert done.returncode == 0, done.stderr
    # part 1 is the start, then every second one is what lies between two marks
    parts = [(tmp_path / f"counts.{2 * i + 2}").read_text() for i in range(len(BOUNDS) + 1)]
    rows = []
    for part in parts:
        instructions = int(re.search(r"^totals: (\d+)", part, re.M)[1])
        calls = [sum(map(int, re.findall(rf"^cfn={name}\S*\ncalls=(\d+)", part, re.M))) for name in CALLS]
        rows.append([n / REPEATS for n in (instructions, *calls)])
    empty = rows[0]
    return {name: [a - b for a, b in zip(row, empty, strict=True)] for name, row in zip(BOUNDS, rows[1:], strict=True)}


@pytest.fixture(scope="module")
def counts(tmp_path_factory):
    first = counted(tmp_path_factory.mktemp("callgrind"))
    if not any(over(first[expression], BOUNDS[expression]) for expression in BOUNDS):
        return first
    # The system can add to a count (a thread that waits in vain, a library's housekeeping), never take from it.
    again = counted(tmp_path_factory.mktemp("callgrind"))
    return {name: [min(pair) for pair in zip(first[name], again[name], strict=True)] for name in first}


def over(found, bounds):
    """What is above its bound, with the bound."""
    what = ("instructions", *CALLS)
    return {w: (n, most) for w, n, most in zip(what, found, bounds, strict=True) if n > most + 0.1}


@counted_by_callgrind
@pytest.mark.parametrize("expression", BOUNDS)
def test_instructions_and_calls(counts, expression):
    assert over(counts[expression], BOUNDS[expression]) == {}
    assert counts[expression][0] > 0  # something was counted


# ---- what the library counts itself


def step_of(model, optimizer, x, y):
    def step():
        optimizer.zero_grad()
        nn.functional.mse_loss(model(x), y).backward()
        optimizer.step()

    return step


def perceptron():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 4))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    return step_of(model, optimizer, torch.randn(32, 64), torch.randn(32, 4))


def gelu_step(n):
    x = torch.randn(n, requires_grad=True)

    def step():
        x.grad = None
        (0.5 * x * (1 + torch.tanh(0.7978845608 * (x + 0.044715 * x * x * x)))).sum().backward()

    return step


def grown(stats, step, repeats=10):
    """By how much counters grow per step, once the caches are warm."""
    for _ in range(5):
        step()
    before = stats()
    for _ in range(repeats):
        step()
    after = stats()
    return {key: (after[key] - before[key]) / repeats for key in after}


@pytest.mark.parametrize(
    ("make", "allocations"), [(perceptron, 22), (lambda: gelu_step(1_000_000), 11), (lambda: gelu_step(1000), 19)]
)
def test_allocations_of_a_step(make, allocations):
    made = grown(torch._C.memory_stats, make())
    assert made["system_calls"] == 0  # all memory is used again
    assert made["allocated_bytes"] == 0
    assert 0 < made["allocations"] <= allocations


def test_passes_over_memory():
    made = grown(torch._C._deferral_stats, gelu_step(1_000_000))
    assert made["deferred"] > 0
    assert made["passes"] <= 2  # the sum, and the gradient


@pytest.mark.parametrize(("make", "frames"), [(perceptron, 40), (lambda: gelu_step(4), 2)])
def test_python_frames_of_a_step(make, frames):
    step, calls = make(), []
    for _ in range(5):
        step()

    def profile(frame, event, _argument):
        if event == "call":
            calls.append(frame.f_code.co_qualname)

    sys.setprofile(profile)
    try:
        step()
    finally:
        sys.setprofile(None)
    assert 0 < len(calls) <= frames, calls
