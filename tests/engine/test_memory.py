"""Memory use of programs.

The tests check the temporaries of a plan, its peak memory, the allocations of a steady-state loop,
and that results overwrite operands that are not used again.
"""

import gc

import numpy as np
import pytest
from compiler.fusion.support import plan_of

import accnp
import accnp.numpy as jnp
from accnp import engine
from accnp.runtime import buffer as pool

N = 1 << 19  # float32: 2 MB
X = np.random.default_rng(4).standard_normal(N).astype(np.float32)
TABLE = X.reshape(512, 1024)
POINTS = X[:6000].reshape(2000, 3)


def buffer_bytes(plan):
    """Return the bytes of all buffers that a plan allocates, and of its results."""
    sizes = dict(pair for step in plan.steps for pair in step.allocs)
    return sum(sizes.values()), sum(sizes.get(s, 0) for s in set(plan.output_slots))


def chain(x):
    for k in range(10):
        x = jnp.sin(x) * 0.5 + x * (k + 1)
    return x


def softmax(x):
    e = jnp.exp(x - x.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


def distances(p):
    return jnp.sqrt(((p[:, None] - p[None]) ** 2).sum(-1))


def meshgrid(x):
    a, b = jnp.meshgrid(x, x)
    return jnp.sin(a) * b + a


FUSED = {
    "a chain of 30 operations": (chain, X),
    "softmax": (softmax, TABLE),
    "layer norm": (lambda x: (x - x.mean(1, keepdims=True)) / jnp.sqrt(x.var(1)[:, None]), TABLE),
    "pairwise distances": (distances, POINTS),
    "an outer sum": (lambda x: (x[:, None] + x[None]) ** 2, X[:1000]),
    "a formula on a meshgrid": (meshgrid, X[:1000]),
    "a mask": (lambda x: jnp.where(x > 0, x, 0.1 * x).sum(0), TABLE),
    "rolls": (lambda x: jnp.roll(x, 1, 0) + jnp.roll(x, -1, 1) - 2 * x, TABLE),
    "a transposed operand": (lambda x: jnp.exp(x.T) + 1, TABLE),
    "a fold over turned axes": (lambda x: x.reshape(32, 16, 1024).T.sum((1, 2)), TABLE),
}


@pytest.mark.parametrize("name", FUSED)
def test_no_temporaries(name):
    every, results = buffer_bytes(plan_of(*FUSED[name]))
    assert results
    assert every == results


PARTLY = {
    "a loss": (lambda x: (softmax(x) ** 2).sum(), TABLE, 512 * 8 + 64),
    "a long sum": (lambda x: jnp.sum(x * x), X, (N // 32768) * 8),
}


@pytest.mark.parametrize("name", PARTLY)
def test_temporaries_are_small(name):
    f, x, most = PARTLY[name]
    every, results = buffer_bytes(plan_of(f, x))
    assert every - results <= most < x.nbytes


def peak(f, *arrays):
    """Return the peak of the bytes that f allocates beyond those in use before, and the bytes of
    its result."""
    f(*arrays).block_until_ready()
    gc.collect()
    before, most = pool.pool_stats()["live_bytes"], [0]
    empty = pool.empty

    def counted(nbytes):
        block = empty(nbytes)
        most[0] = max(most[0], pool.pool_stats()["live_bytes"] - before)
        return block

    places = [m for m in (pool, engine.execute, engine.table) if getattr(m, "empty", None) is empty]
    with pytest.MonkeyPatch.context() as patch:
        for m in places:
            patch.setattr(m, "empty", counted)
        y = f(*arrays).block_until_ready()
    return max(most[0], pool.pool_stats()["live_bytes"] - before), y.nbytes


@pytest.mark.parametrize("jitted", [False, True])
def test_the_peak_of_a_chain_is_its_result(jitted):
    x = jnp.asarray(X).block_until_ready()
    most, result = peak(accnp.jit(chain) if jitted else chain, x)
    assert result <= most <= 1.01 * result + 4096


LOOPS = {
    "eager": lambda x: jnp.sin(x) * 2 + x,
    "jitted": accnp.jit(lambda x: softmax(x.reshape(512, 1024)).reshape(-1) + x),
    "with a library call": accnp.jit(lambda x: jnp.sort(x) * 0.5),
    "updates": lambda x: x.at[3].set(1.0).at[5:9].add(2.0),
    "a step of training": accnp.jit(
        lambda w: w - 0.1 * accnp.grad(lambda w: jnp.sum(jnp.tanh(w) ** 2))(w)
    ),
}


@pytest.mark.parametrize("name", LOOPS)
def test_a_steady_loop_allocates_nothing_from_the_system(name):
    x = jnp.asarray(X).block_until_ready()
    for _ in range(5):
        x = LOOPS[name](x).block_until_ready()
    before = pool.pool_stats()
    for _ in range(20):
        x = LOOPS[name](x).block_until_ready()
    after = pool.pool_stats()
    assert after["allocations"] == before["allocations"]
    assert after["live_bytes"] == before["live_bytes"]


# --- results over dead operands ------------------------------------------------------------------


def place(x):
    return engine.ready(x._node).ptr


OVER = {
    "after a sort": (lambda m, x: m.sort(x) * 2 + x, 1),
    "after a product": (lambda m, x: m.tanh(x.reshape(512, 1024) @ x.reshape(1024, 512) / 9), 1),
    "twice": (lambda m, x: m.sort(m.sort(-x) * 2) + 1, 2),
}


@pytest.mark.parametrize("name", OVER)
def test_maps_overwrite_dead_operands(name):
    f, count = OVER[name]
    steps = plan_of(lambda x: f(jnp, x), X).steps
    over = [t for s in steps if s.alike for t in s.updated_slots]
    assert len(over) == count
    assert all(in_place for *_, in_place in over)
    actual = np.asarray(accnp.jit(lambda x: f(jnp, x))(jnp.asarray(X)))
    np.testing.assert_allclose(actual, f(np, X), rtol=1e-4, atol=1e-4)


STEP = accnp.jit(lambda p, g: p - 0.1 * g, donate_argnums=0)


def test_donated_argument_holds_the_result():
    p, g = jnp.asarray(X * 1).block_until_ready(), jnp.asarray(X * 2).block_until_ready()
    at, before = place(p), pool.pool_stats()["live_bytes"]
    q = STEP(p, g).block_until_ready()
    assert place(q) == at
    assert pool.pool_stats()["live_bytes"] <= before + 4096  # and a literal
    np.testing.assert_allclose(np.asarray(q), X - 0.1 * (X * 2), rtol=1e-6)


def test_exported_donated_argument_is_unchanged():
    p, g = jnp.asarray(X * 1).block_until_ready(), jnp.asarray(X * 2)
    seen = np.asarray(p)
    q = STEP(p, g)
    np.testing.assert_array_equal(seen, X)
    np.testing.assert_allclose(np.asarray(q), X - 0.1 * (X * 2), rtol=1e-6)
    p = jnp.asarray(X * 1).block_until_ready()
    both = accnp.jit(lambda p, g: p + g, donate_argnums=0)(p, jnp.array(p))
    np.testing.assert_allclose(np.asarray(both), 2 * X)


# --- the same in eager code ----------------------------------------------------------------------

EAGER = {
    "one operation": (lambda x: x * 1.5, X),
    "a chain": (lambda x: jnp.sin(x) * 0.5 + x, X),
    "a long body": (lambda x: jnp.tanh(x) * jnp.exp(-(x**2)) + accnp.nn.gelu(x) * jnp.cos(x), X),
    "rows": (lambda x: x * ROW + 1, TABLE),
    "choices": (lambda x: jnp.where(x > 0, x, 0.25 * x), X),
    "short rows": (lambda x: x * FOUR, X.reshape(-1, 4)),
    "another array": (lambda x: x * OTHER - x, X),
    "numbers of rows": (lambda x: x * jnp.arange(512)[:, None], TABLE),
    "softmax": (softmax, TABLE),
    "normalized": (lambda x: x / jnp.sqrt(jnp.sum(x * x, 1, keepdims=True)) + x, TABLE),
    "complex": (lambda x: x * (1 + 2j) - 1, (X + 1j * X)),
    "whole numbers": (lambda x: (x ^ 5) + (x >> 1), X.view(np.int32)),
}
ROW, FOUR, OTHER = (jnp.asarray(X[:n]) for n in (1024, 4, N))


@pytest.mark.parametrize("name", EAGER)
def test_eager_maps_overwrite_unreferenced_operands(name):
    f, x = EAGER[name]
    x = jnp.asarray(x).block_until_ready()
    for _ in range(3):  # the first time makes the plan
        expected = np.asarray(accnp.jit(f)(jnp.asarray(np.array(x))))
        at = place(x)
        x = f(x)  # the operand is not referenced from here on
        x.block_until_ready()
        np.testing.assert_array_equal(np.asarray(x).view(np.int32), expected.view(np.int32))
        del expected
        last = place(x) == at
    assert last


HELD = {
    "by a name": (lambda x: x, X),
    "by a view of it": (lambda x: x.reshape(512, 1024).T, X.reshape(512, 1024).T),
    "by NumPy": (np.asarray, X),
    "by what is pending": (lambda x: x - 3, X - 3),
    "by a derivative": (lambda x: accnp.vjp(lambda v: v * v, x)[1](x)[0], 2 * X**2),
    "by a trace": (lambda x: accnp.jit(lambda v: v + x)(X), 2 * X),
}


@pytest.mark.parametrize("name", HELD)
def test_eager_maps_keep_referenced_operands(name):
    hold, expected = HELD[name]
    for _ in range(3):
        x = jnp.asarray(X).block_until_ready()
        reference = hold(x)
        y = x * 2 + 1
        del x
        np.testing.assert_allclose(np.asarray(y), X * 2 + 1, rtol=1e-6)
        np.testing.assert_allclose(np.asarray(reference), expected, rtol=1e-6)


@pytest.mark.parametrize("name", [*EAGER, "itself twice"])
def test_operands_referenced_elsewhere_survive_cached_plans(name):
    """A plan that overwrites its operand was reused for calls whose operand was still
    referenced."""
    f, x = EAGER.get(name, (lambda x: x + x, X))
    for _ in range(4):
        y = f(jnp.asarray(x))  # the operand is not referenced
        expected = np.array(y)
    for _ in range(3):
        referenced = jnp.asarray(x).block_until_ready()
        np.testing.assert_array_equal(
            np.asarray(f(referenced)).view(np.int32), expected.view(np.int32)
        )
        np.testing.assert_array_equal(np.asarray(referenced).view(np.int32), x.view(np.int32))


ELSEWHERE = {
    "other places": lambda x: (y := jnp.sort(x)) + y[::-1],
    "a part": lambda x: jnp.sort(x)[:-1] * 2 + 1,
    "another dtype": lambda x: jnp.sort(x).astype(jnp.int32) * 2,
    "a result, too": lambda x: (y := jnp.sort(x), y * 2),
    "read by a later one": lambda x: (jnp.cumsum((y := jnp.sort(x)) * 2), y.cumsum()),
}


@pytest.mark.parametrize("name", ELSEWHERE)
def test_operands_read_elsewhere_are_kept(name):
    plan = plan_of(ELSEWHERE[name], X)
    first = plan.steps[0]
    updated = [t for s in plan.steps if s is not first for t in getattr(s, "updated_slots", ())]
    source = [slot for slot, _ in getattr(first, "allocs", ())]
    assert not [t for t in updated if t[1] in source and t[3]]
    actual = accnp.jit(ELSEWHERE[name])(jnp.asarray(X))
    expected = ELSEWHERE[name](jnp.asarray(X))
    for a, b in zip(
        *[v if isinstance(v, tuple) else (v,) for v in (actual, expected)], strict=True
    ):
        np.testing.assert_array_equal(np.asarray(a), np.asarray(b))


@pytest.mark.parametrize("last", [lambda y: y + 3, lambda y: y.at[0].set(7) + 1])
def test_recomputed_values_find_their_operand(last):
    """The result of relu is recomputed where it is used again, so its operand must not be
    overwritten."""
    x = np.arange(1 << 20, dtype=np.float32) * 1e-6 - 0.5
    for _ in range(3):  # the plan that writes over operands is the second
        a = jnp.asarray(x) * 1
        a.block_until_ready()
        y = accnp.nn.relu(a * 2)
        del a
        last(y).block_until_ready()
        np.testing.assert_array_equal(np.asarray(y), np.maximum(x * 2, 0))
