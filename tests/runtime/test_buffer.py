"""The buffer pool: lifetime, reuse, views, bounds, threads."""

import gc
import os
import threading

import ml_dtypes
import numpy as np
import pytest

from accnp.runtime import buffer


def test_blocks_are_aligned_and_large_enough():
    for nbytes in [0, 1, 63, 64, 65, 1000, 4096, 4097, 5000, 300_000, 5_000_000]:
        block = buffer.empty(nbytes)
        assert block.ptr % buffer.ALIGN == 0
        assert block.nbytes == nbytes
        assert buffer.blocks(nbytes).size >= nbytes
        view = block.view((nbytes,), np.uint8, writeable=True)
        view[:] = 7
        assert (view == 7).all()


@pytest.mark.parametrize("nbytes", [100, 5000, 3_000_000])
def test_freed_blocks_are_reused_and_referenced_blocks_are_not(nbytes):
    first = buffer.empty(nbytes)
    address = first.ptr
    view = first.view((nbytes,), np.uint8)
    piece = view[1:][::2]
    del first, view
    gc.collect()
    other = buffer.empty(nbytes)
    assert other.ptr != address, "memory under a slice of a view was handed out"
    del piece
    again = buffer.empty(nbytes)
    assert again.ptr == address


def test_read_only_views_stay_read_only():
    view = buffer.empty(64).view((4,), np.float32)
    with pytest.raises(ValueError, match="WRITEABLE"):
        view.flags.writeable = True
    wrapped = buffer.wrap(np.arange(4.0)).view((4,), np.float64)
    with pytest.raises(ValueError, match="read-only"):
        wrapped[0] = 1


def test_wrap_shares_and_keeps_alive():
    array = np.arange(6.0)
    block = buffer.wrap(array)
    assert block.ptr == array.ctypes.data
    array[0] = 5
    del array
    np.testing.assert_array_equal(block.view((2, 3), np.float64), [[5, 1, 2], [3, 4, 5]])
    with pytest.raises(ValueError, match="C-contiguous"):
        buffer.wrap(np.zeros((4, 4))[:, ::2])


def test_wrap_takes_dtypes_without_the_buffer_protocol():
    array = np.array([1.5, 2.5], ml_dtypes.bfloat16)
    view = buffer.wrap(array).view((2,), array.dtype)
    assert view.dtype == ml_dtypes.bfloat16
    assert view.tolist() == [1.5, 2.5]
    assert buffer.wrap(array.reshape(2, 1)[:0]).nbytes == 0


@pytest.mark.parametrize("value", [np.int32(3), np.float64(0.5), np.complex64(1j), np.bool_(True)])
def test_copy_in_takes_scalars(value):
    copied = buffer.copy_in(value)
    assert copied.view((), value.dtype).item() == value.item()


def test_copy_in_does_not_follow_the_source():
    array = np.arange(12.0).reshape(3, 4).T
    block = buffer.copy_in(array)
    before = array.copy()
    array[:] = 0
    np.testing.assert_array_equal(block.view((4, 3), np.float64), before)


@pytest.mark.parametrize(
    ("value", "dtype"),
    [
        (1.5, "f4"), (2.5, "f8"), (-3, "i1"), (7, "u8"), (True, "b1"), (1 + 2j, "c8"),
        (0.5, "f2"), (1.5, ml_dtypes.bfloat16),
    ],
)  # fmt: skip
def test_from_scalar(value, dtype):
    dtype = np.dtype(dtype)
    assert buffer.from_scalar(value, dtype).view((), dtype)[()] == value


def test_too_large_request_reports_its_size():
    with pytest.raises(MemoryError, match=r"empty: .*1125899906842624 bytes.*smaller"):
        buffer.empty(1 << 50)
    with pytest.raises(MemoryError, match=r"use a smaller shape"):
        buffer.empty(1 << 70)
    with pytest.raises(ValueError, match="negative"):
        buffer.empty(-1)
    assert buffer.empty(64).nbytes == 64


def test_pool_size_is_bounded(monkeypatch):
    buffer.trim()
    monkeypatch.setattr(buffer._pool, "limit", 8 << 20)
    blocks = [buffer.empty(4 << 20) for _ in range(6)]
    live = buffer.pool_stats()["live_bytes"]
    del blocks
    stats = buffer.pool_stats()
    assert stats["live_bytes"] == live - 6 * (4 << 20)
    assert sum(b.size * len(b) for b in buffer._pool.sizes() if b.size > 4096) <= 8 << 20
    buffer.trim()
    assert not any(b for b in buffer._pool.sizes() if b.size > 4096)


def test_statistics_count():
    before = buffer.pool_stats()
    for _ in range(10):
        buffer.empty(100_000)
    after = buffer.pool_stats()
    assert after["reuses"] - before["reuses"] >= 9
    assert after["allocations"] - before["allocations"] <= 1


def test_threads_never_share_a_block():
    clashes = []

    def work(mark: int) -> None:
        for round_ in range(300):
            size = 64 << (round_ % 8)
            view = buffer.empty(size).view((size,), np.uint8, writeable=True)
            view[:] = mark
            other = buffer.empty(size)
            if not (view == mark).all() or other.ptr == view.ctypes.data:
                clashes.append(mark)

    threads = [threading.Thread(target=work, args=(mark,)) for mark in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not clashes


def test_wrap_finds_the_first_element():
    x = np.arange(1000.0)
    for y in (x, x[10:], x[3:3], x[7:].reshape(-1, 3), np.array(5)):
        assert buffer.wrap(y).ptr == y.ctypes.data


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("nbytes", [5000, 400_000, 5_000_000])
def test_a_forked_child_writes_into_memory_of_its_own(nbytes):
    block = buffer.empty(nbytes)
    view = block.view((nbytes,), np.uint8, writeable=True)
    view[:] = 1
    child = os.fork()
    if child == 0:
        view[:] = 2
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert (view == 1).all()
