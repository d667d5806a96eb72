"""Jaxprs and types for symbolic sizes, merged from traces at several sizes.

For arguments with symbolic shapes (`symbolic_shape`), `eval_shape` returns symbolic result types,
and `make_jaxpr`, `jit(f).trace` and `jit(f).lower` return jaxprs with symbols where the numbers of
the traces differ.
"""

from __future__ import annotations

import contextlib
import functools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

from accnp.api.jit.abstract_evaluation import ShapeDtypeStruct, sizes_of_symbols
from accnp.api.jit.jit import JitFunction
from accnp.api.jit.stages import Lowered, TracedStage
from accnp.array_type import Array
from accnp.dtypes import default_int
from accnp.errors import InconclusiveDimensionOperation, api_boundary
from accnp.ir.aval import Aval, make_aval, symbolic_aval
from accnp.ir.equations import ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Var, typed
from accnp.jax_compat.export.size_interpolation import Fit
from accnp.jax_compat.export.symbolic_sizes import Dim, SymbolicScope
from accnp.jax_compat.jaxprs.primitives import Primitive, primitive
from accnp.pytree import tree_map

__all__ = [
    "SymbolicLowered", "SymbolicStage", "at_sizes", "dim_as_value_p", "symbolic_jaxpr",
    "symbolic_stage", "symbols_of",
]  # fmt: skip

T = TypeVar("T")
Sizes = Mapping[str, int]

dim_as_value_p = Primitive("dim_as_value")


@dim_as_value_p.def_impl
def _dim_as_value(*, dim: Dim) -> Any:
    raise InconclusiveDimensionOperation(
        f"dim_as_value: the value of the symbolic size {dim} is not known in this program; "
        "trace the function at the sizes of the arguments"
    )


@dim_as_value_p.def_abstract_eval
def _dim_aval(*, dim: Dim) -> Aval:
    return make_aval((), default_int(), True)


def symbols_of(leaves: Sequence[Any]) -> tuple[list[str], SymbolicScope]:
    """Return the names of the symbols in the shapes of arguments, and their scope.

    Raises:
        ValueError: there are several scopes.
    """
    dims = [n for x in leaves for n in getattr(x, "shape", ()) if isinstance(n, Dim)]
    scope = dims[0].scope if dims else SymbolicScope()
    other = next((n for n in dims if n.scope is not scope), None)
    if other is not None:
        raise ValueError(
            "Invalid mixing of symbolic scopes: all symbols must be of one scope; "
            f"got {dims[0]} and {other}, which symbolic_shape made in different scopes; pass "
            "scope= to symbolic_shape"
        )
    return sorted({s for n in dims for s in n.symbols()}), scope


def at_sizes(tree: Any, sizes: Sizes) -> Any:
    """Replace the symbols in the shapes of a tree of types by numbers."""

    def sized(x: Any) -> Any:
        if not isinstance(x, ShapeDtypeStruct) or not any(isinstance(n, Dim) for n in x.shape):
            return x
        return x.update(shape=tuple([n.at(sizes) if isinstance(n, Dim) else n for n in x.shape]))

    return tree_map(sized, tree)


@contextlib.contextmanager
def _tracing_at(sizes: Sizes) -> Iterator[None]:
    """Trace at these sizes; errors mention them."""
    with sizes_of_symbols(lambda x: at_sizes(x, sizes)):
        try:
            yield
        except Exception as error:
            assignments = ", ".join(f"{n} = {v}" for n, v in sizes.items())
            error.add_note(
                f"Symbolic sizes were replaced by numbers for this trace: {assignments}."
            )
            raise


def _traces(fit: Fit, make: Callable[[Any], T], arguments: Any) -> list[T]:
    """Return the results of a function of arguments at each of the sizes."""
    seen = []
    for sizes in fit.points:
        with _tracing_at(sizes):
            seen.append(make(at_sizes(arguments, sizes)))
    return seen


# --- jaxprs --------------------------------------------------------------------------------------


def symbolic_jaxpr(
    make: Callable[[Any], tuple[ClosedJaxpr, Any]], arguments: Any, leaves: Sequence[Any]
) -> tuple[ClosedJaxpr, Any]:
    """Return the jaxpr and the tree of result types of `make(given)`, for arguments with symbols in
    the shapes of their `leaves`."""
    fit = Fit(*symbols_of(leaves))
    seen = _traces(fit, make, arguments)
    closed = _Merger(fit).closed([jaxpr for jaxpr, _ in seen])
    types = iter(closed.jaxpr.outvars)

    def with_symbols(x: ShapeDtypeStruct) -> ShapeDtypeStruct:
        return x.update(shape=next(types).aval.shape)

    return closed, tree_map(with_symbols, seen[0][1])


class _Merger:
    """Merges programs that were recorded at several sizes."""

    def __init__(self, fit: Fit) -> None:
        self.fit = fit
        self.vars: dict[int, Var] = {}  # by the id of the variable of the first program
        self.jaxprs: dict[int, tuple[Jaxpr, Jaxpr]] = {}

    def closed(self, seen: Sequence[ClosedJaxpr]) -> ClosedJaxpr:
        """Merge programs with the values of their constants, which must be the same at all
        sizes."""
        consts = [self._const(xs) for xs in zip(*[c.consts for c in seen], strict=True)]
        return ClosedJaxpr(self.jaxpr([c.jaxpr for c in seen]), consts)

    def _const(self, seen: Sequence[Any]) -> Any:
        first = seen[0]
        if isinstance(first, ShapeDtypeStruct):
            return first.update(shape=self._shape([x.shape for x in seen]))
        if all(x is first for x in seen):
            return first
        if isinstance(first, Array) and all(
            isinstance(x, Array) and x.aval is first.aval and _bytes(x) == _bytes(first)
            for x in seen
        ):
            return first
        raise self._inconclusive_error("a constant", first)

    def _inconclusive_error(self, what: str, value: Any) -> InconclusiveDimensionOperation:
        names = ", ".join(self.fit.names)
        return InconclusiveDimensionOperation(
            f"make_jaxpr: {what} of the function depends on the sizes {names} in a way that no "
            f"polynomial describes; got {str(value)[:80]} at {self.fit.points[0]}; compute it "
            "with jnp functions of the arguments, or pass numbers for the sizes"
        )

    def jaxpr(self, seen: Sequence[Jaxpr]) -> Jaxpr:
        """Merge programs with the same operations."""
        first = seen[0]
        known_one = self.jaxprs.get(id(first))
        if known_one is not None:
            return known_one[1]
        if any(len(j.eqns) != len(first.eqns) for j in seen):
            raise self.fit.other([f"{len(j.eqns)} operations" for j in seen])
        constvars = [self._var(vs) for vs in zip(*[j.constvars for j in seen], strict=True)]
        invars = [self._var(vs) for vs in zip(*[j.invars for j in seen], strict=True)]
        eqns: list[JaxprEqn] = []
        for same in zip(*[j.eqns for j in seen], strict=True):
            self._equation(same, eqns)
        outvars = [self._atom(vs, eqns) for vs in zip(*[j.outvars for j in seen], strict=True)]
        merged_jaxpr = Jaxpr(constvars, invars, outvars, eqns, first.effects, first.debug_info)
        self.jaxprs[id(first)] = first, merged_jaxpr
        return merged_jaxpr

    def _equation(self, seen: Sequence[JaxprEqn], eqns: list[JaxprEqn]) -> None:
        first = seen[0]
        if any(
            e.primitive is not first.primitive
            or len(e.invars) != len(first.invars)
            or len(e.outvars) != len(first.outvars)
            for e in seen
        ):
            raise self.fit.other([e.primitive.name for e in seen])
        invars = [self._atom(vs, eqns) for vs in zip(*[e.invars for e in seen], strict=True)]
        params = {k: self._value([e.params[k] for e in seen]) for k in first.params}
        outvars = [self._var(vs) for vs in zip(*[e.outvars for e in seen], strict=True)]
        eqns.append(first.replace(invars=invars, outvars=outvars, params=params))

    def _var(self, seen: Sequence[Var]) -> Var:
        first = seen[0]
        var = self.vars.get(id(first))
        if var is None:
            var = self.vars[id(first)] = type(first)(self._aval([v.aval for v in seen]))
        return var

    def avals(self, seen: Sequence[Sequence[Aval]]) -> tuple[Aval, ...]:
        """Merge lists of types."""
        if any(len(avals) != len(seen[0]) for avals in seen):
            raise self.fit.other([f"{len(avals)} results" for avals in seen])
        return tuple([self._aval(avals) for avals in zip(*seen, strict=True)])

    def _aval(self, seen: Sequence[Aval]) -> Aval:
        first = seen[0]
        if all(a is first for a in seen):
            return first
        if any((a.dtype, a.weak_type) != (first.dtype, first.weak_type) for a in seen):
            raise self.fit.other(seen)
        return symbolic_aval(self._shape([a.shape for a in seen]), first.dtype, first.weak_type)

    def _shape(self, seen: Sequence[Sequence[int]]) -> tuple[Any, ...]:
        return tuple([self.fit.size(n) for n in self.fit.merge([list(s) for s in seen])])

    def _atom(self, seen: Sequence[Var | Literal], eqns: list[JaxprEqn]) -> Var | Literal:
        first = seen[0]
        if all(isinstance(v, Literal) for v in seen):
            values = [v.val for v in seen if isinstance(v, Literal)]
            if all(x == values[0] or x != x for x in values):
                return first
            return self._record_size(values, first.aval, eqns)
        if not isinstance(first, Var) or not all(isinstance(v, Var) for v in seen):
            raise self.fit.other(seen)
        return self._var([v for v in seen if isinstance(v, Var)])

    def _record_size(self, values: Sequence[Any], aval: Aval, eqns: list[JaxprEqn]) -> Var:
        """Record the equations that compute a scalar from the symbols."""
        if any(isinstance(x, bool | np.bool_ | complex) for x in values):
            raise self.fit.other(values)
        plain = [int(x) if isinstance(x, int) else float(x) for x in values]
        try:
            merged = self.fit.merge(plain)
        except InconclusiveDimensionOperation:
            raise self._inconclusive_error("a number", values[0]) from None
        ((kind, terms),) = merged.items()
        if aval.dtype.kind in "iu" or kind == "floor":
            dim, below = self.fit.size(merged), 1
        else:
            below = math.lcm(*[den for _, _, den in terms])
            dim = self.fit.size({"poly": [[p, num * (below // den), 1] for p, num, den in terms]})

        def emit(name: str, operands: list[Var | Literal], of: Aval, **params: Any) -> Var:
            out = Var(of)
            op = dim_as_value_p if name == "dim_as_value" else primitive(name)
            eqns.append(JaxprEqn(operands, [out], op, params))
            return out

        whole = make_aval((), default_int(), True)
        size_var = emit("dim_as_value", [], whole, dim=dim)
        if aval is not whole:
            size_var = emit(
                "convert_element_type", [size_var], aval,
                new_dtype=aval.dtype, weak_type=aval.weak_type, sharding=None,
            )  # fmt: skip
        other = Literal(typed(float(below), aval), aval)
        if kind == "inverse":
            return emit("div", [other, size_var], aval)
        return emit("div", [size_var, other], aval) if below > 1 else size_var

    def _value(self, seen: Sequence[Any]) -> Any:
        """Merge a parameter of one equation."""
        first = seen[0]
        if all(x is first for x in seen):
            return first
        if any(type(x) is not type(first) for x in seen):
            raise self.fit.other(seen)
        if isinstance(first, ClosedJaxpr):
            return self.closed(seen)
        if isinstance(first, Jaxpr):
            return self.jaxpr(seen)
        if isinstance(first, Aval):
            return self._aval(seen)
        if isinstance(first, int) and not isinstance(first, bool):
            return self.fit.size(self.fit.merge(list(seen)))
        if isinstance(first, tuple | list):
            if any(len(x) != len(first) for x in seen):
                raise self.fit.other(seen)
            merged = [self._value(xs) for xs in zip(*seen, strict=True)]
            return type(first)(*merged) if hasattr(first, "_fields") else type(first)(merged)
        if isinstance(first, dict):
            return {k: self._value([x[k] for x in seen]) for k in first}
        # Each trace creates new function objects.
        if callable(first) or all(_is_equal(x, first) for x in seen):
            return first
        raise self.fit.other(seen)


def _is_equal(x: Any, y: Any) -> bool:
    try:
        return bool(x == y) or repr(x) == repr(y)
    except (TypeError, ValueError):  # comparison of arrays is elementwise
        return repr(x) == repr(y)


def _bytes(x: Array) -> bytes:
    return np.asarray(x).tobytes()


# --- stages --------------------------------------------------------------------------------------


class SymbolicStage(TracedStage):
    """A function traced for symbolic sizes.

    Its `jaxpr` and types are valid for all sizes; `lower()` returns the program as text. Errors of
    the function are passed on.
    """

    def __init__(self, fit: Fit, seen: Sequence[TracedStage]) -> None:
        first = seen[0]
        super().__init__(first._function, first._entry, first._call, first.jaxpr)
        merger = _Merger(fit)
        self._in_types = merger.avals([s._in_types for s in seen])
        self._out_types = merger.avals([s._out_types for s in seen])
        self._merged = functools.cache(lambda: _Merger(fit).closed([s.jaxpr for s in seen]))

    @property
    def jaxpr(self) -> ClosedJaxpr:
        """The program, computed on demand: functions whose operations depend on the sizes have
        types, but no program."""
        return self._merged()

    def lower(self, **_: Any) -> SymbolicLowered:
        """Return the program; kernels can only be planned for concrete sizes."""
        return SymbolicLowered(self)


class SymbolicLowered(Lowered):
    """A program for symbolic sizes, whose text is the jaxpr.

    Raises:
        ValueError: it is compiled, which requires concrete sizes.
    """

    def __init__(self, traced: TracedStage) -> None:
        self._traced = traced

    @api_boundary
    def as_text(self, *_: Any, **__: Any) -> str:
        """Return the jaxpr; kernels depend on the sizes."""
        return str(self._traced.jaxpr)

    def _refinement_error(self, what: str) -> ValueError:
        return ValueError(
            f"{what}: Error refining shapes: sizes of arguments of {self._traced.fun_name} are "
            f"symbols; got {', '.join(map(str, self._traced._in_types))}; "
            "lower the function for numbers, or export it"
        )

    def cost_analysis(self) -> dict[str, float]:
        """Raise an error: costs depend on the sizes.

        Raises:
            ValueError: always.
        """
        raise self._refinement_error("cost_analysis")

    @api_boundary
    def compile(self, compiler_options: dict[str, Any] | None = None, **_: Any) -> Any:
        """Raise an error: compilation requires concrete sizes.

        Raises:
            ValueError: always.
        """
        raise self._refinement_error("compile")


def symbolic_stage(fun: JitFunction, args: Any, kwargs: Any) -> SymbolicStage:
    """Return the traced stage of a jitted function for arguments with symbols in their shapes."""
    fit = Fit(*symbols_of(fun._split(args, kwargs).leaves))
    seen = _traces(fit, lambda call_args: fun.trace(*call_args[0], **call_args[1]), (args, kwargs))
    return SymbolicStage(fit, seen)
