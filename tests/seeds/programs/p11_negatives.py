import jax
import jax.numpy as jnp
import numpy as np

def eager(x):
    return x[x < 0]

# 非纯函数1
@jax.jit
def get_negatives(x):
    return x[x < 0]

x = jnp.array(np.random.default_rng(0).standard_normal(10))
print(eager(x))
get_negatives(x)
