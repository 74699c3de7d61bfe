"""What operations cost in counts that no busy machine changes: instructions, calls, allocations, passes, frames.

The bounds lie about a fifth above what was counted when they were set; a change that passes one makes rushlight slower
and wants a reason. Instructions and calls are counted by callgrind, in one run of one program for all of them, with
what an empty call costs taken off.
"""

from __future__ import annotations

import json
import os
import platform
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import rushlight as torch

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

# what is counted, and its bounds: instructions, calls of malloc, of PyEval_SaveThread, of GOMP_parallel
BOUNDS = {}


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
