"""Queries about traces: `Tracer`, `ensure_compile_time_eval`; dead code elimination and checks of
jaxprs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from accnp import dtypes
from accnp.api.arguments.convert import as_node
from accnp.api.tracing.bodies import Reference
from accnp.array_type import Array
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
        if type(instance) is not Array:
            if not isinstance(instance, Reference):
                return False
            content = getattr(instance, "content", None)
            return instance.home is not None or getattr(content, "_trace", None) is not None
        try:
            return instance._trace is not None
        except UnexpectedTracerError:  # its trace has ended
            return True
        except RuntimeError:  # a deleted array
            return False


class Tracer(metaclass=_TracerType):
    """Class of arrays and references that are being traced, for `isinstance`.

    Raises
    ------
    TypeError
        If it is called: users do not make tracers.

    Examples
    --------
    >>> import accnp as jax
    >>> seen = []
    >>> _ = jax.jit(lambda x: seen.append(isinstance(x, jax.core.Tracer)))(1)
    >>> seen, isinstance(jax.numpy.ones(2), jax.core.Tracer)
    ([True], False)
    """

    def __init__(self, *_: Any, **__: Any) -> None:
        raise TypeError("Tracer: traced arrays cannot be constructed; apply a transformation")


class JVPTracer(Tracer):
    """Class of traced arrays inside a function that is being differentiated, for `isinstance`.

    Derivatives are made from what was traced.

    Examples
    --------
    >>> import accnp as jax
    >>> from accnp.interpreters.ad import JVPTracer
    >>> seen = []
    >>> _ = jax.jvp(lambda x: seen.append(isinstance(x, JVPTracer)) or x, (1.0,), (1.0,))
    >>> seen
    [True]
    """


@contextmanager
def ensure_compile_time_eval() -> Iterator[None]:
    """Context manager that computes values during tracing instead of recording operations.

    For arrays of any shape and dtype that do not depend on traced arguments.

    Returns
    -------
    context manager
        Operations inside are computed immediately.

    Raises
    ------
    ConcretizationTypeError
        If the content of a value that depends on traced arguments is needed.

    See Also
    --------
    jit : Trace and compile a function.
    disable_jit : Run jitted functions without tracing.

    Examples
    --------
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


def concrete_or_error(force: Any, val: object, context: str = "") -> Any:
    """Convert a value by `force`, such as `int`, and raise an error if it is traced.

    Parameters
    ----------
    force : callable or None
        Conversion to apply.
    val : array_like
        Object to convert.
    context : str, optional
        Explanation for the error message.

    Returns
    -------
    object
        `force(val)`.

    Raises
    ------
    ConcretizationTypeError
        If the value is traced.

    See Also
    --------
    core.is_concrete : Whether a value is known.

    Examples
    --------
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


def valid_jaxtype(x: object) -> bool:
    """Return whether a value is an array or a number that functions accept.

    Parameters
    ----------
    x : object
        Candidate operand to test.

    Returns
    -------
    bool
        False for lists, strings and other objects.

    See Also
    --------
    typeof : Type of a valid value.

    Examples
    --------
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
    """Return the type of one example of a batch: the shape loses the mapped axis.

    Parameters
    ----------
    size : int
        Length of the mapped axis.
    axis : int or None
        Position of the axis; None for an operand that is not mapped.
    aval : ShapedArray
        Type of the batch. The dtype is kept.

    Returns
    -------
    ShapedArray
        Type of one example.

    Raises
    ------
    TypeError
        If the axis has another length.

    See Also
    --------
    extend.core.unmapped_aval : Inverse of this function.

    Examples
    --------
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
            "pass its size"
        )
    shape = list(aval.shape)
    del shape[axis]
    return make_aval(tuple(shape), aval.dtype, aval.weak_type)


def unmapped_aval(size: int, axis: int | None, aval: Aval) -> Aval:
    """Return the type of a batch of examples: the shape gets a mapped axis.

    Parameters
    ----------
    size : int
        Length of the new axis.
    axis : int or None
        Position of the new axis; None for an operand that is not mapped.
    aval : ShapedArray
        Type of one example. The dtype is kept.

    Returns
    -------
    ShapedArray
        Type of the batch.

    See Also
    --------
    extend.core.mapped_aval : Inverse of this function.

    Examples
    --------
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
    """Return the dtype of the tangents of values of a dtype: float0 for integers and bools.

    Parameters
    ----------
    primal_dtype : dtype
        Type of the elements of a primal.

    Returns
    -------
    dtype
        Type of their tangents.

    See Also
    --------
    jvp : Forward-mode derivative.

    Examples
    --------
    >>> import accnp as jax
    >>> jax.core.primal_dtype_to_tangent_dtype(jax.numpy.dtype("int32"))
    dtype([('float0', 'V')])
    """
    return primal_dtype if dtypes.issubdtype(primal_dtype, np.inexact) else dtypes.float0


# --- programs ------------------------------------------------------------------------------------


@api_boundary
def check_jaxpr(jaxpr: Jaxpr) -> None:
    """Check that each variable is defined once before it is used, and the types of each equation.

    Parameters
    ----------
    jaxpr : Jaxpr
        Program to check.

    Raises
    ------
    JaxprTypeError
        If the program is not well formed. The message has the equation.

    See Also
    --------
    make_jaxpr : Trace a function to a jaxpr.

    Examples
    --------
    >>> import accnp as jax
    >>> jax.core.check_jaxpr(jax.make_jaxpr(lambda x: x * 2)(1.0).jaxpr)
    """
    env = {*jaxpr.constvars, *jaxpr.invars}

    def read(atom: Atom, where: str) -> Aval:
        if isinstance(atom, Var) and atom not in env:
            raise JaxprTypeError(f"a variable is used before its definition; got it {where}")
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
    """Remove outputs of a jaxpr, and the equations and inputs that only these need.

    Parameters
    ----------
    jaxpr : Jaxpr
        Program to reduce.
    used_outputs : sequence of bool
        Which outputs to keep.
    instantiate : bool or sequence of bool, optional
        Which inputs to keep even if they are not needed. The default is False.

    Returns
    -------
    reduced : Jaxpr
        Rest of the program.
    used_inputs : list of bool
        Which inputs it has.

    Raises
    ------
    ValueError
        If there is not one flag for each output.

    See Also
    --------
    make_jaxpr : Trace a function to a jaxpr.

    Examples
    --------
    >>> import accnp as jax
    >>> jaxpr = jax.make_jaxpr(lambda x, y: (x + 1, y * 2))(1.0, 2.0).jaxpr
    >>> jax.interpreters.partial_eval.dce_jaxpr(jaxpr, [True, False])[1]
    [True, False]
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
