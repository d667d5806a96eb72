"""A few calls with fixed seeds, and tests that injected faults are detected.

`python -m tests.sweep` runs more seeds, until a time limit.
"""

from __future__ import annotations

import fnmatch

import numpy as np
import pytest
from api.exceptions import exceptions
from sweep import __main__ as runner
from sweep import accnp_results
from sweep.accnp_results import compute_record
from sweep.calls import Call, draw_call, shuffled_names
from sweep.execution_modes import MODES, ModeRunner
from sweep.result_comparison import find_differences

import accnp
import accnp.numpy as jnp

# Elementwise and quick to compile, one for each family.
QUICK_NAMES = [
    "numpy.add",
    "numpy.cumsum",
    "lax.clamp",
    "nn.relu",
    "Array.at.add",
    "ops.segment_sum",
]


def make_call(name: str, arguments: str, **operands: str) -> Call:
    return Call(name, arguments, tuple((k, v, True) for k, v in operands.items()), False, 0)


@pytest.mark.parametrize("wide", [False, True])
def test_fixed_seeds(wide):
    for seed in range(len(QUICK_NAMES)):
        c = draw_call(seed, wide, QUICK_NAMES)
        assert not find_differences(c, None, compute_record(accnp, c, None, MODES)), str(c)


def test_seeds_cover_all_names():
    assert len(shuffled_names()) > 900
    assert {draw_call(seed, False).name for seed in range(len(shuffled_names()))} == set(
        shuffled_names()
    )
    assert draw_call(7, True) == draw_call(7, True)
    assert draw_call(7, True) != draw_call(7 + len(shuffled_names()), True)


def test_expressions_are_the_calls():
    """The printed expression, when evaluated, gives the compared results."""
    from sweep import scope

    for seed in range(12):
        c = draw_call(seed, False, QUICK_NAMES)
        record = compute_record(accnp, c, None, MODES)
        if isinstance(record["value"], str):
            continue
        for mode in ("value", "jit", "jvp"):
            if mode in record:
                again = accnp.tree.leaves(eval(c.expression(mode), {**vars(scope)}))
                for x, (y, _) in zip(again, record[mode], strict=True):
                    assert np.array_equal(np.asarray(x), y, equal_nan=True), (mode, str(c))


def test_rules_have_names_and_reasons():
    for name, _, _, why in exceptions("sweep"):
        assert fnmatch.filter(shuffled_names(), name), name
        assert len(why.split()) > 3, name


A = "jnp.asarray(np.random.default_rng(1).integers(-9, 9, (4, 5)) / 8)"


@pytest.mark.parametrize(
    ("mode", "words"),
    [("value", ["value"]), ("jit", ["jit"]), ("vmap", ["vmap"]), ("grad", ["grad", "jvp"])],
)
def test_injected_fault_is_found(monkeypatch, mode, words):
    """`sin` is wrong under one transformation."""
    real = jnp.sin

    @accnp.custom_jvp
    def steep(x):
        return real(x)

    steep.defjvp(lambda xs, ts: (real(xs[0]), 1.01 * jnp.cos(xs[0]) * ts[0]))

    def sin(x):
        traced = isinstance(x, accnp.core.Tracer)
        if mode == "grad":
            return steep(x)
        wrong = {"value": True, "jit": traced, "vmap": traced and jnp.ndim(x) == 2}[mode]
        return real(x) + (1e-3 if wrong else 0)

    monkeypatch.setattr(jnp, "sin", sin)
    c = make_call("numpy.sin", "A", A=A)
    chosen = ["value", *(w for w in MODES if w in words)]
    reported = find_differences(c, None, compute_record(accnp, c, None, chosen))
    assert {d.mode for d in reported} == set(words)
    assert all(d.what == "value" for d in reported)


def test_injected_fault_of_second_derivatives_is_found(monkeypatch):
    real = jnp.sin

    @accnp.custom_jvp
    def flat(x):
        return real(x)

    flat.defjvp(lambda xs, ts: (real(xs[0]), accnp.lax.stop_gradient(jnp.cos(xs[0])) * ts[0]))
    c, chosen = make_call("numpy.sin", "A", A=A), ["value", "grad", "hvp"]
    assert not find_differences(c, None, compute_record(accnp, c, None, chosen))
    monkeypatch.setattr(jnp, "sin", flat)
    reported = find_differences(c, None, compute_record(accnp, c, None, chosen))
    assert [(d.mode, d.what) for d in reported] == [("hvp", "value")]


def test_promotion_modes_are_execution_modes():
    c = make_call("numpy.add", "A, A[0]", A=A)
    mine = compute_record(accnp, c, None, ["value"])
    theirs = {**mine, "ranks": True, "strict": True}
    reported = find_differences(c, theirs, compute_record(accnp, c, theirs, MODES))
    assert [(d.mode, d.what) for d in reported] == [("ranks", "refuses")]


def test_types_are_compared_with_those_of_jax():
    c = make_call("numpy.sin", "A", A=A)
    mine = compute_record(accnp, c, None, ["value"])
    (x, _), *_ = mine["value"]
    theirs = {"tree": mine["tree"], "value": [(x.astype("float16"), False)]}
    assert [d.what for d in find_differences(c, theirs, mine)] == ["type"]
    assert [d.what for d in find_differences(c, {**theirs, "value": [(x, True)]}, mine)] == ["weak"]
    refused = {"value": "TypeError: no"}
    assert [d.what for d in find_differences(c, theirs, refused)] == ["refuses"]
    assert not find_differences(c, {"error": ["TypeError"]}, mine)


def test_runner_reports_differences_and_crashes(monkeypatch, capsys):
    """The workers run in this process; the third call ends its worker."""
    requests = []

    class Here:
        def __init__(self, library: str, seconds: float) -> None:
            del library, seconds

        def ask(self, f, *arguments):
            requests.append(arguments)
            if len(requests) == 3:
                raise runner.Ended("the process ended with -11")
            record = f(accnp, *arguments)
            if len(requests) == 2:
                (x, weak), *more = record["value"]
                record["value"] = [(x + 1, weak), *more]
            return record

        def close(self) -> None:
            pass

    monkeypatch.setattr(runner, "Worker", Here)
    command = ["60", "--seed", "1", "--calls", "3", "--names", "numpy.negative", "--alone"]
    assert runner.main([*command, "--ways", "value"]) == 1
    output = capsys.readouterr().out
    assert "=== value, value: numpy.negative, seed 2" in output
    assert "jax.numpy.negative(" in output
    assert "=== value, crash: numpy.negative, seed 3" in output
    assert "the process ended with -11" in output
    assert "3 calls" in output


def test_reference_calls_are_batched():
    import jax
    from sweep.jax_results import compute_records

    calls = [make_call("numpy.sin", "A", A=A), make_call("numpy.sin", "A, axis=3", A=A)]
    good, bad = compute_records(jax, calls, MODES)
    assert {"tree", "value", "vmap", "grad", "jvp"} <= set(good)
    assert bad["error"][0] == "TypeError"
    assert not find_differences(calls[0], good, compute_record(accnp, calls[0], good, MODES))
    assert accnp_results.compute_record(accnp, calls[1], None, MODES)["value"].startswith(
        "TypeError"
    )
    assert ModeRunner(jax).moving([jax.numpy.ones(2), jax.numpy.arange(2)]) == [0]
