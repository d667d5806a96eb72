"""The kernels of ops of linear algebra that have several forms, by size and dtype.

Real matrices of moderate size are computed by kernels of the library (`small_matrices.py`), complex
and very large ones by LAPACK (`lapack.py`). The ops name the functions (`Op.lowering`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from accnp.compiler.library.linalg.lapack import (
    cholesky_by_lapack,
    det_by_lapack,
    lu_by_lapack,
    solve_by_lapack,
    triangular_by_lapack,
)
from accnp.compiler.library.linalg.small_matrices import (
    cholesky_kernel,
    det_kernel,
    lu_kernel,
    solve_kernel,
    triangular_kernel,
)
from accnp.ir.aval import Aval
from accnp.ir.kernel import Operand, OwnKernel

if TYPE_CHECKING:
    from accnp.ir.op_types import Params


__all__ = ["cholesky", "det", "linear_solve", "lu", "triangular_solve"]


def linear_solve(
    operands: Sequence[Operand], results: Sequence[Aval], p: Params
) -> OwnKernel | None:
    """Return the kernel of `linear_solve`."""
    (a, b), (result,) = operands, results
    return solve_kernel(a, b, result) or solve_by_lapack(a, b, result)


def triangular_solve(
    operands: Sequence[Operand], results: Sequence[Aval], p: Params
) -> OwnKernel | None:
    """Return the kernel of `triangular_solve`."""
    (a, b), (result,) = operands, results
    form, unit = (p["left_side"], p["lower"]), p["unit_diagonal"]
    kernel = triangular_kernel(a, b, result, *form, p["transpose_a"], unit)
    how = "t" * p["transpose_a"] + "c" * p["conjugate_a"]
    return kernel or triangular_by_lapack(a, b, result, *form, how, unit)


def cholesky(operands: Sequence[Operand], results: Sequence[Aval], p: Params) -> OwnKernel | None:
    """Return the kernel of `cholesky`."""
    (a,), (result,) = operands, results
    return cholesky_kernel(a, result) or cholesky_by_lapack(a, result)


def lu(operands: Sequence[Operand], results: Sequence[Aval], p: Params) -> OwnKernel | None:
    """Return the kernel of `lu`."""
    (a,) = operands
    return lu_kernel(a, results) or lu_by_lapack(a, results)


def det(operands: Sequence[Operand], results: Sequence[Aval], p: Params) -> OwnKernel | None:
    """Return the kernel of `det`, or of `slogdet` if there are two results."""
    (a,) = operands
    return det_kernel(a, results) or det_by_lapack(a, results)
