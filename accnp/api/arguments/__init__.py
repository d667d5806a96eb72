"""Conversion and validation of arguments: arrays, numbers, dtypes, shapes and axes."""
