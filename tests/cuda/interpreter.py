"""An interpreter of PTX that executes kernels on simulated memory, on any machine.

It supports what LLVM emits for generated kernels. All threads of a grid are one vector. Where they
diverge, the threads at the lowest position run first, so that threads converge again. It raises
errors where a GPU would fail silently: accesses that are out of bounds or unaligned, barriers that
some threads never reach, and shuffles with a thread that is elsewhere. Rounding follows the PTX
specification; approximate instructions return the nearest number or an adjacent one.
"""

from __future__ import annotations

import itertools
import re
from typing import Any

import numpy as np
from cuda.instructions import END, PTXError, decode, dtype_of

__all__ = ["Memory", "Module", "PTXError"]

LOCAL, SHARED, GLOBAL = 1 << 32, 1 << 36, 1 << 40
_STEP = 1 << 38  # from one allocation to the next


class Memory:
    """Allocations with addresses that are far apart, so that overruns are detected."""

    def __init__(self) -> None:
        self.blocks: dict[int, tuple[np.ndarray, int]] = {}
        self.serials = itertools.count(1)

    def alloc(self, nbytes: int) -> int:
        """Allocate bytes, filled with 0xA5, and return their address."""
        serial = next(self.serials)  # several threads may ask
        address = GLOBAL + _STEP * serial
        self.blocks[serial] = np.full(-(-nbytes // 16) * 16 + 16, 0xA5, np.uint8), nbytes
        return address

    def free(self, address: int) -> None:
        """Free an allocation."""
        del self.blocks[(address - GLOBAL) // _STEP]

    def bytes(self, address: int, nbytes: int) -> np.ndarray:
        """Return the bytes from an address on, as a view."""
        data, size = self.blocks[(address - GLOBAL) // _STEP]
        start = (address - GLOBAL) % _STEP
        if start + nbytes > size:
            raise PTXError(f"{start + nbytes} bytes of an allocation of {size}")
        return data[start : start + nbytes]

    def put(self, array: np.ndarray, shift: int = 0) -> int:
        """Copy an array to a new allocation, `shift` bytes from its start, and return its
        address.
        """
        flat = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        address = self.alloc(flat.size + shift) + shift
        self.bytes(address, flat.size)[:] = flat
        return address

    def get(self, address: int, like: np.ndarray) -> np.ndarray:
        """Return a copy of the memory at an address, with the shape and dtype of another array."""
        data = self.bytes(address, like.nbytes).copy()
        return data.view(like.dtype).reshape(like.shape)


class Function:
    """A function of a module: its first position, its parameters and its stack size."""

    def __init__(self, name: str, kernel: bool, params: list[str]) -> None:
        self.name, self.kernel, self.params = name, kernel, params
        self.start = 0
        self.local = 0  # bytes of its own memory of a thread
        self.depot = 0  # where these begin
        self.max_threads = 1024


_HEAD = re.compile(
    r"\.(entry|func)\s*(?:\([^)]*\)\s*)?([\w$]+)\s*\(([^)]*)\)\s*((?:\.\w+[^{;]*)?)\{(.*?)^\}",
    re.S | re.M,
)
_PARAM = re.compile(r"\.param\s+[^,]*?([\w$]+)(?:\[\d+\])?\s*(?:,|$)", re.S)
_DATA = re.compile(
    r"\.(global|shared|const)\s+\.align\s+(\d+)\s+\.(\w+)\s+([\w$]+)(?:\[(\d*)\])?"
    r"(?:\s*=\s*(?:\{([^}]*)\}|([\w.]+)))?\s*;"
)


class Module:
    """The kernels of a PTX text."""

    def __init__(self, text: str) -> None:
        self.text = text = re.sub(r"//[^\n]*", "", text)
        self.symbols: dict[str, int] = {}
        self.constants: list[tuple[str, np.ndarray]] = []
        self.shared = 0
        self.unsized: list[
            str
        ] = []  # arrays in shared memory after the others; the launch gives its size
        self.local = 0
        self.functions: dict[str, Function] = {}
        self.code: list[Any] = []
        self.registers: dict[str, np.dtype] = {}
        for data in _DATA.finditer(text):
            self._data(*data.groups())
        # Functions come before kernels, so that threads in a call go first and meet again.
        heads = sorted(_HEAD.finditer(text), key=lambda m: m[1] == "entry")
        bodies = []
        for m in heads:
            f = Function(m[2], m[1] == "entry", _PARAM.findall(m[3]))
            if limit := re.search(r"\.maxntid\s+(\d+)", m[4]):
                f.max_threads = int(limit[1])
            self.functions[f.name] = f
            bodies.append((f, m[5]))
        for f, body in bodies:
            self._body(f, body)
        for at, thunk in enumerate(self.code):
            self.code[at] = thunk()

    def _data(
        self,
        space: str,
        align: str,
        kind: str,
        name: str,
        count: str | None,
        values: str | None,
        value: str | None,
    ) -> None:
        dtype = dtype_of(kind)
        size = dtype.itemsize * int(count or 1)
        if space == "shared" and count == "":
            self.unsized.append(name)
            return
        if space == "shared":
            self.shared = -(-self.shared // int(align)) * int(align)
            self.symbols[name] = SHARED + self.shared
            self.shared += size
            return
        numbers = [int(v, 0) for v in (values or value or "0").split(",")]
        array = np.zeros(size // dtype.itemsize, dtype)
        array[: len(numbers)] = np.array(numbers, object).astype(dtype)
        self.constants.append((name, array))

    def _body(self, f: Function, body: str) -> None:
        f.start = len(self.code)
        f.depot = self.local
        for align, name, size in re.findall(
            r"\.local\s+\.align\s+(\d+)\s+\.b8\s+([\w$]+)\[(\d+)\]", body
        ):
            f.local = -(-f.local // int(align)) * int(align)
            self.symbols[name] = LOCAL + f.depot + f.local
            f.local += int(size)
        self.local += -(-f.local // 16) * 16
        for kind, name, count in re.findall(r"\.reg\s+\.(\w+)\s+(%\w+)(?:<(\d+)>)?;", body):
            names = [f"{name}{k}" for k in range(int(count))] if count else [name]
            for n in names:
                self.registers[f"{f.name} {n}"] = dtype_of(kind)
        labels: dict[str, int] = {}
        for line in body.split("\n"):
            line = line.strip()
            if label := re.fullmatch(r"([\w$]+):", line):
                labels[label[1]] = len(self.code)
            elif line and line[0] not in ".{}":
                self.code.append(self._later(line.rstrip(";"), f, labels))

    def _later(self, line: str, f: Function, labels: dict[str, int]) -> Any:
        return lambda: decode(line, f, labels, self)

    def launch(
        self, name: str, blocks: Any, threads: Any, arguments: list[int], memory: Memory,
        shared: int = 0,
    ) -> Machine:  # fmt: skip
        """Run a kernel. Blocks and threads are numbers or tuples of up to three; arguments are
        64-bit words.
        """
        f = self.functions[name]
        if len(arguments) != len(f.params):
            raise PTXError(f"{name} takes {len(f.params)} arguments; got {len(arguments)}")
        if np.prod(threads) > f.max_threads:
            raise PTXError(f"{name} has blocks of {f.max_threads} threads; got {threads}")
        machine = Machine(self, blocks, threads, memory, shared)
        machine.parameters = {
            p: np.uint64(a & (2**64 - 1)) for p, a in zip(f.params, arguments, strict=True)
        }
        machine.run(f.start)
        return machine


def _three(sizes: Any) -> list[int]:
    """Return a size along each of three axes."""
    return [*(sizes if isinstance(sizes, tuple) else (sizes,)), 1, 1][:3]


def _indices(number: np.ndarray, sizes: list[int]) -> list[np.ndarray]:
    """Return indices along three axes, of which the first varies fastest."""
    x, y, _ = sizes
    return [i.astype(np.uint32) for i in (number % x, number // x % y, number // (x * y))]


class Machine:
    """The state of a launch."""

    def __init__(
        self, module: Module, blocks: Any, threads: Any, memory: Memory, shared: int = 0
    ) -> None:
        self.module, self.memory = module, memory
        grid, sides = _three(blocks), _three(threads)
        blocks, threads = int(np.prod(grid)), int(np.prod(sides))
        self.threads = threads
        n = self.n = blocks * threads
        self.block = np.repeat(np.arange(blocks, dtype=np.int64), threads)
        thread = np.tile(np.arange(threads, dtype=np.uint32), blocks)
        self.lane = thread & np.uint32(31)
        self.special: dict[str, Any] = {
            "%laneid": self.lane,
            "%lanemask_lt": (np.uint32(1) << self.lane) - np.uint32(1),
            "%dynamic_smem_size": np.uint32(shared),
        }
        for axis, a, b in zip(
            "xyz", _indices(thread, sides), _indices(self.block, grid), strict=True
        ):
            self.special |= {f"%tid.{axis}": a, f"%ctaid.{axis}": b}
        for axis, a, b in zip("xyz", sides, grid, strict=True):
            self.special |= {f"%ntid.{axis}": np.uint32(a), f"%nctaid.{axis}": np.uint32(b)}
        self.registers = {k: np.zeros(n, d) for k, d in module.registers.items()}
        self.parameters: dict[str, Any] = {}
        self.passed: dict[str, np.ndarray] = {}  # parameters of calls, bytes of each thread
        self.returns: dict[str, np.ndarray] = {}
        self.carry = np.zeros(n, bool)
        behind = -(-module.shared // 16) * 16
        self.reach = behind + shared if shared else module.shared
        self.shared = np.zeros((blocks, behind + -(-shared // 16) * 16), np.uint8)
        self.local = np.full((n, -(-module.local // 16) * 16), 0xA5, np.uint8)
        self.symbols = dict(module.symbols) | dict.fromkeys(module.unsized, SHARED + behind)
        self.constants: dict[int, tuple[np.ndarray, int]] = {}
        for k, (name, array) in enumerate(module.constants, 1):
            flat = array.view(np.uint8)
            padded = np.zeros(-(-flat.size // 16) * 16, np.uint8)
            padded[: flat.size] = flat
            self.constants[-k] = (padded, flat.size)
            self.symbols[name] = GLOBAL - k * (1 << 20)
        self.pc = np.zeros(n, np.int64)
        self.waiting = np.zeros(n, bool)  # at a barrier
        self.stalled = np.zeros(n, bool)  # at a shuffle
        self.warp = self.block * -(-threads // 32) + thread // 32
        self.width = np.bincount(self.warp)
        self.steps = 0  # instructions, each for all threads that are there
        self.counts: dict[str, int] = {}  # of accesses to memory, by instruction
        # Pieces of 32 bytes of memory that warps touched, and as many as would have held the bytes.
        self.sectors = self.least = 0

    def run(self, start: int) -> None:
        self.pc[:] = start
        code, pc, everyone = self.module.code, self.pc, slice(None)
        with np.errstate(all="ignore"):
            while True:
                still = self.waiting | self.stalled
                here = np.where(still, END, pc) if still.any() else pc
                now = int(here.min())
                if now >= END:
                    if still.any():
                        raise PTXError("a barrier or a shuffle that some threads never reach")
                    return
                chosen: Any = here == now
                chosen = everyone if chosen.all() else np.flatnonzero(chosen)
                # All that are here go on together until they part, wait, or meet others.
                limit = END
                if chosen is not everyone:
                    others = here[here > now]
                    limit = int(others.min()) if others.size else END
                at = now
                while at is not None and at < limit:
                    self.steps += 1
                    following = code[at](self, chosen, at)
                    if following is None or following == at + 1:
                        at += 1
                    elif following < 0:  # their places are set
                        at = None
                    elif following < at:
                        pc[chosen] = following
                        at = None
                    else:
                        at = following
                if at is not None:
                    pc[chosen] = at

    # --- memory ---

    def place(self, address: np.ndarray, chosen: Any, size: int, width: int) -> tuple[Any, Any]:
        """Return the memory that addresses refer to, and the offsets in it."""
        if (address % width).any():
            raise PTXError(f"an access of {width} bytes that is not aligned")
        low, high = int(address.min()), int(address.max())
        if low >= GLOBAL + _STEP:
            k = (low - GLOBAL) // _STEP
            if (high - GLOBAL) // _STEP != k or k not in self.memory.blocks:
                raise PTXError(f"an access to no allocation: {low:#x} to {high:#x}")
            data, nbytes = self.memory.blocks[k]
            base = GLOBAL + _STEP * k
            if high - base + size > nbytes:
                raise PTXError(
                    f"out of bounds: bytes {low - base} to {high - base + size} of {nbytes}"
                )
            return data, address - base
        if low >= GLOBAL // 2:
            k = (low - GLOBAL) // (1 << 20)
            data, nbytes = self.constants[k]
            if high - (GLOBAL + k * (1 << 20)) + size > nbytes:
                raise PTXError("out of bounds of a table")
            return data, address - (GLOBAL + k * (1 << 20))
        if low >= SHARED:
            room, base, which = self.shared, SHARED, self.block[chosen]
            allocated = self.reach
        elif low >= LOCAL:
            room, base, which = self.local, LOCAL, np.arange(self.n)[chosen]
            allocated = self.module.local
        else:
            raise PTXError(f"an access to address {low:#x}")
        if high - base + size > allocated:
            raise PTXError(f"out of bounds of memory of {allocated} bytes: {high - base + size}")
        return room.reshape(-1), which * room.shape[1] + (address - base)

    def note(self, address: np.ndarray, chosen: Any, width: int) -> None:
        """Count the memory sectors that an access touches."""
        if int(address.min()) < GLOBAL + _STEP:
            return
        warps = self.warp[chosen]
        where, whose = np.unique(np.stack([warps, address]), axis=1)
        bytes_of = np.bincount(where) * width
        self.least += int((-(-bytes_of // 32)).sum())
        first, last = whose // 32, (whose + width - 1) // 32
        touched = np.concatenate([np.stack([where, first]), np.stack([where, last])], axis=1)
        self.sectors += np.unique(touched, axis=1).shape[1]

    def note_atomic(self, address: np.ndarray, chosen: Any) -> None:
        """Called with the addresses of an atomic operation. Subclasses may count these."""

    def groups(self, address: np.ndarray, chosen: Any) -> list[tuple[Any, Any, np.ndarray]]:
        """Split accesses by allocation: which of the chosen threads, the threads, and the
        addresses.
        """
        if int(address.min()) // _STEP == int(address.max()) // _STEP:
            return [(slice(None), chosen, address)]
        whose = address // _STEP
        threads = np.arange(self.n)[chosen]
        return [(m, threads[m], address[m]) for m in (whose == k for k in np.unique(whose))]
