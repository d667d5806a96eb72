"""GPU kernels of `eigh` and `svd` for small matrices, with one thread block for each matrix.

Like those in `block_factors.py`, the functions take the memory layout of the operands and return an
`OwnKernel`, or None if the matrix does not fit into shared memory; then cuSOLVER computes the op.
They use Jacobi's method, which takes more operations than LAPACK's, but all threads share them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from accnp.compiler.library.linalg.block_factors import PIVOTS, Block
from accnp.ir.aval import Aval
from accnp.ir.kernel import Operand, OwnKernel

if TYPE_CHECKING:
    from accnp.ir.op_types import Params


__all__ = ["eigh", "svd"]

SWEEPS = 30  # maximum number of sweeps over all pairs; about eight suffice
_EPS = {"f4": "f4(1.1920929e-07)", "f8": "f8(2.220446049250313e-16)"}


def eigh(operands: Sequence[Operand], results: Sequence[Aval], p: Params) -> OwnKernel | None:
    """Return the kernel of `eigh`.

    Each round rotates the planes of n/2 pairs of rows and columns at once, which sets one element
    of each pair to 0; n - 1 rounds visit all pairs (Golub and Van Loan, Matrix Computations, 4th
    edition, 8.5). In the source, f becomes diagonal, g contains the eigenvectors, and h the
    rotation of each pair: cosine, sine, and the phase that makes the element of the pair real.
    """
    (a,) = operands
    size = a.shape[-1]
    b = Block([a], results, "221")
    half = (size + 1) // 2
    if not b.fits(size * (size | 1), size * (size | 1), 3 * half):
        return None
    text, code, part = b.text, b.code, b.part
    n, ld, pairs = text.integer(size), text.integer(size | 1), text.integer(half)
    rounds = text.integer(2 * half - 1)
    lower = text.integer(int(p["lower"]))
    real = ".real" if b.complex else ""
    with b.each("xyz", "gh", pivots=True):
        rows, columns = b.strides(0)
        with b.rows("0", n), b.lanes("j", "0", n):
            text.add(f"swapped = (j <= i) != ({lower} != 0)", "swapped = swapped & (i != j)")
            text.add("r = j if swapped else i", "c = i if swapped else j")
            text.add(f"v = x[r * {rows} + c * {columns}]")
            if b.complex:
                text.add(f"v = {b.conj('v')} if swapped else v")
                text.add(f"v = {code}(v.real) if i == j else v")
            text.add(f"f[i * {ld} + j] = v")
            text.add(f"g[i * {ld} + j] = {code}(1) if i == j else {code}(0)")
        text.add("sweep = 0", "go_on = True", f"whole = {part}(0)")
        with text.block(f"while go_on & (sweep < {SWEEPS}):"):
            text.add("barrier()")
            _sums(b, n, ld)
            text.add(f"go_on = away > whole * ({_EPS[part]} * {_EPS[part]})", "sweep = sweep + 1")
            text.add("barrier()")
            with text.block(f"for turn in range({rounds} if go_on else 0):"):
                with b.alone("k", "0", pairs):
                    _pair(b, rounds)
                    with text.block(f"if low < {n}:"):
                        _angle(b, ld, pairs, real)
                text.add("barrier()")
                for columns_too in (True, False):
                    with text.block(f"for k in range(w, {pairs}, {b.threads // 32}):"):
                        _pair(b, rounds)
                        text.add(f"cosine = h[k]{real}", f"sine = h[{pairs} + k]{real}")
                        text.add(f"phase = h[2 * {pairs} + k]")
                        with text.block(f"if low < {n}:"), b.lanes("i", "0", n):
                            if columns_too:
                                _rotate_pair(b, "f", f"i * {ld} + ", "", "phase")
                                _rotate_pair(b, "g", f"i * {ld} + ", "", "phase")
                            else:
                                _rotate_pair(b, "f", "", f" * {ld} + i", b.conj("phase"))
                                # The remaining values are rounding errors.
                                with text.block("if (i == low) | (i == high):"):
                                    text.add("other = high if i == low else low")
                                    text.add(f"f[other * {ld} + i] = {code}(0)")
                    text.add("barrier()")
        nan = f"sqrt({part}(-1))"
        with b.alone("i", "0", n):
            text.add(f"v = f[i * {ld} + i]{real}", "k = 0")
            with text.block(f"for j in range({n}):"):
                text.add(f"s = f[j * {ld} + j]{real}")
                text.add("k = k + 1 if (s < v) | ((s == v) & (j < i)) else k")
            text.add("k = k if whole == whole else i", "p[i] = i4(k)")
            text.add(f"z[k] = v if whole == whole else {nan}")
        text.add("barrier()")
        with b.rows("0", n), b.lanes("j", "0", n):
            text.add(f"v = g[i * {ld} + j] if whole == whole else {code}({nan})")
            text.add(f"y[i * {n} + i8(p[j])] = v")
    return b.own(8 * size**3)


def _sums(b: Block, n: str, ld: str) -> None:
    """Set `whole` to the sum of the squares of f, and `away` to that of the elements off the
    diagonal, both divided by the square of the largest element. Each warp computes both."""
    text, part = b.text, b.part
    parts = ["v.real", "v.imag"] if b.complex else ["v"]
    text.add(f"large = {part}(0)")
    with text.block(f"for i in range({n}):"), b.lanes("j", "0", n):
        text.add(f"v = f[i * {ld} + j]", *[f"large = fmax(large, abs({x}))" for x in parts])
    for d in (16, 8, 4, 2, 1):
        text.add(f"large = fmax(large, shuffle_xor(large, {d}))")
    text.add(f"large = large if large > {part}(0) else {part}(1)")
    text.add(f"whole = {part}(0)", f"away = {part}(0)")
    with text.block(f"for i in range({n}):"), b.lanes("j", "0", n):
        text.add(f"v = f[i * {ld} + j]", f"square = {part}(0)")
        for x in parts:
            text.add(f"size = {x} / large", "square = fma(size, size, square)")
        text.add("whole = whole + square", f"away = away + (square if i != j else {part}(0))")
    b.sum_of_warp("whole", "away")


def _pair(b: Block, rounds: str) -> None:
    """Write the rows and columns of pair k in a round, `high` and `low`; without a pair, `low` is
    n."""
    b.text.add(f"high = turn + k if turn + k < {rounds} else turn + k - {rounds}")
    b.text.add(f"low = turn - k if turn >= k else turn - k + {rounds}")
    b.text.add(f"low = {rounds} if k == 0 else low")


def _angle(b: Block, ld: str, pairs: str, real: str) -> None:
    """Write the rotation that makes [[first, v], [conj(v), second]] of a pair diagonal."""
    text, code, part = b.text, b.code, b.part
    text.add(f"first = f[high * {ld} + high]{real}", f"second = f[low * {ld} + low]{real}")
    text.add(f"v = f[high * {ld} + low]", "size = abs(v)", f"some = size > {part}(0)")
    text.add(f"size = size if some else {part}(1)")
    text.add("ratio = (second - first) / (size + size)")
    text.add(f"tangent = {part}(1) / (abs(ratio) + sqrt(ratio * ratio + {part}(1)))")
    text.add(f"tangent = copysign(tangent, ratio) if some else {part}(0)")
    text.add(f"cosine = {part}(1) / sqrt(tangent * tangent + {part}(1))")
    text.add(f"h[k] = {code}(cosine)", f"h[{pairs} + k] = {code}(tangent * cosine)")
    if b.complex:
        text.add("phase = make_complex(v.real / size, -v.imag / size)")
    else:
        text.add("phase = v / size")
    text.add(f"h[2 * {pairs} + k] = phase if some else {code}(1)")


def _rotate_pair(b: Block, name: str, before: str, after: str, phase: str) -> None:
    """Rotate two elements of an array, those of the pair."""
    text = b.text
    one, two = (f"{name}[{before}{k}{after}]" for k in ("high", "low"))
    text.add(f"left = {one}", f"right = {two}")
    if b.complex:
        text.add(f"right = cmul({phase}, right)")
        real, imag = ("{0} * left.% {2} {1} * right.%".replace("%", x) for x in ("real", "imag"))
        pair = f"make_complex({real}, {imag})"
    else:
        text.add(f"right = {phase} * right")
        pair = "{0} * left {2} {1} * right"
    text.add(f"{one} = " + pair.format("cosine", "sine", "-"))
    text.add(f"{two} = " + pair.format("sine", "cosine", "+"))


def svd(operands: Sequence[Operand], results: Sequence[Aval], p: Params) -> OwnKernel | None:
    """Return the kernel of `svd`.

    Only columns are rotated, each pair by one warp, until all columns are orthogonal (Hestenes:
    Inversion of matrices by biorthogonalization and related results, J. SIAM 6, 1958; Golub and Van
    Loan, Matrix Computations, 4th edition, 8.6). The norms of the columns are then the singular
    values, the normalized columns are U, and the product of the rotations is V. In the source, f
    contains these columns (those of the conjugate transpose if there are more columns than rows), g
    the product of the rotations, and h the norms.
    """
    (a,) = operands
    vectors, (rows, columns) = len(results) > 1, a.shape[-2:]
    turned, tall, least = rows < columns, max(rows, columns), min(rows, columns)
    width = tall if vectors and p["full_matrices"] else least
    b = Block([a], results, "2122" if vectors else "21")
    beside = [least * (least | 1)] if vectors else []
    if not b.fits(tall * (width | 1), *beside, width):
        return None
    text, code = b.text, b.code
    m, n, wide = (text.integer(x) for x in (tall, least, width))
    ld, lg = text.integer(width | 1), text.integer(least | 1)
    half = (least + 1) // 2
    pairs, rounds = text.integer(half), text.integer(2 * half - 1)
    with b.each("xsyz" if vectors else "xs", "gh" if vectors else "h", pivots=True):
        down, across = b.strides(0)[:: -1 if turned else 1]
        with b.rows("0", m), b.lanes("j", "0", wide):
            text.add(f"v = {code}(0)")
            with text.block(f"if j < {n}:"):
                text.add(f"v = x[i * {down} + j * {across}]")
            text.add(f"f[i * {ld} + j] = {b.conj('v') if turned else 'v'}")
        if vectors:
            with b.rows("0", n), b.lanes("j", "0", n):
                text.add(f"g[i * {lg} + j] = {code}(1) if i == j else {code}(0)")
        with b.alone("i", "0", str(PIVOTS)):
            text.add("p[i] = i4(0)")
        text.add("barrier()")
        _write_scale(b, m, n, ld)
        text.add("sweep = 0", "go_on = True")
        with text.block(f"while go_on & (sweep < {SWEEPS}):"):
            with text.block(f"for turn in range({rounds}):"):
                with text.block(f"for k in range(w, {pairs}, {b.threads // 32}):"):
                    _pair(b, rounds)
                    with text.block(f"if low < {n}:"):
                        _orthogonal(b, m, n, ld, lg, vectors)
                text.add("barrier()")
            text.add("go_on = p[sweep] != 0", "sweep = sweep + 1")
        text.add("barrier()")
        _lengths(b, m, n, wide, ld, vectors)
        if vectors:
            _complete_basis(b, m, wide, ld)
            for name, count, at, size, step in (
                ("y", *((n, "g", n, lg) if turned else (m, "f", wide, ld))),
                ("z", *((m, "f", wide, ld) if turned else (n, "g", n, lg))),
            ):
                warps = text.block(f"for j in range(w, {size}, {b.threads // 32}):")
                with warps, b.lanes("i", "0", count):
                    text.add(f"v = {at}[i * {step} + j]", "k = i8(p[j])")
                    value = b.conj("v") if name == "z" else "v"
                    place = f"k * {count} + i" if name == "z" else f"i * {size} + k"
                    text.add(f"{name}[{place}] = {value} if good else {code}(nan)")
    return b.own(16 * tall * least * least)


def _write_scale(b: Block, m: str, n: str, ld: str) -> None:
    """Divide f by its largest element, `large`; `good` is true if all elements are finite."""
    text, part = b.text, b.part
    parts = ["v.real", "v.imag"] if b.complex else ["v"]
    text.add(f"nan = sqrt({part}(-1))", f"large = {part}(0)", f"zero = {part}(0)")
    with text.block(f"for i in range({m}):"), b.lanes("j", "0", n):
        text.add(f"v = f[i * {ld} + j]", *[f"large = fmax(large, abs({x}))" for x in parts])
        text.add(*[f"zero = zero + {part}(0) * {x}" for x in parts])
    for d in (16, 8, 4, 2, 1):
        text.add(f"large = fmax(large, shuffle_xor(large, {d}))")
    b.sum_of_warp("zero")
    text.add(f"good = zero == {part}(0)", f"large = large if large > {part}(0) else {part}(1)")
    text.add("barrier()")
    with b.rows("0", m), b.lanes("j", "0", n):
        text.add(f"v = f[i * {ld} + j]")
        over = "make_complex(v.real / large, v.imag / large)" if b.complex else "v / large"
        text.add(f"f[i * {ld} + j] = {over}")
    text.add("barrier()")


def _square(b: Block, name: str, x: str) -> None:
    """Add the square of |x| to a number."""
    for one in (f"{x}.real", f"{x}.imag") if b.complex else (x,):
        b.text.add(f"{name} = fma({one}, {one}, {name})")


def _orthogonal(b: Block, m: str, n: str, ld: str, lg: str, vectors: bool) -> None:
    """Rotate a pair of columns so that they become orthogonal, unless they are orthogonal already
    or one of them contains only rounding errors."""
    text, code, part = b.text, b.code, b.part
    text.add(f"first = {part}(0)", f"second = {part}(0)", f"v = {code}(0)")
    with b.lanes("i", "0", m):
        text.add(f"left = f[i * {ld} + high]", f"right = f[i * {ld} + low]")
        _square(b, "first", "left")
        _square(b, "second", "right")
        product = f"v + cmul({b.conj('left')}, right)" if b.complex else "fma(left, right, v)"
        text.add(f"v = {product}")
    b.sum_of_warp("first", "second", "v")
    text.add("size = abs(v)", f"least = {_EPS[part]} * {_EPS[part]}")
    text.add(f"bent = size > {part}(8) * {_EPS[part]} * sqrt(first) * sqrt(second)")
    with text.block("if bent & (first > least) & (second > least):"):
        text.add("ratio = (second - first) / (size + size)")
        text.add(f"tangent = {part}(1) / (abs(ratio) + sqrt(ratio * ratio + {part}(1)))")
        text.add("tangent = copysign(tangent, ratio)")
        text.add(f"cosine = {part}(1) / sqrt(tangent * tangent + {part}(1))")
        text.add("sine = tangent * cosine")
        phase = "make_complex(v.real / size, -v.imag / size)" if b.complex else "v / size"
        text.add(f"phase = {phase}")
        with b.lanes("i", "0", m):
            _rotate_pair(b, "f", f"i * {ld} + ", "", "phase")
        if vectors:
            with b.lanes("i", "0", n):
                _rotate_pair(b, "g", f"i * {lg} + ", "", "phase")
        with text.block("if u == 0:"):
            text.add("p[sweep] = i4(1)")


def _lengths(b: Block, m: str, n: str, wide: str, ld: str, vectors: bool) -> None:
    """Set s to the norms of the columns in descending order, and p to their order. Normalize the
    columns, or set those to zero that contain only rounding errors."""
    text, code, part = b.text, b.code, b.part
    real = ".real" if b.complex else ""
    with text.block(f"for j in range(w, {wide}, {b.threads // 32}):"):
        text.add(f"square = {part}(0)")
        with b.lanes("i", "0", m):
            text.add(f"v = f[i * {ld} + j]")
            _square(b, "square", "v")
        b.sum_of_warp("square")
        text.add("size = sqrt(square)", f"some = size > {_EPS[part]}")
        if vectors:
            with b.lanes("i", "0", m):
                text.add(f"v = f[i * {ld} + j]")
                over = "make_complex(v.real / size, v.imag / size)" if b.complex else "v / size"
                text.add(f"f[i * {ld} + j] = {over} if some else {code}(0)")
        with text.block("if u == 0:"):
            text.add(f"h[j] = {code}(size)")
    text.add("barrier()")
    with b.alone("i", "0", wide):
        text.add(f"v = h[i]{real}", "k = 0")
        with text.block(f"for j in range({n}):"):
            text.add(f"size = h[j]{real}")
            text.add("k = k + 1 if (size > v) | ((size == v) & (j < i)) else k")
        text.add(f"k = k if good & (i < {n}) else i", "p[i] = i4(k)")
        with text.block(f"if i < {n}:"):
            text.add("s[k] = v * large if good else nan")
    text.add("barrier()")


def _complete_basis(b: Block, m: str, wide: str, ld: str) -> None:
    """Replace each column of zeros by a unit vector that is orthogonal to all other columns: the
    unit vector of the axis that lies least in their span, minus its projection onto the span."""
    text, code, part = b.text, b.code, b.part
    real = ".real" if b.complex else ""
    every = text.block(f"for j in range({wide} if good else 0):")
    with every, text.block(f"if h[j]{real} <= {_EPS[part]}:"):
        text.add(f"best = {part}(2)", "where = 0")
        with b.lanes("i", "0", m):
            text.add(f"square = {part}(0)")
            with text.block(f"for k in range({wide}):"):
                text.add(f"v = f[i * {ld} + k]")
                _square(b, "square", "v")
            text.add("where = i if square < best else where")
            text.add("best = square if square < best else best")
        b.extreme_of_warp("<")
        text.add(f"square = {part}(0)")
        # Every warp computes the norm; then all threads write the column, which was zeros.
        for write in (False, True):
            every = b.alone("i", "0", m) if write else b.lanes("i", "0", m)
            if write:
                b.sum_of_warp("square")
                text.add("unit = sqrt(square)", "barrier()")
            with every:
                text.add(f"left = {code}(1) if i == where else {code}(0)")
                with text.block(f"for k in range({wide}):"), text.block("if k != j:"):
                    text.add(f"v = f[i * {ld} + k]", f"right = f[where * {ld} + k]")
                    text.add(b.minus("left", "v", b.conj("right")))
                if write:
                    over = "make_complex(left.real / unit, left.imag / unit)"
                    text.add(f"f[i * {ld} + j] = {over if b.complex else 'left / unit'}")
                else:
                    _square(b, "square", "left")
        text.add("barrier()")
