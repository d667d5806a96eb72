"""Results of accnp for a call, in all the ways for which JAX has results.

The input is a call and JAX's record of it (`theirs.py`), or None without JAX. The output is a
record that maps each way to arrays, or to a string with an error; "alone" has the results of the
separate calls that `vmap` is compared with.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from sweep.calls import Call
from sweep.ways import Ways, wanted

Record = dict[str, Any]


def _tried(f: Callable[[], Any]) -> Any:
    try:
        return f()
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def answer(m: Any, call: Call, theirs: Record | None, chosen: Sequence[str]) -> Record:
    ways, trees = Ways(m), []
    warnings.simplefilter("ignore")
    with ways.precision(call), np.errstate(all="ignore"):
        try:
            operands = ways.arrays(call)
        except Exception as error:
            return {"value": f"operands: {type(error).__name__}: {error}"}
        xs = [operands[k] for k in call.traced]
        f = ways.function(call, operands, trees)
        record: Record = {"value": _tried(lambda: ways.packed(f(*xs)))}
        if isinstance(record["value"], str):
            return record
        record["tree"] = trees[0]
        if theirs is not None and "concrete" in theirs:
            return record
        for way in wanted(call, chosen):
            if way not in ("value", "jit") and theirs is not None and way not in theirs:
                continue
            if theirs is None and way in ("ranks", "strict"):
                continue  # only jax says what is to be accepted
            if way in ("grad", "jvp", "hvp") and not ways.moving(xs):
                continue
            if way != "value":
                g = getattr(ways, way)
                record[way] = _tried(lambda g=g: ways.packed(g(f, xs)))
            if way == "vmap":
                pairs = ways.pairs(xs)
                record["alone"] = _tried(
                    lambda pairs=pairs: [ways.packed(f(*(p[i] for p in pairs))) for i in (0, 1)]
                )
        if theirs is None and isinstance(record.get("jit"), str):
            del record["jit"]  # values that must be known; jax would have said so
    return record
