"""The engine under vmap: graphs are recorded on values, so one run serves all samples."""

from __future__ import annotations

from typing import Any

import rushlight
from rushlight import _C, Tensor

from .levels import levels_of
from .tensor import _BACKWARD

__all__ = ["from_rows", "in_rows", "run"]


def run(
    roots: tuple[Any, ...],
    cotangents: tuple[Any, ...],
    retain_graph: bool,
    create_graph: bool,
    sources: tuple[Any, ...],
    allow_unreachable: bool,
    accumulate: bool,
) -> Any:
    """``_run_backward`` where a tensor is batched."""
    if accumulate:
        raise RuntimeError(_BACKWARD)
    levels, counts = levels_of([t for t in (*roots, *sources) if isinstance(t, Tensor)])
    level = max([_C._highest_level(v) for v in cotangents if v is not None], default=0)
    if level and level not in levels:  # the graph is that of every sample, the cotangents differ
        rest = roots, cotangents, retain_graph, create_graph, sources, allow_unreachable
        together = _together(level, levels, counts, *rest)
        return _by_cotangent(level, *rest) if together is None else together
    grads = []
    for root, v in zip(roots, cotangents, strict=True):
        if v is None:
            if root.numel() != 1:
                raise RuntimeError("grad can be implicitly created only for scalar outputs")
            grads.append(rushlight.ones_like(_C._unbatch(root)[0]))
        else:
            spread = _C._unbatch(_C._spread(v, levels, counts))[0]
            value = _C._unbatch(root)[0]
            if spread.shape != value.shape:
                raise RuntimeError(
                    f"Mismatch in shape: grad_output has a shape of {v.shape} and output has a shape of {root.shape}."
                )
            grads.append(spread)
    results = _C._run_backward(
        tuple([_C._unbatch(r)[0] for r in roots]),
        tuple(grads),
        retain_graph,
        create_graph,
        tuple([_C._unbatch(s)[0] if isinstance(s, Tensor) else s for s in sources]),
        allow_unreachable,
        False,
    )
    return tuple(
        [
            None if g is None else _C._rebatch(g, _C._unbatch(s)[1] if isinstance(s, Tensor) else ())
            for g, s in zip(results, sources, strict=True)
        ]
    )


def in_rows(v: Tensor, own: tuple[int, ...], sizes: tuple[int, ...], level: int, size: int) -> Tensor:
    """The numbers of a cotangent: the samples of ``level`` are rows, before the levels ``own`` that its graph knows."""
    value: Tensor = _C._unbatch(_C._spread(v, (*own, level), (*sizes, size)))[0]
    return value.movedim(len(own), 0) if own else value


def from_rows(g: Tensor, own: tuple[int, ...], level: int) -> Tensor:
    """A gradient that came in rows, batched by ``own`` and ``level``."""
    batched: Tensor = _C._rebatch(g.movedim(0, len(own)) if own else g, (*own, level))
    return batched


def _together(
    level: int,
    own: tuple[int, ...],
    sizes: tuple[int, ...],
    roots: tuple[Any, ...],
    cotangents: tuple[Any, ...],
    retain_graph: bool,
    create_graph: bool,
    sources: tuple[Any, ...],
    allow_unreachable: bool,
) -> tuple[Any, ...] | None:
    """All samples of the cotangents in one run over the graph, which knows the levels ``own`` but not ``level``.

    None where an operation takes one cotangent at a time, and where something is to be refused.
    """
    if any(v is None for v in cotangents) or not all(isinstance(r, Tensor) for r in roots):
        return None
    values = []
    for t in (*roots, *sources):
        value, levels = _C._unbatch(t) if isinstance(t, Tensor) else (t, ())
        if levels != own:
            return None
        values.append(value)
    for v, root in zip(cotangents, roots, strict=True):
        if v.shape != root.shape or not root.requires_grad or not {*own, level}.issuperset(_C._unbatch(v)[1]):
            return None
    size = next(v.shape[0] for v in [_C._value_at(c, level) for c in cotangents] if v is not None)
    rows = tuple([in_rows(v, own, sizes, level, size) for v in cotangents])
    n, keep = len(roots), retain_graph or not allow_unreachable
    found = _C._run_backward_rows(tuple(values[:n]), rows, keep, create_graph, tuple(values[n:]))
    if found is None or (not allow_unreachable and any(g is None for g in found)):
        return None
    return tuple([None if g is None else from_rows(g, own, level) for g in found])


def _by_cotangent(
    level: int,
    roots: tuple[Any, ...],
    cotangents: tuple[Any, ...],
    retain_graph: bool,
    create_graph: bool,
    sources: tuple[Any, ...],
    allow_unreachable: bool,
) -> tuple[Any, ...]:
    """One run for each sample of the cotangents, over the same graph."""
    values = [None if v is None else _C._value_at(v, level) for v in cotangents]
    size = next(v.shape[0] for v in values if v is not None)
    rows = []
    for i in range(size):
        vectors = tuple([v if w is None else w[i] for v, w in zip(cotangents, values, strict=True)])
        keep = retain_graph or i + 1 < size
        rows.append(_C._run_backward(roots, vectors, keep, create_graph, sources, allow_unreachable, False))
    results = []
    for column in zip(*rows, strict=True):
        results.append(None if column[0] is None else _C._batch(rushlight.stack(column), level))
    return tuple(results)
