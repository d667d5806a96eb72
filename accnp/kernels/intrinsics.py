"""Numba intrinsics that generated kernels call.

In: nothing. Out: ``NAMESPACE``, the globals of every generated kernel: name to intrinsic.
"""

from __future__ import annotations

from . import blocks, dealing, gemm, lapack, products, scalars
from .factory import NAMESPACE, SCALARS

__all__ = ["NAMESPACE", "SCALARS", "blocks", "dealing", "gemm", "lapack", "products", "scalars"]
