"""Functions that appear under their own name in jaxprs, as `jit[name=_where ...]`, and nowhere
else.

In: an api function. Out: the same function; while `make_jaxpr` traces, its operations are recorded
as one named call. Other traces record the operations themselves, since a call would only be looked
through again.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from accnp.api.jit import jit
from accnp.ir.trace import state

__all__ = ["named"]


def named(fn: Callable[..., Any], name: str = "", arrays: int = 1) -> Callable[..., Any]:
    """Return `fn` with a name in jaxprs (its own, or `name`).

    Its first `arrays` parameters are traced, the others are static; where one of these cannot be,
    for instance `where=` with an array, the operations are recorded without a call.
    """
    call: Any = None

    @functools.wraps(fn)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        nonlocal call
        if not state.named:
            return fn(*args, **kwargs)
        try:
            hash((args[arrays:], tuple(kwargs.values())))
        except TypeError:
            return fn(*args, **kwargs)
        if call is None:
            call = _jitted(fn, name or fn.__name__, arrays)
        return call(*args, **kwargs)

    return wrapper


def _jitted(fn: Callable[..., Any], name: str, arrays: int) -> Callable[..., Any]:
    def inner(*args: Any, **kwargs: Any) -> Any:
        return fn(*args, **kwargs)

    functools.update_wrapper(inner, fn)
    signature = inspect.signature(fn)
    inner.__name__ = name
    inner.__signature__ = signature  # type: ignore[attr-defined]
    del inner.__wrapped__
    parameters = signature.parameters.values()
    by_place = [p for p in parameters if p.kind is not p.KEYWORD_ONLY]
    names = tuple(p.name for p in parameters if p not in by_place[:arrays])
    return jit(inner, static_argnums=tuple(range(arrays, len(by_place))), static_argnames=names)
