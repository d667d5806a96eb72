"""Kernels over grids: `jax.experimental.pallas` by loops. Rank 8."""
