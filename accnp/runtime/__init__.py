"""Execution of compiled kernels: buffers, launches, threads, streams and devices."""
