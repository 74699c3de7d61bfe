"""Linear algebra: values, gradients, tangents and batches as PyTorch has them."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import rushlight

torch = pytest.importorskip("torch", reason="the oracle is installed by .ci/run only")
pytestmark = pytest.mark.oracle


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def positive(t: Any, a: Any) -> Any:
    return a @ a.mH + t.eye(a.shape[-1], dtype=a.dtype)


def fixed(x: Any) -> Any:
    """Vectors without their arbitrary signs."""
    return x.abs()


def by_eigenvectors(t: Any, a: Any) -> Any:
    """A smooth function of a matrix, which no phase changes."""
    values, v = t.linalg.eig(a)
    return t.linalg.solve(v.mT, (v * (values * 0.3).sin().unsqueeze(-2)).mT).mT


def projections(v: Any) -> Any:
    """On the line of each vector."""
    return v[..., :1] @ v[..., :1].mH


def both_sides(t: Any, a: Any) -> Any:
    """What a common phase of both singular vectors does not change."""
    u, _, vh = t.linalg.svd(a, full_matrices=False)
    return u @ vh


M, N, B = (3, 3), (2, 3, 3), (3, 2)
# name: (function of the library and its arguments, their shapes)
PROGRAMS: dict[str, tuple[Callable[..., Any], list[tuple[int, ...]]]] = {
    "inv": (lambda t, a: t.linalg.inv(a), [N]),
    "inv_ex": (lambda t, a: t.linalg.inv_ex(a).inverse, [N]),
    "solve": (lambda t, a, b: t.linalg.solve(a, b), [M, (2, 3, 2)]),
    "solve vectors": (lambda t, a, b: t.linalg.solve(a, b), [N, (2, 3)]),
    "solve right": (lambda t, a, b: t.linalg.solve(a, b, left=False), [M, (2, 3)]),
    "solve_triangular": (lambda t, a, b: t.linalg.solve_triangular(a, b, upper=True), [M, B]),
    "solve_triangular unit": (
        lambda t, a, b: t.linalg.solve_triangular(a, b, upper=False, left=False, unitriangular=True),
        [M, (2, 3)],
    ),
    "det": (lambda t, a: t.linalg.det(a), [N]),
    "slogdet": (lambda t, a: tuple(t.linalg.slogdet(a)), [N]),
    "cholesky": (lambda t, a: t.linalg.cholesky(positive(t, a)), [N]),
    "cholesky upper": (lambda t, a: t.linalg.cholesky(positive(t, a), upper=True), [M]),
    "cholesky of anything": (lambda t, a: t.linalg.cholesky(a + 9 * t.eye(3, dtype=a.dtype)), [M]),
    "cholesky_solve": (lambda t, b, a: t.cholesky_solve(b, a), [B, M]),
    "cholesky_solve upper": (lambda t, b, a: t.cholesky_solve(b, a, True), [B, M]),
    "cholesky_inverse": (lambda t, a: t.cholesky_inverse(t.linalg.cholesky(positive(t, a))), [M]),
    "qr": (lambda t, a: tuple(t.linalg.qr(a)), [N]),
    "qr tall": (lambda t, a: tuple(t.linalg.qr(a)), [(4, 2)]),
    "qr wide": (lambda t, a: tuple(t.linalg.qr(a)), [(2, 4)]),
    "qr complete": (lambda t, a: tuple(t.linalg.qr(a, "complete")), [(2, 4)]),
    "eigh": (lambda t, a: [fixed(x) for x in t.linalg.eigh(positive(t, a))], [N]),
    "eigh of anything": (lambda t, a: [fixed(x) for x in t.linalg.eigh(a)], [M]),
    "eigh upper": (lambda t, a: [fixed(x) for x in t.linalg.eigh(a, "U")], [M]),
    "eigvalsh": (lambda t, a: t.linalg.eigvalsh(a), [N]),
    "svd": (lambda t, a: [fixed(x) for x in t.linalg.svd(a)], [N]),
    "svd tall": (lambda t, a: [fixed(x) for x in t.linalg.svd(a, full_matrices=False)], [(4, 2)]),
    "svd wide": (lambda t, a: [fixed(x) for x in t.linalg.svd(a, full_matrices=False)], [(2, 4)]),
    "svdvals": (lambda t, a: t.linalg.svdvals(a), [(2, 3, 2)]),
    "pinv": (lambda t, a: t.linalg.pinv(a), [(2, 4, 2)]),
    "pinv of low rank": (lambda t, a: t.linalg.pinv(a[:, :1] @ a[:1], rtol=1e-3), [(3, 4)]),
    "lstsq": (lambda t, a, b: t.linalg.lstsq(a, b).solution, [(4, 2), (4, 1)]),
    "householder_product": (lambda t, a, b: t.linalg.householder_product(a, b), [(4, 2), (2,)]),
    "lu": (lambda t, a: tuple(t.linalg.lu(a))[1:], [N]),
    "lu tall": (lambda t, a: tuple(t.linalg.lu(a))[1:], [(4, 2)]),
    "lu wide": (lambda t, a: tuple(t.linalg.lu(a))[1:], [(2, 4)]),
    "lu_factor": (lambda t, a: t.linalg.lu_factor(a)[0], [N]),
    "lu_solve": (lambda t, a, b: t.linalg.lu_solve(*t.linalg.lu_factor(a), b), [M, B]),
    "lu_solve adjoint": (lambda t, a, b: t.linalg.lu_solve(*t.linalg.lu_factor(a), b, adjoint=True), [M, B]),
    "lu_solve right": (lambda t, a, b: t.linalg.lu_solve(*t.linalg.lu_factor(a), b, left=False), [M, (2, 3)]),
    "matrix_exp": (lambda t, a: t.linalg.matrix_exp(a), [N]),
    "matrix_power": (lambda t, a: t.linalg.matrix_power(a, -3), [M]),
    "multi_dot": (lambda t, a, b, c: t.linalg.multi_dot([a, b, c]), [(2, 3), (3, 4), (4,)]),
    "vander": (lambda t, a: t.linalg.vander(a), [(3,)]),
    "vecdot": (lambda t, a, b: t.linalg.vecdot(a, b), [(2, 3), (2, 3)]),
    "tensorinv": (lambda t, a: t.linalg.tensorinv(a.reshape(2, 2, 4)), [(4, 4)]),
    "tensorsolve": (lambda t, a, b: t.linalg.tensorsolve(a.reshape(2, 2, 4), b), [(4, 4), (2, 2)]),
    "cross": (lambda t, a, b: t.linalg.cross(a, b), [(2, 3), (1, 3)]),
    "norm": (lambda t, a: t.linalg.norm(a), [(2, 3)]),
    **{
        f"matrix_norm {order}": (lambda t, a, order=order: t.linalg.matrix_norm(a, order), [(2, 2, 3)])
        for order in ("fro", "nuc", 1, -1, 2, -2, math.inf, -math.inf)
    },
    "cond": (lambda t, a: t.linalg.cond(a), [M]),
    "logdet": (lambda t, a: t.logdet(positive(t, a)), [N]),
    "eigvals": (lambda t, a: t.linalg.eigvals(a), [N]),
    "eig": (lambda t, a: (t.linalg.eig(a)[0], fixed(t.linalg.eig(a)[1])), [N]),
    "a function of a matrix by eig": (lambda t, a: by_eigenvectors(t, a), [M]),
    "projections by eigh": (lambda t, a: projections(t.linalg.eigh(positive(t, a))[1]), [M]),
    "projections by svd": (lambda t, a: projections(t.linalg.svd(a, full_matrices=False)[0]), [(4, 2)]),
    "both sides of svd": (lambda t, a: both_sides(t, a), [(2, 4)]),
    "ormqr": (lambda t, a, tau, b: t.ormqr(a, tau, b, True, True), [(4, 2), (2,), (4, 3)]),
    "ormqr right": (lambda t, a, tau, b: t.ormqr(a, tau, b, False, False), [(4, 2), (2,), (3, 4)]),
}
DTYPES = ["float64", "complex128"]
# PyTorch's tangents of cholesky_inverse are not the derivative (docs/differences.md); of functions that read one
# triangle they are those of symmetric tangents only, others are not the transpose of its gradients
WRONG_TANGENTS = {"cholesky_inverse", "cholesky of anything", "eigh of anything", "eigh upper"}
NO_TANGENTS = {"ormqr", "ormqr right"}  # in PyTorch

each = pytest.mark.parametrize("name", PROGRAMS)
in_each_type = pytest.mark.parametrize("dtype", DTYPES)


def arrays(name: str, dtype: str, seed: int, *lead: int) -> list[Any]:
    random = np.random.default_rng(seed)
    made = []
    for shape in PROGRAMS[name][1]:
        a = random.normal(size=(*lead, *shape))
        made.append((a + 1j * random.normal(size=a.shape) if "complex" in dtype else a).astype(dtype))
    return made


def parts(result: Any) -> list[Any]:
    return list(result) if isinstance(result, (tuple, list)) else [result]


def close(ours: list[Any], theirs: list[Any]) -> None:
    assert len(ours) == len(theirs)
    for a, b in zip(ours, theirs, strict=True):
        assert str(a.dtype) == str(b.dtype) and tuple(a.shape) == tuple(b.shape)
        np.testing.assert_allclose(
            a.detach().numpy(), b.detach().resolve_conj().numpy(force=True), rtol=1e-6, atol=1e-7
        )


def of(library: Any, name: str) -> Callable[..., tuple[Any, ...]]:
    return lambda *args: tuple(parts(PROGRAMS[name][0](library, *args)))


def tensors(library: Any, given: list[Any]) -> tuple[Any, ...]:
    return tuple([library.from_numpy(a.copy()) for a in given])


def seeds(library: Any, results: Any) -> tuple[Any, ...]:
    """Numbers that are the same in both libraries, for cotangents."""
    made = []
    for i, r in enumerate(results):
        random = np.random.default_rng(11 + i)
        a = random.normal(size=tuple(r.shape))
        a = a + 1j * random.normal(size=a.shape) if r.is_complex() else a
        made.append(library.from_numpy(np.asarray(a)).to(r.dtype))
    return tuple(made)


@in_each_type
@each
def test_values_and_gradients(name: str, dtype: str) -> None:
    found = []
    for library in (rushlight, torch):
        inputs = [x.requires_grad_() for x in tensors(library, arrays(name, dtype, 1))]
        results = of(library, name)(*inputs)
        pairs = [(r, s) for r, s in zip(results, seeds(library, results), strict=True) if r.requires_grad]
        first = library.autograd.grad([r for r, _ in pairs], inputs, [s for _, s in pairs], create_graph=True)
        loss = sum([(g * g.conj()).real.sum() if g.is_complex() else (g * g).sum() for g in first])
        second = library.autograd.grad(loss, inputs, allow_unused=True) if loss.requires_grad else ()
        found.append([*results, *first, *[s for s in second if s is not None]])
    close(*found)


@in_each_type
@pytest.mark.parametrize("name", [n for n in PROGRAMS if n not in WRONG_TANGENTS | NO_TANGENTS])
def test_tangents(name: str, dtype: str) -> None:
    found = []
    for library in (rushlight, torch):
        primals, moves = tensors(library, arrays(name, dtype, 1)), tensors(library, arrays(name, dtype, 2))
        found.append(list(library.func.jvp(of(library, name), primals, moves)[1]))
    close(*found)


@in_each_type
@each
def test_batches(name: str, dtype: str) -> None:
    found = []
    for library in (rushlight, torch):
        found.append(list(library.func.vmap(of(library, name))(*tensors(library, arrays(name, dtype, 3, 2)))))
    close(*found)
