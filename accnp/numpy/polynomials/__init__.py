"""Polynomials, `polyfit` and `roots`."""
