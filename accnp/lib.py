"""`accnp.lib`: what old programs ask of jax's back end."""

from functools import cache
from types import SimpleNamespace
from typing import Any

from accnp import __version__
from accnp.missing import nearest as _nearest
from accnp.runtime.device import default_backend, devices

__all__ = ["__version__", "xla_bridge"]


class _Bridge(SimpleNamespace):
    """The functions that are left of a module."""

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(
            f"jax.lib.xla_bridge has no attribute {name!r}: use jax.default_backend() and "
            "jax.devices()"
        )


xla_bridge = _Bridge(
    default_backend=default_backend,
    device_count=lambda backend=None: len(devices(backend)),
    devices=devices,
    get_backend=cache(
        lambda platform=None: SimpleNamespace(platform=platform or default_backend())
    ),
)

__getattr__ = _nearest(__name__, __all__)
