"""Callbacks to Python, foreign functions, debug printing and run-time checks."""
