"""`JitFunction.call_into`: calls that write their results to NumPy arrays of the caller.

The engine passes the arrays to the kernels that compute the results (`engine.run_into`). If an
array overlaps an operand or is not contiguous, the result is copied to it. The comparison includes
files that are mapped twice (`runtime/memory_regions.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from accnp import engine
from accnp.api.arguments.convert import as_node
from accnp.api.jit.jit import is_outer, is_outside_traces
from accnp.array_type import wrap
from accnp.config import config
from accnp.ir.aval import Aval, spans_processes
from accnp.key_array import PRNGKeyArray
from accnp.pytree import PyTreeDef, flatten_arrays, tree_flatten
from accnp.runtime import buffer as pool
from accnp.runtime.memory_regions import block_of, is_mapped, regions_of

if TYPE_CHECKING:
    from accnp.api.jit.jit import JitFunction

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
        if not (
            with_refs or any(map(is_outer, leaves)) or any(map(spans_processes, entry.out_avals))
        ):
            _check(arrays, structure, entry.out_avals, entry.out_spec, name)
            plan = entry.load(function._options.fastmath or config.fastmath, (), leaves)
            memory = [pool.wrap(x) if x.flags.c_contiguous else None for x in arrays]
            outputs = engine.run_into(plan, leaves, entry.out_avals, memory)
            views = [r.view(x.shape, x.dtype) for x, r in zip(arrays, outputs, strict=True)]
            own = [r is b for r, b in zip(outputs, memory, strict=True)]
            _copy([(x, y) for x, y, done in zip(arrays, views, own, strict=True) if not done])
            return out
    results, spec = flatten_arrays(function(*args, **kwargs))
    nodes = [as_node(x, name) for x in results]
    _check(arrays, structure, [x.aval for x in nodes], spec, name)
    _copy([(x, np.asarray(wrap(y))) for x, y in zip(arrays, nodes, strict=True)])
    return out


def _copy(pairs: Sequence[tuple[np.ndarray, np.ndarray]]) -> None:
    """Copy results to arrays. Results that are arguments may lie in one of these arrays."""
    with_files = any(is_mapped(x) for x, _ in pairs)
    regions = regions_of([block_of(x) for pair in pairs for x in pair], with_files)
    targets, sources = regions[::2], regions[1::2]
    values = [
        y.copy()
        if any(sources[i].overlaps(t) for k, t in enumerate(targets) if k != i or with_files)
        else y
        for i, (_, y) in enumerate(pairs)
    ]
    for (x, _), y in zip(pairs, values, strict=True):
        np.copyto(x, y)


def _check(
    arrays: Sequence[Any],
    structure: PyTreeDef,
    avals: Sequence[Aval],
    spec: PyTreeDef,
    name: str,
) -> None:
    """Raise if the results cannot be written to the arrays."""
    if structure != spec:
        if keys := _key_dtypes(spec):
            raise TypeError(
                f"{name}: out must hold NumPy arrays, which cannot have the dtype of random keys; "
                f"got a result of dtype {keys[0]}; return random.key_data(keys) from the function"
            )
        raise TypeError(
            f"{name}: out must have the structure of the results, {spec}; got {structure}; pass "
            "one array for each result"
        )
    for x, a in zip(arrays, avals, strict=True):
        if not isinstance(x, np.ndarray) or not x.flags.writeable:
            description = "one that is read-only" if isinstance(x, np.ndarray) else repr(type(x))
            raise TypeError(
                f"{name}: out must hold writeable NumPy arrays; got {description}; make one with "
                f"np.empty({a.shape}, {a.dtype.name!r})"
            )
        if x.dtype != a.dtype:
            native = x.dtype.newbyteorder("=") == a.dtype
            raise TypeError(
                f"{name}: out must have the dtype of the result, {a.dtype.name}; got "
                f"{x.dtype.str if native else x.dtype.name}; "
                + (
                    "pass an array of native byte order"
                    if native
                    else "convert the result in the function"
                )
            )
        if x.shape != a.shape:
            raise ValueError(
                f"{name}: out must have the shape of the result, {a.shape}; got {x.shape}; pass "
                "an array of that shape"
            )


def _key_dtypes(spec: PyTreeDef) -> list[Any]:
    """Return the dtypes of the random keys in a structure."""
    data = spec.node_data()
    if data is None:
        return []
    if data[0] is PRNGKeyArray:
        return [data[1]]
    return [dtype for child in spec.children() for dtype in _key_dtypes(child)]
