"""The op `reduce_precision`: round floats to fewer bits without changing their dtype.

The op contains an equivalent program of integer operations on the bits, which the compiler inlines.
Jaxprs show the op without that program. `lax.reduce_precision` calls `reduce_precision`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from accnp import dtypes
from accnp.ir.aval import Aval
from accnp.ir.graph import Graph, build, interpret
from accnp.ir.node import Node
from accnp.ir.op import Op, o, register
from accnp.primitives.kinds import dtype_kind, full

if TYPE_CHECKING:
    from accnp.ir.op_types import Operand, Params, Tangents
    from accnp.primitives.rule_types import Tools

__all__ = ["reduce_precision"]


def reduce_precision(x: Node, exponent_bits: int, mantissa_bits: int) -> Node:
    """Round to the nearest float (ties to even) with this many exponent and mantissa bits.

    Values that are too large become infinite, values that are too small zero; nan is preserved.
    """
    if dtype_kind(x.aval.dtype) != "f":
        raise TypeError(
            f"reduce_precision: operands must be floating; got {x.aval.dtype.name}; "
            "convert with astype"
        )
    graph = _rounding_program(x.aval, exponent_bits, mantissa_bits)
    return o.reduce_precision(
        x, exponent_bits=exponent_bits, mantissa_bits=mantissa_bits, jaxpr=graph
    )


@lru_cache(256)
def _rounding_program(aval: Aval, exponent_bits: int, mantissa_bits: int) -> Graph:
    return build(lambda xs: [_round_bits(xs[0], exponent_bits, mantissa_bits)], [aval])


def _round_bits(x: Node, exponent_bits: int, mantissa_bits: int) -> Node:
    dtype = x.aval.dtype
    if dtype.itemsize == 1:  # some of these types have no infinity
        wide = o.convert_element_type(x, new_dtype=np.dtype(np.float16), weak_type=False)
        rounded = _round_bits(wide, exponent_bits, mantissa_bits)
        return o.convert_element_type(rounded, new_dtype=dtype, weak_type=False)
    info = dtypes.finfo(dtype)
    word = np.dtype(f"u{dtype.itemsize}")
    width, own_exponent, own_mantissa = 8 * word.itemsize, info.nexp, info.nmant
    exponents = (1 << own_exponent) - 1 << own_mantissa

    def const(value: int) -> Node:
        return full(x.aval.shape, value, word)

    bits = original = o.bitcast_convert_type(x, new_dtype=word)
    if mantissa_bits < own_mantissa:
        drop = own_mantissa - mantissa_bits
        last = o.shift_right_logical(o.and_(bits, const(1 << drop)), const(drop))
        bits = o.add(bits, o.add(last, const((1 << drop - 1) - 1)))
        bits = o.and_(bits, const((1 << width) - (1 << drop)))
    if exponent_bits < own_exponent:
        bias = (1 << own_exponent - 1) - 1
        reach = (1 << exponent_bits - 1) - 1
        sign = o.and_(bits, const(1 << width - 1))
        power = o.and_(bits, const(exponents))
        small = o.le(power, const(bias - reach << own_mantissa))
        large = o.gt(power, const(bias + reach << own_mantissa))
        bits = o.select_n(small, bits, sign)
        bits = o.select_n(large, bits, o.or_(sign, const(exponents)))
    bits = o.select_n(o.ne(x, x), bits, original)
    out = o.bitcast_convert_type(bits, new_dtype=dtype)
    return o.convert_element_type(out, new_dtype=dtype, weak_type=x.aval.weak_type)


def _infer(x: Aval, *, exponent_bits: int, mantissa_bits: int, jaxpr: Graph) -> Aval:
    return x


def _numpy(x: np.ndarray, *, exponent_bits: int, mantissa_bits: int, jaxpr: Graph) -> np.ndarray:
    return interpret(jaxpr, [x])[0]


def _reduce_again(x: Node, params: Params) -> Node:
    return reduce_precision(x, params["exponent_bits"], params["mantissa_bits"])


def _jvp(
    ts: Tangents, y: Node, xs: Sequence[Node], params: Params, tools: Tools
) -> tuple[Sequence[Node], Sequence[Node | None]]:
    (t,) = ts
    assert t is not None
    return [y], [_reduce_again(t, params)]


def _transpose(
    cts: Tangents, xs: Sequence[Operand], params: Params, tools: Tools
) -> Sequence[Node | None]:
    (ct,) = cts
    assert ct is not None
    return [_reduce_again(ct, params)]


def _batch(
    size: int, xs: Sequence[Node], batched: Sequence[bool], params: Params, tools: Tools
) -> tuple[Sequence[Node], Sequence[bool]]:
    return [_reduce_again(xs[0], params)], [True]


register(
    Op(
        "reduce_precision",
        "call",
        _infer,
        numpy=_numpy,
        jvp=_jvp,
        transpose=_transpose,
        batch=_batch,
        show=lambda p: {k: v for k, v in p.items() if k != "jaxpr"},
        dtypes="f",
    )
)
