"""Updates are made in place if the old array is not referenced any more, and never otherwise."""

import random
import weakref

import numpy as np
import pytest

import accnp
import accnp as jnp
from accnp import engine
from accnp.array_type import wrap
from accnp.engine import execute
from accnp.ir.node import record
from accnp.ir.op import Op
from accnp.runtime import buffer as pool


def place(x):
    """Return the address of an array's values."""
    return engine.ready(x._node).ptr


def fresh(n=10):
    return jnp.asarray(np.arange(n, dtype=np.float32)).block_until_ready()


@pytest.fixture
def allocated(monkeypatch):
    """Record the sizes of the buffers taken from the pool."""
    sizes = []
    empty = pool.empty

    def counted(nbytes, *args):
        sizes.append(nbytes)
        return empty(nbytes, *args)

    monkeypatch.setattr(pool, "empty", counted)
    return sizes


UPDATES = {
    "set": lambda x: x.at[3].set(1.0),
    "set of a slice": lambda x: x.at[2:5].set(7.0),
    "add at an array": lambda x: x.at[jnp.asarray([1, 1, 4])].add(2.0),
    "minimum at a traced place": lambda x: x.at[jnp.asarray(3)].min(-1.0),
    "dynamic_update_slice": lambda x: jnp.lax.dynamic_update_slice(x, jnp.zeros(2), (4,)),
    "two, one after the other": lambda x: x.at[0].set(3.0).at[1].multiply(2.0),
}


@pytest.mark.parametrize("name", UPDATES)
def test_a_dead_operand_is_not_copied(name, allocated):
    x = fresh(1000)
    expected = np.asarray(UPDATES[name](x))
    at = place(x)
    del allocated[:]
    x = UPDATES[name](x)
    assert place(x) == at
    assert not [n for n in allocated if n >= 4000]
    np.testing.assert_array_equal(np.asarray(x), expected)


def test_a_loop_copies_nothing(allocated):
    x = fresh(100_000)
    del allocated[:]
    for i in range(200):
        x = x.at[i].set(0.0)
    x.block_until_ready()
    assert not [n for n in allocated if n >= 400_000]
    np.testing.assert_array_equal(np.asarray(x[:202]), [0] * 200 + [200, 201])


def test_large_updates_do_not_pile_up(allocated):
    n = 1 << 20
    x = jnp.zeros(2 * n).block_until_ready()
    del allocated[:]
    references = []
    for k in range(10):
        v = jnp.asarray(np.full(n, k, np.float32))
        references.append(weakref.ref(v._node))
        x = x.at[k : k + n].add(v)
        del v
        assert sum(r() is not None for r in references) <= 2
    x.block_until_ready()
    assert [size for size in allocated if size >= 4 * n] == [4 * n] * 10  # the values
    assert float(x[n - 1]) == 45


HOLDERS = {
    "another name": lambda x: x,
    "a NumPy view": np.asarray,
    "a view": lambda x: x[2:8],
    "a pending result": lambda x: x + 1,
    "a pending view of a pending view": lambda x: x.reshape(2, 5).T,
    "one of several results": lambda x: jnp.lax.top_k(x, 3)[0],
    "a memoryview": lambda x: memoryview(np.asarray(x)),
    "a DLPack export": np.from_dlpack,
    "a jitted identity": jnp.jit(lambda x: x),
    "a tree": lambda x: {"a": [x]},
    "a closure": lambda x: jnp.jit(lambda y: x + y),
    "a linearization": lambda x: jnp.linearize(lambda v: v * v, x)[1],
}


@pytest.mark.parametrize("name", HOLDERS)
def test_referenced_operand_is_kept(name):
    x = fresh()
    referenced = HOLDERS[name](x)
    x = x.at[3].set(100.0)
    np.testing.assert_array_equal(np.asarray(x), [0, 1, 2, 100, 4, 5, 6, 7, 8, 9])
    expected = HOLDERS[name](fresh())
    ones = jnp.ones(10)
    show = (lambda f: f(ones)) if callable(expected) else (lambda v: v)
    actual, expected = (
        show(v["a"][0] if isinstance(v, dict) else v) for v in (referenced, expected)
    )
    np.testing.assert_array_equal(np.asarray(actual), np.asarray(expected))


def test_memory_of_the_user_is_never_written_to():
    a = np.arange(10, dtype=np.float32)
    x = jnp.from_dlpack(a)
    x = x.at[3].set(100.0)
    assert float(x[3]) == 100
    assert a[3] == 3


def test_derivatives_keep_what_they_need():
    def f(x):
        y = x * 2
        y = y.at[1].set(0.0)
        y = y.at[2].multiply(3.0)
        return (y * y).sum()

    x = fresh(4)
    np.testing.assert_array_equal(np.asarray(jnp.grad(f)(x)), [0, 0, 144, 24])
    np.testing.assert_array_equal(np.asarray(x), [0, 1, 2, 3])


def test_interrupted_update_is_not_read_again(monkeypatch):
    x = fresh()
    x = x.at[3].add(1.0)
    run = execute.run

    def interrupted(*args):
        run(*args)
        raise KeyboardInterrupt

    monkeypatch.setattr(execute, "run", interrupted)
    with pytest.raises(KeyboardInterrupt):
        x.block_until_ready()
    monkeypatch.undo()
    with pytest.raises(RuntimeError, match="Array has been deleted"):
        x.block_until_ready()


def update(x):
    return x.at[3].add(100.0)


def test_a_donated_argument_is_updated_in_place():
    f = jnp.jit(update, donate_argnums=0)
    x = f(fresh())
    at = place(x)
    y = f(x)
    assert place(y) == at
    assert x.is_deleted()
    np.testing.assert_array_equal(np.asarray(y), [0, 1, 2, 203, 4, 5, 6, 7, 8, 9])


def test_donation_does_not_change_visible_arrays():
    f = jnp.jit(lambda x, y: (update(x), y * 2), donate_argnums=0)
    x = fresh()
    view = np.asarray(x)
    actual, _ = f(x, x + 0)
    assert float(actual[3]) == 103
    assert view[3] == 3
    x = fresh()
    actual, twice = f(x, jnp.array(x))  # one buffer for both
    assert float(actual[3]) == 103
    assert float(twice[3]) == 6
    x = fresh()
    actual = jnp.jit(update)(x)
    assert float(actual[3]) == 103
    assert float(x[3]) == 3


def test_donated_scalar_does_not_change_equal_scalars():
    f = jnp.jit(lambda x: x.at[()].add(7.0), donate_argnums=0)
    x = jnp.asarray(31.5)
    assert float(f(x)) == 38.5
    assert x.is_deleted()
    assert float(jnp.asarray(31.5)) == 31.5
    y = jnp.asarray(32.5)
    y.delete()
    assert y.is_deleted()
    assert float(jnp.asarray(32.5)) == 32.5


def _broken(x):
    raise ArithmeticError("this operation never works")


BROKEN = Op("broken_update_for_tests", "opaque", lambda x: x, numpy=_broken)


def test_an_update_beside_an_operation_that_fails_is_not_made_twice():
    x = fresh(4)
    x = x.at[0].add(5.0)
    y = wrap(record(BROKEN, (x._node,)))
    for _ in range(2):
        with pytest.raises(ArithmeticError):
            y.block_until_ready()
    np.testing.assert_array_equal(np.asarray(x), [5, 1, 2, 3])


LARGE = 12 * 22_000  # numbers that take more than a MB: maps, too, write over such operands


@pytest.mark.parametrize(
    ("seed", "n"), [*[(i, 12) for i in range(30)], *[(i, LARGE) for i in range(12)]]
)
def test_random_programs(seed, n):
    """Random programs bind and delete names; every referenced array keeps its values."""
    rng = random.Random(seed)
    names: list[tuple] = []  # an array, what it must be
    views: list[tuple] = []  # a NumPy view, what it must be

    def add(x, value):
        names.append((x, np.array(value, order="C")))

    add(fresh(n), np.arange(n, dtype=np.float32))
    for _ in range(60):
        k = rng.randrange(len(names))
        x, value = names[k]
        how = rng.randrange(11)
        i, v = rng.randrange(12), float(rng.randrange(9))
        if how <= 3:
            new = np.array(value, order="C")
            if how % 2:
                new.reshape(-1)[i] = v
                y = x.reshape(-1).at[i].set(v).reshape(value.shape)
            else:
                new.reshape(-1)[i // 2 :] += v
                y = x.reshape(-1).at[i // 2 :].add(v).reshape(value.shape)
            if rng.random() < 0.7:  # the old name is gone
                names[k] = (y, new)
            else:
                add(y, new)
            del y
        elif how == 4:
            shape = rng.choice([(n,), (3, n // 3), (2, n // 2)])
            add(x.reshape(shape), value.reshape(shape))
        elif how == 5:
            add(x.T * 1, value.T)
        elif how == 6:
            views.append((np.asarray(x), value))
        elif how == 7:
            x.block_until_ready()
        elif how == 8:
            add(x + 1, value + 1)
        elif how == 9:
            names[k] = (x + 1, value + 1)
        elif len(names) > 1:
            del names[k]
        del x
    for actual, expected in (*names, *views):
        np.testing.assert_array_equal(np.asarray(actual), expected)


PARTS = {
    "element of a column": lambda f: f.at[-1, :, 3].set(f[-2, :, 3]),
    "row": lambda f: f.at[0].set(f[1]),
    "row that is added": lambda f: f.at[0].add(f[1]),
    "row of the same place": lambda f: f.at[1].set(f[1]),
    "column": lambda f: f.at[:, 0].set(f[:, 1]),
    "backwards": lambda f: f.at[0].set(f[1, ::-1]),
    "slice": lambda f: jnp.lax.dynamic_update_slice(f, f[:1], (2, 0, 0)),
    "more than half": lambda f: f.at[1:].set(f[:-1]),
}


@pytest.mark.parametrize("name", PARTS)
def test_only_the_overlapping_slice_of_the_operand_is_copied(name):
    """In a loop, a step copies only the slice that it writes and not the whole array."""
    update = PARTS[name]
    x = np.arange(16 * 6 * 9, dtype=np.float32).reshape(16, 6, 9)
    expected = x
    for _ in range(3):
        expected = np.asarray(update(jnp.asarray(expected)))
    loop = jnp.jit(lambda x: jnp.lax.fori_loop(0, 3, lambda i, f: update(f), x))
    np.testing.assert_array_equal(np.asarray(loop(x)), expected)
    text = str(jnp.inspect(lambda x: jnp.lax.fori_loop(0, 3, lambda i, f: update(f), x))(x))
    kernel = text[text.index("def kernel(") :]
    inside = kernel[kernel.index(" in range(") :]
    assert ("move(" in inside) == (name == "more than half")


EXPRESSIONS = {
    "set": lambda m, x, y, write: write(x, m.s_[1:-1], y[2:] * 2 + y[:-2], "set"),
    "of itself": lambda m, x, y, write: write(x, m.s_[1:-1], x[1:-1] * 2 + y[1:-1], "set"),
    "add": lambda m, x, y, write: write(x, m.s_[1:-1], y[2:] - y[:-2], "add"),
    "backwards": lambda m, x, y, write: write(x, m.s_[::-1], y * 2, "set"),
    "every other": lambda m, x, y, write: write(x, m.s_[::2], y[1::2] + x[::2], "multiply"),
    "element": lambda m, x, y, write: write(x, 3, y[5] * 2 + 1, "set"),
    "two parts": lambda m, x, y, write: write(
        write(x, m.s_[:9], y[:9] * 2, "set"), m.s_[9:], y[9:] + 1, "set"
    ),
}


def written(a, key, value, how):
    """Return the result of NumPy, or of accnp."""
    if not isinstance(a, np.ndarray):
        return getattr(a.at[key], how)(value)
    a = a.copy()
    a[key] = {"set": value, "add": a[key] + value, "multiply": a[key] * value}[how]
    return a


@pytest.mark.parametrize("name", EXPRESSIONS)
def test_kernels_store_into_dead_operands(name, allocated):
    """Without `jit`, a kernel writes its result directly to its destination: no temporary and no
    copy."""
    f, n = EXPRESSIONS[name], 1000
    x, y = fresh(n), fresh(n) + 1
    expected = f(np, np.asarray(x), np.asarray(y), written)
    y.block_until_ready()
    operand = x + 0  # for plans, kernels and literals
    np.testing.assert_array_equal(f(np, operand, y, written), expected)
    del allocated[:]
    at, launches = place(x), accnp.counters()["launches"]
    x = f(np, x, y, written)
    x.block_until_ready()
    if name != "element":
        assert accnp.counters()["launches"] - launches == 1 + (name == "two parts")
    assert place(x) == at
    assert not [size for size in allocated if size >= 4 * n // 2]
    np.testing.assert_array_equal(np.asarray(x), expected)


@pytest.mark.parametrize("name", EXPRESSIONS)
@pytest.mark.parametrize("holder", HOLDERS)
def test_referenced_operand_of_expression_is_kept(name, holder):
    f = EXPRESSIONS[name]
    x, y = fresh(), fresh() + 1
    expected = f(np, np.asarray(x), np.asarray(y), written)
    referenced = HOLDERS[holder](x)
    x = f(np, x, y, written)
    np.testing.assert_array_equal(np.asarray(x), expected)
    ones = jnp.ones(10)
    show = (lambda g: g(ones)) if callable(referenced) else (lambda v: v)
    actual, expected = (
        show(v["a"][0] if isinstance(v, dict) else v)
        for v in (referenced, HOLDERS[holder](fresh()))
    )
    np.testing.assert_array_equal(np.asarray(actual), np.asarray(expected))


def test_other_overlaps_get_a_temporary_of_the_part(allocated):
    x = fresh(1000)
    expected = np.arange(1000, dtype="f4")
    expected[1:-1] = expected[:-2] + expected[2:]
    x.at[1:-1].set(x[:-2] + x[2:]).block_until_ready()
    del allocated[:]
    at = place(x)
    x = x.at[1:-1].set(x[:-2] + x[2:])
    assert place(x) == at
    (size,) = [size for size in allocated if size >= 2000]
    assert 4 * 998 <= size < 4100
    np.testing.assert_array_equal(np.asarray(x), expected)


def test_few_different_indices_get_separate_plans():
    """A loop over many indices does not make a plan for each."""
    x, y = fresh(200), jnp.ones(10)
    expected = np.arange(200, dtype="f4")
    plans = engine.counters["plans"]
    for k in range(150):
        x = x.at[k : k + 10].set(jnp.sin(y) + x[:1])
        expected[k : k + 10] = np.asarray(jnp.sin(y)) + expected[0]
    np.testing.assert_allclose(np.asarray(x), expected, rtol=1e-6)
    assert engine.counters["plans"] - plans <= engine.MAX_PLACES + 4


def test_equivalent_indices_share_a_plan():
    x = fresh(200)
    x.at[0].set(1.0).block_until_ready()
    plans = engine.counters["plans"]
    for k in range(20):
        x = x.at[k].set(1.0)
        x.block_until_ready()
    assert engine.counters["plans"] - plans <= 1
    np.testing.assert_array_equal(np.asarray(x), [1.0] * 20 + list(range(20, 200)))


def test_an_expression_that_is_interrupted_leaves_no_half_array(monkeypatch):
    x, y = fresh(), fresh()
    x = x.at[1:-1].add(y[2:] * 2)
    run = execute.run

    def interrupted(*args):
        run(*args)
        raise KeyboardInterrupt

    monkeypatch.setattr(execute, "run", interrupted)
    with pytest.raises(KeyboardInterrupt):
        x.block_until_ready()
    monkeypatch.undo()
    with pytest.raises(RuntimeError, match="Array has been deleted"):
        x.block_until_ready()
    np.testing.assert_array_equal(np.asarray(y), np.arange(10))


def test_an_expression_beside_an_operation_that_fails_leaves_its_operands():
    x, y = fresh(4), fresh(4)
    broken = wrap(record(BROKEN, (y._node,)))
    z = x.at[1:3].set(broken[:2] * 2)
    view = np.asarray(x)
    del x
    for _ in range(2):
        with pytest.raises(ArithmeticError):
            z.block_until_ready()
    np.testing.assert_array_equal(view, [0, 1, 2, 3])


@pytest.mark.parametrize(
    ("dtype", "start", "step"), [("uint8", 0, 100), ("uint8", 254, 1), ("uint16", 0, 30000)]
)
@pytest.mark.parametrize("convert", [False, True])
def test_indices_wrap_in_their_dtype(dtype, start, step, convert):
    def places(np_):
        if convert:
            return (np_.arange(4) * step + start).astype(dtype)
        return np_.arange(4, dtype=dtype) * np_.asarray(step, dtype) + np_.asarray(start, dtype)

    def update(y):
        return jnp.zeros(90_000).at[places(jnp)].set(y * 2)

    y = np.arange(4.0, dtype=np.float32) + 1
    expected = np.zeros(90_000, np.float32)
    expected[places(np)] = y * 2
    for f in (update, accnp.jit(update)):
        assert np.array_equal(f(jnp.asarray(y)), expected)


def test_an_array_that_another_kernel_reads_before_is_updated_in_place():
    def f(x, y):
        return x.at[:100].set(jnp.sin(y[:100]) * 2), (x * x).sum()

    x = jnp.arange(200_000.0) * 1
    total = float((x * x).sum())
    place = x.block_until_ready().unsafe_buffer_pointer()
    updated, actual = accnp.jit(f, donate_argnums=0)(x, jnp.ones(1000))
    assert updated.block_until_ready().unsafe_buffer_pointer() == place
    assert float(actual) == pytest.approx(total, rel=1e-5)
