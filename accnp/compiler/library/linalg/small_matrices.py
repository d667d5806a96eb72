"""Kernels of triangular systems and factorizations of real matrices: cholesky, triangular_solve,
lu, linear_solve, det, slogdet, adjugate, adjugate_tangent.

The functions take the memory layout of the operands and return an `OwnKernel` with one task per
matrix of the batch. The library contains the algorithms (`compiler/library/factors.py`). Complex
matrices, and those with more than LARGE rows, use `lapack.py` instead, where LAPACK uses
several threads.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from math import prod
from typing import TYPE_CHECKING

from accnp.compiler.library.writing.loop_nests import Axis, Text, merged, moved, place
from accnp.ir.aval import Aval
from accnp.ir.kernel import Operand, OwnKernel, dtype_code
from accnp.primitives.views import contiguous

if TYPE_CHECKING:
    from accnp.ir.op_types import Params


__all__ = [
    "Batch", "adjugate", "adjugate_tangent", "cholesky_kernel", "det_kernel", "lu_kernel",
    "pivots_to_permutation", "solve_kernel", "triangular_kernel",
]  # fmt: skip

LARGE = 2048
# Maximum number of rows for the kernels of adjugates, whose search for pivots covers all elements.
FEW = 128


class Batch:
    """A kernel with one task for each matrix of several arrays with the same batch axes."""

    def __init__(self, operands: Sequence[Operand], results: Sequence[Aval], ranks: str) -> None:
        """`ranks` contains for each array the number of axes that one task processes."""
        self.code = dtype_code(results[0].dtype)
        arrays = [*operands, *[Operand(r.shape, r.dtype, contiguous(r.shape)) for r in results]]
        outer = len(arrays[0].shape) - int(ranks[0])
        sizes = arrays[0].shape[:outer]
        steps = [x.strides[:outer] for x in arrays]
        self.axes = merged([Axis(n, s) for n, *s in zip(sizes, *steps, strict=True)])
        self.arrays = arrays
        self.text = Text(len(arrays))

    @property
    def real(self) -> bool:
        """Return whether all arrays contain real numbers of one dtype, and none is empty."""
        sizes = [n for x in self.arrays for n in x.shape]
        kinds = {dtype_code(x.dtype) for x in self.arrays} - {"i4"}
        return self.code in ("f4", "f8") and kinds == {self.code} and all(n > 0 for n in sizes)

    @contextmanager
    def each(self, names: str) -> Generator[None]:
        """The loop over tasks; each name is a pointer to the task's part of one array."""
        with self.text.block("for t in range(lo, hi):"):
            places = place(self.text, self.axes, "t", len(self.arrays))
            for which, name in enumerate(names):
                self.text.add(f"{name} = {moved(which, places[which])}")
            yield

    def strides(self, which: int) -> tuple[str, str]:
        """Return the strides between rows and between columns; strides of 1 are constants."""
        rows, columns = self.arrays[which].strides[-2:]
        return tuple("1" if n == 1 else self.text.integer(n) for n in (rows, columns))  # type: ignore[return-value]

    def copy(self, to: str, source: str, which: int, m: str, n: str) -> None:
        """Copy a matrix in row-major order."""
        rows, columns = self.strides(which)
        with self.text.block(f"for i in range({m}):"), self.text.block(f"for j in range({n}):"):
            self.text.add(f"{to}[i * {n} + j] = {source}[i * {rows} + j * {columns}]")

    def permutation(self, m: str, k: str, step: str = "1") -> None:
        """Write code that sets q to the order of m rows after the k exchanges in p, whose stride is
        `step`. Exchanges out of range are ignored; users or NaN matrices may cause them."""
        self.text.add(f"for i in range({m}):", "    q[i] = i4(i)")
        with self.text.block(f"for i in range({k}):"):
            self.text.add(f"other = i8(p[i * {step}])")
            with self.text.block(f"if (other >= 0) & (other < {m}):"):
                self.text.add("row = q[i]", "q[i] = q[other]", "q[other] = row")

    def determinant(self, n: str, several: bool, first: int = 0) -> None:
        """Write code that stores at y the determinant from factors f and exchanges p, counted from
        `first`; or its sign, and at z the logarithm of its absolute value."""
        code, text = self.code, self.text
        part = {"c8": "f4", "c16": "f8"}.get(code, code)
        row = f" + {first}" if first else ""
        text.add(f"s = {code}(1)", f"log_size = {part}(0)")
        with text.block(f"for i in range({n}):"):
            text.add(f"d = f[i * {n} + i]", f"s = s if i8(p[i]) == i{row} else -s")
            if several:
                text.add("size = abs(d)", "log_size = log_size + log(size)")
                text.add("unit = " + ("d / size" if part == code else f"cdiv(d, {code}(size))"))
                text.add(f"s = s * (unit if size != {part}(0) else d)")
            else:
                text.add("s = s * d")
        text.add("y[0] = s", *(["z[0] = log_size"] if several else []))

    def own(self, work: int) -> OwnKernel:
        """Return the kernel; `work` is that of one task."""
        count = prod([x.size for x in self.axes])
        return self.text.own(count, count * (work + 64))


def cholesky_kernel(a: Operand, result: Aval) -> OwnKernel | None:
    """Return the kernel of `cholesky`; the result is NaN for matrices that are not positive
    definite."""
    batch, size = Batch([a], [result], "22"), a.shape[-1]
    if not batch.real or size > LARGE:
        return None
    code, text, n = batch.code, batch.text, batch.text.integer(size)
    with batch.each("xy"):
        rows, columns = batch.strides(0)
        text.add(f"bad = cell_{code}()", f"bad[0] = {code}(0)")
        with text.block(f"for i in range({n}):"), text.block("for j in range(i + 1):"):
            text.add(f"y[i * {n} + j] = x[i * {rows} + j * {columns}]")
        text.add(f"cholesky_{code}({n}, y, {n}, bad)")
        with text.block(f"for i in range({n}):"):
            with text.block(f"if bad[0] != {code}(0):"), text.block("for j in range(i + 1):"):
                text.add(f"y[i * {n} + j] = sqrt({code}(-1))")
            text.add(f"for j in range(i + 1, {n}):", f"    y[i * {n} + j] = {code}(0)")
    return batch.own(size**3 // 200)


def triangular_kernel(
    a: Operand, b: Operand, result: Aval, left: bool, lower: bool, transpose: bool, unit: bool
) -> OwnKernel | None:
    """Return the kernel of `triangular_solve`."""
    batch = Batch([a, b], [result], "222")
    if not batch.real:
        return None
    code, text = batch.code, batch.text
    m, n = (text.integer(x) for x in b.shape[-2:])
    with batch.each("axy"):
        batch.copy("y", "x", 1, m, n)
        rows, columns = batch.strides(0)
        if transpose:
            rows, columns, lower = columns, rows, not lower
        flag = text.integer(int(unit))
        if left:
            upper = text.integer(int(not lower))
            text.add(f"solve_{code}({m}, {n}, a, {rows}, {columns}, y, {n}, {upper}, {flag})")
        else:
            upper = text.integer(int(lower))
            text.add(f"solve_right_{code}({m}, {n}, a, {columns}, {rows}, y, {n}, {upper}, {flag})")
    return batch.own(a.shape[-1] * prod(b.shape[-2:]) // 50)


def lu_kernel(a: Operand, results: Sequence[Aval]) -> OwnKernel | None:
    """Return the kernel of `lu`: factors, pivots and the resulting permutation."""
    batch = Batch([a], results, "2211")
    if not batch.real or min(a.shape[-2:]) > LARGE:
        return None
    code, text = batch.code, batch.text
    m, n = (text.integer(x) for x in a.shape[-2:])
    k = text.integer(min(a.shape[-2:]))
    with batch.each("xypq"):
        batch.copy("y", "x", 0, m, n)
        text.add(f"lu_{code}({m}, {n}, y, {n}, p)")
        batch.permutation(m, k)
    return batch.own(min(a.shape[-2:]) ** 2 * max(a.shape[-2:]) // 100)


def solve_kernel(a: Operand, b: Operand, result: Aval) -> OwnKernel | None:
    """Return the kernel of `linear_solve`."""
    batch, size = Batch([a, b], [result], "222"), a.shape[-1]
    if not batch.real or size > LARGE:
        return None
    code, text = batch.code, batch.text
    n, r = (text.integer(x) for x in b.shape[-2:])
    with batch.each("xby"):
        _factorize(batch, n)
        batch.copy("y", "b", 1, n, r)
        with text.block(f"for i in range({n}):"):
            text.add("w = i8(p[i])")
            with text.block("if w != i:"), text.block(f"for j in range({r}):"):
                text.add(f"v = y[i * {r} + j]", f"y[i * {r} + j] = y[w * {r} + j]")
                text.add(f"y[w * {r} + j] = v")
        text.add(f"solve_{code}({n}, {r}, f, {n}, 1, y, {r}, 0, 1)")
        text.add(f"solve_{code}({n}, {r}, f, {n}, 1, y, {r}, 1, 0)")
        text.add("release(f)", "release(p)")
    return batch.own(size**3 // 50)


def det_kernel(a: Operand, results: Sequence[Aval]) -> OwnKernel | None:
    """Return the kernel of `det`, or of `slogdet` if there are two results."""
    several = len(results) > 1
    batch, size = Batch([a], results, "2" + "0" * len(results)), a.shape[-1]
    if not batch.real or size > LARGE:
        return None
    text, n = batch.text, batch.text.integer(size)
    with batch.each("xyz"[: 1 + len(results)]):
        _factorize(batch, n)
        batch.determinant(n, several)
        text.add("release(f)", "release(p)")
    return batch.own(size**3 // 100)


def adjugate(operands: Sequence[Operand], results: Sequence[Aval], p: Params) -> OwnKernel | None:
    """Return the kernel of `adjugate` (transposed cofactors), also valid for singular matrices.

    With complete pivoting P A Q = L U, adj(A) = det(P) det(Q) Q adj(U) inv(L) P. The last pivots of
    a singular matrix are 0, so adj(U) is computed without division: if U ends in a column w over a
    pivot d, and V is U without them, adj(U) has the blocks d adj(V), -adj(V) w and det(V).
    """
    (a,), (result,) = operands, results
    batch, size = Batch([a], [result], "22"), a.shape[-1]
    if not batch.real or size > FEW:
        return None
    code, text, n = batch.code, batch.text, batch.text.integer(size)
    rows = f"for i in range({n}):"
    with batch.each("xy"):
        text.add(f"f = heap_{code}({n} * {n})", f"g = heap_{code}({n} * {n})")
        text.add(f"p = heap_i4({n})", f"q = heap_i4({n})", f"sign = {code}(1)")
        batch.copy("f", "x", 0, n, n)
        text.add(rows, "    p[i] = i4(i)", "    q[i] = i4(i)")
        with text.block(f"for k in range({n}):"):
            _pivot(text, n, code)
            text.add(f"d = f[k * {n} + k]")
            with text.block(f"for i in range(k + 1, {n}):"):
                text.add(f"m = f[i * {n} + k] / d if d != {code}(0) else {code}(0)")
                text.add(f"f[i * {n} + k] = m")
                text.add(f"row = at(f, i * {n})", f"top = at(f, k * {n})")
                text.add(f"for j in range(k + 1, {n}):", "    row[j] = row[j] - m * top[j]")
        # g is adj(U) in column-major order, so that the inner loops are contiguous.
        text.add(f"for i in range({n} * {n}):", f"    g[i] = {code}(0)")
        text.add(f"det = {code}(1)")
        with text.block(f"for k in range({n}):"):
            text.add(f"d = f[k * {n} + k]", f"last = at(g, k * {n})")
            with text.block("for j in range(k):"):
                text.add(f"w = f[j * {n} + k]", f"other = at(g, j * {n})")
                with text.block("for i in range(k):"):
                    text.add("last[i] = last[i] - w * other[i]", "other[i] = other[i] * d")
            text.add("last[k] = det", "det = det * d")
        with text.block(f"for c in range({n}):"):  # times the inverse of L
            text.add(f"j = {n} - 1 - c", f"first = at(g, j * {n})")
            with text.block(f"for k in range(j + 1, {n}):"):
                text.add(f"m = f[k * {n} + j]", f"other = at(g, k * {n})")
                text.add(f"for i in range({n}):", "    first[i] = first[i] - m * other[i]")
        with text.block(rows), text.block(f"for j in range({n}):"):
            text.add(f"y[i8(q[i]) * {n} + i8(p[j])] = sign * g[j * {n} + i]")
        text.add("release(f)", "release(g)", "release(p)", "release(q)")
    return batch.own(2 * size**3)


def adjugate_tangent(
    operands: Sequence[Operand], results: Sequence[Aval], p: Params
) -> OwnKernel | None:
    """Return the kernel of `adjugate_tangent`, also valid for singular matrices.

    With complete pivoting, all but two columns of P A Q are factorized, which leaves a 2 x 2 matrix
    S: P A Q = L E R, where E is block diagonal with an identity and S, and R has the pivots. Then
    the adjugate changes by det(R) inv(R) D inv(L), where D is the change of adj(E) in the direction
    C = inv(L) P T Q inv(R). Its blocks are polynomials: with s = det(S) they are
    (s tr(C11) + tr(adj(S) C22)) I - s C11, -C12 adj(S), -adj(S) C21, tr(C11) adj(S) + adj(C22).
    If one of the pivots is 0, so is the change: minors of all but two rows vanish.
    """
    (a, t), (result,) = operands, results
    batch, size = Batch([a, t], [result], "222"), a.shape[-1]
    if not batch.real or not 2 <= size <= FEW:
        return None
    code, text, n = batch.code, batch.text, batch.text.integer(size)
    m = text.integer(size - 2)
    head, every = f"for k in range({m}):", f"for i in range({n}):"
    with batch.each("xuy"):
        text.add(f"f = heap_{code}({n} * {n})", f"c = heap_{code}({n} * {n})")
        text.add(f"p = heap_i4({n})", f"q = heap_i4({n})", f"sign = {code}(1)")
        batch.copy("f", "x", 0, n, n)
        text.add(every, "    p[i] = i4(i)", "    q[i] = i4(i)")
        text.add(f"scale = {code}(1)")
        with text.block(head):
            _pivot(text, n, code)
            text.add(f"d = f[k * {n} + k]", "scale = scale * d")
            text.add(f"f[k * {n} + k] = d if d != {code}(0) else {code}(1)")
            with text.block(f"for i in range(k + 1, {n}):"):
                text.add(f"r = f[i * {n} + k] / f[k * {n} + k]", f"f[i * {n} + k] = r")
                text.add(f"row = at(f, i * {n})", f"top = at(f, k * {n})")
                text.add(f"for j in range(k + 1, {n}):", "    row[j] = row[j] - r * top[j]")
        rows, columns = batch.strides(1)
        with text.block(every), text.block(f"for j in range({n}):"):
            text.add(f"c[i * {n} + j] = u[i8(p[i]) * {rows} + i8(q[j]) * {columns}]")
        with text.block(head), text.block(f"for i in range(k + 1, {n}):"):  # inv(L) from the left
            text.add(f"r = f[i * {n} + k]", f"row = at(c, i * {n})", f"top = at(c, k * {n})")
            text.add(f"for j in range({n}):", "    row[j] = row[j] - r * top[j]")
        with text.block(every), text.block(head):  # inv(R) from the right
            text.add(f"row = at(c, i * {n})", f"top = at(f, k * {n})", "r = row[k] / top[k]")
            text.add("row[k] = r")
            text.add(f"for j in range(k + 1, {n}):", "    row[j] = row[j] - r * top[j]")
        _change_of_blocks(text, n, m, code)
        with text.block(f"for b in range({m}):"):  # inv(R) from the left
            text.add(f"k = {m} - 1 - b", f"top = at(f, k * {n})", f"row = at(c, k * {n})")
            with text.block(f"for j in range(k + 1, {n}):"):
                text.add("r = top[j]", f"other = at(c, j * {n})")
                text.add(f"for i in range({n}):", "    row[i] = row[i] - r * other[i]")
            text.add("d = top[k]", f"for i in range({n}):", "    row[i] = row[i] / d")
        with text.block(every), text.block(f"for b in range({m}):"):  # inv(L) from the right
            text.add(f"k = {m} - 1 - b", f"row = at(c, i * {n})", "r = row[k]")
            text.add(f"for j in range(k + 1, {n}):", f"    r = r - row[j] * f[j * {n} + k]")
            text.add("row[k] = r")
        with text.block(every), text.block(f"for j in range({n}):"):
            text.add(f"y[i8(q[i]) * {n} + i8(p[j])] = sign * scale * c[i * {n} + j]")
        text.add("release(f)", "release(c)", "release(p)", "release(q)")
    return batch.own(3 * size**3)


def _change_of_blocks(text: Text, n: str, m: str, code: str) -> None:
    """Write code that replaces C in c by D, with S at the end of f: `adjugate_tangent`."""
    text.add(f"e = {m} + 1", f"upper = at(f, {m} * {n})", f"lower = at(f, e * {n})")
    text.add(f"s0 = upper[{m}]", "s1 = upper[e]", f"s2 = lower[{m}]", "s3 = lower[e]")
    text.add(f"upper = at(c, {m} * {n})", f"lower = at(c, e * {n})")
    text.add(f"c0 = upper[{m}]", "c1 = upper[e]", f"c2 = lower[{m}]", "c3 = lower[e]")
    text.add("s = s0 * s3 - s1 * s2", "both = s3 * c0 - s1 * c2 - s2 * c1 + s0 * c3")
    text.add(f"trace = {code}(0)")
    text.add(f"for i in range({m}):", f"    trace = trace + c[i * {n} + i]")
    with text.block(f"for i in range({m}):"):
        text.add(f"row = at(c, i * {n})")
        text.add(f"for j in range({m}):", "    row[j] = -s * row[j]")
        text.add("row[i] = row[i] + s * trace + both", f"g = row[{m}]", "h = row[e]")
        text.add(f"row[{m}] = s2 * h - s3 * g", "row[e] = s1 * g - s0 * h")
        text.add("g = upper[i]", "h = lower[i]")
        text.add("upper[i] = s1 * h - s3 * g", "lower[i] = s2 * g - s0 * h")
    text.add(f"upper[{m}] = trace * s3 + c3", "upper[e] = -trace * s1 - c1")
    text.add(f"lower[{m}] = -trace * s2 - c2", "lower[e] = trace * s0 + c0")


def _pivot(text: Text, n: str, code: str) -> None:
    """Write code that moves the largest element of f from row and column k on to position k."""
    text.add(f"most = {code}(-1)", "best = k", "column = k")
    with text.block(f"for i in range(k, {n}):"), text.block(f"for j in range(k, {n}):"):
        text.add(f"size = abs(f[i * {n} + j])", "more = size > most")
        text.add("most = size if more else most", "best = i if more else best")
        text.add("column = j if more else column")
    for name, order, one, other in (
        ("best", "p", f"k * {n} + j", f"best * {n} + j"),
        ("column", "q", f"j * {n} + k", f"j * {n} + column"),
    ):
        with text.block(f"if {name} != k:"):
            text.add("sign = -sign", f"old = {order}[k]", f"{order}[k] = {order}[{name}]")
            text.add(f"{order}[{name}] = old")
            with text.block(f"for j in range({n}):"):
                text.add(f"v = f[{one}]", f"f[{one}] = f[{other}]", f"f[{other}] = v")


def _factorize(batch: Batch, n: str) -> None:
    """Write code that sets f to the factors of the matrix at x, and p to its pivots."""
    code, text = batch.code, batch.text
    text.add(f"f = heap_{code}({n} * {n})", f"p = heap_i4({n})")
    batch.copy("f", "x", 0, n, n)
    text.add(f"lu_{code}({n}, {n}, f, {n}, p)")


def pivots_to_permutation(
    operands: Sequence[Operand], results: Sequence[Aval], p: Params
) -> OwnKernel | None:
    """Return the kernel of `lu_pivots_to_permutation`."""
    pivots, count = operands[0], p["permutation_size"]
    if not all(pivots.shape) or not count:
        return None
    batch = Batch([pivots], results, "11")
    text = batch.text
    m, k, step = (text.integer(n) for n in (count, pivots.shape[-1], pivots.strides[-1]))
    with batch.each("pq"):
        batch.permutation(m, k, step)
    return batch.own(count)
