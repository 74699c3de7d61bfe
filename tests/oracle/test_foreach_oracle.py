"""torch._foreach_*: an operator over lists of tensors, as PyTorch has them."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import rushlight

torch = pytest.importorskip("torch", reason="the oracle is installed by .ci/run only")
pytestmark = pytest.mark.oracle

NAMES = [name for name in dir(torch) if name.startswith("_foreach_") and name != "_foreach_powsum"]
UNARY = [name for name in NAMES if not re.search("add|sub|mul|div|clamp|mum|pow|lerp|mm|copy", name)]

# Calls with T, U, V: lists of two tensors of positive numbers.
CALLS = """
t._foreach_add(T, U)
t._foreach_add(T, U, alpha=2)
t._foreach_add(T, 3)
t._foreach_add(T, scalar=3)
t._foreach_add(T, [1, 2.5])
t._foreach_add(T, scalars=[1, 2.5])
t._foreach_add(T, t.tensor(2.0))
t._foreach_add(T, t.tensor(2.0), alpha=3)
t._foreach_add_(T, U, alpha=-1)
t._foreach_sub(T, U, alpha=3)
t._foreach_sub_(T, 1)
t._foreach_mul(T, U)
t._foreach_mul(tuple(T), 2)
t._foreach_mul_(T, t.tensor(3.0))
t._foreach_mul_(T, [2, 3])
t._foreach_div(T, U)
t._foreach_div_(T, [2.0, 4.0])
t._foreach_pow(T, 2)
t._foreach_pow(T, [2, 3])
t._foreach_pow(T, U)
t._foreach_pow(2.0, T)
t._foreach_pow_(T, 2)
t._foreach_maximum(T, U)
t._foreach_maximum_(T, 1.5)
t._foreach_minimum(T, [1.2, 1.7])
t._foreach_clamp_max(T, U)
t._foreach_clamp_min_(T, 1.5)
t._foreach_addcmul(T, U, V)
t._foreach_addcmul(T, U, V, value=2)
t._foreach_addcmul(T, U, V, [1, 2])
t._foreach_addcmul(T, U, V, scalars=[1, 2])
t._foreach_addcmul(T, U, V, t.tensor([1.0, 2.0]))
t._foreach_addcmul_(T, U, V, value=-0.5)
t._foreach_addcdiv(T, U, V)
t._foreach_addcdiv_(T, U, V, [1, 2])
t._foreach_lerp(T, U, 0.3)
t._foreach_lerp(T, U, V)
t._foreach_lerp(T, U, [0.3, 0.4])
t._foreach_lerp_(T, U, weight=0.6)
t._foreach_norm(T)
t._foreach_norm(T, 1)
t._foreach_norm(T, float('inf'))
t._foreach_norm(T, ord=3)
t._foreach_norm(T, 2, dtype=t.float64)
t._foreach_copy_(T, U)
t._foreach_copy_(T, U, True)
t._foreach_zero_(T)
t._foreach_mm([t.ones(2, 3)], [t.ones(3, 4)])
t._foreach_add([], 1)
t._foreach_add([], [])
t._foreach_sqrt([])
t._foreach_norm([])
t._foreach_add(T, U[:1])
t._foreach_add(T, U + U)
t._foreach_add(T, [1.0])
t._foreach_add_(T, t.ones(2))
t._foreach_addcmul_(T, U[:1], V)
t._foreach_add(T, V + [t.ones(2)])
t._foreach_mul(T, t.ones(1))
""".strip().splitlines()


def lists(t: Any) -> dict[str, Any]:
    def make(start: float) -> list[Any]:
        return [t.linspace(start, start + 1, 6).reshape(2, 3), t.linspace(start, start + 2, 4, dtype=t.float64)]

    return {"t": t, "T": make(1.0), "U": make(1.3), "V": make(0.4)}


def outcome(t: Any, call: str) -> Any:
    scope = lists(t)
    try:
        result = eval(call, scope)  # the calls above
    except RuntimeError as error:
        return "refused", str(error)
    after = [x.numpy().copy() for x in scope["T"]]
    return type(result), [x.numpy() for x in result], after, result is scope["T"]


def assert_same(call: str) -> None:
    ours, theirs = outcome(rushlight, call), outcome(torch, call)
    if theirs[0] == "refused":
        assert ours == theirs
        return
    assert ours[0] is theirs[0]
    assert ours[3] == theirs[3]
    for one, other in zip(ours[1] + ours[2], theirs[1] + theirs[2], strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_allclose(one, other, rtol=2e-6)


@pytest.mark.parametrize("call", CALLS)
def test_call(call: str) -> None:
    assert_same(call)


@pytest.mark.parametrize("name", UNARY)
def test_unary(name: str) -> None:
    assert_same(f"t.{name}([x / 4 for x in T])" if not name.endswith("_") else f"t.{name}(T)")


def test_every_name_is_there() -> None:
    assert [name for name in NAMES if not hasattr(rushlight, name)] == []
