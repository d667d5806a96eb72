"""`JitFunction.call_into`: calls that write their results to NumPy arrays of the caller.

The engine passes the arrays to the kernels that compute the results (`engine.run_into`). If an
array overlaps an operand or is not contiguous, the result is copied to it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from accnp import engine
from accnp.api.compiled.jit import is_outer, is_outside_traces
from accnp.config import config
from accnp.ir.aval import Aval, spans
from accnp.pytree import PyTreeDef, tree_flatten
from accnp.runtime import buffer as pool

if TYPE_CHECKING:
    from accnp.api.compiled.jit import JitFunction

__all__ = ["call_into"]


def call_into(
    function: JitFunction, out: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """Call a jitted function, write its results to `out`, and return `out`."""
    name = f"jit({function._name}).call_into"
    arrays, structure = tree_flatten(out)
    if is_outside_traces() and not config.disable_jit:
        call, entry, leaves = function.entry_of(args, kwargs)
        with_refs = call.refs or entry.closed  # the call changes their contents
        if not (with_refs or any(map(is_outer, leaves)) or any(map(spans, entry.out_avals))):
            _check(arrays, structure, entry.out_avals, entry.out_spec, name)
            plan = entry.load(function._options.fastmath or config.fastmath, (), leaves)
            memory = [pool.wrap(x) if x.flags.c_contiguous else None for x in arrays]
            found = engine.run_into(plan, leaves, entry.out_avals, memory)
            for x, own, result in zip(arrays, memory, found, strict=True):
                if result is not own:
                    np.copyto(x, result.view(x.shape, x.dtype))
            return out
    results, spec = tree_flatten(function(*args, **kwargs))
    _check(arrays, structure, [x.aval for x in results], spec, name)
    for x, y in zip(arrays, results, strict=True):
        np.copyto(x, np.asarray(y))
    return out


def _check(
    arrays: Sequence[Any],
    structure: PyTreeDef,
    avals: Sequence[Aval],
    spec: PyTreeDef,
    name: str,
) -> None:
    """Raise if the results cannot be written to the arrays."""
    if structure != spec:
        raise TypeError(
            f"{name}: out must have the structure of the results, {spec}; got {structure}; pass "
            "one array for each result"
        )
    for x, a in zip(arrays, avals, strict=True):
        if not isinstance(x, np.ndarray) or not x.flags.writeable:
            got = "one that is read-only" if isinstance(x, np.ndarray) else repr(type(x))
            raise TypeError(
                f"{name}: out must hold writeable NumPy arrays; got {got}; make one with "
                f"np.empty({a.shape}, {a.dtype.name!r})"
            )
        if x.dtype != a.dtype:
            raise TypeError(
                f"{name}: out must have the dtype of the result, {a.dtype.name}; got "
                f"{x.dtype.name}; convert the result in the function"
            )
        if x.shape != a.shape:
            raise ValueError(
                f"{name}: out must have the shape of the result, {a.shape}; got {x.shape}; pass "
                "an array of that shape"
            )
