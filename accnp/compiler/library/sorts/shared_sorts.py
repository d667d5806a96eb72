"""Kernels that sort or partition long lines with several threads, and integer keys of elements.

A sort is a sample sort (Frazer, McKellar, JACM 17, 1970) in several kernels: choose limits from a
sample of the keys, distribute the keys of each block to lists, then collect and sort each list with
NumPy's vectorized sort. The result does not depend on the limits or the number of threads. For a
partition, the limits surround the requested position, and only the list that contains it is sorted
(Floyd, Rivest, CACM 18, 1975).

`Keys` converts elements to integers that NumPy's fast sorts accept. A key of up to 32 bits and the
element's position fit into one 64-bit integer, whose order is the stable order. Zeros of both signs
then have the same key; NaN is the last key. `long_sorts.py` and the op `partition` use these
functions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from math import prod
from typing import TYPE_CHECKING

from accnp.compiler.library.sizes import LISTS
from accnp.compiler.library.sorts.ordered_keys import FLOATS, largest_key, ordered_bits
from accnp.compiler.library.writing.loop_nests import Axis, Text, merged, place, total
from accnp.compiler.loops.stack_lengths import STACK_LENGTHS
from accnp.ir.aval import Aval
from accnp.ir.kernel import Operand, OwnKernel, dtype_code, replace
from accnp.primitives.views import contiguous

if TYPE_CHECKING:
    from accnp.ir.op_types import Params


__all__ = ["Keys", "Lines", "first_zero", "partition", "shared_sort", "sort_list", "write_signs"]

SAMPLE = 1024  # keys of the sample of a line; list lengths then vary by about 8 %
BLOCK = 1 << 13  # keys that are distributed at a time, so that they fit into the L2 cache
LONG_LINE = 1 << 14  # minimum length of lines for which partition uses these kernels
PAD = 16  # elements in a vector of the smallest keys
FEW = 16  # sampled keys per list when a list is split further
STACK = STACK_LENGTHS["stack"]  # maximum number of pending lists


class Keys:
    """How elements are converted to sortable integers, and what is stored for each of these."""

    def __init__(self, operands: Sequence[Operand]) -> None:
        """The first operand is the key; the others are permuted with it."""
        self.operands = operands
        self.source = dtype_code(operands[0].dtype)
        self.words = len(operands) > 1
        self.code = "i8" if self.words or operands[0].dtype.itemsize > 4 else "i4"
        self.signed_zeros = self.source in FLOATS and not self.words

    @property
    def possible(self) -> bool:
        """Return whether keys exist for these dtypes."""
        itemsize = self.operands[0].dtype.itemsize
        return self.operands[0].dtype.kind in "biuf" and (itemsize <= 4 or not self.words)

    def encode(self, text: Text, value: str, at: str) -> str:
        """Write the lines that compute the key of an element, and return the key's expression."""
        if self.source in FLOATS:
            whole, top = f"i{self.source[1]}", largest_key(self.source)
            # Zeros of both signs have the same key if other operands are permuted.
            of = f"{value} + {self.source}(0)" if self.words else value
            text.add(f"bits = bitcast_{whole}({of})")
            key = ordered_bits(self.source, "bits")
            key = f"({key} if {value} == {value} else {whole}({top}))"
        elif self.source == "u8":
            key = f"i8({value}) ^ {text.integer(-1 << 63)}"
        elif self.source == "u4":
            key = f"i4(i8({value}) - 2147483648)"
        else:
            key = f"i4(u1({value}))" if self.source == "b1" else f"{self.code}({value})"
        return f"(i8({key}) << 32) | {at}" if self.words else key

    def decode(self, text: Text, key: str) -> str:
        """Return the expression of the element with a given key."""
        if self.source in FLOATS:
            return f"bitcast_{self.source}({ordered_bits(self.source, key)})"
        if self.source == "u8":
            return f"u8({key} ^ {text.integer(-1 << 63)})"
        if self.source == "u4":
            return f"u4(i8({key}) + 2147483648)"
        return f"{key} != i4(0)" if self.source == "b1" else f"{self.source}({key})"

    def write(self, text: Text, key: str, to: str, element: Callable[[int, str], str]) -> None:
        """Write the results of a key; `element` returns the expression of an operand's element."""
        first = len(self.operands)
        if not self.words:
            text.add(f"a{first}[{to}] = {self.decode(text, key)}")
            return
        text.add(f"place = {key} & 4294967295")
        for k in range(len(self.operands)):
            text.add(f"a{first + k}[{to}] = {element(k, 'place')}")


class Lines:
    """The lines along an axis, and the expressions of their elements."""

    def __init__(self, keys: Keys, axis: int, memories: int = 0) -> None:
        self.keys = keys
        self.pointers = 2 * len(keys.operands)  # the memories come after these
        operands = keys.operands
        shape = operands[0].shape
        self.size = shape[axis]
        own = contiguous(shape)
        self.strides = [*[x.strides for x in operands], *[own] * len(operands)]
        self.text = Text(self.pointers + memories)
        self.axis = axis
        self.shape = shape

    def outer(self, but: int = -1) -> list[Axis]:
        """Return the axes over lines, optionally without one of them."""
        axes = [
            Axis(n, [s[d] for s in self.strides])
            for d, n in enumerate(self.shape)
            if d not in (self.axis, but)
        ]
        return merged(axes)

    def begin(self, axes: list[Axis], index: str) -> None:
        """Write assignments of the start of a line in each array: p0, p1, ..."""
        moves = place(self.text, axes, index, len(self.strides))
        self.text.add(*[f"p{k} = {total(terms)}" for k, terms in enumerate(moves)])

    def element(self, which: int, at: str, beside: int = 0) -> str:
        """Return an element of a line; `beside` is the stride from line to line, with index `j`."""
        terms = [f"p{which}", *self.text.times(at, self.strides[which][self.axis])]
        terms += self.text.times("j", beside) if beside else []
        return f"a{which}[{total(terms)}]"

    def target(self, at: str) -> str:
        """Return the index of an element of a line in the results."""
        own = self.strides[-1][self.axis]
        return total([f"p{len(self.strides) - 1}", *self.text.times(at, own)])

    def operand(self) -> Callable[[int, str], str]:
        """Return a function that returns the expressions of operands' elements."""
        return self.element


def write_signs(lines: Lines, zero: str, beside: int = 0, to: int = 0) -> None:
    """Write code that stores the zeros of a line in their original order, from `zero` on."""
    text = lines.text
    text.add(f"z = {zero}")
    with text.block(f"for i in range({text.integer(lines.size)}):"):
        text.add(f"v = {lines.element(0, 'i', beside)}")
        with text.block(f"if v == {lines.keys.source}(0):"):
            text.add(f"{lines.element(1, 'z', to)} = v", "z += 1")


def first_zero(text: Text, key: str, size: str) -> None:
    """Write a binary search that sets z to the first non-negative element; `key` tests `mid`."""
    text.add("z = 0", f"last = {size}")
    with text.block("while z < last:"):
        text.add("mid = (z + last) >> 1", f"below = {key}")
        text.add("z = mid + 1 if below else z", "last = last if below else mid")


def sort_list(text: Text, code: str, f: str, m: str) -> None:
    """Write code that sorts m integers at f. If there are more than NumPy's sort handles quickly,
    they are distributed to lists by limits from a sample, recursively until the lists are short or
    contain equal keys."""
    one = f"{LISTS} * {FEW}"
    with text.block(f"if {m} <= sort_limit_{code}():"):
        text.add(f"sort_{code}({f}, {m})")
    text.add("else:")
    text.depth += 1
    text.add(f"lists = heap_{code}({LISTS} * ({m} + {PAD}))", f"some = stack_{code}()")
    text.add("begins = stack_i8()", "ends = stack_i8()", "counts = stack_i8()")
    text.add("begins[0] = 0", f"ends[0] = {m}", "top = 1")
    with text.block("while top > 0:"):
        text.add("top -= 1", "begin = begins[top]", "n = ends[top] - begin", f"x = at({f}, begin)")
        text.add(f"splits = n > sort_limit_{code}() and top < {STACK - LISTS}")
        with text.block("if splits:"):
            with text.block(f"for q in range({one}):"):
                # The position inside the q-th part varies, so that periodic data do not alias.
                text.add(f"step = n // ({one})", "h = q * 40503", "h = h - h // step * step")
                text.add("some[q] = x[q * step + h]")
            text.add(f"sort_{code}(some, {one})")
            text.add(f"some[0] = some[{FEW}]")
            with text.block(f"for q in range(1, {LISTS - 1}):"):
                # Frequent keys get separate lists.
                text.add(
                    "last = some[q - 1]",
                    f"limit = some[(q + 1) * {FEW}]",
                    f"more = {code}(last + {code}(1))",
                )
                text.add(
                    "more = more if more > last else last",
                    "some[q] = limit if limit > last else more",
                )
            text.add(f"distribute(lists, n + {PAD}, x, n, some, counts)", "o = 0", "most = 0")
            with text.block(f"for q in range({LISTS}):"):
                text.add("its = counts[q]", f"move(at(x, o), at(lists, q * (n + {PAD})), its)")
                text.add("begins[top + q] = begin + o", "o = o + its", "ends[top + q] = begin + o")
                text.add("most = fmax(most, its)")
            with (
                text.block(f"for q in range(1, {LISTS - 1}):"),
                text.block(f"if {code}(some[q] - some[q - 1]) == {code}(1):"),
            ):
                text.add("begins[top + q] = ends[top + q]")
            text.add("splits = most < n", f"top = top + {LISTS} if splits else top")
        with text.block("if not splits:"):
            text.add(f"sort_{code}(x, n)")
    text.add("release(lists)")
    text.depth -= 1


def _choose_limits(keys: Keys, axis: int, memories: int, ranks: Sequence[int]) -> OwnKernel:
    """Return the first kernel: for each line, keys with these ranks in a sorted sample."""
    lines = Lines(keys, axis, memories)
    text, axes = lines.text, lines.outer()
    count = prod([x.size for x in axes])
    size, step = text.integer(lines.size), text.integer(max(1, lines.size // SAMPLE))
    text.add(f"f = stack_{keys.code}()")
    with text.block("for t in range(lo, hi):"):
        lines.begin(axes, "t")
        with text.block(f"for s in range({SAMPLE}):"):
            # The position inside the s-th part varies, so that periodic data do not alias.
            text.add("h = s * 40503", f"h = h - h // {step} * {step}")
            text.add(f"at_s = s * {size} // {SAMPLE} + h", f"v = {lines.element(0, 'at_s')}")
            text.add(f"f[s] = {keys.encode(text, 'v', 'at_s')}")
        text.add(f"sort_{keys.code}(f, {SAMPLE})")
        for k, rank in enumerate(ranks):
            text.add(f"a{lines.pointers}[t * {LISTS} + {k}] = f[{text.integer(rank)}]")
    return text.own(count, 32 * SAMPLE * count)


def _distribute_keys(keys: Keys, axis: int, memories: int, blocks: int) -> OwnKernel:
    """Return the second kernel: the keys of each block, list by list, and the lists' lengths."""
    lines = Lines(keys, axis, memories)
    text, axes, limits = lines.text, lines.outer(), lines.pointers
    tasks = prod([x.size for x in axes]) * blocks
    many, size = text.integer(blocks), text.integer(lines.size)
    text.add(f"f = heap_{keys.code}({BLOCK + PAD})")
    text.add(f"r = heap_{keys.code}({LISTS * (BLOCK + PAD)})")
    with text.block("for t in range(lo, hi):"):
        text.add(f"g = t // {many}", f"start = (t - g * {many}) * {BLOCK}")
        text.add(f"m = fmin({size} - start, {BLOCK})")
        lines.begin(axes, "g")
        with text.block("for i in range(m):"):
            text.add("at_i = start + i", f"v = {lines.element(0, 'at_i')}")
            text.add(f"f[i] = {keys.encode(text, 'v', 'at_i')}")
        text.add(f"c = at(a{limits + 1}, t * {LISTS})")
        text.add(f"distribute(r, {BLOCK + PAD}, f, m, at(a{limits}, g * {LISTS}), c)")
        text.add(f"o = g * {size} + start")
        with text.block(f"for k in range({LISTS}):"):
            text.add(f"move(at(a{limits + 2}, o), at(r, k * {BLOCK + PAD}), c[k])", "o = o + c[k]")
    text.add("release(f)", "release(r)")
    return text.own(tasks, 4 * tasks * min(BLOCK, lines.size))


def _collect_lists(
    keys: Keys, axis: int, memories: int, blocks: int, kth: int | None = None
) -> OwnKernel:
    """Return the third kernel: collect, sort and store each list. If `kth` is given, only the list
    that contains this position is sorted; the others are stored in any order."""
    lines = Lines(keys, axis, memories)
    text, axes, limits = lines.text, lines.outer(), lines.pointers
    tasks = prod([x.size for x in axes]) * LISTS
    many, size = text.integer(blocks), text.integer(lines.size)
    with text.block("for t in range(lo, hi):"):
        text.add(f"g = t // {LISTS}", f"k = t - g * {LISTS}", "first = 0")
        lines.begin(axes, "g")
        with text.block(f"for j in range({many}):"), text.block("for i in range(k):"):
            text.add(f"first = first + a{limits + 1}[(g * {many} + j) * {LISTS} + i]")
        text.add(f"f = at(a{limits + 3}, g * {size} + first)", "m = 0")
        sorts = ""
        if kth is not None:
            position, sorts = text.integer(kth), "sorts"
            with text.block(f"for j in range({many}):"):
                text.add(f"m = m + a{limits + 1}[(g * {many} + j) * {LISTS} + k]")
            text.add(f"sorts = first <= {position} and {position} < first + m", "m = 0")
        with text.block(f"for j in range({many}):"):
            text.add(f"c = at(a{limits + 1}, (g * {many} + j) * {LISTS})")
            text.add(f"o = g * {size} + j * {BLOCK}")
            with text.block("for i in range(k):"):
                text.add("o = o + c[i]")
            text.add(f"d = at(a{limits + 2}, o)", "s = c[k]")
            with text.block(f"if {sorts}:") if sorts else nullcontext():
                text.add("move(at(f, m), d, s)")
            if sorts:
                with text.block("if not sorts:"), text.block("for i in range(s):"):
                    text.add("key = d[i]", "at_i = first + m + i")
                    keys.write(text, "key", lines.target("at_i"), lines.operand())
            text.add("m = m + s")
        with text.block(f"if {sorts}:") if sorts else nullcontext():
            sort_list(text, keys.code, "f", "m")
            with text.block("for i in range(m):"):
                text.add("key = f[i]", "at_i = first + i")
                keys.write(text, "key", lines.target("at_i"), lines.operand())
    return text.own(tasks, 2 * tasks * lines.size * max(1, lines.size.bit_length()) // LISTS)


def _restore_zeros(keys: Keys, axis: int, memories: int) -> OwnKernel:
    """Return the last kernel, for keys with signed zeros: restore the original order of zeros."""
    lines = Lines(keys, axis, memories)
    text, axes = lines.text, lines.outer()
    count = prod([x.size for x in axes])
    size = text.integer(lines.size)
    with text.block("for t in range(lo, hi):"):
        lines.begin(axes, "t")
        first_zero(text, f"{lines.element(1, 'mid')} < {keys.source}(0)", size)
        text.add(f"last = fmin(z, {size} - 1)", f"v = {lines.element(1, 'last')}")
        with text.block(f"if v == {keys.source}(0) and bitcast_{keys.code}(v) < 0:"):
            write_signs(lines, "z")
    return text.own(count, count)


def shared_sort(keys: Keys, axis: int) -> OwnKernel:
    """Return the kernel of a sort of lines by the first operand; the others are permuted."""
    ranks = [(k + 1) * SAMPLE // LISTS for k in range(LISTS - 1)]
    return _sort_in_steps(keys, axis, ranks, None)


def partition(operands: Sequence[Operand], results: Sequence[Aval], p: Params) -> OwnKernel | None:
    """Return the kernel of a partition, or None for short lines."""
    (x,) = operands
    axis: int = p["axis"]
    kth: int = p["kth"]
    keys, n = Keys([x]), x.shape[axis]
    if not keys.possible or not LONG_LINE <= n < 1 << 31:
        return None
    # The standard deviation of a rank in the sample is 16; it is off by 64 in one of 10^4 cases.
    rank = kth * SAMPLE // n
    ranks = [min(max(rank + d, 0), SAMPLE - 1) for d in (-64, -32, -16, 0, 16, 32, 64)]
    return _sort_in_steps(keys, axis, ranks, kth)


def _sort_in_steps(keys: Keys, axis: int, ranks: Sequence[int], kth: int | None) -> OwnKernel:
    shape = keys.operands[0].shape
    n = shape[axis]
    count, blocks = prod(shape) // n, -(-n // BLOCK)
    memory = [
        (keys.code, count * LISTS),
        ("i8", count * blocks * LISTS),
        (keys.code, count * n),
        (keys.code, count * n),
    ]
    here = keys, axis, len(memory)
    rest = [_distribute_keys(*here, blocks), _collect_lists(*here, blocks, kth)]
    if keys.signed_zeros and kth is None:
        rest.append(_restore_zeros(*here))
    return replace(_choose_limits(*here, ranks), memory=tuple(memory), then=tuple(rest))
