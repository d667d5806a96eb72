"""Kernels of linear algebra: small matrices, calls of LAPACK, and GPUs."""
