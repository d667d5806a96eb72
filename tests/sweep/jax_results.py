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
from sweep.execution_modes import ModeRunner, applicable_modes

# Its programs run once.
FAST_COMPILE_OPTIONS = {
    "xla_backend_optimization_level": 0,
    "xla_llvm_disable_expensive_passes": True,
}
Record = dict[str, Any]


def _error_classes(error: BaseException) -> list[str]:
    return [k.__name__ for k in type(error).__mro__]


def compute_records(m: Any, calls: Sequence[Call], chosen: Sequence[str]) -> list[Record]:
    runner = ModeRunner(m)
    records: list[Record] = [{} for _ in calls]
    programs: dict[tuple[int, str], Callable[[Any], Any]] = {}
    inputs: dict[int, list[Any]] = {}
    warnings.simplefilter("ignore")
    with runner.precision(calls[0]):
        for i, call in enumerate(calls):
            try:
                operands = runner.arrays(call)
                xs = [operands[k] for k in call.traced]
                for mode, f in _programs(runner, call, operands, xs, chosen, records[i]).items():
                    programs[i, mode], inputs[i] = f, xs
            except Exception as error:  # operands that jax does not take
                records[i]["error"] = _error_classes(error)
        for (i, mode), leaves in _run(m, programs, inputs).items():
            records[i][mode] = runner.packed(leaves)
    return records


def _programs(
    runner: ModeRunner,
    call: Call,
    operands: dict[str, Any],
    xs: list[Any],
    chosen: Any,
    record: Record,
) -> dict[str, Callable[[Any], Any]]:
    """Return the functions to compile, for the calls that JAX can trace."""
    m, trees = runner.m, []
    f = runner.function(call, operands, trees)
    try:
        m.eval_shape(f, *xs)
        record["tree"] = trees[0]
    except Exception as error:
        kinds = _error_classes(error)
        if not any("Tracer" in k or "Concret" in k for k in kinds):
            record["error"] = kinds
            return {}
        record["concrete"] = True
        try:
            record["value"], record["tree"] = runner.packed(f(*xs)), trees[0]
        except Exception as refused:
            record["error"] = _error_classes(refused)
        return {}
    programs: dict[str, Callable[[Any], Any]] = {"value": lambda xs: f(*xs)}
    sensible = applicable_modes(call, chosen)
    if "vmap" in sensible:
        with contextlib.suppress(Exception):
            m.eval_shape(lambda xs: runner.vmap(f, xs), xs)
            record["vmap"] = True
    for mode in ("ranks", "strict"):
        if mode in sensible:
            with contextlib.suppress(Exception):
                m.eval_shape(lambda xs, mode=mode: getattr(runner, mode)(f, xs), xs)
                record[mode] = True
    for mode in ("grad", "jvp", "hvp"):
        if mode in sensible and runner.moving(xs):
            with contextlib.suppress(Exception):
                g = getattr(runner, mode)
                m.eval_shape(lambda xs, g=g: g(f, xs), xs)
                programs[mode] = lambda xs, g=g: g(f, xs)
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
            results = m.jit(everything, compiler_options=FAST_COMPILE_OPTIONS)(group_inputs)
            outputs |= zip(group, m.block_until_ready(results), strict=True)
        except Exception:
            groups += [[key] for key in group] if len(group) > 1 else []
    return outputs
