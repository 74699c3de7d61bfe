"""The example that is killed and goes on ends with the numbers of a run that was not, bit for bit."""

import contextlib
import fcntl
import os
import random
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import rushlight as torch

PROGRAM = Path(__file__).parents[2] / "examples" / "resume.py"
STEPS = 800
SMALL_PIPE = 4096  # so few bytes of what it prints may the program be ahead of us: 170 steps, 3 times less than is left
KILLS = 3


def start(folder, workers):
    folder.mkdir(exist_ok=True)
    command = [sys.executable, str(PROGRAM), str(folder / "run.pt"), "--steps", str(STEPS), "--every", "7"]
    process = subprocess.Popen([*command, "--workers", str(workers)], stdout=subprocess.PIPE, text=True)
    with contextlib.suppress(AttributeError, OSError):
        fcntl.fcntl(process.stdout, fcntl.F_SETPIPE_SZ, SMALL_PIPE)
    return process


def run_to_the_end(folder, workers):
    output = start(folder, workers).communicate(timeout=120)[0].splitlines()
    return output[0], output[-1]


def run_and_be_killed(folder, workers, step):
    """Start, kill when `step` is reported, and return the step that it had gone on from."""
    process = start(folder, workers)
    begun = 0
    for line in process.stdout:
        if found := re.match(r"going on from step (\d+)", line):
            begun = int(found[1])
        if line.startswith(f"step {step} "):
            break
    process.send_signal(signal.SIGKILL)
    process.stdout.close()
    assert process.wait(timeout=60) == -signal.SIGKILL
    return begun


def numbers(value):
    """`value` with the bytes of its tensors in their place."""
    if isinstance(value, torch.Tensor):
        return str(value.dtype), tuple(value.shape), value.numpy().tobytes()
    if isinstance(value, dict):
        return {key: numbers(item) for key, item in value.items()}
    return [numbers(item) for item in value] if isinstance(value, (list, tuple)) else value


@pytest.mark.parametrize("workers", [0, 2])
def test_killed_at_random_steps(tmp_path, workers):
    _, digest = run_to_the_end(tmp_path / "whole", workers)
    assert re.fullmatch(r"digest [0-9a-f]{64}", digest)
    steps = sorted(random.SystemRandom().sample(range(20, 150), KILLS))
    begun = [run_and_be_killed(tmp_path / "killed", workers, steps[0])]
    for step in steps[1:]:
        # It may have been further when it was killed than what we had read.
        done = torch.load(tmp_path / "killed" / "run.pt")["step"]
        begun.append(run_and_be_killed(tmp_path / "killed", workers, max(step, done + 1)))
    first, last = run_to_the_end(tmp_path / "killed", workers)
    assert begun[0] == 0
    assert all(begun[1:]), (steps, begun)
    assert first.startswith("going on from step "), steps
    assert last == digest, (steps, begun)
    # Model, optimizer, scheduler, random numbers and place in the data.
    whole, killed = (numbers(torch.load(tmp_path / name / "run.pt")) for name in ("whole", "killed"))
    assert whole == killed, (steps, begun)
    assert os.listdir(tmp_path / "killed") == ["run.pt"]


def test_other_seeds_give_other_digests():
    """The comparison above could fail: a digest depends on what was trained."""
    from importlib.util import module_from_spec, spec_from_file_location

    specification = spec_from_file_location("resume", PROGRAM)
    module = module_from_spec(specification)
    specification.loader.exec_module(module)
    first, second, again = (module.Training(10, seed=seed) for seed in (0, 1, 0))
    assert first.digest() == again.digest() != second.digest()
