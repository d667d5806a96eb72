"""Several threads inside one kernel, in machine code: LLVM IR for who shares work and who helps.

A team is one block of memory (`WORDS` words of 8 bytes, all zero at first; each group of eight is
a cache line of its own). `spread` publishes a launch in it, wakes helpers, works along, takes back
the tickets that nobody used, and waits for the helpers inside; `share` is that for Python. `attend`
is a helper's watch: it works on whatever is published, and sleeps on a lock of its own when nothing
was for so many looks and no session is open. A hand-over to a helper that is looking costs 0.2 us.

Who sleeps is woken in machine code, too: helpers that need the interpreter, whose lock the waking
thread holds until a moment later, sleep twice, and come 0.1 ms later.

Whoever shares keeps helpers off its own processor: a scheduler likes to wake a thread where its
waker runs, or where it ran before, and the two would take turns there. While it waits for them it
looks again: it may have been moved to theirs.
"""

from __future__ import annotations

import os
import sys

__all__ = [
    "ATTEND", "COUNT", "CPU", "LOOKS", "MOST", "PLACES", "SESSIONS", "SHARE", "SPREAD",
    "TEXT", "WAKE", "WORDS",
]  # fmt: skip

SHARE, SPREAD, ATTEND, WAKE = "accnp_share", "accnp_spread", "accnp_attend", "accnp_wake"
# Words of a team: tickets and inside; busy; cpu; counter; entry, arguments, n, chunk; sessions,
# number of helpers, their looks; and for each helper whether it sleeps, its lock, its number.
CPU = 16  # which word says what processor helpers keep off
SESSIONS = 40  # which word counts those who will share more in a moment: helpers stay awake
COUNT = 41  # which word has the number of helpers
LOOKS = 42  # which word says how often a helper looks for work before it sleeps
PLACES = 48  # where the words of helpers begin, eight each
MOST = 255  # helpers
WORDS = PLACES + 8 * MOST

_MACHINE = os.uname().machine if hasattr(os, "uname") else "x86_64"
_ARM = _MACHINE in ("aarch64", "arm64")
_PAUSE = "@llvm.aarch64.hint(i32" if _ARM else "@llvm.x86.sse2.pause("
_LINUX = sys.platform == "linux"
_YIELD = "SwitchToThread" if sys.platform == "win32" else "sched_yield"
_INSIDE = 1 << 32  # one helper at work; the low half of the word counts tickets

_HELPER = (
    f"""
declare i32 @{_YIELD}()
declare void {_PAUSE})
declare i32 @PyThread_acquire_lock(i8*, i32)
declare void @PyThread_release_lock(i8*)
"""
    + (
        """
declare i32 @sched_getcpu()
declare i32 @getpid()
declare i32 @sched_getaffinity(i32, i64, i8*)
declare i32 @sched_setaffinity(i32, i64, i8*)
declare void @llvm.memset.p0i8.i64(i8*, i8, i64, i1)

define internal void @accnp_aside(i64* %team) {
start:
  %set = alloca i64, i64 16
  %bytes = bitcast i64* %set to i8*
  %cpu = call i32 @sched_getcpu()
  %here = sext i32 %cpu to i64
  %where = getelementptr i64, i64* %team, i64 16
  %before = load atomic i64, i64* %where monotonic, align 8
  %same = icmp eq i64 %here, %before
  %unknown = icmp ugt i64 %here, 1023
  %nothing = or i1 %same, %unknown
  br i1 %nothing, label %end, label %ask
ask:
  store atomic i64 %here, i64* %where monotonic, align 8
  call void @llvm.memset.p0i8.i64(i8* %bytes, i8 0, i64 128, i1 false)
  %pid = call i32 @getpid()
  %error = call i32 @sched_getaffinity(i32 %pid, i64 128, i8* %bytes)
  %known = icmp eq i32 %error, 0
  br i1 %known, label %leave, label %end
leave:
  %which = lshr i64 %here, 6
  %slot = getelementptr i64, i64* %set, i64 %which
  %word = load i64, i64* %slot
  %low = and i64 %here, 63
  %bit = shl i64 1, %low
  %others = xor i64 %bit, -1
  %without = and i64 %word, %others
  store i64 %without, i64* %slot
  br label %count
count:
  %k = phi i64 [0, %leave], [%k1, %count]
  %any = phi i64 [0, %leave], [%any1, %count]
  %kp = getelementptr i64, i64* %set, i64 %k
  %kw = load i64, i64* %kp
  %any1 = or i64 %any, %kw
  %k1 = add i64 %k, 1
  %more = icmp slt i64 %k1, 16
  br i1 %more, label %count, label %counted
counted:
  %empty = icmp eq i64 %any1, 0
  %np = getelementptr i64, i64* %team, i64 COUNT
  %n = load atomic i64, i64* %np acquire, align 8
  br i1 %empty, label %end, label %next
next:
  %i = phi i64 [0, %counted], [%i1, %one]
  %going = icmp slt i64 %i, %n
  br i1 %going, label %one, label %end
one:
  %i1 = add i64 %i, 1
  %words = shl i64 %i, 3
  %at = add i64 %words, NUMBER
  %numberp = getelementptr i64, i64* %team, i64 %at
  %number = load i64, i64* %numberp
  %thread = trunc i64 %number to i32
  %done = call i32 @sched_setaffinity(i32 %thread, i64 128, i8* %bytes)
  br label %next
end:
  ret void
}
""".replace("COUNT", str(COUNT)).replace("NUMBER", str(PLACES + 2))
        if _LINUX
        else """
define internal void @accnp_aside(i64* %team) alwaysinline {
  ret void
}
"""
    )
    + f"""
define void @{WAKE}(i64* %team, i64 %helpers) {{
start:
  call void @accnp_aside(i64* %team)
  %p = getelementptr i64, i64* %team, i64 {COUNT}
  %count = load atomic i64, i64* %p monotonic, align 8
  %fewer = icmp slt i64 %count, %helpers
  %n = select i1 %fewer, i64 %count, i64 %helpers
  br label %next
next:
  %i = phi i64 [0, %start], [%i1, %one], [%i1, %rouse], [%i1, %wake]
  %going = icmp slt i64 %i, %n
  br i1 %going, label %one, label %end
one:
  %i1 = add i64 %i, 1
  %words = shl i64 %i, 3
  %at = add i64 %words, {PLACES}
  %place = getelementptr i64, i64* %team, i64 %at
  %state = load atomic i64, i64* %place seq_cst, align 8
  %asleep = icmp ne i64 %state, 0
  br i1 %asleep, label %rouse, label %next
rouse:
  %tried = cmpxchg i64* %place, i64 1, i64 0 seq_cst monotonic
  %got = extractvalue {{ i64, i1 }} %tried, 1
  br i1 %got, label %wake, label %next
wake:
  %l = getelementptr i64, i64* %place, i64 1
  %word = load i64, i64* %l
  %lock = inttoptr i64 %word to i8*
  call void @PyThread_release_lock(i8* %lock)
  br label %next
end:
  ret void
}}

define void @{ATTEND}(i64* %team, i64* %me) {{
start:
  %counter = getelementptr i64, i64* %team, i64 24
  %p1 = getelementptr i64, i64* %team, i64 32
  %p2 = getelementptr i64, i64* %team, i64 33
  %p3 = getelementptr i64, i64* %team, i64 34
  %p4 = getelementptr i64, i64* %team, i64 35
  %sessions = getelementptr i64, i64* %team, i64 {SESSIONS}
  %looksp = getelementptr i64, i64* %team, i64 {LOOKS}
  %lockp = getelementptr i64, i64* %me, i64 1
  %lock_ = load i64, i64* %lockp
  %lock = inttoptr i64 %lock_ to i8*
  br label %begin
begin:
  %looks = load atomic i64, i64* %looksp monotonic, align 8
  br label %look
look:
  %left = phi i64 [%looks, %begin], [%less, %again], [%looks, %worked], [64, %stay]
  %word = load atomic i64, i64* %team acquire, align 8
  %tickets = and i64 %word, {_INSIDE - 1}
  %open = icmp ne i64 %tickets, 0
  br i1 %open, label %take, label %idle
take:
  %taken = add i64 %word, {_INSIDE - 1}
  %tried = cmpxchg i64* %team, i64 %word, i64 %taken acq_rel monotonic
  %got = extractvalue {{ i64, i1 }} %tried, 1
  br i1 %got, label %work, label %idle
work:
  %code = load i64, i64* %p1
  %argv_ = load i64, i64* %p2
  %n = load i64, i64* %p3
  %chunk = load i64, i64* %p4
  %entry = inttoptr i64 %code to void (i64*, i64*, i64, i64)*
  %argv = inttoptr i64 %argv_ to i64*
  call void %entry(i64* %argv, i64* %counter, i64 %n, i64 %chunk)
  br label %worked
worked:
  %gone = atomicrmw sub i64* %team, i64 {_INSIDE} release
  br label %look
idle:
  call void {_PAUSE}{" 1" if _ARM else ""})
  %done = icmp sle i64 %left, 0
  br i1 %done, label %rest, label %again
rest:
  %open_sessions = load atomic i64, i64* %sessions monotonic, align 8
  %expected = icmp ne i64 %open_sessions, 0
  br i1 %expected, label %stay, label %drowse
drowse:
  store atomic i64 1, i64* %me seq_cst, align 8
  %late = load atomic i64, i64* %team seq_cst, align 8
  %late_tickets = and i64 %late, {_INSIDE - 1}
  %late_sessions = load atomic i64, i64* %sessions seq_cst, align 8
  %missed = or i64 %late_tickets, %late_sessions
  %something = icmp ne i64 %missed, 0
  br i1 %something, label %rise, label %sleep
rise:
  %risen = cmpxchg i64* %me, i64 1, i64 0 seq_cst monotonic
  %alone = extractvalue {{ i64, i1 }} %risen, 1
  br i1 %alone, label %begin, label %sleep
sleep:
  %slept = call i32 @PyThread_acquire_lock(i8* %lock, i32 1)
  br label %begin
stay:
  %yielded = call i32 @{_YIELD}()
  br label %look
again:
  %less = sub i64 %left, 1
  br label %look
}}
"""
)

# 0..n in chunks on this thread and on as many helpers; alone if another thread shares just now.
_SPREAD = f"""
define void @{SPREAD}(i64 %address, i64* %argv, i64 %n, i64 %chunk, i64 %where, i64 %helpers) {{
start:
  %own = alloca i64
  store i64 0, i64* %own
  %entry = inttoptr i64 %address to void (i64*, i64*, i64, i64)*
  %team = inttoptr i64 %where to i64*
  %busy = getelementptr i64, i64* %team, i64 8
  %counter = getelementptr i64, i64* %team, i64 24
  %p1 = getelementptr i64, i64* %team, i64 32
  %p2 = getelementptr i64, i64* %team, i64 33
  %p3 = getelementptr i64, i64* %team, i64 34
  %p4 = getelementptr i64, i64* %team, i64 35
  %useful = icmp sgt i64 %helpers, 0
  %several = icmp sgt i64 %n, %chunk
  %worth = and i1 %useful, %several
  br i1 %worth, label %count, label %alone
count:
  %last = sub i64 %n, 1
  %others = sdiv i64 %last, %chunk
  %fewer = icmp slt i64 %others, %helpers
  %tickets = select i1 %fewer, i64 %others, i64 %helpers
  %tried = cmpxchg i64* %busy, i64 0, i64 1 acq_rel monotonic
  %got = extractvalue {{ i64, i1 }} %tried, 1
  br i1 %got, label %publish, label %alone
alone:
  call void %entry(i64* %argv, i64* %own, i64 %n, i64 %n)
  ret void
publish:
  %argv_ = ptrtoint i64* %argv to i64
  store i64 0, i64* %counter
  store i64 %address, i64* %p1
  store i64 %argv_, i64* %p2
  store i64 %n, i64* %p3
  store i64 %chunk, i64* %p4
  %nobody = atomicrmw xchg i64* %team, i64 %tickets seq_cst
  call void @{WAKE}(i64* %team, i64 %tickets)
  call void %entry(i64* %argv, i64* %counter, i64 %n, i64 %chunk)
  %closed = atomicrmw and i64* %team, i64 {-_INSIDE} acq_rel
  br label %wait
wait:
  %looks = phi i64 [0, %publish], [%looked, %pause], [0, %yield]
  %word = load atomic i64, i64* %team acquire, align 8
  %empty = icmp eq i64 %word, 0
  br i1 %empty, label %end, label %pause
pause:
  call void {_PAUSE}{" 1" if _ARM else ""})
  %looked = add i64 %looks, 1
  %long = icmp sgt i64 %looked, 2000
  br i1 %long, label %yield, label %wait
yield:
  call void @accnp_aside(i64* %team)
  %yielded = call i32 @{_YIELD}()
  br label %wait
end:
  store atomic i64 0, i64* %busy release, align 8
  ret void
}}
"""

# f(entry, n, chunk, team, helpers, *arguments), like the launchers of `launch.py`.
_SHARER = f"""
define i8* @{SHARE}(i8* %self, i8** %args, i64 %nargs) {{
start:
  %all = alloca i64, i64 %nargs
  br label %more
more:
  %i = phi i64 [0, %start], [%next, %one]
  %left = icmp slt i64 %i, %nargs
  br i1 %left, label %one, label %ready
one:
  %q = getelementptr i8*, i8** %args, i64 %i
  %o = load i8*, i8** %q
  %v = call i64 @PyLong_AsLongLong(i8* %o)
  %slot = getelementptr i64, i64* %all, i64 %i
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
  %s1 = getelementptr i64, i64* %all, i64 1
  %s2 = getelementptr i64, i64* %all, i64 2
  %s3 = getelementptr i64, i64* %all, i64 3
  %s4 = getelementptr i64, i64* %all, i64 4
  %argv = getelementptr i64, i64* %all, i64 5
  %address = load i64, i64* %all
  %n = load i64, i64* %s1
  %chunk = load i64, i64* %s2
  %team = load i64, i64* %s3
  %helpers = load i64, i64* %s4
  %before = load i64, i64* @accnp_launches
  %after = add i64 %before, 1
  store i64 %after, i64* @accnp_launches
  %state = call i8* @PyEval_SaveThread()
  call void @{SPREAD}(i64 %address, i64* %argv, i64 %n, i64 %chunk, i64 %team, i64 %helpers)
  call void @PyEval_RestoreThread(i8* %state)
  call void @Py_IncRef(i8* @_Py_NoneStruct)
  ret i8* @_Py_NoneStruct
}}
"""

TEXT = _HELPER + _SPREAD + _SHARER
