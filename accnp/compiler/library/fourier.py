"""The kernel of `fft_mirror`, which fills in the second half of the frequencies of real numbers."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from accnp.compiler.library.writing.loop_nests import Text
from accnp.ir.aval import Aval
from accnp.ir.kernel import Operand, OwnKernel, dtype_code
from accnp.primitives.views import contiguous

if TYPE_CHECKING:
    from accnp.ir.op_types import Params


__all__ = ["mirror"]

BLOCK = 4096  # frequencies that one task mirrors


def mirror(operands: Sequence[Operand], results: Sequence[Aval], p: Params) -> OwnKernel | None:
    """Copy blocks of rows of the stored half to the output and, conjugated, to the mirrored
    position along every axis. Additions to 0 and subtractions from it avoid -0."""
    (x,), (y,) = operands, results
    lengths: Sequence[int] = p["fft_lengths"]
    n, half = lengths[-1], x.shape[-1]
    if x.strides != contiguous(x.shape) or not y.size:
        return None
    text = Text(2)
    rows, blocks = prod(x.shape[:-1]), -(-half // BLOCK)
    zero = f"{dtype_code(np.real(np.empty(0, x.dtype)).dtype)}(0)"
    with text.block("for u in range(lo, hi):"):
        count, width, size = text.integer(blocks), text.integer(half), text.integer(n)
        text.add(f"r = u // {count}", f"start = (u - r * {count}) * {BLOCK}")
        text.add(f"end = start + {BLOCK}", f"end = end if end < {width} else {width}")
        text.add("rest = r", "back = 0")
        step = 1
        for k, length in reversed([*enumerate(lengths[:-1])]):
            name = text.integer(length)
            text.add(f"rest{k} = rest // {name}", f"i{k} = rest - rest{k} * {name}")
            text.add(f"i{k} = {name} - i{k} if i{k} > 0 else i{k}", f"rest = rest{k}")
            text.add(f"back = back + i{k} * {text.integer(step)}")
            step *= length
        text.add(f"back = back + rest * {text.integer(step)}" if rows > step else "back = back")
        text.add(f"x = at(a0, r * {width})", f"y = at(a1, r * {size})")
        with text.block("for j in range(start, end):"):
            text.add(f"y[j] = make_complex(x[j].real, x[j].imag + {zero})")
        text.add("start = start if start > 0 else 1", f"last = ({size} + 1) // 2")
        text.add("end = end if end < last else last")
        text.add(f"y = at(a1, back * {size})")
        with text.block(f"for k in range({size} - end + 1, {size} - start + 1):"):
            text.add(f"z = x[{size} - k]", f"y[k] = make_complex(z.real, {zero} - z.imag)")
    return text.own(rows * blocks, 2 * y.size)
