"""Indexing, `at[]`, `take` and related functions, compared with NumPy and JAX: values, derivatives
and batching.
"""

from __future__ import annotations

import itertools
from typing import Any

import jax
import numpy as np
import pytest
from api.support import result_or_error, value_of
from api.tables import compare_expression, compare_gradients, split_cases

import accnp
import accnp.numpy as jnp
from accnp.errors import NonConcreteBooleanIndexError
from accnp.numpy import indexing

X = np.arange(60, dtype=np.float32).reshape(3, 4, 5)
W = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
Y = np.random.default_rng(0).integers(0, 5, (4, 6)).astype(np.float32)
I = np.array([7, -1, 0, 2, 2])  # noqa: E741 - as an index is called

s = np.s_
KEYS = [
    s[1], s[-1, 2], s[0:2, ::2], s[::-1], s[..., 1], s[None, 1, ..., None], s[np.array([0, 2])],
    s[np.array([0, 2]), :, np.array([1, 3])], s[:, np.array([0, 2]), np.array([1, 3])],
    s[0, :, np.array([1, 3])], s[np.array([[0], [2]]), np.array([1, 2])], s[X[:, 0, 0] > 5],
    s[X > 7], s[:, X[0] > 7], s[1, np.array([True, False, True, True])], s[::-2, 1:1],
    s[np.array([0, 1]), None, ::2], s[True], s[False], s[:, None, np.array([1, 2])],
    s[np.array([-1, -3])], s[5:1:-1, ..., -1], s[np.array([], dtype=int)], s[3:],
    s[:, ::-3, 4:0:-2], s[np.array(1)], s[0, 0, 0], s[np.array([0, 1]), 1, None, np.array([2])],
    s[None, X[:, :, 0] > 7, 2], s[()], s[...], s[:, True, 1], s[np.uint8(2)],
    s[np.array([0, 1], np.int8), 1:, np.array([4, 4], np.uint16)], s[False, True], s[True, True],
    s[:, True, False], s[..., True, False], s[True, False, 1], s[:, True, :, False],
    s[True, None, False],
]  # fmt: skip


@pytest.mark.parametrize("key", KEYS, ids=lambda k: str(k).replace("\n", "")[:60])
def test_indexing_matches_numpy(key: Any) -> None:
    expected = X[key]
    x = jnp.asarray(X)
    parts = key if isinstance(key, tuple) else (key,)
    own = tuple([jnp.asarray(k) if isinstance(k, np.ndarray) else k for k in parts])
    for actual in (x[key], x[own], accnp.jit(lambda v: v[key])(x)):
        assert actual.shape == expected.shape
        np.testing.assert_array_equal(np.asarray(actual), expected)


TAKE = """
take(X,I) | take(X,I,axis=2) | take(X,I,axis=1,mode='clip') | take(X,I,1,mode='wrap')
take(X,I,2,mode='fill',fill_value=3.) | take(X,1,0) | take_along_axis(Y,np.argsort(Y,1),1)
take_along_axis(Y,np.array([[7],[-1],[0],[2]]),1) | take_along_axis(Y,np.array([3,1]),None)
take_along_axis(Y,np.array([[0,1,2,1,0,-1]]),0)
put_along_axis(Y,np.array([[0],[1],[2],[3]]),9.,1,inplace=False)
put(Y,np.array([0,3]),np.array([1.,2.]),inplace=False) | fill_diagonal(Y,7.,inplace=False)
nonzero(Y) | nonzero(Y,size=30) | nonzero(Y,size=5,fill_value=-1)
flatnonzero(Y,size=30,fill_value=7) | argwhere(Y) | argwhere(Y,size=3)
compress(np.array([True,False,True]),Y,0) | extract(Y>2,Y) | select([Y>3,Y>1],[Y,-Y],7.)
choose(np.array([0,1,0]),[np.array([1,2,3]),np.array([4,5,6])])
searchsorted(np.array([1.,2,2,3]),Y) | searchsorted(np.array([1.,2,2,3]),Y,side='right')
digitize(Y,np.array([1.,2,3])) | digitize(Y,np.array([3.,2,1]))
digitize(Y,np.array([3.,2,1]),right=True) | bincount(np.array([1,2,2,5]))
bincount(np.array([1,2,2,5]),minlength=9) | bincount(np.array([1,2,2,5,-3]),length=3)
bincount(np.array([1,2]),np.array([.5,.25])) | unravel_index(np.array([5,7,-1,100]),(2,3,4))
ravel_multi_index((np.array([0,1]),np.array([2,2])),(2,3))
ravel_multi_index((np.array([0,5]),np.array([2,-2])),(2,3),mode='clip')
ravel_multi_index((np.array([0,5]),np.array([2,-2])),(2,3),mode='wrap')
"""
AT = """
asarray(Y).at[0].set(1) | asarray(Y).at[1:3,::2].add(2.) | asarray(Y).at[::-2].set(5)
asarray(Y).at[I%4,I%3].add(1.) | asarray(Y).at[I].add(np.ones((5,6))) | asarray(Y).at[I].set(2.)
asarray(Y).at[I].multiply(2.) | asarray(Y).at[I].min(2.) | asarray(Y).at[I].max(2.)
asarray(Y).at[I].divide(2.) | asarray(Y).at[I].power(2.)
asarray(Y).at[I,1].apply(lambda v: v+1) | asarray(Y).at[-1,-2].set(9) | asarray(Y).at[20].set(9)
asarray(Y).at[None,...,1].set(np.arange(4.)) | asarray(Y).at[Y>2].set(0)
asarray(Y).at[:,I%6].set(np.arange(5.)) | asarray(Y).at[I%4,::2].set(np.arange(3.))
asarray(X).at[0,:,I%4].set(np.arange(3.)) | asarray(X).at[:,1::2,I%4].add(np.arange(5.))
asarray(X).at[I%2,None,1:].set(3.) | asarray(X).at[...].set(1) | asarray(X).at[:,:,:].mul(2)
asarray(X).at[I%2,:,I%4].add(1.) | asarray(X).at[I%2,I%3].set(2.)
asarray(Y).at[I].set(8,mode='clip') | asarray(Y).at[I].get() | asarray(Y).at[I].get(mode='fill')
asarray(Y).at[I].get(mode='fill',fill_value=5) | asarray(Y).at[I,1].get(mode='clip')
asarray(Y).at[9].get(mode='fill') | asarray(Y).at[1:3].subtract(1)
asarray(np.arange(3)).at[0].set(1.5) | asarray(np.arange(3)).at[0].add(1.5)
asarray(np.arange(3)).at[0].set(True) | asarray(X).at[True].set(1.) | asarray(Y).at[2:2].set(1.)
asarray(Y).at[1:0:-1].set(4.) | asarray(Y).at[3::5,1:3].set(4.) | asarray(1.0).at[()].set(2)
asarray(Y).at[np.array([[0,1],[2,3]])].add(1.)
"""
SMOOTH = """
X[1] | X[-1, 2:, ::2] | X[::-1, :, 3] | X[np.array([0, 2, 0])]
X[np.array([0, 2]), :, np.array([1, 3])] | X[X > 7] | X.at[0].set(2.0)
X.at[np.array([0, 0])].add(X[1:] ** 2) | X.at[:, ::2].multiply(3.0)
X.at[np.array([0, 2])].set(X[1:] * 2) | X.at[np.array([0, 0])].set(X[1:] * 2)
X.at[1, 1:3].multiply(X[0, 1:3]) | X.at[0].min(X[1] - 20.0) | X.at[0].max(X[1] - 20.0)
X.at[0].divide(X[1]) | X.at[1].power(2.0) | X.at[9].set(X[0])
X.at[np.array([9, 1])].add(X[:2]) | take(X, np.array([1, 9]), 1, mode="clip")
take_along_axis(X, np.array([[[1], [0]]]), 1)
X.at[np.array([0, 1])].get(mode="fill", fill_value=0.0) | extract(X > 7, X)
select([X > 9], [X * X], 1.0)
"""


@pytest.mark.parametrize("text", split_cases(TAKE))
def test_taking_as_jax(text: str) -> None:
    compare_expression(text, jnp, jax.numpy, X=W, Y=Y, I=I)


@pytest.mark.filterwarnings("ignore:scatter inputs have incompatible types")
@pytest.mark.parametrize("text", split_cases(AT))
def test_updates_as_jax(text: str) -> None:
    compare_expression(text, jnp, jax.numpy, X=W, Y=Y, I=I)


@pytest.mark.parametrize("text", split_cases(SMOOTH))
def test_gradients(text: str) -> None:
    compare_gradients(text, X=(X + 1) / 3)


def test_out_of_bounds() -> None:
    x = jnp.arange(5.0)
    index = jnp.array([7, -1, -9])
    assert np.asarray(x[index]).tolist() == [4, 4, 0]
    assert (float(x[10]), float(x[-10])) == (4, 0)
    assert np.isnan(np.asarray(jnp.take(x, index))).tolist() == [True, False, True]
    assert np.asarray(x.at[index].set(9)).tolist() == [0, 1, 2, 3, 9]
    assert np.asarray(x.at[index].set(8, mode="clip")).tolist() == [8, 1, 2, 3, 8]
    with pytest.raises(ValueError, match="wrap"):
        x.at[index].get(mode="wrap")


def test_traced_indices() -> None:
    for i in (-1, 0, 2, 7):
        expected = np.asarray(jax.jit(lambda x, i: x[i, ..., i])(X, i))
        np.testing.assert_array_equal(
            np.asarray(accnp.jit(lambda x, i: x[i, ..., i])(X, i)), expected
        )
        expected = np.asarray(jax.jit(lambda x, i: x.at[i, 1].set(-1))(X, i))
        np.testing.assert_array_equal(
            np.asarray(accnp.jit(lambda x, i: x.at[i, 1].set(-1))(X, i)), expected
        )


BATCHED = [
    lambda x, i: x[i],
    lambda x, i: x[:, i],
    lambda x, i: x[i, 1:, i],
    lambda x, i: x.at[i].set(1.0),
    lambda x, i: x.at[i, i].add(x[0, 0]),
    lambda x, i: x.at[..., i].multiply(2.0),
    lambda x, i: accnp.lax.dynamic_slice(x, (i, 0, 0), (1, 2, 2)),
    lambda x, i: accnp.lax.dynamic_update_slice(x, x[:1, :2, :2] * 5, (0, i, i)),
]


@pytest.mark.parametrize("fn", BATCHED)
@pytest.mark.parametrize("axes", [(0, 0), (0, None), (None, 0)])
def test_vmap_matches_a_loop(fn: Any, axes: tuple[Any, Any]) -> None:
    xs = jnp.asarray(np.stack([X, X + 100])) if axes[0] == 0 else jnp.asarray(X)
    index = jnp.array([1, 2]) if axes[1] == 0 else jnp.asarray(2)
    actual = accnp.vmap(fn, axes)(xs, index)
    rows = [fn(xs[k] if axes[0] == 0 else xs, index[k] if axes[1] == 0 else index) for k in (0, 1)]
    np.testing.assert_array_equal(np.asarray(actual), np.stack([np.asarray(r) for r in rows]))


REFUSED = [
    (lambda x: x[[0, 1]], TypeError, "Using a non-tuple sequence"),
    (lambda x: x["a"], TypeError, "does not support string indexing"),
    (lambda x: x[1.0], TypeError, "Indexer must have integer or boolean type"),
    (lambda x: x[0, 0], IndexError, "Too many indices: array is 1-dimensional, but 2 were indexed"),
    (lambda x: x[jnp.array([1.0])], TypeError, "Indexer must have integer or boolean type"),
    (lambda x: x[..., ...], IndexError, "ellipsis"),
    (lambda x: x[::0], ValueError, "cannot be 0"),
    (lambda x: x[jnp.array([True, False])], IndexError, "boolean index did not match shape"),
    (lambda x: x.at[0:2].set(jnp.ones(3)), ValueError, "broadcast"),
    (lambda x: x.at[0].set("a"), TypeError, "str"),
    (lambda x: jnp.take(x, 1.5), TypeError, "integer type"),
    (lambda x: jnp.put(x, 0, 1), ValueError, "inplace"),
    (lambda x: jnp.take_along_axis(x, jnp.ones((1, 1), int), 0), ValueError, "axes"),
    (lambda x: jnp.choose(jnp.array([5]), [1, 2]), ValueError, "choice"),
    (lambda x: jnp.searchsorted(x, 1, side="up"), ValueError, "side"),
]


@pytest.mark.parametrize(("call", "error", "text"), REFUSED)
def test_invalid_indices_raise(call: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        call(jnp.arange(5.0))


def test_item_assignment_names_at() -> None:
    x: Any = jnp.arange(3)
    with pytest.raises(TypeError, match=r"\.at\["):
        x[0] = 1


def test_traced_mask_and_slice() -> None:
    with pytest.raises(NonConcreteBooleanIndexError, match="mask"):
        accnp.jit(lambda x: x[x < 0])(jnp.arange(3.0))
    with pytest.raises(IndexError, match="static"):
        accnp.jit(lambda x, n: x[:n])(jnp.arange(3.0), 2)
    for fn in (jnp.nonzero, jnp.unique, jnp.bincount, jnp.argwhere):
        assert isinstance(result_or_error(lambda fn=fn: accnp.jit(fn)(jnp.arange(3))), TypeError)


def test_index_expressions_are_parsed_once_per_type(monkeypatch):
    """An index expression is parsed once per type: other index values, other slices and derivatives
    reuse it."""
    a = np.arange(60, dtype=np.float32).reshape(5, 4, 3)
    x = jnp.asarray(a)
    keys = [
        lambda i: (i,),
        lambda i: (i, slice(1, 3)),
        lambda i: (slice(None, None, -1), i % 4, None),
        lambda i: (i, 1, i % 3),
        lambda i: (..., i % 3),
        lambda i: (i[:, None], i % 4),
    ]
    first = np.array([0, 4, -1, 2])
    for key in keys:
        arrays = [jnp.asarray(k) if isinstance(k, np.ndarray) else k for k in key(first)]
        np.testing.assert_array_equal(x[tuple(arrays)], a[key(first)])

    def refuse(*args, **kwargs):
        raise AssertionError("a key of known types was read again")

    monkeypatch.setattr(indexing, "read", refuse)
    for second in (np.array([3, -5, 1, 1]), np.array([-2, 0, 0, 4])):
        for key in keys:
            arrays = tuple(jnp.asarray(k) if isinstance(k, np.ndarray) else k for k in key(second))
            np.testing.assert_array_equal(x[arrays], a[key(second)])
    rows = jnp.asarray(np.array([1, 1, 0, 2]))
    expected = np.zeros_like(a)
    np.add.at(expected, np.asarray(rows), 1)
    np.testing.assert_array_equal(accnp.grad(lambda x: x[rows].sum())(x), expected)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16"])
def test_flat_indices_whose_dtype_does_not_hold_the_size(dtype):
    """`unravel_index` computed in the dtype of the indices, so with int8 and 1000 elements all
    results were 0."""
    i = np.array([-128, -127, -1, 0, 2, 126, 127]).astype(dtype)
    coordinates = accnp.jit(lambda i: jnp.unravel_index(i, (10, 100)))(i)
    expected = np.unravel_index(i.astype(int) % 1000, (10, 100))
    np.testing.assert_array_equal(coordinates, expected)
    assert all(x.dtype == dtype for x in coordinates)


ITEMS = {
    "array": np.array([0, 1]),
    "column": np.array([[1], [0]]),
    "number": 0,
    "slice": slice(0, 2),
    "new": None,
    "truth": True,
    "mask": np.array([True, True, False]),
}


@pytest.mark.parametrize("rank", [2, 3, 4])
def test_ellipsis_separates_index_arrays(rank):
    """NumPy's rule for the position of the axes of index arrays holds even if `...` stands for no
    axis."""
    x = np.arange(3.0**rank, dtype=np.float32).reshape((3,) * rank)
    count = 0
    for before in itertools.product(ITEMS.values(), repeat=2):
        for after in itertools.product(ITEMS.values(), repeat=rank - 2 or 1):
            key = (*before, ..., *after)
            try:
                expected = x[key]
            except IndexError:
                continue
            count += 1
            ours = tuple([jnp.asarray(k) if isinstance(k, np.ndarray) and k.dtype != bool else k
                          for k in key])  # fmt: skip
            selected = jnp.asarray(x)[ours]
            if count % 20:
                np.testing.assert_array_equal(value_of(selected), expected)  # without a kernel
                continue
            np.testing.assert_array_equal(np.asarray(selected), expected)
            values = np.arange(expected.size, dtype=np.float32).reshape(expected.shape)
            for how in ("add", "multiply", "min"):
                written = x.copy()
                ufunc = {"add": np.add, "multiply": np.multiply, "min": np.minimum}[how]
                ufunc.at(written, key, values)
                updated = getattr(jnp.asarray(x).at[ours], how)(values)
                np.testing.assert_allclose(np.asarray(updated), written, rtol=1e-6)
    assert count > 30


def test_gradients_where_an_ellipsis_stands_for_no_axes():
    x, i = np.arange(27.0, dtype=np.float32).reshape(3, 3, 3), np.array([0, 1])
    weights = np.arange(6.0, dtype=np.float32).reshape(2, 3)
    actual = accnp.grad(lambda x: (x[:, i, ..., i] * weights).sum())(x)
    expected = jax.grad(lambda x: (x[:, i, ..., i] * weights).sum())(jax.numpy.asarray(x))
    np.testing.assert_array_equal(np.asarray(actual), np.asarray(expected))
    actual = accnp.vmap(lambda x: x[:, i, ..., i])(np.stack([x, -x]))
    np.testing.assert_array_equal(np.asarray(actual), np.stack([x[:, i, ..., i], -x[:, i, ..., i]]))


@pytest.mark.parametrize(
    "f",
    [
        lambda x, i, j: x[[i, j], 0],
        lambda x, i, j: x[([i, 2], [0, j])],
        lambda x, i, j: x[[[i, 0], [j, i]],],
        lambda x, i, j: x.at[[i, j], 1].set(-1.0),
    ],
)
def test_lists_of_traced_numbers_are_index_arrays(f):
    x = np.arange(12.0, dtype=np.float32).reshape(3, 4)
    expected = np.asarray(jax.jit(f)(x, 1, 2))
    np.testing.assert_array_equal(np.asarray(accnp.jit(f)(x, 1, 2)), expected)
    np.testing.assert_array_equal(np.asarray(f(jnp.asarray(x), jnp.asarray(1), 2)), expected)


@pytest.mark.parametrize(
    "key",
    [
        ([2, 1, 0],),
        (..., [4, 2, 0]),
        (slice(None), np.array([1, -2], np.int8)),
        ([-1, -3],),
        (None, [0, 2], slice(1, 3)),
    ],
)
@pytest.mark.parametrize("dtype", [np.uint8, np.float32])
def test_arithmetic_index_sequences_become_slices(key: Any, dtype: Any) -> None:
    x = np.arange(120).reshape(4, 5, 6).astype(dtype)
    assert "gather" not in str(accnp.inspect(accnp.jit(lambda x: x[key]))(x).program)
    np.testing.assert_array_equal(accnp.jit(lambda x: x[key])(x), x[key])
    np.testing.assert_array_equal(jnp.asarray(x)[key], x[key])
    moved = np.zeros_like(x, np.float32)
    moved[key] = 1
    gradient = accnp.grad(lambda x: jnp.sum(x[key]))(x.astype(np.float32))
    np.testing.assert_array_equal(gradient, moved)


@pytest.mark.parametrize(
    "key", [([0, 9],), ([1, 1],), ([0, 1], [1, 2]), (1, slice(None), [0, 1]), ([0, 1], 1)]
)
def test_other_index_arrays_stay_gathers(key: Any) -> None:
    x = np.arange(120).reshape(4, 5, 6)
    inside = tuple([np.minimum(k, 3) if type(k) is list else k for k in key])
    np.testing.assert_array_equal(jnp.asarray(x)[key], x[inside])
    np.testing.assert_array_equal(accnp.jit(lambda x: x[key])(x), x[inside])


def test_classes_of_refused_slices() -> None:
    """A slice bound with several numbers is a ValueError, and one that is not an integer is a
    TypeError."""
    for m in (accnp, jax):
        x = m.numpy.ones(3)
        several = [m.numpy.ones(2), m.numpy.arange(2), np.ones(2), np.arange(2)]
        single = [2.0, m.numpy.float32(2), np.float64(2), "a", [1], 2j]
        single += [np.array([2]), m.random.key(0)]
        for error, bounds in ((ValueError, several), (TypeError, single)):
            for bound in bounds:
                for entry in (slice(0, bound), slice(bound, None), slice(None, None, bound)):
                    with pytest.raises(error):
                        x[entry]
                    with pytest.raises(error):
                        x.at[entry].set(1)
