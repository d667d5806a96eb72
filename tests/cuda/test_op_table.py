"""Every operation of the table runs eagerly on a GPU and matches the CPU. All of its kernels also
have PTX for compute capability 8.0."""

import os
import threading

import llvmlite.binding as llvm
import numpy as np
import pytest
from cuda.conftest import REAL
from primitives.cases import CASES, EXCEPTIONS

import accnp as jax
import accnp.numpy as jnp
from accnp.array_type import wrap
from accnp.compiler import ptx
from accnp.compiler.llvm import ptx as ptx_module
from accnp.engine import device_steps
from accnp.ir.node import items, record
from accnp.ir.op import OPS

# A fake GPU interprets: the first case of each operation there, all of them on a real one.
MOST = None if REAL else 1
# There the table is shared by several processes.
PART, PARTS = os.environ.get("ACCNP_TEST_PART"), os.environ.get("ACCNP_TEST_PARTS", "1")
NAMES = sorted(CASES)[slice(int(PART), None, int(PARTS)) if PART else slice(None)]
# Results that are right with any sign, or phase.
PHASES = {"eigh": (0,)}


def svd(s, u=None, vh=None):
    """Return the determined parts of an SVD.

    Columns have arbitrary phases, and those beyond the singular values are an arbitrary completion
    of the basis.
    """
    if u is None:
        return (s,)
    k, turned = s.shape[-1], u.conj().swapaxes(-1, -2)
    first, last = u[..., :k], vh[..., :k, :]
    products = turned @ u, vh @ vh.conj().swapaxes(-1, -2), first * s[..., None, :] @ last
    return s, np.abs(first), np.abs(last), *products


DETERMINED_PARTS = {"svd": svd}


def record_case(name, case, arrays):
    node = record(OPS[name], tuple([x._node for x in arrays]), dict(case.params))
    several = isinstance(node.aval, tuple)
    return [wrap(x) for x in (items(node) if several else (node,))]


@pytest.fixture
def older_gpu_texts(monkeypatch):
    """Collect the PTX for compute capability 8.0 of the kernels that are compiled for the fake GPU
    (9.0).

    Both are lowered from one optimized module, which takes a fraction of the time of compiling
    again.
    """
    texts, here, make = {}, threading.local(), ptx.ptx_of

    def emit(text, linked, cpu):
        module = ptx_module.link_and_optimize(text, linked, cpu)
        copy = llvm.parse_bitcode(module.as_bitcode(), llvm.create_context())
        here.text = ptx_module.emit_ptx(copy, "sm_80")
        return ptx_module.emit_ptx(module, cpu)

    def ptx_of(*arguments, **named):
        here.text = ""
        kernel = make(*arguments, **named)
        if kernel.name not in texts:  # no text: it was in a cache
            texts[kernel.name] = here.text or make(*arguments, **{**named, "cc": (8, 0)}).text
        return kernel

    monkeypatch.setattr(ptx_module, "emit", emit)
    monkeypatch.setattr(device_steps, "ptx_of", ptx_of)
    return texts


@pytest.mark.parametrize("name", NAMES)
def test_operation(name, gpu, request):
    texts = {} if REAL else request.getfixturevalue("older_gpu_texts")
    with jax.enable_x64(True):
        for case in CASES[name][:MOST]:
            arrays = [jnp.asarray(x) for x in case.inputs]
            expected = [np.asarray(x) for x in record_case(name, case, arrays)]
            there = [jax.device_put(x, gpu) for x in arrays]
            outputs = record_case(name, case, there)
            assert all(a.devices() == {gpu} for a in outputs) or not there
            assert [a.dtype for a in outputs] == [b.dtype for b in expected]
            actual = [np.asarray(a) for a in outputs]
            if name in DETERMINED_PARTS:
                actual, expected = (
                    DETERMINED_PARTS[name](*actual),
                    DETERMINED_PARTS[name](*expected),
                )
            for k, (a, b) in enumerate(zip(actual, expected, strict=True)):
                bound = 1e-3 if b.dtype.itemsize < 8 else 1e-9
                a, b = a.astype(wide(b)), b.astype(wide(b))
                if k in PHASES.get(name, ()):
                    a, b = np.abs(a), np.abs(b)
                np.testing.assert_allclose(a, b, rtol=bound, atol=bound)
    for entry, text in texts.items():
        assert ".target sm_80" in text, entry


def wide(x):
    return "c16" if x.dtype.kind == "c" else "f8"


def test_every_op_has_a_case():
    assert {*CASES, *EXCEPTIONS} >= set(OPS.whole())
