"""Updates of known places: random programs of them against NumPy, and against their plans without
what passes make of updates."""

import random

import numpy as np
import pytest
from compiler.fusion.support import plan_of
from sampling import seeds

import accnp as jnp
from accnp import lax
from accnp.compiler.fusion import updates
from accnp.engine.steps import KernelStep

SHAPE = (6, 9)
METHODS = ["set", "set", "set", "add", "multiply", "min", "max"]
UFUNCS = {"add": np.add, "multiply": np.multiply, "min": np.minimum, "max": np.maximum}


def by_numpy(a, key, value, how):
    a = a.copy()
    value = np.asarray(value).astype(a.dtype)
    if how == "set":
        a[key] = value
    elif a.dtype == bool:  # as jax and lax.scatter_add do
        ufunc = {"add": np.logical_or, "multiply": np.logical_and}.get(how, UFUNCS[how])
        a[key] = ufunc(a[key], value)
    else:
        a[key] = UFUNCS[how](a[key], value)
    return a


def by_accnp(a, key, value, how):
    return getattr(a.at[key], how)(value)


def plus(a, b):
    return a | b if a.dtype == bool else a + b


class Program:
    """A random program of reads and writes of slices, with steps of either sign."""

    def __init__(self, seed, shape=SHAPE, methods=METHODS):
        self.random, self.shape, self.methods = random.Random(seed), shape, methods

    def axis(self, n):
        """A part of an axis: first element, number, step."""
        r = self.random
        step = r.choice([1, 1, 1, 1, 2, -1, -2, 3])
        count = r.randint(1, -(-n // abs(step)))
        first = r.randint(0, n - 1 - (count - 1) * abs(step))
        return (first, count, step) if step > 0 else (first + (count - 1) * -step, count, step)

    def key(self):
        parts = [self.axis(n) for n in self.shape]
        key = [self.slice(*p) for p in parts]
        if self.random.random() < 0.25:
            d = self.random.randrange(len(key))
            key[d] = self.random.choice([-1, 1]) * self.random.randrange(1, self.shape[d])
        elif self.random.random() < 0.3:
            key[self.random.randrange(len(key))] = slice(None)
        return tuple(key)

    def slice(self, first, count, step):
        stop = first + count * step
        return slice(first, stop if stop >= 0 else None, step)

    def like(self, key):
        """Another part of the same shape, often the same one."""
        if self.random.random() < 0.4:
            return key
        moved = []
        for k, n in zip(key, self.shape, strict=True):
            if isinstance(k, int):
                moved.append(self.random.randrange(n))
                continue
            m = len(range(*k.indices(n)))
            first = self.random.randint(0, n - m)
            moved.append(slice(first, first + m))
        return tuple(moved)

    def run(self, m, x, y, write):
        r, arrays = self.random, [x, y]
        for _ in range(r.randint(2, 7)):
            kind, k = r.random(), r.randrange(len(arrays))
            a, b = arrays[k], r.choice(arrays)
            if kind < 0.25:
                new = [
                    plus,
                    lambda a, b: m.zeros_like(a),
                    lambda a, b: m.ones_like(a),
                    lambda a, b: m.where(a == b, a, b),
                ]
                arrays.append(r.choice(new)(a, b))
                continue
            key, how = self.key(), r.choice(self.methods)
            other, third = self.like(key), self.like(key)
            if kind < 0.7:
                value = m.where(a[other] == b[third], b[third], plus(a[other], b[third]))
            elif kind < 0.85:
                value = b[other]
            else:
                value = a.dtype.type(r.randrange(2))
            new = write(a, key, value, how)
            if r.random() < 0.75:
                arrays[k] = new
            else:
                arrays.append(new)
        return arrays[-3:]


def operands(seed, dtype):
    x = np.random.default_rng(seed).integers(0, 3, (2, *SHAPE))
    return [a.astype(dtype) for a in x]


DTYPES = ["f4", "f4", "i4", "u1", "c8", "f2", "bool", "i8", "f8"]


@pytest.mark.parametrize("seed", seeds(18, 54))
def test_random_programs_match_numpy(seed):
    dtype = np.dtype(DTYPES[seed % len(DTYPES)])
    with jnp.enable_x64(dtype.itemsize == 8):
        x, y = operands(seed, dtype)
        methods = METHODS[:5] if dtype.kind == "c" else METHODS
        expected = Program(seed, methods=methods).run(np, x, y, by_numpy)

        def f(x, y):
            return Program(seed, methods=methods).run(jnp, x, y, by_accnp)

        inputs = jnp.asarray(x), jnp.asarray(y)
        views = [np.asarray(a) for a in inputs]
        twice = jnp.vmap(f)(jnp.stack([inputs[0]] * 2), jnp.stack([inputs[1]] * 2))
        actual = [
            f(*inputs),
            jnp.jit(f)(*inputs),
            jnp.jit(f, donate_argnums=(0, 1))(x.copy(), y.copy()),
        ]
        for results in (*actual, [a[0] for a in twice], [a[1] for a in twice]):
            for a, b in zip(results, expected, strict=True):
                np.testing.assert_array_equal(a, b)
        for a, b in zip(views, (x, y), strict=True):
            np.testing.assert_array_equal(a, b)
        step = lambda xy: tuple(f(*xy)[-2:])  # noqa: E731
        looped = lax.fori_loop(0, 3, lambda _, xy: step(xy), inputs)
        scanned = lax.scan(lambda xy, _: (step(xy), None), inputs, None, length=3)[0]
        by_while = lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, step(c[1])), (0, inputs))
        a, b = x, y
        for _ in range(3):
            a, b = Program(seed, methods=methods).run(np, a, b, by_numpy)[-2:]
        for pair in (looped, scanned, by_while[1]):
            np.testing.assert_array_equal(pair[0], a)
            np.testing.assert_array_equal(pair[1], b)


@pytest.mark.parametrize("seed", seeds(6, 16))
def test_derivatives_match_plans_without_rewriting(seed, monkeypatch):
    """The bits are those of plans in which nothing is known of updates."""
    rng = np.random.default_rng(seed)
    x, y, w = rng.normal(size=(3, *SHAPE)).astype("f4")

    def loss(x, y):
        return sum([(w * a * a).sum() for a in Program(seed).run(jnp, x, y, by_accnp)])

    actual = jnp.jit(jnp.value_and_grad(lambda *xy: loss(*xy), (0, 1)))(x, y)
    monkeypatch.setattr(updates, "rewrite_updates", lambda values, *_: (list(values), False))
    plain = jnp.jit(jnp.value_and_grad(lambda *xy: loss(*xy), (0, 1)))(x, y)
    np.testing.assert_allclose(actual[0], plain[0], rtol=1e-6)
    for a, b in zip(actual[1], plain[1], strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


def steps_of(f, *xs):
    return plan_of(f, *xs).steps


X, Y = np.random.default_rng(0).normal(size=(2, 12, 12)).astype("f4")


def test_a_part_that_combines_is_read_and_written_by_one_kernel():
    f = lambda x, y: x.at[1:-1, 1:-1].add(y[2:, 1:-1] - y[:-2, 1:-1])  # noqa: E731
    (step,) = steps_of(f, X, Y)
    assert isinstance(step, KernelStep)
    ((update, array, *_),) = step.updated_slots
    assert [slot for slot, _ in step.pointers].count(update) == 1
    assert array not in [slot for slot, _ in step.pointers]
    expected = X.copy()
    expected[1:-1, 1:-1] += Y[2:, 1:-1] - Y[:-2, 1:-1]
    np.testing.assert_array_equal(jnp.jit(f)(X, Y), expected)


def test_later_updates_override_earlier_ones():
    def f(x, m=jnp, write=by_accnp):
        y = write(m.zeros((12, 12), "f4"), np.s_[:7, :7], x[:7, :7] * 2, "set")
        y = write(y, np.s_[5:, 5:], x[5:, 5:] + 1, "set")
        return write(y, np.s_[6], 3.0, "set")

    (step,) = steps_of(f, X)
    assert step.allocs
    assert not step.updated_slots
    np.testing.assert_array_equal(jnp.jit(f)(X), f(X, np, by_numpy))


def test_each_element_of_a_new_array_is_written_once():
    def f(x):
        return jnp.zeros(X.size).at[:30].set(x[:30] * 2).at[30:].set(x[30:] + 1)

    (step,) = steps_of(f, X.reshape(-1))
    assert 0 <= step.moved - 2 * X.nbytes < 16  # read once, written once; two numbers


def test_too_many_parts_are_separate_steps():
    def f(x):
        y = jnp.zeros((2, 2, 2, 2, 5, 5, 5, 5))
        return y.at[..., 1:-1, 1:-1, 1:-1, 1:-1].set(x[..., :3, :3, :3, :3] * 2)

    x = np.random.default_rng(0).normal(size=(2, 2, 2, 2, 5, 5, 5, 5)).astype("f4")
    expected = np.zeros_like(x)
    expected[..., 1:-1, 1:-1, 1:-1, 1:-1] = x[..., :3, :3, :3, :3] * 2
    np.testing.assert_array_equal(jnp.jit(f)(x), expected)


def test_a_new_array_that_is_read_elsewhere_is_stored():
    def f(x):
        y = jnp.zeros((12, 12)).at[1:-1].set(x[1:-1] * 2)
        return y.at[0].set(y[1] + y[2]), y

    actual = jnp.jit(f)(X)
    y = np.zeros_like(X)
    y[1:-1] = X[1:-1] * 2
    np.testing.assert_array_equal(actual[1], y)
    y[0] = y[1] + y[2]
    np.testing.assert_array_equal(actual[0], y)


def test_scatters_of_grids_keep_their_meaning():
    """Starts that literals say; those that write a place twice, or outside, stay scatters."""
    x, u = jnp.arange(12.0), jnp.asarray([1.0, 2.0, 4.0])
    dims = lax.ScatterDimensionNumbers((), (0,), (0,))
    for starts in (lambda: 3 * jnp.arange(3), lambda: 0 * jnp.arange(3), lambda: 6 * jnp.arange(3),
                   lambda: 9 - 2 * jnp.arange(3), lambda: jnp.arange(3) - 1):  # fmt: skip
        for mode in ("clip", "drop"):

            def f(x, u, starts=starts, mode=mode):
                at = starts()[:, None]
                return lax.scatter_add(x, at, u * 2, dims, mode=mode)

            expected = np.arange(12.0)
            at = np.asarray(starts())
            inside = (at >= 0) & (at < 12)
            at = np.clip(at, 0, 11)
            keep = slice(None) if mode == "clip" else inside
            np.add.at(expected, at[keep], 2 * np.asarray(u)[keep])
            np.testing.assert_array_equal(jnp.jit(f)(x, u), expected)
            np.testing.assert_array_equal(f(x, u), expected)


FOLDED = {
    "long rows": ((40, 700), 1), "short rows": ((40, 3), 1), "rows of one": ((40, 1), 1),
    "columns": ((700, 40), 0), "short columns": ((3, 40), 0), "middle": ((6, 50, 7), 1),
    "outer and inner": ((5, 6, 30), (0, 2)), "all rows": ((4, 5, 60), (1, 2)),
}  # fmt: skip
WAYS = {
    "a row": np.s_[2, 1:-1], "a column": np.s_[1:-1, 3], "backwards": np.s_[4, -2:0:-1],
    "every other": np.s_[::2, 1],
}  # fmt: skip


@pytest.mark.parametrize("dtype", ["f4", "i4", "f2"])
@pytest.mark.parametrize("name", FOLDED)
def test_reductions_are_stored_where_they_are_written(name, dtype):
    shape, axes = FOLDED[name]
    x = np.random.default_rng(0).integers(0, 4, shape).astype(dtype)
    expected = np.sum(x + x, axes).astype(dtype)
    for how in ("set", "add", "max"):
        for k, key in enumerate(WAYS.values()):
            a = np.arange(expected.size * 12).reshape(-1, 12).astype(dtype) % 5
            rows = 2 * expected.size + 2
            a = np.resize(a, (rows, expected.size + 2) if k in (0, 2) else (expected.size + 2, 12))
            a = np.resize(a, (2 * expected.size, 12)) if k == 3 else a

            def f(a, x, m=jnp, write=by_accnp, key=key, how=how):
                value = m.sum(x + x, axes).reshape(-1).astype(dtype)
                return write(a, key, value + 1, how)

            plain = f(a, x, np, by_numpy)
            np.testing.assert_array_equal(jnp.jit(f)(a, x), plain)
            np.testing.assert_array_equal(jnp.jit(f, donate_argnums=0)(jnp.asarray(a), x), plain)
            np.testing.assert_array_equal(f(jnp.asarray(a), jnp.asarray(x)), plain)


def test_a_reduction_into_a_column_is_one_kernel():
    f = lambda a, x: a.at[:, 0].set((x * x).sum(1))  # noqa: E731
    (step,) = steps_of(f, X, Y)
    assert [over for *_, over in step.updated_slots] == [False]
    g = lambda a: a.at[:, 0].set((a * a).sum(1))  # noqa: E731
    expected = X.copy()
    expected[:, 0] = (X * X).sum(1)
    np.testing.assert_allclose(jnp.jit(g, donate_argnums=0)(jnp.asarray(X)), expected, rtol=1e-6)
    np.testing.assert_allclose(g(jnp.asarray(X)), expected, rtol=1e-6)
