"""Jacobians and Hessians: ``jacrev``, ``jacfwd`` and ``hessian``."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import rushlight
from rushlight import Tensor

from .._vmap.table import BatchingError
from ..utils import _pytree as pytree
from ._check import Argnums, check_argnums, check_real, replaced, sliced
from ._level import differentiating
from .forward import jvp
from .reverse import Product
from .vmap import vmap

__all__ = ["hessian", "jacfwd", "jacrev"]


def jacrev(
    func: Callable[..., Any],
    argnums: Argnums = 0,
    *,
    has_aux: bool = False,
    chunk_size: int | None = None,
    _preallocate_and_copy: bool = False,
) -> Callable[..., Any]:
    """Return a function that computes the Jacobian of ``func`` by reverse mode, all rows at once.

    The result has the structure of the output of ``func``, each leaf replaced by the structure of the argument (a tuple
    for several ``argnums``); a block has the shape of its output followed by the shape of its input. With ``has_aux``
    ``func`` returns a pair whose second part is returned beside the Jacobian. ``chunk_size`` bounds how many rows are
    computed at a time (ValueError unless positive). Complex inputs and outputs raise RuntimeError: their Jacobian is not one matrix.
    """
    if chunk_size is not None and not chunk_size > 0:
        raise ValueError("jacrev: `chunk_size` should be greater than 0.")
    return by_rows(func, argnums, has_aux, chunk_size)


def by_rows(
    func: Callable[..., Any],
    argnums: Argnums,
    has_aux: bool = False,
    chunk_size: int | None = None,
    real: bool = True,
) -> Callable[..., Any]:
    """:func:`jacrev`. Unless ``real``, complex tensors are taken: rows are the gradients for real unit vectors."""

    @functools.wraps(func)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        places = check_argnums(argnums, len(args))

        def partial(*chosen: Any) -> Any:
            new = chosen[0] if isinstance(places, int) else chosen
            return func(*replaced(args, places, new), **kwargs)

        chosen = sliced(args, places)
        inputs, spec = pytree.tree_flatten((chosen,) if isinstance(places, int) else chosen)
        if real:
            check_real("jacrev", "input", inputs)
        with differentiating() as outside:
            product = Product(partial, inputs, spec, has_aux, outside)
        outputs = product.results
        if real:
            check_real("jacrev", "output", outputs)
        sizes = [t.numel() for t in outputs]
        columns = in_chunks(product.rows, units(outputs, sizes), chunk_size)
        blocks = []
        parts = [g.split(sizes, 0) for g in columns]
        if isinstance(places, int):
            spec = spec.child(0)
        for i, out in enumerate(outputs):
            block = [part[i].reshape(*out.shape, *t.shape) for part, t in zip(parts, inputs, strict=True)]
            blocks.append(pytree.tree_unflatten(block, spec))
        jacobian = pytree.tree_unflatten(blocks, product.out_spec)
        return (jacobian, product.aux) if has_aux else jacobian

    return wrapped


def in_chunks(function: Any, basis: list[Tensor], size: int | None) -> list[Tensor]:
    """What a function gives for a batch, computed for so many vectors at a time."""
    total = int(basis[0].shape[0])
    if size is None or size >= total:
        found: list[Tensor] = function(basis)
        return found
    parts = [function([b[start : start + size] for b in basis]) for start in range(0, total, size)]
    return [rushlight.cat(list(column)) for column in zip(*parts, strict=True)]


def units(tensors: list[Tensor], sizes: list[int]) -> list[Tensor]:
    """The unit vectors of the product of the tensors' spaces: for each tensor its part of all of them."""
    if len(tensors) == 1:
        return [rushlight.eye(sizes[0], dtype=tensors[0].dtype).view(sizes[0], *tensors[0].shape)]
    total, start, parts = sum(sizes), 0, []
    for t, n in zip(tensors, sizes, strict=True):
        part = rushlight.zeros(total * n, dtype=t.dtype)
        if n:
            part[start * n : (start + n) * n : n + 1] = 1
        parts.append(part.view(total, *t.shape))
        start += n
    return parts


def jacfwd(
    func: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False, *, randomness: str = "error"
) -> Callable[..., Any]:
    """Return a function that computes the Jacobian of ``func`` by forward mode, all columns at once.

    As :func:`jacrev`; better where there are more outputs than inputs. ``randomness`` is that of :func:`vmap`.
    """
    return by_columns(func, argnums, has_aux, randomness)


def by_columns(
    func: Callable[..., Any],
    argnums: Argnums,
    has_aux: bool = False,
    randomness: str = "error",
    real: bool = True,
) -> Callable[..., Any]:
    """:func:`jacfwd`. Unless ``real``, complex tensors are taken: columns are the tangents for real unit vectors."""

    @functools.wraps(func)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        places = check_argnums(argnums, len(args))

        def partial(*chosen: Any) -> Any:
            new = chosen[0] if isinstance(places, int) else chosen
            return func(*replaced(args, places, new), **kwargs)

        chosen = sliced(args, places)
        primals = (chosen,) if isinstance(places, int) else chosen
        leaves, spec = pytree.tree_flatten(primals)
        if real:
            check_real("jacfwd", "input", leaves)
        sizes = [t.numel() for t in leaves]
        found: dict[str, Any] = {}

        def column(*tangents: Any) -> Any:
            output, moved, *aux = jvp(partial, primals, pytree.tree_unflatten(tangents, spec), has_aux=has_aux)
            found["spec"] = pytree.tree_structure(output)
            if real:
                check_real("jacfwd", "output", pytree.tree_leaves(output))
            return tuple(pytree.tree_leaves(moved)), tuple(pytree.tree_leaves(output)), *aux

        basis = units(leaves, sizes)
        try:
            columns, _, *aux = vmap(column, randomness=randomness)(*basis)
        except BatchingError:  # numbers decided what it did: they are the same for all columns
            each = [column(*[part[i] for part in basis]) for i in range(sum(sizes))]
            columns = [rushlight.stack(list(parts)) for parts in zip(*[one[0] for one in each], strict=True)]
            aux = [pytree.tree_map(lambda t: t.unsqueeze(0), part) for part in each[0][2:]]
        inner = pytree.tree_structure(chosen)
        blocks = []
        for moved in columns:
            shape = moved.shape[1:]
            parts = moved.movedim(0, -1).split(sizes, -1)
            block = [part.reshape(*shape, *t.shape) for part, t in zip(parts, leaves, strict=True)]
            blocks.append(pytree.tree_unflatten(block, inner))
        jacobian = pytree.tree_unflatten(blocks, found["spec"])
        if not has_aux:
            return jacobian
        return jacobian, pytree.tree_map(lambda t: t[0], aux[0])

    return wrapped


def hessian(func: Callable[..., Any], argnums: Argnums = 0) -> Callable[..., Any]:
    """Return a function that computes the Hessian of ``func``: forward mode over reverse mode.

    A block has the shape of the output, then of the first input, then of the second.
    """
    return jacfwd(jacrev(func, argnums), argnums)
