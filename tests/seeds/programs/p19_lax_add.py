import jax.numpy as jnp
from jax import lax

print(repr(jnp.add(1, 1.0)))
print(repr(lax.add(jnp.float32(1), 1.0))) # 正确
lax.add(1, 1.0)
