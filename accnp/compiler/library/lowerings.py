"""Which kernels and library calls compute an op: the table of lowerings.

A declaration in `accnp/primitives/` says what an op means. This table says how it is computed: by a
kernel that a function of this folder writes, by a kernel for GPUs in which a block of threads does
each task, or by a call of CuPy. The engine asks here when it plans an op that fusion does not put
into a generated kernel. The functions are named, and their modules loaded on first use, so that a
program loads the families that it needs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from accnp.forks import imported
from accnp.ir.aval import Aval
from accnp.ir.kernel import Operand, OwnKernel
from accnp.ir.op import OPS, Op
from accnp.primitives.updates import UPDATE

__all__ = ["LOWERINGS", "Lowering", "Writer", "gpu_call_of", "lowering_of", "writer"]

# Writes a kernel from operands, avals of the results, and parameters; returns None for unsupported
# layouts and dtypes.
Writer = Callable[[Sequence[Operand], Sequence[Aval], dict[str, Any]], OwnKernel | None]


class Lowering(NamedTuple):
    """How an op is computed. Functions are named "module.function", within this folder.

    Attributes:
        kernel: the writer of its kernel. Without it, the reference function of the op is called.
        block: the writer of a kernel for GPUs in which a block of threads does each task; it
            returns None if the library call is faster.
        gpu: implementation for GPUs if no kernel does it well: a function (xp, *arrays, **params)
            on arrays of CuPy, which returns new arrays, or None for operands that it does not
            support, for which the reference function is called.
    """

    kernel: str = ""
    block: str = ""
    gpu: str = ""


LOWERINGS = {
    # products
    "dot_general": Lowering("products.dot_general.dot_general", gpu="gpu.cupy_calls.product"),
    "conv_general_dilated": Lowering(
        "windows.convolutions.convolution", "windows.block_convolutions.convolution"
    ),
    # windows
    "reduce_window_sum": Lowering("windows.pooling.window_sum"),
    "reduce_window_max": Lowering("windows.pooling.window_max"),
    "reduce_window_min": Lowering("windows.pooling.window_min"),
    "select_and_gather_add": Lowering("windows.pooling.gather_extremes"),
    "select_and_scatter_add": Lowering("windows.pooling.scatter_extremes"),
    # linear algebra
    "linear_solve": Lowering(
        "linalg.lowering.linear_solve", "linalg.block_factors.solve", "gpu.cupy_calls.solve"
    ),
    "triangular_solve": Lowering(
        "linalg.lowering.triangular_solve",
        "linalg.block_factors.triangular_solve",
        "gpu.cupy_calls.triangular_solve",
    ),
    "cholesky": Lowering(
        "linalg.lowering.cholesky", "linalg.block_factors.cholesky", "gpu.cupy_calls.cholesky"
    ),
    "lu": Lowering("linalg.lowering.lu", "linalg.block_factors.lu", "gpu.cupy_calls.lu"),
    "qr": Lowering("linalg.lapack.qr", "linalg.block_factors.qr", "gpu.cupy_calls.qr"),
    "svd": Lowering("linalg.lapack.svd", "linalg.block_spectra.svd", "gpu.cupy_calls.svd"),
    "eigh": Lowering("linalg.lapack.eigh", "linalg.block_spectra.eigh", "gpu.cupy_calls.eigh"),
    "det": Lowering("linalg.lowering.det", "linalg.block_factors.det", "gpu.cupy_calls.det"),
    "slogdet": Lowering(
        "linalg.lowering.det", "linalg.block_factors.det", "gpu.cupy_calls.slogdet"
    ),
    "adjugate": Lowering("linalg.small_matrices.adjugate"),
    "adjugate_tangent": Lowering("linalg.small_matrices.adjugate_tangent"),
    "tridiagonal_solve": Lowering("linalg.lapack.tridiagonal_solve"),
    "lu_pivots_to_permutation": Lowering("linalg.small_matrices.pivots_to_permutation"),
    # sorts and searches
    "sort": Lowering("sorts.lowering.sort", gpu="gpu.cupy_calls.sort"),
    "partition": Lowering("sorts.shared_sorts.partition"),
    "top_k": Lowering("sorts.short_sorts.top_k", gpu="gpu.cupy_calls.top_k"),
    "searchsorted": Lowering("sorts.searches.searchsorted", gpu="gpu.cupy_calls.searchsorted"),
    # along an axis
    "cumsum": Lowering("scans.cumulative.cumsum", gpu="gpu.cupy_calls.cumsum"),
    "cumprod": Lowering("scans.cumulative.cumprod", gpu="gpu.cupy_calls.cumprod"),
    "cummax": Lowering("scans.cumulative.cummax", gpu="gpu.cupy_calls.cummax"),
    "cummin": Lowering("scans.cumulative.cummin", gpu="gpu.cupy_calls.cummin"),
    "cumlogsumexp": Lowering("scans.cumulative.cumlogsumexp", gpu="gpu.cupy_calls.cumlogsumexp"),
    "argmax": Lowering("scans.extremes.argmax"),
    "argmin": Lowering("scans.extremes.argmin"),
    # indices
    "gather": Lowering("indexing.gathers.gather"),
    "dynamic_slice": Lowering("indexing.gathers.dynamic_slice"),
    "dynamic_update_slice": Lowering("indexing.scatters.dynamic_update_slice"),
    "scatter": Lowering("indexing.scatters.scatter_set"),
    "scatter_add": Lowering("indexing.scatters.scatter_add"),
    "scatter_mul": Lowering("indexing.scatters.scatter_mul"),
    "scatter_min": Lowering("indexing.scatters.scatter_min"),
    "scatter_max": Lowering("indexing.scatters.scatter_max"),
    "pad": Lowering("indexing.pads.pad"),
    # Fourier transforms
    "fft": Lowering(gpu="gpu.cupy_calls.fft"),
    "fft_mirror": Lowering("fourier.mirror"),
    # elementwise functions with loops of their own
    "gcd": Lowering("iterations.gcd"),
    "igamma_grad_a": Lowering("iterations.igamma_grad_a"),
    "random_gamma_grad": Lowering("iterations.random_gamma_grad"),
}
# Ops that are not in the op table, because programs never record them.
_OF_FUSION = {UPDATE: Lowering("indexing.scatters.update_slice")}
_NONE = Lowering()


def lowering_of(op: Op) -> Lowering:
    """Return the lowering of an op. Ops are compared by identity: another op of the same name, such
    as that of a user's kernel, has none."""
    if OPS.holds(op):
        return LOWERINGS.get(op.name, _NONE)
    return _OF_FUSION.get(op, _NONE)


def writer(name: str) -> Writer | None:
    """Return the writer that a lowering names; None for no name."""
    return _function(name) if name else None


def gpu_call_of(op: Op) -> Callable[..., Any] | None:
    """Return the function that computes an op for GPUs: that of a user's kernel, which gets the
    driver, or a function of `gpu/cupy_calls.py`. None if there is none."""
    if op.cuda is not None:
        return op.cuda
    name = lowering_of(op).gpu
    return _function(name) if name else None


def _function(name: str) -> Callable[..., Any]:
    module, _, function = name.rpartition(".")
    return getattr(imported(f"accnp.compiler.library.{module}"), function)
