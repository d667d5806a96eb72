"""Half-precision kernels made from float32 kernels: convert operands, compute, round the result
once.

`compute_in_float32` takes the memory layout of the operands and a function that makes a float32
kernel. It returns an `OwnKernel` of several steps with scratch memory for the converted arrays.
Convolutions use it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from accnp.compiler.library.writing.loop_nests import Axis, Text, merged, place, total
from accnp.ir.aval import Aval, make_aval
from accnp.ir.kernel import Operand, OwnKernel, dtype_code, replace
from accnp.primitives.views import contiguous

__all__ = ["compute_in_float32"]

_WIDE = np.dtype(np.float32)


def compute_in_float32(
    operands: Sequence[Operand],
    result: Aval,
    make: Callable[[Sequence[Operand], Aval], OwnKernel | None],
) -> OwnKernel | None:
    """Return the kernel that `make` returns for float32 operands, between conversions."""
    wide = [replace(x, dtype=_WIDE, strides=contiguous(x.shape)) for x in operands]
    inner = make(wide, make_aval(result.shape, _WIDE))
    if inner is None:
        return None
    count = len(operands) + 1
    steps = [*inner.then, _conversion_kernel(count, count - 1, result, dtype_code(result.dtype))]
    first, *others = [
        *[_conversion_kernel(count, k, x, "f4") for k, x in enumerate(operands)],
        *[
            _add_copy_parameters(count, step)
            for step in (replace(inner, then=(), memory=()), *steps[:-1])
        ],
        steps[-1],
    ]
    sizes = [int(np.prod(x.shape)) for x in (*operands, result)]
    first.memory = (*[("f4", max(1, n)) for n in sizes], *inner.memory)
    first.then = tuple(others)
    return first


def _add_copy_parameters(count: int, kernel: OwnKernel) -> OwnKernel:
    """Add parameters to a kernel, so that the pointers of copies follow those of the arrays."""
    parameters = ", ".join(f"given{k}" for k in range(count))
    source = kernel.source.replace("def kernel(lo, hi, ", f"def kernel(lo, hi, {parameters}, ", 1)
    return replace(kernel, source=source)


def _conversion_kernel(count: int, k: int, x: Operand | Aval, code: str) -> OwnKernel:
    """Return a kernel that converts an operand to its copy, or the copy of the result back."""
    text = Text(2 * count)
    steps = contiguous(x.shape)
    of = x.strides if isinstance(x, Operand) else steps
    axes = merged([Axis(n, both) for n, *both in zip(x.shape, of, steps, strict=True)])
    source, target = (k, k + count) if isinstance(x, Operand) else (k + count, k)
    if not axes or (len(axes) == 1 and axes[0].steps[0] == 1):
        with text.block("for t in range(lo, hi):"):
            text.add(f"a{target}[t] = {code}(a{source}[t])")
        size = int(np.prod(x.shape))
        return text.own(size, size)
    *outer, last = axes
    with text.block("for t in range(lo, hi):"):
        starts = place(text, outer, "t", 2)
        text.add(f"x = {total(starts[0])}", f"y = {total(starts[1])}")
        with text.block(f"for j in range({text.integer(last.size)}):"):
            one, other = (total(text.times("j", step)) for step in last.steps)
            text.add(f"a{target}[y + {other}] = {code}(a{source}[x + {one}])")
    rows = int(np.prod([axis.size for axis in outer]))
    return text.own(rows, rows * last.size)
