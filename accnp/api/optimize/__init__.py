"""Minimization of smooth functions of many variables."""
