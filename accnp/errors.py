"""Error classes users can catch, the texts about traced values, and traceback filtering.

In: what went wrong. Out: exceptions named as those of `jax.errors`, subclasses of builtin ones.

>>> import accnp as jax
>>> try:
...     jax.jit(lambda x: 1 if x > 0 else 0)(1.0)
... except jax.errors.TracerBoolConversionError as error:
...     print(type(error).__mro__[1].__name__)
ConcretizationTypeError
"""

from __future__ import annotations

import functools
import importlib
import os
import sys
import warnings
from collections.abc import Callable, Iterable, Sequence
from types import FrameType, FunctionType, TracebackType
from typing import Any, ParamSpec, TypeVar

import numpy as np

from accnp.config import config
from accnp.docstrings import fill
from accnp.missing import install_getattr as _install_getattr

P = ParamSpec("P")
R = TypeVar("R")

PACKAGE_DIR = os.path.dirname(os.path.abspath(__file__)) + os.sep
hidden: tuple[str, ...] = (PACKAGE_DIR,)  # where source files lie that errors do not show


class JAXTypeError(TypeError):
    """A value is of the wrong kind for what was asked of it.

    >>> import accnp as jnp
    >>> issubclass(jnp.errors.UnexpectedTracerError, jnp.errors.JAXTypeError)
    True
    """


class JAXIndexError(IndexError):
    """An index cannot be used.

    >>> import accnp as jnp
    >>> issubclass(jnp.errors.NonConcreteBooleanIndexError, jnp.errors.JAXIndexError)
    True
    """


class ConcretizationTypeError(JAXTypeError):
    """A traced value was used where a value known at trace time is needed.

    >>> import accnp as jnp
    >>> jnp.jit(lambda x: float(x))(1.0)
    Traceback (most recent call last):
        ...
    accnp.errors.ConcretizationTypeError: ...
    """


class TracerBoolConversionError(ConcretizationTypeError):
    """A traced value was used as a truth value (`if`, `while`, `and`, `bool`).

    >>> import accnp as jnp
    >>> jnp.jit(lambda x: 1 if x > 0 else 0)(1.0)
    Traceback (most recent call last):
        ...
    accnp.errors.TracerBoolConversionError: ...
    >>> jnp.jit(lambda x: jnp.where(x > 0, 1, 0))(1.0).item()
    1
    """


class TracerIntegerConversionError(JAXTypeError):
    """A traced value was used as a Python index.

    >>> import accnp as jnp
    >>> jnp.jit(lambda i: [1, 2][i])(1)
    Traceback (most recent call last):
        ...
    accnp.errors.TracerIntegerConversionError: ...
    """


class TracerArrayConversionError(JAXTypeError):
    """A traced value was handed to NumPy.

    >>> import accnp as jnp, numpy as np
    >>> jnp.jit(lambda x: np.sin(x))(1.0)
    Traceback (most recent call last):
        ...
    accnp.errors.TracerArrayConversionError: ...
    """


class NonConcreteBooleanIndexError(JAXIndexError):
    """A traced boolean mask was used as an index, so the result's shape is unknown.

    >>> import accnp as jnp
    >>> jnp.jit(lambda x: x[x > 0])(jnp.ones(2))
    Traceback (most recent call last):
        ...
    accnp.errors.NonConcreteBooleanIndexError: ...
    """


class UnexpectedTracerError(JAXTypeError):
    """A traced value was used after its trace had ended, or in another one.

    >>> import accnp as jnp
    >>> kept = []
    >>> y = jnp.jit(lambda x: kept.append(x) or x)(1.0)
    >>> kept[0] + 1
    Traceback (most recent call last):
        ...
    accnp.errors.UnexpectedTracerError: ...
    """

    made: str | None = None  # of a trace that has ended: " while tracing ...", or empty


class KeyReuseError(JAXTypeError):
    """A random key was used twice.

    >>> import accnp as jnp
    >>> issubclass(jnp.errors.KeyReuseError, jnp.errors.JAXTypeError)
    True
    """


class JaxprTypeError(TypeError):
    """A recorded program is not well formed.

    >>> import accnp as jnp
    >>> issubclass(jnp.errors.JaxprTypeError, TypeError)
    True
    """


class InconclusiveDimensionOperation(Exception):
    """A question about a symbolic dimension has no single answer.

    >>> import accnp as jnp
    >>> n, m = jnp.export.symbolic_shape("n, m")
    >>> n > m
    Traceback (most recent call last):
        ...
    accnp.errors.InconclusiveDimensionOperation: ...
    """


class IncompatibleShapesError(TypeError, ValueError):
    """Shapes that do not fit, or are none: a TypeError, as in jax, a ValueError, as in NumPy."""


class NoElementsError(IncompatibleShapesError, IndexError):
    """No elements where one is needed: jax, whose steps slice or index nothing, raises either."""


class AxisError(ValueError, IndexError):
    """An axis that an array does not have: both of what jax raises, as NumPy's class is."""


class UnsupportedDtypeError(TypeError, ValueError):
    """A dtype that a function does not take: jax raises the one here and the other there."""


class KeyArrayError(UnsupportedDtypeError, NotImplementedError):
    """Random keys where numbers are needed: jax raises one of the three for each function."""


class TypePromotionError(ValueError):
    """No implicit promotion exists between these dtypes.

    >>> import accnp as jnp
    >>> with jnp.numpy_dtype_promotion("strict"):
    ...     jnp.ones(2) + jnp.arange(2)
    Traceback (most recent call last):
        ...
    accnp.errors.TypePromotionError: ...
    """


class JaxRuntimeError(RuntimeError):
    """A kernel or a device failed while computing.

    >>> import accnp as jnp
    >>> issubclass(jnp.errors.JaxRuntimeError, RuntimeError)
    True
    """


class PendingResultWarning(UserWarning):
    """A timed function returned an array that was not computed: its figures mean little.

    The pytest plugin warns where waiting for results is turned off.

    >>> import accnp as jnp
    >>> issubclass(jnp.errors.PendingResultWarning, UserWarning)
    True
    """


class Provenance:
    """Where a traced value comes from: the traced function, and its arguments or operations."""

    def __init__(
        self,
        function: str = "",
        file: str = "",
        line: int = 0,
        transform: str = "jit",
        arguments: Sequence[str] = (),
        operations: Sequence[tuple[str, str]] = (),
    ) -> None:
        self.function = function
        self.file = file
        self.line = line
        self.transform = transform
        self.arguments = arguments
        self.operations = operations

    def text(self) -> str:
        """Two or three sentences for the end of an error."""
        parts = []
        if self.function:
            where = f" at {self.file}:{self.line}" if self.file else ""
            parts.append(
                f"The error occurred while tracing the function {self.function}{where} "
                f"for {self.transform}."
            )
        if self.arguments:
            names = _listed([str(name) for name in self.arguments])
            many = "s" if len(self.arguments) > 1 else ""
            parts.append(
                "This concrete value was not available in Python because it depends on the "
                f"value{many} of the argument{many} {names}."
            )
        elif self.operations:
            parts.append("The value depends on no argument; these operations made it traced:")
            shown = list(self.operations)[:MAX_OPERATIONS]
            parts += [f"  {op}\n    from {line}" for op, line in shown]
            if len(self.operations) > len(shown):
                parts.append(f"  ... and {len(self.operations) - len(shown)} more")
        return "\n".join(parts)


MAX_OPERATIONS = 5

_STATIC = "mark the argument with static_argnums or static_argnames"
_NP = "compute it with np. in place of jnp. so that it stays static"
_ABSTRACT = "Abstract tracer value encountered where concrete value is expected: {what}"
# kind -> (class, what happened, what to do)
_CONVERSIONS: dict[str, tuple[type[Exception], str, str]] = {
    "bool": (
        TracerBoolConversionError,
        "Attempted boolean conversion of {what} (by if, while, and, or, not or bool)",
        f"use jnp.where or lax.cond (lax.while_loop for loops), or {_STATIC}",
    ),
    "int": (
        ConcretizationTypeError,
        f"{_ABSTRACT}, by int()",
        f"use x.astype(int), or {_STATIC}",
    ),
    "float": (
        ConcretizationTypeError,
        f"{_ABSTRACT}, by float()",
        f"use x.astype(float), or {_STATIC}",
    ),
    "complex": (
        ConcretizationTypeError,
        f"{_ABSTRACT}, by complex()",
        f"use x.astype(complex), or {_STATIC}",
    ),
    "index": (
        TracerIntegerConversionError,
        "The __index__() method was called on {what}",
        "index an accnp array in place of a list, use lax.fori_loop in place of range, "
        f"or {_STATIC}",
    ),
    "array": (
        TracerArrayConversionError,
        "The numpy.ndarray conversion method __array__() was called on {what}",
        "use the jnp. function in place of the np. one, or return the value and convert it outside",
    ),
    "item": (
        ConcretizationTypeError,
        _ABSTRACT,
        "return it from the traced function and look at it outside, or use debug.print",
    ),
    "iter": (
        ConcretizationTypeError,
        f"{_ABSTRACT}, by iteration over a 0-d array",
        "use vmap, lax.scan or lax.map, or iterate over an array with at least one axis",
    ),
    "shape": (
        ConcretizationTypeError,
        "Shapes must be 1D sequences of concrete values of integer type. " + _ABSTRACT,
        f"{_STATIC}, or {_NP}",
    ),
    "axis": (
        ConcretizationTypeError,
        f"{_ABSTRACT}, used as an axis",
        f"{_STATIC}, or {_NP}",
    ),
    "static": (
        ConcretizationTypeError,
        _ABSTRACT,
        f"{_STATIC}, or {_NP}",
    ),
    "mask": (
        NonConcreteBooleanIndexError,
        "Array boolean indices must be concrete; got {what} as a mask, "
        "so the shape of the result is unknown",
        "use jnp.where(mask, x, fill) in place of x[mask], or jnp.where(mask, size=n) for indices, "
        "or do it outside the traced function",
    ),
}
CONVERSION_KINDS = tuple(_CONVERSIONS)


def conversion_text(kind: str, what: str, origin: Provenance, function: str = "") -> str:
    """The text for one refused conversion; `function` is the library function that refused."""
    _, happened, advice = _CONVERSIONS[kind]
    lead = f"{function}: " if function else ""
    body = origin.text()
    return (
        f"{lead}{happened.format(what=what)}.\n"
        + (f"{body}\n" if body else "")
        + f"What to do: {advice}."
    )


def conversion_error(kind: str, what: str, origin: Provenance, function: str = "") -> Exception:
    """The exception for one refused conversion of a traced value.

    `kind` is one of `CONVERSION_KINDS`; `what` names the value, as in `traced array with shape
    float32[3]`.
    """
    return _CONVERSIONS[kind][0](conversion_text(kind, what, origin, function))


def unhashable_static_error(function: str, argument: str, value: object) -> ValueError:
    """The exception for a static argument that cannot be a cache key."""
    return ValueError(
        f"{function}: Non-hashable static arguments are not supported; got {value!r} of type "
        f"{type(value).__name__} for static argument {argument}; pass a tuple in place of a list, "
        "or a frozen dataclass"
    )


def not_an_array_error(function: str, path: str, value: object) -> TypeError:
    """The exception for a leaf that is neither array nor number."""
    dtype = getattr(value, "dtype", None)
    numpys = isinstance(value, np.ndarray | np.generic)  # whatever the dtype
    if dtype is not None and (numpys or getattr(dtype, "kind", "O") in "OSUMm"):
        return TypeError(
            f"{function}: Error interpreting argument {path} as an abstract array: an array of "
            f"dtype {dtype} is not a valid JAX type; only bool, integer, floating and complex "
            "dtypes are valid; convert it, or mark it as static"
        )
    given, mend = f"{value!r} of type {type(value).__name__}", "pass numbers and arrays"
    if hasattr(value, "__array__"):  # a Series or DataFrame of pandas
        given, mend = f"a {type(value).__name__}", "convert it with jnp.asarray"
    return TypeError(
        f"{function}: Error interpreting argument {path} as an abstract array: {given} is not a "
        f"valid JAX type; {mend}, or mark it as static"
    )


def not_one_of(
    function: str,
    argument: str,
    value: object,
    options: Iterable[object],
    kind: type[Exception] = ValueError,
) -> Exception:
    """The exception for an argument that is none of the values that it can have."""
    known = [repr(option) for option in options]
    near = importlib.import_module("accnp.error_texts").suggestion(repr(value), known, quoted=False)
    return kind(
        f"{function}: {argument} must be {_either(known)}; "
        f"got {value!r}; {near or 'pass one of these'}"
    )


def _either(texts: list[str]) -> str:
    return texts[0] if len(texts) == 1 else f"{', '.join(texts[:-1])} or {texts[-1]}"


def _listed(names: list[str]) -> str:
    return names[0] if len(names) == 1 else ", ".join(names[:-1]) + " and " + names[-1]


# ---- tracebacks


def is_internal(filename: str) -> bool:
    """Whether a source file belongs to the package."""
    return filename.startswith(PACKAGE_DIR)


def user_frame(depth: int = 1) -> FrameType | None:
    """The innermost frame that is not the package's."""
    frame: FrameType | None = sys._getframe(depth)
    while frame is not None and frame.f_code.co_filename.startswith(hidden):
        frame = frame.f_back
    return frame


def user_line(depth: int = 1) -> str:
    """`file:line (function)` of the user's code that called the library, or an empty text."""
    frame = user_frame(depth + 1)
    if frame is None:
        return ""
    return f"{frame.f_code.co_filename}:{frame.f_lineno} ({frame.f_code.co_name})"


def warn(text: str, category: type[Warning]) -> None:
    """Warn about the user's line, however many of the package's calls lie between."""
    frame = user_frame(2)
    if frame is not None:
        registry = frame.f_globals.setdefault("__warningregistry__", {})
        place = (frame.f_code.co_filename, frame.f_lineno)
        warnings.warn_explicit(text, category, *place, registry=registry)


def own_frame() -> FrameType | None:
    """The frame of the package's function that the user's code has called."""
    frame: FrameType | None = sys._getframe(1)
    found = None
    while frame is not None and frame.f_code.co_filename.startswith(hidden):
        if frame.f_code is not _WRAPPER:
            found = frame
        frame = frame.f_back
    return found


def called_by_us(frame: FrameType) -> bool:
    """Whether the package itself called the function of a frame."""
    back = frame.f_back
    return back is not None and back.f_code.co_filename.startswith(PACKAGE_DIR)


def hide_frames(error: BaseException) -> None:
    """Drop the package's frames from the traceback, unless `traceback_filtering` is "off"; so for
    the errors that led to this one, which Python prints above it.

    For hot paths: `except Exception as e: hide_frames(e); raise` costs nothing on success. A bare
    `raise` adds no frame of its own. Where the user's code called, the text is completed.
    """
    tb = error.__traceback__
    if not isinstance(error, Exception):
        return importlib.import_module("accnp.error_texts").interrupted(tb)
    if tb is not None and called_by_us(tb.tb_frame):
        passed = tb.tb_frame.f_locals.get("wrapper", tb.tb_frame.f_code)
        error.__dict__.setdefault("_through", []).append(passed)
    elif tb is not None:
        importlib.import_module("accnp.error_texts").finish(error)
    if config.traceback_filtering == "off":
        return
    seen: set[int] = set()
    shown: BaseException | None = error
    while shown is not None and id(shown) not in seen:
        seen.add(id(shown))
        shown.__traceback__ = _users_frames(shown.__traceback__)
        shown = shown.__cause__ or (None if shown.__suppress_context__ else shown.__context__)


def _users_frames(tb: TracebackType | None) -> TracebackType | None:
    kept: list[TracebackType] = []
    while tb is not None:
        if not tb.tb_frame.f_code.co_filename.startswith(hidden):
            kept.append(tb)
        tb = tb.tb_next
    chain: TracebackType | None = None
    for tb in reversed(kept):
        chain = TracebackType(chain, tb.tb_frame, tb.tb_lasti, tb.tb_lineno)
    return chain


def of_keys(name: str, function: Callable[..., Any], args: tuple, kwargs: dict[str, Any]) -> Any:
    """What a function of arrays returns for random keys, or NotImplemented."""
    return importlib.import_module("accnp.api.sampling.key_functions").served(
        name, function, args, kwargs
    )


def api_boundary(function: Callable[P, R]) -> Callable[P, R]:
    """Wrap a public function so that its errors show the user's frames only; fill in what its
    docstring shares with others."""

    @functools.wraps(function)
    def wrapper(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(*args, **kwargs)
        except BaseException as error:
            if type(error) is KeyArrayError and _home(wrapper).startswith("accnp."):
                found = of_keys(wrapper.__qualname__, function, args, kwargs)
                if found is not NotImplemented:
                    return found
            hide_frames(error)
            raise

    if "\n    {" in (function.__doc__ or ""):
        wrapper.__doc__ = fill(function.__doc__)
    return wrapper


def alias(function: Callable[P, R], name: str, module: str) -> Callable[P, R]:
    """The same function under another name of a public module, and with that as its `__name__`:
    tools that build names from functions need one for each."""
    bounded = function.__code__ is _WRAPPER  # type: ignore[attr-defined]
    inner: Any = function.__wrapped__ if bounded else function  # type: ignore[attr-defined]
    # A code of its own, since errors find functions by their codes.
    code = inner.__code__.replace(co_name=name, co_qualname=name)
    made = FunctionType(code, inner.__globals__, name, inner.__defaults__, inner.__closure__)
    made.__kwdefaults__, made.__annotations__ = inner.__kwdefaults__, inner.__annotations__
    made.__module__, made.__qualname__, made.__doc__ = module, name, function.__doc__
    made.__dict__.update(inner.__dict__)
    return api_boundary(made) if bounded else made


def _home(function: Callable[..., object]) -> str:
    """The module of a function; what is made by `exec` without a module's name has None there."""
    return getattr(function, "__module__", None) or ""


_WRAPPER = api_boundary(hide_frames).__code__
_install_getattr(__name__, [name for name in globals() if name[0].isupper()])
