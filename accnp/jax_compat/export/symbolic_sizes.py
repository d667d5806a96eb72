"""Symbolic sizes: polynomials with integer coefficients, and `symbolic_shape`.

`symbolic_shape` parses texts such as "b, 2*b, 4" to `Dim`s and ints. A `Dim` can be evaluated for
values of its symbols, and compared with another one if the order is the same for all values.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from accnp.api.jit.abstract_evaluation import ShapeDtypeStruct, install_symbolic_tracing
from accnp.errors import InconclusiveDimensionOperation, api_boundary
from accnp.lazy_imports import imported
from accnp.pytree import PyTree, broadcast_prefix, flatten_arrays, tree_unflatten

__all__ = ["Dim", "SymbolicScope", "is_symbolic_dim", "symbolic_args_specs", "symbolic_shape"]

# A product of powers of atoms; an atom is a symbol or (operation, Dim, Dim).
Atom = Any
Monomial = tuple[tuple[Atom, int], ...]

# Limits for user texts, since powers of sums have many terms.
MOST_TEXT = 2000  # characters of a size
MOST_TERMS = 2000
MOST_POWER = 64
_MOST = 1 << 63

_FUNCTIONS: dict[str, Callable[[int, int], int]] = {
    "floordiv": lambda a, b: a // b,
    "mod": lambda a, b: a % b,
    "max": max,
    "min": min,
}


class Dim:
    """A size as a polynomial in symbols, each of which is an integer of 1 or more."""

    __slots__ = ("scope", "terms")

    def __init__(self, terms: Mapping[Monomial, int], scope: SymbolicScope) -> None:
        self.terms = {m: c for m, c in terms.items() if c}
        self.scope = scope

    def _as_dim(self, x: Any) -> Dim | None:
        if isinstance(x, Dim):
            if x.scope is not self.scope:
                raise ValueError(
                    f"Invalid mixing of symbolic scopes: got {self} and {x}, which symbolic_shape "
                    "made in different scopes; pass scope= to symbolic_shape"
                )
            return x
        if isinstance(x, int | np.integer):
            return Dim({(): int(x)}, self.scope)
        return None

    def _as_int_if_constant(self) -> Any:
        """Return an int if there are no symbols."""
        return self.terms.get((), 0) if set(self.terms) <= {()} else self

    def __add__(self, x: Any) -> Any:
        y = self._as_dim(x)
        if y is None:
            return NotImplemented
        keys = {**self.terms, **y.terms}
        return Dim(
            {m: self.terms.get(m, 0) + y.terms.get(m, 0) for m in keys}, self.scope
        )._as_int_if_constant()

    __radd__ = __add__

    def __mul__(self, x: Any) -> Any:
        y = self._as_dim(x)
        if y is None:
            return NotImplemented
        if len(self.terms) * len(y.terms) > MOST_TERMS:
            raise ValueError(
                "symbolic_shape: a product of sizes has too many terms; got "
                f"{len(self.terms)} by {len(y.terms)}; use simpler sizes"
            )
        out: dict[Monomial, int] = {}
        for m, c in self.terms.items():
            for n, d in y.terms.items():
                powers = dict(m)
                for atom, k in n:
                    powers[atom] = powers.get(atom, 0) + k
                key = tuple(sorted(powers.items(), key=lambda p: str(p[0])))
                out[key] = out.get(key, 0) + c * d
        return Dim(out, self.scope)._as_int_if_constant()

    __rmul__ = __mul__

    def __neg__(self) -> Any:
        return self * -1

    def __sub__(self, x: Any) -> Any:
        y = self._as_dim(x)
        return NotImplemented if y is None else self + y * -1

    def __rsub__(self, x: Any) -> Any:
        return -self + x

    def __pow__(self, power: int) -> Any:
        if not 0 <= power <= MOST_POWER:
            raise ValueError(
                f"symbolic_shape: a power of a size must be from 0 to {MOST_POWER}; got {power}; "
                "multiply less often"
            )
        return math.prod([self] * power) if power else 1

    def _call(self, name: str, x: Any, turned: bool = False) -> Any:
        y = self._as_dim(x)
        if y is None:
            return NotImplemented
        a, b = (y, self) if turned else (self, y)
        if name in ("floordiv", "mod"):
            exact = a._divide_exactly(b)
            if exact is not None:
                return exact if name == "floordiv" else 0
        if name in ("max", "min"):
            low, high = (a - b)._bounds() if isinstance(a - b, Dim) else (a - b, a - b)
            if low >= 0:
                return (a if name == "max" else b)._as_int_if_constant()
            if high <= 0:
                return (b if name == "max" else a)._as_int_if_constant()
        return Dim({(((name, a, b), 1),): 1}, self.scope)

    def _divide_exactly(self, y: Dim) -> Any:
        """Divide by an int that divides all coefficients."""
        n = y._as_int_if_constant()
        if isinstance(n, int) and n and all(c % n == 0 for c in self.terms.values()):
            return Dim({m: c // n for m, c in self.terms.items()}, self.scope)._as_int_if_constant()
        return 1 if self.terms == y.terms else None

    def __floordiv__(self, x: Any) -> Any:
        return self._call("floordiv", x)

    def __rfloordiv__(self, x: Any) -> Any:
        return self._call("floordiv", x, True)

    def __mod__(self, x: Any) -> Any:
        return self._call("mod", x)

    def __rmod__(self, x: Any) -> Any:
        return self._call("mod", x, True)

    def __divmod__(self, x: Any) -> Any:
        return self // x, self % x

    def max_with(self, x: Any) -> Any:
        """Return the larger of two sizes."""
        return self._call("max", x)

    def min_with(self, x: Any) -> Any:
        """Return the smaller of two sizes."""
        return self._call("min", x)

    # --- values and bounds ---

    def at(self, sizes: Mapping[str, int]) -> int:
        """Return the value for values of the symbols."""
        return sum(
            c * math.prod(_atom_at(a, sizes) ** k for a, k in m) for m, c in self.terms.items()
        )

    def symbols(self) -> set[str]:
        """Return the names of the symbols."""
        names: set[str] = set()
        for m in self.terms:
            for a, _ in m:
                if isinstance(a, str):
                    names.add(a)
                else:
                    names |= a[1].symbols() | a[2].symbols()
        return names

    def _bounds(self) -> tuple[float, float]:
        low = high = 0.0
        for m, c in self.terms.items():
            a = b = 1.0
            for atom, k in m:
                x, y = self.scope.bounds(atom)
                ends = [_multiply_bounds(p, q) for p in (a, b) for q in (x**k, y**k)]
                a, b = min(ends), max(ends)
            ends = [_multiply_bounds(c, a), _multiply_bounds(c, b)]
            low, high = low + min(ends), high + max(ends)
        return low, high

    def _decide(self, x: Any, sign: str, strict: bool) -> bool:
        y = self._as_dim(x)
        if y is None:
            return NotImplemented
        difference = self - y
        low, high = difference._bounds() if isinstance(difference, Dim) else (difference,) * 2
        if sign == "<":
            low, high = -high, -low
        if low > 0 or (low == 0 and not strict):
            return True
        if high < 0 or (high == 0 and strict):
            return False
        raise InconclusiveDimensionOperation(
            f"Symbolic dimension comparison '{self}' {sign}{'' if strict else '='} '{x}' is "
            "inconclusive: it depends on the symbols; state more in the constraints of the scope"
        )

    @api_boundary
    def __gt__(self, x: Any) -> bool:
        return self._decide(x, ">", True)

    @api_boundary
    def __ge__(self, x: Any) -> bool:
        return self._decide(x, ">", False)

    @api_boundary
    def __lt__(self, x: Any) -> bool:
        return self._decide(x, "<", True)

    @api_boundary
    def __le__(self, x: Any) -> bool:
        return self._decide(x, "<", False)

    def __eq__(self, x: object) -> bool:
        if isinstance(x, Dim) and x.scope is not self.scope:
            return False
        y = self._as_dim(x)
        return y is not None and self.terms == y.terms

    def __hash__(self) -> int:
        return hash(frozenset(self.terms.items()))

    @api_boundary
    def __index__(self) -> int:
        raise InconclusiveDimensionOperation(
            f"Symbolic dimension '{self}' used in a context that requires a constant; "
            "its value is known when the program is called"
        )

    __int__ = __index__

    def __repr__(self) -> str:
        parts = []
        for m, c in sorted(self.terms.items(), key=lambda t: _rank(t[0]), reverse=True):
            text = "*".join(_atom_text(a) + (f"^{k}" if k > 1 else "") for a, k in m)
            size = abs(c)
            text = text if size == 1 and text else f"{size}*{text}" if text else str(size)
            parts.append(("- " if c < 0 else "+ ") + text)
        return " ".join(parts).removeprefix("+ ") or "0"


def _rank(m: Monomial) -> tuple[int, str]:
    return sum(k for _, k in m), str(m)


def _multiply_bounds(a: float, b: float) -> float:
    return 0.0 if 0 in (a, b) else a * b


def _atom_at(atom: Atom, sizes: Mapping[str, int]) -> int:
    if isinstance(atom, str):
        return sizes[atom]
    name, a, b = atom
    x, y = a.at(sizes), b.at(sizes)
    if y == 0 and name in ("floordiv", "mod"):
        raise ValueError(f"symbolic_shape: a size is divided by {b}, which is 0 for {dict(sizes)}")
    return _FUNCTIONS[name](x, y)


def _atom_text(atom: Atom) -> str:
    return atom if isinstance(atom, str) else f"{atom[0]}({atom[1]}, {atom[2]})"


class SymbolicScope:
    """Set of symbols for sizes, and what is known about them.

    Parameters
    ----------
    constraints_str : sequence of str, optional
        Constraints such as "b >= 8", "mod(b, 2) == 0" or "c <= b".

    Raises
    ------
    ValueError
        If a constraint cannot be parsed.

    See Also
    --------
    export.symbolic_shape : Make symbols of a scope.

    Examples
    --------
    >>> import accnp as jax
    >>> scope = jax.export.SymbolicScope(["b >= 8"])
    >>> (b,) = jax.export.symbolic_shape("b", scope=scope)
    >>> b > 4
    True
    """

    @api_boundary
    def __init__(self, constraints_str: Sequence[str] = ()) -> None:
        if isinstance(constraints_str, str):
            raise ValueError(
                "SymbolicScope: constraints must be a sequence of texts; got "
                f"{constraints_str!r}; put it into a list"
            )
        self.constraints_str = tuple(constraints_str)
        self.constraints = [self._constraint(text) for text in self.constraints_str]

    def _constraint(self, text: str) -> tuple[Any, str]:
        for sign in (">=", "<=", "=="):
            if sign in text:
                left, right = (_parse_size(t, self, text) for t in text.split(sign, 1))
                return (right - left if sign == "<=" else left - right), sign.replace("<", ">")
        raise ValueError(
            f"SymbolicScope: a constraint is two sizes with >=, <= or == between; got {text!r}; "
            "write it so, as 'a >= 2'"
        )

    def bounds(self, atom: Atom) -> tuple[float, float]:
        """Return the bounds of a symbol, or operation, that follow from constraints on it alone."""
        low, high = 1.0, math.inf
        if not isinstance(atom, str):
            name, a, b = atom
            low = -math.inf
            if (
                name == "mod"
                and isinstance(b._as_int_if_constant(), int)
                and b._as_int_if_constant() > 0
            ):
                low, high = 0.0, b._as_int_if_constant() - 1.0
            elif name in ("max", "min"):
                pick = max if name == "max" else min
                (p, q), (r, s) = a._bounds(), b._bounds()
                low, high = pick(p, r), pick(q, s)
            elif name == "floordiv" and a._bounds()[0] >= 0 and b._bounds()[0] > 0:
                low = 0.0
        key = ((atom, 1),)
        for known, sign in self.constraints:
            if isinstance(known, Dim) and set(known.terms) <= {key, ()} and key in known.terms:
                c, rest = known.terms[key], known.terms.get((), 0)
                if sign == "==" and c:
                    low = high = -rest / c
                elif c > 0:
                    low = max(low, math.ceil(-rest / c))
                else:
                    high = min(high, math.floor(-rest / c))
        return low, high

    def broken(self, sizes: Mapping[str, int]) -> str | None:
        """Return the first constraint that values of symbols violate, or None.

        Constraints on symbols without a value are ignored, since a program may use only some of the
        symbols of its scope.
        """
        for text, (known, sign) in zip(self.constraints_str, self.constraints, strict=True):
            if isinstance(known, Dim) and not known.symbols() <= sizes.keys():
                continue
            value = known.at(sizes) if isinstance(known, Dim) else known
            if (value < 0) if sign == ">=" else value:
                return text
        return None


def _parse_size(text: str, scope: SymbolicScope, whole: str) -> Any:  # noqa: C901
    def wrong() -> ValueError:
        return ValueError(
            f"symbolic_shape: syntax error in symbolic shape {whole!r} at {text.strip()!r}; a size "
            "is made of names, numbers, +, -, *, ^, floordiv, mod, max and min"
        )

    def read(node: Any) -> Any:
        size = parsed(node)
        numbers = size.terms.values() if isinstance(size, Dim) else (size,)
        if any(abs(n) >= _MOST for n in numbers):
            raise wrong()
        return size

    def parsed(node: Any) -> Any:
        if isinstance(node, ast.Expression):
            return read(node.body)
        if isinstance(node, ast.Constant) and type(node.value) is int:
            return node.value
        if isinstance(node, ast.Name):
            return Dim({((node.id, 1),): 1}, scope)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            return -read(node.operand)
        if isinstance(node, ast.BinOp):
            a, b = read(node.left), read(node.right)
            if isinstance(node.op, ast.Add):
                return a + b
            if isinstance(node.op, ast.Sub):
                return a - b
            if isinstance(node.op, ast.Mult):
                return a * b
            if isinstance(node.op, ast.Pow) and isinstance(b, int) and 0 <= b <= MOST_POWER:
                return a**b
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and len(node.args) == 2:
            a, b = map(read, node.args)
            if node.func.id in _FUNCTIONS and not (b == 0 and node.func.id in ("floordiv", "mod")):
                if isinstance(a, int) and isinstance(b, int):
                    return _FUNCTIONS[node.func.id](a, b)
                first = a if isinstance(a, Dim) else Dim({(): a}, scope)
                return first._call(node.func.id, b)
        raise wrong()

    if len(text) > MOST_TEXT:
        raise ValueError(
            f"symbolic_shape: a size has more than {MOST_TEXT} characters; got {text[:40]!r}...; "
            "use a simpler one"
        )
    try:
        return read(ast.parse(text.strip().replace("^", "**"), mode="eval"))
    except (SyntaxError, ZeroDivisionError, RecursionError, MemoryError):
        raise wrong() from None


def _entries(text: str) -> list[str]:
    """Split at commas outside of brackets."""
    out, depth = [""], 0
    for ch in text:
        depth += (ch in "([") - (ch in ")]")
        if ch == "," and depth == 0:
            out.append("")
        else:
            out[-1] += ch
    return [t.strip() for t in out if t.strip()]


@api_boundary
def symbolic_shape(
    shape_spec: str | None,
    *,
    constraints: Sequence[str] = (),
    scope: SymbolicScope | None = None,
    like: Sequence[Any] | None = None,
) -> tuple[Any, ...]:
    """Parse a shape with symbols for sizes.

    Parameters
    ----------
    shape_spec : str or None
        Sizes separated by commas. "_" stands for the size that `like` has in that place, and "..."
        for all further ones.
    constraints : sequence of str, optional
        What is known of the symbols, for a new scope.
    scope : SymbolicScope, optional
        Scope in which equal names mean equal sizes. The default is a new one.
    like : sequence of int, optional
        Shape that fills the placeholders.

    Returns
    -------
    tuple
        Sizes, each an integer or a symbolic expression.

    Raises
    ------
    ValueError
        If the text cannot be parsed as a shape.

    See Also
    --------
    export.symbolic_args_specs : Types of arguments with symbolic shapes.
    export.SymbolicScope : Symbols and constraints.

    Examples
    --------
    >>> import accnp as jax
    >>> b, n = jax.export.symbolic_shape("b, 2*b")
    >>> n + b
    3*b
    """
    if scope is None:
        scope = SymbolicScope(constraints)
    elif constraints:
        raise ValueError(
            "symbolic_shape: pass constraints to the scope; got both; "
            "make a SymbolicScope of them all"
        )
    spec = "..." if shape_spec is None else str(shape_spec).strip()
    if spec.startswith("(") and spec.endswith(")"):
        spec = spec[1:-1]
    entries = _entries(spec)
    if "..." in entries:
        if like is None or entries.index("...") != len(entries) - 1:
            raise ValueError(
                f"symbolic_shape: '...' comes last and needs `like`; got {spec!r}, like={like}; "
                "put it at the end, and pass like="
            )
        entries = [*entries[:-1], *["_"] * (len(like) - len(entries) + 1)]
    if like is not None and len(entries) != len(like):
        raise ValueError(f"symbolic_shape: {spec!r} must have {len(like)} sizes, as {tuple(like)}")
    out = []
    for i, text in enumerate(entries):
        if text != "_":
            out.append(_parse_size(text, scope, spec))
            continue
        if like is None or like[i] is None:
            raise ValueError(
                f"symbolic_shape: '_' needs a size in `like`; got {spec!r}, {like}; "
                "pass like= with as many sizes, or name it"
            )
        out.append(like[i])
    return tuple(out)


def is_symbolic_dim(p: object) -> bool:
    """Return whether a size is a symbolic expression.

    Parameters
    ----------
    p : object
        Size to test.

    Returns
    -------
    bool
        False for integers and all other objects.

    See Also
    --------
    export.symbolic_shape : Make symbolic sizes.

    Examples
    --------
    >>> import accnp as jax
    >>> jax.export.is_symbolic_dim(3)
    False
    """
    return isinstance(p, Dim)


@api_boundary
def symbolic_args_specs(
    args: PyTree,
    shapes_specs: PyTree,
    constraints: Sequence[str] = (),
    scope: SymbolicScope | None = None,
) -> Any:
    """Return the types of arguments with symbols for sizes.

    Parameters
    ----------
    args : pytree
        Arrays, or other objects with a shape and a dtype.
    shapes_specs : str or pytree of str
        Shape as text for all leaves, or a pytree prefix of such; None leaves a shape as it is.
    constraints : sequence of str, optional
        What is known of the symbols, for a new scope.
    scope : SymbolicScope, optional
        Scope in which equal names mean equal sizes. The default is a new one.

    Returns
    -------
    pytree of ShapeDtypeStruct
        Types in the structure of `args`.

    Raises
    ------
    ValueError
        If a text cannot be parsed, or does not match the rank or the structure of `args`.

    See Also
    --------
    export.symbolic_shape : Parse one shape.
    export.export : Export a function for these types.

    Examples
    --------
    >>> import accnp as jax
    >>> jax.export.symbolic_args_specs(jax.numpy.ones((3, 4)), "b, _")
    ShapeDtypeStruct(shape=(b, 4), dtype=float32)
    """
    scope = SymbolicScope(constraints) if scope is None else scope
    leaves, tree = flatten_arrays(args)
    if shapes_specs is None or isinstance(shapes_specs, str):
        specs = [shapes_specs] * len(leaves)
    else:
        specs = broadcast_prefix(
            shapes_specs, args, lambda s: s is None or isinstance(s, str), "symbolic_args_specs"
        )
    arg_specs = []
    for x, spec in zip(leaves, specs, strict=True):
        shape = symbolic_shape(spec, scope=scope, like=np.shape(x))
        dtype = x.dtype if hasattr(x, "dtype") else np.asarray(x).dtype
        arg_specs.append(ShapeDtypeStruct(shape, dtype))
    return tree_unflatten(tree, arg_specs)


def _load_symbolic_jaxprs() -> Any:
    return imported("accnp.jax_compat.export.symbolic_jaxprs")


install_symbolic_tracing(_load_symbolic_jaxprs)
