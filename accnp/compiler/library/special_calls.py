"""The special functions of SciPy that kernels call, one number at a time.

The table has the number of arguments of each function, for `llvm/intrinsics/scalars.py` and
`ir_tools/python_functions.py`, and its name in `scipy.special.cython_special`, for `routines.py`.
All functions have arguments and results of type double. This module does not import Numba.
"""

from __future__ import annotations

__all__ = ["CALLS"]

# Name here: (arguments, name of the ufunc in scipy.special, name among the C functions).
CALLS: dict[str, tuple[int, str, str]] = {
    "igamma": (2, "gammainc", "gammainc"),
    "igammac": (2, "gammaincc", "gammaincc"),
    "betainc": (3, "betainc", "__pyx_fuse_0betainc"),
    "beta": (2, "beta", "beta"),
    "betaln": (2, "betaln", "betaln"),
    "binom": (2, "binom", "binom"),
    "bessel_j": (2, "jv", "__pyx_fuse_1jv"),
    "exp1": (1, "exp1", "__pyx_fuse_1exp1"),
    "expi": (1, "expi", "__pyx_fuse_1expi"),
    "expn": (2, "expn", "__pyx_fuse_0expn"),
    "gamma": (1, "gamma", "__pyx_fuse_1gamma"),
    "hyp1f1": (3, "hyp1f1", "__pyx_fuse_1hyp1f1"),
    "hyp2f1": (4, "hyp2f1", "__pyx_fuse_1hyp2f1"),
    "owens_t": (2, "owens_t", "owens_t"),
    "poch": (2, "poch", "poch"),
    "spence": (1, "spence", "__pyx_fuse_1spence"),
}
