"""Factors of indefinite matrices: against the matrices and solutions, in every type, with blocks of one and two rows."""

import itertools

import pytest

import rushlight as torch
from rushlight import linalg
from rushlight.func import jvp, vmap

TYPES = [torch.float32, torch.float64, torch.complex64, torch.complex128]


@pytest.fixture(autouse=True)
def _seed():
    torch.manual_seed(1)


def indefinite(*shape, dtype, hermitian=False):
    a = torch.randn(*shape, dtype=dtype)
    a = a + (a.mH if hermitian else a.mT)
    return a - torch.diag_embed(a.diagonal(0, -2, -1)) * 0.9  # small diagonals call for blocks of two


@pytest.mark.parametrize("hermitian", [False, True])
@pytest.mark.parametrize("dtype", TYPES)
def test_solutions(dtype, hermitian):
    tolerance = 1e-3 if dtype in (torch.float32, torch.complex64) else 1e-9
    blocks = set()
    for n, batch in itertools.product([1, 2, 5, 8], [(), (3,), (2, 2)]):
        a = indefinite(*batch, n, n, dtype=dtype, hermitian=hermitian)
        b = torch.randn(*batch, n, 2, dtype=dtype)
        found = linalg.ldl_factor(a, hermitian=hermitian)
        blocks |= {p > 0 for p in found.pivots.reshape(-1).tolist()}
        assert torch.equal(found.LD, found.LD.tril()) and found.pivots.dtype == torch.int32
        x = linalg.ldl_solve(found.LD, found.pivots, b, hermitian=hermitian)
        torch.testing.assert_close(x, linalg.solve(a, b), rtol=tolerance, atol=tolerance)
    assert blocks == {True, False}


def test_batches_broadcast_and_are_mapped():
    a, b = indefinite(3, 4, 4, dtype=torch.float64), torch.randn(3, 4, 2, dtype=torch.float64)
    factor, pivots = linalg.ldl_factor(a[0])
    torch.testing.assert_close(linalg.ldl_solve(factor, pivots, b), linalg.solve(a[0], b))
    found = vmap(lambda a, b: linalg.ldl_solve(*linalg.ldl_factor(a), b))(a, b)
    torch.testing.assert_close(found, linalg.solve(a, b))
    found = vmap(lambda b: linalg.ldl_solve(factor, pivots, b))(b)
    torch.testing.assert_close(found, linalg.solve(a[0], b))
    for shape in [(0, 0), (2, 0, 0), (0, 3, 3)]:
        empty = linalg.ldl_factor(torch.zeros(shape))
        assert empty.pivots.shape == shape[:-1]
        assert linalg.ldl_solve(*empty, torch.ones(*shape[:-1], 2)).shape == (*shape[:-1], 2)


def test_singular_matrices():
    found = linalg.ldl_factor_ex(torch.stack([torch.eye(2), torch.zeros(2, 2)]))
    assert found.info.tolist() == [0, 1]
    for call in (linalg.ldl_factor, lambda a: linalg.ldl_factor_ex(a, check_errors=True)):
        with pytest.raises(RuntimeError, match="the matrix is singular"):
            call(torch.zeros(2, 2))


def test_refusals():
    a, b = torch.eye(3), torch.ones(3, 2)
    factor, pivots = linalg.ldl_factor(a)
    with pytest.raises(RuntimeError, match="derivative for linalg_ldl_factor_ex is not implemented"):
        linalg.ldl_factor(torch.eye(3, requires_grad=True)).LD.sum().backward()
    with pytest.raises(RuntimeError, match="derivative for linalg_ldl_solve is not implemented"):
        jvp(lambda b: linalg.ldl_solve(factor, pivots, b), (b,), (b,))
    for given, message in [
        ((factor, pivots, b.double()), "found b of type Double and A of type Float instead"),
        ((factor, pivots.float(), b), "Expected pivots to be integers. Got Float"),
        ((factor, pivots[:2], b), r"to be the same, but got pivots with shape \[2\] instead"),
        ((factor, pivots, torch.ones(2, 2)), "each A matrix is 3 by 3 but each b matrix is 2 by 2"),
        ((factor, pivots, torch.ones(3)), "Expected B to have at least 2 dimensions"),
        ((factor[:2], pivots, b), "must be batches of square matrices, but they are 2 by 3 matrices"),
    ]:
        with pytest.raises(RuntimeError, match=message):
            linalg.ldl_solve(*given)
