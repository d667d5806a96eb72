"""Events that programs record and listeners of theirs that hear of them; accnp records none itself
(`profiler` and `explain` say what it does).

In: names of events, values. Out: calls of the listeners, in the order of their registration.
"""

from __future__ import annotations

from collections.abc import Callable

__all__ = [
    "clear_event_listeners", "record_event", "record_event_duration_secs",
    "record_event_time_span", "record_scalar", "register_event_duration_secs_listener",
    "register_event_listener", "register_event_time_span_listener", "register_scalar_listener",
    "unregister_event_duration_listener", "unregister_event_listener",
    "unregister_event_time_span_listener", "unregister_scalar_listener",
]  # fmt: skip

Listener = Callable[..., None]
_events: list[Listener] = []
_durations: list[Listener] = []
_spans: list[Listener] = []
_scalars: list[Listener] = []


def record_event(event: str, **kwargs: str | int) -> None:
    """Say that something happened.

    Example:
        >>> import accnp as jax
        >>> jax.monitoring.register_event_listener(lambda event, **more: print(event, more))
        >>> jax.monitoring.record_event("/my/event", n=1)
        /my/event {'n': 1}
        >>> jax.monitoring.clear_event_listeners()
    """
    for call in [*_events]:
        call(event, **kwargs)


def record_event_duration_secs(event: str, duration: float, **kwargs: str | int) -> None:
    """Say how long something took, in seconds.

    >>> import accnp as jax
    >>> said = jax.monitoring.register_event_duration_secs_listener(print)
    >>> jax.monitoring.record_event_duration_secs("/my/work", 0.5)
    /my/work 0.5
    >>> jax.monitoring.clear_event_listeners()
    """
    for call in [*_durations]:
        call(event, duration, **kwargs)


def record_event_time_span(
    event: str, start_time: float, end_time: float, **kwargs: str | int
) -> None:
    """Say from when to when something went on, in seconds.

    >>> import accnp as jax
    >>> jax.monitoring.register_event_time_span_listener(print)
    >>> jax.monitoring.record_event_time_span("/my/work", 1.0, 1.5)
    /my/work 1.0 1.5
    >>> jax.monitoring.clear_event_listeners()
    """
    for call in [*_spans]:
        call(event, start_time, end_time, **kwargs)


def record_scalar(event: str, value: float | int, **kwargs: str | int) -> None:
    """Say a number.

    >>> import accnp as jax
    >>> jax.monitoring.register_scalar_listener(print)
    >>> jax.monitoring.record_scalar("/my/loss", 0.25)
    /my/loss 0.25
    >>> jax.monitoring.clear_event_listeners()
    """
    for call in [*_scalars]:
        call(event, value, **kwargs)


def register_event_listener(callback: Listener) -> None:
    """Call `callback(event, **kwargs)` for each event.

    >>> import accnp as jax
    >>> jax.monitoring.register_event_listener(lambda event, **more: print(event))
    >>> jax.monitoring.record_event("/my/event")
    /my/event
    >>> jax.monitoring.clear_event_listeners()
    """
    _events.append(callback)


def register_event_duration_secs_listener(callback: Listener) -> None:
    """Call `callback(event, duration, **kwargs)` for each duration.

    >>> import accnp as jax
    >>> jax.monitoring.register_event_duration_secs_listener(lambda _, duration: print(duration))
    >>> jax.monitoring.record_event_duration_secs("/my/work", 2.0)
    2.0
    >>> jax.monitoring.clear_event_listeners()
    """
    _durations.append(callback)


def register_event_time_span_listener(callback: Listener) -> None:
    """Call `callback(event, start_time, end_time, **kwargs)` for each span.

    >>> import accnp as jax
    >>> jax.monitoring.register_event_time_span_listener(lambda _, start, end: print(end - start))
    >>> jax.monitoring.record_event_time_span("/my/work", 1.0, 3.0)
    2.0
    >>> jax.monitoring.clear_event_listeners()
    """
    _spans.append(callback)


def register_scalar_listener(callback: Listener) -> None:
    """Call `callback(event, value, **kwargs)` for each number.

    >>> import accnp as jax
    >>> jax.monitoring.register_scalar_listener(lambda event, value, **more: print(value))
    >>> jax.monitoring.record_scalar("/my/loss", 0.5)
    0.5
    >>> jax.monitoring.clear_event_listeners()
    """
    _scalars.append(callback)


def _unregister(name: str, listeners: list[Listener], callback: Listener) -> None:
    if callback not in listeners:
        raise AssertionError(
            f"monitoring.{name}: this function is not registered; got {callback!r}; pass one that "
            "was registered"
        )
    listeners.remove(callback)


def unregister_event_listener(callback: Listener) -> None:
    """Call it no more.

    Raises:
        AssertionError: it was not registered.

    >>> import accnp as jax
    >>> jax.monitoring.register_event_listener(print)
    >>> jax.monitoring.unregister_event_listener(print)
    """
    _unregister("unregister_event_listener", _events, callback)


def unregister_event_duration_listener(callback: Listener) -> None:
    """Call it no more.

    Raises:
        AssertionError: it was not registered.

    >>> import accnp as jax
    >>> jax.monitoring.register_event_duration_secs_listener(print)
    >>> jax.monitoring.unregister_event_duration_listener(print)
    """
    _unregister("unregister_event_duration_listener", _durations, callback)


def unregister_event_time_span_listener(callback: Listener) -> None:
    """Call it no more.

    Raises:
        AssertionError: it was not registered.

    >>> import accnp as jax
    >>> jax.monitoring.register_event_time_span_listener(print)
    >>> jax.monitoring.unregister_event_time_span_listener(print)
    """
    _unregister("unregister_event_time_span_listener", _spans, callback)


def unregister_scalar_listener(callback: Listener) -> None:
    """Call it no more.

    Raises:
        AssertionError: it was not registered.

    >>> import accnp as jax
    >>> jax.monitoring.register_scalar_listener(print)
    >>> jax.monitoring.unregister_scalar_listener(print)
    """
    _unregister("unregister_scalar_listener", _scalars, callback)


def clear_event_listeners() -> None:
    """Call none of them any more.

    >>> import accnp as jax
    >>> jax.monitoring.register_event_listener(print)
    >>> jax.monitoring.clear_event_listeners()
    >>> jax.monitoring.record_event("/nobody/hears/it")
    """
    for listeners in (_events, _durations, _spans, _scalars):
        listeners.clear()
