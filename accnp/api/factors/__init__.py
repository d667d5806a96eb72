"""Matrix factorizations of `lax.linalg` and SciPy, structured matrices, iterative solvers."""
