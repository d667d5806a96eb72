"""The allowed differences between two runs of a random program.

Runs with different numbers of threads, and jitted and eager runs, must agree bitwise. This module
defines the differences that are allowed on a GPU.
"""

from __future__ import annotations

import re

import numpy as np
from chance.programs import DISCONTINUOUS, Program
from chance.values import is_close

# Functions of float32 are made of a GPU's units, those of float64 of other tables: ulps apart.
GPU_FUNCTIONS = (
    "exp|log|tanh|erf|soft|silu|gelu|sigmoid|logistic|gumbel|sinh|cosh|sqrt|sin|cos|tan|elu|gamma"
    "|bessel|i0|cbrt|hypot|random|power|arc|[*][*]|norm|std|standardize|spacing"
)
# Libraries: running products in another order, NaNs and zeros of both signs among sorted numbers,
# imaginary parts of transforms of NaNs, sums of products.
LIBRARY_FUNCTIONS = (
    "sort|median|quantile|unique|cumprod|cumsum|fft|top_k|@|einsum|dot|matmul|outer|kron|conv"
    "|linalg|interp|polyval"
)


def is_allowed_on_gpu(p: Program, output: str, actual: np.ndarray, expected: np.ndarray) -> bool:
    """Return whether an output of a program may differ on a GPU from the result on the CPU in this
    way.
    """
    if actual.shape != expected.shape or actual.dtype != expected.dtype:
        return False
    how = p.how[output]
    text = " ".join([line.text for line in p.cut(output).lines])
    inexact = how > 0 or re.search(f"{GPU_FUNCTIONS}|{LIBRARY_FUNCTIONS}", text)
    if not inexact:
        return False
    # What is decided by numbers that were rounded (a comparison, an index) has another answer.
    return how == DISCONTINUOUS or is_close(actual, expected)
