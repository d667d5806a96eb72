"""Jaxprs: their primitives, the rules of primitives, and evaluation."""
