"""Passes on the loop IR, which take a kernel and return a kernel.

Most files contain one pass as their only public function. `compiler/pipeline.py` runs the passes
for CPUs, and `compiler/specs/grid.py` those for GPUs.
"""
