"""Tools that show what programs do: `inspect`, `explain` and the profiler."""
