"""Kernels that call LAPACK: eigh, svd, qr and tridiagonal_solve; and cholesky, triangular_solve,
lu, linear_solve, det and slogdet for complex or very large matrices.

The functions take the memory layout of the operands and return an `OwnKernel` with one task per
matrix of the batch. LAPACK needs contiguous columns, so matrices are copied to scratch memory and
back. Results are NaN if the routine does not converge or a matrix is not positive definite, as in
JAX.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from math import prod
from typing import TYPE_CHECKING

from accnp.compiler.library.linalg.small_matrices import Batch
from accnp.config import config
from accnp.ir.aval import Aval
from accnp.ir.kernel import Operand, OwnKernel, dtype_code
from accnp.primitives.lapack_calls import uses_qr

if TYPE_CHECKING:
    from accnp.ir.op_types import Params


__all__ = [
    "cholesky_by_lapack", "det_by_lapack", "eigh", "lu_by_lapack", "qr", "solve_by_lapack", "svd",
    "triangular_by_lapack", "tridiagonal_solve",
]  # fmt: skip

_REAL = {"f4": "f4", "f8": "f8", "c8": "f4", "c16": "f8"}
A, C, L, N, R, S, U, V = (ord(letter) for letter in "ACLNRSUV")  # LAPACK's letter arguments
# Matrices with SHARED elements or more may make OpenBLAS use several threads, which gains nothing
# up to SHORT elements. Measured on two cores of an AMD EPYC (Zen 5) in float64, with one and two
# threads of OpenBLAS: eigh of 60x60 0.24 and 0.24 ms, of 150x150 1.5 and 1.8 ms; svd of 150x150 2.6
# and 3.5 ms. If other processes are running, two threads take up to 50 times as long.
SHARED, SHORT = 64, 1 << 16
BLOCK = 64  # maximum number of columns in LAPACK's blocks, for workspace sizes


class _Lapack(Batch):
    """A batch whose matrices are copied to scratch memory in column-major order."""

    def __init__(self, operands: Sequence[Operand], results: Sequence[Aval], ranks: str) -> None:
        super().__init__(operands, results, ranks)
        self.code = dtype_code(operands[0].dtype)
        self.part = _REAL.get(self.code, "")
        self.complex = self.code[0] == "c"
        self.possible = bool(self.part) and all(n > 0 for x in self.arrays for n in x.shape)

    @property
    def alone(self) -> bool:
        """Return whether OpenBLAS should use one thread: matrices are small, or each of our threads
        has matrices of its own."""
        count = prod(x.size for x in self.axes)
        largest = max(prod(x.shape) for x in self.arrays) // count
        return largest >= SHARED and (largest <= SHORT or count >= config.threads)

    @contextmanager
    def scratch(self, **rooms: tuple[str, int]) -> Generator[None]:
        """Allocate memory that tasks reuse, name = (code, number of elements), and set the number
        of threads that OpenBLAS uses."""
        for name, (code, count) in rooms.items():
            self.text.add(f"{name} = heap_{code}({self.text.integer(count)})")
        if self.alone:
            self.text.add("blas_alone()")
        yield
        if self.alone:
            self.text.add("blas_shared()")
        self.text.add(*[f"release({name})" for name in rooms])

    def columns(self, to: str, source: str, which: int, m: str, n: str, how: str = "") -> None:
        """Copy a matrix in column-major order, optionally transposed ("t") or conjugated ("c")."""
        down, across = self.strides(which)
        if "t" in how:
            down, across = across, down
        end = ".conjugate()" if "c" in how and self.complex else ""
        with self.text.block(f"for i in range({m}):"), self.text.block(f"for j in range({n}):"):
            self.text.add(f"{to}[j * {m} + i] = {source}[i * {down} + j * {across}]{end}")

    def rows(self, to: str, m: str, n: str, value: str) -> None:
        """Write a result in row-major order; `value` is the expression of element i, j."""
        with self.text.block(f"for i in range({m}):"), self.text.block(f"for j in range({n}):"):
            self.text.add(f"{to}[i * {n} + j] = {value}")

    def nan_unless_done(self, *results: tuple[str, str, str]) -> None:
        """Fill results (name, code, number of elements) with NaN if `info` is not 0."""
        with self.text.block("if info != 0:"):
            for name, code, count in results:
                with self.text.block(f"for i in range({count}):"):
                    self.text.add(f"{name}[i] = {code}(sqrt({self.part}(-1)))")

    def trsm(self, left: bool, form: int, diagonal: int, m: int, r: int) -> None:
        """Solve with the triangular matrix f in place of g, which has m rows and r columns."""
        which, size = (L, m) if left else (R, r)
        rows, columns, n = map(self.text.integer, (m, r, size))
        self.text.add(
            f"info = trsm_{self.code}({which}, {form}, {N}, {diagonal}, {rows}, {columns}, one, f, "
            f"{n}, g, {rows})"
        )

    def exchanges(self, n: str) -> None:
        """Convert pivots from counting from 1 to counting from 0."""
        self.text.add(f"for i in range({n}):", "    p[i] = p[i] - i4(1)")


def eigh(operands: Sequence[Operand], results: Sequence[Aval], p: Params) -> OwnKernel | None:
    """Return the kernel of `eigh`: eigenvectors and eigenvalues."""
    (a,), lower = operands, p["lower"]
    batch, size = _Lapack([a], results, "221"), a.shape[-1]
    if not batch.possible:
        return None
    code, text, n = batch.code, batch.text, batch.text.integer(size)
    square = 2 * size * size + 6 * size + 1
    rooms = {"f": (code, size * size), "work": (code, square + BLOCK * size)}
    rooms |= {"rwork": (batch.part, square)} if batch.complex else {}
    rooms |= {"iwork": ("i4", 5 * size + 3)}
    with batch.scratch(**rooms):
        sizes = [f"{name}, {text.integer(count)}" for name, (_, count) in rooms.items()][1:]
        with batch.each("xyw"):
            batch.columns("f", "x", 0, n, n)
            text.add(
                f"info = syevd_{code}({V}, {L if lower else U}, {n}, f, {n}, w, {', '.join(sizes)})"
            )
            batch.rows("y", n, n, f"f[j * {n} + i]")
            batch.nan_unless_done(("y", code, f"{n} * {n}"), ("w", batch.part, n))
    return batch.own(size**3 // 2)


def svd(operands: Sequence[Operand], results: Sequence[Aval], p: Params) -> OwnKernel | None:
    """Return the kernel of `svd`: singular values, and U, Vh if there are three results."""
    if uses_qr(p["algorithm"]):
        return None
    (a,), full = operands, p["full_matrices"]
    vectors = len(results) > 1
    batch = _Lapack([a], results, "2122" if vectors else "21")
    rows, columns = a.shape[-2:]
    if not batch.possible:
        return None
    code, text, least = batch.code, batch.text, min(rows, columns)
    left, right = (rows, columns) if full else (least, least)
    size = 4 * least * least + 2 * BLOCK * (rows + columns) + 16
    real = max(5 * least + 7, 2 * max(rows, columns) + 2 * least + 1) * least
    rooms = {"f": (code, rows * columns)}
    rooms |= {"u": (code, rows * left), "v": (code, right * columns)} if vectors else {}
    rooms |= {"work": (code, size), "iwork": ("i4", 8 * least)}
    rooms |= {"rwork": (batch.part, real)} if batch.complex else {}
    with batch.scratch(**rooms):
        m, n, k, h = (text.integer(x) for x in (rows, columns, left, right))
        least_too, work = text.integer(least), text.integer(size)
        more = ", rwork" if batch.complex else ""
        job, u, v = (A if full else S, "u", "v") if vectors else (N, "f", "f")
        with batch.each("xsyz"[: 1 + len(results)]):
            batch.columns("f", "x", 0, m, n)
            text.add("info = 0")
            with text.block(f"for i in range({m} * {n}):"), text.block("if f[i] - f[i] != 0:"):
                text.add("info = 1")  # gesdd may not terminate for infinite numbers
            with text.block("if info == 0:"):
                text.add(
                    f"info = gesdd_{code}({job}, {m}, {n}, f, {m}, s, {u}, {m}, {v}, {h}, "
                    f"work, {work}{more}, iwork)"
                )
            filled = []
            if vectors:
                batch.rows("y", m, k, f"u[j * {m} + i]")
                batch.rows("z", h, n, f"v[j * {h} + i]")
                filled = [("y", code, f"{m} * {k}"), ("z", code, f"{h} * {n}")]
            batch.nan_unless_done(*filled, ("s", batch.part, least_too))
    return batch.own(rows * columns * least)


def qr(operands: Sequence[Operand], results: Sequence[Aval], p: Params) -> OwnKernel | None:
    """Return the kernel of `qr` without pivoting."""
    if p["pivoting"]:
        return None
    (a,), full = operands, p["full_matrices"]
    batch, (rows, columns) = _Lapack([a], results, "222"), a.shape[-2:]
    if not batch.possible:
        return None
    code, text, least = batch.code, batch.text, min(rows, columns)
    q_columns = rows if full else least
    size = BLOCK * max(columns, q_columns)
    rooms = {
        "f": (code, rows * max(columns, q_columns)),
        "tau": (code, least),
        "work": (code, size),
    }
    with batch.scratch(**rooms):
        m, n, k, q = (text.integer(x) for x in (rows, columns, least, q_columns))
        work = text.integer(size)
        with batch.each("xyz"):
            batch.columns("f", "x", 0, m, n)
            text.add(f"info = geqrf_{code}({m}, {n}, f, {m}, tau, work, {work})")
            batch.rows("z", q, n, f"f[j * {m} + i] if i <= j else {code}(0)")
            text.add(f"info = orgqr_{code}({m}, {q}, {k}, f, {m}, tau, work, {work})")
            batch.rows("y", m, q, f"f[j * {m} + i]")
    return batch.own(rows * columns * least // 8)


def cholesky_by_lapack(a: Operand, result: Aval) -> OwnKernel | None:
    """Return the kernel of `cholesky`."""
    batch, size = _Lapack([a], [result], "22"), a.shape[-1]
    if not batch.possible:
        return None
    code, text, n = batch.code, batch.text, batch.text.integer(size)
    with batch.scratch(), batch.each("xy"):
        down, across = batch.strides(0)
        # In column-major order, y is the upper triangle of the conjugate; its factor U is L.T.
        batch.rows("y", n, n, f"x[i * {down} + j * {across}] if j <= i else {code}(0)")
        text.add(f"info = potrf_{code}({U}, {n}, y, {n})")
        with text.block("if info != 0:"):
            lower = f"{code}(sqrt({batch.part}(-1))) if j <= i else {code}(0)"
            batch.rows("y", n, n, lower)
    return batch.own(size**3 // 40)


def triangular_by_lapack(
    a: Operand, b: Operand, result: Aval, left: bool, lower: bool, how: str, unit: bool
) -> OwnKernel | None:
    """Return the kernel of `triangular_solve`; `how` is "t" for transposed, "c" for conjugated."""
    batch, size = _Lapack([a, b], [result], "222"), a.shape[-1]
    if not batch.possible:
        return None
    code, text, n = batch.code, batch.text, batch.text.integer(size)
    rows, columns = b.shape[-2:]
    with batch.scratch(f=(code, size * size), g=(code, rows * columns)):
        m, r = text.integer(rows), text.integer(columns)
        text.add(f"one = cell_{code}()", f"one[0] = {code}(1)")
        form = L if lower != ("t" in how) else U
        with batch.each("axy"):
            batch.columns("f", "a", 0, n, n, how)
            batch.columns("g", "x", 1, m, r)
            batch.trsm(left, form, U if unit else N, rows, columns)
            batch.rows("y", m, r, f"g[j * {m} + i]")
    return batch.own(size * rows * columns // 10)


def lu_by_lapack(a: Operand, results: Sequence[Aval]) -> OwnKernel | None:
    """Return the kernel of `lu`: factors, pivots and the resulting permutation."""
    batch, (rows, columns) = _Lapack([a], results, "2211"), a.shape[-2:]
    if not batch.possible:
        return None
    code, text = batch.code, batch.text
    with batch.scratch(f=(code, rows * columns)):
        m, n, k = (text.integer(x) for x in (rows, columns, min(rows, columns)))
        with batch.each("xypq"):
            batch.columns("f", "x", 0, m, n)
            text.add(f"info = getrf_{code}({m}, {n}, f, {m}, p)")
            batch.exchanges(k)
            batch.rows("y", m, n, f"f[j * {m} + i]")
            batch.permutation(m, k)
    return batch.own(rows * columns * min(rows, columns) // 20)


def solve_by_lapack(a: Operand, b: Operand, result: Aval) -> OwnKernel | None:
    """Return the kernel of `linear_solve`.

    It does not call getrs, for which OpenBLAS wakes its threads even for small matrices.
    """
    batch, size = _Lapack([a, b], [result], "222"), a.shape[-1]
    if not batch.possible:
        return None
    code, text, n = batch.code, batch.text, batch.text.integer(size)
    columns = b.shape[-1]
    with batch.scratch(f=(code, size * size), g=(code, size * columns), p=("i4", size)):
        r = text.integer(columns)
        text.add(f"one = cell_{code}()", f"one[0] = {code}(1)")
        with batch.each("xby"):
            batch.columns("f", "x", 0, n, n)
            batch.columns("g", "b", 1, n, r)
            text.add(f"info = getrf_{code}({n}, {n}, f, {n}, p)")
            with text.block(f"for i in range({n}):"):
                text.add("w = i8(p[i]) - 1")
                with text.block("if w != i:"), text.block(f"for j in range({r}):"):
                    text.add(f"v = g[j * {n} + i]", f"g[j * {n} + i] = g[j * {n} + w]")
                    text.add(f"g[j * {n} + w] = v")
            for form, diagonal in ((L, U), (U, N)):
                batch.trsm(True, form, diagonal, size, columns)
            batch.rows("y", n, r, f"g[j * {n} + i]")
    return batch.own(size * size * (size + columns) // 10)


def det_by_lapack(a: Operand, results: Sequence[Aval]) -> OwnKernel | None:
    """Return the kernel of `det`, or of `slogdet` if there are two results."""
    several = len(results) > 1
    batch, size = _Lapack([a], results, "2" + "0" * len(results)), a.shape[-1]
    if not batch.possible:
        return None
    code, text, n = batch.code, batch.text, batch.text.integer(size)
    with (
        batch.scratch(f=(code, size * size), p=("i4", size)),
        batch.each("xyz"[: 1 + len(results)]),
    ):
        batch.columns("f", "x", 0, n, n)
        text.add(f"info = getrf_{code}({n}, {n}, f, {n}, p)")
        batch.exchanges(n)
        batch.determinant(n, several)
    return batch.own(size**3 // 20)


def tridiagonal_solve(
    operands: Sequence[Operand], results: Sequence[Aval], p: Params
) -> OwnKernel | None:
    """Return the kernel of `tridiagonal_solve`; LAPACK does not perturb singular matrices."""
    if p["perturb_singular"]:
        return None
    batch, (size, columns) = _Lapack(operands, results, "11122"), results[0].shape[-2:]
    if not batch.possible:
        return None
    code, text, n = batch.code, batch.text, batch.text.integer(size)
    rooms = {name: (code, size) for name in "efh"}
    with batch.scratch(**rooms, g=(code, size * columns)):
        r = text.integer(columns)
        steps = [text.integer(x.strides[-1]) for x in operands[:3]]
        with batch.each("abcxy"):
            for i, (to, source) in enumerate(zip("efh", "abc", strict=True)):
                first = "1" if i == 0 else "0"  # the lower diagonal starts in the second row
                with text.block(f"for i in range({first}, {n}):"):
                    text.add(f"{to}[i - {first}] = {source}[i * {steps[i]}]")
            batch.columns("g", "x", 3, n, r)
            text.add(f"info = gtsv_{code}({n}, {r}, e, f, h, g, {n})")
            batch.rows("y", n, r, f"g[j * {n} + i]")
            batch.nan_unless_done(("y", code, f"{n} * {r}"))
    return batch.own(size * columns * 4)
