"""Eager `cross` of small arrays is one compiled program with the same bits, types and errors as
JAX.
"""

import jax
import numpy as np
import pytest

import accnp
import accnp.numpy as jnp

X, Y = np.random.default_rng(0).normal(size=(2, 4, 3, 3)).astype(np.float32)

CALLS = {
    "last axis": ((X, Y), {}),
    "first axis": ((X[:3, 0], Y[:3, 0]), {"axis": 0}),
    "middle axis": ((X, Y), {"axis": 1}),
    "axes apart": ((X[0], Y[0]), {"axisa": 0, "axisb": 1, "axisc": 0}),
    "two components": ((X[..., :2], Y[..., :2]), {}),
    "two and three": ((X[..., :2], Y), {}),
    "broadcast": ((X, Y[0, 0]), {}),
    "integers": ((np.arange(3), np.ones(3, np.int8)), {}),
    "complex": ((X.astype(np.complex64), Y), {}),
}


@pytest.mark.parametrize("name", CALLS)
def test_values_types_and_derivatives(name):
    args, kwargs = CALLS[name]
    actual, expected = jnp.cross(*args, **kwargs), jax.numpy.cross(*args, **kwargs)
    assert (actual.dtype, actual.shape) == (expected.dtype, expected.shape)
    assert actual.weak_type == expected.weak_type
    np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-6)
    recorded = accnp.vmap(lambda a, b: jnp.cross(a, b, **kwargs))(*[x[None] for x in args])[0]
    assert np.asarray(actual).tobytes() == np.asarray(recorded).tobytes()
    if actual.dtype == np.float32:
        tangents = tuple([np.full_like(x, 0.5) for x in args])
        actual = accnp.jvp(lambda a, b: jnp.cross(a, b, **kwargs), args, tangents)[1]
        expected = jax.jvp(lambda a, b: jax.numpy.cross(a, b, **kwargs), args, tangents)[1]
        np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-6)
        accnp.test_util.check_grads(
            lambda a, b: jnp.cross(a, b, **kwargs), args, order=2, rtol=3e-2, atol=3e-2
        )


def test_only_large_calls_are_recorded():
    a = jnp.zeros((200_000, 3))
    jnp.cross(a[:9], a[:9])  # traced
    assert jnp.cross(a[:9], a[:9])._node.op.name == "const"
    assert jnp.cross(a, a)._node.op.name != "const"


@pytest.mark.parametrize(
    "settings", [{"numpy_rank_promotion": "raise"}, {"numpy_dtype_promotion": "strict"}]
)
def test_strict_modes_are_those_of_jax(settings):
    jnp.cross(X, Y[0, 0])  # known in the usual mode
    for args in ((X, Y), (X, Y[0, 0]), (X, Y.astype(np.float16))):
        raised = []
        for lib in (jax, accnp):
            with getattr(lib, next(iter(settings)))(*settings.values()):
                try:
                    lib.numpy.cross(*args)
                    raised.append(None)
                except Exception as error:
                    raised.append(type(error).__name__)
        assert raised[0] == raised[1]


def test_errors_name_cross():
    for _ in range(2):
        with pytest.raises(
            ValueError, match=r"^cross: vectors must have 2 or 3 components; got \(3, 1\)"
        ):
            jnp.cross(X, X[..., :1])
        with pytest.raises(TypeError, match=r"^cross: Incompatible shapes for broadcasting"):
            jnp.cross(X, X[:3])
        with pytest.raises(ValueError, match=r"^cross: axis 5 is out of bounds"):
            jnp.cross(X, X, axis=5)
