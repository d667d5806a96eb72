"""Loops of independent steps as vector code, written at once: one copy of the body, the last steps
under a mask.

In: an innermost loop of a kernel and what `direct` knows about it. Out: LLVM text with vectors of
as many lanes as fit the machine's, or `NotLanes`, and LLVM's vectoriser does it. That one tries
several widths and leaves three copies of the body (vectors, the rest in shorter vectors, single
steps): half of what compiling a kernel costs.

Each operation comes from the scalar code that Numba or an intrinsic writes for it, instruction by
instruction, so the bits are the same. Long ones (a `tanh`) are functions of vectors beside the
kernel, inlined unless they are called often.

The loop from lo to hi of a kernel can store past the caches as well (`streams`).
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from llvmlite import ir
from numba.core import types

from accnp.ir.kernel import STRIDES
from accnp.runtime.accesses import SIZES, load_strided, load_vector, mask_of, store_vector
from accnp.runtime.streams import asked_of_whole, store_either
from accnp.runtime.syntax import walk
from accnp.runtime.vectors import Index, Line, Template, Vector, make_template, vector

__all__ = ["NotLanes", "write_loop"]

SHORT = 4  # instructions that are written in place; longer ones are functions
LONG = 16  # instructions of a body of which four vectors go side by side
SMALL = 32  # instructions of a body that has a copy without mask, for whole vectors
TINY = 6  # instructions of a body whose copy does two vectors
MOST = 64  # lanes of a mask
AHEAD = 1024  # bytes from a load to what is fetched into the cache meanwhile
LINE = 64  # bytes that are fetched at once

PREFETCH = "@llvm.prefetch.p0"

_STRIDES = frozenset(map(str, STRIDES))
# Functions of a few instructions.
_CHEAP = frozenset("f4 f8 i4 i8 u4 u8 b1 sq abs sqrt fmax fmin fma select one".split())  # noqa: SIM905


class NotLanes(Exception):
    """A loop that is left to LLVM; `node` is the loop."""

    def __init__(self, node: ast.For, why: str) -> None:
        super().__init__(why)
        self.node = node


def write_loop(f: Any, node: ast.For, start: Any, stop: Any) -> bool:
    """Write a loop with step 1 as vectors, where the builder of `f` stands; False if it cannot be.

    Raises:
        NotLanes: it cannot be, and parts of it are written.
    """
    try:
        loop = _Loop(f, node)
    except NotLanes:
        return False
    loop.write(start, stop)
    return True


class _Loop:
    def __init__(self, f: Any, node: ast.For) -> None:
        self.f = f
        self.declares = f.functions.declares
        self.node = node
        assert isinstance(node.target, ast.Name)
        self.index = node.target.id
        self.assigned = {self.index}
        self.names: dict[str, Any] = {}  # of the lanes in the body being written
        self.known: dict[str, Any] = {}  # of what is the same for all steps
        self.splats: dict[int, Vector] = {}
        self.mask: str | None = None
        self.left: Any = None  # steps that are left, where there is a mask
        self.past: Any = None  # 1 where whole vectors go past the caches; None: nobody asks
        self.fetches: set[str] | None = None  # places that are fetched ahead; None: nothing is
        self.count = 0
        self.check()

    def fail(self, why: str) -> NoReturn:
        raise NotLanes(self.node, why)

    # --- what the loop does ---

    def check(self) -> None:
        """Refuse loops whose steps may depend on each other; find the number of lanes."""
        loads: dict[str, set[str]] = {}
        stores: dict[str, set[str]] = {}
        self.apart: set[str] = set()  # memory that is read in strides
        scaled: set[str] = set()  # names with multiples of the index
        named = [
            t.id for s in self.node.body for t in getattr(s, "targets", ()) if type(t) is ast.Name
        ]
        later = set(named) - self.assigned  # names that get their first value below
        for s in self.node.body:
            if not isinstance(s, ast.Assign) or len(s.targets) != 1:
                raise NotLanes(self.node, "a statement that is no assignment")
            for x in walk(s.value):
                if isinstance(x, ast.Name) and x.id in later:
                    self.fail(f"{x.id} is carried from step to step")
                if isinstance(x, ast.Subscript):
                    self.check_place(x, scaled)
                    loads.setdefault(self.base(x), set()).add(ast.dump(x.slice))
            target = s.targets[0]
            if isinstance(target, ast.Name):
                self.assigned.add(target.id)
                later.discard(target.id)
                if self.is_scaled(s.value, scaled):
                    scaled.add(target.id)
            elif isinstance(target, ast.Subscript):
                if self.is_scaled(target.slice, scaled):
                    self.fail("a strided store")
                stores.setdefault(self.base(target), set()).add(ast.dump(target.slice))
            else:
                self.fail("an assignment to several names")
        for base, places in stores.items():
            if len(places | loads.get(base, set())) > 1:
                self.fail(f"{base} is read and written at several places")
        sizes = []
        for base in {*loads, *stores}:
            found = self.f.names.get(base)
            if found is None or not isinstance(found[0], types.CPointer):
                self.fail(f"{base} is no pointer")
            dtype = found[0].dtype
            if isinstance(dtype, types.Complex):
                self.fail("complex numbers")
            sizes.append(1 if dtype is types.boolean else dtype.bitwidth // 8)
            if base in self.apart and sizes[-1] not in SIZES:
                self.fail("short numbers in strides")
        if not stores:
            self.fail("nothing is stored")
        # Vectors side by side where there are 32 registers, four of them for functions: these are
        # chains of dependent instructions, of which few steps are under way at the same time.
        self.flat = ast.unparse(self.node.iter) == "range(lo, hi)"
        self.wide = self.f.vector_bytes == 64 and self.flat
        side = 1 if not self.wide else 4 if self.weight >= LONG else 2
        self.n = min(MOST, side * self.f.vector_bytes // max(sizes))

    def is_scaled(self, x: ast.expr, scaled: set[str], but: Sequence[ast.AST] = ()) -> bool:
        """Whether an expression multiplies what changes from step to step, but at some nodes."""
        for n in walk(x):
            if isinstance(n, ast.Name) and n.id in scaled:
                return True
            if isinstance(n, ast.BinOp) and isinstance(n.op, ast.Mult) and n not in but:
                names = {m.id for m in walk(n) if isinstance(m, ast.Name)}
                if names & self.assigned:
                    return True
        return False

    def check_place(self, x: ast.Subscript, scaled: set[str]) -> None:
        """Refuse loads of places that neither follow each other nor are `STRIDES` apart, as far as
        the text shows it."""
        strides = [n for n in walk(x.slice) if self.is_stride(n)]
        if self.is_scaled(x.slice, scaled, strides):
            self.fail("a strided access")
        if strides:
            self.apart.add(self.base(x))

    def is_stride(self, n: ast.AST) -> bool:
        return (
            isinstance(n, ast.BinOp)
            and isinstance(n.op, ast.Mult)
            and ast.unparse(n.right) in _STRIDES
            and isinstance(n.left, ast.Name)
        )

    def base(self, x: ast.Subscript) -> str:
        """The name of the memory of an access, which no other name of the kernel means."""
        if not isinstance(x.value, ast.Name) or x.value.id not in self.f.distinct:
            self.fail("an access through a computed pointer")
        assert isinstance(x.value, ast.Name)
        return x.value.id

    # --- the loops ---

    def write(self, start: Any, stop: Any) -> None:
        f = self.f
        self.before = f.b.append_basic_block("lanes")
        f.b.branch(self.before)
        f.b.position_at_end(self.before)
        # The body goes below what is the same for all steps, which is found while writing it.
        self.ahead = ir.IRBuilder(self.before)
        size = self.weight
        self.asked = f.asks_past(self.ahead) if self.flat else None
        if size <= SMALL:
            copies = 2 if size <= TINY and not self.wide else 1
            start = self.loop(start, stop, copies, masked=False)
        self.fetches = set() if size > SMALL else None
        self.loop(start, stop, 1, masked=True)
        for name in self.assigned:  # nobody has the value of the last step
            f.names.pop(name, None)

    @functools.cached_property
    def weight(self) -> int:
        """About as many instructions as the body has."""
        size = 0
        for x in walk(ast.Module(self.node.body, [])):
            if isinstance(x, ast.Call) and isinstance(x.func, ast.Name):
                size += 2 if x.func.id in _CHEAP else SMALL // 2
            elif isinstance(x, ast.BinOp | ast.Compare | ast.BoolOp | ast.IfExp | ast.UnaryOp):
                size += 1
        return size

    def loop(self, start: Any, stop: Any, copies: int, masked: bool) -> Any:
        """A loop from start, as long as whole vectors fit, or to the very end; where it stops."""
        b, i64, step = self.f.b, ir.IntType(64), copies * self.n
        came = b.block
        head, body, end = (b.append_basic_block(x) for x in ("head", "vectors", "end"))
        if came is self.before:
            self.join = head  # the branch comes when all is known that goes before it
        else:
            b.branch(head)
        b.position_at_end(head)
        now = b.phi(i64)
        now.add_incoming(start, came)
        last = now if masked else b.add(now, ir.Constant(i64, step - 1), flags=("nsw",))
        b.cbranch(b.icmp_signed("<", last, stop), body, end)
        b.position_at_end(body)
        self.mask, self.left, self.past = None, None, self.asked
        if masked:
            self.left = b.sub(stop, now)
            self.mask = mask_of(b, self.put, self.left, self.n)
            self.past = None
            if self.asked is not None and self.fetches is not None:  # whole vectors, too
                self.past = asked_of_whole(b, self.asked, now, self.n, stop)
        for k in range(copies):
            first = b.add(now, ir.Constant(i64, k * self.n), flags=("nsw",)) if k else now
            self.names = {self.index: (types.int64, Index(first))}
            for s in self.node.body:
                self.statement(s)
        following = b.add(now, ir.Constant(i64, step), flags=("nsw",))
        now.add_incoming(following, b.block)
        b.branch(head)
        b.position_at_end(end)
        if masked:
            self.ahead.branch(self.join)
        return now

    # --- text ---

    def put(self, text: str, builder: Any = None) -> str:
        """Write an instruction; its name."""
        functions = self.f.functions
        functions.serial += 1
        name = f"%v{functions.serial}"
        (builder or self.f.b)._insert(Line(f"{name} = {text}"))
        return name

    def lanes(self, value: Any) -> Vector:
        """A value as a vector."""
        n = self.n
        if isinstance(value, Vector):
            return value
        if isinstance(value, Index):
            steps = ", ".join(f"i64 {k * value.step}" for k in range(n))
            first = self.splat(value.first, self.f.b)
            return Vector(
                ir.IntType(64), self.put(f"add {vector('i64', n)} {first.name}, <{steps}>")
            )
        if isinstance(value, ir.Constant):
            return Vector(value.type, f"splat ({value.type} {value.get_reference()})")
        if getattr(value, "parent", None) is not self.before:
            return self.splat(value, self.f.b)
        found = self.splats.get(id(value))
        if found is None:
            found = self.splats[id(value)] = self.splat(value, self.ahead)
        return found

    def splat(self, value: Any, builder: Any) -> Vector:
        n, kind = self.n, vector(value.type, self.n)
        typed = f"{value.type} {value.get_reference()}"
        one = self.put(f"insertelement {kind} poison, {typed}, i64 0", builder)
        zeros = f"{vector('i32', n)} zeroinitializer"
        return Vector(
            value.type,
            self.put(f"shufflevector {kind} {one}, {kind} poison, {zeros}", builder),
        )

    # --- statements ---

    def statement(self, s: Any) -> None:
        target = s.targets[0]
        value = self.value(s.value)
        if isinstance(target, ast.Name):
            self.names[target.id] = value
            return
        kind, place, index = self.address(target)
        if not isinstance(index, Index) or index.step != 1:
            self.fail("all steps store to one place, or in strides")
        v = self.lanes(self.cast(value, kind.dtype))
        name, code = v.name, v.type
        if kind.dtype is types.boolean:
            code = ir.IntType(8)
            name = self.put(f"zext {vector('i1', self.n)} {name} to {vector('i8', self.n)}")
        near = functools.partial(
            store_vector, self.f.b, self.declares, code, place, self.n, self.mask, name
        )
        if self.past is None:
            near()
        else:
            store_either(self.f.b, self.past, self.n, code, place, name, near)

    def address(self, x: ast.Subscript) -> tuple[Any, Any, Any]:
        """The pointer's type, the address of the first lane or of all, and the index."""
        kind, base = self.value(x.value)
        index_kind, index = self.value(x.slice)
        if isinstance(index, Vector) or not isinstance(index_kind, types.Integer):
            self.fail("an index that is an array's")
        first = index.first if isinstance(index, Index) else index
        return kind, self.f.b.gep(base, [first]), index

    # --- expressions: a Numba type, and a Vector, an Index, or a value that all steps share ---

    def value(self, x: ast.expr) -> Any:
        if isinstance(x, ast.Name):
            return self.name(x.id)
        if isinstance(x, ast.Constant):
            return self.f.constant(x.value)
        if isinstance(x, ast.Subscript):
            return self.load(x)
        if isinstance(x, ast.BinOp):
            return self.binary(x)
        if isinstance(x, ast.UnaryOp):
            return self.unary(x)
        if isinstance(x, ast.Compare) and len(x.ops) == 1:
            op = self.f.COMPARE.get(type(x.ops[0]))
            return self.apply(op, [self.value(x.left), self.value(x.comparators[0])])
        if isinstance(x, ast.BoolOp):
            values = [self.value(v) for v in x.values]
            if any(kind is not types.boolean for kind, _ in values):
                self.fail("and, or of values that are not bool")
            joined, op = (
                values[0],
                self.f.BINARY[ast.BitOr if isinstance(x.op, ast.Or) else ast.BitAnd],
            )
            for v in values[1:]:
                joined = self.apply(op, [joined, v])
            return joined
        if isinstance(x, ast.IfExp):
            return self.choice(x)
        if isinstance(x, ast.Call) and isinstance(x.func, ast.Name) and not x.keywords:
            callee = self.f.scope.get(x.func.id)
            if callee is None or isinstance(callee, types.Type | types.ExternalFunction):
                self.fail(f"a call of {x.func.id}")
            return self.apply(callee, [self.value(a) for a in x.args])
        self.fail(type(x).__name__)

    def name(self, name: str) -> Any:
        if name in self.assigned:
            return self.names[name]
        found = self.known.get(name)
        if found is None:
            if name not in self.f.names:
                self.fail(f"{name} is unknown")
            kind, place = self.f.names[name]
            found = self.known[name] = (kind, self.ahead.load(place))
        return found

    def load(self, x: ast.Subscript) -> Any:
        kind, place, index = self.address(x)
        dtype, b = kind.dtype, self.f.b
        if not isinstance(index, Index):
            v = b.load(place)
            if dtype is types.boolean:
                v = b.icmp_unsigned("!=", v, ir.Constant(ir.IntType(8), 0))
            return dtype, v
        if dtype is types.boolean:
            raw = self.loaded(ir.IntType(8), place)
            text = f"icmp ne {vector('i8', self.n)} {raw}, zeroinitializer"
            return dtype, Vector(ir.IntType(1), self.put(text))
        code = self.f.context.get_data_type(dtype)
        self.fetch(ast.dump(x), place, dtype.bitwidth // 8 * index.step)
        return dtype, Vector(code, self.loaded(code, place, index.step))

    def loaded(self, kind: Any, place: Any, step: int = 1) -> str:
        if step == 1:
            return load_vector(self.put, self.declares, kind, place, self.n, self.mask)
        how = step, self.n, self.f.vector_bytes, self.left
        return load_strided(self.f.b, self.put, self.declares, kind, place, *how)

    def fetch(self, what: str, place: Any, size: int) -> None:
        """Bring what is loaded some steps later into the cache.

        The processor does so by itself only where loads follow each other fast; where the body is
        long, too few steps are under way to hide the way to memory.
        """
        if self.fetches is None or what in self.fetches:
            return
        self.fetches.add(what)
        self.declares[PREFETCH] = f"declare void {PREFETCH}(ptr, i32, i32, i32)"
        way = 1 if size > 0 else -1
        for k in range(0, self.n * abs(size), LINE):
            at = f"getelementptr i8, ptr {place.get_reference()}, i64 {way * (AHEAD + k)}"
            at = self.put(at)
            # Reading, kept in all caches, data.
            self.f.b._insert(Line(f"call void {PREFETCH}(ptr {at}, i32 0, i32 3, i32 1)"))

    def binary(self, x: ast.BinOp) -> Any:
        a, b = self.value(x.left), self.value(x.right)
        whole = a[0] == types.int64 == b[0]
        if whole and isinstance(x.op, ast.Add) and isinstance(b[1], Index):
            a, b = b, a
        if whole and isinstance(a[1], Index) and not isinstance(b[1], Index | Vector):
            op = {ast.Add: "add", ast.Sub: "sub"}.get(type(x.op))
            if op is not None:
                first = getattr(self.f.b, op)(a[1].first, b[1], flags=("nsw",))
                return types.int64, Index(first, a[1].step)
            if isinstance(x.op, ast.Mult) and isinstance(b[1], ir.Constant):
                first = self.f.b.mul(a[1].first, b[1], flags=("nsw",))
                return types.int64, Index(first, a[1].step * b[1].constant)
        op = self.f.BINARY.get(type(x.op))
        return self.apply(op, [a, b])

    def unary(self, x: ast.UnaryOp) -> Any:
        if isinstance(x.op, ast.Not):
            kind, v = self.truth(self.value(x.operand))
            return self.apply(self.f.BINARY[ast.BitXor], [(kind, v), self.f.constant(True)])
        if isinstance(x.op, ast.USub) and isinstance(x.operand, ast.Constant):
            assert isinstance(x.operand.value, int | float)
            return self.f.constant(-x.operand.value)
        return self.apply(self.f.UNARY.get(type(x.op)), [self.value(x.operand)])

    def choice(self, x: ast.IfExp) -> Any:
        test = self.truth(self.value(x.test))
        a, b = self.value(x.body), self.value(x.orelse)
        if a[0] != b[0]:
            self.fail("a choice between two types")

        def emit(f: Any, builder: Any, values: Sequence[Any]) -> Any:
            return a[0], builder.select(*values)

        return self.operation("choice", [test, a, b], emit)

    def cast(self, value: Any, to: Any) -> Any:
        kind, v = value
        if kind == to:
            return v

        def emit(f: Any, builder: Any, values: Sequence[Any]) -> Any:
            return to, f.context.cast(builder, values[0], kind, to)

        return self.operation(("cast", to), [value], emit)[1]

    def truth(self, value: Any) -> Any:
        return types.boolean, self.cast(value, types.boolean)

    def apply(self, callee: Any, arguments: Sequence[Any]) -> Any:
        """An operator or an intrinsic."""
        if callee is None or any(isinstance(kind, types.CPointer) for kind, _ in arguments):
            self.fail("an operation on no numbers")
        kinds = tuple([kind for kind, _ in arguments])

        def emit(f: Any, builder: Any, values: Sequence[Any]) -> Any:
            return f.emit(callee, list(zip(kinds, values, strict=True)), builder)

        return self.operation(callee, arguments, emit)

    def operation(
        self, key: Any, arguments: Sequence[Any], emit: Callable[[Any, Any, Sequence[Any]], Any]
    ) -> Any:
        if not any(isinstance(v, Vector | Index) for _, v in arguments):
            return emit(self.f, self.f.b, [v for _, v in arguments])
        kind, template = self.template(key, [kind for kind, _ in arguments], emit)
        names = [self.lanes(v).name for _, v in arguments]
        return kind, self.write_template(key, template, names)

    def template(self, key: Any, kinds: Sequence[Any], emit: Any) -> tuple[Any, Template]:
        table = self.f.templates
        found = table.get((key, tuple(kinds), self.n))
        if found is None:
            found = table[key, tuple(kinds), self.n] = make_template(self.f, kinds, emit, self.n)
        if isinstance(found, str):
            self.fail(found)
        return found

    def write_template(self, key: Any, template: Template, names: Sequence[str]) -> Vector:
        functions, n = self.f.functions, self.n
        if template.count <= SHORT:
            functions.serial += 1
            prefix = f"v{functions.serial}"
            for line in template.lines:
                self.f.b._insert(Line(line.format(prefix, *names)))
            functions.declares.update(template.declares)
            return Vector(template.type, template.result.format(prefix, *names))
        name = functions.called(template, getattr(key, "__name__", "cast"), n)
        kinds = [vector(k, n) for k in template.kinds]
        passed = ", ".join(map(" ".join, zip(kinds, names, strict=True)))
        return Vector(template.type, self.put(f"call {vector(template.type, n)} {name}({passed})"))
