"""Plans are executed as tables of steps by one native call.

The results are compared with those of running each step from Python.
"""

from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import numpy as np
import pytest

import accnp as jnp
from accnp import engine, lax, ops
from accnp.array_type import from_numpy, wrap
from accnp.config import threads as use_threads
from accnp.engine import execute, table
from accnp.engine.steps import GRAIN, PARALLEL, KernelStep
from accnp.engine.table import LARGE, Part, _groups, _make_section, _Places
from accnp.ir.graph import build
from accnp.pytree import tree_flatten

V = np.linspace(-1, 1, 300, dtype=np.float32)
M = np.linspace(-1, 1, 40 * 30, dtype=np.float32).reshape(40, 30)
CONSTANT = np.arange(30, dtype=np.float32)


def network(x, w):
    hidden = jnp.tanh(x @ w.T)
    return jnp.grad(lambda w: (jnp.tanh(x @ w.T) ** 2).sum())(w), hidden.sum(0)


PROGRAMS = {
    "two reductions": (lambda x: (x / x.sum(), x.max()), [V]),
    "network": (network, [M, M]),
    "a constant that is a result": (lambda x: (jnp.asarray(CONSTANT), x @ x.T, x.T @ x), [M]),
    "an argument that is a result": (lambda x, y: (x, (y @ x.T).sum(1), y, x), [M, M]),
    "one result twice": (lambda x: [(x @ x.T).sum(0)] * 2, [M]),
    "a result that is a view": (lambda x: ((x.T @ x).reshape(-1), (x @ x.T).T), [M]),
    "updates in place": (lambda x: (x * 2).at[np.array([1, 3])].add(x[0]).at[0].set(7.0), [M]),
    "updates of an argument": (lambda x: (x.at[np.array([1, 3])].add(1.0), x.sum(0)), [M]),
    "many temporaries": (
        lambda x: [jnp.sort((x * k).sum(0) + (x @ x.T).sum()) for k in range(1, 6)],
        [M],
    ),
    "loop": (
        lambda x: lax.fori_loop(0, 5, lambda i, c: c.at[i].set(c.sum() * 1e-2), x.sum(0)),
        [M],
    ),
    "scalars": (lambda x: (x.sum() * 2 + x.max(), x.min()), [V]),
    "branches": (lambda x: lax.cond(x.sum() > 0, lambda v: v.cumsum(), jnp.exp, x) + 1, [V]),
}


def plan_of(f, arrays):
    avals = [from_numpy(x)._node.aval for x in arrays]
    graph = build(lambda xs: [x._node for x in tree_flatten(f(*map(wrap, xs)))[0]], avals)
    plan, free = engine.plan_of_graph(graph)
    buffers = [engine.ready(x) for x in (*[from_numpy(a)._node for a in arrays], *free)]
    return plan, buffers


def values(plan, buffers):
    return [b.view(a.shape, a.dtype).copy() for b, a in zip(buffers, plan.out_avals, strict=True)]


@pytest.mark.parametrize("name", PROGRAMS)
def test_runs_agree(name):
    f, arrays = PROGRAMS[name]
    plan, leaves = plan_of(f, arrays)
    before = [x.view((x.nbytes,), np.uint8).copy() for x in leaves]
    first = values(plan, execute.run(plan, leaves, tell=lambda step: None))
    assert plan.quick is not None
    runs = [execute.run(plan, leaves) for _ in range(3)]
    assert all(isinstance(step, KernelStep) for step in plan.steps)
    for buffers in runs:
        for a, b in zip(values(plan, buffers), first, strict=True):
            np.testing.assert_array_equal(a, b)
    for x, old in zip(leaves, before, strict=True):
        np.testing.assert_array_equal(x.view((x.nbytes,), np.uint8), old)


def test_temporaries_share_memory():
    def chain(x):
        for _ in range(10):
            x = (x @ x.T @ x) * 1e-2
        return x

    plan, leaves = plan_of(chain, [M])
    for _ in range(2):
        execute.run(plan, leaves)
    assert len(plan.steps) >= 20
    section = _make_section(plan)
    assert section is not None
    assert _Places(section, _groups(plan.steps), 1).scratch <= 3 * 40 * 40 * 4


def test_launches_are_counted():
    f = jnp.jit(lambda x: (x @ x.T).sum(0) + (x.T @ x).sum())
    counts = []
    for _ in range(4):
        before = jnp.counters()["launches"]
        f(jnp.asarray(M)).block_until_ready()
        counts.append(jnp.counters()["launches"] - before)
    assert len(set(counts[1:])) == 1
    assert counts[-1] >= 3


def test_library_calls_and_very_large_plans_stay_steps():
    for f, x in [
        (lambda x: jnp.linalg.eigvals(x).real.sum() + (x @ x).sum(), np.eye(3, dtype=np.float32)),
        (lambda x: jnp.sort(x[None] * jnp.ones((9, 1)), 1) * x.sum(), np.ones(1 << 20, np.float32)),
    ]:
        plan, leaves = plan_of(f, [x])
        results = [values(plan, execute.run(plan, leaves)) for _ in range(3)]
        large = sum(n for step in plan.steps for _, n in getattr(step, "allocs", ())) > LARGE
        host = not all(isinstance(step, KernelStep) for step in plan.steps)
        assert large or host
        assert plan.quick is None
        np.testing.assert_array_equal(results[0][0], results[2][0])


MIXED = {
    "library call": lambda x: (
        jnp.linalg.eigvals(x @ x.T + jnp.eye(40)).real.sum(0) + (x @ x.T).sum(0),
        x.sum(),
    ),
    "updates around a call": lambda x: (
        (y := (x @ x.T).at[0].set(2.0)),
        jnp.pure_callback(np.sin, y[0], y[0]) + y.at[1].add(y.sum(0))[1],
        y.at[2].set(x.sum()),
    ),
    "a branch of the host": lambda x: lax.cond(
        (x @ x.T).sum() > 0,
        lambda y: y * 2,
        lambda y: jnp.pure_callback(np.cos, y, y),
        x.T @ x,
    ),
    "calls in a loop": lambda x: lax.fori_loop(
        0,
        4,
        lambda i, y: jnp.pure_callback(np.tanh, y, y @ y.T @ y / (y @ y).sum()) + (y @ y).sum(0),
        x @ x.T,
    ),
}


@pytest.mark.parametrize("name", MIXED)
def test_kernels_between_other_steps_are_tables(name):
    plan, leaves = plan_of(MIXED[name], [M])
    before = [x.view((x.nbytes,), np.uint8).copy() for x in leaves]
    by_steps = values(plan, execute.run(plan, leaves, tell=lambda step: None))
    for _ in range(3):
        for a, b in zip(values(plan, execute.run(plan, leaves)), by_steps, strict=True):
            np.testing.assert_array_equal(a, b)
    for x, old in zip(leaves, before, strict=True):
        np.testing.assert_array_equal(x.view((x.nbytes,), np.uint8), old)
    assert plan.quick is None
    every = [plan, *[body for step in plan.steps for body in getattr(step, "bodies", ())]]
    assert any(isinstance(part, Part) for p in every for part in p.parts)
    for p in every:
        # No two kernels in a row are launched one by one.
        alone = [isinstance(part, KernelStep) for part in p.parts]
        assert not any(a and b for a, b in pairwise(alone))


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_tables_share_large_kernels(threads):
    """One call gives bit-identical results for any number of threads."""

    def f(x):
        y = jnp.tanh(x * 2) + x.sum()
        return (y * y).sum(), jnp.exp(y) * y.max(), jnp.sort(x[:100]) * y.min()

    x = np.random.default_rng(0).standard_normal(1 << 19, np.float32)
    plan, leaves = plan_of(f, [x])
    assert any(s.work >= PARALLEL and s.extent > s.grain for s in plan.steps)
    with use_threads(1):
        first = values(plan, execute.run(plan, leaves, tell=lambda step: None))
    with use_threads(threads):
        for _ in range(20):
            for a, b in zip(values(plan, execute.run(plan, leaves)), first, strict=True):
                np.testing.assert_array_equal(a, b)
    assert plan.quick is not None


def test_one_table_on_several_threads():
    plan, leaves = plan_of(*PROGRAMS["network"])
    expected = values(plan, execute.run(plan, leaves))

    def many(_):
        return [values(plan, execute.run(plan, leaves)) for _ in range(200)]

    with ThreadPoolExecutor(4) as threads:
        for runs in threads.map(many, range(4)):
            for outputs in runs:
                for a, b in zip(outputs, expected, strict=True):
                    np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("name", PROGRAMS)
def test_groups_are_shared_step_by_step(name, monkeypatch):
    """Groups of small steps on several threads give bit-identical results."""
    monkeypatch.setattr(table, "PARALLEL", 1)
    monkeypatch.setattr(table, "AWAKE_THREADS_WORK", 1)
    f, arrays = PROGRAMS[name]
    plan, leaves = plan_of(f, arrays)
    first = values(plan, execute.run(plan, leaves, tell=lambda step: None))
    with use_threads(3):
        for _ in range(30):
            for a, b in zip(values(plan, execute.run(plan, leaves)), first, strict=True):
                np.testing.assert_array_equal(a, b)


def test_fifty_updates_are_one_launch():
    """An optimizer step over many parameters is one group, whatever their shapes."""
    p = [jnp.ones((4, 5 + i)) for i in range(25)] + [jnp.ones(3 + i) for i in range(25)]
    step = jnp.jit(lambda p, g: jnp.tree.map(lambda a, b: a - 0.1 * b, p, g))
    for _ in range(3):
        before = jnp.counters()["launches"]
        updated = jnp.block_until_ready(step(p, p))
        launches = jnp.counters()["launches"] - before
    assert launches == 1
    assert [x.shape for x in updated] == [x.shape for x in p]
    for x in updated:
        np.testing.assert_array_equal(x, np.float32(1) - np.float32(0.1) * np.ones(x.shape, "f4"))


PLACES = np.arange(200_000) % 1000
LONG = np.linspace(-1, 1, 200_000, dtype=np.float32)
SEVERAL_STEPS = {
    "many updates of few places": lambda x: ops.segment_sum(x, PLACES, num_segments=1000) * 2,
    "a vector times a matrix": lambda x: jnp.tanh(x[:1000] @ x.reshape(1000, 200)) + 1,
    "the largest": lambda x: jnp.argmax(x) * 2,
    "searches": lambda x: jnp.searchsorted(x, x[::-1]) + 1,
    "half precision": lambda x: jnp.sort(x[:99999].astype(jnp.bfloat16)) * 2,
    "gaps": lambda x: lax.pad(x, np.float32(0), [(1, 1, 2)]) * x[0],
    "sorted lines": lambda x: jnp.sort(x)[:50] * 2,
}


@pytest.mark.parametrize("name", SEVERAL_STEPS)
def test_readers_wait_for_all_steps_of_an_operation(name):
    """Small readers must wait for all steps that write a value, not only for the first one."""
    plan, _ = plan_of(SEVERAL_STEPS[name], [LONG])
    own = [s for s in plan.steps if s.cluster is not None and s.cluster.form == "own"]
    first = next(a for a, b in pairwise(own) if a.cluster is b.cluster)
    written = {slot for slot, _ in first.allocs} | {take[0] for take in first.updated_slots}
    users = [
        i for i, g in enumerate(table._groups(plan.steps)) for s in g if written & {*slots_of(s)}
    ]
    assert len(users) > 2
    assert len(set(users)) == len(users)


def slots_of(step):
    return [slot for slot, _ in step.pointers]


def test_groups_end_where_steps_need_each_other():
    def f(x, y):
        return x.sum(0), y.sum(0), (x.T @ y).sum(), jnp.sort(x.sum(0)), jnp.cumsum(y[:, 0])

    plan, _ = plan_of(f, [M, M])
    groups = table._groups(plan.steps)
    assert 1 < len(groups) < len(plan.steps)
    written: set[int] = set()
    for group in groups:
        for step in group:
            others = [s for s in group if s is not step]
            assert not any(step.writes & {slot for slot, _ in s.pointers} for s in others)
            read = {slot for slot, _ in step.pointers} - step.writes
            assert all(slot in written or slot < plan.n_leaves for slot in read)
        written |= {slot for step in group for slot in step.writes}


def test_kernels_are_cut_into_some_chunks_for_each_thread():
    """The number of chunks per thread is bounded, whatever the estimated work per element."""
    with use_threads(2):
        plan, _ = plan_of(lambda x: jnp.tanh(jnp.sin(x)), [np.zeros(1 << 19, np.float32)])
    (step,) = plan.steps
    assert step.work // GRAIN > 100
    assert 8 < step.extent / step.grain <= 70
