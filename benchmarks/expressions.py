"""Benchmark expressions of the groups of rows, built from `accnp.bench`.

A group is a file `rows_<group>.py` with `EXPRESSIONS` and `ROWS = rows_of(EXPRESSIONS)`;
`counts.py` reads the same `EXPRESSIONS`. See README.md in this folder.
"""

from accnp.bench.expressions import NUMPY, Expression, Made, asarray, normal, rows_of, wide

__all__ = ["NUMPY", "Expression", "Made", "asarray", "normal", "rows_of", "wide"]
