"""The loop IR: the representation of kernels between their descriptions and the back ends.

`ir.py` and `types.py` define the nodes, and `functions.py` the scalar functions. The other modules
build, print and traverse kernels; `compiler/ir_tools` parses, verifies and interprets them.
`compiler/specs` and `compiler/frontend` produce loop IR, `compiler/passes` transforms it, and
`compiler/llvm` and `compiler/numba` compile it.
"""
