"""Registration of classes as nodes of pytrees, and `Partial`, a partial function with arrays.

Input: a class, and functions that flatten and unflatten its instances. The registry is the
dictionary `structure.NODES`, which all functions of pytrees read.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, TypeVar

from accnp.config import new_epoch
from accnp.errors import api_boundary
from accnp.pytree.keys import GetAttrKey
from accnp.pytree.structure import LEAVES, NODES, Rules

T = TypeVar("T", bound=type)
_BUILT_IN = (tuple, list, dict, type(None))
Flatten = Callable[[Any], tuple[Iterable[Any], Hashable]]
FlattenWithKeys = Callable[[Any], tuple[Iterable[tuple[Any, Any]], Hashable]]
Unflatten = Callable[[Any, Any], Any]


@api_boundary
def register_pytree_node(
    nodetype: type,
    flatten_func: Flatten,
    unflatten_func: Unflatten,
    flatten_with_keys_func: FlattenWithKeys | None = None,
) -> None:
    """Register a class as a node of pytrees.

    Parameters
    ----------
    {nodetype}
    flatten_func : callable
        Function from an instance to `(children, static)`: an iterable of subtrees and hashable
        static data.
    {unflatten_func}
    flatten_with_keys_func : callable, optional
        Function like `flatten_func` that returns pairs `(key, child)` in place of the children. The
        keys appear in paths.

    Raises
    ------
    {raises_register}

    See Also
    --------
    tree_util.register_pytree_node_class : Register a class that has these functions as methods.
    tree_util.register_dataclass : Register a dataclass.
    tree_util.register_static : Register a class without leaves.

    Examples
    --------
    >>> import accnp as jnp
    >>> class Pair:
    ...     def __init__(self, a, b):
    ...         self.a, self.b = a, b
    >>> register = jnp.tree_util.register_pytree_node
    >>> register(Pair, lambda p: ((p.a, p.b), None), lambda _, children: Pair(*children))
    >>> jnp.tree.leaves(Pair(1, [2, 3]))
    [1, 2, 3]
    """

    if not isinstance(nodetype, type):
        raise TypeError(
            f"register_pytree_node: expected a class; got {nodetype!r}; pass the class itself"
        )
    if nodetype in NODES or nodetype in _BUILT_IN:
        raise ValueError(
            "register_pytree_node: Duplicate custom PyTreeDef type registration for "
            f"{nodetype}; remove the second registration"
        )
    LEAVES.discard(nodetype)
    NODES[nodetype] = Rules(flatten_func, unflatten_func, flatten_with_keys_func)
    new_epoch()  # earlier calls may have treated instances as leaves or plain namedtuples


def _check_methods(cls: Any, name: str, *methods: str) -> None:
    missing = [m for m in methods if not hasattr(cls, m)]
    if missing:
        text = " and ".join(missing)
        raise TypeError(f"{name}: the class has no {text}; got {cls!r}; define the method")


@api_boundary
def register_pytree_node_class(cls: T) -> T:
    """Register a class with the methods `tree_flatten` and `tree_unflatten` as a node of pytrees.

    Parameters
    ----------
    cls : type
        Class with a method `tree_flatten(self)` that returns `(children, static)` and a classmethod
        `tree_unflatten(cls, static, children)`.

    Returns
    -------
    type
        The class itself, so that this works as a decorator.

    Raises
    ------
    TypeError
        If the argument is not a class or lacks a method.
    ValueError
        If the class is already registered.

    See Also
    --------
    tree_util.register_pytree_node : Register a class with separate functions.
    tree_util.register_pytree_with_keys_class : The same with names for the children.

    Examples
    --------
    >>> import accnp as jnp
    >>> @jnp.tree_util.register_pytree_node_class
    ... class Box:
    ...     def __init__(self, value):
    ...         self.value = value
    ...     def tree_flatten(self):
    ...         return (self.value,), None
    ...     @classmethod
    ...     def tree_unflatten(cls, static, children):
    ...         return cls(*children)
    >>> jnp.tree.map(lambda v: v + 1, Box(2)).value
    3
    """
    _check_methods(cls, "register_pytree_node_class", "tree_flatten", "tree_unflatten")
    register_pytree_node(cls, lambda x: x.tree_flatten(), cls.tree_unflatten)  # pyright: ignore
    return cls


@api_boundary
def register_pytree_with_keys(
    nodetype: type,
    flatten_with_keys: FlattenWithKeys,
    unflatten_func: Unflatten,
    flatten_func: Flatten | None = None,
) -> None:
    """Register a class as a node of pytrees whose children have keys.

    Parameters
    ----------
    {nodetype}
    flatten_with_keys : callable
        Function from an instance to `(pairs, static)`, where the pairs are `(key, child)`. The
        keys, such as `GetAttrKey("x")`, appear in paths.
    {unflatten_func}
    flatten_func : callable, optional
        Faster function that returns the children without keys.

    Raises
    ------
    {raises_register}

    See Also
    --------
    tree_util.register_pytree_node : Register a class without keys.
    tree_util.register_pytree_with_keys_class : Register a class that has these as methods.

    Examples
    --------
    >>> import accnp as jnp
    >>> class Named:
    ...     def __init__(self, x):
    ...         self.x = x
    >>> jnp.tree_util.register_pytree_with_keys(
    ...     Named,
    ...     lambda n: (((jnp.tree_util.GetAttrKey("x"), n.x),), None),
    ...     lambda _, children: Named(*children))
    >>> [jnp.tree_util.keystr(path) for path, _ in jnp.tree.leaves_with_path(Named(1))]
    ['.x']
    """

    def without_keys(x: Any) -> tuple[Iterable[Any], Hashable]:
        pairs, static = flatten_with_keys(x)
        return tuple([child for _, child in pairs]), static

    register_pytree_node(nodetype, flatten_func or without_keys, unflatten_func, flatten_with_keys)


@api_boundary
def register_pytree_with_keys_class(cls: T) -> T:
    """Register a class with the method `tree_flatten_with_keys` as a node of pytrees.

    Parameters
    ----------
    cls : type
        Class with a method `tree_flatten_with_keys(self)` that returns `(pairs, static)` and a
        classmethod `tree_unflatten(cls, static, children)`.

    Returns
    -------
    type
        The class itself, so that this works as a decorator.

    Raises
    ------
    TypeError
        If the argument is not a class or lacks a method.
    ValueError
        If the class is already registered.

    See Also
    --------
    tree_util.register_pytree_with_keys : Register a class with separate functions.
    tree_util.register_pytree_node_class : The same without keys.

    Examples
    --------
    >>> import accnp as jnp
    >>> @jnp.tree_util.register_pytree_with_keys_class
    ... class Box:
    ...     def __init__(self, value):
    ...         self.value = value
    ...     def tree_flatten_with_keys(self):
    ...         return ((jnp.tree_util.GetAttrKey("value"), self.value),), None
    ...     @classmethod
    ...     def tree_unflatten(cls, static, children):
    ...         return cls(*children)
    >>> jnp.tree_util.keystr(jnp.tree.leaves_with_path(Box(2))[0][0])
    '.value'
    """
    methods = ("tree_flatten_with_keys", "tree_unflatten")
    _check_methods(cls, "register_pytree_with_keys_class", *methods)
    plain = (lambda x: x.tree_flatten()) if hasattr(cls, "tree_flatten") else None
    register_pytree_with_keys(
        cls,
        lambda x: x.tree_flatten_with_keys(),
        cls.tree_unflatten,  # pyright: ignore
        plain,
    )
    return cls


@api_boundary
def register_dataclass(
    nodetype: T,
    data_fields: Sequence[str] | None = None,
    meta_fields: Sequence[str] | None = None,
    drop_fields: Sequence[str] = (),
) -> T:
    """Register a dataclass as a node of pytrees.

    Its data fields are children and its meta fields are static data. Without lists of fields, those
    made by `tree.static()` are static and the others are children.

    Parameters
    ----------
    {nodetype}
    data_fields : sequence of str, optional
        Names of the fields that are children.
    meta_fields : sequence of str, optional
        Names of the fields that are static and therefore hashable.
    drop_fields : sequence of str, optional
        Names of fields that are in neither list.

    Returns
    -------
    type
        The class itself, so that this works as a decorator.

    Raises
    ------
    TypeError
        If only one list is given, or the class is not a dataclass and no list is given.
    ValueError
        If the lists do not name each field once, or the class is already registered.

    See Also
    --------
    tree.static : Make a static field.
    tree_util.register_pytree_node : Register any class.

    Examples
    --------
    >>> import accnp as jnp, dataclasses
    >>> @jnp.tree_util.register_dataclass
    ... @dataclasses.dataclass
    ... class Point:
    ...     x: float
    ...     y: float
    >>> jnp.tree.map(lambda v: v * 2, Point(1.0, 2.0)).y
    4.0
    """
    if (data_fields is None) != (meta_fields is None):
        raise TypeError(
            "register_dataclass: data_fields and meta_fields must be given together; got one of "
            "them; pass both or neither"
        )
    if data_fields is None or meta_fields is None:
        if not dataclasses.is_dataclass(nodetype):
            raise TypeError(
                "register_dataclass: field names are required for a class that is not a dataclass; "
                f"got {nodetype}; pass data_fields and meta_fields"
            )
        fields = dataclasses.fields(nodetype)
        data_fields = [f.name for f in fields if not f.metadata.get("static", False)]
        meta_fields = [f.name for f in fields if f.metadata.get("static", False)]
    if dataclasses.is_dataclass(nodetype):
        _check_fields(nodetype, {*data_fields, *meta_fields}, set(drop_fields))
    both = sorted({*data_fields} & {*meta_fields})
    if both:
        raise ValueError(
            "register_dataclass: data_fields and meta_fields must not overlap; got "
            f"{', '.join(both)} in both; name each field once"
        )
    data, meta = tuple(data_fields), tuple(meta_fields)
    keys = tuple([GetAttrKey(name) for name in data])

    def flatten(x: Any) -> tuple[Iterable[Any], Hashable]:
        return tuple([getattr(x, name) for name in data]), tuple([getattr(x, n) for n in meta])

    def flatten_with_keys(x: Any) -> tuple[Iterable[tuple[Any, Any]], Hashable]:
        children, static = flatten(x)
        return tuple(zip(keys, children)), static

    def unflatten(static: Any, children: Any) -> Any:
        return nodetype(**dict(zip(data, children)), **dict(zip(meta, static)))

    register_pytree_node(nodetype, flatten, unflatten, flatten_with_keys)
    return nodetype  # pyright: ignore


def _check_fields(nodetype: type, field_names: set[str], dropped: set[str]) -> None:
    expected = {f.name for f in dataclasses.fields(nodetype) if f.init} - dropped
    missing, unknown = expected - field_names, field_names - expected
    if missing or unknown:
        text = f"missing {sorted(missing)}" if missing else f"unknown {sorted(unknown)}"
        raise ValueError(
            f"register_dataclass: {nodetype.__name__} needs the fields that its constructor takes, "
            f"and no others; got {text}; name each in data_fields, meta_fields or drop_fields"
        )


@api_boundary
def register_static(cls: T) -> T:
    """Register a class as a node without leaves: instances are static data.

    Parameters
    ----------
    cls : type
        Class of hashable, comparable objects.

    Returns
    -------
    type
        The class itself, so that this works as a decorator.

    Raises
    ------
    {raises_register}

    See Also
    --------
    tree_util.register_dataclass : Register a class with some static fields.

    Examples
    --------
    >>> import accnp as jnp
    >>> @jnp.tree_util.register_static
    ... class Mode(str):
    ...     pass
    >>> jnp.tree.leaves((Mode("train"), 1.0))
    [1.0]
    """
    register_pytree_node(cls, lambda x: ((), x), lambda static, _: static)
    return cls


class _Whole:
    """Wraps a partial function, because `functools.partial` would merge nested partials."""

    def __init__(self, func: functools.partial) -> None:
        self.func = func
        functools.update_wrapper(self, func)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.func(*args, **kwargs)

    def __eq__(self, other: object) -> bool:
        return self.func == (other.func if isinstance(other, _Whole) else other)

    def __hash__(self) -> int:
        return hash(self.func)

    def __repr__(self) -> str:
        return repr(self.func)


class Partial(functools.partial):
    """Version of `functools.partial` that is a pytree, so that jitted functions accept it.

    The arguments are children and the function is static data.

    Parameters
    ----------
    func : callable
        Function to call.
    *args : pytree
        Positional arguments that come first in each call.
    **kw : pytree
        Keyword arguments of each call.

    Raises
    ------
    TypeError
        If the first argument is not callable.

    Examples
    --------
    >>> from accnp.tree_util import Partial
    >>> Partial(max, 3)(2)
    3
    """

    def __new__(cls, func: Callable[..., Any], *args: Any, **kw: Any) -> Partial:
        if isinstance(func, functools.partial):
            func = _Whole(func)
        return super().__new__(cls, func, *args, **kw)


register_pytree_node(
    Partial,
    lambda p: ((p.args, p.keywords), p.func),
    lambda func, children: Partial(func, *children[0], **children[1]),
)


@api_boundary
def static(**kwargs: Any) -> Any:
    """Make a static field of a dataclass: part of the structure instead of a leaf.

    Parameters
    ----------
    **kwargs : object
        Arguments of `dataclasses.field`, such as `default`.

    Returns
    -------
    dataclasses.Field
        Field for a class that `register_dataclass` registers.

    Raises
    ------
    TypeError
        If `dataclasses.field` does not know an argument.
    ValueError
        If `dataclasses.field` rejects the arguments.

    See Also
    --------
    tree_util.register_dataclass : Register a dataclass.

    Examples
    --------
    >>> import accnp as jnp, dataclasses
    >>> @jnp.tree_util.register_dataclass
    ... @dataclasses.dataclass
    ... class Layer:
    ...     weight: float
    ...     name: str = jnp.tree.static(default="")
    >>> jnp.tree.leaves(Layer(2.0, "first"))
    [2.0]
    """
    metadata = {"static": True, **kwargs.pop("metadata", {})}
    return dataclasses.field(metadata=metadata, **kwargs)
