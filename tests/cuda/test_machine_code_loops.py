"""GPU plans as tables of steps: machine code launches the kernels of loops without Python. Results
are compared with the CPU.
"""

from collections import Counter

import numpy as np
import pytest

import accnp as jax
import accnp.numpy as jnp
from accnp import lax
from accnp.engine import device_plan, device_speculation
from accnp.runtime.device_buffer import driver_of

N = 1600
X = np.linspace(-1, 1, N, dtype="f4")
ROWS = np.sin(np.arange(5 * N, dtype="f4")).reshape(5, N)
BIG = np.cos(np.arange(40 * 40, dtype="f4")).reshape(40, 40)


def softmax_and_roll(c):
    """Reductions of rows, so that this is not an elementwise kernel."""
    return jax.nn.softmax(c.reshape(40, 40) * 3, axis=1).reshape(-1) + jnp.roll(c, 7)


def fibonacci(x):
    def body(c, _):
        a, b = c
        return (b, softmax_and_roll(a) + b), a

    return lax.scan(body, (x, x * 2), None, length=4)


def rows(x, length, reverse, unused=False):
    def body(c, r):
        new = softmax_and_roll(c) * 0.5 + r
        return new, (c, new.sum(), r[:3])

    last, ys = lax.scan(body, x, jnp.asarray(ROWS)[:length], reverse=reverse)
    return ys[1] if unused else (last, ys)


def loop_until_small(x):
    def go_on(c):
        return jnp.abs(c[0]).max() > 0.01

    return lax.while_loop(
        go_on, lambda c: (softmax_and_roll(c[0]) * 0.2, c[1] + 1, c[2]), (x, 0, x)
    )


def loop_never_entered(x):
    return lax.while_loop(lambda c: c.sum() > 1e9, softmax_and_roll, x)


def nested(x):
    def inner(i, c):
        return softmax_and_roll(c) * 0.5 + i

    def outer(c, r):
        c = lax.fori_loop(0, 3, inner, c + r)
        return c, lax.cond(c.sum() > 40, softmax_and_roll, lambda c: c - jnp.roll(c, 1), c)

    return lax.scan(outer, x, jnp.asarray(ROWS)[:3])


def branch_in_loop(x):
    def body(i, c):
        return lax.switch(i, [softmax_and_roll, lambda c: jnp.roll(c, 3) + c, lambda c: c], c)

    return lax.fori_loop(-1, 5, body, x)


def in_place(x):
    def body(i, c):
        a, b = c
        return a.at[i].set(softmax_and_roll(b)[:40]), jnp.roll(b, 1)

    return lax.fori_loop(0, 5, body, (jnp.asarray(BIG), x))


def carry_same_value_twice(x):
    def body(c, _):
        new = softmax_and_roll(c[0])
        return (new, new, c[2]), (new, new, c[1])

    return lax.scan(body, (x, x, x), None, length=3)


def constants(x):
    constant = jnp.asarray(ROWS[1])
    return lax.fori_loop(0, 4, lambda i, c: softmax_and_roll(c) + constant * i, x)


def reuse_loop_results(x):
    y = lax.fori_loop(0, 3, lambda i, c: softmax_and_roll(c), x + 1)
    z = lax.fori_loop(0, 2, lambda i, c: softmax_and_roll(c), y)
    return (z + y)[:10], y.at[3].set(5)


def branches_with_many_kernels(x):
    """Branches with more kernels than are launched speculatively, and a branch in a scan."""

    def long(c):
        for _ in range(4):
            c = softmax_and_roll(c)
        return c

    def body(c, r):
        c = lax.cond(r[0] > 0, long, lambda c: jnp.flip(softmax_and_roll(c)), c + r)
        return c, c[0]

    return lax.scan(body, x, jnp.asarray(ROWS)[:3])


PROGRAMS = {
    "fibonacci": fibonacci,
    "one row": lambda x: rows(x, 1, False),
    "even": lambda x: rows(x, 4, False),
    "reverse": lambda x: rows(x, 5, True),
    "no row": lambda x: rows(x, 0, False),
    "unused": lambda x: rows(x, 3, False, True),
    "until": loop_until_small,
    "never": loop_never_entered,
    "nested": nested,
    "ways": branch_in_loop,
    "in place": in_place,
    "many ways": branches_with_many_kernels,
    "same twice": carry_same_value_twice,
    "constants": constants,
    "kept": reuse_loop_results,
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_loops_run_without_python(gpu, name):
    f = PROGRAMS[name]
    expected = jax.jit(f)(X)
    x = jax.device_put(X, gpu)
    g = jax.jit(f)
    calls = getattr(driver_of(gpu), "calls", None)  # a fake one counts
    for _ in range(2):
        before = Counter(calls)
        actual = jax.block_until_ready(g(x))
        if calls is not None:
            new_calls = Counter(calls) - before
            assert new_calls["launch"] == new_calls["launch from a table"]
            assert new_calls["enter"] == 1
        jax.tree.map(
            lambda a, b: np.testing.assert_allclose(a, b, rtol=2e-5, atol=2e-5), actual, expected
        )
    np.testing.assert_array_equal(x, X)


def count_marks_and_fetches(fake, f, *arguments):
    expected = jax.jit(f)(*arguments)
    g = jax.jit(f)
    there = [jax.device_put(a, jax.devices("gpu")[0]) for a in arguments]
    for _ in range(2):
        before = Counter(fake.calls)
        actual = jax.block_until_ready(g(*there))
        new_calls = Counter(fake.calls) - before
        jax.tree.map(
            lambda a, b: np.testing.assert_allclose(a, b, rtol=2e-5, atol=2e-5), actual, expected
        )
    return new_calls["mark"], new_calls["fetch"]


def test_while_loop_fetches_its_condition_ahead(fake):
    """The next iteration starts before the host knows the condition; a superfluous iteration has no
    effect.
    """
    for start, steps in ((X, None), (X * 0, 0), (X * 0.01, 0)):
        count = int(jax.jit(loop_until_small)(start)[1])
        assert steps is None or count == steps
        assert count_marks_and_fetches(fake, loop_until_small, start) == (count + 1, count + 1)


def test_loops_that_do_not_fetch_ahead(fake, monkeypatch):
    def inside(x):  # the body of the outer one need not end where the outer one has
        def body(c):
            inner = lax.while_loop(
                lambda d: d.max() < 1e3, lambda d: softmax_and_roll(d) + jnp.abs(d) * 2, c
            )
            return inner / 1e4

        return lax.while_loop(lambda c: jnp.abs(c).max() > 0.5, body, x)

    def update(x):  # the carry has one place
        def body(c):
            a, i = c
            return a.at[i].set(softmax_and_roll(a.reshape(-1))[:40]), i + 1

        return lax.while_loop(lambda c: c[0][c[1], 0] < 0.9, body, (jnp.asarray(BIG), 1))[0] + x[0]

    marks, fetches = count_marks_and_fetches(fake, inside, X + 2)
    assert marks < fetches  # the inner loop may
    assert count_marks_and_fetches(fake, update, X)[0] == 0
    monkeypatch.setattr(device_speculation, "AHEAD", 10)
    marks, fetches = count_marks_and_fetches(fake, loop_until_small, X)
    assert marks == 0 < fetches


def branches(x):
    """Branches that return their operand, update a copy of it, or have several kernels."""

    def sums(x):
        return x.reshape(8, 8).sum(1).repeat(8) + jnp.roll(x, 3)

    ways = [lambda x: (x, x * 2), lambda x: (x.at[3].set(9), sums(x)), lambda x: (x[::-1], x)]
    return lax.switch(x[0].astype(int), ways, x), lax.cond(x.sum() > 9, sums, lambda x: x, x)


def test_branch_needs_no_host_synchronization(fake, monkeypatch):
    """If all branches are few kernels, each kernel reads the index on the GPU."""
    monkeypatch.setattr(device_plan, "ONE_THREAD_WORK", 0)  # else a thread does all of it
    for first in (-9, 1, 2, 9):  # beyond the ends, too
        assert count_marks_and_fetches(fake, branches, np.float32([first] + 63 * [0.25])) == (0, 0)
    monkeypatch.setattr(device_plan, "MAX_GUARDED_KERNELS", 3)
    assert count_marks_and_fetches(fake, lambda x: branches(x), X[:64]) == (0, 1)


def test_error_ends_a_speculative_while_loop(fake, monkeypatch):
    g, x = jax.jit(loop_until_small), jax.device_put(X, jax.devices("gpu")[0])
    jax.block_until_ready(g(x))
    for name in ("space", "wait"):
        with monkeypatch.context() as patched:
            if name == "wait":
                patched.setattr(fake, "fault", "an illegal memory access was encountered")
            else:
                patched.setattr(fake.space, "bytes", lambda *_: 1 / 0)
            with pytest.raises((RuntimeError, ZeroDivisionError)):
                jax.block_until_ready(g(x))
    np.testing.assert_allclose(g(x)[0], jax.jit(loop_until_small)(X)[0], rtol=2e-5, atol=2e-5)


def test_operations_on_empty_arrays_stay_on_the_gpu(fake):
    f, x = jax.jit(lambda x: lax.associative_scan(jnp.add, x)), X[:8]
    there = jax.device_put(x, jax.devices("gpu")[0])
    np.testing.assert_allclose(f(there), np.cumsum(x), rtol=1e-5)
    assert "by the processor" not in str(jax.inspect(f)(there))  # additions of no elements


def test_gradient_of_a_loop(fake):
    def loss(x):
        return (rows(x, 3, False)[0] ** 2).sum()

    expected = jax.jit(jax.grad(loss))(X)
    x = jax.device_put(X, jax.devices("gpu")[0])
    np.testing.assert_allclose(jax.jit(jax.grad(loss))(x), expected, rtol=1e-4, atol=1e-4)


def test_a_loop_beside_library_calls(fake):
    def f(x):
        a = (x[:100] @ x[:1000].reshape(100, 10)).sum()
        return lax.fori_loop(0, 3, lambda i, c: softmax_and_roll(c) + a, x)

    expected = jax.jit(f)(X)
    actual = jax.jit(f)(jax.device_put(X, jax.devices("gpu")[0]))
    assert fake.calls["launch from a table"] >= 6
    np.testing.assert_allclose(actual, expected, rtol=2e-5, atol=2e-5)


def test_the_first_error_ends_a_table(fake, monkeypatch):
    f = jax.jit(lambda x: lax.fori_loop(0, 9, lambda i, c: softmax_and_roll(c), x))
    x = jax.device_put(X, jax.devices("gpu")[0])
    f(x).block_until_ready()
    calls = []

    def refuse(*arguments, **_):
        calls.append(arguments)
        raise RuntimeError("too many resources requested for launch")

    monkeypatch.setattr(fake, "launch", refuse)
    with pytest.raises(RuntimeError, match="too many resources"):
        f(x).block_until_ready()
    assert len(calls) == 1
    monkeypatch.undo()
    assert np.isfinite(np.asarray(f(x))).all()


def test_only_donatable_arguments_are_overwritten(fake):
    gpu = jax.devices("gpu")[0]
    f = jax.jit(lambda a, b: (a.at[0].set(b[1]), b.sum() + 1), donate_argnums=0)
    big = jax.device_put(BIG, gpu)
    address = big.unsafe_buffer_pointer()
    new, total = f(big, jax.device_put(BIG, gpu))
    assert new.unsafe_buffer_pointer() == address
    np.testing.assert_array_equal(new[0], BIG[1])
    np.testing.assert_allclose(total, BIG.sum() + 1, rtol=1e-5)
    small = jax.device_put(np.float32([1, 2]), gpu)  # shared by all who have these values
    result, _ = f(small, jax.device_put(np.float32([1, 2]), gpu))
    np.testing.assert_array_equal(jax.device_put(np.float32([1, 2]), gpu), [1, 2])
    np.testing.assert_array_equal(result, [2, 2])


def test_advice_covers_python_loops_only(fake):
    """Loops that machine code launches are not Python loops, although they are not one kernel."""

    def f(x):
        return lax.fori_loop(0, 3, lambda i, c: jax.nn.softmax(c, 1) + i, x)

    def g(x):
        return lax.fori_loop(0, 3, lambda i, c: jnp.linalg.eigvals(c[:3, :3]).real.sum() + c, x)

    x = jax.device_put(np.eye(40, dtype="f4"), jax.devices("gpu")[0])
    assert jax.explain(jax.jit(f), x).advice == []
    (text,) = jax.explain(jax.jit(g), x).advice
    assert (
        "runs as a loop in Python, because its kernels are launched from there, by Python" in text
    )
