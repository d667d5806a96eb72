"""Edited kernels that replace generated ones in plans (`api/kernels/override.py`).

Input: the source and the signature of a generated kernel, and the edited source. Output: an
`EditedKernel`, which is a value of the option `kernel_overrides`, and in which plans record whether
they used it.
"""

from __future__ import annotations

import weakref

from accnp.compiler.kernel_cache import Callees

__all__ = ["EditedKernel"]

_Key = tuple[str, tuple[str, ...], str, Callees]
_MOST = 8  # labels that are kept


class EditedKernel:
    """An edited kernel; there is one object for the same texts, so that cached plans record in it.

    Attributes
    ----------
    code, signature
        The source of the generated kernel, and the types of its arguments.
    source, callees
        The edited source, and the kernels that it defines and calls.
    used : bool
        Whether a plan has used it.
    others : list of str
        Labels of kernels of plans that did not use it.
    """

    def __init__(
        self, code: str, signature: tuple[str, ...], source: str, callees: Callees
    ) -> None:
        self.code, self.signature = code, signature
        self.source, self.callees = source, callees
        self.used = False
        self.others: list[str] = []

    @classmethod
    def of(
        cls, code: str, signature: tuple[str, ...], source: str, callees: Callees
    ) -> EditedKernel:
        """Return the edited kernel of these texts."""
        key = (code, signature, source, callees)
        return _known.setdefault(key, cls(*key))

    def differs(self, label: str) -> None:
        """Record that a kernel in its scope is another one."""
        if label not in self.others and len(self.others) < _MOST:
            self.others.append(label)


# The keys of cached plans keep the objects alive.
_known: weakref.WeakValueDictionary[_Key, EditedKernel] = weakref.WeakValueDictionary()
