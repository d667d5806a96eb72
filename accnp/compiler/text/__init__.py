"""KernelSpec to source text: one emitter for each form; imports neither numba nor cupy."""
