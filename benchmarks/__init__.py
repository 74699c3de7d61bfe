"""Workloads that are timed against other engines in the same run: ``python -m benchmarks --help``."""
