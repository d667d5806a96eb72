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
from inspect import Parameter, signature
from itertools import takewhile
from types import MethodType
from typing import Any, NamedTuple

import numpy as np

from accnp.array import Array
from accnp.config import config
from accnp.errors import hide_frames
from accnp.forks import imported
from accnp.ir.trace import state

__all__ = ["array_function", "array_ufunc", "install"]

# Modules of ufuncs, and the modules of their counterparts.
_UFUNCS = {"numpy": "accnp.numpy", "scipy.special": "accnp.scipy.special"}
# Arguments that select a loop or a memory layout, with the values that have no effect in accnp,
# since its arrays have one layout and no subclasses.
_HARMLESS = {
    "casting": ("same_kind", "safe"),
    "order": ("K", "C", "A", None),
    "subok": (True, False),
}
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
            if isinstance(inputs[0], Array):
                raise TypeError(
                    f"{called}: arrays of accnp are immutable; got {inputs[0].aval} as the first "
                    "argument; use x.at[indices], which returns a new array"
                )
            return ufunc.at(*_as_numpy(inputs))
        _check_out(out, called)
        if function is None:
            raise _missing(name)
        if method == "__call__":
            if where is not True and not out:
                raise TypeError(
                    f"{called}: where= without out= leaves elements undefined; got where={where!r};"
                    f" use jnp.where(condition, jnp.{ufunc.__name__}(...), other)"
                )
            inputs = _with_dtype(ufunc, called, inputs, kwargs)
        elif where is not True:
            kwargs["where"] = where
        target = _with_methods(ufunc, function)
        call = target if method == "__call__" else getattr(target, method)
        result = _call(call, inputs, kwargs)
        return _store(result, out, called, where if method == "__call__" else True)
    except Exception as error:
        hide_frames(error)
        raise


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
    made = imported("accnp.api.elements.ufunc_objects").ufunc
    if isinstance(function, made) or ufunc.signature is not None:
        return function
    return made(
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
    array = imported("accnp.api.arrays.creation").asarray
    return tuple([array(x).astype(dtype) for x in inputs])


# --- functions -----------------------------------------------------------------------------------


class _Counterpart(NamedTuple):
    """accnp's function for a NumPy function, or None; the names of NumPy's positional parameters;
    and the parameters of accnp's function, or None if it accepts any."""

    name: str
    function: Any
    theirs: Sequence[str]
    ours: Sequence[Parameter] | None


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
    found = _counterpart(func)
    name = found.name
    try:
        if found.function is func or (name.rpartition(".")[2] in _WRITES and not _is_ours(args)):
            return func(*_as_numpy(args), **_as_numpy(kwargs))
        if found.function is None:
            raise _missing(name)
        args, kwargs, out = _without_out(found, args, dict(kwargs))
        _check_out(out, name)
        args, kwargs = _renamed(found, args, kwargs)
        return _store(_call(found.function, args, kwargs), out, name)
    except Exception as error:
        hide_frames(error)
        raise


@cache
def _counterpart(func: Callable[..., Any]) -> _Counterpart:
    module, last = func.__module__, func.__name__
    name = f"np{module.removeprefix('numpy')}.{last}"
    try:
        home = import_module(module.replace("numpy", "accnp.numpy", 1))
    except ImportError:
        home = None
    function = getattr(home, last, None)
    ours = _parameters(function)
    if any(p.kind is Parameter.VAR_KEYWORD for p in ours or ()):
        ours = None  # accepts any keyword
    theirs = takewhile(lambda p: p.kind < Parameter.VAR_POSITIONAL, _parameters(func) or ())
    return _Counterpart(name, function, [p.name for p in theirs], ours)


def _parameters(function: Any) -> Sequence[Parameter] | None:
    try:
        return list(signature(function).parameters.values())
    except (TypeError, ValueError):  # a function without a signature
        return None


def _without_out(
    found: _Counterpart, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any], tuple[Any, ...]]:
    """Return the arguments without `out`, and the arrays to write to."""
    out = kwargs.pop("out", None)
    at = found.theirs.index("out") if "out" in found.theirs else len(args)
    if at < len(args):
        out, args = args[at], args[:at] + args[at + 1 :]
    return args, kwargs, out if isinstance(out, tuple) else () if out is None else (out,)


def _renamed(
    found: _Counterpart, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Rename keyword arguments to the parameter names of the counterpart.

    Drops arguments that do not change values.

    Raises:
        TypeError: the counterpart lacks a parameter.
    """
    kwargs.pop("kind", None)  # a sorting algorithm; accnp's sorts are stable
    if found.ours is None:
        return args, kwargs
    keywords = {p.name for p in found.ours if p.kind is not Parameter.POSITIONAL_ONLY}
    ordered = [p for p in found.ours if p.kind is not Parameter.KEYWORD_ONLY]
    for name in sorted(kwargs.keys() - keywords, key=lambda n: _place(found, n)):
        value, at = kwargs.pop(name), _place(found, name)
        if name in _HARMLESS and value in _HARMLESS[name]:
            continue
        other = ordered[at] if len(args) <= at < len(ordered) else None
        if other is not None and other.kind is Parameter.POSITIONAL_ONLY and at == len(args):
            args += (value,)
        elif other is not None and other.name not in kwargs:
            kwargs[other.name] = value
        elif value is not None:
            raise TypeError(
                f"{found.name}: {_ours(found.name)} does not have the argument {name}; "
                f"got {name}={value!r:.60}; leave it out, or pass np.asarray(x)"
            )
    return args, kwargs


def _place(found: _Counterpart, name: str) -> int:
    return found.theirs.index(name) if name in found.theirs else len(found.theirs)


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


def _is_ours(args: tuple[Any, ...]) -> bool:
    return bool(args) and isinstance(args[0], Array)


def _ours(name: str) -> str:
    """Return the name of the counterpart of a function."""
    return f"jnp{name.removeprefix('np')}" if name.startswith("np.") else f"accnp.{name}"


def _missing(name: str) -> TypeError:
    """Return the error for a function that accnp does not have."""
    last = name.rpartition(".")[2]
    if last in _WRITES:
        return TypeError(
            f"{name}: arrays of accnp are immutable; got one as the first argument; use "
            "x.at[index].set(values), which returns a new array, or jnp.where"
        )
    return TypeError(
        f"{name}: {_ours(name)} does not exist; got an array of accnp as an argument; pass "
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
