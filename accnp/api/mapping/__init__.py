"""Mapped functions: vmap, pmap, vectorize, and collectives over named axes."""
