# isort: skip_file
"""`accnp.extend.core.primitives`: the primitives of operations."""

from typing import TYPE_CHECKING

from accnp.module_getattr import install_getattr as _install_getattr

if TYPE_CHECKING:  # loaded on first use, by accnp/module_getattr.py
    from accnp.jax_compat.primitives.linalg_primitives import (
        cholesky_p, eig_p, eigh_p, hessenberg_p, householder_product_p, lu_p, qr_p, schur_p, svd_p,
        triangular_solve_p, tridiagonal_p, tridiagonal_solve_p,
    )  # fmt: skip
    from accnp.jax_compat.tracing.core_names import call_p, closed_call_p
    from accnp.jax_compat.primitives.known_primitives import (
        abs_p, acos_p, acosh_p, add_jaxvals_p, add_p, all_gather_p, all_to_all_p, and_p, argmax_p,
        argmin_p, asin_p, asinh_p, atan2_p, atan_p, atanh_p, axis_index_p, bessel_i0e_p,
        bessel_i1e_p, bitcast_convert_type_p, broadcast_in_dim_p, cbrt_p, ceil_p, clamp_p, clz_p,
        complex_p, concatenate_p, cond_p, conj_p, convert_element_type_p, copy_p, cos_p, cosh_p,
        cumlogsumexp_p, cummax_p, cummin_p, cumprod_p, cumsum_p, custom_jvp_call_p,
        custom_vjp_call_p, digamma_p, div_p, dot_general_p, dynamic_slice_p, dynamic_update_slice_p,
        eq_p, erf_inv_p, erf_p, erfc_p, exp2_p, exp_p, expm1_p, fft_p, floor_p, gather_p, ge_p,
        gt_p, imag_p, integer_pow_p, iota_p, is_finite_p, jit_p, le_p, lgamma_p, log1p_p, log_p,
        logistic_p, lt_p, max_p, min_p, mul_p, name_p, ne_p, neg_p, nextafter_p, not_p,
        optimization_barrier_p, or_p, pad_p, pmax_p, pmin_p, polygamma_p, population_count_p, pow_p,
        ppermute_p, psum_p, real_p, reduce_and_p, reduce_max_p, reduce_min_p, reduce_or_p,
        reduce_prod_p, reduce_sum_p, rem_p, remat_p, reshape_p, rev_p, round_p, rsqrt_p, scan_p,
        scatter_add_p, scatter_max_p, scatter_min_p, scatter_mul_p, scatter_p, select_n_p,
        shift_left_p, shift_right_arithmetic_p, shift_right_logical_p, sign_p, sin_p, sinh_p,
        slice_p, sort_p, sqrt_p, square_p, squeeze_p, stop_gradient_p, sub_p, tan_p, tanh_p,
        top_k_p, transpose_p, while_p, xor_p, zeta_p,
    )  # fmt: skip

__all__ = [
    "abs_p", "acos_p", "acosh_p", "add_jaxvals_p", "add_p", "all_gather_p", "all_to_all_p",
    "and_p", "argmax_p", "argmin_p", "asin_p", "asinh_p", "atan2_p", "atan_p", "atanh_p",
    "axis_index_p", "bessel_i0e_p", "bessel_i1e_p", "bitcast_convert_type_p",
    "broadcast_in_dim_p", "call_p", "cbrt_p", "ceil_p", "cholesky_p", "clamp_p", "closed_call_p",
    "clz_p", "complex_p", "concatenate_p", "cond_p", "conj_p", "convert_element_type_p", "copy_p",
    "cos_p", "cosh_p", "cumlogsumexp_p", "cummax_p", "cummin_p", "cumprod_p", "cumsum_p",
    "custom_jvp_call_p", "custom_vjp_call_p", "digamma_p", "div_p", "dot_general_p",
    "dynamic_slice_p", "dynamic_update_slice_p", "eig_p", "eigh_p", "eq_p", "erf_inv_p", "erf_p",
    "erfc_p", "exp2_p", "exp_p", "expm1_p", "fft_p", "floor_p", "gather_p", "ge_p", "gt_p",
    "hessenberg_p", "householder_product_p", "imag_p", "integer_pow_p", "iota_p", "is_finite_p",
    "jit_p", "le_p", "lgamma_p", "log1p_p", "log_p", "logistic_p", "lt_p", "lu_p", "max_p",
    "min_p", "mul_p", "name_p", "ne_p", "neg_p", "nextafter_p", "not_p",
    "optimization_barrier_p", "or_p", "pad_p", "pmax_p", "pmin_p", "polygamma_p",
    "population_count_p", "pow_p", "ppermute_p", "psum_p", "qr_p", "real_p", "reduce_and_p",
    "reduce_max_p", "reduce_min_p", "reduce_or_p", "reduce_prod_p", "reduce_sum_p", "rem_p",
    "remat_p", "reshape_p", "rev_p", "round_p", "rsqrt_p", "scan_p", "scatter_add_p",
    "scatter_max_p", "scatter_min_p", "scatter_mul_p", "scatter_p", "schur_p", "select_n_p",
    "shift_left_p", "shift_right_arithmetic_p", "shift_right_logical_p", "sign_p", "sin_p",
    "sinh_p", "slice_p", "sort_p", "sqrt_p", "square_p", "squeeze_p", "stop_gradient_p",
    "sub_p", "svd_p", "tan_p", "tanh_p", "top_k_p", "transpose_p", "triangular_solve_p",
    "tridiagonal_p", "tridiagonal_solve_p", "while_p", "xor_p", "zeta_p",
]  # fmt: skip

_install_getattr(__name__, __all__)
