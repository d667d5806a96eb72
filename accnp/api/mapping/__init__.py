"""Functions of many examples, or of several devices: vmap, pmap, collectives."""
