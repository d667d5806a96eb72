"""A user's kernel for GPUs (for `numba.cuda`, or CUDA C source) as an operation.

It takes the kernel, its grid and the types of its results, and returns `record`, a function that
records the operation for given operands. On a GPU, the kernel is launched on accnp's stream. On the
CPU, a replacement function or Numba's simulator runs instead.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from accnp import dtypes
from accnp.api.arguments.convert import wrap
from accnp.api.jit.abstract_evaluation import ShapeDtypeStruct
from accnp.api.kernels.arrays import ArrayFunction, result_avals
from accnp.errors import JaxRuntimeError
from accnp.ir.aval import Aval
from accnp.ir.node import Node, items, record
from accnp.lazy_imports import imported
from accnp.primitives.user_kernels import array_op
from accnp.runtime.driver import DEFAULT_SHARED_BYTES, GPUUnavailable, drivers
from accnp.trace_fn import function_place

__all__ = ["CudaFunction", "is_cuda"]

THREADS, DEEP = 1024, 64  # maximum number of threads in a block, and along its third axis
BLOCKS = ((1 << 31) - 1, 65535, 65535)  # maximum number of blocks in a grid along each axis

_ENTRY = re.compile(r"__global__[^;{(]*?\bvoid\b(?:\s+__launch_bounds__\s*\([^)]*\))?\s+(\w+)\s*\(")


def is_cuda(function: Any) -> bool:
    """Return whether a value is a kernel for GPUs: one of `numba.cuda`, or CUDA C source."""
    if isinstance(function, str):
        return True
    home = type(function).__module__
    device = getattr(function, "targetoptions", {}).get("device") or getattr(function, "_device", 0)
    return home.startswith(("numba.cuda", "numba_cuda")) and not device


def _names(source: str) -> list[str]:
    return _ENTRY.findall(re.sub(r"//.*|/\*.*?\*/", "", source))


class CudaFunction:
    """A kernel for GPUs. `out` declares its results, and `grid` how it is launched."""

    kind = "cuda"

    def __init__(
        self,
        function: Any,
        name: str | None,
        out: Any,
        fill: Any,
        cost: int,
        grid: Any,
        cpu: ArrayFunction | None,
    ) -> None:
        self.function = function
        self.out, self.fill, self.grid, self.cpu = out, fill, grid, cpu
        if isinstance(function, str):
            self.entry = _entry_of(function, name)
            self.name, self.of = self.entry, f"{self.entry} (CUDA C)"
        else:
            python = getattr(function, "py_func", None) or function.fn  # the simulator's
            self.python: Any = python
            self.name = name or python.__name__
            self.of = "{} ({}:{})".format(*function_place(python))
        self.op = array_op(self.name, self.on_cpu, _jaxpr_params, cost, self.on_gpu)
        self.loaded: dict[Any, Any] = {}

    def record(self, nodes: Sequence[Node], static: dict[str, Any]) -> Any:
        """Record the operation for operands."""
        avals, tree = result_avals(self.out, nodes, static)
        params = {"result_avals": avals, "static": tuple(static.items())}
        results = items(record(self.op, tuple(nodes), params))
        return tree.unflatten([wrap(x) for x in results])

    # --- on the CPU ---

    def on_cpu(
        self, *arrays: np.ndarray, result_avals: Sequence[Aval], static: tuple[Any, ...]
    ) -> list[np.ndarray]:
        """Call the replacement function for the CPU, or the simulator."""
        if self.cpu is not None:
            self.cpu.check(arrays, result_avals, dict(static))
            return self.cpu.run(*arrays, result_avals=result_avals, static=static)
        if type(self.function).__module__.startswith("numba.cuda.simulator"):
            blocks, threads, shared = self.launch(arrays, dict(static))
            outs = [np.empty(a.shape, a.dtype) for a in result_avals]
            for x in outs if self.fill is not None else ():
                x.fill(self.fill)
            # Pass copies, because the simulator copies all arguments back.
            ins = [np.array(x) if x.shape else x[()] for x in arrays]
            arguments = self.in_order([*ins, *outs], dict(static))
            self.function[blocks, threads, 0, shared](*arguments)
            return outs
        try:
            drivers()
            why = "move them with device_put(x, devices('gpu')[0])"
        except GPUUnavailable as error:
            why = f"no GPU is available: {error}"
        raise JaxRuntimeError(
            f"kernel: {self.of} is written for GPUs, and its operands are on the CPU; {why}; or "
            "give kernel a function for the CPU with cpu="
        )

    # --- on a GPU ---

    def on_gpu(
        self, driver: Any, *arrays: Any, result_avals: Sequence[Aval], static: tuple[Any, ...]
    ) -> list[Any]:
        """Launch the kernel on arrays of the driver's library, and return new arrays."""
        xp, named = driver.xp, dict(static)
        blocks, threads, shared = self.launch(arrays, named)
        ins = [xp.ascontiguousarray(x) if x.shape else x.item() for x in arrays]
        ins = [x if a.shape else a.dtype.type(x) for x, a in zip(ins, arrays, strict=True)]
        outs = [xp.empty(a.shape, a.dtype) for a in result_avals]
        for x in outs if self.fill is not None else ():
            x.fill(self.fill)
        arguments = self.in_order([*ins, *outs], named)
        try:
            if isinstance(self.function, str):
                self.raw(xp, shared)(blocks, threads, tuple(arguments), shared_mem=shared)
            else:
                self.numba(driver, arguments, outs, blocks, threads, shared)
        except JaxRuntimeError:
            raise
        except Exception as error:
            raise JaxRuntimeError(
                f"kernel: {self.of} cannot be launched: {type(error).__name__}: {error}"
            ) from error
        return outs

    def raw(self, xp: Any, shared: int) -> Any:
        """Return the kernel of CUDA C source, which NVRTC compiles."""
        kernel = self.loaded.get(id(xp))
        if kernel is None:
            kernel = self.loaded[id(xp)] = xp.RawKernel(self.function, self.entry)
        if shared > DEFAULT_SHARED_BYTES:
            kernel.max_dynamic_shared_size_bytes = shared
        return kernel

    def numba(
        self, driver: Any, arguments: Sequence[Any], outs: Sequence[Any], blocks: Any, threads: Any,
        shared: int,
    ) -> None:  # fmt: skip
        """Launch a kernel of `numba.cuda`, which is compiled for the types of its arguments."""
        user = imported("accnp.compiler.numba.user_cuda")
        results = {id(x) for x in outs}
        kinds = tuple([
            user.Argument(x.dtype, x.ndim, id(x) not in results)
            if hasattr(x, "strides") and not isinstance(x, np.generic)
            else user.Argument(x.dtype, None)
            for x in arguments
        ])  # fmt: skip
        width = int(np.prod(threads))
        key = (id(driver), kinds, width)
        function = self.loaded.get(key)
        if function is None:
            try:
                ptx = user.ptx_of_user(self.function, kinds, width, driver.cc)
            except Exception as error:
                short = imported("accnp.compiler.numba.user_functions").short
                raise JaxRuntimeError(short(error, self.of, self.python, arguments)) from None
            function = self.loaded[key] = driver.load(ptx.text, ptx.name)
        words: list[int] = []
        device_arrays = []
        for x, kind in zip(arguments, kinds, strict=True):
            if kind.rank is None:
                words.append(user.number_word(x))
            else:
                device_arrays.append(driver.adopt(x))
                words += [device_arrays[-1].ptr, *x.shape]
        driver.launch(function, blocks, threads, words, shared)

    # --- the launch ---

    def launch(self, arrays: Sequence[Any], static: dict[str, Any]) -> tuple[Any, Any, int]:
        """Return blocks and threads, as tuples of one to three ints, and bytes of shared memory."""
        grid: Any = self.grid
        if callable(grid):
            grid = grid(*[ShapeDtypeStruct(x.shape, x.dtype) for x in arrays], **static)
        try:
            blocks, threads, *rest = grid
            (shared,) = map(operator.index, rest or (0,))
            sizes = [tuple(map(operator.index, n if isinstance(n, Sequence) else (n,)))
                     for n in (blocks, threads)]  # fmt: skip
            good = shared >= 0 and all(0 < len(s) <= 3 and min(s) > 0 for s in sizes)
        except (TypeError, ValueError):
            good = False
        if not good:
            raise ValueError(
                f"kernel: the grid of {self.of} must be (blocks, threads) or (blocks, threads, "
                f"bytes of shared memory), positive integers or up to three of them; got {grid!r}; "
                "pass one of these"
            )
        wide = prod(sizes[1]) > THREADS or sizes[1][2:] > (DEEP,)
        if wide or any(n > most for n, most in zip(sizes[0], BLOCKS, strict=False)):
            raise ValueError(
                f"kernel: the grid of {self.of} is larger than CUDA has; got {grid!r}; let a block "
                f"have {THREADS} threads at most, {DEEP} along the third axis, and a grid "
                f"{BLOCKS[0]} blocks, {BLOCKS[1]} along the second and third"
            )
        return sizes[0], sizes[1], shared

    def in_order(self, values: list[Any], static: dict[str, Any]) -> list[Any]:
        """Return the arguments in the order of the kernel's parameters. In CUDA C, static values
        follow the arrays; in Python, they have the positions of their names."""
        named = {k: _convert_static(v) for k, v in static.items()}
        if isinstance(self.function, str):
            return [*values, *named.values()]
        code = self.python.__code__
        names = code.co_varnames[: code.co_argcount]
        free = iter(values)
        count = len([n for n in names if n not in named])
        if count != len(values) or not named.keys() <= set(names):
            raise JaxRuntimeError(
                f"kernel: {self.of} has the parameters {', '.join(names)}; got {len(values)} "
                f"operands and results, and {sorted(named)} by name; pass one for each"
            )
        return [named[n] if n in named else next(free) for n in names]


def _entry_of(source: str, name: str | None) -> str:
    entry_names = _names(source)
    if entry_names and 'extern "C"' not in source:
        raise ValueError(
            'kernel: a CUDA C text needs extern "C" before its kernel, so that its name is that; '
            f'got {entry_names[0]} without; write extern "C" __global__ void {entry_names[0]}(...)'
        )
    if name is None and len(entry_names) == 1:
        return entry_names[0]
    if name is None or (entry_names and name not in entry_names):
        raise ValueError(
            "kernel: name must say which kernel of the CUDA C text is meant; got "
            f"name={name!r}, and the text has "
            f"{', '.join(entry_names) or 'no __global__ void function'}; pass the name of one"
        )
    return name


def _convert_static(value: Any) -> Any:
    """Convert a static value for a kernel: to 32 bits, unless it is a NumPy scalar or 64-bit types
    are enabled."""
    if isinstance(value, np.generic):
        return value
    return np.asarray(value, dtypes.canonicalize_dtype(np.asarray(value).dtype))[()]


def _jaxpr_params(params: dict[str, Any]) -> dict[str, Any]:
    return dict(params["static"])
