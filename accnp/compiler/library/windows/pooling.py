"""Kernels of window reductions and of their derivatives, for the ops in `primitives/pooling.py`.

The functions take the memory layout of the operands and the windows and return an `OwnKernel`. Axes
whose window has one tap and reads each element once are treated as ordinary axes, over which tasks
are distributed. `sweeps.py` writes the loops.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from accnp.compiler.library.windows.sweeps import Places, Sweep
from accnp.compiler.library.writing.loop_nests import Text, total
from accnp.ir.aval import Aval
from accnp.ir.kernel import BLOCK, Operand, OwnKernel, dtype_code
from accnp.primitives.monoids import largest_value, smallest_value
from accnp.primitives.pooling import windows_over
from accnp.primitives.views import contiguous
from accnp.primitives.windows import Window, dilated_length

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from accnp.ir.op_types import Params

__all__ = ["gather_extremes", "scatter_extremes", "window_max", "window_min", "window_sum"]


def _make_sweep(text: Text, windows: Sequence[Window], still: Params, windowed: Params) -> Sweep:
    """Create the loops from the names of arrays and their strides by axis."""
    real: list[Window] = []
    axes: list[Places] = []
    for d, w in enumerate(windows):
        steps = [s[d] for s in still.values()], [s[d] for s in windowed.values()]
        if w.plain:
            axes.append(Places(w.size, *steps))
        else:
            axes.append(Places(w.places, *steps, len(real)))
            real.append(w)
    return Sweep(text, axes, real, "".join(still), "".join(windowed))


def _window_kernel(
    x: Operand, y: Aval, windows: Sequence[Window], reduction: str, identity: ArrayLike
) -> OwnKernel:
    """Return the kernel of the sum ("sum"), maximum ("max") or minimum ("min") of each window. It
    processes tap by tap; if there are taps in both directions, it first reduces across the inner
    axis and then along it."""
    code = dtype_code(y.dtype)
    text = Text(2)
    sweep = _make_sweep(text, windows, {"y": contiguous(y.shape)}, {"x": x.strides})
    (of_y,) = sweep.along.still
    inner = sweep.windows[sweep.along.window] if sweep.along.window >= 0 else None
    size = BLOCK
    if inner is not None and len(sweep.windows) > 1 and inner.base == 1:
        size = (BLOCK - dilated_length(inner.taps, inner.dilation)) // inner.stride
    first_across = 0 < size < BLOCK
    if first_across:
        text.add(f"row = stack_{code}()")
    size = size if first_across else BLOCK
    tasks = sweep.tasks(size)
    text.add(f"z = at(a1, {total(['y', *text.times('b0', of_y)])})")
    text.add(f"nothing = {text.constant(np.asarray(identity, y.dtype)[()])}")
    with text.block("for j in range(b1 - b0):"):
        text.add(f"z[{total(text.times('j', of_y))}] = nothing")
    if first_across:
        assert inner is not None
        place, index = _reduce_inner_axis(text, code, reduction, sweep, inner), "(j - b0)"
    else:
        (place,), index = sweep.inner(sweep.taps())
        place = f"a0[{place}]"
    old = f"z[{total(text.times(index, of_y))}]"
    text.add(f"{old} = {_combine_expression(code, reduction, old, place)}")
    taps = prod([w.taps for w in windows])
    return text.own(tasks, sweep.count(sweep.outer) * sweep.along.size * (1 + taps) // 2)


def _reduce_inner_axis(text: Text, code: str, reduction: str, sweep: Sweep, w: Window) -> str:
    """Write a reduction across the inner axis into a row; open loops along that axis, and return
    the element of the row."""
    s, n = text.integer(w.stride), text.integer(w.size)
    low, dilation = text.integer(w.low), text.integer(w.dilation)
    span = text.integer(dilated_length(w.taps, w.dilation))
    text.add(f"begin = fmax(0, b0 * {s} - {low})")
    text.add(f"end = fmin({n}, (b1 - 1) * {s} - {low} + {span})")
    with text.block("for i in range(end - begin):"):
        text.add("row[i] = nothing")
    depth = text.depth
    (terms,) = sweep.taps(across=True)
    (step,) = sweep.along.windowed
    text.add(f"x0 = {total([*terms, *text.times('begin', step)])}")
    with text.block("for i in range(end - begin):"):
        element = f"a0[{total(['x0', *text.times('i', step)])}]"
        text.add(f"row[i] = {_combine_expression(code, reduction, 'row[i]', element)}")
    text.depth = depth
    text.add(f"for k in range({text.integer(w.taps)}):")
    text.depth += 1
    text.add(f"e = k * {dilation} - {low}", f"f = fmax(b0, ({s} - 1 - e) // {s})")
    text.add(f"g = {n} - 1 - e", f"h = fmin(b1, g // {s} + 1) if g >= 0 else b0")
    text.add("e -= begin", "for j in range(f, h):")
    text.depth += 1
    # A stride of 2 is a constant in the source, so that whole vectors are loaded.
    by = f"j * {w.stride}" if w.stride <= 2 else f"j * {s}"
    return f"row[{by} + e]"


def _combine_expression(code: str, reduction: str, old: str, x: str) -> str:
    if reduction == "sum":
        return f"{code}({old} + {x})"
    if code == "b1":
        return f"{old} {'|' if reduction == 'max' else '&'} {x}"
    return f"{'fmax' if reduction == 'max' else 'fmin'}({old}, {x})"


def _search(text: Text, sweep: Sweep, code: str, select: str, x: int) -> str:
    """Write a search for the extreme values of a block's windows; return the tap's number."""
    sizes = [text.integer(w.taps) for w in sweep.windows]
    number = "k0" if sizes else "0"
    for d, n in [*enumerate(sizes)][1:]:
        number = f"({number}) * {n} + k{d}"
    with text.block("for j in range(b1 - b0):"):
        text.add("which[j] = i4(-1)", f"best[j] = {code}(0)")
    depth = text.depth
    terms = sweep.taps()
    text.add(f"tap = i4({number})")
    places, index = sweep.inner(terms)
    text.add(f"e = a{x}[{places[0]}]", f"b = best[{index}]", f"old = which[{index}]")
    better = f"e {'>' if select == 'ge' else '<'} b"
    if code[0] == "f":
        better = f"({better}) | ((e != e) & (b == b))"
    text.add(f"new = (old < i4(0)) | ({better})")
    text.add(f"best[{index}] = select(new, e, b)", f"which[{index}] = select(new, tap, old)")
    text.depth = depth
    return number


def _gather_kernel(
    t: Operand, x: Operand, y: Aval, windows: Sequence[Window], select: str
) -> OwnKernel:
    """Return the kernel that takes from each window of t the element at the extreme of x."""
    code, of_x = dtype_code(y.dtype), dtype_code(x.dtype)
    text = Text(3)
    still, windowed = {"y": contiguous(y.shape)}, {"x": x.strides, "s": t.strides}
    sweep = _make_sweep(text, windows, still, windowed)
    (of_y,) = sweep.along.still
    text.add("which = stack_i4()", f"best = stack_{of_x}()")
    tasks = sweep.tasks(BLOCK)
    text.add(f"z = at(a2, {total(['y', *text.times('b0', of_y)])})")
    with text.block("for j in range(b1 - b0):"):
        text.add(f"z[{total(text.times('j', of_y))}] = {code}(0)")
    number = _search(text, sweep, of_x, select, 1)
    terms = sweep.taps()
    text.add(f"tap = i4({number})")
    (_, place), index = sweep.inner(terms)
    old = f"z[{total(text.times(index, of_y))}]"
    text.add(f"{old} = select(which[{index}] == tap, a0[{place}], {old})")
    taps = prod([w.taps for w in windows])
    return text.own(tasks, sweep.count(sweep.outer) * sweep.along.size * (2 + 2 * taps))


def _scatter_kernel(
    ct: Operand, x: Operand, y: Aval, windows: Sequence[Window], select: str
) -> OwnKernel:
    """Return the kernel that adds each element of ct to the element of y at the extreme of a window
    of x.

    Several windows may contain one element, so a task has all positions of all real windows.
    """
    code, of_x = dtype_code(y.dtype), dtype_code(x.dtype)
    text = Text(3)
    steps = contiguous(y.shape)
    sweep = _make_sweep(text, windows, {"c": ct.strides}, {"x": x.strides, "y": steps})
    real = [(w, s) for w, s in zip(windows, steps, strict=True) if not w.plain]
    free = [a for a in sweep.outer if a.window < 0]
    mine = [a for a in sweep.outer if a.window >= 0]
    along = sweep.along
    text.add("which = stack_i4()", f"best = stack_{of_x}()")
    with text.block("for t in range(lo, hi):"):
        text.add("x = 0", "y = 0", "c = 0")
        sweep.place(free, "t")
        # Set the task's elements of the result to zero.
        nested = list(real)
        if along.window < 0:
            nested.append((Window(along.size, 1), along.windowed[1]))
        terms = ["y"]
        for d, (w, step) in enumerate(nested):
            text.add(f"for i{d} in range({text.integer(w.size)}):")
            text.depth += 1
            terms += text.times(f"i{d}", step)
        text.add(f"a2[{total(terms)}] = {code}(0)")
        text.depth = 2
        text.add("ct = c")
        text.add(f"for q in range({text.integer(sweep.count(mine))}):")
        text.depth += 1
        text.add("c = ct")
        sweep.place(mine, "q")
        text.add(f"for block in range({text.integer(-(-along.size // BLOCK))}):")
        text.depth += 1
        sweep.block("block", BLOCK)
        number = _search(text, sweep, of_x, select, 1)
        terms = sweep.taps()
        text.add(f"tap = i4({number})")
        (_, place), index = sweep.inner(terms)
        of_ct = f"c + (b0 + {index}) * {text.integer(along.still[0])}"
        text.add(f"given = a0[{of_ct}]")
        text.add(f"a2[{place}] = a2[{place}] + select(which[{index}] == tap, given, {code}(0))")
        sweep.close()
    outer = sweep.count(free)
    taps = prod([w.taps for w in windows])
    work = sweep.count(sweep.outer) * along.size * (2 + 3 * taps)
    return text.own(outer, work + prod(y.shape))


# --- the ops -------------------------------------------------------------------------------------


def window_sum(operands: Sequence[Operand], results: Sequence[Aval], p: Params) -> OwnKernel:
    """Return the kernel of `reduce_window_sum`."""
    return _reduction_kernel(operands, results, p, "sum", 0)


def window_max(operands: Sequence[Operand], results: Sequence[Aval], p: Params) -> OwnKernel:
    """Return the kernel of `reduce_window_max`."""
    return _reduction_kernel(operands, results, p, "max", smallest_value(results[0].dtype))


def window_min(operands: Sequence[Operand], results: Sequence[Aval], p: Params) -> OwnKernel:
    """Return the kernel of `reduce_window_min`."""
    return _reduction_kernel(operands, results, p, "min", largest_value(results[0].dtype))


def _reduction_kernel(
    operands: Sequence[Operand],
    results: Sequence[Aval],
    p: Params,
    reduction: str,
    identity: ArrayLike,
) -> OwnKernel:
    (x,), (y,) = operands, results
    return _window_kernel(x, y, windows_over(x.shape, p), reduction, identity)


def gather_extremes(operands: Sequence[Operand], results: Sequence[Aval], p: Params) -> OwnKernel:
    """Return the kernel of `select_and_gather_add`."""
    (t, x), (y,) = operands, results
    return _gather_kernel(t, x, y, windows_over(x.shape, p), p["select_prim"])


def scatter_extremes(operands: Sequence[Operand], results: Sequence[Aval], p: Params) -> OwnKernel:
    """Return the kernel of `select_and_scatter_add`."""
    (ct, x), (y,) = operands, results
    return _scatter_kernel(ct, x, y, windows_over(x.shape, p), p["select_prim"])
