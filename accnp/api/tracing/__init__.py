"""Tracing of user functions as graphs: bodies of loops and branches, names of arguments."""
