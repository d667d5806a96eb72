"""One or more cases for every op of the table: operands, static parameters, and the checks that
apply.

`CASES` contains them, and `EXCEPTIONS` the reason why an op has none.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from primitives.linalg_cases import LINALG
from primitives.operands import Case, bools, cplx, ints, nats, real

from accnp.ir.node import items
from accnp.ir.op import OPS, o
from accnp.primitives.convolution import ConvDimensionNumbers
from accnp.primitives.fft import FftType
from accnp.primitives.index import (
    GatherDimensionNumbers,
    GatherScatterMode,
    ScatterDimensionNumbers,
)

__all__ = ["CASES", "EXCEPTIONS", "Case"]

CASES: dict[str, list[Case]] = {}
EXCEPTIONS: dict[str, str] = {
    "literal": "a leaf",
    "const": "a leaf",
    "arg": "a leaf",
    "item": "selects a result of an op with several; every such op uses it",
    "mark": "an identity that transformations make and remove",
    "pure_callback": "calls a user function: tests/api/effects/test_callbacks.py",
    "io_callback": "calls a user function: tests/api/effects/test_callbacks.py",
    "debug_callback": "calls a user function: tests/api/effects/test_callbacks.py",
    "debug_print": "calls a user function: tests/api/effects/test_callbacks.py",
    "check": "fails or does nothing: tests/api/effects/test_checkify.py",
    "detach": "tested with the custom derivative rules",
    "taken_rows": "an identity in batched branches; tested with control flow under vmap",
    "device_put": "an identity; tested with placement",
    "custom_vmap_call": "holds a program; tested with custom_vmap",
    "custom_jvp_call": "tested with the custom derivative rules",
    "custom_jvp_program": "tested with the custom derivative rules",
    "custom_vjp_call": "tested with the custom derivative rules",
    "custom_vjp_program": "tested with the custom derivative rules",
    "custom_vjp_tangent": "tested with the custom derivative rules",
    "jit": "holds a program; tested with jit",
    "custom_root": "holds programs: tests/lax/test_solving.py",
    "custom_linear_solve": "holds programs: tests/lax/test_solving.py",
    "reduce_precision": "holds a program: tests/lax/test_reductions.py",
    "remat2": "holds a program; tested with checkpointing",
    "cond": "holds programs; tested with control flow",
    "while": "holds programs; tested with control flow",
    "scan": "holds programs; tested with control flow",
    "fft_mirror": "a step of plans, never recorded: tests/numpy/test_fft.py",
    "table": "a constant, made by collectives",
    **dict.fromkeys(
        (
            "to_global",
            "to_local",
            "take_as_same",
            "mesh_gather",
            "mesh_exchange",
            "mesh_sum",
            "mesh_swap",
        ),
        "needs several processes: tests/processes",
    ),
    **dict.fromkeys(
        (
            "psum",
            "psum_invariant",
            "pvary",
            "pmax",
            "pmin",
            "all_gather",
            "all_gather_invariant",
            "reduce_scatter",
            "all_to_all",
            "ppermute",
            "pbroadcast",
            "axis_index",
        ),
        "lives inside vmap with an axis name; tested with the collectives",
    ),
}


def add(op: str, *inputs: Any, **more: Any) -> None:
    """Add a case; keywords in `params`, the fields of Case otherwise."""
    arrays = tuple(np.asarray(x) for x in inputs)
    CASES.setdefault(op, []).append(Case(op, arrays, **more))


for case in LINALG:
    CASES.setdefault(case.op, []).append(case)

# --- map -----------------------------------------------------------------------------------------

for name in ("add", "sub", "mul", "div"):
    add(name, real(2, 3), real(2, 3, low=0.5))
    add(name, real(3), real(low=0.5))
    add(name, real(low=0.5), real(3, low=0.5))
    add(name, cplx(3), cplx(3))
    add(name, ints(4), ints(4, low=1))
for name in ("rem", "max", "min", "atan2", "pow"):
    add(name, real(2, 3, low=0.2), real(2, 3, low=0.6))
    add(name, real(3, low=0.2), real(low=0.6))
    add(name, real(low=0.3), real(3, low=0.6))
add("rem", real(6), real(6, low=-2.0, high=-0.5))
add("rem", ints(5), ints(5, low=1))
add("max", ints(5), ints(5))
add("min", nats(5), nats(5))
add("pow", cplx(3), cplx(3))
add("pow", real(4), np.array([0, 1, 2, -1], np.int32))
for y in (0, 1, 2, 3, 7, -1, -2):
    add("integer_pow", real(4, low=0.3), params={"y": y})
add("integer_pow", cplx(3), params={"y": 3})
add("integer_pow", ints(4), params={"y": 3})
for name in ("neg", "sign", "square", "abs"):
    add(name, real(2, 3))
    # The derivative of a complex sign is taken as zero, as jax does.
    add(name, cplx(3), diff=name != "sign")
    add(name, ints(4))
add("nextafter", real(3), real(3), diff=False)
add("clamp", np.array(-1.03), real(7), np.array(1.02))
add("clamp", real(5, low=-2, high=-1), real(5), real(5, low=0.3, high=1))
for name in ("eq", "ne", "lt", "le", "gt", "ge"):
    add(name, ints(6, low=0, high=3), ints(6, low=0, high=3))
    add(name, real(3), real())
for name in ("and", "or", "xor"):
    add(name, ints(5), ints(5))
    add(name, bools(5), bools(5))
add("not", ints(5))
add("not", bools(5))
for name in ("shift_left", "shift_right_logical", "shift_right_arithmetic"):
    add(name, ints(6), np.array([0, 1, 3, 31, 32, 40], np.int32))
    add(name, nats(3), np.array([0, 1, 33], np.uint32))
for name in ("population_count", "clz"):
    add(name, ints(6))
    add(name, nats(6))
for name in ("threefry_0", "threefry_1", "threefry_xor"):
    add(name, *np.array([3, 5], np.uint32), nats(6), nats(6))
add("fma", real(4), real(4), real(4))
add("fma", real(4), real(), real())
add("is_finite", np.array([0.5, np.inf, -np.inf, np.nan]))
for name in ("floor", "ceil"):
    add(name, real(6))
for method in (0, 1):
    add(
        "round",
        np.array([-2.5, -1.5, -0.4, 0.5, 1.5, 2.3]),
        params={"rounding_method": method},
        diff=False,
    )

ANYWHERE = [
    "exp",
    "exp2",
    "expm1",
    "logistic",
    "sin",
    "cos",
    "tan",
    "atan",
    "sinh",
    "cosh",
    "tanh",
    "asinh",
]
for name in ANYWHERE:
    add(name, real(2, 3, low=-1.2, high=1.2))
    add(name, cplx(3))
for name in ("log", "sqrt", "rsqrt"):
    add(name, real(5, low=0.2))
    add(name, cplx(3))
for base in (2, 10):
    add("log_base", real(5, low=0.2), params={"base": base})
add("log1p", real(5, low=-0.8))
add("log1p", cplx(3))
add("cbrt", real(5))
for name in ("asin", "acos", "atanh", "erf_inv"):
    add(name, real(5, low=-0.8, high=0.8))
for name in ("asin", "acos", "atanh"):
    add(name, cplx(4))
add("acosh", real(5, low=1.2))
add("acosh", cplx(4))
for name in ("erf", "erfc", "normal_cdf", "normal_gelu", "silu", "mish", "tanh_cdf", "tanh_gelu"):
    add(name, real(6))
for name in ("logaddexp", "logaddexp2"):
    add(name, real(6), real(6))
add("exp_near_unit_sum", real(5), real(5), real(5, low=1, high=3), diff=False)
add("log_near_unit_sum", real(5), real(5), real(5, low=1, high=1.7), diff=False)
add("log_near_unit_sum", real(5), real(5), real(5, low=2, high=9))
add("exp_difference", real(5, low=-3, high=0), real(5, low=0.5, high=2))
for name in ("lgamma", "digamma"):
    add(name, real(5, low=0.4, high=5))
add("sin_pi", cplx(4))
add("digamma_difference", real(5, low=0.4, high=5), real(5, low=0.4, high=5))
for name in ("bessel_i0e", "bessel_i1e"):
    add(name, real(5, low=0.2))
    add(name, real(4, low=-2, high=-0.3))
add("zeta", np.array([2.5, 3.5]), real(2, low=0.5), fixed=(0,))
add("polygamma", np.array([1.0, 2.0]), real(2, low=0.5), fixed=(0,))
add("gcd", ints(5), ints(5))
for name in ("real", "imag", "conj"):
    add(name, cplx(2, 3))
add("complex", real(3), real(3))
add("complex", real(3), real())
add(
    "convert_element_type",
    real(4),
    params={"new_dtype": np.dtype(np.float32), "weak_type": False},
    diff=False,
)
add(
    "convert_element_type",
    real(4),
    params={"new_dtype": np.dtype(np.complex128), "weak_type": False},
)
add("convert_element_type", cplx(4), params={"new_dtype": np.dtype(np.float64), "weak_type": False})
add(
    "convert_element_type",
    real(4) * 9,
    params={"new_dtype": np.dtype(np.int32), "weak_type": False},
)
add("convert_element_type", ints(4), params={"new_dtype": np.dtype(np.float64), "weak_type": False})
add("bitcast_convert_type", real(4), params={"new_dtype": np.dtype(np.int64)})
add("copy", real(4))
add("name", real(4), params={"name": "here"})
add("optimization_barrier", real(4), real(2, 3), ints(3))
add("stop_gradient", real(4), diff=False)
add("select_n", bools(5), real(5), real(5))
add("select_n", np.array(True), real(5), real(5))
add("select_n", ints(6, low=0, high=3), real(6), real(6), real(6))
add("select_n", bools(5), real(), real(5))

# --- views, assembling ---------------------------------------------------------------------------

add("broadcast_in_dim", real(3), params={"shape": (2, 3, 4), "broadcast_dimensions": (1,)})
add("broadcast_in_dim", real(1, 3), params={"shape": (2, 3), "broadcast_dimensions": (0, 1)})
add("broadcast_in_dim", real(), params={"shape": (2, 3), "broadcast_dimensions": ()})
add("reshape", real(2, 6), params={"new_sizes": (3, 4), "dimensions": None})
add("squeeze", real(1, 3, 1), params={"dimensions": (0, 2)})
add("transpose", real(2, 3, 4), params={"permutation": (2, 0, 1)})
add("rev", real(2, 3, 4), params={"dimensions": (0, 2)})
add(
    "slice",
    real(5, 7),
    params={"start_indices": (1, 0), "limit_indices": (5, 6), "strides": (2, 3)},
)
add("slice", real(5), params={"start_indices": (2,), "limit_indices": (4,), "strides": None})
add("iota", params={"dtype": np.dtype(np.int32), "shape": (2, 3), "dimension": 1})
add("concatenate", real(2, 3), real(2, 1), real(2, 2), params={"dimension": 1})
add("pad", real(2, 3), real(), params={"padding_config": ((1, 0, 0), (2, 1, 1))})
add("pad", real(4, 5), real(), params={"padding_config": ((-1, 2, 0), (1, -2, 2))})
add("view_bytes", real(2, 4), params={"new_dtype": np.dtype(np.int32)})
add("swap_bytes", ints(4))

# --- reductions ----------------------------------------------------------------------------------

for name in ("reduce_sum", "reduce_prod", "reduce_max", "reduce_min"):
    for axes in ((0,), (1,), (0, 2), (0, 1, 2), ()):
        add(name, real(2, 3, 2), params={"axes": axes})
    add(name, ints(3, 2), params={"axes": (0,)})
for name in ("reduce_sum", "reduce_prod"):
    add(name, cplx(3, 2), params={"axes": (0,)})
for name in ("reduce_and", "reduce_or", "reduce_xor"):
    add(name, bools(3, 2), params={"axes": (1,)})
    add(name, ints(3, 2), params={"axes": (0,)})
for name in ("argmax", "argmin"):
    add(name, real(3, 4), params={"axes": (1,), "index_dtype": np.dtype(np.int32)})
for name in ("cumsum", "cumprod", "cummax", "cummin", "cumlogsumexp"):
    for reverse in (False, True):
        add(name, real(3, 4), params={"axis": 1, "reverse": reverse})
    add(name, real(4), params={"axis": 0, "reverse": False})

# --- indexing ------------------------------------------------------------------------------------

CLIP, DROP = GatherScatterMode.CLIP, GatherScatterMode.FILL_OR_DROP
ROWS = GatherDimensionNumbers((1,), (0,), (0,))
POINTS = GatherDimensionNumbers((), (0, 1), (0, 1))
BLOCK = GatherDimensionNumbers((1, 2), (), (0, 1))
FLAGS = {"indices_are_sorted": False, "unique_indices": False}
for mode in (CLIP, DROP):
    for dims, sizes, starts in (
        (ROWS, (1, 4), [[0], [2], [2], [9]]),
        (POINTS, (1, 1), [[0, 1], [2, 3], [-7, 0]]),
        (BLOCK, (2, 2), [[0, 1], [1, 2], [2, 9]]),
    ):
        at = np.array(starts, np.int32)
        shown = {"dimension_numbers": dims, "slice_sizes": sizes, **FLAGS, "mode": mode}
        add("gather", real(3, 4), at, params={**shown, "fill_value": 0})
        window = [sizes[d] for d in range(2) if d not in dims.collapsed_slice_dims]
        updates = (len(starts), *window)
        put = {"dimension_numbers": ScatterDimensionNumbers(*dims), **FLAGS, "mode": mode}
        for name in ("scatter", "scatter_add"):
            add(name, real(3, 4), at, real(*updates), params=put)
        for name in ("scatter_min", "scatter_max"):
            add(name, real(3, 4), at, real(*updates), params=put)
for places, once in (([[0], [2]], True), ([[0], [2], [0], [0], [9]], False)):
    add(
        "scatter_mul",
        real(3, 4),
        np.array(places, np.int32),
        real(len(places), 4),
        params={
            "dimension_numbers": ScatterDimensionNumbers(*ROWS),
            "indices_are_sorted": False,
            "unique_indices": once,
            "mode": DROP,
        },
    )
for k in (0, 1, 5):
    start = (np.array(k, np.int32), np.array(1, np.int32))
    add("dynamic_slice", real(4, 5), *start, params={"slice_sizes": (2, 3)})
    add("dynamic_update_slice", real(4, 5), real(2, 3), *start)
for keys in (1, 2):
    add(
        "sort",
        *[real(3, 5) for _ in range(keys + 1)],
        params={"dimension": 1, "is_stable": True, "num_keys": keys},
    )
add("sort", real(6), params={"dimension": 0, "is_stable": True, "num_keys": 1})
for kind, x, n in ((0, cplx(2, 5), 5), (1, cplx(4), 4), (2, real(2, 5), 5), (2, real(6), 6),
                   (3, cplx(3), 4), (3, cplx(2, 3), 5)):  # fmt: skip
    add("fft", x, params={"fft_type": FftType(kind), "fft_lengths": (n,)})
add("partition", real(3, 7), params={"kth": 3, "axis": 1})
add("top_k", real(3, 5), params={"k": 2, "axis": 1})
add("searchsorted", np.sort(real(5)), real(4), params={"side": "left"})

# --- linear algebra ------------------------------------------------------------------------------


def contraction(contract: Any, batch: Any = ((), ())) -> dict[str, Any]:
    return {
        "dimension_numbers": (contract, batch),
        "precision": None,
        "preferred_element_type": np.dtype(np.float64),
    }


add("dot_general", real(2, 3), real(3, 4), params=contraction(((1,), (0,))))
add("dot_general", real(3), real(3), params=contraction(((0,), (0,))))
add("dot_general", real(2), real(3), params=contraction(((), ())))
add("dot_general", real(5, 2, 3), real(3, 5, 4), params=contraction(((2,), (0,)), ((0,), (1,))))
add("dot_general", real(2, 3, 4), real(4, 3, 5), params=contraction(((1, 2), (1, 0))))


def convolution(**more: Any) -> dict[str, Any]:
    return {
        "window_strides": (1, 1),
        "padding": ((1, 1), (0, 1)),
        "lhs_dilation": (1, 1),
        "rhs_dilation": (1, 1),
        "dimension_numbers": ConvDimensionNumbers((0, 3, 1, 2), (3, 2, 0, 1), (0, 3, 1, 2)),
        "feature_group_count": 1,
        "batch_group_count": 1,
        "precision": None,
        "preferred_element_type": None,
        **more,
    }


add("conv_general_dilated", real(1, 3, 4, 2), real(2, 3, 2, 5), params=convolution())
for group in ("feature", "batch"):
    add(
        "conv_general_dilated",
        real(2, 3, 4, 4 if group == "feature" else 2),
        real(2, 2, 2, 2),
        params=convolution(
            window_strides=(1, 2), lhs_dilation=(2, 1), **{f"{group}_group_count": 2}
        ),
    )
WINDOWS = {
    "window_dimensions": (2, 3),
    "window_strides": (1, 2),
    "padding": ((0, 1), (1, 0)),
    "base_dilation": (1, 1),
    "window_dilation": (2, 1),
}
for fold in ("sum", "max", "min"):
    add(f"reduce_window_{fold}", real(4, 5), params=WINDOWS)
SELECTED = {"select_prim": "ge", **WINDOWS}
add("select_and_gather_add", real(4, 5), real(4, 5), params=SELECTED)
add("select_and_scatter_add", real(3, 2), real(4, 5), params=SELECTED)
add("add_any", real(2, 3), real(2, 3))
add("add_any", real(3), real())
add("add_any", cplx(3), cplx(3))


def complete() -> set[str]:
    """Return the ops of the table that have neither a case nor an exception."""
    return set(OPS.whole()) - set(CASES) - set(EXCEPTIONS)


# Special functions that SciPy computes; more of their values are in tests/scipy/test_special.py.
_ONE = "bessel_i0 bessel_i1 dawsn erfcx exp1 expi gamma log_ndtr spence"
for name in _ONE.split():
    add(name, real(5, low=0.3, high=3))
add("ndtri", real(5, low=0.2, high=0.8))
for name in ("beta", "betaln", "binom", "owens_t", "poch"):
    add(name, real(4, low=0.6, high=3), real(4, low=0.6, high=3))
for name in ("igamma", "igammac"):
    add(name, real(4, low=0.6, high=3), real(4, low=0.6, high=3), fixed=(0,))
for name in ("igamma_grad_a", "random_gamma_grad"):
    add(name, real(4, low=0.6, high=3), real(4, low=0.6, high=3), diff=False)
for name in ("expn", "bessel_j"):
    add(name, np.array([2.0, 3.0]), real(2, low=0.6, high=3), fixed=(0,))
for name, count in (("regularized_incomplete_beta", 2), ("hyp1f1", 2)):
    shapes = [real(3, low=0.6, high=3)] * count
    add(name, *shapes, real(3, low=0.2, high=0.8), fixed=tuple(range(count)))
three = [real(3, low=0.6, high=3) for _ in range(3)]
for name in ("hyp2f1", "hyp2f1_grad_a", "hyp2f1_grad_b", "hyp2f1_grad_c"):
    add(name, *three, real(3, low=0.2, high=0.8), fixed=(0, 1, 2))
for name in ("hyp1f1_grad_a", "hyp1f1_grad_b"):
    shapes = [real(3, low=0.6, high=3)] * 2
    add(name, *shapes, real(3, low=0.2, high=0.8), fixed=(0, 1))
for name in ("sici", "fresnel"):
    add(name, real(4, low=0.5), post=lambda y: o.mul(*items(y)))
add("wofz", cplx(4))
