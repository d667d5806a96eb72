"""Derivatives of functions, and user-defined rules for them."""
