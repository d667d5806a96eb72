"""Random operations on the lifetime of arrays, on the CPU or a GPU: arrays are created, referenced,
donated, deleted, overwritten, shared with other libraries on other streams, and copied back.

`python -m tests.chance` passes a seed and gets a description of what went wrong, or None. NumPy
computes the values of each array as well; both are compared at random times and at the end.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import random
import threading
import traceback
from collections.abc import Callable
from typing import Any

import numpy as np

import accnp
import accnp.numpy as jnp
from accnp import lax

HALF, ONE = np.float32(0.5), np.float32(1)
INSIDE = slice(1, -1)
SIZES = [64, 5000, 1 << 16, 1 << 18, 300_000, 1 << 20]
SMALL_SIZES = [64, 300, 1000]  # of the interpreter


@functools.cache
def _library(name: str) -> tuple[Any, str]:
    """Return CuPy or torch, or None and the reason why it cannot be used."""
    try:
        library = __import__(name)
    except ImportError as error:
        return None, f"{name} cannot be imported ({error})"
    if name == "torch":
        return (library, "") if library.cuda.is_available() else (None, "torch sees no GPU")
    try:
        library.cuda.runtime.getDeviceCount()
    except library.cuda.runtime.CUDARuntimeError as error:
        return None, f"cupy sees no GPU ({error})"
    return library, ""


def missing_libraries(device: Any) -> list[str]:
    """Return the reasons why libraries do not take part in the checks of a GPU."""
    reasons = [_library(name)[1] for name in ("cupy", "torch")]
    return [why for why in reasons if why and device.platform != "cpu"]


def _set_item(v: np.ndarray, at: Any, to: Any) -> np.ndarray:
    v = v.copy()
    v[at] = to
    return v


def _concatenate_halves(v: np.ndarray, w: np.ndarray) -> np.ndarray:
    return np.concatenate([w[v.size // 2 :] * HALF, np.full(v.size - v.size // 2, w[0] + ONE)])


def _repeat_update(c: Any, b: Any) -> Any:
    for _ in range(3):
        c = c * HALF + b * np.float32(0.1)
    return c


# Functions of an array and of two, beside what NumPy says; some are donated to.
UNARY_OPERATIONS: list[tuple[Callable[..., Any], Callable[..., Any]]] = [
    (accnp.jit(lambda a: a * 0.5 + 1), lambda v: v * HALF + ONE),
    (accnp.jit(lambda a: a - a.mean()), lambda v: v - v.mean(dtype="f8").astype("f4")),
    (accnp.jit(lambda a: jnp.flip(a) * 2), lambda v: v[::-1] * np.float32(2)),
    (accnp.jit(lambda a: lax.fori_loop(0, 3, lambda i, c: jnp.roll(c, 1) * 0.5, a)),
     lambda v: np.roll(v, 3) * np.float32(0.125)),
    (accnp.jit(jnp.sort), np.sort),
    (accnp.jit(lambda a: [a + 1, a * 2, a - 3][1]), lambda v: v * np.float32(2)),
    (lambda a: a * 1.5, lambda v: v * np.float32(1.5)),
    (lambda a: a.at[5].set(2.0), lambda v: _set_item(v, 5, 2)),
    (lambda a: a.at[1:-1].set(a[1:-1] * 0.5), lambda v: _set_item(v, INSIDE, v[1:-1] * HALF)),
    (lambda a: a.at[1:-1].set((a[2:] + a[:-2]) * 0.5),
     lambda v: _set_item(v, INSIDE, (v[2:] + v[:-2]) * HALF)),
    (lambda a: a.at[::-2].multiply(a[1::2] * 0 + 0.5),
     lambda v: _set_item(v, slice(None, None, -2), v[::-2] * HALF)),
    (lambda a: a[::-1], lambda v: v[::-1]),
    (lambda a: jnp.cumsum(a) / a.size, lambda v: (np.cumsum(v, dtype="f8") / v.size).astype("f4")),
    (lambda a: a.reshape(4, -1).T.reshape(-1), lambda v: v.reshape(4, -1).T.reshape(-1)),
]  # fmt: skip
BINARY_OPERATIONS: list[tuple[Callable[..., Any], Callable[..., Any]]] = [
    (accnp.jit(lambda a, b: (a + b) * 0.5), lambda v, w: (v + w) * HALF),
    (lambda a, b: a + b, lambda v, w: v + w),
    (lambda a, b: jnp.tanh(a) * b, lambda v, w: np.tanh(v) * w),
    # Continuous where `a` is 0: the mean that is left of numbers without their mean has any sign.
    (lambda a, b: jnp.where(a > 0, a, a * b), lambda v, w: np.where(v > 0, v, v * w)),
    (lambda a, b: a.at[10:20].add(b[10:20]),
     lambda v, w: _set_item(v, slice(10, 20), v[10:20] + w[10:20])),
    (lambda a, b: a.at[1:-1].add(b[2:] * 0.5),
     lambda v, w: _set_item(v, INSIDE, v[1:-1] + w[2:] * HALF)),
    (lambda a, b: a.at[: a.size // 2].set(b[a.size // 2 :] * 0.5).at[a.size // 2 :].set(b[:1] + 1),
     _concatenate_halves),
    (lambda a, b: jnp.zeros_like(a).at[1:-1].set(a[2:] - b[:-2]),
     lambda v, w: _set_item(np.zeros_like(v), INSIDE, v[2:] - w[:-2])),
    (lambda a, b: jnp.concatenate([b[a.size // 2 :], a[: a.size // 2]]),
     lambda v, w: np.concatenate([w[v.size // 2 :], v[: v.size // 2]])),
    (lambda a, b: accnp.grad(lambda z: (z * z * b).sum())(a), lambda v, w: 2 * v * w),
]  # fmt: skip
DONATING_OPERATIONS: list[tuple[Callable[..., Any], Callable[..., Any]]] = [
    (accnp.jit(lambda a, b: a * 0.5 + 1, donate_argnums=0), lambda v, w: v * HALF + ONE),
    (accnp.jit(lambda a, b: a.at[3].set(7.0), donate_argnums=0), lambda v, w: _set_item(v, 3, 7)),
    (accnp.jit(lambda a, b: a.at[1:-1].set(a[1:-1] - b[2:] * 0.5), donate_argnums=0),
     lambda v, w: _set_item(v, INSIDE, v[1:-1] - w[2:] * HALF)),
    (accnp.jit(lambda a, b: (a + b) * 0.5, donate_argnums=0), lambda v, w: (v + w) * HALF),
    (accnp.jit(lambda a, b: lax.fori_loop(0, 3, lambda i, c: c * 0.5 + b * 0.1, a),
               donate_argnums=0), _repeat_update),
]  # fmt: skip


class Lifetimes:
    """One sequence of random operations: live arrays with their values, and exported buffers with
    the values at export.
    """

    def __init__(self, seed: int, device: Any, sizes: list[int]) -> None:
        self.r, self.rng = random.Random(seed), np.random.default_rng(seed)
        self.n, self.device = self.r.choice(sizes), device
        self.live: list[tuple[Any, np.ndarray]] = []
        self.held: list[tuple[Any, np.ndarray]] = []
        self.log: list[str] = []
        on_gpu = device.platform != "cpu"
        self.cupy: Any = _library("cupy")[0] if on_gpu else None
        self.torch: Any = _library("torch")[0] if on_gpu else None

    def run(self) -> str | None:
        actions: list[Callable[[], str]] = [self.new, self.drop, self.drop, self.drop, self.hold,
            self.one, self.one, self.two, self.two, self.give, self.give, self.look,
            self.release, self.delete, self.travel]  # fmt: skip
        actions += [self.to_cupy, self.from_cupy, self.by_cupy] if self.cupy else []
        actions += [self.to_torch, self.from_torch, self.by_torch] if self.torch else []
        for _ in range(self.r.randint(20, 70)):
            while len(self.live) < 2:
                self.new()
            action = self.r.choice(actions)
            try:
                self.log.append(f"{action.__name__} {action()}")
            except Exception as error:
                at = traceback.format_exc().splitlines()[-3:-1]
                return self._said(f"{type(error).__name__}: {str(error)[:400]} at {at}")
            self.live = [(a, v) for a, v in self.live if np.all(np.abs(v) < 1e4)]
            if len(self.live) > 8:
                self.live.pop(self.r.randrange(len(self.live)))
            if self.r.random() < 0.12 and (fault := self.wrong(some=True)):
                return fault
        return self.wrong()

    def _said(self, what: str) -> str:
        return f"{what}; n = {self.n}, after {'; '.join(self.log[-25:])}"

    def wrong(self, some: bool = False) -> str | None:
        """Return the first wrong value. With `some`, check a random subset, because reading arrays
        changes later behavior.
        """
        live = self.r.sample(self.live, self.r.randint(0, len(self.live))) if some else self.live
        for what, pairs in (("a value", live), ("what others hold", self.held)):
            for a, v in pairs:
                actual = a.cpu().numpy() if hasattr(a, "cpu") else a
                actual = (
                    actual.get()
                    if type(actual).__module__.startswith("cupy")
                    else np.asarray(actual)
                )
                bad = ~np.isclose(actual, v, rtol=2e-3, atol=2e-3)
                if bad.any():
                    at = np.flatnonzero(bad)
                    return self._said(
                        f"{what} ({type(a).__name__}) is wrong at {len(at)} places from {at[0]} "
                        f"to {at[-1]}: {actual[at[0]]} for {v[at[0]]}"
                    )
        return None

    def _add(self, a: Any, v: np.ndarray) -> None:
        self.live.append((a, np.asarray(v)))

    def _pick(self) -> tuple[int, Any, np.ndarray]:
        i = self.r.randrange(len(self.live))
        return i, *self.live[i]

    # --- what happens ---
    def new(self) -> str:
        v = self.rng.standard_normal(self.n).astype("f4")
        how = self.r.choice(["copied", "asarray", "read-only"])
        source = v.copy()
        source.flags.writeable = how != "read-only"
        a = jnp.array(source) if how == "copied" else jnp.asarray(source)
        self._add(a if self.device.platform == "cpu" else accnp.device_put(a, self.device), v)
        return how

    def drop(self) -> str:
        i, *_ = self._pick()
        self.live.pop(i)
        return f"{i}"

    def hold(self) -> str:
        i, a, v = self._pick()
        how = "numpy" if self.device.platform != "cpu" else self.r.choice(["numpy", "dlpack"])
        self.held.append((np.asarray(a) if how == "numpy" else np.from_dlpack(a), v.copy()))
        return f"{i} by {how}"

    def release(self) -> str:
        if self.held:
            self.held.pop(self.r.randrange(len(self.held)))
        return ""

    def one(self) -> str:
        i, a, v = self._pick()
        k = self.r.randrange(len(UNARY_OPERATIONS))
        self._add(UNARY_OPERATIONS[k][0](a), UNARY_OPERATIONS[k][1](v))
        return f"{k}: {i}"

    def two(self) -> str:
        (i, a, v), (j, b, w) = self._pick(), self._pick()
        k = self.r.randrange(len(BINARY_OPERATIONS))
        self._add(BINARY_OPERATIONS[k][0](a, b), BINARY_OPERATIONS[k][1](v, w))
        return f"{k}: {i} {j}"

    def give(self) -> str:
        (i, a, v), (j, b, w) = self._pick(), self._pick()
        if a is b or sum(x is a for x, _ in self.live) > 1:
            return "nothing"
        k = self.r.randrange(len(DONATING_OPERATIONS))
        self.live.pop(i)
        self._add(DONATING_OPERATIONS[k][0](a, b), DONATING_OPERATIONS[k][1](v, w))
        return f"{k}: {i} {j}"

    def look(self) -> str:
        i, a, _ = self._pick()
        (a.block_until_ready if self.r.random() < 0.5 else a.copy_to_host_async)()
        return f"{i}"

    def delete(self) -> str:
        i, a, _ = self._pick()
        if sum(x is a for x, _ in self.live) == 1:
            self.live.pop(i)
            a.delete()
        return f"{i}"

    def travel(self) -> str:
        i, a, v = self._pick()
        there = accnp.device_put(a, self.r.choice(accnp.devices("cpu")))
        self._add(accnp.device_put(there, self.device), v)
        return f"{i}"

    def to_cupy(self) -> str:
        i, a, v = self._pick()
        take = self.r.choice([self.cupy.from_dlpack, self.cupy.asarray])
        self.held.append((take(a), v.copy()))
        return f"{i} by {take.__name__}"

    def by_cupy(self) -> str:
        i, a, v = self._pick()
        with self.cupy.cuda.Stream(non_blocking=True):
            c = self.cupy.from_dlpack(a) * 2
            for _ in range(self.r.randint(0, 20)):
                c = c * ONE
            self._add(accnp.from_dlpack(c), v * np.float32(2))
        return f"{i}"

    def from_cupy(self) -> str:
        i, _, v = self._pick()
        with self.cupy.cuda.Stream(non_blocking=True):
            c = self.cupy.asarray(v)
            self._add((accnp.from_dlpack if self.r.random() < 0.7 else jnp.asarray)(c), v)
        return f"{i}"

    def to_torch(self) -> str:
        i, a, v = self._pick()
        self.held.append((self.torch.from_dlpack(a), v.copy()))
        return f"{i}"

    def by_torch(self) -> str:
        i, a, v = self._pick()
        with self.torch.cuda.stream(self.torch.cuda.Stream()):
            t = self.torch.from_dlpack(a) * 2
            for _ in range(self.r.randint(0, 20)):
                t = t * 1
            self._add(accnp.from_dlpack(t), v * np.float32(2))
        return f"{i}"

    def from_torch(self) -> str:
        i, _, v = self._pick()
        self._add(accnp.from_dlpack(self.torch.from_numpy(v.copy()).cuda()), v)
        return f"{i}"


def check_lifetimes(seed: int, device: Any, small: bool = False) -> str | None:
    """Run one sequence of operations; for every fourth seed, run several in threads that share a
    pending array.
    """
    sizes = SMALL_SIZES if small else SIZES
    if seed % 4:
        return Lifetimes(seed, device, sizes).run()
    shared = accnp.device_put(np.sin(np.arange(sizes[-1], dtype="f4")), device)
    pending = jnp.tanh(shared) * 2 + shared.mean()
    wait, seen, faults = threading.Barrier(3), [], []

    def one(k: int) -> None:
        try:
            wait.wait()
            seen.append(np.asarray(pending))
            faults.append(Lifetimes(seed * 100 + k, device, sizes).run())
        except BaseException as error:
            faults.append(f"a thread ended with {type(error).__name__}: {str(error)[:300]}")

    living = [threading.Thread(target=one, args=(k,), daemon=True) for k in range(3)]
    [t.start() for t in living]
    [t.join(100) for t in living]
    if any(t.is_alive() for t in living):
        return "a thread hangs"
    if not all(np.array_equal(seen[0], x) for x in seen):
        return "threads saw other values of a pending array"
    return next((x for x in faults if x), None)


def in_use(device: Any) -> int:
    """Return the bytes of GPU memory in use, after garbage collection."""
    for _ in range(3):
        gc.collect()
    with contextlib.suppress(MemoryError):
        accnp.device_put(np.zeros(2, "f4"), device).block_until_ready()
    return accnp.device_memory_stats(device)["bytes_in_use"]
