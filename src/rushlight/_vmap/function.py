"""``autograd.Function`` inside of transforms."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import rushlight
from rushlight import _C, Tensor

from ..utils import _pytree as pytree
from .levels import open_levels, reopened
from .shape import padded
from .table import BatchingError

__all__ = ["VmapInfo", "apply", "leading"]


class VmapInfo(NamedTuple):
    """What a Function's ``vmap`` is told: the number of samples, and what random operations do."""

    batch_size: int
    randomness: str


def apply(cls: Any, args: tuple[Any, ...]) -> Any:
    """Run a Function inside of a transform; NotImplemented: as outside."""
    from ..autograd.function import Function

    separate = cls.setup_context is not Function.setup_context
    ours = cls.__module__.partition(".")[0] == "rushlight"
    if not separate and not ours:
        raise RuntimeError(
            "In order to use an autograd.Function with functorch transforms (vmap, grad, jvp, jacrev, ...), it must "
            f"override the setup_context staticmethod: {cls.__name__} does not. See "
            "https://pytorch.org/docs/stable/notes/extending.func.html"
        )
    level = _C._highest_level([a for a in pytree.tree_leaves(args) if isinstance(a, Tensor)])
    if not level:
        return NotImplemented
    own = cls.vmap is not Function.vmap
    if cls.generate_vmap_rule and own:
        raise RuntimeError(
            f"You tried to vmap over {cls.__name__}, but it has both generate_vmap_rule=True and an overridden vmap "
            "staticmethod. Please set generate_vmap_rule=False or delete the overridden vmap staticmethod to avoid "
            "ambiguity."
        )
    if own:
        return _own_rule(cls, args, level)
    if cls.generate_vmap_rule:
        return _generated(cls, args)
    if ours:
        core_dims = getattr(cls, "core_dims", None)
        return _looped(cls, args, level) if core_dims is None else leading(cls.apply, core_dims, args, level)
    raise BatchingError(
        f"You tried to vmap over {cls.__name__}, but it does not have vmap support. Please override and implement the "
        "vmap staticmethod or set generate_vmap_rule=True."
    )


def _info(level: int) -> VmapInfo:
    for open_level in open_levels():
        if open_level.number == level:
            return VmapInfo(open_level.size, open_level.randomness)
    raise RuntimeError("vmap: a batched tensor was used outside of its vmap")


def _own_rule(cls: Any, args: tuple[Any, ...], level: int) -> Any:
    """The static method ``vmap``: it gets values with their batch dimensions, and says those of the outputs."""

    def value(a: Any) -> Any:
        v = _C._value_at(a, level) if isinstance(a, Tensor) else None
        return a if v is None else v

    def dim(a: Any) -> int | None:
        return 0 if isinstance(a, Tensor) and _C._value_at(a, level) is not None else None

    values = pytree.tree_map(value, args)
    dims = tuple([pytree.tree_map(dim, a) for a in args])
    result = cls.vmap(_info(level), dims, *values)
    if not isinstance(result, tuple) or len(result) != 2:
        raise RuntimeError(
            f"Expected the vmap staticmethod of {cls.__name__} to have two returns, got "
            f"{len(result) if isinstance(result, tuple) else type(result)}: it should be (output, out_dims)"
        )
    outputs, out_dims = result
    leaves, spec = pytree.tree_flatten(outputs)
    places = pytree._broadcast_to_and_flatten(out_dims, spec)
    if places is None:
        raise RuntimeError(
            f"The vmap staticmethod of {cls.__name__} returned an incompatible (output, out_dims) tuple: expected "
            f"out_dims={out_dims} to be compatible with the structure of `output`, which is {spec}"
        )
    wrapped = [
        leaf if place is None or not isinstance(leaf, Tensor) else _C._batch(leaf.movedim(place, 0), level)
        for leaf, place in zip(leaves, places, strict=True)
    ]
    return pytree.tree_unflatten(wrapped, spec)


def leading(function: Callable[..., Any], core_dims: tuple[int, ...], args: tuple[Any, ...], level: int) -> Any:
    """A function of items with leading batch dimensions, on values: the batch is one more of these.

    ``core_dims`` says how many dimensions at the end of each argument are one item's.
    """
    values = [_C._value_at(a, level) if isinstance(a, Tensor) else None for a in args]
    count = max([a.dim() - n for a, n in zip(args, core_dims, strict=False) if isinstance(a, Tensor)])
    given = []
    for a, value, n in zip(args, values, core_dims, strict=False):
        given.append(a if value is None else padded(value, count + n))
    return _C._batch(function(*given, *args[len(core_dims) :]), level)


def _looped(cls: Any, args: tuple[Any, ...], level: int) -> Any:
    """A Function of this package, applied sample by sample."""
    size = _info(level).batch_size

    def sample(a: Any, i: int) -> Any:
        v = _C._value_at(a, level) if isinstance(a, Tensor) else None
        return a if v is None else v[i]

    rows = [cls.apply(*pytree.tree_map(lambda a, i=i: sample(a, i), args)) for i in range(size)]
    flat = [pytree.tree_flatten(row) for row in rows]
    parts = [
        _C._batch(rushlight.stack(list(column)), level) if isinstance(column[0], Tensor) else column[0]
        for column in zip(*[leaves for leaves, _ in flat], strict=True)
    ]
    return pytree.tree_unflatten(parts, flat[0][1])


class _Context:
    """What ``forward`` and ``backward`` of a generated rule share: they see batched tensors."""

    def __init__(self, needs: tuple[bool, ...]) -> None:
        self.needs_input_grad = needs
        self.saved_tensors: tuple[Any, ...] = ()
        self.saved_for_forward: tuple[Any, ...] = ()
        self._materialize = True
        self._non_differentiable: tuple[Any, ...] = ()

    def save_for_backward(self, *tensors: Any) -> None:
        """Keep tensors for backward."""
        self.saved_tensors = tensors

    def save_for_forward(self, *tensors: Any) -> None:
        """Keep tensors for jvp."""
        self.saved_for_forward = tensors

    def mark_dirty(self, *tensors: Any) -> None:
        """Refuse: a generated rule cannot change its inputs."""
        raise RuntimeError(
            "generate_vmap_rule=True: the Function marks inputs as changed in place (mark_dirty), for which no rule can "
            "be made. Override the vmap staticmethod."
        )

    def mark_non_differentiable(self, *tensors: Any) -> None:
        """Name outputs without a gradient."""
        self._non_differentiable = tensors

    def set_materialize_grads(self, value: bool) -> None:
        """Let backward see None for outputs that were not used."""
        self._materialize = value


class _Call:
    """One application of a Function under vmap: its arguments, and the levels that all its tensors get.

    Every input has every level, so that its gradient is that of each sample; expanding it there sums them again.
    """

    def __init__(self, cls: Any, args: tuple[Any, ...]) -> None:
        self.cls, self.args, self.open = cls, args, open_levels()
        self.numbers = tuple([level.number for level in self.open])
        self.sizes = tuple([level.size for level in self.open])
        self.output: Any = None

    def spread(self, t: Tensor) -> Tensor:
        """The numbers of a tensor that has all levels."""
        value: Tensor = _C._unbatch(_C._spread(t, self.numbers, self.sizes))[0]
        return value

    def numbers_of(self, t: Tensor, levels: tuple[int, ...]) -> Tensor:
        """The numbers of a tensor that has these levels."""
        sizes = dict(zip(self.numbers, self.sizes, strict=True))
        value: Tensor = _C._unbatch(_C._spread(t, levels, tuple([sizes[n] for n in levels])))[0]
        return value

    def filled(self, values: Any) -> tuple[Any, ...]:
        """The arguments with these numbers."""
        given = iter(values)
        return tuple([_C._rebatch(next(given), self.numbers) if isinstance(a, Tensor) else a for a in self.args])


def _generated(cls: Any, args: tuple[Any, ...]) -> Any:
    """``forward`` and ``backward`` run on batched tensors, within one node over their numbers."""
    call = _Call(cls, args)
    results = _node_class().apply(call, *[call.spread(a) for a in args if isinstance(a, Tensor)])
    given = iter(results if isinstance(results, tuple) else (results,))
    leaves, spec = pytree.tree_flatten(call.output)
    call.output = None
    wrapped = [_C._rebatch(next(given), _C._unbatch(t)[1]) if isinstance(t, Tensor) else t for t in leaves]
    return pytree.tree_unflatten(wrapped, spec)


@cache
def _node_class() -> Any:
    from ..autograd.function import Function

    class Generated(Function):
        """The node of a Function whose rule was generated."""

        @staticmethod
        def forward(ctx: Any, call: _Call, *values: Tensor) -> Any:
            each = iter(ctx.needs_input_grad[1:])
            own = _Context(tuple([isinstance(a, Tensor) and next(each) for a in call.args]))
            args = call.filled(values)
            call.output = output = call.cls.forward(*args)
            call.cls.setup_context(own, args, output)
            leaves = [t for t in pytree.tree_leaves(output) if isinstance(t, Tensor)]
            results = tuple([_C._unbatch(t)[0] for t in leaves])
            ctx.own, ctx.call = own, call
            ctx.levels = [_C._unbatch(t)[1] for t in leaves]
            ctx.saved_levels = [None if t is None else _C._unbatch(t)[1] for t in own.saved_tensors]
            ctx.save_for_backward(*[None if t is None else _C._unbatch(t)[0] for t in own.saved_tensors])
            if _C._tangent_levels():  # jvp runs as soon as this is done
                ctx.for_tangents = own.saved_for_forward or own.saved_tensors
                ctx.tensors_at = [i for i, t in enumerate(pytree.tree_leaves(output)) if isinstance(t, Tensor)]
            own.saved_tensors = own.saved_for_forward = ()
            ctx.set_materialize_grads(own._materialize)
            ctx.mark_non_differentiable(*[_C._unbatch(t)[0] for t in own._non_differentiable])
            own._non_differentiable = ()
            return results if len(results) != 1 else results[0]

        @staticmethod
        def backward(ctx: Any, *gradients: Any) -> Any:
            own, call = ctx.own, ctx.call
            saved = zip(ctx.saved_tensors, ctx.saved_levels, strict=True)
            own.saved_tensors = tuple([None if t is None else _C._rebatch(t, levels) for t, levels in saved])
            given = zip(gradients, ctx.levels, strict=True)
            with reopened(call.open):
                results = call.cls.backward(own, *[None if g is None else _C._rebatch(g, n) for g, n in given])
                own.saved_tensors = ()
                results = results if isinstance(results, tuple) else (results,)
                pairs = zip(call.args, results, strict=False)
                return (
                    None,
                    *[None if g is None else call.spread(g) for a, g in pairs if isinstance(a, Tensor)],
                )

        @staticmethod
        def jvp(ctx: Any, _: Any, *tangents: Any) -> Any:
            own, call, given = ctx.own, ctx.call, iter(tangents)
            own.saved_tensors = ctx.for_tangents
            moves = [next(given) if isinstance(a, Tensor) else None for a in call.args]
            results = call.cls.jvp(own, *[None if t is None else _C._rebatch(t, call.numbers) for t in moves])
            own.saved_tensors = ()
            results = results if isinstance(results, tuple) else (results,)
            if len(results) <= ctx.tensors_at[-1]:
                raise RuntimeError(
                    f"Function's jvp returned an invalid number of forward gradients (expected at least "
                    f"{ctx.tensors_at[-1] + 1} but got {len(results)})"
                )
            pushed = [results[i] for i in ctx.tensors_at]
            numbers = [None if t is None else call.numbers_of(t, n) for t, n in zip(pushed, ctx.levels, strict=True)]
            return tuple(numbers) if len(numbers) != 1 else numbers[0]

    return Generated
