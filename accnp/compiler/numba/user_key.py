"""Keys of users' Numba functions for the disk cache.

The input is a Numba function. The output is a key that contains its code and everything that it
reads, or None if something in it could change without being noticed. `user_cuda.py` uses the key
for the PTX of `numba.cuda` kernels.
"""

from __future__ import annotations

import sys
from types import CodeType, FunctionType, ModuleType
from typing import Any, cast

import numpy as np

from accnp.compiler.disk_cache import digest

__all__ = ["user_key"]

# Modules whose attributes are determined by their versions.
_KNOWN = ("math", "cmath", "operator", "builtins", "numpy", "numba", "numba_cuda", "llvmlite")
_PLAIN = (bool, int, float, complex, str, bytes, type(None), type(Ellipsis))


class _Unknown(Exception):
    """Raised for a value that no text can identify."""


def user_key(function: object) -> str | None:
    """Return the key of a Numba function with its options, the functions it calls, and the
    constants it reads; None if it reads anything else."""
    numba = sys.modules.get("numba_cuda")  # stands for Numba's own, where it is installed
    versions = f"{sys.version_info[:3]} {getattr(numba, '__version__', '')}"
    try:
        description = _describe_value(function, {})
    except (_Unknown, RecursionError):
        return None
    return digest(f"{versions}\0{description}".encode()).hex()


def _describe_value(value: Any, seen: dict[int, int]) -> str:
    kind = type(cast("object", value))
    if kind in _PLAIN:
        return f"{kind.__name__} {value!r}"
    if kind in (tuple, list):
        return f"{kind.__name__} ({', '.join([_describe_value(x, seen) for x in value])})"
    if kind is frozenset:
        return f"frozenset ({', '.join(sorted([_describe_value(x, seen) for x in value]))})"
    if kind is dict:
        pairs = [
            f"{_describe_value(k, seen)}: {_describe_value(v, seen)}" for k, v in value.items()
        ]
        return f"dict ({', '.join(pairs)})"
    if _is_array(value):
        array = np.ascontiguousarray(value)
        if array.dtype.hasobject:
            raise _Unknown
        return f"array {array.dtype.str} {np.shape(value)} {digest(array.tobytes()).hex()}"
    if kind is CodeType:
        return _code(value, seen)
    if isinstance(value, ModuleType):
        return _qualified_name(value.__name__, "")
    if hasattr(value, "py_func") and hasattr(value, "targetoptions"):
        if id(value) in seen:  # it calls itself, or is called twice
            return f"function {seen[id(value)]}"
        seen[id(value)] = len(seen)
        options = {str(k): v for k, v in sorted(value.targetoptions.items())}
        return f"{kind.__name__} {_describe_value(options, seen)} {_function(value.py_func, seen)}"
    if _is_dtype(value):
        return f"dtype {value.str} {value.name}"
    # Types and functions of libraries; a plain user function would be one by `overload`.
    if isinstance(value, FunctionType | type) or callable(value):
        name = getattr(value, "__qualname__", getattr(value, "__name__", ""))
        return _qualified_name(
            getattr(value, "__module__", None) or kind.__module__, name or repr(value)
        )
    if kind.__module__.startswith("numba.core.types"):
        return f"type {value}"
    raise _Unknown


def _is_array(value: object) -> bool:
    return isinstance(value, np.ndarray | np.generic)


def _is_dtype(value: object) -> bool:
    return isinstance(value, np.dtype) and not value.hasobject


def _qualified_name(module: str, name: str) -> str:
    if module.partition(".")[0] not in _KNOWN:
        raise _Unknown
    return f"{module}.{name}"


def _function(f: FunctionType, seen: dict[int, int]) -> str:
    reads: list[tuple[str, object]] = []
    codes: list[CodeType] = [f.__code__]
    names: set[str] = set()
    while codes:
        code = codes.pop()
        names.update(code.co_names)
        codes += [c for c in code.co_consts if type(c) is CodeType]
    space = f.__globals__
    builtins: object = space.get("__builtins__", {})
    if not isinstance(builtins, dict):
        builtins = vars(builtins)
    builtins = cast("dict[str, object]", builtins)
    for name in sorted(names):
        if name in space:
            reads.append((name, space[name]))
        elif name in builtins:
            reads.append((name, builtins[name]))
    cells = zip(f.__code__.co_freevars, f.__closure__ or (), strict=True)
    reads += [(name, cell.cell_contents) for name, cell in cells]
    texts = [f"{name} = {_describe_value(value, seen)}" for name, value in reads]
    return (
        f"{f.__qualname__} {_describe_value(f.__defaults__, seen)} {_code(f.__code__, seen)}; "
        + "; ".join(texts)
    )


def _code(code: CodeType, seen: dict[int, int]) -> str:
    parts = (code.co_code, code.co_consts, code.co_names, code.co_varnames, code.co_freevars)
    numbers = (code.co_argcount, code.co_kwonlyargcount, code.co_flags)
    return f"code {_describe_value((*parts, *numbers), seen)}"
