"""The classes of a jaxpr: variables, literals, equations, and open and closed programs.

`ir/jaxpr.py` creates them from graphs, and users create them through `extend.core`. Users read,
transform and evaluate them; `ir/printer.py` prints them. They are immutable by convention:
`replace` returns a changed copy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypedDict, Unpack

import numpy as np

from accnp.ir.aval import Aval
from accnp.ir.op import as_tuple
from accnp.lazy_imports import imported

__all__ = [
    "Atom", "ClosedJaxpr", "DebugInfo", "DropVar", "Jaxpr", "JaxprEqn", "Literal", "Pretty",
    "SourceInfo", "Var", "gensym", "jaxprs_in_params", "new_jaxpr_eqn", "no_effects", "subjaxprs",
    "typed",
]  # fmt: skip

Effects = Iterable[Any]
no_effects: frozenset[Any] = frozenset()


if TYPE_CHECKING:
    from accnp.ir.op_types import Params

    class Primitive(Protocol):
        """The operation of an equation, which may be a user's (`extend.core.Primitive`)."""

        @property
        def name(self) -> str: ...


class Var:
    """Variable of a jaxpr, with a type; it is equal only to itself.

    Parameters
    ----------
    aval : ShapedArray
        Type of the value it stands for.

    Examples
    --------
    >>> import accnp as jax
    >>> jax.make_jaxpr(lambda x: x * 2)(1.0).jaxpr.invars[0].aval
    ShapedArray(float32[], weak_type=True)
    """

    __slots__ = ("aval",)

    def __init__(self, aval: Aval) -> None:
        self.aval = aval

    def __repr__(self) -> str:
        return f"Var(id={id(self)}):{self.aval.str_short()}"


class DropVar(Var):
    """Variable of a jaxpr for a result that is not used, printed as an underscore.

    Parameters
    ----------
    aval : ShapedArray
        Type that the value would have.

    Examples
    --------
    >>> import accnp as jax
    >>> jax.core.DropVar(jax.core.ShapedArray((), "float32"))
    _
    """

    __slots__ = ()

    def __repr__(self) -> str:
        return "_"


class Literal:
    """Scalar that is written into an equation; `val` has its type, which may be weak.

    Parameters
    ----------
    val : array_like
        Scalar to write into the equation.
    aval : ShapedArray
        Its dtype, and whether it is weak.

    Examples
    --------
    >>> import accnp as jax
    >>> jax.make_jaxpr(lambda x: x * 2)(1.0).eqns[0].invars[1]
    Literal(2.0)
    """

    __slots__ = ("aval", "val")
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, val: complex | np.generic, aval: Aval) -> None:
        self.val = val
        self.aval = aval

    def __repr__(self) -> str:
        return f"Literal({self.text()})"

    def text(self) -> str:
        """Return the value as text: unchanged if it is weak, otherwise rounded to the dtype."""
        if self.aval.weak_type and isinstance(self.val, int | float | complex):
            kinds: tuple[Any, ...] = (bool, int, float, complex)
            return str(next(t for t in kinds if isinstance(self.val, t))(self.val))
        return str(np.asarray(self.val).astype(self.aval.dtype).item())


Atom = Var | Literal


class TypedInt(int):
    """A Python int with a dtype and a weak-type flag."""

    dtype: np.dtype
    weak_type: bool

    def __repr__(self) -> str:
        return f"TypedInt({int(self)}, dtype={self.dtype.name})"


class TypedFloat(float):
    """A Python float with a dtype and a weak-type flag."""

    dtype: np.dtype
    weak_type: bool

    def __repr__(self) -> str:
        return f"TypedFloat({float(self)}, dtype={self.dtype.name})"


class TypedComplex(complex):
    """A Python complex with a dtype and a weak-type flag."""

    dtype: np.dtype
    weak_type: bool

    def __repr__(self) -> str:
        return f"TypedComplex({complex(self)}, dtype={self.dtype.name})"


def typed(value: complex, aval: Aval) -> TypedInt | TypedFloat | TypedComplex | np.bool_:
    """Return a Python number with the dtype of an aval, as the literals of jaxprs contain it."""
    if aval.dtype.kind == "b":
        return np.bool_(value)
    if isinstance(value, complex):
        number = TypedComplex(value)
    else:
        number = TypedInt(value) if isinstance(value, int) else TypedFloat(value)
    number.dtype, number.weak_type = aval.dtype, aval.weak_type
    return number


class SourceInfo(NamedTuple):
    """The place at which an equation was recorded: a code object and an instruction offset."""

    code: Any = None
    offset: int = 0

    def __str__(self) -> str:
        if self.code is None:
            return "<unknown line>"
        places = list(self.code.co_positions())
        line, _, column, _ = places[min(self.offset // 2, len(places) - 1)]
        where = f"{self.code.co_filename}:{line or self.code.co_firstlineno}"
        if column is not None:
            where += f":{column}"
        return f"{where} ({self.code.co_qualname})"


class DebugInfo(NamedTuple):
    """Origin of a program: the transformation, the function, and the names of its arguments.

    Parameters
    ----------
    traced_for : str
        Name of the transformation.
    func_src_info : str
        Function with its file and line.
    arg_names : tuple of str, optional
        Names of the leaves of the arguments.
    result_paths : tuple of str, optional
        Places of the leaves of the result in its pytree.

    Examples
    --------
    >>> import accnp as jax
    >>> jax.make_jaxpr(lambda x: x * 2)(1.0).jaxpr.debug_info.arg_names
    ('x',)
    """

    traced_for: str
    func_src_info: str
    arg_names: tuple[str, ...] | None = None
    result_paths: tuple[str, ...] | None = None


if TYPE_CHECKING:

    class EquationFields(TypedDict, total=False):
        """The fields of an equation."""

        invars: Sequence[Atom]
        outvars: Sequence[Var]
        primitive: Primitive
        params: Params
        effects: Effects
        source_info: SourceInfo | None


class JaxprEqn:
    """Equation of a jaxpr: `outvars = primitive[params] invars`.

    Parameters
    ----------
    invars : sequence of Var or Literal
        Operands of the primitive.
    outvars : sequence of Var
        Variables that hold the results.
    primitive : Primitive
        Operation of the equation.
    params : dict
        Parameters of the operation.
    effects : set, optional
        Side effects of the operation.
    source_info : SourceInfo, optional
        Line that recorded the equation.

    Raises
    ------
    ValueError
        From `replace`, if the field is unknown.

    Examples
    --------
    >>> import accnp as jax
    >>> jax.make_jaxpr(lambda x: x * 2)(1.0).eqns[0].primitive
    mul
    """

    __slots__ = ("effects", "invars", "outvars", "params", "primitive", "source_info")

    def __init__(
        self,
        invars: Sequence[Atom],
        outvars: Sequence[Var],
        primitive: Primitive,
        params: Params,
        effects: Effects = no_effects,
        source_info: SourceInfo | None = None,
    ) -> None:
        self.invars = list(invars)
        self.outvars = list(outvars)
        self.primitive: Any = primitive  # users' primitives have more methods
        self.params = params
        self.effects = effects
        self.source_info = source_info or SourceInfo()

    def __repr__(self) -> str:
        return imported("accnp.ir.printer").eqn_text(self)

    def replace(self, **fields: Unpack[EquationFields]) -> JaxprEqn:
        """Return the equation with some fields changed."""
        return JaxprEqn(**_update_fields("JaxprEqn", self, fields))


def new_jaxpr_eqn(
    invars: Sequence[Atom],
    outvars: Sequence[Var],
    primitive: Primitive,
    params: Params,
    effects: Effects,
    source_info: SourceInfo | None = None,
    ctx: object = None,
) -> JaxprEqn:
    """Make an equation of a jaxpr.

    Parameters
    ----------
    invars : sequence of Var or Literal
        Operands of the equation.
    outvars : sequence of Var
        Results of the equation.
    primitive : Primitive
        Operation to apply.
    params : dict
        Parameters of the operation.
    effects : set
        Side effects of the operation.
    source_info : SourceInfo, optional
        Line that recorded the equation.
    ctx : object, optional
        Ignored; present for compatibility with JAX.

    Returns
    -------
    extend.core.JaxprEqn
        New equation.

    See Also
    --------
    extend.core.JaxprEqn : Class of equations.

    Examples
    --------
    >>> import accnp as jax
    >>> eqn = jax.make_jaxpr(lambda x: x * 2)(1.0).eqns[0]
    >>> args = (eqn.invars, eqn.outvars, jax.lax.add_p, {}, eqn.effects)
    >>> jax.core.new_jaxpr_eqn(*args).primitive
    add
    """
    return JaxprEqn(invars, outvars, primitive, params, effects, source_info)


class Pretty:
    """Text methods that open and closed jaxprs share; `ir/printer.py` implements them."""

    __slots__ = ()

    def write(self, width: int = 80, **style: bool) -> str:
        """Return the program as text, with lines of at most `width` columns where possible."""
        return imported("accnp.ir.printer").write(self, width, **style)

    def __repr__(self) -> str:
        return self.write()

    def pretty_print(
        self,
        *,
        source_info: bool = False,
        print_shapes: bool = True,
        custom_pp_eqn_rules: bool = True,
        print_effects: bool = False,
        width: int = 80,
    ) -> str:
        """Return the program as text.

        Args:
            source_info: append to each equation the place where it was recorded.
            print_shapes: print the types of variables.
            custom_pp_eqn_rules: omit redundant parameters.
            print_effects: print the side effects of each program.
            width: maximum length of lines, where possible.
        """
        return self.write(
            width,
            source_info=source_info,
            print_shapes=print_shapes,
            custom_pp_eqn_rules=custom_pp_eqn_rules,
            print_effects=print_effects,
        )


if TYPE_CHECKING:

    class JaxprFields(TypedDict, total=False):
        """The fields of a jaxpr."""

        constvars: Sequence[Var]
        invars: Sequence[Var]
        outvars: Sequence[Atom]
        eqns: Sequence[JaxprEqn]
        effects: Effects
        debug_info: DebugInfo | None


class Jaxpr(Pretty):
    """Program: constants, arguments, equations in order, and results.

    Parameters
    ----------
    constvars : sequence of Var
        Variables of the constants.
    invars : sequence of Var
        Variables of the arguments.
    outvars : sequence of Var or Literal
        Results of the program.
    eqns : sequence of JaxprEqn
        Equations in the order of evaluation.
    effects : set, optional
        Side effects of the program.
    debug_info : DebugInfo, optional
        Origin of the program.

    Raises
    ------
    ValueError
        From `replace`, if the field is unknown.

    Examples
    --------
    >>> import accnp as jax
    >>> jax.make_jaxpr(lambda x: x * 2)(1.0).jaxpr
    { lambda ; a:f32[]. let b:f32[] = mul a 2.0:f32[] in (b,) }
    """

    __slots__ = (
        "__weakref__", "constvars", "debug_info", "effects", "eqns", "graphs", "invars", "outvars",
    )  # fmt: skip

    def __init__(
        self,
        constvars: Sequence[Var],
        invars: Sequence[Var],
        outvars: Sequence[Atom],
        eqns: Sequence[JaxprEqn],
        effects: Effects = no_effects,
        debug_info: DebugInfo | None = None,
    ) -> None:
        self.constvars = list(constvars)
        self.invars = list(invars)
        self.outvars = list(outvars)
        self.eqns = list(eqns)
        self.effects = effects
        self.debug_info = debug_info or DebugInfo("core.Jaxpr", "<unknown>")
        self.graphs: dict[bool, Any] = {}  # the graphs made from this jaxpr, cached by the caller

    @property
    def in_avals(self) -> list[Aval]:
        """The avals of the inputs."""
        return [v.aval for v in self.invars]

    @property
    def out_avals(self) -> list[Aval]:
        """The avals of the outputs."""
        return [v.aval for v in self.outvars]

    def replace(self, **fields: Unpack[JaxprFields]) -> Jaxpr:
        """Return the program with some fields changed."""
        return Jaxpr(**_update_fields("Jaxpr", self, fields))


class ClosedJaxpr(Pretty):
    """Jaxpr together with the values of its constants.

    Parameters
    ----------
    jaxpr : Jaxpr
        Program without values.
    consts : sequence of array_like, optional
        Contents of the constant variables, in order.

    Raises
    ------
    ValueError
        If there are more or fewer values than constants.

    Examples
    --------
    >>> import accnp as jax
    >>> jax.make_jaxpr(lambda x: x + jax.numpy.ones(2))(1.0).out_avals
    [ShapedArray(float32[2])]
    """

    __slots__ = ("__weakref__", "consts", "jaxpr")

    def __init__(self, jaxpr: Jaxpr, consts: Sequence[Any] = ()) -> None:
        if len(consts) != len(jaxpr.constvars):
            raise ValueError(
                f"ClosedJaxpr: there must be a value for each of the {len(jaxpr.constvars)} "
                f"constants; got {len(consts)} values; pass that many"
            )
        self.jaxpr = jaxpr
        self.consts = list(consts)

    @property
    def literals(self) -> list[Any]:
        """The constants; an older name for `consts`."""
        return self.consts

    @property
    def eqns(self) -> list[JaxprEqn]:
        """The equations, in order."""
        return self.jaxpr.eqns

    @property
    def invars(self) -> list[Var]:
        """The variables of the inputs."""
        return self.jaxpr.invars

    @property
    def outvars(self) -> list[Atom]:
        """The variables and literals that are the outputs."""
        return self.jaxpr.outvars

    @property
    def constvars(self) -> list[Var]:
        """The variables of the constants."""
        return self.jaxpr.constvars

    @property
    def effects(self) -> Effects:
        """The side effects of the program."""
        return self.jaxpr.effects

    @property
    def debug_info(self) -> DebugInfo:
        """The origin of the program."""
        return self.jaxpr.debug_info

    @property
    def in_avals(self) -> list[Aval]:
        """The avals of the inputs."""
        return self.jaxpr.in_avals

    @property
    def out_avals(self) -> list[Aval]:
        """The avals of the outputs."""
        return self.jaxpr.out_avals

    def replace(
        self, *, jaxpr: Jaxpr | None = None, consts: Sequence[Any] | None = None
    ) -> ClosedJaxpr:
        """Return the program with another jaxpr, or other constants."""
        return ClosedJaxpr(
            self.jaxpr if jaxpr is None else jaxpr, self.consts if consts is None else consts
        )

    def map_jaxpr(self, fn: Callable[[Jaxpr], Jaxpr]) -> ClosedJaxpr:
        """Return the program with `fn` applied to its jaxpr and the same constants."""
        return ClosedJaxpr(fn(self.jaxpr), self.consts)


def _update_fields(name: str, of: JaxprEqn | Jaxpr, fields: Mapping[str, Any]) -> dict[str, Any]:
    slots: tuple[str, ...] = of.__slots__
    names = [s for s in slots if s not in ("__weakref__", "graphs")]
    if not fields.keys() <= set(names):
        raise ValueError(f"{name}.replace: unknown fields; got {sorted(fields)}; known are {names}")
    return {s: fields.get(s, getattr(of, s)) for s in names}


def jaxprs_in_params(params: Params) -> Iterator[Jaxpr]:
    """Iterate over the jaxprs among the parameters of an equation, also those in tuples.

    Parameters
    ----------
    params : dict
        Parameters of the equation.

    Returns
    -------
    iterator of Jaxpr
        Programs in their order.

    See Also
    --------
    extend.core.JaxprEqn : Equation of a jaxpr.

    Examples
    --------
    >>> import accnp as jax
    >>> outer = jax.make_jaxpr(jax.jit(lambda x: x * 2))(1.0)
    >>> list(jax.core.jaxprs_in_params(outer.eqns[0].params))
    [{ lambda ; a:f32[]. let b:f32[] = mul a 2.0:f32[] in (b,) }]
    """
    for value in params.values():
        for v in as_tuple(value):
            if isinstance(v, ClosedJaxpr):
                yield v.jaxpr
            elif isinstance(v, Jaxpr):
                yield v


def subjaxprs(jaxpr: Jaxpr) -> Iterator[Jaxpr]:
    """Iterate over the jaxprs that the equations of a jaxpr contain.

    Parameters
    ----------
    jaxpr : Jaxpr
        Program whose equations to search.

    Returns
    -------
    iterator of Jaxpr
        Programs in the order of the equations.

    Raises
    ------
    AttributeError
        If the argument is not a jaxpr.

    See Also
    --------
    core.jaxprs_in_params : Programs of one equation.

    Examples
    --------
    >>> import accnp as jax
    >>> jaxpr = jax.make_jaxpr(jax.jit(lambda x: x * 2))(1.0).jaxpr
    >>> len(list(jax.extend.core.subjaxprs(jaxpr)))
    1
    """
    for eqn in jaxpr.eqns:
        yield from jaxprs_in_params(eqn.params)


def gensym() -> Callable[[Aval], Var]:
    """Return a function that makes new variables.

    Returns
    -------
    callable
        Function from a type to a variable.

    See Also
    --------
    extend.core.Var : Variable of a jaxpr.

    Examples
    --------
    >>> import accnp as jax
    >>> new = jax.core.gensym()
    >>> new(jax.core.ShapedArray((3,), "float32")).aval
    ShapedArray(float32[3])
    """
    return Var
