"""Public functions that appear as named calls in jaxprs, such as `jit[name=_where ...]`.

While `make_jaxpr` traces, a decorated function is recorded as one named call. In all other
traces its operations are recorded directly, since a call would have to be inlined again.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

from accnp.api.jit.jit import jit
from accnp.array_type import Array, wrap
from accnp.ir.node import Node
from accnp.ir.trace import state

__all__ = ["named", "named_rule", "shown"]

P = ParamSpec("P")
R = TypeVar("R")


def named(fn: Callable[P, R], name: str = "", arrays: int = 1) -> Callable[P, R]:
    """Return `fn` with a name in jaxprs: its own, or `name`.

    Its first `arrays` parameters are dynamic, the others static. If one of these is not hashable,
    such as an array passed as `where=`, the operations are recorded without a call.
    """
    call: Any = None

    @functools.wraps(fn)
    def wrapper(*args: P.args, **kwargs: P.kwargs) -> R:
        nonlocal call
        if not state.named:
            return fn(*args, **kwargs)
        if call is None:
            call = _Call(fn, name or fn.__name__, arrays)
        try:
            hash((args[arrays:], tuple(v for k, v in kwargs.items() if k in call.static)))
        except TypeError:
            return fn(*args, **kwargs)
        return call.jitted(*args, **kwargs)

    return wrapper


def shown(name: str = "", arrays: int = 1) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Return the decorator that applies `named`."""
    return lambda fn: named(fn, name, arrays)


def named_rule(rule: Callable[..., Node], name: str) -> Callable[..., Node]:
    """Return a function of nodes that appears as a named call in jaxprs."""

    def of_arrays(*xs: Array) -> Array:
        return wrap(rule(*[x._node for x in xs]))

    call = jit(of_arrays)
    of_arrays.__name__ = name

    def wrapper(*xs: Node) -> Node:
        return call(*map(wrap, xs))._node if state.named else rule(*xs)

    return wrapper


class _Call:
    """A function traced as a named call, and the names of its static parameters."""

    __slots__ = ("jitted", "static")

    def __init__(self, fn: Callable[..., Any], name: str, arrays: int) -> None:
        def inner(*args: Any, **kwargs: Any) -> Any:
            return fn(*args, **kwargs)

        functools.update_wrapper(inner, fn)
        signature = inspect.signature(fn)
        inner.__name__ = name
        inner.__signature__ = signature  # type: ignore[attr-defined]
        del inner.__wrapped__
        parameters = signature.parameters.values()
        kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
        by_place = [p for p in parameters if p.kind in kinds]
        self.static = tuple(p.name for p in parameters if p not in by_place[:arrays])
        places = tuple(range(arrays, len(by_place)))
        self.jitted = jit(inner, static_argnums=places, static_argnames=self.static)
