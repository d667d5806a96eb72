import jax
import jax.numpy as jnp
from jax import jit

# 举一个调用全局变量的问题:
g = 0

def impure_uses_globals(x):
    return x + g

# JAX captures the value of the global during the first run
jit_f = jax.jit(impure_uses_globals)

print(jax.make_jaxpr(jit_f)(3))
print ("First call: ", jit_f(3.))

g = 10.  # Update the global
print(repr(jit_f(4.)))

g = 10.  # Update the global
print(repr(jit_f(jnp.array([4.]))))
