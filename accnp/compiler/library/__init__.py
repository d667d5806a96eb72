"""Scalar intrinsics and hand-written kernels; see only numba, llvmlite, numpy, scipy."""
