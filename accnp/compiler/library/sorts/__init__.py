"""Kernels of sorts, partitions, the largest elements, and searches."""
