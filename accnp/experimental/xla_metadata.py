"""`accnp.experimental.xla_metadata`: notes for XLA, which nobody reads here."""

from contextlib import nullcontext
from typing import Any

from accnp.missing import install_getattr as _install_getattr

__all__ = ["set_xla_metadata"]


def set_xla_metadata(x: Any = None, **_: Any) -> Any:
    """Return x as it is, or a context that changes nothing.

    Example:
        >>> from accnp.experimental.xla_metadata import set_xla_metadata
        >>> set_xla_metadata(3.0, note="hot")
        3.0
    """
    return nullcontext() if x is None else x


_install_getattr(__name__, __all__)
