"""The hot path in C and its Python fallback behave alike, and neither leaks nor loses
references.
"""

from __future__ import annotations

import ctypes
import gc
import importlib
import importlib.util
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import weakref
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import threadpoolctl

import accnp as jnp
from accnp import _native
from accnp._native import COMPILED, fallback
from accnp.config import _quota
from accnp.config import threads as on_threads
from accnp.runtime import buffer, dispatch_entries, threads

NATIVE = [fallback, importlib.import_module("accnp._native._core")] if COMPILED else [fallback]
NAMES = ["Python", "C"]


@pytest.fixture(params=NATIVE, ids=NAMES[: len(NATIVE)])
def native(request: pytest.FixtureRequest) -> Any:
    return request.param


def run(text: str, *options: str, **environment: str) -> str:
    """Return the output of a process, which must end without errors and warnings."""
    done = subprocess.run(
        [sys.executable, *options, "-c", text],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


# --- the two implementations ---


def test_extension_and_fallback_have_the_same_names() -> None:
    for name in fallback.__all__:
        assert all(hasattr(module, name) for module in [_native, *NATIVE]), name


def test_extension_and_fallback_number_modes_and_kinds_equally(native: Any) -> None:
    names = ["KEEP_GIL", "RELEASE_GIL", "WITH_HELPERS", "WITH_AWAKE_HELPERS"]
    assert [getattr(native, name) for name in names] == [0, 1, 2, 3]
    names = ["ARRAY", "TUPLE", "LIST", "DICT", "SAME", "NUMBER"]
    assert [getattr(native, name) for name in names] == [0, 1, 2, 3, 4, 5]


def test_extension_and_fallback_have_the_same_size_classes(native: Any) -> None:
    pool, reference = native.Pool(1 << 30), fallback.Pool(1 << 30)
    sizes = [0, 1, *[(1 << k) + d for k in range(5, 62) for d in (-1, 0, 1)], 3 << 20, 5 << 30]
    for n in sizes:
        blocks = pool.blocks(n)
        assert blocks.size == reference.blocks(n).size >= n
        assert blocks is pool.blocks(n)
    listed = [b.size for b in pool.sizes()]
    assert listed == sorted({b.size for b in reference.sizes()})


@pytest.mark.parametrize("nbytes", [-1, -(1 << 70), 1 << 63])
def test_invalid_sizes_are_rejected(native: Any, nbytes: int) -> None:
    class Pool(native.Pool):
        def _allocate(self, blocks: Any, nbytes: int) -> Any:
            assert blocks is None
            raise MemoryError(nbytes)

    with pytest.raises(ValueError if nbytes < 0 else MemoryError, match=str(nbytes)):
        Pool(1 << 20).empty(nbytes)


def test_pool_counts_allocations_and_frees() -> None:
    pool = buffer._pool
    first = pool.empty(1000)
    live, reuses = pool.live, pool.reuses
    size = first.size_class
    assert size >= 1000
    second = pool.empty(1000)
    pool.peak = 0
    assert pool.live == live + size
    del second
    bytes_before = pool.free_bytes
    third = pool.empty(999)
    assert (third.nbytes, third.size_class) == (999, size)
    assert pool.free_bytes == bytes_before - size
    assert pool.peak >= pool.live == live + size
    assert pool.reuses > reuses


def test_nodes_hold_references_to_their_attributes(native: Any) -> None:
    node = native.Node("op", (), {}, "aval", None, None, 3, None)
    assert (node.op, node.inputs, node.params, node.aval) == ("op", (), {}, "aval")
    assert (node.value, node.trace, node.depth, node.site, node.form) == (None, None, 3, None, None)
    node.depth, node.value = 7, "value"
    assert (node.depth, node.value) == (7, "value")
    del node.value
    with pytest.raises(AttributeError):
        node.value  # noqa: B018
    with pytest.raises(TypeError):
        native.Node("op")
    seen = weakref.ref(node)
    node.inputs = (node,)
    del node
    gc.collect()
    assert seen() is None


def test_long_chain_of_nodes_is_freed(native: Any) -> None:
    node = native.Node("op", (), {}, None, None, None, 0, None)
    for _ in range(300_000):
        node = native.Node("op", (node,), {}, None, None, None, 0, None)
    del node


def test_the_extension_loads_in_another_interpreter() -> None:
    if not COMPILED:
        pytest.skip("there is no extension")
    interpreters: Any = importlib.import_module(
        "_interpreters" if sys.version_info >= (3, 13) else "_xxsubinterpreters"
    )
    text = f"""
import importlib.util
spec = importlib.util.spec_from_file_location("accnp._native._core", {NATIVE[1].__file__!r})
core = importlib.util.module_from_spec(spec)
spec.loader.exec_module(core)
pool = core.Pool(1000)
assert pool.limit == 1000 and core.launches() == 0
"""
    before = _native.launches()
    for _ in range(3):
        other = interpreters.create()
        assert not interpreters.run_string(other, text)
        interpreters.destroy(other)
    assert _native.launches() == before


# --- wrong arguments, and user code that changes the objects being read ---


def uninstalled() -> Any:
    """Return a second copy of the extension without the hooks that the package installs."""
    spec = importlib.util.spec_from_file_location("accnp._native._core", NATIVE[1].__file__)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    assert spec.loader is not None
    spec.loader.exec_module(module)
    return module


class Shrinking(list[Any]):
    """Numbers that remove all others when they are read."""

    def __index__(self) -> int:
        WORDS.clear()
        return 1


WORDS: list[Any] = []


@pytest.mark.skipif(not COMPILED, reason="there is no extension")
def test_wrong_arguments_raise() -> None:
    core: Any = NATIVE[1]
    bare = uninstalled()
    node = bare.Node("op", (), {}, None, None, None, 0, None)
    with pytest.raises(RuntimeError, match="install_arrays"):
        bare.wrap(node)
    pool = bare.Pool(1 << 20)
    pool.blocks(100).fill(0, 1000)
    with pytest.raises(AttributeError, match="_allocate"):  # no class of buffers
        pool.empty(100)
    blocks = core.Pool(1 << 20).blocks(0)
    blocks.fill((1 << 64) - 100, (1 << 64) - 10)
    assert len(blocks) == 1
    pool = core.ThreadPool()
    for place in (-1, 0, 255, 1 << 40):
        with pytest.raises(ValueError, match="reserved"):
            pool.run_helper(place)
        with pytest.raises(ValueError, match="reserved"):
            pool.add_helper(place, 1)
    WORDS[:] = [Shrinking() for _ in range(1000)]
    assert core.Record(WORDS, (), 5).keeps == 5
    form = core.Form(None, None, None, False)
    node_words = [1, 2, 0, 0, 0, 0, 0, 1, 0, 0, 2, 0, 2, -1, -2]
    record = core.Record(node_words, (form,), None)
    for inputs in ((5, 6), [node, node], None):
        pending = core.Node(None, inputs, {}, None, None, None, 1, None, form)
        assert not core.dispatch_pending((record,), pending)


@pytest.mark.skipif(not COMPILED, reason="there is no extension")
def test_a_record_outlives_the_pool() -> None:
    class Called(_native.Caller):
        def _call_uncached(self) -> str:
            return "by Python"

    pool: Any = _native.Pool(1 << 20)
    blocks = pool.blocks(64)
    blocks.fill(64, 1024)
    f: Any = Called()
    # A buffer to make, a table that is never reached, and None as the result.
    words = [*[0] * 9, 1, 2, 0, -1, 1, 0, 0, 1, 0, 64, 4, 2]
    f._records = (_native.Record(words, (blocks, lambda leaves: "by a function", None), ()),)
    del pool
    assert f() == "by a function"


def test_functions_in_their_own_records_are_collected(native: Any) -> None:
    class Called(native.Caller):
        __slots__ = ("__weakref__",)

    f: Any = Called()
    f._records = (native.Record([*[0] * 10, 2, *[0] * 6], (f,), None),)
    seen = weakref.ref(f)
    del f
    gc.collect()
    assert seen() is None


def test_select_accepts_unhashable_types(native: Any) -> None:
    class Meta(type):
        def __eq__(cls, other: object) -> bool:
            return cls is other

    class Plain(metaclass=Meta):
        pass

    one, two = Plain(), Plain()
    kinds: list[Any] = []

    def is_wanted(kind: Any) -> bool:
        kinds.append(kind)
        return kind is Plain

    assert native.select([one, 1, two, 2], is_wanted) == [one, two]
    assert len(kinds) == 2
    objects: list[Any] = [[] for _ in range(1000)]

    def clear(kind: type) -> bool:
        objects.clear()
        return True

    assert len(native.select(objects, clear)) in (0, 1)


@pytest.mark.skipif(not COMPILED, reason="there is no extension")
def test_exporting_values_that_are_the_array_again() -> None:
    class Endless(_native.ArrayBase):
        def _values(self) -> Any:
            return self

    with pytest.raises(RecursionError):
        memoryview(Endless())  # type: ignore[arg-type]


# --- exceptions of signal handlers ---


class Stop(Exception):
    pass


def stop(*_: object) -> None:
    raise Stop


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="the system has no timers")
def test_a_shared_launch_that_is_interrupted_ends_when_its_helpers_do(native: Any) -> None:
    me, inside, ended = threading.get_ident(), threading.Event(), threading.Event()

    @ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 2, *[ctypes.c_int64] * 2)
    def kernel(argv: int, counter: int, n: int, chunk: int) -> None:
        if threading.get_ident() == me:
            inside.wait(20)
        elif not inside.is_set():
            inside.set()
            ended.wait(0.5)
            ended.set()

    pool = native.ThreadPool()
    helper = threading.Thread(target=pool.run_helper, args=(pool.reserve(),), daemon=True)
    helper.start()
    pool.add_helper(0, helper.native_id or 0)
    address = ctypes.c_size_t.from_buffer(kernel).value
    before = signal.signal(signal.SIGALRM, stop)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.2)
        with pytest.raises(Stop):
            native.launch_parallel(address, 2, 1, pool.address, 1)
        assert ended.is_set()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_an_exception_in_a_function_that_a_kernel_calls_is_raised_after_it() -> None:
    pool = fallback.ThreadPool()

    def share(*_: int) -> None:
        raise Stop

    pool.run = share  # type: ignore[method-assign]
    spread = fallback._PARALLEL_FOR(fallback.PARALLEL_FOR)

    @ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 2, *[ctypes.c_int64] * 2)
    def kernel(argv: int, counter: int, n: int, chunk: int) -> None:
        spread(0, 0, 2, 1, pool.address, 1)

    with pytest.raises(Stop):
        fallback.launch_released(ctypes.c_size_t.from_buffer(kernel).value, 1, 1)
    fallback.launch_released(fallback.COPY, 1, 1, 0, 0, 0)


def test_interrupted_launch_completes_remaining_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """An exception may end the function that takes parts between two of them."""
    monkeypatch.setattr(threads, "launch_parallel", lambda *_: None)
    done: list[tuple[int, int]] = []
    threads.parallel_calls(lambda a, b: done.append((a, b)), 5, 2)
    assert sorted(done) == [(0, 2), (2, 4), (4, 5)]


# --- the buffer protocol ---

HAS_BUFFERS = COMPILED or sys.version_info >= (3, 12)


@pytest.mark.parametrize("dtype", ["float32", "int16", "bool", "complex64", "uint8"])
def test_arrays_export_their_memory(dtype: str) -> None:
    x = jnp.arange(6).reshape(2, 3).astype(dtype) * 1
    if not HAS_BUFFERS:
        with pytest.raises(TypeError, match="bytes-like object is required, not 'Array'"):
            memoryview(x)
        return
    view = memoryview(x)
    reference = np.asarray(x).data
    assert (view.shape, view.format, view.readonly) == (reference.shape, reference.format, True)
    assert bytes(view) == np.asarray(x).tobytes()
    assert np.shares_memory(np.frombuffer(view, np.uint8), np.asarray(x))


def test_a_view_outlives_its_array() -> None:
    if not HAS_BUFFERS:
        return
    x = jnp.arange(1000.0) + 1
    view = memoryview(x)
    del x
    others = [jnp.zeros(1000) + k for k in range(5)]
    jnp.stack(others).block_until_ready()
    assert view[999] == 1000.0


def test_values_that_cannot_be_exported() -> None:
    with pytest.raises((TypeError, ValueError, BufferError)):
        memoryview(jnp.ones(3, "bfloat16"))

    def f(x: Any) -> Any:
        memoryview(x)
        return x

    with pytest.raises(TypeError):
        jnp.jit(f)(1.0)
    x = jnp.ones(3)
    x.delete()
    with pytest.raises((RuntimeError, TypeError), match=r"deleted|bytes-like"):
        memoryview(x)


# --- nothing is lost, nothing is kept ---


class Part:
    """A registered class whose flatten function first runs an action of the test."""

    act: Any = None

    def __init__(self, a: Any, b: Any, tag: Any = "tag") -> None:
        self.a, self.b, self.tag = a, b, tag


def flatten_part(part: Part) -> tuple[tuple[Any, Any], Any]:
    if Part.act is not None:
        Part.act(part)
    return (part.a, part.b), part.tag


jnp.tree_util.register_pytree_node(
    Part, flatten_part, lambda tag, children: Part(*children, tag=tag)
)
ONES = np.ones(4, "float32")
add_parts = jnp.jit(lambda part: part.a + part.b)
add = jnp.jit(lambda x, y: x + y)
times = jnp.jit(lambda x, n: x * n[0], static_argnums=1)
called_back = jnp.jit(lambda x, k: jnp.pure_callback(np.sin, x, x) * k)


def matched(x: Any) -> list[Any]:
    """Return results of calls whose arguments involve Python functions."""
    return [
        add_parts(Part(x, x, ("tag", 1))),
        add_parts(Part(x, x, ("tag", 2))),
        add(x, ONES),
        add(x, ONES[:1]),
        add(x, np.float32(2)),
        add(x * 2, x),
        times(x, (70000, "text")),
        called_back(x, 2.0),
    ]


PROGRAMS = {
    "matched": lambda f, x: matched(x),
    "call": lambda f, x: f(x, {"a": x, "b": [x, 2.0]}),
    "misfit": lambda f, x: f(x, {"a": 1.0, "b": [x, 2]}),
    "eager": lambda f, x: (x + 1) * x,
    "reading": lambda f, x: np.asarray(x * 2).data,
    "error": lambda f, x: refused(f, x, {"a": x, "b": [x, "text"]}),
}


def refused(f: Any, *args: Any) -> None:
    with pytest.raises(TypeError):
        f(*args)


@pytest.mark.parametrize("name", PROGRAMS)
def test_references_balance(name: str) -> None:
    f = jnp.jit(lambda x, tree: {"sum": x + tree["a"] * tree["b"][1], "same": [x, tree["b"][0]]})
    x = jnp.arange(4.0)
    program = PROGRAMS[name]
    for _ in range(60):
        jnp.block_until_ready(program(f, x))
    known = (None, True, (), x, x._node, x._node.aval, type(x._node), jnp.Array)
    lost = []
    for _ in range(3):
        gc.collect()
        before = [sys.getrefcount(k) for k in known]
        for _ in range(300):
            jnp.block_until_ready(program(f, x))
        gc.collect()
        lost.append(max(abs(sys.getrefcount(k) - n) for k, n in zip(known, before, strict=True)))
    assert min(lost) < 150  # a fault loses 300 each time


def test_a_ufunc_forwards_calls_and_attributes(native: Any) -> None:
    def f(*args: Any, **kwargs: Any) -> Any:
        """Return the arguments."""
        return args, kwargs

    f.nin = 2  # type: ignore[attr-defined]
    ufunc = native.Ufunc(f)
    assert ufunc(1, *range(9), a=2, **{"b": 3}) == ((1, *range(9)), {"a": 2, "b": 3})
    assert ufunc() == ((), {})
    assert ufunc.__func__ is f
    assert (ufunc.nin, ufunc.__doc__, ufunc.__name__) == (2, f.__doc__, "f")
    assert repr(ufunc) == str(ufunc) == "<jnp.ufunc 'f'>"
    assert ufunc not in (native.Ufunc(f), f)
    ufunc.note = 1
    assert f.note == 1  # type: ignore[attr-defined]
    with pytest.raises(AttributeError, match="f: property 'nin' of 'ufunc' object has no setter"):
        ufunc.nin = 3
    with pytest.raises(AttributeError, match="f: property 'nin' of 'ufunc' object has no deleter"):
        del ufunc.nin
    with pytest.raises(AttributeError):
        ufunc.__func__ = 3
    with pytest.raises(AttributeError, match="absent"):
        _ = ufunc.absent
    for arguments in (), (3,), (f, f):
        with pytest.raises(TypeError):
            native.Ufunc(*arguments)
    with pytest.raises(TypeError):
        native.Ufunc(function=f)
    with pytest.raises(ZeroDivisionError):
        native.Ufunc(lambda x: 1 // x)(0)


def test_references_of_ufuncs_balance(native: Any) -> None:
    def f(x: Any, *, key: Any = None) -> Any:
        return x

    ufunc, x = native.Ufunc(f), object()
    known = (f, x, ufunc, native.Ufunc, f.__qualname__, f.__dict__)

    def use() -> None:
        ufunc(x)
        ufunc(x, key=x)
        other = native.Ufunc(f)
        weakref.ref(other)
        other.note = x
        assert (other.note, repr(other), other.__reduce__()) == (
            x,
            "<jnp.ufunc 'f'>",
            f.__qualname__,
        )
        del other.note
        for act in (lambda: setattr(other, "nin", x), lambda: other.absent, lambda: ufunc(x, x)):
            with pytest.raises((AttributeError, TypeError)):
                act()

    use()
    gc.collect()
    before = [sys.getrefcount(k) for k in known]
    for _ in range(300):
        use()
    gc.collect()
    assert max(abs(sys.getrefcount(k) - n) for k, n in zip(known, before, strict=True)) < 10


def test_ufuncs_in_cycles_are_collected(native: Any) -> None:
    def f() -> None: ...

    ufunc = native.Ufunc(f)
    f.made = ufunc  # type: ignore[attr-defined]
    ended: list[int] = []
    weakref.finalize(ufunc, ended.append, 1)
    del f, ufunc
    gc.collect()
    assert ended == [1]


def test_buffers_in_garbage_cycles_are_freed() -> None:
    """The collector may clear a cycle that contains a buffer, but must not free the
    memory in use."""
    for _ in range(30):
        x = jnp.zeros(100_000) + 1
        node: Any = x._node
        jnp.block_until_ready(x)
        cycle: list[Any] = [node.value]
        cycle.append(cycle)
        del x, node, cycle
        gc.collect()
        assert float((jnp.zeros(100_000) + 2).sum()) == 200_000


USERS_ERRORS = [ZeroDivisionError, IndexError, TypeError, StopIteration, KeyboardInterrupt]


@pytest.mark.parametrize("error", USERS_ERRORS)
@pytest.mark.parametrize("where", ["flatten", "children", "hash", "eq"])
def test_exceptions_of_the_users_functions_are_not_lost(
    monkeypatch: pytest.MonkeyPatch, where: str, error: type[BaseException]
) -> None:
    if (where, error) == ("hash", TypeError):
        return  # static data need not have a hash
    x = jnp.ones(3)
    on: list[str] = []

    def act(place: str) -> None:
        if place in on:
            raise error("of the user's function")

    class Tag:
        def __hash__(self) -> int:
            act("hash")
            return 5

        def __eq__(self, other: object) -> bool:
            act("eq")
            return type(other) is Tag

    class Items:
        def __iter__(self) -> Any:
            act("children")
            return iter([x, x])

    class Mine:
        pass

    def flatten(mine: Mine) -> tuple[Items, Tag]:
        act("flatten")
        return Items(), Tag()

    jnp.tree_util.register_pytree_node(Mine, flatten, lambda tag, children: children)
    f = jnp.jit(lambda pair: pair[0] + pair[1])
    for _ in range(40):
        f(Mine())
    assert f._records  # type: ignore[attr-defined]
    for _ in range(3):
        on.append(where)
        with pytest.raises(error, match="of the user's function"):
            f(Mine())
        on.clear()
        np.testing.assert_array_equal(f(Mine()), 2)


@pytest.mark.parametrize(
    "name", ["empty", "replace", "delete", "forget", "call", "switch", "collect", "trace"]
)
def test_flatten_functions_that_modify_the_tree(name: str) -> None:
    x = jnp.ones(3) * 1
    f: Any = jnp.jit(lambda args, scale: args[0].a + args[0].b * scale + args[1])
    other = jnp.jit(lambda x: x * 2)

    def act(part: Part) -> None:
        Part.act = None
        if name == "empty":
            args.clear()
        elif name == "replace":
            args[:] = [Part(x * 3, x * 5), x * 7]
        elif name == "delete":
            args[1].delete()
        elif name == "forget":
            f._records = ()
            jnp.clear_caches()
        elif name == "call":
            assert float(f([Part(x, x), x], 1.0)[0]) == 3
        elif name == "switch":
            jnp.config.update("enable_x64", True)
        elif name == "collect":
            del part.a, args[1]
            gc.collect(1)
            args.append(x + 0)
            part.a = x
        else:
            jnp.grad(lambda y: (other(y) * f([Part(x, x), x], 1.0)).sum())(x)

    for k in range(120):
        args = [Part(x, x), x + 0]
        jnp.block_until_ready(args[1])
        Part.act = act if k % 3 == 2 else None
        try:
            result = f(args, 1.0)
        except (IndexError, RuntimeError, ValueError):
            if name not in ("empty", "delete"):
                raise
        else:
            assert float(result[0]) in ((3, 9, 15) if name == "replace" else (3,))
        finally:
            Part.act = None
            if name == "switch":
                jnp.config.update("enable_x64", False)


def test_static_data_that_cannot_be_compared_are_left_to_python() -> None:
    x = jnp.ones(3)

    class Tag:
        def __init__(self, hashed: Any, equal: Any) -> None:
            self.hashed, self.equal = hashed, equal

        def __hash__(self) -> Any:
            return self.hashed

        def __eq__(self, other: object) -> Any:
            return self.equal

    f: Any = jnp.jit(lambda part: part.a * 2)
    for tag in (Tag(1, np.ones(2, bool)), Tag("text", True), [1], np.ones(3)):
        for _ in range(20):
            np.testing.assert_array_equal(f(Part(x, x, tag)), 2)
    for _ in range(20):  # each is another program
        with pytest.raises(ValueError, match="ambiguous"):
            f(Part(x, x, Tag(1, np.ones(2, bool))))
        np.testing.assert_array_equal(f(Part(x, x, Tag(2, False))), 2)


# --- words of records ---


@pytest.mark.skipif(not COMPILED, reason="there is no extension")
def test_wrong_words_are_refused() -> None:
    """Everything except addresses is checked when a record is passed to a function."""
    programs: list[tuple[list[int], tuple[Any, ...]]] = []

    def record(words: list[int], objects: tuple[Any, ...], keeps: Any) -> Any:
        programs.append((words, objects))
        return _native.Record(words, objects, keeps)

    x = jnp.ones(3).block_until_ready()  # a pending graph that was met before has a record, too
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dispatch_entries, "Record", record)
        f: Any = jnp.jit(
            lambda n, t, *, named: (
                t["a"] + t["b"][0].a * named[1],
                [t["b"][1] * n, None, jnp.ones(2)],
            ),
            static_argnums=0,
        )
        tree = {"a": x, "b": (Part(x, x), 2.0, ONES)}
        for _ in range(20):
            f(3, tree, named=[x, 5])
    (words, objects), *_ = programs
    assert words[9]  # it makes buffers

    class Called(_native.Caller):
        def _call_uncached(self, *args: Any) -> Any:
            return None

    g: Any = Called()
    refused = 0
    for at in range(len(words)):
        for value in (-1, 0, 1, 3, 100, -(1 << 63), (1 << 63) - 1, words[at] + 1):
            wrong = _native.Record([*words[:at], value, *words[at + 1 :]], objects, ())
            try:
                g._records = (wrong,)
            except ValueError:
                refused += 1
        for cut in (words[:at], words[at + 1 :], [*words, 0]):
            with pytest.raises(ValueError, match="not those of a call"):
                g._records = (_native.Record(cut, objects, ()),)
    assert refused > 3 * len(words)
    # A closed-over value, whose object does not exist although the first one is of its class.
    node = jnp.ones(2)._node
    closing = [0, 0, 1, *[0] * 9, -1, 0, 0, 0, 0]
    g._records = (_native.Record([*closing, 0], (node,), ()),)
    with pytest.raises(ValueError, match="not those of a call"):
        g._records = (_native.Record([*closing, 1], (node,), ()),)
    deep = [1, 0, 0, 0, *[0] * 6, 2, *[0] * 6, 0]
    for _ in range(100_000):
        deep += [1, 0, 1]
    with pytest.raises(RecursionError):
        g._records = (_native.Record(deep, (tuple,), ()),)
    g._records = (_native.Record(words, objects, ()),)


def test_hostile_classes_are_left_to_python() -> None:
    f = jnp.jit(lambda tree: tree["a"] + 1)
    x = jnp.arange(3.0)

    class Angry(dict[str, Any]):
        def __getitem__(self, key: str) -> Any:
            raise ZeroDivisionError

    class Name(str):
        __slots__ = ()
        __hash__ = str.__hash__

        def __eq__(self, other: object) -> bool:
            raise ZeroDivisionError

    for _ in range(40):
        f({"a": x})
    with pytest.raises((ZeroDivisionError, TypeError)):
        f(Angry(a=x))
    with pytest.raises((ZeroDivisionError, TypeError, KeyError)):
        f({Name("a"): x})
    np.testing.assert_array_equal(f({"a": x}), [1, 2, 3])


def test_namedtuple_children_are_items_despite_custom_iteration() -> None:
    class Pair(NamedTuple):
        a: Any
        b: Any

    class Tens(Pair):
        def __iter__(self) -> Any:
            return iter([tuple.__getitem__(self, 0) * 10, tuple.__getitem__(self, 1)])

    f = jnp.jit(lambda pair: pair.a + pair.b)
    x = jnp.arange(3.0)
    for kind in (Pair, Tens):  # as in JAX
        for _ in range(100):
            y = f(kind(x, x))
        np.testing.assert_array_equal(y, [0, 2, 4])


def test_results_that_are_constants(monkeypatch: pytest.MonkeyPatch) -> None:
    """Programs of equinox return a constant with each call, and donate no argument."""
    f: Any = jnp.jit(
        lambda donated, x: (jnp.array(7), [x * 2, {"a": jnp.ones(3)}], x), donate_argnums=0
    )
    x = jnp.arange(3.0).block_until_ready()
    for _ in range(40):
        first = f(None, x)
    assert f._records
    monkeypatch.setattr("accnp.api.jit.jit.Entry.load", None)  # Python computes no call
    second = f(None, x)
    assert first[0] is not second[0]
    assert (int(second[0]), second[0].aval) == (7, first[0].aval)
    np.testing.assert_array_equal(second[1][0], [0, 2, 4])
    with jnp.item_assignment():
        first[1][1]["a"][0] = 5.0
    constant = second[1][1].pop("a")
    del second
    np.testing.assert_array_equal(constant.at[0].set(9.0), [9, 1, 1])
    monkeypatch.undo()
    np.testing.assert_array_equal(jnp.jit(lambda v: v + 1, donate_argnums=0)(constant), [2, 2, 2])
    np.testing.assert_array_equal(f(None, x)[1][1]["a"], [1, 1, 1])


def test_collections_while_results_are_built() -> None:
    size = 123
    f: Any = jnp.jit(lambda x: [x + i for i in range(size)])
    x = jnp.arange(3.0).block_until_ready()
    for _ in range(40):
        y = f(x)
    assert f._records

    def look(phase: str, _: Any) -> None:  # crashes at a place without an item
        for candidate in gc.get_objects() if phase == "start" else ():
            if type(candidate) is list and len(candidate) == size:
                assert len([*candidate]) == size

    before = gc.get_threshold()
    gc.callbacks.append(look)
    gc.set_threshold(10, 1000, 1000)
    try:
        for _ in range(3):
            y = f(x)
    finally:
        gc.set_threshold(*before)
        gc.callbacks.remove(look)
    assert gc.is_tracked(y)
    assert y[5].tolist() == [5, 6, 7]


def test_arguments_that_escaped_from_a_derivative_are_refused() -> None:
    f = jnp.jit(lambda x: x + 1)
    x = jnp.ones(3)
    escaped: list[Any] = []

    def g(x: Any) -> Any:
        escaped.append(x)
        return (x * x).sum()

    jnp.grad(g)(x)
    for _ in range(300):
        f(x)
    assert f._records  # type: ignore[attr-defined]
    with pytest.raises(jnp.errors.UnexpectedTracerError):
        f(escaped[0])


def test_arguments_that_are_deleted_by_another_thread() -> None:
    f = jnp.jit(lambda x: x * 2 + 1)
    stop = threading.Event()
    holder = [jnp.ones(50_000)]

    def delete() -> None:
        while not stop.is_set():
            old, holder[0] = holder[0], jnp.ones(50_000)
            old.delete()

    other = threading.Thread(target=delete)
    other.start()
    try:
        for _ in range(300):
            try:
                y = f(holder[0])
            except RuntimeError as error:
                if "deleted" not in str(error):
                    raise
                continue
            assert np.asarray(y)[-1] == 3.0
    finally:
        stop.set()
        other.join()


STRESS = """
import gc, os, threading
import numpy as np
import accnp as jnp
f = jnp.jit(lambda x, k: {"y": x * k["a"] + 1, "z": (x @ x, k["a"])})
x = jnp.arange(64.0)
k = {"a": jnp.asarray(2.0)}
wrong = []
f(x, k), float(((x + 1) * x)[2]), float((x + 1)[0])  # compiled before the fork
def work():
    for i in range(200):
        r = f(x, k)
        y = (x + 1) * x
        if float(r["y"][3]) != 7 or float(y[2]) != 6:
            wrong.append(i)
        if i % 50 == 0:
            gc.collect()
threads = [threading.Thread(target=work) for _ in range(4)]
[t.start() for t in threads]
children = []
for _ in range(4):
    pid = os.fork()
    if pid == 0:
        good = float(f(x, k)["y"][1]) == 3 and float((x + 1)[0]) == 1
        os._exit(0 if good else 1)
    children.append(pid)
[t.join() for t in threads]
print(wrong, [os.waitstatus_to_exitcode(os.waitpid(c, 0)[1]) for c in children])
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no forks")
def test_threads_and_forks_in_development_mode(tmp_path: Path) -> None:
    options = ("-X", "dev", "-W", "ignore::DeprecationWarning", "-W", "ignore::ResourceWarning")
    assert run(STRESS, *options, ACCNP_CACHE_DIR=str(tmp_path)) == "[] [0, 0, 0, 0]\n"


def test_the_fallback_is_chosen_by_the_environment(tmp_path: Path) -> None:
    text = "import accnp, accnp._native as n; print(n.COMPILED, float((accnp.ones(3) * 2).sum()))"
    assert run(text, ACCNP_NATIVE="0", ACCNP_CACHE_DIR=str(tmp_path)) == "False 6.0\n"
    if COMPILED:
        assert run(text, ACCNP_NATIVE="", ACCNP_CACHE_DIR=str(tmp_path)) == "True 6.0\n"
        assert run(text, ACCNP_NATIVE="1", ACCNP_CACHE_DIR=str(tmp_path)) == "True 6.0\n"


def test_requested_extension_must_exist(tmp_path: Path) -> None:
    program = """
import sys

class NotBuilt:
    def find_spec(self, name, path=None, target=None):
        if name == "accnp._native._core":
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, NotBuilt())
try:
    import accnp
except ImportError as error:
    print(error)
"""
    assert "ACCNP_NATIVE=1 needs the C extension" in run(program, ACCNP_NATIVE="1")
    assert run(program, ACCNP_NATIVE="") == ""
    assert "must be 0, 1, or the path of an extension; got 'yes'" in run(
        program, ACCNP_NATIVE="yes"
    )


@pytest.mark.skipif(not COMPILED, reason="needs the extension")
def test_an_extension_of_other_sources_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "accnp"
    shutil.copytree(
        Path(jnp.__file__).parent, folder, ignore=shutil.ignore_patterns("prebuilt", "__pycache__")
    )
    code = f"""
import sys
sys.path.insert(0, {str(tmp_path)!r})
try:
    import accnp._native as n
    print(n.COMPILED, n.__file__.startswith({str(tmp_path)!r}))
except ImportError as error:
    print(error)
"""
    (built,) = (folder / "_native").glob("_core*")
    source = folder / "_native" / "pool.c"
    os.utime(built, (0, 0))  # older than all sources, which are those that it was built from
    assert run(code, ACCNP_NATIVE="") == "True True\n"
    source.write_text(source.read_text() + "\n/* changed */\n")
    message = run(code, ACCNP_NATIVE="")
    assert "was built from other C sources than those of the package; got" in message
    assert "pool.c" in message
    assert "build_ext --inplace" in message
    assert run(code, ACCNP_NATIVE="0") == "False True\n"


# --- machine code by name, names of threads as other tools see them ---

NAMED = """
import ctypes, os
import accnp.numpy as jnp
from accnp import _native
jnp.cos(jnp.arange(5.0)).sum().block_until_ready()
class Entry(ctypes.Structure):
    _fields_ = [("next", ctypes.c_void_p), ("previous", ctypes.c_void_p),
                ("file", ctypes.c_void_p), ("size", ctypes.c_uint64)]
class Descriptor(ctypes.Structure):
    _fields_ = [("version", ctypes.c_uint32), ("action", ctypes.c_uint32),
                ("relevant", ctypes.c_void_p), ("first", ctypes.POINTER(Entry))]
print(os.getpid())
if _native.COMPILED:
    library = ctypes.CDLL(__import__("accnp._native._core")._native._core.__file__)
    first = Descriptor.in_dll(library, "__jit_debug_descriptor").first.contents
    data = ctypes.string_at(first.file, first.size)
    print(data[:4] == b"\\x7fELF" and b"accnp:" in data)
else:
    print(True)
"""


def test_perf_and_gdb_see_names(tmp_path: Path) -> None:
    printed = run(
        NAMED, ACCNP_CODE_SYMBOLS="1", TMPDIR=str(tmp_path), ACCNP_CACHE_DIR=str(tmp_path / "c")
    )
    pid, has_map = printed.split()
    assert has_map == "True"
    lines = (tmp_path / f"perf-{pid}.map").read_text().splitlines()
    rows = [line.split(" ", 2) for line in lines]
    assert all(int(at, 16) and int(size, 16) for at, size, _ in rows)
    assert any(name == "accnp:kernel" for _, _, name in rows)
    assert tempfile.gettempdir() != str(tmp_path)


def test_threadpoolctl_limits_our_threads() -> None:
    def ours() -> list[int]:
        pools = threadpoolctl.threadpool_info()
        return [x["num_threads"] for x in pools if x["user_api"] == "accnp"]

    with on_threads(3):
        jnp.ones(3_000_000).sum().block_until_ready()  # there are threads
        assert ours() == ([3] if COMPILED else [])
        with threadpoolctl.threadpool_limits(1):  # pyright: ignore[reportGeneralTypeIssues]
            assert ours() == ([1] if COMPILED else [])
            assert threads.call_helpers(5)[1] == (0 if COMPILED else 2)
        assert threads.call_helpers(5)[1] == 2


@pytest.mark.parametrize(
    ("groups", "files", "cpus"),
    [
        ("0::/a/b", {"a/b/cpu.max": "max 100000", "a/cpu.max": "150000 100000"}, 1.5),
        ("0::/", {"cpu.max": "400000 100000"}, 4.0),
        ("0::/gone", {"cpu.max": "50000 100000"}, 0.5),
        ("0::/", {"cpu.max": "max 100000"}, None),
        (
            "3:cpu,cpuacct:/x\n1:memory:/x",
            {"cpu,cpuacct/x/cpu.cfs_quota_us": "200000", "cpu,cpuacct/x/cpu.cfs_period_us": "1000"},
            200.0,
        ),
        (
            "3:cpu:/",
            {"cpu/cpu.cfs_quota_us": "-1", "cpu/cpu.cfs_period_us": "100000"},
            None,
        ),
        ("", {}, None),
        ("\nno group\n0::/\udcff\n0::/", {"cpu.max": "150000 100000"}, 1.5),
        ("0::/\0", {}, None),
        ("0::/", {"cpu.max": "100000"}, None),
        ("0::/", {"cpu.max": "100000 some"}, None),
        ("0::/", {"cpu.max": "100000 -100000"}, None),
        ("0::/", {"cpu.max": "\udcff\udcfe"}, None),
    ],
)
def test_quotas_of_control_groups(
    tmp_path: Path, groups: str, files: dict[str, str], cpus: float | None
) -> None:
    (tmp_path / "groups").write_text(groups, errors="surrogateescape")
    for name, text in files.items():
        path = tmp_path / "root" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text + "\n", errors="surrogateescape")
    assert _quota(str(tmp_path / "root"), str(tmp_path / "groups")) == cpus


def test_thread_pool_grows_and_works() -> None:
    for module in NATIVE:
        pool = module.ThreadPool()
        place = pool.reserve()
        helper = threading.Thread(target=pool.run_helper, args=(place,), daemon=True)
        helper.start()
        pool.add_helper(place, helper.native_id or 0)
        assert pool.helpers == 1
        argv = (ctypes.c_int64 * 3)(0, 0, 0)
        source, target = np.arange(8), np.zeros(8, np.int64)
        argv[:] = [target.ctypes.data, source.ctypes.data, 64]
        module.launch_parallel(module.COPY, 1, 1, pool.address, 1, *argv)
        np.testing.assert_array_equal(target, source)
