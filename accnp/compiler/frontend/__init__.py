"""Restricted Python, in which kernels are written, to the loop IR."""
