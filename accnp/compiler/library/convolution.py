"""Convolutions as products of matrices, as texts of library kernels.

In: the type of the elements, lanes of a vector. Out: a text in the language of kernels. The left
matrix has a row for each example and place, and a column for each input feature and tap; it is
never made: tables say where rows and columns begin (an element lies at the sum of the two), so that
strides and dilations cost nothing. Where windows reach beyond the array, the part that a task sees
is first copied to the middle of zeros. A dilated array is not filled up either: places fall into
phases, each of which sees some of the taps. After Dukhan, The indirect convolution algorithm
(2019).

Sums go over input features, then taps, in runs of RUN chained `fma`, which are added up in order.
"""

from __future__ import annotations

__all__ = ["INTEGERS", "text"]

_OF_AXIS = ("size", "places", "taps", "stride", "low", "base", "dil", "xs", "ws", "ys")
INTEGERS = (
    "examples", "inputs", "features", "several", "cut", "band", "near",
    "xg", "wg", "yg", "xn", "yn", "xc", "wc", "wo", "yo",
    *[f"{name}{d}" for d in range(3) for name in _OF_AXIS],
)  # fmt: skip


def text(code: str, lanes: int, run: int, tall: int, whole: bool) -> str:
    """The text: x, w and y by their strides along groups (xg), examples (xn), input features (xc),
    output features (wo, yo) and three axes of space; a task has `several` examples and a `band` of
    the places of axis `cut`; `near` is the axis of x whose elements lie side by side: examples 0,
    features 1, the last of space 2. If vectors of w are
    read `whole`, what follows the last features is laid out as zeros."""
    axes = range(3)
    extents = "\n".join(_EXTENT.format(d=d) for d in axes)
    tap_loops: list[str] = []
    tap_offsets: list[str] = []
    for d in axes:
        pad = " " * (20 + 8 * d)
        tap_loops.append(
            f"{pad}for k{d} in range(taps{d}):\n"
            f"{pad}    v{d} = f{d} * stride{d} + k{d} * dil{d} - low{d}\n"
            f"{pad}    if v{d} % base{d} == 0:"
        )
        tap_offsets.append(f"(v{d} // base{d} - least{d}) * t{d}")
    return _TEXT.format(
        code=code, one=lanes, two=2 * lanes, run=run, tall=tall,
        integers=", ".join(INTEGERS), extents=extents, taps="\n".join(tap_loops),
        along=" + ".join(tap_offsets), laid="width" if whole else "n",
        direct=" and features % width == 0" if whole else "",
    )  # fmt: skip


# Of one axis: the places of the task in this phase, and what the taps see there (at most, by one).
_EXTENT = """
            first{d} = (begin{d} - f{d} + base{d} - 1) // base{d}
            count{d} = (stop{d} - f{d} + base{d} - 1) // base{d} - first{d}
            start = f{d} * stride{d} - low{d}
            least{d} = start // base{d}
            most{d} = (start + (taps{d} - 1) * dil{d}) // base{d}
            from{d} = least{d} + first{d} * stride{d}
            wide{d} = most{d} - least{d} + (count{d} - 1) * stride{d} + 1"""

_TEXT = """
def conv_{code}(lo0, hi0, lo, hi, x, w, y, {integers}):
    all_taps = inputs * taps0 * taps1 * taps2
    whole = places0 if cut == 0 else (places1 if cut == 1 else places2)
    bands = (whole + band - 1) // band
    most_rows = several * band * (places0 * places1 * places2 // whole)
    along = heap_i8(all_taps)
    across = heap_i8(all_taps)
    down = heap_i8(most_rows)
    out = heap_i8(most_rows)
    flat = heap_i8(fmax(most_rows, {run}))
    buf = panel_{code}()
    width = {two} if features > {one} else {one}
    for r in range(fmax(most_rows, {run})):
        flat[r] = r * width
    sums = heap_{code}(most_rows * width)
    room = several * inputs
    room = room * (((places0 - 1) * stride0 + (taps0 - 1) * dil0) // base0 + 2)
    room = room * (((places1 - 1) * stride1 + (taps1 - 1) * dil1) // base1 + 2)
    room = room * (((places2 - 1) * stride2 + (taps2 - 1) * dil2) // base2 + 2)
    copy = heap_{code}(room)
    blocks = (examples + several - 1) // several
    for t in range(lo, hi):
        u = t // bands
        q = (t - u * bands) * band
        g = u // blocks
        n0 = (u - g * blocks) * several
        some = fmin(several, examples - n0)
        begin0 = q if cut == 0 else 0
        begin1 = q if cut == 1 else 0
        begin2 = q if cut == 2 else 0
        stop0 = fmin(q + band, places0) if cut == 0 else places0
        stop1 = fmin(q + band, places1) if cut == 1 else places1
        stop2 = fmin(q + band, places2) if cut == 2 else places2
        for f in range(base0 * base1 * base2):
            f2 = f % base2
            f1 = f // base2 % base1
            f0 = f // base2 // base1
{extents}
            rows = some * count0 * count1 * count2
            if rows > 0:
                source = at(x, g * xg + n0 * xn + from0 * xs0 + from1 * xs1 + from2 * xs2)
                sn = xn
                sc = xc
                t0 = xs0
                t1 = xs1
                t2 = xs2
                inside = from0 >= 0 and from1 >= 0 and from2 >= 0
                inside = inside and from0 + wide0 <= size0 and from1 + wide1 <= size1
                inside = inside and from2 + wide2 <= size2
                if not inside:
                    if near == 1:
                        sc = 1
                        t2 = inputs
                    elif near == 0:
                        sn = 1
                        t2 = some
                    else:
                        t2 = 1
                    t1 = wide2 * t2
                    t0 = wide1 * t1
                    if near == 1:
                        sn = wide0 * t0
                    elif near == 0:
                        sc = wide0 * t0
                    else:
                        sc = wide0 * t0
                        sn = inputs * sc
                    for i in range(some * inputs * wide0 * wide1 * wide2):
                        copy[i] = {code}(0)
                    h0 = fmax(from0, 0)
                    h1 = fmax(from1, 0)
                    h2 = fmax(from2, 0)
                    n_n = some
                    n_c = inputs
                    n2 = fmin(from2 + wide2, size2) - h2
                    many = n2
                    xe = xs2
                    if near == 1:
                        many = inputs
                        xe = xc
                        n_c = 1
                        if xc == 1 and xs2 == inputs:
                            many = inputs * n2
                            n2 = 1
                    elif near == 0:
                        many = some
                        xe = xn
                        n_n = 1
                    else:
                        n2 = 1
                    if many > 0:
                        for i_n in range(n_n):
                            for i_c in range(n_c):
                                for i0 in range(h0, fmin(from0 + wide0, size0)):
                                    for i1 in range(h1, fmin(from1 + wide1, size1)):
                                        for i2 in range(h2, h2 + n2):
                                            px = at(x, g * xg + (n0 + i_n) * xn + i_c * xc)
                                            px = at(px, i0 * xs0 + i1 * xs1 + i2 * xs2)
                                            pc = at(copy, i_n * sn + i_c * sc + (i0 - from0) * t0)
                                            pc = at(pc, (i1 - from1) * t1 + (i2 - from2) * t2)
                                            if xe == 1:
                                                move(pc, px, many)
                                            else:
                                                for i in range(many):
                                                    pc[i] = px[i * xe]
                    source = copy
                steps = 0
                for c in range(inputs):
{taps}
                                            along[steps] = c * sc + {along}
                                            across[steps] = c * wc + k0 * ws0 + k1 * ws1 + k2 * ws2
                                            steps += 1
                r = 0
                outside = 1 if near == 0 else some
                within = some if near == 0 else 1
                for i_n in range(outside):
                    for m0 in range(count0):
                        for m1 in range(count1):
                            for m2 in range(count2):
                                o0 = (f0 + base0 * (first0 + m0)) * ys0
                                o1 = (f1 + base1 * (first1 + m1)) * ys1
                                o2 = (f2 + base2 * (first2 + m2)) * ys2
                                d0 = m0 * stride0 * t0 + m1 * stride1 * t1 + m2 * stride2 * t2
                                for j_n in range(within):
                                    down[r] = (i_n + j_n) * sn + d0
                                    out[r] = (i_n + j_n) * yn + o0 + o1 + o2
                                    r += 1
                target = at(y, g * yg + n0 * yn)
                direct = wo == 1 and (rows <= {tall} or features <= width){direct}
                for j in range(0, features, width):
                    n = fmin(features - j, width)
                    pc = sums
                    place = flat
                    if yo == 1:
                        pc = at(target, j)
                        place = out
                    for p0 in range(0, fmax(steps, 1), {run}):
                        kk = fmin(steps - p0, {run})
                        keep = 0 if p0 == 0 else 1
                        pb = at(w, g * wg + j * wo)
                        row = at(across, p0)
                        if not direct:
                            for q in range(0, {laid}, {one}):
                                p = 0
                                if n - q >= {one} and wo != 1:
                                    while p + {one} <= kk:
                                        together = True
                                        for i in range(1, {one}):
                                            together = together and row[p + i] - row[p] == i
                                        if together:
                                            src = at(pb, row[p] + q * wo)
                                            turn(at(buf, p * width + q), width, src, wo)
                                        else:
                                            for i in range(p, p + {one}):
                                                src = at(pb, row[i] + q * wo)
                                                lay(at(buf, i * width + q), src, wo, n - q)
                                        p += {one}
                                while p < kk:
                                    lay(at(buf, p * width + q), at(pb, row[p] + q * wo), wo, n - q)
                                    p += 1
                            pb = buf
                            row = flat
                        tab = at(along, p0)
                        for r in range(0, rows, {tall}):
                            pd = at(down, r)
                            po = at(place, r)
                            left = rows - r
                            for i in range(fmin(left, {tall})):
                                prefetch(at(pc, po[i]))
                                prefetch(at(pc, po[i] + n - 1))
                            if width == {one}:
                                apart_{tall}x1(kk, source, pd, tab, pb, row, pc, po, left, n, keep)
                            else:
                                apart_{tall}x2(kk, source, pd, tab, pb, row, pc, po, left, n, keep)
                    if yo != 1:
                        r = 0
                        while r < rows:
                            pc = at(target, j * yo + out[r])
                            together = n >= {one} and r + {one} <= rows
                            if together:
                                for i in range(1, {one}):
                                    together = together and out[r + i] - out[r] == i
                            if together:
                                q = 0
                                while q + {one} <= n:
                                    turn(at(pc, q * yo), yo, at(sums, r * width + q), width)
                                    q += {one}
                                while q < n:
                                    for i in range({one}):
                                        pc[q * yo + i] = sums[(r + i) * width + q]
                                    q += 1
                                r += {one}
                            else:
                                for q in range(n):
                                    pc[q * yo] = sums[r * width + q]
                                r += 1
    release(along)
    release(across)
    release(down)
    release(out)
    release(flat)
    release(sums)
    release(copy)
"""
