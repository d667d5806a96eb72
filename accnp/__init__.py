# isort: skip_file
"""accnp: a lazy NumPy in the manner of jax.numpy, whose kernels are generated through Numba.

`import accnp as jnp` gives the names of `jax.numpy` and, beside them, the top level of `jax`;
`import accnp as jax; import accnp.numpy as jnp` works as well.

>>> import accnp as jnp
>>> jnp.sum(jnp.arange(4) ** 2)
Array(14, dtype=int32)
"""

from accnp import (
    ad_checkpoint, checkpoint_policies, core, custom_batching, custom_derivatives, debug, dtypes,
    errors, experimental, extend, flatten_util, interpreters, lax, nn, numpy, random, test_util,
    tree, tree_util, typing,
)  # fmt: skip
from accnp.api.callbacks import pure_callback
from accnp.api.checkpoint import checkpoint, remat
from accnp.api.custom_jvp import custom_jvp
from accnp.api.custom_vjp import closure_convert, custom_gradient, custom_vjp
from accnp.api.derivatives import grad, jvp, linear_transpose, linearize, value_and_grad, vjp
from accnp.api.inspect.look import inspect
from accnp.api.jacobians import hessian, jacfwd, jacobian, jacrev
from accnp.api.jaxpr import ShapeDtypeStruct, eval_shape, make_jaxpr, typeof
from accnp.api.jit import jit
from accnp.api.placement import device_put
from accnp.api.pmap import pmap
from accnp.api.process import (
    clear_caches, host_count, host_id, host_ids, named_call, named_scope,
    print_environment_info, process_count, process_index, process_indices,
)  # fmt: skip
from accnp.api.tracing import ensure_compile_time_eval
from accnp.api.vmap import vmap
from accnp.api.waiting import (
    block_until_ready, copy_to_host_async, counters, device_get, effects_barrier,
)  # fmt: skip
from accnp.array import Array
from accnp.config import (
    check_tracer_leaks, config, debug_infs, debug_key_reuse, debug_nans, default_device,
    default_matmul_precision, default_prng_impl, disable_jit, enable_checks, enable_custom_prng,
    enable_x64, explain_cache_misses, fastmath, legacy_prng_key, log_compiles, no_tracing,
    numpy_dtype_promotion, numpy_rank_promotion, softmax_custom_jvp, threefry_partitionable,
    transfer_guard, transfer_guard_device_to_device, transfer_guard_device_to_host,
    transfer_guard_host_to_device,
)  # fmt: skip
from accnp.dtypes.names import float0
from accnp.experimental import checkify
from accnp.missing import nearest
from accnp.numpy import (
    __array_api_version__, __array_namespace_info__,
    abs, absolute, acos, acosh, add, all, allclose, amax, amin, angle, any, append, arange,
    arccos, arccosh, arcsin, arcsinh, arctan, arctan2, arctanh, argmax, argmin, argpartition,
    argsort, argwhere, around, array, array_equal, array_equiv, array_repr, array_split,
    array_str, asarray, asin, asinh, astype, atan, atan2, atanh, atleast_1d, atleast_2d,
    atleast_3d, average, bfloat16, bincount, bitwise_and, bitwise_count, bitwise_invert,
    bitwise_left_shift, bitwise_not, bitwise_or, bitwise_right_shift, bitwise_xor, block, bool,
    bool_, broadcast_arrays, broadcast_shapes, broadcast_to, can_cast, cbrt, cdouble, ceil,
    character, choose, clip, column_stack, complex128, complex64, complex_, complexfloating,
    compress, concat, concatenate, conj, conjugate, copy, copysign, cos, cosh, count_nonzero,
    cross, csingle, cumprod, cumsum, cumulative_prod, cumulative_sum, deg2rad, degrees, delete,
    diag, diag_indices, diag_indices_from, diagflat, diagonal, digitize, divide, divmod, dot,
    double, dsplit, dstack, dtype, e, einsum, einsum_path, empty, empty_like, equal,
    euler_gamma, exp, exp2, expand_dims, expm1, extract, eye, fabs, fill_diagonal, finfo,
    flatnonzero, flexible, flip, fliplr, flipud, float16, float32, float4_e2m1fn, float64,
    float8_e3m4, float8_e4m3, float8_e4m3b11fnuz, float8_e4m3fn, float8_e4m3fnuz, float8_e5m2,
    float8_e5m2fnuz, float8_e8m0fnu, float_, float_power, floating, floor, floor_divide, fmax,
    fmin, fmod, frexp, from_dlpack, frombuffer, fromfile, fromfunction, fromiter, fromstring,
    full, full_like, gcd, generic, geomspace, get_printoptions, greater, greater_equal,
    heaviside, hsplit, hstack, hypot, i0, identity, iinfo, imag, index_exp, indices, inexact,
    inf, inner, insert, int16, int2, int32, int4, int64, int8, int_, integer, intersect1d,
    invert, isclose, iscomplex, iscomplexobj, isdtype, isfinite, isin, isinf, isnan, isneginf,
    isposinf, isreal, isrealobj, isscalar, issubdtype, iterable, ix_, kron, lcm, ldexp,
    left_shift, less, less_equal, lexsort, linalg, linspace, log, log10, log1p, log2, logaddexp,
    logaddexp2, logical_and, logical_not, logical_or, logical_xor, logspace, mask_indices,
    matmul, matrix_transpose, matvec, max, maximum, mean, meshgrid, min, minimum, mod, modf,
    moveaxis, multiply, nan, nan_to_num, nanargmax, nanargmin, nancumprod, nancumsum, nanmax,
    nanmean, nanmin, nanprod, nanstd, nansum, nanvar, ndim, negative, newaxis, nextafter,
    nonzero, not_equal, number, object_, ones, ones_like, outer, pad, partition, permute_dims,
    pi, positive, pow, power, printoptions, prod, promote_types, ptp, put, put_along_axis,
    rad2deg, radians, ravel, ravel_multi_index, real, reciprocal, remainder, repeat, reshape,
    resize, result_type, right_shift, rint, roll, rollaxis, rot90, round, s_, save, savez,
    searchsorted, select, set_printoptions, setdiff1d, setxor1d, shape, sign, signbit,
    signedinteger, sin, sinc, single, sinh, size, sort, sort_complex, spacing, split, sqrt,
    square, squeeze, stack, std, subtract, sum, swapaxes, take, take_along_axis, tan, tanh,
    tensordot, tile, trace, transpose, tri, tril, tril_indices, tril_indices_from, trim_zeros,
    triu, triu_indices, triu_indices_from, true_divide, trunc, uint, uint16, uint2, uint32,
    uint4, uint64, uint8, union1d, unique, unique_all, unique_counts, unique_inverse,
    unique_values, unravel_index, unsignedinteger, unstack, vander, var, vdot, vecdot, vecmat,
    vectorize, vsplit, vstack, where, zeros, zeros_like, ndarray,
)  # fmt: skip
from accnp.runtime.device import (
    Device, default_backend, device_count, devices, local_device_count, local_devices,
)  # fmt: skip

__version__ = "0.1.0"

__all__ = [
    "Array", "Device", "ShapeDtypeStruct", "__array_api_version__", "__array_namespace_info__",
    "abs", "absolute", "acos", "acosh", "ad_checkpoint", "add", "all", "allclose", "amax", "amin",
    "angle", "any", "append", "arange", "arccos", "arccosh", "arcsin", "arcsinh", "arctan",
    "arctan2", "arctanh", "argmax", "argmin", "argpartition", "argsort", "argwhere", "around",
    "array", "array_equal", "array_equiv", "array_repr", "array_split", "array_str", "asarray",
    "asin", "asinh", "astype", "atan", "atan2", "atanh", "atleast_1d", "atleast_2d", "atleast_3d",
    "average", "bfloat16", "bincount", "bitwise_and", "bitwise_count", "bitwise_invert",
    "bitwise_left_shift", "bitwise_not", "bitwise_or", "bitwise_right_shift", "bitwise_xor",
    "block", "block_until_ready", "bool", "bool_", "broadcast_arrays", "broadcast_shapes",
    "broadcast_to", "can_cast", "cbrt", "cdouble", "ceil", "character", "check_tracer_leaks",
    "checkify", "checkpoint", "checkpoint_policies", "choose", "clear_caches", "clip",
    "closure_convert", "column_stack", "complex64", "complex128", "complex_", "complexfloating",
    "compress", "concat", "concatenate", "config", "conj", "conjugate", "copy",
    "copy_to_host_async", "copysign", "core", "cos", "cosh", "count_nonzero", "counters", "cross",
    "csingle", "cumprod", "cumsum", "cumulative_prod", "cumulative_sum", "custom_batching",
    "custom_derivatives", "custom_gradient", "custom_jvp", "custom_vjp", "debug", "debug_infs",
    "debug_key_reuse", "debug_nans", "default_backend", "default_device",
    "default_matmul_precision", "default_prng_impl", "deg2rad", "degrees", "delete", "device_count",
    "device_get", "device_put", "devices", "diag", "diag_indices", "diag_indices_from", "diagflat",
    "diagonal", "digitize", "disable_jit", "divide", "divmod", "dot", "double", "dsplit", "dstack",
    "dtype", "dtypes", "e", "effects_barrier", "einsum", "einsum_path", "empty", "empty_like",
    "enable_checks", "enable_custom_prng", "enable_x64", "ensure_compile_time_eval", "equal",
    "errors", "euler_gamma", "eval_shape", "exp", "exp2", "expand_dims", "experimental",
    "explain_cache_misses", "expm1", "extend", "extract", "eye", "fabs", "fastmath",
    "fill_diagonal", "finfo", "flatnonzero", "flatten_util", "flexible", "flip", "fliplr", "flipud",
    "float0", "float4_e2m1fn", "float8_e3m4", "float8_e4m3", "float8_e4m3b11fnuz", "float8_e4m3fn",
    "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu", "float16", "float32",
    "float64", "float_", "float_power", "floating", "floor", "floor_divide", "fmax", "fmin", "fmod",
    "frexp", "from_dlpack", "frombuffer", "fromfile", "fromfunction", "fromiter", "fromstring",
    "full", "full_like", "gcd", "generic", "geomspace", "get_printoptions", "grad", "greater",
    "greater_equal", "heaviside", "hessian", "host_count", "host_id", "host_ids", "hsplit",
    "hstack", "hypot", "i0", "identity", "iinfo", "imag", "index_exp", "indices", "inexact", "inf",
    "inner", "insert", "inspect", "int2", "int4", "int8", "int16", "int32", "int64", "int_",
    "integer", "interpreters", "intersect1d", "invert", "isclose", "iscomplex", "iscomplexobj",
    "isdtype", "isfinite", "isin", "isinf", "isnan", "isneginf", "isposinf", "isreal", "isrealobj",
    "isscalar", "issubdtype", "iterable", "ix_", "jacfwd", "jacobian", "jacrev", "jit", "jvp",
    "kron", "lax", "lcm", "ldexp", "left_shift", "legacy_prng_key", "less", "less_equal", "lexsort",
    "linalg", "linear_transpose", "linearize", "linspace", "local_device_count", "local_devices",
    "log", "log1p", "log2", "log10", "log_compiles", "logaddexp", "logaddexp2", "logical_and",
    "logical_not", "logical_or", "logical_xor", "logspace", "make_jaxpr", "mask_indices", "matmul",
    "matrix_transpose", "matvec", "max", "maximum", "mean", "meshgrid", "min", "minimum", "mod",
    "modf", "moveaxis", "multiply", "named_call", "named_scope", "nan", "nan_to_num", "nanargmax",
    "nanargmin", "nancumprod", "nancumsum", "nanmax", "nanmean", "nanmin", "nanprod", "nanstd",
    "nansum", "nanvar", "ndarray", "ndim", "negative", "newaxis", "nextafter", "nn", "no_tracing",
    "nonzero", "not_equal", "number", "numpy", "numpy_dtype_promotion", "numpy_rank_promotion",
    "object_", "ones", "ones_like", "outer", "pad", "partition", "permute_dims", "pi", "pmap",
    "positive", "pow", "power", "print_environment_info", "printoptions", "process_count",
    "process_index", "process_indices", "prod", "promote_types", "ptp", "pure_callback", "put",
    "put_along_axis", "rad2deg", "radians", "random", "ravel", "ravel_multi_index", "real",
    "reciprocal", "remainder", "remat", "repeat", "reshape", "resize", "result_type", "right_shift",
    "rint", "roll", "rollaxis", "rot90", "round", "s_", "save", "savez", "searchsorted", "select",
    "set_printoptions", "setdiff1d", "setxor1d", "shape", "sign", "signbit", "signedinteger", "sin",
    "sinc", "single", "sinh", "size", "softmax_custom_jvp", "sort", "sort_complex", "spacing",
    "split", "sqrt", "square", "squeeze", "stack", "std", "subtract", "sum", "swapaxes", "take",
    "take_along_axis", "tan", "tanh", "tensordot", "test_util", "threefry_partitionable", "tile",
    "trace",
    "transfer_guard", "transfer_guard_device_to_device", "transfer_guard_device_to_host",
    "transfer_guard_host_to_device", "transpose", "tree", "tree_util", "tri", "tril",
    "tril_indices", "tril_indices_from", "trim_zeros", "triu", "triu_indices", "triu_indices_from",
    "true_divide", "trunc", "typeof", "typing", "uint", "uint2", "uint4", "uint8", "uint16",
    "uint32", "uint64", "union1d", "unique", "unique_all", "unique_counts", "unique_inverse",
    "unique_values", "unravel_index", "unsignedinteger", "unstack", "value_and_grad", "vander",
    "var", "vdot", "vecdot", "vecmat", "vectorize", "vjp", "vmap", "vsplit", "vstack", "where",
    "zeros", "zeros_like",
]  # fmt: skip

__getattr__ = nearest(__name__, __all__)
