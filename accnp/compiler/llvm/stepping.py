"""Write the control flow of a vector loop: whole vectors, and the remaining steps under a mask.

`write_loop` gets a `VectorLoop`, which writes the body for several steps at a time, and the limits
of the loop, and writes LLVM text at the position of the loop's builder. The remaining steps are
one more copy of the body, without a loop around it, because a loop takes half of the time of LLVM's
code generator (measured for a sum over columns). Long bodies are written only once, and so are
those of loops that access only stack buffers, which have room for whole vectors.
"""

from __future__ import annotations

from llvmlite import ir

from accnp.compiler.llvm.accesses import mask_of_first
from accnp.compiler.llvm.nontemporal import nontemporal_if_whole
from accnp.compiler.llvm.vector_loop import VectorLoop

__all__ = ["write_loop"]

_I64 = ir.IntType(64)


def write_loop(loop: VectorLoop, start: ir.Value, stop: ir.Value) -> None:
    """Write a loop from start to stop at the position of its builder."""
    f = loop.f
    loop.before = f.b.append_basic_block("lanes")
    f.b.branch(loop.before)
    f.b.position_at_end(loop.before)
    short = loop.rest != "masked"
    loop.fetches = None if short else set()
    if loop.count:
        _write_single_vector(loop, start)
        return
    # Loop-invariant code is found while the body is written, and comes before it.
    first = loop.first_aligned(start, stop)
    loop.ahead = ir.IRBuilder(loop.before)
    offset = loop.common_offset()
    if offset is not None:
        start, stop = (loop.ahead.add(x, offset, flags=("nsw",)) for x in (start, stop))
        first = None if first is None else loop.ahead.add(first, offset, flags=("nsw",))
    if loop.rest == "whole":
        _write_vector_loop(loop, start, stop, whole=True)
    elif not short:
        _write_vector_loop(loop, start, stop, masked=True, first=first)
    elif first is None:
        _write_rest(loop, _write_vector_loop(loop, start, stop), stop)
    else:
        _write_aligned_loop(loop, start, first, stop)
    loop.ahead.branch(loop.join)


def _write_single_vector(loop: VectorLoop, start: ir.Value) -> None:
    """Write all steps as one vector: their number is known and needs no test at run time."""
    b = loop.f.b
    loop.fetches = loop.requested = None
    loop.ahead = ir.IRBuilder(loop.before)
    loop.join = b.append_basic_block("once")
    b.position_at_end(loop.join)
    mask = loop.count if loop.count < loop.n else None
    loop.steps_of(start, mask, mask, None)
    loop.ahead.branch(loop.join)


def _write_rest(loop: VectorLoop, now: ir.Value, limit: ir.Value) -> None:
    """Write the remaining steps: one copy of the body under a mask."""
    b = loop.f.b
    rest, end = (b.append_basic_block(x) for x in ("rest", "end"))
    b.cbranch(b.icmp_signed("<", now, limit), rest, end)
    b.position_at_end(rest)
    left = b.sub(limit, now)
    mask = mask_of_first(b, loop.put, left, loop.n, loop.f.vector_bytes)
    loop.steps_of(now, mask, left, None)
    b.branch(end)
    b.position_at_end(end)


def _write_aligned_loop(loop: VectorLoop, start: ir.Value, first: ir.Value, stop: ir.Value) -> None:
    """Write the steps before `first`, where results are aligned, then whole vectors, and then the
    remaining steps. The steps at both ends share one copy of the body."""
    b = loop.f.b
    loop.join = head = b.append_basic_block("head")
    whole, end = (b.append_basic_block(x) for x in ("whole", "end"))
    b.position_at_end(head)
    now, limit = b.phi(_I64), b.phi(_I64)
    now.add_incoming(start, loop.before)
    limit.add_incoming(first, loop.before)
    _write_rest(loop, now, limit)
    b.cbranch(b.icmp_signed("<", limit, stop), whole, end)
    b.position_at_end(whole)
    now.add_incoming(_write_vector_loop(loop, limit, stop), b.block)
    limit.add_incoming(stop, b.block)
    b.branch(head)
    b.position_at_end(end)


def _write_vector_loop(
    loop: VectorLoop,
    start: ir.Value,
    stop: ir.Value,
    masked: bool = False,
    whole: bool = False,
    first: ir.Value | None = None,
) -> ir.PhiInstr:
    """Write a loop from start over whole vectors, and return where it stops.

    If it is `masked`, it runs to the end, and first up to `first` if that is given. If it is
    `whole`, memory after the end may be written, and the last vector needs no mask.
    """
    b, n = loop.f.b, loop.n
    before, limit, varying_limit = b.block, stop, None
    head, body, end = (b.append_basic_block(x) for x in ("head", "vectors", "end"))
    if before is loop.before:
        loop.join = head  # the branch is written when all code before it is known
    else:
        b.branch(head)
    b.position_at_end(head)
    now = b.phi(_I64)
    now.add_incoming(start, before)
    if first is not None:
        limit = varying_limit = b.phi(_I64)
        varying_limit.add_incoming(first, before)
    if not masked and not whole:  # up to the last step from which a vector is whole
        limit = loop.ahead.sub(stop, ir.Constant(_I64, n - 1), flags=("nsw",))
    out = end if first is None else b.append_basic_block("more")
    b.cbranch(b.icmp_signed("<", now, limit), body, out)
    b.position_at_end(body)
    mask, left, nontemporal, loop.whole = None, None, loop.requested, None
    if masked:
        left = b.sub(limit, now)
        mask = mask_of_first(b, loop.put, left, n, loop.f.vector_bytes)
        if loop.f.vector_bytes < 64:
            loop.whole = b.icmp_signed(">=", left, ir.Constant(_I64, n))
        if nontemporal is not None:
            nontemporal = nontemporal_if_whole(b, nontemporal, now, n, limit)
    with loop.overlapping_loads(before, head, start, stop):
        loop.steps_of(now, mask, left, nontemporal)
    following = b.add(now, ir.Constant(_I64, n), flags=("nsw",))
    if varying_limit is not None:
        following = b.select(b.icmp_signed("<", following, limit), following, limit)
        varying_limit.add_incoming(limit, b.block)
    now.add_incoming(following, b.block)
    b.branch(head)
    if varying_limit is not None:
        b.position_at_end(out)
        now.add_incoming(now, out)
        varying_limit.add_incoming(stop, out)
        b.cbranch(b.icmp_signed("<", limit, stop), head, end)
    b.position_at_end(end)
    return now
