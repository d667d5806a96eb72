"""Calling machine code from Python at the price of a built-in function.

In: the address of a kernel's `entry`, n, chunk and its arguments as integers. Out: nothing; the
kernel has run. The two built-in functions are a few lines of LLVM IR: a call through ctypes costs
2 us with its argument block, one through these 0.2 us. The caller chooses whether the interpreter
lock is kept.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

RELEASED, HELD, COUNT = "accnp_launch_released", "accnp_launch_held", "accnp_launches"
SYMBOLS = (RELEASED, HELD, COUNT)
_METH_FASTCALL = 0x80

_HEAD = """
@_Py_NoneStruct = external global i8
@accnp_launches = global i64 0
declare i64 @PyLong_AsLongLong(i8*)
declare i8* @PyErr_Occurred()
declare void @Py_IncRef(i8*)
declare i8* @PyEval_SaveThread()
declare void @PyEval_RestoreThread(i8*)
"""

_FUNCTION = """
define i8* @{name}(i8* %self, i8** %args, i64 %nargs) {{
start:
  %counter = alloca i64
  store i64 0, i64* %counter
  %argv = alloca i64, i64 %nargs
  %o0 = load i8*, i8** %args
  %address = call i64 @PyLong_AsLongLong(i8* %o0)
  %q1 = getelementptr i8*, i8** %args, i64 1
  %o1 = load i8*, i8** %q1
  %n = call i64 @PyLong_AsLongLong(i8* %o1)
  %q2 = getelementptr i8*, i8** %args, i64 2
  %o2 = load i8*, i8** %q2
  %chunk = call i64 @PyLong_AsLongLong(i8* %o2)
  br label %more
more:
  %i = phi i64 [3, %start], [%next, %one]
  %left = icmp slt i64 %i, %nargs
  br i1 %left, label %one, label %ready
one:
  %q = getelementptr i8*, i8** %args, i64 %i
  %o = load i8*, i8** %q
  %v = call i64 @PyLong_AsLongLong(i8* %o)
  %at = sub i64 %i, 3
  %slot = getelementptr i64, i64* %argv, i64 %at
  store i64 %v, i64* %slot
  %next = add i64 %i, 1
  br label %more
ready:
  %error = call i8* @PyErr_Occurred()
  %bad = icmp ne i8* %error, null
  br i1 %bad, label %fail, label %go
fail:
  ret i8* null
go:
  %entry = inttoptr i64 %address to void (i64*, i64*, i64, i64)*
  %before = load i64, i64* @accnp_launches
  %after = add i64 %before, 1
  store i64 %after, i64* @accnp_launches
{release}
  call void %entry(i64* %argv, i64* %counter, i64 %n, i64 %chunk)
{acquire}
  call void @Py_IncRef(i8* @_Py_NoneStruct)
  ret i8* @_Py_NoneStruct
}}
"""

TEXT = (
    _HEAD
    + _FUNCTION.format(name=HELD, release="", acquire="")
    + _FUNCTION.format(
        name=RELEASED,
        release="  %state = call i8* @PyEval_SaveThread()",
        acquire="  call void @PyEval_RestoreThread(i8* %state)",
    )
)


class _MethodDef(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


_keep: list[Any] = []


def builtin(name: str, address: int) -> Callable[..., None]:
    """A built-in function `f(entry, n, chunk, *arguments)` from machine code."""
    definition = _MethodDef(name.encode(), address, _METH_FASTCALL, None)
    _keep.append(definition)  # the function points to it for ever
    make = ctypes.pythonapi.PyCFunction_NewEx
    make.restype = ctypes.py_object
    make.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)
    return make(ctypes.addressof(definition), None, None)
