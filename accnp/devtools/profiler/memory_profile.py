"""Memory profiles: the lines of code that hold memory, in the format of `pprof`.

The format is a gzipped protocol buffer of samples, each with a stack of one frame. The numbers of
its fields are those of `profile.proto`.
"""

from __future__ import annotations

import gc
import gzip
from collections.abc import Iterable

from accnp.ir.node import Node, site_text
from accnp.runtime.buffer import Buffer

__all__ = ["live_memory", "memory_profile"]

_UNKNOWN = "<results of jitted functions, and arrays given to accnp>"


def live_memory() -> dict[str, tuple[int, int]]:
    """Return the live arrays and their bytes by the line that recorded them.

    Memory that arrays share counts once.
    """
    seen: set[int] = set()
    totals: dict[str, tuple[int, int]] = {}
    for node in gc.get_objects():
        if type(node) is not Node:
            continue
        values = node.value if isinstance(node.value, tuple) else (node.value,)
        for value in values:
            if isinstance(value, Buffer) and id(value) not in seen:
                seen.add(id(value))
                place = site_text(node) if node.site is not None else _UNKNOWN
                count, size = totals.get(place, (0, 0))
                totals[place] = count + 1, size + value.nbytes
    return totals


def memory_profile() -> bytes:
    """Return the profile of `live_memory` for `pprof`."""
    table = _StringTable()
    out = b""
    for kind, unit in (("allocations", "count"), ("space", "bytes")):
        out += _encode_message(
            1, _encode_number(1, table.of(kind)) + _encode_number(2, table.of(unit))
        )
    samples, locations = b"", b""
    for i, (place, (count, size)) in enumerate(sorted(live_memory().items()), 1):
        file, _, rest = place.rpartition(":")
        line, _, name = rest.partition(" ")
        number = int(line) if line.isdigit() else 0
        samples += _encode_message(2, _encode_packed(1, [i]) + _encode_packed(2, [count, size]))
        locations += _encode_message(
            4,
            _encode_number(1, i)
            + _encode_message(4, _encode_number(1, i) + _encode_number(2, number)),
        )
        function = _encode_number(1, i) + _encode_number(2, table.of(name.strip("()") or place))
        locations += _encode_message(5, function + _encode_number(4, table.of(file or place)))
    out += samples + locations
    for text in table.texts:
        out += _encode_message(6, text.encode())
    return gzip.compress(out)


class _StringTable:
    """The string table; the first entry is empty."""

    def __init__(self) -> None:
        self.texts = [""]

    def of(self, text: str) -> int:
        if text not in self.texts:
            self.texts.append(text)
        return self.texts.index(text)


def _varint(n: int) -> bytes:
    out = bytearray()
    while n > 127:
        out.append(n & 127 | 128)
        n >>= 7
    out.append(n)
    return bytes(out)


def _encode_number(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value)


def _encode_message(field: int, data: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(data)) + data


def _encode_packed(field: int, values: Iterable[int]) -> bytes:
    return _encode_message(field, b"".join(map(_varint, values)))
