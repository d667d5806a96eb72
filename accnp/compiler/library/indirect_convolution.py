"""The library kernel of convolutions as matrix products (`conv_f4` and `conv_f8`).

`library.py` gets the kernel from here as a text in restricted Python, for an element type and a
vector width. Kernels of convolutions (`windows/convolutions.py`) call it with sizes and strides.

The rows of the left matrix are the examples and positions of the result, and its columns are the
input features and the taps of a window. The matrix is not stored. Two tables have the offsets of
its rows and columns, and the address of an element is the sum of the two, so that strides and
dilations are free: Dukhan, The indirect convolution algorithm (2019). If windows extend beyond the
array, the part of the array that a task reads is first copied into a buffer with zeros around it.
A dilated array is not expanded: positions are grouped into phases, and each phase reads only the
taps that meet elements.

Sums run over input features, then taps, in runs of RUN chained `fma`. The runs are added in order.
"""

from __future__ import annotations

__all__ = ["INTEGERS", "kernel_text"]

_AXIS_INTEGERS = ("size", "places", "taps", "stride", "low", "base", "dil", "xs", "ws", "ys")
INTEGERS = (
    "examples", "inputs", "features", "examples_per_task", "split_axis", "band", "unit_axis",
    "xg", "wg", "yg", "xn", "yn", "xc", "wc", "wo", "yo",
    *[f"{name}{d}" for d in range(3) for name in _AXIS_INTEGERS],
)  # fmt: skip


def kernel_text(code: str, lanes: int, run: int, tile_rows: int, whole_vectors: bool) -> str:
    """Return the source of the kernel.

    It gets x, w and y with their strides along groups (xg), examples (xn), input features (xc),
    output features (wo, yo) and three spatial axes (xs0). A task computes `examples_per_task`
    examples and a `band` of the positions along `split_axis`. `unit_axis` is the axis along which
    elements of x are adjacent: 0 for examples, 1 for features, 2 for the last spatial axis. If
    tiles read `whole_vectors` of w, the vector after the last features is filled up with zeros.
    """
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
        code=code, one=lanes, two=2 * lanes, run=run, tall=tile_rows,
        integers=", ".join(INTEGERS), extents=extents, tap_loops="\n".join(tap_loops),
        tap_offset=" + ".join(tap_offsets), packed="width" if whole_vectors else "n",
        direct=" and features % width == 0" if whole_vectors else "",
    )  # fmt: skip


# For one axis: the positions of the task in this phase, and the range of elements that the taps
# read, which may be one too large.
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
    split_places = places0 if split_axis == 0 else (places1 if split_axis == 1 else places2)
    bands = (split_places + band - 1) // band
    max_rows = examples_per_task * band * (places0 * places1 * places2 // split_places)
    tap_offsets = heap_i8(all_taps)
    weight_offsets = heap_i8(all_taps)
    row_offsets = heap_i8(max_rows)
    result_offsets = heap_i8(max_rows)
    dense_offsets = heap_i8(fmax(max_rows, {run}))
    panel = panel_{code}()
    width = {two} if features > {one} else {one}
    for r in range(fmax(max_rows, {run})):
        dense_offsets[r] = r * width
    sums = heap_{code}(max_rows * width)
    copy_size = examples_per_task * inputs
    copy_size = copy_size * (((places0 - 1) * stride0 + (taps0 - 1) * dil0) // base0 + 2)
    copy_size = copy_size * (((places1 - 1) * stride1 + (taps1 - 1) * dil1) // base1 + 2)
    copy_size = copy_size * (((places2 - 1) * stride2 + (taps2 - 1) * dil2) // base2 + 2)
    copy = heap_{code}(copy_size)
    blocks = (examples + examples_per_task - 1) // examples_per_task
    for t in range(lo, hi):
        u = t // bands
        q = (t - u * bands) * band
        g = u // blocks
        n0 = (u - g * blocks) * examples_per_task
        example_count = fmin(examples_per_task, examples - n0)
        begin0 = q if split_axis == 0 else 0
        begin1 = q if split_axis == 1 else 0
        begin2 = q if split_axis == 2 else 0
        stop0 = fmin(q + band, places0) if split_axis == 0 else places0
        stop1 = fmin(q + band, places1) if split_axis == 1 else places1
        stop2 = fmin(q + band, places2) if split_axis == 2 else places2
        for f in range(base0 * base1 * base2):
            f2 = f % base2
            f1 = f // base2 % base1
            f0 = f // base2 // base1
{extents}
            rows = example_count * count0 * count1 * count2
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
                    if unit_axis == 1:
                        sc = 1
                        t2 = inputs
                    elif unit_axis == 0:
                        sn = 1
                        t2 = example_count
                    else:
                        t2 = 1
                    t1 = wide2 * t2
                    t0 = wide1 * t1
                    if unit_axis == 1:
                        sn = wide0 * t0
                    elif unit_axis == 0:
                        sc = wide0 * t0
                    else:
                        sc = wide0 * t0
                        sn = inputs * sc
                    for i in range(example_count * inputs * wide0 * wide1 * wide2):
                        copy[i] = {code}(0)
                    h0 = fmax(from0, 0)
                    h1 = fmax(from1, 0)
                    h2 = fmax(from2, 0)
                    n_n = example_count
                    n_c = inputs
                    n2 = fmin(from2 + wide2, size2) - h2
                    run_length = n2
                    xe = xs2
                    if unit_axis == 1:
                        run_length = inputs
                        xe = xc
                        n_c = 1
                        if xc == 1 and xs2 == inputs:
                            run_length = inputs * n2
                            n2 = 1
                    elif unit_axis == 0:
                        run_length = example_count
                        xe = xn
                        n_n = 1
                    else:
                        n2 = 1
                    if run_length > 0:
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
                                                move(pc, px, run_length)
                                            else:
                                                for i in range(run_length):
                                                    pc[i] = px[i * xe]
                    source = copy
                steps = 0
                for c in range(inputs):
{tap_loops}
                                            tap_offsets[steps] = c * sc + {tap_offset}
                                            weight_offsets[steps] = (
                                                c * wc + k0 * ws0 + k1 * ws1 + k2 * ws2
                                            )
                                            steps += 1
                r = 0
                outside = 1 if unit_axis == 0 else example_count
                within = example_count if unit_axis == 0 else 1
                for i_n in range(outside):
                    for m0 in range(count0):
                        for m1 in range(count1):
                            for m2 in range(count2):
                                o0 = (f0 + base0 * (first0 + m0)) * ys0
                                o1 = (f1 + base1 * (first1 + m1)) * ys1
                                o2 = (f2 + base2 * (first2 + m2)) * ys2
                                d0 = m0 * stride0 * t0 + m1 * stride1 * t1 + m2 * stride2 * t2
                                for j_n in range(within):
                                    row_offsets[r] = (i_n + j_n) * sn + d0
                                    result_offsets[r] = (i_n + j_n) * yn + o0 + o1 + o2
                                    r += 1
                target = at(y, g * yg + n0 * yn)
                direct = wo == 1 and (rows <= {tall} or features <= width){direct}
                for j in range(0, features, width):
                    n = fmin(features - j, width)
                    pc = sums
                    target_offsets = dense_offsets
                    if yo == 1:
                        pc = at(target, j)
                        target_offsets = result_offsets
                    for p0 in range(0, fmax(steps, 1), {run}):
                        kk = fmin(steps - p0, {run})
                        mode = 0 if p0 == 0 else 1
                        pb = at(w, g * wg + j * wo)
                        row = at(weight_offsets, p0)
                        if not direct:
                            for q in range(0, {packed}, {one}):
                                p = 0
                                if n - q >= {one} and wo != 1:
                                    while p + {one} <= kk:
                                        adjacent = True
                                        for i in range(1, {one}):
                                            adjacent = adjacent and row[p + i] - row[p] == i
                                        if adjacent:
                                            src = at(pb, row[p] + q * wo)
                                            transpose_square(
                                                at(panel, p * width + q), width, src, wo
                                            )
                                        else:
                                            for i in range(p, p + {one}):
                                                src = at(pb, row[i] + q * wo)
                                                copy_vector(
                                                    at(panel, i * width + q), src, wo, n - q
                                                )
                                        p += {one}
                                while p < kk:
                                    src = at(pb, row[p] + q * wo)
                                    copy_vector(at(panel, p * width + q), src, wo, n - q)
                                    p += 1
                            pb = panel
                            row = dense_offsets
                        tab = at(tap_offsets, p0)
                        for r in range(0, rows, {tall}):
                            pd = at(row_offsets, r)
                            po = at(target_offsets, r)
                            rest = rows - r
                            for i in range(fmin(rest, {tall})):
                                prefetch(at(pc, po[i]))
                                prefetch(at(pc, po[i] + n - 1))
                            if width == {one}:
                                multiply_indirect_{tall}x1(
                                    kk, source, pd, tab, pb, row, pc, po, rest, n, mode
                                )
                            else:
                                multiply_indirect_{tall}x2(
                                    kk, source, pd, tab, pb, row, pc, po, rest, n, mode
                                )
                    if yo != 1:
                        r = 0
                        while r < rows:
                            pc = at(target, j * yo + result_offsets[r])
                            adjacent = n >= {one} and r + {one} <= rows
                            if adjacent:
                                for i in range(1, {one}):
                                    step = result_offsets[r + i] - result_offsets[r]
                                    adjacent = adjacent and step == i
                            if adjacent:
                                q = 0
                                while q + {one} <= n:
                                    transpose_square(
                                        at(pc, q * yo), yo, at(sums, r * width + q), width
                                    )
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
    release(tap_offsets)
    release(weight_offsets)
    release(row_offsets)
    release(result_offsets)
    release(dense_offsets)
    release(sums)
    release(copy)
"""
