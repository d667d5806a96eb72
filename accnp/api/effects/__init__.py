"""Calls back to Python and out to C, printing, checks at run time."""
