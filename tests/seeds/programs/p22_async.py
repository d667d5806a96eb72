import jax
import jax.numpy as jnp

key = jax.random.PRNGKey(41)
jnparr = jax.random.uniform(key, (1000, 1000))
total = jnp.dot(jnparr, jnparr) + 3
