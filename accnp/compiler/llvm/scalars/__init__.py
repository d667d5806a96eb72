"""LLVM IR builders of the math functions, one file per family; only llvmlite is needed."""
