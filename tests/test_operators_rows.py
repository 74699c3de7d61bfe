"""Derivatives for many cotangents in one run over the graph, against a run for each."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from samples import family_of
from samples.compare import assert_same

import rushlight
from rushlight import _C
from test_operators import OPERATORS, TRIED, as_function, derivable, leaves

DERIVABLE = [n for n in TRIED if family_of(n) and OPERATORS[n].differentiable]
ROWS = 3
# what Jacobians are made of has to take cotangents in rows; of the others, some do
PROMISED = (
    "mm",
    "mv",
    "bmm",
    "matmul",
    "dot",
    "addmm",
    "addmv",
    "linear",
    "tanh",
    "mul",
    "add",
    "where",
    "sum",
    "mean",
)
PROMISED += ("view", "reshape", "permute", "transpose", "t", "expand", "select", "slice", "narrow", "squeeze", "clone")
PROMISED += ("unsqueeze", "cat", "stack", "split", "unbind", "softmax", "log_softmax", "logsumexp", "index_select")
PROMISED += ("linalg_vector_norm", "var", "std", "var_mean", "cumsum", "amax", "max", "min", "gather", "median", "sort")
PROMISED += ("diagonal", "tril", "unflatten", "movedim", "sub", "relu", "gelu", "pow", "clamp")


def cotangents(result: rushlight.Tensor) -> rushlight.Tensor:
    """Some numbers; every element of every row has its own."""
    shape = (ROWS, *result.shape)
    count = rushlight.zeros(shape).numel()
    numbers = rushlight.arange(1.0, count + 1, dtype=rushlight.float64).mul(0.7).sin().view(shape)
    if result.is_complex():
        numbers = rushlight.complex(numbers, numbers.roll(1, 0) + 0.25)
    return numbers.to(result.dtype)


def by_run(results: tuple[Any, ...], vectors: tuple[Any, ...], inputs: tuple[Any, ...]) -> list[Any]:
    each = [
        _C._run_backward(results, tuple([v[i] for v in vectors]), True, False, inputs, True, False) for i in range(ROWS)
    ]
    return [None if column[0] is None else rushlight.stack(list(column)) for column in zip(*each, strict=True)]


@pytest.mark.parametrize("name", DERIVABLE)
def test_rows_equal_runs(name: str) -> None:
    taken = 0
    for sample, inputs in itertools.islice(derivable(name, limit=60), 30):
        for needed in [None, *[(i,) for i in range(len(inputs))]]:
            variables = leaves(inputs, needed)
            try:
                results = as_function(OPERATORS[name], sample)(*variables)
            except NotImplementedError:
                continue
            results = tuple([r for r in results if r.requires_grad])
            wanted = tuple([v for v in variables if v.requires_grad])
            if not results:
                continue
            vectors = tuple([cotangents(r) for r in results])
            what = f"{name}({sample}), inputs {needed}"
            for create_graph in (False, True):
                found = _C._run_backward_rows(results, vectors, True, create_graph, wanted)
                if found is None:
                    continue
                taken += 1
                for ours, theirs, v in zip(found, by_run(results, vectors, wanted), wanted, strict=True):
                    assert (ours is None) == (theirs is None), what
                    if ours is None:
                        continue
                    assert ours.dtype == v.dtype and ours.shape == (ROWS, *v.shape), what
                    if sample.values:
                        assert_same(ours, theirs, (1e-9, 1e-11), what)
    assert taken or name not in PROMISED, f"{name} takes no cotangents in rows"


def test_rows_may_be_none() -> None:
    x = rushlight.ones(3, 2, requires_grad=True)
    (g,) = _C._run_backward_rows((x.exp(),), (rushlight.ones(0, 3, 2),), False, False, (x,))
    assert g.shape == (0, 3, 2)


def test_rows_do_not_pass_hooks() -> None:
    x = rushlight.ones(3, requires_grad=True)
    y = x.exp()
    seen: list[Any] = []
    y.register_hook(seen.append)
    assert _C._run_backward_rows((y.sin(),), (rushlight.ones(2, 3),), True, False, (x,)) is None
    x.register_hook(seen.append)
    assert _C._run_backward_rows((x.sin(),), (rushlight.ones(2, 3),), True, False, (x,)) is None
    assert not seen


def test_rows_of_wrong_shape_are_refused() -> None:
    x = rushlight.ones(3, requires_grad=True)
    with pytest.raises(RuntimeError, match=r"shape \[2, 4\], expected rows of shape \[3\]"):
        _C._run_backward_rows((x.sin(),), (rushlight.ones(2, 4),), False, False, (x,))
    with pytest.raises(RuntimeError, match="rows"):
        _C._run_backward_rows((x.sin(), x.cos()), (rushlight.ones(2, 3), rushlight.ones(4, 3)), False, False, (x,))
