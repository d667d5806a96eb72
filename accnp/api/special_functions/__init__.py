"""Special functions, under the names of SciPy."""
