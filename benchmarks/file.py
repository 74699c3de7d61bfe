"""Files and loaders: a state dict of 500 MB, and a dataset whose samples take a millisecond of Python."""

from __future__ import annotations

import importlib
import os
import time
from tempfile import TemporaryDirectory
from typing import Any

from .workload import Step, workload


def _state(torch: Any) -> dict[str, Any]:
    return {f"weight{i}": torch.full((1250, 1000), float(i)) for i in range(100)}


@workload("file")
def save_500mb(torch: Any) -> Step:
    """To the same path again and again, as checkpoints are."""
    folder, state = TemporaryDirectory(), _state(torch)
    return lambda: torch.save(state, os.path.join(folder.name, "model.pt"))


def _loading(torch: Any, **options: Any) -> Step:
    folder = TemporaryDirectory()
    torch.save(_state(torch), os.path.join(folder.name, "model.pt"))
    return lambda: torch.load(os.path.join(folder.name, "model.pt"), **options)


@workload("file")
def load_500mb(torch: Any) -> Step:
    return _loading(torch)


@workload("file")
def load_500mb_mapped(torch: Any) -> Step:
    return _loading(torch, mmap=True)


@workload("file")
def loader_2_workers(torch: Any) -> Step:
    """An epoch, with the start and the end of the workers."""
    data = importlib.import_module(f"{torch.__name__}.utils.data")

    class Slow(data.Dataset):  # type: ignore[misc, name-defined]
        def __len__(self) -> int:
            return 400

        def __getitem__(self, index: int) -> tuple[Any, int]:
            end = time.perf_counter() + 1e-3
            while time.perf_counter() < end:
                pass
            return torch.full((3, 32, 32), float(index)), index

    loader = data.DataLoader(Slow(), batch_size=16, shuffle=True, num_workers=2)
    return lambda: sum(len(labels) for _, labels in loader)
