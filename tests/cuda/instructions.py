"""PTX instructions as functions of the interpreter's state, the selected threads and their
position.

`interpreter.py` passes one line of PTX and gets `step(machine, chosen, at)`, which executes the
instruction for the chosen threads and returns their next position: None for the following line,
another position, or -1 if the instruction has set the positions itself.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable
from typing import Any

import numpy as np
from cuda import arithmetic, warp_instructions
from cuda.arithmetic import PTXError

__all__ = ["END", "PTXError", "decode", "dtype_of"]

END = 1 << 60
_TYPES = {"pred": "?", "f": "f", "s": "i", "u": "u", "b": "u"}
Step = Callable[[Any, Any, int], "int | None"]
Read = Callable[[Any, Any], Any]


def dtype_of(kind: str) -> np.dtype:
    """Return the dtype of a PTX type: f32, s8, b64, pred."""
    if kind == "pred":
        return np.dtype(bool)
    return np.dtype(f"{_TYPES[kind[0]]}{int(kind[1:]) // 8}")


def view_as(data: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Return bytes as elements of a dtype, without an incomplete last element."""
    return data[: data.size // dtype.itemsize * dtype.itemsize].view(dtype)


def decode(line: str, function: Any, labels: dict[str, int], module: Any) -> Step:
    """Return the step function of a line of PTX."""
    m = re.fullmatch(r"(?:@(!?)(%\w+)\s+)?([a-z][\w.:]*)\s*(.*)", line)
    if m is None:
        raise PTXError(f"no instruction: {line!r}")
    op = m[3].split(".")
    args = [a.strip() for a in re.findall(r"\{[^}]*\}|\[[^\]]*\]|\([^)]*\)|[^,\s]+", m[4])]
    scope = _Scope(function, labels, module)
    branch = _BRANCHES.get(op[0])
    if branch is not None:
        return branch(op, args, scope, None if m[2] is None else (scope.name(m[2]), m[1] == "!"))
    step = _MOVES.get(op[0], _arithmetic)(op, args, scope)
    if m[2] is None:
        return step
    return _guarded(step, scope.name(m[2]), m[1] == "!")


class _Scope:
    """Reads and writes the operands of a function's instructions."""

    def __init__(self, function: Any, labels: dict[str, int], module: Any) -> None:
        self.function, self.labels, self.module = function, labels, module

    def name(self, register: str) -> str:
        return f"{self.function.name} {register}"

    def read(self, operand: str, kind: str) -> Read:
        """Return a function that reads an operand as an array of a type, for the chosen threads."""
        dtype = dtype_of(kind)
        if operand.startswith("%"):
            name = self.name(operand)
            known = self.module.registers.get(name)
            if known is None:
                return _special(operand, dtype)
            if known == dtype:
                return lambda m, c: m.registers[name][c]
            if known.itemsize == dtype.itemsize:
                return lambda m, c: m.registers[name][c].view(dtype)
            # A wider register: its low bits.
            unsigned = np.dtype(f"u{dtype.itemsize}")
            return lambda m, c: m.registers[name][c].astype(unsigned).view(dtype)
        number = _number(operand, dtype)
        if number is None:
            return lambda m, c: np.uint64(m.symbols[operand])
        return lambda m, c: number

    def write(self, operand: str) -> Callable[[Any, Any, Any], None]:
        """Return a function that writes a register; narrower values are sign-extended."""
        name = self.name(operand)
        known = self.module.registers[name]

        def put(m: Any, c: Any, value: Any) -> None:
            value = np.asarray(value)
            if value.dtype != known:
                if value.dtype.itemsize == known.itemsize and known != np.bool_:
                    value = (
                        np.ascontiguousarray(value).view(known) if value.ndim else value.view(known)
                    )
                elif value.dtype.kind == "i":
                    value = value.astype(f"i{known.itemsize}").view(known)
                else:
                    value = value.astype(known)
            m.registers[name][c] = value

        return put

    def address(self, operand: str) -> Callable[[Any, Any], np.ndarray]:
        m = re.fullmatch(r"\[\s*([%\w$]+)\s*(?:\+\s*(-?\d+))?\s*\]", operand)
        if m is None:
            raise PTXError(f"no address: {operand}")
        base, offset = self.read(m[1], "u64"), int(m[2] or 0)

        def of(machine: Any, c: Any) -> np.ndarray:
            a = np.asarray(base(machine, c)).astype(np.int64) + offset
            return np.broadcast_to(a, machine.block[c].shape)

        return of


def _special(register: str, dtype: np.dtype) -> Read:
    def read(m: Any, c: Any) -> Any:
        if register not in m.special:
            raise PTXError(f"no register {register}")
        value = m.special[register]
        return (value[c] if value.ndim else value).astype(dtype)

    return read


def _number(text: str, dtype: np.dtype) -> Any:
    """An immediate operand, or None for a symbol."""
    if text[:2] in ("0f", "0F"):
        bits = struct.unpack(">I", bytes.fromhex(text[2:]))[0]
        return np.array(bits, np.uint32).view(dtype if dtype.itemsize == 4 else np.float32)[()]
    if text[:2] in ("0d", "0D"):
        bits = struct.unpack(">Q", bytes.fromhex(text[2:]))[0]
        return np.array(bits, np.uint64).view(dtype if dtype.itemsize == 8 else np.float64)[()]
    if not re.fullmatch(r"-?\d\w*", text):
        return None
    value = int(text.rstrip("U"), 0)
    if dtype == np.bool_:
        return np.bool_(value)
    if dtype.kind == "f":
        return dtype.type(value)
    width = 8 * dtype.itemsize
    return np.array(value & ((1 << width) - 1), f"u{dtype.itemsize}").view(dtype)[()]


def _guarded(step: Step, predicate: str, negated: bool) -> Step:
    def guarded(m: Any, c: Any, at: int) -> int | None:
        on = m.registers[predicate][c]
        on = ~on if negated else on
        if on.all():
            return step(m, c, at)
        if on.any():
            return step(m, np.arange(m.n)[c][on], at)
        return None

    return guarded


# --- where threads go ---


def _bra(op: list[str], args: list[str], scope: _Scope, guard: Any) -> Step:
    def step(m: Any, c: Any, at: int) -> int | None:
        target = scope.labels[args[0]]
        if guard is None:
            return target
        on = m.registers[guard[0]][c]
        on = ~on if guard[1] else on
        if on.all():
            return target
        if not on.any():
            return None
        m.pc[c] = np.where(on, target, at + 1)
        return -1

    return step


def _ret(op: list[str], args: list[str], scope: _Scope, guard: Any) -> Step:
    function = scope.function

    def step(m: Any, c: Any, at: int) -> int:
        if guard is not None:
            on = m.registers[guard[0]][c]
            on = ~on if guard[1] else on
            m.pc[c] = at + 1
            c = np.arange(m.n)[c][on]
        if function.kernel:
            m.pc[c] = END
        else:
            m.pc[c] = m.returns[function.name][c]
        return -1

    return step


def _call(op: list[str], args: list[str], scope: _Scope, guard: Any) -> Step:
    results = re.findall(r"[\w$]+", args[0]) if args[0].startswith("(") else []
    name, *arguments = args[1:] if results else args
    passed = re.findall(r"[\w$]+", arguments[0]) if arguments else []

    def step(m: Any, c: Any, at: int) -> int:
        if name == "vprintf":
            pointers = [_parameter_bytes(m, p)[:, :8].view(np.int64)[c, 0] for p in passed]
            warp_instructions.print_output(m, c, *pointers)
            return at + 1
        callee = scope.module.functions[name]
        for mine, its in zip(passed, callee.params, strict=True):
            _parameter_bytes(m, its)[c] = _parameter_bytes(m, mine)[c]
        m.returns.setdefault(name, np.zeros(m.n, np.int64))[c] = at + 1
        m.pc[c] = callee.start
        return -1

    return step


def _barrier(op: list[str], args: list[str], scope: _Scope, guard: Any) -> Step:
    if guard is not None:
        raise PTXError("a barrier under a predicate")
    if "warp" in op:  # memory is in order, and no thread of a warp is waited for without need
        return lambda m, c, at: None

    def step(m: Any, c: Any, at: int) -> int:
        m.pc[c] = at + 1
        m.waiting[c] = True
        arrived = (m.waiting | (m.pc >= END)).reshape(-1, m.threads).all(1)
        m.waiting &= ~np.repeat(arrived, m.threads)
        return -1

    return step


_BRANCHES = {
    "bra": _bra, "ret": _ret, "exit": _ret, "call": _call, "bar": _barrier, "barrier": _barrier,
}  # fmt: skip

# --- memory, moves, other threads ---


def _parameter_bytes(m: Any, name: str) -> np.ndarray:
    """Return the bytes of a call parameter for each thread."""
    if name not in m.passed:
        m.passed[name] = np.zeros((m.n, 256), np.uint8)
    return m.passed[name]


def _parts(operand: str) -> list[str]:
    return [p.strip() for p in operand.strip("{}").split(",")]


def _parameter(operand: str, scope: _Scope) -> tuple[str, int]:
    m = re.fullmatch(r"\[\s*([\w$]+)\s*(?:\+\s*(\d+))?\s*\]", operand)
    assert m is not None
    name = m[1]
    if name.startswith("retval"):  # what the function called last has left
        name = "func_retval" + name.removeprefix("retval")
    return name, int(m[2] or 0)


def _vector(op: list[str]) -> int:
    return int(op[-2][1]) if op[-2] in ("v2", "v4", "v8") else 1


def _ld(op: list[str], args: list[str], scope: _Scope) -> Step:
    count, dtype = _vector(op), dtype_of(op[-1])
    targets = [scope.write(p) if p != "_" else None for p in _parts(args[0])]
    if op[1] == "param":
        name, offset = _parameter(args[1], scope)

        def parameter(m: Any, c: Any, at: int) -> None:
            if scope.function.kernel and name in m.parameters:
                value = m.parameters[name]
                targets[0](m, c, value if dtype.itemsize == 8 else value.astype(dtype))
                return
            for k, put in enumerate(targets):
                start = offset + k * dtype.itemsize
                raw = np.ascontiguousarray(
                    _parameter_bytes(m, name)[c][:, start : start + dtype.itemsize]
                )
                put(m, c, raw.view(dtype).reshape(-1))

        return parameter
    address = scope.address(args[1])
    width = count * dtype.itemsize
    what = ".".join(op)

    def load(m: Any, c: Any, at: int) -> None:
        m.counts[what] = m.counts.get(what, 0) + 1
        values = [np.empty(m.block[c].shape, dtype) for _ in targets]
        places = address(m, c)
        m.note(places, c, width)
        for which, threads, place in m.groups(places, c):
            data, where = m.place(place, threads, width, width)
            view = view_as(data, dtype)
            for k, out in enumerate(values):
                out[which] = view[where // dtype.itemsize + k]
        for put, value in zip(targets, values, strict=True):
            if put is not None:
                put(m, c, value)

    return load


def _st(op: list[str], args: list[str], scope: _Scope) -> Step:
    count, dtype = _vector(op), dtype_of(op[-1])
    sources = [scope.read(p, op[-1]) for p in _parts(args[1])]
    if op[1] == "param":
        name, offset = _parameter(args[0], scope)

        def parameter(m: Any, c: Any, at: int) -> None:
            room = _parameter_bytes(m, name)
            for k, read in enumerate(sources):
                start = offset + k * dtype.itemsize
                value = np.broadcast_to(read(m, c), m.block[c].shape).astype(dtype)
                room[c, start : start + dtype.itemsize] = value.view(np.uint8).reshape(
                    -1, dtype.itemsize
                )

        return parameter
    address = scope.address(args[0])
    width = count * dtype.itemsize
    what = ".".join(op)

    def store(m: Any, c: Any, at: int) -> None:
        m.counts[what] = m.counts.get(what, 0) + 1
        values = [np.broadcast_to(read(m, c), m.block[c].shape) for read in sources]
        places = address(m, c)
        m.note(places, c, width)
        for which, threads, place in m.groups(places, c):
            data, where = m.place(place, threads, width, width)
            view = view_as(data, dtype)
            for k, value in enumerate(values):
                view[where // dtype.itemsize + k] = value[which]

    return store


def _mov(op: list[str], args: list[str], scope: _Scope) -> Step:
    kind = "u64" if op[0] == "cvta" else op[-1]
    if args[0].startswith("{"):
        pieces = [scope.write(p) if p != "_" else None for p in _parts(args[0])]
        read = scope.read(args[1], kind)
        part = np.dtype(f"u{dtype_of(kind).itemsize // len(pieces)}")

        def unpack(m: Any, c: Any, at: int) -> None:
            value = np.atleast_1d(read(m, c)).copy().view(part).reshape(-1, len(pieces))
            for k, put in enumerate(pieces):
                if put is not None:
                    put(m, c, value[:, k])

        return unpack
    put = scope.write(args[0])
    if args[1].startswith("{"):
        names = _parts(args[1])
        part = f"b{8 * dtype_of(kind).itemsize // len(names)}"
        reads = [scope.read(p, part) for p in names]

        def pack(m: Any, c: Any, at: int) -> None:
            values = np.empty((*m.block[c].shape, len(reads)), dtype_of(part))
            for k, read in enumerate(reads):
                values[:, k] = read(m, c)
            put(m, c, values.view(dtype_of(kind)).reshape(-1))

        return pack
    read = scope.read(args[1], kind)

    def move(m: Any, c: Any, at: int) -> None:
        put(m, c, read(m, c))

    return move


def _atom(op: list[str], args: list[str], scope: _Scope) -> Step:
    if op[0] == "red":
        args = ["_", *args]
    kind = op[-1]
    dtype = dtype_of(kind)
    put = None if args[0] == "_" else scope.write(args[0])
    address = scope.address(args[1])
    reads = [scope.read(a, kind) for a in args[2:]]
    act = {
        "add": lambda old, x: old + x, "max": max, "min": min, "exch": lambda old, x: x,
        "and": lambda old, x: old & x, "or": lambda old, x: old | x, "xor": lambda old, x: old ^ x,
        "cas": lambda old, x, y: y if old == x else old,
    }[op[-2]]  # fmt: skip

    def step(m: Any, c: Any, at: int) -> None:
        m.counts[op[0]] = m.counts.get(op[0], 0) + 1
        threads = np.arange(m.n)[c]
        places = address(m, c)
        m.note_atomic(places, c)
        values = [np.broadcast_to(r(m, c), threads.shape) for r in reads]
        old = np.empty(threads.shape, dtype)
        for k in range(threads.size):
            one = threads[k : k + 1]
            data, where = m.place(places[k : k + 1], one, dtype.itemsize, dtype.itemsize)
            view, j = view_as(data, dtype), int(where[0]) // dtype.itemsize
            old[k] = view[j]
            view[j] = act(old[k], *[v[k] for v in values])
        if put is not None:
            put(m, c, old)

    return step


def _nothing(op: list[str], args: list[str], scope: _Scope) -> Step:
    return lambda m, c, at: None


_MOVES = {
    "ld": _ld, "ldu": _ld, "st": _st, "mov": _mov, "cvta": _mov,
    "atom": _atom, "red": _atom, "membar": _nothing, "fence": _nothing, "prefetch": _nothing,
    "discard": _nothing, "nanosleep": _nothing, **warp_instructions.INSTRUCTIONS,
}  # fmt: skip


def _arithmetic(op: list[str], args: list[str], scope: _Scope) -> Step:
    rule = arithmetic.find(op)
    if rule is None:
        raise PTXError(f"the interpreter has no {'.'.join(op)}")
    kinds, act, carries = rule
    puts = [scope.write(n) for n in args[0].split("|")]
    reads = [scope.read(a, k) for a, k in zip(args[1:], kinds, strict=False)]

    def step(m: Any, c: Any, at: int) -> None:
        values = [r(m, c) for r in reads]
        if carries:
            result, m.carry[c] = act(m.carry[c], *values)
        else:
            result = act(*values)
        puts[0](m, c, result)
        if len(puts) > 1:
            puts[1](m, c, ~result)

    return step
