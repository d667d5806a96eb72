"""`kernel`: a user's function as an operation.

It takes the function and the types of its results, and returns a callable that records one
operation per call. A function of numbers becomes part of generated kernels; a function of arrays is
called as a whole.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from accnp.api.arguments.convert import as_node
from accnp.api.differentiation.custom_jvp import custom_jvp
from accnp.api.differentiation.custom_vjp import custom_vjp
from accnp.api.kernels.arrays import ArrayFunction
from accnp.api.kernels.cuda import CudaFunction, is_cuda
from accnp.api.kernels.scalars import ScalarFunction
from accnp.api.kernels.texts import python_function
from accnp.api.mapping.custom_vmap import custom_vmap
from accnp.errors import api_boundary

__all__ = ["UserKernel", "kernel"]


class UserKernel:
    """An operation made by `kernel`; call it with arrays.

    Attributes:
        function: the user's function.
        kind: "scalar" (part of generated kernels), "array" (called whole) or "cuda".
    """

    def __init__(
        self, body: ScalarFunction | ArrayFunction | CudaFunction, rules: dict[str, Any]
    ) -> None:
        self._body = body
        self._rules = rules
        self.function = body.function
        self.kind = body.kind
        self.__name__ = self.__qualname__ = body.name
        self.__doc__ = f"The kernel {body.name} as an operation on arrays."
        self._ruled: dict[Any, Callable[..., Any]] = {}

    def __repr__(self) -> str:
        return f"<{self.kind} kernel {self._body.of}>"

    @api_boundary
    def __call__(self, *operands: Any, **static: Any) -> Any:
        """Apply the kernel to arrays; what is given by name is static, the function's own."""
        try:
            key = tuple(static.items())
            function = self._ruled.get(key)
        except TypeError:
            raise TypeError(
                f"kernel: what {self.__name__} is given by name is static and must be a number, a "
                f"bool, a text or a tuple of these; got {static!r}; give arrays by position"
            ) from None
        if function is None:
            function = self._ruled[key] = self._with_rules(static)
        return function(*operands)

    def _with_rules(self, static: dict[str, Any]) -> Callable[..., Any]:
        """The operation for these static arguments, in the user-defined rules."""

        def call(*operands: Any) -> Any:
            return self._body.record([as_node(x, self.__name__) for x in operands], static)

        call.__name__ = call.__qualname__ = self.__name__
        function: Any = call
        rules = self._rules
        if rules["vmap"] is not None:
            function = custom_vmap(function)
            function.def_vmap(_bind_static(rules["vmap"], static))
        if rules["jvp"] is not None:
            function = custom_jvp(function)
            function.defjvp(_bind_static(rules["jvp"], static))
        if rules["vjp"] is not None:
            forward, backward = rules["vjp"]
            function = custom_vjp(function)
            function.defvjp(_bind_static(forward, static), _bind_static(backward, static))
        return function


def _bind_static(rule: Callable[..., Any], static: dict[str, Any]) -> Callable[..., Any]:
    if not static:
        return rule
    bound_rule = functools.partial(rule, **static)
    return functools.wraps(rule)(lambda *args: bound_rule(*args))


@api_boundary
def kernel(
    function: Any = None,
    out: Any = None,
    *,
    vmap: Callable[..., Any] | None = None,
    jvp: Callable[..., Any] | None = None,
    vjp: tuple[Callable[..., Any], Callable[..., Any]] | None = None,
    name: str | None = None,
    fill: Any = None,
    cost: int | None = None,
    grid: Any = None,
    cpu: Any = None,
) -> Any:
    """Make an array operation of a function that Numba compiles.

    Without shapes in `out`, the function is one of numbers: it is applied to each element, and
    operands are broadcast. With shapes in `out`, it is a function of arrays. The operation is lazy,
    works under `jit`, in loops and under `vmap`, can be differentiated by the given rules, and
    appears in jaxprs as `kernel_<name>`.

    Parameters
    ----------
    function : callable or str, optional
        Function made by `numba.njit`, `numba.vectorize` or `numba.cuda.jit`, a plain Python
        function, or the source of one `__global__` function in CUDA C. Without it, a decorator is
        returned.
    out : dtype_like, pytree of ShapeDtypeStruct or callable, optional
        Types of the results. For a function of numbers it is the dtype of the result; the default
        is what Numba infers, or the 32-bit dtype of that kind without `enable_x64`. For a function
        of arrays it is a pytree of objects with shape and dtype, or a function that makes one from
        those of the operands (and from the static arguments, by name).
    vmap : callable, optional
        Batching rule `(axis_size, in_batched, *operands) -> (results, out_batched)`, as for
        `custom_vmap`. Without one, a function of arrays is called for each example in turn.
    jvp : callable, optional
        Derivative rule `(primals, tangents) -> (results, tangents)`, as for `custom_jvp`.
    vjp : (callable, callable), optional
        Pair of rules as for `custom_vjp`: `forward(*operands) -> (results, residuals)` and
        `backward(residuals, cotangents) -> cotangents of the operands`.
    name : str, optional
        Name in errors, jaxprs and `inspect`. The default is the name of the function.
    fill : scalar, optional
        Initial value of the arrays for results. By default they are uninitialized.
    cost : int, optional
        Simple instructions for one element, from which fusion and the number of threads are
        decided. The default is 20, and 1000 for a function of arrays.
    grid : tuple or callable, optional
        Launch configuration of a GPU kernel: (blocks, threads) or (blocks, threads, bytes of shared
        memory), where the first two are integers or tuples of up to three. A function makes it from
        the same arguments as that in `out`.
    cpu : callable, optional
        Function of arrays to call instead if the operands are on the CPU. The default is the
        simulator of Numba.

    Returns
    -------
    callable
        Operation on arrays, or a decorator that makes one.

    Raises
    ------
    TypeError
        If `function` is not such a function; from a call, if Numba cannot compile the function for
        the operands. The message has the reason and the line.
    ValueError
        If the options do not belong together, `out` is wrong, or the function cannot be part of
        kernels, for example because it reads an array from outside.
    NotImplementedError
        If the operation is differentiated and has no rule.

    See Also
    --------
    pure_callback : Call a Python function that Numba cannot compile.
    override : Replace a generated kernel.
    inspect : Show the kernels of a function.
    custom_vjp : Rules for functions of arrays.

    Notes
    -----
    A function of numbers becomes part of the kernels around it: `jnp.sum(f(x) * 2)` is one kernel.
    Its arithmetic is that of Numba: `x * 0.5` for a float32 is computed in float64; write
    `np.float32(0.5)` to avoid this.

    A function of arrays is called with read-only NumPy arrays in C order (operands of rank 0 are
    numbers), followed by an array for each result to write to; if it takes only the operands, it
    returns the results. It runs without the global interpreter lock, in the background if it is
    large. Nothing checks that it stays within its arrays: writing past them corrupts memory, as in
    any Numba function without `boundscheck=True`.

    A GPU kernel gets its operands, arrays for its results, and static values: by name in Numba,
    after the others in CUDA C (Python numbers as 32-bit int and float). Arrays are passed as in
    Numba, or as pointers; for operands of rank 0, which are numbers, the launch waits. Numba's
    kernels need no CUDA toolkit, and CUDA C is compiled by CuPy.

    Examples
    --------
    >>> import accnp as jnp
    >>> @jnp.kernel
    ... def half_wave(x):
    ...     return x if x > 0 else x * 0
    >>> jnp.sum(half_wave(jnp.array([-1.0, 2.0, 3.0])) * 2)
    Array(10., dtype=float32)
    >>> @jnp.kernel(out=lambda x: x)
    ... def running_max(x, y):
    ...     y[0] = x[0]
    ...     for i in range(1, x.size):
    ...         y[i] = max(x[i], y[i - 1])
    >>> running_max(jnp.array([1, 3, 2, 4]))
    Array([1, 3, 3, 4], dtype=int32)
    """
    options = {
        "vmap": vmap, "jvp": jvp, "vjp": vjp, "name": name, "fill": fill, "cost": cost,
        "grid": grid, "cpu": cpu,
    }  # fmt: skip
    if function is None:
        return functools.partial(kernel, out=out, **options)
    for_gpu = is_cuda(function)
    if not for_gpu and (grid is not None or cpu is not None):
        raise ValueError(
            f"kernel: grid and cpu are for kernels on GPUs; got grid={grid!r}, cpu={cpu!r} and a "
            f"function of the CPU, {function!r}; leave them out, or pass a kernel of "
            "numba.cuda.jit or a text in CUDA C (and this function as cpu)"
        )
    if not for_gpu and python_function(function) is None:
        raise TypeError(
            f"kernel: needs a function that Numba compiles; got {function!r}; pass one made by "
            "numba.njit, numba.vectorize or numba.cuda.jit, a plain function, or a text in CUDA C"
        )
    if jvp is not None and vjp is not None:
        raise ValueError(
            f"kernel: there can be one rule for derivatives; got jvp={jvp!r} and vjp={vjp!r}; "
            "give one of them"
        )
    rules = {"vmap": vmap, "jvp": jvp, "vjp": vjp}
    if for_gpu:
        if out is None or _is_dtype(out) or grid is None:
            raise ValueError(
                "kernel: a kernel for GPUs needs the shapes of its results and a grid; got "
                f"out={out!r}, grid={grid!r}; give both"
            )
        host = None if cpu is None else ArrayFunction(cpu, name, out, fill, cost or 1000)
        return UserKernel(CudaFunction(function, name, out, fill, cost or 1000, grid, host), rules)
    if out is None or _is_dtype(out):
        if fill is not None or vmap is not None:
            raise ValueError(
                "kernel: a function of numbers has no use for fill and vmap; got "
                f"fill={fill!r}, vmap={vmap!r}; leave them out, or give shapes in out"
            )
        dtype = None if out is None else np.dtype(out)
        return UserKernel(ScalarFunction(function, name, dtype, cost or 20), rules)
    return UserKernel(ArrayFunction(function, name, out, fill, cost or 1000), rules)


def _is_dtype(out: Any) -> bool:
    return isinstance(out, str | np.dtype) or (
        isinstance(out, type)
        and (issubclass(out, np.generic) or out in (bool, int, float, complex))
    )
