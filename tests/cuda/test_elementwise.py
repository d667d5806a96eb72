"""Elementwise operations of every type as GPU kernels, for two compute capabilities. The
interpreted PTX matches the CPU bitwise.
"""

import numpy as np
import pytest
from cuda.support import (
    N,
    elementwise_cases,
    elementwise_spec,
    groups,
    interpret,
    points,
    run_on_cpu,
    same_bits,
)

from accnp.compiler.kernel_cache import CompileError
from accnp.compiler.library.special_calls import CALLS
from accnp.compiler.ptx import ptx_of
from accnp.compiler.specs.launches import build_generated
from accnp.ir.kernel import code_dtype

pytestmark = pytest.mark.usefixtures("cpu_formulas")


def calls_by_address(work):
    """Return whether an operation calls a SciPy function by address."""
    return any(f"{name}(" in work.text for name in CALLS if f"{name}(" in work.text)


CASES = [w for w in elementwise_cases() if not calls_by_address(w)]
GROUPS = groups(CASES, 16)
# Operations that are asked for some operands only, and which.
DOMAINS = {"exp_difference": lambda x, top: x <= top}


@pytest.mark.parametrize("cases", GROUPS, ids=lambda g: f"{g[0].operands}-{g[0].op}")
def test_results_match_cpu_bitwise(cases):
    spec = elementwise_spec(cases)
    text = build_generated(spec)
    arrays = []
    for k, access in enumerate(spec.accesses):
        code = text.signature[k].removesuffix("*")
        arrays.append(np.zeros(N, code_dtype(code)) if access.store else points(code, N, k))
    expected = run_on_cpu(text, arrays)
    kernel = ptx_of(text.source, text.signature, tasks=True)
    actual, _ = interpret(kernel, arrays, [text.extent, *text.ints])
    first = len(arrays) - len(cases)
    wrong = []
    for w, f, g in zip(cases, actual[first:], expected[first:], strict=True):
        same = same_bits(f, g)
        if w.op in DOMAINS:
            with np.errstate(invalid="ignore"):
                same |= ~DOMAINS[w.op](*arrays[:2])
        if not same.all():
            k = int(np.argmin(same))
            inputs = [a[k] for a in arrays[:first]]
            wrong.append((w, int((~same).sum()), inputs, f[k], g[k]))
    assert not wrong


@pytest.mark.parametrize("cases", GROUPS, ids=lambda g: f"{g[0].operands}-{g[0].op}")
def test_older_gpus_match_cpu_bitwise(cases):
    text = build_generated(elementwise_spec(cases))
    kernel = ptx_of(text.source, text.signature, tasks=True, cc=(8, 0))
    assert ".target sm_80" in kernel.text
    assert f".entry {kernel.name}(" in kernel.text


def test_calls_by_address_are_refused():
    by_address = [w for w in elementwise_cases() if calls_by_address(w)]
    assert by_address
    text = build_generated(elementwise_spec(by_address[:1]))
    with pytest.raises(CompileError, match="a GPU cannot call accnp_routine_special"):
        ptx_of(text.source, text.signature, tasks=True)


@pytest.mark.parametrize("code", ["f4", "f8"])
def test_remainders_are_exact(code):
    x, y = points(code, 4000, 1), points(code, 4000, 2)
    text = "def kernel(lo, hi, x, y, o):\n    for i in range(lo, hi):\n"
    text += "        o[i] = rem(x[i], y[i])\n"
    kernel = ptx_of(text, (f"{code}*",) * 3, tasks=True)
    with np.errstate(all="ignore"):
        expected = np.fmod(x, y)
    (_, _, actual), _ = interpret(kernel, [x, y, np.zeros_like(x)], [x.size])
    assert same_bits(actual, expected).all()
