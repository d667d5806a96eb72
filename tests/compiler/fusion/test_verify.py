"""The verifier finds invalid programs, kernels and plans: each test breaks one property of a valid
one."""

import numpy as np
import pytest
from compiler.fusion.support import plan_of

import accnp as jnp
import accnp.ir.verify as verifying
from accnp.array_type import from_numpy, wrap
from accnp.compiler.fusion.fuse import fuse
from accnp.compiler.fusion.lower import lower
from accnp.compiler.fusion.program import from_graph
from accnp.ir.graph import build
from accnp.ir.verify import VerifyError, verify_plan, verify_program, verify_spec

X = np.ones((6, 5), np.float32)


def f(x):
    return jnp.exp(x[1:]) / x[1:].sum(1, keepdims=True)


def program():
    return from_graph(build(lambda xs: [f(wrap(xs[0]))._node], [from_numpy(X)._node.aval]))[0]


def spec():
    (cluster,) = fuse(program())
    return lower(cluster)[0][0]


def test_valid_programs_pass():
    verify_program(program())
    verify_spec(spec())
    verify_plan(plan_of(f, X))


def test_operands_come_first():
    p = program()
    p.values.reverse()
    with pytest.raises(VerifyError, match="before its operand"):
        verify_program(p)


def test_types_are_those_of_the_operation():
    p = program()
    p.values[-1].aval = (
        p.values[0].aval if p.values[0].aval != p.values[-1].aval else p.leaves[0].aval
    )
    with pytest.raises(VerifyError, match="infers"):
        verify_program(p)


def test_accesses_stay_inside():
    s = spec()
    load = next(a for a in s.accesses if not a.store)
    load.offset += 6
    with pytest.raises(VerifyError, match="is reached from"):
        verify_spec(s)


def test_names_are_defined_before_use():
    s = spec()
    s.phases[0].full.reverse()
    s.phases[0].full.pop()
    with pytest.raises(VerifyError, match="not defined"):
        verify_spec(s)


def test_kernels_must_not_load_stored_operands():
    s = spec()
    store = next(a for a in s.accesses if a.store)
    load = next(a for a in s.accesses if not a.store)
    load.value = store.value
    load.offset = 0
    with pytest.raises(VerifyError, match="loaded by the kernel"):
        verify_spec(s)


def test_slots_are_made_before_they_are_read():
    plan = plan_of(lambda x: (x @ x.T).sum(), X)
    plan.steps.reverse()
    with pytest.raises(VerifyError, match="before it is made"):
        verify_plan(plan)


def test_plans_are_verified_as_they_are_made(monkeypatch):
    seen = []
    monkeypatch.setattr(verifying, "verify_spec", seen.append)
    plan_of(f, X)
    assert seen
