"""Formulas of operations have the types that Numba gives them."""

from __future__ import annotations

import operator as operators

import pytest
from numba.core.registry import cpu_target

from accnp.compiler.formulas import converted, expression
from accnp.compiler.loops.ir import Var, dtype
from accnp.compiler.loops.printer import print_expr
from accnp.compiler.loops.types import B1, C8, DTYPES, F4, F8, I4, I8
from accnp.compiler.numba.functions import NUMBA_TYPES
from accnp.compiler.unsupported import Unsupported

X, Y = Var("x", F4), Var("y", F4)
M, N = Var("m", I4), Var("n", I4)
C = Var("c", B1)


@pytest.mark.parametrize(
    ("formula", "operands", "to", "expected"),
    [
        ("{0} * {1}", (X, Y), F4, "mul(x, y)"),
        ("{0} + {1}", (M, N), I4, "add(m, n)"),  # modulo 2^32 either way
        ("{0} + {1}", (M, N), I8, "add(i8(m), i8(n))"),
        ("{0} * {0} - {1}", (M, N), I4, "sub(mul(m, m), n)"),
        ("{0} < {1}", (M, N), B1, "lt(m, n)"),
        ("{0} + {1} < 3", (M, N), B1, "lt(add(i8(m), i8(n)), 3:i8)"),
        ("{0} * 2.0", (X,), F4, "mul(x, 2.0:f4)"),  # one rounding or two: the same bits
        ("{0} * 0.1", (X,), F4, "f4(mul(f8(x), 0.1:f8))"),
        ("{0} * 2.0 + 1.0", (X,), F4, "f4(add(mul(f8(x), 2.0:f8), 1.0:f8))"),
        ("{0} / {1}", (M, N), F8, "div(f8(m), f8(n))"),
        ("select({0}, {2}, {1})", (C, X, Y), F4, "select(c, y, x)"),
        ("fmax({0}, f4(0.5))", (X,), F4, "fmax(x, 0.5:f4)"),
        ("fmin(fmax({1}, {0}), {2})", (M, N, M), I4, "fmin(fmax(n, m), m)"),
        ("one({0}) / ({0} * {0})", (X,), F4, "div(1.0:f4, mul(x, x))"),
        ("-{0}", (M,), I4, "neg(m)"),
        ("not {0}", (C,), B1, "not(c)"),
        ("~{0}", (M,), I4, "not(m)"),
        ("{0} and {1} or {2}", (C, C, C), B1, "or(and(c, c), c)"),
        ("{8} + {9} + {10}", (M,) * 8 + (X,) * 3, F4, "add(add(x, x), x)"),
        ("{0} != 0", (X,), B1, "ne(f8(x), 0.0:f8)"),
        ("{0} != 0", (Var("u", DTYPES["u4"]),), B1, "ne(i8(u), 0:i8)"),
        ("{0} != 0", (Var("u", DTYPES["u8"]),), B1, "ne(u, 0:u8)"),
        ("{0}", (X,), I4, "i4(x)"),
        ("tanh({0}) >= -1", (X,), B1, "ge(f8(tanh(x)), -1.0:f8)"),
        ("cdiv(one({0}), {0})", (Var("z", C8),), C8, "cdiv(c8(1.0:f4), z)"),
    ],
)
def test_formula(formula, operands, to, expected):
    assert print_expr(converted(expression(formula, operands), to)) == expected


@pytest.mark.parametrize(
    ("formula", "operands"),
    [
        ("{0}.real", (X,)),
        ("unknown({0})", (X,)),
        ("{0} ** 2", (X,)),
        ("{0} < {1}", (Var("u", DTYPES["u8"]), Var("v", I8))),
        ("{0} & {1}", (X, Y)),
    ],
)
def test_unsupported_formulas_are_refused(formula, operands):
    with pytest.raises(Unsupported):
        expression(formula, operands)


@pytest.mark.parametrize("sign", ["+", "/", "&"])
def test_types_are_those_of_numba(sign):
    typing = cpu_target.typing_context
    typing.refresh()
    operator = {"+": "add", "/": "truediv", "&": "and_"}[sign]
    for a in NUMBA_TYPES:
        for b in NUMBA_TYPES:
            both = (Var("x", DTYPES[a]), Var("y", DTYPES[b]))
            try:
                ours = dtype(expression(f"{{0}} {sign} {{1}}", both)).token
            except Unsupported:
                continue
            operator_type = typing.resolve_value_type(getattr(operators, operator))
            theirs = typing.resolve_function_type(
                operator_type, (NUMBA_TYPES[a], NUMBA_TYPES[b]), {}
            )
            assert theirs.return_type == NUMBA_TYPES[ours], (a, sign, b)
