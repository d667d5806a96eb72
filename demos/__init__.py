"""Complete programs on real data that use only the public API of accnp."""
