"""Kernels over grids: `jax.experimental.pallas`, implemented by loops."""
