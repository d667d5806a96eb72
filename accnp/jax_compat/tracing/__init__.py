"""Names of `jax.core`, `jax.api_util`, `jax.linear_util` and `jax.interpreters.partial_eval`, for
libraries that trace and transform functions themselves."""
