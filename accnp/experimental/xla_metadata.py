"""`accnp.experimental.xla_metadata`: metadata for XLA, which accnp accepts and ignores."""

from contextlib import nullcontext
from typing import Any

from accnp.module_getattr import install_getattr as _install_getattr

__all__ = ["set_xla_metadata"]


def set_xla_metadata(x: Any = None, **_: Any) -> Any:
    """Return a value unchanged, or a context manager without effect.

    Parameters
    ----------
    x : object, optional
        Operation result to return.

    Returns
    -------
    object
        `x`, or a context manager if it is not given.

    See Also
    --------
    named_scope : Name a part of a program.

    Examples
    --------
    >>> from accnp.experimental.xla_metadata import set_xla_metadata
    >>> set_xla_metadata(3.0, note="hot")
    3.0
    """
    return nullcontext() if x is None else x


_install_getattr(__name__, __all__)
