"""Reverse mode: ``grad``, ``grad_and_value``, ``vjp`` and ``jacrev``."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import rushlight
from rushlight import _C, Tensor

from .._vmap.backward import from_rows, in_rows
from .._vmap.levels import batching
from .._vmap.table import BatchingError
from ..utils import _pytree as pytree
from ._check import Argnums, check_argnums, only_tensors, replaced, sliced
from ._level import Inputs, bottom, differentiating, leaving

__all__ = ["grad", "grad_and_value", "vjp"]


def grad(func: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False) -> Callable[..., Any]:
    """Return a function that computes the gradient of ``func`` with respect to the arguments ``argnums``.

    ``func`` returns a tensor with one element and no dimension (RuntimeError otherwise), or with ``has_aux`` a pair of
    that and anything else, which is returned beside the gradients. The gradient has the structure, shapes and dtypes of
    the argument (a tuple for several ``argnums``). The arguments may be nested containers of tensors. It nests, in
    itself and in :func:`vmap`: ``vmap(grad(f))`` gives the gradient of each sample.
    """
    both = grad_and_value(func, argnums, has_aux)

    @functools.wraps(func)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        gradient, value = both(*args, **kwargs)
        return (gradient, value[1]) if has_aux else gradient

    return wrapped


def grad_and_value(func: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False) -> Callable[..., Any]:
    """Return a function that computes the gradient of ``func`` and its value: ``(gradient, value)``.

    As :func:`grad`; with ``has_aux`` it returns ``(gradient, (value, aux))``.
    """

    @functools.wraps(func)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        places = check_argnums(argnums, len(args))
        with differentiating() as outside:
            leaves, spec = pytree.tree_flatten(sliced(args, places))
            inputs = Inputs(leaves)
            args = replaced(args, places, pytree.tree_unflatten(inputs.seen, spec))
            value, aux = _value_and_aux(func(*args, **kwargs), has_aux)
            output = _scalar(value)
            others = outside and _C._reaches_others((output,), inputs.values)
            seed = rushlight.ones_like(output) if output.dim() else None
            grads = inputs.pull((output,), (seed,), others, others)
            inputs.finish()
            value = leaving(value, others)
            aux = pytree.tree_map(lambda t: leaving(t, others), aux) if has_aux else None
        gradient = pytree.tree_unflatten(grads, spec)
        return (gradient, (value, aux)) if has_aux else (gradient, value)

    return wrapped


_AUX = "output of function f should be a tuple: (output, aux) if has_aux is True"


def _value_and_aux(result: Any, has_aux: bool) -> tuple[Any, Any]:
    if not has_aux:
        return result, None
    if not (isinstance(result, tuple) and len(result) == 2):
        raise RuntimeError(f"grad_and_value(f)(*args): {_AUX}")
    _only_tensors_beside(result[1])
    return result


def _only_tensors_beside(aux: Any) -> None:
    for leaf in pytree.tree_leaves(aux):
        if not isinstance(leaf, Tensor):
            raise RuntimeError(f"Expected tensors, got unsupported type {type(leaf)}")


def _scalar(value: Any) -> Tensor:
    if not isinstance(value, Tensor):
        raise RuntimeError(f"grad_and_value(f)(*args): Expected f(*args) to return a Tensor, got {type(value)}")
    if value.dim():
        raise RuntimeError(
            "grad_and_value(f)(*args): Expected f(*args) to return a scalar Tensor, got tensor with "
            f"{value.dim()} dims. Maybe you wanted to use the vjp or jacrev APIs instead?"
        )
    if value.is_complex():
        raise RuntimeError(f"grad can be implicitly created only for real scalar outputs but got {value.dtype}")
    return bottom(value)


def vjp(func: Callable[..., Any], *primals: Any, has_aux: bool = False) -> tuple[Any, ...]:
    """Return ``func(*primals)`` and the function that multiplies a cotangent with its Jacobian, from the left.

    The result is ``(output, vjp_fn)``, with ``has_aux`` ``(output, vjp_fn, aux)``. ``vjp_fn`` takes cotangents of the
    structure and shapes of the output and returns a tuple of gradients, one per primal. It may be called any number of
    times, under :func:`vmap` too: all cotangents then go through the recorded graph together, or, where an operation in
    it takes one at a time, through the graph of ``func`` run once more.
    """
    leaves, spec = pytree.tree_flatten(primals)
    with differentiating() as outside:
        product = Product(func, leaves, spec, has_aux, outside)
    if has_aux:
        return product.output(), product, product.aux
    return product.output(), product


class Product:
    """A function's outputs with their graph, and products of cotangents with its Jacobian."""

    def __init__(
        self, func: Callable[..., Any], leaves: list[Any], spec: pytree.TreeSpec, has_aux: bool, outside: bool
    ) -> None:
        self.func, self.has_aux, self.primals, self.spec = func, has_aux, leaves, spec
        state = rushlight.get_rng_state()
        self.inputs = Inputs(leaves)
        self.results, self.out_spec, aux = self._run(self.inputs)
        self.random = not rushlight.equal(state, rushlight.get_rng_state())
        for t in self.results:
            if not isinstance(t, Tensor):
                only_tensors(t, "vjp(f, *primals)", "f(*primals)")
        self.outputs = [bottom(t) for t in self.results]
        self.others = outside and _C._reaches_others(tuple(self.outputs), self.inputs.values)
        others = self.others
        self.aux = pytree.tree_map(lambda t: leaving(t, others), aux) if has_aux else None
        self.inputs.finish()

    def output(self) -> Any:
        """What the function returned."""
        return pytree.tree_unflatten([leaving(t, self.others) for t in self.results], self.out_spec)

    def _run(self, inputs: Inputs) -> tuple[list[Any], pytree.TreeSpec, Any]:
        """What the function returns for these inputs: the leaves and the structure of its output, and what is beside."""
        result, aux = self.func(*pytree.tree_unflatten(inputs.seen, self.spec)), None
        if self.has_aux:
            if not (isinstance(result, tuple) and len(result) == 2):
                raise RuntimeError(f"vjp(f, *primals): {_AUX}")
            result, aux = result
            _only_tensors_beside(aux)
        return *pytree.tree_flatten(result), aux

    def __call__(self, cotangents: Any, retain_graph: bool = True, create_graph: bool | None = None) -> Any:
        leaves, spec = pytree.tree_flatten(cotangents)
        if spec != self.out_spec:
            raise RuntimeError(
                "Expected pytree structure of cotangents to be the same as pytree structure of outputs to the "
                f"function. cotangents: {spec}, primal output: {self.out_spec}"
            )
        newer = _levels_of(leaves).difference(self.inputs.numbers)
        if newer:
            return self._gradients(self._batched(leaves, newer))
        if create_graph is None:
            create_graph = rushlight.is_grad_enabled()
        return self._gradients(
            _pulled(self.inputs, self.results, self.outputs, leaves, retain_graph, create_graph, self.others)
        )

    def _gradients(self, grads: list[Tensor]) -> Any:
        return pytree.tree_unflatten(grads, self.spec)

    def rows(self, basis: list[Tensor]) -> list[Tensor]:
        """The products with a batch of cotangents, all at once; the batch is the first dimension."""
        n, numbers, sizes = len(self.inputs.numbers), self.inputs.numbers, self.inputs.sizes
        rows = basis
        if n:
            rows = [v.view(len(v), *(1,) * n, *v.shape[1:]).expand(-1, *sizes, *v.shape[1:]) for v in basis]
        found = self._through(rows, rushlight.is_grad_enabled() and self.others)
        if found is not None:
            return [_C._rebatch(g.movedim(0, n), numbers) for g in found] if n else found
        with batching(len(basis[0]), "error") as level:
            grads = self._again([_C._batch(v, level) for v in basis], level)
            return [_C._value_at(g, level) for g in grads]

    def _batched(self, leaves: list[Tensor], newer: set[int]) -> list[Tensor]:
        """The products with cotangents that are batched by vmaps which were not open when the function ran."""
        level = max(newer)
        for i, (v, out) in enumerate(zip(leaves, self.results, strict=True)):
            _check_cotangent(v, out, i)
        if len(newer) == 1:
            own, sizes = self.inputs.numbers, self.inputs.sizes
            size = next(len(v) for v in [_C._value_at(v, level) for v in leaves] if v is not None)
            rows = [in_rows(v, own, sizes, level, size) for v in leaves]
            records = rushlight.is_grad_enabled() and (self.others or any(bottom(v).requires_grad for v in leaves))
            found = self._through(rows, records)
            if found is not None:
                return [from_rows(g, own, level) for g in found]
        return self._again(leaves, level)

    def _through(self, rows: list[Tensor], create_graph: bool) -> list[Tensor] | None:
        """The products with many cotangents by one run over the recorded graph, which does not know their batch.

        It is the first dimension of their numbers. None where an operation takes one cotangent at a time.
        """
        roots, vectors, values = [], [], self.inputs.values
        for v, out, root in zip(rows, self.results, self.outputs, strict=True):
            if root.requires_grad:
                if root is not out and _C._unbatch(out)[1] != self.inputs.numbers:
                    return None
                roots.append(root)
                vectors.append(v)
        found: Any = (None,) * len(values)
        if roots:
            found = _C._run_backward_rows(tuple(roots), tuple(vectors), True, create_graph, values)
            if found is None:
                return None
        return [
            rushlight.zeros((len(rows[0]), *value.shape), dtype=value.dtype) if g is None else g
            for g, value in zip(found, values, strict=True)
        ]

    def _again(self, leaves: list[Tensor], level: int) -> list[Tensor]:
        """The products with batched cotangents: the function runs once more, with their batch."""
        if not self.random:
            try:
                with differentiating() as outside:
                    inputs = Inputs(self.primals)
                    results, _, _ = self._run(inputs)
                    outputs = [bottom(t) for t in results]
                    others = outside and _C._reaches_others(tuple(outputs), inputs.values)
                    inputs.finish()
                return _pulled(inputs, results, outputs, leaves, False, rushlight.is_grad_enabled(), others)
            except BatchingError:  # numbers decided what it did: they are the same for all cotangents
                pass
        values = [_C._value_at(v, level) for v in leaves]
        size = next(v.shape[0] for v in values if v is not None)
        rows = []
        for i in range(size):
            row = [v if w is None else w[i] for v, w in zip(leaves, values, strict=True)]
            rows.append(pytree.tree_leaves(self(pytree.tree_unflatten(row, self.out_spec))))
        return [_C._batch(rushlight.stack(list(column)), level) for column in zip(*rows, strict=True)]


def _pulled(
    inputs: Inputs,
    results: list[Tensor],
    outputs: list[Tensor],
    cotangents: list[Tensor],
    keep: bool,
    recording: bool,
    others: bool,
) -> list[Tensor]:
    """The cotangents times the Jacobian; the product has a graph if one is recorded and something outside needs it."""
    vectors = [_seed(v, out, i) for i, (v, out) in enumerate(zip(cotangents, results, strict=True))]
    create_graph = recording and (others or any(bottom(v).requires_grad for v in cotangents))
    return inputs.pull(outputs, vectors, keep or create_graph, create_graph)


def _seed(v: Tensor, out: Tensor, i: int) -> Tensor:
    """The numbers of a cotangent, with the levels of its output."""
    _check_cotangent(v, out, i)
    value, levels = _C._unbatch(out)
    return bottom(_C._spread(v, levels, tuple(value.shape[: len(levels)])))


def _check_cotangent(v: Tensor, out: Tensor, i: int) -> None:
    if v.shape != out.shape:
        raise RuntimeError(
            f"Mismatch in shape: grad_output[{i}] has a shape of {v.shape} and output[{i}] has a shape of {out.shape}."
        )


def _levels_of(tensors: list[Tensor]) -> set[int]:
    levels: set[int] = set()
    for t in tensors:
        levels.update(_C._unbatch(t)[1])
    return levels
