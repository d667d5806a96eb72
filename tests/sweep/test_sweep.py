"""A few calls with fixed seeds, and tests that injected faults are detected.

`python -m tests.sweep` runs more seeds, until a time limit.
"""

from __future__ import annotations

import fnmatch

import numpy as np
import pytest
from api.exceptions import exceptions
from sweep import __main__ as runner
from sweep import ours
from sweep.calls import Call, drawn, names
from sweep.ours import answer
from sweep.verdict import differences
from sweep.ways import WAYS, Ways

import accnp
import accnp.numpy as jnp

# Elementwise and quick to compile, one for each family.
QUICK = ["numpy.add", "numpy.cumsum", "lax.clamp", "nn.relu", "Array.at.add", "ops.segment_sum"]


def call(name: str, arguments: str, **operands: str) -> Call:
    return Call(name, arguments, tuple((k, v, True) for k, v in operands.items()), False, 0)


@pytest.mark.parametrize("wide", [False, True])
def test_fixed_seeds(wide):
    for seed in range(len(QUICK)):
        c = drawn(seed, wide, QUICK)
        assert not differences(c, None, answer(accnp, c, None, WAYS)), str(c)


def test_seeds_cover_all_names():
    assert len(names()) > 900
    assert {drawn(seed, False).name for seed in range(len(names()))} == set(names())
    assert drawn(7, True) == drawn(7, True)
    assert drawn(7, True) != drawn(7 + len(names()), True)


def test_expressions_are_the_calls():
    """The printed expression, when evaluated, gives the compared results."""
    from sweep import scope

    for seed in range(12):
        c = drawn(seed, False, QUICK)
        record = answer(accnp, c, None, WAYS)
        if isinstance(record["value"], str):
            continue
        for way in ("value", "jit", "jvp"):
            if way in record:
                again = accnp.tree.leaves(eval(c.expression(way), {**vars(scope)}))
                for x, (y, _) in zip(again, record[way], strict=True):
                    assert np.array_equal(np.asarray(x), y, equal_nan=True), (way, str(c))


def test_rules_have_names_and_reasons():
    for name, _, _, why in exceptions("sweep"):
        assert fnmatch.filter(names(), name), name
        assert len(why.split()) > 3, name


A = "jnp.asarray(np.random.default_rng(1).integers(-9, 9, (4, 5)) / 8)"


@pytest.mark.parametrize(
    ("way", "words"),
    [("value", ["value"]), ("jit", ["jit"]), ("vmap", ["vmap"]), ("grad", ["grad", "jvp"])],
)
def test_injected_fault_is_found(monkeypatch, way, words):
    """`sin` is wrong under one transformation."""
    real = jnp.sin

    @accnp.custom_jvp
    def steep(x):
        return real(x)

    steep.defjvp(lambda xs, ts: (real(xs[0]), 1.01 * jnp.cos(xs[0]) * ts[0]))

    def sin(x):
        traced = isinstance(x, accnp.core.Tracer)
        if way == "grad":
            return steep(x)
        wrong = {"value": True, "jit": traced, "vmap": traced and jnp.ndim(x) == 2}[way]
        return real(x) + (1e-3 if wrong else 0)

    monkeypatch.setattr(jnp, "sin", sin)
    c = call("numpy.sin", "A", A=A)
    chosen = ["value", *(w for w in WAYS if w in words)]
    reported = differences(c, None, answer(accnp, c, None, chosen))
    assert {d.way for d in reported} == set(words)
    assert all(d.what == "value" for d in reported)


def test_injected_fault_of_second_derivatives_is_found(monkeypatch):
    real = jnp.sin

    @accnp.custom_jvp
    def flat(x):
        return real(x)

    flat.defjvp(lambda xs, ts: (real(xs[0]), accnp.lax.stop_gradient(jnp.cos(xs[0])) * ts[0]))
    c, chosen = call("numpy.sin", "A", A=A), ["value", "grad", "hvp"]
    assert not differences(c, None, answer(accnp, c, None, chosen))
    monkeypatch.setattr(jnp, "sin", flat)
    reported = differences(c, None, answer(accnp, c, None, chosen))
    assert [(d.way, d.what) for d in reported] == [("hvp", "value")]


def test_promotion_modes_are_ways():
    c = call("numpy.add", "A, A[0]", A=A)
    mine = answer(accnp, c, None, ["value"])
    theirs = {**mine, "ranks": True, "strict": True}
    reported = differences(c, theirs, answer(accnp, c, theirs, WAYS))
    assert [(d.way, d.what) for d in reported] == [("ranks", "refuses")]


def test_types_are_compared_with_those_of_jax():
    c = call("numpy.sin", "A", A=A)
    mine = answer(accnp, c, None, ["value"])
    (x, _), *_ = mine["value"]
    theirs = {"tree": mine["tree"], "value": [(x.astype("float16"), False)]}
    assert [d.what for d in differences(c, theirs, mine)] == ["type"]
    assert [d.what for d in differences(c, {**theirs, "value": [(x, True)]}, mine)] == ["weak"]
    refused = {"value": "TypeError: no"}
    assert [d.what for d in differences(c, theirs, refused)] == ["refuses"]
    assert not differences(c, {"error": ["TypeError"]}, mine)


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
    from sweep.theirs import answers

    calls = [call("numpy.sin", "A", A=A), call("numpy.sin", "A, axis=3", A=A)]
    good, bad = answers(jax, calls, WAYS)
    assert {"tree", "value", "vmap", "grad", "jvp"} <= set(good)
    assert bad["error"][0] == "TypeError"
    assert not differences(calls[0], good, answer(accnp, calls[0], good, WAYS))
    assert ours.answer(accnp, calls[1], None, WAYS)["value"].startswith("TypeError")
    assert Ways(jax).moving([jax.numpy.ones(2), jax.numpy.arange(2)]) == [0]
