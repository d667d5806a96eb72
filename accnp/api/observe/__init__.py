"""Observing a running program: `explain` and the profiler. Nothing here runs unless requested."""
