"""`vectorize`: maps a function over the broadcast leading axes of its arguments."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Collection, Sequence
from typing import Any

from accnp.api.arguments.convert import broadcast_shapes, check_ranks
from accnp.api.mapping.vmap import vmap
from accnp.array_type import Array
from accnp.errors import api_boundary
from accnp.numpy.creation import asarray
from accnp.numpy.manipulation import expand_dims
from accnp.pytree import tree_map

__all__ = ["vectorize"]

_DIMS = r"\((?:\w+(?:,\w+)*)?\)"
_LIST = rf"{_DIMS}(?:,{_DIMS})*"
_SIGNATURE = re.compile(rf"^{_LIST}->{_LIST}$")
CoreDims = list[tuple[str, ...]]


def _array(x: Any) -> Any:
    return x if isinstance(x, Array) else asarray(x)


class _Signature:
    """The core axes of arguments and results, parsed from a gufunc signature."""

    __slots__ = ("arguments", "results", "text")

    def __init__(self, text: str) -> None:
        if not _SIGNATURE.match(text):
            raise ValueError(
                f"vectorize: not a valid gufunc signature; got {text!r}; use a form such as "
                "'(m,n),(n)->(m)', without spaces"
            )
        self.text = text
        left, right = text.split("->")
        self.arguments = self._dims(left)
        self.results = self._dims(right)

    @staticmethod
    def _dims(text: str) -> CoreDims:
        return [tuple(re.findall(r"\w+", group)) for group in re.findall(_DIMS, text)]

    def fill(self, sizes: dict[str, int], shape: tuple[int, ...], dims: tuple[str, ...]) -> None:
        """Bind the lengths of core axes from a shape, or check them."""
        for name, n in zip(dims, shape, strict=True):
            known = int(name) if name.isdigit() else sizes.setdefault(name, n)
            if known != n:
                raise ValueError(
                    f"vectorize: inconsistent size for core dimension {name!r}: {n} vs {known}; "
                    f"signature={self.text!r}"
                )

    def checked(self, fun: Callable[..., Any], sizes: dict[str, int]) -> Callable[..., Any]:
        """Return the function with a check of its results against the signature."""

        def call(*args: Any) -> Any:
            out = fun(*args)
            if len(self.results) > 1 and not isinstance(out, tuple):
                raise TypeError(
                    f"vectorize: the function must return a tuple of {len(self.results)} results; "
                    f"got {out}; signature={self.text!r}"
                )
            every = out if isinstance(out, tuple) else (out,)
            if len(every) != len(self.results):
                raise TypeError(
                    "vectorize: wrong number of output arguments: expected "
                    f"{len(self.results)}, got {len(every)}; signature={self.text!r}"
                )
            known = dict(sizes)
            for x, dims in zip(every, self.results, strict=True):
                shape = _array(x).shape
                if len(shape) != len(dims):
                    raise ValueError(
                        f"vectorize: output shape {shape} does not match core dimensions {dims}; "
                        f"signature={self.text!r}"
                    )
                self.fill(known, shape, dims)
            return out

        return call


@api_boundary
def vectorize(
    pyfunc: Callable[..., Any],
    *,
    excluded: Collection[int | str] = frozenset(),
    signature: str | None = None,
) -> Callable[..., Any]:
    """Make a function broadcast its arguments, by mapping it over leading axes.

    Parameters
    ----------
    pyfunc : callable
        Function of scalars, or of arrays with the core axes of the signature.
    excluded : collection of int or str, optional
        Positions and names of arguments that are passed on as they are. Keyword arguments have to
        be among them.
    signature : str, optional
        Core axes in NumPy's notation, such as "(m,n),(n)->(m)". By default all arguments are
        taken apart into scalars.

    Returns
    -------
    callable
        Function of arrays of any shape, whose results have the dtypes that `pyfunc` returns.

    Raises
    ------
    TypeError
        If `excluded` holds anything else, or the numbers of arguments or results do not fit the
        signature.
    ValueError
        If the signature is malformed, an excluded position is negative, or shapes do not fit the
        signature or each other.

    See Also
    --------
    vmap : Map over one axis of each argument.
    frompyfunc : Make a ufunc, with methods.

    Notes
    -----
    This is `vmap` over the broadcast axes, so that `pyfunc` is traced once and compiled to fused
    kernels. Unlike in NumPy, there are no `otypes` and `cache` parameters.

    Examples
    --------
    >>> import accnp as jnp
    >>> f = jnp.vectorize(jnp.dot, signature="(n),(n)->()")
    >>> f(jnp.ones((2, 3)), jnp.arange(3.0))
    Array([3., 3.], dtype=float32)
    """
    if any(not isinstance(e, str | int) for e in excluded):
        raise TypeError(
            f"vectorize: excluded must contain positions and names; got {excluded!r}; "
            "use integers and strings"
        )
    if any(isinstance(e, int) and e < 0 for e in excluded):
        raise ValueError(
            f"vectorize: excluded positions must not be negative; got {excluded!r}; count from 0"
        )
    core = None if signature is None else _Signature(signature)

    @functools.wraps(pyfunc)
    @api_boundary
    def vectorized(*args: Any, **kwargs: Any) -> Any:
        return _apply(pyfunc, frozenset(excluded), core, args, kwargs)

    return vectorized


def _apply(
    pyfunc: Callable[..., Any],
    excluded: Collection[Any],
    core: _Signature | None,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Any:
    unknown = sorted(k for k in kwargs if k not in excluded)
    if unknown:
        raise TypeError(
            f"vectorize: keyword arguments must be in excluded; got {unknown}; pass them by "
            "position, or add them to excluded"
        )
    positions = [i for i in range(len(args)) if i not in excluded]
    if core is not None and len(positions) != len(core.arguments):
        raise TypeError(
            f"vectorize: wrong number of positional arguments: expected {len(core.arguments)}, got "
            f"{len(positions)}; signature={core.text!r}"
        )
    dims = [() for _ in positions] if core is None else core.arguments
    for i, d in zip(positions, dims, strict=True):
        if core is not None and args[i] is None and d:
            raise ValueError(
                f"vectorize: Cannot pass None at locations {{{i}}} with signature={core.text!r}; "
                "pass an array, or add the position to excluded"
            )
    places = [i for i in positions if args[i] is not None]
    dims = [d for i, d in zip(positions, dims, strict=True) if args[i] is not None]
    arrays = [_array(args[i]) for i in places]

    def one(*parts: Any) -> Any:
        whole = list(args)
        for i, x in zip(places, parts, strict=True):
            whole[i] = x
        return pyfunc(*whole, **kwargs)

    sizes: dict[str, int] = {}
    loops = []
    for x, d in zip(arrays, dims, strict=True):
        split = len(x.shape) - len(d)
        if split < 0:
            raise ValueError(
                f"vectorize: input with shape {x.shape} does not have enough dimensions for all "
                f"core dimensions {d}; signature={core.text if core else None!r}"
            )
        if core is not None:
            core.fill(sizes, x.shape[split:], d)
        loops.append(x.shape[:split])
    ranked = [loop for x, loop in zip(arrays, loops, strict=True) if x.ndim]
    check_ranks("vectorize", ranked)
    fun = one if core is None else core.checked(one, sizes)
    return _map_over_loops(fun, arrays, loops)


def _map_over_loops(fun: Callable[..., Any], arrays: Sequence[Any], loops: Sequence[tuple]) -> Any:
    """Map over the broadcast axes, the last one innermost; axes of length 1 are not mapped."""
    shape = broadcast_shapes("vectorize", list(loops))
    rank = len(shape)
    full = [(1,) * (rank - len(loop)) + loop for loop in loops]
    single = []
    for d in reversed(range(rank)):
        axes = tuple([None if loop[d] == 1 else 0 for loop in full])
        if any(a is not None for a in axes):
            fun = vmap(fun, axes)
        else:
            single.append(d)
    parts = [
        x.reshape([n for n in loop if n != 1] + list(x.shape[len(loop) :]))
        for x, loop in zip(arrays, loops, strict=True)
    ]
    out = fun(*parts)
    # Restore the axes that have length 1 in all arguments.
    return tree_map(lambda x: expand_dims(x, tuple(single)), out) if single else out
