"""Pass that decides which loops of independent steps become vector code, and how.

`pipeline.py` runs it on a kernel without reductions, with the size of vector registers. It adds
`Vector` annotations to loops (the number of lanes, the treatment of the last steps, non-temporal
stores), which the LLVM back end implements (`llvm/vector_loop.py`).
"""

from __future__ import annotations

from collections.abc import Sequence, Set

from accnp.compiler.loops.functions import FUNCTIONS, INFIX, has_vector_form
from accnp.compiler.loops.ir import (
    Address,
    Call,
    Cast,
    Const,
    Expr,
    For,
    Index,
    Kernel,
    Let,
    Load,
    Memory,
    Reduce,
    Stmt,
    Store,
    Transpose,
    Var,
    Vector,
    dtype,
    number_type,
)
from accnp.compiler.loops.types import I8, Pointer
from accnp.compiler.loops.visiting import (
    accessed,
    addends,
    every_part,
    replace_loops,
    statements,
    subexpressions,
)
from accnp.ir.kernel import STRIDES

__all__ = ["vectorize"]

LANES = 64  # the maximum number of lanes
LINE = 64  # bytes of a cache line
# A body with at least MIN_LONG_BODY instructions processes four vectors together, where a gather
# counts as GATHER_COST more instructions, because it waits for the cache. The exception are bodies
# that access at least MANY_ARRAYS and call no function, for which memory is the bottleneck.
MIN_LONG_BODY = 16
GATHER_COST = 8
MANY_ARRAYS = 8
# The maximum instructions of a body that has a separate copy for whole vectors, without a mask.
MAX_COPIED_BODY = 32


def vectorize(kernel: Kernel, vector_bytes: int) -> Kernel:
    """Return a kernel whose innermost independent loops are marked as vector code.

    Parameters
    ----------
    kernel : Kernel
        A kernel without reductions.
    vector_bytes : int
        Bytes of a vector register; 0 for none.
    """

    def change(s: For | Reduce) -> Sequence[Stmt] | None:
        if not isinstance(s, For) or not s.independent or s.step != 1 or not vector_bytes:
            return None
        if not all(isinstance(x, Let | Store) for x in s.body):
            return None
        flat = (s.start, s.stop) == (kernel.first, kernel.last)
        vector = _vector(s, flat, _buffers_with_room(kernel), vector_bytes)
        if vector is None:
            return None
        if flat and vector.rest == "tail":
            vector = vector._replace(peel=_stores_all_elements(s, kernel))
        if not flat and vector.rest != "whole" and _are_results(s, kernel, vector_bytes):
            # Peeling adds copies of the body, which take long to compile in kernels with more
            # loops. Kernels with tiles contain no reductions.
            vector = vector._replace(nontemporal=True, peel=loops == 2 or tiled)
        return [s._replace(vector=vector)]

    tiled = any(isinstance(s, Transpose) for s in statements(kernel.body))
    loops = sum([isinstance(s, For) for s in statements(kernel.body)])
    return kernel._replace(body=replace_loops(kernel.body, change))


def _buffers_with_room(kernel: Kernel) -> frozenset[Memory]:
    """Return the buffers on the stack with room for a whole vector after the last element."""
    return frozenset([b for b in kernel.stack if not b.exact])


def _vector(s: For, flat: bool, stack: frozenset[Memory], vector_bytes: int) -> Vector | None:
    parts = [p for inner in s.body for p in every_part(inner)]
    if not all(_has_form(p) for p in parts):
        return None
    loads = [p for p in parts if isinstance(p, Load)]
    moving = _step_variables(s)
    if not all(_is_loaded(x, s, moving, vector_bytes) for x in loads):
        return None
    stores = [x for x in s.body if isinstance(x, Store)]
    if not all(_has_unit_stride(x.index, s.index) for x in stores):
        return None
    buffers = {x.buffer for x in (*loads, *stores)}
    far = any(isinstance(p, Call) and not _is_simple(p) for p in parts)
    size = sum(map(_weight, parts))
    # Process several vectors together if there are 32 registers. Functions always get four vectors:
    # they are chains of dependent instructions, so that a single vector does not fill the
    # pipelines. With 16 registers, short bodies get two vectors, which are a cache line.
    gathers = sum([isinstance(x.index, Call | Cast | Load) for x in loads])
    four_vectors = (
        flat
        and size + GATHER_COST * gathers >= MIN_LONG_BODY
        and (len(buffers) < MANY_ARRAYS or far)
    )
    two = flat if vector_bytes == 64 else size <= MAX_COPIED_BODY and not far
    side = 4 if four_vectors else 2 if two else 1
    sizes = [4 if b.element.kind == "half" else b.element.size for b in buffers]  # in registers
    lanes = min(LANES, side * vector_bytes // max(sizes))
    if isinstance(s.start, Const) and isinstance(s.stop, Const):  # no longer than the loop
        steps = int(s.stop.value) - int(s.start.value)
        lanes = min(lanes, 1 << max(2, (steps - 1).bit_length()))
    in_order = all(x.index == s.index for x in (*loads, *stores))
    if s.start == Const(0, I8) and buffers <= stack and in_order:
        return Vector(lanes, "whole")
    # If a cache line takes several stores, lines of several arrays may be evicted from the write
    # combining buffers before they are complete.
    nontemporal = flat and (vector_bytes == LINE or len(stores) == 1)
    return Vector(lanes, "masked" if size > MAX_COPIED_BODY else "tail", nontemporal)


def _are_results(s: For, kernel: Kernel, vector_bytes: int) -> bool:
    """Return whether a loop only stores results that no other statement accesses, so that its
    stores may be non-temporal. This excludes the few results of a tile of reductions."""
    stores = [x for x in s.body if isinstance(x, Store)]
    if not stores or (vector_bytes < LINE and len(stores) > 1):
        return False
    parts = [p for inner in s.body for p in every_part(inner)]
    # Kernels that others call have an argument that enables non-temporal stores. With tiles, such
    # kernels were slower for small results (1.1 times the time for joined transposes).
    has_argument = kernel.nontemporal is not None
    tiles = {x.to for x in statements(kernel.body) if isinstance(x, Transpose) and not has_argument}
    stack_buffers = {b for b in kernel.stack if b not in tiles}
    if any(isinstance(p, Load) and p.buffer in stack_buffers for p in parts):
        return False
    written = {x.buffer for x in stores}
    return written <= set(kernel.buffers) and not any(
        written & accessed(x) for x in _statements_outside(kernel.body, s)
    )


def _stores_all_elements(s: For, kernel: Kernel) -> bool:
    """Return whether the first store of a loop fills memory of the caller, element by element."""
    store = next((x for x in s.body if isinstance(x, Store)), None)
    return store is not None and store.buffer in kernel.buffers and store.index == s.index


def _statements_outside(body: Sequence[Stmt], s: For) -> list[Stmt]:
    """Return the statements that are not part of a loop."""
    inside = {id(x) for x in (s, *statements(s.body))}
    return [x for x in statements(body) if id(x) not in inside]


def _has_unit_stride(x: Expr, index: Var) -> bool:
    """Return whether adjacent steps access adjacent elements."""
    return x == index or (isinstance(x, Index) and (index, 1) in x.terms)


def _has_form(x: Expr) -> bool:
    if isinstance(x, Address) or dtype(x).kind == "complex":
        return False
    if not isinstance(x, Call):
        return True
    of = [dtype(a) for a in x.args]
    if not of or any(isinstance(t, Pointer) for t in of):
        return False
    return has_vector_form(x.function, number_type(x.args[0]))


def _is_simple(x: Call) -> bool:
    """Return whether a function compiles to one or two instructions."""
    return x.function in FUNCTIONS and FUNCTIONS[x.function].simple


def _step_variables(s: For) -> set[Expr]:
    """Return the variables that change from step to step."""
    variables: set[Expr] = {s.index}
    for x in s.body:
        if isinstance(x, Let) and not variables.isdisjoint(subexpressions(x.value)):
            variables.add(x.var)
    return variables


def _is_loaded(x: Load, s: For, moving: Set[Expr], vector_bytes: int) -> bool:
    """Return whether a vector can be loaded without a separate load for each lane."""
    size = 1 if x.buffer.element.kind == "bool" else x.buffer.element.size
    if size >= 4:
        return True
    terms = [t for t in addends(x.index) if not moving.isdisjoint(subexpressions(t))]
    if not terms or terms == [s.index]:
        return True
    if len(terms) > 1 or not isinstance(terms[0], Index):
        return False
    steps = [k if v == s.index else v for v, k in terms[0].terms if s.index in (v, k)]
    shuffled = size == 2 and vector_bytes == LINE
    return len(steps) == 1 and (steps[0] == 1 or (shuffled and steps[0] in STRIDES))


def _weight(x: Expr) -> int:
    """Return the approximate number of instructions of an expression, without its operands."""
    if isinstance(x, Call):
        if x.function in INFIX or x.function in ("neg", "not"):
            return 1
        return 2 if _is_simple(x) else MAX_COPIED_BODY // 2
    if isinstance(x, Index):
        return int(len(x.terms) > 1)  # terms that are the same in all steps are hoisted
    return 2 if isinstance(x, Cast) else 0
