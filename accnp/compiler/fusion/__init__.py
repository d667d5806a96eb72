"""Fusion: convert a recorded graph to descriptions of kernels.

`program.py` builds a simplified `Program` from nodes, `fuse.py` decides which values share a kernel
(`Cluster`), and `lower.py` makes the `KernelSpec`s of a cluster. The engine (`engine/plan.py`)
calls these steps and makes a plan from the result.
"""
