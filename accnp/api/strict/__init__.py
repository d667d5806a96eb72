"""`jax.lax`: functions that neither promote nor broadcast their operands."""
