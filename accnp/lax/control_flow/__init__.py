"""Control flow of `jax.lax`: branches, loops, scans, and solvers that are built on loops."""
