"""Calls of functions that `jit` has already traced: the cached path returns what the first call
does.
"""

import collections
import functools

import jax
import numpy as np
import pytest

import accnp
import accnp.numpy as jnp

Point = collections.namedtuple("Point", "x y")


def total(tree):
    leaves = accnp.tree_util.tree_leaves(tree)
    return {"sum": sum(x.sum() for x in leaves), "parts": [x * 2 for x in leaves]}


X = np.arange(3, dtype=np.float32)
ARGUMENTS = {
    "one array": (X,),
    "nested containers": ({"b": [X, X + 1], "a": (X, None, Point(X, {"z": X}))},),
    "nothing but None": (None, X),
    "Python numbers": ([2.5, 3, True, X],),
    "an ordered dictionary": (collections.OrderedDict(z=X, a=X + 1),),
    "empty containers": ([], {}, X),
}


@pytest.mark.parametrize("name", ARGUMENTS)
@pytest.mark.parametrize("by_name", [False, True])
def test_results_of_the_second_call(name, by_name):
    def ours(*args, **kwargs):
        return total((args, sorted(kwargs.items()) and list(kwargs.values())))

    f = accnp.jit(ours)
    as_ours = accnp.tree_util.tree_map(
        lambda x: jnp.asarray(x) if isinstance(x, np.ndarray) else x, ARGUMENTS[name]
    )
    args = () if by_name else as_ours
    kwargs = {f"k{i}": x for i, x in enumerate(as_ours)} if by_name else {}
    traces = accnp.counters()["traces"]
    first, second = f(*args, **kwargs), f(*args, **kwargs)
    assert accnp.counters()["traces"] == traces + 1
    expected = jax.jit(
        lambda leaves: {"sum": sum(x.sum() for x in leaves), "parts": [x * 2 for x in leaves]}
    )([jax.numpy.asarray(x) for x in accnp.tree_util.tree_leaves((args, kwargs))])
    for result in (first, second):
        assert accnp.tree_util.tree_structure(result) == accnp.tree_util.tree_structure(first)
        leaves = accnp.tree_util.tree_leaves(result)
        for a, w in zip(leaves, jax.tree_util.tree_leaves(expected), strict=True):
            np.testing.assert_array_equal(np.asarray(a), np.asarray(w))


def test_tree_structures_are_part_of_the_cache_key():
    f = accnp.jit(lambda tree: accnp.tree_util.tree_map(lambda x: x + 1, tree))
    a, b = jnp.zeros(2), jnp.ones(2)
    trees = [
        [a, b],
        (a, b),
        {"a": a, "b": b},
        {"a": a, "c": b},
        Point(a, b),
        [a, None, b],
        [[a], b],
    ]
    for _ in range(2):
        for tree in trees:
            result = f(tree)
            structure = accnp.tree_util.tree_structure
            assert structure(result) == structure(tree)
            np.testing.assert_array_equal(np.asarray(accnp.tree_util.tree_leaves(result)[1]), 2)


def test_python_numbers_are_passed_on_every_call():
    f = accnp.jit(lambda x, s: x * s)
    x = jnp.ones(2)
    for s in (2.0, 3.0, 4.0):
        np.testing.assert_array_equal(np.asarray(f(x, s)), s)
    # Another type is another program: a weak int32 keeps the dtype of x, a strong float64 not.
    assert f(x, 2).dtype == np.float32
    assert f(jnp.ones(2, jnp.int32), 2).dtype == np.int32
    assert f(jnp.ones(2, jnp.int32), True).dtype == np.int32


def test_numpy_arguments_are_read_at_the_call():
    f = accnp.jit(lambda x: x + 1)
    x = np.zeros(3, np.float32)
    results = []
    for i in range(3):
        x[:] = i
        results.append(f(x))
    x[:] = 99
    for i, y in enumerate(results):
        np.testing.assert_array_equal(np.asarray(y), i + 1)


def test_pending_arguments():
    f = accnp.jit(lambda tree: tree["a"] - tree["b"])
    for i in range(3):
        tree = {"a": jnp.arange(4.0) * i, "b": jnp.exp(jnp.zeros(4))}
        np.testing.assert_array_equal(np.asarray(f(tree)), np.arange(4.0) * i - 1)


def test_disable_jit_applies_to_cached_functions():
    seen = []

    def f(x):
        seen.append(isinstance(x, accnp.Array) and float(x) if accnp.config.jax_disable_jit else 0)
        return x + 1

    jitted = accnp.jit(f)
    x = jnp.float32(3)
    jitted(x)
    jitted(x)
    with accnp.disable_jit():
        assert float(jitted(x)) == 4.0
    assert seen == [0, 3.0]


def test_deleted_arguments_are_refused_at_every_call():
    f = accnp.jit(lambda t: t[0] + 1)
    f([jnp.ones(3)])
    x = jnp.ones(3)
    x.delete()
    with pytest.raises(RuntimeError, match="deleted"):
        f([x])


def test_cached_functions_under_grad_and_vmap():
    f = accnp.jit(lambda tree: (tree["x"] ** 2).sum() * tree["s"])
    tree = {"x": jnp.arange(3.0), "s": jnp.float32(2)}
    f(tree)
    f(tree)
    gradient = accnp.grad(f)(tree)
    np.testing.assert_array_equal(np.asarray(gradient["x"]), [0, 4, 8])
    batch = accnp.tree_util.tree_map(lambda v: jnp.stack([v, v + 1]), tree)
    np.testing.assert_array_equal(np.asarray(accnp.vmap(f)(batch)), [10, 42])


def test_static_cache_key_includes_type_and_position():
    seen = []

    @functools.partial(accnp.jit, static_argnums=(0, 2), static_argnames=("mode",))
    def f(a, x, b=0, *, mode="plain"):
        seen.append((a, b, mode))
        return x * a + b if mode == "plain" else x

    x = jnp.ones(2)
    calls = [
        ((1, x), {}), ((1.0, x), {}), ((True, x), {}), ((1, x, 2), {}), ((2, x, 1), {}),
        ((1, x), {"b": 2}), ((1, x), {"mode": "other"}), ((1, x), {"mode": "plain", "b": 2}),
        ((1, x), {"b": 2, "mode": "plain"}),
    ]  # fmt: skip
    results = [[f(*args, **kwargs) for args, kwargs in calls] for _ in range(3)]
    assert len(seen) == len(calls) - 1  # the order of names makes no program
    for row in results:
        assert [y.dtype.name for y in row] == ["float32"] * len(calls)
        np.testing.assert_array_equal([float(y[0]) for y in row], [1, 1, 1, 3, 3, 3, 1, 3, 3])


def test_static_arguments_counted_from_the_end():
    f = accnp.jit(lambda *args: args[0] * args[-1], static_argnums=-1)
    for _ in range(3):
        np.testing.assert_array_equal(np.asarray(f(jnp.ones(2), 3)), 3)
        np.testing.assert_array_equal(np.asarray(f(jnp.ones(2), jnp.ones(2), 4)), 4)


def test_unhashable_static_values_are_refused_at_every_call():
    f = accnp.jit(lambda x, s: x, static_argnums=1)
    f(jnp.ones(2), (1, 2))
    for _ in range(2):
        with pytest.raises(ValueError, match="hashable"):
            f(jnp.ones(2), [1, 2])


def test_changed_static_objects_are_refused_at_every_call():
    class Model:
        def __init__(self):
            self.scale = 2.0

        @functools.partial(accnp.jit, static_argnums=0)
        def run(self, x):
            return x * self.scale

    model = Model()
    for _ in range(3):
        np.testing.assert_array_equal(np.asarray(model.run(jnp.ones(2))), 2)
    model.scale = 3.0
    for _ in range(2):
        with pytest.raises(ValueError, match="scale was 2"):
            model.run(jnp.ones(2))


def test_closed_over_arrays_are_not_confused_with_arguments():
    x, y = np.arange(12, dtype="f4").reshape(4, 3), np.ones(3, "f4")
    places, scale = jnp.asarray([3, 1, 1]), jnp.asarray([2.0, 3.0, 4.0])
    f = accnp.jit(lambda a, b: (a[places] * scale + b, b - scale))
    a, b = jnp.asarray(x), jnp.asarray(y)
    for _ in range(40):  # from the 17th on in machine code
        first, second = f(a, b)
        assert (first == x[[3, 1, 1]] * [2, 3, 4] + 1).all()
        assert second.tolist() == [-1, -2, -3]
