import jax.numpy as jnp
from jax import vmap

def absstruct(x, y):
    return abs(y-x)

a = jnp.array([3.0])
b = jnp.array([[1.0], [5.0], [-2.0], [3.0]])

# a.shape: (1, )
# b.shape: (N, 1)

ans = vmap(absstruct, (0, None))(b, a)
