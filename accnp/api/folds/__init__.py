"""Reductions, cumulative operations, statistics, sorting and sets."""
