# isort: skip_file
"""`accnp.numpy`: the names of `jax.numpy`.

>>> import accnp.numpy as jnp
>>> jnp.sum(jnp.arange(4) ** 2)
Array(14, dtype=int32)
"""

from typing import TYPE_CHECKING

from accnp.module_getattr import install_getattr as _install_getattr

if TYPE_CHECKING:  # loaded on first use, by accnp/module_getattr.py
    from accnp.lax.convolutions.convolution import convolve, correlate
    from accnp.numpy.einstein_summation import einsum, einsum_path
    from accnp.numpy.polynomials.coefficients import (
        poly, polyadd, polyder, polydiv, polyfit, polyint, polymul, polysub, polyval, roots,
    )  # fmt: skip
    from accnp.numpy.products import dot, inner, matmul, outer, tensordot, trace, vdot, vecdot
    from accnp.numpy.vector_products import cross, kron, matvec, vecmat
    from accnp.numpy.window_functions import bartlett, blackman, hamming, hanning, kaiser
    from accnp.numpy.array_facts import (
        ComplexWarning, array_repr, array_str, get_printoptions, iscomplexobj, isrealobj, isscalar,
        iterable, ndim, printoptions, save, savez, set_printoptions, shape, size,
    )  # fmt: skip
    from accnp.numpy.scalar_types import (
        bfloat16, bool, bool_, cdouble, character, complex128, complex64, complex_, complexfloating,
        csingle, double, dtype, e, euler_gamma, flexible, float16, float32, float4_e2m1fn, float64,
        float8_e3m4, float8_e4m3, float8_e4m3b11fnuz, float8_e4m3fn, float8_e4m3fnuz, float8_e5m2,
        float8_e5m2fnuz, float8_e8m0fnu, float_, floating, generic, index_exp, inexact, inf, int16,
        int2, int32, int4, int64, int8, int_, integer, nan, newaxis, number, object_, pi, s_,
        signedinteger, single, uint, uint16, uint2, uint32, uint4, uint64, uint8, unsignedinteger,
    )  # fmt: skip
    from accnp.numpy.functional_programming import (
        apply_along_axis, apply_over_axes, fromfunction, piecewise, place,
    )  # fmt: skip
    from accnp.numpy.creation import (
        arange, array, asarray, empty, empty_like, eye, full, full_like, identity, ones, ones_like,
        zeros, zeros_like,
    )  # fmt: skip
    from accnp.numpy.index_tricks import c_, mgrid, ogrid, r_
    from accnp.numpy.inserting import delete, insert, trim_zeros
    from accnp.numpy.joining import (
        append, array_split, block, column_stack, concat, concatenate, dsplit, dstack, hsplit,
        hstack, repeat, resize, split, stack, tile, unstack, vsplit, vstack,
    )  # fmt: skip
    from accnp.numpy.loading import (
        from_dlpack, frombuffer, fromfile, fromiter, fromstring, load,
    )  # fmt: skip
    from accnp.numpy.manipulation import (
        atleast_1d, atleast_2d, atleast_3d, broadcast_arrays, broadcast_shapes, broadcast_to,
        expand_dims, matrix_transpose, moveaxis, permute_dims, ravel, reshape, rollaxis, squeeze,
        swapaxes, transpose,
    )  # fmt: skip
    from accnp.numpy.matrices import (
        astype, copy, diag, diag_indices, diag_indices_from, diagflat, diagonal, indices, ix_,
        meshgrid, tri, tril, tril_indices, tril_indices_from, triu, triu_indices, triu_indices_from,
        vander,
    )  # fmt: skip
    from accnp.numpy.numpy_only import (
        asanyarray, asarray_chkfinite, ascontiguousarray, asfortranarray, byte, errstate, fix,
        genfromtxt, half, intc, intp, isfortran, loadtxt, long, longlong, ndenumerate, require,
        row_stack, short, ubyte, uintc, uintp, ulong, ulonglong, ushort,
    )  # fmt: skip
    from accnp.numpy.padding import pad
    from accnp.numpy.rearranging import flip, fliplr, flipud, roll, rot90
    from accnp.numpy.numerical_ranges import geomspace, linspace, logspace
    from accnp.numpy.bit_packing import packbits, unpackbits
    from accnp.numpy.comparisons import allclose, array_equal, array_equiv, isclose, spacing
    from accnp.numpy.number_parts import angle, isneginf, isposinf, ldexp, modf, nan_to_num
    from accnp.numpy.selection import where
    from accnp.numpy.ufunc_objects import frompyfunc, ufunc
    from accnp.numpy.ufuncs import (
        abs, absolute, acos, acosh, add, arccos, arccosh, arcsin, arcsinh, arctan, arctan2, arctanh,
        around, asin, asinh, atan, atan2, atanh, bitwise_and, bitwise_count, bitwise_invert,
        bitwise_left_shift, bitwise_not, bitwise_or, bitwise_right_shift, bitwise_xor, cbrt, ceil,
        clip, conj, conjugate, copysign, cos, cosh, deg2rad, degrees, divide, divmod, equal, exp,
        exp2, expm1, fabs, float_power, floor, floor_divide, fmax, fmin, fmod, frexp, gcd, greater,
        greater_equal, heaviside, hypot, i0, imag, invert, iscomplex, isfinite, isinf, isnan,
        isreal, lcm, left_shift, less, less_equal, log, log10, log1p, log2, logaddexp, logaddexp2,
        logical_and, logical_not, logical_or, logical_xor, maximum, minimum, mod, multiply,
        negative, nextafter, not_equal, positive, pow, power, rad2deg, radians, real, reciprocal,
        remainder, right_shift, rint, round, sign, signbit, sin, sinc, sinh, sqrt, square, subtract,
        tan, tanh, true_divide, trunc,
    )  # fmt: skip
    from accnp.numpy.namespace_info import API_VERSION as __array_api_version__
    from accnp.numpy.namespace_info import namespace_info as __array_namespace_info__
    from accnp.numpy.cumulative import (
        cumprod, cumsum, cumulative_prod, cumulative_sum, nanargmax, nanargmin, nancumprod,
        nancumsum, nanmax, nanmean, nanmin, nanprod, nanstd, nansum, nanvar,
    )  # fmt: skip
    from accnp.numpy.differences import diff, ediff1d, gradient, interp
    from accnp.numpy.histograms import histogram, histogram2d, histogram_bin_edges, histogramdd
    from accnp.numpy.means import mean, std, var
    from accnp.numpy.quantiles import (
        median, nanmedian, nanpercentile, nanquantile, percentile, quantile,
    )  # fmt: skip
    from accnp.numpy.reductions import (
        all, amax, amin, any, argmax, argmin, max, min, prod, ptp, sum,
    )  # fmt: skip
    from accnp.numpy.sets import (
        intersect1d, isin, setdiff1d, setxor1d, union1d, unique, unique_all, unique_counts,
        unique_inverse, unique_values,
    )  # fmt: skip
    from accnp.numpy.sorting import (
        argpartition, argsort, lexsort, partition, sort, sort_complex,
    )  # fmt: skip
    from accnp.numpy.statistics import average, corrcoef, count_nonzero, cov, trapezoid, unwrap
    from accnp.numpy.counting import bincount, digitize, ravel_multi_index, unravel_index
    from accnp.numpy.putting import fill_diagonal, put, put_along_axis
    from accnp.numpy.taking import (
        argwhere, choose, compress, extract, flatnonzero, mask_indices, nonzero, searchsorted,
        select, take, take_along_axis,
    )  # fmt: skip
    from accnp.numpy.vectorizing import vectorize
    from accnp.array_type import Array as ndarray
    from accnp.dtypes.promotion import promote_types, result_type
    from accnp.dtypes.questions import can_cast, finfo, iinfo, isdtype, issubdtype
    from accnp.numpy import fft, linalg
    from numpy import (
        False_, True_, array2string, base_repr, binary_repr, exceptions, format_float_positional,
        format_float_scientific, ndindex, savetxt, savez_compressed, testing,
    )  # fmt: skip

__all__ = [
    "ComplexWarning", "False_", "True_", "__array_api_version__", "__array_namespace_info__", "abs",
    "absolute", "acos", "acosh", "add", "all", "allclose", "amax", "amin", "angle", "any", "append",
    "apply_along_axis", "apply_over_axes", "arange", "arccos", "arccosh", "arcsin", "arcsinh",
    "arctan", "arctan2", "arctanh", "argmax", "argmin", "argpartition", "argsort", "argwhere",
    "around", "array", "array2string", "array_equal", "array_equiv", "array_repr", "array_split",
    "array_str", "asanyarray", "asarray", "asarray_chkfinite", "ascontiguousarray",
    "asfortranarray", "asin", "asinh", "astype", "atan", "atan2", "atanh", "atleast_1d",
    "atleast_2d", "atleast_3d", "average", "bartlett", "base_repr", "bfloat16", "binary_repr",
    "bincount", "bitwise_and", "bitwise_count", "bitwise_invert", "bitwise_left_shift",
    "bitwise_not", "bitwise_or", "bitwise_right_shift", "bitwise_xor", "blackman", "block", "bool",
    "bool_", "broadcast_arrays", "broadcast_shapes", "broadcast_to", "byte", "c_", "can_cast",
    "cbrt", "cdouble", "ceil", "character", "choose", "clip", "column_stack", "complex64",
    "complex128", "complex_", "complexfloating", "compress", "concat", "concatenate", "conj",
    "conjugate", "convolve", "copy", "copysign", "corrcoef", "correlate", "cos", "cosh",
    "count_nonzero", "cov", "cross", "csingle", "cumprod", "cumsum", "cumulative_prod",
    "cumulative_sum", "deg2rad", "degrees", "delete", "diag", "diag_indices", "diag_indices_from",
    "diagflat", "diagonal", "diff", "digitize", "divide", "divmod", "dot", "double", "dsplit",
    "dstack", "dtype", "e", "ediff1d", "einsum", "einsum_path", "empty", "empty_like", "equal",
    "errstate", "euler_gamma", "exceptions", "exp", "exp2", "expand_dims", "expm1", "extract",
    "eye", "fabs", "fft", "fill_diagonal", "finfo", "fix", "flatnonzero", "flexible", "flip",
    "fliplr", "flipud", "float4_e2m1fn", "float8_e3m4", "float8_e4m3", "float8_e4m3b11fnuz",
    "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu",
    "float16", "float32", "float64", "float_", "float_power", "floating", "floor", "floor_divide",
    "fmax", "fmin", "fmod", "format_float_positional", "format_float_scientific", "frexp",
    "from_dlpack", "frombuffer", "fromfile", "fromfunction", "fromiter", "frompyfunc", "fromstring",
    "full", "full_like", "gcd", "generic", "genfromtxt", "geomspace", "get_printoptions",
    "gradient", "greater", "greater_equal", "half", "hamming", "hanning", "heaviside", "histogram",
    "histogram2d", "histogram_bin_edges", "histogramdd", "hsplit", "hstack", "hypot", "i0",
    "identity", "iinfo", "imag", "index_exp", "indices", "inexact", "inf", "inner", "insert",
    "int2", "int4", "int8", "int16", "int32", "int64", "int_", "intc", "integer", "interp",
    "intersect1d", "intp", "invert", "isclose", "iscomplex", "iscomplexobj", "isdtype", "isfinite",
    "isfortran", "isin", "isinf", "isnan", "isneginf", "isposinf", "isreal", "isrealobj",
    "isscalar", "issubdtype", "iterable", "ix_", "kaiser", "kron", "lcm", "ldexp", "left_shift",
    "less", "less_equal", "lexsort", "linalg", "linspace", "load", "loadtxt", "log", "log1p",
    "log2", "log10", "logaddexp", "logaddexp2", "logical_and", "logical_not", "logical_or",
    "logical_xor", "logspace", "long", "longlong", "mask_indices", "matmul", "matrix_transpose",
    "matvec", "max", "maximum", "mean", "median", "meshgrid", "mgrid", "min", "minimum", "mod",
    "modf", "moveaxis", "multiply", "nan", "nan_to_num", "nanargmax", "nanargmin", "nancumprod",
    "nancumsum", "nanmax", "nanmean", "nanmedian", "nanmin", "nanpercentile", "nanprod",
    "nanquantile", "nanstd", "nansum", "nanvar", "ndarray", "ndenumerate", "ndim", "ndindex",
    "negative", "newaxis", "nextafter", "nonzero", "not_equal", "number", "object_", "ogrid",
    "ones", "ones_like", "outer", "packbits", "pad", "partition", "percentile", "permute_dims",
    "pi", "piecewise", "place", "poly", "polyadd", "polyder", "polydiv", "polyfit", "polyint",
    "polymul", "polysub", "polyval", "positive", "pow", "power", "printoptions", "prod",
    "promote_types", "ptp", "put", "put_along_axis", "quantile", "r_", "rad2deg", "radians",
    "ravel", "ravel_multi_index", "real", "reciprocal", "remainder", "repeat", "require", "reshape",
    "resize", "result_type", "right_shift", "rint", "roll", "rollaxis", "roots", "rot90", "round",
    "row_stack", "s_", "save", "savetxt", "savez", "savez_compressed", "searchsorted", "select",
    "set_printoptions", "setdiff1d", "setxor1d", "shape", "short", "sign", "signbit",
    "signedinteger", "sin", "sinc", "single", "sinh", "size", "sort", "sort_complex", "spacing",
    "split", "sqrt", "square", "squeeze", "stack", "std", "subtract", "sum", "swapaxes", "take",
    "take_along_axis", "tan", "tanh", "tensordot", "testing", "tile", "trace", "transpose",
    "trapezoid", "tri", "tril", "tril_indices", "tril_indices_from", "trim_zeros", "triu",
    "triu_indices", "triu_indices_from", "true_divide", "trunc", "ubyte", "ufunc", "uint", "uint2",
    "uint4", "uint8", "uint16", "uint32", "uint64", "uintc", "uintp", "ulong", "ulonglong",
    "union1d", "unique", "unique_all", "unique_counts", "unique_inverse", "unique_values",
    "unpackbits", "unravel_index", "unsignedinteger", "unstack", "unwrap", "ushort", "vander",
    "var", "vdot", "vecdot", "vecmat", "vectorize", "vsplit", "vstack", "where", "zeros",
    "zeros_like",
]  # fmt: skip

_install_getattr(__name__, __all__)
