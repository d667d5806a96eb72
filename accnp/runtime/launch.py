"""Calling machine code from Python at the price of a built-in function.

In: the address of a kernel's `entry`, n, chunk and its arguments as integers; or the address of a
table of such calls (see `engine/table.py`) and those of buffers. Out: nothing; the kernels have
run. The built-in functions are a few lines of LLVM IR: a call through ctypes costs 2 us with its
argument block, one through these 0.2 us. The caller chooses whether the interpreter lock is kept.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

from accnp.runtime import bypass, team
from accnp.runtime.bypass import CLAIM

RELEASED, HELD, COUNT = "accnp_launch_released", "accnp_launch_held", "accnp_launches"
WALK_RELEASED, WALK_HELD, COPY = "accnp_walk_released", "accnp_walk_held", "accnp_copy"
WALK_TOGETHER, GROUP, RUN = "accnp_walk_together", "accnp_group", "accnp_run"
WALK_BRIEFLY, SHARE = "accnp_walk_briefly", "accnp_share"
BUILTINS = (RELEASED, HELD, WALK_RELEASED, WALK_HELD, WALK_TOGETHER, WALK_BRIEFLY, SHARE)
SYMBOLS = (
    *BUILTINS, COUNT, COPY, GROUP, RUN, team.ATTEND, team.SPREAD, bypass.BYPASS, bypass.STREAM,
)  # fmt: skip
_METH_FASTCALL, _METH_NAMED, _METH_NOARGS = 0x80, 0x82, 0x04

_HEAD = """
@_Py_NoneStruct = external global i8
@accnp_launches = global i64 0
declare i64 @PyLong_AsLongLong(i8*)
declare i8* @PyErr_Occurred()
declare void @Py_IncRef(i8*)
declare i8* @PyEval_SaveThread()
declare void @PyEval_RestoreThread(i8*)
declare void @llvm.memcpy.p0i8.p0i8.i64(i8*, i8*, i64, i1)

define void @accnp_copy(i64* %argv, i64* %counter, i64 %n, i64 %chunk) {
  %to = load i64, i64* %argv
  %p1 = getelementptr i64, i64* %argv, i64 1
  %from = load i64, i64* %p1
  %p2 = getelementptr i64, i64* %argv, i64 2
  %size = load i64, i64* %p2
  %target = inttoptr i64 %to to i8*
  %source = inttoptr i64 %from to i8*
  call void @llvm.memcpy.p0i8.p0i8.i64(i8* %target, i8* %source, i64 %size, i1 false)
  ret void
}
"""

# What Python calls: it reads its arguments into words, behind `ahead` others.
_BUILTIN = """
define i8* @{name}(i8* %self, i8** %args, i64 %nargs) {{
start:
  %room = add i64 %nargs, {ahead}
  %words = alloca i64, i64 %room
  %given = getelementptr i64, i64* %words, i64 {ahead}
  br label %more
more:
  %i = phi i64 [0, %start], [%next, %one]
  %left = icmp slt i64 %i, %nargs
  br i1 %left, label %one, label %ready
one:
  %o = getelementptr i8*, i8** %args, i64 %i
  %object = load i8*, i8** %o
  %value = call i64 @PyLong_AsLongLong(i8* %object)
  %slot = getelementptr i64, i64* %given, i64 %i
  store i64 %value, i64* %slot
  %next = add i64 %i, 1
  br label %more
ready:
  %error = call i8* @PyErr_Occurred()
  %bad = icmp ne i8* %error, null
  br i1 %bad, label %fail, label %go
fail:
  ret i8* null
go:
{open}
{count}
{release}
{run}
{acquire}
  call void @Py_IncRef(i8* @_Py_NoneStruct)
  ret i8* @_Py_NoneStruct
}}
"""

# One step of a table, see `engine/table.py`; the words after it. Each argument is a word of the
# bases with something added; `value` computes one, `run` does the step.
STEP = """
define internal i64* @{name}(i64* %p, i64* %base, i64* %argv{more}) {{
start:
  %code = load i64, i64* %p
  %p1 = getelementptr i64, i64* %p, i64 1
  %n = load i64, i64* %p1
  %p2 = getelementptr i64, i64* %p, i64 2
  %chunk = load i64, i64* %p2
  %p3 = getelementptr i64, i64* %p, i64 3
  %count = load i64, i64* %p3
  %p4 = getelementptr i64, i64* %p, i64 4
  br label %fill
fill:
  %j = phi i64 [0, %start], [%j1, %put]
  %q = phi i64* [%p4, %start], [%q2, %put]
  %lacking = icmp slt i64 %j, %count
  br i1 %lacking, label %put, label %run
put:
  %which = load i64, i64* %q
  %q1 = getelementptr i64, i64* %q, i64 1
  %more_by = load i64, i64* %q1
{value}
  %argument = getelementptr i64, i64* %argv, i64 %j
  store i64 %value, i64* %argument
  %j1 = add i64 %j, 1
  %q2 = getelementptr i64, i64* %q, i64 2
  br label %fill
run:
{run}
  ret i64* %q
}}
"""

_STEP = STEP.format(
    name="accnp_step",
    more=", i64 %team, i64 %helpers",
    value="""  %where = getelementptr i64, i64* %base, i64 %which
  %from = load i64, i64* %where
  %value = add i64 %from, %more_by""",
    run=f"  call void @{team.SPREAD}"
    "(i64 %code, i64* %argv, i64 %n, i64 %chunk, i64 %team, i64 %helpers)",
)

# A group is a step whose kernel takes steps that do not depend on each other from a counter, on as
# many threads as come.
_GROUP = """
define void @{group}(i64* %argv, i64* %counter, i64 %n, i64 %chunk) {
start:
  %base_ = load i64, i64* %argv
  %a1 = getelementptr i64, i64* %argv, i64 1
  %index_ = load i64, i64* %a1
  %a2 = getelementptr i64, i64* %argv, i64 2
  %widest = load i64, i64* %a2
  %base = inttoptr i64 %base_ to i64*
  %index = inttoptr i64 %index_ to i64*
  %own = alloca i64, i64 %widest
  br label %claim
{claim}work:
  br label %next
next:
  %k = phi i64 [%first, %work], [%following, %one]
  %more = icmp slt i64 %k, %end
  br i1 %more, label %one, label %claim
one:
  %place = getelementptr i64, i64* %index, i64 %k
  %record_ = load i64, i64* %place
  %record = inttoptr i64 %record_ to i64*
  %end_of_it = call i64* @accnp_step(i64* %record, i64* %base, i64* %own, i64 0, i64 0)
  %following = add i64 %k, 1
  br label %next
out:
  ret void
}
""".replace("{group}", GROUP).replace("{claim}", CLAIM)

_COUNT = """  %address = load i64, i64* %given
  %before = load i64, i64* @accnp_launches
  %after = add i64 %before, 1
  store i64 %after, i64* @accnp_launches"""
_RELEASE = {
    "release": "  %state = call i8* @PyEval_SaveThread()",
    "acquire": "  call void @PyEval_RestoreThread(i8* %state)",
}
_HOLD = {"release": "", "acquire": ""}


def _launcher(name: str, release: dict[str, str]) -> str:
    """f(entry, n, chunk, *arguments): on this thread."""
    opened = """  %w1 = getelementptr i64, i64* %given, i64 1
  %n = load i64, i64* %w1
  %w2 = getelementptr i64, i64* %given, i64 2
  %chunk = load i64, i64* %w2
  %argv = getelementptr i64, i64* %given, i64 3
  %counter = alloca i64
  store i64 0, i64* %counter"""
    run = """  %entry = inttoptr i64 %address to void (i64*, i64*, i64, i64)*
  call void %entry(i64* %argv, i64* %counter, i64 %n, i64 %chunk)"""
    return _BUILTIN.format(name=name, ahead=0, count=_COUNT, open=opened, run=run, **release)


def _sharer() -> str:
    """f(entry, n, chunk, team, helpers, *arguments): on this thread and on helpers."""
    names = ("n", "chunk", "team", "helpers")
    opened = "".join(
        f"  %w{i} = getelementptr i64, i64* %given, i64 {i}\n  %{name} = load i64, i64* %w{i}\n"
        for i, name in enumerate(names, 1)
    )
    opened += "  %argv = getelementptr i64, i64* %given, i64 5"
    run = f"""  call void @{team.SPREAD}(
    i64 %address, i64* %argv, i64 %n, i64 %chunk, i64 %team, i64 %helpers)"""
    return _BUILTIN.format(name=SHARE, ahead=0, count=_COUNT, open=opened, run=run, **_RELEASE)


# The steps of a table, whose address is base 1, with the other bases given. Modes: the interpreter
# lock kept, or released; released, with helpers, or with those of them that are awake.
ALONE, FREE, TOGETHER, BRIEFLY = range(4)
_RUN = f"""
define void @{RUN}(i64* %base, i64 %mode) {{
start:
  store i64 0, i64* %base
  %b1 = getelementptr i64, i64* %base, i64 1
  %address = load i64, i64* %b1
  %base_ = ptrtoint i64* %base to i64
  store i64 %base_, i64* %b1
  %table = inttoptr i64 %address to i64*
  %widest = load i64, i64* %table
  %argv = alloca i64, i64 %widest
  %t1 = getelementptr i64, i64* %table, i64 1
  %steps = load i64, i64* %t1
  %t2 = getelementptr i64, i64* %table, i64 2
  %kernels = load i64, i64* %t2
  %before = load i64, i64* @accnp_launches
  %after = add i64 %before, %kernels
  store i64 %after, i64* @accnp_launches
  %several = icmp sge i64 %mode, {TOGETHER}
  br i1 %several, label %team, label %release
team:
  %b2 = getelementptr i64, i64* %base, i64 2
  %words = load i64, i64* %b2
  %b3 = getelementptr i64, i64* %base, i64 3
  %number = load i64, i64* %b3
  %negative = sub i64 0, %number
  %words_ = inttoptr i64 %words to i64*
  %sessions = getelementptr i64, i64* %words_, i64 {team.SESSIONS}
  %brief = icmp eq i64 %mode, {BRIEFLY}
  br i1 %brief, label %release, label %open
open:
  %opened = atomicrmw add i64* %sessions, i64 1 seq_cst
  call void @{team.WAKE}(i64* %words_, i64 %number)
  br label %release
release:
  %whose = phi i64 [0, %start], [%words, %team], [%words, %open]
  %helpers = phi i64 [0, %start], [%negative, %team], [%number, %open]
  %count = phi i64* [null, %start], [null, %team], [%sessions, %open]
  %held = icmp eq i64 %mode, {ALONE}
  br i1 %held, label %go, label %releasing
releasing:
  %given = call i8* @PyEval_SaveThread()
  br label %go
go:
  %state = phi i8* [null, %release], [%given, %releasing]
  %first = getelementptr i64, i64* %table, i64 3
  br label %step
step:
  %k = phi i64 [0, %go], [%following, %run]
  %p = phi i64* [%first, %go], [%q, %run]
  %going = icmp slt i64 %k, %steps
  br i1 %going, label %run, label %done
run:
  %q = call i64* @accnp_step(i64* %p, i64* %base, i64* %argv, i64 %whose, i64 %helpers)
  %following = add i64 %k, 1
  br label %step
done:
  %session = icmp ne i64* %count, null
  br i1 %session, label %close, label %closed
close:
  %ended = atomicrmw sub i64* %count, i64 1 monotonic
  br label %closed
closed:
  br i1 %held, label %end, label %acquire
acquire:
  call void @PyEval_RestoreThread(i8* %state)
  br label %end
end:
  ret void
}}
"""


def _walker(name: str, mode: int) -> str:
    """f(table, *bases): base 0 is zero, base 1 the address of all of them, the others are given:
    where helpers come, the team and their number first."""
    run = f"  call void @{RUN}(i64* %words, i64 {mode})"
    return _BUILTIN.format(name=name, ahead=1, count="", open="", run=run, release="", acquire="")


TEXT = (
    _HEAD
    + _launcher(HELD, _HOLD)
    + _launcher(RELEASED, _RELEASE)
    + _STEP
    + _GROUP
    + _RUN
    + _walker(WALK_HELD, ALONE)
    + _walker(WALK_RELEASED, FREE)
    + _walker(WALK_TOGETHER, TOGETHER)
    + _walker(WALK_BRIEFLY, BRIEFLY)
    + team.TEXT
    + _sharer()
    + bypass.TEXT
)


class _MethodDef(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


def _definition(name: str, address: int, flags: int, doc: str | None = None) -> int:
    """The address of the description of a function in machine code."""
    definition = _MethodDef(name.encode(), address, flags, doc and doc.encode())
    # The function points to it, and the collector asks functions while the interpreter is taken
    # down, when nothing of this module is there any more: the memory is never freed.
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(definition))
    return ctypes.addressof(definition)


def builtin(name: str, address: int) -> Callable[..., None]:
    """A built-in function `f(entry, n, chunk, *arguments)`, or `f(table, *buffers)`, from machine
    code."""
    make = ctypes.pythonapi.PyCFunction_NewEx
    make.restype = ctypes.py_object
    make.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)
    return make(_definition(name, address, _METH_FASTCALL), None, None)


def method(kind: type, name: str, address: int, bare: bool) -> Any:
    """A method of a class from machine code: `bare` takes no arguments, another takes any."""
    make = ctypes.pythonapi.PyDescr_NewMethod
    make.restype = ctypes.py_object
    make.argtypes = (ctypes.py_object, ctypes.c_void_p)
    flags, given = (_METH_NOARGS, "") if bare else (_METH_NAMED, ", *args, **kwargs")
    # The first line is what `inspect.signature` reads.
    doc = f"{name}($self, /{given})\n--\n\n"
    return make(kind, _definition(name, address, flags, doc))
