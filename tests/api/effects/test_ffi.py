"""The foreign function interface: calls of compiled functions by address, with results, batching,
side effects and errors.
"""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

import accnp as jax
import accnp.numpy as jnp
from accnp import ffi

_FLOATS = ctypes.POINTER(ctypes.c_float)
_ONE = ctypes.CFUNCTYPE(None, _FLOATS, ctypes.POINTER(_FLOATS))
_MANY = ctypes.CFUNCTYPE(None, ctypes.POINTER(_FLOATS), ctypes.POINTER(_FLOATS))
N = 3


@_ONE
def _add(out, ins):
    """Write the N sums of two arrays."""
    for i in range(N):
        out[i] = ins[0][i] + ins[1][i]


@_MANY
def _both(outs, ins):
    """Write the N sums of two arrays, and their total."""
    for i in range(N):
        outs[0][i] = ins[0][i] * 2
    outs[1][0] = ins[0][0]


ffi.register_ffi_target("tests_add", ffi.pycapsule(_add), api_version=0)
ffi.register_ffi_target("tests_both", ffi.pycapsule(_both), platform="cpu", api_version=0)
RESULT_STRUCT = jax.ShapeDtypeStruct((N,), np.float32)


def test_one_result_eagerly_jitted_and_mapped():
    x, y = jnp.arange(3.0), jnp.ones(3)
    add = ffi.ffi_call("tests_add", RESULT_STRUCT, vmap_method="sequential")
    assert add(x, y).tolist() == [1, 2, 3]
    assert jax.jit(lambda a: add(a, y) * 2)(x).tolist() == [2, 4, 6]
    assert jax.vmap(add, (0, None))(jnp.stack([x, y]), y).tolist() == [[1, 2, 3], [2, 2, 2]]


def test_several_results():
    out = ffi.ffi_call("tests_both", [RESULT_STRUCT, jax.ShapeDtypeStruct((), np.float32)])
    wide, first = out(jnp.arange(5.0, 8.0))
    assert (wide.tolist(), first) == ([10, 12, 14], 5)


def test_target_can_receive_batched_operands():
    """The target is called once for a batch of three numbers."""
    calls = []

    @_ONE
    def double(out, ins):
        calls.append(1)
        for i in range(6):
            out[i] = 2 * ins[0][i]

    ffi.register_ffi_target("tests_double", ffi.pycapsule(double), api_version=0)
    f = ffi.ffi_call("tests_double", RESULT_STRUCT, vmap_method="broadcast_all")
    out = jax.vmap(f)(jnp.arange(6.0).reshape(2, 3))
    assert out.tolist() == [[0, 2, 4], [6, 8, 10]]
    assert len(calls) == 1


def test_side_effects_run_when_result_is_unused():
    calls = []

    @_ONE
    def note(out, ins):
        calls.append(ins[0][0])
        out[0] = 0

    ffi.register_ffi_target("tests_note", ffi.pycapsule(note), api_version=0)
    kind = jax.ShapeDtypeStruct((1,), np.float32)
    call = ffi.ffi_call("tests_note", kind, has_side_effect=True)
    f = jax.jit(lambda x: (call(x), x)[1])
    jax.block_until_ready([f(jnp.float32(1)), f(jnp.float32(2))])
    jax.effects_barrier()
    assert calls == [1, 2]


def test_xla_targets_are_refused():
    capsule = ffi.pycapsule(_add)
    refused = [
        lambda: ffi.register_ffi_target("t", capsule),
        lambda: ffi.register_ffi_target("t", capsule, platform="cuda", api_version=0),
        lambda: ffi.ffi_call("unknown", RESULT_STRUCT),
        lambda: ffi.ffi_call("tests_add", RESULT_STRUCT, input_layouts=[(0,)]),
        lambda: ffi.ffi_call("tests_add", RESULT_STRUCT)(jnp.ones(3), jnp.ones(3), k=1),
        ffi.include_dir,
        lambda: ffi.ffi_lowering("t"),
        lambda: ffi.build_ffi_lowering_function("t"),
        lambda: ffi.register_ffi_type("t", {}),
        lambda: ffi.register_ffi_type_id("t", capsule),
    ]
    for call in refused:
        with pytest.raises(NotImplementedError, match="ffi"):
            call()
    with pytest.raises(TypeError, match="capsule"):
        ffi.register_ffi_target("t", 3, api_version=0)
    assert ffi.register_ffi_target_as_batch_partitionable("tests_add") is None
