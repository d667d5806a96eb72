"""The arithmetic of PTX instructions, on NumPy arrays.

`interpreter.py` passes the parts of an instruction ("add", "rn", "f32") and gets the types of its
operands and a function of arrays.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

from accnp.compiler.kernel_cache import get_kernel

__all__ = ["PTXError", "find"]

Found = tuple[list[str], Callable[..., Any], bool]


class PTXError(Exception):
    """The program does something that a GPU would reject, compute wrongly, or silently accept."""


def find(op: list[str]) -> Found | None:
    """Return the operand types, the function, and whether the instruction reads and writes the
    carry flag.
    """
    root, kind = op[0], op[-1]
    rule = _TABLE.get(root)
    return None if rule is None else rule(op, kind)


def _dtype(kind: str) -> np.dtype:
    letter = {"f": "f", "s": "i", "u": "u", "b": "u"}[kind[0]]
    return np.dtype(f"{letter}{int(kind[1:]) // 8}")


def _saturated(op: list[str], act: Callable[..., Any]) -> Callable[..., Any]:
    if "sat" not in op:
        return act

    def clipped(*xs: Any) -> Any:
        y = act(*xs)
        return np.where(np.isnan(y), y.dtype.type(0), np.clip(y, y.dtype.type(0), y.dtype.type(1)))

    return clipped


def _flushed(op: list[str], act: Callable[..., Any]) -> Callable[..., Any]:
    """Flush subnormal operands and results to zero if the instruction requires it."""
    if "ftz" not in op:
        return act

    def flush(x: Any) -> Any:
        x = np.asarray(x)
        if x.dtype.kind != "f":
            return x
        return np.where(np.abs(x) < np.finfo(x.dtype).tiny, np.copysign(x.dtype.type(0), x), x)

    return lambda *xs: flush(act(*[flush(x) for x in xs]))


def _finish(op: list[str], act: Callable[..., Any]) -> Callable[..., Any]:
    return _flushed(op, _saturated(op, act))


# --- sums and products ---


def _sum(op: list[str], kind: str) -> Found:
    act = np.add if op[0] in ("add", "addc") else np.subtract
    if kind[0] == "f":
        return [kind] * 2, _finish(op, act), False
    if op[0] in ("addc", "subc") or "cc" in op:
        return [_unsigned(kind)] * 2, functools.partial(_with_carry, op[0]), True
    if "sat" in op:
        info = np.iinfo(_dtype(kind))

        def clipped(x: Any, y: Any) -> Any:
            wide = act(np.asarray(x).astype(np.int64), np.asarray(y).astype(np.int64))
            return np.clip(wide, info.min, info.max).astype(_dtype(kind))

        return [kind] * 2, clipped, False
    return [kind] * 2, act, False


def _unsigned(kind: str) -> str:
    return "u" + kind[1:]


def _with_carry(name: str, carry: Any, x: Any, y: Any) -> tuple[Any, Any]:
    dtype = np.asarray(x).dtype
    more = carry.astype(dtype) if name.endswith("c") else dtype.type(0)
    if name.startswith("add"):
        z = x + y
        over = z < x
        w = z + more
        return w, over | (w < z)
    z = x - y
    over = x < y
    w = z - more
    return w, over | (z < more)


def _product(op: list[str], kind: str) -> Found:
    adds = op[0] in ("mad", "fma")
    if kind[0] == "f":
        if not adds:
            return [kind] * 2, _finish(op, np.multiply), False
        return [kind] * 3, _finish(op, functools.partial(_fma, kind)), False
    width, part = int(kind[1:]), op[1]
    third = f"{kind[0]}{2 * width}" if part == "wide" else kind

    def act(x: Any, y: Any, z: Any = None) -> Any:
        if part == "lo":
            product = x * y
        elif part == "wide":
            t = _dtype(third)
            product = np.asarray(x).astype(t) * np.asarray(y).astype(t)
        elif width < 64:
            t = _dtype(f"{kind[0]}64")
            product = np.asarray(x).astype(t) * np.asarray(y).astype(t) >> t.type(width)
            product = product.astype(_dtype(kind))
        else:
            product = _high(x, y, kind[0] == "s")
        return product if z is None else product + z

    if "cc" in op or op[0] == "madc":
        name = "addc" if op[0] == "madc" else "add"
        kinds = [_unsigned(kind)] * 3
        return kinds, lambda carry, x, y, z: _with_carry(name, carry, act(x, y), z), True
    return [kind, kind, third], act, False


def _high(x: Any, y: Any, signed: bool) -> Any:
    """Return the upper 64 bits of products of 64-bit integers."""
    a, b = (np.asarray(v).view(np.uint64) for v in (x, y))
    low = np.uint64(0xFFFFFFFF)
    s = np.uint64(32)
    al, ah, bl, bh = a & low, a >> s, b & low, b >> s
    mid = ah * bl + (al * bl >> s)
    high = ah * bh + (mid >> s) + ((al * bh + (mid & low)) >> s)
    if not signed:
        return high
    x, y = np.asarray(x), np.asarray(y)
    zero = np.uint64(0)
    high = high - np.where(x < 0, b, zero) - np.where(y < 0, a, zero)
    return high.view(np.int64)


def _fma(kind: str, x: Any, y: Any, z: Any) -> Any:
    """Multiply and add with one rounding, by the CPU's fused multiply-add instruction."""
    x, y, z = np.broadcast_arrays(*[np.atleast_1d(v) for v in (x, y, z)])
    x, y, z = (np.ascontiguousarray(v) for v in (x, y, z))
    out = np.empty_like(x)
    code = "f4" if kind == "f32" else "f8"
    _fma_kernel(code).call(x.size, x.size, *[v.ctypes.data for v in (x, y, z, out)])
    return out


@functools.cache
def _fma_kernel(code: str) -> Any:
    text = "def kernel(lo, hi, x, y, z, o):\n    for i in range(lo, hi):\n"
    text += "        o[i] = fma(x[i], y[i], z[i])\n"
    return get_kernel(text, "kernel", (f"{code}*",) * 4)


def _quotient(op: list[str], kind: str) -> Found:
    if kind[0] == "f":
        return [kind] * 2, _finish(op, np.divide), False

    def act(x: Any, y: Any) -> Any:
        x, y = np.asarray(x), np.asarray(y)
        y = np.where(y == 0, y.dtype.type(1), y)
        rest = np.fmod(x, y)
        return rest if op[0] == "rem" else (x - rest) // y

    return [kind] * 2, act, False


# --- comparisons and choices ---


def _extreme(op: list[str], kind: str) -> Found:
    larger = op[0] == "max"
    if kind[0] != "f":
        return [kind] * 2, np.maximum if larger else np.minimum, False
    lost = "NaN" in op
    base = {(True, True): np.maximum, (False, True): np.minimum, (True, False): np.fmax,
            (False, False): np.fmin}[larger, lost]  # fmt: skip
    bits = np.dtype(f"u{int(kind[1:]) // 8}")

    def act(x: Any, y: Any) -> Any:
        x, y = np.broadcast_arrays(np.atleast_1d(x), np.atleast_1d(y))
        u, v = (np.ascontiguousarray(a).view(bits) for a in (x, y))
        zero = (u & v if larger else u | v).view(x.dtype)  # -0 is below +0
        return np.where((x == 0) & (y == 0), zero, base(x, y))

    return [kind] * 2, _finish(op, act), False


_ORDER: dict[str, Callable[..., Any]] = {
    "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater,
    "ge": np.greater_equal, "lo": np.less, "ls": np.less_equal, "hi": np.greater,
    "hs": np.greater_equal,
}  # fmt: skip


def _setp(op: list[str], kind: str) -> Found:
    name = op[1]

    def act(x: Any, y: Any, p: Any = None) -> Any:
        if kind[0] == "f":
            lost = np.isnan(x) | np.isnan(y)
            if name in ("num", "nan"):
                predicate = lost if name == "nan" else ~lost
            elif name.endswith("u"):
                predicate = _ORDER[name[:-1]](x, y) | lost
            else:
                predicate = _ORDER[name](x, y) & ~lost
        else:
            predicate = _ORDER[name](x, y)
        if p is None:
            return predicate
        return {"and": predicate & p, "or": predicate | p, "xor": predicate ^ p}[op[2]]

    return [kind, kind, "pred"], act, False


def _selp(op: list[str], kind: str) -> Found:
    return [kind, kind, "pred"], lambda x, y, p: np.where(p, x, y), False


def _testp(op: list[str], kind: str) -> Found:
    tiny = np.finfo(_dtype(kind)).tiny
    act = {
        "infinite": np.isinf, "finite": np.isfinite, "notanumber": np.isnan,
        "number": lambda x: ~np.isnan(x), "normal": lambda x: np.isfinite(x) & (np.abs(x) >= tiny),
        "subnormal": lambda x: (np.abs(x) < tiny) & (x != 0),
    }[op[1]]  # fmt: skip
    return [kind], act, False


# --- bits ---


def _logic(op: list[str], kind: str) -> Found:
    act = {"and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor}[op[0]]
    return [kind] * 2, act, False


def _not(op: list[str], kind: str) -> Found:
    return [kind], np.logical_not if kind == "pred" else np.invert, False


def _shift(op: list[str], kind: str) -> Found:
    width = int(kind[1:])

    def act(x: Any, s: Any) -> Any:
        x, s = np.asarray(x), np.asarray(s)
        beyond = s >= width
        by = np.where(beyond, 0, s).astype(x.dtype)
        if op[0] == "shl":
            return np.where(beyond, x.dtype.type(0), x << by)
        last = x >> x.dtype.type(width - 1) if x.dtype.kind == "i" else x.dtype.type(0)
        return np.where(beyond, last, x >> by)

    return [kind, "u32"], act, False


def _funnel(op: list[str], kind: str) -> Found:
    def act(low: Any, high: Any, s: Any) -> Any:
        s = np.asarray(s)
        s = (s & np.uint32(31) if "wrap" in op else np.minimum(s, np.uint32(32))).astype(np.uint64)
        both = np.asarray(high).astype(np.uint64) << np.uint64(32) | low
        if op[1] == "l":
            return (both << s >> np.uint64(32)).astype(np.uint32)
        return (both >> s).astype(np.uint32)

    return ["b32", "b32", "u32"], act, False


def _extract(op: list[str], kind: str) -> Found:
    width = int(kind[1:])

    def act(x: Any, start: Any, count: Any) -> Any:
        t = _dtype("u64")
        start, count = (np.asarray(v).astype(t) & t.type(255) for v in (start, count))
        x = np.asarray(x)
        wide = x.astype(np.int64).view(t) if x.dtype.kind == "i" else x.astype(t)
        count = np.minimum(count, t.type(width))
        mask = np.where(count >= 64, ~t.type(0), (t.type(1) << (count & t.type(63))) - t.type(1))
        bits = np.where(start >= 64, t.type(0), wide >> (start & t.type(63))) & mask
        if kind[0] == "s":
            top = np.where(count > 0, (bits >> (count - t.type(1)) & t.type(1)) == 1, False)
            bits = np.where(top, bits | ~mask, bits)
        return bits.astype(f"u{width // 8}").view(_dtype(kind))

    return [kind, "u32", "u32"], act, False


def _insert(op: list[str], kind: str) -> Found:
    t = _dtype(kind).type

    def act(x: Any, y: Any, start: Any, count: Any) -> Any:
        start, count = int(start), int(count)
        mask = t((((1 << count) - 1) << start) & ((1 << int(kind[1:])) - 1))
        return (y & ~mask) | (x << t(start) & mask)

    return [kind, kind, "u32", "u32"], act, False


def _permute(op: list[str], kind: str) -> Found:
    def act(a: Any, b: Any, s: Any) -> Any:
        a, b, s = np.broadcast_arrays(*[np.atleast_1d(v) for v in (a, b, s)])
        both = np.stack([a, b], -1).view(np.uint8)
        out = np.empty((a.size, 4), np.uint8)
        for k in range(4):
            pick = s >> np.uint32(4 * k)
            byte = np.take_along_axis(both, (pick & np.uint32(7)).astype(np.int64)[:, None], 1)[
                :, 0
            ]
            sign = (byte.view(np.int8) >> np.int8(7)).view(np.uint8)
            out[:, k] = np.where(pick & np.uint32(8), sign, byte)
        return out.view(np.uint32).reshape(-1)

    return ["b32"] * 3, act, False


def _counted(op: list[str], kind: str) -> Found:
    width = int(kind[1:])

    def act(x: Any) -> Any:
        x = np.asarray(x)
        if op[0] == "popc":
            return np.bitwise_count(x).astype(np.uint32)
        if op[0] == "clz":
            leading_zeros = np.zeros(x.shape, np.uint32)
            for k in range(width):
                leading_zeros += (x >> x.dtype.type(k) == 0).astype(np.uint32)
            return leading_zeros
        out = np.zeros_like(x)  # brev
        for k in range(width):
            out |= (x >> x.dtype.type(k) & x.dtype.type(1)) << x.dtype.type(width - 1 - k)
        return out

    return [kind], act, False


def _bfind(op: list[str], kind: str) -> Found:
    def act(x: Any) -> Any:
        x = np.asarray(x)
        if x.dtype.kind == "i":
            x = np.where(x < 0, ~x, x)
        position = np.full(x.shape, -1, np.int32)
        for k in range(int(kind[1:])):
            position = np.where(x >> x.dtype.type(k) & x.dtype.type(1), k, position)
        return position.astype(np.int32).view(np.uint32)

    return [kind], act, False


def _lop3(op: list[str], kind: str) -> Found:
    def act(a: Any, b: Any, c: Any, table: Any) -> Any:
        out, t = np.uint32(0), int(table)
        for k in range(8):
            if t >> k & 1:
                out = out | (a if k & 4 else ~a) & (b if k & 2 else ~b) & (c if k & 1 else ~c)
        return out

    return ["b32", "b32", "b32", "u32"], act, False


# --- numbers of one operand ---

_ROUNDING = {"rni": np.rint, "rmi": np.floor, "rpi": np.ceil, "rzi": np.trunc}


_PAIRS = {"f16x2": np.dtype(np.float16), "bf16x2": np.dtype(ml_dtypes.bfloat16)}


def _pair(op: list[str], kind: str) -> Found:
    """Pack two numbers into a word; the first goes into the upper half."""
    act = _finish(op, lambda x: np.asarray(x).astype(_PAIRS[op[-2]]))

    def both(x: Any, y: Any) -> Any:
        x, y = (act(v).view(np.uint16).astype(np.uint32) for v in (x, y))
        return x << np.uint32(16) | y

    return [kind] * 2, both, False


def _cvt(op: list[str], kind: str) -> Found:
    if op[-2] in _PAIRS:
        return _pair(op, kind)
    target, source = _dtype(op[-2]), _dtype(kind)
    how = next((f for name, f in _ROUNDING.items() if name in op), None)

    def act(x: Any) -> Any:
        x = np.asarray(x)
        if target.kind in "iu" and source.kind == "f":
            info = np.iinfo(target)
            y = (how or np.trunc)(x.astype(np.float64))
            inside = np.where(np.isnan(y) | (np.abs(y) >= 2.0**64), 0.0, y)
            low, high = y < float(info.min), y >= float(info.max) + 1
            out = np.where(low | high, 0.0, inside).astype(target)
            out = np.where(low, target.type(info.min), np.where(high, target.type(info.max), out))
            # What is no number is 0 in 32 bits, and the highest bit in 64.
            wide = source.itemsize == 8 or target.itemsize == 8
            lost = np.array(1 << (8 * target.itemsize - 1) if wide else 0, f"u{target.itemsize}")
            return np.where(np.isnan(y), lost.view(target), out)
        if target.kind == "f" and source.kind == "f":
            return (how(x) if how else x).astype(target)
        if "sat" in op and target.kind in "iu":
            info = np.iinfo(target)
            low = max(info.min, np.iinfo(source).min)
            high = min(info.max, np.iinfo(source).max)
            return np.clip(x, low, high).astype(target)
        return x.astype(target)

    return [kind], _finish(op, act) if target.kind == "f" else act, False


def _near(op: list[str], f: Callable[..., Any], kind: str) -> Callable[..., Any]:
    """Return a function that rounds to nearest, or for approximate instructions to a neighbor.

    An approximate instruction returns the nearest number or an adjacent one, depending on the bits
    of its argument, so that tests detect formulas that assume exact results. For roots and
    reciprocals, the adjacent number is on the other side of the exact value; for other functions,
    on either side.
    """
    t = _dtype(kind)
    other = op[0] in ("rcp", "sqrt", "rsqrt")

    def act(x: Any) -> Any:
        x = np.asarray(x, t)
        exact = f(x.astype(np.float64))
        y = exact.astype(t)
        if "approx" not in op:
            return y
        turn = (x.view(f"u{t.itemsize}") * 2654435761 >> 7) % 3
        up = exact > y if other else turn == 1
        unit = np.ldexp(1.0, np.frexp(exact)[1] - np.finfo(t).nmant - 1)
        beside = (y + np.where(up, unit, -unit)).astype(t)
        inside = (turn > 0) & (exact != y) & np.isfinite(y) & (np.abs(y) > np.finfo(t).tiny)
        return np.where(inside, beside, y)

    return act


def _unary(op: list[str], kind: str) -> Found:
    if kind[0] == "f":
        near = {"ex2": np.exp2, "lg2": np.log2, "sin": np.sin, "cos": np.cos, "tanh": np.tanh,
                "sqrt": np.sqrt, "rsqrt": lambda x: 1 / np.sqrt(x),
                "rcp": lambda x: 1 / x}  # fmt: skip
        if op[0] in near:
            return [kind], _finish(op, _near(op, near[op[0]], kind)), False
        return [kind], _finish(op, {"neg": np.negative, "abs": np.abs}[op[0]]), False
    return [kind], {"neg": np.negative, "abs": np.abs}[op[0]], False


def _copysign(op: list[str], kind: str) -> Found:
    return [kind] * 2, lambda sign, x: np.copysign(x, sign), False


def _sad(op: list[str], kind: str) -> Found:
    return [kind] * 3, lambda x, y, z: np.where(x > y, x - y, y - x) + z, False


_TABLE: dict[str, Callable[[list[str], str], Found]] = {
    **dict.fromkeys(["add", "sub", "addc", "subc"], _sum),
    **dict.fromkeys(["mul", "mad", "madc", "fma"], _product),
    **dict.fromkeys(["div", "rem"], _quotient),
    **dict.fromkeys(["max", "min"], _extreme),
    **dict.fromkeys(["and", "or", "xor"], _logic),
    **dict.fromkeys(["shl", "shr"], _shift),
    **dict.fromkeys(["popc", "clz", "brev"], _counted),
    **dict.fromkeys(
        ["neg", "abs", "sqrt", "rcp", "rsqrt", "ex2", "lg2", "sin", "cos", "tanh"], _unary
    ),
    "setp": _setp, "selp": _selp, "testp": _testp, "not": _not, "shf": _funnel, "bfe": _extract,
    "bfi": _insert, "prmt": _permute, "bfind": _bfind, "lop3": _lop3, "cvt": _cvt,
    "copysign": _copysign, "sad": _sad,
}  # fmt: skip
