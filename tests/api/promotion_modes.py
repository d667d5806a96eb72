"""Calls of the whole namespace under `numpy_rank_promotion="raise"` and
`numpy_dtype_promotion="strict"`.

The calls are the expressions of `families/*.txt`, and seeds of the random sweep
(`tests/sweep/calls.py`) with their values, `vmap`, `jvp` and `vjp`. For each, this module returns
the modes in which a library refuses it. Calls are only traced (`eval_shape`), because refusals of
promotion do not depend on values.

`expected/promotion_modes.json` contains the modes in which JAX refuses a call, for those calls that
it does not accept in all modes. `ACCNP_ORACLE=1 pytest tests/api/test_promotion_modes.py -k
namespace` runs JAX again, which takes 15 minutes.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from api import test_families as families
from sweep.calls import draw_call
from sweep.execution_modes import ModeRunner

RESULTS_FILE = Path(__file__).parent / "expected" / "promotion_modes.json"
SEED_COUNT = 1000  # of the sweep: about one call for each name
GROUP_SIZE = 250
MODES = ("rank", "strict")
Call = Callable[[], Any]


def enter_modes(m: Any, chosen: tuple[str, ...]) -> contextlib.ExitStack:
    """Enter the context managers of some modes."""
    stack = contextlib.ExitStack()
    if "rank" in chosen:
        stack.enter_context(m.numpy_rank_promotion("raise"))
    if "strict" in chosen:
        stack.enter_context(m.numpy_dtype_promotion("strict"))
    return stack


def _array_leaves(m: Any, tree: Any) -> list[Any]:
    return [x for x in m.tree_util.tree_leaves(tree) if isinstance(x, m.Array)]


def family_calls(m: Any, family: str) -> Iterator[tuple[str, Call]]:
    """Yield the expressions of a file that JAX accepts, each with its call."""
    for case in families.CASES:
        name, line, definitions = case.values
        if name != family or line.startswith("! "):
            continue
        text = line.removeprefix("~ ")
        with families.enable_wide_types(m, family), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            scope = families.expression_scope(m, definitions)
            yield line, lambda text=text, scope=scope: _array_leaves(m, eval(text, dict(scope)))


def sweep_calls(m: Any, first: int) -> Iterator[tuple[str, Call]]:
    """Yield the random calls of some seeds, as values and under each transformation that has
    operands.
    """
    runner = ModeRunner(m)
    for seed in range(first, first + GROUP_SIZE):
        call = draw_call(seed, seed // 6 % 2 == 1)
        with runner.precision(call), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                operands = runner.arrays(call)
            except Exception:  # operands that one of the libraries does not make
                continue
            xs = [operands[k] for k in call.traced]
            f = runner.function(call, operands, [])
            yield f"{seed} value", lambda f=f, xs=xs: f(*xs)
            if call.traced:
                yield f"{seed} vmap", lambda f=f, xs=xs: runner.vmap(f, xs)
            if runner.moving(xs):
                yield f"{seed} jvp", lambda f=f, xs=xs: runner.jvp(f, xs)
                yield f"{seed} vjp", lambda f=f, xs=xs: _pull_back_ones(runner, f, xs)


def _pull_back_ones(runner: ModeRunner, f: Callable[..., Any], xs: list[Any]) -> Any:
    """Return the cotangents of the differentiable operands for output cotangents of ones."""
    m, places = runner.m, runner.moving(xs)

    def results(*moved: Any) -> list[Any]:
        arguments = list(xs)
        for i, x in zip(places, moved, strict=True):
            arguments[i] = x
        return [x for x in f(*arguments) if m.numpy.issubdtype(x.dtype, m.numpy.inexact)]

    out, back = m.vjp(results, *[xs[i] for i in places])
    return back([m.numpy.ones_like(x) for x in out])


def accepts(m: Any, call: Call, chosen: tuple[str, ...]) -> bool | str:
    """Return True if a call is accepted in the given modes, otherwise the error message."""

    def run() -> Any:
        with enter_modes(m, chosen):
            return call()

    try:
        m.eval_shape(run)
        return True
    except Exception as error:
        if "Tracer" not in type(error).__name__ and "Concret" not in type(error).__name__:
            return f"{type(error).__name__}: {error}"
    try:  # values that must be known
        run()
        return True
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def refused_calls(
    make: Callable[..., Iterator[tuple[str, Call]]], group: Any
) -> dict[str, list[str]]:
    """Return the calls that JAX refuses in some mode, with these modes; "always" if it refuses it
    in all modes.
    """
    jax = importlib.import_module("jax")
    answers: dict[str, list[str]] = {}
    for line, call in make(jax, group):
        if accepts(jax, call, MODES) is True:
            continue
        if accepts(jax, call, ()) is not True:
            answers[line] = ["always"]
        elif refused := [mode for mode in MODES if accepts(jax, call, (mode,)) is not True]:
            answers[line] = refused
    return answers


def stored_refusals(group: str) -> dict[str, list[str]]:
    """Return the stored result of `refused_calls` for a family file or a group of seeds."""
    table = json.loads(RESULTS_FILE.read_text())
    if os.environ.get("ACCNP_ORACLE"):
        table[group] = refused_calls(*calls_of(group))
        texts = [
            f"{json.dumps(name)}: {{\n"
            + ",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in sorted(calls.items()))
            + "\n}"
            for name, calls in sorted(table.items())
        ]
        RESULTS_FILE.write_text("{\n" + ",\n".join(texts) + "\n}\n")
    return table.get(group, {})


def calls_of(group: str) -> tuple[Callable[..., Iterator[tuple[str, Call]]], Any]:
    """Return the generator of the calls of a group, and its argument."""
    return (sweep_calls, int(group)) if group.isdigit() else (family_calls, group)


def groups() -> list[str]:
    """Return the names of the family files, and the first seed of each group of the sweep."""
    names = sorted({str(case.values[0]) for case in families.CASES})
    return names + [str(first) for first in range(0, SEED_COUNT, GROUP_SIZE)]


def text_of(group: str, line: str) -> str:
    """Return the source of the call of a line, for failure messages."""
    if not group.isdigit():
        return line
    seed = int(line.split()[0])
    return f"{line}: {draw_call(seed, seed // 6 % 2 == 1)}"
