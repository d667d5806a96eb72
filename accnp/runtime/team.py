"""Several threads inside one kernel, in machine code: LLVM IR for who shares work and who helps.

A team is one block of memory (`WORDS` words of 8 bytes, all zero at first; each group of eight is
a cache line of its own). `spread` publishes a launch in it, wakes helpers, works along, takes back
the tickets that nobody used, and waits for the helpers inside. `attend` is a helper's watch: it
works on whatever is published, and sleeps on a lock of its own when nothing was for so many looks
and no session is open.

A range has a part for each thread, with a counter of its own: a thread takes chunks of its part
first, so that what it worked on a moment ago is in its caches again, then of those of others.

Who sleeps is woken in machine code, too: through the interpreter it would come 0.1 ms later.

Whoever shares keeps helpers off its own processor: a scheduler likes to wake a thread where its
waker runs, or where it ran before. While it waits for them it looks again: it may have been moved
to theirs. But a helper that lost its processor in the middle of a chunk (its clock stands) is taken
onto that of who waits: whoever took it may go on for milliseconds.
"""

from __future__ import annotations

import os
import sys

__all__ = [
    "ATTEND", "COUNT", "CPU", "LOOKS", "MOST", "PLACES", "SESSIONS", "SPREAD", "TEXT", "WAKE",
    "WORDS",
]  # fmt: skip

SPREAD, ATTEND, WAKE = "accnp_spread", "accnp_attend", "accnp_wake"
# Words of a team: tickets and inside, with entry, arguments, parts, chunk; busy; cpu; sessions,
# number of helpers, their looks, brief launches; for each helper whether it sleeps, its lock, its
# number, whether it works, its clock, whether it was taken onto another processor; for each part
# where it goes on and where it ends.
CPU = 16  # which word says what processor helpers keep off
SESSIONS = 40  # which word counts those who will share more in a moment: helpers stay awake
COUNT = 41  # which word has the number of helpers
LOOKS = 42  # which word says how often a helper looks for work before it sleeps
_ENDED, _ROW = 43, 44  # when the last brief launch ended; how many in a row
PLACES = 48  # where the words of helpers begin, eight each
MOST = 255  # helpers
_COUNTERS = PLACES + 8 * MOST  # where the words of parts begin, eight each
_PARTS = 16  # at most: each is looked at by each thread
WORDS = _COUNTERS + 8 * _PARTS

_MACHINE = os.uname().machine if hasattr(os, "uname") else "x86_64"
_ARM = _MACHINE in ("aarch64", "arm64")
_PAUSE = "@llvm.aarch64.hint(i32" if _ARM else "@llvm.x86.sse2.pause("
_LINUX = sys.platform == "linux"
_YIELD = "SwitchToThread" if sys.platform == "win32" else "sched_yield"
_PATIENCE = 1024  # looks of who waits before it asks what helpers do: some 12 us
_CLOSELY = 1 << 17  # cycles between brief launches: some 50 us, which helpers look for work
_MANY = 12  # brief launches in a row that are worth waking a helper for
_CYCLES = "call i64 @llvm.readcyclecounter()" if _MACHINE in ("x86_64", "AMD64") else "add i64 0, 0"
_INSIDE = 1 << 32  # one helper at work; the low half of the word counts tickets

_ONE = f"""  %i1 = add i64 %i, 1
  %words = shl i64 %i, 3
  %at = add i64 %words, {PLACES}
  %place = getelementptr i64, i64* %team, i64 %at
"""
_FEWER = f"""  %p = getelementptr i64, i64* %team, i64 {COUNT}
  %count = load atomic i64, i64* %p monotonic, align 8
  %fewer = icmp slt i64 %count, %helpers
  %n = select i1 %fewer, i64 %count, i64 %helpers
"""
_HELPER = (
    f"""
declare i32 @{_YIELD}()
declare void {_PAUSE})
declare i32 @PyThread_acquire_lock(i8*, i32)
declare void @PyThread_release_lock(i8*)
"""
    + (
        """
declare i32 @clock_gettime(i32, i64*)
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

define internal void @accnp_fetch(i64* %team) {
start:
  %time = alloca i64, i64 2
  %nanoseconds = getelementptr i64, i64* %time, i64 1
  %set = alloca i64, i64 16
  %bytes = bitcast i64* %set to i8*
  %cpu = call i32 @sched_getcpu()
  %here = sext i32 %cpu to i64
  %known = icmp ult i64 %here, 1024
  %np = getelementptr i64, i64* %team, i64 COUNT
  %n = load atomic i64, i64* %np acquire, align 8
  br label %next
next:
  %i = phi i64 [0, %start], [%i1, %one], [%i1, %look], [%i1, %take]
  %going = icmp slt i64 %i, %n
  br i1 %going, label %one, label %end
one:
ONE  %p3 = getelementptr i64, i64* %place, i64 3
  %working = load atomic i64, i64* %p3 acquire, align 8
  %inside = icmp ne i64 %working, 0
  %wanted = and i1 %inside, %known
  br i1 %wanted, label %look, label %next
look:
  %p2 = getelementptr i64, i64* %place, i64 2
  %p4 = getelementptr i64, i64* %place, i64 4
  %p5 = getelementptr i64, i64* %place, i64 5
  %number = load i64, i64* %p2
  %thread = trunc i64 %number to i32
  %not = xor i32 %thread, -1
  %high = shl i32 %not, 3
  %clock = or i32 %high, 6
  %asked = call i32 @clock_gettime(i32 %clock, i64* %time)
  %t0 = load i64, i64* %time
  %t1 = load i64, i64* %nanoseconds
  %t2 = mul i64 %t0, 1000000000
  %now = add i64 %t1, %t2
  %last = load i64, i64* %p4
  store i64 %now, i64* %p4
  %same = icmp eq i64 %now, %last
  %answered = icmp eq i32 %asked, 0
  %stands = and i1 %same, %answered
  br i1 %stands, label %take, label %next
take:
  store atomic i64 1, i64* %p5 monotonic, align 8
  call void @llvm.memset.p0i8.i64(i8* %bytes, i8 0, i64 128, i1 false)
  %which = lshr i64 %here, 6
  %slot = getelementptr i64, i64* %set, i64 %which
  %low = and i64 %here, 63
  %bit = shl i64 1, %low
  store i64 %bit, i64* %slot
  %done = call i32 @sched_setaffinity(i32 %thread, i64 128, i8* %bytes)
  br label %next
end:
  ret void
}
""".replace("COUNT", str(COUNT))
        .replace("NUMBER", str(PLACES + 2))
        .replace("ONE", _ONE)
        if _LINUX
        else "".join(
            f"define internal void @{name}(i64* %team) alwaysinline {{ ret void }}\n"
            for name in ("accnp_aside", "accnp_fetch")
        )
    )
    + f"""
define void @{WAKE}(i64* %team, i64 %helpers) {{
start:
  call void @accnp_aside(i64* %team)
{_FEWER}  br label %next
next:
  %i = phi i64 [0, %start], [%i1, %one], [%i1, %rouse], [%i1, %wake]
  %going = icmp slt i64 %i, %n
  br i1 %going, label %one, label %end
one:
{_ONE}  %state = load atomic i64, i64* %place seq_cst, align 8
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

define internal void @accnp_work(i64* %team, i64 %mine) {{
start:
  %p1 = getelementptr i64, i64* %team, i64 1
  %p2 = getelementptr i64, i64* %team, i64 2
  %p3 = getelementptr i64, i64* %team, i64 3
  %p4 = getelementptr i64, i64* %team, i64 4
  %code = load i64, i64* %p1
  %argv_ = load i64, i64* %p2
  %parts = load i64, i64* %p3
  %chunk = load i64, i64* %p4
  %entry = inttoptr i64 %code to void (i64*, i64*, i64, i64)*
  %argv = inttoptr i64 %argv_ to i64*
  %first = urem i64 %mine, %parts
  br label %part
part:
  %k = phi i64 [0, %start], [%k1, %next]
  %v = phi i64 [%first, %start], [%v1, %next]
  %words = shl i64 %v, 3
  %at = add i64 %words, {_COUNTERS}
  %counter = getelementptr i64, i64* %team, i64 %at
  %endp = getelementptr i64, i64* %counter, i64 1
  %end = load i64, i64* %endp
  %now = load atomic i64, i64* %counter monotonic, align 8
  %left = icmp slt i64 %now, %end
  br i1 %left, label %some, label %next
some:
  call void %entry(i64* %argv, i64* %counter, i64 %end, i64 %chunk)
  br label %next
next:
  %k1 = add i64 %k, 1
  %v0 = add i64 %v, 1
  %over = icmp eq i64 %v0, %parts
  %v1 = select i1 %over, i64 0, i64 %v0
  %more = icmp slt i64 %k1, %parts
  br i1 %more, label %part, label %out
out:
  ret void
}}

define void @{ATTEND}(i64* %team, i64* %me) {{
start:
  %workp = getelementptr i64, i64* %me, i64 3
  %takenp = getelementptr i64, i64* %me, i64 5
  %from = ptrtoint i64* %team to i64
  %to = ptrtoint i64* %me to i64
  %bytes = sub i64 %to, %from
  %lines = lshr i64 %bytes, 6
  %mine = sub i64 %lines, {PLACES // 8 - 1}
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
  %left = phi i64 [%looks, %begin], [%less, %again], [%looks, %work], [64, %stay]
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
  store atomic i64 1, i64* %workp release, align 8
  call void @accnp_work(i64* %team, i64 %mine)
  store atomic i64 0, i64* %workp release, align 8
  %fetched = load atomic i64, i64* %takenp monotonic, align 8
  %elsewhere = icmp ne i64 %fetched, 0
  %gone = atomicrmw sub i64* %team, i64 {_INSIDE} release
  br i1 %elsewhere, label %leave, label %look
leave:
  store atomic i64 0, i64* %takenp monotonic, align 8
  br label %drowse
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
# A negative number of helpers stands for a brief launch: only those who are awake take part, and
# one is woken where brief launches follow each other.
_SPREAD = f"""
declare i64 @llvm.readcyclecounter()

define internal i64 @accnp_awake(i64* %team, i64 %helpers) {{
start:
{_FEWER}  br label %next
next:
  %i = phi i64 [0, %start], [%i1, %one]
  %awake = phi i64 [0, %start], [%awake1, %one]
  %going = icmp slt i64 %i, %n
  br i1 %going, label %one, label %counted
one:
{_ONE}  %state = load atomic i64, i64* %place monotonic, align 8
  %works = icmp eq i64 %state, 0
  %more = zext i1 %works to i64
  %awake1 = add i64 %awake, %more
  br label %next
counted:
  %some = icmp ne i64 %awake, 0
  br i1 %some, label %end, label %none
none:
  %ended = getelementptr i64, i64* %team, i64 {_ENDED}
  %rowp = getelementptr i64, i64* %team, i64 {_ROW}
  %now = {_CYCLES}
  %before = load atomic i64, i64* %ended monotonic, align 8
  %gap = sub i64 %now, %before
  %row = load atomic i64, i64* %rowp monotonic, align 8
  %row1 = add i64 %row, 1
  %soon = icmp ult i64 %gap, {_CLOSELY}
  %known = icmp ne i64 %now, 0
  %close = and i1 %soon, %known
  %row2 = select i1 %close, i64 %row1, i64 0
  store atomic i64 %row2, i64* %rowp monotonic, align 8
  %many = icmp sgt i64 %row2, {_MANY}
  br i1 %many, label %wake, label %end
wake:
  store atomic i64 0, i64* %rowp monotonic, align 8
  call void @{WAKE}(i64* %team, i64 %helpers)
  br label %end
end:
  ret i64 %awake
}}

define void @{SPREAD}(i64 %address, i64* %argv, i64 %n, i64 %chunk, i64 %where, i64 %helpers) {{
start:
  %own = alloca i64
  store i64 0, i64* %own
  %entry = inttoptr i64 %address to void (i64*, i64*, i64, i64)*
  %team = inttoptr i64 %where to i64*
  %busy = getelementptr i64, i64* %team, i64 8
  %p1 = getelementptr i64, i64* %team, i64 1
  %p2 = getelementptr i64, i64* %team, i64 2
  %p3 = getelementptr i64, i64* %team, i64 3
  %p4 = getelementptr i64, i64* %team, i64 4
  %cpu = getelementptr i64, i64* %team, i64 {CPU}
  %ended = getelementptr i64, i64* %team, i64 {_ENDED}
  %brief = icmp slt i64 %helpers, 0
  %negative = sub i64 0, %helpers
  %wanted = select i1 %brief, i64 %negative, i64 %helpers
  %useful = icmp sgt i64 %wanted, 0
  %several = icmp sgt i64 %n, %chunk
  %worth = and i1 %useful, %several
  br i1 %worth, label %count, label %alone
count:
  %last = sub i64 %n, 1
  %others = sdiv i64 %last, %chunk
  %fewer = icmp slt i64 %others, %wanted
  %most = select i1 %fewer, i64 %others, i64 %wanted
  br i1 %brief, label %look, label %try
look:
  %awake = call i64 @accnp_awake(i64* %team, i64 %most)
  %nobody_there = icmp eq i64 %awake, 0
  br i1 %nobody_there, label %brief_alone, label %try
brief_alone:
  call void %entry(i64* %argv, i64* %own, i64 %n, i64 %n)
  %then = {_CYCLES}
  store atomic i64 %then, i64* %ended monotonic, align 8
  ret void
try:
  %tickets = phi i64 [%most, %count], [%awake, %look]
  %tried = cmpxchg i64* %busy, i64 0, i64 1 acq_rel monotonic
  %got = extractvalue {{ i64, i1 }} %tried, 1
  br i1 %got, label %publish, label %alone
alone:
  call void %entry(i64* %argv, i64* %own, i64 %n, i64 %n)
  ret void
publish:
  %argv_ = ptrtoint i64* %argv to i64
  %threads = add i64 %tickets, 1
  %few = icmp slt i64 %threads, {_PARTS}
  %parts = select i1 %few, i64 %threads, i64 {_PARTS}
  %chunks = add i64 %others, 1
  store i64 %address, i64* %p1
  store i64 %argv_, i64* %p2
  store i64 %parts, i64* %p3
  store i64 %chunk, i64* %p4
  br label %part
part:
  %k = phi i64 [0, %publish], [%k1, %part]
  %low = phi i64 [0, %publish], [%high, %part]
  %words = shl i64 %k, 3
  %at = add i64 %words, {_COUNTERS}
  %counter = getelementptr i64, i64* %team, i64 %at
  %endp = getelementptr i64, i64* %counter, i64 1
  %k1 = add i64 %k, 1
  %share = mul i64 %chunks, %k1
  %whole = udiv i64 %share, %parts
  %bound = mul i64 %whole, %chunk
  %lastone = icmp eq i64 %k1, %parts
  %high = select i1 %lastone, i64 %n, i64 %bound
  store i64 %low, i64* %counter
  store i64 %high, i64* %endp
  br i1 %lastone, label %open, label %part
open:
  %nobody = atomicrmw xchg i64* %team, i64 %tickets seq_cst
  br i1 %brief, label %go, label %wake
wake:
  call void @{WAKE}(i64* %team, i64 %tickets)
  br label %go
go:
  call void @accnp_work(i64* %team, i64 0)
  %closed = atomicrmw and i64* %team, i64 {-_INSIDE} acq_rel
  br label %wait
wait:
  %looks = phi i64 [0, %go], [%looked, %pause], [0, %yield]
  %late = phi i1 [false, %go], [%late, %pause], [true, %yield]
  %word = load atomic i64, i64* %team acquire, align 8
  %empty = icmp eq i64 %word, 0
  br i1 %empty, label %done, label %pause
pause:
  call void {_PAUSE}{" 1" if _ARM else ""})
  %looked = add i64 %looks, 1
  %long = icmp sgt i64 %looked, {_PATIENCE}
  br i1 %long, label %yield, label %wait
yield:
  call void @accnp_aside(i64* %team)
  call void @accnp_fetch(i64* %team)
  %yielded = call i32 @{_YIELD}()
  br label %wait
done:
  br i1 %late, label %again, label %end
again:
  store atomic i64 -1, i64* %cpu monotonic, align 8
  call void @accnp_aside(i64* %team)
  br label %end
end:
  store atomic i64 0, i64* %busy release, align 8
  ret void
}}
"""

TEXT = _HELPER + _SPREAD
