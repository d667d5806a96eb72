"""Wrap LLVM values so that formulas over LLVM IR read like Python.

A ``V`` holds an llvmlite ``IRBuilder`` and an LLVM value. Its operators emit instructions for the
type of the value, with no fast-math flags that change results, and return another ``V``. The module
also has the building blocks that formulas share: LLVM's intrinsics, error-free sums and products,
polynomials, conversions between floats and their bits, and calls of external functions. Most
modules of this folder use it, and so do `functions.py`, `lower.py` and `intrinsics/` in `llvm/`.
"""

from __future__ import annotations

from collections.abc import Sequence

from llvmlite import ir

from accnp.compiler.llvm.scalars.registry import BINARY, UNARY, define

F32, F64 = ir.FloatType(), ir.DoubleType()
I1, I8, I16, I32, I64 = (ir.IntType(n) for n in (1, 8, 16, 32, 64))
I128 = ir.IntType(128)

# These flags have no effect on the instructions that get them. Numba's fastmath adds its own flags
# to instructions without any, and reassociation would break the compensated arithmetic here.
_KEEP, _KEEP_DIV = ("afn",), ("contract",)


# Whether the processor has fma instructions; `llvm/processor.py` sets it. Without them, LLVM calls
# a function of the C library for each number.
fuses = True


def on_gpu(module: ir.Module) -> bool:
    """Return whether a module is for a GPU, which has no vector registers and no C library."""
    return module.triple.startswith("nvptx")


def is_float(t: ir.Type) -> bool:
    return isinstance(t, (ir.FloatType, ir.DoubleType))


class V:
    """An LLVM value with its builder. Integers are signed unless a method says otherwise."""

    __slots__ = ("b", "v")

    def __init__(self, b: ir.IRBuilder, v: ir.Value):
        self.b, self.v = b, v

    @property
    def type(self) -> ir.Type:
        return self.v.type

    @property
    def width(self) -> int:
        """The width of an integer in bits."""
        kind = self.v.type
        assert isinstance(kind, ir.IntType)
        return kind.width

    @property
    def single(self) -> bool:
        return isinstance(self.v.type, ir.FloatType)

    def const(self, c: float | int) -> V:
        return V(self.b, ir.Constant(self.v.type, c))

    def _arg(self, other: V | float | int) -> ir.Value:
        return other.v if isinstance(other, V) else ir.Constant(self.v.type, other)

    def _emit_binary(self, fop: str, iop: str, other: V | float | int, flip: bool = False) -> V:
        x, y = self.v, self._arg(other)
        if flip:
            x, y = y, x
        if not is_float(self.v.type):
            return V(self.b, getattr(self.b, iop)(x, y))
        return V(self.b, getattr(self.b, fop)(x, y, flags=_KEEP_DIV if fop == "fdiv" else _KEEP))

    def __add__(self, o: V | float | int) -> V:
        return self._emit_binary("fadd", "add", o)

    def __sub__(self, o: V | float | int) -> V:
        return self._emit_binary("fsub", "sub", o)

    def __mul__(self, o: V | float | int) -> V:
        return self._emit_binary("fmul", "mul", o)

    def __truediv__(self, o: V | float | int) -> V:
        return self._emit_binary("fdiv", "sdiv", o)

    def __radd__(self, o: float | int) -> V:
        return self._emit_binary("fadd", "add", o)

    def __rmul__(self, o: float | int) -> V:
        return self._emit_binary("fmul", "mul", o)

    def __rsub__(self, o: float | int) -> V:
        return self._emit_binary("fsub", "sub", o, flip=True)

    def __rtruediv__(self, o: float | int) -> V:
        return self._emit_binary("fdiv", "sdiv", o, flip=True)

    def __neg__(self) -> V:
        if is_float(self.v.type):
            return V(self.b, self.b.fneg(self.v))
        return V(self.b, self.b.neg(self.v))

    def __and__(self, o: V | int) -> V:
        return V(self.b, self.b.and_(self.v, self._arg(o)))

    def __or__(self, o: V | int) -> V:
        return V(self.b, self.b.or_(self.v, self._arg(o)))

    def __xor__(self, o: V | int) -> V:
        return V(self.b, self.b.xor(self.v, self._arg(o)))

    def __invert__(self) -> V:
        return V(self.b, self.b.not_(self.v))

    def __lshift__(self, o: V | int) -> V:
        return V(self.b, self.b.shl(self.v, self._arg(o)))

    def __rshift__(self, o: V | int) -> V:
        return V(self.b, self.b.ashr(self.v, self._arg(o)))

    def lshr(self, o: V | int) -> V:
        return V(self.b, self.b.lshr(self.v, self._arg(o)))

    def cmp(self, op: str, o: V | float | int, signed: bool = True) -> V:
        """Return a comparison. Those of floats are false for NaN, except ``!=``, which is true."""
        x, y = self.v, self._arg(o)
        if is_float(self.v.type):
            emit = self.b.fcmp_unordered if op == "!=" else self.b.fcmp_ordered
        else:
            emit = self.b.icmp_signed if signed else self.b.icmp_unsigned
        return V(self.b, emit(op, x, y))

    def __lt__(self, o: V | float | int) -> V:
        return self.cmp("<", o)

    def __le__(self, o: V | float | int) -> V:
        return self.cmp("<=", o)

    def __gt__(self, o: V | float | int) -> V:
        return self.cmp(">", o)

    def __ge__(self, o: V | float | int) -> V:
        return self.cmp(">=", o)

    def eq(self, o: V | float | int) -> V:
        return self.cmp("==", o)

    def ne(self, o: V | float | int) -> V:
        return self.cmp("!=", o)

    def to(self, t: ir.Type, signed: bool = True) -> V:
        """Convert to another type. A float that is out of an integer's range becomes poison."""
        s, b = self.v.type, self.b
        if s == t:
            return self
        if is_float(s) and is_float(t):
            return V(b, b.fpext(self.v, t) if t == F64 else b.fptrunc(self.v, t))
        if is_float(s):
            return V(b, b.fptosi(self.v, t) if signed else b.fptoui(self.v, t))
        if is_float(t):
            return V(b, b.sitofp(self.v, t) if signed else b.uitofp(self.v, t))
        assert isinstance(t, ir.IntType)
        if t.width < s.width:
            return V(b, b.trunc(self.v, t))
        return V(b, b.sext(self.v, t) if signed else b.zext(self.v, t))


def call(name: str, *args: V) -> V:
    """Call the LLVM intrinsic ``name``, overloaded on the type of the first argument."""
    b = args[0].b
    fn = b.module.declare_intrinsic(name, [args[0].type], _signature(name, args))
    return V(b, b.call(fn, [a.v for a in args]))


def _signature(name: str, args: Sequence[V]) -> ir.FunctionType:
    return ir.FunctionType(args[0].type, [a.type for a in args])


def fma(x: V, y: V | float, z: V | float) -> V:
    ref = x
    y, z = (a if isinstance(a, V) else ref.const(a) for a in (y, z))
    if x.single and not fuses and not on_gpu(x.b.module):
        return _fma_in_doubles(x, y, z)
    return call("llvm.fma", x, y, z)


def _fma_in_doubles(x: V, y: V, z: V) -> V:
    """Return fma of floats, computed in doubles with the same bits. The product of two floats is
    exact in doubles, and a sum that is rounded to odd may be rounded again (Boldo and Melquiond,
    2008)."""
    s, error = two_sum(x.to(F64) * y.to(F64), z.to(F64))
    i = bits(s)
    farther = (error > 0.0).cmp("==", s > 0.0)
    inexact = ((error > 0.0) | (error < 0.0)) & (i & 1).eq(0)
    return unbits(where(inexact, where(farther, i + 1, i - 1), i)).to(F32)


@define(UNARY, "abs")
def fabs(x: V) -> V:
    return call("llvm.fabs", x)


@define(BINARY)
def copysign(x: V, s: V) -> V:
    return call("llvm.copysign", x, s)


@define(UNARY)
def sqrt(x: V) -> V:
    return call("llvm.sqrt", x)


@define(UNARY)
def floor(x: V) -> V:
    return call("llvm.floor", x)


def rint(x: V) -> V:
    return call("llvm.roundeven", x)


def where(c: V, x: V | float | int, y: V | float | int) -> V:
    ref = x if isinstance(x, V) else y
    assert isinstance(ref, V)
    x, y = (a if isinstance(a, V) else ref.const(a) for a in (x, y))
    return V(c.b, c.b.select(c.v, x.v, y.v))


def isnan(x: V) -> V:
    return V(x.b, x.b.fcmp_unordered("uno", x.v, x.v))


def int_type(x: V) -> ir.IntType:
    return I32 if x.single else I64


def bits(x: V) -> V:
    return V(x.b, x.b.bitcast(x.v, int_type(x)))


def unbits(i: V) -> V:
    return V(i.b, i.b.bitcast(i.v, F32 if i.type == I32 else F64))


def poly(x: V, coefs: Sequence[float | V]) -> V:
    """Return a polynomial by Horner's rule with fma; ``coefs`` start with the constant term."""
    last = coefs[-1]
    r = last if isinstance(last, V) else x.const(last)
    for c in reversed(coefs[:-1]):
        r = fma(r, x, c)
    return r


def estrin(x: V, coefs: Sequence[float | V]) -> V:
    """Return a polynomial by Estrin's scheme, which combines pairs of coefficients first.

    Each halving makes the chain of dependent steps half as long and costs one more product. The
    scheme is for functions whose callers wait for the result. Otherwise, most functions keep the
    multipliers busy, and take 5 to 10 % longer with this scheme than with Horner's rule.
    """
    values = [c if isinstance(c, V) else x.const(c) for c in coefs]
    while len(values) > 1:
        odd = values[2 * (len(values) // 2) :]
        values = [fma(b, x, a) for a, b in zip(values[::2], values[1::2], strict=False)] + odd
        x = x * x if len(values) > 1 else x
    return values[0]


def clamp(x: V, lo: float, hi: float) -> V:
    """Return x limited to [lo, hi]. NaN passes through, since both comparisons are false."""
    x = where(x > hi, hi, x)
    return where(x < lo, lo, x)


def clamp_above(x: V, hi: float) -> V:
    return where(x > hi, hi, x)


MANT = {True: 23, False: 52}
MAGIC = {True: 1.5 * 2.0**23, False: 1.5 * 2.0**52}
MAGIC_BITS = {True: 0x4B400000, False: 0x4338000000000000}


def nearest(x: V) -> tuple[V, V]:
    """Return ``x`` rounded to an integer, as a float and as an integer; |x| < 2^22 (2^51).

    Adding 1.5 * 2^mantissa leaves the integer in the low bits. A conversion instruction would give
    poison for NaN, and AVX2 has none for doubles.
    """
    t = x + MAGIC[x.single]
    return t - MAGIC[x.single], bits(t) - MAGIC_BITS[x.single]


def int_to_float(i: V) -> V:
    """Convert a small integer (|i| < 2^22 or 2^51) to a float, as `nearest` does it."""
    single = i.type == I32
    t = unbits(i + MAGIC_BITS[single])
    return t - MAGIC[single]


def pow2(n: V) -> V:
    """Return 2^n, as a float of the same width, for an integer n in the normal exponent range."""
    single = n.type == I32
    return unbits((n + (127 if single else 1023)) << MANT[single])


def two_sum(x: V, y: V) -> tuple[V, V]:
    s = x + y
    t = s - x
    return s, (x - (s - t)) + (y - t)


def fast_two_sum(x: V, y: V) -> tuple[V, V]:
    """Return x + y and its rounding error, which is exact if |x| >= |y|."""
    s = x + y
    return s, y - (s - x)


def two_prod(x: V, y: V) -> tuple[V, V]:
    p = x * y
    return p, fma(x, y, -p)


def below(b: ir.IRBuilder, n: ir.Value, count: int) -> ir.Value:
    """Return the mask of the first n (a 64-bit integer) of `count` lanes."""
    t = ir.VectorType(I64, count)
    undef = ir.Constant(t, ir.Undefined)
    zeros = ir.Constant(ir.VectorType(I32, count), [0] * count)
    splat = b.shuffle_vector(b.insert_element(undef, n, ir.Constant(I32, 0)), undef, zeros)
    return b.icmp_signed("<", ir.Constant(t, [ir.Constant(I64, k) for k in range(count)]), splat)


def external(b: ir.IRBuilder, name: str, result: ir.Type, kinds: Sequence[ir.Type]) -> ir.Function:
    """Return a function that is defined in another module, and declare it if necessary."""
    return b.module.globals.get(name) or ir.Function(b.module, ir.FunctionType(result, kinds), name)


def call_external(
    b: ir.IRBuilder, name: str, result: ir.Type, args: Sequence[ir.Value]
) -> ir.Value:
    """Call a function that is defined in another module."""
    return b.call(external(b, name, result, [a.type for a in args]), args)


def masked_load(
    b: ir.IRBuilder, p: ir.Value, t: ir.VectorType, size: int, mask: ir.Value, off: ir.Value
) -> ir.Value:
    """Load a vector of type t, with elements of `size` bytes, from p. Lanes that are not in the
    mask have the values of `off`."""
    kind = "i" if isinstance(t.element, ir.IntType) else "f"
    name = f"llvm.masked.load.v{t.count}{kind}{8 * size}.p0"
    args = [p, ir.Constant(I32, size), mask, off]
    return call_external(b, name, t, args)


def fetch(b: ir.IRBuilder, p: ir.Value, near: int = 3) -> None:
    """Prefetch the cache line at an address, which need not be valid, into all cache levels (3), or
    into the second and higher levels (2)."""
    fn = external(b, "llvm.prefetch.p0", ir.VoidType(), [p.type, I32, I32, I32])
    b.call(fn, [b.bitcast(p, fn.args[0].type), *[ir.Constant(I32, k) for k in (0, near, 1)]])
