"""Factorizations as `lax.linalg` and SciPy have them, structured matrices, iterative solvers."""
