"""The operators that are declared in Python: the pointwise table and what stands on NumPy and SciPy."""
