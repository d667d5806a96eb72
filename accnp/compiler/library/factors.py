"""Sources of the library kernels for triangular systems and factorizations of real matrices.

`TEXTS` contains the sources in restricted Python, with a placeholder for the element type, and
`SIGNATURES` the types of the arguments; `library.py` adds them to the other library kernels. The
kernels that `linalg/small_matrices.py` writes call them. All of them work in place on contiguous
rows, and in blocks, so that matrix products do most of the work: Golub and Van Loan, Matrix
Computations, 4th edition, 3.1.4, 3.2.11, 3.4.8, 4.2.6.
"""

from __future__ import annotations

__all__ = ["SIGNATURES", "TEXTS"]

SIGNATURES: dict[str, tuple[str, ...]] = {
    "solve": ("i8", "i8", "*", "i8", "i8", "*", "i8", "i8", "i8"),
    "solve_right": ("i8", "i8", "*", "i8", "i8", "*", "i8", "i8", "i8"),
    "cholesky": ("i8", "*", "i8", "*"),
    "lu": ("i8", "i8", "*", "i8", "i4*"),
}

# Replaces the r right sides x by the solution of a @ y = x; a is upper or lower triangular.
_SOLVE = """
def solve_{code}(lo, hi, n, r, a, rsa, csa, x, ldx, upper, unit):
    for step in range(0, n, 16):
        i0 = step
        p0 = 0
        known = step
        count = fmin(n - i0, 16)
        if upper != 0:
            i0 = (n - 1) // 16 * 16 - step
            count = fmin(n - i0, 16)
            p0 = i0 + count
            known = n - p0
        rows = at(x, i0 * ldx)
        if known > 0:
            left = at(a, i0 * rsa + p0 * csa)
            gemm_{code}(count, r, known, left, rsa, csa, at(x, p0 * ldx), ldx, 1, rows, ldx, -1)
        block = at(a, i0 * (rsa + csa))
        for u in range(count):
            i = u
            first = 0
            stop = u
            if upper != 0:
                i = count - 1 - u
                first = i + 1
                stop = count
            row = at(rows, i * ldx)
            for p in range(first, stop):
                f = -block[i * rsa + p * csa]
                other = at(rows, p * ldx)
                for q in range(r):
                    row[q] = fma(f, other[q], row[q])
            if unit == 0:
                f = block[i * (rsa + csa)]
                for q in range(r):
                    row[q] = row[q] / f
"""

# Replaces the m rows x by the solution of y @ t = x, where t is a transposed.
_SOLVE_RIGHT = """
def solve_right_{code}(lo, hi, m, n, a, rsa, csa, x, ldx, upper, unit):
    buf = stack_{code}()
    for step in range(0, n, 16):
        j0 = step
        p0 = 0
        known = step
        count = fmin(n - j0, 16)
        if upper != 0:
            j0 = (n - 1) // 16 * 16 - step
            count = fmin(n - j0, 16)
            p0 = j0 + count
            known = n - p0
        block = at(a, j0 * (rsa + csa))
        if known > 0:
            other = at(a, j0 * rsa + p0 * csa)
            gemm_{code}(m, count, known, at(x, p0), ldx, 1, other, csa, rsa, at(x, j0), ldx, -1)
        for i0 in range(0, m, 64):
            some = fmin(m - i0, 64)
            for i in range(some):
                row = at(x, (i0 + i) * ldx + j0)
                for j in range(count):
                    buf[j * 64 + i] = row[j]
            solve_{code}(count, some, block, rsa, csa, buf, 64, upper, unit)
            for i in range(some):
                row = at(x, (i0 + i) * ldx + j0)
                for j in range(count):
                    row[j] = buf[j * 64 + i]
"""

# Replaces the lower triangle of a by its factor, and sets bad[0] if a is not positive definite.
# Blocks are transposed for the divisions, so that their rows are whole vectors.
_CHOLESKY = """
def cholesky_{code}(lo, hi, n, a, lda, bad):
    buf = stack_{code}()
    for k0 in range(0, n, 32):
        count = fmin(n - k0, 32)
        block = at(a, k0 * lda + k0)
        if k0 > 0:
            left = at(a, k0 * lda)
            gemm_{code}(n - k0, count, k0, left, lda, 1, left, 1, lda, block, lda, -1)
        for q in range(1024):
            buf[q] = {code}(0)
        for i in range(count):
            row = at(block, i * lda)
            for j in range(i + 1):
                buf[j * 32 + i] = row[j]
        for j in range(count):
            top = at(buf, j * 32)
            s = top[j]
            bad[0] = bad[0] if s > {code}(0) else {code}(1)
            d = sqrt(s)
            for q in range(32):
                top[q] = top[q] / d
            top[j] = d
            for i in range(j + 1, count):
                row = at(buf, i * 32)
                f = -top[i]
                for q in range(32):
                    row[q] = fma(f, top[q], row[q])
        for i in range(count):
            row = at(block, i * lda)
            for j in range(i + 1):
                row[j] = buf[j * 32 + i]
        below = at(block, count * lda)
        rest = n - k0 - count
        while rest >= 32:
            for u in range(0, 32, {one}):
                for q in range(0, 32, {one}):
                    transpose_square(at(buf, u * 32 + q), 32, at(below, u + q * lda), lda)
            for p in range(32):
                top = at(buf, p * 32)
                d = block[p * lda + p]
                for q in range(32):
                    top[q] = top[q] / d
                for j in range(p + 1, 32):
                    row = at(buf, j * 32)
                    f = -block[j * lda + p]
                    for q in range(32):
                        row[q] = fma(f, top[q], row[q])
            for u in range(0, 32, {one}):
                for q in range(0, 32, {one}):
                    transpose_square(at(below, u * lda + q), lda, at(buf, u + q * 32), 32)
            below = at(below, 32 * lda)
            rest -= 32
        if rest > 0:
            solve_right_{code}(rest, count, block, lda, 1, below, lda, 0, 0)
"""

# Replaces a by its factors with exchanged rows; pivots[i] is the row exchanged with row i.
_LU = """
def lu_{code}(lo, hi, m, n, a, lda, pivots):
    for k0 in range(0, fmin(m, n), 32):
        stop = fmin(fmin(m, n), k0 + 32)
        for j in range(k0, stop):
            column = at(a, j)
            best = abs(column[j * lda])
            where = j
            for i in range(j + 1, m):
                size = abs(column[i * lda])
                if size > best:
                    best = size
                    where = i
            pivots[j] = i4(where)
            top = at(a, j * lda)
            if where != j:
                other = at(a, where * lda)
                for q in range(n):
                    t = top[q]
                    top[q] = other[q]
                    other[q] = t
            pivot = top[j]
            if pivot != {code}(0):
                for i in range(j + 1, m):
                    row = at(a, i * lda)
                    f = row[j] / pivot
                    row[j] = f
                    for q in range(j + 1, stop):
                        row[q] = fma(-f, top[q], row[q])
        right = n - stop
        if right > 0:
            count = stop - k0
            beside = at(a, k0 * lda + stop)
            solve_{code}(count, right, at(a, k0 * lda + k0), lda, 1, beside, lda, 0, 1)
            if m > stop:
                left = at(a, stop * lda + k0)
                rest = at(a, stop * lda + stop)
                gemm_{code}(m - stop, right, count, left, lda, 1, beside, lda, 1, rest, lda, -1)
"""

TEXTS = {"solve": _SOLVE, "solve_right": _SOLVE_RIGHT, "cholesky": _CHOLESKY, "lu": _LU}
