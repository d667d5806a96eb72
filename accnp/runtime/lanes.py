"""Loops of independent steps as vector code, written at once: one copy of the body, the last steps
under a mask.

In: an innermost loop of a kernel and what `direct` knows about it. Out: LLVM text with vectors of
as many lanes as fit the machine's, or `NotLanes`, and LLVM's vectorizer does it. That one tries
several widths and leaves three copies of the body (vectors, the rest in shorter vectors, single
steps): half of what compiling a kernel costs.

Each operation comes from the scalar code that Numba or an intrinsic writes for it, instruction by
instruction, so the bits are the same. Long ones (a `tanh`) are functions of vectors beside the
kernel, inlined unless they are called often.

The loop from lo to hi of a kernel, and that over rows, can use non-temporal stores as well
(`streams`).
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable, Collection, Sequence
from typing import Any, NoReturn

from llvmlite import ir
from numba.core import types

from accnp.ir.kernel import STRIDES
from accnp.kernels.halves import Half, loaded, stored
from accnp.runtime.accesses import SIZES, Mask, gather, load_strided, load_vector, store_vector
from accnp.runtime.independent import SMALL, addends, calls, independent, known_sizes, weight
from accnp.runtime.loops import MOST, go_over
from accnp.runtime.streams import prefetch, store_either
from accnp.runtime.vectors import Index, Line, Template, Vector, byte_size, make_template, vector

__all__ = ["NotLanes", "write_loop"]

SHORT = 4  # instructions that are written in place; longer ones are functions
LONG = 16  # instructions of a body of which four vectors go side by side,
SEVERAL = 8  # unless it reads and writes so many arrays, and calls no function: memory is slower
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
    go_over(loop, start, stop)
    for name in loop.assigned:  # the value of the last step is not available
        f.names.pop(name, None)
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
        self.starts: dict[tuple, Any] = {}  # places and numbers from before the loop
        self.before: Any = None  # the block before the loop, and its end while the body is written
        self.ahead: Any = None
        self.join: Any = None  # the block that comes after it
        self.asked: Any = None  # 1 where results are to bypass the caches
        self.came = {a.arg for a in f.tree.args.args}
        self.read: list[tuple[Any, int]] = []  # places and bytes of operands that a step loads
        self.mask: Mask = None
        self.left: Any = None  # steps that are left, where there is a mask
        self.whole: Any = None  # 1 where they fill a vector, where that is worth a branch
        self.past: Any = None  # 1 where whole vectors bypass the caches; None: never asked for
        self.fetches: set[str] | None = None  # places that are fetched ahead; None: nothing is
        self.padded: Collection[str] = ()  # scratch with room for whole vectors under the index
        self.check()

    def fail(self, why: str) -> NoReturn:
        raise NotLanes(self.node, why)

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
        """Write the body for the steps from one on: those of the mask, or as many as there are
        lanes; `left` of them, or None; those of whole vectors non-temporally if `past` is 1."""
        self.mask, self.left, self.past = mask, left, past
        self.names = {self.index: (types.int64, Index(at))}
        self.read = []
        for s in self.node.body:
            self.statement(s)

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
            first = self.splat(self.first(value), self.f.b)
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
        place = self.place(base, index)
        v = self.lanes(self.cast(value, kind.dtype))
        name, code = v.name, v.type
        if kind.dtype is types.boolean:
            code = ir.IntType(8)
            name = self.put(f"zext {vector('i1', self.n)} {name} to {vector('i8', self.n)}")
        elif isinstance(kind.dtype, Half):
            short = self.converted(stored, kind.dtype, v)
            name, code = short.name, short.type
        mask = self.mask_at(target)
        near = functools.partial(
            store_vector, self.f.b, self.put, self.declares, code, place, self.n, mask, name,
            self.whole,
        )  # fmt: skip
        if self.past is None:
            near()
        else:
            read, self.read = () if self.fetches is not None else self.read, []
            how = self.past, self.n, code, place, name, near, read, self.flat
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
        place = self.place(base, index) if isinstance(index, Index) else b.gep(base, [index])
        if not isinstance(index, Index):
            v = b.load(place)
            if dtype is types.boolean:
                v = b.icmp_unsigned("!=", v, ir.Constant(ir.IntType(8), 0))
            elif isinstance(dtype, Half):
                v = loaded(b, dtype, v)
            return dtype, v
        if dtype is types.boolean:
            raw = self.loaded(ir.IntType(8), place, index.step, self.mask_at(x))
            text = f"icmp ne {vector('i8', self.n)} {raw}, zeroinitializer"
            return dtype, Vector(ir.IntType(1), self.put(text))
        code = self.f.context.get_data_type(dtype)
        self.fetch(ast.dump(x), place, dtype.bitwidth // 8 * index.step)
        if getattr(x.value, "id", "") in self.came:
            self.read.append((place, dtype.bitwidth // 8 * self.n * index.step))
        v = Vector(code, self.loaded(code, place, index.step, self.mask_at(x)))
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

    def loaded(self, kind: Any, place: Any, step: int, mask: Mask) -> str:
        if step == 1:
            how = self.n, mask, self.whole
            return load_vector(self.f.b, self.put, self.declares, kind, place, *how)
        # Words of two bytes are shuffled by one instruction where vectors have 64.
        if byte_size(kind) not in (SIZES if self.f.vector_bytes < 64 else (2, *SIZES)):
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
        text = gather(self.put, self.declares, code, base, places, self.n, self.mask)
        return Vector(code, text)

    def same(self, value: Any) -> bool:
        """Whether a value is the same in all steps, and known before them."""
        return isinstance(value, ir.Constant) or getattr(value, "parent", None) is self.before

    def first(self, index: Index) -> Any:
        if index.offset is None:
            return index.now
        return self.f.b.add(index.now, index.offset, flags=("nsw",))

    def place(self, base: Any, index: Index) -> Any:
        """Where an index is in memory. What is the same in all steps is added before them: LLVM
        looks for that itself, for longer than all else takes."""
        if index.offset is None or not self.same(base):
            return self.f.b.gep(base, [self.first(index)])
        return self.f.b.gep(self.early("gep", base, index.offset), [index.now])

    def early(self, name: str, *values: Any) -> Any:
        """What is computed before the loop, written once."""
        key = name, *[("", v.constant) if isinstance(v, ir.Constant) else id(v) for v in values]
        found = self.starts.get(key)
        if found is None:
            x, *rest = values
            more = {} if name in ("gep", "neg") else {"flags": ("nsw",)}
            made = getattr(self.ahead, name)(x, *([rest] if name == "gep" else rest), **more)
            found = self.starts[key] = made
        return found

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
