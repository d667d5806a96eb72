"""`ufunc`: elementwise functions with the methods reduce, accumulate, at, reduceat and outer.

In: a function of scalars. Out: a function of arrays. The functions of the namespace that are ufuncs
in jax stay plain functions, for the sake of a short call; they get the methods as attributes, and
count as instances.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from accnp import dtypes
from accnp.api.arguments.convert import as_node, wrap
from accnp.api.arguments.inside import broadcasts_inside
from accnp.api.arguments.shapes import as_axis, as_int
from accnp.api.arguments.values import no_out
from accnp.api.arrays.creation import full
from accnp.api.arrays.manipulation import expand_dims, moveaxis
from accnp.api.elements import ufuncs as uf
from accnp.api.elements.selecting import where as select
from accnp.api.folds import reductions
from accnp.array import Array
from accnp.errors import api_boundary
from accnp.forks import imported
from accnp.ir.op import o

__all__ = ["frompyfunc", "ufunc"]


_EXTREMES = {"maximum": "cummax", "minimum": "cummin"}

# Few programs call the methods: what these need comes with the first call.


def _joining() -> Any:
    return imported("accnp.api.arrays.joining")


def _loops() -> Any:
    return imported("accnp.api.flow.loops")


def _running(fold: str) -> Any:
    return lambda x, **how: getattr(imported("accnp.api.folds.cumulative"), fold)(x, **how)


class _Kind(type):
    def __instancecheck__(cls, instance: Any) -> bool:
        return type(instance) is cls or hasattr(instance, "_ufunc")


class ufunc(metaclass=_Kind):
    """An elementwise function of `nin` arguments and `nout` results, with NumPy's methods.

    Args:
        func: function of scalars; it is traced, so it may use any jnp function.
        nin: number of arguments.
        nout: number of results.
        name: its own name if not given.
        nargs: nin if not given.
        identity: what a fold of nothing gives, if anything.
        call, reduce, accumulate, at, reduceat: faster ways than the general ones.

    >>> import accnp as jnp
    >>> half = jnp.frompyfunc(lambda x, y: (x + y) / 2, 2, 1)
    >>> half(jnp.array([0., 2.]), 4.0)
    Array([2., 3.], dtype=float32)
    """

    @api_boundary
    def __init__(
        self,
        func: Callable[..., Any],
        /,
        nin: int,
        nout: int,
        *,
        name: str | None = None,
        nargs: int | None = None,
        identity: Any = None,
        call: Any = None,
        reduce: Any = None,
        accumulate: Any = None,
        at: Any = None,
        reduceat: Any = None,
    ) -> None:
        if not callable(func):
            raise TypeError(
                f"frompyfunc: func must be a function; got {func!r}; pass what can be called"
            )
        nin, nout = as_int(nin, "frompyfunc", "nin"), as_int(nout, "frompyfunc", "nout")
        self.__name__ = name or func.__name__
        self.__wrapped__ = func
        self._nin, self._nout, self._nargs = nin, nout, nin if nargs is None else nargs
        self._identity = identity
        self._call = call or imported("accnp.api.mapping.vectorize").vectorize(func)
        self._reduce, self._accumulate, self._at = reduce, accumulate, at
        self._reduceat = reduceat
        self.__doc__ = func.__doc__ or type(self).__doc__

    nin = property(lambda self: self._nin, doc="How many arguments it takes.")
    nout = property(lambda self: self._nout, doc="How many results it has.")
    nargs = property(lambda self: self._nargs, doc="How many arguments it takes, as NumPy says.")
    identity = property(lambda self: self._identity, doc="What a fold of nothing gives, or None.")

    def __repr__(self) -> str:
        return f"<jnp.ufunc {self.__name__!r}>"

    def __hash__(self) -> int:
        return hash((self.__wrapped__, self.__name__, self.nin, self.nout, self.identity))

    def __eq__(self, other: Any) -> bool:
        return type(other) is ufunc and (
            (self.__wrapped__, self.__name__, self.nin, self.nout, self.identity)
            == (other.__wrapped__, other.__name__, other.nin, other.nout, other.identity)
        )

    @api_boundary
    def __call__(self, *args: Any, out: None = None, where: None = None) -> Any:
        no_out(out, f"{self.__name__}.__call__")
        if where is not None:
            raise NotImplementedError(f"{self.__name__}: where= is not supported; use jnp.where")
        if len(args) != self.nin:
            raise TypeError(
                f"{self.__name__}: takes {self.nin} arguments; got {len(args)}; "
                "pass one array for each operand"
            )
        return self._call(*args)

    def _two_to_one(self, method: str) -> str:
        name = f"jnp.{self.__name__}.{method}"
        if (self.nin, self.nout) != (2, 1):
            raise ValueError(
                f"{name}: needs a function of two arguments and one result; got "
                f"{self.nin} and {self.nout}; use a binary ufunc, as jnp.add"
            )
        return name

    @api_boundary
    def reduce(
        self,
        a: Any,
        axis: int | None = 0,
        dtype: Any = None,
        out: None = None,
        keepdims: bool = False,
        initial: Any = None,
        where: Any = None,
    ) -> Array:
        """Fold an axis (all of them if None) from left to right.

        Raises:
            ValueError: the axis is empty and there is no identity, or `where` without a start.
        """
        name = self._two_to_one("reduce")
        no_out(out, name)
        x = wrap(as_node(a, name))
        start = self.identity if initial is None else initial
        if where is not None and start is None:
            raise ValueError(f"{name}: where= needs a start: {self.__name__} has no identity; "
                             "pass initial=")  # fmt: skip
        if self._reduce is not None:
            more = {} if dtype is None else {"dtype": dtype}
            more |= {} if initial is None else {"initial": initial}
            more |= {} if where is None else {"where": where}
            return self._reduce(x, axis=axis, keepdims=keepdims, **more)
        x = x if dtype is None else x.astype(dtype)
        if isinstance(axis, tuple):
            raise NotImplementedError(
                f"{name}: one axis or None; got axis={axis}; fold one axis after the other"
            )
        shape = x.shape
        lines = x.reshape(-1) if axis is None else moveaxis(x, as_axis(axis, x.ndim, name), 0)
        mask = None
        if where is not None:
            mask = wrap(as_node(where, name)) & np.ones(shape, bool)
            mask = mask.reshape(-1) if axis is None else moveaxis(mask, axis, 0)
        if start is None and not len(lines):
            raise ValueError(f"{name}: the axis is empty and {self.__name__} has no identity; "
                             "pass initial=")  # fmt: skip
        if start is None or (initial is None and mask is None and len(lines)):
            state, lines = lines[0], lines[1:]
        else:
            state = full(lines.shape[1:], start, x.dtype)
        kind = state.dtype

        def step(state: Array, row: Any) -> tuple[Array, None]:
            value, use = row if mask is not None else (row, None)
            new = self(state, value).astype(kind)
            return new if use is None else select(use, new, state), None

        result, _ = _loops().scan(step, state, lines if mask is None else (lines, mask))
        if not keepdims:
            return result
        return result.reshape((1,) * len(shape)) if axis is None else expand_dims(result, axis)

    @api_boundary
    def accumulate(self, a: Any, axis: int = 0, dtype: Any = None, out: None = None) -> Array:
        """Fold an axis from left to right and keep all that came before the end."""
        name = self._two_to_one("accumulate")
        no_out(out, name)
        if axis is None or isinstance(axis, bool):
            raise ValueError(f"{name}: axis must be an integer; got {axis!r}; pass one integer")
        x = wrap(as_node(a, name))
        if self._accumulate is not None:
            return self._accumulate(x, axis=axis, **({} if dtype is None else {"dtype": dtype}))
        if dtype is None and self(x, x).dtype == bool:
            dtype = bool  # what begins a fold of truth values is one of them
        x = x if dtype is None else x.astype(dtype)
        d = as_axis(axis, x.ndim, name)
        running = _EXTREMES.get(self.__name__)
        # The op is three times as fast as a loop, but its derivative shares ties out otherwise.
        if running and (x.dtype.kind in "iu" or (x.dtype.kind == "f" and x._node.trace is None)):
            return wrap(getattr(o, running)(x._node, axis=d, reverse=False))
        lines = moveaxis(x, d, 0)
        if not len(lines):
            return x

        def step(state: Array, row: Array) -> tuple[Array, Array]:
            new = self(state, row).astype(x.dtype)
            return new, new

        rest = _loops().scan(step, lines[0], lines[1:])[1]
        return moveaxis(_joining().concatenate([lines[:1], rest]), 0, axis)

    @api_boundary
    def at(self, a: Any, indices: Any, b: Any = None, /, *, inplace: bool = True) -> Array:
        """Return a copy in which the function was applied at indices, repeated ones in order."""
        name = f"jnp.{self.__name__}.at"
        if inplace:
            raise NotImplementedError(
                f"{name}: arrays are immutable; pass inplace=False to get an updated copy"
            )
        x = wrap(as_node(a, name))
        if self._at is not None:
            return self._at(x, indices, *([] if b is None else [b]))
        if self.nin != 1:
            self._two_to_one("at")
        key = indices if isinstance(indices, tuple) else (indices,)
        places = (
            _joining().stack(list(np.indices(x.shape)))[(slice(None), *key)] if x.ndim else None
        )
        second = () if self.nin == 1 else (wrap(as_node(b, name)),)
        if places is None:
            return self(x, *second).astype(x.dtype)
        values = [(v + np.zeros(places.shape[1:], x.dtype)).reshape(-1) for v in second]
        places = places.reshape(x.ndim, -1)

        def step(k: Array, state: Array) -> Array:
            where = tuple([places[d, k] for d in range(x.ndim)])
            return state.at[where].set(self(state[where], *[v[k] for v in values]).astype(x.dtype))

        return _loops().fori_loop(0, places.shape[1], step, x)

    @api_boundary
    def reduceat(
        self, a: Any, indices: Any, axis: int = 0, dtype: Any = None, out: None = None
    ) -> Array:
        """Fold the stretches of an axis that begin at indices; the last one goes to the end.

        A stretch whose index is not below the next one is its first element alone.
        """
        name = self._two_to_one("reduceat")
        no_out(out, name)
        x, starts = wrap(as_node(a, name)), wrap(as_node(indices, name))
        if starts.ndim != 1 or starts.dtype.kind not in "iu":
            raise ValueError(
                f"{name}: indices must be a rank-1 array of integers; got {starts.aval}; "
                "ravel and convert them"
            )
        x = x if dtype is None else x.astype(dtype)
        lines = moveaxis(x, as_axis(axis, x.ndim, name), 0)
        count = len(lines)
        stops = _joining().concatenate([starts[1:], full(1, count, starts.dtype)])
        place = np.arange(count).reshape(count, 1)
        inside = (place > starts[None]) & (place < stops[None])
        inside = inside.reshape(count, -1, *(1,) * (lines.ndim - 1))

        def step(state: Array, row: Any) -> tuple[Array, None]:
            value, use = row
            return select(use, self(state, value[None]).astype(x.dtype), state), None

        return moveaxis(_loops().scan(step, lines[starts], (lines, inside))[0], 0, axis)

    @api_boundary
    @broadcasts_inside
    def outer(self, A: Any, B: Any, /) -> Array:
        """Apply the function to all pairs; the result has the axes of both."""
        name = self._two_to_one("outer")
        a, b = wrap(as_node(A, name)), wrap(as_node(B, name))
        return self(a.reshape(a.shape + (1,) * b.ndim), b)


@api_boundary
def frompyfunc(func: Any, /, nin: int, nout: int, *, identity: Any = None) -> ufunc:
    """Make a ufunc of a function of scalars.

    Args:
        func: function of `nin` scalars that returns `nout` of them; it is traced.
        nin: number of arguments.
        nout: number of results.
        identity: what a fold of nothing gives.

    The ufunc's arguments broadcast, and promote as `func` says; unlike NumPy's, results are no
    objects, but of numeric dtypes.

    Raises:
        AttributeError: func has no name.

    >>> import accnp as jnp
    >>> jnp.frompyfunc(lambda x, y: x * 10 + y, 2, 1, identity=0).reduce(jnp.array([1, 2, 3]))
    Array(123, dtype=int32)
    """
    return ufunc(func, nin, nout, identity=identity)


def _with_at(method: str) -> Any:
    return lambda x, indices, b: getattr(x.at[indices], method)(b)


def _log_total(x: Array, dtype: Any = None, initial: Any = None, **how: Any) -> Array:
    """One sum of exponentials: a fold of logarithms would round after each step."""
    sums = imported("accnp.api.networks.nn")
    y = sums.logsumexp(x if dtype is None else x.astype(dtype), **how)
    return y if initial is None else uf.logaddexp(initial, y)


def _log2_total(x: Array, dtype: Any = None, initial: Any = None, **how: Any) -> Array:
    x = x if dtype is None else x.astype(dtype)
    y = _log_total(x * np.log(2).item(), **how) / np.log(2).item()
    return y if initial is None else uf.logaddexp2(initial, y)


def _is_odd(x: Array, **how: Any) -> Array:
    """Whether an odd number of elements are true."""
    return reductions.sum(x != 0, **how, dtype=np.uint8) % 2 == 1


def _of_truths(fold: Callable[..., Array], combine: Callable[..., Array]) -> Callable[..., Array]:
    """A reduction of truth values, of which `initial` is one more."""

    def reduce(x: Array, dtype: Any = None, initial: Any = None, **how: Any) -> Array:
        kind = np.dtype(bool) if dtype is None else dtypes.canonicalize_dtype(dtype)
        if kind.kind not in "biu":
            raise TypeError(
                f"jnp.{combine.__name__}.reduce: dtype must be bool or an integer type; "
                f"got {kind.name}; leave it out"
            )
        y = fold(x, **how)
        if initial is not None:
            name = f"jnp.{combine.__name__}.reduce"
            y = combine(y, wrap(reductions.start_of(initial, np.dtype(bool), name)))
        return y if dtype is None else y.astype(kind)

    return reduce


def _publish(function: Any, identity: Any, nin: int = 2, **fast: Any) -> None:
    """Give a function of the namespace the methods of a ufunc."""
    made = ufunc(function, nin, 1, name=function.__name__, identity=identity, call=function, **fast)
    function._ufunc = made
    for name in ("reduce", "accumulate", "at", "reduceat", "outer"):
        setattr(function, name, getattr(made, name))
    function.nin, function.nout, function.nargs = made.nin, made.nout, made.nargs
    function.identity = identity


_publish(uf.add, 0, reduce=reductions.sum, accumulate=_running("cumsum"), at=_with_at("add"))
_publish(uf.multiply, 1, reduce=reductions.prod, accumulate=_running("cumprod"), at=_with_at("mul"))
_publish(uf.subtract, None, at=_with_at("subtract"))
_publish(uf.maximum, None, reduce=reductions.max, at=_with_at("max"))
_publish(uf.minimum, None, reduce=reductions.min, at=_with_at("min"))
_publish(uf.logical_and, True, reduce=_of_truths(reductions.all, uf.logical_and))
_publish(uf.logical_or, False, reduce=_of_truths(reductions.any, uf.logical_or))
_publish(uf.logical_xor, False, reduce=_of_truths(_is_odd, uf.logical_xor))
_publish(uf.bitwise_and, -1)
_publish(uf.bitwise_or, 0)
_publish(uf.bitwise_xor, 0)
_publish(uf.logaddexp, -np.inf, reduce=_log_total)
_publish(uf.logaddexp2, -np.inf, reduce=_log2_total)
_publish(uf.negative, None, nin=1)
