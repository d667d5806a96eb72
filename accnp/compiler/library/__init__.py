"""Kernels and library calls for the ops that fusion does not generate code for.

Matrix products, convolutions, sorts, scans, gathers and linear algebra have kernels that are
written by hand. The declaration of such an op names a function of this package (`Op.lowering`).
The planner calls it with the operands and the parameters, and gets the source of a kernel in
restricted Python (`lowerings.py`), which the front end lowers to the loop IR. There is one folder
for each family of ops; `cupy/` has the functions that call CuPy instead.

The package also contains the library kernels that those kernels call by name (`library.py`), and
the table of LAPACK routines (`routines.py`).
"""
