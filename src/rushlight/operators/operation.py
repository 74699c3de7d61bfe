"""Operators of this package that are written in Python over arrays, and what follows from their one derivative."""

from __future__ import annotations

from typing import ClassVar

from rushlight.autograd.function import Function

__all__ = ["Operation"]


class Operation(Function):
    """A Function of which ``forward``, on NumPy's arrays, and ``backward``, in tensor operations, are all there is.

    Forward mode transposes ``backward`` (src/core/autograd/tangent.h), so that derivatives of every order and in every
    mode follow from it. ``backward`` must neither look at the numbers of its cotangents nor compute without recording,
    but may ask ``ctx.needs_input_grad``.

    Under vmap a batch becomes one more leading dimension, where ``core_dims`` says how many dimensions at the end
    of each argument are one item's (0 for what is no tensor); items of all tensors are batched alike. Where it is
    None, the Function is applied sample by sample.
    """

    _transposes_backward: ClassVar[bool] = True
    core_dims: ClassVar[tuple[int, ...] | None] = None
