"""Pass that replaces divisions of indices by multiplications, because GPUs have no instruction for
integer division."""

from __future__ import annotations

from collections.abc import Collection

from accnp.compiler.loops.ir import Call, Expr, Kernel, Var
from accnp.compiler.loops.types import I8
from accnp.compiler.loops.visiting import map_body, map_expr
from accnp.compiler.passes.copies import Copies

__all__ = ["divide_by_products"]


def divide_by_products(kernel: Kernel, sizes: Collection[Var]) -> tuple[Kernel, list[Var]]:
    """Return a kernel without divisions by some sizes, and the sizes for which it has additional
    arguments.

    Parameters
    ----------
    kernel : Kernel
        A kernel.
    sizes : collection of Var
        Arguments that are positive and below 2^31, like everything that is divided by them.

    Notes
    -----
    ``x // n`` is ``quotient(x, m, s)``. The result has two more arguments, m and s, for each size
    that is returned, in this order: s is 31 plus the bits of n - 1, and m is 2^s // n + 1.
    """
    names = Copies(kernel)
    factors: dict[Var, tuple[Var, Var]] = {}

    def change(x: Expr) -> Expr | None:
        if not isinstance(x, Call) or x.function != "floordiv":
            return None
        value, n = x.args
        if not isinstance(n, Var) or n not in sizes:
            return None
        if n not in factors:
            factors[n] = names.new(f"{n.name}m"), names.new(f"{n.name}b")
        return Call("quotient", (map_expr(value, change), *factors[n]), I8)

    body = map_body(kernel.body, lambda x: map_expr(x, change))
    more = [v for pair in factors.values() for v in pair]
    return kernel._replace(body=body, integers=(*kernel.integers, *more)), list(factors)
