"""A stand-in for CuPy over NumPy that accepts only CuPy's names and parameters.

`cupy_names.txt` lists the names and signatures that accnp uses, as in CuPy's release. Other names
and arguments are errors, as they would be on a GPU, and so are NumPy arrays among the operands. To
use another function, look it up in CuPy and add its line.
"""

from __future__ import annotations

import contextlib
import inspect
import os
import re
import sys
import threading
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import numpy as np

__all__ = [
    "Array",
    "Capturing",
    "active_capture",
    "check_arguments",
    "cupy_signature",
    "cupyx",
    "library",
]

_FILE = os.path.join(os.path.dirname(__file__), "cupy_names.txt")
_lines: dict[str, str] = {}
with open(_FILE) as _file:
    for _line in _file:
        if _found := re.fullmatch(r"([\w.]+)(\(.*\))", _line.strip()):
            _lines[_found[1]] = _found[2]


def cupy_signature(name: str) -> inspect.Signature:
    """Return the parameters of a CuPy function."""
    if name not in _lines:
        raise AttributeError(f"{name} is not in cupy_names.txt: is it in CuPy, and with what?")
    space: dict[str, Any] = {}
    exec(f"def f{_lines[name]}: ...", space)
    return inspect.signature(space["f"])


def check_arguments(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that refuses arguments which the CuPy function of that name does not
    have.
    """
    known = cupy_signature(name)

    def call(*args: Any, **kwargs: Any) -> Any:
        known.bind(*args, **kwargs)
        _check_capture(name)
        return function(*args, **kwargs)

    return call


class Capturing:
    """Records the functions that are called while a thread's stream is captured, in order.

    As in CuPy 14.2, calls of cuBLAS and cuSOLVER and reads of array values are refused.
    """

    _now = threading.local()

    def __init__(self) -> None:
        self.asked: list[str] = []

    def __enter__(self) -> Capturing:
        assert active_capture() is None, "a stream is captured already"
        Capturing._now.it = self
        return self

    def __exit__(self, *_: Any) -> None:
        Capturing._now.it = None


def active_capture() -> Capturing | None:
    """Return the active capture of this thread, or None."""
    return getattr(Capturing._now, "it", None)


_REFUSED_DURING_CAPTURE = {
    "cupy.matmul of": "cuBLAS",
    "cupy.linalg.": "cuSOLVER",
    "cupyx.scipy.linalg.": "cuBLAS",
}


def _check_capture(name: str) -> None:
    now = active_capture()
    if now is None:
        return
    now.asked.append(name)
    for start, whose in _REFUSED_DURING_CAPTURE.items():
        if name.startswith(start):
            raise NotImplementedError(
                f"calling {whose} API during stream capture is currently unsupported"
            )


def _refuse_during_capture(name: str) -> Callable[..., Any]:
    plain = getattr(np.ndarray, name)

    def look(self: Any, *args: Any) -> Any:
        if active_capture() is not None:
            raise RuntimeError("the current stream is capturing, so synchronous API calls are off")
        return plain(self, *args)

    return look


class Array(np.ndarray):
    """An array of the library. Functions refuse other arrays as operands."""

    item, tolist, tobytes = (
        _refuse_during_capture("item"),
        _refuse_during_capture("tolist"),
        _refuse_during_capture("tobytes"),
    )
    __bool__, __int__, __float__ = (
        _refuse_during_capture("__bool__"),
        _refuse_during_capture("__int__"),
        _refuse_during_capture("__float__"),
    )
    __complex__, __index__ = (
        _refuse_during_capture("__complex__"),
        _refuse_during_capture("__index__"),
    )

    def __getitem__(self, key: Any) -> Any:  # CuPy has no scalars: they are arrays on the GPU
        return _convert_results(super().__getitem__(key))


def _convert_results(x: Any) -> Any:
    if isinstance(x, tuple):
        return tuple([_convert_results(y) for y in x])
    return np.asarray(x).view(Array) if isinstance(x, np.ndarray | np.generic) else x


def _refuse_numpy_arrays(name: str, values: Any) -> None:
    for x in values:
        if type(x) is np.ndarray:
            raise TypeError(f"{name}: Unsupported type {type(x)}")


class _Space:
    """A CuPy module, whose functions are computed by NumPy."""

    def __init__(self, name: str, own: dict[str, Any]) -> None:
        self.__name__ = name
        self._own = own

    def __getattr__(self, name: str) -> Any:
        path = f"{self.__name__}.{name}"
        if path in self._own:
            return self._own[path]
        if any(line.startswith(path + ".") for line in _lines):
            return _Space(path, self._own)
        known = cupy_signature(path)
        function: Any = np
        for part in path.split(".")[1:]:
            function = getattr(function, part)

        def call(*args: Any, **kwargs: Any) -> Any:
            known.bind(*args, **kwargs)
            _check_capture(path)
            if path not in ("cupy.asarray", "cupy.from_dlpack"):
                _refuse_numpy_arrays(path, [*args, *kwargs.values()])
            return _convert_results(function(*args, **kwargs))

        return call


def _matmul(a: Any, b: Any) -> Any:
    has_own_kernel = a.dtype.kind in "biu" and a.dtype.itemsize > 1  # cuBLAS is not called
    if not has_own_kernel:
        _check_capture(f"cupy.matmul of {a.dtype}")
    small = a.dtype.name == "bfloat16"
    if small and max(a.ndim, b.ndim) > 2:
        raise TypeError("CuPy has no products of stacks of bfloat16 matrices")
    if a.dtype.itemsize == 2:  # added up in float32
        return _convert_results(np.matmul(a.astype("f4"), b.astype("f4")).astype(a.dtype))
    return _convert_results(np.matmul(a, b))


def _argsort(a: Any, axis: int = -1, kind: Any = None) -> Any:
    assert kind in (None, "stable")
    return _convert_results(np.argsort(a, axis, kind="stable"))


class _Cublas:
    """The math mode of a cuBLAS handle; `seen` lists the modes that were set."""

    CUBLAS_DEFAULT_MATH, CUBLAS_TF32_TENSOR_OP_MATH = 0, 3

    def __init__(self) -> None:
        self.mode = 0
        self.seen: list[int] = []
        self.getMathMode = check_arguments("cupy.cuda.cublas.getMathMode", lambda handle: self.mode)
        self.setMathMode = check_arguments("cupy.cuda.cublas.setMathMode", self._set)

    def _set(self, handle: int, mode: int) -> None:
        assert handle == 77
        self.mode = mode
        self.seen.append(mode)


def library() -> Any:
    """Return a new stand-in with its own math mode."""
    own = {
        "cupy.cuda.cublas": _Cublas(),
        "cupy.cuda.device.get_cublas_handle": lambda: 77,
        "cupy.ndarray": Array,
        "cupy.matmul": check_arguments("cupy.matmul", _matmul),
        "cupy.argsort": check_arguments("cupy.argsort", _argsort),
        "cupy.dtype": np.dtype,
    }
    return _Space("cupy", own)


@contextlib.contextmanager
def _errstate(**_: Any) -> Iterator[None]:
    yield


def _solve_triangular(a: Any, b: Any, **kwargs: Any) -> Any:
    from scipy.linalg import solve_triangular

    _refuse_numpy_arrays("solve_triangular", (a, b))
    if a.shape[:-2] != b.shape[:-2]:
        raise ValueError("incompatible batch count")
    solutions = np.empty(b.shape, b.dtype)
    for i in np.ndindex(a.shape[:-2]):
        solutions[i] = solve_triangular(a[i], b[i], **kwargs)
    return _convert_results(solutions)


def _lu_factor(a: Any, **kwargs: Any) -> Any:
    from scipy.linalg import lu_factor

    _refuse_numpy_arrays("lu_factor", (a,))
    if a.ndim != 2:
        raise np.linalg.LinAlgError("the array must be two-dimensional")
    return _convert_results(lu_factor(a, **kwargs))


@contextlib.contextmanager
def cupyx() -> Iterator[None]:
    """Replace `cupyx` and the CuPy modules that are imported separately."""
    modules: dict[str, Any] = {
        name: ModuleType(name) for name in ("cupyx", "cupyx.scipy", "cupyx.scipy.linalg")
    }
    modules["cupyx"].errstate = check_arguments("cupyx.errstate", _errstate)
    path = "cupyx.scipy.linalg"
    modules[path].solve_triangular = check_arguments(f"{path}.solve_triangular", _solve_triangular)
    modules[path].lu_factor = check_arguments(f"{path}.lu_factor", _lu_factor)
    before = {name: sys.modules.get(name) for name in modules}
    sys.modules.update(modules)
    try:
        yield
    finally:
        for name, module in before.items():
            if module is None:
                del sys.modules[name]
            else:
                sys.modules[name] = module
