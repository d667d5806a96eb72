"""Debugging of running programs: `debug.print`, `debug.callback` and `debug.log`.

The text is written, or the function called, when the values of the arrays are computed.
"""

from __future__ import annotations

import logging
import re
import string
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from accnp.api.arguments.convert import as_node
from accnp.api.effects.callbacks import as_arrays, place_text
from accnp.errors import api_boundary, user_frame
from accnp.ir.node import Node
from accnp.ir.op import o
from accnp.pytree import PyTree, PyTreeDef, flatten_arrays

__all__ = ["callback", "log", "print"]

_logger = logging.getLogger("accnp.debug")


@dataclass(frozen=True)
class _Arguments:
    """The arguments of a call except for its arrays; rebuilds positional and keyword arguments."""

    in_tree: PyTreeDef
    static: tuple[tuple[int, Any], ...]  # positions and values of leaves

    def __call__(self, *values: np.ndarray) -> tuple[tuple, dict[str, Any]]:
        known, rest = dict(self.static), iter(as_arrays(values))
        count = len(known) + len(values)
        return self.in_tree.unflatten(
            [known[i] if i in known else next(rest) for i in range(count)]
        )


def _separate_arrays(args: tuple, kwargs: dict[str, Any]) -> tuple[list[Node], _Arguments]:
    """Take the arrays out of a call's arguments; other leaves are passed on unchanged."""
    leaves, in_tree = flatten_arrays((args, kwargs))
    nodes, static = [], []
    for i, x in enumerate(leaves):
        try:
            nodes.append(as_node(x, "debug"))
        except TypeError:
            static.append((i, x))
    return nodes, _Arguments(in_tree, tuple(static))


@dataclass(frozen=True)
class _Call:
    """The user's function as a function of arrays."""

    callback: Callable[..., Any]
    arguments: _Arguments

    def __call__(self, *values: np.ndarray) -> None:
        args, kwargs = self.arguments(*values)
        self.callback(*args, **kwargs)

    @property
    def place(self) -> str:
        """The name of the function in errors."""
        return place_text(self.callback)


@api_boundary
def callback(
    callback: Callable[..., Any] | None = None,
    *args: PyTree,
    ordered: bool = False,
    partitioned: bool = False,
    **kwargs: PyTree,
) -> Callable[..., None] | None:
    """Call a Python function with the values of arrays when they are computed.

    The function returns nothing, so it works with every transformation.

    Parameters
    ----------
    callback : callable, optional
        Function of arrays in the pytree structure of the arguments. Without it, return a
        decorator-like function that takes it and its arguments.
    *args : pytree
        Positional arguments. Leaves that are not arrays are passed as they are.
    ordered : bool, optional
        Whether the order among ordered calls must be kept. The default is False.
    partitioned : bool, optional
        Ignored; present for compatibility with JAX.
    **kwargs : pytree
        Keyword arguments of the function.

    Returns
    -------
    callable or None
        None, or a function that takes the callback if none is given.

    Raises
    ------
    JaxRuntimeError
        If the function failed, where a result of the same program is waited for, or from
        `effects_barrier`. Outside of traced functions, the error of the function itself is raised.
    TypeError
        If the first argument is not callable.

    See Also
    --------
    debug.print : Print values.
    experimental.io_callback : Call a function that returns arrays.

    Notes
    -----
    Under `vmap` there is a call for each example; derivatives call it for the values and not for
    the tangents; branches and loops call it each time they run. Calls keep the order of the
    program.

    Examples
    --------
    >>> import accnp as jax
    >>> seen = []
    >>> jax.vmap(lambda x: jax.debug.callback(lambda v: seen.append(float(v)), x))(jax.ones(2))
    >>> seen
    [1.0, 1.0]
    """

    def run(callback: Callable[..., Any], *args: Any, **kwargs: Any) -> None:
        if not callable(callback):
            raise TypeError(
                "debug.callback: first argument to jax.debug.callback must be callable, but got an "
                f"object of type {type(callback)}; pass a function"
            )
        nodes, arguments = _separate_arrays(args, kwargs)
        o.debug_callback(*nodes, callback=_Call(callback, arguments), ordered=ordered)

    if callback is None:
        _no_arguments("debug.callback", args, kwargs)
        return run
    run(callback, *args, **kwargs)
    return None


def _no_arguments(name: str, args: tuple, kwargs: dict[str, Any]) -> None:
    if args or kwargs:
        raise TypeError(
            f"{name}: without a first argument, only options are allowed; got {args} {kwargs}; "
            "pass them to the function that is returned"
        )


class _Checker(string.Formatter):
    """Finds arguments that a format string does not use, without formatting."""

    def __init__(self, name: str, fmt: str) -> None:
        self.name, self.fmt = name, fmt

    def format_field(self, value: Any, format_spec: str) -> str:
        return ""

    def check_unused_args(self, used_args: Any, args: Any, kwargs: Any) -> None:
        unused: list[Any] = [a for i, a in enumerate(args) if i not in used_args]
        if unused:
            raise ValueError(
                f"Unused positional arguments to `jax.debug.print`: {unused}; write {{}} in the "
                "format for each argument"
            )
        unused = [k for k in kwargs if k not in used_args]
        if unused:
            raise ValueError(
                f"{self.name}: Unused keyword arguments to `jax.{self.name}`: {unused}; got the "
                f"format string {self.fmt!r}; add a field such as {{{unused[0]}}} for each of "
                "them. If this is an f-string, pass a plain string: an f-string is formatted when "
                "the function is traced"
            )


def _check_fields(name: str, fmt: str, count: int, kwargs: dict[str, Any]) -> None:
    """Raise an error if a field of a format string has no argument."""
    numbered, automatic = 0, 0
    for _, field, spec, _ in string.Formatter().parse(fmt):
        for text in [field, *_nested_fields(spec)]:
            if text is None:
                continue
            first = re.split(r"[.\[]", text, maxsplit=1)[0]
            if not first:
                automatic += 1
            elif first.isdecimal():
                numbered = max(numbered, int(first) + 1)
            elif first not in kwargs:
                raise KeyError(
                    f"{name}: the format has a field {first!r}, but no such keyword argument was "
                    f"passed; got {fmt!r}; pass {first}=..."
                )
    needed = max(numbered, automatic)
    if needed > count:
        fields = f"{needed} field{'s' if needed > 1 else ''}"
        passed = "1 argument was" if count == 1 else f"{count} arguments were"
        raise IndexError(
            f"{name}: the format has {fields}, but {passed} passed; got {fmt!r}; pass an argument "
            "for each field"
        )


def _nested_fields(spec: str | None) -> list[str]:
    """Return the fields in a format specification, such as `width` of `{:{width}}`."""
    return [field for _, field, _, _ in string.Formatter().parse(spec or "") if field is not None]


def _print(name: str, write: Any, fmt: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    """Implement `print` and `log`; the options are taken from the keywords."""
    ordered = bool(kwargs.pop("ordered", False))
    kwargs.pop("partitioned", None)
    skip = bool(kwargs.pop("skip_format_check", False))

    def run(fmt: str, *args: Any, **kwargs: Any) -> None:
        if not isinstance(fmt, str):
            raise TypeError(f"{name}: expected str, got {type(fmt).__name__}; pass a format string")
        if not skip:
            _check_fields(name, fmt, len(args), kwargs)
            _Checker(name, fmt).format(fmt, *args, **kwargs)
        nodes, arguments = _separate_arrays(args, kwargs)
        o.debug_print(
            *nodes,
            fmt=fmt,
            arguments=arguments,
            ordered=ordered,
            np_printoptions=tuple(np.get_printoptions().items()),
            write=write() if write is not None else None,
        )

    if fmt is None:
        _no_arguments(name, args, kwargs)
        return run
    run(fmt, *args, **kwargs)
    return None


@api_boundary
def print(fmt: str | None = None, *args: object, **kwargs: object) -> Any:
    """Print values when they are computed, also in traced functions.

    Parameters
    ----------
    fmt : str, optional
        Format string with fields, such as `"x = {x}"`. An f-string would be formatted during
        tracing. Without it, return a function that takes it and its arguments.
    *args : object
        Values of positional fields: arrays, pytrees of arrays, or other objects.
    **kwargs : object
        Values of named fields. The keywords `ordered`, `partitioned` and `skip_format_check` are
        options, as in JAX.

    Returns
    -------
    callable or None
        None, or a function that takes the format string if none is given.

    Raises
    ------
    ValueError
        If the format string does not use an argument.

    See Also
    --------
    debug.callback : Call any function.
    debug.breakpoint : Stop and inspect variables.

    Notes
    -----
    The text is formatted by `str.format` and written to `sys.stdout`. It works with every
    transformation, as `debug.callback` does.

    Examples
    --------
    >>> import accnp as jax
    >>> jax.jit(lambda x: jax.debug.print("x = {x}", x=x + 1))(1)
    x = 2
    """
    return _print("debug.print", None, fmt, args, kwargs)


@api_boundary
def log(fmt: str | None = None, *args: Any, **kwargs: Any) -> Any:
    """Write values to the logger "accnp.debug" at level INFO when they are computed.

    Parameters
    ----------
    fmt : str, optional
        Format string with fields. Without it, return a function that takes it and its arguments.
    *args : object
        Values of positional fields: arrays, pytrees of arrays, or other objects.
    **kwargs : object
        Values of named fields, and options as in `debug.print`.

    Returns
    -------
    callable or None
        None, or a function that takes the format string if none is given.

    Raises
    ------
    ValueError
        If the format string does not use an argument.

    See Also
    --------
    debug.print : Write to the standard output.

    Examples
    --------
    >>> import accnp as jax
    >>> jax.jit(lambda x: jax.debug.log("x = {x}", x=x))(1)
    """
    return _print("debug.log", _record_writer, fmt, args, kwargs)


def _record_writer() -> Callable[[str], None]:
    """Return a function that logs a text as if from the user's line."""
    frame = user_frame(2)
    place = (frame.f_code.co_filename, frame.f_lineno) if frame else ("(unknown file)", 0)

    def write(text: str) -> None:
        _logger.handle(_logger.makeRecord(_logger.name, logging.INFO, *place, text, (), None))

    return write
