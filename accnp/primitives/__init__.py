"""Declarations of the primitives: one `Op` per operation, with all of its rules next to it.

A declaration contains the type rule, the NumPy reference, derivative and batching rules, and what
the compiler needs: a scalar expression, strides or a kernel of its own. `kinds.py` has functions
that declare ops by kind; the `*_kernels.py` modules write the kernels that ops provide themselves.
Transformations, fusion and the engine read the declarations from `ir.op.OPS`.
"""
