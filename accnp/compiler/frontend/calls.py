"""Type the calls of intrinsics, and convert their arguments.

The input is the name of a function or procedure and its arguments as expressions of the loop IR.
The output is the type of the result, and the arguments after conversion to the types of the
parameters. The front end uses this for calls in kernels and in users' functions, and `formulas.py`
for the scalar formulas of ops.
"""

from __future__ import annotations

from collections.abc import Sequence

from accnp.compiler.ir_tools.signatures import find_intrinsic
from accnp.compiler.loops.ir import Expr, dtype
from accnp.compiler.loops.operators import stored_as
from accnp.compiler.loops.types import F4, DType, Type
from accnp.compiler.unsupported import Unsupported

__all__ = ["convert_argument", "resolve_call"]


def resolve_call(name: str, args: Sequence[Expr]) -> tuple[Type | None, tuple[Expr, ...]] | None:
    """Return the type of the result of an intrinsic, and its arguments as it takes them.

    Parameters
    ----------
    name : str
        The name of the intrinsic.
    args : sequence of Expr
        The arguments, which are converted to the types of its parameters.

    Returns
    -------
    tuple of (Type or None, tuple of Expr), or None
        The type is None for a procedure; None if no intrinsic of this name takes such arguments.

    Raises
    ------
    Unsupported
        If a conversion is not allowed.
    """
    intrinsic = find_intrinsic(name, [dtype(a) for a in args])
    if intrinsic is None:
        return None
    result, params, _ = intrinsic
    return result, tuple([convert_argument(a, t) for a, t in zip(args, params, strict=True)])


def convert_argument(x: Expr, to: Type) -> Expr:
    """Return an argument as a parameter of a type takes it: numbers of half precision are float32
    in registers already."""
    of = dtype(x)
    if of == to or (of.kind == "half" and to == F4):
        return x
    if not isinstance(to, DType) or not isinstance(of, DType):
        raise Unsupported(f"an argument of type {of.token} in place of {to.token}")
    return stored_as(x, to)
