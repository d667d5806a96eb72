"""Collectives over named axes: reductions, gathers and exchanges."""
