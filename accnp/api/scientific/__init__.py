"""Functions of SciPy and `jax.image`: interpolation, cosine transforms, rotations, resizing."""
