"""The back end for Numba: kernels of the loop IR as Python source that Numba compiles."""
