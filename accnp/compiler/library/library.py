"""The library kernels: functions in restricted Python that other kernels call by name.

They are matrix products (`gemm_f4`), products of a matrix and a vector (`gemv_f4`), transpositions
(`transpose_4` for elements of 4 bytes), and those of `factors.py` and `indirect_convolution.py`.
``SIGNATURES`` maps their names to the types of the arguments, and ``source`` returns the text of a
kernel for a vector width. A library kernel is compiled once, when the package is built
(`build_library.py`) or on first use, and is cached on disk like any other kernel. An object file
that calls ``<PREFIX><name>`` gets its address when it is loaded.

Matrix products (gemm) have one order of summation. For each element of the result, the inner
dimension is split into runs of RUN steps. A run is a chain of ``fma`` that starts at zero, and the
runs are added in order. Therefore the bits of the result do not depend on the memory layout, the
tiles, the threads, or the number of rows and columns. A complex step counts as two real ones.
Products of a matrix and a vector (gemv) have another order, which is fast whether rows or columns
are contiguous: a run of VECTOR_RUN steps is distributed over as many chains as CHAIN_BYTES bytes
have elements. Step p belongs to chain p mod chains, and the chains are combined by halves. Integers
of 16 bits (gemm_i2) are stored in pairs: steps 2 p and 2 p + 1 are one 32-bit word, which is also
the type of the sums. Their strides and `k` count words.
"""

from __future__ import annotations

from typing import NamedTuple

from accnp.compiler.library import factors, indirect_convolution
from accnp.compiler.library.sizes import CHAIN_BYTES, RUN, STRIP_COLUMNS, VECTOR_RUN

__all__ = ["PREFIX", "SHAPES", "SIGNATURES", "source"]

PREFIX = "accnp_library_"  # of the symbols of these kernels in object files


class Shape(NamedTuple):
    """Parameters of the kernels that depend on the vector width."""

    tile_rows: int  # rows of the largest tile of a product
    dot_rows: int  # number of rows whose products with a vector are computed together
    band: int  # rows of the left matrix that are multiplied by the same packed columns
    whole_vectors: bool  # whether tiles read whole vectors; packed columns are padded with zeros
    in_place: str  # condition under which rows of the right matrix are read without packing
    widths: str  # statements that choose the number of packed columns; two vectors by default
    small_tiles: str  # branches for tiles with few rows
    pack_left: str  # condition under which a real left matrix is packed; "": never


SHAPES = {
    64: Shape(
        tile_rows=8,
        dot_rows=8,
        band=1024,
        whole_vectors=False,
        in_place="csb == 1 and (m < 64 or rsb < 512)",
        widths="""
    if m <= 4:
        width = {four}
    elif n <= {one}:
        width = {one}""",
        small_tiles="""
                    elif r <= 2 or m <= 4:
                        {multiply}_2x4(kk, pa, {ra}, {ca}, pb, ldb, pc, ldc, r, nn, keep)
                        i += 2""",
        pack_left="""m >= 64 and n >= 256 and k >= 64 and (
        (csa == 1 and rsa >= 256 and rsa % (16 * {one}) == 0) or (rsa == 1 and csa >= 256))""",
    ),
    # Rows of the right matrix that are far apart share a few lines of a small cache.
    32: Shape(
        tile_rows=6,
        dot_rows=4,
        band=512,
        whole_vectors=True,
        in_place="csb == 1 and (m < (24 if rsb < 512 else 12) or k * rsb <= 12800)",
        widths="""
    if n <= {one}:
        width = {one}
    elif m <= 2 and n > {two}:
        width = {four}""",
        small_tiles="""
                    elif width == {four}:
                        {multiply}_2x4(kk, pa, {ra}, {ca}, pb, ldb, pc, ldc, r, nn, keep)
                        i += 2
                    elif r <= 4 or r == 7 or r == 8:
                        {multiply}_4x2(kk, pa, {ra}, {ca}, pb, ldb, pc, ldc, r, nn, keep)
                        i += 4""",
        pack_left="",
    ),
}
# Short rows of the left matrix are prefetched three tiles ahead: the hardware prefetcher does not
# follow them, and a tile is finished before its rows arrive. The same applies to the rows of the
# result, because a store waits for its cache line. For 100000x32 by 32x32 on two threads: 2.6 ms
# without prefetching, 1.3 ms with half of it, 0.6 ms with both.
# While a panel is multiplied, each tile prefetches a part of the rows of the next panel, which are
# far apart. Without this, packing them took a tenth of the time (2048x2048, one thread of a Zen 5:
# 86 ms, then 75 ms).

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
        _ints = ("i8",) * len(indirect_convolution.INTEGERS)
        SIGNATURES[f"conv_{_code}"] = ("i8", "i8", _p, _p, _p, *_ints)
for _code in ("i1", "i2", "i4", "i8", "c16"):
    _kinds = (_code + "*", "i8", _code + "*", "i8", "i8", "i8")
    SIGNATURES[f"transpose_{_code[1:]}"] = _kinds


def source(name: str, vector_bytes: int) -> str:
    """Return the text of a library kernel."""
    family, code = name.rsplit("_", 1)
    shape = SHAPES[vector_bytes]
    if family == "transpose":
        return _TRANSPOSE.format(name=name)
    if family in factors.TEXTS:
        return factors.TEXTS[family].format(code=code, one=vector_bytes // int(code[1:]))
    if family == "conv":
        lanes = vector_bytes // int(code[1:])
        return indirect_convolution.kernel_text(
            code, lanes, RUN, shape.tile_rows, shape.whole_vectors
        )
    if family == "gemm":
        return _gemm(name, code, vector_bytes)
    chains = CHAIN_BYTES // int(code[1:])
    ends = [f"acc[{u} * lda + q]" for u in range(chains)]
    while len(ends) > 1:
        half = len(ends) // 2
        ends = [f"({x} + {y})" for x, y in zip(ends[:half], ends[half:], strict=True)]
    text = {"gemv": _GEMV, "chains": _CHAINS, "combine": _COMBINE_CHAINS}[family]
    several_steps = "".join([_SEVERAL_STEPS.format(count=count, chains=chains) for count in (8, 4)])
    return text.format(
        name=name, code=code, one=vector_bytes // int(code[1:]), long=VECTOR_RUN, chains=chains,
        strip=STRIP_COLUMNS, sum=ends[0], rows=shape.dot_rows,
        several_steps=several_steps,
    )  # fmt: skip


def _gemm(name: str, code: str, vector_bytes: int) -> str:
    """c (op)= a @ b, rows of c contiguous; `how` is 0 to set, 1 to add, -1 to subtract."""
    shape, lanes = SHAPES[vector_bytes], vector_bytes // int(_REAL[code][1:])
    is_complex = code[0] == "c"
    counts = {"one": lanes, "two": 2 * lanes, "four": 4 * lanes}
    pack_left = shape.pack_left if code[0] == "f" else ""
    names = {"multiply": "multiply_complex" if is_complex else "multiply"}
    names |= {"ra": "ra", "ca": "ca"} if pack_left else {"ra": "rsa", "ca": "csa"}
    values = {"pack_left": pack_left.format(one=lanes), "code": code, "one": lanes}
    values |= {"band": shape.band, "run": RUN}
    parts = {part: text.format(**values) if pack_left else "" for part, text in _LEFT.items()}
    return _GEMM.format(
        name=name,
        **counts,
        **names,
        **parts,
        run=RUN // 2 if is_complex else RUN,
        band=shape.band,
        tall=shape.tile_rows,
        ahead=3 * shape.tile_rows,
        start="2 * p0 * rsb + j * csb" if is_complex else "p0 * rsb + j * csb",
        panel=f"panel_{_REAL[code]}",
        doubled=_DOUBLED if is_complex else "",
        must_pack="not in_place or nn < width" if shape.whole_vectors else "not in_place",
        in_place="False" if is_complex else shape.in_place,
        pack=(_PACK_PAIRS if is_complex else _PACK).format(
            one=lanes, packed="width" if shape.whole_vectors else "nn"
        ),
        widths=shape.widths.format(**counts),
        small_tiles=shape.small_tiles.format(**names, **counts),
    )


# If each kernel with a tile contained this code, it would take 30 ms longer to compile.
_TRANSPOSE = """
def {name}(lo, hi, to, ldt, source, lds, rows, columns):
    transpose(to, ldt, source, lds, rows, columns)
"""

# A complex matrix is passed as a real one with pairs of elements.
_DOUBLED = """
    rsa = 2 * rsa
    csa = 2 * csa
    ldc = 2 * ldc
    n = 2 * n"""

_GEMM = """
def {name}(lo, hi, m, n, k, a, rsa, csa, b, rsb, csb, c, ldc, how):{doubled}
    buf = {panel}()
    width = {two}{widths}
    in_place = {in_place}{test_left}
    for i0 in range(0, m, {band}):
        stop = fmin(m, i0 + {band})
        for p0 in range(0, fmax(k, 1), {run}):
            kk = fmin(k - p0, {run})
            keep = how if p0 == 0 else (how if how < 0 else 1){copy_left}
            for j in range(0, n, width):
                nn = fmin(n - j, width)
                pb = at(b, {start})
                ldb = rsb
                if {must_pack}:{pack}
                    pb = buf
                    ldb = width
                i = i0
                while i < stop:
                    r = stop - i
                    if csb == 1 and not in_place and j + width < n:
                        pn = at(b, (p0 + i - i0) * rsb + j + width)
                        for q in range({tall}):
                            prefetch_second(at(pn, q * rsb))
                            prefetch_second(at(pn, q * rsb + {one}))
                    pa = at(a, i * rsa + p0 * csa){point_left}
                    pc = at(c, i * ldc + j)
                    if width == {one} or (nn <= {one} and m > 4):
                        {multiply}_{tall}x1(kk, pa, {ra}, {ca}, pb, ldb, pc, ldc, r, nn, keep)
                        i += {tall}{small_tiles}
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
                        {multiply}_{tall}x2(kk, pa, {ra}, {ca}, pb, ldb, pc, ldc, r, nn, keep)
                        i += {tall}{release_left}
"""

# Packs rows of the left matrix in groups of as many rows as a vector has elements. The elements of
# a step are then adjacent in each group, and groups are read in order, from the second-level cache
# for all columns but the first. If rows are a multiple of 1 KB apart, they share few sets of the
# caches and would evict each other from the first-level cache, so they are transposed in squares.
# Other matrices are not packed.
_LEFT = {
    "test_left": """
    pack_left = {pack_left}
    rows = at(a, 0)
    if pack_left:
        rows = heap_{code}((fmin(m, {band}) + {one}) * {run})""",
    "copy_left": """
            if pack_left:
                for i in range(i0, stop, {one}):
                    to = at(rows, (i - i0) * kk)
                    p = 0
                    while csa == 1 and p + {one} <= kk and stop - i >= {one}:
                        transpose_square(at(to, p * {one}), {one}, at(a, i * rsa + p0 + p), rsa)
                        p += {one}
                    while p < kk:
                        copy_vector(
                            at(to, p * {one}), at(a, i * rsa + (p0 + p) * csa), rsa, stop - i
                        )
                        p += 1""",
    "point_left": """
                    ra = rsa
                    ca = csa
                    if pack_left:
                        pa = at(rows, (i - i0) // {one} * {one} * kk + (i - i0) % {one})
                        ra = 1
                        ca = {one}""",
    "release_left": """
    if pack_left:
        release(rows)""",
}

_PACK = """
                    for q in range(0, {packed} if rsb == 1 else 0, {one}):
                        p = 0
                        while p + {one} <= kk and nn - q >= {one}:
                            transpose_square(
                                at(buf, p * width + q), width, at(pb, p + q * csb), csb
                            )
                            p += {one}
                        while p < kk:
                            copy_vector(
                                at(buf, p * width + q), at(pb, p * rsb + q * csb), csb, nn - q
                            )
                            p += 1
                    for p in range(kk if rsb != 1 else 0):
                        prefetch(at(pb, (p + 16) * rsb))
                        prefetch(at(pb, (p + 16) * rsb + {one}))
                        for q in range(0, {packed}, {one}):
                            copy_vector(
                                at(buf, p * width + q), at(pb, p * rsb + q * csb), csb, nn - q
                            )"""
# Each complex row becomes two: one is multiplied by the real part of the left factor, the other by
# the imaginary part.
_PACK_PAIRS = """
                    for q in range(0, {packed}, {one}):
                        for p in range(kk):
                            dst = at(buf, 2 * p * width + q)
                            src = at(pb, 2 * p * rsb + q * csb)
                            copy_complex_pairs(dst, at(dst, width), src, 2 * csb, nn - q)"""

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
                            copy_vector(at(spare, q), at(row, q * csb), csb, nn - q)
                        acc = at(buf, u % {chains} * {strip})
                        add_scaled(acc, at(px, u * sx), 0, spare, 0, nn)
                combine_{code}(nn, buf, {strip}, at(c, j), keep)
"""

# Computes the chains `first` to `last` (exclusive) of one run, for contiguous columns. A row of acc
# has room for whole vectors. Whole rows are read if possible: parts of rows are too short for the
# hardware prefetcher, and explicit prefetches do not make them arrive earlier.
_CHAINS = """
def {name}(lo, hi, n, k, x, sx, b, rsb, acc, lda, first, last):
    for u in range(first, last):
        for q in range(n):
            acc[u * lda + q] = {code}(0)
    p = 0{several_steps}
    for u in range(p, k):
        chain = u % {chains}
        if chain >= first and chain < last:
            add_scaled(at(acc, chain * lda), at(x, u * sx), 0, at(b, u * rsb), 0, n)
"""

_SEVERAL_STEPS = """
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
