"""Sparse arrays: data and indices of the elements that are stored, as trees of lazy Arrays."""
