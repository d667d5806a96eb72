"""Kernels of the loop IR under other names."""

from __future__ import annotations

import random

from accnp.compiler.loops.ir import Kernel, Var
from accnp.compiler.loops.types import DType


def rename_randomly(kernel: Kernel, seed: int) -> Kernel:
    """A kernel whose names are random words."""
    rng = random.Random(seed)
    names: dict[str, str] = {}

    def change(x: object) -> object:
        if isinstance(x, tuple):
            new = [change(y) for y in x]
            copy = type(x)(*new) if hasattr(x, "_fields") else tuple(new)
            if isinstance(x, DType):
                return x
            if isinstance(x, Var) or type(x).__name__ == "Buffer":
                word = "".join(rng.choices("abcdefghijklmnopqrstuvwxyz", k=9))
                return copy._replace(name=names.setdefault(x.name, f"z{word}"))  # type: ignore
            return copy
        return x

    return change(kernel)  # type: ignore[return-value]
