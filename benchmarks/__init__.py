"""Benchmarks: a timing harness, comparisons with other libraries, and pytest-benchmark suites."""
