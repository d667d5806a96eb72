"""`accnp.lib`: what old programs ask of jax's back end."""

from types import SimpleNamespace

from accnp import __version__
from accnp.runtime.device import default_backend, devices

__all__ = ["__version__", "xla_bridge"]

xla_bridge = SimpleNamespace(
    default_backend=default_backend,
    device_count=lambda backend=None: len(devices(backend)),
    devices=devices,
    get_backend=lambda platform=None: SimpleNamespace(platform=platform or default_backend()),
)
