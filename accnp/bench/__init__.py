"""Benchmarks: `accnp.timeit`, `accnp bench`, the IPython magic, and support for the pytest plugin.

`expressions.py` and `suite.py` define the work, `timing.py` and `measure.py` measure it,
`tables.py` and `command.py` report it. `processes.py`, `peer_processes.py` and `gpu.py` measure in
other processes. The scripts in `benchmarks/` use this package too.
"""
