"""Forward mode: ``jvp`` and ``linearize``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import rushlight
from rushlight import _C, Tensor

from .._vmap.levels import levels_of, open_levels
from ..utils import _pytree as pytree
from ._check import only_tensors
from ._level import Inputs, bottom, differentiating, leaving

__all__ = ["jvp", "linearize"]


def jvp(
    func: Callable[..., Any], primals: Any, tangents: Any, *, strict: bool = False, has_aux: bool = False
) -> tuple[Any, ...]:
    """Return ``func(*primals)`` and the product of its Jacobian with ``tangents``: ``(output, jvp_out)``.

    ``primals`` and ``tangents`` are tuples of the same structure and shapes (RuntimeError otherwise). With ``has_aux``
    ``func`` returns a pair, and its second part is the third of the result. An output that does not depend on the
    primals has a tangent of zeros, or is a RuntimeError with ``strict``.
    """
    leaves, moves, spec = _check_tangents(primals, tangents)
    with _pushing() as level:
        result = func(*pytree.tree_unflatten(_duals(leaves, moves, level), spec))
        aux = None
        if has_aux:
            result, aux = _pair(result, "jvp(f, primals, tangents)")
        only_tensors(result, "jvp(f, primals, tangents)", "f(*primals)")
        results, out_spec = pytree.tree_flatten(result)
        parts = [_parts(t, level, strict) for t in results]
        if has_aux:
            only_tensors(aux, "jvp(f, primals, tangents)", "aux")
            aux = pytree.tree_map(lambda t: _parts(t, level, False)[0], aux)
    output = pytree.tree_unflatten([primal for primal, _ in parts], out_spec)
    tangent = pytree.tree_unflatten([moved for _, moved in parts], out_spec)
    return (output, tangent, aux) if has_aux else (output, tangent)


class _pushing:
    """A context with a level of tangents of its own."""

    __slots__ = ("before", "level")

    def __enter__(self) -> int:
        _C._enter_transform(False)
        self.before = _C._set_fwd_grad_enabled(True)
        self.level: int = _C._enter_tangent_level()
        return self.level

    def __exit__(self, *exc: object) -> None:
        _C._exit_tangent_level(self.level)
        _C._set_fwd_grad_enabled(self.before)
        _C._leave_transform(False)


def _duals(leaves: list[Tensor], moves: list[Tensor], level: int) -> list[Tensor]:
    """The primals with their tangents; where one of the two is batched, so is the other."""
    if not open_levels():
        return [_C._make_dual(leaf, move, level) for leaf, move in zip(leaves, moves, strict=True)]
    duals = []
    for leaf, move in zip(leaves, moves, strict=True):
        numbers, sizes = levels_of((leaf, move))
        value, tangent = [_C._unbatch(_C._spread(t, numbers, sizes))[0] for t in (leaf, move)]
        duals.append(_C._rebatch(_C._make_dual(value, tangent, level), numbers))
    return duals


def _parts(t: Tensor, level: int, strict: bool) -> tuple[Tensor, Tensor]:
    """A result without its tangent, and that."""
    value, levels = _C._unbatch(t)
    primal, moved = _C._unpack_dual(value, level)
    if moved is None:
        if strict:
            raise RuntimeError(
                "jvp(f, primals, tangents, strict=True): The output of f is independent of the inputs. This is not "
                "allowed in strict mode."
            )
        moved = rushlight.zeros_like(primal)
    return (_C._rebatch(primal, levels), _C._rebatch(moved, levels)) if levels else (primal, moved)


def _pair(result: Any, who: str) -> tuple[Any, Any]:
    if not (isinstance(result, tuple) and len(result) == 2):
        raise RuntimeError(f"{who}: output of function f should be a tuple: (output, aux) if has_aux is True")
    return result


def linearize(func: Callable[..., Any], *primals: Any) -> tuple[Any, Callable[..., Any]]:
    """Return ``func(*primals)`` and the function that multiplies its Jacobian there with tangents, from the right.

    ``func`` runs once, however often that function is called (once more for each :func:`vmap` over it).
    """
    leaves, spec = pytree.tree_flatten(primals)
    with differentiating() as outside:
        line = _Line(func, leaves, spec, outside)
        line.inputs.finish()

    def push(*tangents: Any) -> Any:
        moves, own = pytree.tree_flatten(tangents)
        if own != spec:
            raise RuntimeError(f"Expected the tangents {own} to have the same argspec as the primals {spec}")
        for i, (leaf, move) in enumerate(zip(leaves, moves, strict=True)):
            if move.shape != leaf.shape:
                raise RuntimeError(
                    f"tangent:{i} with shape {move.shape} in flattened pytree doesn't match the shape {leaf.shape} of "
                    "the corresponding primal."
                )
            if move.dtype != leaf.dtype:
                raise RuntimeError(
                    f"tangent:{i} with dtype {move.dtype} in flattened pytree doesn't match the dtype {leaf.dtype} of "
                    "the corresponding primal."
                )
        if any(set(_C._unbatch(t)[1]) - set(line.inputs.numbers) for t in moves):
            return jvp(func, primals, tangents)[1]
        with differentiating() as recording:
            return pytree.tree_unflatten(line.push(moves, recording), line.out_spec)

    return line.output, push


def _check_tangents(primals: Any, tangents: Any) -> tuple[list[Any], list[Any], Any]:
    for name, given in (("primals", primals), ("tangents", tangents)):
        if not isinstance(given, tuple):
            raise RuntimeError(
                f"jvp(f, primals, tangents): Expected {name} to be a tuple. E.g. it should be valid to call f(*{name})."
            )
    leaves, spec = pytree.tree_flatten(primals)
    moves, other = pytree.tree_flatten(tangents)
    if spec != other:
        raise RuntimeError(
            "jvp(f, primals, tangents): Expected primals and tangents to have the same python structure. For example, "
            f"if primals is a tuple of 3 tensors, tangents also must be. Got primals with structure {spec} and "
            f"tangents with structure {other}"
        )
    if not leaves:
        raise RuntimeError("jvp(f, primals, tangents): Expected primals to contain at least one Tensor.")
    for leaf, move in zip(leaves, moves, strict=True):
        for name, t in (("primals", leaf), ("tangents", move)):
            if not isinstance(t, Tensor):
                raise RuntimeError(
                    f"jvp(f, primals, tangents): Expected {name} to contain only Tensors, got unsupported type {type(t)}"
                )
        if not (leaf.is_floating_point() or leaf.is_complex()):
            raise ValueError(f"Expected primal to be floating point or complex, but got: {leaf.dtype}")
        if not (move.is_floating_point() or move.is_complex()):
            raise ValueError(f"Expected tangent to be floating point or complex, but got: {move.dtype}")
        if leaf.shape != move.shape:
            raise RuntimeError(
                "Trying to set a forward gradient that has a different size than that of the original Tensor, this is "
                f"not supported. Tensor is of size {list(leaf.shape)} while the given forward gradient is of size "
                f"{list(move.shape)}."
            )
    return leaves, moves, spec


class _Line:
    """A function's outputs at a point, and its linear part there.

    A vjp is linear in its cotangent; the vjp of that map, at a tangent, is the jvp. So the graph of one vjp serves all
    tangents.
    """

    def __init__(self, func: Callable[..., Any], leaves: list[Any], spec: Any, outside: bool) -> None:
        self.inputs = Inputs(leaves)
        result = func(*pytree.tree_unflatten(self.inputs.seen, spec))
        only_tensors(result, "linearize(f, *primals)", "f(*primals)")
        self.results, self.out_spec = pytree.tree_flatten(result)
        outputs = [bottom(t) for t in self.results]
        self.levels = [_C._unbatch(t)[1] for t in self.results]
        self.others = outside and _C._reaches_others(tuple(outputs), self.inputs.values)
        self.dummies = [rushlight.zeros_like(o, requires_grad=True) if o.requires_grad else None for o in outputs]
        self.outputs = outputs
        roots = [o for o in outputs if o.requires_grad]
        marks = [d for d in self.dummies if d is not None]
        self.pulled: Any = (None,) * len(leaves)
        if roots:
            self.pulled = _C._run_backward(tuple(roots), tuple(marks), True, True, self.inputs.values, True, False)
        self.output = pytree.tree_unflatten([leaving(t, self.others) for t in self.results], self.out_spec)

    def push(self, moves: list[Tensor], outside: bool) -> list[Tensor]:
        """The tangents of the outputs for tangents of the inputs."""
        vectors = [self.inputs.spread(t) for t in moves]
        pairs = [(w, v) for w, v in zip(self.pulled, vectors, strict=True) if w is not None and w.requires_grad]
        marks = tuple([d for d in self.dummies if d is not None])
        found: Any = (None,) * len(marks)
        record = outside and (self.others or any(v.requires_grad for v in vectors))
        if pairs:
            roots, directions = zip(*pairs, strict=True)
            directions = tuple([v.to(w.dtype) for w, v in zip(roots, directions, strict=True)])
            found = _C._run_backward(roots, directions, True, record, marks, True, False)
        given = iter(found)
        results = []
        for output, dummy, levels in zip(self.outputs, self.dummies, self.levels, strict=True):
            tangent = None if dummy is None else next(given)
            if tangent is None:
                tangent = rushlight.zeros_like(output)
            results.append(_C._rebatch(tangent, levels))
        return results
