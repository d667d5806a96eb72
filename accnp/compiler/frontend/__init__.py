"""The front end: lower kernels written in restricted Python to the loop IR."""
