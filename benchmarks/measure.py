"""Times one workload in this process and prints a JSON object: ``python -m benchmarks.measure --help``."""

from __future__ import annotations

import argparse
import importlib
import json
import resource
import statistics
import time
from typing import Any

from . import family, file, program  # noqa: F401  (they fill the table)
from .workload import WORKLOADS, Step


def median_seconds(step: Step, seconds: float) -> float:
    """The median time of one call: batches of at least 50 ms, for ``seconds`` and five batches at least."""
    step()
    step()
    calls = 1
    while True:
        begin = time.perf_counter()
        for _ in range(calls):
            step()
        if time.perf_counter() - begin > 0.05:
            break
        calls *= 2
    batches: list[float] = []
    while len(batches) < 5 or sum(batches) < seconds:
        begin = time.perf_counter()
        for _ in range(calls):
            step()
        batches.append(time.perf_counter() - begin)
    return statistics.median(batches) / calls


def prepared(engine: str, name: str, threads: int) -> Step:
    """The workload on an engine: a torch-like package by its name, or ``jax`` in its own idiom."""
    if engine == "jax":
        from .jax_idiom import BUILDERS

        if name not in BUILDERS:
            raise LookupError(f"{name} is not written for jax")
        return BUILDERS[name]()
    torch: Any = importlib.import_module(engine)
    for part in ("nn", "nn.functional", "optim", "autograd.functional"):
        importlib.import_module(f"{engine}.{part}")
    torch.set_num_threads(threads)
    return WORKLOADS[name].build(torch)


def main() -> None:
    parser = argparse.ArgumentParser(prog="benchmarks.measure", description=__doc__)
    parser.add_argument("engine", help="a package with PyTorch's names, or jax")
    parser.add_argument("workload")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=0.5)
    given = parser.parse_args()
    step = prepared(given.engine, given.workload, given.threads)
    seconds = median_seconds(step, given.seconds)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(json.dumps({"seconds": seconds, "peak_bytes": peak}))


if __name__ == "__main__":
    main()
