"""float16 and bfloat16 in GPU kernels for two compute capabilities, compared with the CPU
bitwise.
"""

import numpy as np
import pytest
from cuda.kernel_cases import Case, grid_kernels
from cuda.support import same_bits
from cuda.test_op_table import record_case
from primitives.cases import CASES
from sampling import sample

import accnp as jnp
from accnp.compiler.ptx import ptx_of
from accnp.compiler.specs.launches import build_generated
from accnp.ir.kernel import code_dtype

PROGRAMS = {
    "chain": lambda x: jnp.tanh(x) * x + 0.5,
    "side by side": lambda x: x * 2 + 1,
    "turned": lambda x: x.T * 2 + 1,
    "rows": lambda x: jnp.nn.softmax(x, 1),
    "columns": lambda x: x.sum(0),
    "largest": lambda x: x.max(1),
    "gathered": lambda x: x[jnp.arange(x.shape[0]) // 2] * 3,
    "converted": lambda x: x.astype("float32") * 3,
}


@pytest.mark.parametrize("code", ["f2", "e2"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_results_match_cpu_bitwise(name, code):
    x = np.random.default_rng(0).standard_normal((36, 64)).astype(code_dtype(code))
    pairs = grid_kernels(PROGRAMS[name], x)
    assert any(code in text.source or f"{code}*" in text.signature for _, text in pairs)
    for spec, text in pairs:
        case = Case(spec)
        actual, expected = case.interpret(text), case.run_on_cpu(build_generated(spec))
        for a, f, w in zip(case.arrays, actual, expected, strict=True):
            assert f.dtype == a.dtype
            if name in ("chain", "side by side", "turned", "gathered", "converted", "largest"):
                assert same_bits(f, w).all()
            else:  # sums of another order
                eps = float(jnp.finfo(a.dtype).eps) if a.dtype.kind not in "iub" else 0
                assert np.allclose(f.astype("f8"), w.astype("f8"), rtol=eps, atol=eps)
        kernel = ptx_of(text.source, text.signature, tasks=text.tasks, cc=(8, 0))
        assert ".target sm_80" in kernel.text


HALVES = [name for name, (case, *_) in sorted(CASES.items())
          if any(np.asarray(x).dtype.kind == "f" for x in case.inputs)]  # fmt: skip


@pytest.mark.parametrize("name", sample(HALVES, 3))
def test_every_operation_matches_cpu_bitwise(name, fake):
    """Indexing, scatters, sorts, scans, windows and products: every operation with half-precision
    operands.
    """
    case, (device,) = CASES[name][0], jnp.devices("gpu")
    for code in ("f2", "e2"):
        inputs = [np.asarray(x) for x in case.inputs]
        inputs = [x.astype(code_dtype(code)) if x.dtype.kind == "f" else x for x in inputs]
        arrays = [jnp.asarray(x) for x in inputs]
        try:
            expected = [np.asarray(x) for x in record_case(name, case, arrays)]
        except (TypeError, ValueError):  # an operation of wider types
            continue
        there = [jnp.device_put(x, device) for x in arrays]
        for f, w in zip(record_case(name, case, there), expected, strict=True):
            assert f.dtype == w.dtype
            assert same_bits(np.asarray(f), w).all()
