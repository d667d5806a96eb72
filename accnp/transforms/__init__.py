"""Transformations from graph to graph: derivatives, transposition, batching and checks."""
