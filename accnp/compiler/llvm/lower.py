"""Lower a kernel of the loop IR to the text of an LLVM module, with its entry.

The input is a kernel after the passes, and the output is text for
`llvmlite.binding.parse_assembly`, which `objects.py` optimizes and compiles. `Function` writes
scalar code, and `_Vectors` writes the bodies of vector loops. Variables of the IR become LLVM
values, so LLVM's passes need not promote memory to registers.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import NamedTuple, TypeGuard

from llvmlite import ir

from accnp.caches import BoundedCache
from accnp.compiler.llvm.accesses import SIZES, Mask, load_vector, mask_of, shuffled
from accnp.compiler.llvm.casts import write_cast
from accnp.compiler.llvm.entry import ATTRIBUTES, ENTRY, SIZED, VECTORS, entry_text
from accnp.compiler.llvm.fast import allow_fast
from accnp.compiler.llvm.functions import write_call, write_library_call
from accnp.compiler.llvm.intrinsics.all import resolve
from accnp.compiler.llvm.intrinsics.linked import linked_modules
from accnp.compiler.llvm.intrinsics.memory import write_reduce_columns, write_reduce_elements
from accnp.compiler.llvm.nontemporal import until_aligned
from accnp.compiler.llvm.private import insert_line
from accnp.compiler.llvm.registers import from_memory, memory_type, register_type, to_memory
from accnp.compiler.llvm.scalars import block
from accnp.compiler.llvm.scalars.heap import free_aligned, malloc_aligned
from accnp.compiler.llvm.scalars.ir import I32, I64, call_external, external, fetch, on_gpu
from accnp.compiler.llvm.spreading import (
    first_of,
    load_elements,
    one_of,
    share_memory,
    step_of,
    store_elements,
)
from accnp.compiler.llvm.stepping import write_loop
from accnp.compiler.llvm.templates import (
    INLINED_ATTRIBUTES,
    Functions,
    Index,
    LaneValue,
    Template,
    Vector,
    byte_size,
    make_template,
    vector,
)
from accnp.compiler.llvm.vector_loop import NotVector, VectorLoop
from accnp.compiler.loops import ir as loops
from accnp.compiler.loops.ir import (
    Address,
    Break,
    Buffer,
    Const,
    Do,
    Expr,
    For,
    If,
    Kernel,
    Let,
    Load,
    LoadVector,
    Memory,
    Prefetch,
    ReduceColumns,
    ReduceElements,
    Run,
    Share,
    Stmt,
    Store,
    StoreVector,
    Transpose,
    Var,
    While,
    number_type,
)
from accnp.compiler.loops.types import I4, I8, DType, Pointer, Type
from accnp.compiler.loops.visiting import (
    expressions,
    parts,
    replace_loops,
    statements,
    subexpressions,
)
from accnp.ir.kernel import STRIDES

__all__ = [
    "SHARED", "Function", "Platform", "argument_types", "break_cycles", "lower", "write_function",
]  # fmt: skip

MAX_SCALAR_RUNS = 8  # kernels of one step in loops; with more, LLVM's passes take too long
PEELED = 16  # vectors of a loop that computes the steps before the first cache line separately
SHARED = "_entry"  # suffix of the names of entries

# The terms of an index in a vector loop: the part that grows with the loop, the sum of the
# loop-invariant terms, and the terms that are computed in each step.
_Terms = tuple[Index | None, ir.Value | None, list[ir.Value | Vector]]
# Writes an operation on scalars.
_Write = Callable[[ir.IRBuilder, Sequence[ir.Value]], ir.Value]
# Where the operand of a row starts: terms that are the same in all steps, and a constant.
_Start = tuple[tuple[tuple[Var, int | Var], ...], int]

_I64 = ir.IntType(64)
_ZERO = ir.Constant(_I64, 0)
_templates: BoundedCache[tuple[str, tuple[Type, ...], tuple[str, ...], int], Template | str]
_templates = BoundedCache("type_cache_size")


def lower(kernel: Kernel, vector_bytes: int, attributes: str, fast: bool = False) -> str:
    """Return the text of a module with a kernel and its entry.

    Parameters
    ----------
    kernel : Kernel
        A kernel without reductions.
    vector_bytes : int
        Bytes of a vector register; 0 if vectors are left to LLVM.
    attributes : str
        The attributes of functions.
    fast : bool, optional
        Whether operations on floats may be reordered and fused.
    """
    return write_function(kernel, vector_bytes, fast).text(attributes)


class Platform(NamedTuple):
    """LLVM's target triple and data layout of a module. The code of functions depends on the
    triple, and the alignment of numbers on the layout."""

    triple: str
    layout: str


def write_function(
    kernel: Kernel, vector_bytes: int, fast: bool = False, platform: Platform | None = None
) -> Function:
    """Return the function of a kernel without reductions; LLVM's vectorizer handles the loops that
    cannot be written as vector code. Without a platform, the function is for this machine."""
    while True:
        try:
            return Function(kernel, vector_bytes, fast, platform)
        except NotVector as error:
            kernel = kernel._replace(body=_without_vector(kernel.body, error.node))


def _without_vector(body: Sequence[Stmt], loop: For) -> tuple[Stmt, ...]:
    return replace_loops(body, lambda s: [s._replace(vector=None)] if s == loop else None)


class Function:
    """The function of one kernel: the builder, and the values of the variables so far."""

    def __init__(
        self,
        kernel: Kernel,
        vector_bytes: int,
        fast: bool,
        platform: Platform | None = None,
    ) -> None:
        self.kernel = kernel
        self.vector_bytes = vector_bytes
        self.functions = Functions()
        self.module = ir.Module(f"accnp_{kernel.name}")
        if platform is not None:
            self.module.triple, self.module.data_layout = platform
        # Scalar functions read this: fast kernels for GPUs use the approximate units.
        self.module.approximate = fast and on_gpu(self.module)  # type: ignore[attr-defined]
        self.values: dict[Var, ir.Value] = {}
        self.pointers: dict[Buffer, ir.Value] = {}
        self.ends: list[ir.Block] = []  # blocks after the enclosing loops
        # The blocks that leave these loops by a break, and the carried values there.
        self.breaks: list[list[tuple[ir.Block, list[ir.Value]]]] = []
        self.stores_nontemporally = False  # whether a loop has non-temporal stores
        self.uses_vectorizer = False  # whether a loop is left to LLVM's vectorizer
        # Entries get this from the launch; other functions have an argument for it.
        self.may_store_nontemporally = kernel.name == "kernel" or kernel.nontemporal is not None
        kinds = [_I64, _I64, _I64, *[register_type(t) for t in argument_types(kernel)]]
        kind = ir.FunctionType(ir.VoidType(), kinds)
        self.function = ir.Function(self.module, kind, f"accnp_{kernel.name}_body")
        self.function.linkage = "internal"
        self.function.attributes.add("alwaysinline")
        first, last, self.nontemporal, *arguments = self.function.args
        self.values |= {kernel.first: first, kernel.last: last}
        for a, value in zip(kernel.arguments, arguments, strict=True):
            if isinstance(a, Buffer):
                value.add_attribute("noalias")
                self.pointers[a] = value
            else:
                self.values[a] = value
        self.b = ir.IRBuilder(self.function.append_basic_block("entry"))
        for b in kernel.stack:
            place = self.b.alloca(ir.ArrayType(memory_type(b.dtype), b.length))
            place.align = min(64, 16 * b.length)
            self.pointers[b] = self.b.bitcast(place, memory_type(b.dtype).as_pointer())
        for b in kernel.shared:
            self.pointers[b] = share_memory(self.b, b)
        for b, n in kernel.heap:
            nbytes = self.b.mul(self.values[n], ir.Constant(_I64, b.dtype.size))
            place = malloc_aligned(self.b, nbytes)
            self.pointers[b] = self.b.bitcast(place, memory_type(b.dtype).as_pointer())
        self.block(kernel.body)
        for b, _ in kernel.heap:
            free_aligned(self.b, self.pointers[b])
        self.b.ret_void()
        self.name, self.kinds = self.function.name, [str(a.type) for a in self.function.args[3:]]
        if fast:
            allow_fast(self.module)
        self.linked = linked_modules(self.module.globals)
        self.module_text = f"{self.module}\n{self.functions.text(self.module.globals)}"
        break_cycles(self.module)

    def text(self, attributes: str, facts: Sequence[str] = ()) -> str:
        """Return the text of the module with the entry; `facts` are names of metadata."""
        groups = [f"attributes #{n} = {{ {attributes} }}" for n in (ATTRIBUTES, INLINED_ATTRIBUTES)]
        return "\n".join([self.body(facts), self.entry(ENTRY), *groups, ""])

    def body(self, facts: Sequence[str] = ()) -> str:
        """Return the text of the module without an entry."""
        sized = self.kernel.sized or has_scalar_steps(self.kernel)
        every = [*[VECTORS] * (not self.uses_vectorizer), *[SIZED] * sized, *facts]
        return "\n".join([self.module_text, *[f"!{fact} = !{{ }}" for fact in every]])

    def entry(self, name: str, linkage: str = "") -> str:
        """Return the text of an entry with a name."""
        return entry_text(
            name,
            [t.token for t in argument_types(self.kernel)],
            self.kinds,
            f"void @{self.name}",
            ["i64 %lo", "i64 %hi", "i64 %nontemporal"],
            after_counter=["  %nontemporal = and i64 %word, 1"],
            stores_nontemporally=self.stores_nontemporally and self.kernel.nontemporal is None,
            linkage=linkage,
        )

    def callee(self, attributes: str, inline: bool, shared: bool) -> str:
        """Return the text of a module with the kernel as a function that other kernels call;
        `shared` if threads share its steps, which needs an entry."""
        name, kernel = self.kernel.name, self.kernel
        parameters = [f"{kind} %a{k}" for k, kind in enumerate(self.kinds)]
        nontemporal = "0"
        if kernel.nontemporal is not None:
            nontemporal = f"%a{kernel.arguments.index(kernel.nontemporal)}"
        linkage = "linkonce_odr " if inline else ""
        head = ", ".join(["i64 %lo", "i64 %hi", *parameters])
        passed = ", ".join(["i64 %lo", "i64 %hi", f"i64 {nontemporal}", *parameters])
        lines = [
            f"define {linkage}void @{name}({head}) #771 {{",
            f"  call void @{self.name}({passed})",
            "  ret void",
            "}",
            f"attributes #771 = {{ {attributes} {'alwaysinline' if inline else 'noinline'} }}",
            f"attributes #{INLINED_ATTRIBUTES} = {{ {attributes} }}",
        ]
        if shared:
            lines.append(self.entry(name + SHARED, linkage))
            lines.append(f"attributes #{ATTRIBUTES} = {{ {attributes} }}")
        return "\n".join([self.body(), *lines, ""])

    # --- statements ---

    def block(self, body: Sequence[Stmt]) -> None:
        for s in body:
            self.statement(s)

    def statement(self, s: Stmt) -> None:  # noqa: C901
        if isinstance(s, Let):
            self.values[s.var] = self.value(s.value)
        elif isinstance(s, Store):
            v = to_memory(s.buffer.element, self.b, self.value(s.value))
            self.b.store(v, self.place(s.buffer, s.index))
        elif isinstance(s, LoadVector):
            place = self.place(s.buffer, s.index)
            elements = load_elements(self.b, place, s.buffer.element, len(s.results))
            self.values |= dict(zip(s.results, elements, strict=True))
        elif isinstance(s, StoreVector):
            values = [self.value(v) for v in s.values]
            store_elements(self.b, self.place(s.buffer, s.index), s.buffer.element, values)
        elif isinstance(s, Prefetch):
            fetch(self.b, self.place(s.buffer, s.index))
        elif isinstance(s, ReduceColumns):
            places = [self.pointers[s.to], self.place(s.buffer, s.start), self.pointers[s.places]]
            shape = [self.value(s.rows), self.value(s.columns)]
            write_reduce_columns(s.combine, s.to.dtype, self.b, [*places, *shape])
        elif isinstance(s, Transpose):
            self.transpose(s)
        elif isinstance(s, Do):
            self.do(s)
        elif isinstance(s, Run):
            args = [self.value(x) for x in (s.first, s.last, *s.args)]
            call_external(self.b, s.kernel, ir.VoidType(), args)
        elif isinstance(s, Share):
            self.share(s)
        elif isinstance(s, Break):
            values = [self.value(v) for v in s.values]
            self.breaks[-1].append((self.b.block, values))
            self.b.branch(self.ends[-1])
        elif isinstance(s, For):
            if s.vector is not None and self.vector_bytes:
                self.vectors(s)
            elif s.spread in ("threads", "once"):  # each does one step
                self.values[s.index] = one_of(self.b, s.spread, s.step)
                self.block(s.body)
            else:
                self.loop(s)
        elif isinstance(s, While):
            self.condition_loop(s)
        elif isinstance(s, If):
            self.choice(s)
        elif isinstance(s, ReduceElements):
            self.values[s.result] = self.reduce_elements(s)
        else:
            raise TypeError(f"lower: {type(s).__name__} is not lowered by the passes")

    def loop(self, s: For) -> None:
        """Write a loop over single steps."""
        self.uses_vectorizer |= _is_vectorizable(s)
        b = self.b
        start, stop = self.value(s.start), self.value(s.stop)
        block, blocks = [self.value(x) for x in s.part] if s.part is not None else (None, None)
        if s.spread:
            start = first_of(b, s.spread, start, s.step, block)
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
        self.enter_loop(end)
        for c, phi, value in zip(s.carried, phis, initial, strict=True):
            phi.add_incoming(value, before)
            self.values[c.var] = phi
        self.block(s.body)
        if not b.block.is_terminated:  # by a break
            following = [self.value(c.following) for c in s.carried]
            # Computed in the loop, LLVM puts it where the loop begins: no register is held before.
            step = step_of(b, s.spread, s.step, blocks) if s.spread else ir.Constant(_I64, s.step)
            # An index that is used is always in the range, so it does not overflow.
            now.add_incoming(b.add(now, step, flags=("nsw",)), b.block)
            for phi, value in zip(phis, following, strict=True):
                phi.add_incoming(value, b.block)
            b.branch(head)
        self.leave_loop(s, head, phis)

    def enter_loop(self, end: ir.Block) -> None:
        self.ends.append(end)
        self.breaks.append([])

    def leave_loop(self, s: For | While, head: ir.Block, phis: Sequence[ir.PhiInstr]) -> None:
        """Define the carried values after a loop, from its head and from the breaks."""
        end, breaks = self.ends.pop(), self.breaks.pop()
        self.b.position_at_end(end)
        for k, (c, phi) in enumerate(zip(s.carried, phis, strict=True)):
            result = phi
            if breaks:
                result = self.b.phi(phi.type)
                result.add_incoming(phi, head)
                for block, values in breaks:
                    result.add_incoming(values[k], block)
            self.values[c.result] = result

    def condition_loop(self, s: While) -> None:
        """Write a loop that runs as long as a condition holds."""
        self.uses_vectorizer |= not any(_prevents_vectorizer(x) for x in statements(s.body))
        b = self.b
        initial = [self.value(c.start) for c in s.carried]
        before = b.block
        head, body, end = (b.append_basic_block(n) for n in ("while", "body", "end"))
        b.branch(head)
        b.position_at_end(head)
        phis = [b.phi(register_type(c.var.dtype)) for c in s.carried]
        for c, phi, value in zip(s.carried, phis, initial, strict=True):
            phi.add_incoming(value, before)
            self.values[c.var] = phi
        b.cbranch(self.value(s.test), body, end)
        head_end = b.block
        b.position_at_end(body)
        self.enter_loop(end)
        self.block(s.body)
        if not b.block.is_terminated:
            following = [self.value(c.following) for c in s.carried]
            for phi, value in zip(phis, following, strict=True):
                phi.add_incoming(value, b.block)
            b.branch(head)
        self.leave_loop(s, head_end, phis)

    def do(self, s: Do) -> None:
        """Write a call of a procedure."""
        intrinsic = resolve(s.function, tuple([loops.dtype(a) for a in s.args]))
        assert intrinsic is not None, s.function
        result = intrinsic[2](self.b, *[self.value(a) for a in s.args])
        if s.result is not None:
            assert result is not None, s.function
            self.values[s.result] = result

    def share(self, s: Share) -> None:
        """Pack the arguments, and call `parallel_for` of `_native/thread_pool.c`."""
        b, words = self.b, _I64.as_pointer()
        entry = external(b, s.kernel + SHARED, ir.VoidType(), [words, words, _I64, _I64])
        args = [self.value(a) for a in s.args]
        with b.goto_entry_block():
            room = b.alloca(_I64, len(args))
        for k, a in enumerate(args):
            word = b.ptrtoint(a, _I64) if isinstance(a.type, ir.PointerType) else a
            b.store(word, b.gep(room, [_I64(k)]))
        kind = ir.FunctionType(ir.VoidType(), [_I64, words, _I64, _I64, _I64, _I64])
        sharer = b.inttoptr(self.value(s.sharer), kind.as_pointer())
        count, chunk, pool, helpers = [self.value(x) for x in (s.count, s.chunk, s.pool, s.helpers)]
        b.call(sharer, [b.ptrtoint(entry, _I64), room, count, chunk, pool, helpers])

    def vectors(self, s: For) -> None:
        """Write a vector loop."""
        assert s.vector is not None
        self.stores_nontemporally |= s.vector.nontemporal and self.may_store_nontemporally
        loop = _Vectors(self, s)
        write_loop(loop, self.value(s.start), self.value(s.stop))

    def transpose(self, s: Transpose) -> None:
        """Call a library kernel: the code for a square takes long to compile."""
        b = self.b
        places = [b.ptrtoint(self.pointers[s.to], _I64), ir.Constant(_I64, s.width)]
        places += [b.ptrtoint(self.place(s.buffer, s.start), _I64), self.value(s.step)]
        write_library_call(b, f"transpose_{s.to.dtype.size}", [*places, *map(self.value, s[5:])])

    def choice(self, s: If) -> None:
        b, test = self.b, self.value(s.test)
        then, orelse, end = (b.append_basic_block(n) for n in ("then", "else", "end"))
        b.cbranch(test, then, orelse)
        exits: list[tuple[ir.Block, list[ir.Value]]] = []
        for start, body, side in ((then, s.then, 1), (orelse, s.orelse, 2)):
            b.position_at_end(start)
            self.block(body)
            if not b.block.is_terminated:  # by a break
                exits.append((b.block, [self.value(j[side]) for j in s.joined]))
                b.branch(end)
        b.position_at_end(end)
        for k, j in enumerate(s.joined):
            phi = self.values[j.result] = b.phi(register_type(j.result.dtype))
            for before, values in exits:
                phi.add_incoming(values[k], before)

    def reduce_elements(self, s: ReduceElements) -> ir.Value:
        place, extent = self.place(s.buffer, s.start), self.value(s.extent)
        if s.wide:
            return block.block_wide_sum(self.b, place, extent)
        return write_reduce_elements(s.combine, s.buffer.element, self.b, place, extent)

    # --- expressions ---

    def value(self, x: Expr) -> ir.Value:
        if isinstance(x, Var):
            return self.values[x]
        if isinstance(x, loops.Const):
            nothing = isinstance(x.dtype, Pointer)
            return ir.Constant(register_type(x.dtype), None if nothing else x.value)
        if isinstance(x, loops.Index):
            return self.index(x)
        if isinstance(x, Load):
            v = self.b.load(self.place(x.buffer, x.index))
            return from_memory(x.buffer.element, self.b, v)
        if isinstance(x, Address):
            return self.place(x.buffer, x.index)
        if isinstance(x, loops.Cast):
            return write_cast(number_type(x.value), x.dtype, self.b, self.value(x.value))
        if x.function == "nontemporal_requested":
            self.stores_nontemporally = True
            return self.nontemporal
        args = [self.value(a) for a in x.args]
        return write_call(x.function, [loops.dtype(a) for a in x.args], self.b, args)

    def index(self, x: loops.Index) -> ir.Value:
        b, total = self.b, None
        for v, k in x.terms:
            term = self.values[v]
            if k != 1:
                factor = self.values[k] if isinstance(k, Var) else ir.Constant(_I64, k)
                term = b.mul(term, factor, flags=("nsw",))
            total = term if total is None else b.add(total, term, flags=("nsw",))
        assert total is not None
        if x.constant:
            total = b.add(total, ir.Constant(_I64, x.constant), flags=("nsw",))
        return total

    def base(self, buffer: Memory) -> ir.Value:
        """Return the address of the first element."""
        return self.values[buffer] if isinstance(buffer, Var) else self.pointers[buffer]

    def place(self, buffer: Memory, index: Expr) -> ir.Value:
        if not self.kernel.narrow or not isinstance(index, loops.Index):
            return self.b.gep(self.base(buffer), [self.value(index)])
        # The constant is added afterwards: as part of an instruction that accesses memory.
        at = self.index(index._replace(constant=0))
        at = self.b.sext(self.b.trunc(at, I32), I64)
        constant = ir.Constant(_I64, index.constant)
        return self.b.gep(self.base(buffer), [self.b.add(at, constant, flags=("nsw",))])


def break_cycles(module: ir.Module) -> None:
    """Break the reference cycles in a module after its text has been written. A kernel leaves
    thousands of objects; otherwise, every tenth kernel would trigger a full garbage collection."""
    for f in module.functions:
        for each in f.blocks:
            for x in each.instructions:
                if isinstance(x, ir.PhiInstr):
                    x.incomings = []
            each.instructions = []
            each.parent = each.terminator = None
        f.blocks = []
        f.args = ()
    module.globals.clear()


def argument_types(kernel: Kernel) -> list[Type]:
    """Return the types of the arguments of a kernel after the first and the last step."""
    return [Pointer(a.dtype) if isinstance(a, Buffer) else a.dtype for a in kernel.arguments]


def _prevents_vectorizer(s: Stmt) -> bool:
    """Return whether LLVM's vectorizer cannot handle a loop with this statement: another loop, a
    reduction, or a call that reads or writes memory."""
    if isinstance(
        s, For | While | ReduceElements | ReduceColumns | Do | Run | Share | Prefetch | Transpose
    ):
        return True
    calls = [x for e in expressions(s) for x in subexpressions(e) if isinstance(x, loops.Call)]
    return any(isinstance(loops.dtype(a), Pointer) for x in calls for a in x.args)


def _is_vectorizable(s: For) -> bool:
    """Return whether LLVM's vectorizer may vectorize a loop: not if it contains another loop or a
    reduction, nor if all its steps do the same."""
    inner = list(statements(s.body))
    if any(_prevents_vectorizer(x) for x in inner):
        return False
    return any(s.index in subexpressions(e) for x in inner for e in expressions(x))


class _OverlappingLoad(NamedTuple):
    """One of several loads whose vectors overlap: its elements are `behind` places before those of
    the load `last`. `reach` is the distance from the first of the loads to the last one."""

    last: Load
    behind: int
    reach: int


class _OverlappingVectors(NamedTuple):
    """The vectors of a loop from which overlapping loads are shuffled.

    `vectors` maps the last one of such loads to the LLVM type of an element, and the names of the
    vectors before the loop, of the previous step, and of this step. `before` is the block before
    the loop, which runs from `start` to `stop`.
    """

    before: ir.Block
    start: ir.Value
    stop: ir.Value
    vectors: dict[Load, tuple[ir.Type, str, str, str]]


class _Vectors(VectorLoop):
    """Writes the body of a loop for several steps at a time. A value is a `Vector`, an `Index` that
    grows from step to step, or an LLVM value that is the same in all steps."""

    def __init__(self, f: Function, s: For) -> None:
        assert s.vector is not None
        super().__init__(f, s, s.vector.lanes)
        self.s = s
        self.rest = s.vector.rest
        self.flat = (s.start, s.stop) == (f.kernel.first, f.kernel.last)
        self.outer = {id(v) for v in f.values.values()}
        self.offset_in_index: ir.Value | None = None  # the result of `common_offset`
        # Accesses, including stores, that move by one element each step, and the rest of the index.
        self.unit_stride: dict[Load, _Start] = {}
        self.other_uses = False  # whether the index is used for anything else
        self.find_accesses()
        # Set while a loop with overlapping loads is written.
        self.overlaps: _OverlappingVectors | None = None
        self.names: dict[Var, LaneValue] = {}
        self.narrow: dict[str, Vector] = {}  # lanes of 32 bits, by the name of those of 64
        if s.start == loops.Const(0, I8):
            self.padded = frozenset([b for b in f.kernel.stack if not b.exact])
            if isinstance(s.stop, loops.Const) and 0 < s.stop.value <= self.n:
                self.count = int(s.stop.value)
        self.overlapping = self.find_overlapping_loads()

    def first_aligned(self, start: ir.Value, stop: ir.Value) -> ir.Value | None:
        """Return where the loop reaches a cache line, or None.

        The parts of the kernel's range begin with cache lines, but rows and slices do not.

        Vectors that are stored across cache lines take longer: an average of three neighbors over
        30,000 float64 took 15 us, and 7.5 us with aligned stores (AVX-512, 2026-11). Rows that are
        not known to be long keep their order: the test takes 12 % of the time of 23 elements.
        """
        assert self.s.vector is not None
        if self.s.vector.nontemporal and self.f.may_store_nontemporally:
            self.requested = self.f.nontemporal
        long = self.flat or self.s.stop in self.f.kernel.long
        if not self.s.vector.peel or (self.requested is None and not long):
            return None
        b = self.f.b
        long = b.icmp_signed(">=", b.sub(stop, start), ir.Constant(_I64, PEELED * self.n))
        peeled = b.zext(long, _I64)
        if self.requested is not None:
            peeled = b.or_(peeled, self.requested)
        # The rows of other results mostly have the same alignment.
        store = next(x for x in self.s.body if isinstance(x, Store))
        self.f.values[self.s.index] = start
        place = self.f.place(store.buffer, store.index)
        size = store.buffer.element.size
        return until_aligned(b, peeled, self.n, size, place, start, stop)

    def common_offset(self) -> ir.Value | None:
        """Return the loop-invariant part of the index that most accesses of the loop have in
        common, or None if no two accesses have the same.

        `stepping.write_loop` adds it to the index of the loop, once for each row. These accesses
        then use the base addresses of their buffers. Otherwise, the address of each operand would
        be computed for each row.
        """
        if self.flat or self.other_uses or not self.unit_stride:
            return None
        starts = Counter(self.unit_stride.values())
        (terms, constant), count = starts.most_common(1)[0]
        if count < 2 or not terms:
            return None
        _, self.offset_in_index, _ = self.terms(loops.Index(terms, constant))
        return self.offset_in_index

    def find_accesses(self) -> None:
        """Find the accesses that move by one element each step, and whether the index of the loop
        is used otherwise."""
        i, assigned = self.s.index, {s.var for s in self.s.body if isinstance(s, Let)}
        unseen: list[Expr] = []
        for s in self.s.body:
            assert isinstance(s, Let | Store)
            unseen += (s.value,) if isinstance(s, Let) else (Load(s.buffer, s.index), s.value)
        while unseen:
            x = unseen.pop()
            if isinstance(x, Load) and i in subexpressions(x.index):
                index = loops.Index(((i, 1),)) if x.index == i else x.index
                if isinstance(index, loops.Index) and (i, 1) in index.terms:
                    others = tuple([term for term in index.terms if term != (i, 1)])
                    if assigned.union([i]).isdisjoint(parts(loops.Index(others))):
                        self.unit_stride[x] = others, index.constant
                        continue
            self.other_uses |= x == i
            unseen += parts(x)

    def find_overlapping_loads(self) -> dict[Load, _OverlappingLoad]:
        """Find loads whose vectors overlap: loads of shifted buffers (`loops.ir.Shifted`) at one
        index.

        A step loads only the vector of the last of them. The others are shuffled from this vector
        and that of the previous step. A five-point average over 150 x 150 float64 takes 530 us in
        80 sweeps, 650 us with five loads for each vector, and a copy 415 us (AVX-512, 2026-11).
        Without AVX-512, such a shuffle takes two instructions.
        """
        if self.f.vector_bytes < 64 or self.rest != "tail" or self.count:
            return {}
        roots: dict[Memory, tuple[Memory, int]] = {
            b: (of, distance) for b, of, distance in self.f.kernel.shifted
        }
        groups: dict[tuple[Memory, Expr], dict[Load, int]] = {}
        for x in self.unit_stride if roots else ():
            if x.buffer.element.kind in ("int", "uint", "float") and x.buffer.element.size in SIZES:
                root, distance = roots.get(x.buffer, (x.buffer, 0))
                groups.setdefault((root, x.index), {})[x] = distance
        loads: dict[Load, _OverlappingLoad] = {}
        for group in groups.values():
            last = max(group, key=lambda x: group[x])
            reach = group[last] - min(group.values())
            if reach:
                loads |= {
                    x: _OverlappingLoad(last, group[last] - n, reach) for x, n in group.items()
                }
        return loads

    @contextmanager
    def overlapping_loads(
        self, before: ir.Block, head: ir.Block, start: ir.Value, stop: ir.Value
    ) -> Generator[None]:
        self.overlaps = _OverlappingVectors(before, start, stop, {}) if self.overlapping else None
        yield
        vectors = {} if self.overlaps is None else self.overlaps.vectors
        self.overlaps = None
        b = ir.IRBuilder(head)
        b.position_at_start(head)
        entry, end = (x.get_reference().lstrip("%") for x in (before, self.f.b.block))
        for kind, initial, previous, now in vectors.values():
            incoming = f"[{initial}, %{entry}], [{now}, %{end}]"
            insert_line(b, f"{previous} = phi {vector(kind, self.n)} {incoming}")

    def overlapping_lanes(self, load: _OverlappingLoad, kind: ir.Type, at: Index) -> str:
        """Return the elements of an overlapping load, shuffled from the vectors of the previous
        step and of this one."""
        assert self.overlaps is not None
        if load.last not in self.overlaps.vectors:
            self.load_overlapping(self.overlaps, load, kind, at)
        _, _, previous, now = self.overlaps.vectors[load.last]
        lanes = range(self.n - load.behind, 2 * self.n - load.behind)
        return shuffled(self.put, kind, self.n, previous, now, lanes) if load.behind else now

    def load_overlapping(
        self, overlaps: _OverlappingVectors, load: _OverlappingLoad, kind: ir.Type, at: Index
    ) -> None:
        """Load the vector of this step, and before the loop the elements before the first step."""
        f, n, base = self.f, self.n, self.f.base(load.last.buffer)
        place = self.place(base, at)
        self.read.append((place, n * byte_size(kind)))
        now = load_vector(f.b, self.put, self.declares, kind, place, n, None)
        b = self.ahead
        if overlaps.before is not self.before:
            branch = overlaps.before.terminator
            assert branch is not None
            b = ir.IRBuilder(overlaps.before)
            b.position_before(branch)
        if at.offset is not None:
            base = self.early("gep", base, at.offset)

        def put(text: str) -> str:
            return self.put(text, b)

        some = b.icmp_signed("<", overlaps.start, overlaps.stop)
        count = b.select(some, ir.Constant(_I64, load.reach), _ZERO)
        mask = mask_of(b, put, count, n, f.vector_bytes, at_end=True)
        place = b.gep(base, [b.sub(overlaps.start, ir.Constant(_I64, n), flags=("nsw",))])
        initial = load_vector(b, put, self.declares, kind, place, n, mask)
        f.functions.serial += 1
        overlaps.vectors[load.last] = kind, initial, f"%v{f.functions.serial}", now

    def same(self, value: LaneValue) -> TypeGuard[ir.Value]:
        return isinstance(value, ir.Constant | ir.Argument) or id(value) in self.outer

    def early(self, name: str, *values: ir.Value) -> ir.Value:
        value = super().early(name, *values)
        self.outer.add(id(value))
        return value

    def steps_of(
        self, at: ir.Value, mask: Mask, left: ir.Value | int | None, nontemporal: ir.Value | None
    ) -> None:
        self.mask, self.left, self.nontemporal = mask, left, nontemporal
        back = None if self.offset_in_index is None else self.early("neg", self.offset_in_index)
        self.names = {self.s.index: Index(at, 1, back)}
        self.read = []
        for s in self.s.body:
            if isinstance(s, Let):
                self.names[s.var] = self.value(s.value)
            else:
                assert isinstance(s, Store)
                self.store(s)

    def mask_at(self, buffer: Memory, index: Expr) -> Mask:
        """Return the mask of an access; memory with room for whole vectors does not need one."""
        return None if buffer in self.padded and index == self.s.index else self.mask

    def store(self, s: Store) -> None:
        of = s.buffer.element
        place = self.address(s.buffer, s.index)
        v = self.lanes(self.value(s.value))
        if of.kind in ("bool", "half"):
            v = self.apply_to_vectors(
                "to_memory", [of], [v], lambda b, args: to_memory(of, b, args[0])
            )
        self.store_lanes(v.type, place, v.name, self.mask_at(s.buffer, s.index))

    def address(self, buffer: Memory, index: Expr) -> ir.Value:
        at = self.value(index)
        if not isinstance(at, Index) or at.step != 1:
            self.fail("an access that does not move by one element each step")
        return self.place(self.f.base(buffer), at)

    # --- expressions ---

    def value(self, x: Expr) -> LaneValue:
        if isinstance(x, Var):
            return self.names[x] if x in self.names else self.f.values[x]
        if isinstance(x, loops.Const):
            return self.f.value(x)
        if isinstance(x, loops.Index):
            return self.index(x)
        if isinstance(x, Load):
            return self.load(x)
        if isinstance(x, Address):
            self.fail("an address")
        if isinstance(x, loops.Cast):
            of, to = number_type(x.value), x.dtype

            def convert(b: ir.IRBuilder, args: Sequence[ir.Value]) -> ir.Value:
                return write_cast(of, to, b, args[0])

            return self.apply("cast", [of, to], [self.value(x.value)], convert)
        of_args = [loops.dtype(a) for a in x.args]
        if any(isinstance(t, Pointer) for t in of_args):
            self.fail(f"{x.function} of memory")
        values = [self.value(a) for a in x.args]
        if x.dtype == I8 and x.function in ("add", "sub", "mul"):
            index = self.combine_indices(x.function, *values)
            if index is not None:
                return index
        return self.apply(
            x.function,
            [*of_args, x.dtype],
            values,
            lambda b, args: write_call(x.function, of_args, b, args),
        )

    def combine_indices(self, name: str, x: LaneValue, y: LaneValue) -> Index | None:
        """Return a sum, a difference or a product as an index if one operand grows with the loop
        and the other is the same in all lanes; else None. Indices do not overflow."""
        if name != "sub" and isinstance(y, Index):
            x, y = y, x
        if not isinstance(x, Index) or isinstance(y, Index | Vector):
            return None
        if name == "mul":
            if isinstance(y, ir.Constant) and isinstance(x.step, int):
                step = x.step * y.constant
            elif x.step == 1:
                step = y
            else:
                return None
            return Index(self.f.b.mul(self.first(x), y, flags=("nsw",)), step)
        if not self.same(y):
            now = getattr(self.f.b, name)(x.now, y, flags=("nsw",))
            return Index(now, x.step, x.offset)
        if x.offset is not None:
            return Index(x.now, x.step, self.early(name, x.offset, y))
        return Index(x.now, x.step, y if name == "add" else self.early("neg", y))

    def index(self, x: loops.Index) -> LaneValue:
        """Return an index; its loop-invariant part is computed before the loop."""
        moving, offset, computed = self.terms(x)
        for term in computed:
            if isinstance(term, Vector) or moving is None:
                return self.lanes_of_index(x)
            now = self.f.b.add(moving.now, term, flags=("nsw",))
            moving = Index(now, moving.step, moving.offset)
        if moving is None:
            return _ZERO if offset is None else offset
        return self.shifted(moving, offset)

    def shifted(self, index: Index, offset: ir.Value | None) -> Index:
        """Return an index plus a loop-invariant offset."""
        if offset is None or index.offset is None:
            return Index(index.now, index.step, index.offset if offset is None else offset)
        if offset is self.offset_in_index:  # the index was moved by it
            return Index(index.now, index.step)
        return Index(index.now, index.step, self.early("add", index.offset, offset))

    def terms(self, x: loops.Index) -> _Terms:
        """Split an index into the part that grows with the loop, the sum of the loop-invariant
        terms, and the terms that are computed in each step."""
        moving, offset = None, None
        computed: list[ir.Value | Vector] = []
        for v, k in x.terms:
            if k == self.s.index and isinstance(k, Var):
                v, k = k, v
            term = self.value(v)
            if isinstance(term, Index) and moving is None:
                moving = self.times(term, k)
                continue
            factor = self.value(k) if isinstance(k, Var) else ir.Constant(_I64, k)
            if not self.same(term) or not self.same(factor):
                if k != 1:
                    term = self.apply("mul", [I8, I8, I8], [term, factor], _product)
                computed.append(self.lanes(term) if isinstance(term, Index) else term)
                continue
            if k != 1:
                term = self.early("mul", term, factor)
            offset = term if offset is None else self.early("add", offset, term)
        if x.constant:
            constant = ir.Constant(_I64, x.constant)
            offset = constant if offset is None else self.early("add", offset, constant)
        return moving, offset, computed

    def addends(self, x: Expr) -> _Terms:
        """Split a sum that is not an affine index in the same way."""
        if isinstance(x, loops.Index):
            return self.terms(x)
        if not isinstance(x, loops.Call) or x.function != "add":
            v = self.value(x)
            return (v, None, []) if isinstance(v, Index) else (None, None, [v])
        (moving, offset, computed), (other, more, rest) = [self.addends(a) for a in x.args]
        if moving is not None and other is not None:
            return moving, offset, [*computed, self.lanes(other), *rest]
        if offset is None or more is None:
            same = more if offset is None else offset
        else:
            same = self.early("add", offset, more)
        return moving or other, same, [*computed, *rest]

    def lanes_of_index(self, x: loops.Index) -> LaneValue:
        """Return an index as computed lanes."""
        moving, offset, computed = self.terms(x)
        parts: list[LaneValue] = [*computed, *[p for p in (offset, moving) if p is not None]]
        return functools.reduce(lambda p, q: self.apply("add", [I8, I8, I8], [p, q], _sum), parts)

    def times(self, index: Index, k: int | Var) -> Index:
        """Return the index of the loop times a loop-invariant integer."""
        if k == 1:
            return index
        factor = self.value(k) if isinstance(k, Var) else ir.Constant(_I64, k)
        if not self.same(factor):
            self.fail("a multiple that is computed")
        if isinstance(k, int) and isinstance(index.step, int):
            step = index.step * k
        elif index.step == 1:
            step = factor
        else:
            self.fail("a product of strides")
        return Index(self.f.b.mul(self.first(index), factor, flags=("nsw",)), step)

    def load(self, x: Load) -> Vector | ir.Value:
        of, base = x.buffer.element, self.f.base(x.buffer)
        at = self.value(x.index)
        if isinstance(at, Vector):
            return self.gathered(x, *self.addends(x.index))
        if not isinstance(at, Index):
            return from_memory(of, self.f.b, self.f.b.load(self.f.b.gep(base, [at])))
        if not isinstance(at.step, int) or at.step not in (1, *STRIDES):
            return self.gathered(x, at, None, [])
        kind = memory_type(of)
        if self.overlaps is not None and x in self.overlapping:
            return Vector(kind, self.overlapping_lanes(self.overlapping[x], kind, at))
        place, mask = self.place(base, at), self.mask_at(x.buffer, x.index)
        if of.kind == "bool":
            raw = Vector(kind, self.load_lanes(kind, place, at.step, mask))
            return self.loaded(of, raw)
        if of.kind == "complex":
            self.fail("complex numbers")
        self.fetch(x, place, of.size * at.step)
        if x.buffer in self.f.kernel.buffers:
            self.read.append((place, of.size * self.n * at.step))
        return self.loaded(of, Vector(kind, self.load_lanes(kind, place, at.step, mask)))

    def loaded(self, of: DType, v: Vector) -> Vector:
        """Convert a vector from its form in memory to that in registers."""
        if of.kind == "bool":
            text = f"icmp ne {vector('i8', self.n)} {v.name}, zeroinitializer"
            return Vector(ir.IntType(1), self.put(text))
        if of.kind != "half":
            return v
        return self.apply_to_vectors(
            "from_memory", [of], [v], lambda b, args: from_memory(of, b, args[0])
        )

    def gathered(
        self,
        x: Load,
        moving: Index | None,
        offset: ir.Value | None,
        computed: Sequence[ir.Value | Vector],
    ) -> Vector:
        """Load lanes at computed indices."""
        of, base, b = x.buffer.element, self.f.base(x.buffer), self.f.b
        kind = memory_type(of)
        if of.kind in ("bool", "complex") or byte_size(kind) not in SIZES:
            self.fail("short numbers of computed places")
        lanes: list[Vector] = []
        if moving is not None:
            base = self.place(base, self.shifted(moving, offset))
            lanes.append(self.steps(moving.step))
        elif offset is not None:
            base = b.gep(base, [offset])
        for v in computed:
            if isinstance(v, Vector):
                lanes.append(v)
            else:
                base = b.gep(base, [v])
        if len(lanes) == 1:  # 16 lanes of 32 bits fit into one vector
            return self.gather_lanes(kind, base, self.narrow.get(lanes[0].name, lanes[0]))
        places = lanes[0]
        for v in lanes[1:]:
            places = self.apply_to_vectors("add", [I8, I8, I8], [places, v], _sum)
        return self.gather_lanes(kind, base, places)

    def apply(
        self,
        name: str,
        of: Sequence[Type],
        values: Sequence[LaneValue],
        write: _Write,
    ) -> Vector | ir.Value:
        """Write an operation on values of which some may be vectors."""
        scalars = [v for v in values if not isinstance(v, Vector | Index)]
        if len(scalars) == len(values):
            return write(self.f.b, scalars)
        return self.apply_to_vectors(name, of, [self.lanes(v) for v in values], write)

    def apply_to_vectors(
        self, name: str, of: Sequence[Type], values: Sequence[Vector], write: _Write
    ) -> Vector:
        """Write an operation on vectors."""
        key = name, tuple(of), tuple([str(v.type) for v in values]), self.n
        template = _templates.get(key) or _templates.recall(key)
        if template is None:
            template = make_template([v.type for v in values], write, self.n)
            _templates.store(key, template)
        if isinstance(template, str):
            self.fail(template)
        result = self.write_template(name, template, [v.name for v in values])
        if name == "cast" and [*of] == [I4, I8]:
            self.narrow[result.name] = values[0]
        return result


def _product(b: ir.IRBuilder, args: Sequence[ir.Value]) -> ir.Value:
    return b.mul(args[0], args[1])


def _sum(b: ir.IRBuilder, args: Sequence[ir.Value]) -> ir.Value:
    return b.add(args[0], args[1])


def has_scalar_steps(kernel: Kernel) -> bool:
    """Return whether a kernel has a loop around a few kernels of one step each.

    Each step loads values that do not change, such as constants. LLVM's function passes hoist the
    loads out of the loop: a bitwise CRC takes 0.7 of JAX's time instead of 2.
    """
    loops = [s for s in statements(kernel.body) if isinstance(s, For | While)]
    runs = [s for loop in loops for s in statements(loop.body) if isinstance(s, Run)]
    scalar = [s for s in runs if isinstance(s.last, Const) and s.last.value == 1]
    return 0 < len(scalar) <= MAX_SCALAR_RUNS
