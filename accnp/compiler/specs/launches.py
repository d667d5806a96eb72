"""Kernels for launches and for calls from other kernels.

Input: a `KernelSpec`, or a `GeneratedKernel`. Output: a `GeneratedKernel` with the loop IR, its
source text for inspection, and its signature; or a kernel under a name that is a hash of its
content. Kernels that are called in loops are specialized: those of a few elements to their sizes,
and others to how their operands lie in memory.
"""

from __future__ import annotations

import copy
import zlib
from collections.abc import Iterator, Sequence
from functools import partial

from accnp.compiler.loops.ir import LONG_SIZE, Buffer, Expr, For, Index, Kernel, Shifted, Store, Var
from accnp.compiler.loops.types import DType
from accnp.compiler.loops.visiting import (
    expressions,
    fresh_name,
    map_body,
    statements,
    subexpressions,
)
from accnp.compiler.numba.source import numba_source
from accnp.compiler.passes.fix_sizes import fix_sizes
from accnp.compiler.passes.replace_variables import replaced
from accnp.compiler.specs import build
from accnp.ir.generated import CalledKernel, GeneratedKernel
from accnp.ir.kernel import KernelSpec

__all__ = ["as_callee", "build_generated", "specialize_layout", "specialize_sizes"]

# The maximum distance, in elements, of buffers that share vectors. Most neighbors in stencils are
# one or two elements apart. The IR allows more (`loops.ir.MAX_SHIFT_DISTANCE`).
MAX_STENCIL_DISTANCE = 2
MAX_TINY = 32  # the maximum steps and sizes of a kernel that is specialized when called in a loop


def build_generated(
    spec: KernelSpec, edge: bool = False, nontemporal_argument: bool = False
) -> GeneratedKernel:
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
        nontemporal = Var(fresh_name("nontemporal", kernel))
        kernel = kernel._replace(integers=(*kernel.integers, nontemporal), nontemporal=nontemporal)
    out = _with_source(kernel, out)
    out.tiny = partial(_build_tiny, spec)
    return out


def _build_tiny(spec: KernelSpec) -> GeneratedKernel:
    return _with_source(*build(spec, tiny=True))


def _with_source(kernel: Kernel, out: GeneratedKernel) -> GeneratedKernel:
    out.kernel = kernel
    out.source = partial(numba_source, kernel)
    signature = [f"{b.dtype.token}*" for b in kernel.buffers]
    out.signature = (*signature, *["i8"] * len(kernel.integers))
    return out


def as_callee(text: GeneratedKernel) -> CalledKernel:
    """Return a kernel for calls from other kernels, under a name that is a hash of its content."""
    mark = zlib.crc32("\n".join([text.source, *text.signature]).encode())
    name = f"k{mark:08x}"
    start = text.source.rindex("def kernel(") + len("def kernel(")
    kernel = text.kernel and text.kernel._replace(name=name)
    return CalledKernel(name, text.signature, f"def {name}({text.source[start:]}", kernel)


def specialize_layout(
    text: GeneratedKernel, pointers: Sequence[tuple[int, int]]
) -> GeneratedKernel:
    """Return a kernel that knows which of its operands begin a few elements after another one,
    which strides are equal, and which rows are long.

    Vectors of neighbors are loaded once, rows with equal strides start at one index, and long ones
    store whole cache lines. Other shapes with the same relations need no compilation.

    Parameters
    ----------
    text : GeneratedKernel
        A kernel.
    pointers : sequence of (int, int)
        For each of its first buffers, the slot of the array, and the first byte in it.

    Returns
    -------
    GeneratedKernel
        The same kernel if nothing of this holds, or if it is not a map.
    """
    if text.form != "map" or text.kernel is None:
        return text
    kernel: Kernel = text.kernel
    shifted = tuple(_find_shifted(kernel, pointers))
    equal = _equal_strides(kernel, text.ints)
    body = map_body(kernel.body, lambda x: replaced(x, equal)) if equal else kernel.body
    limits = {s.stop for s in statements(body) if isinstance(s, For)}
    sizes = zip(kernel.integers, text.ints, strict=False)
    long = tuple([v for v, n in sizes if v in limits and n >= LONG_SIZE])
    if not shifted and not equal and not long:
        return text
    variant = copy.copy(text)
    variant.kernel = kernel._replace(body=body, shifted=shifted, long=long)
    variant.source = partial(numba_source, variant.kernel)
    return variant


def _find_shifted(kernel: Kernel, pointers: Sequence[tuple[int, int]]) -> Iterator[Shifted]:
    """Yield the operands that are read a few elements after another operand in the same array."""
    stored = {s.buffer for s in statements(kernel.body) if isinstance(s, Store)}
    operands = [(b, *p) for b, p in zip(kernel.buffers, pointers, strict=False)]
    written = {array for b, array, _ in operands if b in stored}
    arrays: dict[tuple[int, DType], list[tuple[int, Buffer]]] = {}
    for b, array, first in operands:
        if array not in written:
            arrays.setdefault((array, b.dtype), []).append((first // b.dtype.size, b))
    for parts in arrays.values():
        parts.sort(key=lambda part: part[0])
        start, of = parts[0]
        for first, b in parts[1:]:
            if 0 < first - start <= MAX_STENCIL_DISTANCE:
                yield Shifted(b, of, first - start)
            elif first > start:
                start, of = first, b


def _equal_strides(kernel: Kernel, ints: Sequence[int]) -> dict[Var, Expr]:
    """Return a replacement for each stride that equals one before it."""
    parts = [p for s in statements(kernel.body) for e in expressions(s) for p in subexpressions(e)]
    strides = {k for p in parts if isinstance(p, Index) for _, k in p.terms}
    first: dict[int, Var] = {}
    replacements: dict[Var, Expr] = {}
    for v, n in zip(kernel.integers, ints, strict=False):
        if v in strides and first.setdefault(n, v) != v:
            replacements[v] = first[n]
    return replacements


def specialize_sizes(text: GeneratedKernel, extent: int) -> GeneratedKernel:
    """Return a kernel for the steps 0..extent, which is specialized to its sizes if it is tiny.

    A loop over tiny kernels spends its time in them: 25 pairs of bodies take 76 ns with
    specialization and 116 ns without. Kernels without sizes other than the extent, and kernels that
    an op provides itself, are not specialized, so that a new length needs no compilation.
    """
    if text.tiny is None or text.kernel is None or not text.ints:
        return text
    if max(extent, *text.ints) > MAX_TINY:
        return text
    variant = text.tiny()
    kernel: Kernel = variant.kernel
    ends = {kernel.first: 0, kernel.last: extent}
    sized = fix_sizes(kernel, ends | dict(zip(kernel.integers, variant.ints, strict=True)))
    variant.kernel, variant.source = sized, partial(numba_source, sized)
    return variant
