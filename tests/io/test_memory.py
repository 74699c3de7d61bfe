"""How much memory files take: what they hold once and no more, and when mapped only what is read."""

import gc
import subprocess
import sys

import pytest

import rushlight as torch
from rushlight.io import npz, safetensors

MEGABYTE = 1 << 20
TENSORS, EACH = 8, 8 * MEGABYTE

# Prints by how much the peak of this process grows in the statement, in bytes.
MEASURE = """
import resource, sys
import rushlight as torch
path = sys.argv[1]
torch.save({"a": torch.ones(3)}, path + ".small")
torch.load(path + ".small")
torch.load(path + ".small", mmap=True)
def status(field):
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) << 10 for line in file if line.startswith(field))
%s
print(status("VmHWM") - before)
"""


def grown(path, statements):
    finished = subprocess.run(
        [sys.executable, "-c", MEASURE % statements, str(path)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert finished.returncode == 0, finished.stderr
    return int(finished.stdout)


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    path = tmp_path_factory.mktemp("large") / "m.pt"
    torch.save({str(i): torch.full((EACH // 4,), float(i)) for i in range(TENSORS)}, path)
    return path


@pytest.mark.parametrize("zipped", [True, False])
def test_saving_copies_nothing(tmp_path, zipped):
    statements = f"""
state = {{str(i): torch.full(({EACH // 4},), float(i)) for i in range({TENSORS})}}
[tensor[0].item() for tensor in state.values()]
before = status("VmHWM")
torch.save(state, path, _use_new_zipfile_serialization={zipped})
"""
    assert grown(tmp_path / "m.pt", statements) < 4 * MEGABYTE


def test_loading_takes_what_the_tensors_need(path):
    taken = grown(path, 'before = status("VmRSS"); state = torch.load(path)')
    assert taken + MEGABYTE >= TENSORS * EACH
    assert taken < TENSORS * EACH + 4 * MEGABYTE


def test_a_mapped_file_is_read_where_it_is_looked_at(path):
    assert grown(path, 'before = status("VmRSS"); state = torch.load(path, mmap=True)') < 2 * MEGABYTE
    one = grown(path, 'before = status("VmRSS"); state = torch.load(path, mmap=True); assert state["3"].sum() > 0')
    assert one + MEGABYTE >= EACH
    assert one < EACH + 4 * MEGABYTE


ROUND_TRIPS = {
    "zip": (torch.save, torch.load),
    "mapped": (torch.save, lambda path: torch.load(path, mmap=True)),
    "legacy": (lambda state, path: torch.save(state, path, _use_new_zipfile_serialization=False), torch.load),
    "npz": (npz.save_file, npz.load_file),
    "safetensors": (safetensors.save_file, safetensors.load_file),
}


@pytest.mark.parametrize("kind", ROUND_TRIPS)
def test_tensors_end_with_their_last_name(tmp_path, kind):
    """Nothing that saved or loaded them holds on to them until the collector comes."""
    if kind == "safetensors":
        pytest.importorskip("safetensors", reason="the package that reads and writes the format")
    save, load = ROUND_TRIPS[kind]
    gc.collect()
    before = torch.memory_stats()["allocated_bytes"]
    gc.disable()
    try:
        state = {"a": torch.zeros(MEGABYTE), "b": torch.nn.Parameter(torch.zeros(MEGABYTE)).detach()}
        save(state, tmp_path / "m.file")
        del state
        assert torch.memory_stats()["allocated_bytes"] - before < MEGABYTE
        state = load(tmp_path / "m.file")
        assert state["b"].sum() == 0
        del state
        assert torch.memory_stats()["allocated_bytes"] - before < MEGABYTE
    finally:
        gc.enable()
