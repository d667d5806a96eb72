"""The option `item_assignment`: `x[key] = values` has NumPy's effect on the array that `x` refers
to, in eager code and in traced functions. Other arrays, views and exported memory do not change.
"""

from __future__ import annotations

import copy
import operator
import pickle
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import accnp
from accnp import lax
from accnp.sharding import Mesh, NamedSharding, PartitionSpec

jnp: Any = accnp  # type checkers know that arrays are immutable by default
random: Any = accnp.random


@pytest.fixture(autouse=True)
def _enable_item_assignment() -> Iterator[None]:
    with jnp.item_assignment():
        yield


def floats(values: Any) -> np.ndarray:
    return np.array(values, np.float32)


def integers(values: Any) -> np.ndarray:
    return np.array(values, np.int32)


def check(x: Any, expected: Any) -> None:
    assert type(x) is accnp.Array
    assert x.dtype == np.asarray(expected).dtype
    np.testing.assert_array_equal(np.asarray(x), expected)


MASK = np.array([[True, False, True, False], [False, False, True, True], [False] * 4])
ASSIGNMENTS: list[tuple[Any, Any]] = [
    (0, 1.5),
    ((1, 2), -3),
    ((-1, -1), np.float64(2.5)),
    (slice(1, None), 7),
    ((slice(None), slice(None, None, 2)), np.arange(6.0).reshape(3, 2)),
    ((slice(None), 1), [1, 2, 3]),
    (slice(None, None, -1), np.arange(12.0).reshape(3, 4)),
    (..., 0),
    ((..., 1), np.arange(3)),
    (slice(None), np.arange(4)),
    ((None, 0), np.ones((1, 4))),
    (1, np.full((1, 1, 4), 2.0)),  # leading axes of length 1
    (MASK, 9),
    (MASK, np.float32(9)),
    (MASK, np.arange(4)),
    (MASK, np.arange(1)),
    (MASK[:, 0], np.arange(4)),
    (MASK[:, 0], np.arange(4)[None, None]),
    (~MASK[:, 0], np.arange(8).reshape(2, 4)),
    ((MASK,), -1),
    (np.zeros((3, 4), bool), np.arange(1)),
    ((slice(None), MASK[0]), 5),
    ([0, 2], [[1], [2]]),
    (([0, 1], [1, 3]), [5, 6]),
    (np.array([2, 0]), 4),
    (True, 3),
    (False, 3),
    (slice(0, 0), np.ones((0, 4))),
]


@pytest.mark.parametrize(("key", "values"), ASSIGNMENTS, ids=lambda v: "")
@pytest.mark.parametrize("dtype", ["float32", "int32", "bool"])
def test_matches_numpy(key: Any, values: Any, dtype: str) -> None:
    expected = (np.arange(12).reshape(3, 4) % 5).astype(dtype)
    x = jnp.asarray(expected)
    traced = jnp.asarray(expected)
    expected[key] = values
    if isinstance(key, list):  # a list is no index in JAX
        key = np.array(key)
    x[key] = values
    check(x, expected)
    if dtype != "float32":
        return

    @jnp.jit
    def assign(x: Any) -> Any:
        x[key] = values
        return x

    check(assign(traced), expected)


@pytest.mark.parametrize(
    ("dtype", "values", "error"),
    [
        ("int8", 300, OverflowError),
        ("uint8", -1, OverflowError),
        ("int32", float("nan"), ValueError),
        ("int32", float("inf"), OverflowError),
        ("float32", 1j, TypeError),
        ("float32", [1.0, 2.0], ValueError),
        ("float32", np.ones((2, 1, 3)), ValueError),
        ("float32", "a", (TypeError, ValueError)),
        ("float32", None, (TypeError, ValueError)),
    ],
)
def test_raises_where_numpy_raises(dtype: str, values: Any, error: Any) -> None:
    expected, x = np.ones((2, 3), dtype), jnp.ones((2, 3), dtype)
    if values is not None:
        with pytest.raises(error):
            expected[0] = values
    with pytest.raises(error):
        x[0] = values
    check(x, expected)
    with pytest.raises((IndexError, TypeError)):
        x[0, 0, 0] = 1
    with pytest.warns(np.exceptions.ComplexWarning):
        x[0] = jnp.ones(3, "complex64")


def test_augmented() -> None:
    expected, x = np.arange(4), jnp.arange(4)
    y = x
    for z in (expected, x):
        z[1] += 5
        z[2:] *= 3
        z[[0, 0] if z is expected else np.array([0, 0])] -= 1  # once, as in NumPy
    check(x, expected.astype(np.int32))
    assert y is x
    y = x
    x += 1  # binds the name to a new array
    assert y is not x
    check(y, expected.astype(np.int32))


def test_names_and_copies() -> None:
    x = jnp.arange(4.0)
    name, alias, container = x, jnp.asarray(x), {"x": x}
    assert alias is name
    others = {
        "slice": x[1:], "whole": x[:], "ellipsis": x[...], "empty": x[()], "view": x.view(),
        "same dtype": x.view("float32"), "reshape": x.reshape(4), "ravel": x.ravel(), "T": x.T,
        "astype": x.astype("float32"), "copy": x.copy(), "array": jnp.array(x), "+": +x,
        "real": x.real, "copy.copy": copy.copy(x), "deepcopy": copy.deepcopy(x),
        "pickle": pickle.loads(pickle.dumps(x)), "device_put": jnp.device_put(x),
        "jit": jnp.jit(lambda v: v)(x), "atleast_1d": jnp.atleast_1d(x), "row": next(iter(x[None])),
    }  # fmt: skip
    for other in others.values():
        assert other is not x
    x[0] = 9
    assert name is alias is container["x"] is x
    check(x, floats([9, 1, 2, 3]))
    for what, other in others.items():
        np.testing.assert_array_equal(other, np.arange(4.0)[-other.size :], err_msg=what)
    view = x[:]
    view[1] = 8
    check(x, floats([9, 1, 2, 3]))


def test_exported_memory_does_not_change() -> None:
    x = jnp.arange(1024.0) * 2
    exported = [np.asarray(x), np.from_dlpack(x), np.frombuffer(x, "float32"), memoryview(x)]
    shared = np.arange(1024.0, dtype="float32")
    shared.flags.writeable = False
    adopted, imported = jnp.asarray(shared), jnp.from_dlpack(np.asarray(x))
    expected = np.arange(1024.0) * 2
    for i in range(3):
        x[i] = -1.0
        adopted[i] = -1.0
        imported[i] = -1.0
        x.block_until_ready(), adopted.block_until_ready(), imported.block_until_ready()
    for view in exported:
        np.testing.assert_array_equal(np.asarray(view), expected)
    np.testing.assert_array_equal(shared, np.arange(1024.0))
    expected[:3] = -1
    for array in (x, imported):
        np.testing.assert_array_equal(array, expected)
    source = np.ones(3, "float32")
    mine = jnp.asarray(source)
    mine[0] = 5
    np.testing.assert_array_equal(source, np.ones(3))


def test_an_update_reuses_the_buffer() -> None:
    x = jnp.zeros(1 << 16) + 1
    x.block_until_ready()
    address = x.unsafe_buffer_pointer()
    for i in range(5):
        x[i] = float(i)
        x.block_until_ready()
    assert x.unsafe_buffer_pointer() == address


def test_traced_functions() -> None:
    @jnp.jit
    def f(x: Any, i: Any, mask: Any) -> Any:
        table = jnp.asarray(np.arange(3.0, dtype="float32"))  # a constant of the trace
        table[1] = x[0]
        x[i] = 10.0
        x[mask] = -1.0
        x[0] += table[1]
        for k in range(2):
            x[k + 1] *= 2.0
        return x, table

    x = jnp.arange(5.0)
    for i in (3, 4):  # the second call uses the trace
        y, table = f(x, i, x > 3)
        expected = np.arange(5.0, dtype="float32")
        expected[i] = 10
        expected[np.arange(5) > 3] = -1
        expected[1:3] *= 2
        check(y, expected)
        check(table, floats([0, 0, 2]))
    check(x, np.arange(5.0, dtype="float32"))  # arguments of compiled calls do not change


def test_vmap() -> None:
    def f(x: Any, i: Any) -> Any:
        zeros = jnp.asarray(np.zeros(3, "float32"))
        zeros[i] = x[0]
        x[0] = 7.0
        return x, zeros

    x = jnp.arange(6.0).reshape(2, 3)
    changed, zeros = jnp.vmap(f)(x, jnp.array([2, 0]))
    check(changed, floats([[7, 1, 2], [7, 4, 5]]))
    check(zeros, floats([[0, 0, 0], [3, 0, 0]]))
    check(x, np.arange(6.0, dtype="float32").reshape(2, 3))

    def unbatched(x: Any) -> Any:
        y = jnp.zeros(2)
        y[0] = 1.0
        return y

    check(jnp.vmap(unbatched, out_axes=None)(x), floats([1, 0]))


def assign_items(x: Any) -> Any:
    y = x * 1
    y[0] = x[1] * x[2]
    y[1:] *= 2.0
    x[2] = 0.5
    return (y * x).sum()


def update_functionally(x: Any) -> Any:
    y = x.at[0].set(x[1] * x[2])
    y = y.at[1:].multiply(2.0)
    return (y * x.at[2].set(0.5)).sum()


def test_derivatives() -> None:
    x = jnp.arange(1.0, 5.0)
    for transform in (
        jnp.grad,
        jnp.jacrev,
        jnp.jacfwd,
        jnp.hessian,
        lambda f: jnp.grad(jnp.jit(f)),
        lambda f: jnp.jit(jnp.grad(f)),
        lambda f: jnp.grad(jnp.checkpoint(f)),
        lambda f: lambda x: jnp.jvp(f, (x,), (x,)),
        lambda f: lambda x: jnp.vjp(f, x)[1](1.0),
        lambda f: lambda x: jnp.linearize(f, x)[1](x),
        lambda f: lambda x: jnp.vmap(jnp.grad(f))(jnp.stack([x, 2 * x])),
    ):
        actual, expected = transform(assign_items)(x), transform(update_functionally)(x)
        jnp.tree.map(np.testing.assert_allclose, actual, expected)
    check(x, np.arange(1.0, 5.0, dtype="float32"))


def test_rules_of_derivatives() -> None:
    def square(x: Any) -> Any:
        y = x * 1
        y[0] = 0.0
        return y

    f = jnp.custom_vjp(square)

    def backward(_: None, ct: Any) -> tuple[Any]:
        ct[0] = 3.0
        return (ct,)

    f.defvjp(lambda x: (square(x), None), backward)
    x = jnp.arange(3.0)
    check(jnp.grad(lambda x: f(x).sum())(x), floats([3, 1, 1]))
    check(jnp.jit(jnp.grad(lambda x: f(x).sum()))(x), floats([3, 1, 1]))
    g = jnp.custom_jvp(square)

    @g.defjvp
    def _(primals: Any, tangents: Any) -> Any:
        (t,) = tangents
        t[1] = 4.0
        return square(*primals), t

    y, t = jnp.jvp(g, (x,), (jnp.ones(3),))
    check(y, floats([0, 1, 2]))
    check(t, floats([1, 4, 1]))


def test_loops() -> None:
    def body(c: Any, v: Any) -> Any:
        c[0] += v
        row = c * v
        row[1] = -1.0
        return c, row

    x = jnp.zeros(2)
    for run in (lax.scan, jnp.jit(lax.scan, static_argnums=0)):
        c, rows = run(body, x, jnp.arange(3.0))
        check(c, floats([3, 0]))
        check(rows, floats([[0, -1], [1, -1], [6, -1]]))

    def fill(i: Any, c: Any) -> Any:
        c[i] = i * i
        return c

    check(lax.fori_loop(0, 4, fill, jnp.zeros(4, "int32")), integers([0, 1, 4, 9]))
    check(x, np.zeros(2, "float32"))

    def zeroed(v: Any) -> Any:
        v[0] = 0
        return v

    one = jnp.ones(2)
    check(lax.cond(True, zeroed, lambda v: v, one), floats([0, 1]))
    check(one, np.ones(2, "float32"))


def test_eager_loops_see_arrays_they_close_over() -> None:
    """The trace of a loop body is cached by the values that the body reads."""
    scale = jnp.ones(1)
    keys = random.split(random.key(0), 2)

    def body(c: Any, v: Any) -> Any:
        return c + scale[0] * v, random.key_data(keys[0])

    for expected in (3.0, 6.0, 6.0):
        c, data = lax.scan(body, 0.0, jnp.arange(3.0))
        assert float(c) == expected
        np.testing.assert_array_equal(data[0], random.key_data(keys[0]))
        scale[0] = 2.0
        keys[0] = random.key(5)


def test_compiled_functions_keep_what_they_closed_over() -> None:
    scale = jnp.ones(1)
    f = jnp.jit(lambda x: scale[0] * x)
    for _ in range(4):
        assert float(f(2.0)) == 2.0
        scale[0] = 5.0
    assert float(jnp.jit(lambda x: scale[0] * x)(2.0)) == 10.0
    g = jnp.jit(lambda s, x: s[0] * x)
    for value in (1.0, 2.0, 3.0, 4.0, 5.0):  # also by the dispatch cache
        scale[0] = value
        assert float(g(scale, 2.0)) == 2 * value


class Box:
    x: Any = None


@pytest.mark.parametrize("transform", ["jit", "vmap", "scan", "cond", "nested", "grad of jit"])
def test_assignment_to_closed_over_arrays_in_trace(transform: str) -> None:
    box = Box()
    box.x = jnp.zeros(3)
    before = box.x

    def f(v: Any) -> Any:
        box.x[0] = v
        return v * 1.0

    calls: dict[str, Any] = {
        "jit": lambda: jnp.jit(f)(1.0),
        "vmap": lambda: jnp.vmap(f)(jnp.arange(2.0)),
        "scan": lambda: lax.scan(lambda c, v: (c, f(v)), 0.0, jnp.arange(2.0)),
        "cond": lambda: jnp.jit(lambda v: lax.cond(v > 0, f, lambda v: v, v))(1.0),
        "nested": lambda: jnp.jit(lambda v: jnp.jit(f)(v))(1.0),
        "grad of jit": lambda: jnp.grad(jnp.jit(f))(1.0),
    }
    for _ in range(2):
        with pytest.raises(
            jnp.errors.UnexpectedTracerError,
            match=r"(?s)x\[\.\.\.\] = y: .*array from outside of it; got float32\[3\] on line .*"
            r"test_item_assignment.*\(f\)",
        ):
            calls[transform]()
        assert box.x is before
        check(before, np.zeros(3, "float32"))
    f(2.0)
    check(before, floats([2, 0, 0]))


def test_error_in_trace_restores_values() -> None:
    x = jnp.zeros(2)

    @jnp.jit
    def f(v: Any) -> Any:
        x[0] = v
        raise KeyError

    with pytest.raises(KeyError):
        f(1.0)
    check(x, np.zeros(2, "float32"))


def test_assignment_to_outer_values_in_derivative() -> None:
    outer = jnp.zeros(2)

    def f(v: Any) -> Any:
        outer[1] = v * 3
        return v * v

    assert float(jnp.grad(f)(2.0)) == 4
    check(outer, floats([0, 6]))
    check(outer + 1, floats([1, 7]))


def test_deleted_and_donated() -> None:
    x = jnp.ones(3)
    x.delete()
    with pytest.raises(RuntimeError, match="deleted"):
        x[0] = 1.0
    y = jnp.ones(3)
    jnp.jit(lambda v: v + 1, donate_argnums=0)(y)
    with pytest.raises(RuntimeError, match="donated"):
        y[0] = 1.0
    z = jnp.ones(3)
    other = z[:]
    z[0] = 2.0
    jnp.jit(lambda v: v + 1, donate_argnums=0)(z)
    check(other, np.ones(3, "float32"))


def test_placement_and_types() -> None:
    x = jnp.device_put(jnp.zeros(4), jnp.devices()[0])
    weak = jnp.asarray(2.0)
    mesh = Mesh(np.array(jnp.devices()[:1]), ("a",))
    spread = jnp.device_put(jnp.zeros(4), NamedSharding(mesh, PartitionSpec("a")))
    sharding = spread.sharding
    x[0], weak[()], spread[1] = 1.0, 3.0, 2.0
    assert x.committed
    assert weak.weak_type
    assert spread.sharding == sharding
    check(x, floats([1, 0, 0, 0]))
    check(spread, floats([0, 2, 0, 0]))
    with jnp.enable_x64():
        wide = jnp.zeros(3, "float64")
        wide[0] = jnp.float32(0.5)
        check(wide, np.array([0.5, 0, 0]))
    half = jnp.zeros(2, "bfloat16")
    half[1] = 1.0
    assert half.dtype == jnp.bfloat16


def test_keys() -> None:
    keys, key = random.split(random.key(0), 3), random.key(7)
    data, before, name = random.key_data(keys), keys[:], keys
    copied = np.asarray(data)
    keys[1] = key
    assert name is keys
    np.testing.assert_array_equal(random.key_data(keys)[1], random.key_data(key))
    np.testing.assert_array_equal(random.key_data(before), copied)
    np.testing.assert_array_equal(data, copied)
    raw = jnp.zeros((2, 2), "uint32")
    wrapped = random.wrap_key_data(raw)
    raw[0] = 5
    np.testing.assert_array_equal(random.key_data(wrapped), np.zeros((2, 2)))

    @jnp.jit
    def swap(keys: Any) -> Any:
        keys[0] = keys[2]
        return keys

    np.testing.assert_array_equal(random.key_data(swap(keys))[0], copied[2])
    outside = random.split(random.key(1), 2)

    @jnp.jit
    def leak(key: Any) -> Any:
        outside[0] = key

    with pytest.raises(jnp.errors.UnexpectedTracerError):
        leak(key)
    assert "Tracer" not in repr(outside)


def test_assignments_without_effect_warn() -> None:
    x = jnp.zeros((2, 2))
    with pytest.warns(
        UserWarning, match=r"no effect.*float32\[2\]; use one index, as in x\[i, j\]"
    ):
        x[0][1] = 1.0
    with pytest.warns(UserWarning, match="no effect"):
        x.T[0] = 1.0
    with pytest.warns(UserWarning, match="no effect"):
        x[0][1] += 1.0
    check(x, np.zeros((2, 2), "float32"))
    box, items = Box(), [x]
    box.x = x
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        box.x[0, 0] = 1.0
        items[0][0, 1] = 2.0
        operator.setitem(x, (1, 0), 3.0)
        (lambda v: v)(x)[1, 1] = 4.0
        (row := x[0])[0] = 9.0
    check(x, floats([[1, 2], [3, 4]]))
    check(row, floats([9, 2]))


IN_PLACE: dict[str, Callable[[Any, Any, Any], object]] = {
    "put": lambda n, x, i: n.put(x, i([0, 5, 7]), [1, 2.5]),
    "put wraps": lambda n, x, i: n.put(x, i([-1, 13]), 3, mode="wrap"),
    "put_along_axis": lambda n, x, i: n.put_along_axis(x, i([[1], [3], [0]]), -7.9, 1),
    "put_along_axis, flat": lambda n, x, i: n.put_along_axis(x, i([1, 3]), i([8, 9]), None),
    "fill_diagonal": lambda n, x, i: n.fill_diagonal(x, [5, 6]),
    "place": lambda n, x, i: n.place(x, x > 5, [1.5, 2.5]),
    "add.at": lambda n, x, i: n.add.at(x, i([0, 0, 2]), 1),
    "maximum.at": lambda n, x, i: n.maximum.at(x, (i([0, 0]), i([1, 2])), 40),
    "subtract.at": lambda n, x, i: n.subtract.at(x, (slice(1, None), 1), 2),
}


@pytest.mark.parametrize("dtype", ["int32", "float32", "float16"])
@pytest.mark.parametrize("name", IN_PLACE)
def test_inplace_numpy_functions_modify_their_argument(name: str, dtype: str) -> None:
    call = IN_PLACE[name]
    expected = np.arange(12).reshape(3, 4).astype(dtype)
    x, jitted = jnp.asarray(expected), jnp.asarray(expected)
    same, before = x, x[0]
    call(np, expected, np.array)

    @jnp.jit
    def changed(x: Any) -> Any:
        call(_ArrayFunctions, x, jnp.array)
        return x

    assert call(_ArrayFunctions, x, jnp.array) is x
    assert same is x
    check(x, expected)
    check(changed(jitted), expected)
    check(jitted, np.arange(12).reshape(3, 4).astype(dtype))  # the trace has an object of its own
    check(before, np.arange(4).astype(dtype))


class _ArrayFunctions:
    """The functions of accnp, with list arguments converted to arrays as NumPy does."""

    add, maximum, subtract = jnp.add, jnp.maximum, jnp.subtract

    put = staticmethod(lambda x, i, v, **how: jnp.put(x, i, jnp.array(v), **how))
    put_along_axis = staticmethod(jnp.put_along_axis)
    fill_diagonal = staticmethod(lambda x, v: jnp.fill_diagonal(x, jnp.array(v)))
    place = staticmethod(lambda x, mask, v: jnp.place(x, mask, jnp.array(v)))


@pytest.mark.parametrize("name", IN_PLACE)
def test_numpy_functions_modify_arrays(name: str) -> None:
    expected = np.arange(12.0, dtype="float32").reshape(3, 4)
    x = jnp.asarray(expected)
    IN_PLACE[name](np, expected, np.array)
    with jnp.numpy_dispatch():
        IN_PLACE[name](np, x, np.array)
        with jnp.item_assignment(False), pytest.raises((TypeError, ValueError), match="immutable"):
            IN_PLACE[name](np, x, np.array)
    check(x, expected)


def test_inplace_functions_raise_or_warn() -> None:
    x, keys = jnp.zeros((2, 2)), random.split(random.key(0), 3)
    copied = random.key_data(keys)
    jnp.put(keys, jnp.array([0]), keys[2])
    np.testing.assert_array_equal(random.key_data(keys)[0], copied[2])
    for call in (
        lambda: jnp.put(x[0], 1, 1.0),
        lambda: jnp.put_along_axis(x[0], jnp.array([1]), 1.0, 0),
        lambda: jnp.fill_diagonal(x + 0, 1.0),
        lambda: jnp.place(x[0], x[0] == 0, jnp.ones(1)),
        lambda: jnp.add.at(x[0], 1, 1.0),
    ):
        with pytest.warns(UserWarning, match=r"the assignment has no effect.*float32\["):
            call()
    check(x, np.zeros((2, 2), "float32"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        jnp.put([x][0], 0, 1.0), jnp.fill_diagonal(a=x, val=2.0), jnp.add.at(x, 1, 1.0)
    check(x, floats([[2, 0], [1, 3]]))
    with pytest.raises(ValueError, match=r"only arrays of accnp can be changed; got ndarray"):
        jnp.put(np.zeros(2), 0, 1.0)
    ints = jnp.zeros((2, 2), int)
    with pytest.raises(ValueError, match="NaN"):
        jnp.fill_diagonal(ints, float("nan"))
    outside = jnp.zeros(2)
    with pytest.raises(jnp.errors.UnexpectedTracerError):
        jnp.jit(lambda v: jnp.put(outside, 0, v))(1.0)
    check(outside, floats([0, 0]))
    with jnp.item_assignment(False):
        with pytest.raises(ValueError, match=r"immutable; pass inplace=False .* item_assignment"):
            jnp.put(x, 0, 1.0)
        with pytest.raises(NotImplementedError, match="immutable; pass inplace=False"):
            jnp.add.at(x, 0, 1.0)


def test_item_assignment_disabled() -> None:
    f = jnp.jit(lambda x: operator.setitem(x, 0, 1.0) or x)
    f(jnp.zeros(2))
    with jnp.item_assignment(False):
        x = jnp.zeros(2)
        with pytest.raises(TypeError, match="JAX arrays are immutable and do not support"):
            x[0] = 1.0
        with pytest.raises(TypeError, match="immutable"):  # a trace is of one setting
            f(x)
    seen: list[str] = []

    def assign() -> None:
        try:
            x[0] = 1.0
        except TypeError as error:
            seen.append(str(error))

    thread = threading.Thread(target=assign)
    thread.start()
    thread.join()
    assert "immutable" in seen[0]  # the context manager is of one thread


def test_the_environment_and_the_option() -> None:
    code = (
        "import os; os.environ['ACCNP_ITEM_ASSIGNMENT'] = '1'; import accnp\n"
        "x = accnp.zeros(2); x[0] = 1; print(x)\n"
        "accnp.config.update('item_assignment', False)\n"
        "try: x[0] = 2\n"
        "except TypeError: print(x)"
    )
    out = subprocess.check_output([sys.executable, "-c", code], text=True)
    assert out == "[1. 0.]\n[1. 0.]\n"
