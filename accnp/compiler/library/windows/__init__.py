"""Kernels of convolutions and of reductions of windows."""
