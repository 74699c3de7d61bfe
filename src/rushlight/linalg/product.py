"""Products and powers of matrices and vectors."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import rushlight
from rushlight import _C, Tensor

from .matrices import check_square, over_batches, scalar_type, write
from .solve import inv

__all__ = ["cross", "diagonal", "matmul", "matrix_exp", "matrix_power", "multi_dot", "vander", "vecdot"]

cross = _C.linalg_cross
matmul = _C.matmul


def diagonal(A: Tensor, *, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """Return a view of a diagonal of two dimensions, by default the last ones."""
    return A.diagonal(offset, dim1, dim2)


def vecdot(x: Tensor, y: Tensor, *, dim: int = -1, out: Tensor | None = None) -> Tensor:
    """Return the sum of conj(x) y along ``dim``."""
    if x.dtype != y.dtype:
        raise RuntimeError(
            "linalg.vecdot: Expected x and y to have the same dtype, but found x of type "
            f"{scalar_type(x.dtype)} and y of type {scalar_type(y.dtype)} instead"
        )
    return write(out, (x.conj() * y).sum(dim))


def vander(x: Tensor, *, N: int | None = None) -> Tensor:
    """Return the powers 0, 1, ..., N - 1 (as many as elements where None) of the last dimension, as a new last one."""
    x = x.reshape(1) if x.dim() == 0 else x
    n = x.shape[-1] if N is None else N
    if n <= 1:
        raise RuntimeError(f"N must be greater than 1. Got {n}.")
    ones = x.new_ones((*x.shape, 1))
    return rushlight.cat([ones, x.unsqueeze(-1).expand(*x.shape, n - 1).cumprod(-1)], -1)


def _best_order(sizes: list[int]) -> list[list[int]]:
    """Where to split each range of factors so that the fewest multiplications are done: matrix-chain ordering."""
    n = len(sizes) - 1
    cost = [[0] * n for _ in range(n)]
    split = [[0] * n for _ in range(n)]
    for length in range(1, n):
        for i in range(n - length):
            j = i + length
            cost[i][j], split[i][j] = min(
                (cost[i][k] + cost[k + 1][j] + sizes[i] * sizes[k + 1] * sizes[j + 1], k) for k in range(i, j)
            )
    return split


def multi_dot(tensors: Sequence[Tensor], *, out: Tensor | None = None) -> Tensor:
    """Return the product of two or more matrices, in the cheapest order; the first and last may be vectors."""
    if len(tensors) < 2:
        raise RuntimeError(f"multi_dot(): expected at least 2 tensors but got {len(tensors)}")
    factors = list(tensors)
    for i, t in enumerate(factors):
        ends = i in (0, len(factors) - 1)
        if t.dim() != 2 and not (ends and t.dim() == 1):
            wanted = "1D or 2D" if ends else "2D"
            raise RuntimeError(f"multi_dot(): tensor {i} must be {wanted} but got {t.dim()}D")
    row, column = factors[0].dim() == 1, factors[-1].dim() == 1
    if row:
        factors[0] = factors[0].unsqueeze(0)
    if column:
        factors[-1] = factors[-1].unsqueeze(1)
    for i, (a, b) in enumerate(pairwise(factors)):
        if a.shape[1] != b.shape[0]:
            raise RuntimeError(
                f"multi_dot(): tensors {i} and {i + 1} with shapes {list(a.shape)} and {list(b.shape)} cannot be multiplied"
            )
    split = _best_order([*[t.shape[0] for t in factors], factors[-1].shape[1]])

    def product(i: int, j: int) -> Tensor:
        return factors[i] if i == j else product(i, split[i][j]) @ product(split[i][j] + 1, j)

    result = product(0, len(factors) - 1)
    if row:
        result = result.squeeze(0)
    return write(out, result.squeeze(-1) if column else result)


def matrix_power(A: Tensor, n: int, *, out: Tensor | None = None) -> Tensor:
    """Return A multiplied n times with itself; of a negative n the inverse's power."""
    check_square("linalg.matrix_power", A)
    base, n = (inv(A), -n) if n < 0 else (A, n)
    if n == 0:
        return write(out, A.clone().zero_() + rushlight.eye(A.shape[-1], dtype=A.dtype))
    result: Tensor | None = None
    while True:
        if n & 1:
            result = base if result is None else result @ base
        n >>= 1
        if n == 0:
            break
        base = base @ base
    return write(out, A.clone() if result is None or result is A else result)


# The degree of Taylor's series whose rest is below rounding for norms up to 1/2.
_TERMS = 18


@over_batches(2)
def matrix_exp(A: Tensor) -> Tensor:
    """Return the sum of Aᵏ / k!: Taylor's series of A / 2^s, squared s times."""
    check_square("linalg.matrix_exp", A)
    if A.numel() == 0:
        return A.clone()
    size = float(A.detach().abs().sum(-2).amax())
    squarings = max(0, math.ceil(math.log2(size))) + 1 if 0 < size < math.inf else 0
    scaled = A / 2**squarings
    one = rushlight.eye(A.shape[-1], dtype=A.dtype)
    result = one + scaled / _TERMS
    for k in range(_TERMS - 1, 0, -1):  # Horner's scheme
        result = one + (scaled @ result) / k
    for _ in range(squarings):
        result = result @ result
    computed: Tensor = result
    return computed


def chain_matmul(*matrices: Any, out: Tensor | None = None) -> Tensor:
    """Return the product of matrices, in the cheapest order. Deprecated for :func:`multi_dot`."""
    import warnings

    warnings.warn(
        "torch.chain_matmul is deprecated and will be removed in a future PyTorch release. "
        "Use torch.linalg.multi_dot instead, which accepts a list of two or more tensors rather than multiple "
        "parameters.",
        stacklevel=2,
    )
    factors = matrices[0] if len(matrices) == 1 and not isinstance(matrices[0], Tensor) else matrices
    return write(out, factors[0].clone()) if len(factors) == 1 else multi_dot(factors, out=out)
