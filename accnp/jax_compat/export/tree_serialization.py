"""Conversion of the structures of arguments and results (`PyTreeDef`) to nested lists, and back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from accnp.errors import api_boundary
from accnp.key_array import PRNGKeyArray
from accnp.pytree import PyTreeDef, flatten_arrays
from accnp.pytree.structure import NODES
from accnp.pytree.trees import default_registry
from accnp.random.generators import generator

__all__ = [
    "read_tree", "register_namedtuple_serialization", "register_pytree_node_serialization",
    "write_tree",
]  # fmt: skip


class _Encoding(NamedTuple):
    """How nodes of a type are encoded."""

    name: str
    write: Callable[[Any], bytes]
    read: Callable[[bytes], Any]
    make: Callable[[Any, Any], Any] | None


_encodings: dict[type, _Encoding] = {}
_names: dict[str, type] = {}


def _register(function: str, nodetype: type, encoding: _Encoding) -> None:
    registered = _names.get(encoding.name)
    if nodetype in _encodings or (registered is not None and registered is not nodetype):
        raise ValueError(
            f"{function}: Duplicate serialization registration; got {nodetype.__name__} as "
            f"{encoding.name!r}; each type and each name can be given once"
        )
    _encodings[nodetype], _names[encoding.name] = encoding, nodetype


@api_boundary
def register_namedtuple_serialization(nodetype: type, *, serialized_name: str) -> type:
    """Allow a named tuple class in the arguments and results of exported functions.

    Parameters
    ----------
    nodetype : type
        Named tuple class.
    serialized_name : str
        Identifier of the class in serialized programs. It must be registered for the same class
        where they are read.

    Returns
    -------
    type
        The class itself.

    Raises
    ------
    ValueError
        If `nodetype` is not a named tuple class, or the class or the name is already registered.

    See Also
    --------
    export.register_pytree_node_serialization : Register any pytree class.

    Examples
    --------
    >>> import accnp as jax, collections
    >>> Pair = collections.namedtuple("Pair", "a b")
    >>> jax.export.register_namedtuple_serialization(Pair, serialized_name="docs.Pair") is Pair
    True
    """
    if not issubclass(nodetype, tuple) or not hasattr(nodetype, "_fields"):
        raise ValueError(
            f"register_namedtuple_serialization: needs a named tuple; got {nodetype!r}; "
            "use register_pytree_node_serialization for other classes"
        )
    make = lambda _, children: nodetype(*children)  # noqa: E731
    encoding = _Encoding(serialized_name, lambda _: b"", lambda _: None, make)
    _register("register_namedtuple_serialization", nodetype, encoding)
    return nodetype


@api_boundary
def register_pytree_node_serialization(
    nodetype: type,
    *,
    serialized_name: str,
    serialize_auxdata: Callable[[Any], bytes],
    deserialize_auxdata: Callable[[bytes], Any],
    from_children: Callable[[Any, Any], Any] | None = None,
) -> type:
    """Allow a registered pytree class in the arguments and results of exported functions.

    Parameters
    ----------
    nodetype : type
        Class registered to `tree_util.register_pytree_node`.
    serialized_name : str
        Identifier of the class in serialized programs. It must be registered for the same class
        where they are read.
    serialize_auxdata : callable
        Function from the static data of a node to bytes.
    deserialize_auxdata : callable
        Inverse function.
    from_children : callable, optional
        Function from the static data and the children to a node. The default is the registered one.

    Returns
    -------
    type
        The class itself.

    Raises
    ------
    ValueError
        If the class or the name is already registered.

    See Also
    --------
    export.register_namedtuple_serialization : Register named tuples.
    tree_util.register_pytree_node : Register a class.

    Examples
    --------
    >>> import accnp as jax
    >>> class Scaled:
    ...     def __init__(self, x, by):
    ...         self.x, self.by = x, by
    >>> jax.tree_util.register_pytree_node(
    ...     Scaled, lambda s: ((s.x,), s.by), lambda by, children: Scaled(*children, by))
    >>> registered = jax.export.register_pytree_node_serialization(
    ...     Scaled, serialized_name="docs.Scaled", serialize_auxdata=lambda by: bytes([by]),
    ...     deserialize_auxdata=lambda b: b[0])
    >>> registered is Scaled
    True
    """
    encoding = _Encoding(serialized_name, serialize_auxdata, deserialize_auxdata, from_children)
    _register("register_pytree_node_serialization", nodetype, encoding)
    return nodetype


def write_tree(tree: PyTreeDef) -> Any:
    """Encode a structure as nested lists for JSON."""
    return _write(tree.unflatten([_LEAF] * tree.num_leaves))


class _Leaf:
    """Placeholder for an array."""

    def of_keys(self, dtype: Any) -> PRNGKeyArray:
        return PRNGKeyArray(self, dtype)


_LEAF = _Leaf()


def _write(x: Any) -> Any:
    if x is _LEAF:
        return "*"
    if x is None:
        return None
    if type(x) in (list, tuple):
        return [type(x).__name__, [_write(v) for v in x]]
    if type(x) is dict:
        return ["dict", [[k, _write(v)] for k, v in x.items()]]
    if isinstance(x, PRNGKeyArray):
        return ["key", [x.dtype.name]]
    encoding = _encodings.get(type(x))
    if encoding is None:
        raise ValueError(
            f"export: values of type {type(x).__name__} cannot be stored; register the type with "
            "export.register_pytree_node_serialization or register_namedtuple_serialization"
        )
    if hasattr(x, "_fields"):
        children, aux = tuple(x), None
    else:
        children, aux = default_registry.flatten_one_level(x)
    return [encoding.name, [_write(v) for v in children], encoding.write(aux).hex()]


def read_tree(data: Any) -> PyTreeDef:
    """Decode a structure from nested lists."""
    return flatten_arrays(_read(data))[1]


def _read(data: Any) -> Any:
    if data == "*":
        return 0
    if data is None:
        return None
    name, children = data[:2]
    if name == "dict":
        return {k: _read(v) for k, v in children}
    if name == "key":
        return PRNGKeyArray(0, generator(children[0], "export.deserialize").dtype())
    children = [_read(v) for v in children]
    if name in ("list", "tuple"):
        return children if name == "list" else tuple(children)
    nodetype = _names.get(name)
    if nodetype is None:
        raise ValueError(
            f"export.deserialize: the type {name!r} is not registered; register it with "
            "export.register_pytree_node_serialization first"
        )
    encoding = _encodings[nodetype]
    aux = encoding.read(bytes.fromhex(data[2]))
    if encoding.make is not None:
        return encoding.make(aux, children)
    return NODES[nodetype].unflatten(aux, tuple(children))
