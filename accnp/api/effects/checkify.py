"""Errors as values: `checkify` makes a function return its run-time errors; `check` adds checks.

`checkify` traces a function and returns one that returns an `Error` and the result. Since the
function is traced, errors inside control flow and jitted functions are found, too, and the new
function can be jitted, mapped and differentiated.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from accnp.api.arguments.convert import as_node
from accnp.array_type import Array, ArrayLike, wrap
from accnp.errors import api_boundary, user_line
from accnp.ir.op import o
from accnp.ir.trace import state
from accnp.primitives.check import (
    BatchedError,
    CheckError,
    Description,
    DivisionByZeroError,
    FailedCheckError,
    JaxRuntimeError,
    Kind,
    NaNError,
    OOBError,
    State,
    any_state,
    first_error,
    record_check,
)
from accnp.pytree import PyTree, flatten_arrays, leaf_names, register_pytree_node
from accnp.trace_fn import trace
from accnp.transforms.checkify import checked_nodes

__all__ = [
    "Error", "ErrorCategory", "JaxRuntimeError", "all_checks", "automatic_checks", "check",
    "check_error", "checkify", "debug_check", "div_checks", "float_checks", "index_checks",
    "init_error", "nan_checks", "user_checks",
]  # fmt: skip

ErrorCategory = type[CheckError]

user_checks = frozenset({FailedCheckError})
nan_checks = frozenset({NaNError})
index_checks = frozenset({OOBError})
div_checks = frozenset({DivisionByZeroError})
float_checks = nan_checks | div_checks
automatic_checks = float_checks | index_checks
all_checks = automatic_checks | user_checks


class Error:
    """Record of whether a checked function failed, and how: a pytree of arrays.

    `get()` returns the message and `throw()` raises the error. Of several errors of one kind, the
    first one counts; of several kinds, the one whose check comes first in the program.

    Parameters
    ----------
    places : dict
        Flag, code and payload of each kind of check.
    meanings : iterable
        Pairs of a code and its message.

    Raises
    ------
    JaxRuntimeError
        From `throw`, if there is an error. It is also a ValueError.

    Examples
    --------
    >>> import accnp as jnp
    >>> from accnp.experimental import checkify
    >>> positive = checkify.checkify(lambda x: checkify.check(x > 0, "x is {}", x))
    >>> error, _ = positive(jnp.array(-1.0))
    >>> error.get()
    'x is -1.0 (`check` failed)'
    """

    __slots__ = ("_meanings", "_places")

    def __init__(
        self,
        places: dict[Kind, tuple[Any, Any, list[Any]]],
        meanings: Iterable[tuple[int, Description]],
    ) -> None:
        self._places = places
        self._meanings = tuple(sorted(meanings, key=lambda pair: pair[0]))

    def get(self) -> str | None:
        """Return the message of the error, or None."""
        error = self.get_exception()
        return None if error is None else str(error)

    def get_exception(self) -> CheckError | None:
        """Return the error as an exception, or None."""
        meanings = dict(self._meanings)
        places = {k: (np.asarray(p), np.asarray(c), v) for k, (p, c, v) in self._places.items()}
        shape = next((p.shape for p, _, _ in places.values()), ())
        if not shape:
            return first_error(places, meanings)
        errors_by_index = {}
        for at in np.ndindex(*shape):
            one = {k: (p[at], c[at], [x[at] for x in v]) for k, (p, c, v) in places.items()}
            error = first_error(one, meanings)
            if error is not None:
                errors_by_index[at] = error
        return BatchedError(errors_by_index) if errors_by_index else None

    @api_boundary
    def throw(self) -> None:
        """Raise a JaxRuntimeError, which is also a ValueError, if there is an error."""
        check_error(self)

    def __str__(self) -> str:
        return f"Error({self.get()})"

    def __repr__(self) -> str:
        return f"Error({', '.join(k.error_type.__name__ for k in sorted(self._places))})"


def _flatten(error: Error) -> tuple[list[Any], Any]:
    kinds = tuple(sorted(error._places))
    children = [x for k in kinds for x in (*error._places[k][:2], *error._places[k][2])]
    return children, (kinds, error._meanings)


def _unflatten(data: Any, children: Any) -> Error:
    kinds, meanings = data
    rest = iter(children)
    places = {k: (next(rest), next(rest), [next(rest) for _ in k.avals]) for k in kinds}
    return Error(places, meanings)


register_pytree_node(Error, _flatten, _unflatten)
init_error = Error({}, ())


def _error_of(check_state: State) -> Error:
    places = {
        k: (wrap(p), wrap(c), [wrap(x) for x in v]) for k, (p, c, v) in check_state.places.items()
    }
    return Error(places, check_state.meanings.items())


def _state_of(error: Error) -> State:
    places: dict[Kind, Any] = {}
    for k, (happened, code, payload) in error._places.items():
        nodes = [as_node(x, "check_error") for x in (happened, code, *payload)]
        places[k] = (nodes[0], nodes[1], nodes[2:])
    return State(places, dict(error._meanings))


@api_boundary
def checkify(
    f: Callable[..., Any], errors: frozenset[ErrorCategory] = user_checks
) -> Callable[..., tuple[Error, Any]]:
    """Make a function that returns its run-time errors as a value, beside the result.

    Checks inside control flow, jitted functions, derivatives and maps are found, too.

    Parameters
    ----------
    f : callable
        Function of pytrees of arrays.
    errors : frozenset, optional
        Checks to make: `user_checks` (failed `check`; the default), `nan_checks` (an operation
        returns NaN), `div_checks` (division by zero), `index_checks` (index out of bounds), or
        unions of these, such as `float_checks`, `automatic_checks` and `all_checks`.

    Returns
    -------
    callable
        Function of the same arguments that returns `(error, result)`. `error.get()` is the message
        of the first error or None, and `error.throw()` raises it.

    Raises
    ------
    TypeError
        If `f` is not callable.

    See Also
    --------
    experimental.checkify.check : Make a check.
    experimental.checkify.check_error : Raise an error that was returned.

    Examples
    --------
    >>> import accnp as jnp
    >>> from accnp.experimental import checkify
    >>> error, _ = checkify.checkify(jnp.log, checkify.nan_checks)(-jnp.ones(2))
    >>> error.get()
    'nan generated by primitive: log.'
    """
    enabled = frozenset(errors)

    @functools.wraps(f)
    @api_boundary
    @api_boundary
    def checked(*args: Any, **kwargs: Any) -> tuple[Error, Any]:
        spec: Any = None

        def record(_: list[Any]) -> list[Any]:
            nonlocal spec
            leaves, spec = flatten_arrays(f(*args, **kwargs))
            return [as_node(x, "checkify") for x in leaves]

        # As for jaxprs, all recorded operations are kept, since unused ones may fail, too.
        before, state.named = state.named, True
        try:
            graph = trace(record, [], of=f, transform="checkify")
        finally:
            state.named = before
        env: dict[int, Any] = {}
        check_state = checked_nodes(graph.nodes, env, State({}, {}), enabled)
        outs = [wrap(env.get(id(x), x)) for x in graph.outputs]
        return _error_of(check_state), spec.unflatten(outs)

    return checked


def _is_scalar_predicate(pred: Any) -> bool:
    if isinstance(pred, bool):
        return True
    return isinstance(pred, Array) and pred.shape == () and pred.dtype == np.dtype(bool)


def _check(name: str, pred: Any, msg: str, debug: bool, args: tuple, kwargs: dict) -> None:
    if not _is_scalar_predicate(pred):
        raise TypeError(f"{name}: pred must be a scalar; got {pred!r}; reduce it first")
    leaves, tree = flatten_arrays((args, kwargs))
    for i, x in enumerate(leaves):
        if not isinstance(x, Array | np.ndarray):
            path = leaf_names((args, kwargs))[i]
            raise TypeError(
                "Formatting arguments to checkify.check need to be PyTrees of arrays, but got "
                f"{x!r} of type {type(x)} (at {path} of the positional and keyword arguments)."
            )
    meaning = Description(FailedCheckError, f"{msg} (`check` failed)", tree, user_line(2))
    payload = [as_node(x, name) for x in leaves]
    record_check(State({}, {}).failed(o.not_(as_node(pred, name)), meaning, payload), debug)


@api_boundary
def check(
    pred: ArrayLike, msg: str, *fmt_args: PyTree, debug: bool = False, **fmt_kwargs: PyTree
) -> None:
    """Fail with a message unless a predicate is true.

    Outside of traced functions, the error is raised immediately. A traced function (of `jit`,
    `scan` and so on) with checks must be wrapped by `checkify`, which returns the errors.

    Parameters
    ----------
    pred : bool or Array
        Condition: a bool, or a boolean array of rank 0.
    msg : str
        Format string of the message.
    *fmt_args : pytree of array_like
        Values of positional fields.
    debug : bool, optional
        If True, the check is ignored outside of `checkify`, as by `debug_check`. The default is
        False.
    **fmt_kwargs : pytree of array_like
        Values of named fields.

    Raises
    ------
    JaxRuntimeError
        If the predicate is false. It is also a ValueError.
    TypeError
        If `pred` is not a scalar boolean, or a value to be formatted is not an array.

    See Also
    --------
    experimental.checkify.checkify : Return errors as values.

    Examples
    --------
    >>> import accnp as jnp
    >>> from accnp.experimental import checkify
    >>> def f(x):
    ...     checkify.check(x > 0, "{} is not positive", x)
    ...     return x
    >>> checkify.checkify(jnp.jit(f))(-jnp.ones(()))[0].get()
    '-1.0 is not positive (`check` failed)'
    """
    _check("check", pred, msg, debug, fmt_args, fmt_kwargs)


@api_boundary
def debug_check(pred: Any, msg: str, *fmt_args: Any, **fmt_kwargs: Any) -> None:
    """Make a check that is ignored outside of functions under `checkify`.

    Parameters
    ----------
    pred : bool or Array
        Condition: a bool, or a boolean array of rank 0.
    msg : str
        Format string of the message.
    *fmt_args : pytree of array_like
        Values of positional fields.
    **fmt_kwargs : pytree of array_like
        Values of named fields.

    Raises
    ------
    TypeError
        If `pred` is not a scalar boolean, or a value to be formatted is not an array.

    See Also
    --------
    experimental.checkify.check : Check that is made everywhere.
    experimental.checkify.checkify : Return errors as values.

    Examples
    --------
    >>> import accnp as jnp
    >>> from accnp.experimental import checkify
    >>> checkify.debug_check(jnp.array(False), "never shown")
    """
    _check("debug_check", pred, msg, True, fmt_args, fmt_kwargs)


@api_boundary
def check_error(error: Error) -> None:
    """Raise the error that an `Error` holds, if any; inside `checkify`, record it again.

    Parameters
    ----------
    error : Error
        Result of a function that `checkify` made.

    Raises
    ------
    JaxRuntimeError
        If there is an error. It is also a ValueError.
    TypeError
        If the argument is not an `Error`.

    See Also
    --------
    experimental.checkify.checkify : Return errors as values.

    Notes
    -----
    Of the errors of a mapped function, that of the last example with an error is raised.

    Examples
    --------
    >>> import accnp as jnp
    >>> from accnp.experimental import checkify
    >>> error, y = checkify.checkify(lambda x: x + 1)(1.0)
    >>> checkify.check_error(error)
    """
    if not isinstance(error, Error):
        raise TypeError(f"check_error takes an Error as argument, got type {type(error)} instead.")
    check_state = _state_of(error)
    while any(happened.aval.ndim for happened, _, _ in check_state.places.values()):
        check_state = any_state(check_state)
    if check_state.places:
        record_check(check_state, False)
