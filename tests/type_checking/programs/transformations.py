"""Transformations keep the signature of the transformed function for type checkers."""

from collections.abc import Callable
from functools import partial
from typing import Any, assert_type

import accnp as jax
from accnp import Array
from accnp import numpy as jnp


def loss(w: Array, scale: float = 1.0) -> Array:
    return jnp.sum(w * scale)


x = jnp.ones(3)

# jit with and without arguments, as a function and as a decorator
compiled = jax.jit(loss)
assert_type(compiled(x, scale=2.0), Array)
compiled(x, 2.0, 3.0)  # error: reportCallIssue
compiled(x, factor=2.0)  # error: reportCallIssue
compiled("x")  # error: reportArgumentType
compiled.lower(x)
print(compiled.nosuch)  # error: reportAttributeAccessIssue
jax.jit(loss, statc_argnums=0)  # error: reportCallIssue


@jax.jit
def plain(a: Array, n: int) -> tuple[Array, int]:
    return a, n


@jax.jit(static_argnames="n", donate_argnums=0)
def with_options(a: Array, n: int) -> tuple[Array, int]:
    return a, n


assert_type(plain(x, 2), tuple[Array, int])
assert_type(with_options(x, n=2), tuple[Array, int])
with_options(x)  # error: reportCallIssue
plain(x, "2")  # error: reportArgumentType


@jax.custom_vjp
def squared(a: Array) -> Array:
    return a * a


squared.defvjp(lambda a: (squared(a), a), lambda a, ct: (2 * a * ct,))
assert_type(squared(x), Array)
squared(x, x)  # error: reportCallIssue


def integer_power(a: Array, n: int) -> Array:
    return a**n


power = jax.custom_jvp(integer_power, nondiff_argnums=(1,))
assert_type(power(x, 2), Array)
power(x)  # error: reportCallIssue


@partial(jax.custom_jvp, nondiff_argnums=(1,))
def cubed(a: Array, n: int) -> Array:
    return a**n


cubed(x, 3)


class Model:
    @jax.jit
    def apply(self, a: Array) -> Array:
        return a


assert_type(Model().apply(x), Array)
Model().apply(x, x)  # error: reportCallIssue
assert_type(Model.apply(Model(), x), Array)

# the others
assert_type(jax.vmap(loss, in_axes=(0, None))(x, scale=2.0), Array)
jax.vmap(loss)(x, factor=2.0)  # error: reportCallIssue
jax.grad(loss)(x, scale=2.0)
jax.grad(loss)(x, factor=2.0)  # error: reportCallIssue
jax.grad(loss)("x")  # error: reportArgumentType
value, gradient = jax.value_and_grad(loss)(x)
assert_type(value, Array)
jax.value_and_grad(loss)()  # error: reportCallIssue
assert_type(jax.checkpoint(loss)(x), Array)
jax.checkpoint(loss)(x, factor=2.0)  # error: reportCallIssue
assert_type(jax.remat(loss)(x), Array)
assert_type(jax.named_call(loss, name="loss")(x), Array)
jax.jacfwd(loss)(x, factor=2.0)  # error: reportCallIssue
jax.hessian(loss)(x, factor=2.0)  # error: reportCallIssue
assert_type(jax.jit(jax.vmap(jax.checkpoint(loss)))(x), Array)
jax.jit(jax.grad(loss))(x, factor=2.0)  # error: reportCallIssue


# functions of users that take functions
def repeated(f: Callable[[Array], Array], a: Array) -> Array:
    return f(f(a))


repeated(jax.jit(lambda a: a + 1), x)
repeated(jax.jit(loss), x)


def apply(params: dict[str, Any], a: Array) -> Array:
    return params["w"] @ a


assert_type(jax.jit(apply)({"w": x}, x), Array)


# derivatives of a function at a point
def with_aux(a: Array) -> tuple[Array, int]:
    return a, 1


assert_type(jax.jvp(loss, (x,), (x,)), tuple[Array, Array])
assert_type(jax.jvp(with_aux, (x,), (x,), has_aux=True), tuple[Array, Array, int])
assert_type(jax.vjp(loss, x)[0], Array)
assert_type(jax.vjp(loss, x)[1](1.0), tuple[Any, ...])
assert_type(jax.vjp(with_aux, x, has_aux=True)[2], int)
assert_type(jax.linearize(loss, x)[1](x), Array)
assert_type(jax.linearize(with_aux, x, has_aux=True)[2], int)
jax.jvp(loss, x)  # error: reportCallIssue
jax.vjp(loss, x, aux=True)  # error: reportCallIssue
jax.vjp(3, x)  # error: reportArgumentType
