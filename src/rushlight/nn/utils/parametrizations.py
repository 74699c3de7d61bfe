"""Parametrizations of weights: orthogonal, by direction and length, and with largest singular value 1."""

from __future__ import annotations

from typing import Any, cast

import rushlight
from rushlight import Tensor

from .. import functional as F
from ..modules.module import Module
from . import parametrize
from .spectral_norm import as_matrix, check_iterations, output_dim
from .weight_norm import norm_except_dim, normed_weight

__all__ = ["orthogonal", "spectral_norm", "weight_norm"]


def _adjoint(x: Tensor) -> Tensor:
    return x.mT.conj() if x.is_complex() else x.mT


def _is_orthogonal(q: Tensor) -> bool:
    """Whether the columns are orthonormal up to rounding."""
    columns = q.shape[-1]
    eps = 10.0 * q.shape[-2] * rushlight.finfo(q.dtype).eps
    return bool((_adjoint(q) @ q - rushlight.eye(columns, dtype=q.dtype)).abs().max() <= eps)


def _make_orthogonal(a: Tensor) -> Tensor:
    """The orthonormal columns of QR, with signs such that the diagonal of R is positive."""
    q: Tensor
    q, r = rushlight.linalg.qr(a)
    result: Tensor = q * r.diagonal(dim1=-2, dim2=-1).sgn().unsqueeze(-2)
    return result


class _Orthogonal(Module):
    """A matrix with orthonormal columns, or rows where there are fewer of them, of a matrix without constraint.

    ``"matrix_exp"`` and ``"cayley"`` take the skew part of the lower triangle (Lezcano-Casado 2019, *Trivializations
    for gradient-based optimization on manifolds*), ``"householder"`` its columns as reflections. With trivialization
    the result is relative to the buffer ``base``, which assigning sets.
    """

    base: Tensor | None

    def __init__(self, weight: Tensor, orthogonal_map: str, *, use_trivialization: bool = True) -> None:
        super().__init__()
        if weight.is_complex() and orthogonal_map == "householder":
            raise ValueError("The householder parametrization does not support complex tensors.")
        self.shape = weight.shape
        self.orthogonal_map = orthogonal_map
        self.use_trivialization = use_trivialization
        if use_trivialization:
            self.register_buffer("base", None)

    def forward(self, X: Tensor) -> Tensor:
        transposed = X.shape[-2] < X.shape[-1]
        if transposed:
            X = X.mT
        rows, columns = X.shape[-2:]
        if self.orthogonal_map == "householder":
            a = X.tril(-1)
            tau = 2.0 / (1.0 + (a * a).sum(-2))
            q = rushlight.linalg.householder_product(a, tau)
            # the diagonal holds the signs of the columns
            q = q * X.diagonal(dim1=-2, dim2=-1).detach().to(rushlight.int32).unsqueeze(-2)
        else:
            a = X.tril()
            if rows != columns:
                a = rushlight.cat([a, a.new_zeros(*a.shape[:-2], rows, rows - columns)], -1)
            a = a - _adjoint(a)
            if self.orthogonal_map == "matrix_exp":
                q = rushlight.matrix_exp(a)
            else:
                one = rushlight.eye(rows, dtype=a.dtype)
                q = rushlight.linalg.solve(one - 0.5 * a, one + 0.5 * a)
            if rows != columns:
                q = q[..., :columns]
        if self.use_trivialization:
            q = cast(Tensor, self.base) @ q
        result: Tensor = q.mT if transposed else q
        return result

    def right_inverse(self, Q: Tensor) -> Tensor:
        """What gives `Q`, or the nearest orthogonal matrix; not for the exponential or Cayley's map without a base."""
        if Q.shape != self.shape:
            raise ValueError(
                f"Expected a matrix or batch of matrices of shape {self.shape}. Got a tensor of shape {Q.shape}."
            )
        given = Q
        transposed = Q.shape[-2] < Q.shape[-1]
        if transposed:
            Q = Q.mT
        rows, columns = Q.shape[-2:]
        if not self.use_trivialization:
            if self.orthogonal_map != "householder":
                raise NotImplementedError(
                    "It is not possible to assign to the matrix exponential or the Cayley parametrizations when "
                    "use_trivialization=False."
                )
            reflections, tau = rushlight.geqrf(Q)
            signs = reflections.diagonal(dim1=-2, dim2=-1)
            # LAPACK leaves out a reflection where there is nothing to reflect; here there is one for each column
            signs.copy_(rushlight.where((signs < 0) == (tau == 0), 1.0, -1.0))
            result: Tensor = reflections.mT if transposed else reflections
            return result
        if rows == columns:
            base = Q.clone() if _is_orthogonal(Q) else _make_orthogonal(Q)
        else:
            rest = rushlight.randn(*Q.shape[:-2], rows, rows - columns, dtype=Q.dtype)
            base = _make_orthogonal(rushlight.cat([Q, rest], -1))
        self.base = base
        # zero for the maps of skew parts; its diagonal tells the reflections that every sign is kept
        start = rushlight.zeros_like(given)
        start.diagonal(dim1=-2, dim2=-1).fill_(-1.0)
        return start


def orthogonal(
    module: Module, name: str = "weight", orthogonal_map: str | None = None, *, use_trivialization: bool = True
) -> Module:
    """`module`, whose matrix `name` is kept orthogonal: ``"matrix_exp"``, ``"cayley"`` or ``"householder"``.

    The default is the exponential for square and complex matrices, else reflections. See :class:`_Orthogonal`. An
    unknown name, a tensor that is no matrix, and an unknown map are a ``ValueError``.
    """
    weight = _named_tensor(module, name)
    if weight.dim() < 2:
        raise ValueError(f"Expected a matrix or batch of matrices. Got a tensor of {weight.dim()} dimensions.")
    if orthogonal_map is None:
        square = weight.shape[-2] == weight.shape[-1]
        orthogonal_map = "matrix_exp" if square or weight.is_complex() else "householder"
    if orthogonal_map not in ("matrix_exp", "cayley", "householder"):
        raise ValueError(
            f'orthogonal_map has to be one of "matrix_exp", "cayley", "householder". Got: {orthogonal_map}'
        )
    parametrization = _Orthogonal(weight, orthogonal_map, use_trivialization=use_trivialization)
    return parametrize.register_parametrization(module, name, parametrization, unsafe=True)


def _named_tensor(module: Module, name: str) -> Tensor:
    weight = getattr(module, name, None)
    if not isinstance(weight, Tensor):
        raise ValueError(f"Module '{module}' has no parameter or buffer with name '{name}'")
    return weight


class _WeightNorm(Module):
    """``g v / ‖v‖``."""

    def __init__(self, dim: int | None = 0) -> None:
        super().__init__()
        self.dim = -1 if dim is None else dim

    def forward(self, weight_g: Tensor, weight_v: Tensor) -> Tensor:
        return normed_weight(weight_v, weight_g, self.dim)

    def right_inverse(self, weight: Tensor) -> tuple[Tensor, Tensor]:
        return norm_except_dim(weight, self.dim), weight


def weight_norm(module: Module, name: str = "weight", dim: int | None = 0) -> Module:
    """`module`, whose tensor `name` is computed of lengths along `dim`, ``original0``, and directions, ``original1``.

    State dicts of the older :func:`rushlight.nn.utils.weight_norm`, with ``name_g`` and ``name_v``, can be loaded.
    """
    parametrize.register_parametrization(module, name, _WeightNorm(dim), unsafe=True)

    def rename(state_dict: dict[str, Any], prefix: str, *_: Any) -> None:
        old = f"{prefix}{name}_g", f"{prefix}{name}_v"
        if all(key in state_dict for key in old):
            for i, key in enumerate(old):
                state_dict[f"{prefix}parametrizations.{name}.original{i}"] = state_dict.pop(key)

    module._register_load_state_dict_pre_hook(rename)
    return module


class _SpectralNorm(Module):
    """A weight over its largest singular value, which the power method estimates; a vector over its length."""

    _u: Tensor
    _v: Tensor

    def __init__(self, weight: Tensor, n_power_iterations: int = 1, dim: int = 0, eps: float = 1e-12) -> None:
        super().__init__()
        dims = weight.dim()
        if not -dims <= dim < dims:
            raise IndexError(f"Dimension out of range (expected to be in range of [{-dims}, {dims - 1}] but got {dim})")
        check_iterations(n_power_iterations)
        self.dim = dim % dims
        self.eps = eps
        if dims > 1:
            self.n_power_iterations = n_power_iterations
            matrix = as_matrix(weight, self.dim)
            rows, columns = matrix.shape
            u = matrix.new_empty(rows).normal_(0, 1)
            v = matrix.new_empty(columns).normal_(0, 1)
            self.register_buffer("_u", F.normalize(u, dim=0, eps=eps))
            self.register_buffer("_v", F.normalize(v, dim=0, eps=eps))
            self._power_method(matrix, 15)  # a good start, for evaluation mode never improves it

    def _power_method(self, matrix: Tensor, n_power_iterations: int) -> None:
        with rushlight.no_grad():
            for _ in range(n_power_iterations):
                self._u.copy_(F.normalize(rushlight.mv(matrix, self._v), dim=0, eps=self.eps))
                self._v.copy_(F.normalize(rushlight.mv(_adjoint(matrix), self._u), dim=0, eps=self.eps))

    def forward(self, weight: Tensor) -> Tensor:
        if weight.dim() == 1:
            return F.normalize(weight, dim=0, eps=self.eps)
        matrix = as_matrix(weight, self.dim)
        if self.training:
            self._power_method(matrix, self.n_power_iterations)
        # copies, as the next call changes the vectors that this one's graph needs
        u, v = self._u.clone(), self._v.clone()
        return weight / rushlight.vdot(u, rushlight.mv(matrix, v))

    def right_inverse(self, value: Tensor) -> Tensor:
        """`value`: that its singular value is 1 is not checked."""
        return value


def spectral_norm(
    module: Module, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12, dim: int | None = None
) -> Module:
    """`module`, whose tensor `name` is divided by its largest singular value (Miyato et al. 2018).

    In training mode each access improves the estimate by `n_power_iterations`. `dim` counts the outputs: by default 1
    for transposed convolutions, else 0. An unknown name, and no iterations, are a ``ValueError``.
    """
    weight = _named_tensor(module, name)
    if dim is None:
        dim = output_dim(module)
    return parametrize.register_parametrization(module, name, _SpectralNorm(weight, n_power_iterations, dim, eps))
