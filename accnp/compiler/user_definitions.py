"""The texts of users' scalar functions, by the names under which kernels call them.

`define` stores the text of a function, and returns a name that contains a hash of the text. The
source of a kernel that calls the function by this name therefore identifies the function, and can
be part of cache keys. `with_definitions` returns the source of a kernel with the texts of all
functions that it calls in front, which is what is compiled. `keep_linked` and `with_linked` do the
same for the Python source of functions that Numba compiles, which `inspect` shows.
"""

from __future__ import annotations

import re

__all__ = ["define", "is_defined", "keep_linked", "with_definitions", "with_linked"]

_MARK = re.compile(r"\b[A-Za-z_]\w*_[0-9a-f]{16}\b")
_texts: dict[str, str] = {}
_linked: dict[str, str] = {}


def define(name: str, text: str) -> str:
    """Keep the text of a function, with `{name}` for its name, and return its name in kernels."""
    import hashlib  # loads OpenSSL, 6 ms; few programs define functions

    mark = f"{name}_{hashlib.sha256(text.encode()).hexdigest()[:16]}"
    _texts[mark] = text.replace("{name}", mark)
    return mark


def is_defined(name: str) -> bool:
    """Return whether this is the name of a user's function."""
    return name in _texts


def with_definitions(source: str) -> str:
    """Return the source of a kernel, preceded by the functions that it calls; each function comes
    after those that it calls."""
    texts: dict[str, str] = {}

    def visit(text: str) -> None:
        for mark in _MARK.findall(text):
            if mark in _texts and mark not in texts and f"def {mark}(" not in text:
                visit(_texts[mark])
                texts[mark] = _texts[mark]

    visit(source)
    return "\n".join([*texts.values(), source]) if texts else source


def keep_linked(name: str, text: str) -> None:
    """Keep the Python source of a module that defines the function `name`, which the front end does
    not support and Numba compiles."""
    _linked[name] = text


def with_linked(source: str) -> str:
    """Return the source of a kernel for Numba, preceded by the functions compiled for it."""
    texts = [_linked[name] for name in dict.fromkeys(_MARK.findall(source)) if name in _linked]
    return "\n".join([*texts, source])
