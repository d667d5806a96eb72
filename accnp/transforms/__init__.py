"""Transformations from graph to graph: derivatives, transposition, batching and checks.

They walk over recorded nodes and apply the rules that the ops declare. `jvp.py`, `transpose.py` and
`vjp.py` compute derivatives, `batch.py` implements `vmap`, and `checkify.py` implements `checkify`.
`tools.py` offers them to the rules of call ops, which transform the programs they contain. The
public functions are in `api/differentiation/`, `api/mapping/` and `api/effects/`.
"""
