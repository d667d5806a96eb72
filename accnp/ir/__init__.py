"""Representation of programs: abstract values, ops, nodes, traces, graphs and jaxprs."""
