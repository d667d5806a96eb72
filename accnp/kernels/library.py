"""Kernels that other kernels call by name, in the language of kernels.

In: nothing. Out: ``SIGNATURES``, from a name to the types of the arguments, and ``source``, the
text for a width of vectors. A text is compiled once and kept on disk like any kernel's; an object
file that calls ``accnp_<name>`` is given its address when it is loaded. Seen without Numba.

Matrix products have one order of summation: for each element of the result the inner index is cut
into runs of RUN; a run is a chain of ``fma`` from zero, and the runs are added up in order. So
neither layout, tiles, threads nor the number of rows and columns change a bit. A complex number
counts as two real steps.
"""

from __future__ import annotations

__all__ = ["PREFIX", "SIGNATURES", "source"]

PREFIX = "accnp_"
RUN = 256  # steps of one chain
BAND = 256  # rows of the left matrix that stay near while the right one passes
FAR = 512  # from this distance on rows of the right matrix are first copied together
TALL = {64: 8, 32: 6}  # rows of the largest tile, by bytes of a vector

_REAL = {"f4": "f4", "f8": "f8", "c8": "f4", "c16": "f8"}

SIGNATURES: dict[str, tuple[str, ...]] = {}
for _code, _part in _REAL.items():
    _p = _part + "*"
    SIGNATURES[f"gemm_{_code}"] = (
        "i8", "i8", "i8", _p, "i8", "i8", _p, "i8", "i8", _p, "i8", "i8",
    )  # fmt: skip


def source(name: str, vector_bytes: int) -> str:
    """The text of a kernel of the library."""
    return _gemm(name, name.split("_")[1], vector_bytes)


def _gemm(name: str, code: str, vector_bytes: int) -> str:
    """c (op)= a @ b, rows of c contiguous; `how` is 0 to set, 1 to add, -1 to subtract."""
    lanes = vector_bytes // int(_REAL[code][1:])
    twice = code[0] == "c"
    return _GEMM.format(
        name=name,
        one=lanes,
        two=2 * lanes,
        four=4 * lanes,
        run=RUN // 2 if twice else RUN,
        band=BAND,
        tall=TALL[vector_bytes],
        tile="twin" if twice else "tile",
        start="2 * p0 * rsb + j * csb" if twice else "p0 * rsb + j * csb",
        panel=f"panel_{_REAL[code]}",
        doubled=_DOUBLED if twice else "",
        near="False" if twice else f"csb == 1 and (m < 64 or rsb < {FAR})",
        pack=(_PACK_PAIRS if twice else _PACK).format(one=lanes),
    )


# Complex matrices come as real ones of pairs.
_DOUBLED = """
    rsa, csa, ldc, n = 2 * rsa, 2 * csa, 2 * ldc, 2 * n"""

_GEMM = """
def {name}(lo, hi, m, n, k, a, rsa, csa, b, rsb, csb, c, ldc, how):{doubled}
    buf = {panel}()
    width = {two}
    if m <= 4:
        width = {four}
    elif n <= {one}:
        width = {one}
    near = {near}
    for i0 in range(0, m, {band}):
        stop = fmin(m, i0 + {band})
        for p0 in range(0, fmax(k, 1), {run}):
            kk = fmin(k - p0, {run})
            keep = how if p0 == 0 else (how if how < 0 else 1)
            for j in range(0, n, width):
                nn = fmin(n - j, width)
                pb = at(b, {start})
                ldb = rsb
                if not near:{pack}
                    pb = buf
                    ldb = width
                i = i0
                while i < stop:
                    r = stop - i
                    pa = at(a, i * rsa + p0 * csa)
                    pc = at(c, i * ldc + j)
                    if width == {one}:
                        {tile}_{tall}x1(kk, pa, rsa, csa, pb, ldb, pc, ldc, r, nn, keep)
                        i += {tall}
                    elif r <= 2 or m <= 4:
                        {tile}_2x4(kk, pa, rsa, csa, pb, ldb, pc, ldc, r, nn, keep)
                        i += 2
                    else:
                        {tile}_{tall}x2(kk, pa, rsa, csa, pb, ldb, pc, ldc, r, nn, keep)
                        i += {tall}
"""

_PACK = """
                    for q in range(0, nn, {one}):
                        p = 0
                        if rsb == 1 and nn - q >= {one}:
                            while p + {one} <= kk:
                                turn(at(buf, p * width + q), width, at(pb, p + q * csb), csb)
                                p += {one}
                        while p < kk:
                            lay(at(buf, p * width + q), at(pb, p * rsb + q * csb), csb, nn - q)
                            p += 1"""
# Two rows for each complex one: for the real part of the other factor, and for the imaginary one.
_PACK_PAIRS = """
                    for q in range(0, nn, {one}):
                        for p in range(kk):
                            dst = at(buf, 2 * p * width + q)
                            src = at(pb, 2 * p * rsb + q * csb)
                            lay_pairs(dst, at(dst, width), src, 2 * csb, nn - q)"""
