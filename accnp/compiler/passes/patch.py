"""Pass that distributes a two-dimensional map over the thread blocks of a GPU, in patches.

`specs/grid.py` applies it to maps whose rows cannot be loaded four elements at a time. A thread
block computes a patch of 16 rows and 128 columns, a warp two of these rows, and a thread every 32nd
column of them. A thread issues all its loads before it uses the first result. The position of a
patch is computed once per patch and not once per element. If the map is a stencil, most neighbors
are in the same patch, so that each element is loaded from memory only once.
"""

from __future__ import annotations

from collections.abc import Mapping

from accnp.compiler.loops.builder import affine, call, plus
from accnp.compiler.loops.ir import Const, Expr, For, If, Kernel, Let, Stmt, Store, Var
from accnp.compiler.loops.types import I8
from accnp.compiler.passes.copies import Body, Copies, interleave_copies
from accnp.compiler.passes.spread import collapse, nest_of
from accnp.compiler.unsupported import Unsupported

__all__ = ["ACROSS", "DOWN", "HEIGHT", "WIDTH", "patch"]

LANES = 32  # threads of a warp
THREADS = 256  # threads of a block
ACROSS, DOWN = 4, 2  # columns per thread, rows per warp
WIDTH, HEIGHT = LANES * ACROSS, THREADS // LANES * DOWN
_ZERO = Const(0, I8)


def patch(kernel: Kernel) -> tuple[Kernel, Var, Var]:
    """Return the kernel for a GPU, whose range is the patches, and its arguments for the number of
    patches along the columns and along the rows.

    Parameters
    ----------
    kernel : Kernel
        Assignments, and a nest of at least two loops whose sizes are arguments, which computes an
        element in each step.

    Raises
    ------
    Unsupported
        If the kernel has other statements.
    """
    before, nest = nest_of(kernel)
    *others, rows, columns = nest
    body = [s for s in columns.body if isinstance(s, Let | Store)]
    if len(body) < len(columns.body):
        raise Unsupported("a kernel that is not a map over single elements")
    names = Copies(kernel)
    across, down = names.new("across"), names.new("down")
    u, t, c, r = (names.new(n) for n in "utcr")
    v = names.new("v")
    lets = [Let(v, call("floordiv", u, across))]
    x = names.new("x")
    lets.append(Let(x, call("sub", u, call("mul", v, across))))
    known: dict[Var, Expr] = {}
    if others:
        o, y = names.new("o"), names.new("y")
        lets += [Let(o, call("floordiv", v, down)), Let(y, call("sub", v, call("mul", o, down)))]
        indices, known = collapse(kernel, names, others, o)
        lets += indices
        v = y
    lane, warp = call("and", t, Const(LANES - 1, I8)), call("shr", t, Const(5, I8))
    lets.append(Let(c, call("add", call("mul", x, Const(WIDTH, I8)), lane)))
    first = call("mul", v, Const(HEIGHT, I8))
    lets.append(Let(r, call("add", first, call("mul", warp, Const(DOWN, I8)))))

    def element(row: Expr, column: Expr) -> dict[Var, Expr]:
        return {**known, rows.index: row, columns.index: column}

    whole = [
        names.copy(body, element(plus(r, Const(y, I8)), plus(c, Const(LANES * x, I8))))
        for x in range(ACROSS)
        for y in range(DOWN)
    ]
    inside = call(
        "and",
        call("lt", affine((r, 1), constant=DOWN - 1), rows.stop),
        call("lt", affine((c, 1), constant=LANES * (ACROSS - 1)), columns.stop),
    )
    one = If(inside, tuple(interleave_copies(whole)), (_edge(names, nest, body, known, r, c),))
    each = For(t, _ZERO, Const(THREADS, I8), 1, (*lets, one), independent=True, spread="threads")
    patches = For(u, _ZERO, kernel.last, 1, (each,), independent=True, spread="blocks")
    integers = (*kernel.integers, across, down)
    result = kernel._replace(body=(*before, patches), integers=integers, threads=THREADS)
    return result, across, down


def _edge(
    names: Copies, nest: list[For], body: Body, known: Mapping[Var, Expr], r: Var, c: Var
) -> Stmt:
    """Return a loop over the elements of a thread that are within bounds, one by one."""
    rows, columns = nest[-2:]
    row, column = names.fresh(rows.index), names.fresh(columns.index)
    limits = [
        call("fmin", affine((first, 1), constant=side), loop.stop)
        for first, side, loop in ((r, DOWN, rows), (c, WIDTH, columns))
    ]
    here = {**known, rows.index: row, columns.index: column}
    inner = For(column, c, limits[1], LANES, tuple(names.copy(body, here)))
    return For(row, r, limits[0], 1, (inner,))
