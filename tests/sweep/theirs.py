"""Results of JAX for calls. Several calls are compiled as one program, because compiling takes most
of the time.

The input is a list of calls of one precision. The output is a record for each: "error" (the class,
its bases, whether the function needs a concrete value), or "tree" and "value" (arrays); "vmap",
"grad", "jvp": True, or arrays if JAX has them. If these are missing, JAX could not compile the
call.
"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable, Sequence
from typing import Any

from sweep.calls import Call
from sweep.ways import Ways, wanted

# Its programs run once.
QUICK = {"xla_backend_optimization_level": 0, "xla_llvm_disable_expensive_passes": True}
Record = dict[str, Any]


def _refused(error: BaseException) -> list[str]:
    return [k.__name__ for k in type(error).__mro__]


def answers(m: Any, calls: Sequence[Call], chosen: Sequence[str]) -> list[Record]:
    ways = Ways(m)
    records: list[Record] = [{} for _ in calls]
    programs: dict[tuple[int, str], Callable[[Any], Any]] = {}
    inputs: dict[int, list[Any]] = {}
    warnings.simplefilter("ignore")
    with ways.precision(calls[0]):
        for i, call in enumerate(calls):
            try:
                operands = ways.arrays(call)
                xs = [operands[k] for k in call.traced]
                for way, f in _programs(ways, call, operands, xs, chosen, records[i]).items():
                    programs[i, way], inputs[i] = f, xs
            except Exception as error:  # operands that jax does not take
                records[i]["error"] = _refused(error)
        for (i, way), leaves in _run(m, programs, inputs).items():
            records[i][way] = ways.packed(leaves)
    return records


def _programs(
    ways: Ways, call: Call, operands: dict[str, Any], xs: list[Any], chosen: Any, record: Record
) -> dict[str, Callable[[Any], Any]]:
    """Return the functions to compile, for the calls that JAX can trace."""
    m, trees = ways.m, []
    f = ways.function(call, operands, trees)
    try:
        m.eval_shape(f, *xs)
        record["tree"] = trees[0]
    except Exception as error:
        kinds = _refused(error)
        if not any("Tracer" in k or "Concret" in k for k in kinds):
            record["error"] = kinds
            return {}
        record["concrete"] = True
        try:
            record["value"], record["tree"] = ways.packed(f(*xs)), trees[0]
        except Exception as refused:
            record["error"] = _refused(refused)
        return {}
    programs: dict[str, Callable[[Any], Any]] = {"value": lambda xs: f(*xs)}
    sensible = wanted(call, chosen)
    if "vmap" in sensible:
        with contextlib.suppress(Exception):
            m.eval_shape(lambda xs: ways.vmap(f, xs), xs)
            record["vmap"] = True
    for way in ("ranks", "strict"):
        if way in sensible:
            with contextlib.suppress(Exception):
                m.eval_shape(lambda xs, way=way: getattr(ways, way)(f, xs), xs)
                record[way] = True
    for way in ("grad", "jvp", "hvp"):
        if way in sensible and ways.moving(xs):
            with contextlib.suppress(Exception):
                g = getattr(ways, way)
                m.eval_shape(lambda xs, g=g: g(f, xs), xs)
                programs[way] = lambda xs, g=g: g(f, xs)
    return programs


def _run(m: Any, programs: dict[tuple[int, str], Any], inputs: dict[int, Any]) -> dict[Any, Any]:
    """Run all programs as one; one at a time if the compiler cannot compile them together."""
    groups = [list(programs)] if programs else []
    outputs: dict[Any, Any] = {}
    while groups:
        group = groups.pop()

        def everything(inputs: Any, group: Any = group) -> Any:
            return [programs[key](inputs[key[0]]) for key in group]

        try:
            group_inputs = {i: inputs[i] for i, _ in group}
            results = m.jit(everything, compiler_options=QUICK)(group_inputs)
            outputs |= zip(group, m.block_until_ready(results), strict=True)
        except Exception:
            groups += [[key] for key in group] if len(group) > 1 else []
    return outputs
