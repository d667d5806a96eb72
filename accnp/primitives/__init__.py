"""Declarations of the primitives: one `Op` per operation, with all of its rules next to it.

A declaration contains the type rule, the NumPy reference, derivative and batching rules, and what
fusion needs: a scalar expression, strides or regions. `kinds.py` has functions that declare ops by
kind. Other ops name their kernels, which are in `compiler/library/`. Transformations, fusion and
the engine read the declarations from `ir.op.OPS`.
"""
