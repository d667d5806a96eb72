# isort: skip_file
"""`accnp.monitoring`: events of programs, and listeners for them.

>>> import accnp as jax
>>> jax.monitoring.register_event_listener(lambda event: print(event))
>>> jax.monitoring.record_event("/my/event")
/my/event
>>> jax.monitoring.clear_event_listeners()
"""

from typing import TYPE_CHECKING

from accnp.module_getattr import install_getattr as _install_getattr

if TYPE_CHECKING:  # loaded on first use, by accnp/module_getattr.py
    from accnp.api.environment.monitoring import (
        clear_event_listeners, record_event, record_event_duration_secs, record_event_time_span,
        record_scalar, register_event_duration_secs_listener, register_event_listener,
        register_event_time_span_listener, register_scalar_listener,
        unregister_event_duration_listener, unregister_event_listener,
        unregister_event_time_span_listener, unregister_scalar_listener,
    )  # fmt: skip

__all__ = [
    "clear_event_listeners", "record_event", "record_event_duration_secs", "record_event_time_span",
    "record_scalar", "register_event_duration_secs_listener", "register_event_listener",
    "register_event_time_span_listener", "register_scalar_listener",
    "unregister_event_duration_listener", "unregister_event_listener",
    "unregister_event_time_span_listener", "unregister_scalar_listener",
]  # fmt: skip

_install_getattr(__name__, __all__)
