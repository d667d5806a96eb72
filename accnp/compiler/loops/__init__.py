"""The loop IR, the representation of kernels between their descriptions and the back ends.

`ir.py` and `types.py` define the nodes, and `functions.py` the scalar functions. Other modules
build, print, parse, verify, interpret and traverse kernels. `compiler/specs` and
`compiler/frontend` produce loop IR, `compiler/passes` transforms it, and `compiler/llvm` and
`compiler/numba` compile it.
"""
