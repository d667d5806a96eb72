"""A few random programs and operations on array lifetimes with fixed seeds, and tests that injected
faults are detected.

`python -m tests.chance` runs more seeds, until a time limit.
"""

import sys
import warnings

import pytest
from chance import __main__ as runner
from chance import execution_modes
from chance.allocation_failures import CASES, check_allocation_failures
from chance.array_lifetimes import check_lifetimes, missing_libraries
from chance.programs import generate_program
from cuda.fake import gpus
from sampling import seeds

import accnp
import accnp.numpy as jnp


@pytest.fixture(autouse=True)
def _ignore_warnings():
    """Ignore warnings about invalid casts and NaNs, which random programs cause."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@pytest.fixture(scope="module")
def gpu():
    with gpus():
        yield accnp.devices("gpu")[0]


@pytest.mark.parametrize("kind", ["eager", "threads"])
@pytest.mark.parametrize("first", range(0, 60, 15))
def test_programs(kind, first):
    for seed in range(first, first + 15):
        assert execution_modes.check_program(kind, seed) is None


@pytest.mark.parametrize("seed", range(8))
def test_lives(seed):
    assert check_lifetimes(seed, accnp.devices("cpu")[0]) is None


class TestFakeGpu:
    @pytest.mark.parametrize("seed", seeds(1, 4))
    def test_programs(self, gpu, seed):
        assert execution_modes.check_program("gpu", seed, small=True) is None

    def test_lives(self, gpu):
        assert check_lifetimes(1, gpu, small=True) is None

    @pytest.mark.full
    def test_shortage(self, gpu):
        assert len(CASES) > 10
        assert check_allocation_failures(0, gpu, small=True) is None


def test_seeds_determine_programs():
    assert generate_program(7) == generate_program(7)
    assert generate_program(7) != generate_program(8)
    for seed in range(50):
        p = generate_program(seed)
        assert p.cut(p.outputs[0]).lines
        compile(p.reproducer(), "reproducer", "exec")


def test_injected_fault_is_minimized(monkeypatch):
    """`roll` is wrong if it is traced."""
    real = jnp.roll

    def roll(x, *args):
        rolled = real(x, *args)
        return rolled + 1 if isinstance(x, accnp.core.Tracer) else rolled

    monkeypatch.setattr(jnp, "roll", roll)
    seed = next(s for s in range(999) if ".roll(" in generate_program(s, most=300).text())
    p = generate_program(seed, most=300)
    failure = execution_modes.shorten_program(
        "eager", p, next(execution_modes.find_failures("eager", p))
    )
    assert failure.text.count("jnp.roll(") == 1
    assert len(p.cut(failure.output).lines) <= len(p.lines)


def test_runner_reports_failures_and_crashes(monkeypatch, capsys):
    planted = """
import sys
sys.path[:0] = ["tests"]
from chance import execution_modes, worker
def check(kind, seed, fake, tell):
    if seed in (1, 3):
        tell("ValueError: no")
    if seed == 4:
        import os
        os.abort()
    return execution_modes.Failure("jit", "v1", "other bits", "text") if seed == 2 else None
execution_modes.check_program = check
from chance.__main__ import main
sys.exit(main())
"""
    monkeypatch.setattr(runner, "COMMAND", [runner.sys.executable, "-c", planted])
    arguments = ["2", "--processes", "1", "--against", "eager", "--seed", "0"]
    monkeypatch.setattr(runner, "UNLIMITED_SEEDS", 6)
    assert runner.main(arguments) == 1
    output = capsys.readouterr().out
    assert "=== eager 2: jit: other bits\ntext" in output
    assert "=== eager 4: the process ended with -6" in output
    assert "2 refused by all ways in like manner\n    2 ValueError: no\n" in output


def test_unexpected_error_counts_as_failure(monkeypatch):
    """One way of running the program refuses it, and another raises an unexpected error."""
    p = generate_program(7)

    def ways_of(*errors):
        def raising(error):
            def run():
                raise error

            return run

        raising_ways = [(f"way {i}", raising(e)) for i, e in enumerate(errors)]
        monkeypatch.setitem(execution_modes.KINDS, "eager", lambda *_: iter(raising_ways))
        messages = []
        return list(execution_modes.find_failures("eager", p, tell=messages.append)), messages

    assert ways_of(ValueError("a"), ValueError("b")) == ([], ["ValueError: a "])
    (failure,) = ways_of(ValueError("a"), SystemError("b"))[0]
    assert (failure.way, failure.what) == ("way 1", "SystemError: b , for ValueError")
    assert len(ways_of(SystemError("a"))[0]) == 1


def test_missing_library_is_reported(gpu, monkeypatch):
    missing_libraries.__globals__["_library"].cache_clear()
    monkeypatch.setitem(sys.modules, "torch", None)
    assert any(why.startswith("torch cannot be imported (") for why in missing_libraries(gpu))
    assert missing_libraries(accnp.devices("cpu")[0]) == []
    missing_libraries.__globals__["_library"].cache_clear()


def test_cpu_variant_uses_accnp(gpu, monkeypatch):
    """Programs that were not jitted used to call the methods of NumPy arrays."""
    p = generate_program(7)
    arguments = []
    monkeypatch.setattr(type(p), "function", lambda self: lambda *xs: arguments.extend(xs))
    for seed in range(6):
        (_, way), *_ = execution_modes.gpu_modes(p, p.arrays(), execution_modes.random.Random(seed))
        way()
    assert arguments
    assert all(isinstance(x, accnp.Array) for x in arguments)
