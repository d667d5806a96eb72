"""Kernels of gathers, scatters, dynamic slices, and interior padding."""
