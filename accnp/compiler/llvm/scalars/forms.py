"""Operations with separate implementations for scalars and for vectors.

In scalar code, the functions write ordinary instructions, such as a load from a table or a branch.
If vectors are made from the code (the builder is a `Lanes`), they write a call of
`accnp.<form>.<type>` instead, and `templates.py` replaces it with a call of the vector function
whose text `vector_call` returns. Both implementations compute the same bits; `scalef`, `mantissa`
and `exponent` exist for vectors only. The mathematical functions of this folder use the operations.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from llvmlite import ir

from accnp.compiler.llvm.scalars import cold
from accnp.compiler.llvm.scalars.ir import F32, I64, V, bits, on_gpu, where

LOOKED_UP = 16  # number of entries of a table
_tables: dict[str, int] = {}  # the number in the name of a table, by its content
_TABLE = ir.VectorType(F32, LOOKED_UP)


class Lanes(ir.IRBuilder):
    """A builder for the code of one step, from which vectors of `count` lanes are made."""

    def __init__(self, block: ir.Block, count: int) -> None:
        super().__init__(block)
        self.count = count


def _form(name: str, result: ir.Type, *args: V) -> V:
    """Return a call that `vector_call` replaces."""
    b = args[0].b
    kinds = [a.type for a in args]
    name = f"accnp.{name}.{'f4' if result == F32 else 'f8'}"
    fn = b.module.globals.get(name) or ir.Function(b.module, ir.FunctionType(result, kinds), name)
    return V(b, b.call(fn, [a.v for a in args]))


def lookup(table: Sequence[float], i: V) -> V:
    """Return the one of 16 floats that the last four bits of a 32-bit integer select. A shorter
    table is repeated."""
    values = [ir.Constant(F32, x) for x in (*table,) * (LOOKED_UP // len(table))]
    if isinstance(i.b, Lanes):
        return _form("lookup", F32, i, V(i.b, ir.Constant(_TABLE, values)))
    if on_gpu(i.b.module) and len(table) == 2:
        odd = (i & 1).ne(0)
        return where(odd, V(i.b, values[1]), V(i.b, values[0]))
    module = i.b.module
    kind = ir.ArrayType(F32, LOOKED_UP)
    text = " ".join(v.get_reference() for v in values)
    name = f"accnp.table.{_tables.setdefault(text, len(_tables))}"
    known = module.globals.get(name)
    if known is None:
        known = ir.GlobalVariable(module, kind, name)
        known.initializer = ir.Constant(kind, values)  # type: ignore[assignment]
        known.global_constant, known.linkage = True, "internal"
    at = (i & (LOOKED_UP - 1)).to(I64)
    place = i.b.gep(known, [ir.Constant(I64, 0), at.v], source_etype=kind)
    return V(i.b, i.b.load(place, typ=F32))


def piece(a: V, table: Sequence[Sequence[float]]) -> tuple[V, list[V]]:
    """Return the distance of a float, 0 <= a < 15, from the middle of its interval, and the
    coefficients for that interval; see `tables`."""
    i = bits(a + 1.0).lshr(21)
    middle, *rows = [lookup(row, i) for row in table]
    return a - middle, rows


def scales(x: V) -> bool:
    """Return whether there is an instruction for `scalef` (vectors of AVX-512)."""
    return isinstance(x.b, Lanes) and cold.vector_bytes == 64


def scalef(y: V, n: V) -> V:
    """Return y * 2^n, rounded once; n is a float with an integer value."""
    return _form("scalef", y.type, y, n)


has_exponents = scales


def mantissa(x: V) -> V:
    """Return m with x = 2^e m, 3/4 <= m < 3/2; 1 for infinity and zero, NaN if x is negative."""
    return _form("getmant", x.type, x)


def exponent(x: V) -> V:
    """Return e with x = 2^e m, 1 <= m < 2; infinity for infinity, minus infinity for zero."""
    return _form("getexp", x.type, x)


def rarely(test: V, usual: V, xs: Sequence[V], name: str, make: Callable[..., V]) -> V:
    """Return `usual`, or make(*xs), which is slow, where the test holds, which is rare."""
    b = usual.b
    fn = apart(usual, len(xs), name, make)
    if isinstance(b, Lanes):
        cold.variant(fn, b.count)
        return _form(f"rarely.{fn.name}", usual.type, test, usual, *xs)
    # The code of a separate function contains no loop to vectorize, and its text is used without
    # the metadata of its module.
    inner = "cold" in b.function.attributes
    if not inner and not on_gpu(b.module):
        cold.masked_variants(fn)
    start = b.block
    with b.if_then(test.v, likely=None if inner else False):
        slow = b.call(fn, [x.v for x in xs])
        inside = b.block
    phi = b.phi(usual.type)
    phi.add_incoming(usual.v, start)
    phi.add_incoming(slow, inside)
    return V(b, phi)


def apart(like: V, count: int, name: str, make: Callable[..., V]) -> ir.Function:
    """Return a function of `count` numbers that is not inlined, defined once in each module."""
    module = like.b.module
    name = f"accnp.{name}.{'f4' if like.single else 'f8'}"
    known = module.globals.get(name)
    if known is None:
        known = ir.Function(module, ir.FunctionType(like.type, [like.type] * count), name)
        known.linkage = "internal"
        for a in ("noinline", "nounwind", "readnone", "cold"):
            known.attributes.add(a)
        if not on_gpu(module):
            known.attributes.add("optnone")
        b = ir.IRBuilder(known.append_basic_block())
        b.ret(make(*[V(b, x) for x in known.args]).v)
    return known


# --- vectors ---


def vector_call(
    name: str, kinds: Sequence[ir.Type], result: ir.Type, n: int
) -> tuple[str, dict[str, str]]:
    """Return the name of the vector function for a form, and the definitions that it needs.

    Raises
    ------
    ValueError
        If this processor has no such instruction.
    """
    what = name.split(".")[1]
    if what == "rarely":
        return _rare_function(name, kinds, n)
    return _split_into_pieces(name, kinds, result, n, *_instruction(what, result))


def _instruction(what: str, result: ir.Type) -> tuple[int, list[str], list[str]]:
    """Return the number of lanes of an instruction, its lines, and its declarations.

    In the lines, {0}, {1}... are the operands, and {r} is a prefix of names. The last line is the
    result.
    """
    if cold.vector_bytes == 64:
        n, t = (16, "ps") if result == F32 else (8, "pd")
        kind = f"<{n} x {result}>"
        off, rounding = f"{kind} poison, i{n} -1", "i32 4"
        if what == "lookup":
            f = "llvm.x86.avx512.permvar.sf.512"
            arguments, parameters = f"{kind} {{1}}, <16 x i32> {{0}}", f"{kind}, <16 x i32>"
        else:
            f = f"llvm.x86.avx512.mask.{what}.{t}.512"
            first = {"scalef": f"{kind} {{1}}, ", "getmant": "i32 11, ", "getexp": ""}[what]
            arguments = f"{kind} {{0}}, {first}{off}, {rounding}"
            one = {"scalef": f"{kind}, ", "getmant": "i32, ", "getexp": ""}[what]
            parameters = f"{kind}, {one}{kind}, i{n}, i32"
        return n, [f"call {kind} @{f}({arguments})"], [f"declare {kind} @{f}({parameters})"]
    if cold.permutes and what == "lookup":
        f, half = "llvm.x86.avx2.permps", "<8 x float>"
        lines = [
            f"shufflevector <16 x float> {{1}}, <16 x float> poison, <8 x i32> <{_indices(0, 8)}>",
            f"shufflevector <16 x float> {{1}}, <16 x float> poison, <8 x i32> <{_indices(8, 16)}>",
            f"call {half} @{f}({half} {{r}}.0, <8 x i32> {{0}})",
            f"call {half} @{f}({half} {{r}}.1, <8 x i32> {{0}})",
            "shl <8 x i32> {0}, splat (i32 28)",
            "icmp slt <8 x i32> {r}.4, zeroinitializer",
            f"select <8 x i1> {{r}}.5, {half} {{r}}.3, {half} {{r}}.2",
        ]
        return 8, lines, [f"declare {half} @{f}({half}, <8 x i32>)"]
    if what == "lookup" and (cold.neon or cold.shuffles):
        return _lookup_of_bytes()
    raise ValueError(what)


def _lookup_of_bytes() -> tuple[int, list[str], list[str]]:
    """Return `lookup`, in the form of `_instruction`, for processors with instructions that select
    bytes from a table of 64 (AArch64) or 16 (SSSE3) bytes."""
    one, four = "<16 x i8>", "<4 x i32>"
    numbers = ", ".join(f"i32 {j // 4 * 4}" for j in range(16))
    places = ", ".join(f"i8 {j % 4}" for j in range(16))
    lines = [
        # The positions of the bytes of each float: four times its index, plus 0 to 3.
        f"shl {four} {{0}}, splat (i32 2)",
        f"and {four} {{r}}.0, splat (i32 {60 if cold.neon else 12})",
        f"bitcast {four} {{r}}.1 to {one}",
        f"shufflevector {one} {{r}}.2, {one} poison, <16 x i32> <{numbers}>",
        f"or {one} {{r}}.3, <{places}>",
        "bitcast <16 x float> {1} to <64 x i8>",
        *[
            f"shufflevector <64 x i8> {{r}}.5, <64 x i8> poison, <16 x i32> <{_indices(k, k + 16)}>"
            for k in range(0, 64, 16)
        ],
    ]
    if cold.neon:
        f = "llvm.aarch64.neon.tbl4.v16i8"
        arguments = ", ".join([f"{one} {{r}}.{k}" for k in (6, 7, 8, 9, 4)])
        lines += [f"call {one} @{f}({arguments})", f"bitcast {one} {{r}}.10 to <4 x float>"]
        return 4, lines, [f"declare {one} @{f}({', '.join([one] * 5)})"]
    f = "llvm.x86.ssse3.pshuf.b.128"
    lines += [
        *[f"call {one} @{f}({one} {{r}}.{k}, {one} {{r}}.4)" for k in (6, 7, 8, 9)],
        *[f"bitcast {one} {{r}}.{k} to {four}" for k in (10, 11, 12, 13)],
        # The third and fourth bits of the index select one of the four results.
        f"shl {four} {{0}}, splat (i32 29)",
        f"icmp slt {four} {{r}}.18, zeroinitializer",
        f"shl {four} {{0}}, splat (i32 28)",
        f"icmp slt {four} {{r}}.20, zeroinitializer",
        f"select <4 x i1> {{r}}.19, {four} {{r}}.15, {four} {{r}}.14",
        f"select <4 x i1> {{r}}.19, {four} {{r}}.17, {four} {{r}}.16",
        f"select <4 x i1> {{r}}.21, {four} {{r}}.23, {four} {{r}}.22",
        f"bitcast {four} {{r}}.24 to <4 x float>",
    ]
    return 4, lines, [f"declare {one} @{f}({one}, {one})"]


def _indices(start: int, stop: int) -> str:
    """Return the elements of a mask that selects lanes from start up to stop."""
    return ", ".join([f"i32 {j}" for j in range(start, stop)])


def _split_into_pieces(
    name: str,
    kinds: Sequence[ir.Type],
    result: ir.Type,
    n: int,
    width: int,
    lines: Sequence[str],
    declares: Sequence[str],
) -> tuple[str, dict[str, str]]:
    """Return the name and the definitions of a function of n lanes that applies an instruction of
    `width` lanes to one piece after the other."""
    function = f'@"{name}.x{n}"'
    vectors = [isinstance(k, ir.VectorType) for k in kinds]
    types = [str(k) if whole else f"<{n} x {k}>" for k, whole in zip(kinds, vectors, strict=True)]
    arguments = ", ".join([f"{t} %a{i}" for i, t in enumerate(types)])
    text = [f"define internal <{n} x {result}> {function}({arguments}) #772 alwaysinline {{"]
    parts: list[str] = []
    for k in range(0, n, width):
        names: list[str] = []
        for i, t in enumerate(types):
            if vectors[i]:
                names.append(f"%a{i}")
                continue
            picked = ", ".join(f"i32 {j if j < n else 'poison'}" for j in range(k, k + width))
            names.append(f"%p{i}.{k}")
            mask = f"<{width} x i32> <{picked}>"
            text.append(f"  %p{i}.{k} = shufflevector {t} %a{i}, {t} poison, {mask}")
        for j, line in enumerate(lines):
            text.append(f"  %r{k}.{j} = " + line.format(*names, r=f"%r{k}"))
        parts.append(f"%r{k}.{len(lines) - 1}")
    size = width
    while len(parts) > 1:
        pairs: list[str] = []
        for a, b in zip(parts[::2], parts[1::2], strict=True):
            mask = ", ".join(f"i32 {j}" for j in range(2 * size))
            t = f"<{size} x {result}>"
            pairs.append(f"{a}_{size}")
            text.append(
                f"  {pairs[-1]} = shufflevector {t} {a}, {t} {b}, <{2 * size} x i32> <{mask}>"
            )
        parts, size = pairs, 2 * size
    if size > n:
        t = f"<{size} x {result}>"
        mask = f"<{n} x i32> <{_indices(0, n)}>"
        text.append(f"  %cut = shufflevector {t} {parts[0]}, {t} poison, {mask}")
        parts = ["%cut"]
    text += [f"  ret <{n} x {result}> {parts[0]}", "}"]
    return function, {
        function: "\n".join(text),
        **{d[d.index("@") : d.index("(")]: d for d in declares},
    }


def _rare_function(name: str, kinds: Sequence[ir.Type], n: int) -> tuple[str, dict[str, str]]:
    function = f'@"{name}.x{n}"'
    slow = f'@"{name.removeprefix("accnp.rarely.").rsplit(".", 1)[0]}.x{n}"'
    t, m = f"<{n} x {kinds[1]}>", f"<{n} x i1>"
    xs = ", ".join(f"{t} %x{k}" for k in range(len(kinds) - 2))
    text = f"""
define internal {t} {function}({m} %test, {t} %usual, {xs}) #772 alwaysinline {{
  %bits = bitcast {m} %test to i{n}
  %any = icmp ne i{n} %bits, 0
  br i1 %any, label %cold, label %done, !prof !{{!"branch_weights", i32 1, i32 100000}}
cold:
  %slow = call {t} {slow}({xs}, {m} %test)
  %chosen = select {m} %test, {t} %slow, {t} %usual
  br label %done
done:
  %y = phi {t} [ %usual, %0 ], [ %chosen, %cold ]
  ret {t} %y
}}"""
    return function, {function: text}
