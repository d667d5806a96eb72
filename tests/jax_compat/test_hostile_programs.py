"""`export.deserialize` rejects malicious programs with a ValueError before running any part of
them.
"""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
import time
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from primitives.cases import CASES

import accnp as jax
import accnp.numpy as jnp
from accnp import export, lax
from accnp.array_type import from_numpy
from accnp.ir.graph import build
from accnp.ir.node import items
from accnp.jax_compat.export.serialization import Encoder, decode_program
from accnp.jax_compat.export.size_interpolation import number_at

sys.path.insert(0, str(Path(__file__).parent))
from fuzz_exports import make_header, pack, unpack

ROOT = Path(__file__).resolve().parents[2]
FUZZ_SECONDS = float(os.environ.get("ACCNP_FUZZ_SECONDS", "3"))

F4 = ["in", [4], "float32", False]
F43 = ["in", [4, 3], "float32", False]
F44 = ["in", [4, 4], "float32", False]
I32 = ["in", [], "int32", False]
I4 = ["in", [4, 1], "int32", False]
BOOL = ["in", [], "bool", False]
OUT = [[[4], "float32", False]]


def t(*parts: Any) -> dict[str, Any]:
    """Encode a tuple, and the tuples in it, as data."""
    return {"tuple": [t(*x) if isinstance(x, tuple) else x for x in parts]}


def dtype(name: str) -> dict[str, str]:
    return {"dtype": name}


def record(name: str, *parts: Any) -> dict[str, Any]:
    return {"record": [name, [t(*x) for x in parts]]}


def body(values: list[Any], *out: int) -> dict[str, Any]:
    return {"program": {"values": values, "out": list(out)}}


ADD = [F4, F4, ["add", [0, 1], {}]]
SCAN = {
    "jaxpr": body([F4, ["in", [3], "float32", False]], 0, 1), "length": 4, "reverse": False,
    "unroll": 1, "num_consts": 0, "num_carry": 1,
}  # fmt: skip
WHILE = {
    "cond_jaxpr": body([F4, ["literal", True, "bool", False]], 1), "body_jaxpr": body([F4], 0),
    "cond_nconsts": 0, "body_nconsts": 0,
}  # fmt: skip
COND = {"branches": t(body([F4], 0), body([F4], 0))}
GATHER = {
    "dimension_numbers": record("GatherDimensionNumbers", (1,), (0,), (0,), (), ()),
    "slice_sizes": t(1, 3), "indices_are_sorted": False, "unique_indices": False,
    "mode": {"enum": ["GatherScatterMode", "CLIP"]}, "fill_value": None,
}  # fmt: skip
SCATTER = {
    "dimension_numbers": record("ScatterDimensionNumbers", (1,), (0,), (0,), (), ()),
    "indices_are_sorted": False, "unique_indices": False,
    "mode": {"enum": ["GatherScatterMode", "CLIP"]},
}  # fmt: skip
DOT = {
    "dimension_numbers": t(((1,), (0,)), ((), ())), "precision": None,
    "preferred_element_type": None,
}  # fmt: skip
POOL = {
    "window_dimensions": t(2, 2), "window_strides": t(1, 1), "padding": t((0, 0), (0, 0)),
    "base_dilation": t(1, 1), "window_dilation": t(1, 1),
}  # fmt: skip
TRIANGULAR = {
    "left_side": True, "lower": True, "transpose_a": False, "conjugate_a": False,
    "unit_diagonal": False,
}  # fmt: skip
IMAGE = ["in", [1, 1, 4, 4], "float32", False]
CONV = {
    "dimension_numbers": record("ConvDimensionNumbers", (0, 1, 2, 3), (0, 1, 2, 3), (0, 1, 2, 3)),
    "window_strides": t(1, 1), "padding": t((0, 0), (0, 0)), "lhs_dilation": t(1, 1),
    "rhs_dilation": t(1, 1), "feature_group_count": 1, "batch_group_count": 1, "precision": None,
    "preferred_element_type": None,
}  # fmt: skip
RAGGED = body([["in", [5], "float32", False]], 0)
UPDATES = ["in", [4, 3], "float32", False]
DS = {"slice_sizes": t(2, 2)}

# An operation, its operands, its parameters and what is changed in these.
VALID: dict[str, tuple[list[Any], dict[str, Any]]] = {
    "scan": ([F4, F43], SCAN), "while": ([F4], WHILE), "cond": ([I32, F4], COND),
    "gather": ([F43, I4], GATHER), "scatter_add": ([F43, I4, UPDATES], SCATTER),
    "dot_general": ([F44, F43], DOT), "reduce_window_max": ([F43], POOL),
    "triangular_solve": ([F44, F43], TRIANGULAR), "conv_general_dilated": ([IMAGE, IMAGE], CONV),
    "dynamic_slice": ([F43, I32, I32], DS), "sort": ([F43], {"dimension": 0, "is_stable": True,
    "num_keys": 1}), "slice": ([F43], {"start_indices": t(0, 0), "limit_indices": t(4, 3),
    "strides": None}), "transpose": ([F43], {"permutation": t(1, 0)}),
    "reshape": ([F43], {"new_sizes": t(12), "dimensions": None}),
    "broadcast_in_dim": ([F4], {"shape": t(3, 4), "broadcast_dimensions": t(1)}),
    "rev": ([F43], {"dimensions": t(0)}), "squeeze": ([I4], {"dimensions": t(1)}),
    "reduce_sum": ([F43], {"axes": t(0)}), "argmax": ([F43], {"axes": t(0),
    "index_dtype": dtype("int32")}), "cumsum": ([F43], {"axis": 0, "reverse": False}),
    "concatenate": ([F43, F43], {"dimension": 0}), "iota": ([], {"dtype": dtype("int32"),
    "shape": t(4), "dimension": 0}), "pad": ([F4, ["in", [], "float32", False]],
    {"padding_config": t((1, 1, 0))}), "fft": ([F4], {"fft_type": {"enum": ["FftType", "RFFT"]},
    "fft_lengths": t(4)}), "top_k": ([F4], {"k": 2, "axis": 0}), "partition": ([F4], {"kth": 1,
    "axis": 0}), "searchsorted": ([F4, F4], {"side": "left"}), "integer_pow": ([F4], {"y": 2}),
    "convert_element_type": ([F4], {"new_dtype": dtype("int32"), "weak_type": False}),
    "view_bytes": ([F4], {"new_dtype": dtype("uint8")}), "lu_pivots_to_permutation": (
    [["in", [4], "int32", False]], {"permutation_size": 4}), "name": ([F4], {"name": "here"}),
    "dynamic_update_slice": ([F43, UPDATES, I32, I32], {}), "add": ([F4, F4], {}),
    "cholesky": ([F44], {}), "select_n": ([BOOL, F4, F4], {}), "clamp": ([F4, F4, F4], {}),
    "table": ([], {"values": t(0, 1)}), "select_and_gather_add": ([F43, F43],
    {"select_prim": "ge", **POOL}),
}  # fmt: skip

# fmt: off
CHANGED: dict[str, list[dict[str, Any]]] = {
    "scan": [
        {"length": 16}, {"length": 3}, {"length": -1}, {"length": 4.0}, {"length": True},
        {"num_consts": 1}, {"num_consts": -1}, {"num_carry": 2}, {"num_carry": 3},
        {"num_carry": 0}, {"reverse": 1}, {"unroll": 0}, {"jaxpr": RAGGED}, {"jaxpr": None},
        {"jaxpr": body([F4, F4], 0, 1)}, {"jaxpr": body([F4, ["in", [3], "int32", False]], 0, 1)},
        {"jaxpr": body([F4, ["in", [3], "float32", False]], 1, 0)}, {"jaxpr": body([F4], 0)},
        {"jaxpr": body([F4, ["in", [3], "float32", False]])},
        {"jaxpr": body([F4, ["in", [3], "float32", False]], 0, 7)},
        {"jaxpr": body([F4, ["in", [3], "float32", False]], 0, -1)},
        {"jaxpr": body([F4, ["in", [3], "float32", False], ["sin", [-1], {}]], 0, 2)},
        {"jaxpr": body([F4, ["in", [3], "float32", False], ["scan", [0, 1], {
            **SCAN, "length": 9}]], 0, 1)},
    ],
    "while": [
        {"cond_jaxpr": body([F4], 0)}, {"cond_jaxpr": RAGGED}, {"body_jaxpr": RAGGED},
        {"body_jaxpr": body([F4, F4], 0)}, {"body_jaxpr": body([F4], 0, 0)}, {"cond_nconsts": 1},
        {"body_nconsts": 1}, {"body_nconsts": -1}, {"cond_nconsts": 2**40},
        {"body_jaxpr": body([F4, ["in", [4], "int32", False]], 1)},
        {"cond_jaxpr": body([F4, ["literal", 1, "int32", False]], 1)},
    ],
    "cond": [
        {"branches": t()}, {"branches": t(body([F4], 0), RAGGED)}, {"branches": t(RAGGED)},
        {"branches": t(body([F4], 0), body([F4, ["literal", 1.0, "float32", False]], 1))},
        {"branches": t(body([F4], 0), body([F4], 0, 0))}, {"branches": t(1)}, {"branches": 5},
    ],
    "gather": [
        {"slice_sizes": t(1, 4)}, {"slice_sizes": t(5, 3)}, {"slice_sizes": t(1, -1)},
        {"slice_sizes": t(1)}, {"slice_sizes": t(1, 3, 1)}, {"mode": "clip"},
        *[{"dimension_numbers": record("GatherDimensionNumbers", *dims)} for dims in (
            ((1,), (0,), (2,), (), ()), ((1,), (0,), (-1,), (), ()), ((5,), (0,), (0,), (), ()),
            ((1,), (7,), (0,), (), ()), ((1,), (0,), (0, 1), (), ()), ((0, 1), (), (0,), (1,), ()),
            ((), (0,), (0,), (1,), (0,)), ((1,), (0,), (0,), (0,), (0,)),
        )],
        {"dimension_numbers": t(((1,), (0,)), ((), ()))}, {"fill_value": "x"},
        {"dimension_numbers": record("ConvDimensionNumbers", (1,), (0,), (0,))},
    ],
    "scatter_add": [
        *[{"dimension_numbers": record("ScatterDimensionNumbers", *dims)} for dims in (
            ((1,), (0,), (2,), (), ()), ((1,), (0,), (-3,), (), ()), ((3,), (0,), (0,), (), ()),
            ((1,), (4,), (0,), (), ()), ((0, 1), (), (0,), (), ()), ((1,), (0,), (), (), ()),
            ((1, 1), (), (0,), (), ()), ((), (0, 1), (0,), (), ()),
        )],
        {"mode": {"enum": ["FftType", "FFT"]}},
    ],
    "dot_general": [{"dimension_numbers": t(*d)} for d in (
        (((1,), (1,)), ((), ())), (((1,), (5,)), ((), ())), (((-1,), (0,)), ((), ())),
        (((1, 1), (0, 0)), ((), ())), (((1,), (0,)), ((1,), (0,))), (((1, 0), (0,)), ((), ())),
        ((1, 0), ((), ())),
    )] + [{"preferred_element_type": dtype("U5")}, {"precision": 5}],
    "reduce_window_max": [
        {"window_dimensions": t(0, 2)}, {"window_dimensions": t(2)}, {"window_strides": t(0, 1)},
        {"window_strides": t(-1, 1)}, {"padding": t((0, 0))}, {"base_dilation": t(0, 1)},
        {"window_dilation": t(1, 2**62)}, {"padding": t((0, 2**62), (0, 0))}, {"padding": t(0, 0)},
    ],
    "select_and_gather_add": [{"select_prim": "x"}, {"select_prim": None}],
    "triangular_solve": [{"left_side": False}, {"left_side": 2}, {"lower": None}],
    "conv_general_dilated": [
        {"window_strides": t(0, 1)}, {"window_strides": t(1)}, {"feature_group_count": 0},
        {"feature_group_count": 3}, {"batch_group_count": -1}, {"lhs_dilation": t(0, 1)},
        {"dimension_numbers": record("ConvDimensionNumbers", *[(0, 1, 2, 9)] * 3)},
        {"dimension_numbers": record("ConvDimensionNumbers", *[(0, 1, 2, 2)] * 3)},
        {"dimension_numbers": record("ConvDimensionNumbers", *[(0, 1, 2)] * 3)},
    ],
    "dynamic_slice": [{"slice_sizes": t(5, 2)}, {"slice_sizes": t(2)}, {"slice_sizes": t(-1, 2)}],
    "sort": [{"dimension": 2}, {"dimension": -1}, {"num_keys": 2}, {"num_keys": 0}],
    "slice": [
        {"limit_indices": t(5, 3)}, {"start_indices": t(-1, 0)}, {"strides": t(0, 1)},
        {"strides": t(-1, 1)}, {"start_indices": t(3, 0), "limit_indices": t(2, 3)},
        {"limit_indices": t(4)}, {"limit_indices": t(4.0, 3)},
    ],
    "transpose": [{"permutation": t(0, 0)}, {"permutation": t(0)}, {"permutation": t(0, 5)}],
    "reshape": [{"new_sizes": t(13)}, {"new_sizes": t(-3, -4)}, {"new_sizes": "12"}],
    "broadcast_in_dim": [
        {"shape": t(3, 5)}, {"broadcast_dimensions": t(2)}, {"broadcast_dimensions": t(-1)},
        {"shape": t(2**40, 2**40, 4), "broadcast_dimensions": t(2)},
        {"shape": t(*[2] * 70, 4), "broadcast_dimensions": t(70)},
    ],
    "rev": [{"dimensions": t(2)}, {"dimensions": t(-1)}, {"dimensions": t(0, 0)}],
    "squeeze": [{"dimensions": t(0)}, {"dimensions": t(7)}],
    "reduce_sum": [{"axes": t(2)}, {"axes": t(0, 0)}, {"axes": 0}, {"other": 1}],
    "argmax": [{"axes": t(0, 1)}, {"axes": t()}, {"index_dtype": dtype("float32")}],
    "cumsum": [{"axis": 2}, {"axis": -1}, {"axis": None}],
    "concatenate": [{"dimension": 2}, {"dimension": -1}],
    "iota": [{"dimension": 1}, {"shape": t(-4)}, {"dtype": dtype("object")}],
    "pad": [{"padding_config": t((-3, -3, 0))}, {"padding_config": t((0, 0, -1))},
            {"padding_config": t((2**62, 2**62, 0))}, {"padding_config": t()}],
    "fft": [{"fft_lengths": t(8)}, {"fft_lengths": t(0)}, {"fft_lengths": t(4, 4)},
            {"fft_type": {"enum": ["FftType", "IRFFT"]}}, {"fft_type": 2}],
    "top_k": [{"k": 5}, {"k": -1}, {"axis": 1}],
    "partition": [{"kth": 4}, {"kth": -1}],
    "searchsorted": [{"side": "up"}, {"side": 5}],
    "integer_pow": [{"y": 2**40}, {"y": 0.5}],
    "convert_element_type": [{"new_dtype": dtype("U5")}, {"new_dtype": dtype("float128")},
                             {"new_dtype": dtype("object")}, {"new_dtype": "int32"}],
    "view_bytes": [{"new_dtype": dtype("complex64x")}, {"new_dtype": dtype("bool")},
                   {"new_dtype": dtype("int4")}],
    "lu_pivots_to_permutation": [{"permutation_size": 3}, {"permutation_size": -4}],
    "name": [{"name": 5}, {"name": "a" * 5000}],
}

OPERANDS: list[tuple[str, list[Any]]] = [
    ("scan", [F4, ["in", [8, 3], "float32", False]]), ("scan", [F4]), ("scan", []),
    ("scan", [F4, ["in", [], "float32", False]]), ("scan", [F4, F43, F43]),
    ("while", [["in", [9], "float32", False]]), ("while", []), ("while", [F4, F4]),
    ("cond", [["in", [4], "int32", False], F4]), ("cond", [["in", [], "float32", False], F4]),
    ("cond", [I32]), ("cond", [I32, ["in", [2], "float32", False]]),
    ("gather", [F43, ["in", [4, 2], "int32", False]]), ("gather", [F43, I32]),
    ("gather", [["in", [0, 3], "float32", False], I4]),
    ("gather", [F43, ["in", [4, 1], "float32", False]]), ("gather", [F43]),
    ("scatter_add", [F43, I4, ["in", [5, 3], "float32", False]]),
    ("scatter_add", [F43, I4, ["in", [4, 9], "float32", False]]),
    ("scatter_add", [F43, I4, ["in", [4, 3], "float64", False]]),
    ("dot_general", [F43, F43]), ("triangular_solve", [F43, F43]), ("cholesky", [F43]),
    ("triangular_solve", [F44, ["in", [5, 3], "float32", False]]), ("cholesky", [F4]),
    ("cholesky", [["in", [4, 4], "int32", False]]), ("dynamic_slice", [F43, I32]),
    ("dynamic_slice", [F43, F4, I32]), ("dynamic_update_slice", [F4, F43, I32, I32]),
    ("dynamic_update_slice", [F43, ["in", [9, 3], "float32", False], I32, I32]),
    ("add", [F4]), ("add", [F4, F4, F4]), ("add", [F4, ["in", [5], "float32", False]]),
    ("add", [F4, ["in", [4], "int32", False]]), ("select_n", [BOOL, F4, F4, F4]), ("sort", []),
    ("select_n", [F4, F4, F4]), ("clamp", [F4, F4]), ("searchsorted", [F44, I32]),
    ("concatenate", []), ("concatenate", [F43, F44]), ("table", [F4]), ("iota", [F4]),
    ("select_and_gather_add", [F44, F43]), ("lu_pivots_to_permutation", [F4]),
    ("view_bytes", [["in", [], "float32", False]]),
]
# fmt: on


def program(op: str, ins: list[Any], params: dict[str, Any]) -> bytes:
    """Return the bytes of a program with one operation, whose result is not used."""
    values = [*ins, [op, list(range(len(ins))), params], ["literal", 1.0, "float32", False]]
    return pack(make_header(values, [len(ins) + 1], [[[], "float32", False]]))


def test_the_programs_that_are_changed_are_valid() -> None:
    for op, (ins, params) in VALID.items():
        arguments = [jnp.zeros(e[1], e[2]) for e in ins]
        assert export.deserialize(program(op, ins, params)).call(*arguments)[0] == 1, op


CASES_CHANGED = [(op, change) for op, changes in CHANGED.items() for change in changes]


@pytest.mark.parametrize("op", CHANGED)
def test_parameters_that_do_not_fit(op: str) -> None:
    assert len(CASES_CHANGED) >= 100
    ins, params = VALID[op]
    for change in CHANGED[op]:
        with pytest.raises(ValueError, match=r"export\.deserialize: the program is not valid"):
            pytest.fail(f"{export.deserialize(program(op, ins, {**params, **change}))} {change}")
    for missing in params:
        if missing not in ("strides", "dimensions", "reverse", "weak_type"):
            rest = {k: v for k, v in params.items() if k != missing}
            with pytest.raises(ValueError, match=r"export\.deserialize: the program is not valid"):
                export.deserialize(program(op, ins, rest))


def test_operands_that_do_not_fit() -> None:
    for op, ins in OPERANDS:
        with pytest.raises(ValueError, match=r"export\.deserialize: the program is not valid"):
            pytest.fail(f"{export.deserialize(program(op, ins, VALID[op][1]))} {op} {ins}")


def deep(n: int) -> Any:
    x: Any = 1.0
    for _ in range(n):
        x = {"tuple": [x]}
    return x


BASE = make_header([*ADD], [2], OUT)
LITERALS = [
    ["literal", 1.5, "int32", False], ["literal", 2**40, "int32", False], ["literal", "1", "bool",
    False], ["literal", None, "float32", False], ["literal", -1, "uint8", False],
    ["literal", {"tuple": [1]}, "float32", False], ["literal", 1.0, "U5", False],
    ["literal", deep(150), "float32", False], ["literal", {"dict": 5}, "float32", False],
    ["literal", 10**400, "float32", False], ["literal", {"code": "1"}, "float32", False],
    ["const", 0, False], ["const", -1, False], ["const", True, False], ["in", [4], "U5", False],
    ["in", [4, -1], "float32", False], ["in", [2**62, 2**62], "float32", False], ["in", 4], [], 5,
    ["pure_callback", [0], {}], ["debug_print", [0], {}], ["jit", [0], {"jaxpr": RAGGED}],
    ["custom_jvp_program", [0], {"call_jaxpr": body([F4], 0)}], ["mark", [0], {}], ["arg", [], {}],
    ["psum", [0], {"axes": t(0)}], ["device_put", [0], {}], ["fft_mirror", [0], {}],
    ["zzz", [], {}],
    ["item", [0], {"index": 0}], ["sin", [99], {}], ["sin", [-1], {}], ["sin", [True], {}],
    ["sin", [0], 5], ["sin", 0, {}], ["sin", [0]], ["sin", [0], {"axis": "__import__('os')"}],
    ["__class__", [0], {}], [["sin"], [0], {}], ["exp", [0], {"accuracy": 1}],
]  # fmt: skip


def test_values_that_do_not_fit() -> None:
    for entry in LITERALS:
        header = {**BASE, "program": {"values": [*ADD, entry], "out": [2]}}
        with pytest.raises(ValueError, match=r"export\.deserialize"):
            pytest.fail(f"{export.deserialize(pack(header))} {entry}")


HEADS: list[dict[str, Any]] = [
    {"in_types": []}, {"in_types": [[[5], "float32", False]] * 2}, {"in_types": 5},
    {"in_types": [[[4], "float64", False], [[4], "float32", False]]}, {"out_types": []},
    {"in_types": [[["b"], "float32", False]] * 2}, {"in_types": [[[-4], "float32", False]] * 2},
    {"out_types": [[[9], "float32", False]]}, {"out_types": [[[4], "U5", False]]},
    {"out_types": [[["q"], "float32", False]]}, {"symbols": ["b"]}, {"symbols": "b"},
    {"in_tree": ["tuple", []]}, {"in_tree": 5}, {"in_tree": ["os.system", [], ""]},
    {"in_tree": deep(150)}, {"out_tree": ["tuple", []]}, {"out_tree": ["key", ["threefry"]]},
    {"name": 5}, {"name": "f" * 10_000}, {"platforms": "cpu"}, {"platforms": [5]},
    {"constraints": ["9**9**9**9 >= 1"]}, {"constraints": ["b >= "]}, {"constraints": [5]},
    {"disabled_checks": [5]}, {"program": None}, {"program": []}, {"vjp": 10},
    {"vjp": -1}, {"vjp": 0.5}, {"arrays": [["float32", [4]]]}, {"arrays": [["O", [0]]]},
    {"arrays": [["float32", [-1]]]}, {"arrays": [["float32", [2**62, 2**62]]]},
    {"arrays": [["float32", [0, 2**62]]]}, {"arrays": [["U5", [0]]]}, {"arrays": None},
    {"program": {"values": ADD, "out": [7]}}, {"program": {"values": ADD, "out": [-1]}},
    {"program": {"values": ADD, "out": [2, 2]}}, {"program": {"values": {}, "out": [2]}},
    {"program": {"values": ADD, "out": 2}}, {"program": {"values": [*ADD, [5]], "out": [2]}},
]  # fmt: skip


def test_invalid_headers() -> None:
    assert export.deserialize(pack(BASE)).call(jnp.ones(4), jnp.ones(4))[0].tolist() == [2] * 4
    for change in HEADS:
        with pytest.raises(ValueError, match=r"export\.deserialize|symbolic"):
            pytest.fail(f"{export.deserialize(pack({**BASE, **change}))} {change}")
    for missing in BASE:
        header = {k: v for k, v in BASE.items() if k != missing}
        with pytest.raises(ValueError, match=r"export\.deserialize"):
            export.deserialize(pack(header))


SIZED = {
    **BASE, "symbols": ["b"], "in_types": [[["b"], "float32", False]] * 2,
    "out_types": [[["b"], "float32", False]],
    "program": {"values": [["in", [{"poly": [[[1], 1, 1]]}], "float32", False]] * 2
                + [["add", [0, 1], {}]], "out": [2]},
}  # fmt: skip


def test_symbolic_headers_are_checked_on_reading() -> None:
    """Fields that only a call uses must be present and well-formed even before the
    sizes are known."""
    read = export.deserialize(pack(SIZED))
    assert read.call(jnp.ones(4), jnp.ones(4))[0].tolist() == [2] * 4
    for missing in SIZED:
        header = {k: v for k, v in SIZED.items() if k != missing}
        with pytest.raises(ValueError, match=r"export\.deserialize.*" + missing):
            export.deserialize(pack(header))
    for program in (None, [], {}, {"values": []}, {"out": []}, {"values": {}, "out": []},
                    {"values": [5], "out": []}, {"values": [[5]], "out": [0]}):  # fmt: skip
        with pytest.raises(ValueError, match=r"export\.deserialize"):
            pytest.fail(f"{export.deserialize(pack({**SIZED, 'program': program}))} {program}")


def test_constraints_on_symbols_that_a_program_does_not_use() -> None:
    b, _ = export.symbolic_shape("b, c", constraints=["c <= b", "b >= 2"])
    exported = export.export(jax.jit(jnp.sin))(jax.ShapeDtypeStruct((b,), "float32"))
    for program in (exported, export.deserialize(exported.serialize(vjp_order=2))):
        assert program.call(jnp.zeros(3)).tolist() == [0] * 3
        with pytest.raises(ValueError, match="b >= 2"):
            program.call(jnp.zeros(1))


SIZES = [
    "9**9**9**9", "2^(10^10)", "b^1000", "b**9**9", "(b+c+d)^64", "(1+b)^-1", "b//0", "mod(b, 0)",
    "(" * 500 + "b" + ")" * 500, "-" * 1900 + "b", "b" * 3000, "__import__('os').system('id')",
    "b.real", "b if b else c", "[b]", "max(b)", "10**30", "b*10**18*10**18", "b @ c", "lambda: b",
    "(b+c+d+e)^20*(b+c+d+e)^20", "1.5", "'b'", "b c", "",
]  # fmt: skip


@pytest.mark.parametrize("size", SIZES, ids=lambda s: s[:20] or "empty")
def test_huge_or_missing_sizes(size: str) -> None:
    start = time.process_time()
    with pytest.raises(ValueError, match=r"symbolic_shape|export\.deserialize"):
        export.deserialize(pack({**BASE, "in_types": [[[size], "float32", False]] * 2}))
    assert time.process_time() - start < 30
    if size:
        with pytest.raises(ValueError, match="symbolic_shape"):
            export.symbolic_shape(size)


def test_sizes_that_depend_on_symbols_are_checked_when_they_are_known() -> None:
    (b,) = export.symbolic_shape("b")
    of = jax.ShapeDtypeStruct((b, 3), np.float32)
    step = lambda c, r: (c + r.sum(), r)  # noqa: E731
    blob = export.export(jax.jit(lambda x: lax.scan(step, 0.0, x)))(of).serialize()
    header, rest = unpack(bytes(blob))
    (scan,) = [e for e in header["program"]["values"] if e[0] == "scan"]
    assert export.deserialize(pack(header, rest)).call(jnp.ones((5, 3)))[0] == 15
    for length in (
        {"poly": [[[1], 2, 1]]}, {"poly": [[[1], 1, 0]]}, {"poly": [[[10**6], 1, 1]]}, 16,
        {"poly": [[[1, 1], 1, 1]]}, {"poly": [[[-1], 1, 1]]}, {"inverse": [[[1], 0, 1]]},
        {"poly": "b"}, {"poly": [[[1], 1, 2]]}, {"poly": [[[1], "1", 1]]}, {"poly": 5},
    ):  # fmt: skip
        scan[2]["length"] = length
        read = export.deserialize(pack(header, rest))
        with pytest.raises(ValueError, match="the program is not valid"):
            read.call(jnp.ones((5, 3)))


def test_compressed_data_is_bounded() -> None:
    for packed in (
        zlib.compress(b" " * (65 << 20)), zlib.compress(b"[" * 10**6),
        zlib.compress(b"[]," * 10**7),
        zlib.compress(b"1" * 10**6), zlib.compress(b"{}") + b"more", b"", b"\x00" * 100,
        zlib.compress(json.dumps({**BASE, "name": 9}).encode())[:-8], zlib.compress(b"\xff\xfe"),
        zlib.compress(json.dumps({"x": deep(300)}).encode()),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=r"export\.deserialize: the program is not valid"):
            export.deserialize(pack(None, b"", packed))


def test_derivatives_belong_to_their_program() -> None:
    def blob(n: int, order: int = 1) -> bytes:
        return bytes(export.export(jax.jit(jnp.sin))(jnp.ones(n)).serialize(order))

    header, inner = unpack(blob(4))
    other = unpack(blob(9))[1]
    assert export.deserialize(pack(header, inner)).has_vjp()
    for rest in (other, inner[:-3], blob(4, 0)):
        with pytest.raises(ValueError, match=r"export\.deserialize"):
            export.deserialize(pack({**header, "vjp": len(rest)}, rest))
    of, inside = unpack(inner)
    for tree in ({"in_tree": ["tuple", [["tuple", [["list", ["*", "*"]]]], ["dict", []]]]},
                 {"out_tree": ["dict", [["a", "*"]]]}):  # fmt: skip
        rest = pack({**of, **tree}, inside)
        with pytest.raises(ValueError, match=r"export\.deserialize.*the tree of"):
            export.deserialize(pack({**header, "vjp": len(rest)}, rest))
    data = pack(BASE)
    for _ in range(40):  # each the derivative of the next one
        data = pack({**BASE, "vjp": len(data)}, data)
    with pytest.raises(ValueError, match="orders"):
        export.deserialize(data)


def test_constants_have_the_values_of_their_types() -> None:
    values = [["const", 0, False]]
    header = make_header(values, [0], [[[4], "bool", False]], arrays=[["bool", [4]]])
    read = export.deserialize(pack(header, bytes([0, 1, 2, 255])))
    assert np.asarray(read.call()[0]).view(np.uint8).tolist() == [0, 1, 1, 1]
    header = make_header(
        values, [0], [[[2], "float4_e2m1fn", False]], arrays=[["float4_e2m1fn", [2]]]
    )
    with pytest.raises(ValueError, match="float4"):
        export.deserialize(pack(header, bytes([1, 255])))


def test_every_operation_can_be_read_again() -> None:
    """The checks accept every operation that accnp exports: one program per operation is read."""
    evaluate_size = functools.partial(number_at, [], {})
    with jax.enable_x64(True):
        for case in [c for cases in CASES.values() for c in cases]:

            def run(leaves: Any, case: Any = case) -> Any:
                outputs = case.record(*leaves)
                each = outputs if isinstance(outputs, list | tuple) else [outputs]
                return [z for y in each for z in (items(y) if isinstance(y.aval, tuple) else [y])]

            graph = build(run, [from_numpy(x)._node.aval for x in case.inputs])
            encoder = Encoder()
            data = json.loads(json.dumps(encoder.program(graph)))
            again = decode_program(data, encoder.arrays, evaluate_size)
            assert [str(a) for a in again.out_avals] == [str(a) for a in graph.out_avals], str(case)


def test_empty_transforms_and_small_integers_are_valid() -> None:
    empty = export.export(jax.jit(lambda x: lax.fft(x, "FFT", (0,))))(jnp.ones(0, "complex64"))
    assert export.deserialize(empty.serialize()).call(jnp.ones(0, "complex64")).shape == (0,)
    bits = jax.jit(lambda x: lax.bitcast_convert_type(x, "int4"))
    x = jnp.array([1, 15], "uint4")
    assert export.deserialize(export.export(bits)(x).serialize()).call(x).tolist() == [1, -1]


@pytest.mark.parametrize("seed", range(4))
def test_mutations_of_valid_programs(seed: int) -> None:
    """The four parts are shared by the test workers. ACCNP_FUZZ_SECONDS sets the seconds of each
    (15 in `make test-full`)."""
    completed = subprocess.run(
        [
            sys.executable,
            str(Path(__file__).with_name("fuzz_exports.py")),
            str(seed),
            str(FUZZ_SECONDS),
        ],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=FUZZ_SECONDS + 120,
        check=False,
    )
    assert completed.returncode == 0, completed.stdout[-3000:] + completed.stderr[-3000:]
    counts = json.loads(completed.stdout)
    assert sum(counts.values()) > 0
