"""Minima of smooth functions of many variables."""
