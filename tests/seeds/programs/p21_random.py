import jax.numpy as jnp  # JAX版的numpy
from jax import random  

x = random.uniform(random.PRNGKey(0), (5000, 5000))
