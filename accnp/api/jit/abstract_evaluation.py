"""`make_jaxpr`, `eval_shape` and `typeof`: programs and types without computing values.

A function is traced with nodes that have a type and no value. `ShapeDtypeStruct` describes an
argument by its type. Functions that need no values accept it in place of an array. `export`
installs the tracing of symbolic sizes here.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, cast

import numpy as np

from accnp import dtypes, errors
from accnp.api.arguments.convert import WITHOUT_VALUE, as_node
from accnp.api.arguments.values import check_callable
from accnp.api.tracing.argument_names import argument_names
from accnp.api.tracing.bodies import Reference
from accnp.array_type import Array, ArrayLike, ShardingLike, wrap
from accnp.dtypes.names import DTypeLike
from accnp.errors import api_boundary
from accnp.ir.aval import Aval, make_aval, on_devices
from accnp.ir.equations import ClosedJaxpr, typed
from accnp.ir.graph import Graph
from accnp.ir.jaxpr import to_jaxpr
from accnp.ir.node import LITERAL, Node, arg, is_user_held_scalar
from accnp.ir.trace import state
from accnp.jax_compat.jaxprs.primitives import primitive_of
from accnp.key_array import PRNGKeyArray, keys_of_words
from accnp.lazy_imports import imported
from accnp.pytree import INNER, Inner, PyTree, flatten_arrays
from accnp.trace_fn import function_place, trace
from accnp.transforms.axes import bind

__all__ = ["ShapeDtypeStruct", "closed_jaxpr", "eval_shape", "make_jaxpr", "typeof"]


class ShapeDtypeStruct:
    """Shape, dtype and sharding of an array, without a value.

    Parameters
    ----------
    shape : sequence of int
        Lengths of the axes.
    dtype : dtype_like
        Type of the elements.
    sharding : Sharding, optional
        How an array of this type is laid out over devices.
    weak_type : bool, optional
        Whether the dtype is weak, as that of a Python number. The default is False.

    Raises
    ------
    TypeError
        If the dtype is unknown.
    ValueError
        If the dtype is None.

    See Also
    --------
    eval_shape : Types of the results of a function.

    Examples
    --------
    >>> import accnp as jax
    >>> jax.ShapeDtypeStruct((3,), "float32")
    ShapeDtypeStruct(shape=(3,), dtype=float32)
    """

    __slots__ = ("dtype", "shape", "sharding", "weak_type")

    def __init__(
        self,
        shape: Sequence[int],
        dtype: DTypeLike,
        *,
        sharding: ShardingLike = None,
        weak_type: bool = False,
    ) -> None:
        if dtype is None:
            raise ValueError(
                "ShapeDtypeStruct: dtype must be specified; got None (dtype); pass a dtype"
            )
        self.shape = tuple(shape)
        self.dtype = dtype if type(dtype) is dtypes.ExtendedDType else np.dtype(dtype)
        self.sharding = sharding
        self.weak_type = weak_type

    @property
    def aval(self) -> Aval:
        """The interned aval of this type."""
        dtype = dtypes.canonicalize_dtype(self.dtype, allow_extended_dtype=True)
        return make_aval(self.shape, dtype, self.weak_type)

    @staticmethod
    def like(x: Any, *, sharding: Any = None) -> ShapeDtypeStruct:
        """Return the type of a value that has `shape` and `dtype`."""
        of = x if hasattr(x, "shape") and hasattr(x, "dtype") else typeof(x)
        weak = bool(getattr(of, "weak_type", False))
        return ShapeDtypeStruct(of.shape, of.dtype, sharding=sharding, weak_type=weak)

    def of_keys(self, dtype: Any) -> ShapeDtypeStruct:
        """Return the type of the keys that consist of these words."""
        return ShapeDtypeStruct(self.shape[:-1], dtype, sharding=self.sharding)

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)

    @api_boundary
    def update(self, **kwargs: Any) -> ShapeDtypeStruct:
        """Return a copy with some fields changed."""
        fields = {k: kwargs.pop(k, getattr(self, k)) for k in self.__slots__}
        if kwargs:
            raise ValueError(
                f"ShapeDtypeStruct.update: unknown fields; got {sorted(kwargs)}; "
                "use shape, dtype, sharding or weak_type"
            )
        return ShapeDtypeStruct(**fields)

    @api_boundary
    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of unsized object")
        return self.shape[0]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ShapeDtypeStruct):
            return False
        return (self.shape, self.dtype, self.weak_type) == (
            other.shape,
            other.dtype,
            other.weak_type,
        )

    def __hash__(self) -> int:
        return hash((self.shape, self.dtype, self.weak_type))

    def __repr__(self) -> str:
        weak = ", weak_type=True" if self.weak_type else ""
        return f"ShapeDtypeStruct(shape={self.shape}, dtype={self.dtype.name}{weak})"


def _take_type(x: ShapeDtypeStruct, add: Callable[[Any], None]) -> Any:
    """Pass a type to `add`; of a key array, pass the type of its words, and return how it is built
    from them."""
    dtype: Any = x.dtype
    if type(dtype) is not dtypes.ExtendedDType:
        return add(x)
    words = ShapeDtypeStruct((*x.shape, *dtype.base_shape), dtype.base_dtype, sharding=x.sharding)
    return PRNGKeyArray, dtype, (add(words),)


def _node_without_value(x: ShapeDtypeStruct, name: str) -> Node:
    """Return a node for a type among the operands of a function that needs no values."""
    if state.abstract is None:
        raise TypeError(
            f"{name}: Argument {x} of type {type(x)} is not a valid JAX type; pass an array, or "
            "call the function in eval_shape"
        )
    known = state.types
    if known is None:
        raise TypeError(
            f"{name}: A ShapeDtypeStruct does not have a value and cannot be used as a constant in "
            f"a JAX function; got {x}; pass an array, or pass the type to eval_shape"
        )
    entry = known.nodes.get(id(x))
    if entry is None:
        sized = state.sized(x) if state.sized is not None else x
        node = arg(sized.aval, state.stack[known.depth])
        node.params = {**node.params, "type": sized}
        entry = known.nodes[id(x)] = x, node
    return entry[1]


class _Types:
    """The nodes of types that a function uses as values, by the identity of the type. They belong
    to the outermost trace of the function, at `depth` of the stack."""

    __slots__ = ("depth", "nodes")

    def __init__(self, depth: int) -> None:
        self.depth = depth
        self.nodes: dict[int, tuple[ShapeDtypeStruct, Node]] = {}


@contextmanager
def types_as_values() -> Iterator[None]:
    """Trace a function of which only the program or the result types are needed, so that types can
    be used as operands."""
    before = state.types
    if before is None:
        state.types = _Types(len(state.stack))
    try:
        yield
    finally:
        state.types = before


@contextmanager
def sizes_of_symbols(
    sized: Callable[[ShapeDtypeStruct], ShapeDtypeStruct],
) -> Iterator[None]:
    """Trace functions with concrete sizes, which `sized` substitutes in closed-over types."""
    before, state.sized = state.sized, sized
    try:
        yield
    finally:
        state.sized = before


WITHOUT_VALUE[ShapeDtypeStruct] = _node_without_value
INNER[ShapeDtypeStruct] = Inner(_take_type, keys_of_words)


@api_boundary
def typeof(x: ArrayLike) -> Any:
    """Return the aval of a value: its shape, dtype and weak-type flag.

    Parameters
    ----------
    x : array_like
        Array, traced array, number or reference.

    Returns
    -------
    ShapedArray or AbstractRef
        Type of `x`; an `AbstractRef` for a reference.

    Raises
    ------
    TypeError
        If the value is not an array or a number, and has no shape and dtype.

    See Also
    --------
    eval_shape : Types of the results of a function.
    numpy.result_type : Promoted dtype of several values.

    Examples
    --------
    >>> import accnp as jax
    >>> jax.typeof(1.0)
    ShapedArray(float32[], weak_type=True)
    """
    return x.aval if isinstance(x, Reference) else aval_of(x, "typeof")


def aval_of(x: Any, name: str) -> Aval:
    """Return the aval of an array, a scalar, or anything that has a shape and a dtype."""
    if isinstance(x, ShapeDtypeStruct):
        if name == "typeof" and has_symbols(x):
            return Aval(x.shape, x.dtype, x.weak_type)
        where = None if x.sharding is None else x.sharding.placed(x.shape, name)
        return on_devices(x.aval, where)
    if isinstance(x, PRNGKeyArray):
        return x.aval
    try:
        return x.aval if type(x) is Array else as_node(x, name).aval
    except TypeError:
        shape, dtype = getattr(x, "shape", None), getattr(x, "dtype", None)
        if shape is None or dtype is None:
            raise
        return make_aval(
            tuple(shape), dtypes.canonicalize_dtype(dtype), bool(getattr(x, "weak_type", False))
        )


def _trace_user(
    fn: Callable[..., Any], args: tuple, kwargs: dict, static: set[int], transform: str,
    result: Callable[[Any, str], Node] = as_node,
) -> tuple[Graph, Any]:  # fmt: skip
    """Trace a user's function on the types of its arguments; return the graph and the structure of
    its result. `result` converts its leaves to nodes."""
    check_callable(transform, fn)
    dynamic = tuple(a for i, a in enumerate(args) if i not in static)
    leaves, spec = flatten_arrays((dynamic, kwargs))
    names = argument_names(fn, dynamic, kwargs) if not static else []
    avals = []
    for i, x in enumerate(leaves):
        try:
            avals.append(aval_of(x, transform))
        except TypeError:
            path = names[i] if i < len(names) else f"leaf {i} of the arguments"
            raise errors.not_an_array_error(transform, path, x) from None
    out_spec: Any = None

    def on_nodes(nodes: list[Node]) -> list[Node]:
        nonlocal out_spec
        values, keywords = cast(
            tuple[list[Any], dict[str, Any]], spec.unflatten([wrap(n) for n in nodes])
        )
        rest = iter(values)
        full = [a if i in static else next(rest) for i, a in enumerate(args)]
        outs, out_spec = flatten_arrays(fn(*full, **keywords))
        return [result(x, transform) for x in outs]

    return trace(on_nodes, avals, of=fn, transform=transform, names=names), out_spec


def _static_set(static_argnums: int | Iterable[int], n: int) -> set[int]:
    numbers = (static_argnums,) if isinstance(static_argnums, int) else tuple(static_argnums)
    return {i if i >= 0 else i + n for i in numbers}


def closed_jaxpr(graph: Graph, consts: Sequence[Node] = ()) -> ClosedJaxpr:
    """Return a graph as a jaxpr with the values of its constants; `consts` are those of its leading
    inputs."""
    closed = to_jaxpr(graph, _value_of, primitive_of)
    if not consts:
        return closed
    jaxpr, n = closed.jaxpr, len(consts)
    jaxpr = jaxpr.replace(constvars=[*jaxpr.invars[:n], *jaxpr.constvars], invars=jaxpr.invars[n:])
    return ClosedJaxpr(jaxpr, [*map(_value_of, consts), *closed.consts])


def _value_of(node: Node) -> Any:
    if "type" in node.params:  # a type that the function uses as a value
        return node.params["type"]
    number = node.op is LITERAL and not is_user_held_scalar(node)
    return typed(node.params["value"], node.aval) if number else wrap(node)


@api_boundary
def make_jaxpr(
    fun: Callable[..., Any],
    static_argnums: int | Iterable[int] = (),
    axis_env: Sequence[tuple[Hashable, int]] | None = None,
    return_shape: bool = False,
    abstracted_axes: Any = None,
) -> Callable[..., Any]:
    """Make a function that returns the jaxpr of `fun` for given arguments.

    Parameters
    ----------
    fun : callable
        Function of pytrees of arrays of any dtype.
    static_argnums : int or iterable of int, optional
        Positions of arguments that are passed to `fun` as Python values.
    axis_env : sequence of (name, int), optional
        Names and lengths of mapped axes that collectives in `fun` may use.
    return_shape : bool, optional
        Whether to return the types of the results, too. The default is False.
    abstracted_axes : None, optional
        Not supported.

    Returns
    -------
    callable
        Function of the arguments of `fun` that returns a `ClosedJaxpr`, or with `return_shape` a
        pair of it and the results as `ShapeDtypeStruct`.

    Raises
    ------
    TypeError
        If `fun` is not callable, or an argument is not an array or number.
    NotImplementedError
        If `abstracted_axes` is given.

    See Also
    --------
    eval_shape : Only the types of the results.
    jit : Compile a function.

    Notes
    -----
    Sizes of arguments may be symbols (`export.symbolic_shape`).

    Examples
    --------
    >>> import accnp as jax
    >>> jax.make_jaxpr(lambda x: x * 2)(1.0)
    { lambda ; a:f32[]. let b:f32[] = mul a 2.0:f32[] in (b,) }
    """
    if not callable(fun):
        raise TypeError(f"make_jaxpr: Expected a callable value, got {fun!r}; pass a function")
    if abstracted_axes is not None:
        raise NotImplementedError(
            "make_jaxpr: abstracted_axes is not supported, since shapes are static; "
            f"got {abstracted_axes!r}; leave it out"
        )

    @functools.wraps(fun)
    @api_boundary
    def jaxpr_of(*args: Any, **kwargs: Any) -> Any:
        static = _static_set(static_argnums, len(args))

        def recorded(call_args: tuple[tuple[Any, ...], dict[str, Any]]) -> tuple[ClosedJaxpr, Any]:
            with ExitStack() as stack:
                stack.enter_context(recording_names())
                stack.enter_context(types_as_values())
                for name, size in axis_env or ():
                    stack.enter_context(bind(name, size))
                graph, spec = _trace_user(fun, *call_args, static, "make_jaxpr")
            return closed_jaxpr(graph), spec.unflatten(_structs(graph))

        dynamic = [a for i, a in enumerate(args) if i not in static]
        if has_symbols((dynamic, kwargs)):
            leaves = flatten_arrays((dynamic, kwargs))[0]
            result = symbolic_tracing().symbolic_jaxpr(recorded, (args, kwargs), leaves)
        else:
            result = recorded((args, kwargs))
        return result if return_shape else result[0]

    jaxpr_of.__name__ = jaxpr_of.__qualname__ = f"make_jaxpr({function_place(fun)[0]})"
    return jaxpr_of


@contextmanager
def recording_names() -> Iterator[None]:
    """Record programs as jaxprs show them: with named calls and dead code."""
    before, state.named = state.named, True
    try:
        yield
    finally:
        state.named = before


def _structs(graph: Graph) -> list[ShapeDtypeStruct]:
    return [ShapeDtypeStruct(a.shape, a.dtype, weak_type=a.weak_type) for a in graph.out_avals]


def _typed_node(x: Any, function: str) -> Node:
    """Return the node of a value, or of a deleted array, of which only the type is needed."""
    if type(x) is Array and x.is_deleted():
        return arg(x.aval, state.abstract)
    return as_node(x, function)


# Returns the module that traces functions for symbolic sizes. The module that defines these sizes
# installs it, so it is there whenever an argument has one.
_symbolic_tracing: list[Callable[[], Any]] = []


def install_symbolic_tracing(load: Callable[[], Any]) -> None:
    """Set the function that loads the module `symbolic_jaxprs`."""
    _symbolic_tracing[:] = [load]


def symbolic_tracing() -> Any:
    """Return the module `symbolic_jaxprs`, for arguments with symbolic sizes."""
    return _symbolic_tracing[0]()


def has_symbols(tree: Any) -> bool:
    """Return whether a shape among the leaves has a symbolic size (`export.symbolic_shape`)."""
    types = [x for x in flatten_arrays(tree)[0] if isinstance(x, ShapeDtypeStruct)]
    return any(not isinstance(n, int) for x in types for n in x.shape)


@api_boundary
def eval_shape(fun: Callable[..., Any], *args: PyTree, **kwargs: PyTree) -> Any:
    """Compute the shapes and dtypes of the results of a function without running it.

    Parameters
    ----------
    fun : callable
        Function of pytrees of arrays.
    *args : pytree of array_like
        Positional arguments. `ShapeDtypeStruct` leaves work, too, and their lengths may be symbolic
        (`export.symbolic_shape`); then those of the results are symbolic as well.
    **kwargs : pytree of array_like
        Keyword arguments.

    Returns
    -------
    pytree of ShapeDtypeStruct
        Types of the results.

    Raises
    ------
    TypeError
        If `fun` is not callable, an argument is not an array, or `fun` rejects it.

    See Also
    --------
    make_jaxpr : Whole program of a function.
    ShapeDtypeStruct : Type of an array.

    Examples
    --------
    >>> import accnp as jax
    >>> jax.eval_shape(lambda x: x * 2, 1.0)
    ShapeDtypeStruct(shape=(), dtype=float32, weak_type=True)
    """
    if has_symbols((args, kwargs)):
        return imported("accnp.api.jit.jit").jit(fun).eval_shape(*args, **kwargs)
    with types_as_values():
        graph, spec = _trace_user(fun, args, kwargs, set(), "eval_shape", _typed_node)
    return spec.unflatten(_structs(graph))
