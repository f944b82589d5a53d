"""Linear algebra: PyTorch's `torch.linalg`."""

from .errors import SingularError as LinAlgError
from .ops.assembly import linalg_cross as cross
from .ops.assembly import linalg_diagonal as diagonal
from .ops.assembly import linalg_vander as vander
from .ops.contraction import multi_dot, vecdot
from .ops.decomposition import (
    cholesky,
    cholesky_ex,
    eig,
    eigh,
    eigvals,
    eigvalsh,
    qr,
    svd,
    svdvals,
)
from .ops.linalg import matmul
from .ops.lu_factors import lu, lu_factor, lu_solve
from .ops.matrix_functions import (
    cond,
    matrix_exp,
    matrix_norm,
    matrix_power,
    matrix_rank,
    norm,
    vector_norm,
)
from .ops.solving import (
    det,
    inv,
    inv_ex,
    lstsq,
    pinv,
    slogdet,
    solve,
    solve_triangular,
    tensorinv,
    tensorsolve,
)

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
    "inv",
    "inv_ex",
    "lstsq",
    "lu",
    "lu_factor",
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
    "solve_triangular",
    "svd",
    "svdvals",
    "tensorinv",
    "tensorsolve",
    "vander",
    "vecdot",
    "vector_norm",
]
