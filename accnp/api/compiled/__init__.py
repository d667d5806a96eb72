"""`jit`: traces, their signatures and stages."""
