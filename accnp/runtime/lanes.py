"""Loops of independent steps in kernels that are Python text, as vector code.

In: an innermost loop of a kernel and what `direct` knows about it. Out: LLVM text with vectors of
as many lanes as fit the machine's (`compiler.llvm.vector_loop`), or `NotVector`, and LLVM's
vectorizer does it. The loop from lo to hi of a kernel, and that over rows, can bypass the caches
as well.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable, Sequence
from typing import Any

from llvmlite import ir
from numba.core import types

from accnp.compiler.frontend.syntax import walk
from accnp.compiler.llvm.accesses import SIZES, Mask
from accnp.compiler.llvm.nontemporal import LINE, until_aligned
from accnp.compiler.llvm.stepping import go_over
from accnp.compiler.llvm.templates import Index, Template, Vector, byte_size, make_template, vector
from accnp.compiler.llvm.vector_loop import MOST, NotVector, VectorLoop
from accnp.compiler.numba.halves import Half, loaded, register_type, stored
from accnp.ir.kernel import STRIDES
from accnp.runtime.independent import (
    LOOP,
    SMALL,
    addends,
    calls,
    independent,
    known_sizes,
    mentions,
    weight,
)

__all__ = ["NotVector", "write_loop"]

LONG = 16  # instructions of a body of which four vectors go side by side,
SEVERAL = 8  # unless it reads and writes so many arrays, and calls no function: memory is slower


def write_loop(f: Any, node: ast.For, start: Any, stop: Any) -> bool:
    """Write a loop with step 1 as vectors, where the builder of `f` stands; False if it cannot be.

    Raises:
        NotVector: it cannot be, and parts of it are written.
    """
    try:
        loop = _Loop(f, node)
    except NotVector:
        return False
    zero = isinstance(start, ir.Constant) and start.constant == 0
    loop.padded = f.scratch if zero else frozenset()
    if loop.bases <= frozenset(loop.padded) and loop.in_order():
        loop.rest = "whole"
    elif weight(node) > SMALL:
        loop.rest = "masked"
    go_over(loop, start, stop)
    for name in loop.assigned:  # the value of the last step is not available
        f.names.pop(name, None)
    return True


class _Loop(VectorLoop):
    def __init__(self, f: Any, node: ast.For) -> None:
        super().__init__(f, node, 0)
        self.node: ast.For = node
        assert isinstance(node.target, ast.Name)
        self.index = node.target.id
        self.names: dict[str, Any] = {}  # of the lanes in the body being written
        self.known: dict[str, Any] = {}  # of what is the same for all steps
        self.came = {a.arg for a in f.tree.args.args}
        self.check()

    def check(self) -> None:
        """Refuse loops whose steps may depend on each other; find the number of lanes."""
        try:
            self.assigned, self.bases = independent(self.node, self.f.distinct)
        except ValueError as error:
            self.fail(str(error))
        sizes = []
        for base in self.bases:
            found = self.f.names.get(base)
            if found is None or not isinstance(found[0], types.CPointer):
                self.fail(f"{base} is no pointer")
            dtype = found[0].dtype
            if isinstance(dtype, types.Complex):
                self.fail("complex numbers")
            size = 1 if dtype is types.boolean else dtype.bitwidth // 8
            sizes.append(4 if isinstance(dtype, Half) else size)  # as registers have them
        # Vectors side by side where there are 32 registers, and four of them for functions in any
        # case: these are chains of dependent instructions, of which few steps are under way at the
        # same time. With 16 registers short bodies do two, which are a line of memory.
        self.flat = ast.unparse(self.node.iter) == "range(lo, hi)"
        size, far = weight(self.node), calls(self.node)
        many = self.flat and size >= LONG and (len(self.bases) < SEVERAL or far)
        two = self.flat if self.f.vector_bytes == 64 else size <= SMALL and not far
        side = 4 if many else 2 if two else 1
        # No longer than the loop: roots and quotients of 16 lanes take twice the time of 8.
        room = min(MOST, side * self.f.vector_bytes // max(sizes))
        known = known_sizes(self.f.tree)
        inner = [n for name, n in known.items() if name[0] == "n" and name[1:].isdigit()]
        # How many steps there are, where a tiny kernel or a short axis says so and one vector does
        # them all.
        *first, last = self.node.iter.args  # type: ignore[attr-defined]
        written = last.value if isinstance(last, ast.Constant) and type(last.value) is int else 0
        count = known.get(getattr(last, "id", ""), written) if self.flat or not first else 0
        likely = known.get("hi", MOST) if self.flat else written or max(inner, default=MOST)
        self.n = min(room, 1 << max(2, (likely - 1).bit_length()))
        self.count = count if count <= self.n else 0

    def steps_of(self, at: Any, mask: Mask, left: Any, past: Any) -> None:
        self.mask, self.left, self.past = mask, left, past
        self.names = {self.index: (types.int64, Index(at))}
        self.read = []
        for s in self.node.body:
            self.statement(s)

    def in_order(self) -> bool:
        """Whether all memory is looked at under the index itself, and nothing is divided."""
        found = [x for s in self.node.body for x in walk(s)]
        places = [x.slice for x in found if isinstance(x, ast.Subscript)]
        named = all(isinstance(x, ast.Name) and x.id == self.index for x in places)
        divided = (ast.FloorDiv, ast.Mod)
        divides = [x for x in found if isinstance(x, ast.BinOp) and isinstance(x.op, divided)]
        return named and not divides

    def first_aligned(self, start: Any, stop: Any) -> Any:
        """In loops over all elements, and over rows."""
        f, self.asked = self.f, None
        stores = [s.targets[0] for s in self.node.body if isinstance(s, ast.Assign)]
        stores = [t for t in stores if isinstance(t, ast.Subscript)]
        # Where a line is several stores, lines of several arrays may leave before they are whole.
        if f.vector_bytes < LINE and len(stores) > 1:
            return None
        if self.flat and f.tree.name == "kernel":  # its parts begin with lines
            self.asked = f.asks_past(f.b)
            return None
        given = {a.arg for a in f.tree.args.args}
        here = mentions(self.node)
        apart = bool(stores)
        for t in stores:
            names = {n.id for n in walk(t.slice) if isinstance(n, ast.Name)}
            base = t.value.id if isinstance(t.value, ast.Name) else ""
            apart &= names & self.assigned == {self.index} and base in given
            # What is read again, or written by another loop, is better left in the caches.
            apart &= f.mentions[base] == here[base]
        if not apart:
            return None
        self.asked = f.asks_past(f.b)
        # Behind folds, rows that begin in the middle of a line are stored plainly: one more copy of
        # the body would be another 6 % of compiling. Tiles of transposed operands have none.
        tiled = any(name.startswith("transpose_") for name in f.mentions)
        if self.asked is None or not (tiled or f.mentions[LOOP] == 2 - self.flat):
            return None
        f.assign(self.index, (types.int64, start))
        kind, place = f.pointer(stores[0])  # others mostly begin as their lines do, too
        size = 1 if kind is types.boolean else kind.bitwidth // 8
        return until_aligned(f.b, self.asked, self.n, size, place, start, stop)

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
        place = self.place(base, index)
        v = self.lanes(self.cast(value, kind.dtype))
        name, code = v.name, v.type
        if kind.dtype is types.boolean:
            code = ir.IntType(8)
            name = self.put(f"zext {vector('i1', self.n)} {name} to {vector('i8', self.n)}")
        elif isinstance(kind.dtype, Half):
            short = self.converted(stored, kind.dtype, v)
            name, code = short.name, short.type
        self.store_lanes(code, place, name, self.mask_at(target))

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
        place = self.place(base, index) if isinstance(index, Index) else b.gep(base, [index])
        if not isinstance(index, Index):
            v = b.load(place)
            if dtype is types.boolean:
                v = b.icmp_unsigned("!=", v, ir.Constant(ir.IntType(8), 0))
            elif isinstance(dtype, Half):
                v = loaded(b, dtype, v)
            return dtype, v
        if dtype is types.boolean:
            raw = self.load_lanes(ir.IntType(8), place, index.step, self.mask_at(x))
            text = f"icmp ne {vector('i8', self.n)} {raw}, zeroinitializer"
            return dtype, Vector(ir.IntType(1), self.put(text))
        code = self.f.context.get_data_type(dtype)
        self.fetch(ast.dump(x), place, dtype.bitwidth // 8 * index.step)
        if getattr(x.value, "id", "") in self.came:
            self.read.append((place, dtype.bitwidth // 8 * self.n * index.step))
        v = Vector(code, self.load_lanes(code, place, index.step, self.mask_at(x)))
        return dtype, self.converted(loaded, dtype, v) if isinstance(dtype, Half) else v

    def converted(self, how: Any, kind: Half, v: Vector) -> Vector:
        """What memory holds of numbers of half precision and what registers do, one as the other
        (`how`: `loaded` or `stored`)."""
        given = types.int16 if how is loaded else types.float32

        def emit(f: Any, builder: Any, values: Sequence[Any]) -> Any:
            return kind, how(builder, kind, values[0])

        return self.operation((how, kind), [(given, v)], emit)[1]

    def mask_at(self, x: ast.Subscript) -> Mask:
        """The mask of an access. Scratch has room for whole vectors and needs none; what is stored
        under one is read back later than what is not."""
        place, base = x.slice, x.value
        own = isinstance(place, ast.Name) and place.id == self.index
        own = own and isinstance(base, ast.Name) and base.id in self.padded
        return None if own else self.mask

    def gathered(self, dtype: Any, base: Any, terms: Sequence[Any]) -> Vector:
        """Lanes of computed places; `terms` add up to them."""
        code = self.f.context.get_data_type(dtype)
        if dtype is types.boolean or byte_size(code) not in SIZES:
            self.fail("short numbers of computed places")
        i64, moving = types.int64, []
        for kind, v in terms:
            if isinstance(v, Index):
                base = self.place(base, v)
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
        return self.gather_lanes(code, base, places)

    def combined(self, op: type, a: Any, b: Any) -> Any:
        """Two values by an operator; numbers that grow by a step stay such where they can."""
        name = {ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul"}.get(op)
        if name is None or a[0] != types.int64 or b[0] != types.int64:
            return self.apply(self.f.BINARY.get(op), [a, b])
        if op is not ast.Sub and isinstance(b[1], Index):
            a, b = b, a
        (_, x), (_, y) = a, b
        if self.same(x) and self.same(y):
            return types.int64, self.early(name, x, y)
        if not isinstance(x, Index) or isinstance(y, Index | Vector):
            return self.apply(self.f.BINARY.get(op), [a, b])
        if op is ast.Mult:
            fixed = isinstance(y, ir.Constant) and isinstance(x.step, int)
            if not fixed and x.step != 1:
                self.fail("a product of strides")
            now = self.f.b.mul(self.first(x), y, flags=("nsw",))
            return types.int64, Index(now, x.step * y.constant if fixed else y)
        if not self.same(y):
            now = getattr(self.f.b, name)(x.now, y, flags=("nsw",))
            return types.int64, Index(now, x.step, x.offset)
        if x.offset is not None:
            offset = self.early(name, x.offset, y)
        else:
            offset = y if op is ast.Add else self.early("neg", y)
        return types.int64, Index(x.now, x.step, offset)

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
        return kind, self.write_template(getattr(key, "__name__", "cast"), template, names)

    def make(self, kinds: Sequence[Any], emit: Any) -> Any:
        """The type and the code of an operation on vectors; or why there is none."""
        # What Numba compiles apart hands its errors on by the first arguments of the convention. It
        # is then a call, which is no operation of vectors.
        first = self.f.context.call_conv.get_function_type(types.none, ()).args
        given = [register_type(self.f.context, k) for k in kinds]
        found: list[Any] = []

        def write(builder: Any, args: Sequence[Any]) -> Any:
            kind, result = emit(self.f, builder, args)
            found.append(kind)
            return result

        made = make_template(given, write, self.n, first)
        return made if isinstance(made, str) else (found[0], made)

    def template(self, key: Any, kinds: Sequence[Any], emit: Any) -> tuple[Any, Template]:
        # Functions of users are of one kernel: what all kernels share must not keep them.
        table = self.f.brought if hasattr(key, "accnp_tree") else self.f.templates
        found = table.get((key, tuple(kinds), self.n))
        if found is None:
            found = table[key, tuple(kinds), self.n] = self.make(kinds, emit)
        if isinstance(found, str):
            self.fail(found)
        return found
