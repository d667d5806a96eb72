"""Functions of flat arguments (`jax.api_util`, `jax.linear_util`), for libraries that transform
functions.

`flatten_fun` and similar functions return a wrapped function of leaves, and a store of the
structure of its result, which is known after a call.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Generator, Sequence
from typing import Any

from accnp.api.jit.abstract_evaluation import aval_of
from accnp.api.tracing.argument_names import argument_names
from accnp.array_type import ArrayLike
from accnp.ir.aval import Aval
from accnp.ir.equations import DebugInfo
from accnp.jax_compat.tracing.wrapped_functions import WrappedFun
from accnp.pytree import PyTree, PyTreeDef, tree_flatten, tree_map, tree_unflatten
from accnp.trace_fn import function_place

__all__ = [
    "StoreException", "argnums_partial", "debug_info", "flatten_axes", "flatten_fun",
    "flatten_fun_nokwargs", "merge_linear_aux", "safe_map", "shaped_abstractify", "transformation",
    "transformation2", "transformation_with_aux", "transformation_with_aux2",
]  # fmt: skip


class StoreException(Exception):
    """Error: auxiliary data was read before it was stored, or stored twice.

    Examples
    --------
    >>> import accnp as jnp
    >>> issubclass(jnp.extend.linear_util.StoreException, Exception)
    True
    """


class Store:
    """Auxiliary data of a transformed function, set by a call."""

    __slots__ = ("contents",)

    def __init__(self) -> None:
        self.contents: list[Any] = []

    def store(self, value: Any) -> None:
        """Store a value; another call replaces it."""
        self.contents = [value]

    def __call__(self) -> Any:
        if not self.contents:
            raise StoreException("the function has not been called yet; call it first")
        return self.contents[0]


# --- transformations of wrapped functions --------------------------------------------------------


def _run(gen: Callable[..., Generator], before: Sequence[Any], f: Any, args: Any, kw: Any) -> Any:
    """Run a transformation, which gets the arguments, yields those of the function, receives its
    result, and yields the final result."""
    steps = gen(*before, *args, **kw)
    inner_args, inner_kwargs = next(steps)
    out = steps.send(f(*inner_args, **inner_kwargs))
    steps.close()
    return out


def transformation(
    gen: Callable[..., Generator], fun: WrappedFun | None = None, *before: object
) -> Any:
    """Make a transformation of wrapped functions from a generator function.

    The generator gets `before` and the arguments, yields `(args, kwargs)` for the function,
    receives its result and yields its own. This also works as a decorator.

    Parameters
    ----------
    gen : callable
        Generator function.
    fun : WrappedFun, optional
        Function to transform. Without it, return the transformation.
    *before : object
        First arguments of the generator.

    Returns
    -------
    WrappedFun or callable
        Transformed function, or the transformation.

    See Also
    --------
    extend.linear_util.transformation_with_aux : Version with further output.
    extend.linear_util.wrap_init : Wrap a function.

    Examples
    --------
    >>> from accnp.extend import linear_util as lu
    >>> @lu.transformation
    ... def doubled(x):
    ...     out = yield (x,), {}
    ...     yield 2 * out
    >>> doubled(lu.wrap_init(lambda x: x + 1)).call_wrapped(3)
    8
    """
    if fun is None:
        return functools.partial(transformation, gen)
    return fun.wrap(lambda *args, **kw: _run(gen, before, fun.call_wrapped, args, kw))


def transformation_with_aux(
    gen: Callable[..., Generator], fun: WrappedFun | None = None, *before: object
) -> Any:
    """Make a transformation of wrapped functions that also returns auxiliary data.

    The generator yields `(result, aux)` in the end.

    Parameters
    ----------
    gen : callable
        Generator function.
    fun : WrappedFun, optional
        Function to transform. Without it, return the transformation.
    *before : object
        First arguments of the generator.

    Returns
    -------
    (WrappedFun, callable) or callable
        Transformed function and a function that returns the auxiliary data, or the transformation.

    Raises
    ------
    StoreException
        If the data is read before the function was called.

    See Also
    --------
    extend.linear_util.transformation : Version without auxiliary data.

    Examples
    --------
    >>> from accnp.extend import linear_util as lu
    >>> @lu.transformation_with_aux
    ... def counted(*xs):
    ...     out = yield xs, {}
    ...     yield out, len(xs)
    >>> fun, count = counted(lu.wrap_init(max))
    >>> fun.call_wrapped(3, 5), count()
    (5, 2)
    """
    if fun is None:
        return functools.partial(transformation_with_aux, gen)
    aux = Store()

    def call(*args: Any, **kw: Any) -> Any:
        out, left = _run(gen, before, fun.call_wrapped, args, kw)
        aux.store(left)
        return out

    return fun.wrap(call), aux


def transformation2(gen: Callable[..., Any], fun: WrappedFun | None = None, *before: Any) -> Any:
    """Make a transformation from a function that gets the inner function as its first argument.

    Parameters
    ----------
    gen : callable
        Function of the inner function, `before` and the arguments.
    fun : WrappedFun, optional
        Function to transform. Without it, return the transformation.
    *before : object
        Arguments of `gen` that come before those of the call.

    Returns
    -------
    WrappedFun or callable
        Transformed function, or the transformation.

    Raises
    ------
    TypeError
        From a call, if `gen` does not accept the arguments.

    See Also
    --------
    extend.linear_util.transformation : Version for generator functions.

    Examples
    --------
    >>> from accnp.extend import linear_util as lu
    >>> @lu.transformation2
    ... def doubled(fun, x):
    ...     return 2 * fun(x)
    >>> doubled(lu.wrap_init(lambda x: x + 1)).call_wrapped(3)
    8
    """
    if fun is None:
        return functools.partial(transformation2, gen)
    return fun.wrap(functools.partial(gen, fun.call_wrapped, *before))


def transformation_with_aux2(
    gen: Callable[..., Any], fun: WrappedFun | None = None, *before: Any, **_: Any
) -> Any:
    """Make a transformation from a function that gets the inner function and a store for data.

    Parameters
    ----------
    gen : callable
        Function of the inner function, a store with a method `store(aux)`, `before` and the
        arguments.
    fun : WrappedFun, optional
        Function to transform. Without it, return the transformation.
    *before : object
        Arguments of `gen` that come before those of the call.

    Returns
    -------
    (WrappedFun, callable) or callable
        Transformed function and a function that returns the stored data, or the transformation.

    Raises
    ------
    StoreException
        If the data is read before the function was called.

    See Also
    --------
    extend.linear_util.transformation_with_aux : Version for generator functions.

    Examples
    --------
    >>> from accnp.extend import linear_util as lu
    >>> @lu.transformation_with_aux2
    ... def counted(fun, store, *xs):
    ...     store.store(len(xs))
    ...     return fun(*xs)
    >>> fun, count = counted(lu.wrap_init(max))
    >>> fun.call_wrapped(3, 5), count()
    (5, 2)
    """
    if fun is None:
        return functools.partial(transformation_with_aux2, gen)
    aux = Store()
    return fun.wrap(functools.partial(gen, fun.call_wrapped, aux, *before)), aux


def merge_linear_aux(aux1: Callable[[], Any], aux2: Callable[[], Any]) -> tuple[bool, Any]:
    """Return the data of that one of two functions that has any.

    Parameters
    ----------
    aux1 : callable
        First function made by `transformation_with_aux`.
    aux2 : callable
        Second function made by `transformation_with_aux`.

    Returns
    -------
    (bool, object)
        Whether it is the first function, and its data.

    Raises
    ------
    StoreException
        If neither or both have data.

    See Also
    --------
    extend.linear_util.transformation_with_aux : Make such functions.

    Examples
    --------
    >>> from accnp.extend import linear_util as lu
    >>> @lu.transformation_with_aux
    ... def counted(*xs):
    ...     out = yield xs, {}
    ...     yield out, len(xs)
    >>> (_, unused), (fun, used) = counted(lu.wrap_init(max)), counted(lu.wrap_init(max))
    >>> fun.call_wrapped(3, 5), lu.merge_linear_aux(unused, used)
    (5, (False, 2))
    """
    matches = []
    for first, aux in ((True, aux1), (False, aux2)):
        try:
            matches.append((first, aux()))
        except StoreException:
            continue
    if len(matches) != 1:
        raise StoreException(
            f"merge_linear_aux: one of two functions must have been called; got {len(matches)}"
        )
    return matches[0]


# --- flat arguments ------------------------------------------------------------------------------


def _flat_results(fun: WrappedFun, call: Callable[..., Any]) -> tuple[WrappedFun, Store]:
    """Wrap a function so that it returns leaves and stores their structure."""
    aux = Store()

    def flat(*leaves: Any) -> list[Any]:
        out, tree = tree_flatten(call(*leaves))
        aux.store(tree)
        return out

    return fun.wrap(flat), aux


def flatten_fun(fun: WrappedFun, in_tree: PyTreeDef, **_: Any) -> tuple[WrappedFun, Store]:
    """Make a function of leaves from one that takes `(args, kwargs)` as a pytree.

    Parameters
    ----------
    fun : WrappedFun
        Function of pytrees.
    in_tree : PyTreeDef
        Structure of `(args, kwargs)`.

    Returns
    -------
    flat : WrappedFun
        Function from leaves to a list of leaves.
    out_tree : callable
        Function that returns the structure of the result after a call.

    See Also
    --------
    api_util.flatten_fun_nokwargs : Version without keyword arguments.

    Examples
    --------
    >>> import accnp as jax
    >>> from accnp.extend import linear_util as lu
    >>> leaves, tree = jax.tree.flatten(((1, {"a": 2}), {}))
    >>> flat, out_tree = jax.api_util.flatten_fun(lu.wrap_init(lambda x, d: (x, d["a"])), tree)
    >>> flat.call_wrapped(*leaves), out_tree()
    ([1, 2], PyTreeDef((*, *)))
    """

    def call(*leaves: Any) -> Any:
        args, kwargs = tree_unflatten(in_tree, leaves)
        return fun.call_wrapped(*args, **kwargs)

    return _flat_results(fun, call)


def flatten_fun_nokwargs(fun: WrappedFun, in_tree: PyTreeDef, **_: Any) -> tuple[WrappedFun, Store]:
    """Make a function of leaves from one that takes positional arguments as a pytree.

    Parameters
    ----------
    fun : WrappedFun
        Function of pytrees.
    in_tree : PyTreeDef
        Structure of the tuple of arguments.

    Returns
    -------
    flat : WrappedFun
        Function from leaves to a list of leaves.
    out_tree : callable
        Function that returns the structure of the result after a call.

    See Also
    --------
    api_util.flatten_fun : Version with keyword arguments.

    Examples
    --------
    >>> import accnp as jax
    >>> from accnp.extend import linear_util as lu
    >>> leaves, tree = jax.tree.flatten(((1, 2),))
    >>> flat, _ = jax.api_util.flatten_fun_nokwargs(lu.wrap_init(sum), tree)
    >>> flat.call_wrapped(*leaves)
    [3]
    """
    return _flat_results(fun, lambda *leaves: fun.call_wrapped(*tree_unflatten(in_tree, leaves)))


def argnums_partial(
    f: WrappedFun, dyn_argnums: int | Sequence[int], args: Sequence[Any], **_: Any
) -> tuple[WrappedFun, list[Any]]:
    """Fix all arguments of a function except those with the given positions.

    Parameters
    ----------
    f : WrappedFun
        Function of positional arguments.
    dyn_argnums : int or sequence of int
        Positions of the arguments that stay free.
    args : sequence
        All arguments.

    Returns
    -------
    fixed : WrappedFun
        Function of the free arguments.
    values : list
        Their values in `args`.

    Raises
    ------
    ValueError
        If a position is out of range.

    See Also
    --------
    extend.linear_util.wrap_init : Wrap a function.

    Examples
    --------
    >>> import accnp as jax
    >>> from accnp.extend import linear_util as lu
    >>> f, given = jax.api_util.argnums_partial(lu.wrap_init(pow), 0, [2, 3])
    >>> given, f.call_wrapped(5)
    ([2], 125)
    """
    numbers = (dyn_argnums,) if isinstance(dyn_argnums, int) else tuple(dyn_argnums)
    for i in numbers:
        if not -len(args) <= i < len(args):
            raise ValueError(
                f"argnums_partial: dyn_argnums must index {len(args)} arguments; got {i}; "
                "pass one position for each value"
            )
    places = [i % len(args) for i in numbers]

    def partial(*dynamic: Any, **kwargs: Any) -> Any:
        whole = list(args)
        for i, x in zip(places, dynamic, strict=True):
            whole[i] = x
        return f.call_wrapped(*whole, **kwargs)

    return f.wrap(partial), [args[i] for i in places]


def flatten_axes(
    name: str,
    treedef: PyTreeDef,
    axis_tree: PyTree,
    *,
    kws: bool = False,
    tupled_args: bool = False,
) -> list[Any]:
    """Repeat a pytree prefix of axes, such as `in_axes`, over all leaves; None is a leaf.

    Parameters
    ----------
    name : str
        What the prefix is, for error messages.
    treedef : PyTreeDef
        Structure of the arguments.
    axis_tree : pytree
        Prefix of the structure.
    kws : bool, optional
        Whether the structure has keyword arguments. The default is False.
    tupled_args : bool, optional
        Whether the structure is a tuple of arguments. The default is False.

    Returns
    -------
    list
        One axis for each leaf.

    Raises
    ------
    ValueError
        If `axis_tree` is not a prefix of the structure.

    See Also
    --------
    tree.broadcast : Repeat a prefix over a pytree.

    Examples
    --------
    >>> import accnp as jax
    >>> jax.api_util.flatten_axes("in_axes", jax.tree.structure((1, (2, 3))), (0, None))
    [0, None, None]
    """
    marks = tree_unflatten(treedef, [object()] * treedef.num_leaves)
    if kws:  # (args, kwargs): keywords have axis 0
        axis_tree = (axis_tree, tree_map(lambda _: 0, marks[1]))
    out: list[Any] = []
    try:
        tree_map(
            lambda axis, part: out.extend([axis] * len(tree_flatten(part)[0])),
            axis_tree, marks, is_leaf=lambda x: x is None,
        )  # fmt: skip
    except ValueError:
        of = " (a tuple with one element for each argument)" if tupled_args else ""
        raise ValueError(
            f"{name} must be a prefix of the structure of the values{of}; got {axis_tree!r} for "
            f"{treedef}; pass a prefix of that"
        ) from None
    return out


def safe_map(f: Callable[..., Any], *lists: Sequence[Any]) -> list[Any]:
    """Apply a function to the elements of sequences of equal length, and return a list.

    Parameters
    ----------
    f : callable
        Function of one element of each sequence.
    *lists : sequence
        Arguments of the calls.

    Returns
    -------
    list
        Results.

    Raises
    ------
    ValueError
        If the lengths differ.

    See Also
    --------
    tree.map : Apply a function to leaves.

    Examples
    --------
    >>> import accnp as jax
    >>> jax.api_util.safe_map(max, [1, 5], [3, 2])
    [3, 5]
    """
    columns = [list(x) for x in lists]
    lengths = [len(x) for x in columns]
    if len(set(lengths)) > 1:
        raise ValueError(
            f"safe_map: sequences must have equal lengths; got {lengths}; slice the longer ones"
        )
    return list(map(f, *columns))


def shaped_abstractify(x: ArrayLike) -> Aval:
    """Return the type of an array, a number, or any object with a shape and a dtype.

    Parameters
    ----------
    x : array_like
        Value whose type to return.

    Returns
    -------
    ShapedArray
        Shape and dtype.

    Raises
    ------
    TypeError
        If `x` has neither.

    See Also
    --------
    typeof : Type of an array.

    Examples
    --------
    >>> import accnp as jax
    >>> jax.api_util.shaped_abstractify(jax.numpy.ones(3))
    ShapedArray(float32[3])
    """
    return aval_of(x, "shaped_abstractify")


def debug_info(
    traced_for: str, fun: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any], **_: Any
) -> DebugInfo:
    """Describe what is traced: its purpose, the function and its line, and the argument names.

    Parameters
    ----------
    traced_for : str
        Name of the transformation.
    fun : callable
        Function to describe.
    args : sequence
        Positional arguments.
    kwargs : dict
        Keyword arguments.

    Returns
    -------
    core.DebugInfo
        Description for error messages.

    See Also
    --------
    core.DebugInfo : Class of the result.

    Examples
    --------
    >>> import accnp as jax
    >>> jax.api_util.debug_info("jit", lambda x, y: x, (1, 2), {}).arg_names
    ('x', 'y')
    """
    name, file, line = function_place(fun)
    try:
        names = tuple(argument_names(fun, tuple(args), kwargs))
    except (TypeError, ValueError):  # structures instead of arguments
        names = None
    return DebugInfo(traced_for, f"{name} at {file}:{line}" if file else name, names)
