"""`jax.monitoring`: events that programs record, and listeners for them.

Listeners are called in the order of their registration. accnp itself records no events (see
`profiler` and `explain`).
"""

from __future__ import annotations

from collections.abc import Callable

from accnp.docstrings import filled

__all__ = [
    "clear_event_listeners", "record_event", "record_event_duration_secs",
    "record_event_time_span", "record_scalar", "register_event_duration_secs_listener",
    "register_event_listener", "register_event_time_span_listener", "register_scalar_listener",
    "unregister_event_duration_listener", "unregister_event_listener",
    "unregister_event_time_span_listener", "unregister_scalar_listener",
]  # fmt: skip

Listener = Callable[..., None]
# The listeners for each kind of record, in the order of their registration.
_events: list[Listener] = []
_durations: list[Listener] = []
_spans: list[Listener] = []
_scalars: list[Listener] = []


@filled
def record_event(event: str, **kwargs: str | int) -> None:
    """Report an event to the registered listeners.

    Parameters
    ----------
    {event}
    {event_metadata}

    See Also
    --------
    monitoring.register_event_listener : Receive events.

    Examples
    --------
    >>> import accnp as jax
    >>> jax.monitoring.register_event_listener(lambda event, **more: print(event, more))
    >>> jax.monitoring.record_event("/my/event", n=1)
    /my/event {'n': 1}
    >>> jax.monitoring.clear_event_listeners()
    """
    for call in [*_events]:
        call(event, **kwargs)


@filled
def record_event_duration_secs(event: str, duration: float, **kwargs: str | int) -> None:
    """Report the duration of an operation to the registered listeners.

    Parameters
    ----------
    {event}
    duration : float
        How long the operation took, in seconds.
    {event_metadata}

    See Also
    --------
    monitoring.register_event_duration_secs_listener : Receive durations.

    Examples
    --------
    >>> import accnp as jax
    >>> jax.monitoring.register_event_duration_secs_listener(print)
    >>> jax.monitoring.record_event_duration_secs("/my/work", 0.5)
    /my/work 0.5
    >>> jax.monitoring.clear_event_listeners()
    """
    for call in [*_durations]:
        call(event, duration, **kwargs)


@filled
def record_event_time_span(
    event: str, start_time: float, end_time: float, **kwargs: str | int
) -> None:
    """Report when an operation started and ended to the registered listeners.

    Parameters
    ----------
    {event}
    start_time : float
        When the operation started, in seconds.
    end_time : float
        When the operation ended, in seconds.
    {event_metadata}

    See Also
    --------
    monitoring.register_event_time_span_listener : Receive time spans.

    Examples
    --------
    >>> import accnp as jax
    >>> jax.monitoring.register_event_time_span_listener(print)
    >>> jax.monitoring.record_event_time_span("/my/work", 1.0, 1.5)
    /my/work 1.0 1.5
    >>> jax.monitoring.clear_event_listeners()
    """
    for call in [*_spans]:
        call(event, start_time, end_time, **kwargs)


@filled
def record_scalar(event: str, value: float | int, **kwargs: str | int) -> None:
    """Report a scalar to the registered listeners.

    Parameters
    ----------
    {event}
    value : float or int
        Quantity to report.
    {event_metadata}

    See Also
    --------
    monitoring.register_scalar_listener : Receive scalars.

    Examples
    --------
    >>> import accnp as jax
    >>> jax.monitoring.register_scalar_listener(print)
    >>> jax.monitoring.record_scalar("/my/loss", 0.25)
    /my/loss 0.25
    >>> jax.monitoring.clear_event_listeners()
    """
    for call in [*_scalars]:
        call(event, value, **kwargs)


def register_event_listener(callback: Listener) -> None:
    """Register a function that is called for each event.

    Parameters
    ----------
    callback : callable
        Function called as `callback(event, **metadata)`.

    See Also
    --------
    monitoring.record_event : Report an event.
    monitoring.unregister_event_listener : Remove the function.

    Examples
    --------
    >>> import accnp as jax
    >>> jax.monitoring.register_event_listener(lambda event, **more: print(event))
    >>> jax.monitoring.record_event("/my/event")
    /my/event
    >>> jax.monitoring.clear_event_listeners()
    """
    _events.append(callback)


def register_event_duration_secs_listener(callback: Listener) -> None:
    """Register a function that is called for each reported duration.

    Parameters
    ----------
    callback : callable
        Function called as `callback(event, duration, **metadata)`, with the duration in
        seconds.

    See Also
    --------
    monitoring.record_event_duration_secs : Report a duration.
    monitoring.unregister_event_duration_listener : Remove the function.

    Examples
    --------
    >>> import accnp as jax
    >>> jax.monitoring.register_event_duration_secs_listener(lambda _, duration: print(duration))
    >>> jax.monitoring.record_event_duration_secs("/my/work", 2.0)
    2.0
    >>> jax.monitoring.clear_event_listeners()
    """
    _durations.append(callback)


def register_event_time_span_listener(callback: Listener) -> None:
    """Register a function that is called for each reported time span.

    Parameters
    ----------
    callback : callable
        Function called as `callback(event, start_time, end_time, **metadata)`, with times in
        seconds.

    See Also
    --------
    monitoring.record_event_time_span : Report a time span.
    monitoring.unregister_event_time_span_listener : Remove the function.

    Examples
    --------
    >>> import accnp as jax
    >>> jax.monitoring.register_event_time_span_listener(lambda _, start, end: print(end - start))
    >>> jax.monitoring.record_event_time_span("/my/work", 1.0, 3.0)
    2.0
    >>> jax.monitoring.clear_event_listeners()
    """
    _spans.append(callback)


def register_scalar_listener(callback: Listener) -> None:
    """Register a function that is called for each reported scalar.

    Parameters
    ----------
    callback : callable
        Function called as `callback(event, value, **metadata)`.

    See Also
    --------
    monitoring.record_scalar : Report a scalar.
    monitoring.unregister_scalar_listener : Remove the function.

    Examples
    --------
    >>> import accnp as jax
    >>> jax.monitoring.register_scalar_listener(lambda event, value, **more: print(value))
    >>> jax.monitoring.record_scalar("/my/loss", 0.5)
    0.5
    >>> jax.monitoring.clear_event_listeners()
    """
    _scalars.append(callback)


def _unregister(name: str, listeners: list[Listener], callback: Listener) -> None:
    """Remove a listener from a list; `name` is the public function, for the error message."""
    if callback not in listeners:
        raise AssertionError(
            f"monitoring.{name}: this function is not registered; got {callback!r}; pass one that "
            "was registered"
        )
    listeners.remove(callback)


@filled
def unregister_event_listener(callback: Listener) -> None:
    """Remove a listener for events.

    Parameters
    ----------
    {listener}

    Raises
    ------
    {raises_listener}

    See Also
    --------
    monitoring.register_event_listener : Register a function.

    Examples
    --------
    >>> import accnp as jax
    >>> jax.monitoring.register_event_listener(print)
    >>> jax.monitoring.unregister_event_listener(print)
    """
    _unregister("unregister_event_listener", _events, callback)


@filled
def unregister_event_duration_listener(callback: Listener) -> None:
    """Remove a listener for durations.

    Parameters
    ----------
    {listener}

    Raises
    ------
    {raises_listener}

    See Also
    --------
    monitoring.register_event_duration_secs_listener : Register a function.

    Examples
    --------
    >>> import accnp as jax
    >>> jax.monitoring.register_event_duration_secs_listener(print)
    >>> jax.monitoring.unregister_event_duration_listener(print)
    """
    _unregister("unregister_event_duration_listener", _durations, callback)


@filled
def unregister_event_time_span_listener(callback: Listener) -> None:
    """Remove a listener for time spans.

    Parameters
    ----------
    {listener}

    Raises
    ------
    {raises_listener}

    See Also
    --------
    monitoring.register_event_time_span_listener : Register a function.

    Examples
    --------
    >>> import accnp as jax
    >>> jax.monitoring.register_event_time_span_listener(print)
    >>> jax.monitoring.unregister_event_time_span_listener(print)
    """
    _unregister("unregister_event_time_span_listener", _spans, callback)


@filled
def unregister_scalar_listener(callback: Listener) -> None:
    """Remove a listener for scalars.

    Parameters
    ----------
    {listener}

    Raises
    ------
    {raises_listener}

    See Also
    --------
    monitoring.register_scalar_listener : Register a function.

    Examples
    --------
    >>> import accnp as jax
    >>> jax.monitoring.register_scalar_listener(print)
    >>> jax.monitoring.unregister_scalar_listener(print)
    """
    _unregister("unregister_scalar_listener", _scalars, callback)


def clear_event_listeners() -> None:
    """Remove all listeners of all kinds.

    See Also
    --------
    monitoring.register_event_listener : Register a function.

    Examples
    --------
    >>> import accnp as jax
    >>> jax.monitoring.register_event_listener(print)
    >>> jax.monitoring.clear_event_listeners()
    >>> jax.monitoring.record_event("/example/event")
    """
    for listeners in (_events, _durations, _spans, _scalars):
        listeners.clear()
