"""Launch work on a GPU from machine code: LLVM IR of the entries in a table of steps.

It takes the C functions of a driver (`driver.Entries`), and returns entries that
`engine/device_table.py` writes into tables, which `_native/launch.c` executes: a launch, a copy
inside the GPU, a library call, a loop, and a conditional. Like the entries of kernels, they take a
block of words:

- LAUNCH: launch function, kernel, blocks, threads, stream, address for errors; then the n arguments
  of the kernel.
- COPY: copy function, target, source, bytes, stream, address for errors.
- GRAPH: launch function, graph, stream, address for errors.
- A library call, by the types of its arguments (`driver.CALLS`): the function, address for errors,
  the bit that marks the library's errors; then its arguments in C's order.
- LOOP and CHOICE: zero, the address of a record, and then addresses, which are the bases of the
  steps inside, as the words of a walker are the bases of the steps of its table.

The record of a loop: the most words that a step in it has; functions to read back, to wait and to
copy; the stream; the address for errors; the number of bases that advance after a step, and of
those that rotate; the numbers of steps of the test and of the body; the base of the test's result,
and its offset; the host address of the result if the body begins before the result is known (else
0), an event, and functions to record it and to wait for it. Then for each base that advances its
number and the distance; for each that rotates the carry, the buffer of the next value, that of the
value after it, the buffer for the last value, and its bytes; the steps of the test; the steps of
the body. A loop without a test runs n steps.

The record of a choice: the most words; functions to read back and to wait; the stream; the address
for errors; the bytes of the index, its base and offset; the number of branches; for each branch the
number of its steps and their address.

The first error of a function is stored, and after it nothing more is launched.
"""

from __future__ import annotations

from accnp.compiler.kernel_cache import native_code
from accnp.runtime.driver import CALLS

__all__ = ["CHOICE", "COPY", "GRAPH", "LAUNCH", "LOOP", "addresses", "call_of"]

LAUNCH, COPY, GRAPH = "accnp_gpu_launch", "accnp_gpu_copy", "accnp_gpu_graph"
LOOP, CHOICE = "accnp_gpu_loop", "accnp_gpu_choice"


def _load_words(names: str, block: str, first: int = 0) -> str:
    """Return loads of consecutive words."""
    lines: list[str] = []
    for k, name in enumerate(names.split(), first):
        lines.append(f"  %{name}.at = getelementptr i64, i64* {block}, i64 {k}")
        lines.append(f"  %{name} = load i64, i64* %{name}.at")
    return "\n".join(lines)


_HEAD = """
define internal i1 @accnp_gpu_told(i64 %where, i32 %error) {
start:
  %bad = icmp ne i32 %error, 0
  br i1 %bad, label %tell, label %end
tell:
  %p = inttoptr i64 %where to i64*
  %code = sext i32 %error to i64
  store i64 %code, i64* %p
  br label %end
end:
  ret i1 %bad
}

define internal i1 @accnp_gpu_failed(i64 %where) {
  %p = inttoptr i64 %where to i64*
  %code = load i64, i64* %p
  %bad = icmp ne i64 %code, 0
  ret i1 %bad
}

define internal i64 @accnp_gpu_base(i64* %base, i64 %which, i64 %more) {
  %p = getelementptr i64, i64* %base, i64 %which
  %from = load i64, i64* %p
  %value = add i64 %from, %more
  ret i64 %value
}
"""

_LAUNCH = f"""
define void @{LAUNCH}(i64* %argv, i64* %counter, i64 %n, i64 %chunk) {{
start:
{_load_words("call kernel blocks threads stream where", "%argv")}
  %failed = call i1 @accnp_gpu_failed(i64 %where)
  br i1 %failed, label %end, label %begin
begin:
  %places = alloca i8*, i64 %n
  br label %more
more:
  %i = phi i64 [0, %begin], [%next, %one]
  %left = icmp slt i64 %i, %n
  br i1 %left, label %one, label %go
one:
  %which = add i64 %i, 6
  %word = getelementptr i64, i64* %argv, i64 %which
  %byte = bitcast i64* %word to i8*
  %place = getelementptr i8*, i8** %places, i64 %i
  store i8* %byte, i8** %place
  %next = add i64 %i, 1
  br label %more
go:
  %f = inttoptr i64 %call to i32 (i8*, i32, i32, i32, i32, i32, i32, i32, i8*, i8**, i8**)*
  %k = inttoptr i64 %kernel to i8*
  %s = inttoptr i64 %stream to i8*
  %b = trunc i64 %blocks to i32
  %t = trunc i64 %threads to i32
  %error = call i32 %f(i8* %k, i32 %b, i32 1, i32 1, i32 %t, i32 1, i32 1, i32 0, i8* %s, i8** %places, i8** null)
  %told = call i1 @accnp_gpu_told(i64 %where, i32 %error)
  br label %end
end:
  ret void
}}
"""  # noqa: E501

_COPY = f"""
define internal void @accnp_gpu_move(i64 %call, i64 %to, i64 %from, i64 %bytes, i64 %stream, i64 %where) {{
start:
  %failed = call i1 @accnp_gpu_failed(i64 %where)
  br i1 %failed, label %end, label %go
go:
  %f = inttoptr i64 %call to i32 (i64, i64, i64, i8*)*
  %s = inttoptr i64 %stream to i8*
  %error = call i32 %f(i64 %to, i64 %from, i64 %bytes, i8* %s)
  %told = call i1 @accnp_gpu_told(i64 %where, i32 %error)
  br label %end
end:
  ret void
}}

define void @{COPY}(i64* %argv, i64* %counter, i64 %n, i64 %chunk) {{
{_load_words("call to from bytes stream where", "%argv")}
  call void @accnp_gpu_move(i64 %call, i64 %to, i64 %from, i64 %bytes, i64 %stream, i64 %where)
  ret void
}}
"""  # noqa: E501

_GRAPH = f"""
define void @{GRAPH}(i64* %argv, i64* %counter, i64 %n, i64 %chunk) {{
start:
{_load_words("call graph stream where", "%argv")}
  %failed = call i1 @accnp_gpu_failed(i64 %where)
  br i1 %failed, label %end, label %go
go:
  %f = inttoptr i64 %call to i32 (i8*, i8*)*
  %g = inttoptr i64 %graph to i8*
  %s = inttoptr i64 %stream to i8*
  %error = call i32 %f(i8* %g, i8* %s)
  %told = call i1 @accnp_gpu_told(i64 %where, i32 %error)
  br label %end
end:
  ret void
}}
"""


def call_of(kinds: str) -> str:
    """Return the name of the entry for functions with such arguments."""
    return f"accnp_gpu_call_{kinds}"


def _call(kinds: str) -> str:
    names = [f"x{k}" for k in range(len(kinds))]
    short = [
        f"  %{x}.i = trunc i64 %{x} to i32" for x, k in zip(names, kinds, strict=True) if k == "i"
    ]
    types = ["i32" if k == "i" else "i64" for k in kinds]
    arguments = [
        f"i32 %{x}.i" if k == "i" else f"i64 %{x}" for x, k in zip(names, kinds, strict=True)
    ]
    return f"""
define void @{call_of(kinds)}(i64* %argv, i64* %counter, i64 %n, i64 %chunk) {{
start:
{_load_words(" ".join(["call where bit", *names]), "%argv")}
{chr(10).join(short)}
  %failed = call i1 @accnp_gpu_failed(i64 %where)
  br i1 %failed, label %end, label %go
go:
  %f = inttoptr i64 %call to i32 ({", ".join(types)})*
  %status = call i32 %f({", ".join(arguments)})
  %good = icmp eq i32 %status, 0
  %whose = trunc i64 %bit to i32
  %code = or i32 %status, %whose
  %error = select i1 %good, i32 0, i32 %code
  %told = call i1 @accnp_gpu_told(i64 %where, i32 %error)
  br label %end
end:
  ret void
}}
"""


# The value of some bytes on the GPU, when they are computed; 0 after an error.
_FETCH = """
define internal i64 @accnp_gpu_value(i64 %fetch, i64 %wait, i64 %from, i64 %bytes, i64 %stream, i64 %where) {
start:
  %word = alloca i64
  store i64 0, i64* %word
  %failed = call i1 @accnp_gpu_failed(i64 %where)
  br i1 %failed, label %nothing, label %read
read:
  %f = inttoptr i64 %fetch to i32 (i8*, i64, i64, i8*)*
  %s = inttoptr i64 %stream to i8*
  %to = bitcast i64* %word to i8*
  %e1 = call i32 %f(i8* %to, i64 %from, i64 %bytes, i8* %s)
  %bad1 = call i1 @accnp_gpu_told(i64 %where, i32 %e1)
  br i1 %bad1, label %nothing, label %rest
rest:
  %w = inttoptr i64 %wait to i32 (i8*)*
  %e2 = call i32 %w(i8* %s)
  %bad2 = call i1 @accnp_gpu_told(i64 %where, i32 %e2)
  br i1 %bad2, label %nothing, label %there
there:
  %raw = load i64, i64* %word
  %bits = shl i64 %bytes, 3
  %shift = sub i64 64, %bits
  %high = shl i64 %raw, %shift
  %value = ashr i64 %high, %shift
  ret i64 %value
nothing:
  ret i64 0
}
"""  # noqa: E501

# The same in two parts: an asynchronous copy to a word on the host, followed by an event; and the
# value of the word, after waiting for the event. After an error, the result is false.
_AHEAD = """
define internal void @accnp_gpu_ask(i64 %fetch, i64 %word, i64 %from, i64 %event, i64 %mark, i64 %stream, i64 %where) {
start:
  %failed = call i1 @accnp_gpu_failed(i64 %where)
  br i1 %failed, label %end, label %read
read:
  %f = inttoptr i64 %fetch to i32 (i8*, i64, i64, i8*)*
  %s = inttoptr i64 %stream to i8*
  %to = inttoptr i64 %word to i8*
  %e1 = call i32 %f(i8* %to, i64 %from, i64 1, i8* %s)
  %bad = call i1 @accnp_gpu_told(i64 %where, i32 %e1)
  br i1 %bad, label %end, label %rest
rest:
  %m = inttoptr i64 %mark to i32 (i8*, i8*)*
  %v = inttoptr i64 %event to i8*
  %e2 = call i32 %m(i8* %v, i8* %s)
  %bad2 = call i1 @accnp_gpu_told(i64 %where, i32 %e2)
  br label %end
end:
  ret void
}

define internal i1 @accnp_gpu_answer(i64 %word, i64 %event, i64 %pass, i64 %where) {
start:
  %failed = call i1 @accnp_gpu_failed(i64 %where)
  br i1 %failed, label %no, label %wait
wait:
  %f = inttoptr i64 %pass to i32 (i8*)*
  %v = inttoptr i64 %event to i8*
  %e = call i32 %f(i8* %v)
  %bad = call i1 @accnp_gpu_told(i64 %where, i32 %e)
  br i1 %bad, label %no, label %there
there:
  %at = inttoptr i64 %word to i8*
  %value = load volatile i8, i8* %at
  %yes = icmp ne i8 %value, 0
  ret i1 %yes
no:
  ret i1 false
}
"""  # noqa: E501

# One step of a table, as in `_native/launch.c`.
_STEP = """
define internal i64* @accnp_gpu_step(i64* %p, i64* %base, i64* %argv) {
start:
  %code = load i64, i64* %p
  %p1 = getelementptr i64, i64* %p, i64 1
  %n = load i64, i64* %p1
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
  %value = call i64 @accnp_gpu_base(i64* %base, i64 %which, i64 %more_by)
  %argument = getelementptr i64, i64* %argv, i64 %j
  store i64 %value, i64* %argument
  %j1 = add i64 %j, 1
  %q2 = getelementptr i64, i64* %q, i64 2
  br label %fill
run:
  %entry = inttoptr i64 %code to void (i64*, i64*, i64, i64)*
  call void %entry(i64* %argv, i64* null, i64 %n, i64 0)
  ret i64* %q
}
"""

_STEPS = """
define internal i64* @accnp_gpu_steps(i64* %first, i64 %count, i64* %base, i64* %argv) {
start:
  br label %more
more:
  %k = phi i64 [0, %start], [%k1, %one]
  %p = phi i64* [%first, %start], [%q, %one]
  %going = icmp slt i64 %k, %count
  br i1 %going, label %one, label %end
one:
  %q = call i64* @accnp_gpu_step(i64* %p, i64* %base, i64* %argv)
  %k1 = add i64 %k, 1
  br label %more
end:
  ret i64* %p
}
"""

_LOOP = f"""
define void @{LOOP}(i64* %base, i64* %counter, i64 %n, i64 %chunk) {{
start:
  %r1 = getelementptr i64, i64* %base, i64 1
  %record_ = load i64, i64* %r1
  %record = inttoptr i64 %record_ to i64*
{_load_words("widest fetch wait copy stream where moves turns tests steps flag more", "%record")}
{_load_words("word event mark pass", "%record", 12)}
  %argv = alloca i64, i64 %widest
  %first_move = getelementptr i64, i64* %record, i64 16
  %moved = shl i64 %moves, 1
  %first_turn = getelementptr i64, i64* %first_move, i64 %moved
  %turned = mul i64 %turns, 5
  %first_test = getelementptr i64, i64* %first_turn, i64 %turned
  %endless = icmp sge i64 %flag, 0
  %ahead = icmp ne i64 %word, 0
  br label %head
head:
  %k = phi i64 [0, %start], [%k1, %turns_done]
  %failed = call i1 @accnp_gpu_failed(i64 %where)
  br i1 %failed, label %end, label %test
test:
  %first_step = call i64* @accnp_gpu_steps(i64* %first_test, i64 %tests, i64* %base, i64* %argv)
  br i1 %endless, label %ask, label %count
count:
  %going = icmp slt i64 %k, %n
  br i1 %going, label %body, label %finish
ask:
  %from = call i64 @accnp_gpu_base(i64* %base, i64 %flag, i64 %more)
  br i1 %ahead, label %begin, label %look
begin:
  call void @accnp_gpu_ask(i64 %fetch, i64 %word, i64 %from, i64 %event, i64 %mark, i64 %stream, i64 %where)
  %early = call i64* @accnp_gpu_steps(i64* %first_step, i64 %steps, i64* %base, i64* %argv)
  %told = call i1 @accnp_gpu_answer(i64 %word, i64 %event, i64 %pass, i64 %where)
  br i1 %told, label %move, label %finish
look:
  %answer = call i64 @accnp_gpu_value(i64 %fetch, i64 %wait, i64 %from, i64 1, i64 %stream, i64 %where)
  %yes = icmp ne i64 %answer, 0
  br i1 %yes, label %body, label %finish
body:
  %done = call i64* @accnp_gpu_steps(i64* %first_step, i64 %steps, i64* %base, i64* %argv)
  br label %move
move:
  %m = phi i64 [0, %body], [0, %begin], [%m1, %moving]
  %mp = phi i64* [%first_move, %body], [%first_move, %begin], [%mq, %moving]
  %move_more = icmp slt i64 %m, %moves
  br i1 %move_more, label %moving, label %turn
moving:
  %which = load i64, i64* %mp
  %byp = getelementptr i64, i64* %mp, i64 1
  %by = load i64, i64* %byp
  %there = call i64 @accnp_gpu_base(i64* %base, i64 %which, i64 %by)
  %wherep = getelementptr i64, i64* %base, i64 %which
  store i64 %there, i64* %wherep
  %m1 = add i64 %m, 1
  %mq = getelementptr i64, i64* %mp, i64 2
  br label %move
turn:
  %t = phi i64 [0, %move], [%t1, %turning]
  %tp = phi i64* [%first_turn, %move], [%tq, %turning]
  %turn_more = icmp slt i64 %t, %turns
  br i1 %turn_more, label %turning, label %turns_done
turning:
{_load_words("c d e", "%tp")}
  %cp = getelementptr i64, i64* %base, i64 %c
  %dp = getelementptr i64, i64* %base, i64 %d
  %ep = getelementptr i64, i64* %base, i64 %e
  %dv = load i64, i64* %dp
  %ev = load i64, i64* %ep
  store i64 %dv, i64* %cp
  store i64 %ev, i64* %dp
  store i64 %dv, i64* %ep
  %t1 = add i64 %t, 1
  %tq = getelementptr i64, i64* %tp, i64 5
  br label %turn
turns_done:
  %k1 = add i64 %k, 1
  br label %head
finish:
  %l = phi i64 [0, %count], [0, %look], [0, %begin], [%l1, %kept], [%l1, %put]
  %lp = phi i64* [%first_turn, %count], [%first_turn, %look], [%first_turn, %begin], [%lq, %kept], [%lq, %put]
  %last_more = icmp slt i64 %l, %turns
  br i1 %last_more, label %last, label %end
last:
{_load_words("lc ld le lr bytes", "%lp")}
  %value = call i64 @accnp_gpu_base(i64* %base, i64 %lc, i64 0)
  %wanted = call i64 @accnp_gpu_base(i64* %base, i64 %lr, i64 0)
  %l1 = add i64 %l, 1
  %lq = getelementptr i64, i64* %lp, i64 5
  %same = icmp eq i64 %value, %wanted
  br i1 %same, label %kept, label %put
kept:
  br label %finish
put:
  call void @accnp_gpu_move(i64 %copy, i64 %wanted, i64 %value, i64 %bytes, i64 %stream, i64 %where)
  br label %finish
end:
  ret void
}}
"""  # noqa: E501

_CHOICE = f"""
define void @{CHOICE}(i64* %base, i64* %counter, i64 %n, i64 %chunk) {{
start:
  %r1 = getelementptr i64, i64* %base, i64 1
  %record_ = load i64, i64* %r1
  %record = inttoptr i64 %record_ to i64*
{_load_words("widest fetch wait stream where bytes index more ways", "%record")}
  %argv = alloca i64, i64 %widest
  %from = call i64 @accnp_gpu_base(i64* %base, i64 %index, i64 %more)
  %value = call i64 @accnp_gpu_value(i64 %fetch, i64 %wait, i64 %from, i64 %bytes, i64 %stream, i64 %where)
  %raw = call i1 @accnp_gpu_failed(i64 %where)
  br i1 %raw, label %end, label %choose
choose:
  %truth = icmp eq i64 %bytes, 1
  %odd = and i64 %value, 1
  %number = select i1 %truth, i64 %odd, i64 %value
  %last = sub i64 %ways, 1
  %large = icmp sgt i64 %number, %last
  %some = select i1 %large, i64 %last, i64 %number
  %low = icmp slt i64 %some, 0
  %way = select i1 %low, i64 0, i64 %some
  %twice = shl i64 %way, 1
  %at = add i64 %twice, 9
  %countp = getelementptr i64, i64* %record, i64 %at
  %count = load i64, i64* %countp
  %firstp = getelementptr i64, i64* %countp, i64 1
  %first_ = load i64, i64* %firstp
  %first = inttoptr i64 %first_ to i64*
  %done = call i64* @accnp_gpu_steps(i64* %first, i64 %count, i64* %base, i64* %argv)
  br label %end
end:
  ret void
}}
"""  # noqa: E501

_KINDS = sorted(set(CALLS.values()))
TEXT = (
    _HEAD + _LAUNCH + _COPY + _GRAPH + "".join([_call(kinds) for kinds in _KINDS])
    + _FETCH + _AHEAD + _STEP + _STEPS + _LOOP + _CHOICE
)  # fmt: skip
_SYMBOLS = (LAUNCH, COPY, GRAPH, *map(call_of, _KINDS), LOOP, CHOICE)

_addresses: dict[str, int] = {}
_code: list[object] = []  # keeps the code loaded


def addresses() -> dict[str, int]:
    """Return the addresses of the entries by name."""
    if not _addresses:
        pointers, code = native_code(("gpu", TEXT), TEXT, _SYMBOLS)
        _code.append(code)
        _addresses.update(zip(_SYMBOLS, pointers, strict=True))
    return _addresses
