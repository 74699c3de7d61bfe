"""Compare rushlight with another engine, workload by workload, in one run.

The engines take turns (theirs, ours, theirs, ours, ...), each measurement in a process of its own, so that a busy
machine slows both; the ratio is that of the medians, above 1 where rushlight is faster.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import subprocess
import sys
from typing import Any

from . import family, file, program  # noqa: F401  (they fill the table)
from .workload import WORKLOADS


def measured(engine: str, name: str, given: argparse.Namespace) -> dict[str, float] | str:
    """One measurement in a fresh process, or the last line of its complaint."""
    command = [sys.executable, "-m", "benchmarks.measure", engine, name]
    command += ["--threads", str(given.threads), "--seconds", str(given.seconds)]
    run = subprocess.run(command, capture_output=True, text=True, timeout=600)
    if run.returncode:
        lines = run.stderr.strip().splitlines()
        return lines[-1] if lines else f"exit status {run.returncode}"
    result: dict[str, float] = json.loads(run.stdout)
    return result


def compared(name: str, given: argparse.Namespace) -> dict[str, Any]:
    """Medians of both engines over the rounds."""
    theirs: list[dict[str, float]] = []
    ours: list[dict[str, float]] = []
    for _ in range(given.rounds):
        for engine, runs in ((given.against, theirs), ("rushlight", ours)):
            run = measured(engine, name, given)
            if isinstance(run, str):
                return {"name": name, "group": WORKLOADS[name].group, "failed": f"{engine}: {run}"}
            runs.append(run)
    row: dict[str, Any] = {"name": name, "group": WORKLOADS[name].group}
    for key, runs in (("theirs", theirs), ("ours", ours)):
        row[key] = statistics.median(run["seconds"] for run in runs)
        row[key + "_bytes"] = statistics.median(run["peak_bytes"] for run in runs)
    row["ratio"] = row["theirs"] / row["ours"]
    return row


def readable(seconds: float) -> str:
    """Seconds in the unit that suits them."""
    for unit, scale in (("s", 1.0), ("ms", 1e3), ("µs", 1e6)):
        if seconds * scale >= 1:
            return f"{seconds * scale:.3g} {unit}"
    return f"{seconds * 1e9:.3g} ns"


def line(row: dict[str, Any]) -> str:
    """One row of the Markdown table."""
    if "failed" in row:
        return f"| {row['name']} | {row['group']} | | | | {row['failed']} |"
    peak = f"{row['theirs_bytes'] / 2**20:.0f} / {row['ours_bytes'] / 2**20:.0f}"
    times = f"{readable(row['theirs'])} | {readable(row['ours'])}"
    return f"| {row['name']} | {row['group']} | {times} | {row['ratio']:.2f} | {peak} |"


def main() -> int:
    parser = argparse.ArgumentParser(prog="benchmarks", description=__doc__)
    parser.add_argument("--against", default="torch", help="torch (or a package with its names) or jax")
    parser.add_argument("--only", default="", help="names or groups, with commas between")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=0.5, help="time for one measurement")
    parser.add_argument("--json", action="store_true", help="print JSON lines instead of a Markdown table")
    given = parser.parse_args()
    wanted = {word for word in given.only.split(",") if word}
    known = set(WORKLOADS) | {w.group for w in WORKLOADS.values()}
    if not wanted <= known:
        parser.error(f"no workload or group is called {', '.join(sorted(wanted - known))}")
    names = [n for n, w in WORKLOADS.items() if not wanted or wanted & {n, w.group}]
    if given.against == "jax":
        from .jax_idiom import BUILDERS

        names = [n for n in names if n in BUILDERS]
    if not given.json:
        print(f"| workload | group | {given.against} | rushlight | ratio | peak MB ({given.against} / rushlight) |")
        print("| --- | --- | ---: | ---: | ---: | ---: |", flush=True)
    ratios, failed = [], 0
    for name in names:
        row = compared(name, given)
        print(json.dumps(row) if given.json else line(row), flush=True)
        failed += "failed" in row
        ratios += [row["ratio"]] if "ratio" in row else []
    if ratios and not given.json:
        mean = math.exp(statistics.fmean(map(math.log, ratios)))
        print(f"\nGeometric mean of {len(ratios)} ratios: {mean:.2f}.")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
