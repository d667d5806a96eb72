"""Callbacks to Python functions: `pure_callback` and `io_callback`.

A callback is recorded as an op with the declared result types; the function runs when the values of
the op are computed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from accnp import dtypes
from accnp.api.arguments.convert import as_node
from accnp.array_type import Array, from_numpy, wrap
from accnp.errors import api_boundary
from accnp.ir.aval import Aval, make_aval
from accnp.ir.node import items
from accnp.ir.op import o
from accnp.primitives.callback import VMAP_METHODS
from accnp.pytree import PyTree, PyTreeDef, flatten_arrays, leaf_names, tree_flatten, tree_leaves
from accnp.trace_fn import function_place

__all__ = ["as_arrays", "io_callback", "place_text", "pure_callback"]


def as_arrays(values: Sequence[np.ndarray]) -> list[Array]:
    """Return the arguments of a callback: arrays that share buffers, which are not written to."""
    return [from_numpy(x, copy=False) for x in values]


@dataclass(frozen=True)
class _FlatCallback:
    """The user's function as a function from a list of arrays to a list of results."""

    callback_func: Callable[..., Any]
    in_tree: PyTreeDef

    def __call__(self, *values: np.ndarray) -> list[Any]:
        args, kwargs = self.in_tree.unflatten(as_arrays(values))
        return tree_leaves(self.callback_func(*args, **kwargs))

    @property
    def place(self) -> str:
        """The name of the function in errors."""
        return place_text(self.callback_func)


def place_text(fn: Any) -> str:
    """Return a function's name, file and line."""
    name, file, line = function_place(fn)
    return f"{name} ({file}:{line})" if file else name


def _declared_avals(name: str, shapes: Any) -> tuple[tuple[Aval, ...], PyTreeDef]:
    leaves, tree = tree_flatten(shapes)
    avals = []
    for i, x in enumerate(leaves):
        if not hasattr(x, "shape") or not hasattr(x, "dtype"):
            raise TypeError(
                f"{name}: result_shape_dtypes{leaf_names(shapes)[i]} must have a shape and a "
                f"dtype; got {x!r}; pass a ShapeDtypeStruct, or an array of that type"
            )
        dtype = np.dtype(x.dtype)
        if dtypes.canonicalize_dtype(dtype) != dtype:
            raise ValueError(
                f"{name}: result_shape_dtypes cannot specify 64-bit types when `jax_enable_x64` is "
                f"disabled; got {dtype.name} (result_shape_dtypes{leaf_names(shapes)[i]}); "
                "declare a 32-bit type and return it, or enable 64-bit types with "
                'config.update("jax_enable_x64", True)'
            )
        avals.append(make_aval(tuple(x.shape), dtype))
    return tuple(avals), tree


def _record_callback(
    name: str, callback: Any, shapes: Any, args: tuple, kwargs: dict[str, Any], **how: Any
) -> Any:
    if not callable(callback):
        raise TypeError(f"{name}: the callback must be a function; got {callback!r}; pass one")
    avals, out_tree = _declared_avals(name, shapes)
    leaves, in_tree = flatten_arrays((args, kwargs))
    nodes = [as_node(x, name) for x in leaves]
    flat = _FlatCallback(callback, in_tree.shown())  # keys are passed as their words
    outputs = getattr(o, name)(*nodes, callback=flat, result_avals=avals, **how)
    return out_tree.unflatten([wrap(x) for x in items(outputs)])


@api_boundary
def pure_callback(
    callback: Callable[..., Any],
    result_shape_dtypes: PyTree,
    *args: PyTree,
    sharding: object = None,
    vmap_method: str | None = None,
    **kwargs: PyTree,
) -> Any:
    """Call a Python function without side effects when the values of its arguments are computed.

    It works in traced functions. A call whose result is not used may be removed, and a call may be
    repeated.

    Parameters
    ----------
    callback : callable
        Function of arrays in the pytree structure of the arguments that returns a pytree of arrays.
    result_shape_dtypes : pytree of ShapeDtypeStruct
        Shape and dtype of each result, which the function must return.
    *args : pytree of array_like
        Positional arguments of the function.
    sharding : object, optional
        Ignored; present for compatibility with JAX.
    vmap_method : str, optional
        What `vmap` does: "sequential" (one call for each example, in a loop), "sequential_unrolled"
        (the same without a loop), "expand_dims" (one call; arguments that are not mapped get an
        axis of length 1), "broadcast_all" (one call; they are repeated), "legacy_vectorized" (one
        call; they are passed as they are). The default, None, is an error.
    **kwargs : pytree of array_like
        Keyword arguments of the function.

    Returns
    -------
    pytree of Array
        Results with the declared shapes and dtypes.

    Raises
    ------
    JaxRuntimeError
        Where the result is waited for, if the function failed or returned something else than
        declared.
    ValueError
        If the call is differentiated. Give the function a rule with `custom_jvp`.

    See Also
    --------
    experimental.io_callback : Call a function with side effects.
    debug.callback : Call a function that returns nothing.

    Examples
    --------
    >>> import accnp as jax
    >>> import numpy as np
    >>> shape = jax.ShapeDtypeStruct((3,), "int32")
    >>> jax.jit(lambda x: jax.pure_callback(np.flip, shape, x) + 1)(jax.arange(3))
    Array([3, 2, 1], dtype=int32)
    """
    if vmap_method not in (*VMAP_METHODS, None):
        # "on of" is a misspelling in the message of JAX, which programs may match.
        raise ValueError(
            f"pure_callback: vmap_method must be on of the allowed methods {[*VMAP_METHODS, None]},"
            f" but got: {vmap_method}; pass one of these methods"
        )
    return _record_callback(
        "pure_callback", callback, result_shape_dtypes, args, kwargs, vmap_method=vmap_method
    )


@api_boundary
def io_callback(
    callback: Callable[..., Any],
    result_shape_dtypes: PyTree,
    *args: PyTree,
    sharding: object = None,
    ordered: bool = False,
    **kwargs: PyTree,
) -> Any:
    """Call a Python function with side effects when the values of its arguments are computed.

    The function is called exactly once each time the program runs, whether its results are used or
    not. Calls keep the order of the program.

    Parameters
    ----------
    callback : callable
        Function of arrays in the pytree structure of the arguments that returns a pytree of arrays.
    result_shape_dtypes : pytree of ShapeDtypeStruct
        Shape and dtype of each result; None if there are no results.
    *args : pytree of array_like
        Positional arguments of the function.
    sharding : object, optional
        Ignored; present for compatibility with JAX.
    ordered : bool, optional
        Whether the order of calls must be kept, which `vmap` rejects. The default is False.
    **kwargs : pytree of array_like
        Keyword arguments of the function.

    Returns
    -------
    pytree of Array
        Results with the declared shapes and dtypes.

    Raises
    ------
    JaxRuntimeError
        Where the result is waited for, or from `effects_barrier`, if the function failed or
        returned something else than declared.
    ValueError
        If the call is differentiated.

    See Also
    --------
    pure_callback : Call a function without side effects.
    debug.callback : Call a function that returns nothing.
    effects_barrier : Wait for all calls.

    Examples
    --------
    >>> import accnp as jax
    >>> from accnp.experimental import io_callback
    >>> seen = []
    >>> jax.jit(lambda x: io_callback(lambda v: seen.append(int(v)), None, x * 2))(4)
    >>> jax.effects_barrier()
    >>> seen
    [8]
    """
    return _record_callback(
        "io_callback", callback, result_shape_dtypes, args, kwargs, ordered=bool(ordered)
    )
