"""Functions that kernels call by name: their types, and their LLVM code."""
