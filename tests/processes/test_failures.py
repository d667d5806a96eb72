"""Processes that wait for others: timeouts, mismatched collectives, interrupts and
error messages.
"""

from __future__ import annotations

import re

import pytest
from processes.launch import launch

import accnp as jnp
from accnp import engine
from accnp.config import scope

START = """
import sys, time, accnp as jax
from accnp import P
jax.distributed.initialize()
me, n = jax.process_index(), jax.process_count()
mesh = jax.make_mesh((n,), ("x",), (jax.sharding.AxisType.Auto,))
x = jax.numpy.arange(float(n))
shift = [(0, 1)]
f = jax.shard_map(lambda a: jax.lax.psum(a, "x"), mesh=mesh, in_specs=P("x"), out_specs=P())
g = jax.shard_map(lambda a: jax.lax.ppermute(a, "x", shift), mesh=mesh, in_specs=P("x"),
                  out_specs=P("x"))
f(x).block_until_ready()
"""


def test_timeout_names_missing_processes() -> None:
    text = START + (
        "jax.config.update('collective_timeout', 0.5)\n"
        "if me == 1: time.sleep(30)\n"
        "jax.jit(f)(x).block_until_ready()\n"
    )
    ended = launch(3, text)
    assert ended.code == 1
    assert ended.seconds < 20
    message = re.search(
        r"accnp: DEADLINE_EXCEEDED: collective: process [02] waited (.*)", ended.err
    )
    assert message
    for part in (
        "in collective 1, psum of float32[1] over 'x'",
        "processes that have not reached a collective since: 1;",
        "recorded at <string>:9 (<lambda>)",
    ):
        assert part in message[1]
    assert "accnp.errors.JaxRuntimeError: DEADLINE_EXCEEDED" in ended.err


def test_first_collective_has_a_timeout() -> None:
    text = START.replace("f(x).block_until_ready()\n", "") + (
        "jax.config.update('collective_timeout', 0.5)\n"
        "if me == 1: time.sleep(30)\n"
        "f(x).block_until_ready()\n"
    )
    ended = launch(2, text)
    assert ended.code == 1
    assert ended.seconds < 20
    assert "processes that have not reached a collective since: 1;" in ended.err


def test_timeout_reports_where_other_processes_wait() -> None:
    text = START + (
        "jax.config.update('collective_timeout', 0.5 if me == 0 else 60.0)\n"
        "(f if me == 0 else g)(x).block_until_ready()\n"
        "f(x).block_until_ready()\n"
    )
    ended = launch(2, text)
    assert ended.code == 1
    assert "process 1 waits in another one: ppermute of float32[1]" in ended.err


def expect_different_collectives(text: str) -> None:
    """Run a program in which one process calls psum and the other one ppermute."""
    ended = launch(2, text)
    assert ended.code == 1
    assert (
        "accnp: FAILED_PRECONDITION: collective: the processes are in different collectives: "
        "process 0: psum of float32[1]"
    ) in ended.err
    assert "DEADLINE_EXCEEDED" not in ended.err
    assert "in psum, recorded at" in ended.err or "in ppermute, recorded at" in ended.err
    assert "psum_invariant" not in ended.err
    assert "process 1: ppermute of float32[1] over 'x' {'perm': ((0, 1),)}" in ended.err
    assert "recorded at <string>:" in ended.err


def test_debug_mode_finds_different_collectives() -> None:
    text = START + (
        "jax.config.update('debug_collectives', True)\nf(x).block_until_ready()\n"
        "(f if me == 0 else g)(x).block_until_ready()\n"
    )
    expect_different_collectives(text)


def test_debug_mode_compares_messages_that_compiled_programs_send() -> None:
    """The option also applies to programs compiled before it was set."""
    text = START + (
        "def h(op):\n"
        "    loop = lambda a: jax.lax.fori_loop(0, 3, lambda i, c: op(c) / n, a)\n"
        "    return jax.jit(jax.shard_map(loop, mesh=mesh, in_specs=P('x'), out_specs=P('x'), "
        "check_vma=False))\n"
        "h_sum = h(lambda c: jax.lax.psum(c, 'x'))\n"
        "h_shift = h(lambda c: jax.lax.ppermute(c, 'x', shift))\n"
        "for each in h_sum, h_shift:\n"
        "    each(x).block_until_ready()\n"
        "    assert 'a native loop' in str(jax.inspect(each)(x))\n"
        "jax.config.update('debug_collectives', True)\n"
        "h_sum(x).block_until_ready()\n"
        "(h_sum if me == 0 else h_shift)(x).block_until_ready()\n"
    )
    expect_different_collectives(text)


def test_missing_memory_for_a_message_is_an_error_with_its_size() -> None:
    text = START + (
        "from accnp.runtime import compiled_messages\n"
        "loop = jax.jit(lambda x: jax.lax.fori_loop(0, 2, lambda i, c: c + f(x), x))\n"
        "loop(x).block_until_ready()\n"
        "try:\n"
        "    compiled_messages._handle_message(0, -4096, (), [])\n"
        "except MemoryError as error:\n"
        "    print(error)\n"
    )
    ended = launch(2, text)
    assert ended.code == 0
    assert "no memory for psum of float32[1] over 'x'; got a request of 4096 bytes" in ended.out


def test_plans_do_not_depend_on_the_debug_mode() -> None:
    x = jnp.arange(7.0)
    for _ in range(3):
        (x * 3 - 1).block_until_ready()
    before = dict(engine.counters)
    with scope("debug_collectives", True):
        (x * 3 - 1).block_until_ready()
    assert engine.counters["plans"] == before["plans"]


def test_timeout_applies_in_native_loops() -> None:
    text = START + (
        "loop = lambda a: jax.lax.fori_loop(0, 9, lambda i, c: jax.lax.psum(c, 'x') / n, a)\n"
        "h = jax.jit(jax.shard_map(loop, mesh=mesh, in_specs=P('x'), out_specs=P(), "
        "check_vma=False))\n"
        "assert h(x).addressable_data(0) == (n - 1) / 2\n"
        "assert 'a native loop' in str(jax.inspect(h)(x))\n"
        "jax.config.update('collective_timeout', 0.5)\n"
        "if me == 1: time.sleep(30)\n"
        "h(x).block_until_ready()\n"
    )
    ended = launch(2, text)
    assert ended.code == 1
    assert ended.seconds < 20
    assert "in collective 10, psum of float32[1] over 'x'; processes that have not" in ended.err
    assert "accnp.errors.JaxRuntimeError: DEADLINE_EXCEEDED" in ended.err
    assert "recorded at <string>:13 (<lambda>)" in ended.err


def test_errors_of_mpi_are_raised_by_compiled_programs() -> None:
    text = START + (
        "def cut(a):\n"
        "    y = jax.lax.ppermute(a[: 2 - me] * 2, 'x', [(0, 1), (1, 0)])\n"
        "    return jax.numpy.zeros(2).at[: y.shape[0]].set(y)\n"
        "h = jax.jit(jax.shard_map(cut, mesh=mesh, in_specs=P('x'), out_specs=P('x'), "
        "check_vma=False))\n"
        "try:\n"
        "    h(jax.numpy.arange(4.0)).block_until_ready()\n"
        "    assert me == 0\n"
        "except Exception as error:\n"
        "    assert me == 1 and 'truncated' in str(error), error\n"
        "    assert 'in ppermute, recorded at <string>' in error.__notes__[0]\n"
    )
    ended = launch(2, text)
    assert ended.code == 0, ended.err


@pytest.mark.parametrize(("form", "calls"), [("", 1), ("jax.jit", 1), ("jax.jit", 20)])
def test_messages_that_a_signal_interrupts_write_to_no_other_array(form: str, calls: int) -> None:
    """After some calls of a jitted function, the extension launches its program directly."""
    text = START + (
        "import signal\n"
        f"h = {form}(jax.shard_map(lambda a: jax.lax.ppermute(a * 2, 'x', [(0, 1), (1, 0)]), "
        "mesh=mesh, in_specs=P('x'), out_specs=P('x'), check_vma=False))\n"
        "x = jax.numpy.ones(1000) * 5\n"
        f"for _ in range({calls}): h(x).block_until_ready()\n"
        "if me == 1:\n"
        "    time.sleep(1)\n"
        "    h(x).block_until_ready()\n"
        "    sys.exit()\n"
        "signal.signal(signal.SIGALRM, lambda *_: 1 // 0)\n"
        "signal.setitimer(signal.ITIMER_REAL, 0.2)\n"
        "try: h(x).block_until_ready()\n"
        "except ZeroDivisionError: pass\n"
        "arrays = [(jax.numpy.zeros(500) + i + 0).block_until_ready() for i in range(60)]\n"
        "from mpi4py import MPI\n"
        "end = time.monotonic() + 1.5\n"
        "while time.monotonic() < end: MPI.COMM_WORLD.Iprobe()\n"
        "assert [set(a.tolist()) for a in arrays] == [{i} for i in range(60)]\n"
    )
    ended = launch(2, text)
    assert ended.code == 0, ended.err


@pytest.mark.parametrize(("function", "calls"), [
    ("lambda a: gathered(a * 2)", 1), ("lambda a: gathered(a * 2)", 20),
    ("lambda a: called(gathered(called(a)))", 1),
])  # fmt: skip
def test_the_buffers_of_an_interrupted_message_are_kept(function: str, calls: int) -> None:
    """Whether Python launches the program, a dispatch entry does, or it runs step by step."""
    text = START + (
        "import signal\n"
        "from accnp.runtime import mpi\n"
        "from accnp.runtime.buffer import Buffer\n"
        "gathered = lambda a: jax.lax.all_gather(a, 'x').reshape(2, 2)\n"
        "called = lambda a: jax.pure_callback(abs, jax.ShapeDtypeStruct(a.shape, a.dtype), a)\n"
        f"h = jax.jit(jax.shard_map({function}, mesh=mesh, in_specs=P('x'), out_specs=P('x'), "
        "check_vma=False))\n"
        "x = jax.numpy.arange(4.0)\n"
        f"for _ in range({calls}): jax.block_until_ready(h(x))\n"
        "if me == 1:\n"
        "    time.sleep(1)\n"
        "    jax.block_until_ready(h(x))\n"
        "    sys.exit()\n"
        "signal.signal(signal.SIGALRM, lambda *_: 1 // 0)\n"
        "signal.setitimer(signal.ITIMER_REAL, 0.2)\n"
        "try: jax.block_until_ready(h(x))\n"
        "except ZeroDivisionError: pass\n"
        "kept = [b for b in mpi.world()._abandoned if isinstance(b, Buffer)]\n"
        "print('kept', len(kept), [b.nbytes for b in kept])\n"
        "from mpi4py import MPI\n"
        "end = time.monotonic() + 1.5\n"
        "while time.monotonic() < end: MPI.COMM_WORLD.Iprobe()\n"
    )
    ended = launch(2, text)
    assert ended.code == 0, ended.err
    assert "kept 2" in ended.out  # of the operand and of the result


@pytest.mark.parametrize("message", ["ppermute(c, 'x', [(0, 1), (1, 0)])", "psum(c, 'x') / 2"])
def test_messages_of_loops_that_a_signal_interrupts_are_not_received_by_later_ones(
    message: str,
) -> None:
    text = START + (
        "import signal\n"
        "def run(a, count):\n"
        "    def step(c):\n"
        f"        return jax.lax.{message}\n"
        "    return jax.lax.while_loop(lambda c: c[0] < count, "
        "lambda c: (c[0] + 1, step(c[1])), (0, a))[1]\n"
        "h = jax.jit(jax.shard_map(run, mesh=mesh, in_specs=(P('x'), P()), out_specs=P('x'), "
        "check_vma=False))\n"
        "x = jax.device_put(jax.numpy.arange(2.0), jax.NamedSharding(mesh, P('x')))\n"
        "h(x, 1).block_until_ready()\n"
        "if me == 1:\n"
        "    time.sleep(1)\n"
        "    h(x + 10, 1).block_until_ready()\n"
        "else:\n"
        "    signal.signal(signal.SIGALRM, lambda *_: 1 // 0)\n"
        "    signal.setitimer(signal.ITIMER_REAL, 0.2)\n"
        "    try: h(x + 10, 1).block_until_ready()\n"
        "    except ZeroDivisionError: pass\n"
        "    else: raise AssertionError('there was no signal')\n"
        "value = float(h(x + 20, 1).addressable_shards[0].data[0])\n"
        f"assert value == {20.5 if 'psum' in message else '21 - me'}, value\n"
    )
    ended = launch(2, text)
    assert ended.code == 0, ended.err
