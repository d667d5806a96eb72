"""Attributes and docstrings of transformed functions, and callables that `jit` refuses."""

import functools

import numpy as np
import pytest

import accnp as jax
import accnp.numpy as jnp


def double(x):
    "Doubles x."
    return 2 * x


def test_attributes_of_the_function_are_those_of_the_jitted_one():
    def f(x):
        return x

    f.tag = 4
    assert jax.jit(f).tag == 4
    assert float(jax.jit(jax.jit(f))(1.0)) == 1.0


def test_docstrings_describe_the_wrapper():
    assert jax.vmap(double).__doc__.startswith("Vectorized version of double.")
    assert "Doubles x." in jax.vmap(double).__doc__
    assert jax.grad(double).__doc__.startswith("Gradient of double")
    for name in ("jacfwd", "jacrev", "hessian"):
        docstring = getattr(jax, name)(double).__doc__
        assert docstring.startswith(("Jacobian of double", "Hessian of double"))
        assert docstring.count("Original documentation") == 1
    assert jax.value_and_grad(double).__doc__.startswith("Value and gradient of double")
    assert jax.make_jaxpr(double).__qualname__ == "make_jaxpr(double)"


def test_jit_refuses_what_it_cannot_trace():
    def generator(x):
        yield x

    with pytest.raises(TypeError, match="generator"):
        jax.jit(generator)
    with pytest.raises(TypeError, match="staticmethod"):
        jax.jit(staticmethod(double))
    with pytest.raises(ValueError, match="masked arrays"):
        jax.jit(jnp.asarray)(np.ma.array([1, 2], mask=[True, False]))


def test_static_argnums_and_argnames_are_independent():
    def f(x, y):
        seen.append((isinstance(x, jax.core.Tracer), isinstance(y, jax.core.Tracer)))
        return 1

    seen: list[tuple[bool, bool]] = []
    g = jax.jit(f, static_argnums=(), static_argnames=("x",))
    g(1, 2)
    g(x=1, y=3)
    assert seen == [(True, True), (False, True)]


def test_names_are_of_parameters_that_can_be_named():
    def f(a, /, b, *c):
        return a

    for name in ("a", "c"):
        with pytest.raises(ValueError, match=name):
            jax.jit(f, static_argnames=(name,))
    assert float(jax.jit(f, donate_argnums=(0, -999))(1.0, 2.0)) == 1.0


def test_types_like_those_of_values():
    assert jax.ShapeDtypeStruct.like(jnp.ones((2, 3))).shape == (2, 3)
    assert jax.ShapeDtypeStruct.like(1.0).weak_type
    with pytest.raises(TypeError, match="not iterable"):
        jax.ShapeDtypeStruct(shape=4, dtype="float32")
    with pytest.raises(ValueError, match="dtype must be specified"):
        jax.ShapeDtypeStruct(shape=(), dtype=None)


def test_partials_of_partials_have_equal_functions():
    f = functools.partial(print, 1)
    assert jax.tree_util.Partial(f, 2).func == f
    assert jax.tree.static(metadata={"static": False}).metadata["static"] is False
