"""`ufunc`: elementwise functions with the methods reduce, accumulate, at, reduceat and outer.

`frompyfunc` makes a `ufunc` from a function of scalars. Functions such as `jnp.add` are plain
functions with a faster call path (`Ufunc` of the C extension); they get the methods of a `ufunc` as
attributes and count as its instances.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from accnp import dtypes
from accnp.api.arguments.convert import as_node, wrap
from accnp.api.arguments.internal_promotion import broadcasts_inside
from accnp.api.arguments.shapes import as_axis, as_int
from accnp.api.arguments.values import no_out
from accnp.array_type import Array, ArrayLike
from accnp.dtypes.names import DTypeLike
from accnp.errors import api_boundary
from accnp.ir.op import o
from accnp.lazy_imports import imported
from accnp.numpy import reductions
from accnp.numpy import ufuncs as uf
from accnp.numpy.creation import full
from accnp.numpy.manipulation import expand_dims, moveaxis
from accnp.numpy.selection import where as select

__all__ = ["frompyfunc", "ufunc"]


_EXTREMES = {"maximum": "cummax", "minimum": "cummin"}

# The methods are rarely used, so the modules that they need are imported on first call.


def _joining_module() -> Any:
    return imported("accnp.numpy.joining")


def _loops() -> Any:
    return imported("accnp.lax.control_flow.loops")


def _call_cumulative(reduction: str) -> Any:
    return lambda x, **how: getattr(imported("accnp.numpy.cumulative"), reduction)(x, **how)


class _Kind(type):
    def __instancecheck__(cls, instance: Any) -> bool:
        return type(instance) is cls or hasattr(instance, "_ufunc")


class ufunc(metaclass=_Kind):
    """Elementwise function with the methods of NumPy's ufuncs.

    Parameters
    ----------
    func : callable
        Function of `nin` scalars that returns `nout` scalars. It is traced, so that it may use any
        function of `accnp.numpy`.
    nin : int
        Number of operands that `func` takes.
    nout : int
        Number of results that `func` returns.
    name : str, optional
        Name of the function. The default is that of `func`.
    nargs : int, optional
        Value of the attribute `nargs`. The default is `nin`.
    identity : scalar, optional
        Result of a reduction without elements. The default, None, makes it an error.
    call, reduce, accumulate, at, reduceat : callable, optional
        Faster implementations of the methods of these names. The defaults work for any `func`.

    Raises
    ------
    TypeError
        If `func` is not callable, or `nin` or `nout` is not an integer.

    See Also
    --------
    frompyfunc : Make a ufunc from a function of scalars.
    vectorize : Broadcast a function over leading axes.

    Notes
    -----
    Functions of `accnp.numpy` such as `add` are of another class with these methods, which is
    faster to call. They count as instances of this class.

    Examples
    --------
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
            raise TypeError(f"frompyfunc: func must be a function; got {func!r}; pass a function")
        nin, nout = as_int(nin, "frompyfunc", "nin"), as_int(nout, "frompyfunc", "nout")
        self.__name__ = name or func.__name__
        self.__wrapped__ = func
        self._nin, self._nout, self._nargs = nin, nout, nin if nargs is None else nargs
        self._identity = identity
        self._call = call or imported("accnp.numpy.vectorizing").vectorize(func)
        self._reduce, self._accumulate, self._at = reduce, accumulate, at
        self._reduceat = reduceat
        self.__doc__ = func.__doc__ or type(self).__doc__

    nin = property(lambda self: self._nin, doc="The number of arguments.")
    nout = property(lambda self: self._nout, doc="The number of results.")
    nargs = property(lambda self: self._nargs, doc="The number of arguments, as NumPy counts them.")
    identity = property(lambda self: self._identity, doc="Result of an empty reduction, or None.")

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
            raise NotImplementedError(
                f"{self.__name__}: where= is not supported; got {where!r:.60}; use jnp.where"
            )
        if len(args) != self.nin:
            raise TypeError(
                f"{self.__name__}: expected {self.nin} arguments; got {len(args)}; "
                "pass one array for each operand"
            )
        return self._call(*args)

    def _two_to_one(self, method: str) -> str:
        name = f"jnp.{self.__name__}.{method}"
        if (self.nin, self.nout) != (2, 1):
            raise ValueError(
                f"{name}: expected a function of two arguments and one result; got "
                f"{self.nin} and {self.nout}; use a binary ufunc, such as jnp.add"
            )
        return name

    @api_boundary
    def reduce(
        self,
        a: ArrayLike,
        axis: int | None = 0,
        dtype: DTypeLike | None = None,
        out: None = None,
        keepdims: bool = False,
        initial: ArrayLike | None = None,
        where: ArrayLike | None = None,
    ) -> Array:
        """Reduce an axis by applying the function from left to right.

        Parameters
        ----------
        a : array_like
            Array to reduce. Lists and tuples are not accepted.
        axis : int, optional
            Axis to reduce. The default is the first axis; None reduces the flattened array.
        dtype : dtype_like, optional
            Dtype in which to compute. The default is that of `a`, or that of the reduction of this
            name, such as `sum` for `add`.
        {out}
        {keepdims}
        initial : scalar, optional
            Value to start with. The default is the identity of the function, if it has one.
        {where}

        Returns
        -------
        Array
            Array with the shape of `a` without the axis.

        Raises
        ------
        ValueError
            If the function does not take two operands and return one result, the axis is empty and
            there is no identity, or `where` is given and there is neither an identity nor
            `initial`.
        NotImplementedError
            If `out` is given, or several axes for a function without a reduction of its own.

        Examples
        --------
        >>> import accnp as jnp
        >>> jnp.bitwise_xor.reduce(jnp.array([1, 3, 4]))
        Array(6, dtype=int32)
        """
        name = self._two_to_one("reduce")
        no_out(out, name)
        x = wrap(as_node(a, name))
        start = self.identity if initial is None else initial
        if where is not None and start is None:
            raise ValueError(f"{name}: where= requires initial=: {self.__name__} has no identity; "
                             "pass initial=")  # fmt: skip
        if self._reduce is not None:
            more = {} if dtype is None else {"dtype": dtype}
            more |= {} if initial is None else {"initial": initial}
            more |= {} if where is None else {"where": where}
            return self._reduce(x, axis=axis, keepdims=keepdims, **more)
        x = x if dtype is None else x.astype(dtype)
        if isinstance(axis, tuple):
            raise NotImplementedError(
                f"{name}: axis must be an integer or None; got {axis}; reduce the axes one by one"
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
        """Apply the function along an axis from left to right and keep all intermediate results.

        Parameters
        ----------
        a : array_like
            Array with at least one axis. Lists and tuples are not accepted.
        axis : int, optional
            Axis along which to accumulate. The default is the first axis.
        dtype : dtype_like, optional
            Dtype in which to compute. The default is that of `a`.
        {out}

        Returns
        -------
        Array
            Array with the shape of `a`.

        Raises
        ------
        ValueError
            If the function does not take two operands and return one result, or `axis` is not an
            integer in bounds.
        {raises_out}

        Examples
        --------
        >>> import accnp as jnp
        >>> jnp.multiply.accumulate(jnp.array([1, 2, 3]))
        Array([1, 2, 6], dtype=int32)
        """
        name = self._two_to_one("accumulate")
        no_out(out, name)
        if axis is None or isinstance(axis, bool):
            raise ValueError(f"{name}: axis must be an integer; got {axis!r}; pass one integer")
        x = wrap(as_node(a, name))
        if self._accumulate is not None:
            return self._accumulate(x, axis=axis, **({} if dtype is None else {"dtype": dtype}))
        if dtype is None and self(x, x).dtype == bool:
            dtype = bool  # the first element must be bool, too
        x = x if dtype is None else x.astype(dtype)
        d = as_axis(axis, x.ndim, name)
        running = _EXTREMES.get(self.__name__)
        # The op is three times as fast as a loop, but its derivative distributes ties differently.
        if running and (x.dtype.kind in "iu" or (x.dtype.kind == "f" and x._node.trace is None)):
            return wrap(getattr(o, running)(x._node, axis=d, reverse=False))
        lines = moveaxis(x, d, 0)
        if not len(lines):
            return x

        def step(state: Array, row: Array) -> tuple[Array, Array]:
            new = self(state, row).astype(x.dtype)
            return new, new

        rest = _loops().scan(step, lines[0], lines[1:])[1]
        return moveaxis(_joining_module().concatenate([lines[:1], rest]), 0, axis)

    @api_boundary
    def at(self, a: Any, indices: Any, b: Any = None, /, *, inplace: bool = True) -> Array:
        """Apply the function to the elements at the given indices, in a copy or in the array.

        Parameters
        ----------
        a : array_like
            Array to copy or to change. Lists and tuples are not accepted.
        indices : index or tuple of these
            Places of the elements. Those that occur several times are updated several times, in
            order.
        b : array_like, optional
            Second operand of the function, if it takes two; it broadcasts to the indexed shape.
        inplace : bool
            Whether to change the array, which needs the option `item_assignment`, since arrays are
            immutable otherwise. True is the default, as in NumPy.

        Returns
        -------
        Array
            Updated copy, with the shape and dtype of `a`, or `a` itself if `inplace` is True.

        Raises
        ------
        NotImplementedError
            If `inplace` is True without the option `item_assignment`.

        Examples
        --------
        >>> import accnp as jnp
        >>> jnp.add.at(jnp.zeros(3), jnp.array([0, 0, 2]), 1.0, inplace=False)
        Array([2., 0., 1.], dtype=float32)
        """
        name = f"jnp.{self.__name__}.at"
        if inplace:
            references = sys.getrefcount(a)
            return imported("accnp.numpy.assigning").assign_in_place(
                name, a, None, references,
                lambda x, _: self.at(x, indices, b, inplace=False), NotImplementedError,
            )  # fmt: skip
        x = wrap(as_node(a, name))
        if self._at is not None:
            return self._at(x, indices, *([] if b is None else [b]))
        if self.nin != 1:
            self._two_to_one("at")
        key = indices if isinstance(indices, tuple) else (indices,)
        places = (
            _joining_module().stack(list(np.indices(x.shape)))[(slice(None), *key)]
            if x.ndim
            else None
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
        """Reduce slices of an axis, each from one index to the next.

        Parameters
        ----------
        a : array_like
            Array with at least one axis. Lists and tuples are not accepted.
        indices : array_like of int
            Starts of the slices, of rank 1. The last slice reaches to the end. If an index is not
            below the next one, the result is the element at the index alone.
        axis : int, optional
            Axis along which to reduce. The default is the first axis.
        dtype : dtype_like, optional
            Dtype in which to compute. The default is that of `a`.
        {out}

        Returns
        -------
        Array
            Array with the shape of `a`, except that the axis has the length of `indices`.

        Raises
        ------
        ValueError
            If the function does not take two operands and return one result, `indices` is not a
            vector of integers, or the axis is out of bounds.
        {raises_out}

        Examples
        --------
        >>> import accnp as jnp
        >>> jnp.add.reduceat(jnp.array([1, 2, 3, 4]), jnp.array([0, 2]))
        Array([3, 7], dtype=int32)
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
        stops = _joining_module().concatenate([starts[1:], full(1, count, starts.dtype)])
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
        """Apply the function to all pairs of elements of two operands.

        Parameters
        ----------
        A, B : array_like
            First and second operand of the function. Lists and tuples are not accepted.

        Returns
        -------
        Array
            Array whose shape is that of `A` followed by that of `B`.

        Raises
        ------
        ValueError
            If the function does not take two operands and return one result.

        Examples
        --------
        >>> import accnp as jnp
        >>> jnp.subtract.outer(jnp.array([5, 7]), jnp.array([1, 2]))
        Array([[4, 3],
               [6, 5]], dtype=int32)
        """
        name = self._two_to_one("outer")
        a, b = wrap(as_node(A, name)), wrap(as_node(B, name))
        return self(a.reshape(a.shape + (1,) * b.ndim), b)


@api_boundary
def frompyfunc(func: Any, /, nin: int, nout: int, *, identity: ArrayLike | None = None) -> ufunc:
    """Make a ufunc from a function of scalars.

    Parameters
    ----------
    func : callable
        Function of `nin` scalars that returns `nout` scalars; it is traced.
    nin : int
        Number of operands that `func` takes.
    nout : int
        Number of results that `func` returns.
    identity : scalar, optional
        Result of a reduction without elements. The default, None, makes it an error.

    Returns
    -------
    ufunc
        Function of arrays, whose shapes broadcast; it has the methods of ufuncs.

    Raises
    ------
    TypeError
        If `func` is not callable.
    AttributeError
        If `func` has no name.

    See Also
    --------
    ufunc : Class of the result.
    vectorize : Broadcast a function over leading axes.

    Notes
    -----
    Results have numeric dtypes, as `func` computes them, where NumPy returns arrays of objects.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.frompyfunc(lambda x, y: x * 10 + y, 2, 1, identity=0).reduce(jnp.array([1, 2, 3]))
    Array(123, dtype=int32)
    """
    return ufunc(func, nin, nout, identity=identity)


def _with_at(method: str) -> Any:
    return lambda x, indices, b: getattr(x.at[indices], method)(b)


def _log_total(x: Array, dtype: Any = None, initial: Any = None, **how: Any) -> Array:
    """Sum exponentials at once: a reduction by logaddexp would round after each step."""
    y = imported("accnp.numpy.log_sum_exp").logsumexp(
        x if dtype is None else x.astype(dtype), **how
    )
    return y if initial is None else uf.logaddexp(initial, y)


def _log2_total(x: Array, dtype: Any = None, initial: Any = None, **how: Any) -> Array:
    x = x if dtype is None else x.astype(dtype)
    y = _log_total(x * np.log(2).item(), **how) / np.log(2).item()
    return y if initial is None else uf.logaddexp2(initial, y)


def _is_odd(x: Array, **how: Any) -> Array:
    """Return whether an odd number of elements is true."""
    return reductions.sum(x != 0, **how, dtype=np.uint8) % 2 == 1


def _reduce_truth_values(
    reduction: Callable[..., Array], combine: Callable[..., Array]
) -> Callable[..., Array]:
    """Make a reduction of truth values that combines `initial` with the result."""

    def reduce(x: Array, dtype: Any = None, initial: Any = None, **how: Any) -> Array:
        kind = np.dtype(bool) if dtype is None else dtypes.canonicalize_dtype(dtype)
        if kind.kind not in "biu":
            raise TypeError(
                f"jnp.{combine.__name__}.reduce: dtype must be bool or an integer type; "
                f"got {kind.name}; leave it out"
            )
        y = reduction(x, **how)
        if initial is not None:
            name = f"jnp.{combine.__name__}.reduce"
            y = combine(y, wrap(reductions.start_of(initial, np.dtype(bool), name)))
        return y if dtype is None else y.astype(kind)

    return reduce


def _publish(function: Any, identity: Any, nin: int = 2, **fast: Any) -> None:
    """Give a public function the methods of a ufunc."""
    ufunc_object = ufunc(
        function, nin, 1, name=function.__name__, identity=identity, call=function, **fast
    )
    function._ufunc = ufunc_object
    for name in ("reduce", "accumulate", "at", "reduceat", "outer"):
        setattr(function, name, getattr(ufunc_object, name))
    names = ("nin", "nout", "nargs", "identity")  # read-only for users
    vars(function).update({name: getattr(ufunc_object, name) for name in names})


_publish(
    uf.add, 0, reduce=reductions.sum, accumulate=_call_cumulative("cumsum"), at=_with_at("add")
)
_publish(
    uf.multiply,
    1,
    reduce=reductions.prod,
    accumulate=_call_cumulative("cumprod"),
    at=_with_at("mul"),
)
_publish(uf.subtract, None, at=_with_at("subtract"))
_publish(uf.maximum, None, reduce=reductions.max, at=_with_at("max"))
_publish(uf.minimum, None, reduce=reductions.min, at=_with_at("min"))
_publish(uf.logical_and, True, reduce=_reduce_truth_values(reductions.all, uf.logical_and))
_publish(uf.logical_or, False, reduce=_reduce_truth_values(reductions.any, uf.logical_or))
_publish(uf.logical_xor, False, reduce=_reduce_truth_values(_is_odd, uf.logical_xor))
_publish(uf.bitwise_and, -1)
_publish(uf.bitwise_or, 0)
_publish(uf.bitwise_xor, 0)
_publish(uf.logaddexp, -np.inf, reduce=_log_total)
_publish(uf.logaddexp2, -np.inf, reduce=_log2_total)
_publish(uf.negative, None, nin=1)
