"""Pretty-printing of nested text, as in Oppen's and Wadler's printers.

The input is a document: a tree of texts, possible line breaks, groups and indentations, built by
the functions below. `layout` turns it into lines of a given width where possible. A group is
printed on one line if all of it fits into the rest of the line; otherwise its own breaks become
newlines, and each group inside it is decided separately. `ir/printer.py` prints jaxprs with it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

__all__ = ["Doc", "brk", "concat", "group", "join", "layout", "nest", "text"]

Doc = (
    tuple[Literal["text"], str, str]  # the text and its note
    | tuple[Literal["brk"], str]
    | tuple[Literal["concat"], "tuple[Doc, ...]"]
    | tuple[Literal["group"], "Doc"]
    | tuple[Literal["nest"], int, "Doc"]
)


def text(s: str, note: str = "") -> Doc:
    """Text without newlines; the note is printed at the end of its line as a comment."""
    return ("text", s, note)


def brk(s: str = " ") -> Doc:
    """A newline, or `s` if the enclosing group fits on the line."""
    return ("brk", s)


def concat(docs: Iterable[Doc]) -> Doc:
    """A sequence of documents without separators."""
    return ("concat", tuple(docs))


def group(doc: Doc) -> Doc:
    """A document that is printed on one line if it fits."""
    return ("group", doc)


def nest(n: int, doc: Doc) -> Doc:
    """A document whose newlines are indented by `n` more columns."""
    return ("nest", n, doc)


def join(separator: Doc, docs: Sequence[Doc]) -> Doc:
    """A sequence of documents with a separator between neighbors."""
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
        if d[0] == "text" or d[0] == "brk":
            room -= len(d[1])
            if room < 0:
                return False
        elif d[0] == "concat":
            stack.extend(reversed(d[1]))
        elif d[0] == "group":
            stack.append(d[1])
        else:
            stack.append(d[2])
    return True


def layout(doc: Doc, width: int = 80) -> str:
    """Return the text of a document, with lines of at most `width` columns where possible."""
    out: list[str] = []
    column, line = 0, 0
    notes: dict[int, list[str]] = {}
    stack: list[tuple[int, bool, Doc]] = [(0, False, doc)]
    while stack:
        indent, flat, d = stack.pop()
        if d[0] == "text" or (d[0] == "brk" and flat):
            out.append(d[1])
            column += len(d[1])
            if d[0] == "text" and d[2]:
                notes.setdefault(line, []).append(d[2])
        elif d[0] == "brk":
            out.append("\n" + " " * indent)
            column = indent
            line += 1
        elif d[0] == "concat":
            stack.extend((indent, flat, x) for x in reversed(d[1]))
        elif d[0] == "group":
            stack.append((indent, _fits(d[1], width - column), d[1]))
        else:
            stack.append((indent + d[1], flat, d[2]))
    return _append_notes("".join(out), notes) if notes else "".join(out)


def _append_notes(s: str, notes: dict[int, list[str]]) -> str:
    """Append each note to its line as a comment; further notes of a line go on lines below it."""
    lines = s.split("\n")
    edge = max(len(lines[i]) for i in notes)
    out: list[str] = []
    for i, line in enumerate(lines):
        first, *rest = notes.get(i, [""])
        out.append(f"{line:{edge}} # {first}" if first else line)
        out += [f"{'':{edge}} # {note}" for note in rest]
    return "\n".join(out)
