"""Map ops that convert or select: complex parts, dtype conversion, bit casts, `select_n`.

Each declaration has a type rule, a NumPy reference, a scalar expression for kernels and derivative
rules, which take (t, y, *x): tangent, output, operands. The last section contains two ops with
which softmax and logsumexp add exponentials without cancellation.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from accnp.errors import UnsupportedDtypeError
from accnp.ir.aval import Aval, make_aval
from accnp.ir.kernel import dtype_code
from accnp.ir.node import Node
from accnp.ir.op import ZERO, Linear, o
from accnp.ir.trace import state
from accnp.primitives import reference as ref
from accnp.primitives.kinds import (
    BOOL,
    broadcast_scalar,
    broadcast_to,
    dtype_kind,
    full,
    like_full,
    map_op,
    map_shape,
    move_batch_first,
    unary,
    zeros_like_aval,
)

if TYPE_CHECKING:
    from accnp.ir.op_types import Operand, Params, Tangents

# --- complex --------------------------------------------------------------------------------------


def _zero_part(ct: Node) -> Node:
    """Return the other part of a cotangent, zero; it is strong, as in JAX, and so is the result."""
    return full(ct.aval.shape, 0, ct.aval.dtype, False)


map_op("real", numpy=np.real, scalar="{0}.real", out="real", dtypes="c",
       jvp=(lambda t, y, x: o.real(t),),
       transpose=lambda ct, x: (o.complex(ct, _zero_part(ct)),), makes_nan=False)  # fmt: skip
map_op("imag", numpy=np.imag, scalar="{0}.imag", out="real", dtypes="c",
       jvp=(lambda t, y, x: o.imag(t),),
       transpose=lambda ct, x: (o.complex(_zero_part(ct), o.neg(ct)),),
       makes_nan=False)  # fmt: skip


def _complex_infer(a: Aval, b: Aval) -> Aval:
    if a.dtype != b.dtype or a.dtype not in (np.dtype(np.float32), np.dtype(np.float64)):
        raise TypeError(
            "complex: needs two float32 or two float64 operands; got "
            f"{a.dtype.name} and {b.dtype.name}; convert both with astype"
        )
    wide = np.dtype(np.complex64 if a.dtype.itemsize == 4 else np.complex128)
    return make_aval(map_shape("complex", (a, b)), wide, a.weak_type and b.weak_type)


map_op(
    "complex", numpy=ref.make_complex,
    infer=_complex_infer, scalar="make_complex({0}, {1})", dtypes="f",
    jvp=(
        lambda t, y, a, b: o.complex(t, like_full(t, 0)),
        lambda t, y, a, b: o.complex(like_full(t, 0), t),
    ),
    transpose=lambda ct, a, b: (o.real(ct), o.imag(o.neg(ct))), makes_nan=False,
)  # fmt: skip
map_op("conj", numpy=np.conj, scalar="{0}.conjugate()", jvp=(lambda t, y, x: o.conj(t),),
       transpose=lambda ct, x: (o.conj(ct),), dtypes="c", makes_nan=False)  # fmt: skip

# --- conversion, selection ------------------------------------------------------------------------


def _cast_infer(x: Aval, *, new_dtype: np.dtype, weak_type: bool = False) -> Aval:
    return make_aval(x.shape, np.dtype(new_dtype), bool(weak_type))


def _cast_scalar(params: Params, in_dtype: np.dtype) -> str:
    if np.dtype(params["new_dtype"]) == BOOL:
        return "{0} != 0"
    if in_dtype.kind == "c" and np.dtype(params["new_dtype"]).kind != "c":
        return "{0}.real"
    return "{0}"


def _cast_jvp(
    t: Node, y: Node, x: Node, *, new_dtype: np.dtype, weak_type: bool = False
) -> Node | None:
    if dtype_kind(np.dtype(new_dtype)) not in "fc":
        return None
    return o.convert_element_type(t, new_dtype=new_dtype, weak_type=weak_type)


def _cast_transpose(
    ct: Node, x: Operand, *, new_dtype: np.dtype, weak_type: bool = False
) -> tuple[Any]:
    new = {"new_dtype": x.aval.dtype, "weak_type": x.aval.weak_type}
    return (o.convert_element_type(ct, **new),)


CONVERT = map_op(
    "convert_element_type",
    numpy=ref.cast,
    infer=_cast_infer,
    scalar=_cast_scalar,
    jvp=(_cast_jvp,),
    transpose=_cast_transpose,
    show=lambda p: {"new_dtype": np.dtype(p["new_dtype"]), "weak_type": bool(p["weak_type"])},
    makes_nan=False,
)


def _bitcast_infer(x: Aval, *, new_dtype: np.dtype) -> Aval:
    new = np.dtype(new_dtype)
    if new != x.dtype and (new.kind in "bc" or x.dtype.kind in "bc"):
        raise UnsupportedDtypeError(
            "bitcast_convert_type: bool and complex have no bits to read as another dtype; got "
            f"{x.dtype.name} (operand) and {new.name} (new_dtype); use x.view or astype"
        )
    if new.itemsize != x.dtype.itemsize:
        raise ValueError(
            f"bitcast_convert_type: the dtypes must have the same width; got {x.dtype.name} "
            f"(operand) and {new.name} (new_dtype); use a dtype of the same width"
        )
    return make_aval(x.shape, new)


def _bitcast_scalar(params: Params, in_dtype: np.dtype) -> str:
    new = np.dtype(params["new_dtype"])
    return "{0}" if new == in_dtype else f"bitcast_{dtype_code(new)}({{0}})"


def _bitcast_numpy(x: np.ndarray, *, new_dtype: np.dtype) -> np.ndarray:
    return x.view(new_dtype)


map_op("bitcast_convert_type", numpy=_bitcast_numpy,
       infer=_bitcast_infer, scalar=_bitcast_scalar, jvp=(ZERO,))  # fmt: skip
unary("copy", "biufc", np.array, "{0}", lambda t, y, x: t, transpose=lambda ct, x: (ct,),
      float0=True, makes_nan=False)  # fmt: skip


def _select_infer(which: Aval, *cases: Aval) -> Aval:
    dtype = cases[0].dtype
    if which.dtype != BOOL and which.dtype != np.int32:
        raise TypeError(
            f"select_n: select `which` must be boolean or int32 type, got {which.dtype.name}; "
            "compare it with a number, or convert it with astype"
        )
    if which.dtype == BOOL and len(cases) > 2:
        raise TypeError(
            f"select_n: a bool selector takes at most two cases; got {len(cases)}; pass an int32 "
            "selector"
        )
    shape = map_shape("select_n", cases)
    for c in cases:
        if c.dtype != dtype:
            names = ", ".join(v.dtype.name for v in cases)
            raise TypeError(
                f"lax.select requires arguments to have the same dtypes, got {names}; convert with "
                "astype, or use jnp.where, which promotes"
            )
    if which.shape not in ((), shape) and shape != ():
        raise TypeError(
            "select_n: the selector must be a scalar or have the shape of the cases; got "
            f"{which.shape} (which) and {shape} (cases); broadcast it"
        )
    weak = all(c.weak_type for c in cases)
    return make_aval(shape or which.shape, dtype, weak)


def _select_scalar(params: Params, in_dtype: np.dtype, arity: int = 3) -> str:
    if in_dtype == BOOL:
        return "select({0}, {2}, {1})"
    return _select_among(1, arity - 1)


def _select_among(first: int, last: int) -> str:
    """Select from operands first..last by bisection, since Python's parser limits the nesting depth
    of calls to 200. A selector below the range selects the first case, one above it the last."""
    if first == last:
        return f"{{{first}}}"
    middle = (first + last + 1) // 2
    upper, lower = _select_among(middle, last), _select_among(first, middle - 1)
    return f"select({{0}} >= {middle - 1}, {upper}, {lower})"


def _select_jvp(ts: Tangents, y: Node, xs: Sequence[Node], params: Params) -> Node | None:
    cases = [like_full(y, 0) if t is None else broadcast_scalar(t, y.aval.shape) for t in ts[1:]]
    return o.select_n(xs[0], *cases)


def _select_transpose(ct: Node, which: Operand, *cases: Operand) -> tuple[Any, ...]:
    zero = zeros_like_aval(ct.aval)
    out: list[Any] = [None]
    for k, c in enumerate(cases):
        parts = [ct if j == k else zero for j in range(len(cases))]
        out.append(o.select_n(which, *parts) if isinstance(c, Linear) else None)
    return tuple(out)


def _select_batch(
    size: int, xs: Sequence[Node], batched: Sequence[bool], params: Params
) -> tuple[Node, bool]:
    if not batched[0] and xs[0].aval.ndim == 0:
        cases = move_batch_first(size, xs[1:], batched[1:])
        return o.select_n(xs[0], *cases), True
    wide = move_batch_first(size, xs, batched)
    if state.named:  # as in JAX's jaxprs; kernels accept scalars
        shape = next(x.aval.shape for x in wide if x.aval.shape)
        wide = [wide[0], *[broadcast_to(x, shape) for x in wide[1:]]]
    return o.select_n(*wide), True


map_op("select_n", numpy=ref.select_n, infer=_select_infer, scalar=_select_scalar,
       jvp=_select_jvp, transpose=_select_transpose, batch=_select_batch, additive=True,
       float0=True, makes_nan=False)  # fmt: skip

# --- sums of exponentials near 1 ------------------------------------------------------------------

# exp_near_unit_sum is exp(x - top); it is 0 if x is top, and 0 unless the sum {2} of all
# exponentials is near 1 and top near 0, because only there top + log(sum) cancels. If the sum and
# top are constant along a pass that only adds such values, and show that it is not needed, kernels
# skip the pass (`compiler/specs/accumulators.py`).
_NEAR_ONE = "(fmax(abs({1}) * #(0.5), abs({2} - #(1))) < #(0.75))"
_IS_NEAR_ONE, _EXP_NEAR_UNIT_SUM, _LOG_NEAR_UNIT_SUM = (
    {code: text.replace("?", _NEAR_ONE).replace("#", code) for code in ("f4", "f8")}
    for text in (
        "?",
        "select(?, select({0} == {1}, #(0), exp({0} - {1})), #(0))",
        "log1p(select(?, {0}, {2} - #(1)))",
    )
)


def _by_precision(texts: dict[str, str]) -> Callable[[Params, np.dtype], str]:
    """Return a function that picks the text for a dtype; halves are float32 in registers."""
    return lambda p, dtype: texts["f8" if dtype == np.float64 else "f4"]


map_op(
    "exp_near_unit_sum", numpy=ref.exp_near_unit_sum,
    scalar=_by_precision(_EXP_NEAR_UNIT_SUM), jvp=(ZERO, ZERO, ZERO),
    nonzero=lambda dtype: _by_precision(_IS_NEAR_ONE)({}, dtype), dtypes="f", cost=20,
)  # fmt: skip
# The logarithm of the third operand, computed from the sum of `exp_near_unit_sum` if that is more
# accurate.
map_op(
    "log_near_unit_sum", numpy=ref.log_near_unit_sum, scalar=_by_precision(_LOG_NEAR_UNIT_SUM),
    jvp=(ZERO, ZERO, lambda t, y, rest, top, total: o.div(t, total)), dtypes="f", cost=20,
    makes_nan=False,
)  # fmt: skip
