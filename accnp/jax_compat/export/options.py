"""Constants and options of `export`, most of which have no effect."""

from __future__ import annotations

from accnp.runtime.device import default_backend

__all__ = [
    "DisabledSafetyCheck", "default_export_platform",
    "maximum_supported_calling_convention_version",
    "minimum_supported_calling_convention_version",
]  # fmt: skip

minimum_supported_calling_convention_version = 9
maximum_supported_calling_convention_version = 10


def default_export_platform() -> str:
    """Return the platform for which programs are exported by default.

    Returns
    -------
    str
        Name of the default backend.

    See Also
    --------
    export.export : Export a function.
    default_backend : Name of the default backend.

    Examples
    --------
    >>> import accnp as jax
    >>> jax.export.default_export_platform() == jax.default_backend()
    True
    """
    return default_backend()


class DisabledSafetyCheck:
    """Safety check that JAX's `export` skips; accnp makes none of these checks.

    Parameters
    ----------
    _impl : str
        Name of the check.

    Examples
    --------
    >>> import accnp as jax
    >>> jax.export.DisabledSafetyCheck.custom_call("f")
    custom_call:f
    """

    def __init__(self, _impl: str) -> None:
        self._impl = _impl

    @classmethod
    def platform(cls) -> DisabledSafetyCheck:
        """Skip the check that a program runs on the platform for which it was exported."""
        return cls("platform")

    @classmethod
    def custom_call(cls, target_name: str) -> DisabledSafetyCheck:
        """Skip the check that a custom call is known to be stable."""
        return cls(f"custom_call:{target_name}")

    def is_custom_call(self) -> str | None:
        """Return the target of the custom call, or None."""
        kind, _, target = self._impl.partition(":")
        return target if kind == "custom_call" else None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DisabledSafetyCheck) and self._impl == other._impl

    def __hash__(self) -> int:
        return hash(self._impl)

    def __repr__(self) -> str:
        return self._impl
