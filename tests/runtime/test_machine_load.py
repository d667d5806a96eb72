"""Timings on a busy machine are marked: spin loops, `Load`, and the report of `explain`."""

import os

import pytest

import accnp as jnp
from accnp.devtools.explain import explain as explaining
from accnp.devtools.explain.plan_facts import StepFacts
from accnp.runtime import bandwidth, machine_load
from accnp.runtime.machine_load import Load

BUSY = Load(0.5, 0.1, 2)
QUIET = Load(0.01, 0.1, 2)


def ticks(monkeypatch, *seconds):
    """Make the clock of the spin loops advance by these steps, repeatedly."""
    now, steps = 0.0, [0.0, *seconds]

    def clock():
        nonlocal now
        now += steps.pop(0) if len(steps) > 1 else steps[0]
        return now

    monkeypatch.setattr(machine_load, "perf_counter", clock)
    monkeypatch.setattr(machine_load, "_shortest", {})


def test_equal_times_are_those_of_a_quiet_machine(monkeypatch):
    monkeypatch.setattr(os, "getloadavg", lambda: (0.5, 0.5, 0.5), raising=False)
    ticks(monkeypatch, 1e-3)
    load = machine_load.machine_load(threads=1)
    assert load.lost == pytest.approx(0.0, abs=1e-6)
    assert not load.busy
    assert str(load).startswith("quiet machine: a fixed loop takes 0% longer than at best")


def test_times_above_the_shortest_are_lost(monkeypatch):
    ticks(monkeypatch, 1e-3, 2e-3)
    load = machine_load.machine_load(threads=1)
    assert 0.4 < load.lost < 0.5
    assert load.busy
    assert "busy machine" in str(load)


def test_shortest_time_is_process_time(monkeypatch):
    ticks(monkeypatch, 2e-3)
    monkeypatch.setitem(machine_load._shortest, 1, 1e-3)
    assert machine_load.machine_load(threads=1).lost == pytest.approx(0.5)


@pytest.mark.parametrize(("cpus", "threads"), [(1, 1), (3, 3), (64, 8)])
def test_one_spin_thread_per_available_cpu(monkeypatch, cpus, threads):
    monkeypatch.setattr(machine_load, "default_threads", lambda: cpus)
    monkeypatch.setattr(machine_load, "_shortest", {})
    load = machine_load.machine_load(threads=100)
    assert list(machine_load._shortest) == [threads]
    assert 0 <= load.lost < 1
    assert load.cpus == os.cpu_count()


@pytest.mark.parametrize(("average", "busy"), [(None, False), (2.4, False), (2.6, True)])
def test_the_load_average_counts_too(average, busy):
    assert Load(0.0, average, 2).busy == busy


def test_the_higher_of_two_loads_counts():
    assert QUIET.worse_of(BUSY) == BUSY.worse_of(QUIET) == BUSY
    assert QUIET.worse_of(None) == QUIET
    many = Load(0.0, 9.0, 2)  # busy by its load average
    assert QUIET.worse_of(many) == many


@pytest.mark.parametrize(("load", "marked"), [(BUSY, True), (QUIET, False)])
def test_explain_marks_its_figures(monkeypatch, load, marked):
    monkeypatch.setattr(explaining, "machine_load", lambda: load)
    monkeypatch.setattr("accnp.devtools.explain.plan_facts.limit_load", lambda device: QUIET)
    e = jnp.explain(jnp.exp, jnp.ones(1000))
    assert e.load == load
    assert ("(unreliable: busy machine)" in e.status) == marked
    assert all(("unreliable" in s.figures) == marked for p in e.plans for s in p.steps)
    assert ("Unreliable times" in e.html()) == marked
    assert str(load) in str(e)
    assert e.advice == []


@pytest.mark.parametrize(
    ("nbytes", "load", "words"),
    [
        (1 << 20, QUIET, "GB/s, faster than a copy: from the cache"),
        (1 << 28, QUIET, "unreliable: the copy was slow)"),
        (1 << 28, BUSY, "unreliable: the copy was slow, on a busy machine)"),
    ],
)
def test_bandwidth_share_above_the_limit_is_explained(monkeypatch, nbytes, load, words):
    monkeypatch.setattr("accnp.devtools.explain.plan_facts.bandwidth", lambda device: 1e9)
    monkeypatch.setattr("accnp.devtools.explain.plan_facts.limit_load", lambda device: load)

    class Step:
        pass

    step = Step()
    step.nbytes = nbytes
    facts = StepFacts(step, 0, "a step")
    facts.ran(nbytes / 2e9)
    assert "%" not in facts.figures
    assert words in facts.figures
    facts.seconds = nbytes / 4e8
    assert facts.figures.endswith("40% of a copy")


def test_a_copy_beside_other_work_takes_more_rounds(monkeypatch):
    moves = []
    monkeypatch.setattr(bandwidth, "_rates", {})
    monkeypatch.setattr(bandwidth, "_loads", {})
    monkeypatch.setattr(bandwidth, "streaming_copy", lambda moved: lambda: moves.append(moved))
    monkeypatch.setattr(bandwidth, "machine_load", lambda: BUSY)
    assert bandwidth.bandwidth() > 0
    assert len(moves) == 1 + bandwidth._BUSY_ROUNDS
    assert bandwidth.limit_load() == BUSY
