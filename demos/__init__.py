"""Real programs on real input, written against the public names of accnp only."""
