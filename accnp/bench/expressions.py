"""Expressions that are written once and measured with accnp and with its peers.

Input: `make(library)`, where `library` has the names of JAX (`.numpy`, `.lax`, `.nn`, `.grad` ...).
It returns a function and its arguments as NumPy arrays (in any pytree). Output: `Row`s of the
comparison. `suite.py` and the scripts in `benchmarks/` define expressions.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np

import accnp
from accnp.bench.tables import Row, row
from accnp.bench.timing import Call, Timing, paced
from accnp.runtime.bandwidth import streaming_copy

__all__ = ["NUMPY", "Expression", "asarray", "normal", "rows_of", "wide"]

Made = tuple[Callable[..., Any], tuple]
NUMPY = SimpleNamespace(numpy=np, lax=None, nn=None)
OURS = "accnp"


@dataclass(frozen=True)
class Expression:
    """An expression with its title, the function that makes it, and its bars.

    `bars` maps peers to the maximum ratio of times (None: no maximum). A tuple of peers stands for
    the fastest of them. These peers are known:

    - "jax" (with `jax.jit`), "jax eager", "numpy" and "torch" (eager): the same function. Peers
      that are not installed are omitted.
    - "limit": a streaming copy by all threads that reads and writes `moved` bytes in total. The bar
      is a ratio of times, such as 1 / 0.85 for 85 % of the bandwidth.
    - Any other name: `peers[name](*arguments)` makes the call, or None if it is not installed.

    `eager` runs accnp without `jit`, and `x64` enables 64-bit dtypes for all. Results are compared
    with those of JAX, or of the function `expected`, within `rtol` and `atol`. `compared` selects
    the part of the results that is well defined.
    """

    title: str
    make: Callable[[Any], Made]
    bars: Mapping[Any, float | None] = field(default_factory=lambda: {"jax": 1.0})
    peers: Mapping[str, Callable[..., Call | None]] = field(default_factory=dict)
    moved: int = 0
    eager: bool = False
    x64: bool = False
    expected: Callable[..., Any] | None = None
    compared: Callable[[Any], Any] = lambda results: results
    rtol: float = 1e-4
    atol: float = 1e-5
    counted: bool = True  # whether `benchmarks/counts.py` includes it

    def calls(self) -> dict[str, Call]:
        """Return a call for each installed library, which waits for its result."""
        by_library: dict[str, Call] = {OURS: self.ours()}
        names = [n for key in self.bars for n in ([key] if isinstance(key, str) else key)]
        for name in [*dict.fromkeys(names), *self.peers]:
            if name in by_library:
                continue
            if name in self.peers:
                call = self.peers[name](*_copy_arguments(self.make(NUMPY)[1]))
                if call is not None:
                    by_library[name] = call
            elif importlib.util.find_spec(name.split()[0]) is None and name != "limit":
                continue
            elif name in ("jax", "jax eager"):
                jax = importlib.import_module("jax")
                by_library[name] = _call(jax, self.make, eager=name == "jax eager")
            elif name == "numpy":
                f, arguments = self.make(NUMPY)
                by_library[name] = partial(f, *_copy_arguments(arguments))
            elif name == "torch":
                by_library[name] = _torch_call(self.make)
            elif name == "limit":
                by_library[name] = streaming_copy(self.moved)
            else:
                raise ValueError(
                    f"Expression {self.title!r}: a bar has an unknown peer; got {name!r}; add it "
                    "to peers"
                )
        return by_library

    def ours(self) -> Call:
        """Return the call of accnp."""
        return _call(accnp, self.make, eager=self.eager)

    def check(self, calls: Mapping[str, Call]) -> None:
        """Compare the result of accnp with the reference; raises AssertionError."""
        if self.expected is not None:
            expected = self.expected(*self.make(NUMPY)[1])
        else:
            known = next((calls[n] for n in ("jax", "numpy") if n in calls), None)
            expected = (known or _call_of_jax(self))()
        ours, theirs = (
            accnp.tree_util.tree_leaves(accnp.tree_util.tree_map(np.asarray, tree))
            for tree in map(self.compared, (calls[OURS](), expected))
        )
        for a, b in zip(ours, theirs, strict=True):
            np.testing.assert_allclose(a, b, rtol=self.rtol, atol=self.atol)

    def measure(self, rounds: int) -> list[Row]:
        """Return one row for each bar with an installed peer."""
        with wide(self.x64):
            calls = self.calls()
            self.check(calls)
            timings = paced(calls, rounds)
        return list(self.rows(timings))

    def rows(self, timings: Mapping[str, Timing]) -> Iterator[Row]:
        """Yield the rows for timings, which are given by the names of calls."""
        for key, bar in self.bars.items():
            names = [n for n in ([key] if isinstance(key, str) else key) if n in timings]
            if names:
                title = f"{self.title}, eager" if self.eager else self.title
                yield row(title, bar, timings, OURS, names)


def rows_of(expressions: Mapping[str, Expression]) -> dict[str, Callable[[int], list[Row]]]:
    """Return the `ROWS` of a benchmark script, which are its expressions."""
    return {name: expression.measure for name, expression in expressions.items()}


def normal(seed: int, *shape: int, dtype: Any = np.float32) -> np.ndarray:
    """Return normally distributed numbers, which are always the same for a seed."""
    return np.random.default_rng(seed).standard_normal(shape, np.float32).astype(dtype, copy=False)


def _copy_arguments(arguments: tuple) -> tuple:
    """Return arguments with copies of the arrays, as accnp and JAX make them. A library that shared
    operands with another one would find them in the cache."""
    return accnp.tree_util.tree_map(lambda x: x.copy() if type(x) is np.ndarray else x, arguments)


def _call(library: Any, make: Callable[[Any], Made], *, eager: bool) -> Call:
    f, arguments = make(library)
    arguments = library.tree_util.tree_map(asarray(library), arguments)
    g = f if eager else library.jit(f)
    return lambda: library.block_until_ready(g(*arguments))


def _torch_call(make: Callable[[Any], Made]) -> Call:
    """Return the call of torch, which accepts the names of NumPy that the expressions use."""
    torch: Any = importlib.import_module("torch")
    f, arguments = make(SimpleNamespace(numpy=torch))
    tensors = [
        torch.from_numpy(x) if isinstance(x, np.ndarray) else x for x in _copy_arguments(arguments)
    ]

    def call() -> Any:
        with torch.no_grad():
            return f(*tensors)

    return call


def asarray(library: Any) -> Callable[[Any], Any]:
    """Return a function that converts NumPy arrays to arrays of a library, and nothing else."""
    return lambda x: library.numpy.asarray(x) if isinstance(x, np.ndarray) else x


def _call_of_jax(expression: Expression) -> Call:
    return _call(importlib.import_module("jax"), expression.make, eager=False)


@contextlib.contextmanager
def wide(on: bool) -> Iterator[None]:
    """Enable 64-bit dtypes in accnp and JAX, if `on`."""
    if not on:
        yield
        return
    jax: Any = importlib.import_module("jax")
    before = jax.config.jax_enable_x64, accnp.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    accnp.config.update("jax_enable_x64", True)
    try:
        yield
    finally:
        jax.config.update("jax_enable_x64", before[0])
        accnp.config.update("jax_enable_x64", before[1])
