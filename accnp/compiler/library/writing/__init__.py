"""Helpers of all functions that write kernels: lines of source, loop nests, and conversions."""
