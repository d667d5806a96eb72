"""Functions and types of `jax.core`: queries about traces, shapes and values; types of jaxprs."""

from __future__ import annotations

from collections.abc import Callable, Set
from typing import Any, NamedTuple, NoReturn, SupportsIndex

import numpy as np

from accnp.api.jit.abstract_evaluation import typeof
from accnp.array_type import Array, ArrayLike, is_traced
from accnp.docstrings import Sentinel
from accnp.errors import ConcretizationTypeError, api_boundary
from accnp.ir.aval import AbstractValue, Aval
from accnp.ir.equations import Jaxpr, TypedComplex, TypedFloat, TypedInt, jaxprs_in_params
from accnp.ir.mesh_axis import MeshAxis
from accnp.ir.trace import Trace, innermost, state
from accnp.jax_compat.jaxprs.primitives import Primitive
from accnp.jax_compat.tracing.trace_queries import Tracer, mapped_aval, unmapped_aval
from accnp.jax_compat.tracing.wrapped_functions import WrappedFun
from accnp.transforms.axes import bound

__all__ = [
    "CallPrimitive", "Effect", "Effects", "JaxprPpContext", "JaxprPpSettings", "OpaqueTraceState",
    "OutputType", "TraceTag", "abstract_token", "array_types", "aval_mapping_handlers", "call",
    "call_impl", "call_p", "closed_call_p", "concretization_function_error", "custom_typechecks",
    "find_top_trace", "get_aval", "get_opaque_trace_state", "is_concrete", "is_constant_dim",
    "is_constant_shape", "literalable_types", "max_dim", "min_dim", "no_axis_name",
    "nonempty_axis_env_DO_NOT_USE", "pytype_aval_mappings", "set_current_trace",
    "take_current_trace", "trace_ctx", "traverse_jaxpr_params",
    "unsafe_am_i_under_a_jit_DO_NOT_USE", "unsafe_am_i_under_a_vmap_DO_NOT_USE",
    "unsafe_get_axis_names_DO_NOT_USE",
]  # fmt: skip

OutputType = tuple[Aval, ...]
no_axis_name = Sentinel("no_axis_name")
# Checks of equations by primitive, in addition to those of `check_jaxpr`; there are none.
custom_typechecks: dict[Primitive, Callable[..., Any]] = {}
literalable_types = {
    Array, np.ndarray, TypedInt, TypedFloat, TypedComplex, bool, int, float, complex,
    *(np.dtype(k).type for k in "?bhilBHILefdFD"),
}  # fmt: skip


array_types: set[type] = {np.ndarray, *(np.dtype(k).type for k in "?bhilBHILefdFD")}


class Effect:
    """Side effect of an equation; a base class for your own.

    Examples
    --------
    >>> import accnp as jax
    >>> class Prints(jax.core.Effect):
    ...     pass
    >>> isinstance(Prints(), jax.core.Effect)
    True
    """


Effects = Set[Effect]


class JaxprPpSettings(NamedTuple):
    """Settings of the text of a jaxpr.

    Parameters
    ----------
    print_shapes : bool, optional
        Whether to print the types of variables. The default is True.
    source_info : bool, optional
        Whether to print the line of each equation. The default is False.
    name_stack : bool, optional
        Whether to print the named scopes of each equation. The default is False.
    custom_pp_eqn_rules : bool, optional
        Whether to use the printing rules of primitives. The default is True.
    print_effects : bool, optional
        Whether to show side effects. The default is False.

    Examples
    --------
    >>> import accnp as jax
    >>> jax.core.JaxprPpSettings(source_info=True).print_shapes
    True
    """

    print_shapes: bool = True
    source_info: bool = False
    name_stack: bool = False
    custom_pp_eqn_rules: bool = True
    print_effects: bool = False


class JaxprPpContext:
    """Names of the variables in the text of a jaxpr.

    Parameters
    ----------
    var_names : dict, optional
        Name of each variable that is already named.

    Examples
    --------
    >>> import accnp as jax
    >>> jax.core.JaxprPpContext().var_names
    {}
    """

    def __init__(self, var_names: dict[Any, str] | None = None) -> None:
        self.var_names = {} if var_names is None else var_names


class AbstractToken(AbstractValue):
    """Type of a token, which stands for the order of effects.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.extend.core.AbstractToken()
    AbstractToken()
    """

    def __repr__(self) -> str:
        return "AbstractToken()"


abstract_token = AbstractToken()
# How types lose and gain a batch axis: (size, axis, type) -> type.
aval_mapping_handlers = {Aval: (mapped_aval, unmapped_aval)}


# --- values --------------------------------------------------------------------------------------


def get_aval(x: Any) -> Aval:
    """Return the type of a value; the older name of `typeof`.

    Example:
        >>> import accnp as jax
        >>> jax.core.get_aval(1.0)
        ShapedArray(float32[], weak_type=True)
    """
    return typeof(x)


pytype_aval_mappings: dict[type, Callable[[Any], Aval]] = dict.fromkeys(
    (Array, np.ndarray, bool, int, float, complex, *literalable_types), typeof
)


def is_concrete(x: object) -> bool:
    """Return whether a value is known now, and not traced.

    Parameters
    ----------
    x : object
        Object to test, such as a traced array.

    Returns
    -------
    bool
        False for a traced array.

    See Also
    --------
    core.concrete_or_error : Get the value or raise an error.

    Examples
    --------
    >>> import accnp as jax
    >>> jax.core.is_concrete(3)
    True
    """
    return not (type(x) is Array and isinstance(x, Tracer) and is_traced(x._node))


def concretization_function_error(
    fun: Callable[..., Any], suggest_astype: bool = False
) -> Callable[[Any], Any]:
    """Make a function that raises the error for a traced value whose content `fun` needs.

    Parameters
    ----------
    fun : callable
        Function that needs the value, such as `int`.
    suggest_astype : bool, optional
        Ignored; present for compatibility with JAX.

    Returns
    -------
    callable
        Function of the traced value that always raises.

    Raises
    ------
    ConcretizationTypeError
        From the returned function, always.

    See Also
    --------
    core.concrete_or_error : Convert a value that must not be traced.

    Examples
    --------
    >>> import accnp as jax
    >>> refuse = jax.core.concretization_function_error(int)
    >>> refuse("x")  # doctest: +IGNORE_EXCEPTION_DETAIL
    Traceback (most recent call last):
        ...
    ConcretizationTypeError: int: the value of a traced array was asked for; got x
    """
    more = f"; use astype({fun.__name__}) for a conversion that is traced" if suggest_astype else ""

    def error(arg: Any) -> Any:
        raise ConcretizationTypeError(
            f"{fun.__name__}: a concrete value of a traced array is required; got {arg}{more}"
        )

    return error


# --- shapes --------------------------------------------------------------------------------------


def is_constant_dim(d: SupportsIndex) -> bool:
    """Return whether a size is a number, and not symbolic.

    Parameters
    ----------
    d : int or symbolic expression
        Length of an axis.

    Returns
    -------
    bool
        True for integers.

    See Also
    --------
    export.is_symbolic_dim : The opposite question.
    core.is_constant_shape : The same for a whole shape.

    Examples
    --------
    >>> import accnp as jax
    >>> n, = jax.export.symbolic_shape("n")
    >>> jax.core.is_constant_dim(3), jax.core.is_constant_dim(n)
    (True, False)
    """
    return isinstance(d, int | np.integer)


def is_constant_shape(s: Any) -> bool:
    """Return whether all sizes of a shape are numbers, and not symbolic.

    Parameters
    ----------
    s : sequence
        Lengths of the axes.

    Returns
    -------
    bool
        True if all are integers.

    See Also
    --------
    core.is_constant_dim : The same for one size.

    Examples
    --------
    >>> import accnp as jax
    >>> jax.core.is_constant_shape((3, 4))
    True
    """
    return all(map(is_constant_dim, s))


@api_boundary
def max_dim(d1: Any, d2: Any) -> Any:
    """Return the larger of two sizes, which may be symbolic.

    Parameters
    ----------
    d1 : int or symbolic expression
        Length of an axis.
    d2 : int or symbolic expression
        Length of another axis.

    Returns
    -------
    int or symbolic expression
        Maximum of both.

    See Also
    --------
    core.min_dim : The smaller of two sizes.

    Examples
    --------
    >>> import accnp as jax
    >>> jax.core.max_dim(3, 4)
    4
    """
    return d1.max_with(d2) if hasattr(d1, "max_with") else max(d1, d2)


@api_boundary
def min_dim(d1: Any, d2: Any) -> Any:
    """Return the smaller of two sizes, which may be symbolic.

    Parameters
    ----------
    d1 : int or symbolic expression
        Length of an axis.
    d2 : int or symbolic expression
        Length of another axis.

    Returns
    -------
    int or symbolic expression
        Minimum of both.

    See Also
    --------
    core.max_dim : The larger of two sizes.

    Examples
    --------
    >>> import accnp as jax
    >>> jax.core.min_dim(3, 4)
    3
    """
    return d1.min_with(d2) if hasattr(d1, "min_with") else min(d1, d2)


# --- queries about traces ------------------------------------------------------------------------


def _active_transforms() -> list[str]:
    return [getattr(t.info, "transform", "") or "" for t in state.stack if t.kind == "jit"]


def unsafe_am_i_under_a_jit_DO_NOT_USE() -> bool:
    """Return whether a program is being traced, by anything but `vmap` and differentiation.

    Returns
    -------
    bool
        True inside `jit`, loops and branches.

    See Also
    --------
    core.unsafe_am_i_under_a_vmap_DO_NOT_USE : The same for `vmap`.

    Examples
    --------
    >>> import accnp as jax
    >>> inside = []
    >>> _ = jax.jit(lambda x: inside.append(jax.core.unsafe_am_i_under_a_jit_DO_NOT_USE()))(1)
    >>> inside, jax.core.unsafe_am_i_under_a_jit_DO_NOT_USE()
    ([True], False)
    """
    return any(not k.startswith(("vmap", "pmap")) for k in _active_transforms())


def unsafe_am_i_under_a_vmap_DO_NOT_USE() -> bool:
    """Return whether a function is being mapped by `vmap`.

    Returns
    -------
    bool
        True inside `vmap`.

    See Also
    --------
    core.unsafe_am_i_under_a_jit_DO_NOT_USE : The same for `jit`.

    Examples
    --------
    >>> import accnp as jax
    >>> jax.core.unsafe_am_i_under_a_vmap_DO_NOT_USE()
    False
    """
    return bool(bound()) or any(k.startswith("vmap") for k in _active_transforms())


def unsafe_get_axis_names_DO_NOT_USE() -> list[Any]:
    """Return the names of mapped axes that collectives may use here.

    Returns
    -------
    list
        Names of the axes.

    See Also
    --------
    core.nonempty_axis_env_DO_NOT_USE : Whether there is any.

    Examples
    --------
    >>> import accnp as jax
    >>> names = []
    >>> def f(x):
    ...     names.extend(jax.core.unsafe_get_axis_names_DO_NOT_USE())
    ...     return x
    >>> _ = jax.vmap(f, axis_name="i")(jax.numpy.ones(2))
    >>> names
    ['i']
    """
    return [name for name, _ in bound()]


def nonempty_axis_env_DO_NOT_USE() -> bool:
    """Return whether any mapped axis has a name here.

    Returns
    -------
    bool
        True inside `vmap` and `pmap` with an axis name.

    See Also
    --------
    core.unsafe_get_axis_names_DO_NOT_USE : The names.

    Examples
    --------
    >>> import accnp as jax
    >>> jax.core.nonempty_axis_env_DO_NOT_USE()
    False
    """
    return bool(bound())


class OpaqueTraceState:
    """The current trace, for comparison with that at another time."""

    __slots__ = ("_trace",)

    def __init__(self, trace: Trace | None) -> None:
        self._trace = trace

    def __eq__(self, other: object) -> bool:
        return isinstance(other, OpaqueTraceState) and self._trace is other._trace

    def __hash__(self) -> int:
        return id(self._trace)


def get_opaque_trace_state(convention: str | None = None) -> OpaqueTraceState:
    """Return an object that stands for what is being traced now.

    Two of them are equal if the same function is being traced.

    Parameters
    ----------
    convention : str, optional
        Ignored; present for compatibility with JAX.

    Returns
    -------
    OpaqueTraceState
        Object to compare with a later one.

    See Also
    --------
    core.find_top_trace : Innermost trace.

    Examples
    --------
    >>> import accnp as jax
    >>> before = jax.core.get_opaque_trace_state()
    >>> jax.jit(lambda x: x if jax.core.get_opaque_trace_state() == before else x + 1)(1)
    Array(2, dtype=int32, weak_type=True)
    """
    return OpaqueTraceState(innermost())


def find_top_trace(_: Any) -> Trace | None:
    """Return the innermost trace of this thread.

    Returns
    -------
    core.Trace or None
        Trace in progress; None if there is none.

    See Also
    --------
    core.get_opaque_trace_state : State to compare.

    Examples
    --------
    >>> import accnp as jax
    >>> jax.core.find_top_trace([]) is None
    True
    """
    return innermost()


class _Context:
    """The traces of this thread, as attributes."""

    @property
    def trace(self) -> Trace | None:
        """The innermost trace."""
        return innermost()

    @property
    def axis_env(self) -> dict[Any, int | MeshAxis]:
        """The names of mapped axes, and their sizes."""
        return dict(bound())


trace_ctx = _Context()


class TraceTag:
    """Tag for your own traces, which is equal only to itself.

    Examples
    --------
    >>> import accnp as jax
    >>> tag = jax.extend.core.TraceTag()
    >>> tag == tag, tag == jax.extend.core.TraceTag()
    (True, False)
    """


_NOT_OPEN = "what is being traced cannot be exchanged here; use jax.make_jaxpr and its equations"


# Names that some libraries (such as haiku) look up on import; haiku calls them only to draw graphs.
@api_boundary
def take_current_trace() -> NoReturn:
    """Raise an error: accnp cannot suspend the trace in progress.

    Returns
    -------
    NoReturn
        It never returns.

    Raises
    ------
    NotImplementedError
        Always.

    See Also
    --------
    ensure_compile_time_eval : Compute values during tracing.

    Examples
    --------
    >>> import accnp as jax
    >>> jax.extend.core.take_current_trace()
    Traceback (most recent call last):
    NotImplementedError: take_current_trace: what is being traced cannot be exchanged here; ...
    """
    raise NotImplementedError(f"take_current_trace: {_NOT_OPEN}")


@api_boundary
def set_current_trace(trace: object, check_leaks: bool = False) -> NoReturn:
    """Raise an error: accnp cannot replace the trace in progress.

    Parameters
    ----------
    trace : object
        Replacement for the trace in progress.
    check_leaks : bool, optional
        Whether to look for tracers that outlive it.

    Returns
    -------
    NoReturn
        It never returns.

    Raises
    ------
    NotImplementedError
        Always.

    See Also
    --------
    ensure_compile_time_eval : Compute values during tracing.

    Examples
    --------
    >>> import accnp as jax
    >>> jax.extend.core.set_current_trace(None)
    Traceback (most recent call last):
    NotImplementedError: set_current_trace: what is being traced cannot be exchanged here; ...
    """
    raise NotImplementedError(f"set_current_trace: {_NOT_OPEN}")


# --- programs ------------------------------------------------------------------------------------


class CallPrimitive(Primitive):
    """Primitive whose first operand is a function, which it applies to the others.

    Parameters
    ----------
    name : str
        Label in jaxprs.

    Raises
    ------
    TypeError
        From `bind`, if the first operand is not callable.

    Examples
    --------
    >>> import accnp as jax
    >>> jax.core.CallPrimitive("twice").bind(lambda x: 2 * x, 3)
    6
    """

    call_primitive = True
    multiple_results = True

    @api_boundary
    def bind(self, *args: Any, **params: Any) -> Any:
        """Apply the function to its arguments.

        Parameters
        ----------
        *args : object
            Function, followed by its arguments.
        **params : object
            Parameters of the equation; the function does not get them.

        Returns
        -------
        object
            Result of the function.

        Raises
        ------
        TypeError
            If the first argument is not callable.

        See Also
        --------
        extend.core.call_impl : Call a wrapped function.

        Examples
        --------
        >>> import accnp as jax
        >>> jax.core.call(lambda x: x + 1, 3)
        4
        """
        if not args or not callable(args[0]):
            raise TypeError(
                f"{self.name}: the first argument must be a function; got {args[:1]!r}; "
                "pass the function first"
            )
        fun, *rest = args
        return fun(*rest)


call_p = CallPrimitive("call")
closed_call_p = CallPrimitive("closed_call")
call = call_p.bind


def call_impl(f: WrappedFun, *args: ArrayLike, **params: object) -> Any:
    """Call a wrapped function of flat arguments.

    Parameters
    ----------
    f : WrappedFun
        Function made by `linear_util.wrap_init`.
    *args : array_like
        Arguments of the function.
    **params : object
        Parameters of the call; the function does not get them.

    Returns
    -------
    object
        Result of the function.

    See Also
    --------
    extend.linear_util.wrap_init : Wrap a function.

    Examples
    --------
    >>> import accnp as jax
    >>> about = jax.api_util.debug_info("example", max, (), {})
    >>> jax.extend.core.call_impl(jax.extend.linear_util.wrap_init(max, debug_info=about), 3, 5)
    5
    """
    return f.call_wrapped(*args)


def traverse_jaxpr_params(f: Callable[[Jaxpr], Any], params: dict[str, Any]) -> dict[str, Any]:
    """Apply a function to the jaxprs among an equation's parameters; return the results by name: a
    value, or a tuple for a tuple of jaxprs."""
    out: dict[str, Any] = {}
    for key, value in params.items():
        results = [f(j) for j in jaxprs_in_params({key: value})]
        if results:
            out[key] = tuple(results) if isinstance(value, tuple) else results[0]
    return out
