"""Functions and their arguments by name: names for messages, such as `x` or `params['w'][0]`, and
keyword arguments as positional ones."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from types import FunctionType
from typing import Any

from accnp import pytree
from accnp.caches import BoundedCache
from accnp.pytree import PyTreeDef, array_structure

__all__ = [
    "argument_names", "function_name", "leaf_paths", "positional_argument_names",
    "positional_arguments", "positional_names",
]  # fmt: skip

_VARARGS = inspect.CO_VARARGS
# Paths of leaves by structure, since most calls repeat a structure.
_PATHS: BoundedCache[PyTreeDef, list[str]] = BoundedCache("type_cache_size").register(
    "leaf names", "names of leaves, by structure of the arguments"
)


def function_name(fun: Any) -> str:
    """Return a function's name, for messages."""
    while isinstance(fun, functools.partial):
        fun = fun.func
    return getattr(fun, "__name__", None) or str(fun)


def positional_names(fun: Callable[..., Any]) -> tuple[list[str], str]:
    """Return the names of a function's positional parameters, and the name of `*args` or ""."""
    if type(fun) is FunctionType and not fun.__dict__:
        # The result of inspect.signature, in a tenth of its 15 us.
        code = fun.__code__
        count = code.co_argcount
        rest = code.co_varnames[count + code.co_kwonlyargcount] if code.co_flags & _VARARGS else ""
        return list(code.co_varnames[:count]), rest
    try:
        parameters = inspect.signature(fun).parameters.values()
    except (TypeError, ValueError):
        return [], ""
    rest = [p.name for p in parameters if p.kind is p.VAR_POSITIONAL]
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return [p.name for p in parameters if p.kind in positional], rest[0] if rest else ""


def leaf_paths(tree: Any, structure: PyTreeDef) -> list[str]:
    """Return the path of each leaf ("" for a tree that is a leaf), cached by structure."""
    if structure.is_leaf():
        return [""]
    try:
        paths = _PATHS.get(structure) or _PATHS.recall(structure)
    except (TypeError, ValueError):  # unhashable static data, or arrays
        return pytree.leaf_names(tree)
    if paths is None:
        paths = pytree.leaf_names(tree)
        _PATHS.store(structure, paths)
    return paths


def argument_names(fun: Callable[..., Any], args: Sequence[Any], kwargs: dict) -> list[str]:
    """Return a name for each leaf of the arguments of a call; keyword arguments are sorted."""
    names = positional_argument_names(fun, args, [array_structure(a) for a in args])
    for key in sorted(kwargs):
        names += pytree.leaf_names(kwargs[key], key)
    return names


def positional_argument_names(
    fun: Callable[..., Any], args: Sequence[Any], structures: Sequence[PyTreeDef]
) -> list[str]:
    """Return a name for each leaf of the positional arguments, given their structures."""
    known, rest = positional_names(fun)
    names: list[str] = []
    for i, (value, structure) in enumerate(zip(args, structures, strict=True)):
        more = f"{rest}[{i - len(known)}]" if rest else f"args[{i}]"
        root = known[i] if i < len(known) else more
        names += [root + path for path in leaf_paths(value, structure)]
    return names


def positional_arguments(
    kind: str, fun: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[Any, ...]:
    """Convert keyword arguments to positional ones and fill in defaults.

    Keywords bound by a `functools.partial` are not arguments of the call unless it passes them.

    Raises:
        TypeError: they do not match the signature, or there are keyword-only arguments.
    """
    try:
        signature = inspect.signature(fun)
    except ValueError:
        return args
    bound_names: set[str] = set()
    inner = fun
    while isinstance(inner, functools.partial):
        bound_names |= inner.keywords.keys()
        inner = inner.func
    try:
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        for name in bound_names - kwargs.keys():
            bound.arguments.pop(name, None)
        if unplaced := sorted(bound.kwargs.keys() & kwargs.keys()):
            raise TypeError(
                "keyword arguments could not be resolved to positions: "
                f"{', '.join(unplaced)}; pass them by position"
            )
    except TypeError as error:
        raise TypeError(
            f"{kind}: the arguments of {function_name(fun)} must be positional, as rules take "
            f"them; got {error}; pass them by position"
        ) from error
    return bound.args
