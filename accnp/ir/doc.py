"""Laying out text. In: documents built of text, breaks, groups and nests. Out: lines that fit a
width where they can.

A group is printed on one line if all of it fits in what is left of the line; otherwise its own
breaks become newlines, and the groups inside it decide again for themselves.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

__all__ = ["Doc", "brk", "concat", "group", "join", "layout", "nest", "text"]

# A document is a tuple: ("text", s), ("brk", s), ("concat", docs), ("group", doc) or ("nest", n,
# doc).
Doc = tuple


def text(s: str) -> Doc:
    """Text without newlines."""
    return ("text", s)


def brk(s: str = " ") -> Doc:
    """A newline, or `s` where the group around it fits on the line."""
    return ("brk", s)


def concat(docs: Iterable[Doc]) -> Doc:
    """Documents one after another."""
    return ("concat", tuple(docs))


def group(doc: Doc) -> Doc:
    """A document that is laid out flat if it fits."""
    return ("group", doc)


def nest(n: int, doc: Doc) -> Doc:
    """A document whose newlines are indented by `n` more."""
    return ("nest", n, doc)


def join(separator: Doc, docs: Sequence[Doc]) -> Doc:
    """Documents with a separator between each two."""
    out: list[Doc] = []
    for i, d in enumerate(docs):
        if i:
            out.append(separator)
        out.append(d)
    return concat(out)


def _fits(doc: Doc, room: int) -> bool:
    stack = [doc]
    while stack:
        d = stack.pop()
        kind = d[0]
        if kind in ("text", "brk"):
            room -= len(d[1])
            if room < 0:
                return False
        elif kind == "concat":
            stack.extend(reversed(d[1]))
        else:
            stack.append(d[-1])
    return True


def layout(doc: Doc, width: int = 80) -> str:
    """Return the text of a document."""
    out: list[str] = []
    column = 0
    stack: list[tuple[int, bool, Doc]] = [(0, False, doc)]
    while stack:
        indent, flat, d = stack.pop()
        kind = d[0]
        if kind == "text" or (kind == "brk" and flat):
            out.append(d[1])
            column += len(d[1])
        elif kind == "brk":
            out.append("\n" + " " * indent)
            column = indent
        elif kind == "concat":
            stack.extend((indent, flat, x) for x in reversed(d[1]))
        elif kind == "group":
            stack.append((indent, _fits(d[1], width - column), d[1]))
        else:
            stack.append((indent + d[1], flat, d[2]))
    return "".join(out)
