"""Lower a kernel of the loop IR to the text of an LLVM module, with its entry.

In: a kernel after the passes. Out: text for `llvmlite.binding.parse_assembly`. Variables of the IR
are values of LLVM, so nothing is left for its passes to find in memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from llvmlite import ir

from accnp.compiler.llvm.accesses import SIZES, Mask
from accnp.compiler.llvm.bypassing import until_aligned
from accnp.compiler.llvm.entry import ATTRIBUTES, ENTRY, VECTORS, entry_text
from accnp.compiler.llvm.functions import (
    from_memory,
    memory_type,
    register_type,
    write_call,
    write_cast,
    write_fold,
    write_library_call,
)
from accnp.compiler.llvm.stepping import go_over
from accnp.compiler.llvm.templates import (
    INLINED_ATTRIBUTES,
    Functions,
    Index,
    Template,
    Vector,
    make_template,
    vector,
)
from accnp.compiler.llvm.vector_loop import NotVector, VectorLoop
from accnp.compiler.loops import ir as loops
from accnp.compiler.loops.ir import (
    Buffer,
    Expr,
    Fold,
    For,
    If,
    Kernel,
    Let,
    Load,
    Prefetch,
    Stmt,
    Store,
    Transpose,
    Var,
)
from accnp.compiler.loops.types import I4, DType
from accnp.compiler.loops.visiting import addends, expressions, statements, subexpressions
from accnp.ir.kernel import STRIDES
from accnp.kernels.math import block
from accnp.kernels.math.heap import free_aligned, malloc_aligned
from accnp.kernels.math.ir import fetch

__all__ = ["lower"]

_I64 = ir.IntType(64)
_ZERO = ir.Constant(_I64, 0)
_templates: dict[tuple[str, tuple[DType, ...], DType, int], Template | str] = {}


def lower(kernel: Kernel, vector_bytes: int, attributes: str) -> str:
    """Return the text of a module with a kernel and its entry.

    Parameters
    ----------
    kernel : Kernel
        A kernel without reductions.
    vector_bytes : int
        Bytes of a vector register.
    attributes : str
        The attributes of functions.
    """
    try:
        function = _Function(kernel, vector_bytes)
    except NotVector:  # LLVM's vectorizer does what it can
        function = _Function(kernel, 0)
    return function.text(attributes)


class _Function:
    """The function of one kernel: the builder, and the values of the variables so far."""

    def __init__(self, kernel: Kernel, vector_bytes: int) -> None:
        self.kernel = kernel
        self.vector_bytes = vector_bytes
        self.functions = Functions()
        self.module = ir.Module("accnp_kernel")
        self.values: dict[Var, Any] = {}
        self.pointers: dict[Buffer, Any] = {}
        self.bypasses = False  # whether a loop can bypass the caches
        self.left = False  # whether a loop is left to LLVM's vectorizer
        pointers = [memory_type(b.dtype).as_pointer() for b in kernel.buffers]
        kinds = [_I64, _I64, _I64, *pointers, *[_I64] * len(kernel.integers)]
        kind = ir.FunctionType(ir.VoidType(), kinds)
        self.made = ir.Function(self.module, kind, "accnp_kernel_body")
        self.made.linkage = "internal"
        self.made.attributes.add("alwaysinline")
        first, last, self.past, *given = self.made.args
        self.values |= {kernel.first: first, kernel.last: last}
        for b, p in zip(kernel.buffers, given, strict=False):
            p.add_attribute("noalias")
            self.pointers[b] = p
        self.values |= dict(zip(kernel.integers, given[len(pointers) :], strict=True))
        self.b: Any = ir.IRBuilder(self.made.append_basic_block("entry"))
        for b in kernel.stack:
            place = self.b.alloca(ir.ArrayType(memory_type(b.dtype), b.length))
            place.align = 64
            self.pointers[b] = self.b.bitcast(place, memory_type(b.dtype).as_pointer())
        for b, n in kernel.heap:
            nbytes = self.b.mul(self.values[n], ir.Constant(_I64, b.dtype.size))
            place = malloc_aligned(self.b, nbytes)
            self.pointers[b] = self.b.bitcast(place, memory_type(b.dtype).as_pointer())
        self.block(kernel.body)
        for b, _ in kernel.heap:
            free_aligned(self.b, self.pointers[b])
        self.b.ret_void()

    def text(self, attributes: str) -> str:
        """The text of the module."""
        signature = [f"{b.dtype.token}*" for b in self.kernel.buffers]
        signature += ["i8"] * len(self.kernel.integers)
        if not self.left:
            self.module.add_named_metadata(VECTORS)
        body = str(self.module)
        entry = entry_text(
            ENTRY,
            signature,
            [str(a.type) for a in self.made.args[3:]],
            f"void @{self.made.name}",
            ["i64 %lo", "i64 %hi", "i64 %past"],
            after_counter=["  %past = and i64 %word, 1"],
            can_bypass=self.bypasses,
        )
        groups = [f"attributes #{n} = {{ {attributes} }}" for n in (ATTRIBUTES, INLINED_ATTRIBUTES)]
        return "\n".join([body, self.functions.text(self.module.globals), entry, *groups, ""])

    # --- statements ---

    def block(self, body: Sequence[Stmt]) -> None:
        for s in body:
            self.statement(s)

    def statement(self, s: Stmt) -> None:
        if isinstance(s, Let):
            self.values[s.var] = self.value(s.value)
        elif isinstance(s, Store):
            v = self.value(s.value)
            if s.buffer.dtype.kind == "bool":
                v = self.b.zext(v, ir.IntType(8))
            self.b.store(v, self.place(s.buffer, s.index))
        elif isinstance(s, Prefetch):
            fetch(self.b, self.place(s.buffer, s.index))
        elif isinstance(s, Transpose):
            self.transpose(s)
        elif isinstance(s, For):
            if s.vector is not None and self.vector_bytes:
                self.vectors(s)
            else:
                self.loop(s)
        elif isinstance(s, If):
            self.choice(s)
        elif isinstance(s, Fold):
            self.values[s.result] = self.fold(s)
        else:
            raise TypeError(f"lower: {type(s).__name__} is not lowered by the passes")

    def loop(self, s: For) -> None:
        """A loop over single steps."""
        self.left |= _for_vectorizer(s)
        b = self.b
        start, stop = self.value(s.start), self.value(s.stop)
        initial = [self.value(c.start) for c in s.carried]
        before = b.block
        head, body, end = (b.append_basic_block(n) for n in ("for", "body", "end"))
        b.branch(head)
        b.position_at_end(head)
        now = b.phi(_I64)
        now.add_incoming(start, before)
        phis = [b.phi(register_type(c.var.dtype)) for c in s.carried]
        b.cbranch(b.icmp_signed("<", now, stop), body, end)
        b.position_at_end(body)
        self.values[s.index] = now
        for c, phi, value in zip(s.carried, phis, initial, strict=True):
            phi.add_incoming(value, before)
            self.values[c.var] = phi
        self.block(s.body)
        following = [self.value(c.following) for c in s.carried]
        # An index that is used never leaves the range: it does not overflow.
        now.add_incoming(b.add(now, ir.Constant(_I64, s.step), flags=("nsw",)), b.block)
        for phi, value in zip(phis, following, strict=True):
            phi.add_incoming(value, b.block)
        b.branch(head)
        b.position_at_end(end)
        for c, phi in zip(s.carried, phis, strict=True):
            self.values[c.result] = phi

    def vectors(self, s: For) -> None:
        """A loop over vectors."""
        assert s.vector is not None
        self.bypasses |= s.vector.bypass
        loop = _Vectors(self, s)
        go_over(loop, self.value(s.start), self.value(s.stop))

    def transpose(self, s: Transpose) -> None:
        """By a kernel of the library: the code for a square is long to compile."""
        b = self.b
        places = [b.ptrtoint(self.pointers[s.to], _I64), ir.Constant(_I64, s.width)]
        places += [b.ptrtoint(self.place(s.buffer, s.start), _I64), self.value(s.step)]
        write_library_call(b, f"transpose_{s.to.dtype.size}", [*places, *map(self.value, s[5:])])

    def choice(self, s: If) -> None:
        test = self.value(s.test)
        if s.orelse:
            with self.b.if_else(test) as (then, otherwise):
                with then:
                    self.block(s.then)
                with otherwise:
                    self.block(s.orelse)
        else:
            with self.b.if_then(test):
                self.block(s.then)

    def fold(self, s: Fold) -> Any:
        place, extent = self.place(s.buffer, s.start), self.value(s.extent)
        if s.wide:
            return block.block_wide_sum(self.b, place, extent)
        return write_fold(s.combine, s.buffer.dtype, self.b, place, extent)

    # --- expressions ---

    def value(self, x: Expr) -> Any:
        if isinstance(x, Var):
            return self.values[x]
        if isinstance(x, loops.Const):
            return ir.Constant(register_type(x.dtype), x.value)
        if isinstance(x, loops.Index):
            return self.index(x)
        if isinstance(x, Load):
            v = self.b.load(self.place(x.buffer, x.index))
            return from_memory(x.buffer.dtype, self.b, v)
        if isinstance(x, loops.Cast):
            return write_cast(loops.dtype(x.value), x.dtype, self.b, self.value(x.value))
        args = [self.value(a) for a in x.args]
        return write_call(x.function, loops.dtype(x.args[-1]), self.b, args)

    def index(self, x: loops.Index) -> Any:
        b, found = self.b, None
        for v, k in x.terms:
            term = self.values[v]
            if k != 1:
                factor = self.values[k] if isinstance(k, Var) else ir.Constant(_I64, k)
                term = b.mul(term, factor, flags=("nsw",))
            found = term if found is None else b.add(found, term, flags=("nsw",))
        assert found is not None
        if x.constant:
            found = b.add(found, ir.Constant(_I64, x.constant), flags=("nsw",))
        return found

    def place(self, buffer: Buffer, index: Expr) -> Any:
        return self.b.gep(self.pointers[buffer], [self.value(index)])


def _for_vectorizer(s: For) -> bool:
    """Whether LLVM's vectorizer may make something of a loop: not where another loop or a fold is
    in it, nor where each step does the same."""
    inner = list(statements(s.body))
    if any(isinstance(x, For | Fold | Prefetch | Transpose) for x in inner):
        return False
    return any(s.index in subexpressions(e) for x in inner for e in expressions(x))


class _Vectors(VectorLoop):
    """The body of a loop for several steps at a time. A value is a `Vector`, an `Index` that grows
    from step to step, or a value of LLVM that is the same in all steps."""

    def __init__(self, f: _Function, s: For) -> None:
        assert s.vector is not None
        super().__init__(f, s, s.vector.lanes)
        self.s = s
        self.rest = s.vector.rest
        self.flat = (s.start, s.stop) == (f.kernel.first, f.kernel.last)
        self.outer = {id(v) for v in f.values.values()}
        self.names: dict[Var, Any] = {}
        if s.start == loops.Const(0, s.index.dtype):
            self.padded = frozenset(f.kernel.stack)
            if isinstance(s.stop, loops.Const) and 0 < s.stop.value <= self.n:
                self.count = int(s.stop.value)

    def first_aligned(self, start: Any, stop: Any) -> Any:
        """The parts of the kernel's range begin with lines, rows do not."""
        assert self.s.vector is not None
        self.asked = self.f.past if self.s.vector.bypass else None
        if not self.s.vector.peel:
            return None
        # The rows of other results mostly begin as their lines do, too.
        store = next(x for x in self.s.body if isinstance(x, Store))
        self.f.values[self.s.index] = start
        place = self.f.place(store.buffer, store.index)
        size = store.buffer.dtype.size
        return until_aligned(self.f.b, self.asked, self.n, size, place, start, stop)

    def same(self, value: Any) -> bool:
        return isinstance(value, ir.Constant | ir.Argument) or id(value) in self.outer

    def early(self, name: str, *values: Any) -> Any:
        found = super().early(name, *values)
        self.outer.add(id(found))
        return found

    def steps_of(self, at: Any, mask: Mask, left: Any, past: Any) -> None:
        self.mask, self.left, self.past = mask, left, past
        self.names = {self.s.index: Index(at)}
        self.read = []
        for s in self.s.body:
            if isinstance(s, Let):
                self.names[s.var] = self.value(s.value)
            else:
                assert isinstance(s, Store)
                self.store(s)

    def mask_at(self, buffer: Buffer, index: Expr) -> Mask:
        """The mask of an access: memory with room for whole vectors needs none."""
        return None if buffer in self.padded and index == self.s.index else self.mask

    def store(self, s: Store) -> None:
        place = self.address(s.buffer, s.index)
        v = self.lanes(self.value(s.value))
        name, code = v.name, v.type
        if s.buffer.dtype.kind == "bool":
            code = ir.IntType(8)
            name = self.put(f"zext {vector('i1', self.n)} {name} to {vector('i8', self.n)}")
        self.store_lanes(code, place, name, self.mask_at(s.buffer, s.index))

    def address(self, buffer: Buffer, index: Expr) -> Any:
        at = self.value(index)
        if not isinstance(at, Index) or at.step != 1:
            self.fail("an access that does not move by one element each step")
        return self.place(self.f.pointers[buffer], at)

    # --- expressions ---

    def value(self, x: Expr) -> Any:
        if isinstance(x, Var):
            return self.names[x] if x in self.names else self.f.values[x]
        if isinstance(x, loops.Const):
            return self.f.value(x)
        if isinstance(x, loops.Index):
            return self.index(x)
        if isinstance(x, Load):
            return self.load(x)
        if isinstance(x, loops.Cast):
            of = loops.dtype(x.value)

            def convert(b: Any, args: Sequence[Any]) -> Any:
                return write_cast(of, x.dtype, b, args[0])

            return self.operation("cast", [x.value], x.dtype, convert)
        of = loops.dtype(x.args[-1])
        return self.operation(
            x.function, x.args, x.dtype, lambda b, args: write_call(x.function, of, b, args)
        )

    def index(self, x: loops.Index) -> Any:
        """What is the same in all steps is added before the loop."""
        moving, offset = None, None
        for v, k in x.terms:
            if k == self.s.index and isinstance(k, Var):
                v, k = k, v
            if v == self.s.index:
                if moving is not None:
                    self.fail("an index that is added twice")
                moving = self.times(self.names[v], k)
                continue
            term = self.value(v)
            if not self.same(term):
                self.fail("an index that is computed")
            if k != 1:
                term = self.early("mul", term, self.factor(k))
            offset = term if offset is None else self.early("add", offset, term)
        if x.constant:
            constant = ir.Constant(_I64, x.constant)
            offset = constant if offset is None else self.early("add", offset, constant)
        if moving is None:
            return _ZERO if offset is None else offset
        return Index(moving.now, moving.step, offset)

    def times(self, index: Index, k: int | Var) -> Index:
        """The index of the loop times an integer that is the same in all steps."""
        if k == 1:
            return index
        factor = self.factor(k)
        now = self.f.b.mul(index.now, factor, flags=("nsw",))
        return Index(now, factor if isinstance(k, Var) else k)

    def factor(self, k: int | Var) -> Any:
        """A factor of an index, which is the same in all steps."""
        found = self.value(k) if isinstance(k, Var) else ir.Constant(_I64, k)
        if not self.same(found):
            self.fail("a multiple that is computed")
        return found

    def load(self, x: Load) -> Any:
        of, base = x.buffer.dtype, self.f.pointers[x.buffer]
        indices: list[Index] = []
        vectors: list[Vector] = []
        for term in addends(x.index):
            # 16 indices of 32 bits are one vector.
            inner = term.value if isinstance(term, loops.Cast) else term
            short = loops.dtype(inner) == I4
            v = self.value(inner if short else term)
            if isinstance(v, Index):
                indices.append(v)
            elif isinstance(v, Vector):
                vectors.append(v)
            else:
                base = self.f.b.gep(base, [self.f.b.sext(v, _I64) if short else v])
        kind = memory_type(of)
        if not indices and not vectors:
            return from_memory(of, self.f.b, self.f.b.load(base))
        for index in indices:
            base = self.place(base, index)
        if vectors or len(indices) > 1 or indices[0].step not in (1, *STRIDES):
            if of.kind == "bool" or of.size not in SIZES:
                self.fail("short numbers of computed places")
            terms = [*vectors, *[self.steps(i.step) for i in indices]]
            places = terms[0] if len(terms) == 1 else self.sum(terms)
            return Vector(kind, self.gather_lanes(kind, base, places).name)
        step, mask = indices[0].step, self.mask_at(x.buffer, x.index)
        if of.kind == "bool":
            raw = self.load_lanes(kind, base, step, mask)
            text = f"icmp ne {vector('i8', self.n)} {raw}, zeroinitializer"
            return Vector(ir.IntType(1), self.put(text))
        self.fetch(x, base, of.size * step)
        if x.buffer in self.f.kernel.buffers:
            self.read.append((base, of.size * self.n * step))
        return Vector(kind, self.load_lanes(kind, base, step, mask))

    def sum(self, terms: Sequence[Vector]) -> Vector:
        """The sum of vectors of integers, in 64 bits."""
        kind, found = vector("i64", self.n), ""
        for v in terms:
            name = v.name
            if v.type != _I64:
                name = self.put(f"sext {vector(v.type, self.n)} {name} to {kind}")
            found = self.put(f"add {kind} {found}, {name}") if found else name
        return Vector(_I64, found)

    def operation(self, name: str, args: Sequence[Expr], to: DType, write: Any) -> Any:
        values = [self.value(a) for a in args]
        if not any(isinstance(v, Vector | Index) for v in values):
            return write(self.f.b, values)
        kinds = tuple([loops.dtype(a) for a in args])
        key = name, kinds, to, self.n
        found = _templates.get(key)
        if found is None:
            found = make_template([register_type(k) for k in kinds], write, self.n)
            _templates[key] = found
        if isinstance(found, str):
            self.fail(found)
        return self.write_template(name, found, [self.lanes(v).name for v in values])
