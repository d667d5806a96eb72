"""Derivatives of functions, and rules of the user's for them."""
