"""Forward mode: random programs of operations, views and in-place changes on dual tensors, and calls; PyTorch decides."""

import importlib
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_autograd_oracle import STEPS, plain, result_of

import rushlight

torch = pytest.importorskip("torch", reason="the oracle is installed by .ci/run only")
pytestmark = pytest.mark.oracle

Program = list[tuple[str, int, int]]
Call = Callable[[Any, Any], Any]


def forward_ad_of(t: Any) -> Any:
    return importlib.import_module(f"{t.__name__}.autograd.forward_ad")


def numbers(t: Any, *shape: int) -> Any:
    n = 1
    for size in shape:
        n *= size
    return (t.arange(n, dtype=t.float64) * 0.7 - 1.1).sin().reshape(shape).clone()


def shares(a: Any, b: Any) -> bool:
    return bool(a.untyped_storage().data_ptr() == b.untyped_storage().data_ptr())


step = st.tuples(st.sampled_from(sorted(STEPS)), st.integers(0, 11), st.integers(0, 11))


def run(t: Any, program: Program, recorded: bool) -> list[Any]:
    """Everything that can be seen of a program: errors of steps, then numbers and tangents, then their gradients."""
    fw = forward_ad_of(t)
    leaves = [numbers(t, 2, 3), numbers(t, 3)]
    for leaf in leaves if recorded else ():
        leaf.requires_grad_()
    seen: list[Any] = []
    with fw.dual_level():
        a, b = fw.make_dual(leaves[0], numbers(t, 2, 3) + 1), fw.make_dual(leaves[1], 0.5 - numbers(t, 3))
        values = [a, b, numbers(t, 2, 3) * 2, a.clone(), b * 1.0, t.ones(2, 3, dtype=t.float64)]
        for name, i, j in program:
            x, y = values[i % len(values)], values[j % len(values)]
            kept: list[Any] = []

            def take(x: Any = x, y: Any = y, name: str = name, kept: list[Any] = kept) -> None:
                if name in ("add_", "mul_", "copy_", "assign") and shares(x, y):
                    y = y.clone()  # PyTorch's tangent of x.mul_(x) is wrong
                kept.append(STEPS[name](t, x, y))

            seen.append((name, result_of(take)))
            if kept and all(kept[0] is not v for v in values):
                values.append(kept[0])
        unpacked = []
        for k, v in enumerate(values):
            try:
                unpacked.append(fw.unpack_dual(v))
            except RuntimeError:  # a view whose history is lost; both must say so of the same ones
                seen.append(("history lost", k))
        seen.append(("primals", [plain(p.detach()) for p, _ in unpacked]))
        seen.append(("tangents", [None if d is None else plain(d.detach()) for _, d in unpacked]))
        seen.append(("in a graph", [d is not None and d.requires_grad for _, d in unpacked]))
        weighted = [d.sin().sum() for _, d in unpacked if d is not None and d.requires_grad]
        if weighted:
            try:
                grads = t.autograd.grad(sum(weighted), leaves, allow_unused=True)
            except RuntimeError:  # a tangent that the graph needs was changed in place
                return [*seen, ("no gradients",)]
            seen.append(
                ("gradients", [None if g is None else plain(fw.unpack_dual(g).primal.detach() + 0.0) for g in grads])
            )
    return seen


def flat(numbers: Any) -> list[float]:
    return [x for part in numbers for x in flat(part)] if isinstance(numbers, list) else [numbers]


def alike(ours: list[Any], theirs: list[Any], recorded: bool) -> None:
    for mine, other in zip(ours, theirs, strict=False):
        if "no gradients" in (mine[0], other[0]):
            return
        if mine[0] == "gradients":
            none = [z is None or not any(flat(z[-1].numbers)) for z in other[1]]
            assert all(m == o or (m is None and z) for m, o, z in zip(mine[1], other[1], none, strict=True))
        elif mine[0] == "in a graph":
            # a tangent that does not depend on a leaf may be in PyTorch's graph all the same
            assert all(not m or o for m, o in zip(mine[1], other[1], strict=True)), (mine, other)
        else:
            assert mine == other


@settings(max_examples=300, deadline=None)
@given(st.lists(step, min_size=1, max_size=8))
def test_random_programs(program: Program) -> None:
    alike(run(rushlight, program, False), run(torch, program, False), False)


@settings(max_examples=300, deadline=None)
@given(st.lists(step, min_size=1, max_size=7))
def test_random_programs_in_a_graph(program: Program) -> None:
    alike(run(rushlight, program, True), run(torch, program, True), True)
