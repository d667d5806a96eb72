"""Pass that distributes a map with transposed operands over the blocks of a GPU in tiles of 32 x 32
elements.

Such operands are contiguous along another axis than the results. A block reads them along their
contiguous axis into shared memory, from which it then reads along the other axis.
"""

from __future__ import annotations

from collections.abc import Mapping

from accnp.compiler.loops.builder import affine, call
from accnp.compiler.loops.ir import (
    Buffer,
    Const,
    Do,
    Expr,
    For,
    If,
    Index,
    Kernel,
    Let,
    Load,
    Stmt,
    Store,
    Var,
)
from accnp.compiler.loops.types import I8
from accnp.compiler.loops.visiting import expressions, map_expr, map_statement, subexpressions
from accnp.compiler.passes.copies import Body, Copies
from accnp.compiler.passes.replace_variables import replaced
from accnp.compiler.passes.spread import collapse, nest_of
from accnp.compiler.unsupported import Unsupported

__all__ = ["SIDE", "tile"]

SIDE = 32  # the side of a tile
PITCH = SIDE + 1  # avoids bank conflicts along rows and columns of a tile
WARPS = 8  # warps of a thread block
ROOM = 40 << 10  # the maximum bytes of shared memory for tiles
_ZERO = Const(0, I8)


def tile(kernel: Kernel, axis: int) -> tuple[Kernel, Var, Var]:
    """Return the kernel for a GPU, whose range is the tiles, and its arguments for the number of
    tiles along the innermost axis and along the other one.

    Parameters
    ----------
    kernel : Kernel
        Assignments, and a nest of at least two loops whose sizes are arguments, which computes an
        element in each step.
    axis : int
        Number of the loop along which operands are contiguous.

    Raises
    ------
    Unsupported
        If the kernel has other statements.
    """
    before, nest = nest_of(kernel)
    down, inner = nest[axis], nest[-1]
    others = [loop for loop in nest if loop not in (down, inner)]
    body = [s for s in inner.body if isinstance(s, Let | Store)]
    if len(body) < len(inner.body):
        raise Unsupported("a kernel that is not a map over single elements")
    names = Copies(kernel)
    side, below = names.new("across"), names.new("down")
    u, v, o, begin, first = (names.new(n) for n in ("u", "v", "o", "begin", "first"))
    lets = [
        Let(v, call("floordiv", u, side)),
        Let(begin, call("mul", call("sub", u, call("mul", v, side)), Const(SIDE, I8))),
        Let(o, call("floordiv", v, below)),
        Let(first, call("mul", call("sub", v, call("mul", o, below)), Const(SIDE, I8))),
    ]
    known: dict[Var, Expr] = {}
    if others:
        indices, known = collapse(kernel, names, others, o)
        lets += indices
    tiles = _tiles(names, body, down.index, inner.index)
    limits = {down.index: down.stop, inner.index: inner.stop}

    def phase(along: Var, across: Var, starts: Mapping[Var, Var], fills: bool) -> For:
        """Return a loop over a tile, with the threads of a warp along one axis and the warps along
        the other."""
        t = names.new("t")
        lane, warp = names.new("x"), names.new("y")
        steps: list[Stmt] = [
            Let(lane, call("and", t, Const(SIDE - 1, I8))),
            Let(warp, call("shr", t, Const(5, I8))),
        ]
        for k in range(0, SIDE, WARPS):
            here: dict[Var, Expr] = dict(known)
            for v, own, more in ((along, lane, 0), (across, warp, k)):
                moved = names.fresh(v)
                steps.append(Let(moved, affine((starts[v], 1), (own, 1), constant=more)))
                here[v] = moved
            place = affine(*((lane, PITCH), (warp, 1)) if fills else ((warp, PITCH), (lane, 1)))
            by = k if fills else k * PITCH
            assert isinstance(place, Index)
            place = place._replace(constant=by)
            if fills:
                inside: Body = [Store(b, place, replaced(x, here)) for x, b in tiles.items()]
            else:
                swapped = [_from_tiles(s, tiles, place) for s in body]
                inside = names.copy(swapped, here)
            tests = [call("lt", here[v], limits[v]) for v in (inner.index, down.index)]
            steps.append(If(call("and", *tests), tuple(inside)))
        return For(
            t, _ZERO, Const(SIDE * WARPS, I8), 1, tuple(steps), independent=True, spread="threads"
        )

    starts = {down.index: first, inner.index: begin}
    wait = Do("barrier", ())
    steps = (
        *lets,
        phase(down.index, inner.index, starts, True), wait,
        phase(inner.index, down.index, starts, False), wait,
    )  # fmt: skip
    whole = For(u, _ZERO, kernel.last, 1, steps, independent=True, spread="blocks")
    result = kernel._replace(
        body=(*before, whole), integers=(*kernel.integers, side, below), threads=SIDE * WARPS,
        shared=tuple(tiles.values()),
    )  # fmt: skip
    return result, side, below


def _tiles(names: Copies, body: Body, down: Var, inner: Var) -> dict[Load, Buffer]:
    """Return the transposed loads with tiles for them, as far as shared memory suffices. Other
    loads access memory directly."""
    tiles: dict[Load, Buffer] = {}
    size = 0
    for s in body:
        for x in [part for e in expressions(s) for part in subexpressions(e)]:
            if not isinstance(x, Load) or x in tiles or not isinstance(x.index, Index):
                continue
            steps = dict(x.index.terms)
            if steps.get(down) != 1 or steps.get(inner, 0) in (-1, 0, 1):
                continue
            assert isinstance(x.buffer, Buffer)
            size += SIDE * PITCH * x.buffer.dtype.size
            if size <= ROOM:
                name = names.new("tile").name
                tiles[x] = Buffer(name, x.buffer.dtype, SIDE * PITCH)
    return tiles


def _from_tiles(s: Let | Store, tiles: Mapping[Load, Buffer], place: Expr) -> Let | Store:
    def change(x: Expr) -> Expr | None:
        return Load(tiles[x], place) if isinstance(x, Load) and x in tiles else None

    statement = map_statement(s, lambda x: map_expr(x, change))
    assert isinstance(statement, Let | Store)
    return statement
