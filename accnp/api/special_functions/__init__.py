"""Special functions of mathematics, as SciPy names them."""
