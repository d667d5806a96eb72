"""`jit`: signatures, traces, calls and stages."""
