"""The table of workloads: each builds, on a torch-like package, a function whose calls are timed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Step = Callable[[], Any]


@dataclass(frozen=True)
class Workload:
    """What is timed: ``build(torch)`` gives a function of no arguments, one call of which is one measurement."""

    name: str
    group: str  # "program": what people run; otherwise the family of operators
    build: Callable[[Any], Step]


WORKLOADS: dict[str, Workload] = {}


def workload(group: str, name: str | None = None) -> Callable[[Callable[[Any], Step]], Callable[[Any], Step]]:
    """Enter the decorated builder into the table under its name."""

    def enter(build: Callable[[Any], Step]) -> Callable[[Any], Step]:
        key = name or build.__name__
        if key in WORKLOADS:
            raise ValueError(f"two workloads are called {key}")
        WORKLOADS[key] = Workload(key, group, build)
        return build

    return enter


def gradient_step(torch: Any, function: Callable[..., Any], *inputs: Any) -> Step:
    """Forward and backward of the sum of ``function(*inputs)``, gradients dropped before each call."""
    leaves = [x for x in inputs if x.requires_grad]

    def step() -> None:
        for leaf in leaves:
            leaf.grad = None
        function(*inputs).sum().backward()

    return step
