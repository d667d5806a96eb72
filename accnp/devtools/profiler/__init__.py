"""`jax.profiler`: timelines and memory profiles of running programs."""
