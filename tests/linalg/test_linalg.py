"""torch.linalg: definitions, batches, derivatives of first and second order, refusals; torch's older names."""

import math
import warnings

import numpy as np
import pytest

import rushlight as torch
from rushlight import linalg
from rushlight.autograd import gradcheck, gradgradcheck

DOUBLE = {"dtype": torch.float64}


@pytest.fixture(autouse=True)
def _seed():
    torch.manual_seed(0)


def matrices(*shape):
    """Random matrices, the square ones far from singular."""
    a = torch.randn(*shape, **DOUBLE)
    return a + 2 * torch.eye(shape[-1], **DOUBLE) if shape[-1] == shape[-2] else a


def positive(a):
    return a @ a.mT + torch.eye(a.shape[-1], **DOUBLE)


def close(a, b):
    torch.testing.assert_close(a, b, rtol=1e-9, atol=1e-9)


def eye_like(a):
    return torch.eye(a.shape[-1], **DOUBLE).expand(a.shape)


# ---- values by their definitions


@pytest.mark.parametrize("shape", [(3, 3), (2, 3, 3), (2, 0, 3, 3), (1, 1), (0, 0)])
def test_inverse_and_solution(shape):
    a = matrices(*shape)
    close(linalg.inv(a) @ a, eye_like(a))
    b = torch.randn(*shape[:-1], 2, **DOUBLE)
    close(a @ linalg.solve(a, b), b)
    close(linalg.solve(a, b.mT, left=False) @ a, b.mT)
    found = linalg.inv_ex(a)
    close(found.inverse, linalg.inv(a))
    assert found.info.dtype == torch.int32 and found.info.shape == shape[:-2] and not found.info.any()


def test_solution_of_vectors_and_of_broadcast_batches():
    a, b = matrices(2, 3, 3), torch.randn(3, **DOUBLE)
    close(a[0] @ linalg.solve(a[0], b), b)
    vectors = torch.randn(2, 3, **DOUBLE)
    close((a @ linalg.solve(a, vectors).unsqueeze(-1)).squeeze(-1), vectors)
    many = torch.randn(4, 2, 3, 5, **DOUBLE)
    assert linalg.solve(a, many).shape == (4, 2, 3, 5)


@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize("unit", [False, True])
def test_triangular_solution_reads_one_triangle(upper, unit):
    a, b = matrices(2, 3, 3), torch.randn(2, 3, 2, **DOUBLE)
    x = linalg.solve_triangular(a, b, upper=upper, unitriangular=unit)
    triangle = (a.triu() if upper else a.tril()).clone()
    if unit:
        triangle.diagonal(0, -2, -1).fill_(1)
    close(triangle @ x, b)


def test_determinants():
    a = matrices(2, 3, 3)
    expected = torch.from_numpy(np.linalg.det(a.numpy()))
    close(linalg.det(a), expected)
    sign, size = linalg.slogdet(a)
    close(sign * size.exp(), expected)
    close(torch.logdet(positive(a)), linalg.det(positive(a)).log())
    swapped = torch.eye(2)[[1, 0]]
    assert torch.logdet(swapped).isnan() and torch.logdet(torch.zeros(2, 2)) == -math.inf
    assert linalg.det(torch.empty(0, 0)) == 1


def test_cholesky():
    a = positive(matrices(2, 3, 3))
    lower = linalg.cholesky(a)
    close(lower @ lower.mT, a)
    assert torch.equal(lower, lower.tril())
    close(linalg.cholesky(a, upper=True), lower.mT)
    b = torch.randn(2, 3, 2, **DOUBLE)
    close(a @ torch.cholesky_solve(b, lower), b)
    close(torch.cholesky_inverse(lower) @ a, eye_like(a))
    found = linalg.cholesky_ex(torch.stack([torch.eye(2), -torch.eye(2), torch.tensor([[1.0, 2], [2, 1]])]))
    assert found.info.tolist() == [0, 1, 2]


@pytest.mark.parametrize("shape", [(3, 3), (4, 2), (2, 4), (2, 3, 2), (0, 2)])
def test_lower_and_upper_triangles(shape):
    a = matrices(*shape)
    p, lower, upper = linalg.lu(a)
    close(p @ lower @ upper, a)
    assert torch.equal(lower, lower.tril()) and torch.equal(upper, upper.triu())
    factor, pivots = linalg.lu_factor(a)
    assert pivots.dtype == torch.int32 and factor.shape == a.shape
    again = torch.lu_unpack(factor, pivots)
    close(again.P @ again.L @ again.U, a)


@pytest.mark.parametrize("left", [True, False])
@pytest.mark.parametrize("adjoint", [True, False])
def test_solution_from_factors(left, adjoint):
    a, b = matrices(2, 3, 3), torch.randn(2, 3, 3, **DOUBLE)
    x = linalg.lu_solve(*linalg.lu_factor(a), b, left=left, adjoint=adjoint)
    matrix = a.mT if adjoint else a
    close(matrix @ x if left else x @ matrix, b)
    assert linalg.lu_factor_ex(torch.zeros(2, 2)).info == 1
    with pytest.raises(linalg.LinAlgError, match=r"U\[1,1\] is zero"):
        linalg.lu_factor_ex(torch.zeros(2, 2), check_errors=True)


@pytest.mark.parametrize("shape", [(3, 3), (4, 2), (2, 4), (2, 3, 2)])
def test_qr(shape):
    a = matrices(*shape)
    for mode in ("reduced", "complete"):
        q, r = linalg.qr(a, mode)
        close(q @ r, a)
        close(q.mT @ q, torch.eye(q.shape[-1], **DOUBLE).expand(*shape[:-2], -1, -1))
        assert torch.equal(r, r.triu())
    none, r = linalg.qr(a, "r")
    assert none.shape == (0,)
    close(r, linalg.qr(a).R)
    if len(shape) == 2:
        reflectors = torch.geqrf(a)
        k = min(shape)
        close(linalg.householder_product(reflectors.a[:, :k], reflectors.tau), linalg.qr(a).Q)


def test_symmetric_eigenvalues():
    a = positive(matrices(2, 3, 3))
    values, vectors = linalg.eigh(a)
    close(vectors @ torch.diag_embed(values) @ vectors.mT, a)
    close(linalg.eigvalsh(a.tril()), values)
    close(linalg.eigvalsh(a.triu(), UPLO="U"), values)


@pytest.mark.parametrize("shape", [(3, 3), (4, 2), (2, 4), (2, 3, 2)])
def test_singular_values(shape):
    a = matrices(*shape)
    u, s, vh = linalg.svd(a, full_matrices=False)
    close(u @ torch.diag_embed(s) @ vh, a)
    assert torch.equal(s, s.sort(descending=True).values) and (s >= 0).all()
    full = linalg.svd(a)
    assert full.U.shape[-2:] == (shape[-2],) * 2 and full.Vh.shape[-2:] == (shape[-1],) * 2
    close(linalg.svdvals(a), s)
    p = linalg.pinv(a)
    close(a @ p @ a, a)
    close(p @ a @ p, p)


def test_ranks_and_pseudo_inverses_of_singular_matrices():
    a = torch.tensor([[1.0, 2], [2, 4]], **DOUBLE)
    assert linalg.matrix_rank(a) == 1 and linalg.matrix_rank(a, hermitian=True) == 1
    assert linalg.matrix_rank(torch.diag(torch.tensor([3.0, 0.5, 0.0])), atol=1.0) == 1
    close(linalg.pinv(a), torch.from_numpy(np.linalg.pinv(a.numpy())))
    assert linalg.cond(torch.eye(3)) == 1


def test_least_squares():
    a, b = matrices(5, 2), torch.randn(5, 3, **DOUBLE)
    found = linalg.lstsq(a, b, driver="gelsd")
    expected = np.linalg.lstsq(a.numpy(), b.numpy(), rcond=None)
    close(found.solution, torch.from_numpy(expected[0]))
    close(found.residuals, torch.from_numpy(expected[1]))
    assert found.rank == 2
    close(found.singular_values, linalg.svdvals(a))


@pytest.mark.parametrize("order", ["fro", "nuc", 1, -1, 2, -2, math.inf, -math.inf])
def test_matrix_norms(order):
    a = torch.randn(2, 3, 4, **DOUBLE)
    expected = torch.from_numpy(np.linalg.norm(a.numpy(), order, (1, 2)))
    close(linalg.matrix_norm(a, order), expected)
    assert linalg.matrix_norm(a, order, keepdim=True).shape == (2, 1, 1)
    close(linalg.norm(a.movedim(0, 1), order, (0, 2)), expected)
    close(linalg.norm(a[0], order), expected[0])


def test_norms_of_what_dimensions_say():
    a = torch.randn(2, 3, 4, **DOUBLE)
    close(linalg.norm(a), a.square().sum().sqrt())
    close(linalg.norm(a, 1, 1), a.abs().sum(1))
    close(linalg.vector_norm(a, 3), (a.abs() ** 3).sum() ** (1 / 3))
    close(torch.norm(a[0], "nuc"), linalg.svdvals(a[0]).sum())
    close(torch.frobenius_norm(a), linalg.norm(a))
    close(torch.nuclear_norm(a[0]), linalg.svdvals(a[0]).sum())


def test_products_and_powers():
    a, b, c = torch.randn(2, 30), torch.randn(30, 3), torch.randn(3)
    torch.testing.assert_close(linalg.multi_dot([a, b, c]), a @ (b @ c))
    torch.testing.assert_close(linalg.multi_dot([c, b.mT]), c @ b.mT)
    m = matrices(3, 3)
    close(linalg.matrix_power(m, 5), m @ m @ m @ m @ m)
    close(torch.matrix_power(m, -2) @ m @ m, torch.eye(3, **DOUBLE))
    close(m.matrix_power(0), torch.eye(3, **DOUBLE))
    x = torch.tensor([2.0, 3.0])
    assert linalg.vander(x, N=3).tolist() == [[1, 2, 4], [1, 3, 9]]
    assert linalg.vecdot(torch.ones(2, 3), torch.arange(3.0)).tolist() == [3, 3]
    close(linalg.diagonal(m), m.diagonal())


@pytest.mark.parametrize("scale", [0.0, 1e-3, 1.0, 30.0])
def test_exponential(scale):
    values, vectors = linalg.eigh(positive(matrices(3, 3)))
    values = values * (scale / 10)
    a = vectors @ torch.diag_embed(values) @ vectors.mT
    result = torch.matrix_exp(a)
    expected = vectors @ torch.diag_embed(values.exp()) @ vectors.mT
    torch.testing.assert_close(result, expected, rtol=1e-11, atol=1e-11 * float(expected.abs().max()))
    nilpotent = torch.tensor([[0.0, 1], [0, 0]])
    assert torch.matrix_exp(nilpotent).tolist() == [[1, 1], [0, 1]]


def test_tensor_equations():
    a = torch.randn(2, 3, 6, **DOUBLE)
    x = linalg.tensorsolve(a, torch.ones(2, 3, **DOUBLE))
    close(torch.tensordot(a, x, 1), torch.ones(2, 3, **DOUBLE))
    inverse = linalg.tensorinv(torch.randn(4, 2, 2, **DOUBLE), ind=1)
    assert inverse.shape == (2, 2, 4)


@pytest.mark.parametrize("left", [True, False])
@pytest.mark.parametrize("transpose", [True, False])
def test_product_by_reflectors(left, transpose):
    a = matrices(4, 2)
    factor, tau = torch.geqrf(a)
    q = linalg.qr(a, "complete").Q
    wanted = q.mT if transpose else q
    b = torch.randn((4, 3) if left else (3, 4), **DOUBLE)
    close(torch.ormqr(factor, tau, b, left, transpose), wanted @ b if left else b @ wanted)
    with pytest.raises(RuntimeError, match=r"must be equal to input.shape\[-2\]"):
        torch.ormqr(factor, tau, torch.ones(3, 3, **DOUBLE))


@pytest.mark.parametrize("shape", [(8, 5), (5, 8), (2, 6, 6)])
def test_low_rank(shape):
    a = torch.randn(*shape[:-1], 2, **DOUBLE) @ torch.randn(*shape[:-2], 2, shape[-1], **DOUBLE)
    u, s, v = torch.svd_lowrank(a, q=3)
    close(u @ torch.diag_embed(s) @ v.mT, a)
    shifted = a + 3
    u, s, v = torch.pca_lowrank(shifted, q=3)
    close(u @ torch.diag_embed(s) @ v.mT, shifted - shifted.mean(-2, keepdim=True))
    with pytest.raises(ValueError, match="not greater than min"):
        torch.pca_lowrank(a, q=100)


# ---- derivatives

DERIVATIVES = {
    "inv": (linalg.inv, [(2, 3, 3)]),
    "solve": (linalg.solve, [(3, 3), (2, 3, 2)]),
    "det": (linalg.det, [(2, 3, 3)]),
    "slogdet": (lambda a: linalg.slogdet(a)[1], [(2, 3, 3)]),
    "cholesky": (lambda a: linalg.cholesky(positive(a)), [(2, 3, 3)]),
    "qr": (lambda a: tuple(linalg.qr(a)), [(3, 3)]),
    "qr tall": (lambda a: tuple(linalg.qr(a)), [(4, 2)]),
    "qr wide": (lambda a: tuple(linalg.qr(a)), [(2, 4)]),
    "eigh": (lambda a: (linalg.eigh(positive(a))[0], linalg.eigh(positive(a))[1].abs()), [(3, 3)]),
    "svd": (lambda a: [p.abs() for p in linalg.svd(a, False)], [(3, 3)]),
    "svd tall": (lambda a: [p.abs() for p in linalg.svd(a, False)], [(4, 2)]),
    "svd wide": (lambda a: [p.abs() for p in linalg.svd(a, False)], [(2, 4)]),
    "pinv": (linalg.pinv, [(4, 2)]),
    "lstsq": (lambda a, b: linalg.lstsq(a, b)[0], [(4, 2), (4, 1)]),
    "solve_triangular": (lambda a, b: linalg.solve_triangular(a, b, upper=True), [(3, 3), (3, 2)]),
    "householder_product": (lambda a: linalg.householder_product(a, a[0] / 3), [(4, 2)]),
    "lu": (lambda a: tuple(linalg.lu(a))[1:], [(3, 3)]),
    "lu tall": (lambda a: tuple(linalg.lu(a))[1:], [(4, 2)]),
    "lu wide": (lambda a: tuple(linalg.lu(a))[1:], [(2, 4)]),
    "lu_solve": (lambda a, b: linalg.lu_solve(*linalg.lu_factor(a), b), [(3, 3), (3, 2)]),
    "matrix_exp": (torch.matrix_exp, [(3, 3)]),
    "matrix_power": (lambda a: torch.matrix_power(a, -3), [(3, 3)]),
    "norm nuc": (lambda a: linalg.matrix_norm(a, "nuc"), [(2, 3)]),
    "norm 1": (lambda a: linalg.matrix_norm(a, 1), [(2, 3)]),
    "cond": (linalg.cond, [(3, 3)]),
    "multi_dot": (lambda a, b: linalg.multi_dot([a, b, a]), [(2, 3), (3, 2)]),
    "cholesky_solve": (lambda b, a: torch.cholesky_solve(b, linalg.cholesky(positive(a))), [(3, 2), (3, 3)]),
}


@pytest.mark.parametrize("name", DERIVATIVES)
def test_derivatives(name):
    function, shapes = DERIVATIVES[name]
    inputs = tuple([matrices(*shape).requires_grad_() for shape in shapes])
    call = lambda *args: tuple(r) if isinstance(r := function(*args), list) else r  # noqa: E731
    assert gradcheck(call, inputs)
    assert gradgradcheck(call, inputs)


def test_derivative_of_the_determinant_of_a_singular_matrix_is_its_cofactors():
    a = torch.tensor([[1.0, 2], [2, 4]], **DOUBLE, requires_grad=True)
    linalg.det(a).backward()
    close(a.grad, torch.tensor([[4.0, -2], [-2, 1]], **DOUBLE))


# ---- refusals

SQUARE = r"must be batches of square matrices, but they are 2 by 3 matrices"


@pytest.mark.parametrize("function", [linalg.inv, linalg.det, linalg.slogdet, linalg.cholesky, linalg.eigh])
def test_wrong_matrices(function):
    with pytest.raises(RuntimeError, match=SQUARE):
        function(torch.ones(2, 3))
    with pytest.raises(RuntimeError, match="must have at least 2 dimensions"):
        function(torch.ones(3))
    with pytest.raises(RuntimeError, match="Expected a floating point or complex tensor as input. Got Long"):
        function(torch.ones(2, 2, dtype=torch.int64))
    with pytest.raises(RuntimeError, match="Low precision dtypes not supported. Got Half"):
        function(torch.ones(2, 2, dtype=torch.float16))


def test_singular_matrices():
    with pytest.raises(linalg.LinAlgError, match=r"linalg.inv: The diagonal element 2 is zero"):
        linalg.inv(torch.tensor([[1.0, 2], [2, 4]]))
    batch = torch.stack([torch.eye(2), torch.zeros(2, 2)])
    with pytest.raises(linalg.LinAlgError, match=r"linalg.inv: \(Batch element 1\): The diagonal element 1 is zero"):
        torch.inverse(batch)
    with pytest.raises(linalg.LinAlgError, match="The solver failed because the input matrix is singular"):
        linalg.solve(torch.zeros(2, 2), torch.ones(2))
    with pytest.raises(linalg.LinAlgError, match=r"linalg.cholesky: .*leading minor of order 1 is not"):
        linalg.cholesky(-torch.eye(2))
    assert issubclass(linalg.LinAlgError, RuntimeError)
    assert linalg.inv_ex(torch.zeros(2, 2)).info == 1


def test_wrong_arguments():
    with pytest.raises(RuntimeError, match=r"Incompatible shapes of A and B for the equation AX = B \(2x2 and 3x1\)"):
        linalg.solve(torch.eye(2), torch.ones(3))
    with pytest.raises(RuntimeError, match="qr received unrecognized mode 'x'"):
        linalg.qr(torch.eye(2), "x")
    with pytest.raises(RuntimeError, match="Expected UPLO argument to be 'L' or 'U', but got X"):
        linalg.eigh(torch.eye(2), "X")
    with pytest.raises(RuntimeError, match="Order x not supported"):
        linalg.matrix_norm(torch.eye(2), "x")
    with pytest.raises(RuntimeError, match="the input must be 1D or 2D. Got 3D"):
        linalg.norm(torch.ones(2, 2, 2), 2)
    with pytest.raises(RuntimeError, match="expected at least 2 tensors but got 1"):
        linalg.multi_dot([torch.ones(2)])
    with pytest.raises(RuntimeError, match="derivative of linalg.qr depends on Q"):
        linalg.qr(torch.eye(2, requires_grad=True), "r").R.sum().backward()
    with pytest.raises(AttributeError, match=r"torch\.linalg\.eigenvalues"):
        linalg.eigenvalues  # noqa: B018


# ---- forms


def test_out():
    a = matrices(2, 2)
    out = torch.empty(0, **DOUBLE)
    assert linalg.inv(a, out=out) is out
    close(out, linalg.inv(a))
    q, r = torch.empty(2, 2, **DOUBLE), torch.empty(2, 2, **DOUBLE)
    linalg.qr(a, out=(q, r))
    close(q @ r, a)
    with pytest.raises(RuntimeError, match="don't support automatic differentiation"):
        linalg.inv(a.requires_grad_(), out=out)


def test_results_are_named_and_printed():
    result = linalg.slogdet(torch.eye(2))
    assert result.sign == 1 and result.logabsdet == 0
    assert repr(result) == "torch.return_types.linalg_slogdet(\nsign=tensor(1.),\nlogabsdet=tensor(0.))"


def test_older_names():
    a = positive(matrices(3, 3))
    close(a.inverse(), linalg.inv(a))
    close(a.det(), linalg.det(a))
    close(torch.pinverse(a), linalg.pinv(a))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        close(torch.qr(a).Q, linalg.qr(a).Q)
        close(torch.cholesky(a), linalg.cholesky(a))
        close(torch.chain_matmul(a, a), a @ a)
        close(torch.triangular_solve(a, a.triu()).solution, linalg.solve_triangular(a, a, upper=True))
    assert len(caught) == 4 and all("is deprecated" in str(w.message) for w in caught)
    u, s, v = torch.svd(a)
    close(u @ torch.diag_embed(s) @ v.mT, a)
    zeros, s2, _ = torch.svd(a, compute_uv=False)
    close(s2, s)
    assert not zeros.any()


def test_failures_agree_with_lapack_whatever_the_rounding():
    random = np.random.default_rng(0)
    failed = 0
    for n in [2, 3, 4] * 150:
        factors = random.normal(size=(n, n - 1)), random.integers(-3, 4, size=(n - 1, n))
        a = torch.from_numpy((factors[0] @ factors[1]).astype(np.float32))
        found, solved = linalg.inv_ex(a), linalg.solve_ex(a, a)
        try:
            np.linalg.inv(a.numpy())
            assert found.info == solved.info == 0
        except np.linalg.LinAlgError:
            failed += 1
            assert 0 < found.info <= n and solved.info == found.info and found.inverse.isnan().all()
    assert failed > 50
