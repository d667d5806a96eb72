"""Functions that declare ops by kind (`ir/op.py`), with the rules that all ops of a kind share.

map: one scalar expression per element; operands have the same shape and dtype, or rank 0.
view: the output shows the operand's elements through another index map.
reduce: a reduction over some axes.
opaque: a library call, or a kernel that the op provides itself.

The other modules of this folder call them to register ops. The module also contains small helpers
for rules, such as `full` and `broadcast_to`, and the errors that type rules raise.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce, wraps
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from accnp.dtypes import ExtendedDType
from accnp.errors import AxisError, UnsupportedDtypeError
from accnp.ir.aval import Aval, make_aval
from accnp.ir.node import Node, literal
from accnp.ir.op import (
    COMBINES,
    ZERO,
    Combine,
    Op,
    Strided,
    as_tuple,
    declare_combine,
    o,
    register,
)
from accnp.ir.trace import state

if TYPE_CHECKING:
    from accnp.ir.op_types import (
        Avals,
        Batch,
        Infer,
        Jvp,
        JvpRule,
        Params,
        Reference,
        Scalar,
        Transpose,
    )
    from accnp.primitives.rule_types import MapFields, Number, OpaqueFields, OpFields

__all__ = [
    "BOOL", "binary", "broadcast_scalar", "broadcast_to", "compare", "dtype_kind", "in_float32",
    "map_infer", "map_op", "move_batch_first", "opaque", "reduction", "unary", "view",
    "weak_as_operands", "zeros_like_aval",
]  # fmt: skip

BOOL = np.dtype(bool)
INDEX = np.dtype(np.int32)  # dtype of indices along axes that are short enough for it
_LAST = int(np.iinfo(INDEX).max)


def dtype_of_indices(n: int) -> np.dtype:
    """Return the dtype for indices along an axis of length n, and for n itself."""
    return INDEX if n <= _LAST else np.dtype(np.int64)


def check_index_dtype(name: str, n: int, dtype: np.dtype) -> None:
    """Raise OverflowError if indices of n elements do not fit into the dtype of a result."""
    if n > _LAST and n > (last := int(np.iinfo(dtype).max)) + 1:
        raise OverflowError(
            f"{name}: indices of {n} elements do not fit into the dtype; got {dtype.name}, whose "
            f"maximum is {last}; slice the array, or enable 64-bit types (jax_enable_x64) if the "
            "function supports them"
        )


def dtype_kind(dtype: np.dtype | ExtendedDType) -> str:
    """Return "b", "i", "u", "f" or "c"; "V" for PRNG keys.

    The floats of ml_dtypes count as "f", its small integers as "i" and "u".
    """
    kind = dtype.kind
    if kind in "biufc" or isinstance(dtype, ExtendedDType):
        return kind
    if dtype.name.startswith(("int", "uint")):
        return "u" if dtype.name[0] == "u" else "i"
    return "f"


def zeros_like_aval(aval: Aval) -> Node:
    """Return a node of zeros of this aval."""
    return full(aval.shape, 0, aval.dtype, aval.weak_type)


def full(shape: tuple[int, ...], value: Number, dtype: np.dtype, weak: bool = False) -> Node:
    """Return a node of a shape that is filled with one Python scalar."""
    return broadcast_to(_typed_literal(value, dtype, weak), shape)


def _attribute_name(name: str) -> str:
    return name + "_" if name in ("and", "or", "not") else name


def _typed_literal(value: Number, dtype: np.dtype, weak: bool = False) -> Node:
    return literal(_PYTHON_TYPES[dtype_kind(dtype)](value), np.dtype(dtype), weak)


_PYTHON_TYPES: dict[str, Callable[..., complex]] = {
    "b": bool, "i": int, "u": int, "f": float, "c": complex,
}  # fmt: skip


def broadcast_to(x: Node, shape: tuple[int, ...], dims: tuple[int, ...] | None = None) -> Node:
    """Broadcast a node to a shape.

    `dims` maps the axes of x to axes of the result (default: the trailing ones).
    """
    if x.aval.shape == tuple(shape):
        return x
    if dims is None:
        dims = tuple(range(len(shape) - x.aval.ndim, len(shape)))
    return o.broadcast_in_dim(x, shape=tuple(shape), broadcast_dimensions=tuple(dims))


def like_full(x: Node, value: Number) -> Node:
    """Return a constant with the shape and type of x."""
    return full(x.aval.shape, value, x.aval.dtype, x.aval.weak_type)


def broadcast_scalar(x: Node, shape: tuple[int, ...]) -> Node:
    """Broadcast a rank-0 operand to a shape."""
    return (
        x if x.aval.shape == shape else o.broadcast_in_dim(x, shape=shape, broadcast_dimensions=())
    )


# --- errors ---------------------------------------------------------------------------------------

_KINDS = {"b": "bool", "i": "integer", "u": "unsigned", "f": "floating", "c": "complex"}


def wrong_dtype(name: str, dtype: np.dtype, kinds: str) -> UnsupportedDtypeError:
    """Return the error for a dtype whose kind an operation does not accept."""
    names = [_KINDS[k] for k in kinds if not (k == "u" and "i" in kinds)]
    listed = names[0] if len(names) == 1 else f"{', '.join(names[:-1])} or {names[-1]}"
    return UnsupportedDtypeError(
        f"{name} does not accept dtype {dtype.name}; convert with astype to a dtype that is "
        f"{listed}"
    )


def dtypes_differ(name: str, avals: Sequence[Aval]) -> TypeError:
    """Return the error for operands of different dtypes in functions that do not promote."""
    names = ", ".join(a.dtype.name for a in avals)
    return TypeError(
        f"{name} requires arguments to have the same dtypes, got {names}; convert with astype, or "
        "use the jnp function, which promotes"
    )


def check_axis(name: str, axis: int, rank: int) -> None:
    """Raise AxisError if an axis is out of bounds."""
    if not 0 <= axis < rank:
        raise AxisError(
            f"{name}: axis {axis} is out of bounds for array of dimension {rank}; "
            + (f"pass one from 0 to {rank - 1}" if rank else "pass an array with axes")
        )


# --- map ------------------------------------------------------------------------------------------


def map_shape(name: str, avals: Sequence[Aval]) -> tuple[int, ...]:
    """Return the shape of a map's result; axes of length 1 and operands of rank 0 broadcast."""
    shape: tuple[int, ...] = ()
    for a in avals:
        if a.shape != shape and a.shape != ():
            wide = _broadcast_shapes(shape, a.shape)
            if wide is not None:
                shape = wide
                continue
            if shape != ():
                shapes = ", ".join(str(v.shape) for v in avals)
                wrong = (
                    f"{name} got incompatible shapes for broadcasting: {shapes}"
                    if len({v.ndim for v in avals if v.ndim}) == 1
                    else f"{name}: arrays must have the same number of dimensions; got {shapes}"
                )
                raise TypeError(
                    f"{wrong}; lax functions do not broadcast, so broadcast first, or use the jnp "
                    "function"
                )
            shape = a.shape
    return shape


def _broadcast_shapes(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...] | None:
    if len(a) != len(b) or any(m != n and 1 not in (m, n) for m, n in zip(a, b, strict=True)):
        return None
    return tuple(n if m == 1 else m for m, n in zip(a, b, strict=True))


def map_infer(name: str, out: str, dtypes: str) -> Callable[..., Aval]:
    """Return the type rule of a map op.

    `out` is "same", "bool" or "real"; `dtypes` lists the kinds of dtype it accepts.
    """

    def infer(*avals: Aval, **_: object) -> Aval:
        dtype = avals[0].dtype
        for a in avals[1:]:
            if a.dtype != dtype:
                raise dtypes_differ(f"lax.{name}", avals)
        if dtype_kind(dtype) not in dtypes:
            raise wrong_dtype(name, dtype, dtypes)
        shape = map_shape(name, avals)
        weak = all(a.weak_type for a in avals)
        if out == "bool":
            return make_aval(shape, BOOL, weak)
        if out == "real" and dtype.kind == "c":
            dtype = np.dtype(np.float32 if dtype.itemsize == 8 else np.float64)
        return make_aval(shape, dtype, weak)

    return infer


def move_batch_first(
    size: int, xs: Sequence[Node], batched: Sequence[bool], shape: tuple[int, ...] | None = None
) -> list[Node]:
    """Give all operands the leading batch axis; unbatched operands of rank 0 stay unchanged."""
    rank = max((x.aval.ndim - b for x, b in zip(xs, batched, strict=True)), default=0)
    examples = [x.aval.shape[1:] if b else x.aval.shape for x, b in zip(xs, batched, strict=True)]
    wide = [s for s in examples if len(s) == rank]
    target = (
        size,
        *(reduce(lambda a, b: _broadcast_shapes(a, b) or a, wide) if shape is None else shape),
    )
    out: list[Node] = []
    for x, b in zip(xs, batched, strict=True):
        if b and x.aval.ndim - 1 < rank:
            x = broadcast_to(x, target, (0,))
        elif not b and x.aval.ndim > 0:
            x = broadcast_to(x, target, tuple(range(1, rank + 1)))
        out.append(x)
    return out


def _with_unit_axes(xs: Sequence[Node], batched: Sequence[bool]) -> list[Node]:
    """Give operands axes of length 1 where they have none, as in JAX's jaxprs."""
    rank = max(x.aval.ndim - b for x, b in zip(xs, batched, strict=True))
    out: list[Node] = []
    for x, b in zip(xs, batched, strict=True):
        shape = x.aval.shape
        if b and len(shape) - 1 < rank:
            x = broadcast_to(x, (*shape, *(1,) * rank), (0,))
        elif not b and shape:
            x = broadcast_to(x, (1, *shape), tuple(range(1, rank + 1)))
        out.append(x)
    return out


def _map_batch(name: str) -> Callable[..., tuple[Node, bool]]:
    def batch(
        size: int, xs: Sequence[Node], batched: Sequence[bool], params: Params
    ) -> tuple[Node, bool]:
        rank = xs[0].aval.ndim
        if state.named:
            xs = _with_unit_axes(xs, batched)
        elif not all(batched) or any(x.aval.ndim != rank for x in xs):
            xs = move_batch_first(size, xs, batched)
        return getattr(o, _attribute_name(name))(*xs, **params), True

    return batch


def map_op(
    name: str,
    *,
    numpy: Reference,
    scalar: Scalar,
    jvp: Jvp = None,
    transpose: Transpose = None,
    infer: Infer | None = None,
    out: str = "same",
    dtypes: str = "biufc",
    cost: int = 1,
    batch: Batch | None = None,
    makes_nan: bool | None = None,
    **more: Unpack[OpFields],
) -> Op:
    """Declare an op that computes each element from the operands' elements at the same index.

    By default, `makes_nan` is true for functions of floats that have a derivative.
    """
    if makes_nan is None:
        makes_nan = ("f" in dtypes or "c" in dtypes) and has_derivative(jvp)
    return register(
        Op(
            name,
            "map",
            infer or map_infer(name, out, dtypes),
            numpy=numpy,
            jvp=jvp,
            transpose=transpose,
            batch=batch or _map_batch(name),
            scalar=scalar,
            cost=cost,
            dtypes=dtypes,
            makes_nan=makes_nan,
            **more,
        )
    )


def has_derivative(jvp: Jvp) -> bool:
    """Return whether the derivative by an operand is known, and not zero everywhere."""
    return any(rule is not ZERO and rule is not None for rule in as_tuple(jvp))


def unary(
    name: str,
    dtypes: str,
    numpy: Reference,
    scalar: Scalar,
    jvp: JvpRule,
    **more: Unpack[MapFields],
) -> Op:
    """Declare a map op with one operand; `jvp` is its rule (t, y, x) -> tangent, or ZERO."""
    return map_op(name, numpy=numpy, scalar=scalar, jvp=(jvp,), dtypes=dtypes, **more)


def binary(
    name: str,
    dtypes: str,
    numpy: Reference,
    scalar: Scalar,
    jvp: Jvp,
    **more: Unpack[MapFields],
) -> Op:
    """Declare a map op with two operands.

    `jvp` is a pair of rules (t, y, x1, x2) -> tangent, or ZERO.
    """
    if jvp is ZERO:
        jvp = (ZERO, ZERO)
    return map_op(name, numpy=numpy, scalar=scalar, jvp=jvp, dtypes=dtypes, **more)


def compare(
    name: str,
    dtypes: str,
    numpy: Reference,
    scalar: Scalar,
    **more: Unpack[MapFields],
) -> Op:
    """Declare a comparison, which has a bool result and no derivative."""
    jvp = (ZERO, ZERO)
    return map_op(name, numpy=numpy, scalar=scalar, jvp=jvp, dtypes=dtypes, out="bool", **more)


# --- view, reduce, opaque -------------------------------------------------------------------------


def _linear_jvp(name: str) -> Callable[..., Node]:
    def rule(t: Node, y: Node, *xs: Node, **params: object) -> Node:
        return getattr(o, name)(t, *xs[1:], **params)

    return rule


def bilinear_jvp(name: str) -> Callable[..., Any]:
    """Return the JVP rule of an op that is linear in each of its two operands."""

    def rule(ts: Sequence[Node | None], y: Node, xs: Sequence[Node], p: Params) -> Node | None:
        out = None
        for k in (0, 1):
            if (t := ts[k]) is not None:
                pair = (t, xs[1]) if k == 0 else (xs[0], t)
                part = getattr(o, name)(*pair, **p)
                out = part if out is None else o.add(out, part)
        return out

    return rule


def view(
    name: str,
    *,
    infer: Infer,
    numpy: Reference,
    strides: Callable[..., Strided | None],
    transpose: Transpose,
    batch: Batch,
    **more: Unpack[OpFields],
) -> Op:
    """Declare an op whose output shows its operand's elements through another index map.

    It is linear, so its JVP rule applies the same op to the tangent.
    """
    return register(
        Op(
            name,
            "view",
            infer,
            numpy=numpy,
            jvp=(_linear_jvp(name),),
            transpose=transpose,
            batch=batch,
            strides=strides,
            cost=0,
            **more,
        )
    )


def reduced_shape(shape: tuple[int, ...], axes: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(n for i, n in enumerate(shape) if i not in axes)


def reduction(
    name: str,
    combine: str | Combine,
    *,
    numpy: Reference,
    dtypes: str,
    jvp: Jvp,
    transpose: Transpose = None,
    makes_nan: bool = False,
    **more: Unpack[OpFields],
) -> Op:
    """Declare a reduction over `axes` (a sorted tuple of non-negative ints).

    `combine` is the function that combines two elements, or its name if `ir/op.py` declares
    it. The output has the input's dtype.
    """
    if isinstance(combine, Combine):
        combine = declare_combine(combine)
    bitwise = "f" not in COMBINES[combine].kinds

    def infer(x: Aval, *, axes: tuple[int, ...]) -> Aval:
        if dtype_kind(x.dtype) not in dtypes:
            raise wrong_dtype(name, x.dtype, dtypes)
        for a in axes:
            check_axis(name, a, x.ndim)
        weak = x.weak_type and not bitwise  # bitwise results have a strong type
        return make_aval(reduced_shape(x.shape, axes), x.dtype, weak)

    def batch(
        size: int, xs: Sequence[Node], batched: Sequence[bool], params: Params
    ) -> tuple[Node, bool]:
        axes = tuple(a + 1 for a in params["axes"])
        return getattr(o, name)(xs[0], axes=axes), True

    return register(
        Op(
            name,
            "reduce",
            infer,
            numpy=numpy,
            jvp=jvp,
            transpose=transpose,
            batch=batch,
            combine=combine,
            dtypes=dtypes,
            makes_nan=makes_nan,
            **more,
        )
    )


def weak_as_operands(infer: Callable[..., Avals]) -> Callable[..., Avals]:
    """Wrap a type rule so that results, even indices, are weak if all operands are, as in JAX."""

    @wraps(infer)
    def ruled(*avals: Aval, **params: object) -> Avals:
        out = infer(*avals, **params)
        if not all([a.weak_type for a in avals]):
            return out
        if isinstance(out, tuple):
            return tuple([make_aval(a.shape, a.dtype, True) for a in out])
        return make_aval(out.shape, out.dtype, True)

    return ruled


def opaque(
    name: str,
    *,
    infer: Infer,
    numpy: Reference,
    jvp: Jvp = None,
    transpose: Transpose = None,
    batch: Batch | None = None,
    cost: int = 1000,
    **more: Unpack[OpaqueFields],
) -> Op:
    """Declare an op that calls a library; `numpy` gets read-only arrays and returns new ones."""
    return register(
        Op(
            name,
            "opaque",
            infer,
            numpy=numpy,
            jvp=jvp,
            transpose=transpose,
            batch=batch,
            cost=cost,
            **more,
        )
    )


def in_float32(jvp: Callable[[Node, Node, Node], Node]) -> Callable[[Node, Node, Node], Node]:
    """Evaluate a JVP rule for halves in float32: its terms cancel, so it rounds only once."""

    def rule(t: Node, y: Node, x: Node) -> Node:
        kind = x.aval.dtype
        if dtype_kind(kind) != "f" or kind.itemsize > 2:
            return jvp(t, y, x)
        wide = [
            o.convert_element_type(v, new_dtype=np.dtype(np.float32), weak_type=False)
            for v in (t, y, x)
        ]
        weak = t.aval.weak_type
        return o.convert_element_type(jvp(*wide), new_dtype=kind, weak_type=weak)

    return rule
