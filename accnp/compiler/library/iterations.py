"""Kernels of elementwise functions that iterate: gcd, and derivatives of the incomplete gamma
function, whose source is that of their references (`primitives/gamma.py`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from accnp.compiler.library.writing.loop_nests import Axis, Nest, Text, merged, total
from accnp.ir.aval import Aval
from accnp.ir.kernel import Operand, OwnKernel, dtype_code
from accnp.primitives.gamma import IGAMMA_GRAD_A, RANDOM_GAMMA_GRAD, derivative_source
from accnp.primitives.views import contiguous

if TYPE_CHECKING:
    from accnp.ir.op_types import Params
    from accnp.primitives.gamma import Derivative


__all__ = ["gcd", "igamma_grad_a", "random_gamma_grad"]


def gcd(operands: Sequence[Operand], results: Sequence[Aval], p: Params) -> OwnKernel:
    """Return the kernel of `gcd`: Euclid's algorithm."""
    (out,) = results
    text = Text(3)
    strides = [x.strides if x.shape else (0,) * out.ndim for x in operands]
    nest = Nest(text, merged([
        Axis(n, steps) for n, *steps in zip(out.shape, *strides, contiguous(out.shape), strict=True)
    ]))  # fmt: skip
    for _ in nest.axes:
        nest.open()
    for k, name in enumerate("xy"):
        value = f"a{k}[{total(nest.walk(k))}]"
        if out.dtype.kind == "i":
            text.add(f"v = i8({value})", f"{name} = u8(v if v >= 0 else -v)")
        else:
            text.add(f"{name} = u8({value})")
    with text.block("while y > u8(0):"):
        text.add("r = rem(x, y)", "x = y", "y = r")
    text.add(f"a2[{total(nest.walk(2))}] = {dtype_code(out.dtype)}(x)")
    return nest.own(32 * out.dtype.itemsize)


def igamma_grad_a(operands: Sequence[Operand], results: Sequence[Aval], p: Params) -> OwnKernel:
    """Return the kernel of `igamma_grad_a`."""
    return _gamma_derivative(IGAMMA_GRAD_A, operands, results)


def random_gamma_grad(operands: Sequence[Operand], results: Sequence[Aval], p: Params) -> OwnKernel:
    """Return the kernel of `random_gamma_grad`."""
    return _gamma_derivative(RANDOM_GAMMA_GRAD, operands, results)


def _gamma_derivative(
    derivative: Derivative, operands: Sequence[Operand], results: Sequence[Aval]
) -> OwnKernel:
    (out,) = results
    text = Text(3)
    strides = [x.strides if x.shape else (0,) * out.ndim for x in operands]
    steps = zip(out.shape, *strides, contiguous(out.shape), strict=True)
    nest = Nest(text, merged([Axis(n, each) for n, *each in steps]))
    for _ in nest.axes:
        nest.open()
    text.add("one = f8(1)", "zero = f8(0)", "tiny = f8(1e-17)")
    for k, operand in enumerate("ax"):
        text.add(f"{operand} = f8(a{k}[{total(nest.walk(k))}])")
    text.add(*derivative_source(derivative).strip("\n").splitlines())
    text.add(f"a2[{total(nest.walk(2))}] = {dtype_code(out.dtype)}(y)")
    return nest.own(200 * out.dtype.itemsize)
