"""Facts of the process and waiting for work in flight."""
