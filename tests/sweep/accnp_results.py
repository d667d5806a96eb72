"""Results of accnp for a call, in all the modes for which JAX has results.

The input is a call and JAX's record of it (`jax_results.py`), or None without JAX. The output is a
record that maps each mode to arrays, or to a string with an error; "alone" has the results of the
separate calls that `vmap` is compared with.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from sweep.calls import Call
from sweep.execution_modes import ModeRunner, applicable_modes

Record = dict[str, Any]


def _result_or_message(f: Callable[[], Any]) -> Any:
    try:
        return f()
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def compute_record(m: Any, call: Call, theirs: Record | None, chosen: Sequence[str]) -> Record:
    runner, trees = ModeRunner(m), []
    warnings.simplefilter("ignore")
    with runner.precision(call), np.errstate(all="ignore"):
        try:
            operands = runner.arrays(call)
        except Exception as error:
            return {"value": f"operands: {type(error).__name__}: {error}"}
        xs = [operands[k] for k in call.traced]
        f = runner.function(call, operands, trees)
        record: Record = {"value": _result_or_message(lambda: runner.packed(f(*xs)))}
        if isinstance(record["value"], str):
            return record
        record["tree"] = trees[0]
        if theirs is not None and "concrete" in theirs:
            return record
        for mode in applicable_modes(call, chosen):
            if mode not in ("value", "jit") and theirs is not None and mode not in theirs:
                continue
            if theirs is None and mode in ("ranks", "strict"):
                continue  # only jax says what is to be accepted
            if mode in ("grad", "jvp", "hvp") and not runner.moving(xs):
                continue
            if mode != "value":
                g = getattr(runner, mode)
                record[mode] = _result_or_message(lambda g=g: runner.packed(g(f, xs)))
            if mode == "vmap":
                pairs = runner.pairs(xs)
                record["alone"] = _result_or_message(
                    lambda pairs=pairs: [runner.packed(f(*(p[i] for p in pairs))) for i in (0, 1)]
                )
        if theirs is None and isinstance(record.get("jit"), str):
            del record["jit"]  # values that must be known; jax would have said so
    return record
