"""The compiler of kernels: loop IR, passes on it, and two back ends.

`loops` defines the IR with its builder, printer, parser, verifier and interpreter. `specs` builds
it from what fusion describes. `passes` transforms it. `llvm` lowers it to LLVM IR through llvmlite,
and `numba` prints it as Numba source; with the option `compiler` as "numba" Numba compiles this
source. `python -m accnp.compiler` reads kernels from text files.
"""
