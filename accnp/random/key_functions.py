"""Functions of arrays applied to typed PRNG keys.

`api_boundary` calls them when a public function gets keys that declares, with `moves_elements` or
`accepts_keys` of `api/arguments/non_numeric.py`, that it accepts some. Functions that only move
elements are applied to each word of the keys separately, so that axes, shapes and indices have the
same meaning as for arrays.
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

__all__ = [
    "all_keys_equal", "apply_at", "apply_to_words", "broadcast_keys", "convert_keys",
    "equal_keys", "fill_keys", "fill_keys_with_ones", "get_at", "get_item", "set_at", "stack_keys",
    "unequal_keys",
]  # fmt: skip

Function = Callable[..., Any]


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


def apply_to_words(
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


def get_item(_: str, __: Function, args: tuple, ___: dict[str, Any]) -> Any:
    """Return `keys[index]`."""
    x, index = args
    if not isinstance(x, PRNGKeyArray):
        return NotImplemented
    return PRNGKeyArray(getitem(x._base, _index_of_words(index)), x.dtype)


def get_at(_: str, __: Function, args: tuple, hints: dict[str, Any]) -> Any:
    """Return `keys.at[index].get()`."""
    (ref,) = args
    if not isinstance(ref.array, PRNGKeyArray):
        return NotImplemented
    return PRNGKeyArray(_words_at(ref).get(**hints), ref.array.dtype)


def set_at(name: str, _: Function, args: tuple, hints: dict[str, Any]) -> Any:
    """Return `keys.at[index].set(values)`."""
    ref, values = args
    dtype = _common_key_dtype(name, [ref.array, values])
    return PRNGKeyArray(_words_at(ref).set(values._base, **hints), dtype)


def apply_at(name: str, _: Function, args: tuple, hints: dict[str, Any]) -> Any:
    """Return `keys.at[index].apply(function)`."""
    ref, change = args
    if not isinstance(ref.array, PRNGKeyArray):
        return NotImplemented
    return set_at(name, change, (ref, change(ref.array[ref.index])), hints)


def _words_at(ref: Any) -> Any:
    return ref.array._base.at[_index_of_words(ref.index)]


# --- comparing ------------------------------------------------------------------------------------


def equal_keys(name: str, _: Function, args: tuple, __: dict[str, Any]) -> Array:
    """Return which keys are equal, elementwise."""
    x, y = args
    _common_key_dtype(name, [x, y])
    check_ranks(name, [v.shape for v in (x, y) if v.shape])
    return _all_equal(x._base, y._base)


def unequal_keys(name: str, function: Function, args: tuple, kwargs: dict[str, Any]) -> Array:
    """Return which keys differ, elementwise."""
    return ~equal_keys(name, function, args, kwargs)


@broadcasts_inside
def _all_equal(x: Array, y: Array) -> Array:
    """Return whether all words of keys are equal; keys have a trailing axis of words."""
    return reductions.all(x == y, axis=-1)


def all_keys_equal(name: str, _: Function, args: tuple, __: dict[str, Any]) -> Array:
    """Return whether two arrays of keys have the same shape and keys."""
    x, y = args[:2]
    _common_key_dtype(name, [x, y])
    return array_equal(x._base, y._base)


# --- making ---------------------------------------------------------------------------------------


def stack_keys(name: str, function: Function, args: tuple, kwargs: dict[str, Any]) -> Any:
    """Make an array of keys from an array or from nested lists, as `array` does."""
    arguments = inspect.signature(function).bind(*args, **kwargs).arguments
    keys = _stack_nested(name, next(iter(arguments.values())))
    dtype = arguments.get("dtype")
    if dtype is not None and dtype is not keys.dtype:
        raise _not_combinable_error(name, f"keys of dtype {keys.dtype.name} for dtype {dtype}")
    missing = arguments.get("ndmin", 0) - keys.ndim
    return keys.reshape((1,) * missing + keys.shape) if missing > 0 else keys


def _stack_nested(name: str, x: Any) -> Any:
    """Stack nested lists of keys."""
    if not isinstance(x, list | tuple):
        return x
    rows = [_stack_nested(name, v) for v in x]
    _common_key_dtype(name, rows)
    if len({v.shape for v in rows}) > 1:
        raise IncompatibleShapesError(
            f"{name}: all keys must have one shape; got {[v.shape for v in rows]}; broadcast them"
        )
    return stack(rows)


def convert_keys(name: str, _: Function, args: tuple, kwargs: dict[str, Any]) -> Any:
    """Return keys unchanged if they have the dtype already; keys have no other conversion."""
    keys, *rest = args
    dtype = rest[0] if rest else kwargs.get("dtype", kwargs.get("new_dtype"))
    if not isinstance(keys, PRNGKeyArray) or dtype is not keys.dtype:
        raise _not_combinable_error(name, f"{keys.dtype} for dtype {dtype}")
    return keys


def fill_keys(name: str, function: Function, args: tuple, kwargs: dict[str, Any]) -> Any:
    """Return keys, all words of which are 0 or `fill_value`."""
    return _fill(name, function, args, kwargs, 0)


def fill_keys_with_ones(name: str, function: Function, args: tuple, kwargs: dict[str, Any]) -> Any:
    """Return keys, all words of which are 1."""
    return _fill(name, function, args, kwargs, 1)


def _fill(name: str, function: Function, args: tuple, kwargs: dict[str, Any], word: int) -> Any:
    arguments = inspect.signature(function).bind(*args, **kwargs).arguments
    like = next((arguments[n] for n in ("a", "x", "prototype") if n in arguments), None)
    shape: Any = arguments.get("shape")
    dtype = arguments.get("dtype")
    value = arguments.get("fill_value", word)
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


def broadcast_keys(_: str, __: Function, args: tuple, ___: dict[str, Any]) -> list[Any]:
    """Broadcast arrays, some of which are keys, against each other."""
    shape = np.broadcast_shapes(*[np.shape(x) for x in args])
    return [broadcast_to(x, shape) for x in args]
