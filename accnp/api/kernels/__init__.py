"""Kernels of users as operations, and kernels of accnp's own changed by users."""
