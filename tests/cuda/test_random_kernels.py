"""Kernels of random programs on GPUs, compared with the CPU bitwise.

`ACCNP_FUZZ=20` runs twenty times as many programs.
"""

import os

import pytest
from cuda.kernel_cases import Case
from cuda.support import same_bits
from fuzz import executors
from fuzz.programs import SeededChoices, make_program

from accnp import engine
from accnp.array_type import from_numpy
from accnp.compiler.fusion.lower import lower
from accnp.compiler.grid_kernels import build_grid_kernel
from accnp.compiler.specs.launches import build_generated
from accnp.ir.graph import build

pytestmark = pytest.mark.usefixtures("cpu_formulas")

SCALE = int(os.environ.get("ACCNP_FUZZ", "1"))


def kernel_specs(p):
    """The kernel descriptions of a program."""

    def whole(xs):
        values = executors.record_steps(p, executors.with_literals(p, xs))
        return [values[i] for i in p.outputs]

    avals = [from_numpy(x)._node.aval for x in executors.array_leaves(p)]
    plan = engine.plan_of_graph(build(whole, avals))[0]
    for step in plan.steps:
        cluster = getattr(step, "cluster", None)
        if cluster is not None and cluster.form in ("map", "row", "split", "column"):
            yield from (spec for group in lower(cluster) for spec in group)


def check(p, seed):
    for k, spec in enumerate(kernel_specs(p)):
        case = Case(spec, seed)
        expected = case.run_on_cpu(build_generated(spec))
        actual = case.interpret(build_grid_kernel(spec), 2, cc=(8, 0) if seed % 2 else (9, 0))
        for a, b in zip(actual, expected, strict=True):
            assert same_bits(a, b).all(), f"kernel {k} of {p!r}: {a}, on the CPU {b}"


@pytest.mark.parametrize("seed", range(8 * SCALE))
def test_kernels_of_random_programs(seed):
    check(make_program(SeededChoices(seed), exact=False, length=8, large=seed % 2 == 0), seed)
