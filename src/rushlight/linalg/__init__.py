"""Linear algebra by PyTorch's names in ``torch.linalg``: LAPACK through NumPy, derivatives of any order.

Matrices are the last two dimensions of real or complex tensors of single or double precision, with any batch
dimensions before them.
"""

from .._missing import lazy_module
from .eigen import eig, eigvals
from .factor import (
    cholesky,
    cholesky_ex,
    eigh,
    eigvalsh,
    householder_product,
    lstsq,
    pinv,
    qr,
    svd,
    svdvals,
)
from .ldl import ldl_factor, ldl_factor_ex, ldl_solve
from .lu import lu, lu_factor, lu_factor_ex, lu_solve
from .matrices import LinAlgError
from .norm import cond, matrix_norm, matrix_rank, norm, vector_norm
from .product import cross, diagonal, matmul, matrix_exp, matrix_power, multi_dot, vander, vecdot
from .solve import det, inv, inv_ex, slogdet, solve, solve_ex, solve_triangular, tensorinv, tensorsolve

__all__ = [
    "LinAlgError",
    "cholesky",
    "cholesky_ex",
    "cond",
    "cross",
    "det",
    "diagonal",
    "eig",
    "eigh",
    "eigvals",
    "eigvalsh",
    "householder_product",
    "inv",
    "inv_ex",
    "ldl_factor",
    "ldl_factor_ex",
    "ldl_solve",
    "lstsq",
    "lu",
    "lu_factor",
    "lu_factor_ex",
    "lu_solve",
    "matmul",
    "matrix_exp",
    "matrix_norm",
    "matrix_power",
    "matrix_rank",
    "multi_dot",
    "norm",
    "pinv",
    "qr",
    "slogdet",
    "solve",
    "solve_ex",
    "solve_triangular",
    "svd",
    "svdvals",
    "tensorinv",
    "tensorsolve",
    "vander",
    "vecdot",
    "vector_norm",
]

__getattr__, __dir__ = lazy_module(__name__, offers=("rushlight.linalg.",))
