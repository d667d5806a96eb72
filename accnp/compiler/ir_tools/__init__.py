"""Tools for the loop IR: parser, verifier, and interpreter.

They know the types of all functions that kernels can call, including the intrinsics of
`compiler/llvm`, so they come after it in the order of imports. `parser.py` reads the text that
`loops/printer.py` writes, `verifier.py` checks kernels between passes, and `interpreter.py` runs
them on NumPy arrays, as the reference for both back ends.
"""
