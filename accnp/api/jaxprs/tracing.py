"""What is being traced, as programs ask: `Tracer`, `ensure_compile_time_eval`, dead code, checks.

In: values and jaxprs. Out: answers, jaxprs, errors.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from accnp import dtypes
from accnp.api.arguments.convert import as_node
from accnp.api.flow.bodies import Reference
from accnp.array import Array
from accnp.errors import JaxprTypeError, UnexpectedTracerError, api_boundary
from accnp.ir.aval import Aval, make_aval
from accnp.ir.equations import Atom, DropVar, Jaxpr, Literal, Var, jaxprs_in_params
from accnp.ir.trace import state

__all__ = [
    "JVPTracer", "Tracer", "check_jaxpr", "concrete_or_error", "dce_jaxpr",
    "ensure_compile_time_eval", "mapped_aval", "primal_dtype_to_tangent_dtype", "unmapped_aval",
    "valid_jaxtype",
]  # fmt: skip


class _TracerType(type):
    def __instancecheck__(cls, instance: Any) -> bool:
        if isinstance(instance, Reference):
            content = getattr(instance, "content", None)
            return instance.home is not None or getattr(content, "_trace", None) is not None
        if type(instance) is not Array:
            return False
        try:
            return instance._trace is not None
        except UnexpectedTracerError:  # the value of a trace that has ended
            return True
        except RuntimeError:  # a deleted array
            return False


class Tracer(metaclass=_TracerType):
    """The arrays and references that stand for values of a function being traced: for `isinstance`.

    Raises:
        TypeError: one is to be made.

    >>> import accnp as jax
    >>> seen = []
    >>> _ = jax.jit(lambda x: seen.append(isinstance(x, jax.core.Tracer)))(1)
    >>> seen, isinstance(jax.numpy.ones(2), jax.core.Tracer)
    ([True], False)
    """

    def __init__(self, *_: Any, **__: Any) -> None:
        raise TypeError("Tracer: traced arrays are made by transformations; none can be made here")


class JVPTracer(Tracer):
    """The same, where a function is differentiated: derivatives are made of what was traced.

    >>> import accnp as jax
    >>> from accnp.interpreters.ad import JVPTracer
    >>> seen = []
    >>> _ = jax.jvp(lambda x: seen.append(isinstance(x, JVPTracer)) or x, (1.0,), (1.0,))
    >>> seen
    [True]
    """


@contextmanager
def ensure_compile_time_eval() -> Iterator[None]:
    """Compute what can be computed while a function is being traced, instead of recording it.

    For arrays of any shape and dtype; values that depend on traced arguments raise as ever.

    Example:
        >>> import accnp as jax
        >>> @jax.jit
        ... def f(x):
        ...     with jax.ensure_compile_time_eval():
        ...         n = int(jax.numpy.arange(4).sum())
        ...     return x + n
        >>> float(f(1.0))
        7.0
    """
    before = state.abstract
    state.abstract = None
    try:
        yield
    finally:
        state.abstract = before


def concrete_or_error(force: Any, val: Any, context: str = "") -> Any:
    """Return `force(val)`, such as `int(val)`; a traced value raises, with `context`.

    Raises:
        ConcretizationTypeError: the value is traced.

    >>> import accnp as jax
    >>> jax.core.concrete_or_error(int, 3.0)
    3
    """
    if not isinstance(val, Tracer):
        return val if force is None else force(val)
    try:
        return np.asarray(val) if force is None else force(val)
    except TypeError as error:
        if context:
            error.args = (f"{error}\n{context}",)
        raise


def valid_jaxtype(x: Any) -> bool:
    """Whether a value is an array or a number that functions take.

    >>> import accnp as jax
    >>> jax.core.valid_jaxtype(1.0), jax.core.valid_jaxtype("one")
    (True, False)
    """
    try:
        as_node(x)
    except TypeError:
        return False
    return True


# --- types ---------------------------------------------------------------------------------------


def mapped_aval(size: int, axis: int | None, aval: Aval) -> Aval:
    """Return the type of one example of a batch.

    The shape loses its axis `axis`; the dtype stays. None is an operand that has no such axis.

    Raises:
        TypeError: that axis has another size.

    >>> import accnp as jax
    >>> from accnp.extend.core import mapped_aval
    >>> mapped_aval(4, 0, jax.core.ShapedArray((4, 2), "float32"))
    ShapedArray(float32[2])
    """
    if axis is None:
        return aval
    if aval.shape[axis] != size:
        raise TypeError(
            f"mapped_aval: axis {axis} of {aval} must have the size {size}; "
            f"got {aval.shape[axis]}; "
            "pass the size that it has"
        )
    shape = list(aval.shape)
    del shape[axis]
    return make_aval(tuple(shape), aval.dtype, aval.weak_type)


def unmapped_aval(size: int, axis: int | None, aval: Aval) -> Aval:
    """Return the type of a batch of examples.

    The shape gets an axis of that size, unless `axis` is None; the dtype stays; nothing raises.

    >>> import accnp as jax
    >>> from accnp.extend.core import unmapped_aval
    >>> unmapped_aval(4, 0, jax.core.ShapedArray((2,), "float32"))
    ShapedArray(float32[4,2])
    """
    if axis is None:
        return aval
    axis %= aval.ndim + 1
    return make_aval((*aval.shape[:axis], size, *aval.shape[axis:]), aval.dtype, aval.weak_type)


def primal_dtype_to_tangent_dtype(primal_dtype: Any) -> Any:
    """Return the dtype of the tangents of values: float0 where these have none.

    >>> import accnp as jax
    >>> jax.core.primal_dtype_to_tangent_dtype(jax.numpy.dtype("int32"))
    dtype([('float0', 'V')])
    """
    return primal_dtype if dtypes.issubdtype(primal_dtype, np.inexact) else dtypes.float0


# --- programs ------------------------------------------------------------------------------------


@api_boundary
def check_jaxpr(jaxpr: Jaxpr) -> None:
    """Check that each variable is defined once before its uses, and each equation's types.

    Raises:
        JaxprTypeError: the program is not well formed; the text has the equation.

    >>> import accnp as jax
    >>> jax.core.check_jaxpr(jax.make_jaxpr(lambda x: x * 2)(1.0).jaxpr)
    """
    env = {*jaxpr.constvars, *jaxpr.invars}

    def read(atom: Atom, where: str) -> Aval:
        if isinstance(atom, Var) and atom not in env:
            raise JaxprTypeError(f"a variable is used that is not defined; got it {where}")
        return atom.aval

    for eqn in jaxpr.eqns:
        where = f"in the equation\n{eqn}\nof the program\n{jaxpr}"
        avals = [read(v, where) for v in eqn.invars]
        for inner in jaxprs_in_params(eqn.params):
            check_jaxpr(inner)
        try:
            out, _ = eqn.primitive.abstract_eval(*avals, **eqn.params)
        except (TypeError, ValueError) as error:
            raise JaxprTypeError(f"{error}; got it {where}") from error
        outs = out if eqn.primitive.multiple_results else [out]
        if len(outs) != len(eqn.outvars):
            raise JaxprTypeError(
                f"{eqn.primitive} has {len(outs)} results; got {len(eqn.outvars)} variables {where}"
            )
        for v, aval in zip(eqn.outvars, outs, strict=True):
            if (v.aval.shape, v.aval.dtype) != (aval.shape, aval.dtype):
                raise JaxprTypeError(f"a value of type {aval} has a variable of {v.aval} {where}")
            if v in env:
                raise JaxprTypeError(f"a variable is defined twice {where}")
            env.add(v)
    for v in jaxpr.outvars:
        read(v, f"as an output of the program\n{jaxpr}")


def dce_jaxpr(
    jaxpr: Jaxpr, used_outputs: Sequence[bool], instantiate: bool | Sequence[bool] = False
) -> tuple[Jaxpr, list[bool]]:
    """Drop outputs, and the equations and inputs that only these need.

    Returns:
        The program of what is left, and which of the inputs it has; `instantiate` keeps some.
    """
    outvars = [v for v, used in zip(jaxpr.outvars, used_outputs, strict=True) if used]
    live = {v for v in outvars if isinstance(v, Var)}
    eqns = []
    for eqn in reversed(jaxpr.eqns):
        if not eqn.effects and not any(v in live for v in eqn.outvars):
            continue
        shown = [v if v in live else DropVar(v.aval) for v in eqn.outvars]
        eqns.append(eqn.replace(outvars=shown))
        live.update(v for v in eqn.invars if not isinstance(v, Literal))
    forced = [instantiate] * len(jaxpr.invars) if isinstance(instantiate, bool) else instantiate
    used = [v in live or f for v, f in zip(jaxpr.invars, forced, strict=True)]
    invars = [v for v, u in zip(jaxpr.invars, used, strict=True) if u]
    return jaxpr.replace(invars=invars, outvars=outvars, eqns=eqns[::-1]), used
