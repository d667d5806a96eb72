# isort: skip_file
"""`accnp.lax`: the strict functions and control flow, re-exported one by one."""

from accnp.api.collectives import (
    all_gather, all_to_all, axis_index, axis_size, pbroadcast, pmax, pmean, pmin, ppermute,
    pshuffle, pswapaxes, psum, psum_scatter,
)  # fmt: skip
from accnp.api.control import cond, switch
from accnp.api.folding import (
    padtype_to_pads, reduce, reduce_window, reduce_window_shape_tuple, reduce_xor,
)  # fmt: skip
from accnp.api.joining import stack, tile, unstack
from accnp.api.lax import (
    Precision, RoundingMethod, abs, acos, acosh, add, asin, asinh, atan, atan2, atanh,
    bessel_i0e, bessel_i1e, bitcast_convert_type, bitwise_and, bitwise_not, bitwise_or,
    bitwise_xor, cbrt, ceil, clamp, clz, complex, conj, convert_element_type, cos, cosh,
    digamma, div, eq, erf, erf_inv, erfc, exp, exp2, expm1, floor, ge, gt, imag, integer_pow,
    is_finite, le, lgamma, log, log1p, logistic, lt, max, min, mul, ne, neg, nextafter,
    optimization_barrier, polygamma, population_count, pow, real, reciprocal,
    reduce_precision, rem, round, rsqrt,
    select, select_n, shift_left, shift_right_arithmetic, shift_right_logical, sign, sin, sinh,
    sqrt, square, stop_gradient, sub, tan, tanh, zeta,
)  # fmt: skip
from accnp.api.lax_index import (
    dynamic_index_in_dim, dynamic_slice, dynamic_slice_in_dim, dynamic_update_index_in_dim,
    dynamic_update_slice, dynamic_update_slice_in_dim, gather, scatter, scatter_add,
    scatter_max, scatter_min, scatter_mul, sort, sort_key_val,
)  # fmt: skip
from accnp.api.lax_shapes import (
    argmax, argmin, broadcast, broadcast_in_dim, broadcast_to_rank, broadcasted_iota, collapse,
    concatenate, cumlogsumexp, cummax, cummin, cumprod, cumsum, expand_dims, full, full_like,
    index_in_dim, iota, pad, reduce_and, reduce_max, reduce_min, reduce_or, reduce_prod,
    reduce_sum, reshape, rev, slice, slice_in_dim, split, squeeze, transpose,
)  # fmt: skip
from accnp.api.loops import fori_loop, scan, while_loop
from accnp.api.products import dot, dot_general
from accnp.api.scans import associative_scan, map
from accnp.api.sorting import top_k
from accnp.missing import nearest
from accnp.ops.index import GatherDimensionNumbers, GatherScatterMode, ScatterDimensionNumbers

__all__ = [
    "GatherDimensionNumbers", "GatherScatterMode", "Precision", "RoundingMethod",
    "ScatterDimensionNumbers", "abs", "acos", "acosh", "add", "all_gather", "all_to_all",
    "argmax", "argmin", "asin", "asinh", "associative_scan", "atan", "atan2", "atanh",
    "axis_index", "axis_size", "bessel_i0e", "bessel_i1e", "bitcast_convert_type",
    "bitwise_and", "bitwise_not", "bitwise_or", "bitwise_xor", "broadcast", "broadcast_in_dim",
    "broadcast_to_rank", "broadcasted_iota", "cbrt", "ceil", "clamp", "clz", "collapse",
    "complex", "concatenate", "cond", "conj", "convert_element_type", "cos", "cosh",
    "cumlogsumexp", "cummax", "cummin", "cumprod", "cumsum", "digamma", "div", "dot",
    "dot_general", "dynamic_index_in_dim", "dynamic_slice", "dynamic_slice_in_dim",
    "dynamic_update_index_in_dim", "dynamic_update_slice", "dynamic_update_slice_in_dim", "eq",
    "erf", "erf_inv", "erfc", "exp", "exp2", "expand_dims", "expm1", "floor", "fori_loop",
    "full", "full_like", "gather", "ge", "gt", "imag", "index_in_dim", "integer_pow", "iota",
    "is_finite", "le", "lgamma", "log", "log1p", "logistic", "lt", "map", "max", "min", "mul",
    "ne", "neg", "nextafter", "optimization_barrier", "pad", "padtype_to_pads", "pbroadcast",
    "pmax", "pmean", "pmin", "polygamma", "population_count", "pow", "ppermute", "pshuffle",
    "psum", "psum_scatter", "pswapaxes", "real", "reciprocal", "reduce", "reduce_and",
    "reduce_max", "reduce_min", "reduce_or", "reduce_precision", "reduce_prod", "reduce_sum",
    "reduce_window", "reduce_window_shape_tuple", "reduce_xor", "rem", "reshape", "rev",
    "round", "rsqrt", "scan", "scatter", "scatter_add", "scatter_max", "scatter_min",
    "scatter_mul", "select", "select_n", "shift_left", "shift_right_arithmetic",
    "shift_right_logical", "sign", "sin", "sinh", "slice", "slice_in_dim", "sort",
    "sort_key_val", "split", "sqrt", "square", "squeeze", "stack", "stop_gradient", "sub",
    "switch", "tan", "tanh", "tile", "top_k", "transpose", "unstack", "while_loop", "zeta",
]  # fmt: skip

__getattr__ = nearest(__name__, __all__)
