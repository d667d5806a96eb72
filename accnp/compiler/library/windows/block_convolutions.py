"""GPU kernels of convolutions that neither copy windows to a matrix nor call a library.

`convolution` takes the memory layout of the operands and the parameters of the op, and returns an
`OwnKernel`, which plans and loops in machine code launch like generated kernels. If cuBLAS is
available, large convolutions are matrix products of copied windows instead
(`engine/device_convolutions.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING

from accnp.compiler.library.windows.convolutions import Case, case_of
from accnp.compiler.library.writing.arithmetic import multiply_add
from accnp.compiler.library.writing.loop_nests import Text, total
from accnp.ir.aval import Aval
from accnp.ir.kernel import Operand, OwnKernel, dtype_code, replace
from accnp.primitives.convolution import windows_of
from accnp.primitives.windows import Window

if TYPE_CHECKING:
    from accnp.ir.op_types import Params


__all__ = ["convolution", "index", "moved", "seen"]

TILE = 64  # positions, and features, of a thread block
STEP = 16  # input features at a time
WIDTH = TILE + 1  # stride between them, so that threads access different banks along either axis
FEATURES, PLACES = 16, 64  # minimum numbers for which a thread block computes tiles
# Sums of at least LONG_SUM terms are divided into parts if there are fewer blocks, or threads.
LONG_SUM, BLOCKS, THREADS = 512, 264, 1 << 15


def convolution(operands: Sequence[Operand], results: Sequence[Aval], p: Params) -> OwnKernel:
    """Return the kernel of `conv_general_dilated`.

    With many positions and features, a thread block computes 64 of each: for each tap, it loads 16
    input features at a time into shared memory, so that each number that is loaded is used 64
    times. Otherwise, one thread computes each element of the result. If a small result is summed
    over many taps, such as the gradient of weights, parts of the taps are summed separately, and a
    second kernel adds the parts in order.
    """
    lhs, rhs = operands
    (result,) = results
    windows = windows_of(lhs.shape, rhs.shape, p)
    case = case_of(lhs, rhs, result, windows, p)
    code = dtype_code(result.dtype)
    acc = {"f2": "f4", "e2": "f4"}.get(code, code)
    rows = case.examples * prod([w.places for w in windows])
    taps = prod([w.taps for w in windows])
    work = case.groups * rows * case.features * case.inputs * taps
    some = all(w.size for w in windows)  # as in `convolution_kernel`
    if acc in ("f4", "f8") and case.features >= FEATURES and rows >= PLACES and some:
        return _tiles(code, acc, case, work)
    return _elements(code, acc, case, work)


def index(text: Text, name: str, axes: Sequence[tuple[str, int]]) -> None:
    """Split an index into those of several axes; the last axis is the fastest."""
    for k, (part, size) in reversed([*enumerate(axes)]):
        if k == 0:
            text.add(f"{part} = {name}")
            return
        rest, n = f"{name}_{k}", text.integer(size)
        text.add(f"{rest} = {name} // {n}", f"{part} = {name} - {rest} * {n}")
        name = rest


def moved(text: Text, *steps: tuple[str, int]) -> str:
    return total([term for index, step in steps for term in text.times(index, step)])


def _window_starts(text: Text, windows: Sequence[Window]) -> list[str]:
    """Return statements that compute where windows begin in the dilated array."""
    starts: list[str] = []
    for d, w in enumerate(windows):
        low = f" - {text.integer(w.low)}" if w.low else ""
        starts.append(f"s{d} = {total(text.times(f'p{d}', w.stride))}{low}")
    return starts


def seen(text: Text, d: int, w: Window, where: str) -> tuple[list[str], str]:
    """Return statements that compute the index of an element, z, from a position in the dilated
    array, and the condition under which there is such an element."""
    z, size = f"z{d}", text.integer(w.size)
    lines = [f"{z} = {where}"]
    test = f"({z} >= 0) & ({z} < {size})"
    if w.base > 1:
        base = text.integer(w.base)
        lines += [f"b{d} = {z}", f"{z} = b{d} // {base}"]
        test += f" & ({z} * {base} == b{d})"
    return lines, test


def _input_position(text: Text, d: int, w: Window) -> tuple[list[str], str]:
    """Return the same for tap k of a window that begins at s."""
    return seen(text, d, w, f"s{d} + {total(text.times(f'k{d}', w.dilation))}")


class _Sums:
    """The source of sums over taps and input features, which may be divided into parts."""

    def __init__(self, code: str, acc: str, case: Case, target_tasks: int, tasks: int = 0) -> None:
        """`target_tasks` is the number of tasks to reach by dividing the sums. Without division,
        there are `tasks` tasks, by default one for each element."""
        self.code, self.acc, self.case = code, acc, case
        self.space = range(len(case.windows))
        taps = [w.taps for w in case.windows]
        places = prod([w.places for w in case.windows])
        self.size = case.groups * case.features * case.examples * places
        first = taps[0] if taps and prod(taps) * case.inputs >= LONG_SUM else 1
        parts = max(1, min(first, target_tasks // max(1, tasks or self.size)))
        self.each = -(-first // parts)  # taps of the first axis in a part
        self.parts = -(-first // self.each)
        self.text = Text(4 if self.parts > 1 else 3)

    def open_taps(self, d: int) -> None:
        """Open the loop over the taps of an axis."""
        taps = self.text.integer(self.case.windows[d].taps)
        limits = taps
        if d == 0 and self.parts > 1:
            each = self.text.integer(self.each)
            limits = f"part * {each}, fmin(part * {each} + {each}, {taps})"
        self.text.add(f"for k{d} in range({limits}):")
        self.text.depth += 1

    def moved(self, *steps: tuple[str, int]) -> str:
        return moved(self.text, *steps)

    def along(self, letter: str, steps: Sequence[int]) -> list[tuple[str, int]]:
        return [(f"{letter}{d}", step) for d, step in enumerate(steps)]

    @property
    def result(self) -> str:
        """Return the address of the result, or of the part of it that a task computes."""
        if self.parts == 1:
            return "a2"
        return f"at(a3, part * {self.text.integer(self.size)})"

    def rounded(self, y: str) -> str:
        return f"{self.code}({y})" if self.parts == 1 else y

    def own(self, count: int, work: int, block_threads: int = 0) -> OwnKernel:
        own = self.text.own(count, work, block_threads)
        if self.parts == 1:
            return own
        text = Text(4)
        parts, size = text.integer(self.parts), text.integer(self.size)
        with text.block("for t in range(lo, hi):"):
            text.add("y = a3[t]")
            with text.block(f"for k in range(1, {parts}):"):
                join = "|" if self.acc == "b1" else "+"
                text.add(f"y = {self.acc}(y {join} a3[k * {size} + t])")
            text.add(f"a2[t] = {self.code}(y)")
        then = text.own(self.size, self.size * self.parts)
        return replace(own, memory=((self.acc, self.parts * self.size),), then=(then,))


def _elements(code: str, acc: str, case: Case, work: int) -> OwnKernel:
    """Return a kernel in which each thread computes one element of the result."""
    (xg, wg, yg), (xn, yn), (wo, yo) = case.group, case.example, case.feature
    sums = _Sums(code, acc, case, THREADS)
    text, space = sums.text, sums.space
    axes = [("g", case.groups, yg), ("n", case.examples, yn), ("o", case.features, yo)]
    axes += [(f"p{d}", case.windows[d].places, case.out[d]) for d in space]
    # Adjacent threads write adjacent elements.
    axes.sort(key=lambda axis: -axis[2] if axis[1] > 1 else -(1 << 62))
    axes = [("part", sums.parts, 0), *axes]
    with text.block("for t in range(lo, hi):"):
        index(text, "t", [(name, n) for name, n, _ in axes])
        text.add(f"x = at(a0, {sums.moved(('g', xg), ('n', xn))})")
        text.add(f"w = at(a1, {sums.moved(('g', wg), ('o', wo))})", f"y = {acc}(0)")
        text.add(*_window_starts(text, case.windows))
        depth = text.depth
        for d, w in enumerate(case.windows):
            sums.open_taps(d)
            lines, test = _input_position(text, d, w)
            text.add(*lines, f"if {test}:")
            text.depth += 1
        text.add(f"u = at(x, {sums.moved(*sums.along('z', case.lhs))})")
        text.add(f"v = at(w, {sums.moved(*sums.along('k', case.rhs))})")
        with text.block(f"for c in range({text.integer(case.inputs)}):"):
            a = f"{acc}(u[{sums.moved(('c', case.input[0]))}])"
            b = f"{acc}(v[{sums.moved(('c', case.input[1]))}])"
            text.add("y = " + _multiply_add(acc, a, b))
        text.depth = depth
        text.add(f"z = {sums.result}")
        place = sums.moved(*[(name, step) for name, _, step in axes])
        text.add(f"z[{place}] = {sums.rounded('y')}")
    count = sums.size * sums.parts
    return sums.own(count, work + count)


def _multiply_add(acc: str, a: str, b: str) -> str:
    if acc[0] == "c":
        return f"y + cmul({a}, {b})"
    return multiply_add(acc, "y", a, b, fused=acc[0] == "f")


def _tiles(code: str, acc: str, case: Case, work: int) -> OwnKernel:
    """Return a kernel in which each thread block computes 64 positions (of all examples) by 64
    features. A thread has 4 by 4 of them, 16 apart, in registers."""
    (xg, wg, yg), (xn, yn), (_, yo) = case.group, case.example, case.feature
    rows = case.examples * prod([w.places for w in case.windows])
    tiles = [("g", case.groups), ("over", -(-rows // TILE)), ("along", -(-case.features // TILE))]
    count = prod([n for _, n in tiles])
    sums = _Sums(code, acc, case, BLOCKS, count)
    tiles, count = [("part", sums.parts), *tiles], count * sums.parts
    text, space, four = sums.text, sums.space, range(4)
    n_tasks, n_rows = text.integer(count), text.integer(rows)
    features, inputs = text.integer(case.features), text.integer(case.inputs)
    # Adjacent lanes of a warp write adjacent elements of the result.
    places, columns = ("me >> 4", "me & 15") if yo == 1 else ("me & 15", "me >> 4")
    text.add("me = thread_of_block()")
    text.add(*[f"{name} = shared_{acc}({STEP * WIDTH})" for name in "ab"])
    # For each position: the offsets of its example, of its result, and of the element at the tap.
    text.add(*[f"{name} = shared_i8({TILE})" for name in ("origin", "to", "seen")])
    text.add(*[f"begin{d} = shared_i8({TILE})" for d in space])
    text.add("task = block_of_grid()")
    with text.block(f"while task < {n_tasks}:"):
        index(text, "task", tiles)
        text.add(f"x = at(a0, {sums.moved(('g', xg))})", f"w = at(a1, {sums.moved(('g', wg))})")
        text.add(f"o0 = along * {TILE}")
        with text.block(f"if me < {TILE}:"):
            text.add(f"row = over * {TILE} + me", f"row = row if row < {n_rows} else {n_rows} - 1")
            sizes = [(f"p{d}", case.windows[d].places) for d in space]
            index(text, "row", [("n", case.examples), *sizes])
            text.add(f"origin[me] = {sums.moved(('n', xn))}")
            text.add(f"to[me] = {sums.moved(('n', yn), *sums.along('p', case.out))}")
            text.add(*_window_starts(text, case.windows), *[f"begin{d}[me] = s{d}" for d in space])
        text.add(*[f"y{i}{j} = {acc}(0)" for i in four for j in four])
        depth = text.depth
        for d in space:
            sums.open_taps(d)
        text.add("barrier()")
        with text.block(f"if me < {TILE}:"):
            positions = [_input_position(text, d, case.windows[d]) for d in space]
            text.add(*[f"s{d} = begin{d}[me]" for d in space])
            text.add(*[line for lines, _ in positions for line in lines])
            test = " & ".join(test for _, test in positions) or "me >= 0"
            where = sums.moved(*sums.along("z", case.lhs))
            text.add(f"seen[me] = origin[me] + {where} if {test} else -1")
        text.add(f"tap = {sums.moved(*sums.along('k', case.rhs))}")
        with text.block(f"for c0 in range(0, {inputs}, {STEP}):"):
            text.add("barrier()")
            _load_tiles(sums, features, inputs)
            text.add("barrier()", f"some = fmin({inputs} - c0, {STEP})")
            with text.block("for i in range(some):"):
                text.add(f"left = at(a, i * {WIDTH} + ({places}))")
                text.add(f"right = at(b, i * {WIDTH} + ({columns}))")
                text.add(*[f"u{i} = left[{16 * i}]" for i in four])
                text.add(*[f"v{j} = right[{16 * j}]" for j in four])
                text.add(*[f"y{i}{j} = fma(u{i}, v{j}, y{i}{j})" for i in four for j in four])
        text.depth = depth
        text.add("barrier()", f"r = {places}", f"o = o0 + ({columns})")
        text.add(f"z = at({sums.result}, {sums.moved(('g', yg), ('o', yo))})")
        for i in four:
            with text.block(f"if over * {TILE} + r + {16 * i} < {n_rows}:"):
                text.add(f"q = to[r + {16 * i}]")
                for j in four:
                    with text.block(f"if o + {16 * j} < {features}:"):
                        away = sums.moved((str(16 * j), yo))
                        text.add(f"z[q + {away}] = {sums.rounded(f'y{i}{j}')}")
        text.add("barrier()", "task = task + blocks()")
    return sums.own(count, work, 256)


def _load_tiles(sums: _Sums, features: str, inputs: str) -> None:
    """Write code that loads 16 input features of 64 positions to a, and of 64 output features to b.
    Adjacent threads load adjacent elements."""
    text, (xc, wc), wo = sums.text, sums.case.input, sums.case.feature[0]
    across = f"i = e & {STEP - 1}", f"r = e >> {STEP.bit_length() - 1}"
    down = f"i = e >> {TILE.bit_length() - 1}", f"r = e & {TILE - 1}"
    with text.block(f"for e in range(me, {STEP * TILE}, 256):"):
        text.add(*(across if xc == 1 else down), "c = c0 + i", f"v = {sums.acc}(0)", "q = seen[r]")
        with text.block(f"if (q >= 0) & (c < {inputs}):"):
            text.add(f"v = {sums.acc}(x[q + {sums.moved(('c', xc))}])")
        text.add(f"a[i * {WIDTH} + r] = v")
    with text.block(f"for e in range(me, {STEP * TILE}, 256):"):
        text.add(*(down if wo == 1 else across), "c = c0 + i", f"v = {sums.acc}(0)", "q = o0 + r")
        with text.block(f"if (q < {features}) & (c < {inputs}):"):
            text.add(f"v = {sums.acc}(w[tap + {sums.moved(('q', wo), ('c', wc))}])")
        text.add(f"b[i * {WIDTH} + r] = v")
