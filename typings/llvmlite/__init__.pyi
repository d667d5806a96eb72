"""Types of the part of llvmlite that accnp uses; llvmlite has none of its own.

Pyright reads this folder (its default `stubPath`); nothing imports it.
"""
