"""Functions of arrays applied to typed PRNG keys.

`api_boundary` calls `apply_to_keys` when a function of arrays gets keys. Functions that only move
elements are applied to each word of the keys separately, so that axes, shapes and indices have the
same meaning as for arrays. For functions that do not accept keys, the result is NotImplemented.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from accnp import dtypes
from accnp.api.arguments.convert import check_ranks
from accnp.api.arguments.internal_promotion import broadcasts_inside
from accnp.api.arguments.shapes import as_shape
from accnp.array_type import Array, wrap
from accnp.errors import IncompatibleShapesError, KeyArrayError
from accnp.ir.op import o
from accnp.key_array import PRNGKeyArray
from accnp.numpy import reductions
from accnp.numpy.comparisons import array_equal
from accnp.numpy.creation import full
from accnp.numpy.indexing import getitem
from accnp.numpy.joining import stack
from accnp.numpy.manipulation import broadcast_to
from accnp.pytree import tree_flatten, tree_leaves, tree_unflatten

__all__ = ["apply_to_keys"]

Function = Callable[..., Any]

# Functions that move elements, and the parameters that hold them (by default the first one).
# Functions of the same name in `numpy` and `lax` have the same parameters here, or one each.
_FIRST = """
    reshape ravel transpose permute_dims matrix_transpose swapaxes moveaxis rollaxis
    expand_dims squeeze broadcast_to split array_split hsplit vsplit dsplit unstack tile
    repeat flip flipud fliplr rot90 roll take take_along_axis delete resize diag diagflat
    diagonal tril triu copy atleast_1d atleast_2d atleast_3d stack concatenate concat vstack
    hstack dstack column_stack block broadcast broadcast_in_dim rev slice slice_in_dim
    index_in_dim index_take dynamic_slice dynamic_slice_in_dim dynamic_index_in_dim gather
    collapse
"""
_MOVES: dict[str, tuple[str, ...]] = {
    **{name: () for name in _FIRST.split()},
    "append": ("arr", "values"),
    "choice": ("a",),
    "choose": ("choices",),
    "compress": ("a",),
    "extract": ("arr",),
    "dynamic_update_slice": ("operand", "update"),
    "dynamic_update_slice_in_dim": ("operand", "update"),
    "dynamic_update_index_in_dim": ("operand", "update"),
    "fill_diagonal": ("a", "val"),
    "insert": ("arr", "values"),
    "meshgrid": ("xi",),
    "pad": ("array",),
    "permutation": ("x",),
    "place": ("arr", "vals"),
    "put": ("a", "v"),
    "put_along_axis": ("arr", "values"),
    "scatter": ("operand", "updates"),
    "select": ("choicelist", "default", "on_true", "on_false"),
    "select_n": ("cases",),
    "where": ("x", "y"),
}


def apply_to_keys(name: str, function: Function, args: tuple, kwargs: dict[str, Any]) -> Any:
    """Apply a function to keys; return NotImplemented if it does not accept keys."""
    known = _OTHER.get(name)
    if known is not None:
        return known(name, function, args, kwargs)
    names = _MOVES.get(name)
    return NotImplemented if names is None else _apply_to_words(name, names, function, args, kwargs)


def _not_combinable_error(function: str, what: str) -> KeyArrayError:
    return KeyArrayError(
        f"{function}: random keys combine only with keys of the same dtype; got {what}; "
        "random.key_data(keys) returns the integers of the keys"
    )


def _common_key_dtype(function: str, values: list[Any]) -> dtypes.ExtendedDType:
    """Return the dtype of values, which must all be keys of one generator."""
    key_dtypes = {
        getattr(x, "dtype", None) if isinstance(x, PRNGKeyArray) else type(x) for x in values
    }
    dtype = key_dtypes.pop()
    if key_dtypes or not isinstance(dtype, dtypes.ExtendedDType):
        raise _not_combinable_error(
            function, ", ".join([str(getattr(x, "dtype", x)) for x in values])
        )
    return dtype


def _apply_to_words(
    name: str, names: tuple[str, ...], function: Function, args: tuple, kwargs: dict[str, Any]
) -> Any:
    """Apply a function that moves elements to the words of keys, one word at a time."""
    bound = inspect.signature(function).bind(*args, **kwargs)
    bound.apply_defaults()
    arguments = bound.arguments
    names = tuple([n for n in names if n in arguments]) or (next(iter(arguments)),)
    rest = {n: v for n, v in arguments.items() if n not in names and n != "key"}
    if any(isinstance(x, PRNGKeyArray) for x in tree_leaves(rest)):
        raise _not_combinable_error(name, "keys where numbers are needed")
    leaves, tree = tree_flatten({n: arguments[n] for n in names})
    dtype = _common_key_dtype(name, leaves)
    if arguments.get("mode") == "constant":
        raise _not_combinable_error(name, "numbers for the borders")

    def word(i: int) -> Any:
        parts = [wrap(_select_word(x._base._node, i)) for x in leaves]
        arguments.update(tree_unflatten(tree, parts))
        return function(*bound.args, **bound.kwargs)

    results, trees = zip(*[tree_flatten(word(i)) for i in range(*dtype.base_shape)], strict=True)
    keys = [PRNGKeyArray(stack(words, -1), dtype) for words in zip(*results, strict=True)]
    return tree_unflatten(trees[0], keys)


def _select_word(x: Any, i: int) -> Any:
    """Return one word of each key."""
    last = x.aval.ndim - 1
    start, limit = (0,) * last + (i,), (*x.aval.shape[:-1], i + 1)
    part = o.slice(x, start_indices=start, limit_indices=limit, strides=None)
    return o.squeeze(part, dimensions=(last,))


# --- reading and writing by index -----------------------------------------------------------------


def _index_of_words(index: Any) -> Any:
    """Return the index of words that corresponds to an index of keys."""
    if isinstance(index, list):
        return index  # raises when used
    parts = index if isinstance(index, tuple) else (index,)
    if not any(p is Ellipsis for p in parts):
        parts = (*parts, Ellipsis)
    return (*parts, slice(None))


def _getitem(_: str, __: Function, args: tuple, ___: dict[str, Any]) -> Any:
    x, index = args
    if not isinstance(x, PRNGKeyArray):
        return NotImplemented
    return PRNGKeyArray(getitem(x._base, _index_of_words(index)), x.dtype)


def _at_get(_: str, __: Function, args: tuple, hints: dict[str, Any]) -> Any:
    (ref,) = args
    if not isinstance(ref.array, PRNGKeyArray):
        return NotImplemented
    return PRNGKeyArray(_words_at(ref).get(**hints), ref.array.dtype)


def _at_set(name: str, _: Function, args: tuple, hints: dict[str, Any]) -> Any:
    ref, values = args
    dtype = _common_key_dtype(name, [ref.array, values])
    return PRNGKeyArray(_words_at(ref).set(values._base, **hints), dtype)


def _at_apply(name: str, _: Function, args: tuple, hints: dict[str, Any]) -> Any:
    ref, change = args
    if not isinstance(ref.array, PRNGKeyArray):
        return NotImplemented
    return _at_set(name, change, (ref, change(ref.array[ref.index])), hints)


def _words_at(ref: Any) -> Any:
    return ref.array._base.at[_index_of_words(ref.index)]


# --- comparing ------------------------------------------------------------------------------------


def _equal(name: str, _: Function, args: tuple, __: dict[str, Any]) -> Array:
    x, y = args
    _common_key_dtype(name, [x, y])
    check_ranks(name, [v.shape for v in (x, y) if v.shape])
    same = _all_equal(x._base, y._base)
    return same if name in ("equal", "eq") else ~same


@broadcasts_inside
@broadcasts_inside
def _all_equal(x: Array, y: Array) -> Array:
    """Return whether all words of keys are equal; keys have a trailing axis of words."""
    return reductions.all(x == y, axis=-1)


def _array_equal(name: str, _: Function, args: tuple, __: dict[str, Any]) -> Array:
    x, y = args[:2]
    _common_key_dtype(name, [x, y])
    return array_equal(x._base, y._base)


# --- making ---------------------------------------------------------------------------------------


def _array(name: str, function: Function, args: tuple, kwargs: dict[str, Any]) -> Any:
    arguments = inspect.signature(function).bind(*args, **kwargs).arguments
    keys = _stack_keys(name, next(iter(arguments.values())))
    dtype = arguments.get("dtype")
    if dtype is not None and dtype is not keys.dtype:
        raise _not_combinable_error(name, f"keys of dtype {keys.dtype.name} for dtype {dtype}")
    missing = arguments.get("ndmin", 0) - keys.ndim
    return keys.reshape((1,) * missing + keys.shape) if missing > 0 else keys


def _stack_keys(name: str, x: Any) -> Any:
    """Stack nested lists of keys."""
    if not isinstance(x, list | tuple):
        return x
    rows = [_stack_keys(name, v) for v in x]
    _common_key_dtype(name, rows)
    if len({v.shape for v in rows}) > 1:
        raise IncompatibleShapesError(
            f"{name}: all keys must have one shape; got {[v.shape for v in rows]}; broadcast them"
        )
    return stack(rows)


def _astype(name: str, _: Function, args: tuple, kwargs: dict[str, Any]) -> Any:
    keys, *rest = args
    dtype = rest[0] if rest else kwargs.get("dtype", kwargs.get("new_dtype"))
    if not isinstance(keys, PRNGKeyArray) or dtype is not keys.dtype:
        raise _not_combinable_error(name, f"{keys.dtype} for dtype {dtype}")
    return keys


def _fill_keys(name: str, function: Function, args: tuple, kwargs: dict[str, Any]) -> Any:
    arguments = inspect.signature(function).bind(*args, **kwargs).arguments
    like = next((arguments[n] for n in ("a", "x", "prototype") if n in arguments), None)
    shape: Any = arguments.get("shape")
    dtype = arguments.get("dtype")
    value = arguments.get("fill_value", int(name.startswith("ones")))
    if like is not None:
        shape = like.shape if shape is None else shape
        dtype = like.dtype if dtype is None else dtype
    if isinstance(value, PRNGKeyArray):
        if dtype is not None and dtype is not value.dtype:
            raise _not_combinable_error(name, f"keys of dtype {value.dtype.name} for dtype {dtype}")
        dtype, value = value.dtype, value._base
    if not isinstance(dtype, dtypes.ExtendedDType):
        return full(shape, value, dtype)
    if like is not None and like.dtype is not dtype:
        raise _not_combinable_error(name, f"{like.dtype} for dtype {dtype.name}")
    words = full((*as_shape(shape, name), *dtype.base_shape), value, dtype.base_dtype)
    return PRNGKeyArray(words, dtype)


def _broadcast_arrays(_: str, __: Function, args: tuple, ___: dict[str, Any]) -> list[Any]:
    shape = np.broadcast_shapes(*[np.shape(x) for x in args])
    return [broadcast_to(x, shape) for x in args]


_OTHER: dict[str, Callable[[str, Function, tuple, dict[str, Any]], Any]] = {
    "getitem": _getitem,
    "AtIndex.get": _at_get,
    "AtIndex.set": _at_set,
    "AtIndex.apply": _at_apply,
    **dict.fromkeys(("equal", "not_equal", "eq", "ne"), _equal),
    **dict.fromkeys(("array", "asarray"), _array),
    **dict.fromkeys(("astype", "convert_element_type"), _astype),
    **{
        like: _fill_keys
        for name in ("zeros", "ones", "empty", "full")
        for like in (name, f"{name}_like")
    },
    "broadcast_arrays": _broadcast_arrays,
    "array_equal": _array_equal,
}
