"""Checkpoints that real tools wrote, inside of a published package that is read and not imported."""

import io
import subprocess
import sys
import zipfile

import numpy as np
import pytest

import rushlight
from rushlight.io import describe

torch = pytest.importorskip("torch", reason="the oracle is installed by .ci/run only")
pytestmark = pytest.mark.oracle

PACKAGE = "facenet-pytorch==2.6.0"
CONTENTS = {"pnet.pt": (13, 6_632), "rnet.pt": (16, 100_178), "onet.pt": (21, 389_040)}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(folder), PACKAGE]
    finished = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    if finished.returncode != 0:
        pytest.skip(f"{PACKAGE} cannot be downloaded here: {finished.stderr[-200:]}")
    (path,) = folder.glob("*.whl")
    with zipfile.ZipFile(path) as archive:
        yield archive


@pytest.mark.parametrize("name", CONTENTS)
def test_published_weights(wheel, name, tmp_path):
    data = wheel.read(f"facenet_pytorch/data/{name}")
    tensors, numbers = CONTENTS[name]
    ours, theirs = rushlight.load(io.BytesIO(data)), torch.load(io.BytesIO(data))
    assert list(ours) == list(theirs)
    assert len(ours) == tensors
    assert sum(tensor.numel() for tensor in ours.values()) == numbers
    for key, tensor in ours.items():
        assert str(tensor.dtype) == str(theirs[key].dtype)
        assert np.array_equal(tensor.numpy(), theirs[key].numpy())
    path = tmp_path / name
    path.write_bytes(data)
    lines = describe(path)
    assert f"{tensors} tensors, {numbers:,} numbers" in lines[0]
    assert [line.split()[0] for line in lines[1:]] == list(theirs)
