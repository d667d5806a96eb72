"""Classes of `jax.experimental.hijax`, types that consist of several arrays.

Libraries derive classes from them when they are imported (`flax.nnx` does). Values of such types
work outside of traces only: within a trace, `HiPrimitive.bind` raises an error.

>>> from accnp.as_jax import hijax
>>> class Twice(hijax.HiPrimitive):
...     def impl(self, x):
...         return 2 * x
>>> Twice("twice").bind(3)
6
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from accnp.ir.aval import AbstractValue
from accnp.ir.trace import innermost
from accnp.jax_compat.jaxprs.rules import Zero, instantiate_zeros, is_undefined_primal

__all__ = [
    "AbstractValue", "AvalMutableQDD", "AvalQDD", "HiPrimitive", "HiType", "MutableHiType", "Zero",
    "aval_method", "aval_property", "control_flow_allowed_effects", "cur_qdd", "instantiate_zeros",
    "is_undefined_primal", "register_hitype",
]  # fmt: skip


class HiType(AbstractValue):
    """Type of a value that consists of several arrays."""


class MutableHiType(HiType):
    """Type of a value whose arrays change, with a description of their present types."""


class AvalQDD(NamedTuple):
    """A type of changing values, and what is true of one now (its quasi-dynamic data)."""

    aval: MutableHiType
    qdd: Any


class AvalMutableQDD(NamedTuple):
    """A type of changing values, and a place for what is true of one."""

    aval: MutableHiType
    mutable_qdd: Any


class HiPrimitive:
    """Primitive on values that consist of several arrays.

    Parameters
    ----------
    name : str
        Name in jaxprs.

    Notes
    -----
    A derived class has `impl(*args, **params)`, which computes values. Unlike in JAX, the other
    rules are not used: `bind` within a trace raises an error.
    """

    multiple_results = False

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return self.name

    def bind(self, *args: Any, **params: Any) -> Any:
        """Compute the results.

        Parameters
        ----------
        *args : Any
            Operands.
        **params : Any
            Parameters of the primitive.

        Returns
        -------
        Any
            Results of `impl`.

        Raises
        ------
        NotImplementedError
            Within a trace.
        """
        if innermost() is not None:
            raise NotImplementedError(
                f"HiPrimitive.bind: {self.name} cannot be traced; got a call within jit, grad, "
                "vmap or control flow; call it outside, or use arrays in a pytree"
            )
        return self.impl(*args, **params)

    def impl(self, *args: Any, **params: Any) -> Any:
        """Compute the results; derived classes define it."""
        raise NotImplementedError(f"HiPrimitive.impl: {self.name} does not define it")


class aval_property:
    """Property of a type that values of it have, too.

    Parameters
    ----------
    fget : callable
        Computes it from a value.
    """

    def __init__(self, fget: Callable[..., Any]) -> None:
        self.fget = fget


class aval_method:
    """Method of a type that values of it have, too.

    Parameters
    ----------
    fun : callable
        The method, of a value.
    """

    def __init__(self, fun: Callable[..., Any]) -> None:
        self.fun = fun


class _AllowedEffects:
    """The types of effects that bodies of loops and branches may have."""

    def __init__(self) -> None:
        self._types: list[type] = []

    def add_type(self, effect: type) -> None:
        self._types.append(effect)

    def contains(self, effect: object) -> bool:
        return isinstance(effect, tuple(self._types))


control_flow_allowed_effects = _AllowedEffects()
_types: dict[type, Callable[[Any], HiType]] = {}


def register_hitype(kind: type, to_type: Callable[[Any], HiType]) -> None:
    """Declare the function that gives the type of values of a class.

    Parameters
    ----------
    kind : type
        Class of values that consist of several arrays.
    to_type : callable
        Returns the type of a value.
    """
    _types[kind] = to_type


def cur_qdd(x: Any) -> Any:
    """Raise an error: no value of accnp has quasi-dynamic data."""
    raise NotImplementedError(f"cur_qdd: values have one type; got {type(x).__name__}")
