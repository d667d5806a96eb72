"""NumPy arrays that are used without a copy, and `call_into`, which writes results to memory that
the caller owns.

The tests count copies into the buffer pool and allocations from it.
"""

from __future__ import annotations

import gc
import subprocess
import sys
from collections.abc import Callable
from multiprocessing import shared_memory
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import accnp as jnp
from accnp.api.jit import output_buffers
from accnp.runtime import buffer as pool
from accnp.runtime import memory_regions

N = 1 << 16


@pytest.fixture
def input_copies(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Record the sizes of large arrays that are copied into the pool."""
    sizes: list[int] = []
    copy_in = pool.copy_in

    def counted(array: np.ndarray) -> Any:
        if array.nbytes >= N:
            sizes.append(array.nbytes)
        return copy_in(array)

    monkeypatch.setattr(pool, "copy_in", counted)
    return sizes


@pytest.fixture
def path(tmp_path: Path) -> Path:
    np.save(tmp_path / "x.npy", np.arange(N, dtype=np.float32))
    return tmp_path / "x.npy"


def read_only() -> np.ndarray:
    x = np.arange(N, dtype=np.float32)
    x.flags.writeable = False
    return x


SOURCES: dict[str, Callable[[Path], np.ndarray]] = {
    "mapped file": lambda path: np.load(path, mmap_mode="r"),
    "part of a mapped file": lambda path: np.load(path, mmap_mode="r")[100:],
    "memmap": lambda path: np.memmap(path, np.float32, "r", offset=128),
    "read-only array": lambda path: read_only(),
    "bytes": lambda path: np.frombuffer(path.read_bytes(), np.float32, offset=128),
    "array of accnp": lambda path: np.asarray(jnp.arange(N, dtype=np.float32) + 0),
}
CALLS: dict[str, Callable[[Any], Any]] = {
    "asarray": jnp.asarray,
    "device_put": jnp.device_put,
    "jit": jnp.jit(lambda x: x + 1),
    "donating jit": jnp.jit(lambda x: x + 1, donate_argnums=0),
    "eager": lambda x: jnp.sum(jnp.multiply(x, 2)),
    "grad": jnp.grad(lambda x: (x * x).sum()),
    "scan": lambda x: jnp.lax.scan(lambda c, v: (c + v, None), 0.0, x),
}


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("source", SOURCES)
def test_immutable_memory_is_not_copied(
    source: str, call: str, path: Path, input_copies: list[int]
) -> None:
    x = SOURCES[source](path)
    before = x.copy()
    for _ in range(4):
        jnp.block_until_ready(CALLS[call](x))
    assert input_copies == []
    np.testing.assert_array_equal(x, before)


@pytest.mark.parametrize(
    "source",
    [
        lambda path: np.zeros(N, np.float32),
        lambda path: np.load(path, mmap_mode="r+"),
        lambda path: np.load(path, mmap_mode="c"),
        lambda path: np.frombuffer(memoryview(bytearray(4 * N)).toreadonly(), np.float32),
        lambda path: np.broadcast_to(np.zeros(N, np.float32), (N,)),
    ],
)
def test_mutable_memory_is_copied(source: Any, path: Path, input_copies: list[int]) -> None:
    x = source(path)
    jnp.asarray(x).block_until_ready()
    assert len(input_copies) == 1
    jnp.jit(lambda x: x + 1)(x).block_until_ready()
    assert len(input_copies) == 2


def test_no_kernel_writes_to_a_mapped_file(path: Path, input_copies: list[int]) -> None:
    x = np.load(path, mmap_mode="r")
    expected = np.array(x)
    y = jnp.asarray(x)
    y = y.at[3:9].set(7) + 1
    z = jnp.jit(lambda x: jnp.lax.fori_loop(0, 3, lambda i, x: x.at[i].set(1.0), x))(x)
    donated = jnp.asarray(x)
    jnp.jit(lambda x: x * 2 + 1, donate_argnums=0)(donated).block_until_ready()
    jnp.block_until_ready((y, z))
    np.testing.assert_array_equal(x, expected)
    assert float(y[3]) == 8
    assert float(z[1]) == 1


def test_a_mapped_file_is_not_read_into_memory(tmp_path: Path) -> None:
    """The resident memory of the process grows only by the pages of the file that the sum reads,
    which the system can drop. RssAnon does not include them.
    """
    path = tmp_path / "large.npy"
    np.lib.format.open_memmap(path, "w+", np.float32, (1 << 24,))[:] = 1  # 64 MB
    code = f"""
import numpy as np, accnp as jnp
def own():
    with open("/proc/self/status") as file:
        return next(int(x.split()[1]) for x in file if x.startswith("RssAnon"))
f = jnp.jit(lambda x: (jnp.sin(x) ** 2 + jnp.cos(x) ** 2).sum())
x = np.load({str(path)!r}, mmap_mode="r")
f(x[:1000]).block_until_ready(); float(f(x[:1 << 22])); before = own()
assert abs(float(f(x)) - (1 << 24)) < 100
assert abs(float(f(jnp.asarray(x))) - (1 << 24)) < 100
print(own() - before)
"""
    grown = int(subprocess.check_output([sys.executable, "-c", code], text=True))
    assert grown < 16_000  # kB


# --- call_into -----------------------------------------------------------------------------------


@pytest.fixture
def allocated(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Record the sizes of large buffers that launches allocate from the pool."""
    sizes: list[int] = []
    empty = pool.empty

    def counted(nbytes: int) -> Any:
        if nbytes >= N:
            sizes.append(nbytes)
        return empty(nbytes)

    monkeypatch.setattr(pool, "empty", counted)
    return sizes


X = np.linspace(0, 1, N, dtype=np.float32)
ROWS = X.reshape(8, -1)


def called_on_host(carry: Any, row: Any) -> tuple[Any, Any]:
    """Run one step of a loop that runs in Python, not in machine code."""
    row = jnp.pure_callback(lambda x: np.asarray(x) + 1, row, row)
    return carry, row * 2


PROGRAMS_WITH_OUTPUT: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "map": (lambda x: jnp.sin(x) * 2, (X,)),
    "two results": (lambda x: {"a": x + 1, "b": (x > 0.5, x.sum())}, (X,)),
    "matrix product": (lambda a, b: a @ b, (X.reshape(256, 256), X.reshape(256, 256))),
    "sums of rows": (lambda a: a.sum(axis=1), (X.reshape(-1, 2),)),
    "concatenate": (lambda x: jnp.concatenate([x, x[::-1]]), (X,)),
    "update": (lambda x: x.at[5:9].set(1), (X,)),
    "scatter": (lambda x: x.at[jnp.array([1, 1, 5])].add(1), (X,)),
    "argument": (lambda x: (x, x), (X,)),
    "constant": (lambda x: jnp.zeros(N), (X,)),
    "sort": (lambda x: jnp.sort(-x), (X,)),
    "cumsum": (lambda x: jnp.cumsum(x), (X,)),
    "loop": (lambda x: jnp.lax.fori_loop(0, 3, lambda i, x: jnp.sin(x), x), (X,)),
    "library": (lambda x: jnp.fft.fft(x).real, (X,)),
    "view": (lambda a: a.T, (X.reshape(16, -1),)),
    "nothing": (lambda x: (x[:0], None), (X,)),
    "library in rounds": (lambda x: jnp.fft.fft(x), (np.tile(X, 16),)),
    "native scan": (lambda a: jnp.lax.scan(lambda c, x: (c + x, c * x), a[0], a), (ROWS,)),
    "scan": (lambda a: jnp.lax.scan(called_on_host, a[0], a)[1], (ROWS,)),
}
COPIED_RESULTS = {"argument": 2, "nothing": 1}  # how many results; others are not copied
WITHOUT_ALLOCATION = (
    "map",
    "two results",
    "matrix product",
    "sums of rows",
    "concatenate",
    "constant",
)


@pytest.fixture
def result_copies(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Record the number of results that each call copies."""
    counts: list[int] = []
    copy = output_buffers._copy

    def counted(pairs: Any) -> None:
        counts.append(len(pairs))
        copy(pairs)

    monkeypatch.setattr(output_buffers, "_copy", counted)
    return counts


def empty_like(results: Any) -> Any:
    return jnp.tree.map(lambda x: np.empty(x.shape, x.dtype), results)


@pytest.mark.parametrize("name", PROGRAMS_WITH_OUTPUT)
def test_results_are_written(name: str, allocated: list[int], result_copies: list[int]) -> None:
    function, args = PROGRAMS_WITH_OUTPUT[name]
    f = jnp.jit(function)
    reference = jnp.tree.map(np.asarray, jnp.jit(function)(*args))
    out = empty_like(reference)
    operands = [jnp.asarray(x).block_until_ready() for x in args]
    del allocated[:]
    for _ in range(3):
        assert f.call_into(out, *operands) is out
    for actual, expected in zip(jnp.tree.leaves(out), jnp.tree.leaves(reference), strict=True):
        np.testing.assert_array_equal(actual, expected)
        assert actual.tobytes() == expected.tobytes()
    if name in WITHOUT_ALLOCATION:
        assert allocated == []
    assert result_copies == [COPIED_RESULTS.get(name, 0)] * 3


def test_call_into_writes_to_any_array(tmp_path: Path) -> None:
    f = jnp.jit(lambda x, *, out=1: x * 2 + out)  # a parameter of this name is the function's own
    target = np.lib.format.open_memmap(tmp_path / "y.npy", "w+", np.float32, X.shape)
    f.call_into(target, X, out=3)
    target.flush()
    np.testing.assert_array_equal(np.load(tmp_path / "y.npy"), X * 2 + 3)
    strided = np.zeros((N, 2), np.float32)
    f.call_into(strided[:, 1], X)
    np.testing.assert_array_equal(strided[:, 1], X * 2 + 1)
    assert not strided[:, 0].any()
    odd = np.zeros(4 * N + 1, np.uint8)[1:].view(np.float32)  # not aligned
    f.call_into(odd, X)
    np.testing.assert_array_equal(odd, X * 2 + 1)


def test_arguments_may_overlap() -> None:
    memory = np.arange(10.0, dtype=np.float32)
    shared = jnp.asarray(memory[:8], copy=False)
    jnp.jit(lambda x: x[::-1] * 2).call_into(memory[1:9], shared)
    np.testing.assert_array_equal(memory, [0, 14, 12, 10, 8, 6, 4, 2, 0, 9])
    both = np.zeros(8, np.float32)
    jnp.jit(lambda x: (x + 1, x + 2)).call_into((both[:4], both[2:6]), jnp.zeros(4))
    np.testing.assert_array_equal(both, [1, 1, 2, 2, 2, 2, 0, 0])


def test_results_that_are_arguments_are_read_before_arrays_are_written() -> None:
    def pair() -> tuple[np.ndarray, np.ndarray]:
        return np.arange(4, dtype=np.float32), np.arange(10, 14, dtype=np.float32)

    a, b = pair()
    old_a, old_b = pair()
    xa, xb = jnp.asarray(a, copy=False), jnp.asarray(b, copy=False)
    jnp.jit(lambda x, y: (y, x)).call_into((a, b), xa, xb)
    np.testing.assert_array_equal((a, b), (old_b, old_a))
    jnp.jit(lambda x, y: (y + 1, x)).call_into((a, b), xa, xb)
    np.testing.assert_array_equal((a, b), (old_a + 1, old_b))
    np.copyto(a, old_a)
    jnp.jit(lambda y: (y + xa, xa)).call_into((a, b), jnp.ones(4))  # closed over
    np.testing.assert_array_equal((a, b), (old_a + 1, old_a))
    np.copyto(a, old_a)
    with jnp.disable_jit():
        jnp.jit(lambda x: (x * 2, x)).call_into((a, b), xa)
    np.testing.assert_array_equal((a, b), (old_a * 2, old_a))
    np.copyto(a, old_a)
    columns = np.zeros((4, 2), np.float32)
    x = jnp.asarray(columns.reshape(8), copy=False)
    columns[...] = np.arange(8).reshape(4, 2)
    jnp.jit(lambda x: (x[:4], x[4:])).call_into((columns[:, 1], columns[:, 0]), x)
    np.testing.assert_array_equal(columns.T, [[4, 5, 6, 7], [0, 1, 2, 3]])


MAPPED: dict[str, Callable[..., Any]] = {
    "roll": lambda x: jnp.roll(x, 1) + 0,
    "transpose": lambda x: x.reshape(N // 8, 8).T.reshape(N),
    "argument": lambda x: x,
    "reversed twice": lambda x: (x[::-1], x),
    "product": lambda x: (x.reshape(256, 256) @ x.reshape(256, 256)).reshape(N),
}


@pytest.mark.parametrize("name", MAPPED)
@pytest.mark.parametrize("listed", [True, False], ids=["maps", "no maps"])
def test_a_file_that_is_mapped_twice(
    name: str, listed: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not listed:  # systems other than Linux
        monkeypatch.setattr(memory_regions, "_MAPS", tmp_path / "maps")
    f = jnp.jit(MAPPED[name])
    reference = jnp.tree.map(np.array, f(X))
    for _ in range(3):
        np.save(tmp_path / "x.npy", X)
        x = np.load(tmp_path / "x.npy", mmap_mode="r")
        own = np.load(tmp_path / "x.npy", mmap_mode="r+")
        out = (own, np.empty_like(X)) if isinstance(reference, tuple) else own
        f.call_into(out, x)
        for actual, expected in zip(jnp.tree.leaves(out), jnp.tree.leaves(reference), strict=True):
            np.testing.assert_array_equal(actual, expected)


def test_shared_memory_that_is_mapped_twice() -> None:
    one = shared_memory.SharedMemory(create=True, size=X.nbytes)
    two = shared_memory.SharedMemory(one.name)
    x, out = (np.ndarray(N, np.float32, m.buf) for m in (one, two))
    try:
        x[:] = X
        jnp.jit(lambda x: jnp.roll(x, 1) * 2).call_into(out, jnp.asarray(x, copy=False))
        np.testing.assert_array_equal(x, np.roll(X, 1) * 2)
    finally:
        del x, out
        gc.collect()  # a map with views cannot be closed
        one.unlink()


def test_other_files_and_other_parts_of_a_file_are_written_directly(
    tmp_path: Path, allocated: list[int]
) -> None:
    np.save(tmp_path / "x.npy", np.concatenate([X, X]))
    x = np.load(tmp_path / "x.npy", mmap_mode="r")
    own = np.load(tmp_path / "x.npy", mmap_mode="r+")
    other = np.lib.format.open_memmap(tmp_path / "y.npy", "w+", np.float32, X.shape)
    f = jnp.jit(lambda x: x * 2 + 1)
    for out in (other, own[N:]):
        f.call_into(out, x[:N])
        np.testing.assert_array_equal(out, X * 2 + 1)
    assert allocated == []
    f.call_into(own[1 : N + 1], x[:N])
    np.testing.assert_array_equal(own[1 : N + 1], X * 2 + 1)
    assert len(allocated) == 1


def test_call_into_under_disable_jit_and_with_references() -> None:
    f = jnp.jit(lambda x: x + 1)
    out = np.empty(3, np.float32)
    with jnp.disable_jit():
        f.call_into(out, jnp.zeros(3))
    np.testing.assert_array_equal(out, 1)
    ref = jnp.new_ref(jnp.zeros(3))

    @jnp.jit
    def g(x: jnp.Array) -> jnp.Array:
        ref[...] = x
        return x * 2

    g.call_into(out, jnp.ones(3))
    assert out.tolist() == [2, 2, 2]
    assert ref[...].tolist() == [1, 1, 1]
    donating = jnp.jit(lambda x: x + 5, donate_argnums=0)
    x = jnp.zeros(3)
    donating(jnp.zeros(3))
    donating.call_into(out, x)
    assert out.tolist() == [5, 5, 5]
    assert x.tolist() == [0, 0, 0]  # not donated: the result is elsewhere
    with jnp.explain():
        f.call_into(out, jnp.zeros(3))
    assert out.tolist() == [1, 1, 1]
    number = np.zeros((), np.int32)
    for off in (False, True):
        number[...] = 0
        with jnp.disable_jit(off):
            jnp.jit(lambda x: (1, x)).call_into((number, out), np.full(3, 4.0))
        assert number == 1
        assert out.tolist() == [4, 4, 4]


def test_methods_write_their_results_and_have_stages() -> None:
    class Scaled:
        def __init__(self, factor: float) -> None:
            self.factor = factor

        @jnp.jit
        def times(self, x: jnp.Array) -> jnp.Array:
            return x * self.factor

        def __eq__(self, other: object) -> bool:
            return isinstance(other, Scaled) and self.factor == other.factor

        def __hash__(self) -> int:
            return hash(self.factor)

    jnp.tree_util.register_static(Scaled)
    out = np.zeros(3, np.float32)
    times = Scaled(3).times
    assert times.call_into(out, jnp.ones(3)) is out
    assert out.tolist() == [3, 3, 3]
    assert times(jnp.ones(3)).tolist() == [3, 3, 3]
    assert times.eval_shape(jnp.ones(3)).shape == (3,)
    compiled = times.lower(jnp.ones(3)).compile()  # the instance stays an argument
    assert compiled(Scaled(3), jnp.ones(3)).tolist() == [3, 3, 3]
    assert times.trace(jnp.ones(3)).jaxpr.in_avals[0].shape == (3,)


@pytest.mark.parametrize(
    ("out", "error", "message"),
    [
        (np.empty(3, np.float64), TypeError, r"must have the dtype of the result, float32"),
        (np.empty(4, np.float32), ValueError, r"must have the shape of the result, \(3,\)"),
        ((np.empty(3, np.float32),), TypeError, "must have the structure of the results"),
        (np.empty(3, ">f4"), TypeError, r"float32; got >f4; pass an array of native byte order"),
        (read_only()[:3], TypeError, "one that is read-only"),
        (jnp.zeros(3), TypeError, r"writeable NumPy arrays.*np.empty\(\(3,\), 'float32'\)"),
    ],
)
def test_call_into_refuses_unsuitable_targets(
    out: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        jnp.jit(lambda x: x + 1).call_into(out, jnp.zeros(3))


def test_random_keys_cannot_be_written() -> None:
    for off in (False, True):
        with (
            jnp.disable_jit(off),
            pytest.raises(
                TypeError, match=r"got a result of dtype key<fry>; return random.key_data"
            ),
        ):
            jnp.jit(lambda: [jnp.random.key(0)]).call_into([np.zeros(2, np.uint32)])


def test_traced_results_cannot_be_written() -> None:
    f = jnp.jit(lambda x: x + 1)
    with pytest.raises(jnp.errors.TracerArrayConversionError):
        jnp.jit(lambda x: f.call_into(np.empty(3, np.float32), x))(jnp.zeros(3))
