"""Graph to plan of kernels: build, simplify, fuse, lower, order."""
