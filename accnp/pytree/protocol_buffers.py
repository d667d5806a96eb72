"""Serialization of pytree structures as protocol buffers, in the format of JAX.

`serialize` converts structures of tuples, lists, None and dictionaries with string keys to bytes,
and `deserialize` converts bytes to a structure. A message contains the nodes (field 1), children
before parents, and each key once (field 2). A node contains the number of its children (field 1),
its type (field 2), and the indices of its keys (field 3, a message with field 1).
"""

from __future__ import annotations

from collections.abc import Iterator

from accnp.errors import JaxRuntimeError
from accnp.pytree.structure import NONE, PyTreeDef, Structure, fold_structure

__all__ = ["deserialize", "serialize"]

_LEAF, _LIST, _NONE, _TUPLE, _DICT = 1, 2, 3, 4, 5
_KINDS = {list: _LIST, type(None): _NONE, tuple: _TUPLE, dict: _DICT}


def _varint(n: int) -> bytes:
    out = bytearray()
    while n > 127:
        out.append(n & 127 | 128)
        n >>= 7
    out.append(n)
    return bytes(out)


def _field(number: int, content: bytes) -> bytes:
    """Return a field that contains bytes: text, a message, or packed numbers."""
    return bytes([number << 3 | 2]) + _varint(len(content)) + content


def serialize(structure: PyTreeDef) -> bytes:
    """Return the bytes of a structure.

    Raises:
        ValueError: it has nodes of other classes, or keys that are not strings.
    """
    nodes: list[bytes] = []
    keys: dict[str, int] = {}

    def add(node: Structure) -> None:
        kind, data, inner = (None, None, ()) if node is None else node
        number = _LEAF if kind is None else _KINDS.get(kind)
        if number is None:
            assert kind is not None
            raise ValueError(
                "serialize_using_proto: User-defined nodes are not supported when serializing "
                f"pytrees as protocol buffers; got {kind.__name__}; use pickle"
            )
        message = b"\x08" + _varint(len(inner)) if inner else b""
        message += b"\x10" + _varint(number)
        if number == _DICT and data:
            if not all(isinstance(key, str) for key in data):
                raise ValueError(
                    "serialize_using_proto: Only string keys are supported in proto pytree "
                    f"serialization; got {list(data)}; use pickle"
                )
            places = [keys.setdefault(key, len(keys)) for key in data]
            message += _field(3, _field(1, b"".join(map(_varint, places))))
        nodes.append(_field(1, message))

    fold_structure(structure._node, lambda: add(None), lambda node, _: add(node))
    return b"".join(nodes) + b"".join(_field(2, key.encode()) for key in keys)


def _malformed_error(what: str) -> ValueError:
    return ValueError(
        f"deserialize_using_proto: Malformed pytree proto ({what}); pass bytes that "
        "serialize_using_proto made"
    )


def _take_varint(data: bytes, at: int) -> tuple[int, int]:
    n = 0
    for shift in range(0, 70, 7):
        byte = data[at]
        at += 1
        n |= (byte & 127) << shift
        if byte < 128:
            return n, at
    raise IndexError


def _fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Yield the numbers and contents of the fields of a message; raises IndexError if it is not
    well formed."""
    at = 0
    while at < len(data):
        tag, at = _take_varint(data, at)
        number, at = _take_varint(data, at)
        if tag & 7 == 0:
            yield tag >> 3, number
        elif tag & 7 == 2 and at + number <= len(data):
            yield tag >> 3, data[at : at + number]
            at += number
        else:
            raise IndexError


def _read_varints(packed: bytes) -> Iterator[int]:
    at = 0
    while at < len(packed):
        n, at = _take_varint(packed, at)
        yield n


def _parse(data: bytes) -> tuple[list[tuple[int, int, list[int]]], list[str]]:
    """Return the nodes, as (number of children, type, indices of keys), and all keys."""
    nodes: list[tuple[int, int, list[int]]] = []
    keys: list[str] = []
    for field, content in _fields(data):
        if field == 2 and isinstance(content, bytes):
            keys.append(content.decode())
        elif field == 1 and isinstance(content, bytes):
            arity, kind, places = 0, 0, []
            for part, value in _fields(content):
                if part == 1 and isinstance(value, int):
                    arity = value
                elif part == 2 and isinstance(value, int):
                    kind = value
                elif part == 3 and isinstance(value, bytes):
                    packed = [x for f, x in _fields(value) if f == 1 and isinstance(x, bytes)]
                    places += [n for x in packed for n in _read_varints(x)]
            nodes.append((arity, kind, places))
    return nodes, keys


def deserialize(data: bytes) -> PyTreeDef:
    """Return the structure that bytes describe.

    Raises:
        JaxRuntimeError: the bytes are not a protocol buffer.
        ValueError: the fields do not describe a structure.
    """
    try:
        nodes, keys = _parse(bytes(data))
    except (IndexError, UnicodeDecodeError):
        raise JaxRuntimeError(
            "deserialize_using_proto: Could not deserialize PyTreeDefProto; got "
            f"{len(data)} bytes; pass bytes that serialize_using_proto made"
        ) from None
    stack: list[Structure] = []
    leaves = 0
    for arity, kind, places in nodes:
        if arity > len(stack) or (kind in (_LEAF, _NONE) and arity):
            raise _malformed_error("too few children")
        inner = tuple(stack[len(stack) - arity :])
        del stack[len(stack) - arity :]
        if kind == _LEAF:
            leaves += 1
            stack.append(None)
        elif kind == _NONE:
            stack.append(NONE)
        elif kind == _DICT:
            if len(places) != arity or any(n >= len(keys) for n in places):
                raise _malformed_error("invalid dictionary keys")
            named = sorted(zip([keys[n] for n in places], inner, strict=True), key=lambda x: x[0])
            stack.append((dict, tuple([key for key, _ in named]), tuple([x for _, x in named])))
        elif kind in (_LIST, _TUPLE):
            stack.append((list if kind == _LIST else tuple, None, inner))
        else:
            raise _malformed_error("invalid node type")
    if len(stack) != 1:
        raise _malformed_error("traversal did not yield a singleton")
    return PyTreeDef(stack[0], leaves)
