"""Every elementwise operation in every type: PTX for two generations of GPUs, and interpreted the
bits of the processor's kernels."""

import numpy as np
import pytest
from cuda.support import N, elementwise, groups, on_cpu, on_gpu, points, same_bits, spec_of

from accnp.compiler.kernel_cache import CompileError
from accnp.compiler.library.special_calls import CALLS
from accnp.compiler.ptx import ptx_of
from accnp.compiler.specs.launches import build_generated
from accnp.ir.kernel import code_dtype

pytestmark = pytest.mark.usefixtures("one_form")


def called(work):
    """Whether an operation is a function of SciPy's."""
    return any(f"{name}(" in work.text for name in CALLS if f"{name}(" in work.text)


WORKS = [w for w in elementwise() if not called(w)]
GROUPS = groups(WORKS, 16)
# Operations that are asked for some operands only, and which.
DOMAINS = {"exp_difference": lambda x, top: x <= top}


@pytest.mark.parametrize("works", GROUPS, ids=lambda g: f"{g[0].operands}-{g[0].op}")
def test_results_match_cpu_bitwise(works):
    spec = spec_of(works)
    text = build_generated(spec)
    arrays = []
    for k, access in enumerate(spec.accesses):
        code = text.signature[k].removesuffix("*")
        arrays.append(np.zeros(N, code_dtype(code)) if access.store else points(code, N, k))
    want = on_cpu(text, arrays)
    made = ptx_of(text.source, text.signature, tasks=True)
    found, _ = on_gpu(made, arrays, [text.extent, *text.ints])
    first = len(arrays) - len(works)
    wrong = []
    for w, f, g in zip(works, found[first:], want[first:], strict=True):
        same = same_bits(f, g)
        if w.op in DOMAINS:
            with np.errstate(invalid="ignore"):
                same |= ~DOMAINS[w.op](*arrays[:2])
        if not same.all():
            k = int(np.argmin(same))
            given = [a[k] for a in arrays[:first]]
            wrong.append((w, int((~same).sum()), given, f[k], g[k]))
    assert not wrong


@pytest.mark.parametrize("works", GROUPS, ids=lambda g: f"{g[0].operands}-{g[0].op}")
def test_older_gpus_match_cpu_bitwise(works):
    text = build_generated(spec_of(works))
    made = ptx_of(text.source, text.signature, tasks=True, cc=(8, 0))
    assert ".target sm_80" in made.text
    assert f".entry {made.name}(" in made.text


def test_calls_by_address_are_refused():
    found = [w for w in elementwise() if called(w)]
    assert found
    text = build_generated(spec_of(found[:1]))
    with pytest.raises(CompileError, match="a GPU cannot call accnp_routine_special"):
        ptx_of(text.source, text.signature, tasks=True)


@pytest.mark.parametrize("code", ["f4", "f8"])
def test_remainders_are_exact(code):
    x, y = points(code, 4000, 1), points(code, 4000, 2)
    text = "def kernel(lo, hi, x, y, o):\n    for i in range(lo, hi):\n"
    text += "        o[i] = rem(x[i], y[i])\n"
    made = ptx_of(text, (f"{code}*",) * 3, tasks=True)
    with np.errstate(all="ignore"):
        want = np.fmod(x, y)
    (_, _, found), _ = on_gpu(made, [x, y, np.zeros_like(x)], [x.size])
    assert same_bits(found, want).all()
