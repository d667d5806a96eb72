"""Functions that call routines of LAPACK and NumPy's sorts.

``geqrf_f4(m, n, a, lda, ...)`` returns LAPACK's `info` as an integer. ``sort_i4(a, n)`` sorts n
elements in place, and ``sort_limit_i4()`` is the largest n for which that is fast.
"""

from __future__ import annotations

from llvmlite import binding, ir

from accnp.compiler.library.routines import (
    BLAS_THREAD_CALLS,
    CODES,
    PREFIX,
    REAL,
    ROUTINES,
    SORT_LIMITS,
    SORTS,
    has_info,
    kinds,
    sort_symbol,
    symbol,
)
from accnp.compiler.llvm.intrinsics.table import Resolved, define
from accnp.compiler.llvm.scalars.ir import I8, I32, I64, call_external
from accnp.compiler.loops.types import DTYPES, I4, Pointer, Type

_INT = DTYPES["i8"]


def _routine(routine: str, code: str) -> None:
    letters = kinds(routine, code)
    pointers = {
        "p": Pointer(DTYPES[code]),
        "r": Pointer(DTYPES[REAL[code]]),
        "n": Pointer(I4),
    }

    def rule(*types: Type) -> Resolved | None:
        params = tuple(pointers.get(letter, _INT) for letter in letters)
        for kind, param in zip(types, params, strict=True):
            if isinstance(param, Pointer) and kind != param:
                return None

        def emit(b: ir.IRBuilder, *args: ir.Value) -> ir.Value:
            """Pass all arguments by address, with the numbers on the stack."""
            cells = {"c": I8, "i": I32}
            passed: list[ir.Value] = []
            for arg, letter in zip(args, letters, strict=True):
                if letter in cells:
                    with b.goto_entry_block():
                        cell = b.alloca(cells[letter])
                    b.store(b.trunc(arg, cells[letter]), cell)
                    passed.append(cell)
                else:
                    passed.append(arg)
            with b.goto_entry_block():
                info = b.alloca(I32)
            b.store(ir.Constant(I32, 0), info)
            if has_info(routine):
                passed.append(info)
            call_external(b, symbol(routine, code), ir.VoidType(), passed)
            return b.sext(b.load(info), I64)

        return _INT, params, emit

    define(f"{routine}_{code}", len(letters), rule, acts=True)


for _name in ROUTINES:
    for _code in CODES:
        _routine(_name, _code)


def _switch(name: str) -> None:
    """Define a call without arguments and result."""

    def emit(b: ir.IRBuilder) -> None:
        call_external(b, PREFIX + name, ir.VoidType(), [])

    define(name, 0, lambda: (None, (), emit), acts=True)


for _name in BLAS_THREAD_CALLS:
    _switch(_name)


def _sort(code: str) -> None:
    pointer = Pointer(DTYPES[code])

    def emit(b: ir.IRBuilder, *args: ir.Value) -> None:
        bytes_ = I8.as_pointer()
        passed = [b.bitcast(args[0], bytes_), args[1], ir.Constant(bytes_, None)]
        call_external(b, sort_symbol(code), I32, passed)

    def rule(start: Type, count: Type) -> Resolved | None:
        return (None, (pointer, _INT), emit) if start == pointer else None

    define(f"sort_{code}", 2, rule)


def _define_sort_limit(code: str) -> None:
    # NumPy sorts a few vectors in registers. For more, it stores compressed vectors under a mask,
    # which is a microcoded instruction of 140 cycles on a Zen 4: 5 to 20 ns per element, not 0.7.
    slow = binding.get_host_cpu_name() == "znver4"
    most = SORT_LIMITS[code] if slow else (1 << 63) - 1

    def emit(b: ir.IRBuilder, *args: ir.Value) -> ir.Value:
        return ir.Constant(I64, most)

    define(f"sort_limit_{code}", 0, lambda: (_INT, (), emit))


for _code in SORTS:
    _sort(_code)
for _code in SORT_LIMITS:
    _define_sort_limit(_code)
