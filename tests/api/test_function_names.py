"""Names, annotations and attributes of functions: tools use `__name__`, and pickle finds functions
by it.
"""

from __future__ import annotations

import inspect
import pickle
import typing

import pytest

import accnp as jax
import accnp.numpy as jnp
from accnp.array_type import ArrayLike

ALIASES = [
    (jnp, "absolute amax amin around bitwise_invert bitwise_left_shift bitwise_right_shift "
          "conjugate degrees invert mod pow radians true_divide"),
    (jax, "host_count host_id host_ids jacobian remat"),
    (jax.lax, "dot fft"),
    (jax.tree, "all broadcast flatten flatten_with_path leaves leaves_with_path map map_with_path "
               "reduce reduce_associative structure transpose unflatten"),
]  # fmt: skip


@pytest.mark.parametrize(("space", "names"), ALIASES)
def test_aliases_have_names_of_their_own(space: object, names: str) -> None:
    for name in names.split():
        function = getattr(space, name)
        assert function.__name__ == function.__qualname__ == name
        assert pickle.loads(pickle.dumps(function)) is function


def test_aliases_do_what_their_functions_do() -> None:
    x = jnp.array([-3.0, 2.0])
    assert jnp.absolute(x).tolist() == jnp.abs(x).tolist()
    assert jnp.amax(x, axis=0, keepdims=True).tolist() == [2.0]
    assert jnp.absolute.__doc__ == jnp.abs.__doc__
    with pytest.raises(ValueError, match=r"^amax: axis 3"):
        jnp.amax(x, axis=3)
    with pytest.raises(TypeError, match=r"^mod got incompatible shapes for broadcasting"):
        jnp.mod(x, jnp.ones(3))


def test_generated_functions_are_annotated() -> None:
    assert str(inspect.signature(jnp.hypot)) == "(x1: 'ArrayLike', x2: 'ArrayLike', /) -> 'Array'"
    assert str(inspect.signature(jnp.i0)) == "(x: 'ArrayLike') -> 'Array'"
    assert str(inspect.signature(jax.lax.add)) == "(x: 'ArrayLike', y: 'ArrayLike') -> 'Array'"
    assert typing.get_type_hints(jnp.real) == {"val": ArrayLike, "return": jax.Array}
    assert typing.get_type_hints(jnp.frexp)["return"] == tuple[jax.Array, jax.Array]


@pytest.mark.parametrize("name", ["nin", "nout", "nargs", "identity"])
def test_ufunc_properties_are_read_only(name: str) -> None:
    ufunc = jnp.frompyfunc(lambda x, y: x + y, 2, 1, identity=0)
    assert (ufunc.nin, ufunc.nout, ufunc.nargs, ufunc.identity) == (2, 1, 2, 0)
    with pytest.raises(AttributeError):
        setattr(ufunc, name, 3)
