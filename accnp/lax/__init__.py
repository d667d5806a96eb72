# isort: skip_file
# ruff: noqa: F401  (names outside __all__ are those that JAX has deprecated or does not document)
"""`accnp.lax`: the strict functions and control flow.

>>> import accnp as jax
>>> jax.lax.fori_loop(0, 3, lambda i, x: x * 2, 1).item()
8
"""

from typing import TYPE_CHECKING

from accnp.module_getattr import install_getattr as _install_getattr

if TYPE_CHECKING:  # loaded on first use, by accnp/module_getattr.py
    from accnp.lax.convolutions.shapes import (
        conv_dimension_numbers, conv_general_permutations, conv_general_shape_tuple,
        conv_shape_tuple, conv_transpose_shape_tuple,
    )  # fmt: skip
    from accnp.lax.convolutions.convolution import (
        conv, conv_general_dilated, conv_general_dilated_local, conv_general_dilated_patches,
        conv_transpose, conv_with_general_padding,
    )  # fmt: skip
    from accnp.numpy.fft.transforms import FftType
    from accnp.numpy.fft.transforms import lax_fft as fft
    from accnp.numpy.products import dot_general
    from accnp.numpy.products import lax_dot as dot
    from accnp.lax.control_flow.branches import cond, switch
    from accnp.lax.control_flow.loops import fori_loop, scan, while_loop
    from accnp.lax.control_flow.scans import associative_scan, map
    from accnp.lax.control_flow.solvers import custom_linear_solve, custom_root, platform_dependent
    from accnp.numpy.sorting import approx_max_k, approx_min_k, top_k
    from accnp.lax.indexing import (
        gather, index_take, scatter, scatter_add, scatter_apply, scatter_max, scatter_min,
        scatter_mul, scatter_sub, scatter_sub_p, sort, sort_key_val,
    )  # fmt: skip
    from accnp.lax.slicing import (
        dynamic_index_in_dim, dynamic_slice, dynamic_slice_in_dim, dynamic_update_index_in_dim,
        dynamic_update_slice, dynamic_update_slice_in_dim,
    )  # fmt: skip
    from accnp.jax_compat.primitives.known_primitives import (
        abs_p, acos_p, acosh_p, add_p, all_gather_p, all_to_all_p, and_p, argmax_p, argmin_p,
        asin_p, asinh_p, atan2_p, atan_p, atanh_p, axis_index_p, bessel_i0e_p, bessel_i1e_p,
        bitcast_convert_type_p, broadcast_in_dim_p, cbrt_p, ceil_p, clamp_p, clz_p, complex_p,
        concatenate_p, cond_p, conj_p, conv_general_dilated_p, convert_element_type_p, copy_p,
        cos_p, cosh_p, cumlogsumexp_p, cummax_p, cummin_p, cumprod_p, cumsum_p, digamma_p, div_p,
        dot_general_p, dynamic_slice_p, dynamic_update_slice_p, eq_p, erf_inv_p, erf_p, erfc_p,
        exp2_p, exp_p, expm1_p, fft_p, floor_p, gather_p, ge_p, gt_p, imag_p, integer_pow_p, iota_p,
        is_finite_p, le_p, lgamma_p, log1p_p, log_p, logistic_p, lt_p, max_p, min_p, mul_p, ne_p,
        neg_p, nextafter_p, not_p, optimization_barrier_p, or_p, pad_p, pmax_p, pmin_p, polygamma_p,
        population_count_p, pow_p, ppermute_p, psum_p, real_p, reduce_and_p, reduce_max_p,
        reduce_min_p, reduce_or_p, reduce_prod_p, reduce_sum_p, reduce_window_max_p,
        reduce_window_min_p, reduce_window_sum_p, rem_p, reshape_p, rev_p, round_p, rsqrt_p, scan_p,
        scatter_add_p, scatter_max_p, scatter_min_p, scatter_mul_p, scatter_p, select_n_p,
        shift_left_p, shift_right_arithmetic_p, shift_right_logical_p, sign_p, sin_p, sinh_p,
        slice_p, sort_p, sqrt_p, square_p, squeeze_p, stop_gradient_p, sub_p, tan_p, tanh_p,
        top_k_p, transpose_p, while_p, xor_p, zeta_p,
    )  # fmt: skip
    from accnp.jax_compat.primitives.rare_primitives import (
        approx_top_k_p, device_put_p, igamma_grad_a_p, igamma_p, igammac_p, linear_solve_p,
        reduce_p, reduce_precision_p, reduce_window_p, reduce_xor_p, regularized_incomplete_beta_p,
        select_and_gather_add_p, select_and_scatter_add_p, select_and_scatter_p,
    )  # fmt: skip
    from accnp.lax.parallel.reductions import (
        all_gather, axis_index, axis_size, pmax, pmean, pmin, psum, psum_scatter,
    )  # fmt: skip
    from accnp.lax.parallel.exchanges import all_to_all, pbroadcast, ppermute, pshuffle, pswapaxes
    from accnp.random.bit_generators import (
        rng_bit_generator, rng_bit_generator_p, rng_uniform, rng_uniform_p,
    )  # fmt: skip
    from accnp.sharding.constraints import with_sharding_constraint
    from accnp.sharding.varying import pcast, pvary
    from accnp.lax.user_reductions import reduce, reduce_window, reduce_xor
    from accnp.lax.elementwise import (
        abs, acos, acosh, add, asin, asinh, atan, atan2, atanh, bessel_i0e, bessel_i1e, betainc,
        bitcast_convert_type, bitwise_and, bitwise_not, bitwise_or, bitwise_xor, cbrt, ceil, clamp,
        clz, complex, conj, convert_element_type, cos, cosh, digamma, div, eq, erf, erf_inv, erfc,
        exp, exp2, expm1, floor, ge, gt, igamma, igamma_grad_a, igammac, imag, integer_pow,
        is_finite, le, lgamma, log, log1p, logistic, lt, max, min, mul, ne, neg, nextafter,
        optimization_barrier, polygamma, population_count, pow, random_gamma_grad, real, reciprocal,
        reduce_precision, rem, round, rsqrt, select, select_n, shift_left, shift_right_arithmetic,
        shift_right_logical, sign, sin, sinh, sqrt, square, stop_gradient, sub, tan, tanh, zeta,
    )  # fmt: skip
    from accnp.lax.composed import (
        broadcast_like, empty, eq_to_p, le_to_p, lt_to_p, mulhi, mulhi_p, shape_as_value, split,
        split_p, stack, stack_p, stage, stage_p, tile, tile_p, unstack, unstack_p,
    )  # fmt: skip
    from accnp.lax.composed import dtype_of as dtype
    from accnp.lax.composed import shapes_broadcast as broadcast_shapes
    from accnp.lax.reductions import (
        argmax, argmin, cumlogsumexp, cummax, cummin, cumprod, cumsum, reduce_and, reduce_max,
        reduce_min, reduce_or, reduce_prod, reduce_sum,
    )  # fmt: skip
    from accnp.lax.products import (
        batch_matmul, ragged_dot, ragged_dot_general, scaled_dot,
    )  # fmt: skip
    from accnp.lax.shapes import (
        broadcast, broadcast_in_dim, broadcast_to_rank, broadcasted_iota, collapse, concatenate,
        expand_dims, full, full_like, index_in_dim, iota, pad, reshape, rev, slice, slice_in_dim,
        squeeze, transpose,
    )  # fmt: skip
    from accnp.lax.staging import (
        after_all, after_all_p, composite, create_token, create_token_p, dce_sink, dce_sink_p,
        precv, psend, ragged_all_to_all, ragged_all_to_all_p,
    )  # fmt: skip
    from accnp.lax.enumerations import (
        AccuracyMode, DotAlgorithm, DotAlgorithmPreset, DotDimensionNumbers, Precision,
        PrecisionLike, RaggedDotDimensionNumbers, RandomAlgorithm, RoundingMethod, Tolerance,
    )  # fmt: skip
    from accnp.lax.window_shapes import padtype_to_pads, reduce_window_shape_tuple
    from accnp.lax import linalg
    from accnp.primitives.convolution import ConvDimensionNumbers
    from accnp.primitives.index import (
        GatherDimensionNumbers, GatherScatterMode, ScatterDimensionNumbers,
    )  # fmt: skip

__all__ = [
    "AccuracyMode", "ConvDimensionNumbers", "DotAlgorithm", "DotAlgorithmPreset",
    "DotDimensionNumbers", "FftType", "GatherDimensionNumbers", "GatherScatterMode", "Precision",
    "PrecisionLike", "RaggedDotDimensionNumbers", "RandomAlgorithm", "RoundingMethod",
    "ScatterDimensionNumbers", "Tolerance", "abs", "acos", "acosh", "add", "after_all",
    "after_all_p", "all_gather", "all_to_all", "approx_max_k", "approx_min_k", "approx_top_k_p",
    "argmax", "argmin", "asin", "asinh", "associative_scan", "atan", "atan2", "atanh",
    "axis_index", "axis_size", "batch_matmul", "bessel_i0e", "bessel_i1e", "betainc",
    "bitcast_convert_type", "bitwise_and", "bitwise_not", "bitwise_or", "bitwise_xor", "broadcast",
    "broadcast_in_dim", "broadcast_like", "broadcast_shapes", "broadcast_to_rank",
    "broadcasted_iota", "cbrt", "ceil", "clamp", "clz", "collapse", "complex", "composite",
    "concatenate", "cond", "conj", "conv", "conv_dimension_numbers", "conv_general_dilated",
    "conv_general_dilated_local", "conv_general_dilated_patches", "conv_general_permutations",
    "conv_general_shape_tuple", "conv_shape_tuple", "conv_transpose", "conv_transpose_shape_tuple",
    "conv_with_general_padding", "convert_element_type", "cos", "cosh", "create_token",
    "create_token_p", "cumlogsumexp", "cummax", "cummin", "cumprod", "cumsum",
    "custom_linear_solve", "custom_root", "dce_sink", "dce_sink_p", "device_put_p", "digamma",
    "div", "dot", "dot_general", "dtype", "dynamic_index_in_dim", "dynamic_slice",
    "dynamic_slice_in_dim", "dynamic_update_index_in_dim", "dynamic_update_slice",
    "dynamic_update_slice_in_dim", "empty", "eq", "eq_to_p", "erf", "erf_inv", "erfc", "exp",
    "exp2", "expand_dims", "expm1", "fft", "floor", "fori_loop", "full", "full_like", "gather",
    "ge", "gt", "igamma", "igamma_grad_a", "igamma_grad_a_p", "igamma_p", "igammac", "igammac_p",
    "imag", "index_in_dim", "index_take", "integer_pow", "iota", "is_finite", "le", "le_to_p",
    "lgamma", "linalg", "linear_solve_p", "log", "log1p", "logistic", "lt", "lt_to_p", "map",
    "max", "min", "mul", "mulhi", "mulhi_p", "ne", "neg", "nextafter", "optimization_barrier",
    "pad", "padtype_to_pads", "pbroadcast", "pcast", "platform_dependent", "pmax", "pmean", "pmin",
    "polygamma", "population_count", "pow", "ppermute", "precv", "psend", "pshuffle", "psum",
    "psum_scatter", "pswapaxes", "pvary", "ragged_all_to_all", "ragged_all_to_all_p", "ragged_dot",
    "ragged_dot_general", "random_gamma_grad", "real", "reciprocal", "reduce", "reduce_and",
    "reduce_max", "reduce_min", "reduce_or", "reduce_p", "reduce_precision", "reduce_precision_p",
    "reduce_prod", "reduce_sum", "reduce_window", "reduce_window_p", "reduce_window_shape_tuple",
    "reduce_xor", "reduce_xor_p", "regularized_incomplete_beta_p", "rem", "reshape", "rev",
    "rng_bit_generator", "rng_bit_generator_p", "rng_uniform", "rng_uniform_p", "round", "rsqrt",
    "scaled_dot", "scan", "scatter", "scatter_add", "scatter_apply", "scatter_max", "scatter_min",
    "scatter_mul", "scatter_sub", "scatter_sub_p", "select", "select_and_gather_add_p",
    "select_and_scatter_add_p", "select_and_scatter_p", "select_n", "shape_as_value", "shift_left",
    "shift_right_arithmetic", "shift_right_logical", "sign", "sin", "sinh", "slice",
    "slice_in_dim", "sort", "sort_key_val", "split", "split_p", "sqrt", "square", "squeeze",
    "stack", "stack_p", "stage", "stage_p", "stop_gradient", "sub", "switch", "tan", "tanh",
    "tile", "tile_p", "top_k", "transpose", "unstack", "unstack_p", "while_loop",
    "with_sharding_constraint", "zeta",
]  # fmt: skip

_install_getattr(__name__, __all__)
