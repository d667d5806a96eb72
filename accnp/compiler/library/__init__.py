"""Library kernels (matrix products, convolutions, factorizations) in restricted Python, the table
of LAPACK routines, and NumPy versions of everything that kernels call, for tests and printed
kernels.
"""
