"""Kernels along one axis: cumulative reductions, and argmax and argmin."""
