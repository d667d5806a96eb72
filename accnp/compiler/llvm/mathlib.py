"""The tables of scalar functions that are written as LLVM IR, complete; needs llvmlite only.

The builders are in `compiler/llvm/scalars/`; each adds itself to a table. A name that a table does
not have is not defined for the table's types.
"""

from __future__ import annotations

from accnp.compiler.llvm.scalars import (
    arc,
    basic,
    bessel,
    cplx,
    cpower,
    dawson,
    exp,
    log,
    logsum,
    normal,
    power,
    registry,
    special,
    trig,
    zeta,
)
from accnp.compiler.llvm.scalars.registry import BINARY, COMPLEX, COMPLEX_BINARY, UNARY

__all__ = ["BINARY", "COMPLEX", "COMPLEX64_BINARY", "COMPLEX_BINARY", "UNARY"]

# Imported for their builders.
_BUILDERS = (
    arc, basic, bessel, cplx, cpower, dawson, exp, log, logsum, normal, power, special, trig, zeta,
)  # fmt: skip

COMPLEX64_BINARY = {**COMPLEX_BINARY, **registry.COMPLEX64_BINARY}
