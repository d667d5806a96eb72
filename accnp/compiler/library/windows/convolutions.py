"""Kernels of convolutions, for the op in `primitives/convolution.py`.

`convolution_kernel` takes the memory layout of the operands, the windows and the dimension numbers,
and returns an `OwnKernel`. Real convolutions with several output features are matrix products: rows
are examples and positions, columns are output features, and the contracted axis has input features
and taps. The left matrix is not stored; tables contain the addresses of its elements
(`compiler/library/indirect_convolution.py`). All other cases and dtypes are loops over taps around
one loop along the contiguous axis of the result.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING, NamedTuple

from accnp.compiler.library.windows.sweeps import Places, Sweep
from accnp.compiler.library.writing.arithmetic import multiply_add
from accnp.compiler.library.writing.loop_nests import Axis, Text, merged, total
from accnp.ir.aval import Aval
from accnp.ir.kernel import Operand, OwnKernel, dtype_code, is_half
from accnp.lazy_imports import imported
from accnp.primitives.convolution import ConvDimensionNumbers, windows_of
from accnp.primitives.views import contiguous
from accnp.primitives.windows import Window

if TYPE_CHECKING:
    from accnp.ir.op_types import Params


__all__ = ["Case", "case_of", "convolution_kernel"]

NARROW = 8  # lanes that a matrix product needs; with fewer in use, taps are computed separately
FEATURES = 4  # minimum number of output features for a matrix product
BLOCK = 2048  # positions of one task of the loops, so that they fit into the L1 cache
TASK = 1 << 16  # minimum work of a task, in simple element operations
TASKS = 64  # maximum number of tasks
HEAVY = 1 << 19  # work from which on there are at least two tasks
LEAST = 64  # minimum number of rows per task, if there are enough rows
ROWS = 512  # approximate maximum number of rows per task, so that their sums stay in the cache


class Case(NamedTuple):
    """A convolution with named axes: sizes, and strides in (lhs, rhs, result)."""

    groups: int
    examples: int
    inputs: int
    features: int
    windows: list[Window]
    group: tuple[int, int, int]
    example: tuple[int, int]  # strides of lhs and result
    input: tuple[int, int]  # strides of lhs and rhs
    feature: tuple[int, int]  # strides of rhs and result
    lhs: list[int]  # strides along the spatial axes
    rhs: list[int]
    out: list[int]


def convolution(
    operands: Sequence[Operand], results: Sequence[Aval], p: Params
) -> OwnKernel | None:
    """Return the kernel of `conv_general_dilated`; that of halves computes in float32."""

    def kernel(operands: Sequence[Operand], result: Aval) -> OwnKernel | None:
        lhs, rhs = operands
        return convolution_kernel(lhs, rhs, result, windows_of(lhs.shape, rhs.shape, p), p)

    if is_half(results[0].dtype):
        module = imported("accnp.compiler.library.writing.half_precision")
        return module.compute_in_float32(operands, results[0], kernel)
    return kernel(operands, results[0])


def convolution_kernel(
    lhs: Operand, rhs: Operand, result: Aval, windows: Sequence[Window], p: Params
) -> OwnKernel | None:
    """Return the kernel of a convolution."""
    case = case_of(lhs, rhs, result, windows, p)
    code = dtype_code(result.dtype)
    real = code in ("f4", "f8") and lhs.dtype == rhs.dtype == result.dtype
    features, inputs = case.features, case.inputs
    taps = prod([w.taps for w in windows])
    places, elements = prod([w.places for w in windows]), prod([w.size for w in windows])
    narrow = features * elements < NARROW * places and inputs >= NARROW
    if real and narrow and 1 < taps <= 64:
        return _spread(code, case)
    several = features >= FEATURES or (features > 1 and any(w.base > 1 for w in windows))
    # A matrix product reads zeros for padding, and infinities of the kernel times zero are nan.
    some = result.size and all(w.size for w in windows)
    if real and several and some and len(windows) <= 3:
        return _product(code, case)
    return _loops(code, case, real)


def case_of(lhs: Operand, rhs: Operand, result: Aval, windows: Sequence[Window], p: Params) -> Case:
    """Return the sizes and strides of a convolution by axis."""
    dims: ConvDimensionNumbers = p["dimension_numbers"]
    fgc: int = p["feature_group_count"]
    bgc: int = p["batch_group_count"]
    n, c, *x = (lhs.strides[d] for d in dims.lhs_spec)
    o, i, *w = (rhs.strides[d] for d in dims.rhs_spec)
    steps = contiguous(result.shape)
    yn, yo, *y = (steps[d] for d in dims.out_spec)
    examples = lhs.shape[dims.lhs_spec[0]] // bgc
    features, inputs = (rhs.shape[d] for d in dims.rhs_spec[:2])
    features //= fgc * bgc
    groups = (inputs * c if fgc > 1 else examples * n, features * o, features * yo)
    return Case(
        fgc * bgc, examples, inputs, features, list(windows), groups,
        (n, yn), (c, i), (o, yo), x, w, y,
    )  # fmt: skip


# --- products of matrices ------------------------------------------------------------------------


def _product(code: str, case: Case) -> OwnKernel:
    """Call the library with all sizes and strides. A task is a group, some examples, and a band of
    the first spatial axis."""
    extra = 3 - len(case.windows)
    windows = [*[Window(1, 1)] * extra, *case.windows]
    cut = min(extra, 2)
    places = [w.places for w in windows]
    each, whole = prod(places), places[cut]
    taps = case.inputs * prod([w.taps for w in windows])
    # A simple operation takes as long as 12 multiplications in float32.
    columns = -(-case.features // 16) * 16
    work = case.groups * case.examples * each * columns * taps // (12 if code == "f4" else 6)
    # Each task packs the kernel again, so it must have enough rows.
    rows = case.examples * each
    target_tasks = -(-max(1, min(TASKS, work // TASK)) // case.groups)
    target_tasks = max(1 + (work > HEAVY), min(target_tasks, rows // LEAST), rows // ROWS)
    several, band = case.examples, whole
    if target_tasks > 1:
        several = max(1, case.examples // target_tasks)
    if several == 1:
        bands = min(whole, -(-target_tasks // case.examples))
        band = -(-whole // bands)
    tasks = case.groups * -(-case.examples // several) * -(-whole // band)
    values = [case.examples, case.inputs, case.features, several, cut, band, _contiguous_axis(case)]
    values += [*case.group, *case.example, *case.input, *case.feature]
    pad = [0] * extra
    lhs, rhs, out = [*pad, *case.lhs], [*pad, *case.rhs], [*pad, *case.out]
    for d, w in enumerate(windows):
        values += [w.size, w.places, w.taps, w.stride, w.low, w.base, w.dilation]
        values += [lhs[d], rhs[d], out[d]]
    text = Text(3)
    names = [text.integer(v) for v in values]
    text.add(f"conv_{code}(lo, hi, a0, a1, a2, {', '.join(names)})")
    return text.own(tasks, max(work, tasks))


def _contiguous_axis(case: Case) -> int:
    """Return the contiguous axis of the array with the most elements: 0 for examples, 1 for
    features, 2 for the last spatial axis."""
    lengths = [case.examples, case.inputs, case.windows[-1].size if case.windows else 1]
    steps = [case.example[0], case.input[0], case.lhs[-1] if case.lhs else 0]
    return max((2, 1, 0), key=lambda k: lengths[k] if steps[k] == 1 else 0)


# --- products per tap ---


def _spread(code: str, case: Case) -> OwnKernel:
    """For few output and many input features: multiply each tap with all elements of the array in
    one matrix product, which uses all lanes; then add the products at the positions of the taps."""
    (xg, wg, yg), (xn, yn), (wo, yo) = case.group, case.example, case.feature
    sizes = [w.size for w in case.windows]
    elements, taps = prod(sizes), prod([w.taps for w in case.windows])
    steps = contiguous(tuple(sizes))
    outs = contiguous(tuple(w.taps for w in case.windows))
    # Rows of the product are taps and columns are elements; axes are merged as far as possible.
    down = merged([
        Axis(w.taps, (step, out * elements))
        for w, step, out in zip(case.windows, case.rhs, outs, strict=True)
    ])  # fmt: skip
    across = merged([
        Axis(n, (x, step)) for n, x, step in zip(sizes, case.lhs, steps, strict=True)
    ])  # fmt: skip
    row = down.pop() if down else Axis(1, (0, 0))
    column = across.pop() if across else Axis(1, (0, 0))
    text = Text(3)
    space = zip(case.windows, steps, case.out, strict=True)
    axes = [Places(w.places, (y,), (x,), d) for d, (w, x, y) in enumerate(space)]
    sweep = Sweep(text, axes, case.windows, "y", "x")
    along = sweep.along
    n_elements = text.integer(elements)
    text.add(f"parts = heap_{code}({text.integer(taps)} * {n_elements})")
    with text.block("for t in range(lo, hi):"):
        examples, features = text.integer(case.examples), text.integer(case.features)
        text.add(f"v = t // {features}", f"o = t - v * {features}")
        text.add(f"group = v // {examples}", f"n = v - group * {examples}")
        walks = (("px", 0, xg, xn, 0), ("pw", 1, wg, 0, wo), ("py", 2, yg, yn, yo))
        for name, pointer, *by in walks:
            terms = zip(("group", "n", "o"), by, strict=True)
            moves = [term for index, step in terms for term in text.times(index, step)]
            text.add(f"{name} = at(a{pointer}, {total(moves)})")
        x_terms: list[str] = []
        w_terms: list[str] = []
        out_terms: list[str] = []
        for name, loops, terms in (("r", down, w_terms), ("s", across, x_terms)):
            for d, axis in enumerate(loops):
                text.add(f"for {name}{d} in range({text.integer(axis.size)}):")
                text.depth += 1
                terms += text.times(f"{name}{d}", axis.steps[0])
                out_terms += text.times(f"{name}{d}", axis.steps[1])
        left = f"at(pw, {total(w_terms)}), {text.integer(row.steps[0])}"
        left += f", {text.integer(case.input[1])}"
        right = f"at(px, {total(x_terms)}), {text.integer(case.input[0])}"
        right += f", {text.integer(column.steps[0])}"
        out = f"at(parts, {total(out_terms)}), {text.integer(row.steps[1])}"
        shape = [text.integer(k) for k in (row.size, column.size, case.inputs)]
        text.products = True
        text.add(f"gemm_{code}({', '.join(shape)}, {left}, {right}, {out}, 0)")
        text.depth = 2
        text.add(f"for q in range({text.integer(sweep.count(sweep.outer))}):")
        text.depth += 1
        text.add("x = 0", "y = 0")
        sweep.block("0", max(1, along.size))
        sweep.place(sweep.outer, "q")
        text.add(f"z = at(py, {total(['y', *text.times('b0', along.still[0])])})")
        with text.block("for j in range(b1 - b0):"):
            text.add(f"z[{total(text.times('j', along.still[0]))}] = {code}(0)")
        terms = sweep.taps()
        for d, out_step in enumerate(outs):
            terms[0] += text.times(f"k{d}", out_step * elements)
        (place,), index = sweep.inner(terms)
        old = f"z[{total(text.times(index, along.still[0]))}]"
        text.add(f"{old} = {code}({old} + parts[{place}])")
    text.depth = 1
    text.add("release(parts)")
    tasks = case.groups * case.examples * case.features
    return text.own(tasks, tasks * taps * elements * (case.inputs + 24) // 12)


# --- loops ---------------------------------------------------------------------------------------


def _loops(code: str, case: Case, real: bool) -> OwnKernel:
    (xg, wg, yg), (xn, yn), (wo, yo) = case.group, case.example, case.feature
    space = zip(case.windows, case.lhs, case.out, strict=True)
    axes = [
        Places(case.groups, (wg, yg), (xg,)),
        Places(case.examples, (0, yn), (xn,)),
        Places(case.features, (wo, yo), (0,)),
        *[Places(w.places, (0, y), (x,), d) for d, (w, x, y) in enumerate(space)],
    ]
    text = Text(3)
    sweep = Sweep(text, axes, case.windows, "wy", "x")
    along = sweep.along
    of_w, of_y = along.still
    tasks = sweep.tasks(BLOCK)
    text.add(f"z = at(a2, {total(['y', *text.times('b0', of_y)])})")
    with text.block("for j in range(b1 - b0):"):
        text.add(f"z[{total(text.times('j', of_y))}] = {code}(0)")
    text.add(f"for c in range({text.integer(case.inputs)}):")
    text.depth += 1
    terms = sweep.taps()
    of_taps = [text.times(f"k{d}", step) for d, step in enumerate(case.rhs)]
    terms[0] += text.times("c", case.input[0])
    weight = ["w", *text.times("c", case.input[1]), *[t for each in of_taps for t in each]]
    text.add(f"w0 = {total(weight)}")
    if not of_w:
        text.add(f"factor = {code}(a1[w0])")
    (place,), index = sweep.inner(terms)
    factor = f"{code}(a1[{total(['w0', *text.times('j', of_w)])}])" if of_w else "factor"
    old = f"z[{total(text.times(index, of_y))}]"
    x = f"{code}(a0[{place}])"
    text.add(f"{old} = {multiply_add(code, old, x, factor, fused=real)}")
    work = case.inputs * prod([w.taps for w in case.windows])
    places = sweep.count(sweep.outer) * along.size
    return text.own(tasks, places + places * work // (4 if real else 1))
