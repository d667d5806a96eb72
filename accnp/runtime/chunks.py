"""How threads divide the range of a kernel: LLVM IR in which an entry takes chunks from a counter.

An entry is a function `(argv, counter, n, chunk)`: each thread that shares a launch calls it, with
the same counter and the same words of arguments, and it does chunks of 0..n until none is left.

In: nothing. Out: text for between a jump to `claim` and the labels `work`, where `%first`..`%end`
are to be done, and `out`, where all are taken.
"""

from __future__ import annotations

__all__ = ["CLAIM"]

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
