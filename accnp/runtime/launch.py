"""Calling machine code from Python at the price of a built-in function.

In: the address of a kernel's `entry`, n, chunk and its arguments as integers; or the address of a
table of such calls (see `engine/table.py`) and those of buffers. Out: nothing; the kernels have
run. The built-in functions are a few lines of LLVM IR: a call through ctypes costs 2 us with its
argument block, one through these 0.2 us. The caller chooses whether the interpreter lock is kept.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable

from accnp.runtime import bypass, team
from accnp.runtime.chunks import CLAIM

RELEASED, HELD, COUNT = "accnp_launch_released", "accnp_launch_held", "accnp_launches"
WALK_RELEASED, WALK_HELD, COPY = "accnp_walk_released", "accnp_walk_held", "accnp_copy"
WALK_TOGETHER, GROUP = "accnp_walk_together", "accnp_group"
WALK_BRIEFLY, SHARE = "accnp_walk_briefly", "accnp_share"
BUILTINS = (RELEASED, HELD, WALK_RELEASED, WALK_HELD, WALK_TOGETHER, WALK_BRIEFLY, SHARE)
SYMBOLS = (*BUILTINS, COUNT, COPY, GROUP, team.ATTEND, team.SPREAD, bypass.BYPASS, bypass.STREAM)
_METH_FASTCALL = 0x80

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

# What Python calls: it reads its arguments into words, behind `ahead` others, and counts launches.
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
  %address = load i64, i64* %given
{open}
  %before = load i64, i64* @accnp_launches
  %after = add i64 %before, {launches}
  store i64 %after, i64* @accnp_launches
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

_RELEASE = {
    "release": "  %state = call i8* @PyEval_SaveThread()",
    "acquire": "  call void @PyEval_RestoreThread(i8* %state)",
}
_HOLD = {"release": "", "acquire": ""}


def _launcher(name: str, release: dict[str, str]) -> str:
    """f(entry, n, chunk, *arguments): on this thread."""
    opened = """  %entry = inttoptr i64 %address to void (i64*, i64*, i64, i64)*
  %w1 = getelementptr i64, i64* %given, i64 1
  %n = load i64, i64* %w1
  %w2 = getelementptr i64, i64* %given, i64 2
  %chunk = load i64, i64* %w2
  %argv = getelementptr i64, i64* %given, i64 3
  %counter = alloca i64
  store i64 0, i64* %counter"""
    run = "  call void %entry(i64* %argv, i64* %counter, i64 %n, i64 %chunk)"
    return _BUILTIN.format(name=name, ahead=0, launches=1, open=opened, run=run, **release)


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
    return _BUILTIN.format(name=SHARE, ahead=0, launches=1, open=opened, run=run, **_RELEASE)


def _walker(name: str, release: dict[str, str], together: dict[str, str]) -> str:
    """f(table, *bases): base 0 is zero, base 1 the address of all of them, the others are given."""
    opened = """  %base = getelementptr i64, i64* %words, i64 0
  store i64 0, i64* %base
  %base_ = ptrtoint i64* %base to i64
  store i64 %base_, i64* %given
  %table = inttoptr i64 %address to i64*
  %widest = load i64, i64* %table
  %argv = alloca i64, i64 %widest
  %t1 = getelementptr i64, i64* %table, i64 1
  %steps = load i64, i64* %t1
  %t2 = getelementptr i64, i64* %table, i64 2
  %kernels = load i64, i64* %t2
"""
    run = """  %beginning = getelementptr i64, i64* %table, i64 3
  br label %step
step:
  %k = phi i64 [0, %go], [%following, %run]
  %p = phi i64* [%beginning, %go], [%q, %run]
  %going = icmp slt i64 %k, %steps
  br i1 %going, label %run, label %done
run:
  %q = call i64* @accnp_step(i64* %p, i64* %base, i64* %argv, i64 {team}, i64 {helpers})
  %following = add i64 %k, 1
  br label %step
done:
{close}"""
    return _BUILTIN.format(
        name=name,
        ahead=1,
        launches="%kernels",
        open=opened + together["open"],
        run=run.format_map(together),
        **release,
    )


_ALONE = {"open": "", "close": "", "team": "0", "helpers": "0"}
# The first two bases are the team and the number of helpers.
_BASES = """  %b2 = getelementptr i64, i64* %base, i64 2
  %team = load i64, i64* %b2
  %b3 = getelementptr i64, i64* %base, i64 3
  %number = load i64, i64* %b3
"""
_TEAM = {
    "open": f"""{_BASES}  %team_ = inttoptr i64 %team to i64*
  %sessions = getelementptr i64, i64* %team_, i64 {team.SESSIONS}
  %opened = atomicrmw add i64* %sessions, i64 1 seq_cst
  call void @{team.WAKE}(i64* %team_, i64 %number)""",
    "close": "  %closed = atomicrmw sub i64* %sessions, i64 1 monotonic",
    "team": "%team",
    "helpers": "%number",
}
# The same, where only helpers that are awake take part.
_BRIEFLY = {
    "open": f"{_BASES}  %helpers = sub i64 0, %number",
    "close": "",
    "team": "%team",
    "helpers": "%helpers",
}
TEXT = (
    _HEAD
    + _launcher(HELD, _HOLD)
    + _launcher(RELEASED, _RELEASE)
    + _STEP
    + _GROUP
    + _walker(WALK_HELD, _HOLD, _ALONE)
    + _walker(WALK_RELEASED, _RELEASE, _ALONE)
    + _walker(WALK_TOGETHER, _RELEASE, _TEAM)
    + _walker(WALK_BRIEFLY, _RELEASE, _BRIEFLY)
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


def builtin(name: str, address: int) -> Callable[..., None]:
    """A built-in function `f(entry, n, chunk, *arguments)`, or `f(table, *buffers)`, from machine
    code."""
    definition = _MethodDef(name.encode(), address, _METH_FASTCALL, None)
    # The function points to it, and the collector asks functions while the interpreter is taken
    # down, when nothing of this module is there any more: the memory is never freed.
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(definition))
    make = ctypes.pythonapi.PyCFunction_NewEx
    make.restype = ctypes.py_object
    make.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)
    return make(ctypes.addressof(definition), None, None)
