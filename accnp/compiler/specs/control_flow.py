"""Write the source of a kernel that runs loops and branches and calls other kernels.

`engine/native.py` decides which kernels a body calls and where its values are; this module writes
the statements:

    def kernel(lo, hi, ...):           # fori_loop(0, n, lambda i, x: x + 1.5, x)
        c0 = cell_i4()
        d0 = cell_i4()
        c0[0] = p0[0]
        for i in range(n0):
            k1c9f2e(0, 1, c0, d0, ...)
            k83a04b(0, n1, c1, b1, ...)
            c0[0] = d0[0]
            s_f4 = c1
            c1 = b1
            b1 = s_f4

A value of one element is in a stack buffer of one element ("cell"), which LLVM keeps in a register.
Threads share each kernel that is large enough:
`parallel_for(k83a04b, ...)`. A long loop ends if `stopped(count, mask)` is true, which asks whether
an interrupt is to end it whenever count & mask is 0.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass

from accnp.compiler.library.writing.source_lines import SourceLines
from accnp.compiler.specs.launches import as_callee
from accnp.config import config
from accnp.ir.generated import CalledKernel, GeneratedKernel
from accnp.ir.kernel import CODES

__all__ = ["SIZES", "ControlText", "Spot"]

# The last arguments of a loop with shared kernels: the function that shares a kernel among threads,
# the thread pool, and the number of its worker threads.
SHARING_ARGUMENTS = ("sharer", "pool", "helpers")
# Parts of a shared kernel per thread. With more parts, more of them move to another thread, and to
# another cache, from one iteration to the next.
PARTS = 8
SIZES = {code: int(code[1:]) for code in CODES}  # bytes of an element


@dataclass(eq=False, slots=True)
class Spot:
    """The location of a value: the name of a typed pointer, and the number of elements."""

    name: str
    code: str
    count: int

    @property
    def is_cell(self) -> bool:
        return self.count == 1


class ControlText:
    """The source of a kernel that calls others, and its arguments.

    Attributes:
        w: the statements.
        head: statements before them, which make cells and buffers.
        arguments: names and codes of the pointers.
        ints: the integer arguments `n0`, `n1`, ...
    """

    def __init__(self) -> None:
        self.w = SourceLines()
        self.w.depth = 1
        self.head: list[str] = []
        self.arguments: list[tuple[str, str]] = []
        self.ints: list[int] = []
        self.callees: dict[str, CalledKernel] = {}
        self.products = False  # whether a callee multiplies matrices
        self.shares = 0  # see `GeneratedKernel`
        self.sends = False  # whether it or a callee sends messages to other processes
        self.names = 0

    # --- names and arguments ---

    def fresh(self, letter: str) -> str:
        """Return a new name."""
        self.names += 1
        return f"{letter}{self.names - 1}"

    def integer(self, value: int) -> str:
        """Return the name of a new int64 argument.

        Equal values get different arguments, because otherwise the text would depend on sizes.
        """
        self.ints.append(value)
        return f"n{len(self.ints) - 1}"

    def length(self, count: int) -> str:
        """Return the text of a number of elements, or of the extent of a kernel."""
        return "1" if count == 1 else self.integer(count)

    def pointer(self, letter: str, code: str, count: int) -> Spot:
        """Return a new pointer argument."""
        name = self.fresh(letter)
        self.arguments.append((name, code))
        return Spot(name, code, count)

    def cell(self, code: str) -> Spot:
        """Return a stack buffer for one element."""
        return self._allocate_spot("cell", code, 1)

    def stack(self, code: str, count: int) -> Spot:
        """Return a buffer on the stack."""
        return self._allocate_spot("stack", code, count)

    def _allocate_spot(self, kind: str, code: str, count: int) -> Spot:
        name = self.fresh("t")
        self.head.append(f"{name} = {kind}_{code}()")
        return Spot(name, code, count)

    # --- statements on values ---

    def move(self, to: Spot, source: Spot) -> None:
        """Copy a value to another location."""
        if to.name == source.name or to.count == 0:
            return
        if to.is_cell:
            self.w.add(f"{to.name}[0] = {source.name}[0]")
        else:
            self.w.add(f"move({to.name}, {source.name}, {self.length(to.count)})")

    def at(self, x: Spot, index: str, count: int) -> Spot:
        """Return the elements of an array from an index on."""
        name = self.fresh("x")
        self.w.add(f"{name} = at({x.name}, {index})")
        return Spot(name, x.code, count)

    def exchange(self, a: Spot, b: Spot) -> None:
        """Exchange the buffers of two names."""
        s = f"s_{a.code}"
        self.w.add(f"{s} = {a.name}", f"{a.name} = {b.name}", f"{b.name} = {s}")

    def name_initial_buffer(self, x: Spot, name: str) -> Spot:
        """Give a name to the buffer that a value has at the start, before exchanges."""
        self.head.append(f"{name} = {x.name}")
        return Spot(name, x.code, x.count)

    def initialize(self, x: Spot, value: int) -> None:
        """Set the single element of a value before all loops."""
        self.head.append(f"{x.name}[0] = {self.integer(value)}")

    # --- calls ---

    def offset(self, x: Spot, nbytes: int) -> str:
        """Return the argument for an array from a byte on."""
        if not nbytes:
            return x.name
        return f"at({x.name}, {self.integer(nbytes // SIZES[x.code])})"

    def callee(self, text: GeneratedKernel) -> str:
        """Return the name of a kernel, which is derived from its content, and add its text."""
        own = as_callee(text)
        if own.name not in self.callees:
            for inner in text.callees:
                self.callees.setdefault(inner.name, inner)
            self.callees[own.name] = own
            self.products |= text.products
        self.sends |= text.sends
        return own.name

    def call(self, text: GeneratedKernel, arguments: list[str], extent: int, share: bool) -> None:
        """Write the call of a kernel; `arguments` are its pointers, and threads may `share` it."""
        name = self.callee(text)
        if text.shares:  # a nested loop with shared kernels
            self.shares = max(self.shares, text.shares)
            arguments += [
                *[self.integer(n) for n in text.ints[: -len(SHARING_ARGUMENTS)]],
                *SHARING_ARGUMENTS,
            ]
        else:
            arguments += [self.integer(n) for n in text.ints]
        if share:
            part = -(-extent // (PARTS * config.threads))
            part = -(-part // 64) * 64 if part >= 64 else part
            self.shares = max(self.shares, -(-extent // part))
            sizes = [self.integer(extent), self.integer(part)]
            self.w.add(f"parallel_for({', '.join([name, *SHARING_ARGUMENTS, *sizes, *arguments])})")
            return
        self.w.add(f"{name}({', '.join(['0', self.length(extent), *arguments])})")

    def message(self, address: int, x: str, out: Spot, nbytes: int) -> None:
        """Send a message to other processes. An error ends the innermost loop."""
        self.sends = True
        passed = f"{self.integer(address)}, {x}, {out.name}, {self.integer(nbytes)}"
        if self.w.in_loop:
            with self.w.block(f"if send_message({passed}):"):
                self.w.add("break")
        else:
            self.w.add(f"{self.fresh('e')} = send_message({passed})")

    # --- control flow ---

    def rows(self, length: str, reverse: bool) -> AbstractContextManager[None]:
        """Open the loop over the rows of a scan; `i` is the index of the row."""
        bounds = f"{length} - 1, -1, -1" if reverse else length
        return self.w.block(f"for i in range({bounds}):")

    @contextmanager
    def strips_of_rows(self, length: str, reverse: bool, count: int, strip: int) -> Generator[None]:
        """Open the same loop over `count` rows, which can be stopped between strips of rows. LLVM
        optimizes the loop over a strip, which contains no call."""
        u, first, last, t = [self.fresh("u") for _ in range(4)]
        rows = self.integer(strip)
        with self.w.block(f"for {u} in range({self.integer(-(-count // strip))}):"):
            self.end_if_stopped("0", "0")
            self.w.add(
                f"{first} = {u} * {rows}",
                f"{last} = {first} + {rows}",
                f"{last} = {last} if {last} < {length} else {length}",
            )
            with self.w.block(f"for {t} in range({first}, {last}):"):
                self.w.add(f"i = {length} - 1 - {t}" if reverse else f"i = {t}")
                yield

    @contextmanager
    def open_remaining_rows(
        self, first: Spot, length: str, reverse: bool, strip: int
    ) -> Generator[None]:
        """Open the same loop, from the iteration `t` that `first` contains."""
        with self.w.block(f"for t in range({first.name}[0], {length}):"):
            self.end_if_stopped("t", self.integer(strip - 1))
            self.w.add(f"i = {length} - 1 - t" if reverse else "i = t")
            yield

    @contextmanager
    def endless(self, strip: int) -> Generator[None]:
        """Open a loop without a known count, which can be stopped after each `strip` iterations (a
        power of two), or not at all (0)."""
        count = self.fresh("u")
        if strip:
            self.w.add(f"{count} = 0")
        with self.w.block("while True:"):
            if strip:
                self.w.add(f"{count} = {count} + 1")
                self.end_if_stopped(count, self.integer(strip - 1))
            yield

    def end_if_stopped(self, count: str, mask: str) -> None:
        """End the innermost loop if an interrupt is to end it; asked if count & mask is 0."""
        with self.w.block(f"if stopped({count}, {mask}):"):
            self.w.add("break")

    def stop_unless(self, condition: str) -> None:
        """End the innermost loop if a condition is false."""
        with self.w.block(f"if not {condition}:"):
            self.w.add("break")

    def start_counter(self, first: Spot) -> None:
        """Begin to count iterations, in `t`."""
        self.head.append(f"t = {first.name}[0]")

    def increment_counter(self) -> None:
        """Count an iteration."""
        self.w.add("t = t + 1")

    def stop_if(self, flag: Spot, stopped: Spot) -> None:
        """End the innermost loop if a flag is true, and store the number of its iteration `t`."""
        with self.w.block(f"if {flag.name}[0]:"):
            self.w.add(f"{stopped.name}[0] = t", "break")

    @contextmanager
    def blocks(self, total: int, size: int) -> Generator[None]:
        """Open the loop over blocks of `total` elements: `start` is the first element, `m` the
        number of elements."""
        block = self.integer(size)
        count = self.integer(total)
        with self.w.block("for u in range(lo, hi):"):
            self.w.add(
                f"start = u * {block}", f"m = {count} - start", f"m = m if m < {block} else {block}"
            )
            yield

    def truth(self, flag: Spot) -> str:
        """Return the text of the condition under which a loop continues."""
        return f"{flag.name}[0]"

    def any_truth(self, flags: Spot) -> str:
        """Return the text of whether any flag of a block is true."""
        return f"block_or({flags.name}, m)"

    def branch(self, index: Spot, i: int, last: int) -> AbstractContextManager[None]:
        """Open branch i of 0..last; an index outside of this range means the nearest branch."""
        if index.code == "b1":
            test = f"not {index.name}[0]"
        else:
            test = f"{index.name}[0] <= 0" if i == 0 else f"{index.name}[0] == {i}"
        head = "else:" if i == last and i else f"{'if' if i == 0 else 'elif'} {test}:"
        return self.w.block("if True:" if last == 0 else head)

    # --- the kernel ---

    def generated(self, constants: Sequence[tuple[str, str]], weight: int) -> GeneratedKernel:
        """Return the kernel; `constants` are names and codes of its last pointers."""
        text = GeneratedKernel()
        pointers = [*self.arguments, *constants]
        names = [*[n for n, _ in pointers], *[f"n{k}" for k in range(len(self.ints))]]
        if self.shares:
            names += SHARING_ARGUMENTS
            self.ints += [0] * len(SHARING_ARGUMENTS)
        text.shares, text.sends = self.shares, self.sends
        w = SourceLines()
        for called in self.callees.values():
            w.lines += [*called.source.rstrip("\n").split("\n"), "", ""]
        with w.block(f"def kernel({', '.join(['lo', 'hi', *names])}):"):
            w.add(*self.head)
            w.lines += self.w.lines
        text.source, text.whiles, text.products = w.text(), self.w.whiles, self.products
        text.callees = tuple(self.callees.values())
        text.signature = (*[f"{c}*" for _, c in pointers], *["i8"] * len(self.ints))
        text.ints = self.ints
        text.weight = weight
        return text
