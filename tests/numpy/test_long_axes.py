"""Axes with more elements than int32 can count: indices are correct or an error is raised, and
never wrap around.

The tests allocate no memory of that size: operands are sparse files or abstract values.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import accnp as jnp
from accnp import lax

N = 2**31 + 1000
LONG = jnp.ShapeDtypeStruct((N,), np.dtype(np.int8))


ENDS = 16  # elements at both ends of the file, by their places; between them is nothing


@pytest.fixture(scope="module")
def long(tmp_path_factory: pytest.TempPathFactory) -> Any:
    path = tmp_path_factory.mktemp("long") / "axis"
    with path.open("wb") as file:
        file.write(bytes(range(ENDS)))
        file.seek(N - ENDS)
        file.write(bytes(range(100 - ENDS, 100)))
    return jnp.asarray(np.memmap(path, np.int8, "r"), copy=False)


READS = {
    "int": (lambda x: x[N - 1], -1),
    "negative": (lambda x: x[-2], -2),
    "slice": (lambda x: x[-5::2], [-5, -3, -1]),
    "array": (lambda x: x[jnp.array([-1, 3])], [-1, 3]),
    "array of NumPy": (lambda x: x[np.array([N - 2, 7])], [-2, 7]),
    "take": (lambda x: jnp.take(x, jnp.array([-1, 3])), [-1, 3]),
    "take, wrap": (lambda x: jnp.take(x, jnp.array([-3]), mode="wrap"), [-3]),
    "take_along_axis": (lambda x: jnp.take_along_axis(x, jnp.array([-4]), 0), [-4]),
    "dynamic_slice": (lambda x: lax.dynamic_slice(x, (N - 3,), (2,)), [-3, -2]),
    "dynamic_index_in_dim": (lambda x: lax.dynamic_index_in_dim(x, N - 7), [-7]),
    "traced": (lambda x: jnp.jit(lambda i: x[i])(jnp.int32(-9)), -9),
}


@pytest.mark.parametrize("name", READS)
def test_reads(name: str, long: jnp.Array) -> None:
    fn, places = READS[name]
    expected = np.asarray(places)
    np.testing.assert_array_equal(fn(long), np.where(expected < 0, expected + 100, expected))


WRITES = {
    "int": lambda x: x.at[-1].set(5),
    "slice": lambda x: x.at[N - 3 :].set(5),
    "steps": lambda x: x.at[N - 5 :: 2].add(5),
    "array": lambda x: x.at[jnp.array([-1])].set(5),
    "array of NumPy": lambda x: x.at[np.array([N - 1])].set(5),
    "put": lambda x: jnp.put(x, jnp.array([-1]), 5, inplace=False),
    "put_along_axis": lambda x: jnp.put_along_axis(x, jnp.array([-1]), 5, 0, inplace=False),
    "dynamic_update_slice": lambda x: lax.dynamic_update_slice(x, jnp.ones(1, "int8"), (N - 1,)),
}


@pytest.mark.parametrize("name", WRITES)
def test_writes_use_64_bit_indices(name: str) -> None:
    program = jnp.make_jaxpr(WRITES[name])(LONG)
    starts = [
        v.aval.dtype.name
        for eqn in program.eqns
        if eqn.primitive.name in ("scatter", "scatter_add", "scatter-add", "dynamic_update_slice")
        for v in eqn.invars
        if v.aval.dtype.name != "int8"
    ]
    assert starts == ["int64"]


REFUSED = {
    "argmax": jnp.argmax,
    "argsort": jnp.argsort,
    "lexsort": lambda x: jnp.lexsort((x,)),
    "arange": lambda x: jnp.arange(N),
    "indices": lambda x: jnp.indices((N,)),
    "searchsorted": lambda x: jnp.searchsorted(x, 2),
    "nonzero": lambda x: jnp.nonzero(x, size=3),
    "unique": lambda x: jnp.unique(x, size=3, return_index=True),
    "top_k": lambda x: lax.top_k(x, 3),
    "choice": lambda x: jnp.random.choice(jnp.random.key(0), x),
    "permutation": lambda x: jnp.random.permutation(jnp.random.key(0), N),
}


@pytest.mark.parametrize("name", REFUSED)
def test_indices_that_do_not_fit_are_refused(name: str) -> None:
    error = ValueError if name == "top_k" else OverflowError  # jax's class
    with pytest.raises(error, match=str(N)[:6]):
        jnp.eval_shape(REFUSED[name], LONG)


def test_random_numbers_are_counted_by_unsigned_integers() -> None:
    key = jnp.random.key(0)
    assert jnp.eval_shape(lambda: jnp.random.bits(key, (N,), "uint32")).shape == (N,)


def test_coordinates_of_many_elements() -> None:
    coordinates = jnp.unravel_index(jnp.array([-1, 3]), (2, N // 2))
    np.testing.assert_array_equal(coordinates, np.unravel_index([N - 1, 3], (2, N // 2)))
    with jnp.enable_x64(True):
        assert jnp.eval_shape(jnp.argmax, LONG).dtype == np.int64
