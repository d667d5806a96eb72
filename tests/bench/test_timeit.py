"""`accnp.timeit` and the magic `%accnp_timeit`, which both wait for asynchronous results."""

import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest

import accnp as jnp
from accnp.bench import measure, timing
from accnp.bench.measure import Measurement
from accnp.bench.statements import function_of
from accnp.bench.timing import Timing
from accnp.bench.waiting import is_pending, waiting
from accnp.runtime.machine_load import Load


class Late:
    """A result that records when it is waited for, with the methods of accnp's and JAX's arrays."""

    def __init__(self):
        self.waited = 0

    def block_until_ready(self):
        self.waited += 1
        return self


@pytest.mark.parametrize("place", [lambda x: x, lambda x: (1, x), lambda x: {"a": [x, x + 1]}])
def test_a_waiting_call_returns_computed_arrays(place):
    x = jnp.arange(4.0)
    result = waiting(lambda y: place(y * 2))(x)
    assert not is_pending(result)
    assert is_pending(place(x * 2))


def test_timeit_waits_for_results_of_other_libraries():
    late = Late()
    call = waiting(lambda: (late, None))
    call()
    call()
    assert late.waited == 2


def test_results_without_arrays_are_searched_once(monkeypatch):
    looked = []
    monkeypatch.setattr("accnp.bench.waiting.tree_leaves", lambda x: looked.append(x) or [])
    results = iter([[1.0] * 3, [2.0] * 3, [3.0] * 4, None, 1.0, np.ones(3)])
    call = waiting(lambda: next(results))
    for _ in range(6):
        call()
    assert looked == [[1.0] * 3, [3.0] * 4]


def test_timeit_waits_and_counts_the_first_call():
    f = jnp.jit(lambda x: jnp.tanh(x) * 2)
    before = jnp.counters()["launches"]
    t = jnp.timeit(f, jnp.ones(1000), rounds=4, number=3)
    calls = 1 + 1 + 2 + 3 + 4 * (1 + 3)  # first, once, pace, warm-up in `interleave`, samples
    assert jnp.counters()["launches"] - before >= calls - 3
    assert t.traces == 1
    assert len(t.seconds) == 4
    assert t.loops == 3
    assert 0 < t.best <= t.median
    assert t.first > 0
    assert f"{t.name}: best" in repr(t)
    assert "4 rounds of 3 calls" in repr(t)
    assert "(1 trace" in repr(t)


def test_pending_arguments_are_computed_before_the_clock():
    x = jnp.arange(5.0) * 3
    jnp.timeit(lambda y: None, x, rounds=1, number=1)
    assert x.is_ready()


def test_peers_alternate_and_report_ratios():
    order = []
    t = jnp.timeit(
        lambda: order.append("ours"),
        peers={"them": lambda: order.append("them")},
        rounds=4,
        number=1,
    )
    assert order[-4:].count("them") == 2
    ratio = t.ratio("them")
    assert ratio.low <= ratio.median <= ratio.high
    assert t.ratios == {"them": ratio}
    assert "time of <lambda> / time of them" in repr(t)
    with pytest.raises(KeyError):
        t.ratio("nobody")


def test_long_calls_run_the_minimum_number_of_rounds(monkeypatch):
    clock = iter(range(1000))
    monkeypatch.setattr(measure, "perf_counter", lambda: next(clock))
    calls = []
    t = jnp.timeit(lambda: calls.append(1), seconds=0.5)
    assert len(t.seconds) == measure.FEWEST_ROUNDS
    assert len(calls) == 2 + measure.FEWEST_ROUNDS


@pytest.mark.parametrize(
    ("arguments", "more", "error", "words"),
    [
        ([3], {}, TypeError, "the first argument must be a function; got int"),
        ([len, []], {"rounds": 0}, ValueError, "rounds must be 1 or more; got 0"),
        ([len, []], {"number": -1}, ValueError, "number must be 1 or more; got -1"),
    ],
)
def test_timeit_rejects_invalid_arguments(arguments, more, error, words):
    with pytest.raises(error, match=words):
        jnp.timeit(*arguments, **more)


def test_figures_of_a_measurement():
    ours, peer = Timing([2.0, 4.0, 2.0, 2.0]), Timing([1.0, 1.0, 1.0, 2.0])
    t = Measurement("f", 5.0, ours, 1, peers={"p": peer}, load=Load(0.5, 0.1, 2))
    assert (t.best, t.median, t.spread) == (2.0, 2.0, 0.25)
    assert t.ratio("p").median == 2.0
    assert not t.reliable
    assert "unreliable, busy machine" in repr(t)
    assert timing.middle_half([3.0]) == (3.0, 3.0)
    assert timing.seconds_text(2.5e-5) == "25 µs"
    assert timing.seconds_text(2.5e-10) == "0.25 ns"


# --- code as text ---


@pytest.mark.parametrize(
    ("code", "result"),
    [
        ("a + 1", 4),
        ("b = a + 1\nb * 2", (8, {"b": 4})),
        ("b = a + 1", (None, {"b": 4})),
        ("for i in range(2): pass", (None, {"i": 1})),
        ("import math\nmath.floor(a)", None),
    ],
)
def test_functions_of_statements(code, result):
    namespace = {"a": 3}
    actual = function_of(code, namespace)()
    if result is not None:
        assert actual == result
    assert namespace == {"a": 3}


def test_setup_is_run_once():
    seen = []
    call = function_of("n.append(k); k", {"n": seen}, "k = len(n) + 5")
    call()
    assert call()[0] == 5
    assert seen == [5, 5]
    with pytest.raises(SyntaxError, match="no code"):
        function_of("  ", {})


# --- the magic ---


@pytest.fixture
def shell():
    magics = {"line": {}, "cell": {}}

    def register(function, magic_kind, magic_name):
        assert magic_kind == "line_cell"
        magics["line"][magic_name] = magics["cell"][magic_name] = function

    fake_shell = SimpleNamespace(
        user_ns={"jnp": jnp, "x": jnp.arange(3.0)},
        register_magic_function=register,
        magics_manager=SimpleNamespace(magics=magics),
    )
    jnp.load_ipython_extension(fake_shell)
    fake_shell.magic = magics["line"]["accnp_timeit"]
    return fake_shell


def test_line_magic_waits_for_result(shell, capsys):
    before = jnp.counters()["launches"]
    t = shell.magic("-o -r 3 -n 2 jnp.tanh(x) * -2")
    assert jnp.counters()["launches"] - before >= 1 + 3 * 2
    assert (len(t.seconds), t.loops) == (3, 2)
    assert capsys.readouterr().out.startswith("jnp.tanh(x) * -2: best")


def test_cell_magic_waits_for_assigned_variables(shell):
    results = shell.user_ns["kept"] = []
    cell = "y = jnp.sin(x + k)\nkept.append(y)\n"
    assert shell.magic("-q -r 1 -n 1 k = 2.0", cell) is None
    assert results[0].is_ready()
    assert "y" not in shell.user_ns
    assert "k" not in shell.user_ns


def test_options_that_do_not_exist_are_refused(shell):
    with pytest.raises(ValueError, match="argument -r: invalid int value: 'many'"):
        shell.magic("-r many x")


def test_the_extension_can_be_unloaded(shell):
    jnp.unload_ipython_extension(shell)
    assert shell.magics_manager.magics == {"line": {}, "cell": {}}


def test_importing_accnp_does_not_load_timeit():
    code = "import accnp, sys; print([m for m in sys.modules if m.startswith('accnp.bench')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
