"""Kernels that other kernels call by name, in the language of kernels: products of matrices, tiles
that are transposed (`transpose_4` for elements of 4 bytes), and what `factors.py` and
`convolution.py` add.

In: nothing. Out: ``SIGNATURES``, from a name to the types of the arguments, and ``source``, the
text for a width of vectors. A text is compiled once and kept on disk like any kernel's; an object
file that calls ``<PREFIX><name>`` is given its address when it is loaded. Seen without Numba.

Products of matrices (gemm) have one order of summation: for each element of the result the inner
index is cut into runs of RUN; a run is a chain of ``fma`` from zero, and the runs are added up in
order. So neither layout, tiles, threads nor the number of rows and columns change a bit. A complex
number counts as two real steps. Products of a matrix and a vector (gemv) have another order, which
is fast whether rows or columns are contiguous: a run of LONG is spread over as many chains as
CHAINS bytes have elements, step p going to chain p mod chains, and the chains are combined by
halves.
Integers of 16 bits (gemm_i2) come in pairs, steps 2 p and 2 p + 1 in a word of 32 bits, the type of
the sums; strides and `k` count words.
"""

from __future__ import annotations

from typing import NamedTuple

from accnp.compiler.library import convolution, factors

__all__ = ["PREFIX", "SHAPES", "SIGNATURES", "source"]

PREFIX = "accnp_library_"  # of the symbols of these kernels in object files
RUN = 256  # steps of one chain
LONG = 4096  # steps of a matrix times a vector that are spread over chains and then combined;
CHAINS = 64  # bytes of the ends of these chains, one for each element of so many
STRIP = 2048  # columns whose chains stay near


class Shape(NamedTuple):
    """What depends on the width of vectors."""

    tall: int  # rows of the largest tile of a product
    dots: int  # rows whose sums with a vector are made at a time
    band: int  # rows of the left matrix that pass columns of the right one laid out
    whole: bool  # vectors are read whole: what is beyond the last columns is laid out as zeros
    near: str  # when rows of the right matrix are read where they are
    widths: str  # of what is laid out of it, in other cases than two vectors
    few: str  # tiles of few rows
    left: str  # when rows of the left matrix are laid out, for reals; nothing: never


SHAPES = {
    64: Shape(
        tall=8,
        dots=8,
        band=1024,
        whole=False,
        near="csb == 1 and (m < 64 or rsb < 512)",
        widths="""
    if m <= 4:
        width = {four}
    elif n <= {one}:
        width = {one}""",
        few="""
                    elif r <= 2 or m <= 4:
                        {tile}_2x4(kk, pa, {ra}, {ca}, pb, ldb, pc, ldc, r, nn, keep)
                        i += 2""",
        left="""m >= 64 and n >= 256 and k >= 64 and (
        (csa == 1 and rsa >= 256 and rsa % (16 * {one}) == 0) or (rsa == 1 and csa >= 256))""",
    ),
    # Rows of the right matrix that are far apart share a few lines of a small cache.
    32: Shape(
        tall=6,
        dots=4,
        band=512,
        whole=True,
        near="csb == 1 and (m < (24 if rsb < 512 else 12) or k * rsb <= 12800)",
        widths="""
    if n <= {one}:
        width = {one}
    elif m <= 2 and n > {two}:
        width = {four}""",
        few="""
                    elif width == {four}:
                        {tile}_2x4(kk, pa, {ra}, {ca}, pb, ldb, pc, ldc, r, nn, keep)
                        i += 2
                    elif r <= 4 or r == 7 or r == 8:
                        {tile}_4x2(kk, pa, {ra}, {ca}, pb, ldb, pc, ldc, r, nn, keep)
                        i += 4""",
        left="",
    ),
}
# Rows that are short are asked for three tiles ahead: the processor does not look that far, and a
# tile is done sooner than its rows come. The same goes for rows of the result, whole: a store waits
# for its line. 100000x32 by 32x32 on two threads: 2.6 ms, 1.3 with half of them, 0.6.
# While a panel is multiplied, a tile's share of the next one's rows is asked for: they lie apart,
# and laid out only when they are needed they took a tenth of the time (2048x2048, one thread of a
# Zen 5: 86 ms, 75).

_REAL = {"f4": "f4", "f8": "f8", "c8": "f4", "c16": "f8", "i2": "i4"}

SIGNATURES: dict[str, tuple[str, ...]] = {}
for _code, _part in _REAL.items():
    _p = _part + "*"
    SIGNATURES[f"gemm_{_code}"] = (
        "i8", "i8", "i8", _p, "i8", "i8", _p, "i8", "i8", _p, "i8", "i8",
    )  # fmt: skip
    if _part == _code:  # real
        SIGNATURES[f"gemv_{_code}"] = ("i8", "i8", _p, "i8", _p, "i8", "i8", _p, "i8")
        SIGNATURES[f"chains_{_code}"] = ("i8", "i8", _p, "i8", _p, "i8", _p, "i8", "i8", "i8")
        SIGNATURES[f"combine_{_code}"] = ("i8", _p, "i8", _p, "i8")
        for _name, _kinds in factors.SIGNATURES.items():
            SIGNATURES[f"{_name}_{_code}"] = tuple(_p if t == "*" else t for t in _kinds)
        _ints = ("i8",) * len(convolution.INTEGERS)
        SIGNATURES[f"conv_{_code}"] = ("i8", "i8", _p, _p, _p, *_ints)
for _code in ("i1", "i2", "i4", "i8", "c16"):
    _kinds = (_code + "*", "i8", _code + "*", "i8", "i8", "i8")
    SIGNATURES[f"transpose_{_code[1:]}"] = _kinds


def source(name: str, vector_bytes: int) -> str:
    """The text of a kernel of the library."""
    family, code = name.rsplit("_", 1)
    shape = SHAPES[vector_bytes]
    if family == "transpose":
        return _TRANSPOSE.format(name=name)
    if family in factors.TEXTS:
        return factors.TEXTS[family].format(code=code, one=vector_bytes // int(code[1:]))
    if family == "conv":
        lanes = vector_bytes // int(code[1:])
        return convolution.text(code, lanes, RUN, shape.tall, shape.whole)
    if family == "gemm":
        return _gemm(name, code, vector_bytes)
    chains = CHAINS // int(code[1:])
    ends = [f"acc[{u} * lda + q]" for u in range(chains)]
    while len(ends) > 1:
        half = len(ends) // 2
        ends = [f"({x} + {y})" for x, y in zip(ends[:half], ends[half:], strict=True)]
    text = {"gemv": _GEMV, "chains": _CHAINS, "combine": _COMBINE_CHAINS}[family]
    together = "".join([_TOGETHER.format(count=count, chains=chains) for count in (8, 4)])
    return text.format(
        name=name, code=code, one=vector_bytes // int(code[1:]), long=LONG, chains=chains,
        strip=STRIP, sum=ends[0], rows=shape.dots, together=together,
    )  # fmt: skip


def _gemm(name: str, code: str, vector_bytes: int) -> str:
    """c (op)= a @ b, rows of c contiguous; `how` is 0 to set, 1 to add, -1 to subtract."""
    shape, lanes = SHAPES[vector_bytes], vector_bytes // int(_REAL[code][1:])
    twice = code[0] == "c"
    counts = {"one": lanes, "two": 2 * lanes, "four": 4 * lanes}
    left = shape.left if code[0] == "f" else ""
    names = {"tile": "twin" if twice else "tile"}
    names |= {"ra": "ra", "ca": "ca"} if left else {"ra": "rsa", "ca": "csa"}
    laid = {"left": left.format(one=lanes), "code": code, "one": lanes}
    laid |= {"band": shape.band, "run": RUN}
    parts = {part: text.format(**laid) if left else "" for part, text in _LEFT.items()}
    return _GEMM.format(
        name=name,
        **counts,
        **names,
        **parts,
        run=RUN // 2 if twice else RUN,
        band=shape.band,
        tall=shape.tall,
        ahead=3 * shape.tall,
        start="2 * p0 * rsb + j * csb" if twice else "p0 * rsb + j * csb",
        panel=f"panel_{_REAL[code]}",
        doubled=_DOUBLED if twice else "",
        apart="not near or nn < width" if shape.whole else "not near",
        near="False" if twice else shape.near,
        pack=(_PACK_PAIRS if twice else _PACK).format(
            one=lanes, laid="width" if shape.whole else "nn"
        ),
        widths=shape.widths.format(**counts),
        few=shape.few.format(**names, **counts),
    )


# Written into each kernel that has a tile it would take these 30 ms longer to compile.
_TRANSPOSE = """
def {name}(lo, hi, to, ldt, source, lds, rows, columns):
    transpose(to, ldt, source, lds, rows, columns)
"""

# Complex matrices come as real ones of pairs.
_DOUBLED = """
    rsa = 2 * rsa
    csa = 2 * csa
    ldc = 2 * ldc
    n = 2 * n"""

_GEMM = """
def {name}(lo, hi, m, n, k, a, rsa, csa, b, rsb, csb, c, ldc, how):{doubled}
    buf = {panel}()
    width = {two}{widths}
    near = {near}{left}
    for i0 in range(0, m, {band}):
        stop = fmin(m, i0 + {band})
        for p0 in range(0, fmax(k, 1), {run}):
            kk = fmin(k - p0, {run})
            keep = how if p0 == 0 else (how if how < 0 else 1){lay_left}
            for j in range(0, n, width):
                nn = fmin(n - j, width)
                pb = at(b, {start})
                ldb = rsb
                if {apart}:{pack}
                    pb = buf
                    ldb = width
                i = i0
                while i < stop:
                    r = stop - i
                    if csb == 1 and not near and j + width < n:
                        pn = at(b, (p0 + i - i0) * rsb + j + width)
                        for q in range({tall}):
                            prefetch_second(at(pn, q * rsb))
                            prefetch_second(at(pn, q * rsb + {one}))
                    pa = at(a, i * rsa + p0 * csa){in_left}
                    pc = at(c, i * ldc + j)
                    if width == {one} or (nn <= {one} and m > 4):
                        {tile}_{tall}x1(kk, pa, {ra}, {ca}, pb, ldb, pc, ldc, r, nn, keep)
                        i += {tall}{few}
                    else:
                        if csa == 1 and kk <= 64:
                            for q in range({ahead}, {ahead} + {tall}):
                                prefetch(at(pa, q * rsa))
                                prefetch(at(pa, q * rsa + kk - 1))
                                prefetch(at(pc, q * ldc))
                                prefetch(at(pc, q * ldc + nn - 1))
                        else:
                            for q in range({tall}):
                                prefetch(at(pc, q * ldc))
                                prefetch(at(pc, q * ldc + nn - 1))
                        {tile}_{tall}x2(kk, pa, {ra}, {ca}, pb, ldb, pc, ldc, r, nn, keep)
                        i += {tall}{end_left}
"""

# Rows of the left matrix in groups of a vector's elements, so many tiles of rows: each step's
# elements of a group lie side by side, are read in order, and come from the second cache when the
# next columns pass. Rows a whole number of KB apart share few sets of the caches (gathered, they
# push each other out of the first one: turned by squares); others stay where they are.
_LEFT = {
    "left": """
    apart = {left}
    if apart:
        rows = heap_{code}((fmin(m, {band}) + {one}) * {run})""",
    "lay_left": """
            if apart:
                for i in range(i0, stop, {one}):
                    to = at(rows, (i - i0) * kk)
                    p = 0
                    while csa == 1 and p + {one} <= kk and stop - i >= {one}:
                        turn(at(to, p * {one}), {one}, at(a, i * rsa + p0 + p), rsa)
                        p += {one}
                    while p < kk:
                        lay(at(to, p * {one}), at(a, i * rsa + (p0 + p) * csa), rsa, stop - i)
                        p += 1""",
    "in_left": """
                    ra = rsa
                    ca = csa
                    if apart:
                        pa = at(rows, (i - i0) // {one} * {one} * kk + (i - i0) % {one})
                        ra = 1
                        ca = {one}""",
    "end_left": """
    if apart:
        release(rows)""",
}

_PACK = """
                    for q in range(0, {laid} if rsb == 1 else 0, {one}):
                        p = 0
                        while p + {one} <= kk and nn - q >= {one}:
                            turn(at(buf, p * width + q), width, at(pb, p + q * csb), csb)
                            p += {one}
                        while p < kk:
                            lay(at(buf, p * width + q), at(pb, p * rsb + q * csb), csb, nn - q)
                            p += 1
                    for p in range(kk if rsb != 1 else 0):
                        prefetch(at(pb, (p + 16) * rsb))
                        prefetch(at(pb, (p + 16) * rsb + {one}))
                        for q in range(0, {laid}, {one}):
                            lay(at(buf, p * width + q), at(pb, p * rsb + q * csb), csb, nn - q)"""
# Two rows for each complex one: for the real part of the other factor, and for the imaginary one.
_PACK_PAIRS = """
                    for q in range(0, {laid}, {one}):
                        for p in range(kk):
                            dst = at(buf, 2 * p * width + q)
                            src = at(pb, 2 * p * rsb + q * csb)
                            lay_pairs(dst, at(dst, width), src, 2 * csb, nn - q)"""

_GEMV = """
def {name}(lo, hi, n, k, x, sx, b, rsb, csb, c, how):
    buf = lanes_{code}()
    for p0 in range(0, fmax(k, 1), {long}):
        kk = fmin(k - p0, {long})
        keep = how if p0 == 0 else (how if how < 0 else 1)
        px = at(x, p0 * sx)
        if rsb == 1:
            if sx != 1:
                for p in range(kk):
                    buf[p] = px[p * sx]
                px = buf
            for j in range(0, n, {rows}):
                dots_{rows}(kk, px, at(b, p0 + j * csb), csb, at(c, j), n - j, keep)
        else:
            spare = at(buf, {chains} * {strip})
            for j in range(0, n, {strip}):
                nn = fmin(n - j, {strip})
                pb = at(b, p0 * rsb + j * csb)
                if csb == 1:
                    chains_{code}(nn, kk, px, sx, pb, rsb, buf, {strip}, 0, {chains})
                else:
                    for u in range({chains}):
                        for q in range(nn):
                            buf[u * {strip} + q] = {code}(0)
                    for u in range(kk):
                        row = at(pb, u * rsb)
                        for q in range(0, nn, {one}):
                            lay(at(spare, q), at(row, q * csb), csb, nn - q)
                        acc = at(buf, u % {chains} * {strip})
                        add_scaled(acc, at(px, u * sx), 0, spare, 0, nn)
                combine_{code}(nn, buf, {strip}, at(c, j), keep)
"""

# The chains from `first` up to `last` of one run, for columns that are contiguous; a row of acc has
# room for whole vectors. Rows are read whole where that can be: pieces of them are too short for
# the processor to look ahead, and what is asked for by the text comes no sooner.
_CHAINS = """
def {name}(lo, hi, n, k, x, sx, b, rsb, acc, lda, first, last):
    for u in range(first, last):
        for q in range(n):
            acc[u * lda + q] = {code}(0)
    p = 0{together}
    for u in range(p, k):
        chain = u % {chains}
        if chain >= first and chain < last:
            add_scaled(at(acc, chain * lda), at(x, u * sx), 0, at(b, u * rsb), 0, n)
"""

_TOGETHER = """
    while p + {count} * {chains} <= k:
        for u in range(first, last):
            row = at(b, (p + u) * rsb)
            px = at(x, (p + u) * sx)
            add_scaled_{count}(at(acc, u * lda), px, {chains} * sx, row, {chains} * rsb, n)
        p += {count} * {chains}"""

_COMBINE_CHAINS = """
def {name}(lo, hi, n, acc, lda, c, how):
    if how == 0:
        for q in range(n):
            c[q] = {sum}
    elif how > 0:
        for q in range(n):
            c[q] = c[q] + {sum}
    else:
        for q in range(n):
            c[q] = c[q] - {sum}
"""
