"""Representation of programs: abstract values, ops, nodes, traces, graphs and jaxprs.

A call of a primitive records a `Node` (`node.py`) with an `Op` (`op.py`) and an `Aval` (`aval.py`).
A `Trace` (`trace.py`) says where nodes are recorded, and a finished trace becomes a `Graph`
(`graph.py`). `jaxpr.py` converts graphs to jaxprs, and `kernel.py` defines the input of code
generation. The package depends only on dtypes, errors and the C extension.
"""
