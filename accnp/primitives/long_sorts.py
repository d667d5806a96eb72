"""Kernels of sorts beyond the small ones: NumPy's vectorised sort on integers that stand for keys.

In: how the operands lie in memory, the axis. Out: `OwnKernel`s. Many lines are sorted as tasks of
their own. A long line is cut into runs, which threads sort; then they merge pairs of runs, each
thread a part of the result whose operands it finds by bisection (Green, Odeh, Birk, "Merge path",
2014). Values do not depend on the number of runs.

A key of up to 32 bits with its place in one 64-bit integer gives the stable order of a line, or
what follows it. Zeros of both signs are one key: where both are there, the signs are written in
their order afterwards. NaN is the last key.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import prod

from accnp.config import config
from accnp.ir.kernel import Operand, OwnKernel, dtype_code
from accnp.primitives.dot_kernels import place
from accnp.primitives.nests import Axis, Text, merged, total
from accnp.primitives.views import contiguous

__all__ = ["long_sort"]

TILE = 16  # lines side by side that one task takes: a cache line of 32-bit elements
SHARED = 1 << 15  # elements of a line from which several threads sort it
PART = 1 << 14  # elements of the result that one task merges
CHAINS = 4  # merges that a task interleaves, since each waits for its own comparisons
MOST_RUNS = 16
_HIGHEST = {"f4": 2147483647, "f8": 9223372036854775807}


class _Keys:
    """How elements become sortable integers, and what is written for these."""

    def __init__(self, operands: Sequence[Operand]) -> None:
        """The first operand is the key; others follow it."""
        self.operands = operands
        self.source = dtype_code(operands[0].dtype)
        self.words = len(operands) > 1
        kind = {"f4": "i4", "f8": "i8", "b1": "u1"}.get(self.source, self.source)
        self.code = "i8" if self.words else kind
        self.signed_zeros = self.source in _HIGHEST and not self.words

    @property
    def possible(self) -> bool:
        """Whether these dtypes have such keys."""
        itemsize = self.operands[0].dtype.itemsize
        return self.operands[0].dtype.kind in "biuf" and (itemsize <= 4 or not self.words)

    def encode(self, value: str, at: str) -> tuple[str, str]:
        """The lines that compute `key` from an element, and its text."""
        if self.source in _HIGHEST:
            whole, top = f"i{self.source[1]}", _HIGHEST[self.source]
            bits = f"bitcast_{whole}({value} + {self.source}(0))"
            shift = 8 * int(self.source[1]) - 1
            lines = f"bits = {bits}"
            key = f"{whole}(bits ^ ({whole}(bits >> {shift}) & {whole}({top})))"
            key = f"({key} if {value} == {value} else {whole}({top}))"
        else:
            lines, key = "", f"u1({value})" if self.source == "b1" else value
        if self.words:
            key = f"(i8({key}) << 32) | {at}"
            if self.source == "u4":
                key = f"((i8({value}) - 2147483648) << 32) | {at}"
        return lines, key

    def decode(self, key: str) -> str:
        """The text of the element of a key."""
        if self.source in _HIGHEST:
            whole, top = self.code, _HIGHEST[self.source]
            shift = 8 * int(self.source[1]) - 1
            flipped = f"{whole}({key} ^ ({whole}({key} >> {shift}) & {whole}({top})))"
            return f"bitcast_{self.source}({flipped})"
        return f"{key} != u1(0)" if self.source == "b1" else key

    def write(self, text: Text, key: str, to: str, element: Callable[[int, str], str]) -> None:
        """Write the results of a key; `element` is the text of that of an operand at a place."""
        first = len(self.operands)
        if not self.words:
            text.add(f"a{first}[{to}] = {self.decode(key)}")
            return
        text.add(f"place = {key} & 4294967295")
        for k in range(len(self.operands)):
            text.add(f"a{first + k}[{to}] = {element(k, 'place')}")


def _times(text: Text, index: str, step: int) -> str:
    return total(text.times(index, step))


class _Lines:
    """The lines along an axis, and the text of their elements."""

    def __init__(self, keys: _Keys, axis: int, memories: int = 0) -> None:
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
        """The axes of the lines, leaving out one."""
        axes = [
            Axis(n, [s[d] for s in self.strides])
            for d, n in enumerate(self.shape)
            if d not in (self.axis, but)
        ]
        return merged(axes)

    def begin(self, axes: list[Axis], index: str) -> None:
        """Name where a line begins in each array: p0, p1..."""
        moves = place(self.text, axes, index, len(self.strides))
        self.text.add(*[f"p{k} = {total(terms)}" for k, terms in enumerate(moves)])

    def element(self, which: int, at: str, beside: int = 0) -> str:
        """The element of a line of an array; `beside` is the step from line to line `j`."""
        terms = [f"p{which}", *self.text.times(at, self.strides[which][self.axis])]
        terms += self.text.times("j", beside) if beside else []
        return f"a{which}[{total(terms)}]"

    def target(self, at: str) -> str:
        """The place of an element of a line in the results."""
        own = self.strides[-1][self.axis]
        return total([f"p{len(self.strides) - 1}", *self.text.times(at, own)])

    def operand(self) -> Callable[[int, str], str]:
        """The text of elements of operands."""
        return self.element


def _signs(lines: _Lines, zero: str, beside: int = 0, to: int = 0) -> None:
    """Write the zeros of a line in their order, from place `zero` on."""
    text = lines.text
    text.add(f"z = {zero}")
    with text.block(f"for i in range({text.integer(lines.size)}):"):
        text.add(f"v = {lines.element(0, 'i', beside)}")
        with text.block(f"if v == {lines.keys.source}(0):"):
            text.add(f"{lines.element(1, 'z', to)} = v", "z += 1")


def _first_zero(text: Text, key: str, size: str) -> None:
    """z becomes the first place of a sorted line whose key, given for `mid`, is not negative."""
    text.add("z = 0", f"last = {size}")
    with text.block("while z < last:"):
        text.add("mid = (z + last) >> 1", f"below = {key}")
        text.add("z = mid + 1 if below else z", "last = last if below else mid")


def _count_minus(keys: _Keys, text: Text) -> None:
    """Count v in `negative` if it is a zero of negative sign. NumPy's sorts do not keep these."""
    if keys.signed_zeros:
        bits = f"bitcast_i{keys.source[1]}(v)"
        text.add(f"minus = v == {keys.source}(0) and {bits} < 0")
        text.add("negative = negative + 1 if minus else negative")


def _alone(keys: _Keys, axis: int) -> OwnKernel:
    """The values of many lines, one task for each: they are sorted where they are to be."""
    lines = _Lines(keys, axis)
    text, n, code = lines.text, lines.size, keys.source
    axes, size = lines.outer(), text.integer(n)
    count = prod([x.size for x in axes])
    with text.block("for t in range(lo, hi):"):
        lines.begin(axes, "t")
        text.add("negative = 0")
        with text.block(f"for i in range({size}):"):
            text.add(f"v = {lines.element(0, 'i')}", "a1[p1 + i] = v")
            _count_minus(keys, text)
        text.add(f"sort_{code}(at(a1, p1), {size})")
        if keys.signed_zeros:
            with text.block("if negative > 0:"):
                _first_zero(text, f"a1[p1 + mid] < {code}(0)", size)
                _signs(lines, "z")
    return text.own(count, 2 * n * max(1, n.bit_length()) * count)


def _beside(keys: _Keys, axis: int) -> OwnKernel:
    """The values of lines that lie side by side: TILE of them are transposed, sorted, and laid out
    as they were."""
    lines = _Lines(keys, axis)
    text, n, shape, code = lines.text, lines.size, lines.shape, keys.source
    inner = len(shape) - 1
    axes, tiles = lines.outer(inner), -(-shape[inner] // TILE)
    count = prod([x.size for x in axes]) * tiles
    beside = lines.strides[0][inner]
    size, width, many = text.integer(n), text.integer(shape[inner]), text.integer(tiles)
    long = text.integer(-(-n // TILE) * TILE)
    text.add(f"f = heap_{code}({long} * {TILE})", f"g = heap_{code}({long} * {TILE})")
    with text.block("for t in range(lo, hi):"):
        text.add(f"g0 = t // {many}", f"j0 = (t - g0 * {many}) * {TILE}")
        text.add(f"w = fmin({width} - j0, {TILE})")
        lines.begin(axes, "g0")
        text.add(f"p0 = p0 + {_times(text, 'j0', beside)}", "p1 = p1 + j0")
        if beside == 1:
            step = text.integer(lines.strides[0][axis])
            text.add(f"transpose(f, {long}, at(a0, p0), {step}, w, {size})")
        else:
            with text.block("for j in range(w):"), text.block(f"for i in range({size}):"):
                text.add(f"f[j * {long} + i] = {lines.element(0, 'i', beside)}")
        text.add("negative = 0")
        if keys.signed_zeros:
            with text.block("for j in range(w):"), text.block(f"for i in range({size}):"):
                text.add(f"v = f[j * {long} + i]")
                _count_minus(keys, text)
        with text.block("for j in range(w):"):
            text.add(f"sort_{code}(at(f, j * {long}), {size})")
        text.add(f"transpose(g, {TILE}, f, {long}, {size}, w)")
        with text.block(f"for i in range({size}):"), text.block("for j in range(w):"):
            text.add(f"{lines.element(1, 'i', 1)} = g[i * {TILE} + j]")
        if keys.signed_zeros:
            with text.block("if negative > 0:"), text.block("for j in range(w):"):
                _first_zero(text, f"f[j * {long} + mid] < {code}(0)", size)
                _signs(lines, "z", beside, 1)
    text.add("release(f)", "release(g)")
    work = 2 * n * max(1, n.bit_length()) * shape[inner]
    return text.own(count, work * count // tiles)


def _words(keys: _Keys, axis: int) -> OwnKernel:
    """Many lines of several operands, one task for each."""
    lines = _Lines(keys, axis)
    text, n = lines.text, lines.size
    axes, size = lines.outer(), text.integer(n)
    count = prod([x.size for x in axes])
    text.add(f"f = heap_i8({size})")
    with text.block("for t in range(lo, hi):"):
        lines.begin(axes, "t")
        with text.block(f"for i in range({size}):"):
            text.add(f"v = {lines.element(0, 'i')}")
            before, key = keys.encode("v", "i")
            text.add(*([before] if before else []), f"f[i] = {key}")
        text.add(f"sort_i8(f, {size})")
        with text.block(f"for i in range({size}):"):
            text.add("key = f[i]")
            keys.write(text, "key", lines.target("i"), lines.operand())
    text.add("release(f)")
    return text.own(count, 2 * n * max(1, n.bit_length()) * count)


def _runs(keys: _Keys, axis: int, memories: int, width: int, runs: int) -> OwnKernel:
    """The first step for long lines: runs become sorted keys in scratch memory."""
    lines = _Lines(keys, axis, memories)
    text, n, pointers = lines.text, lines.size, lines.pointers
    axes = lines.outer()
    count = prod([x.size for x in axes]) * runs
    many, size, wide = text.integer(runs), text.integer(n), text.integer(width)
    with text.block("for t in range(lo, hi):"):
        text.add(f"g = t // {many}", f"start = (t - g * {many}) * {wide}")
        text.add(f"stop = fmin(start + {wide}, {size})")
        lines.begin(axes, "g")
        text.add(f"f = at(a{pointers}, g * {size})", "negative = 0")
        with text.block("for i in range(start, stop):"):
            text.add(f"v = {lines.element(0, 'i')}")
            before, key = keys.encode("v", "i")
            text.add(*([before] if before else []), f"f[i] = {key}")
            _count_minus(keys, text)
        with text.block("if stop > start:"):
            text.add(f"sort_{keys.code}(at(f, start), stop - start)")
        if keys.signed_zeros:
            text.add(f"a{pointers + 1}[t] = negative")
    return text.own(count, 2 * n * max(1, n.bit_length()) * count // runs)


def _merge(
    keys: _Keys, axis: int, memories: int, width: int, source: int, target: int | None
) -> OwnKernel:
    """A step for long lines: pairs of runs become runs of twice the width; the last one writes the
    results. `source` and `target` are numbers of pointers."""
    lines = _Lines(keys, axis, memories)
    text, n = lines.text, lines.size
    axes = lines.outer()
    parts = -(-n // PART)
    count = prod([x.size for x in axes]) * parts
    many, size, wide = text.integer(parts), text.integer(n), text.integer(width)
    last = target is None

    def store(value: str, at: str) -> None:
        if not last:
            text.add(f"to[{at}] = {value}")
            return
        keys.write(text, value, lines.target(at), lines.operand())

    with text.block("for t in range(lo, hi):"):
        text.add(f"g = t // {many}", f"start = (t - g * {many}) * {PART}")
        text.add(f"stop = fmin(start + {PART}, {size})")
        lines.begin(axes, "g")
        if not last:
            text.add(f"to = at(a{target}, g * {size})")
        text.add(f"pair = start // (2 * {wide}) * 2 * {wide}")
        text.add(f"mid = fmin(pair + {wide}, {size})", f"end = fmin(mid + {wide}, {size})")
        text.add(f"x = at(a{source}, g * {size} + pair)", f"y = at(a{source}, g * {size} + mid)")
        text.add("m = mid - pair", "n = end - mid", "edge = stack_i8()")
        text.add(f"quarter = (stop - start) // {CHAINS}")
        # How many of the first d elements of the result come from y, for each chain's first one.
        with text.block(f"for s in range({CHAINS} + 1):"):
            text.add(f"d = start - pair + s * quarter if s < {CHAINS} else stop - pair")
            text.add("i = fmax(0, d - n)", "high = fmin(d, m)")
            with text.block("while i < high:"):
                text.add("h = (i + high) >> 1", "before = x[h] <= y[d - h - 1]")
                text.add("i = h + 1 if before else i", "high = high if before else h")
            text.add("edge[s] = d - i")
        text.add(f"inside = edge[{CHAINS}] < n and stop - pair - edge[{CHAINS}] < m")
        with text.block("if inside:"):  # no chain meets the end of a run
            for s in range(CHAINS):
                text.add(f"j{s} = edge[{s}]", f"k{s} = start - pair + {s} * quarter")
            with text.block("for k in range(quarter):"):
                for s in range(CHAINS):
                    text.add(f"d{s} = k{s} + k", f"u = x[d{s} - j{s}]", f"v = y[j{s}]")
                    text.add("less = v < u", "w = v if less else u", f"j{s} = j{s} + i8(less)")
                    store("w", f"(pair + d{s})")
            text.add(f"start = start + {CHAINS} * quarter", f"edge[0] = j{CHAINS - 1}")
        text.add("j = edge[0]", "i = start - pair - j")
        with text.block("for d in range(start, stop):"):
            text.add("right = i >= m")
            with text.block("if i < m and j < n:"):
                text.add("right = y[j] < x[i]")
            text.add("w = y[j] if right else x[i]")
            text.add("j = j + 1 if right else j", "i = i if right else i + 1")
            store("w", "d")
    return text.own(count, 16 * n * count // parts)


def _zeros(keys: _Keys, axis: int, memories: int, runs: int) -> OwnKernel:
    """The step behind the last one where keys have signs of zeros: one task for each line."""
    lines = _Lines(keys, axis, memories)
    text, pointers = lines.text, lines.pointers
    axes = lines.outer()
    count = prod([x.size for x in axes])
    many, size = text.integer(runs), text.integer(lines.size)
    with text.block("for t in range(lo, hi):"):
        text.add("negative = 0")
        with text.block(f"for r in range({many}):"):
            text.add(f"negative = negative + a{pointers + 1}[t * {many} + r]")
        with text.block("if negative > 0:"):
            lines.begin(axes, "t")
            _first_zero(text, f"{lines.element(1, 'mid')} < {keys.source}(0)", size)
            _signs(lines, "z")
    return text.own(count, count)


def long_sort(operands: Sequence[Operand], axis: int) -> OwnKernel | None:
    """The kernel of a sort by the first operand, which the others follow; None where keys and
    places do not fit into 64 bits."""
    keys = _Keys(operands)
    shape = operands[0].shape
    if not keys.possible or not prod(shape) or shape[axis] >= 1 << 31:
        return None
    n = shape[axis]
    count, threads = prod(shape) // n, config.threads
    if threads < 2 or count >= threads or n < SHARED:
        if keys.words:
            return _words(keys, axis)
        return (_beside if axis != len(shape) - 1 and shape[-1] > 1 else _alone)(keys, axis)
    runs = 2
    while runs < min(threads, MOST_RUNS):
        runs *= 2
    width = -(-n // runs // PART) * PART
    memory = [(keys.code, count * n)]
    if keys.signed_zeros:
        memory.append(("i8", count * runs))
    source = 2 * len(operands)
    spare = source + len(memory)
    if 2 * width < n:
        memory.append((keys.code, count * n))
    here = keys, axis, len(memory)
    steps = [_runs(*here, width, runs)]
    while width < n:
        steps.append(_merge(*here, width, source, None if 2 * width >= n else spare))
        source, spare, width = spare, source, 2 * width
    if keys.signed_zeros:
        steps.append(_zeros(*here, runs))
    first, *rest = steps
    return replace(first, memory=tuple(memory), then=tuple(rest))
