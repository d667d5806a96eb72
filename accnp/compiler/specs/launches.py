"""Kernels for launches and for calls from other kernels.

Input: a `KernelSpec`, or a `Generated`. Output: a `Generated` with the loop IR, its source text for
inspection, and its signature; or a kernel under a name that is a hash of its content. Kernels of a
few elements that are called in loops are specialized to their sizes.
"""

from __future__ import annotations

import zlib
from functools import partial

from accnp.compiler.loops.ir import Kernel, Var
from accnp.compiler.loops.visiting import fresh_name
from accnp.compiler.numba.source import numba_source
from accnp.compiler.passes.fix_sizes import fix_sizes
from accnp.compiler.specs import build
from accnp.ir.generated import Called, Generated
from accnp.ir.kernel import KernelSpec

__all__ = ["as_callee", "build_generated", "specialize_sizes"]

MAX_TINY = 32  # the maximum steps and sizes of a kernel that is specialized when called in a loop


def build_generated(
    spec: KernelSpec, edge: bool = False, nontemporal_argument: bool = False
) -> Generated:
    """Return the kernel of a description and how it is called.

    Parameters
    ----------
    spec, edge
        As for `build`.
    nontemporal_argument : bool, optional
        Whether the last argument of a map says whether to use non-temporal stores.
    """
    kernel, out = build(spec, edge)
    if nontemporal_argument and spec.form == "map":
        past = Var(fresh_name("past", kernel))
        kernel = kernel._replace(integers=(*kernel.integers, past), past=past)
    out = _with_source(kernel, out)
    out.tiny = partial(_build_tiny, spec)
    return out


def _build_tiny(spec: KernelSpec) -> Generated:
    return _with_source(*build(spec, tiny=True))


def _with_source(kernel: Kernel, out: Generated) -> Generated:
    out.kernel = kernel
    out.source = numba_source(kernel)
    signature = [f"{b.dtype.token}*" for b in kernel.buffers]
    out.signature = (*signature, *["i8"] * len(kernel.integers))
    return out


def as_callee(text: Generated) -> Called:
    """Return a kernel for calls from other kernels, under a name that is a hash of its content."""
    mark = zlib.crc32("\n".join([text.source, *text.signature]).encode())
    name = f"k{mark:08x}"
    start = text.source.rindex("def kernel(") + len("def kernel(")
    kernel = text.kernel and text.kernel._replace(name=name)
    return Called(name, text.signature, f"def {name}({text.source[start:]}", kernel)


def specialize_sizes(text: Generated, extent: int) -> Generated:
    """Return a kernel for the steps 0..extent, which is specialized to its sizes if it is tiny.

    A loop over tiny kernels spends its time in them: 25 pairs of bodies take 76 ns with
    specialization and 116 ns without. Kernels without sizes other than the extent, and kernels that
    an op provides itself, are not specialized, so that a new length needs no compilation.
    """
    if text.tiny is None or text.kernel is None or not text.ints:
        return text
    if max(extent, *text.ints) > MAX_TINY:
        return text
    made = text.tiny()
    kernel: Kernel = made.kernel
    ends = {kernel.first: 0, kernel.last: extent}
    sized = fix_sizes(kernel, ends | dict(zip(kernel.integers, made.ints, strict=True)))
    made.kernel, made.source = sized, numba_source(sized)
    return made
