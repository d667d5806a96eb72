"""Asynchronous execution has no effects visible to users, except through `is_ready`."""

import threading
import time

import numpy as np
import pytest

import accnp as jnp
from accnp.array_type import from_numpy, wrap
from accnp.ir.node import items, record
from accnp.ir.op import OPS, Op

RELEASE = threading.Event()


def _slow(x):
    RELEASE.wait(5)
    return x + 1


def _broken(x):
    raise ArithmeticError("this operation never works")


def _two(x):
    return x + 1, x * 2


# Ops for these tests only, which are not in the table.
SLOW = Op("slow_for_tests", "opaque", lambda x: x, numpy=_slow, cost=1 << 30)
BROKEN = Op("broken_for_tests", "opaque", lambda x: x, numpy=_broken, cost=1 << 30)
TWO = Op("two_for_tests", "opaque", lambda x: (x, x), numpy=_two, cost=1)


def apply(op, x):
    return wrap(record(op, (x._node,)))


@pytest.fixture
def slow():
    RELEASE.clear()
    yield lambda x: apply(SLOW, x)
    RELEASE.set()


def ones(n=10):
    return jnp.asarray(np.ones(n, np.float32))


def test_later_changes_of_numpy_array_have_no_effect():
    a = np.ones(10, np.float32)
    x = jnp.asarray(a)
    y = x + 1
    a[:] = 7
    np.testing.assert_array_equal(np.asarray(y), 2)
    np.testing.assert_array_equal(np.asarray(x), 1)


def test_results_are_read_only():
    y = np.asarray(ones() + 1)
    with pytest.raises(ValueError, match="read-only"):
        y[0] = 3


def test_a_view_outlives_its_array():
    y = np.asarray(ones(5000) * 3)
    for k in range(20):
        (ones(5000) * float(k)).block_until_ready()
    np.testing.assert_array_equal(y, 3)


def test_a_slow_operation_is_a_future(slow):
    x = slow(ones())
    later = x * 2 + 1
    assert not x.is_ready()
    assert not later.is_ready()
    RELEASE.set()
    np.testing.assert_array_equal(np.asarray(later), 5)
    assert x.is_ready()


def test_work_runs_in_the_order_of_dispatch(slow):
    seen = []
    first = Op(
        "first_for_tests",
        "opaque",
        lambda x: x,
        numpy=lambda x: seen.append(1) or x + 0,
        cost=1 << 30,
    )
    second = Op(
        "second_for_tests",
        "opaque",
        lambda x: x,
        numpy=lambda x: seen.append(2) or x + 0,
        cost=1 << 30,
    )
    x = slow(ones())
    a = apply(first, x)
    b = apply(second, ones())
    RELEASE.set()
    b.block_until_ready()
    assert seen == [1, 2]
    a.block_until_ready()


def test_error_is_raised_at_the_wait_and_names_the_users_line(slow):
    gate = slow(ones())
    bad = apply(BROKEN, gate)  # the line that is named
    worse = bad + 1
    RELEASE.set()
    for x in (bad, worse, worse):
        with pytest.raises(ArithmeticError, match="never works") as caught:
            x.block_until_ready()
        assert "test_laziness.py" in "".join(caught.value.__notes__)
    np.testing.assert_array_equal(np.asarray(gate + 1), 3)


def test_unaffected_operations_continue_after_an_error():
    x = ones()
    with pytest.raises(ArithmeticError):
        apply(BROKEN, x).block_until_ready()
    np.testing.assert_array_equal(np.asarray(x * 2), 2)


def test_operations_with_two_results():
    x = ones()
    a, b = items(record(TWO, ((x + 1)._node,)))
    total = wrap(a) + wrap(b)
    np.testing.assert_array_equal(np.asarray(total), 7)
    np.testing.assert_array_equal(np.asarray(wrap(a)), 3)


def test_two_results_of_a_slow_operation(slow):
    x = slow(ones())
    a, b = items(record(TWO, (x._node,)))
    assert not wrap(b).is_ready()
    total = wrap(a) * 10 + wrap(b)
    RELEASE.set()
    np.testing.assert_array_equal(np.asarray(total), 34)


def test_jit_on_pending_arguments(slow):
    f = jnp.jit(lambda x, y: (x + y, x * y))
    x = slow(ones())
    pending = ones() * 4
    a, b = f(x, pending)
    c = pending + a
    RELEASE.set()
    np.testing.assert_array_equal(np.asarray(b), 8)
    np.testing.assert_array_equal(np.asarray(c), 10)


def test_half_precision_goes_through_library_calls():
    for dtype in (np.float16, jnp.bfloat16):
        x = from_numpy(np.arange(6, dtype=np.float32).astype(dtype).reshape(2, 3))
        y = (x.T + x.T) * x.T
        np.testing.assert_array_equal(
            np.asarray(y).astype(np.float32), (2 * np.arange(6.0).reshape(2, 3) ** 2).T
        )
        assert y.dtype == np.dtype(dtype)


def test_threads_read_one_pending_graph():
    for _ in range(20):
        x = ones(1000)
        parts = [x * float(k) + 1 for k in range(8)]
        total = parts[0]
        for p in parts[1:]:
            total = jnp.sin(total) + p
        results, errors = [], []

        def read_values(y=total, parts=parts, results=results, errors=errors):
            try:
                for p in parts:
                    np.asarray(p)
                results.append(np.asarray(y)[0])
            except Exception as error:
                errors.append(error)

        threads = [threading.Thread(target=read_values) for _ in range(4)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        assert not errors
        assert len(set(results)) == 1


def test_waiting_for_ready_values_is_fast():
    x = ones()
    start = time.perf_counter()
    for _ in range(1000):
        x.block_until_ready()
    assert time.perf_counter() - start < 0.5


def test_test_ops_are_not_registered():
    assert not [name for name in OPS if "for_tests" in name]
