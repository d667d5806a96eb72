"""The kernels of ops that fusion does not generate, by family; the ops name them (`Op.lowering`).

Also library kernels in restricted Python that they call, the table of LAPACK routines, and NumPy
versions of everything that kernels call, for tests and printed kernels.
"""
