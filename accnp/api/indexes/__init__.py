"""Indexing: `x[key]`, `x.at[key]`, taking and slicing."""
