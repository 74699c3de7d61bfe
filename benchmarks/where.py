"""Where the time of workloads goes, by sampling with Linux's perf: ``python -m benchmarks.where [NAME ...]``.

Prints a Markdown table with the share of samples, over all threads, in each part.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections import Counter

from . import family, file, program  # noqa: F401  (they fill the table)
from .workload import WORKLOADS

PARTS = {
    "convolution": "oneDNN",
    "product": "OpenBLAS",
    "loop": "loops of NumPy and libm",
    "kernel": "our kernels",
    "core": "our core: recording, engine, dispatch, memory",
    "python": "the interpreter",
    "copy": "the C library: copying and setting memory, heap",
    "wait": "OpenMP: waiting for the other thread",
    "system": "the kernel: page faults, system calls",
    "other": "anything else",
}

# By a part of the name of the library; the code that oneDNN generates has none.
_LIBRARIES = {
    "[JIT]": "convolution",
    "libdnnl": "convolution",
    "openblas": "product",
    "_multiarray_umath": "loop",
    "_umath": "loop",
    "libm.so": "loop",
    "libm-": "loop",
    "python": "python",
    "libc.so": "copy",
    "libgomp": "wait",
    "[kernel": "system",
    "[unknown]": "system",
}
_INSTRUCTION_SETS = ("::v4::", "::v3::", "::baseline::")


def part_of(library: str, symbol: str) -> str:
    """The part that a sample belongs to."""
    if library.startswith("_C"):
        if "onednn" in library:
            return "convolution"
        return "kernel" if any(name in symbol for name in _INSTRUCTION_SETS) else "core"
    return next((part for name, part in _LIBRARIES.items() if name in library), "other")


def shares(report: str) -> Counter[str]:
    """Percent of samples by part, from the lines ``percent;library;symbol`` of a report."""
    found: Counter[str] = Counter()
    for row in report.splitlines():
        fields = [field.strip() for field in row.split(";", 2)]
        if len(fields) == 3 and fields[0].endswith("%"):
            found[part_of(fields[1], fields[2])] += float(fields[0][:-1])
    return found


def sampled(engine: str, name: str, seconds: float) -> Counter[str]:
    """The shares of one workload, run in a process of its own."""
    with tempfile.NamedTemporaryFile(suffix=".perf") as data:
        measure = [sys.executable, "-m", "benchmarks.measure", engine, name, "--seconds", str(seconds)]
        subprocess.run(
            ["perf", "record", "-q", "-F", "2000", "-o", data.name, *measure], check=True, capture_output=True
        )
        report = [
            "perf",
            "report",
            "-i",
            data.name,
            "--stdio",
            "-t",
            ";",
            "--sort",
            "dso,symbol",
            "-F",
            "overhead,dso,symbol",
        ]
        return shares(subprocess.run(report, check=True, capture_output=True, text=True).stdout)


def main() -> None:
    parser = argparse.ArgumentParser(prog="benchmarks.where", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="workloads; all of them by default")
    parser.add_argument("--engine", default="rushlight", help="a package with PyTorch's names")
    parser.add_argument("--seconds", type=float, default=3.0)
    given = parser.parse_args()
    if unknown := set(given.names) - set(WORKLOADS):
        parser.error(f"no workload is called {', '.join(sorted(unknown))}")
    print("| workload | " + " | ".join(PARTS) + " |")
    print("| --- | " + " | ".join("---:" for _ in PARTS) + " |", flush=True)
    for name in given.names or WORKLOADS:
        found = sampled(given.engine, name, given.seconds)
        print(f"| {name} | " + " | ".join(f"{found[part]:.0f} %" for part in PARTS) + " |", flush=True)


if __name__ == "__main__":
    main()
