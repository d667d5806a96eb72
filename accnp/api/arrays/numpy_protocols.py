"""`Array.__array_ufunc__` and `Array.__array_function__`: NumPy's functions on accnp arrays.

A call of a NumPy function or ufunc, or of a ufunc of `scipy.special`, calls the function of the
same name in `accnp.numpy` or `accnp.scipy.special`, so the result is lazy and traceable.

The option `numpy_dispatch` enables this for each thread. `install` sets the two methods on `Array`
when the option is first enabled. NumPy looks them up on the class, through the `__get__` of
`_Dispatched`, which raises AttributeError in threads where the option is off.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import cache
from importlib import import_module
from inspect import Parameter, Signature, signature
from types import MethodType
from typing import Any, NamedTuple

import numpy as np
from numpy.lib.array_utils import normalize_axis_index, normalize_axis_tuple

from accnp.array_type import Array, is_traced
from accnp.config import config
from accnp.errors import JAXIndexError, JAXTypeError, hide_frames
from accnp.ir.trace import state
from accnp.lazy_imports import imported

__all__ = ["array_function", "array_ufunc", "install", "lib"]

# Modules of ufuncs, and the modules of their counterparts.
_UFUNCS = {"numpy": "accnp.numpy", "scipy.special": "accnp.scipy.special"}
# Arguments that select a loop or a memory layout, with the values that have no effect in accnp,
# since its arrays have one layout and no subclasses.
_HARMLESS = {
    "casting": ("same_kind", "safe"),
    "order": ("K", "C", "A", None),
    "subok": (True, False),
}
# Arguments that permit or select an algorithm only; accnp's sorts are stable.
_IGNORED = frozenset({"kind", "overwrite_input"})
# Parameters whose names in accnp differ, by the name of NumPy's function.
_RENAMED = {
    "np.clip": {"a_min": "min", "a_max": "max"},
    "np.nanstd": {"correction": "ddof"},
    "np.nanvar": {"correction": "ddof"},
}
# Functions that ask about memory or types: NumPy answers, about the buffers of the arrays.
_ON_BUFFERS = frozenset({np.may_share_memory, np.shares_memory, np.min_scalar_type})
# Functions that write to their first argument.
_WRITES = frozenset({"copyto", "fill_diagonal", "place", "put", "put_along_axis", "putmask"})


class _Dispatched:
    """Protocol method that exists only in threads where the option is on."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function

    def __get__(self, array: Array | None, owner: type[Array]) -> Any:
        if not config.numpy_dispatch:
            raise AttributeError(f"the option numpy_dispatch is off; got {self.function.__name__}")
        return self.function if array is None else MethodType(self.function, array)


def install() -> None:
    """Set both methods on `Array`."""
    Array.__array_ufunc__ = _Dispatched(array_ufunc)  # type: ignore[attr-defined]
    Array.__array_function__ = _Dispatched(array_function)  # type: ignore[attr-defined]


# --- ufuncs --------------------------------------------------------------------------------------


def array_ufunc(
    self: Array,
    ufunc: np.ufunc,
    method: str,
    *inputs: Any,
    out: tuple[Any, ...] = (),
    where: Any = True,
    **kwargs: Any,
) -> Any:
    """Call a method of a NumPy ufunc whose operands include arrays of accnp."""
    if any(map(_has_own_ufuncs, (*inputs, *out))):
        return NotImplemented
    name, function = _ufunc_counterpart(ufunc)
    called = name if method == "__call__" else f"{name}.{method}"
    try:
        if method == "at":
            if not isinstance(inputs[0], Array):
                return ufunc.at(*_as_numpy(inputs))
            if not config.item_assignment:
                raise TypeError(
                    f"{called}: arrays of accnp are immutable; got {inputs[0].aval} as the first "
                    "argument; use x.at[indices], which returns a new array, or set the option "
                    "item_assignment"
                )
        _check_out(out, called)
        if function is None:
            raise _missing_function_error(name)
        if method == "__call__":
            if where is not True and not out:
                raise TypeError(
                    f"{called}: where= without out= leaves elements undefined; got where={where!r};"
                    f" use jnp.where(condition, jnp.{ufunc.__name__}(...), other)"
                )
            inputs = _with_dtype(ufunc, called, inputs, kwargs)
        elif where is not True:
            kwargs["where"] = where
        if method in _REDUCTIONS:
            _check_reduction(ufunc, called, inputs[0])
        target = _with_methods(ufunc, function)
        if method == "at":
            indices = np.asarray(inputs[1]) if isinstance(inputs[1], list) else inputs[1]
            _call(target.at, (inputs[0], indices, *inputs[2:]), kwargs)
            return None
        call = target if method == "__call__" else getattr(target, method)
        result = _call(call, inputs, kwargs)
        return _store(result, out, called, where if method == "__call__" else True)
    except Exception as error:
        hide_frames(error)
        raise


_REDUCTIONS = frozenset({"reduce", "accumulate", "reduceat"})


def _check_reduction(ufunc: np.ufunc, name: str, operand: Any) -> None:
    """Raise if a comparison would be reduced, unless its operand is bool as its results are."""
    compares = "??->?" in ufunc.types and all(
        t.endswith("->?") for t in ufunc.types if "O" not in t
    )
    dtype = getattr(operand, "dtype", None)
    if compares and not ufunc.__name__.startswith("logical_") and getattr(dtype, "kind", "") != "b":
        raise TypeError(
            f"{name}: results are bool and cannot be operands of the next comparison; got "
            f"{dtype or type(operand).__name__}; convert the operand to bool"
        )


@cache
def _ufunc_counterpart(ufunc: np.ufunc) -> tuple[str, Any]:
    """Return the public name of a ufunc and accnp's function of that name, or None."""
    name = ufunc.__name__
    for module, ours in _UFUNCS.items():
        if getattr(sys.modules.get(module), name, None) is ufunc:
            short = "np" if module == "numpy" else module
            return f"{short}.{name}", getattr(import_module(ours), name, None)
    return name, None


@cache
def _with_methods(ufunc: np.ufunc, function: Any) -> Any:
    """Return the function with the methods of ufuncs (`reduce`, `accumulate`, ...)."""
    ufunc_class = imported("accnp.numpy.ufunc_objects").ufunc
    if isinstance(function, ufunc_class) or ufunc.signature is not None:
        return function
    return ufunc_class(
        function, ufunc.nin, ufunc.nout, name=ufunc.__name__, identity=ufunc.identity, call=function
    )


def _with_dtype(
    ufunc: np.ufunc, name: str, inputs: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[Any, ...]:
    """Convert the operands to the dtype that the call requests; remove it from the arguments.

    Raises:
        TypeError: an argument requests another loop of NumPy.
    """
    for argument in _HARMLESS.keys() & kwargs.keys():
        value = kwargs.pop(argument)
        if value not in _HARMLESS[argument]:
            raise TypeError(
                f"{name}: jnp.{ufunc.__name__} does not have the argument {argument}; "
                f"got {argument}={value!r}; leave it out"
            )
    dtype = kwargs.pop("dtype", None)
    if dtype is None:
        return inputs
    if all(loop.endswith("->?") or "O" in loop for loop in ufunc.types):
        if np.dtype(dtype) == bool:
            return inputs
        raise TypeError(f"{name}: results are bool; got dtype={dtype!r}; convert the result")
    array = imported("accnp.numpy.creation").asarray
    return tuple([array(x).astype(dtype) for x in inputs])


# --- functions -----------------------------------------------------------------------------------


class _Counterpart(NamedTuple):
    """accnp's function for a NumPy function, or None, and the signatures of both.

    A signature is None if Python does not know it (C functions before NumPy 2.4).
    """

    name: str
    function: Any
    theirs: Signature | None
    ours: Signature | None


def array_function(
    self: Array,
    func: Callable[..., Any],
    types: Sequence[type],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Any:
    """Call a NumPy function whose arguments include arrays of accnp."""
    if not all(issubclass(t, np.ndarray | Array) for t in types):
        return NotImplemented
    counterpart = _counterpart(func)
    name = counterpart.name
    try:
        if _holds_objects(func, (*args, *kwargs.values())):
            return func(*_as_numpy(args), **_as_numpy(kwargs))
        if (counterpart.function is func or func in _ON_BUFFERS) or (
            name.rpartition(".")[2] in _WRITES and not _writes_to_ours(counterpart, args, kwargs)
        ):
            return func(*_as_numpy(args), **_as_numpy(kwargs))
        if counterpart.function is None:
            raise _missing_function_error(name)
        args, kwargs, out = _bind(counterpart, args, kwargs)
        _check_out(out, name)
        return _store(_call(counterpart.function, args, kwargs), out, name)
    except Exception as error:
        hide_frames(error)
        raise


def _holds_objects(func: Callable[..., Any], arguments: Sequence[Any]) -> bool:
    """Return whether an operand is an array of text, dates or objects, which only NumPy has.

    matplotlib looks for names of categories, and broadcasts None with the positions of bars.
    """
    if func is np.broadcast_arrays and any([x is None or isinstance(x, str) for x in arguments]):
        return True
    return any(
        [
            x.dtype.kind in "USOMm"
            if isinstance(x, np.ndarray | np.generic)
            else isinstance(x, list | tuple) and bool(x) and all([isinstance(y, str) for y in x])
            for x in arguments
        ]
    )


@cache
def _counterpart(func: Callable[..., Any]) -> _Counterpart:
    module, last = func.__module__, func.__name__
    name = f"np{module.removeprefix('numpy')}.{last}"
    own = _WITHOUT_JNP.get(last)
    if own is not None:
        return _Counterpart(name, own, _signature(func), _signature(own))
    try:
        home = import_module(module.replace("numpy", "accnp.numpy", 1))
    except ImportError:
        home = None
    function = getattr(home, last, None)
    return _Counterpart(name, function, _signature(func), _signature(function))


def _signature(function: Any) -> Signature | None:
    try:
        return signature(function)
    except (TypeError, ValueError):  # a function without a signature
        return None


def _bind(
    counterpart: _Counterpart, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any], tuple[Any, ...]]:
    """Bind the arguments of a call by NumPy's signature.

    Returns the arguments for accnp's function, by keyword where it permits that, and the arrays to
    write to. Arguments with NumPy's default value are left out, since accnp's function may express
    the same default by another value, or not have the parameter.

    Raises:
        TypeError: accnp's function lacks a parameter.
    """
    positional, keywords = _by_name(counterpart, args, kwargs)
    out = keywords.pop("out", None)
    ours = list(counterpart.ours.parameters.values()) if counterpart.ours else []
    known = {p.name for p in ours if p.kind in (p.KEYWORD_ONLY, p.POSITIONAL_OR_KEYWORD)}
    accepts_all = not ours or any(p.kind is Parameter.VAR_KEYWORD for p in ours)
    theirs = counterpart.theirs.parameters if counterpart.theirs else {}
    places = list(theirs)
    by_place = [p.kind is p.POSITIONAL_ONLY or p.default is p.empty for p in ours]
    passed: dict[str, Any] = {}
    for name, value in keywords.items():
        name_of_ours = _RENAMED.get(counterpart.name, {}).get(name, name)
        if name in _IGNORED or (name in theirs and _is_default(value, theirs[name].default)):
            continue
        if name_of_ours in known or accepts_all:
            if name_of_ours in passed:
                raise TypeError(
                    f"{counterpart.name}: two arguments mean {_jnp_name(counterpart.name)}'s "
                    f"{name_of_ours}; got {name}={value!r:.60}; leave one of them out"
                )
            passed[name_of_ours] = value
        elif name in theirs and places.index(name) == len(positional) < sum(by_place):
            positional += (value,)  # accnp's parameter has another name, or is positional-only
        elif name not in _HARMLESS or value not in _HARMLESS[name]:
            raise TypeError(
                f"{counterpart.name}: {_jnp_name(counterpart.name)} does not have the argument "
                f"{name}; got {name}={value!r:.60}; leave it out, or pass np.asarray(x)"
            )
    return positional, passed, out if isinstance(out, tuple) else () if out is None else (out,)


def _by_name(
    counterpart: _Counterpart, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return the arguments that must remain positional, and all others by NumPy's names."""
    if counterpart.theirs is None:
        return args, dict(kwargs)
    try:
        bound = counterpart.theirs.bind(*args, **kwargs)
    except TypeError as error:
        raise TypeError(
            f"{counterpart.name}: {error}; got {len(args)} arguments by position and "
            f"{sorted(kwargs)} by name; pass those of NumPy's function"
        ) from None
    by_kind = {p.kind: bound.arguments.get(p.name) for p in counterpart.theirs.parameters.values()}
    if by_kind.get(Parameter.VAR_POSITIONAL):  # what precedes *args is positional as well
        return bound.args, bound.kwargs
    named = [n for n, p in counterpart.theirs.parameters.items()
             if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]  # fmt: skip
    keywords = {n: bound.arguments[n] for n in named if n in bound.arguments}
    return (), {**keywords, **(by_kind.get(Parameter.VAR_KEYWORD) or {})}


def _positional(of: Signature) -> list[str]:
    """Return the names of the positional parameters."""
    return [p.name for p in of.parameters.values() if p.kind < Parameter.VAR_POSITIONAL]


def _is_default(value: Any, default: Any) -> bool:
    """Return whether an argument is the default; arrays are not compared."""
    plain = isinstance(value, bool | int | float | str) and isinstance(default, type(value))
    return value is default or value is np._NoValue or (plain and value == default)


def _writes_to_ours(
    counterpart: _Counterpart, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> bool:
    """Return whether the first argument is an array of accnp."""
    first = next(iter(_positional(counterpart.theirs)), "") if counterpart.theirs else ""
    return isinstance(args[0] if args else kwargs.get(first), Array)


# --- functions that accnp.numpy does not have, or has with less -----------------------------------


def _sliding_window_view(
    x: Any, window_shape: Any, axis: Any = None, *, writeable: bool = False
) -> Any:
    """`np.lib.stride_tricks.sliding_window_view`, as a copy."""
    name = "np.lib.stride_tricks.sliding_window_view"
    if writeable:
        raise TypeError(f"{name}: arrays of accnp are immutable; got writeable=True; leave it out")
    jnp = imported("accnp.numpy")
    x = jnp.asarray(x)
    sizes = tuple(window_shape) if np.iterable(window_shape) else (window_shape,)
    axes = (
        tuple(range(x.ndim)) if axis is None else normalize_axis_tuple(axis, x.ndim, "axis", True)
    )
    if len(sizes) != len(axes):
        raise ValueError(
            f"{name}: window_shape needs a size for each axis; got {window_shape!r} for "
            f"{len(axes)} axes; pass as many sizes as axes"
        )
    for at, size in zip(axes, sizes, strict=True):
        count = x.shape[at] - size + 1
        if size < 0 or count < 1:
            raise ValueError(
                f"{name}: windows must fit into the array; got a size of {size} for axis {at} of "
                f"{x.aval}; pass a smaller one"
            )
        index = np.arange(count)[:, None] + np.arange(size)
        x = jnp.moveaxis(jnp.take(x, index, axis=at), at + 1, -1)
    return x


def _apply_along_axis(
    func1d: Callable[..., Any], axis: int, arr: Any, *args: Any, **kwargs: Any
) -> Any:
    """`np.apply_along_axis`, whose function may use values, unless they are traced."""
    jnp = imported("accnp.numpy")
    try:
        return jnp.apply_along_axis(func1d, axis, arr, *args, **kwargs)
    except (JAXTypeError, JAXIndexError):  # the function needs values
        x = jnp.moveaxis(jnp.asarray(arr), axis, -1)
        if is_traced(x._node) or not x.size:
            raise
    rows = x.reshape(-1, x.shape[-1])
    results = [jnp.asarray(func1d(row, *args, **kwargs)) for row in rows]
    rank, first = results[0].ndim, normalize_axis_index(axis, x.ndim)
    whole = jnp.stack(results).reshape(*x.shape[:-1], *results[0].shape)
    # The axes of the results take the place of the axis.
    return jnp.moveaxis(whole, range(x.ndim - 1, whole.ndim), range(first, first + rank))


def _common_type(*arrays: Any) -> Any:
    """`np.common_type`, which depends on dtypes only."""
    return np.common_type(*[np.empty(0, x.dtype) if isinstance(x, Array) else x for x in arrays])


lib = np.lib  # as `accnp.numpy.lib`; its functions call this module for arrays of accnp
_WITHOUT_JNP = {
    "apply_along_axis": _apply_along_axis,
    "common_type": _common_type,
    "sliding_window_view": _sliding_window_view,
}


# --- shared ---------------------------------------------------------------------------------------


def _call(function: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """Call a function of accnp that accepts lists as arrays, as NumPy's functions do."""
    before, state.lists = state.lists, True
    try:
        return function(*args, **kwargs)
    finally:
        state.lists = before


def _has_own_ufuncs(x: Any) -> bool:
    """Return whether a type implements ufuncs itself, and is neither NumPy's nor accnp's."""
    theirs = getattr(type(x), "__array_ufunc__", None)
    return theirs not in (None, np.ndarray.__array_ufunc__) and not isinstance(x, Array)


def _jnp_name(name: str) -> str:
    """Return the name of the counterpart of a function."""
    return f"jnp{name.removeprefix('np')}" if name.startswith("np.") else f"accnp.{name}"


def _missing_function_error(name: str) -> TypeError:
    """Return the error for a function that accnp does not have."""
    last = name.rpartition(".")[2]
    if last in _WRITES:
        return TypeError(
            f"{name}: arrays of accnp are immutable; got one as the first argument; use "
            "x.at[index].set(values), which returns a new array, or jnp.where"
        )
    return TypeError(
        f"{name}: {_jnp_name(name)} does not exist; got an array of accnp as an argument; pass "
        "np.asarray(x) to compute with NumPy, or use other functions of jnp"
    )


def _check_out(out: tuple[Any, ...], name: str) -> None:
    for x in out:
        if x is not None and not isinstance(x, np.ndarray):
            raise TypeError(
                f"{name}: out= must be a NumPy array, because arrays of accnp are immutable; "
                f"got {type(x).__name__}; use the result"
            )


def _store(result: Any, out: tuple[Any, ...], name: str, where: Any = True) -> Any:
    """Write results to the NumPy arrays of `out`, if there are any, and return these."""
    if not any(x is not None for x in out):
        return result
    results = result if isinstance(result, tuple) else (result,)
    where = np.asarray(where) if isinstance(where, Array) else where
    for x, y in zip(out, results, strict=True):
        if x is not None:
            if x.shape != y.shape and where is True:
                raise ValueError(
                    f"{name}: out= must have the shape of the result, {y.shape}; got {x.shape}; "
                    "pass an array of that shape"
                )
            np.copyto(x, np.asarray(y), casting="same_kind", where=where)
    stored = tuple([y if x is None else x for x, y in zip(out, results, strict=True)])
    return stored if isinstance(result, tuple) else stored[0]


def _as_numpy(x: Any) -> Any:
    """Replace arrays of accnp by NumPy arrays in arguments."""
    if isinstance(x, Array):
        return np.asarray(x)
    if type(x) in (list, tuple):
        return type(x)([_as_numpy(y) for y in x])
    if type(x) is dict:
        return {key: _as_numpy(y) for key, y in x.items()}
    return x
