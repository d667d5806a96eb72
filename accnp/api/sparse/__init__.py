"""Sparse arrays: pytrees of the values and indices of the stored elements."""
