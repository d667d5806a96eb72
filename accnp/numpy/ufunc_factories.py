"""Factories of elementwise functions.

`make_unary` and `make_binary` turn a name, a promotion function and a rule on nodes into a public
function (for two operands, also into the operators of `Array`). Each function caches what the avals
of its operands lead to. If no conversion and no broadcasting is needed and the rule records a
single op, the next call with the same avals records that op directly.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from accnp import dtypes
from accnp._native import operate, wrap
from accnp.api.arguments.convert import (
    as_nodes,
    broadcast_nodes,
    broadcast_shapes,
    cast,
    check_ranks,
    promote,
    to_shape,
)
from accnp.api.arguments.non_numeric import apply_to_keys
from accnp.api.jit.named_calls import named as as_named
from accnp.api.jit.small_calls import run_small
from accnp.array_type import Array, ArrayLike
from accnp.caches import BoundedCache
from accnp.config import config
from accnp.dtypes.names import NARROW
from accnp.errors import KeyArrayError, TypePromotionError, hide_frames
from accnp.ir.node import LITERAL, Form, Node, refuse_float0
from accnp.ir.op import o
from accnp.ir.trace import state

__all__ = [
    "OPERANDS", "BinaryOperation", "documented", "inexact", "make_binary", "make_unary", "numeric",
    "with_parameters", "wrap_all",
]  # fmt: skip

OPERANDS = (Array, bool, int, float, complex, np.ndarray, np.generic)
_PAIRS = ("divmod", "frexp", "modf")  # functions of two results
_NAMES = {"and": "and_", "or": "or_", "not": "not_"}

Rule = Callable[..., Any]
Prepare = Callable[..., list[Node]]


def wrap_all(out: Any) -> Any:
    """Wrap a node, or each of several."""
    if isinstance(out, tuple):
        return tuple([wrap_all(node) for node in out])
    return wrap(out)


def inexact(name: str, *xs: Any) -> list[Node]:
    """Promote to one floating or complex dtype."""
    nodes = as_nodes(name, *xs)
    first = nodes[0].aval
    if first.dtype in NARROW and all([n.aval.dtype == first.dtype for n in nodes]):
        # Operands of one 64-bit dtype keep it, also if 64-bit types have been disabled since.
        dtype = first.dtype if first.dtype.kind in "fc" else dtypes.float64
        return _convert_operands(nodes, dtype, all([n.aval.weak_type for n in nodes]))
    try:
        dtype, weak = dtypes.promote(tuple([(n.aval.dtype, n.aval.weak_type) for n in nodes]))
    except TypePromotionError:
        refuse_float0(name, [n.aval for n in nodes])
        raise
    return _convert_operands(nodes, dtypes.to_inexact(dtype), weak)


def numeric(name: str, *xs: Any) -> list[Node]:
    """Promote to one dtype that is not bool."""
    nodes = promote(name, *xs)
    if nodes[0].aval.dtype.kind != "b":
        return nodes
    return [cast(n, np.dtype(np.int32)) for n in nodes]


def _convert_operands(nodes: list[Node], dtype: Any, weak: bool) -> list[Node]:
    # A weak operand that has the dtype is not converted: the result is weak only if all operands
    # are. Jaxprs record the conversion, as JAX's do; kernels do not contain it.
    eager, shared = state.abstract is None, not state.named
    return [
        n
        if n.aval.dtype == dtype and (n.aval.weak_type == weak or (n.aval.weak_type and eager))
        else cast(n, dtype, weak or (n.aval.weak_type and n.op is LITERAL and shared))
        for n in nodes
    ]


def as_rule(rule: str | Rule) -> Rule:
    """Return a rule on nodes: a function, or the function that records the op of this name."""
    return getattr(o, _NAMES.get(rule, rule)) if isinstance(rule, str) else rule


def with_parameters(function: Any, names: str) -> Any:
    """Rename the parameters of a generated function, as in "x1, x2, /".

    Without the slash they can also be passed by keyword. A wrapper would slow down each call.
    """
    new_names = [name for name in names.split(", ") if name != "/"]
    code, types = function.__code__, function.__annotations__
    assert len(new_names) == code.co_argcount, names
    renamed = {new: types[old] for new, old in zip(new_names, code.co_varnames) if old in types}
    function.__annotations__ = {k: v for k, v in types.items() if k not in code.co_varnames}
    function.__annotations__ |= renamed
    function.__code__ = code.replace(
        co_varnames=(*new_names, *code.co_varnames[len(new_names) :]),
        co_posonlyargcount=len(new_names) if names.endswith("/") else 0,
    )
    return function


def documented(text: str, call: str, example: str) -> str:
    """Return a docstring with a section of examples from a call, such as "[1, 2], 3 -> [4, 5]".

    Lists among the operands become arrays. So does a list as the result, with the dtype that its
    numbers suggest; any other result is copied as it is.
    """
    operands, result = example.split(" -> ")
    operands = operands.replace("[", "jnp.array([").replace("]", "])")
    if result[0] == "[":
        truth, whole = "T" in result or "F" in result, "." not in result and "n" not in result
        dtype = (
            "bool" if truth else "complex64" if "j" in result else "int32" if whole else "float32"
        )
        result = f"Array({result}, dtype={dtype})"
    lines = [text, "", "Examples", "--------", ">>> import accnp as jnp"]
    lines += [f">>> jnp.{call}({operands})", result, ""]
    return "\n    ".join(lines).replace("\n    \n", "\n\n")


def published(function: Any, name: str, doc: str, parameters: str) -> Any:
    """Set the public name, docstring and parameter names of a generated function."""
    with_parameters(function, parameters)
    types = dict.fromkeys(function.__annotations__, "ArrayLike")
    types["return"] = "tuple[Array, Array]" if name in _PAIRS else "Array"
    function.__annotations__ = types
    function.__name__ = function.__qualname__ = name
    function.__module__ = "accnp.numpy"
    function.__doc__ = doc
    return function


def make_unary(
    name: str,
    rule: str | Rule,
    prepare: Prepare,
    doc: str,
    shown: str = "",
    parameters: str = "x, /",
    many: bool = False,
) -> Callable[[ArrayLike], Any]:
    """Make the public function of one operand; if `shown`, jaxprs contain it as a call.

    If it has `many` operations, small eager calls run as one compiled program.
    """
    rule = as_rule(rule)
    known: BoundedCache[Any, Form] = BoundedCache("type_cache_size", True)

    def plain(x: Any) -> Any:
        return wrap_all(rule(*prepare(name, x)))

    plain.__name__ = name
    as_call = as_named(plain, shown)

    def slow(x: Any) -> Any:
        if many:
            return run_small(as_call if shown else plain, (x,), ())
        if shown:
            return as_call(x)
        (node,) = prepare(name, x)
        out = rule(node)
        if out is node and node.aval.dtype == dtypes.float0:  # real, imag of a host array
            return np.zeros(node.aval.shape, dtypes.float0)
        if type(x) is Array and not isinstance(out, tuple) and _is_plain(out, (x._node,)):
            known.store(x._node.aval, out.form)
        return wrap_all(out)

    def call(x: ArrayLike, /) -> Array:
        if type(x) is Array:
            node = x._node
            form = known.get(node.aval)
            if form is not None and (not form.wide or config.x64):
                return operate(form, (node,))
        try:
            return slow(x)
        except Exception as error:
            hide_frames(error)
            raise

    return published(call, name, doc, parameters)


def _is_plain(out: Any, inputs: tuple[Node, ...]) -> bool:
    """Return whether a result is a single op on just these operands, without parameters, which may
    be remembered."""
    plain = out.op.kind == "map" and not out.params and out.inputs == inputs
    return plain and out.form is not None


class BinaryOperation:
    """The function, operator and reflected operator of a binary function, and their caches."""

    __slots__ = (
        "as_call", "function", "left", "name", "operator", "pairs", "prepare", "reflected",
        "right", "rule",
    )  # fmt: skip

    def __init__(self, name: str, rule: Rule, prepare: Prepare) -> None:
        self.name = name
        self.rule = rule
        self.prepare = prepare
        self.function: Any = None
        self.operator: Any = None
        self.reflected: Any = None
        # Found by types, or by a type and a number. What is missing is recorded again.
        self.pairs: BoundedCache[Any, Form] = BoundedCache("type_cache_size", True)
        self.right: BoundedCache[Any, tuple[Form, Node]] = BoundedCache("type_cache_size", True)
        self.left: BoundedCache[Any, tuple[Form, Node]] = BoundedCache("type_cache_size", True)
        self.as_call: Callable[[Any, Any], Any] | None = None  # for jaxprs, as one call

    def plain(self, x: Any, y: Any) -> Any:
        """Prepare, broadcast, record."""
        return wrap_all(self.rule(*_align_operands(self.name, self.prepare(self.name, x, y))))

    def slow(self, x: Any, y: Any) -> Any:
        """Prepare, broadcast, record, remember."""
        if self.as_call is not None:
            return self.as_call(x, y)
        if state.named:
            return self.plain(x, y)
        a, b = broadcast_nodes(self.name, self.prepare(self.name, x, y))
        out = self.rule(a, b)
        if not isinstance(out, tuple) and _is_plain(out, (a, b)):
            if type(x) is Array and a is x._node:
                if type(y) is Array and b is y._node and a.aval.weak_type == b.aval.weak_type:
                    self.pairs.store((a.aval, b.aval), out.form)
                elif type(y) in (int, float) and not a.aval.weak_type:
                    self.right.store(_key(a, y), (out.form, b))
                return wrap_all(out)
            strong = type(y) is Array and b is y._node and not b.aval.weak_type
            if strong and type(x) in (int, float):
                self.left.store(_key(b, x), (out.form, a))
        return wrap_all(out)


def _align_operands(name: str, nodes: list[Node]) -> list[Node]:
    """Broadcast two operands; in jaxprs only add the missing axes, as JAX does."""
    a, b = (n.aval.shape for n in nodes)
    if not state.named or not a or not b or nodes[0].aval.dtype.kind == "c":
        return broadcast_nodes(name, nodes)
    check_ranks(name, [a, b])
    broadcast_shapes(name, [a, b])
    rank = max(len(a), len(b))
    return [
        n if n.aval.ndim == rank else to_shape(n, (*(1,) * (rank - n.aval.ndim), *n.aval.shape))
        for n in nodes
    ]


def _key(node: Node, scalar: Any) -> tuple[Any, ...]:
    # 0.0 and -0.0 compare equal and would share an entry.
    t = type(scalar)
    return (node.aval, t, scalar if scalar or t is int else repr(scalar))


_SIGNS = {
    "add": "+", "subtract": "-", "multiply": "*", "divide": "/", "floor_divide": "//",
    "remainder": "%", "divmod": "divmod()", "bitwise_and": "&", "bitwise_or": "|",
    "bitwise_xor": "^", "left_shift": "<<", "right_shift": ">>", "equal": "==",
    "not_equal": "!=", "less": "<", "less_equal": "<=", "greater": ">", "greater_equal": ">=",
}  # fmt: skip


_METHODS = {
    "add": "__radd__", "subtract": "__rsub__", "multiply": "__rmul__", "divide": "__rtruediv__",
    "floor_divide": "__rfloordiv__", "remainder": "__rmod__", "divmod": "__rdivmod__",
    "bitwise_and": "__rand__", "bitwise_or": "__ror__", "bitwise_xor": "__rxor__",
    "left_shift": "__rlshift__", "right_shift": "__rrshift__", "equal": "__eq__",
    "not_equal": "__ne__", "less": "__gt__", "less_equal": "__ge__", "greater": "__lt__",
    "greater_equal": "__le__",
}  # fmt: skip


def _defines_reflected(name: str, kind: type) -> bool:
    """Return whether a class of containers defines a reflected operator itself."""
    method = _METHODS[name]
    builtin = next(c for c in kind.__mro__ if c in (list, tuple, set, dict))
    return getattr(kind, method, None) is not getattr(builtin, method, None)


def _left_to_other(name: str, x: Any, y: Any, other: Any) -> Any:
    """Return NotImplemented, so that Python tries the other operand.

    As in JAX, built-in containers raise TypeError: Python would repeat a list by a number, and
    compare any container as unequal to an array.
    """
    if isinstance(other, list | tuple | set | dict) and not _defines_reflected(name, type(other)):
        raise TypeError(
            f"unsupported operand type(s) for {_SIGNS[name]}: {type(x).__name__!r} and "
            f"{type(y).__name__!r}; convert with jnp.asarray first"
        )
    return NotImplemented


def make_binary(  # noqa: C901
    name: str,
    rule: str | Rule,
    prepare: Prepare,
    doc: str,
    shown: str = "",
    parameters: str = "x1, x2, /",
    many: bool = False,
    on_keys: str = "",
) -> BinaryOperation:
    """Make the public function of two operands, the operator, and the reflected operator.

    If `shown`, jaxprs contain them as calls. If they have `many` operations, small eager calls run
    as one compiled program. `on_keys` names the function of `random/key_functions.py` that computes
    the result for random keys; without it, they are refused.
    """
    operation = BinaryOperation(name, as_rule(rule), prepare)
    if shown:
        operation.as_call = as_named(operation.plain, shown, 2)
    if many:
        as_call = operation.as_call or operation.plain

        def call_of_two(x: Any, y: Any) -> Any:
            return as_call(x, y)

        call_of_two.__name__ = call_of_two.__qualname__ = name
        operation.as_call = lambda x, y: run_small(call_of_two, (x, y), ())
    slow, pairs, right, left = operation.slow, operation.pairs, operation.right, operation.left

    def build(accepts: Any) -> Any:
        def call(x: Any, y: Any, /) -> Array:
            if type(x) is Array:
                a = x._node
                t = type(y)
                if t is Array:
                    b = y._node
                    form = pairs.get((a.aval, b.aval))
                    if form is not None and (not form.wide or config.x64):
                        return operate(form, (a, b))
                elif t is float or t is int:
                    cached = right.get((a.aval, t, y if y or t is int else repr(y)))
                    if cached is not None and (not cached[0].wide or config.x64):
                        return operate(cached[0], (a, cached[1]))
            if (
                accepts is not None
                and not isinstance(y, accepts)
                and not hasattr(y, "__jax_array__")
            ):
                return _left_to_other(name, x, y, y)
            try:
                return slow(x, y)
            except Exception as error:
                if on_keys and type(error) is KeyArrayError:
                    return apply_to_keys(on_keys, name, slow, (x, y), {})
                hide_frames(error)
                raise

        return call

    def reflected(y: Any, x: Any, /) -> Any:
        b = y._node
        t = type(x)
        if t is float or t is int:
            cached = left.get((b.aval, t, x if x or t is int else repr(x)))
            if cached is not None and (not cached[0].wide or config.x64):
                return operate(cached[0], (cached[1], b))
        if not isinstance(x, OPERANDS) and not hasattr(x, "__jax_array__"):
            return _left_to_other(name, x, y, x)
        try:
            return slow(x, y)
        except Exception as error:
            hide_frames(error)
            raise

    operation.function = published(build(None), name, doc, parameters)
    operation.operator = build(OPERANDS)
    operation.reflected = reflected
    return operation
