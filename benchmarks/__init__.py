"""Measurements: a harness, a comparison with other libraries, suites for pytest-benchmark."""
