"""The driver of real GPUs, over a stand-in for CuPy in host memory: which stream waits for which
event, and when memory is freed.
"""

import ctypes
import gc
import os
import threading
from types import SimpleNamespace

import numpy as np
import pytest
from cuda.host_cupy import COMPUTE, IN, OUT, Blas
from numpy._core import _multiarray_umath as _multiarray

from accnp.runtime import cupy_driver
from accnp.runtime.cupy_driver import LARGE_COPY
from accnp.runtime.driver import NotCaptured


def test_device_and_kernel_properties(cuda):
    d = cuda.driver
    assert (d.kind, d.cc, d.wave, d.stream) == ("NVIDIA H200", (9, 0), 1056, COMPUTE)
    assert d.stats() == {"used": 150, "kept": 50, "free": 650, "total": 1000}
    f = d.load(".version", "k")
    assert d.facts(f) == {"registers": 40, "local": 8, "shared": 16}


def test_launch_parameters_are_64_bit_words(cuda):
    f = cuda.driver.load(".version", "k")
    cuda.driver.launch(f, 3, 128, [1 << 40, -2])
    assert cuda.launched == [(99, (3, 1, 1), (128, 1, 1), 0, COMPUTE, [1 << 40, (1 << 64) - 2], 0)]


def test_large_shared_memory_is_requested(cuda):
    f = cuda.driver.load(".version", "k")
    del cuda.log[:]
    cuda.driver.launch(f, 3, 128, [0, 0], 48 << 10)
    assert cuda.log == []
    cuda.driver.launch(f, 3, 128, [0, 0], 100 << 10)
    assert cuda.log == [("asked for", 99, 80, 100 << 10)]


def test_copies(cuda):
    d, log = cuda.driver, cuda.log
    small = np.arange(10, dtype="f4")
    memory = d.upload(small)
    assert ("copy", 1, COMPUTE) in log
    back = np.empty_like(small)
    del log[:]
    d.copy_out(memory, 8, back[:4].view(np.uint8), None)
    np.testing.assert_array_equal(back[:4], small[2:6])
    assert log == [(OUT, "waits for", COMPUTE), ("copy", 2, OUT), (OUT, "synchronized")]


def test_large_copies_run_beside_kernels(cuda):
    d, log = cuda.driver, cuda.log
    large = np.ones(LARGE_COPY, np.uint8)
    del log[:]
    memory = d.upload(large)
    # Its memory comes from the stream of copies, which waits for nothing; what computes waits.
    assert log == [
        ("current", IN), ("current", None), ("copy", 1, IN), (COMPUTE, "waits for", IN),
    ]  # fmt: skip
    (staged,) = d._retired
    owner = memory.owner
    del memory  # kernels may still read it: it stays until they are done
    assert [x for _, x in d._retired][-1] is owner
    for event, _ in d._retired:
        event.done = True
    d.alloc(4)
    assert not d._retired
    assert staged[1].nbytes == LARGE_COPY


def test_memory_is_returned(cuda):
    cuda.driver.free_all()
    assert cuda.log[-2:] == ["freed", "freed"]
    assert (COMPUTE, "synchronized") in cuda.log


def test_calls_are_on_the_stream(cuda):
    del cuda.log[:]
    assert cuda.driver.call(lambda a, b: a + b, 1, b=2) == 3
    assert cuda.log == [("current", COMPUTE), ("current", None)]
    event = cuda.driver.event()
    assert not cuda.driver.done(event)
    cuda.driver.wait(event)
    assert cuda.driver.done(event)


def test_forked_child_raises_an_error(cuda, monkeypatch):
    """CUDA itself reports only an initialization error."""
    driver = cuda.driver
    monkeypatch.setattr(cupy_driver, "_lost", False)
    event = driver.event()
    cupy_driver._mark_contexts_lost()
    for use in (driver.event, lambda: driver.alloc(8), lambda: driver.wait(event), driver.enter):
        with pytest.raises(RuntimeError, match=r"cuda:0: CUDA does not work in .*forked.*'spawn'"):
            use()


def test_elapsed_time_between_events(cuda):
    begin, end = cuda.driver.event(True), cuda.driver.event(True)
    assert begin.timed
    assert end.timed
    assert not cuda.driver.event().timed
    assert cuda.driver.elapsed(begin, end) == 1e-3  # CuPy tells milliseconds


def test_machine_code_calls_nvidias_driver(cuda, monkeypatch):
    libraries = []

    def library(name):
        libraries.append(name)
        functions = {
            name: ctypes.cast(k, ctypes.c_void_p)
            for k, name in enumerate(
                ["cuLaunchKernel", "cuMemcpyDtoDAsync_v2", "cuMemcpyDtoHAsync_v2",
                 "cuStreamSynchronize", "cuGraphLaunch", "cuEventRecord", "cuEventSynchronize"], 1
            )
        }  # fmt: skip
        return SimpleNamespace(**functions)

    monkeypatch.setattr(cupy_driver.ctypes, "CDLL", library)
    assert cuda.driver.entries() == (1, 2, 3, 4, 5, 6, 7)
    assert "cuda" in libraries[0]
    assert cuda.driver.handle(cuda.driver.load(".version", "k")) == 99
    assert str(cuda.driver.failure(700)) == "CUDA says 700"


def test_host_polls_a_word_written_by_the_gpu(cuda):
    word, event, (pinned, mark) = cuda.driver.flag()
    assert word == pinned.ptr
    assert pinned.nbytes == 8
    assert (event, mark.timed) == (mark.ptr, False)


def test_gemm_is_checked_before_direct_calls(cuda, monkeypatch):
    blas = Blas(cuda, monkeypatch)
    address, handle = cuda.driver.blas()
    assert address == ctypes.cast(blas.function, ctypes.c_void_p).value
    assert handle == 5
    assert cuda.driver.blas() == (address, handle)
    assert blas.handles == [[5, COMPUTE]]  # the handle is our own: its stream stays


@pytest.mark.parametrize(("wrong", "why"), [(1, "is wrong"), (15, "got status 15")])
def test_failed_gemm_check_falls_back_to_cupy(cuda, monkeypatch, wrong, why):
    Blas(cuda, monkeypatch, wrong)
    with pytest.warns(UserWarning, match=why):
        assert cuda.driver.blas() == (0, 0)


def test_products_can_be_left_to_cupy(cuda, monkeypatch):
    monkeypatch.setenv("ACCNP_GPU_PRODUCTS", "cupy")
    assert cuda.driver.blas() == (0, 0)


CAPTURE = 14


def test_a_capture_has_a_stream_and_memory_of_its_own(cuda):
    d, log = cuda.driver, cuda.log
    f, threads = d.load(".version", "k"), []

    def work():
        threads.append(threading.current_thread())
        d.launch(f, 1, 32, [1, 2])
        d.copy(cuda.memory.ctypes.data, cuda.memory.ctypes.data, 0)
        return ["array"]

    del log[:]
    graph = d.capture(work)
    assert (graph.handle, graph.value) == (500 + CAPTURE, ["array"])
    # Once as it is, and once captured; nothing of it is on the stream that computes.
    assert [launched[4] for launched in cuda.launched] == [CAPTURE, CAPTURE]
    assert log == [
        (CAPTURE, "waits for", COMPUTE), "its own memory", ("current", CAPTURE),
        ("copy", 3, CAPTURE), (CAPTURE, "synchronized"), (CAPTURE, "begins to capture"),
        ("copy", 3, CAPTURE), (CAPTURE, "captured"), ("current", None), "memory of all",
    ]  # fmt: skip
    assert threads[0] is threads[1] is not threading.current_thread()
    d.launch(f, 1, 32, [1, 2])
    assert cuda.launched[-1][4] == COMPUTE
    # Plans of Fourier transforms and the pool stay until all launches so far have run.
    owners = graph.references
    assert "a plan" in owners[1]
    del graph
    gc.collect()
    assert d._retired[-1][1] is owners


@pytest.mark.parametrize("when", [1, 2])
def test_operations_that_cannot_be_captured(cuda, when):
    d, log, count = cuda.driver, cuda.log, []

    def work():
        count.append(1)
        if len(count) == when:
            log.append(("broken", CAPTURE))
            raise NotImplementedError("calling cuSOLVER API during stream capture")

    with pytest.raises(NotCaptured, match="NotImplementedError: calling cuSOLVER"):
        d.capture(work)
    assert ((CAPTURE, "captured") in log) == (when == 2)  # the stream is left as it was
    assert log[-1] == ("current", None) or log[-1] == "memory of all"
    assert d.capture(lambda: []).handle == 501 + CAPTURE


def test_graphs_are_optional(cuda, monkeypatch):
    monkeypatch.setenv("ACCNP_GPU_GRAPHS", "0")
    with pytest.raises(NotCaptured, match="ACCNP_GPU_GRAPHS"):
        cuda.driver.capture(lambda: pytest.fail("asked for nothing"))


def test_no_memory_while_capturing(cuda):
    def work():
        raise MemoryError("out of memory")

    with pytest.raises(MemoryError):
        cuda.driver.capture(work)


def test_libraries_are_found_where_they_are_loaded():
    path = os.path.realpath(_multiarray.__file__)  # some library that this process has loaded
    assert cupy_driver._find_loaded_library(os.path.basename(path)[:12]) == path
    with pytest.raises(OSError, match="no-such is not loaded"):
        cupy_driver._find_loaded_library("no-such")


def test_arrays_over_memory(cuda):
    memory = SimpleNamespace(ptr=1 << 20)
    f4 = np.dtype("f4")
    shape, dtype, (owner, offset), strides = cuda.driver.array(memory, 8, (2, 3), f4, (4, 8))
    assert (shape, dtype, offset, strides) == ((2, 3), f4, 8, (4, 8))
    assert owner[0] == memory.ptr
    assert owner[1] >= 8 + 4 + 16 + 4
    assert owner[2] is memory
    assert cuda.driver.knows(f4)
    assert not cuda.driver.knows(np.dtype("U1"))
