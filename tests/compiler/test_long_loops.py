"""Loops whose bodies are long: compile time stays linear in the length of the program.

LLVM takes more than linear time for one long function, so a loop calls its kernels once they are
too long to be inlined, and starts in the first of two tiers.
"""

import numpy as np
import pytest

import accnp
import accnp.numpy as jnp
from accnp import lax
from accnp.compiler import background_compile, kernel_cache
from accnp.compiler.frontend import program
from accnp.compiler.llvm import objects
from accnp.compiler.llvm.entry import DRIVER
from accnp.config import cache_dir

BY_LLVM = True

BOTH_TIERS = True


@pytest.fixture
def no_upgrades(monkeypatch):
    """No thread upgrades kernels: `kernel_cache.wait_for_background()` does."""
    kernel_cache.wait_for_background()
    monkeypatch.setattr(background_compile, "_thread", object())
    kernel_cache.clear_kernels()
    with cache_dir(""):
        yield
        kernel_cache.wait_for_background()


def rotate(vector, quaternion):
    s, u = quaternion[0], quaternion[1:]
    r = 2 * (jnp.dot(u, vector) * u) + (s * s - jnp.dot(u, u)) * vector
    return r + 2 * s * jnp.cross(u, vector)


def bodies(count):
    """A step of rigid bodies in a chain: `count` times some 60 operations on vectors of 3 and 4."""

    def step(carry, _):
        q, v, w = carry
        for k in range(count):
            force = rotate(v, q)
            w = w + 0.01 * jnp.cross(v, force) - 0.1 * w * jnp.linalg.norm(w)
            moved = q + 0.005 * (k + 1) * jnp.concatenate([jnp.zeros(1), w])
            q = moved / jnp.linalg.norm(moved)
            v = v + 0.01 * force + jnp.where(force > 0, jnp.sin(w), jnp.tanh(v)) * 0.01
        return (q, v, w), v

    return lambda *carry: lax.scan(step, carry, None, length=5)


STATE = (
    np.array([1, 0, 0, 0], np.float32),
    np.array([0.1, 0.2, 0.3], np.float32),
    np.array([0.3, 0.1, 0.2], np.float32),
)


def leaves(tree):
    return [np.asarray(x) for x in accnp.tree.leaves(tree)]


def calls_its_kernels(monkeypatch):
    """A list that gets, for each kernel that is lowered from now on, whether it calls others
    instead of inlining them."""
    calls = []
    lower = program.lower_source

    def watched(*args):
        lowered = lower(*args)
        calls.append(DRIVER in lowered[0])
        return lowered

    monkeypatch.setattr(program, "lower_source", watched)
    return calls


def test_kernels_of_a_long_body_are_called_and_those_of_a_short_one_inlined(
    no_upgrades, monkeypatch
):
    calls = calls_its_kernels(monkeypatch)
    accnp.block_until_ready(accnp.jit(bodies(1))(*STATE))
    assert not any(calls)
    accnp.block_until_ready(accnp.jit(bodies(16))(*STATE))
    assert any(calls)


def test_the_longest_function_does_not_grow_with_the_program(no_upgrades, monkeypatch):
    monkeypatch.setattr(program, "MAX_INLINED", 100_000)
    lengths = []
    passed = objects._run_and_free

    def watched(module, *args):
        if DRIVER not in str(module):  # a list of calls, which no pass takes long for
            lengths.append(max([len(str(f)) for f in module.functions]))
        return passed(module, *args)

    monkeypatch.setattr(objects, "_run_and_free", watched)
    longest = []
    for count in (8, 16):
        del lengths[:]
        kernel_cache.clear_kernels()
        accnp.block_until_ready(accnp.jit(bodies(count))(*STATE))
        kernel_cache.wait_for_background()
        longest.append(max(lengths))
    assert longest[1] <= 1.1 * longest[0]


@pytest.mark.parametrize("limit", [0, 10**9])
def test_calls_and_inlining_match_bitwise(no_upgrades, monkeypatch, limit):
    monkeypatch.setattr(program, "MAX_INLINED", limit)
    expected = leaves(accnp.jit(bodies(2))(*STATE))
    with accnp.disable_jit():
        by_steps = leaves(bodies(2)(*STATE))
    for a, b in zip(expected, by_steps, strict=True):
        np.testing.assert_array_equal(a, b)


def test_a_long_loop_starts_in_the_first_tier_and_gets_whole_code(no_upgrades, monkeypatch):
    monkeypatch.setattr(program, "MAX_INLINED", 0)
    monkeypatch.setattr("accnp.engine.steps.LONG_TEXT", 0)
    f = accnp.jit(bodies(1))
    first = leaves(f(*STATE))
    waiting = [u for u in background_compile._waiting if len(u.parts) > 1]
    assert len(waiting) == 1
    before = waiting[0].kernel.address
    kernel_cache.wait_for_background()
    assert waiting[0].kernel.address != before
    for a, b in zip(first, leaves(f(*STATE)), strict=True):
        np.testing.assert_array_equal(a, b)


def test_long_loops_are_found_on_disk(tmp_path, monkeypatch):
    monkeypatch.setattr(program, "MAX_INLINED", 0)
    with cache_dir(str(tmp_path)):
        kernel_cache.clear_kernels()
        first = leaves(accnp.jit(bodies(1))(*STATE))
        kernel_cache.wait_for_background()
        kernel_cache.clear_kernels()
        compiles = kernel_cache.counters.compiles
        again = leaves(accnp.jit(bodies(1))(*STATE))
        assert kernel_cache.counters.compiles == compiles
    kernel_cache.clear_kernels()
    for a, b in zip(first, again, strict=True):
        np.testing.assert_array_equal(a, b)
