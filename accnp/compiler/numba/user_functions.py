"""Compile users' functions as a whole with Numba: functions of arrays, and functions of numbers
that serve as references.

The input is a function and the types of the arguments of its calls. The output is a Numba function
that releases the interpreter lock, compiled for these types, or an error with a short message and
the user's line. The classes of `api/kernels/` import this module by name when such a function is
first used.
"""

from __future__ import annotations

import functools
import linecache
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import FunctionType
from typing import TYPE_CHECKING

import numba
import numpy as np
from numba.core import types
from numba.core.errors import NumbaError
from numba.np.numpy_support import as_dtype, from_dtype

from accnp.compiler.numba.private import fold_types

if TYPE_CHECKING:
    from typing import Protocol

    from numba.core.dispatcher import Dispatcher

    class Shaped(Protocol):
        """An array, or another object with a shape and a dtype."""

        @property
        def shape(self) -> tuple[int, ...]: ...
        @property
        def dtype(self) -> np.dtype: ...


__all__ = ["compile_for", "gist", "line_in", "released", "scalar_result", "short", "vectorized"]

_COLORS = re.compile(r"\x1b\[[0-9;]*m")
# Lines of Numba's messages that contain nothing about the user's program.
_NOISE = re.compile(
    r"^(Failed in|During:|File |This error may|Use of|Enable logging|- |There are \d|"
    r"Overload of|Of which|.*_?(overload|template)|\^+|\.\.\.|$|<source elided>|Known signatures)"
)
# Numba's own terms in messages, and what to write instead.
_PLAIN = (
    (re.compile(r"Literal\[\w+\]\((.*?)\)"), r"\1"),
    (
        re.compile(r"No implementation of function Function\(<.*?>\) found for signature: (.*)"),
        r"there is no function \1",
    ),
    (re.compile(r"(?<=\.)\. Raised from .*"), ""),
)
_PLACES = (re.compile(r'File "(.+?)", line (\d+)'), re.compile(r"at (\S+) \((\d+)\)"))


def released(function: FunctionType | Dispatcher) -> Dispatcher:
    """Return a Numba function of the same Python function and options that releases the interpreter
    lock while it runs."""
    options = {**getattr(function, "targetoptions", {}), "nogil": True}
    options.pop("nopython", None)
    return numba.njit(**options)(getattr(function, "py_func", function))


def _numba_type(shape: tuple[int, ...], dtype: np.dtype, readonly: bool) -> types.Type:
    number = from_dtype(dtype)
    return types.Array(number, len(shape), "C", readonly=readonly) if shape else number


def compile_for(
    function: Dispatcher,
    name: str,
    operands: Sequence[Shaped],
    results: Sequence[Shaped],
    static: Mapping[str, object],
) -> list[tuple[int, np.dtype]]:
    """Compile a function for operands (numbers if of rank 0) and arrays for results, given by shape
    and dtype. Returns the rank and the dtype of each value that the function returns.

    Raises:
        TypeError: it does not compile for these; the text contains Numba's message in short.
    """
    try:
        kinds = [_numba_type(a.shape, a.dtype, True) for a in operands]
        kinds += [types.Array(from_dtype(a.dtype), len(a.shape), "C") for a in results]
        named = {key: numba.typeof(value) for key, value in static.items()}
        folded = fold_types(function, tuple(kinds), named)
        function.compile(folded)
        result_type = function.overloads[folded].signature.return_type
    except Exception as error:  # not all are NumbaError
        raise TypeError(short(error, name, function.py_func, operands)) from None
    if isinstance(result_type, types.NoneType):
        return []
    several: Iterable[types.Type] = (
        result_type if isinstance(result_type, types.BaseTuple) else [result_type]
    )
    return [_array_form(x, name) for x in several]


def _array_form(kind: types.Type, name: str) -> tuple[int, np.dtype]:
    rank, element = (kind.ndim, kind.dtype) if isinstance(kind, types.Array) else (0, kind)
    try:
        return rank, as_dtype(types.unliteral(element))
    except NumbaError:
        what = "a value that arrays cannot hold"
        if isinstance(element, types.Optional | types.NoneType):
            what = "nothing on some path"
        raise TypeError(
            f"kernel: {name} returns {what}; got {kind}; return one number in every branch, or "
            "declare arrays as results with out="
        ) from None


def scalar_result(function: FunctionType, name: str, dtypes: Sequence[np.dtype]) -> np.dtype:
    """Return the dtype of the result of a function of numbers for arguments of these dtypes.

    Raises:
        TypeError: it does not compile for these; the text contains Numba's message in short.
    """
    kinds = tuple([from_dtype(d) for d in dtypes])
    # Kernels have no memory management of Numba; they would fail later, with less detail.
    options = {"_nrt": False}
    helpers: dict[FunctionType, Dispatcher] = {}
    dispatcher = numba.njit(**options)(_substitute_helpers(function, helpers))
    try:
        dispatcher.compile(kinds)
    except Exception as error:  # not all are NumbaError
        raise TypeError(short(error, name, function, [_Number(d) for d in dtypes])) from None
    if any(s.args != kinds for s in helpers[function].nopython_signatures):
        raise TypeError(
            f"kernel: {name} calls itself with numbers of other types; got numbers of types "
            f"{', '.join(map(str, kinds))}; convert the arguments of the inner call, or use a loop"
        )
    return _array_form(dispatcher.overloads[kinds].signature.return_type, name)[1]


def _substitute_helpers(
    function: FunctionType, helpers: dict[FunctionType, Dispatcher]
) -> FunctionType:
    """Return the function with Numba functions in place of the plain ones that it calls by name."""
    scope = dict(function.__globals__)
    clone = FunctionType(function.__code__, scope, function.__name__)
    clone.__module__ = function.__module__
    helpers[function] = numba.njit(clone)
    for name in function.__code__.co_names:
        value = scope.get(name)
        if isinstance(value, FunctionType):
            if value not in helpers:
                _substitute_helpers(value, helpers)
            scope[name] = helpers[value]
    return clone


class _Number:
    shape = ()

    def __init__(self, dtype: np.dtype) -> None:
        self.dtype = dtype


@functools.lru_cache(256)
def vectorized(function: FunctionType) -> Callable[..., np.ndarray]:
    """Return a function of numbers as a function of arrays, which is the reference of kernels."""
    return numba.vectorize(nopython=True)(_substitute_helpers(function, {}))


def gist(error: Exception) -> str:
    """Return the first lines of an error message from Numba, without those about Numba itself."""
    quotes = False
    lines: list[str] = []
    for line in _COLORS.sub("", str(error)).split("\n"):
        # After the place of a statement, Numba quotes the lines around it up to an empty line.
        quotes = bool(line.strip()) and (quotes or line.startswith("File "))
        text = line.strip().removeprefix(">>> ")
        if not quotes and text and not _NOISE.match(text):
            lines.append(text)
    message = " ".join(lines[:2])
    for pattern, new in _PLAIN:
        message = pattern.sub(new, message)
    return message[:400] or type(error).__name__


def line_in(error: Exception, file: str) -> int | None:
    """Return the first line number of a file that a message from Numba names."""
    text = _COLORS.sub("", str(error))
    return next((int(n) for p in _PLACES for name, n in p.findall(text) if name == file), None)


def short(error: Exception, name: str, function: FunctionType, operands: Sequence[Shaped]) -> str:
    """Return a message of Numba without what concerns only Numba, and with the user's line."""
    text, message = str(error), gist(error)
    if "Cannot modify readonly array" in text:
        message = "it writes to an operand, and these are read only: write to a result"
    if "NRT required" in text or "Only accept returning of array passed" in text:
        message = ("functions of numbers, and kernels for GPUs, make no arrays, lists or texts: "
                   "declare results with out=, and write numbers to them")  # fmt: skip
    operand_types = ", ".join(f"{a.dtype.name}[{','.join(map(str, a.shape))}]" for a in operands)
    file = function.__code__.co_filename
    line = line_in(error, file) or function.__code__.co_firstlineno
    code = linecache.getline(file, line).strip()
    return (
        f"kernel: Numba cannot compile {name} for ({operand_types}): {message}; "
        f"at {file}:{line}: {code}"
    )
