"""Every operation of the table on a GPU, against the CPU: its values, once eagerly."""

import numpy as np
import pytest
from cuda.conftest import REAL
from primitives.cases import CASES, EXCEPTIONS

import accnp as jax
import accnp.numpy as jnp
from accnp.array import wrap
from accnp.ir.node import items, record
from accnp.ir.op import OPS

# A fake GPU interprets: the first case of each operation there, all of them on a real one.
MOST = None if REAL else 1
NAMES = sorted(CASES)


def of(name, case, arrays):
    node = record(OPS[name], tuple([x._node for x in arrays]), dict(case.params))
    several = isinstance(node.aval, tuple)
    return [wrap(x) for x in (items(node) if several else (node,))]


@pytest.mark.parametrize("name", NAMES)
def test_operation(name, gpu):
    with jax.enable_x64(True):
        for case in CASES[name][:MOST]:
            arrays = [jnp.asarray(x) for x in case.inputs]
            want = [np.asarray(x) for x in of(name, case, arrays)]
            there = [jax.device_put(x, gpu) for x in arrays]
            for a, b in zip(of(name, case, there), want, strict=True):
                assert a.devices() == {gpu} or not there
                assert a.dtype == b.dtype
                bound = 1e-3 if b.dtype.itemsize < 8 else 1e-9
                np.testing.assert_allclose(
                    np.asarray(a).astype(wide(b)), b.astype(wide(b)), rtol=bound, atol=bound
                )


def wide(x):
    return "c16" if x.dtype.kind == "c" else "f8"


def test_all_are_here():
    assert {*NAMES, *EXCEPTIONS} >= set(OPS.whole())
