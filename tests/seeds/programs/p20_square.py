import jax
import jax.numpy as jnp
from jax import jit

def square(x):
    return x**2
jit_square = jit(square)

print(jax.make_jaxpr(square)(jnp.array([1., 2.,])))
print(jax.make_jaxpr(jit_square)(jnp.array([1., 2.,])))
