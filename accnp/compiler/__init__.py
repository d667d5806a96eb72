"""The compiler of kernels: loop IR, passes on it, and two back ends.

`loops` defines the IR with its builder and printer, and `ir_tools` parses, verifies and interprets
it. `fusion` describes kernels, `specs` builds their IR, and `frontend` builds that of restricted
Python. `passes` transforms the IR. `llvm` lowers it to LLVM IR through llvmlite, and `numba` prints
it as Numba source; if the option `compiler` is "numba", Numba compiles this source.
`python -m accnp.compiler` reads kernels from text files.
"""
