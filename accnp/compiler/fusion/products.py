"""Rewriting of matrix products to the form that is fastest to compute.

Input: the operands of a `dot_general`, and a function that makes values. Output: a value. It is an
elementwise product of broadcast operands if nothing is summed, a reduction of such a product if
neither operand has free axes, and otherwise a product over one axis. `transpose_products` computes
a product transposed if only its transpose is used. `program.py` calls these functions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from itertools import islice
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from accnp.compiler.fusion.spaces import in_kernel
from accnp.ir.kernel import is_half
from accnp.primitives.views import TRANSPOSE

if TYPE_CHECKING:
    from accnp.compiler.fusion.program import Value
    from accnp.ir.op_types import Params

__all__ = ["Make", "as_dtype", "product", "reshaped", "transpose_products"]

Make = Callable[[str, "Params", tuple["Value", ...]], "Value"]


def product(make: Make, params: Params, a: Value, b: Value, dtype: np.dtype) -> Value | None:
    """Return the value that replaces a product of these operands, or None to keep the product."""
    (ac, bc), (ab, bb) = params["dimension_numbers"]
    af, bf = _remaining_axes(a, ac, ab), _remaining_axes(b, bc, bb)
    groups = [(a, ab), (a, af), (b, bf), (a, ac)]
    batch, m, n, k = [[x.aval.shape[d] for d in dims] for x, dims in groups]
    if dtype.kind == "b" or not prod(k):
        return None
    converted = a.aval.dtype != b.aval.dtype or b.aval.dtype != dtype
    if converted or (prod(k) != 1 and (prod(m) != 1 or prod(n) != 1)):
        return _merge_contracted_axes(make, params, a, b, (af, bf)) if len(k) > 1 else None
    # The axes of the product: batch axes, free axes of a, free axes of b, contracted axes.
    shape = (*batch, *m, *n, *k)
    places = iter(range(len(shape)))
    of_batch, of_m, of_n, of_k = (tuple(islice(places, len(x))) for x in (batch, m, n, k))
    x = _spread(make, a, (*ab, *af, *ac), (*of_batch, *of_m, *of_k), shape)
    y = _spread(make, b, (*bb, *bf, *bc), (*of_batch, *of_n, *of_k), shape)
    half = prod(k) != 1 and is_half(dtype)
    if half:  # products are not rounded before they are summed
        x, y = (as_dtype(make, each, np.dtype(np.float32)) for each in (x, y))
    z = make("mul", {}, (x, y))
    if not in_kernel(z):
        return None
    if prod(k) != 1:
        z = make("reduce_sum", {"axes": of_k}, (z,))
        return as_dtype(make, z, dtype) if half else z
    return reshaped(make, z, (*batch, *m, *n))


def as_dtype(make: Make, x: Value, dtype: np.dtype) -> Value:
    if x.aval.dtype == dtype:
        return x
    return make("convert_element_type", {"new_dtype": dtype, "weak_type": False}, (x,))


def _merge_contracted_axes(
    make: Make,
    params: Params,
    a: Value,
    b: Value,
    free: tuple[Sequence[int], Sequence[int]],
) -> Value:
    """Merge several contracted axes into one, the last one. This is a copy if strides cannot
    express it."""
    contract, batch = params["dimension_numbers"]
    merged: list[Value] = []
    for x, group, free_axes, summed in zip((a, b), batch, free, contract, strict=True):
        x = _transpose(make, x, (*group, *free_axes, *summed))
        kept_sizes = x.aval.shape[: x.aval.ndim - len(summed)]
        whole = prod(x.aval.shape[len(kept_sizes) :])
        merged.append(reshaped(make, x, (*kept_sizes, whole)))
    n = len(batch[0])
    dims = (tuple((n + len(free_axes),) for free_axes in free), (tuple(range(n)), tuple(range(n))))
    return make("dot_general", {**params, "dimension_numbers": dims}, tuple(merged))


def _remaining_axes(x: Value, *used: Sequence[int]) -> list[int]:
    return [d for d in range(x.aval.ndim) if not any(d in group for group in used)]


def _transpose(make: Make, x: Value, order: tuple[int, ...]) -> Value:
    if order == tuple(range(x.aval.ndim)):
        return x
    return make("transpose", {"permutation": order}, (x,))


def reshaped(make: Make, x: Value, shape: tuple[int, ...]) -> Value:
    if x.aval.shape == shape:
        return x
    return make("reshape", {"new_sizes": shape, "dimensions": None}, (x,))


def _spread(
    make: Make, x: Value, order: tuple[int, ...], dims: tuple[int, ...], shape: tuple[int, ...]
) -> Value:
    """Transpose and broadcast x, so that its axes, in this order, are the dimensions `dims` of a
    shape."""
    x = _transpose(make, x, order)
    if x.aval.shape == shape:
        return x
    return make("broadcast_in_dim", {"shape": shape, "broadcast_dimensions": dims}, (x,))


def transpose_products(values: Sequence[Value], outputs: Sequence[Value]) -> bool:
    """Compute products transposed if only their transpose is used; return whether there were any.

    Gradients with respect to weights are recorded as the transpose of a product. For real dtypes,
    both forms have the same bits.
    """
    uses = Counter(id(x) for x in outputs)
    uses.update(id(x) for v in values for x in v.inputs)
    turned = False
    for v in values:
        if v.op is not TRANSPOSE or not v.inputs[0].op.contraction:
            continue
        of = v.inputs[0]
        if uses[id(of)] > 1 or of.aval.dtype.kind == "c":
            continue
        contract, batch = of.params["dimension_numbers"]
        n, m, rank = len(batch[0]), of.inputs[0].aval.ndim - len(contract[0]), of.aval.ndim
        if tuple(v.params["permutation"]) == (*range(n), *range(m, rank), *range(n, m)):
            swapped = (contract[::-1], batch[::-1])
            v.op, v.inputs, v.node = of.op, of.inputs[::-1], of.node
            v.params = {**of.params, "dimension_numbers": swapped}
            turned = True
    return turned
