"""Write the control flow of a vector loop: whole vectors, and the remaining steps under a mask.

In: a `VectorLoop`, which writes the body for several steps at a time, and the limits. Out: LLVM
text. The remaining steps are one more copy of the body, without a loop: loops take half of the time
of LLVM's code generator, for a sum over columns. Long bodies are written only once, and so are
those of loops that access only stack buffers, which have room for whole vectors.
"""

from __future__ import annotations

from llvmlite import ir

from accnp.compiler.llvm.accesses import first_of
from accnp.compiler.llvm.nontemporal import asked_of_whole
from accnp.compiler.llvm.vector_loop import VectorLoop

__all__ = ["go_over"]

_I64 = ir.IntType(64)


def go_over(loop: VectorLoop, start: ir.Value, stop: ir.Value) -> None:
    """Write a loop from start to stop at the position of its builder."""
    f = loop.f
    loop.before = f.b.append_basic_block("lanes")
    f.b.branch(loop.before)
    f.b.position_at_end(loop.before)
    short = loop.rest != "masked"
    loop.fetches = None if short else set()
    if loop.count:
        _once(loop, start)
        return
    # Loop-invariant code is found while the body is written, and comes before it.
    first = loop.first_aligned(start, stop)
    loop.ahead = ir.IRBuilder(loop.before)
    origin = loop.common_start()
    if origin is not None:
        start, stop = (loop.ahead.add(x, origin, flags=("nsw",)) for x in (start, stop))
        first = None if first is None else loop.ahead.add(first, origin, flags=("nsw",))
    if loop.rest == "whole":
        _loop(loop, start, stop, whole=True)
    elif not short:
        _loop(loop, start, stop, masked=True, first=first)
    elif first is None:
        _rest(loop, _loop(loop, start, stop), stop)
    else:
        _twice(loop, start, first, stop)
    loop.ahead.branch(loop.join)


def _once(loop: VectorLoop, start: ir.Value) -> None:
    """Write all steps at once if their number is known, without a test at run time."""
    b = loop.f.b
    loop.fetches = loop.asked = None
    loop.ahead = ir.IRBuilder(loop.before)
    loop.join = b.append_basic_block("once")
    b.position_at_end(loop.join)
    mask = loop.count if loop.count < loop.n else None
    loop.steps_of(start, mask, mask, None)
    loop.ahead.branch(loop.join)


def _rest(loop: VectorLoop, now: ir.Value, limit: ir.Value) -> None:
    """Write the remaining steps: one copy of the body under a mask."""
    b = loop.f.b
    rest, end = (b.append_basic_block(x) for x in ("rest", "end"))
    b.cbranch(b.icmp_signed("<", now, limit), rest, end)
    b.position_at_end(rest)
    left = b.sub(limit, now)
    mask = first_of(b, loop.put, left, loop.n, loop.f.vector_bytes)
    loop.steps_of(now, mask, left, None)
    b.branch(end)
    b.position_at_end(end)


def _twice(loop: VectorLoop, start: ir.Value, first: ir.Value, stop: ir.Value) -> None:
    """Write the steps before `first`, whole vectors from there on, and the remaining steps, with
    one copy of the body for both ends."""
    b = loop.f.b
    loop.join = head = b.append_basic_block("head")
    whole, end = (b.append_basic_block(x) for x in ("whole", "end"))
    b.position_at_end(head)
    now, limit = b.phi(_I64), b.phi(_I64)
    now.add_incoming(start, loop.before)
    limit.add_incoming(first, loop.before)
    _rest(loop, now, limit)
    b.cbranch(b.icmp_signed("<", limit, stop), whole, end)
    b.position_at_end(whole)
    now.add_incoming(_loop(loop, limit, stop), b.block)
    limit.add_incoming(stop, b.block)
    b.branch(head)
    b.position_at_end(end)


def _loop(
    loop: VectorLoop,
    start: ir.Value,
    stop: ir.Value,
    masked: bool = False,
    whole: bool = False,
    first: ir.Value | None = None,
) -> ir.PhiInstr:
    """Write a loop from start over whole vectors, or to the end; returns where it stops.

    `masked`: the loop runs to the end, with `first` up to there before. `whole`: memory after the
    end may be written.
    """
    b, n = loop.f.b, loop.n
    came, limit, varying_limit = b.block, stop, None
    head, body, end = (b.append_basic_block(x) for x in ("head", "vectors", "end"))
    if came is loop.before:
        loop.join = head  # the branch is written when all code before it is known
    else:
        b.branch(head)
    b.position_at_end(head)
    now = b.phi(_I64)
    now.add_incoming(start, came)
    if first is not None:
        limit = varying_limit = b.phi(_I64)
        varying_limit.add_incoming(first, came)
    if not masked and not whole:  # up to the last step from which a vector is whole
        limit = loop.ahead.sub(stop, ir.Constant(_I64, n - 1), flags=("nsw",))
    out = end if first is None else b.append_basic_block("more")
    b.cbranch(b.icmp_signed("<", now, limit), body, out)
    b.position_at_end(body)
    mask, left, past, loop.whole = None, None, loop.asked, None
    if masked:
        left = b.sub(limit, now)
        mask = first_of(b, loop.put, left, n, loop.f.vector_bytes)
        if loop.f.vector_bytes < 64:
            loop.whole = b.icmp_signed(">=", left, ir.Constant(_I64, n))
        if past is not None:
            past = asked_of_whole(b, past, now, n, limit)
    with loop.shared_loads(came, head, start, stop):
        loop.steps_of(now, mask, left, past)
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
