"""Convolutions of `jax.lax` and `jnp.convolve`, and the shapes of their operands and results."""
