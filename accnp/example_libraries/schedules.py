"""Schedules: the step size of an optimizer as a function of the step number."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from accnp.array_type import Array, ArrayLike
from accnp.errors import api_boundary
from accnp.numpy import ufuncs as uf
from accnp.numpy.creation import array, asarray

__all__ = [
    "Schedule", "constant", "exponential_decay", "inverse_time_decay", "make_schedule",
    "piecewise_constant", "polynomial_decay",
]  # fmt: skip

Schedule = Callable[[Any], Any]


@api_boundary
def constant(step_size: Any) -> Schedule:
    """Make a step-size schedule with the same size in every step.

    Parameters
    ----------
    step_size : array_like
        Size of each step, a number or scalar array of a float or integer dtype.

    Returns
    -------
    {returns_schedule}

    See Also
    --------
    example_libraries.optimizers.make_schedule : Accept numbers and schedules.

    Examples
    --------
    >>> from accnp.example_libraries.optimizers import constant
    >>> float(constant(0.5)(3))
    0.5
    """
    return lambda i: step_size


@api_boundary
def exponential_decay(
    step_size: float | Array, decay_steps: float | Array, decay_rate: float | Array
) -> Schedule:
    """Make a step-size schedule that decays exponentially.

    Parameters
    ----------
    {schedule_size}
    {decay_steps}
    decay_rate : array_like
        Factor of the step size after each `decay_steps` steps.

    Returns
    -------
    {returns_schedule}

    Raises
    ------
    TypeError
        From the schedule, if an argument is not a number.

    See Also
    --------
    example_libraries.optimizers.inverse_time_decay : Slower decay.
    example_libraries.optimizers.sgd : Optimizer that takes schedules.

    Examples
    --------
    >>> from accnp.example_libraries.optimizers import exponential_decay
    >>> float(exponential_decay(1.0, 10, 0.5)(20))
    0.25
    """
    return lambda i: step_size * decay_rate ** (i / decay_steps)


@api_boundary
def inverse_time_decay(
    step_size: float | Array,
    decay_steps: float | Array,
    decay_rate: float | Array,
    staircase: bool = False,
) -> Schedule:
    """Make a step-size schedule that decays with the inverse of the number of steps.

    Parameters
    ----------
    {schedule_size}
    {decay_steps}
    decay_rate : array_like
        Factor of the number of periods: the step size is divided by 1 + decay_rate * step /
        decay_steps.
    staircase : bool, optional
        If True, round the number of periods down. The default is False.

    Returns
    -------
    {returns_schedule}

    Raises
    ------
    TypeError
        From the schedule, if an argument is not a number.

    See Also
    --------
    example_libraries.optimizers.exponential_decay : Faster decay.
    example_libraries.optimizers.sgd : Optimizer that takes schedules.

    Examples
    --------
    >>> from accnp.example_libraries.optimizers import inverse_time_decay
    >>> float(inverse_time_decay(1.0, 10, 1.0)(10))
    0.5
    """
    if staircase:
        return lambda i: step_size / (1 + decay_rate * uf.floor(i / decay_steps))
    return lambda i: step_size / (1 + decay_rate * i / decay_steps)


@api_boundary
def polynomial_decay(
    step_size: float | Array,
    decay_steps: float | Array,
    final_step_size: float | Array,
    power: float = 1.0,
) -> Schedule:
    """Make a step-size schedule that decays to a final size by a power of the remaining steps.

    Parameters
    ----------
    {schedule_size}
    {decay_steps}
    final_step_size : array_like
        Step size after `decay_steps` steps and later.
    power : float, optional
        Exponent of the remaining part of the steps. The default, 1, is linear.

    Returns
    -------
    {returns_schedule}

    Raises
    ------
    TypeError
        From the schedule, if an argument is not a number.

    See Also
    --------
    example_libraries.optimizers.piecewise_constant : Constant step sizes between given steps.
    example_libraries.optimizers.sgd : Optimizer that takes schedules.

    Examples
    --------
    >>> from accnp.example_libraries.optimizers import polynomial_decay
    >>> float(polynomial_decay(1.0, 10, 0.5)(10))
    0.5
    """

    def schedule(i: Any) -> Any:
        left = (1 - uf.minimum(i, decay_steps) / decay_steps) ** power
        return left * (step_size - final_step_size) + final_step_size

    return schedule


@api_boundary
def piecewise_constant(
    boundaries: ArrayLike | Sequence[float], values: ArrayLike | Sequence[float]
) -> Schedule:
    """Make a step-size schedule that is constant between given steps.

    Parameters
    ----------
    boundaries : array_like
        Vector of step numbers, float or integer, at which the step size changes.
    values : array_like
        Vector of step sizes, one more than there are boundaries.

    Returns
    -------
    {returns_schedule}

    Raises
    ------
    ValueError
        If there is not one value more than boundaries, or an argument is not a vector.

    See Also
    --------
    example_libraries.optimizers.polynomial_decay : Gradual decay.
    example_libraries.optimizers.sgd : Optimizer that takes schedules.

    Examples
    --------
    >>> from accnp.example_libraries.optimizers import piecewise_constant
    >>> float(piecewise_constant([10, 20], [1.0, 0.5, 0.25])(15))
    0.5
    """
    ends, sizes = array(boundaries), array(values)
    if ends.ndim != 1 or sizes.shape != (ends.shape[0] + 1,):
        raise ValueError(
            "optimizers.piecewise_constant: values must have one element more than boundaries; got "
            f"shapes {sizes.shape} and {ends.shape}; add a value, or remove a boundary"
        )
    return lambda i: sizes[(i > ends).sum()]


@api_boundary
def make_schedule(scalar_or_schedule: Any) -> Schedule:
    """Convert a step size to a schedule, and return a schedule unchanged.

    Parameters
    ----------
    scalar_or_schedule : float or callable
        Step size of a float or integer dtype, or a function from the number of the step to it.

    Returns
    -------
    {returns_schedule}

    Raises
    ------
    TypeError
        If it is neither a function nor a scalar.

    See Also
    --------
    example_libraries.optimizers.constant : Schedule with one step size.

    Examples
    --------
    >>> from accnp.example_libraries.optimizers import make_schedule
    >>> make_schedule(0.1)(7)
    0.1
    """
    if callable(scalar_or_schedule):
        return scalar_or_schedule
    if not asarray(scalar_or_schedule).ndim:
        return constant(scalar_or_schedule)
    raise TypeError(
        "optimizers.make_schedule: expected a number or a function; got "
        f"{type(scalar_or_schedule).__name__}; pass one of the two"
    )
