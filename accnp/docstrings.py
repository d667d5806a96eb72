"""Text that docstrings share: descriptions of parameters, errors and differences from NumPy.

In: a docstring in NumPy style with lines such as `{axis}`. Out: the docstring with the block of
that name from `BLOCKS` in its place. `errors.api_boundary` fills in the docstrings of public
functions; classes and generated functions use `filled`.
"""

from __future__ import annotations

import re
from typing import Protocol, TypeVar

__all__ = ["BLOCKS", "fill", "filled"]


class Documented(Protocol):
    __doc__: str | None


T = TypeVar("T", bound=Documented)

# Name of a block -> its text, without indentation.
BLOCKS: dict[str, str] = {
    # --- parameters
    "a": """\
a : array_like
    Input array or number. Lists and tuples are not accepted.""",
    "axes_reduced": """\
axis : None, int, str or tuple of these, optional
    Axis or axes along which to reduce. None, the default, reduces all axes, and a negative number
    counts from the last axis. A string names a mapped axis of an enclosing `vmap` or `pmap`.""",
    "keepdims": """\
keepdims : bool, optional
    If True, the reduced axes stay in the result with length 1, so that it broadcasts against the
    input. The default is False.""",
    "out": """\
out : None, optional
    Not supported, since arrays are immutable; present for compatibility with NumPy.""",
    "where": """\
where : array_like of bool, optional
    Elements to include; it broadcasts against the input. The default includes all elements.""",
    "dtype_mean": """\
dtype : dtype_like, optional
    Floating or complex dtype of the result. The default is the dtype of `a`, or the default float
    dtype if `a` holds integers or bools.""",
    "ddof": """\
ddof : number, optional
    Delta degrees of freedom: the sum of squares is divided by N - ddof, where N is the number of
    elements. The default, 0, gives the variance of a whole population, and 1 the unbiased estimate
    from a sample.""",
    "correction": """\
correction : number, optional
    Name of `ddof` in the array API standard. Give one of the two.""",
    "known_mean": """\
mean : array_like, optional
    Precomputed mean, of a shape that broadcasts against `a`; `keepdims=True` gives such a mean.""",
    # --- errors
    "raises_out": """\
NotImplementedError
    If `out` is given.""",
}
_LINE = re.compile(r"^( *)\{(\w+)\}$", re.MULTILINE)


def fill(text: str) -> str:
    """Return a docstring with each line `{name}` replaced by the block of that name."""
    return _LINE.sub(_block, text)


def _block(found: re.Match[str]) -> str:
    indent, name = found.groups()
    return indent + BLOCKS[name].replace("\n", "\n" + indent)


def filled(documented: T) -> T:
    """Fill in the shared text of a class or function, as a decorator."""
    if documented.__doc__ is not None:  # under `python -OO` there are no docstrings
        documented.__doc__ = fill(documented.__doc__)
    return documented
