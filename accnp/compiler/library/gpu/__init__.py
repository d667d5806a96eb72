"""Calls of CuPy's functions."""
