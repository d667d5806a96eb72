"""The benchmark harness: interleaved calls, ratios, the table, groups and expressions."""

import json
from collections import Counter
from itertools import combinations, count, pairwise
from threading import Event, Thread
from time import thread_time

import numpy as np
import pytest

import accnp
from accnp.bench import timing
from accnp.runtime.bandwidth import bandwidth, streaming_copy
from benchmarks import registry
from benchmarks.expressions import Expression, normal
from benchmarks.harness import (
    Row,
    Timing,
    fresh_process,
    interleave,
    markdown_table,
    paced,
    row,
    text_table,
    write_json,
)


def test_calls_take_turns_and_alternate_their_order():
    seen = []
    calls = {"a": lambda: seen.append("a"), "b": lambda: seen.append("b")}
    timings = interleave(calls, rounds=4, number=2, warm=1)
    # Each turn begins with a call that is not counted.
    assert "".join(seen) == "ab" + "aaabbb" + "bbbaaa" + "bbbaaa" + "aaabbb"
    assert [len(t.seconds) for t in timings.values()] == [4, 4]


def test_measurement_waits_for_idle_threads(monkeypatch):
    worked = iter([0.0, 0.001, 0.002, 0.00205])
    monkeypatch.setattr(timing, "_cpu_seconds_of_others", lambda: next(worked))
    timing._wait_for_idle_threads()
    assert next(worked, None) is None


def test_the_work_of_other_threads_is_counted_while_they_live():
    done, end = Event(), Event()

    def work():
        while thread_time() < 0.02:
            pass
        done.set()
        end.wait()

    thread = Thread(target=work)
    before = timing._cpu_seconds_of_others()
    thread.start()
    assert done.wait(20)
    seconds = timing._cpu_seconds_of_others() - before
    end.set()
    thread.join()
    assert seconds >= 0.02


@pytest.mark.parametrize("number", [2, 3, 4, 5, 6])
def test_each_call_follows_each_other_one_equally_often(number):
    seen = []
    calls = {name: lambda name=name: seen.append(name) for name in "abcdef"[:number]}
    rounds = 2 * number
    interleave(calls, rounds, warm=0)
    turns = [tuple(seen[k : k + number]) for k in range(0, len(seen), number)]
    assert len(turns) == rounds
    assert all(sorted(turn) == sorted(calls) for turn in turns)
    follows = Counter(pair for turn in turns for pair in pairwise(turn))
    assert set(follows.values()) == {2}
    assert len(follows) == number * (number - 1)


def test_each_library_has_operands_of_its_own():
    seen = []
    data = normal(0, 100)

    def make(m):
        return (lambda x: seen.append(x) or x), (data,)

    peers = {"one": lambda x: lambda: make(None)[0](x), "two": lambda x: lambda: make(None)[0](x)}
    calls = Expression("w", make, {"one": 1.0, "two": 1.0, "numpy": 1.0}, peers).calls()
    for name in ("one", "two", "numpy"):
        calls[name]()
    assert list(calls) == ["accnp", "one", "two", "numpy"]
    assert not any(np.shares_memory(a, b) for a, b in combinations([data, *seen], 2))


def test_ratio_is_the_median_of_the_rounds_ratios():
    ours, peer = Timing([1.0, 2.0, 30.0]), Timing([2.0, 2.0, 10.0])
    assert ours.ratio(peer) == 1.0
    assert ours.median == 2.0


def test_fresh_process_reads_the_last_line():
    assert fresh_process("print('noise'); print(0.25)") == 0.25
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        fresh_process("1 / 0")


def test_table_and_json_report_missed_limits(tmp_path):
    medians = {"accnp": 0.001, "jax": 0.004}
    rows = [
        Row("fast", "JAX jit", 0.5, 0.25, medians),
        Row("slow", "JAX jit", 0.2, 0.25, medians),
        Row("wrong", "JAX jit", 0.5, 0.25, medians, extra_ok=False),
    ]
    lines = text_table(rows).splitlines()
    assert [("pass" in line, "FAIL" in line) for line in lines[2:]] == [
        (True, False),
        (False, True),
        (False, True),
    ]
    write_json(tmp_path / "out" / "x.json", rows, {"cpus": 2})
    data = json.loads((tmp_path / "out" / "x.json").read_text())
    assert [row["met"] for row in data["rows"]] == [True, False, False]


def test_markdown_has_the_same_cells():
    rows = [Row("a | b", "numpy", 0.5, 0.25, {"accnp": 1e-3, "numpy": 4e-3}, note="n")]
    head, rule, line = markdown_table(rows).splitlines()
    assert head == "| work | accnp | NumPy | ratio | bar |  | peer | note |"
    assert rule.count("---") == 8
    assert line == r"| a \| b | 1 | 4 | 0.250 | 0.50 | pass | numpy | n |"


def test_the_fastest_peer_has_the_smallest_median():
    timings = {
        "accnp": Timing([1.0, 1.0, 1.0]),
        "numpy": Timing([2.0, 2.0, 2.0]),
        "JAX jit": Timing([9.0, 1.5, 0.5]),
    }
    fastest = row("w", 0.8, timings, "accnp", ("numpy", "JAX jit"))
    assert fastest.peer == "JAX jit (best of numpy, JAX jit)"
    assert fastest.ratio == 1 / 1.5
    assert not row("w", 0.6, timings, "accnp", ("numpy", "JAX jit")).met
    assert fastest.medians == {"accnp": 1.0, "jax": 1.5, "numpy": 2.0}


def test_short_calls_are_paced_to_samples_of_a_millisecond(monkeypatch):
    clock = count()
    monkeypatch.setattr("accnp.bench.timing.perf_counter", lambda: next(clock) * 1e-5)
    monkeypatch.setattr(timing, "_wait_for_idle_threads", lambda: None)
    calls = []
    timings = paced({"a": lambda: calls.append(1)}, rounds=9, seconds=0.0206)
    assert len(timings["a"].seconds) == 20
    assert len(calls) == 2 + 1 + 20 * (1 + 100)


def test_rows_are_selected_by_group_name_or_pattern():
    def one(rounds):
        return []

    groups = {
        "main": registry.Group("main", {"sum": one, "sort": one}),
        "sort": registry.Group("sort", {"unique": one, "sort": one}),
    }

    def names(*words):
        return [f"{g.name}/{name}" for g, name in registry.select(groups, words)]

    assert names("sum") == ["main/sum"]
    assert names("sort") == ["main/sort", "sort/unique", "sort/sort"]
    assert names("sort/u*") == ["sort/unique"]
    assert names("s*m", "main") == ["main/sum", "main/sort"]
    with pytest.raises(ValueError, match="no such row or group; got 'x'"):
        names("x")


def test_an_expression_is_measured_against_each_of_its_bars():
    pytest.importorskip("jax")
    twice = Expression(
        "twice",
        lambda m: (lambda x: x * 2, (normal(0, 100),)),
        {("numpy", "jax"): 1.0, "limit": 2.0, "absent": 0.5},
        {"absent": lambda x: None, "list": lambda x: lambda: [2 * v for v in x]},
        moved=1 << 16,
    )
    rows = twice.measure(1)
    assert [r.bar for r in rows] == [1.0, 2.0]
    assert set(rows[0].medians) == {"accnp", "numpy", "jax", "limit"}
    wrong = Expression("wrong", twice.make, {"jax": 1.0}, expected=lambda x: x * 3)
    with pytest.raises(AssertionError):
        wrong.measure(1)


def test_bandwidth_copy_covers_the_whole_array():
    copy = streaming_copy(1 << 12)
    source, target = copy()
    assert source.nbytes == target.nbytes == 1 << 11
    source[:] = np.arange(1 << 11) % 251
    copy()
    np.testing.assert_array_equal(source, target)


def test_bandwidth_is_measured_once():
    measured = bandwidth()
    assert 1e8 < measured < 1e13
    assert bandwidth() == measured


def test_dispatch_rows_have_positive_times(monkeypatch):
    pytest.importorskip("jax")
    from benchmarks import rows

    clock = count()
    monkeypatch.setattr("accnp.bench.timing.perf_counter", lambda: float(next(clock)))
    dispatch_rows = rows.dispatch(1)
    assert [row.bar for row in dispatch_rows] == [0.25, 1.0]
    assert all(row.medians["accnp"] > 0 for row in dispatch_rows)


def test_programs_are_the_same_for_both_libraries():
    jax = pytest.importorskip("jax")
    from benchmarks import rows

    assert set(rows.PROCESS_ROWS) >= {f"{name}-cold" for name in rows.PROGRAMS}
    for name, program in rows.PROGRAMS.items():
        assert name in rows.ROWS
        shapes = []
        for library in (accnp, jax):
            f, arguments = program.make(library)
            outs = library.tree_util.tree_leaves(library.eval_shape(f, *arguments))
            shapes.append([(x.shape, str(x.dtype)) for x in outs])
        assert shapes[0] == shapes[1], name
