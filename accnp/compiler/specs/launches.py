"""Kernels as launches and other kernels call them: with a source to look at, and names that say all
of their content. Kernels of a few elements that are called in loops are made for their sizes."""

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

__all__ = ["generated", "named", "with_sizes"]

TINY = 32  # steps and elements up to which a kernel is made for its sizes inside a loop


def generated(spec: KernelSpec, edge: bool = False, told: bool = False) -> Generated:
    """Return the kernel of a description and how it is called.

    Parameters
    ----------
    spec, edge
        As for `build`.
    told : bool, optional
        Whether a map is told by an argument, its last one, whether results bypass the caches.
    """
    kernel, out = build(spec, edge)
    if told and spec.form == "map":
        past = Var(fresh_name("past", kernel))
        kernel = kernel._replace(integers=(*kernel.integers, past), past=past)
    out = _printed(kernel, out)
    out.tiny = partial(_tiny, spec)
    return out


def _tiny(spec: KernelSpec) -> Generated:
    return _printed(*build(spec, tiny=True))


def _printed(kernel: Kernel, out: Generated) -> Generated:
    out.kernel = kernel
    out.source = numba_source(kernel)
    signature = [f"{b.dtype.token}*" for b in kernel.buffers]
    out.signature = (*signature, *["i8"] * len(kernel.integers))
    return out


def named(text: Generated) -> Called:
    """Return a kernel as others call it, under a name that says all of its content."""
    mark = zlib.crc32("\n".join([text.source, *text.signature]).encode())
    name = f"k{mark:08x}"
    start = text.source.rindex("def kernel(") + len("def kernel(")
    kernel = text.kernel and text.kernel._replace(name=name)
    return Called(name, text.signature, f"def {name}({text.source[start:]}", kernel)


def with_sizes(text: Generated, extent: int) -> Generated:
    """Return a kernel that does 0..extent; the sizes of a tiny one are written into it, since it is
    what a loop spends its time on (25 pairs of bodies: 116 -> 76 ns).

    One without sizes but the extent, and one that an op brings itself, stays as it is: a new length
    of such a loop compiles nothing.
    """
    if text.tiny is None or text.kernel is None or not text.ints:
        return text
    if max(extent, *text.ints) > TINY:
        return text
    made = text.tiny()
    kernel: Kernel = made.kernel
    ends = {kernel.first: 0, kernel.last: extent}
    sized = fix_sizes(kernel, ends | dict(zip(kernel.integers, made.ints, strict=True)))
    made.kernel, made.source = sized, numba_source(sized)
    return made
