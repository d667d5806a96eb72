"""Functions that compute ops by calls of CuPy, on a GPU."""
