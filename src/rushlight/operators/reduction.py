"""Reductions that are composed in Python: norms by name, quantiles."""

from __future__ import annotations

from typing import Any

from .. import _C

__all__ = ["nanquantile", "norm", "quantile"]

Tensor = _C.Tensor


def norm(
    input: Tensor,
    p: float | str | None = "fro",
    dim: int | tuple[int, ...] | list[int] | None = None,
    keepdim: bool = False,
    out: Tensor | None = None,
    dtype: Any = None,
) -> Tensor:
    """Return the p-norm of ``input`` over ``dim`` (all elements where None): ``(sum |x|^p)^(1/p)``.

    ``p``: a number, inf, -inf, 0, "fro" (the same as 2), or "nuc", the sum of the singular values of matrices over two
    dimensions. The gradient at a norm of 0 is 0.
    """
    if isinstance(p, str) and p != "fro":
        from ..linalg import matrix_norm

        dims = tuple(range(input.dim())) if dim is None else (dim,) if isinstance(dim, int) else dim
        return matrix_norm(input, p, dims, keepdim, dtype=dtype, out=out)
    order = 2 if p is None or isinstance(p, str) else p
    return _C.linalg_vector_norm(input, order, dim, keepdim, dtype=dtype, out=out)


_MODES = ("linear", "lower", "higher", "midpoint", "nearest")


def _check_quantile(name: str, input: Tensor, q: Tensor, interpolation: str) -> None:
    if input.numel() == 0:
        raise RuntimeError(f"{name}() input tensor must be non-empty")
    if q.dim() > 1:
        raise RuntimeError(f"{name}() q must be a scalar or 1D tensor")
    if input.dtype not in (_C.float32, _C.float64):
        raise RuntimeError(f"{name}() input tensor must be either float or double dtype")
    if q.dtype != input.dtype:
        raise RuntimeError(f"{name}() q tensor must be same dtype as the input tensor")
    if interpolation not in _MODES:
        raise RuntimeError(
            f"{name}() interpolation must be one of {', '.join(_MODES[:-1])} or {_MODES[-1]}, but got {interpolation}"
        )
    if not bool(_C._unbatch((q >= 0) & (q <= 1))[0].all()):  # of all samples of vmap
        raise RuntimeError(f"{name}() q values must be in the range [0, 1]")


def _ranks(ordered: Tensor, q: Tensor, ignore_nan: bool) -> Tensor:
    """Where each quantile lies in each sorted line (the last dimension): at a place or between two."""
    last = ordered.shape[-1] - 1
    missing = ordered.isnan()
    if ignore_nan:
        return (q * (last - missing.sum(-1, keepdim=True))).clamp(min=0)
    # a line with a NaN has it last, and gives it
    return _C.where(missing.any(-1, keepdim=True), float(last), (q * last).expand(*ordered.shape[:-1], q.numel()))


def _quantile(
    name: str,
    input: Tensor,
    q: float | Tensor,
    dim: int | None,
    keepdim: bool,
    interpolation: str,
    out: Tensor | None,
) -> Tensor:
    if not isinstance(q, Tensor):
        if not 0 <= q <= 1:
            raise RuntimeError(f"{name}() q must be in the range [0, 1] but got {q}")
        q = _C.full((), q, dtype=input.dtype)
    _check_quantile(name, input, q, interpolation)
    lines = input.flatten() if dim is None else input.movedim(dim, -1) if input.dim() else input.reshape(1)
    ordered = lines.sort(-1)[0]
    ranks = _ranks(ordered, q.reshape(-1), name == "nanquantile")
    if interpolation == "nearest":
        ranks = ranks.round()
    elif interpolation != "higher":
        below = ranks.floor()
        result = ordered.gather(-1, below.long())
        if interpolation != "lower":
            weight = ranks - below if interpolation == "linear" else _C.full_like(ranks, 0.5)
            result = result.lerp(ordered.gather(-1, ranks.ceil().long()), weight)
    if interpolation in ("nearest", "higher"):
        result = ordered.gather(-1, ranks.ceil().long())
    if keepdim and input.dim():
        shape = [1] * input.dim() if dim is None else [*lines.shape[:-1]]
        if dim is not None:
            shape.insert(dim % input.dim(), 1)
        result = result.movedim(-1, 0).reshape(q.numel(), *shape)
    else:
        result = result.movedim(-1, 0).reshape(
            q.numel(), *([] if dim is None else lines.shape[:-1] if input.dim() else [])
        )
    result = result if q.dim() else result.squeeze(0)
    if out is None:
        return result
    out.resize_(result.shape)
    return out.copy_(result)


def quantile(
    input: Tensor,
    q: float | Tensor,
    dim: int | None = None,
    keepdim: bool = False,
    *,
    interpolation: str = "linear",
    out: Tensor | None = None,
) -> Tensor:
    """Return the ``q``-quantiles over ``dim``, or over all elements; a line with a NaN gives NaN.

    ``input`` is float32 or float64 and not empty; ``q`` is a number or a vector of ``input``'s dtype in [0, 1], whose
    quantiles stand along a new first dimension. ``interpolation`` says what lies between two elements: linear, lower,
    higher, midpoint, nearest. The gradient goes to the elements that it is made of. Everything else: RuntimeError.
    """
    return _quantile("quantile", input, q, dim, keepdim, interpolation, out)


def nanquantile(
    input: Tensor,
    q: float | Tensor,
    dim: int | None = None,
    keepdim: bool = False,
    *,
    interpolation: str = "linear",
    out: Tensor | None = None,
) -> Tensor:
    """Return the ``q``-quantiles of what is not NaN; NaN where nothing is. Arguments as for :func:`quantile`."""
    return _quantile("nanquantile", input, q, dim, keepdim, interpolation, out)


for _function in (norm, quantile, nanquantile):
    setattr(Tensor, _function.__name__, _function)
