"""`debug.compare`: computes a function in several ways and finds where the results first differ.

The function is called eagerly and traced. Its program is run eagerly, jitted, and with each
operation as a separate kernel, and the reference function (NumPy) of each operation gets the same
operands. Operations are compared in program order, so the first difference is the cause and not a
consequence. The result is a `Comparison`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from types import FunctionType, MethodType
from typing import Any, NamedTuple

import numpy as np

from accnp.api.arguments.convert import as_node
from accnp.api.jit.jit import JitFunction, jit
from accnp.array_type import wrap
from accnp.config import scope
from accnp.errors import api_boundary
from accnp.ir.graph import Graph, build, evaluate, inline_calls
from accnp.ir.node import Node, site_text
from accnp.primitives.control import with_outputs
from accnp.pytree import PyTreeDef, flatten_arrays

__all__ = ["Comparison", "Difference", "compare"]

WAYS = ("eager", "jit")  # must agree bitwise with separate operations
# Relative to the largest element, since operations round differently in different ways.
TOLERANCES = {2: 2e-2, 4: 2e-5, 8: 1e-12}


class Difference(NamedTuple):
    """The first operation for which two ways compute different values."""

    way: str  # "eager", "jit" or "NumPy"
    operation: str  # the name of the primitive
    line: str  # the user's line that recorded it
    actual: np.ndarray  # computed in this way
    expected: np.ndarray  # with each operation as a separate kernel


class Comparison:
    """Result of `debug.compare`, which is true if all ways of computing agree.

    Parameters
    ----------
    operations : int
        Number of operations that were compared.
    differences : sequence of Difference
        First difference of each way that differs.

    See Also
    --------
    debug.compare : Make a comparison.

    Examples
    --------
    >>> import accnp as jnp
    >>> bool(jnp.debug.compare(jnp.exp, jnp.arange(3.0)))
    True
    """

    def __init__(self, operations: int, differences: Sequence[Difference]) -> None:
        self.operations = operations
        self.differences = tuple(differences)

    def __bool__(self) -> bool:
        return not self.differences

    def __repr__(self) -> str:
        if not self.differences:
            ways = ", ".join((*WAYS, "unfused"))
            return f"Comparison: {self.operations} operations agree ({ways}: bits; NumPy: values)"
        count = len(self.differences)
        ways = "1 way" if count == 1 else f"{count} ways"
        lines = [f"Comparison: {self.operations} operations differ in {ways}"]
        for p in self.differences:
            lines.append(f"{p.way}: {p.operation}, recorded at {p.line}, is the first that differs")
            at = _first_difference(p.actual, p.expected)
            shown = [str(x[at] if x.shape == p.expected.shape else x) for x in p[3:]]
            lines.append(f"  at {at}: {shown[0]}, unfused {shown[1]}")
        return "\n".join(lines)


@api_boundary
def compare(
    f: Callable[..., Any], *args: Any, rtol: float | None = None, **kwargs: Any
) -> Comparison:
    """Compute a function in several ways and find the first operation whose results differ.

    Eager, jitted and unfused results must have the same bits. Those of NumPy may differ by `rtol`.

    Parameters
    ----------
    f : callable
        Function that can be jitted. It runs several times, with its prints and callbacks.
    *args : pytree of array_like
        Arguments of the function. Those that are static for a jitted `f` may be any objects.
    rtol : float, optional
        Largest difference from NumPy, relative to the largest element of the result or, for
        operations such as sums that may cancel, of the operands. The default is 2e-2 for 16-bit
        dtypes, 2e-5 for float32 and 1e-12 for float64.
    **kwargs : pytree of array_like
        Keyword arguments of the function.

    Returns
    -------
    debug.Comparison
        Number of operations, and the first difference of each way.

    Raises
    ------
    TypeError
        If `f` cannot be traced, or an argument is neither an array nor a number.

    See Also
    --------
    inspect : Show how a function is computed.
    test_util.check_grads : Check derivatives.

    Notes
    -----
    The NumPy reference of an operation gets the operands that accnp computed, so errors do not
    accumulate. A loop or branch counts as one operation. A callback that returns something else in
    each call is reported as a difference.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.debug.compare(lambda x: jnp.exp(x).sum(), jnp.arange(3.0))
    Comparison: 2 operations agree (eager, jit, unfused: bits; NumPy: values)

    Static arguments are declared with `jit`:

    >>> total = jnp.jit(jnp.sum, static_argnames="axis")
    >>> jnp.debug.compare(total, jnp.ones((2, 3)), axis=1)
    Comparison: 1 operations agree (eager, jit, unfused: bits; NumPy: values)
    """
    call = _Arguments(f, args, kwargs)
    nodes = [as_node(x, "debug.compare") for x in call.leaves]

    def record(xs: list[Node]) -> list[Node]:
        outputs = call.run(xs)
        return [as_node(y, "debug.compare") for y in flatten_arrays(outputs)[0]]

    graph = inline_calls(build(record, [x.aval for x in nodes], getattr(f, "__name__", "f")))
    graph.drop_effects()
    steps = [x for x in graph.nodes if not isinstance(x.aval, tuple) and x.op.kind != "mark"]
    arrays = [np.asarray(wrap(x)) for x in nodes]
    with scope("fusion_limit", 0):
        alone = _values(graph, steps, arrays, "jit")
    results = call.run(nodes)
    called = [np.asarray(_array_of(y)) for y in flatten_arrays(results)[0]]
    differences = [
        _difference_of_bits(graph, steps, arrays, alone, way, called if way == "eager" else None)
        for way in WAYS
    ]
    differences.append(_difference_from_numpy(graph, steps, arrays, alone, rtol))
    return Comparison(len(steps), [p for p in differences if p is not None])


class _Arguments:
    """The arguments of one call: the static ones, and the leaves of the others."""

    leaves: list[Any]
    tree: PyTreeDef

    def __init__(
        self, f: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> None:
        self.f, self.args = f, args
        static, names = _static_places(f, len(args))
        self.static = {i: x for i, x in enumerate(args) if i in static}
        self.named = {k: v for k, v in kwargs.items() if k in names}
        positional = [x for i, x in enumerate(args) if i not in static]
        named = {k: v for k, v in kwargs.items() if k not in names}
        self.leaves, self.tree = flatten_arrays((positional, named))

    def run(self, nodes: Sequence[Node]) -> Any:
        """Call the function with these values as the leaves."""
        positional, named = self.tree.unflatten([wrap(x) for x in nodes])
        rest = iter(positional)
        args = [self.static[i] if i in self.static else next(rest) for i in range(len(self.args))]
        return self.f(*args, **named, **self.named)


def _static_places(f: Any, count: int) -> tuple[set[int], frozenset[str]]:
    """The positions, of `count` arguments, and names that are static for the jitted function that
    `f` is, or is a partial, method or wrapper of."""
    bound = 0  # arguments bound before those of the call
    while not isinstance(f, JitFunction):
        if isinstance(f, functools.partial):
            f, bound = f.func, bound + len(f.args)
        elif isinstance(f, MethodType):
            f, bound = f.__func__, bound + 1
        elif hasattr(f, "__wrapped__"):
            f = f.__wrapped__
        elif isinstance(f, type | FunctionType) or not isinstance(type(f).__call__, JitFunction):
            return set(), frozenset()
        else:  # an object whose class has a jitted method `__call__`
            f, bound = type(f).__call__, bound + 1
    numbers, names = f.static_parameters
    return {(i if i >= 0 else i + bound + count) - bound for i in numbers}, names


def _array_of(x: Any) -> Any:
    return wrap(as_node(x, "debug.compare"))


def _name(x: Node) -> str:
    """Return the name of an operation; for one of several results, that of the operation."""
    return x.inputs[0].op.name if x.op.kind == "item" else x.op.name


def _values(
    graph: Graph, outputs: Sequence[Node], arrays: Sequence[np.ndarray], way: str
) -> list[np.ndarray]:
    program = with_outputs(graph, list(outputs))

    def run(*xs: Any) -> list[Any]:
        return [wrap(y) for y in evaluate(program, [as_node(x, "compare") for x in xs])]

    return [np.asarray(y) for y in (jit(run) if way == "jit" else run)(*arrays)]


def _difference_of_bits(
    graph: Graph,
    steps: Sequence[Node],
    arrays: Sequence[np.ndarray],
    alone: Sequence[np.ndarray],
    way: str,
    called: Sequence[np.ndarray] | None = None,
) -> Difference | None:
    """Return the first operation whose result, computed alone, has different bits; `called` are the
    results of the function itself."""
    places = {id(x): i for i, x in enumerate(steps)}
    outputs = [x for x in graph.outputs if id(x) in places]
    actual = _values(graph, outputs, arrays, way)
    if called is not None and all(
        _same_bits(y, alone[places[id(x)]]) for x, y in zip(outputs, actual, strict=True)
    ):
        actual = [y for x, y in zip(graph.outputs, called, strict=True) if id(x) in places]
    if all(_same_bits(y, alone[places[id(x)]]) for x, y in zip(outputs, actual, strict=True)):
        return None
    for x, expected in zip(steps, alone, strict=True):
        (value,) = _values(graph, [x], arrays, way)
        if not _same_bits(value, expected):
            return Difference(way, _name(x), site_text(x), value, expected)
    # Only results computed together, or those of the call, differ: report the first of them.
    return next(
        Difference(way, _name(x), site_text(x), y, alone[places[id(x)]])
        for x, y in zip(outputs, actual, strict=True)
        if not _same_bits(y, alone[places[id(x)]])
    )


def _difference_from_numpy(
    graph: Graph,
    steps: Sequence[Node],
    arrays: Sequence[np.ndarray],
    alone: Sequence[np.ndarray],
    rtol: float | None,
) -> Difference | None:
    known: dict[int, Any] = dict(zip(map(id, graph.inputs), arrays, strict=True))
    known.update(zip(map(id, steps), alone, strict=True))
    for x in graph.nodes:
        if x.op.numpy is None or (x.op.kind == "mark" and id(x) in known):
            continue
        operands = [known[id(v)] if id(v) in known else np.asarray(wrap(v)) for v in x.inputs]
        value = x.op.numpy(*operands, **x.params)
        if isinstance(x.aval, tuple) or x.op.kind == "mark":
            known[id(x)] = value
            continue
        value, expected = np.asarray(value, x.aval.dtype), known[id(x)]
        # Sums, products of matrices and the like may cancel.
        scales = [v for v in operands if isinstance(v, np.ndarray) and x.op.kind != "map"]
        if not _are_close(value, expected, rtol, scales):
            return Difference("NumPy", _name(x), site_text(x), value, expected)
    return None


def _same_bits(a: np.ndarray, b: np.ndarray) -> bool:
    """Return whether values are bitwise equal, including signs of zeros; all nan are equal."""
    if a.dtype != b.dtype or a.shape != b.shape:
        return False
    return not np.any(_distances(a, b))


def _are_close(
    a: np.ndarray, b: np.ndarray, rtol: float | None, scales: Sequence[np.ndarray] = ()
) -> bool:
    """Return whether differences are below the tolerance, relative to the largest element, also of
    `scales`."""
    if a.dtype.kind not in "fcV":
        return bool(np.all(a == b))
    size = a.dtype.itemsize // (2 if a.dtype.kind == "c" else 1)
    limit = TOLERANCES.get(size, 0.1) if rtol is None else rtol
    wide = np.complex128 if a.dtype.kind == "c" else np.float64
    a, b = a.astype(wide), b.astype(wide)
    finite = np.isfinite(a) & np.isfinite(b)
    scale = max([_largest(x) for x in (b, *scales)])
    same = (a == b) | ((a != a) & (b != b))
    with np.errstate(invalid="ignore"):
        return bool(np.all(same | (finite & (np.abs(a - b) <= limit * scale))))


def _largest(x: np.ndarray) -> float:
    """Return the largest finite magnitude; 0 if the dtype is not floating."""
    if x.dtype.kind not in "fcV":
        return 0.0
    x = np.abs(x.astype(np.complex128 if x.dtype.kind == "c" else np.float64))
    return float(x[np.isfinite(x)].max(initial=0.0))


def _distances(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return the distances of elements; the smallest number if only signs of zeros differ."""
    if a.dtype.kind == "c":
        parts = [_distances(part(a), part(b)) for part in (np.real, np.imag)]
        return np.maximum(*parts)
    if a.dtype.kind in "biu":
        return np.abs(a.astype(object) - b.astype(object)).astype(np.float64)
    a, b = a.astype(np.float64), b.astype(np.float64)
    with np.errstate(invalid="ignore"):
        size = np.where((a == b) | ((a != a) & (b != b)), 0.0, np.abs(a - b))
    size = np.where(size != size, np.inf, size)
    signs = (a == 0) & (b == 0) & (np.signbit(a) != np.signbit(b))
    return np.where(signs, np.nextafter(0, 1), size)


def _first_difference(a: np.ndarray, b: np.ndarray) -> tuple[int, ...]:
    """Return the index of the element with the largest difference."""
    if a.shape != b.shape or not a.size:
        return ()
    return tuple(int(i) for i in np.unravel_index(int(np.argmax(_distances(a, b))), a.shape))
