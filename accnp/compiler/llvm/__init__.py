"""The back end for LLVM: kernels of the loop IR to LLVM IR, through llvmlite alone."""
