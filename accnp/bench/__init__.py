"""`python -m accnp bench`: timing, tables, expressions that every library can compute."""
