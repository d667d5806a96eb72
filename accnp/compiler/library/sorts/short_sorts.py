"""Kernels of short sorts and of `top_k`, for the ops in `primitives/sort.py`.

The functions take the memory layout of the operands, the axis and the number of keys, and return an
`OwnKernel`, or None if NumPy's vectorized sort is faster. Sorts are stable, NaN is last, zeros of
both signs are equal, and complex numbers are compared by their parts. `top_k` uses the total order
of bits: -NaN < -inf, -0.0 < 0.0, NaN > inf.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from accnp.compiler.library.sorts.ordered_keys import ordered_bits
from accnp.compiler.library.writing.loop_nests import Axis, Nest, Text, merged, total
from accnp.compiler.loops.stack_lengths import STACK_LENGTHS
from accnp.ir.aval import Aval
from accnp.ir.kernel import Operand, OwnKernel, dtype_code
from accnp.primitives.views import contiguous

if TYPE_CHECKING:
    from accnp.ir.op_types import Params


__all__ = ["sort_kernel", "top_k"]

RUN = 16  # elements that are sorted by insertion; longer runs are merged
LONGEST = 256  # maximum length of lines
MOST = 1 << 10  # maximum number of elements in all lines
LIST = 128  # maximum k for long lines, for which a list is kept while a line is read once
GROUPS = 64  # groups of elements whose maxima give the first bound of the list
LOOK = 32  # elements of a line that are compared at a time with the smallest one of the list
STACK = STACK_LENGTHS["stack"]


def _precedes(dtype: np.dtype, a: str, b: str) -> str:
    """Return the expression for whether a precedes b in ascending order."""
    if dtype.kind == "b":
        return f"((not {a}) & {b})"
    if dtype.kind == "f":
        return f"(({a} < {b}) | (({b} != {b}) & ({a} == {a})))"
    return f"({a} < {b})"


def _sort_keys(dtype: np.dtype) -> list[tuple[str, np.dtype]]:
    """Return the keys of an element {0}, in order. As in NumPy, complex numbers without NaN come
    first, then those with NaN as the imaginary part, as the real part, and as both."""
    if dtype.kind == "c":
        part, truth = np.dtype(f"f{dtype.itemsize // 2}"), np.dtype(bool)
        tests = ["({0}.real != {0}.real)", "({0}.imag != {0}.imag)"]
        return [*[(test, truth) for test in tests], ("{0}.real", part), ("{0}.imag", part)]
    return [("{0}", dtype)]


def _lines(
    text: Text, shape: tuple[int, ...], axis: int, strides: Sequence[Sequence[int]]
) -> tuple[Nest, list[str]]:
    """Open loops over the lines along an axis; return names of the starts of a line by array."""
    axes = [Axis(n, tuple([s[d] for s in strides])) for d, n in enumerate(shape) if d != axis]
    nest = Nest(text, merged(axes))
    for _ in nest.axes:
        nest.open()
    names = [f"p{k}" for k in range(len(strides))]
    text.add(*[f"{p} = {total(nest.walk(k))}" for k, p in enumerate(names)])
    return nest, names


def sort_kernel(operands: Sequence[Operand], axis: int, keys: int) -> OwnKernel | None:
    """Return the kernel of `sort`: sort positions by the keys, then permute all operands."""
    shape = operands[0].shape
    n = shape[axis]
    if n > LONGEST or int(np.prod(shape)) > MOST:
        return None
    own = contiguous(shape)
    text = Text(2 * len(operands))
    text.add("one = stack_i4()", "two = stack_i4()")
    strides = [*[x.strides for x in operands], *[own] * len(operands)]
    nest, bases = _lines(text, shape, axis, strides)
    size = text.integer(n)
    steps = [f" * {text.integer(s[axis])}" if s[axis] != 1 else "" for s in strides]

    def element(k: int, i: str) -> str:
        return f"a{k}[{bases[k]} + {i}{steps[k]}]"

    def compare() -> None:
        """Write code that sets `before`: whether the element at `a` precedes the one at `b`."""
        first = True
        for k, x in enumerate(operands[:keys]):
            text.add(f"v{k} = {element(k, 'a')}", f"w{k} = {element(k, 'b')}")
            for part, dtype in _sort_keys(x.dtype):
                v, w = part.format(f"v{k}"), part.format(f"w{k}")
                less = _precedes(dtype, v, w)
                text.add(f"before = {less if first else f'before | (same & {less})'}")
                more = _precedes(dtype, w, v)
                same = f"not ({less} | {more})"
                text.add(f"same = {same if first else f'same & ({same})'}")
                first = False

    with text.block(f"for r in range(0, {size}, {RUN}):"):
        text.add(f"stop = r + {RUN}", f"stop = stop if stop < {size} else {size}")
        with text.block("for a in range(r, stop):"):
            text.add("j = a", "go = j > r")
            with text.block("while go:"):
                text.add("b = i8(one[j - 1])")
                compare()
                with text.block("if before:"):
                    text.add("one[j] = i4(b)", "j -= 1")
                text.add("go = before & (j > r)")
            text.add("one[j] = i4(a)")
    text.add(f"width = {RUN}")
    with text.block(f"while width < {size}:"):
        with text.block(f"for r in range(0, {size}, 2 * width):"):
            text.add(f"mid = r + width if r + width < {size} else {size}")
            text.add(f"stop = mid + width if mid + width < {size} else {size}")
            text.add("i = r", "j = mid")
            with text.block("for k in range(r, stop):"):
                text.add("right = i >= mid")
                with text.block("if i < mid and j < stop:"):
                    text.add("a = i8(one[j])", "b = i8(one[i])")
                    compare()
                    text.add("right = before")
                text.add("two[k] = one[j] if right else one[i]")
                text.add("j = j + 1 if right else j", "i = i if right else i + 1")
        with text.block(f"for k in range({size}):"):
            text.add("one[k] = two[k]")
        text.add("width = 2 * width")
    with text.block(f"for i in range({size}):"):
        text.add("k = i8(one[i])")
        for k in range(len(operands)):
            text.add(f"{element(k + len(operands), 'i')} = {element(k, 'k')}")
    return nest.own(8 * n * max(1, n.bit_length()))


class _Ranks:
    """Keys for comparisons: for floats, their bits as integers, with those of negative numbers
    inverted, which gives the total order."""

    def __init__(self, dtype: np.dtype) -> None:
        self.dtype = dtype
        self.floats = dtype.kind == "f"
        self.code = f"i{dtype.itemsize}" if self.floats else dtype_code(dtype)
        self.less = _precedes(np.dtype(self.code) if self.floats else dtype, "w", "v")

    def load(self, text: Text, element: str) -> None:
        """Write code that sets `v` to the key of an element."""
        if self.floats:
            text.add(f"r = bitcast_{self.code}({element})")
            text.add(f"v = {ordered_bits(dtype_code(self.dtype), 'r')}")
        else:
            text.add(f"v = {element}")

    def value(self, rank: str) -> str:
        """Return the expression of the element with a given key."""
        if not self.floats:
            return rank
        code = dtype_code(self.dtype)
        return f"bitcast_{code}({ordered_bits(code, rank)})"


def top_k(operands: Sequence[Operand], results: Sequence[Aval], p: Params) -> OwnKernel | None:
    """Return the kernel of `top_k`: a sorted list of the largest elements, updated in one pass."""
    (x,) = operands
    axis: int = p["axis"]
    most: int = p["k"]
    n = x.shape[axis]
    if x.dtype.kind == "c" or most > (STACK if n <= STACK else LIST):
        return None
    text = Text(3)
    if not most:
        text.add("pass")
        return text.own(0)
    out = (*x.shape[:axis], most, *x.shape[axis + 1 :])
    own = contiguous(out)
    ranks = _Ranks(x.dtype)
    text.add(f"best = stack_{ranks.code}()", "place = stack_i4()")
    nest, bases = _lines(text, x.shape, axis, [x.strides, own])
    size, count = text.integer(n), text.integer(most)
    step = f" * {text.integer(x.strides[axis])}" if x.strides[axis] != 1 else ""

    def insert(before: str) -> None:
        """Write code that inserts the key `v` at position `i` into the list; `before` elements have
        been seen."""
        text.add(f"j = fmin({before}, {count} - 1)", f"go = {before} == j")
        with text.block("if not go:"):
            text.add("w = best[j]", f"go = {ranks.less}")
        with text.block("if go:"):
            text.add("go = j > 0")
            with text.block("while go:"):
                text.add("w = best[j - 1]", f"go = {ranks.less}")
                with text.block("if go:"):
                    text.add("best[j] = w", "place[j] = place[j - 1]", "j -= 1", "go = j > 0")
            text.add("best[j] = v", "place[j] = i4(i)")

    wide = x.dtype.kind in "iuf" and x.dtype.itemsize >= 4
    if wide and not step and n >= 2 * GROUPS and most <= GROUPS // 2:
        _insert_candidates(text, ranks, size, count, bases[0], insert)
    else:
        # Once the list is full, skip blocks in which nothing is larger than its last element.
        with text.block(f"for i0 in range(0, {size}, {LOOK}):"):
            text.add(f"stop = fmin(i0 + {LOOK}, {size})", f"larger = i4(1 if i0 < {count} else 0)")
            with text.block("if larger == 0:"):
                text.add(f"w = best[{count} - 1]")
                with text.block("for i in range(i0, stop):"):
                    ranks.load(text, f"a0[{bases[0]} + i{step}]")
                    text.add(f"more = {ranks.less}")
                    text.add("larger = i4(larger + (i4(1) if more else i4(0)))")
            text.add("stop = stop if larger != 0 else i0")
            with text.block("for i in range(i0, stop):"):
                ranks.load(text, f"a0[{bases[0]} + i{step}]")
                insert("i")
    stride = f" * {text.integer(own[axis])}" if own[axis] != 1 else ""
    with text.block(f"for i in range({count}):"):
        text.add(f"q = {bases[1]} + i{stride}", f"a1[q] = {ranks.value('best[i]')}")
        text.add("a2[q] = place[i]")
    return nest.own(4 * n)


def _insert_candidates(
    text: Text, ranks: _Ranks, size: str, count: str, base: str, insert: Callable[[str], None]
) -> None:
    """Write code that inserts, block by block, the elements that are not below a limit: the list's
    last element or, at first, the k-th largest of the maxima of groups of elements."""
    code, dtype = dtype_code(ranks.dtype), ranks.dtype
    text.add(f"g = stack_{code}()", f"some = slab_{code}()", "where = slab_i4()", "known = 0")
    least = "-1e999" if dtype.kind == "f" else str(np.iinfo(dtype).min)
    text.add(f"x = at(a0, {base})")
    with text.block(f"for j in range({GROUPS}):"):
        text.add("v = x[j]", f"g[j] = v if v == v else {code}({least})")
    rows = f"range({GROUPS}, fmin({size}, {STACK}) - {GROUPS - 1}, {GROUPS})"
    with text.block(f"for i in {rows}:"), text.block(f"for j in range({GROUPS}):"):
        text.add("v = x[i + j]", "w = g[j]", "g[j] = v if v > w else w")
    text.add(f"sort_{code}(g, {GROUPS})", f"limit = g[{GROUPS} - {count}]")
    with text.block(f"for i0 in range(0, {size}, {STACK}):"):
        text.add(f"m = fmin({size} - i0, {STACK})")
        text.add("found = collect_at_least(some, where, at(x, i0), m, i0, limit)")
        with text.block("for q in range(found):"):
            ranks.load(text, "some[q]")
            text.add("i = i8(where[q])")
            insert("known")
            text.add("known = known + 1")
        text.add(f"limit = {ranks.value(f'best[{count} - 1]')}")
