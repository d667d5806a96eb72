"""Loops of independent steps as vector code, written at once: one copy of the body, the last steps
under a mask.

In: an innermost loop of a kernel and what `direct` knows about it. Out: LLVM text with vectors of
as many lanes as fit the machine's, or `NotLanes`, and LLVM's vectoriser does it. That one tries
several widths and leaves three copies of the body (vectors, the rest in shorter vectors, single
steps): half of what compiling a kernel costs.

Each operation comes from the scalar code that Numba or an intrinsic writes for it, instruction by
instruction, so the bits are the same. Long ones (a `tanh`) are functions of vectors beside the
kernel, inlined unless they are called often.

The loop from lo to hi of a kernel, and that over rows, can store past the caches as well
(`streams`).
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from llvmlite import ir
from numba.core import types

from accnp.ir.kernel import STRIDES
from accnp.runtime.accesses import SIZES, gather, load_strided, load_vector, mask_of, store_vector
from accnp.runtime.independent import SMALL, addends, independent, weight
from accnp.runtime.streams import asked_of_whole, prefetch, store_either, until_aligned
from accnp.runtime.syntax import walk
from accnp.runtime.vectors import Index, Line, Template, Vector, byte_size, make_template, vector

__all__ = ["NotLanes", "write_loop"]

SHORT = 4  # instructions that are written in place; longer ones are functions
LONG = 16  # instructions of a body of which four vectors go side by side
TINY = 6  # instructions of a body whose copy does two vectors
MOST = 64  # lanes of a mask
AHEAD = 1024  # bytes from a load to what is fetched into the cache meanwhile


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

    def check(self) -> None:
        """Refuse loops whose steps may depend on each other; find the number of lanes."""
        try:
            self.assigned, bases = independent(self.node, self.f.distinct)
        except ValueError as error:
            self.fail(str(error))
        sizes = []
        for base in bases:
            found = self.f.names.get(base)
            if found is None or not isinstance(found[0], types.CPointer):
                self.fail(f"{base} is no pointer")
            dtype = found[0].dtype
            if isinstance(dtype, types.Complex):
                self.fail("complex numbers")
            sizes.append(1 if dtype is types.boolean else dtype.bitwidth // 8)
        # Vectors side by side where there are 32 registers, four of them for functions: these are
        # chains of dependent instructions, of which few steps are under way at the same time.
        self.flat = ast.unparse(self.node.iter) == "range(lo, hi)"
        self.wide = self.f.vector_bytes == 64 and self.flat
        side = 1 if not self.wide else 4 if weight(self.node) >= LONG else 2
        self.n = min(MOST, side * self.f.vector_bytes // max(sizes))

    # --- the loops ---

    def write(self, start: Any, stop: Any) -> None:
        f = self.f
        self.before = f.b.append_basic_block("lanes")
        f.b.branch(self.before)
        f.b.position_at_end(self.before)
        # The body goes below what is the same for all steps, which is found while writing it.
        first = self.first_aligned(start, stop)
        self.ahead = ir.IRBuilder(self.before)
        size = weight(self.node)
        copies = 0 if size > SMALL else 2 if size <= TINY and not self.wide else 1
        self.fetches = None if copies else set()
        if first is None:
            if copies:
                start = self.loop(start, stop, copies, masked=False)[0]
            self.loop(start, stop, 1, masked=True)
        else:
            now, limit = self.loop(start, stop, 1, masked=True, first=first)
            head, rest, end = now.parent, *map(f.b.append_basic_block, ("rest", "end"))
            f.b.cbranch(f.b.icmp_signed("<", limit, stop), rest, end)
            f.b.position_at_end(rest)
            after = self.loop(now, stop, copies, masked=False)[0] if copies else now
            now.add_incoming(after, f.b.block)
            limit.add_incoming(stop, f.b.block)
            f.b.branch(head)
            f.b.position_at_end(end)
        self.ahead.branch(self.join)
        for name in self.assigned:  # nobody has the value of the last step
            f.names.pop(name, None)

    def first_aligned(self, start: Any, stop: Any) -> Any:
        """Where results may go past the caches: in loops over all elements and over rows. The step
        up to which a row is to be done apart; None where it begins with a line."""
        f, self.asked = self.f, None
        if self.flat and f.tree.name == "kernel":  # its parts begin with lines
            self.asked = f.asks_past(f.b)
            return None
        stores = [s.targets[0] for s in self.node.body if isinstance(s, ast.Assign)]
        stores = [t for t in stores if isinstance(t, ast.Subscript)]
        given = {a.arg for a in f.tree.args.args}
        loops = [n for n in walk(f.tree) if isinstance(n, ast.For | ast.While)]
        # What rows are gone over for several times is in the cache: scratch is better there.
        apart = len(loops) == 2 - self.flat
        for t in stores:
            names = {n.id for n in walk(t.slice) if isinstance(n, ast.Name)}
            base = t.value.id if isinstance(t.value, ast.Name) else ""
            apart &= names & self.assigned == {self.index} and base in given
        if not apart:
            return None
        self.asked = f.asks_past(f.b)
        if self.asked is None:
            return None
        f.assign(self.index, (types.int64, start))
        kind, place = f.pointer(stores[0])  # others mostly begin as their lines do, too
        size = 1 if kind is types.boolean else kind.bitwidth // 8
        return until_aligned(f.b, self.asked, self.n, size, place, start, stop)

    def loop(
        self, start: Any, stop: Any, copies: int, masked: bool, first: Any = None
    ) -> tuple[Any, Any]:
        """A loop from start, as long as whole vectors fit, or to the very end; where it stops.

        With `first` it ends there, the first time: what comes after it goes back to its head. Also
        returns up to where it goes.
        """
        b, i64, step = self.f.b, ir.IntType(64), copies * self.n
        came, limit = b.block, stop
        head, body, end = (b.append_basic_block(x) for x in ("head", "vectors", "end"))
        if came is self.before:
            self.join = head  # the branch comes when all is known that goes before it
        else:
            b.branch(head)
        b.position_at_end(head)
        now = b.phi(i64)
        now.add_incoming(start, came)
        if first is not None:
            limit = b.phi(i64)
            limit.add_incoming(first, came)
        last = now if masked else b.add(now, ir.Constant(i64, step - 1), flags=("nsw",))
        b.cbranch(b.icmp_signed("<", last, limit), body, end)
        b.position_at_end(body)
        self.mask, self.left, self.past = None, None, self.asked
        if masked:
            self.left = b.sub(limit, now)
            self.mask = mask_of(b, self.put, self.left, self.n)
            self.past = None
            if self.asked is not None and self.fetches is not None:  # whole vectors, too
                self.past = asked_of_whole(b, self.asked, now, self.n, limit)
        for k in range(copies):
            at = b.add(now, ir.Constant(i64, k * self.n), flags=("nsw",)) if k else now
            self.names = {self.index: (types.int64, Index(at))}
            self.read: list[tuple[Any, int]] = []
            for s in self.node.body:
                self.statement(s)
        following = b.add(now, ir.Constant(i64, step), flags=("nsw",))
        if first is not None:
            following = b.select(b.icmp_signed("<", following, limit), following, limit)
            limit.add_incoming(limit, b.block)
        now.add_incoming(following, b.block)
        b.branch(head)
        b.position_at_end(end)
        return now, limit

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
            first = self.splat(value.first, self.f.b)
            steps = self.steps(value.step).name
            return Vector(ir.IntType(64), self.put(f"add {vector('i64', n)} {first.name}, {steps}"))
        if isinstance(value, ir.Constant):
            return Vector(value.type, f"splat ({value.type} {value.get_reference()})")
        if getattr(value, "parent", None) is not self.before:
            return self.splat(value, self.f.b)
        found = self.splats.get(id(value))
        if found is None:
            found = self.splats[id(value)] = self.splat(value, self.ahead)
        return found

    def steps(self, step: Any) -> Vector:
        """0, step, 2 step..."""
        lanes = range(self.n) if isinstance(step, ir.Value) else range(0, self.n * step, step)
        text = f"<{', '.join(f'i64 {k}' for k in lanes)}>"
        if isinstance(step, ir.Value):
            each = self.lanes(step)
            ahead = self.ahead if getattr(step, "parent", None) is self.before else None
            text = self.put(f"mul {vector('i64', self.n)} {each.name}, {text}", ahead)
        return Vector(ir.IntType(64), text)

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
        kind, base = self.value(target.value)
        index = self.value(target.slice)[1]
        if not isinstance(index, Index) or index.step != 1:
            self.fail("steps store to one place, or apart")
        place = self.f.b.gep(base, [index.first])
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
            read = () if self.flat or self.fetches is not None else self.read
            how = self.past, self.n, code, place, name, near, read
            store_either(self.f.b, self.put, self.declares, *how)

    # --- expressions: a Numba type, and a Vector, an Index, or a value that all steps share ---

    def value(self, x: ast.expr) -> Any:
        if isinstance(x, ast.Name):
            return self.name(x.id)
        if isinstance(x, ast.Constant):
            return self.f.constant(x.value)
        if isinstance(x, ast.Subscript):
            return self.load(x)
        if isinstance(x, ast.BinOp):
            return self.combined(type(x.op), self.value(x.left), self.value(x.right))
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
        kind, base = self.value(x.value)
        dtype, b = kind.dtype, self.f.b
        terms = [self.value(t) for t in addends(x.slice)]
        if len(terms) > 1:  # a number of another type would make a step part of a vector
            terms = [
                t if isinstance(t[1], Index | Vector) else (types.int64, self.cast(t, types.int64))
                for t in terms
            ]
        steps = [getattr(v, "step", None) for _, v in terms if isinstance(v, Index | Vector)]
        if len(steps) > 1 or not {*steps} <= {1, *STRIDES}:
            return dtype, self.gathered(dtype, base, terms)
        _, index = functools.reduce(functools.partial(self.combined, ast.Add), terms)
        place = b.gep(base, [index.first if isinstance(index, Index) else index])
        if not isinstance(index, Index):
            v = b.load(place)
            if dtype is types.boolean:
                v = b.icmp_unsigned("!=", v, ir.Constant(ir.IntType(8), 0))
            return dtype, v
        if dtype is types.boolean:
            raw = self.loaded(ir.IntType(8), place, index.step)
            text = f"icmp ne {vector('i8', self.n)} {raw}, zeroinitializer"
            return dtype, Vector(ir.IntType(1), self.put(text))
        code = self.f.context.get_data_type(dtype)
        self.fetch(ast.dump(x), place, dtype.bitwidth // 8 * index.step)
        self.read.append((place, dtype.bitwidth // 8 * self.n * index.step))
        return dtype, Vector(code, self.loaded(code, place, index.step))

    def loaded(self, kind: Any, place: Any, step: int) -> str:
        if step == 1:
            return load_vector(self.put, self.declares, kind, place, self.n, self.mask)
        if byte_size(kind) not in SIZES:
            self.fail("short numbers in strides")
        how = step, self.n, self.f.vector_bytes, self.left
        return load_strided(self.f.b, self.put, self.declares, kind, place, *how)

    def gathered(self, dtype: Any, base: Any, terms: Sequence[Any]) -> Vector:
        """Lanes of computed places; `terms` add up to them."""
        code = self.f.context.get_data_type(dtype)
        if dtype is types.boolean or byte_size(code) not in SIZES:
            self.fail("short numbers of computed places")
        i64, moving = types.int64, []
        for kind, v in terms:
            if isinstance(v, Index):
                base = self.f.b.gep(base, [v.first])
                moving.append((i64, self.steps(v.step)))
            elif isinstance(v, Vector):
                moving.append((kind, v))
            else:
                base = self.f.b.gep(base, [self.cast((kind, v), i64)])
        if len(moving) == 1 and moving[0][0] == types.int32:
            places = moving[0][1]  # 16 of these are one vector
        else:
            each = [(i64, self.cast(m, i64)) for m in moving]
            places = functools.reduce(functools.partial(self.combined, ast.Add), each)[1]
        text = gather(self.put, self.declares, code, base, places, self.n, self.mask)
        return Vector(code, text)

    def fetch(self, what: str, place: Any, size: int) -> None:
        """Bring what is loaded some steps later into the cache.

        The processor does so by itself only where loads follow each other fast; where the body is
        long, too few steps are under way to hide the way to memory.
        """
        if self.fetches is None or what in self.fetches:
            return
        self.fetches.add(what)
        prefetch(self.f.b, self.put, self.declares, place, AHEAD, self.n * size)

    def combined(self, op: type, a: Any, b: Any) -> Any:
        """Two values by an operator; numbers that grow by a step stay such where they can."""
        whole = a[0] == types.int64 == b[0]
        if whole and op in (ast.Add, ast.Mult) and isinstance(b[1], Index):
            a, b = b, a
        grows = whole and isinstance(a[1], Index) and not isinstance(b[1], Index | Vector)
        if grows and (name := {ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul"}.get(op)):
            write = functools.partial(getattr(self.f.b, name), flags=("nsw",))
            first, step = write(a[1].first, b[1]), a[1].step
            if op is ast.Mult:
                fixed = isinstance(b[1], ir.Constant) and isinstance(step, int)
                if not fixed and step != 1:
                    self.fail("a product of strides")
                step = step * b[1].constant if fixed else b[1]
            return types.int64, Index(first, step)
        return self.apply(self.f.BINARY.get(op), [a, b])

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
        # Functions of users are of one kernel: what all kernels share must not keep them.
        table = self.f.brought if hasattr(key, "accnp_tree") else self.f.templates
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
