"""`accnp.lib`: functions of `jax.lib.xla_bridge`, which programs for older JAX releases use.

`accnp.extend.backend` exports some of them under their current names.

>>> import accnp as jax
>>> jax.lib.__name__
'accnp.lib'
"""

from functools import cache
from types import SimpleNamespace
from typing import Any

from accnp.module_getattr import install_getattr as _install_getattr
from accnp.runtime import device
from accnp.runtime.device import Device, default_backend, devices, local_devices
from accnp.version import __version__

__all__ = ["__version__", "xla_bridge"]


class _Bridge(SimpleNamespace):
    """Namespace with the functions of `jax.lib.xla_bridge` that accnp provides.

    Other names raise an AttributeError that says what to use instead.
    """

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(
            f"jax.lib.xla_bridge has no attribute {name!r}: use jax.default_backend() and "
            "jax.devices()"
        )


@cache
def _get_backend(platform: str | None = None) -> SimpleNamespace:
    """Return an object that describes the devices of a platform.

    Parameters
    ----------
    platform : str, optional
        Name of the platform. The default is the default backend.

    Returns
    -------
    SimpleNamespace
        Object with the platform and functions for its devices.

    Raises
    ------
    RuntimeError
        If the platform is unknown.

    See Also
    --------
    devices : List of the devices.

    Examples
    --------
    >>> import accnp as jax
    >>> jax.extend.backend.get_backend().platform == jax.default_backend()
    True
    """
    name = platform or default_backend()
    device_list = devices(name)
    return SimpleNamespace(
        platform=name,
        platform_version="accnp " + __version__,
        device_count=lambda: len(device_list),
        devices=lambda: list(device_list),
        local_devices=lambda: local_devices(backend=name),
        process_index=lambda: device.process[0],
    )


def _get_backends() -> dict[str, SimpleNamespace]:
    """Return the backends of the process, keyed by platform.

    Returns
    -------
    dict
        Objects as returned by `get_backend`, keyed by the name of the platform.

    See Also
    --------
    extend.backend.get_backend : One of the backends.

    Examples
    --------
    >>> import accnp as jax
    >>> list(jax.extend.backend.backends()) == [jax.default_backend()]
    True
    """
    return {default_backend(): _get_backend()}


def _get_default_device() -> Device:
    """Return the device on which arrays are placed by default.

    Returns
    -------
    Device
        First device of the default backend.

    See Also
    --------
    devices : List of the devices.

    Examples
    --------
    >>> import accnp as jax
    >>> jax.extend.backend.get_default_device() == jax.devices()[0]
    True
    """
    return devices()[0]


xla_bridge = _Bridge(
    backends=_get_backends,
    default_backend=default_backend,
    device_count=lambda backend=None: len(devices(backend)),
    devices=devices,
    get_backend=_get_backend,
    get_default_device=_get_default_device,
)

_install_getattr(__name__, __all__)
