"""`einsum` and `einsum_path`.

A contraction is decomposed into diagonals, sums, dot products of pairs of operands, and one final
transposition. The order of pairs is given, greedy, or the best one by dynamic programming.
"""

from __future__ import annotations

import string
from collections import Counter
from collections.abc import Callable, Sequence
from functools import lru_cache
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from accnp import dtypes
from accnp.api.arguments.convert import as_node, cast, promote, to_shape
from accnp.api.arguments.internal_promotion import promotes_inside
from accnp.api.arguments.values import no_out
from accnp.array_type import Array, ArrayLike, ShardingLike, wrap
from accnp.docstrings import Sentinel
from accnp.dtypes.names import DTypeLike
from accnp.errors import api_boundary
from accnp.ir.node import Node
from accnp.ir.op import o
from accnp.numpy.einsum_report import PathInfo, report
from accnp.numpy.manipulation import expand_node, transpose_node
from accnp.numpy.matrices import diagonal_node
from accnp.numpy.products import check_sum_dtype, dot_general, product
from accnp.numpy.ufunc_rules import multiply
from accnp.sharding.device_placement import record_sharded
from accnp.sharding.requested_shardings import requested_in_order

if TYPE_CHECKING:
    from accnp.lax.enumerations import PrecisionLike

__all__ = ["einsum", "einsum_path"]

_DOT_GENERAL = Sentinel("dot_general")  # its repr has no address
# The largest number of operands for which the best path is searched: 3**10 / 2 pairs take 0.1 s.
_SEARCHED = 10


def _letters(operands: Sequence[Any]) -> tuple[str, list[Any]]:
    """Convert the form einsum(a, [0, 1], b, [1, 2], [0, 2]) to a formula and arrays."""
    items = list(operands)
    arrays, terms = items[: len(items) // 2 * 2 : 2], items[1::2]
    out = items[-1] if len(items) % 2 else None
    labels = {v for t in (*terms, *([] if out is None else [out])) for v in t if v is not Ellipsis}
    # Letters are assigned in the order of the labels, which an implicit result has.
    letters = sorted(string.ascii_letters[: len(labels)])
    if len(letters) < len(labels):
        raise ValueError(
            f"einsum: at most {len(letters)} labels are supported; got {len(labels)}; "
            "contract fewer operands at once"
        )
    try:
        names = dict(zip(sorted(labels), letters, strict=True))
    except TypeError:
        raise TypeError(
            f"einsum: labels must be of one orderable type; got {labels}; use integers"
        ) from None

    def term(labels: Any) -> str:
        return "".join("..." if v is Ellipsis else names[v] for v in labels)

    formula = ",".join(term(t) for t in terms)
    return formula + (f"->{term(out)}" if out is not None else ""), arrays


def parse(formula: str, ranks: Sequence[int]) -> tuple[list[str], str]:
    """Return one string of labels for each operand and one for the result, without ellipses."""
    text = formula.replace(" ", "")
    left, arrow, out = text.partition("->")
    terms = left.split(",")
    if len(terms) != len(ranks):
        raise ValueError(
            f"einsum: {formula!r} names {len(terms)} operands; got {len(ranks)} arrays; "
            "separate one term for each array by commas"
        )
    bad = set(text) - set(string.ascii_letters) - set(",.->")
    if bad:
        raise ValueError(
            f"einsum: invalid characters in the formula; got {sorted(bad)} in {formula!r}; use "
            "letters"
        )
    unused = [c for c in string.ascii_letters if c not in text]
    widest = 0
    for term, rank in zip(terms, ranks, strict=True):
        named = len(term.replace("...", ""))
        if named > rank or ("..." not in term and named != rank):
            raise ValueError(
                f"einsum: an operand needs one label for each axis; got {term!r} for "
                f"an array of {rank} axes in {formula!r}; name all, or use '...'"
            )
        if "..." in term:
            widest = max(widest, rank - named)
    spare = "".join(unused[:widest])
    full_terms = []
    for term, rank in zip(terms, ranks, strict=True):
        count = rank - len(term.replace("...", ""))
        full_terms.append(term.replace("...", spare[widest - count :]))
    if arrow:
        result = out.replace("...", spare)
    else:
        counts = Counter("".join(full_terms))
        result = spare + "".join(sorted(c for c, n in counts.items() if n == 1 and c not in spare))
    known = set("".join(full_terms))
    if unknown := sorted(set(result) - known):
        raise ValueError(
            f"einsum: a label of the result is in no operand; got {unknown[0]!r} in {formula!r}; "
            "use labels of the operands"
        )
    if len(set(result)) != len(result):
        raise ValueError(
            f"einsum: labels of the result must be distinct; got {result!r} in "
            f"{formula!r}; remove the second"
        )
    return full_terms, result


def _simplify(x: Node, labels: str, needed: set[str], preferred_dtype: Any) -> tuple[Node, str]:
    """Take diagonals of repeated labels, and sum over labels that are not needed."""
    while len(set(labels)) != len(labels):
        c = next(c for c in labels if labels.count(c) > 1)
        i = labels.index(c)
        j = labels.index(c, i + 1)
        if x.aval.shape[i] != x.aval.shape[j]:
            raise ValueError(
                f"einsum: axes with the same label must have the same length; got {c!r} twice in "
                f"{x.aval.shape}; use two labels"
            )
        x = diagonal_node(x, 0, i, j, "einsum")
        labels = "".join([v for k, v in enumerate(labels) if k not in (i, j)]) + c
    summed = tuple([d for d, c in enumerate(labels) if c not in needed])
    if summed:
        x = _widen_operand(x, preferred_dtype)
        reduce = o.reduce_or if x.aval.dtype.kind == "b" else o.reduce_sum
        x = reduce(x, axes=summed)
        labels = "".join([c for c in labels if c in needed])
    return x, labels


@promotes_inside
def _widen_operand(x: Node, preferred_dtype: np.dtype | None) -> Node:
    """Cast an operand to a wider requested dtype before summing, where int8 would overflow."""
    dtype = x.aval.dtype
    if (
        preferred_dtype is None
        or dtypes.promote(((dtype, False), (preferred_dtype, False)))[0] == dtype
    ):
        return x
    return cast(x, preferred_dtype)


def _squeeze_ones(x: Node, labels: str, other: dict[str, int]) -> tuple[Node, str]:
    """Squeeze axes of length 1 that broadcast against longer axes of the other operand."""
    ones = tuple([d for d, c in enumerate(labels) if x.aval.shape[d] == 1 and other.get(c, 1) != 1])
    if ones:
        x = o.squeeze(x, dimensions=ones)
        labels = "".join([c for d, c in enumerate(labels) if d not in ones])
    return x, labels


def _combine(
    a: tuple[Node, str],
    b: tuple[Node, str],
    needed: set[str],
    precision: Any,
    preferred_dtype: Any,
    result: str | None,
) -> tuple[Node, str]:
    """Multiply two operands and sum over labels that are not needed.

    `result` is the labels of the whole sum if this is its last product.
    """
    x, s = _simplify(*a, needed | set(b[1]), preferred_dtype)
    y, t = _simplify(*b, needed | set(a[1]), preferred_dtype)
    sizes = dict(zip(s, x.aval.shape, strict=True)), dict(zip(t, y.aval.shape, strict=True))
    x, s = _squeeze_ones(x, s, sizes[1])
    y, t = _squeeze_ones(y, t, sizes[0])
    x, s = _simplify(x, s, needed | set(t), preferred_dtype)
    y, t = _simplify(y, t, needed | set(s), preferred_dtype)
    both = [c for c in s if c in t]
    summed = [c for c in both if c not in needed]
    batch = [c for c in both if c in needed]
    if not summed:  # without contraction, an elementwise product, which fuses
        labels = s + "".join(c for c in t if c not in s)
        size = {
            **dict(zip(t, y.aval.shape, strict=True)),
            **dict(zip(s, x.aval.shape, strict=True)),
        }
        shape = tuple([size[c] for c in labels])
        pair = (_spread(x, s, labels, shape), _spread(y, t, labels, shape))
        return multiply(*_promote_factors(*pair, preferred_dtype)), labels
    where = [[[v.index(c) for c in group] for v in (s, t)] for group in (summed, batch)]
    rest = [c for c in s if c not in both] + [c for c in t if c not in both]
    labels = "".join(batch + rest)
    order = None if result is None else [result.index(c) for c in labels]
    with requested_in_order(order):
        out = product(x, y, where[0], where[1], precision, preferred_dtype)
    return out, labels


def _promote_factors(x: Node, y: Node, preferred_dtype: Any) -> tuple[Node, Node]:
    """Promote two factors to one dtype, for a product of dtype `preferred_dtype`."""
    if preferred_dtype is None:
        return x, y
    x, y = promote(
        "einsum", wrap(_widen_operand(x, preferred_dtype)), wrap(_widen_operand(y, preferred_dtype))
    )
    check_sum_dtype(x.aval.dtype, preferred_dtype)
    return x, y


def _spread(x: Node, labels: str, whole: str, shape: tuple[int, ...]) -> Node:
    order = sorted(range(len(labels)), key=lambda d: whole.index(labels[d]))
    x = transpose_node(x, tuple(order))
    x = expand_node(x, tuple([d for d, c in enumerate(whole) if c not in labels]))
    return to_shape(x, shape)


def _check_sizes(terms: list[str], nodes: list[Node]) -> None:
    sizes: dict[str, int] = {}
    for k, (term, x) in enumerate(zip(terms, nodes, strict=True)):
        for c, n in zip(term, x.aval.shape, strict=True):
            if n != 1 and sizes.setdefault(c, n) != n:
                raise ValueError(
                    f"einsum: Size of label {c!r} for operand {k} ({n}) does not match previous "
                    f"terms ({sizes[c]}); use two labels, or slice one"
                )


@api_boundary
def einsum(
    subscripts: str | ArrayLike,
    /,
    *operands: ArrayLike,
    out: None = None,
    optimize: bool | str | Sequence[Any] = "auto",
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
    _dot_general: Callable[..., Array] | Sentinel = _DOT_GENERAL,
    out_sharding: ShardingLike = None,
) -> Array:
    """Compute sums of products over labeled axes.

    Parameters
    ----------
    subscripts : str or array_like
        Formula such as "ij,jk->ik", with a label for each axis of each operand; "..." stands for
        axes that broadcast. Without "->", the result has the labels that occur once, in
        alphabetical order. Alternatively, operands and sequences of labels alternate, without a
        formula.
    *operands : array_like
        Arrays to multiply. Lists and tuples are not accepted.
    {out}
    optimize : str, bool or sequence, optional
        How to find the order of contractions, as for `numpy.einsum`. The default, 'auto', chooses
        by the number of operands.
    {precision}
    {preferred_element_type}
    {out_sharding}

    Returns
    -------
    Array
        Sums with the axes that the formula says, and the promoted dtype or
        `preferred_element_type`.

    Raises
    ------
    TypeError
        If an operand is neither an array nor a number.
    ValueError
        If the formula is malformed, or does not fit the shapes.
    NotImplementedError
        If `out` is given.

    See Also
    --------
    einsum_path : Order and cost of the contractions.
    matmul, tensordot, inner, outer : Special cases.
    lax.dot_general : Contraction of two arrays.

    Notes
    -----
    {note_narrow}

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.einsum("ij,j->i", jnp.eye(2), jnp.array([1.0, 2.0]))
    Array([1., 2.], dtype=float32)
    """
    if not isinstance(subscripts, str):
        subscripts, arrays = _letters((subscripts, *operands))
        operands = tuple(arrays)
    if not operands:
        raise ValueError(
            "einsum: the operands are missing; got only a formula; pass one array for each term"
        )
    no_out(out, "einsum")
    if _dot_general not in (_DOT_GENERAL, dot_general):
        raise NotImplementedError(
            f"einsum: _dot_general must be lax.dot_general; got {_dot_general!r}; leave it out"
        )
    preferred_dtype = preferred_element_type
    if preferred_dtype is None:
        nodes = promote("einsum", *operands)
    else:  # products and sums have the requested dtype
        preferred_dtype = dtypes.requested_dtype(preferred_dtype, "einsum")
        nodes = [as_node(x, "einsum") for x in operands]
    terms, result = parse(subscripts, [x.aval.ndim for x in nodes])
    _check_sizes(terms, nodes)
    path = _path(terms, [x.aval.shape for x in nodes], result, optimize)

    def record(*nodes: Node) -> Node:
        return _contract(nodes, terms, result, path, precision, preferred_dtype)

    return wrap(record_sharded("einsum", out_sharding, record, *nodes))


def _contract(
    nodes: Sequence[Node],
    terms: Sequence[str],
    result: str,
    path: Sequence[tuple[int, ...]],
    precision: Any,
    preferred_dtype: Any,
) -> Node:
    """Record the contractions of a path, and the transposition of their result."""
    work = list(zip(nodes, terms, strict=True))
    for pair in path:
        chosen = [work[i] for i in pair]
        work = [w for i, w in enumerate(work) if i not in pair]
        done = chosen[0]
        for nth, other in enumerate(chosen[1:]):
            later = "".join(labels for _, labels in (*work, *chosen[nth + 2 :]))
            last = result if not later else None
            done = _combine(done, other, set(result) | set(later), precision, preferred_dtype, last)
        work.append(done)
    x, labels = _simplify(*work[0], set(result), preferred_dtype)
    y = transpose_node(x, tuple([labels.index(c) for c in result]))
    return y if preferred_dtype is None else cast(y, preferred_dtype)


def _path(
    terms: list[str], shapes: list[tuple[int, ...]], result: str, optimize: Any
) -> list[tuple[int, ...]]:
    """Return the operands of each contraction, whose result becomes the last operand."""
    n = len(terms)
    if n < 3:
        return [tuple(range(n))] * (n - 1)
    if isinstance(optimize, list | tuple) and optimize and not isinstance(optimize[0], str):
        return [tuple(p) for p in optimize]
    if optimize is False:
        return [(0, 1)] * (n - 1)
    return list(_search_path(tuple(terms), tuple(shapes), result, optimize == "greedy"))


@lru_cache(1024)
def _search_path(
    terms: tuple[str, ...], shapes: tuple[tuple[int, ...], ...], result: str, greedy: bool
) -> tuple[tuple[int, ...], ...]:
    if greedy or len(terms) > _SEARCHED:
        arrays = [np.broadcast_to(np.empty(()), shape) for shape in shapes]
        formula = ",".join(terms) + "->" + result
        numpy_path = np.einsum_path(formula, *arrays, optimize="greedy")[0]
        return tuple([tuple(sorted(p)) for p in numpy_path[1:]])
    order: list[int] = [1 << i for i in range(len(terms))]  # sets of operands, as bit masks
    path = []
    for a, b in _best_pairs(terms, shapes, result):
        pair = sorted((order.index(a), order.index(b)))
        path.append(tuple(pair))
        order = [m for m in order if m not in (a, b)] + [a | b]
    return tuple(path)


def _best_pairs(
    terms: tuple[str, ...], shapes: tuple[tuple[int, ...], ...], result: str
) -> list[tuple[int, int]]:
    """Find the contraction order with the fewest operations, as pairs of sets of operands.

    For each set of operands, the best pair of halves is found by dynamic programming: Lam,
    Sadayappan and Wenger, "On optimizing a class of multi-dimensional loops with reductions",
    1997.
    """
    size: dict[str, int] = {}
    for term, shape in zip(terms, shapes, strict=True):
        for c, n in zip(term, shape, strict=True):
            size[c] = max(size.get(c, 1), n)
    whole = (1 << len(terms)) - 1
    inside = [
        set().union(*[t for i, t in enumerate(terms) if m >> i & 1]) for m in range(whole + 1)
    ]
    left = [inside[m] & (set(result) | inside[whole ^ m]) for m in range(whole + 1)]
    # Labels of a single operand are summed first, so their cost does not depend on the order.
    best: dict[int, tuple[int, list[tuple[int, int]]]] = {
        1 << i: (0, []) for i in range(len(terms))
    }
    for m in range(1, whole + 1):  # proper subsets are smaller numbers
        if m in best:
            continue
        half = (m - 1) & m
        cheapest: tuple[int, list[tuple[int, int]]] | None = None
        while half > m ^ half:  # each pair of halves once
            a, b = m ^ half, half
            both = left[a] | left[b]
            cost = prod([size[c] for c in both]) * (1 + (both != left[m]))
            cost += best[a][0] + best[b][0]
            if cheapest is None or cost < cheapest[0]:
                cheapest = cost, [*best[a][1], *best[b][1], (a, b)]
            half = (half - 1) & m
        assert cheapest is not None
        best[m] = cheapest
    return best[whole][1]


@api_boundary
def einsum_path(
    subscripts: str | ArrayLike,
    /,
    *operands: ArrayLike,
    optimize: bool | str | Sequence[Any] = "auto",
) -> tuple[list[Any], PathInfo]:
    """Find the order in which `einsum` contracts operands, and its cost.

    Parameters
    ----------
    subscripts : str or array_like
        Formula of `einsum`, or its first operand.
    *operands : array_like
        Arrays to multiply, of which only the shapes count.
    optimize : str, bool or sequence, optional
        How to find the order, as for `numpy.einsum_path`. The default is 'auto'.

    Returns
    -------
    path : list of tuple of int
        Positions of the operands of each contraction.
    info : PathInfo
        Report that prints as a table, with the numbers as attributes such as `opt_cost` and
        `size_list`. Dtypes do not count.

    Raises
    ------
    ValueError
        If the formula is malformed, or does not fit the shapes.

    See Also
    --------
    einsum : Compute the sums.
    linalg.multi_dot : Product of several matrices in the best order.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.einsum_path("ij,jk->ik", jnp.ones((2, 3)), jnp.ones((3, 4)))[0]
    [(0, 1)]
    """
    if not isinstance(subscripts, str):
        subscripts, arrays = _letters((subscripts, *operands))
        operands = tuple(arrays)
    shapes = [np.shape(x) for x in operands]
    terms, result = parse(subscripts, [len(shape) for shape in shapes])
    path = _path(terms, shapes, result, optimize) if len(terms) > 1 else [(0,)]
    return path, report(terms, result, shapes, path)
