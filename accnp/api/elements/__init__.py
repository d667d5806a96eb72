"""Elementwise functions and selection."""
