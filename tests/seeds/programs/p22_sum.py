import jax.numpy as jnp
from jax import jit

x = jnp.arange(12.0).reshape(3, 4)

def f(x):
    # do something
    return jnp.sum(x)

jitted_f = jit(f)
# do other things
ans = jitted_f(x)
ans = jitted_f(x)
print(repr(ans))
