"""Tools for the loop IR: parser, verifier, and interpreter.

`parser.py` reads the text that `loops/printer.py` writes, and `verifier.py` checks kernels between
passes. Both need the types of the intrinsics of `compiler/llvm` (`signatures.py`), so this package
is a layer above it. `interpreter.py` runs kernels on NumPy arrays, as the reference for both back
ends, with the NumPy versions of the functions that kernels call in `python_functions.py`.
"""
