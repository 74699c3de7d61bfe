"""Every function of linear algebra in forward mode and under vmap: against differences, reverse mode and loops."""

from __future__ import annotations

import functools
import itertools
import math
import warnings
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pytest

import rushlight as torch
from rushlight import linalg
from rushlight.autograd import forward_ad, gradcheck
from rushlight.func import grad, jacfwd, jacrev, jvp, vjp, vmap

DOUBLE = {"dtype": torch.float64}
SIZE = 3


class Case(NamedTuple):
    function: Callable[..., Any]
    shapes: list[tuple[int, ...]]
    differentiable: bool = True


def positive(a: torch.Tensor) -> torch.Tensor:
    return a @ a.mH + torch.eye(a.shape[-1], dtype=a.dtype)


def square(a: torch.Tensor) -> torch.Tensor:
    return a + 2 * torch.eye(a.shape[-1], dtype=a.dtype)


def triangle(a: torch.Tensor) -> torch.Tensor:
    return linalg.cholesky(positive(a))


def fixed(result: Any) -> tuple[torch.Tensor, ...]:
    """Values and vectors, these without their phases."""
    return tuple([part.abs() for part in result])


def _lu_solve(**options: bool) -> Callable[..., Any]:
    return lambda a, b: linalg.lu_solve(*linalg.lu_factor(square(a)), b, **options)


M, N, B = (3, 3), (2, 3, 3), (3, 2)
CASES = {
    "inv": Case(lambda a: linalg.inv(square(a)), [N]),
    "inv_ex": Case(lambda a: linalg.inv_ex(square(a)).inverse, [M]),
    "solve": Case(lambda a, b: linalg.solve(square(a), b), [M, B]),
    "solve a broadcast batch": Case(lambda a, b: linalg.solve(square(a), b), [M, (2, 3, 2)]),
    "solve many by one": Case(lambda a, b: linalg.solve(square(a), b), [N, (3, 2)]),
    "solve vector": Case(lambda a, b: linalg.solve(square(a), b), [M, (3,)]),
    "solve vectors": Case(lambda a, b: linalg.solve(square(a), b), [N, (2, 3)]),
    "solve right": Case(lambda a, b: linalg.solve(square(a), b, left=False), [M, (2, 3)]),
    "solve_ex": Case(lambda a, b: linalg.solve_ex(square(a), b).result, [M, B]),
    "solve_triangular": Case(lambda a, b: linalg.solve_triangular(square(a), b, upper=True), [N, (2, 3, 2)]),
    "solve_triangular unit": Case(
        lambda a, b: linalg.solve_triangular(a, b, upper=False, left=False, unitriangular=True), [M, (2, 3)]
    ),
    "tensorinv": Case(lambda a: linalg.tensorinv(square(a).reshape(2, 2, 4), 2), [(4, 4)]),
    "tensorsolve": Case(lambda a, b: linalg.tensorsolve(square(a).reshape(2, 2, 4), b), [(4, 4), (2, 2)]),
    "det": Case(linalg.det, [N]),
    "slogdet": Case(lambda a: tuple(linalg.slogdet(a)), [N]),
    "logdet": Case(lambda a: torch.logdet(positive(a)), [N]),
    "cholesky": Case(lambda a: linalg.cholesky(positive(a)), [N]),
    "cholesky upper": Case(lambda a: linalg.cholesky(positive(a), upper=True), [M]),
    "cholesky_ex": Case(lambda a: linalg.cholesky_ex(positive(a)).L, [M]),
    "cholesky_solve": Case(lambda b, a: torch.cholesky_solve(b, triangle(a)), [B, M]),
    "cholesky_solve upper": Case(lambda b, a: torch.cholesky_solve(b, triangle(a).mH, True), [(2, 3, 2), M]),
    "cholesky_inverse": Case(lambda a: torch.cholesky_inverse(triangle(a)), [N]),
    "qr": Case(lambda a: tuple(linalg.qr(a)), [N]),
    "qr tall": Case(lambda a: tuple(linalg.qr(a)), [(4, 2)]),
    "qr wide": Case(lambda a: tuple(linalg.qr(a)), [(2, 4)]),
    "qr complete wide": Case(lambda a: tuple(linalg.qr(a, "complete")), [(2, 4)]),
    "eigh": Case(lambda a: fixed(linalg.eigh(positive(a))), [N]),
    "eigh upper": Case(lambda a: fixed(linalg.eigh(positive(a), "U")), [M]),
    "eigvalsh": Case(lambda a: linalg.eigvalsh(positive(a)), [N]),
    "svd": Case(lambda a: fixed(linalg.svd(a)), [N]),
    "svd tall": Case(lambda a: fixed(linalg.svd(a, full_matrices=False)), [(4, 2)]),
    "svd wide": Case(lambda a: fixed(linalg.svd(a, full_matrices=False)), [(2, 4)]),
    "both sides of svd": Case(lambda a: _both_sides(linalg.svd(a, full_matrices=False)), [(4, 2)]),
    "eigvals": Case(linalg.eigvals, [N]),
    "eig": Case(lambda a: (linalg.eig(a)[0], linalg.eig(a)[1].abs()), [N]),
    "svdvals": Case(linalg.svdvals, [(2, 3, 2)]),
    "pinv": Case(linalg.pinv, [(2, 4, 2)]),
    "pinv with limits": Case(lambda a, t: linalg.pinv(a, atol=(t.abs() * 1e-3).detach()), [(4, 2), ()]),
    "pinv hermitian": Case(lambda a: linalg.pinv(positive(a), hermitian=True), [M]),
    "lstsq": Case(lambda a, b: linalg.lstsq(a, b).solution, [(4, 2), (4, 1)]),
    "lstsq residuals": Case(lambda a, b: linalg.lstsq(a, b, driver="gelsd").residuals, [(4, 2), (4, 1)]),
    "lstsq vector": Case(lambda a, b: linalg.lstsq(a, b).solution, [(4, 2), (4,)]),
    "householder_product": Case(linalg.householder_product, [(4, 2), (2,)]),
    "ormqr": Case(lambda a, tau, b: torch.ormqr(a, tau, b, True, True), [(4, 2), (2,), (4, 3)]),
    "ormqr right": Case(lambda a, tau, b: torch.ormqr(a, tau, b, False), [(4, 2), (2,), (3, 4)]),
    "lu": Case(lambda a: tuple(linalg.lu(square(a)))[1:], [N]),
    "lu tall": Case(lambda a: tuple(linalg.lu(a))[1:], [(4, 2)]),
    "lu wide": Case(lambda a: tuple(linalg.lu(a))[1:], [(2, 4)]),
    "lu_factor": Case(lambda a: linalg.lu_factor(square(a))[0], [N]),
    "lu_factor_ex": Case(lambda a: linalg.lu_factor_ex(square(a), check_errors=True)[0], [M]),
    "lu_unpack": Case(lambda a: tuple(torch.lu_unpack(*linalg.lu_factor(square(a))))[1:], [N]),
    "lu_solve": Case(_lu_solve(), [M, B]),
    "lu_solve adjoint": Case(_lu_solve(adjoint=True), [N, (2, 3, 2)]),
    "lu_solve right": Case(_lu_solve(left=False), [M, (2, 3)]),
    "matrix_exp": Case(torch.matrix_exp, [N]),
    "matrix_power": Case(lambda a: torch.matrix_power(square(a), -3), [M]),
    "matrix_power 5": Case(lambda a: torch.matrix_power(a, 5), [N]),
    "multi_dot": Case(lambda a, b, c: linalg.multi_dot([a, b, c]), [(2, 3), (3, 4), (4,)]),
    "vander": Case(linalg.vander, [(3,)]),
    "vecdot": Case(linalg.vecdot, [(2, 3), (2, 3)]),
    "cross": Case(linalg.cross, [(2, 3), (1, 3)]),
    "diagonal": Case(linalg.diagonal, [M]),
    "norm": Case(lambda a: linalg.norm(a), [(2, 3)]),
    "vector_norm 3": Case(lambda a: linalg.vector_norm(a, 3, 0), [(2, 3)]),
    "vector_norm inf": Case(lambda a: linalg.vector_norm(a, math.inf), [(2, 3)]),
    **{
        f"matrix_norm {order}": Case(lambda a, order=order: linalg.matrix_norm(a, order), [(2, 2, 3)])
        for order in ("fro", "nuc", 1, -1, 2, -2, math.inf, -math.inf)
    },
    "cond": Case(linalg.cond, [M]),
    "cond 1": Case(lambda a: linalg.cond(square(a), 1), [M]),
    "pca_lowrank": Case(lambda a: _low_rank(functools.partial(torch.pca_lowrank, center=False), a), [(6, 5)]),
    "svd_lowrank": Case(lambda a: _low_rank(torch.svd_lowrank, a), [(6, 5)]),
    "matrix_rank": Case(linalg.matrix_rank, [N], False),
    "geqrf": Case(lambda a: tuple(torch.geqrf(a)), [(4, 2)], False),
    "info": Case(lambda a: (linalg.inv_ex(a).info, linalg.cholesky_ex(a).info, linalg.solve_ex(a, a).info), [N], False),
    "permutation": Case(lambda a: linalg.lu(a).P, [N], False),
    "pivots": Case(lambda a: tuple(linalg.lu_factor_ex(a))[1:], [N], False),
    "lstsq rank": Case(lambda a, b: linalg.lstsq(a, b, driver="gelsd")[2:], [(4, 2), (4, 1)], False),
}
each = pytest.mark.parametrize("name", CASES)
DIFFERENTIABLE = [n for n, case in CASES.items() if case.differentiable]
each_differentiable = pytest.mark.parametrize("name", DIFFERENTIABLE)
in_both_types = pytest.mark.parametrize("dtype", [torch.float64, torch.complex128])
each_fixed = pytest.mark.parametrize("name", [n for n in DIFFERENTIABLE if "lowrank" not in n])  # draws nothing


def _low_rank(function: Any, a: torch.Tensor) -> torch.Tensor:
    """The product, which the random projection does not change where the rank is small enough."""
    u, s, v = function(a[:, :2] @ a[:2], q=2)
    return (u * s.unsqueeze(-2)) @ v.mH


def _both_sides(parts: Any) -> torch.Tensor:
    """What a common phase of both vectors does not change."""
    return parts.U @ parts.Vh


@pytest.fixture(autouse=True)
def _seed() -> Iterator[None]:
    torch.manual_seed(3)
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message="There is a performance drop")
        yield


def inputs(case: Case, *lead: int, dtype: torch.dtype = torch.float64) -> tuple[torch.Tensor, ...]:
    return tuple([torch.randn((*lead, *shape), dtype=dtype) for shape in case.shapes])


def product(a: torch.Tensor, b: torch.Tensor) -> float:
    """Of the numbers as vectors of real and imaginary parts."""
    return float((a.conj() * b).real.sum())


def parts(result: Any) -> list[torch.Tensor]:
    return [result] if isinstance(result, torch.Tensor) else list(result)


def subsets(count: int) -> list[tuple[int, ...]]:
    return [s for n in range(1, count + 1) for s in itertools.combinations(range(count), n)]


def only(function: Any, primals: tuple[torch.Tensor, ...], chosen: tuple[int, ...]) -> Any:
    """The function of some of its arguments, giving a tuple."""

    def of_chosen(*given: torch.Tensor) -> tuple[torch.Tensor, ...]:
        values = list(primals)
        for i, t in zip(chosen, given, strict=True):
            values[i] = t
        return tuple(parts(function(*values)))

    return of_chosen


def close(found: Any, expected: Any, tolerance: float = 1e-8) -> None:
    torch.testing.assert_close(tuple(parts(found)), tuple(parts(expected)), rtol=tolerance, atol=tolerance)


@in_both_types
@each_differentiable
def test_tangents_against_differences_and_reverse_mode(name: str, dtype: torch.dtype) -> None:
    case = CASES[name]
    primals = inputs(case, dtype=dtype)
    for chosen in subsets(len(primals)):
        function = only(case.function, primals, chosen)
        points = tuple([primals[i] for i in chosen])
        moves = tuple([torch.randn_like(p) for p in points])
        torch.manual_seed(5)
        output, tangents = jvp(function, points, moves)
        step = 1e-6
        ends = []
        for sign in (1, -1):
            torch.manual_seed(5)
            ends.append(function(*[p + sign * step * m for p, m in zip(points, moves, strict=True)]))
        close(tangents, [(a - b) / (2 * step) for a, b in zip(*ends, strict=True)], 2e-5)
        torch.manual_seed(5)
        close(output, function(*points), 0)
        seeds = tuple([torch.randn_like(t) for t in output])
        torch.manual_seed(5)
        pulled = vjp(function, *points)[1](seeds)
        there = sum(product(s, t) for s, t in zip(seeds, tangents, strict=True))
        back = sum(product(g, m) for g, m in zip(pulled, moves, strict=True))
        assert there == pytest.approx(back, rel=1e-8, abs=1e-8)


@in_both_types
@each
def test_batches_against_a_loop(name: str, dtype: torch.dtype) -> None:
    case = CASES[name]
    single, many = inputs(case, dtype=dtype), inputs(case, SIZE, dtype=dtype)
    for chosen in subsets(len(single)):
        dims = tuple([0 if i in chosen else None for i in range(len(single))])
        values = [many[i] if i in chosen else single[i] for i in range(len(single))]
        found = parts(vmap(case.function, in_dims=dims, randomness="same")(*values))
        rows = [parts(case.function(*[v[i] if k in chosen else v for k, v in enumerate(values)])) for i in range(SIZE)]
        close(found, [torch.stack(column) for column in zip(*rows, strict=True)])


def _weighed(result: Any) -> torch.Tensor:
    """A real number that depends on all numbers of a result, differently on each."""
    total = torch.zeros((), **DOUBLE)
    for p in parts(result):
        weights = torch.arange(p.numel(), **DOUBLE).reshape(p.shape).cos()
        total = total + ((p * 0.5).sin() * weights).real.sum()
    return total


@each_fixed
def test_products_with_hessians_of_complex_matrices(name: str) -> None:
    case = CASES[name]
    primals = inputs(case, dtype=torch.complex128)
    moves = tuple([torch.randn_like(p) for p in primals])
    every = tuple(range(len(primals)))
    loss = lambda *args: _weighed(case.function(*args))  # noqa: E731
    forward = jvp(grad(loss, argnums=every), primals, moves)[1]
    backward = grad(lambda *args: jvp(loss, args, moves)[1], argnums=every)(*primals)
    leaves = [p.clone().requires_grad_() for p in primals]
    slopes = torch.autograd.grad(loss(*leaves), leaves, create_graph=True, allow_unused=True)
    pairs = [(s, m) for s, m in zip(slopes, moves, strict=True) if s is not None and s.requires_grad]
    twice = (
        torch.autograd.grad([s for s, _ in pairs], leaves, [m for _, m in pairs], allow_unused=True) if pairs else ()
    )
    scale = max([1.0, *[float(t.abs().max()) for t in forward]])
    close([t / scale for t in backward], [t / scale for t in forward])
    for found, expected in zip(twice, forward, strict=False):
        if found is not None:
            close(found / scale, expected / scale)


@each_fixed
def test_modes_nest(name: str) -> None:
    """Hessians of a sum of squares in all four orders, per sample under vmap, too."""
    case = CASES[name]
    primals = inputs(case)

    def loss(*args: torch.Tensor) -> torch.Tensor:
        return _weighed(case.function(*args))

    one = lambda x: loss(x, *primals[1:])  # noqa: E731
    expected = jacrev(grad(one))(primals[0])
    scale = float(expected.abs().max()) + 1
    for made in (jacfwd(grad(one)), jacrev(jacfwd(one)), jacfwd(jacfwd(one))):
        close(made(primals[0]) / scale, expected / scale)
    batch = torch.stack([primals[0], primals[0].flip(0)])
    rows = torch.stack([jacrev(grad(one))(x) for x in batch])
    close(vmap(jacfwd(grad(one)))(batch) / scale, rows / scale)


@in_both_types
@each_fixed
def test_the_checker_agrees(name: str, dtype: torch.dtype) -> None:
    case = CASES[name]
    function = only(case.function, inputs(case, dtype=dtype), tuple(range(len(case.shapes))))
    points = tuple([p.requires_grad_() for p in inputs(case, dtype=dtype)])
    assert gradcheck(function, points, check_forward_ad=True, check_batched_grad=True, fast_mode=True)


def test_nothing_carries_a_tangent_that_does_not_depend() -> None:
    with forward_ad.dual_level():
        a = forward_ad.make_dual(torch.eye(3, **DOUBLE), torch.ones(3, 3, **DOUBLE))
        found = linalg.lu_factor_ex(a)
        assert forward_ad.unpack_dual(found.LU).tangent is not None
        assert forward_ad.unpack_dual(found.pivots).tangent is None
        sign, size = linalg.slogdet(a)
        assert not forward_ad.unpack_dual(sign).tangent.any()
        close(forward_ad.unpack_dual(size).tangent, torch.tensor(3.0, **DOUBLE))


def test_what_has_no_derivative_is_refused_in_forward_mode() -> None:
    a = torch.randn(4, 2, **DOUBLE)
    with pytest.raises(RuntimeError, match="not differentiable when mode='complete' and nrows > ncols"):
        jvp(lambda x: linalg.qr(x, "complete").Q, (a,), (a,))
    with pytest.raises(RuntimeError, match="derivative of linalg.qr depends on Q"):
        jvp(lambda x: linalg.qr(x, "r").R, (a,), (a,))
    with pytest.raises(NotImplementedError, match="derivative for 'geqrf' is not implemented"):
        jvp(lambda x: torch.geqrf(x).a, (a,), (a,))
    with pytest.raises(NotImplementedError, match="derivative for 'geqrf' is not implemented"):
        torch.geqrf(a.requires_grad_()).a.sum().backward()


def test_errors_name_the_sample() -> None:
    batch = torch.stack([torch.eye(2), torch.zeros(2, 2)])
    with pytest.raises(linalg.LinAlgError, match=r"linalg.inv: \(Batch element 1\)"):
        vmap(linalg.inv)(batch)
    with pytest.raises(linalg.LinAlgError, match=r"linalg.cholesky: \(Batch element 1\)"):
        vmap(linalg.cholesky)(batch)
    assert vmap(lambda a: linalg.cholesky_ex(a).info)(batch).tolist() == [0, 1]


def test_phases_of_complex_vectors_are_not_to_be_asked_for() -> None:
    a = torch.randn(3, 3, dtype=torch.complex128, requires_grad=True)
    for vectors, message in (
        (linalg.eigh(a).eigenvectors, "linalg_eigh_backward: The eigenvectors in the complex case are specified up to"),
        (linalg.eig(a).eigenvectors, "linalg_eig_backward: The eigenvectors in the complex case are specified up to"),
        (linalg.svd(a).U, "svd_backward: The singular vectors .* depends on this phase term, making it ill-defined"),
    ):
        with pytest.raises(RuntimeError, match=message):
            vectors.real.sum().backward()


def test_eigenvalues_of_any_matrix() -> None:
    a = torch.randn(2, 4, 4, **DOUBLE)
    values, vectors = linalg.eig(a)
    assert values.dtype == vectors.dtype == torch.complex128
    close(a.to(values.dtype) @ vectors, vectors * values.unsqueeze(-2))
    close(vectors.abs().square().sum(-2), torch.ones(2, 4, **DOUBLE))
    close(linalg.eigvals(a), values)
    assert linalg.eig(torch.eye(2)).eigenvalues.dtype == torch.complex64  # though they are real
    empty = linalg.eig(torch.zeros(2, 0, 0))
    assert empty.eigenvalues.shape == (2, 0) and empty.eigenvectors.shape == (2, 0, 0)
    out = torch.empty(0, dtype=torch.complex128)
    assert linalg.eigvals(a, out=out) is out
    with pytest.raises(RuntimeError, match="Expected eigenvalues to be safely castable from ComplexFloat dtype"):
        linalg.eigvals(torch.eye(2), out=torch.empty(2))
    with pytest.raises(RuntimeError, match="linalg.eig: input tensor should not contain infs or NaNs"):
        linalg.eig(torch.full((2, 2), math.nan))
    with pytest.raises(RuntimeError, match="must be batches of square matrices, but they are 2 by 3"):
        linalg.eig(torch.ones(2, 3))
    with pytest.raises(NotImplementedError, match="not implemented for 'Half'"):
        linalg.eig(torch.ones(2, 2).half())


def test_real_matrices_get_real_gradients_from_complex_eigenvalues() -> None:
    a = torch.tensor([[0.0, 1], [-4, 0]], **DOUBLE, requires_grad=True)  # +-2i
    linalg.eigvals(a).abs().sum().backward()
    close(a.grad, _slope(a.detach()))


def _slope(a: torch.Tensor) -> torch.Tensor:
    """The gradient of 2 sqrt(det a), the sum of the sizes of two conjugate eigenvalues."""
    cofactors = torch.stack([torch.stack([a[1, 1], -a[1, 0]]), torch.stack([-a[0, 1], a[0, 0]])])
    return cofactors / linalg.det(a).sqrt()


def test_nodes_bear_pytorchs_names():
    a = (torch.eye(3) * 2).requires_grad_()
    for y, name in (
        (linalg.det(a), "LinalgDetBackward0"),
        (linalg.svdvals(a), "LinalgSvdBackward0"),
        (linalg.inv(a), "LinalgInvExBackward0"),
        (torch.fft.fft(a), "FftR2CBackward0"),
        (linalg.cholesky(a), "LinalgCholeskyExBackward0"),
    ):
        assert y.grad_fn.name() == name


def test_the_gradient_of_the_upper_cholesky_factor_is_that_of_the_lower():
    a = torch.tensor([[2, 0.5 - 0.3j], [0.5 + 0.3j, 3]], dtype=torch.complex128, requires_grad=True)
    weight = torch.tensor([[1 + 1j, 2 - 1j], [0.3j, 1 - 2j]], dtype=torch.complex128)
    (lower,) = torch.autograd.grad((linalg.cholesky(a).mH * weight).sum().abs(), a)
    (upper,) = torch.autograd.grad((linalg.cholesky(a, upper=True) * weight).sum().abs(), a)
    torch.testing.assert_close(upper, lower)
    assert not torch.allclose(upper, upper.mH)  # the sides would be alike otherwise


def test_what_lstsq_leaves_out_is_empty_and_real():
    a, b = torch.ones(4, 2, dtype=torch.complex64), torch.ones(4, 1, dtype=torch.complex64)
    a[0, 0] = 2
    found = linalg.lstsq(a, b)
    assert found.residuals.shape == (0,) and found.singular_values.shape == (0,)
    assert found.residuals.dtype == found.singular_values.dtype == torch.float32
    assert linalg.lstsq(a, b, driver="gels").residuals.dtype == torch.float32
    assert linalg.lstsq(a.requires_grad_(), b).residuals.requires_grad
