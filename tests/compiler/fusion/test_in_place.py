"""What is written to a slice is stored there by the kernel that computes it, under `jit`."""

import random

import numpy as np
import pytest
from compiler.fusion.support import plan_of

import accnp as jnp
from accnp import lax
from accnp.engine.steps import KernelStep


def steps_of(f, *xs):
    return [s for s in plan_of(f, *xs).steps if isinstance(s, KernelStep)]


def stencil(x):
    return 0.25 * (x[:-2] + 2 * x[1:-1] + x[2:])


def test_kernel_stores_into_the_slice():
    x, y = np.arange(9.0, dtype="f4"), np.ones(9, "f4")
    (step,) = steps_of(lambda x, y: y.at[1:-1].set(stencil(x)), x, y)
    ((_, source, nbytes, over),) = step.updated_slots
    assert (source, nbytes, over) == (1, 36, False)  # an argument is copied
    assert not step.allocs


def test_dead_buffers_of_the_program_are_updated_in_place():
    x, y = np.arange(9.0, dtype="f4"), np.ones(9, "f4")
    kernel_step, update = steps_of(lambda x, y: jnp.cumsum(y).at[1:-1].set(stencil(x)), x, y)
    assert len(kernel_step.allocs) == 1
    assert [over for *_, over in update.updated_slots] == [True]


def test_values_read_elsewhere_are_not_updated_in_place():
    """Writing b[1:-1] from b[:-2] and b[2:] in place would read what is written."""
    x = np.arange(9.0, dtype="f4")
    f = lambda b: b.at[1:-1].set(b[:-2] + b[2:])  # noqa: E731
    assert len(steps_of(f, x)) == 2
    expected = x.copy()
    expected[1:-1] = x[:-2] + x[2:]
    np.testing.assert_array_equal(f(jnp.asarray(x)), expected)
    np.testing.assert_array_equal(jnp.jit(f, donate_argnums=0)(jnp.asarray(x)), expected)


def test_elements_that_are_read_where_they_are_written():
    x = np.arange(12.0, dtype="f4").reshape(3, 4)
    f = lambda b: (b * 2).at[1:, 2:].set(jnp.sin((b * 2)[1:, 2:]) + 1)  # noqa: E731
    expected = x * 2
    expected[1:, 2:] = np.sin(expected[1:, 2:]) + 1
    np.testing.assert_allclose(jnp.jit(f)(x), expected, rtol=1e-6)


def test_an_array_that_is_read_later_is_copied():
    x = np.arange(9.0, dtype="f4")

    def f(x):
        y = x * 2
        z = y.at[1:3].set(x[4:6] + 1)
        return y + z

    expected = x * 2
    expected[1:3] = x[4:6] + 1
    np.testing.assert_array_equal(jnp.jit(f)(x), expected + x * 2)
    np.testing.assert_array_equal(f(jnp.asarray(x)), expected + x * 2)


def test_loops_write_their_carry_in_place():
    n, times = 3200, 20

    def step(_, ab):
        a, b = ab
        b = b.at[1:-1].set(stencil(a))
        return a.at[1:-1].set(stencil(b)), b

    a, b = np.random.default_rng(0).normal(size=(2, n)).astype("f4")
    f = jnp.jit(lambda a, b: lax.fori_loop(0, times, step, (a, b)))
    actual = f(a, b)
    for _ in range(times):
        b[1:-1] = np.float32(0.25) * (a[:-2] + 2 * a[1:-1] + a[2:])
        a[1:-1] = np.float32(0.25) * (b[:-2] + 2 * b[1:-1] + b[2:])
    np.testing.assert_array_equal(actual[0], a)
    np.testing.assert_array_equal(actual[1], b)
    text = f.lower(a, b).as_text()
    assert text.count("at(c") == 6  # two stores and four loads; no kernel that copies


def test_out_of_bounds_indices_are_dropped():
    x = jnp.arange(4.0)
    np.testing.assert_array_equal(x.at[7].set(1.0), np.arange(4.0))
    np.testing.assert_array_equal(x.at[-5].set(1.0), np.arange(4.0))
    np.testing.assert_array_equal(x.at[-1].set(9.0), [0, 1, 2, 9])


class Updates:
    """A random program of updates and reads of slices, for accnp and for NumPy."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.shape = (7, 9)

    def part(self):
        """A random part of the array: slices, one of which may be an index."""
        key = []
        for n in self.shape:
            i, j = sorted(self.random.sample(range(n + 1), 2))
            key.append(slice(i, j))
        if self.random.random() < 0.3:
            k = self.random.randrange(2)
            key[k] = self.random.randrange(self.shape[k])
        return tuple(key)

    def like(self, key):
        """Another part of the same shape."""
        moved = []
        for k, n in zip(key, self.shape, strict=True):
            if isinstance(k, int):
                moved.append(self.random.randrange(n))
                continue
            m = k.stop - k.start
            i = self.random.choice([k.start, self.random.randint(0, n - m)])
            moved.append(slice(i, i + m))
        return tuple(moved)

    def run(self, x, y, write):
        r, arrays = self.random, [x, y]
        for _ in range(r.randint(2, 7)):
            kind, k = r.random(), r.randrange(len(arrays))
            a, b = arrays[k], r.choice(arrays)
            if kind < 0.2:
                arrays.append(a + b * 2)
                continue
            key = self.part()
            other, third = self.like(key), self.like(key)
            value = a[other] * 0.5 + b[third] if kind < 0.8 else b[other] + 1
            new = write(a, key, value)
            if r.random() < 0.7:
                arrays[k] = new
            else:
                arrays.append(new)
        return arrays[-3:]


def by_numpy(a, key, value):
    a = a.copy()
    a[key] = value
    return a


@pytest.mark.parametrize("seed", range(60))
def test_random_updates_match_numpy(seed):
    x, y = np.random.default_rng(seed).normal(size=(2, 7, 9)).astype("f4")
    expected = Updates(seed).run(x, y, by_numpy)
    ours = lambda a, key, value: a.at[key].set(value)  # noqa: E731
    f = lambda x, y: Updates(seed).run(x, y, ours)  # noqa: E731
    inputs = jnp.asarray(x), jnp.asarray(y)
    for actual in (f(*inputs), jnp.jit(f)(x, y), jnp.jit(f, donate_argnums=(0, 1))(x + 0, y + 0)):
        for a, b in zip(actual, expected, strict=True):
            np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(inputs[0], x)
    looped = lax.fori_loop(0, 2, lambda _, xy: tuple(f(*xy)[-2:]), inputs)
    a, b = x, y
    for _ in range(2):
        a, b = Updates(seed).run(a, b, by_numpy)[-2:]
    np.testing.assert_array_equal(looped[0], a)
    np.testing.assert_array_equal(looped[1], b)


def test_plans_are_shared_for_different_indices():
    """Programs that are recorded without `jit` share a plan, whatever numbers are in them."""
    x, y = jnp.arange(6.0), jnp.ones(6)
    for i in range(4):
        actual = lax.dynamic_update_slice(x, jnp.sin(y[:2]) * 2, (i,))
        expected = np.arange(6.0, dtype="f4")
        expected[i : i + 2] = np.asarray(jnp.sin(y[:2]) * 2)
        np.testing.assert_array_equal(actual, expected)


@pytest.mark.parametrize("dtype", ["f8", "u1"])
@pytest.mark.parametrize("key", [(slice(1, None), 0), (slice(0, 2), slice(0, 2)), (1, slice(1, 3))])
def test_loop_reads_values_of_the_previous_iteration(key, dtype):
    """LLVM took a load of the array out of the loop, for the store went through another pointer."""
    x = (np.arange(15).reshape(5, 3) % 3 + 1).astype(dtype)
    loop = jnp.jit(lambda x: lax.fori_loop(0, 4, lambda _, x: x.at[key].set(x[key] + x[key]), x))
    expected = x.copy()
    expected[key] *= 16
    np.testing.assert_array_equal(loop(x), expected)


def test_updated_operand_has_a_single_pointer():
    x, y = np.arange(9.0, dtype="f4"), np.ones(9, "f4")
    f = lambda x, y: (x.at[1:-1].set(x[1:-1] + y[1:-1]), x[1:-1] * 2)  # noqa: E731
    (step,) = steps_of(f, x, y)
    ((update, array, *_),) = step.updated_slots
    used = [slot for slot, _ in step.pointers]
    assert (used.count(update), used.count(array)) == (1, 0)
    for actual, expected in zip(jnp.jit(f)(x, y), f(jnp.asarray(x), jnp.asarray(y)), strict=True):
        np.testing.assert_array_equal(actual, expected)


@pytest.mark.parametrize("shape", [(2,), (1, 2)])
def test_values_that_share_memory_with_others(shape):
    """What a barrier gives is stored in the memory of its operand."""
    x, y = np.arange(9.0, dtype="f4"), np.ones(2, "f4")

    def f(x, y):
        update, other = lax.optimization_barrier(((y + 1).reshape(shape), x * 2))
        return other.at[1:3].set(update.reshape(2)).at[4:6].set(other[:2] * y)

    expected = x * 2
    expected[1:3], expected[4:6] = 2, [0, 2]
    np.testing.assert_array_equal(jnp.jit(f)(x, y), expected)


def test_a_number_is_stored_by_the_kernel_that_computes_it():
    x, v = jnp.arange(12.0) + 0, jnp.float32(3)
    for f, count in (
        (lambda x, v: x.at[3].set(v * 2 + 1), 1),
        (lambda x, v: x.at[3].add(v * 2 + 1), 1),
        (lambda x, v: x.at[3].multiply(x[3] - v), 1),
        (lambda x, v: x.at[3].set(v * 2 + 1).at[7].set(v * 3), 2),
        (lambda x, v: x.at[3].set(x[4] * v), 2),  # reads another element
        (lambda x, v: jnp.cumsum(x).at[2].set(jnp.sin(v)), 2),
    ):
        assert len(jnp.inspect(f)(x, v).plan.steps) == count


@pytest.mark.parametrize("seed", range(6))
def test_random_updates_of_single_elements(seed):
    rng = np.random.default_rng(seed)
    steps = []
    for _ in range(12):
        i, a, b = (int(k) for k in rng.integers(0, 5, 3))
        steps.append((["set", "add", "min"][int(rng.integers(3))], i, a, b, float(rng.integers(4))))

    def program(x, v):
        seen = x
        for how, i, a, b, c in steps:
            value = (x[a] - seen[b] * v) * c + v
            seen = x if c > 1 else seen
            x = getattr(x.at[i], how)(value)
        return x, seen.sum()

    x, v = rng.integers(-3, 4, 5).astype(np.float32), np.float32(2)
    y, seen = x.copy(), x.copy()
    for how, i, a, b, c in steps:
        value = (y[a] - seen[b] * v) * np.float32(c) + v
        seen = y.copy() if c > 1 else seen
        y[i] = {"set": value, "add": y[i] + value, "min": min(y[i], value)}[how]
    results = y, seen.sum()
    for f in (program, jnp.jit(program)):
        array = jnp.asarray(x) + 0
        for actual, expected in zip(f(array, v), results, strict=True):
            np.testing.assert_array_equal(actual, expected)
        np.testing.assert_array_equal(array, x)

    looped = jnp.jit(lambda x: jnp.lax.fori_loop(0, 2, lambda _, x: program(x, v)[0], x))
    np.testing.assert_array_equal(looped(x), jnp.jit(program)(jnp.jit(program)(x, v)[0], v)[0])
