"""Pallas kernels with unsupported features raise errors that name them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import accnp
from accnp.experimental import pallas as pl
from accnp.experimental.pallas import tpu as pltpu
from accnp.experimental.pallas import triton as plgpu

LINE = np.linspace(-1, 1, 13, dtype=np.float32)
SHAPE = accnp.ShapeDtypeStruct((12,), "float32")
THREE = pl.BlockSpec((3,), lambda i: (i,))


def copied(x: Any, o: Any) -> None:
    o[...] = x[...]


def as_any(module: Any) -> Any:
    return module


def call(kernel: Any = copied, shape: Any = SHAPE, *args: Any, **kw: Any) -> Any:
    return pl.pallas_call(kernel, shape, **kw)(*(args or (LINE[:12],)))


REFUSED = {
    "the index map takes two": (
        lambda: call(grid=(4,), in_specs=[pl.BlockSpec((3,), lambda i, j: i)]),
        TypeError, r"index map <lambda> \(.*for args\[0\] takes 2 .* give it 1",
    ),
    "the index map returns two": (
        lambda: call(grid=(4,), in_specs=[pl.BlockSpec((3,), lambda i: (i, 0))]),
        ValueError, r"for args\[0\] must return 1 values.*returns 2",
    ),
    "the index map returns floats": (
        lambda: call(grid=(4,), in_specs=[pl.BlockSpec((3,), lambda i: i * 0.5)]),
        ValueError, "must return integer scalars; value 0 is .*float32",
    ),
    "the block has another rank": (
        lambda: call(grid=(4,), out_specs=pl.BlockSpec((3, 1), lambda i: (i, 0))),
        ValueError, r"block shape for outputs, \(3, 1\), .* array shape \(12,\)",
    ),
    "a block of text": (
        lambda: call(in_specs=[pl.BlockSpec(("a",))]), ValueError, "sizes are integers",
    ),
    "a block that is gathered": (
        lambda: call(in_specs=[pl.BlockSpec((pl.Indirect(3),))]), NotImplementedError, "pl.Element",
    ),
    "no out_shape": (lambda: as_any(pl).pallas_call(copied), TypeError, "out_shape"),
    "no type": (lambda: call(copied, 3), ValueError, "out_shape needs types.*got 3"),
    "more operands than specs": (
        lambda: call(copied, SHAPE, LINE, LINE, in_specs=[THREE]),
        ValueError, "in_specs must have the structure of the operands",
    ),
    "more operands than parameters": (
        lambda: call(copied, SHAPE, LINE, LINE), TypeError, "kernel copied .*takes 2 .* are 3",
    ),
    "the kernel returns": (
        lambda: call(lambda x, o: x[...]), ValueError, "must return None",
    ),
    "no such axis": (
        lambda: call(lambda x, o: copied(x, pl.program_id(1)), grid=(2,)),
        ValueError, r"Axis 1 is out of bounds for grid \(2,\)",
    ),
    "no grid": (lambda: pl.program_id(0), ValueError, "there is no grid here"),
    "a grid of fractions": (lambda: call(grid=(2.5,)), ValueError, r"integers; got \(2.5,\)"),
    "no such operand": (
        lambda: call(input_output_aliases={3: 0}),
        ValueError, r"index 3 outside the range \[0, 1\)",
    ),
    "an alias of another type": (
        lambda: call(copied, SHAPE, LINE, input_output_aliases={0: 0}),
        ValueError, "of an input of type .* another",
    ),
    "a grid twice": (
        lambda: call(grid_spec=pl.GridSpec((2,)), grid=(2,)), ValueError, "part of grid_spec",
    ),
    "a mask that is too long": (
        lambda: plgpu.load(accnp.new_ref(accnp.numpy.zeros(2)), mask=np.ones((3, 2), bool)),
        ValueError, r"cannot broadcast mask shape \(3, 2\)",
    ),
    "a copy to another shape": (
        lambda: pltpu.sync_copy(accnp.new_ref(np.zeros(2)), accnp.new_ref(np.zeros(3))),
        ValueError, "both need one type",
    ),
    "no TPU": (pltpu.get_tpu_info, ValueError, "Unsupported TPU device kind: cpu"),
    "costs that are fractions": (
        lambda: as_any(pl).CostEstimate(1, 2.0, 3), ValueError,
        "transcendentals must be an int; got 2.0",
    ),
    "a kernel on a mesh": (
        lambda: pl.kernel, AttributeError, "meshes of cores are not supported",
    ),
    "a barrier": (
        lambda: pltpu.get_barrier_semaphore, AttributeError,
        "kernels run on one thread with one memory",
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", REFUSED)
def test_refusals(what: str) -> None:
    program, kind, text = REFUSED[what]
    with pytest.raises(kind, match=text):
        program()
