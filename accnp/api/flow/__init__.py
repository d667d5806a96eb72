"""Loops and branches as operations, and solvers that are loops."""
