"""Large results past the caches: LLVM IR of entries around the entry of a kernel.

A plain store first reads the cache line that it is going to overwrite, a third of the traffic of a
sum of two arrays. Kernels of one loop over all elements have non-temporal stores of their own
(`streams`), which `STREAM` asks for. `BYPASS` is for all others: the kernel, which knows nothing of
this, writes a few kilobytes at a time into scratch memory, from where non-temporal stores take them
to the result.

While a block is written, operands of the next one are fetched, or reading would wait for writing.

The arguments of BYPASS, before those of the kernel: its entry, the number of its arguments, steps
of the parallel index in a block, the number of results and that of operands, and for each of these
which argument it is and how many bytes one step writes or reads; these lie in memory in the order
of steps. A step is one value of the parallel index. STREAM has the entry alone before them.
"""

from __future__ import annotations

import ctypes
import os

__all__ = [
    "BYPASS",
    "CLAIM",
    "RUN",
    "STREAM",
    "TEXT",
    "Pieces",
    "block_steps",
    "can_stream",
    "header",
]

# How any entry `(argv, counter, n, chunk)` takes its share of 0..n, between a jump to `claim` and
# the labels `work`, where `%first`..`%end` are to be done, and `out`, where all are taken.
CLAIM = """claim:
  %first = atomicrmw add i64* %counter, i64 %chunk monotonic
  %over = icmp sge i64 %first, %n
  br i1 %over, label %out, label %claimed
claimed:
  %room = sub nsw i64 %n, %first
  %less = icmp slt i64 %chunk, %room
  %size = select i1 %less, i64 %chunk, i64 %room
  %end = add nsw i64 %first, %size
  br label %work
"""

BYPASS = "accnp_bypass"
STREAM = "accnp_stream"
Pieces = tuple[tuple[int, int], ...]
SCRATCH = 1 << 12  # bytes of a block over all results, where a step writes less: stays in L1
RUN = 1 << 19  # bytes that one thread writes before another takes its turn
MOST = 1 << 18  # bytes of a block that is worth it: stays in L2
_X86 = not hasattr(os, "uname") or os.uname().machine in ("x86_64", "amd64", "AMD64")
_DRAIN = "call void @llvm.x86.sse.sfence()" if _X86 else "fence release"


def block_steps(width: int) -> int:
    """How many steps that write so many bytes make a block; 0 if it does not pay."""
    if width > MOST:
        return 0
    found = max(1, SCRATCH // width)
    return found // 64 * 64 or found  # lines are written whole


def can_stream(entry: int) -> bool:
    """Whether a kernel has stores past the caches, by the word before its entry."""
    return ctypes.c_int64.from_address(entry - 8).value == 1


def header(count: int, steps: int, results: Pieces, operands: Pieces) -> list[int]:
    """What stands between a kernel's entry and its arguments, which are so many."""
    words = [word for pair in (*results, *operands) for word in pair]
    return [count, steps, len(results), len(operands), *words]


TEXT = f"""
declare i8* @malloc(i64)
declare void @free(i8*)
declare void @llvm.prefetch.p0i8(i8*, i32, i32, i32)
{"declare void @llvm.x86.sse.sfence()" if _X86 else ""}

define internal i64 @accnp_min(i64 %x, i64 %y) alwaysinline {{
  %less = icmp slt i64 %x, %y
  %least = select i1 %less, i64 %x, i64 %y
  ret i64 %least
}}

define internal void @accnp_past(i8* %to, i8* %from, i64 %size, i64* %ahead, i64 %count) {{
start:
  %address = ptrtoint i8* %to to i64
  %negative = sub i64 0, %address
  %gap = and i64 %negative, 63
  %head = call i64 @accnp_min(i64 %gap, i64 %size)
  call void @llvm.memcpy.p0i8.p0i8.i64(i8* %to, i8* %from, i64 %head, i1 false)
  %rest = sub i64 %size, %head
  %whole = and i64 %rest, -64
  %end = add i64 %head, %whole
  br label %more
more:
  %at = phi i64 [%head, %start], [%next, %fetched]
  %going = icmp slt i64 %at, %end
  br i1 %going, label %line, label %tail
line:
  %source = getelementptr i8, i8* %from, i64 %at
  %target = getelementptr i8, i8* %to, i64 %at
  %s = bitcast i8* %source to <8 x i64>*
  %t = bitcast i8* %target to <8 x i64>*
  %v = load <8 x i64>, <8 x i64>* %s, align 1
  store <8 x i64> %v, <8 x i64>* %t, align 64, !nontemporal !{{i32 1}}
  br label %fetch
fetch:
  %k = phi i64 [0, %line], [%k1, %one]
  %lacks = icmp slt i64 %k, %count
  br i1 %lacks, label %one, label %fetched
one:
  %kp = getelementptr i64, i64* %ahead, i64 %k
  %operand = load i64, i64* %kp
  %far = add i64 %operand, %at
  %wanted = inttoptr i64 %far to i8*
  call void @llvm.prefetch.p0i8(i8* %wanted, i32 0, i32 3, i32 1)
  %k1 = add i64 %k, 1
  br label %fetch
fetched:
  %next = add i64 %at, 64
  br label %more
tail:
  %left = sub i64 %rest, %whole
  %source2 = getelementptr i8, i8* %from, i64 %end
  %target2 = getelementptr i8, i8* %to, i64 %end
  call void @llvm.memcpy.p0i8.p0i8.i64(i8* %target2, i8* %source2, i64 %left, i1 false)
  ret void
}}

define void @{STREAM}(i64* %argv, i64* %counter, i64 %n, i64 %chunk) {{
start:
  %code = load i64, i64* %argv
  %entry = inttoptr i64 %code to void (i64*, i64*, i64, i64)*
  %given = getelementptr i64, i64* %argv, i64 1
  %asking = inttoptr i64 1 to i64*
  br label %claim
{CLAIM}work:
  call void %entry(i64* %given, i64* %asking, i64 %end, i64 %first)
  br label %claim
out:
  {_DRAIN}
  ret void
}}

define void @{BYPASS}(i64* %argv, i64* %counter, i64 %n, i64 %chunk) {{
start:
  %code = load i64, i64* %argv
  %entry = inttoptr i64 %code to void (i64*, i64*, i64, i64)*
  %p1 = getelementptr i64, i64* %argv, i64 1
  %nargs = load i64, i64* %p1
  %p2 = getelementptr i64, i64* %argv, i64 2
  %steps = load i64, i64* %p2
  %p3 = getelementptr i64, i64* %argv, i64 3
  %results = load i64, i64* %p3
  %p4 = getelementptr i64, i64* %argv, i64 4
  %operands = load i64, i64* %p4
  %table = getelementptr i64, i64* %argv, i64 5
  %all = add i64 %results, %operands
  %pairs = shl i64 %all, 1
  %given = getelementptr i64, i64* %table, i64 %pairs
  %mine = alloca i64, i64 %nargs
  %ahead = alloca i64, i64 %operands
  %bases = alloca i64, i64 %results
  br label %copy
copy:
  %i = phi i64 [0, %start], [%i1, %copying]
  %lacks = icmp slt i64 %i, %nargs
  br i1 %lacks, label %copying, label %measure
copying:
  %from = getelementptr i64, i64* %given, i64 %i
  %word = load i64, i64* %from
  %to = getelementptr i64, i64* %mine, i64 %i
  store i64 %word, i64* %to
  %i1 = add i64 %i, 1
  br label %copy
measure:
  %k = phi i64 [0, %copy], [%k1, %measuring]
  %total = phi i64 [64, %copy], [%total1, %measuring]
  %unknown = icmp slt i64 %k, %results
  br i1 %unknown, label %measuring, label %reserve
measuring:
  %k2 = shl i64 %k, 1
  %kw = or i64 %k2, 1
  %wp = getelementptr i64, i64* %table, i64 %kw
  %width = load i64, i64* %wp
  %bytes = mul i64 %width, %steps
  %up = add i64 %bytes, 63
  %round = and i64 %up, -64
  %bp = getelementptr i64, i64* %bases, i64 %k
  store i64 %total, i64* %bp
  %total1 = add i64 %total, %round
  %k1 = add i64 %k, 1
  br label %measure
reserve:
  %block = call i8* @malloc(i64 %total)
  %where = ptrtoint i8* %block to i64
  %align = and i64 %where, 63
  %base = sub i64 %where, %align
  %none = icmp eq i8* %block, null
  br i1 %none, label %plain, label %claim
plain:
  call void %entry(i64* %given, i64* %counter, i64 %n, i64 %chunk)
  ret void
{CLAIM}work:
  br label %blocks
blocks:
  %b = phi i64 [%first, %work], [%stop, %written]
  %going = icmp slt i64 %b, %end
  br i1 %going, label %one, label %claim
one:
  %far = add i64 %b, %steps
  %stop = call i64 @accnp_min(i64 %far, i64 %end)
  %count = sub i64 %stop, %b
  br label %aim
aim:
  %a = phi i64 [0, %one], [%a1, %aiming]
  %blind = icmp slt i64 %a, %results
  br i1 %blind, label %aiming, label %run
aiming:
  %a2 = shl i64 %a, 1
  %aw = or i64 %a2, 1
  %ap = getelementptr i64, i64* %table, i64 %a2
  %which = load i64, i64* %ap
  %awp = getelementptr i64, i64* %table, i64 %aw
  %awidth = load i64, i64* %awp
  %abp = getelementptr i64, i64* %bases, i64 %a
  %aoffset = load i64, i64* %abp
  %scratch = add i64 %base, %aoffset
  %back = mul i64 %b, %awidth
  %shifted = sub i64 %scratch, %back
  %slot = getelementptr i64, i64* %mine, i64 %which
  store i64 %shifted, i64* %slot
  %a1 = add i64 %a, 1
  br label %aim
run:
  call void %entry(i64* %mine, i64* null, i64 %stop, i64 %b)
  br label %foresee
foresee:
  %f = phi i64 [%results, %run], [%f1, %foreseeing]
  %unseen = icmp slt i64 %f, %all
  br i1 %unseen, label %foreseeing, label %write
foreseeing:
  %f2 = shl i64 %f, 1
  %fw = or i64 %f2, 1
  %fp = getelementptr i64, i64* %table, i64 %f2
  %fwhich = load i64, i64* %fp
  %fwp = getelementptr i64, i64* %table, i64 %fw
  %fwidth = load i64, i64* %fwp
  %fgp = getelementptr i64, i64* %given, i64 %fwhich
  %fbase = load i64, i64* %fgp
  %fahead = mul i64 %stop, %fwidth
  %fplace = add i64 %fbase, %fahead
  %fi = sub i64 %f, %results
  %fslot = getelementptr i64, i64* %ahead, i64 %fi
  store i64 %fplace, i64* %fslot
  %f1 = add i64 %f, 1
  br label %foresee
write:
  %w = phi i64 [0, %foresee], [%w1, %writing]
  %unwritten = icmp slt i64 %w, %results
  br i1 %unwritten, label %writing, label %written
writing:
  %w2 = shl i64 %w, 1
  %ww = or i64 %w2, 1
  %wwp = getelementptr i64, i64* %table, i64 %w2
  %target = load i64, i64* %wwp
  %wwidthp = getelementptr i64, i64* %table, i64 %ww
  %wwidth = load i64, i64* %wwidthp
  %wbp = getelementptr i64, i64* %bases, i64 %w
  %woffset = load i64, i64* %wbp
  %wscratch = add i64 %base, %woffset
  %gp = getelementptr i64, i64* %given, i64 %target
  %result = load i64, i64* %gp
  %done = mul i64 %b, %wwidth
  %place = add i64 %result, %done
  %bytes_ = mul i64 %count, %wwidth
  %placep = inttoptr i64 %place to i8*
  %scratchp = inttoptr i64 %wscratch to i8*
  %leading = icmp eq i64 %w, 0
  %fetches = select i1 %leading, i64 %operands, i64 0
  call void @accnp_past(i8* %placep, i8* %scratchp, i64 %bytes_, i64* %ahead, i64 %fetches)
  %w1 = add i64 %w, 1
  br label %write
written:
  br label %blocks
out:
  {_DRAIN}
  call void @free(i8* %block)
  ret void
}}
"""
