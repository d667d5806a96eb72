"""Intrinsics that call LAPACK: ``geqrf_f4(m, n, a, lda, ...)`` gives `info` as an integer.

In: integers and pointers, as `routines.py` lists them. Out: entries of ``NAMESPACE``.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import types

from .factory import SCALARS, define
from .math.ir import I8, I32, I64
from .routines import CODES, REAL, ROUTINES, has_info, kinds, symbol


def _routine(routine: str, code: str) -> None:
    letters = kinds(routine, code)
    pointers = {
        "p": types.CPointer(SCALARS[code]),
        "r": types.CPointer(SCALARS[REAL[code]]),
        "n": types.CPointer(types.int32),
    }

    def rule(*given: Any) -> Any:
        params = tuple(pointers.get(letter, types.int64) for letter in letters)
        for kind, param in zip(given, params, strict=True):
            if isinstance(param, types.CPointer) and kind != param:
                return None

        def emit(context: Any, b: Any, sig: Any, args: Any) -> Any:
            """Everything goes by address; the numbers lie on the stack."""
            cells = {"c": I8, "i": I32}
            passed = []
            for arg, letter in zip(args, letters, strict=True):
                if letter in cells:
                    with b.goto_entry_block():
                        cell = b.alloca(cells[letter])
                    b.store(b.trunc(arg, cells[letter]), cell)
                    arg = cell
                passed.append(arg)
            with b.goto_entry_block():
                info = b.alloca(I32)
            b.store(ir.Constant(I32, 0), info)
            if has_info(routine):
                passed.append(info)
            kind = ir.FunctionType(ir.VoidType(), [p.type for p in passed])
            name = symbol(routine, code)
            b.call(b.module.globals.get(name) or ir.Function(b.module, kind, name), passed)
            return b.sext(b.load(info), I64)

        return types.int64, params, emit

    define(f"{routine}_{code}", len(letters), rule)


for _name in ROUTINES:
    for _code in CODES:
        _routine(_name, _code)
