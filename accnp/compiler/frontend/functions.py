"""Inline user-defined scalar functions into the kernels that call them.

`expressions.py` asks this module for the value of such a call. A function without loops becomes one
value without branches (`branchless.py`). Other functions become statements with branches and loops
(`structured_function.py`). A function that neither of the two supports is compiled by Numba, and
the kernel calls it.
"""

from __future__ import annotations

import ast
import builtins
import functools
import hashlib
from collections.abc import Mapping, Sequence

import numpy as np

from accnp.compiler.frontend.branchless import Branchless
from accnp.compiler.frontend.calls import resolve_call
from accnp.compiler.frontend.checks import check_function
from accnp.compiler.frontend.expressions import LARGEST
from accnp.compiler.frontend.jumps import has_loops, without_jumps
from accnp.compiler.frontend.liveness import names_in
from accnp.compiler.frontend.statements import StatementWriter, Values
from accnp.compiler.frontend.structured_function import StructuredFunction
from accnp.compiler.frontend.syntax import functions_of, parse_source
from accnp.compiler.llvm.intrinsics.all import TABLE
from accnp.compiler.llvm.intrinsics.linked import define_linked
from accnp.compiler.loops.ir import Call, Const, Expr, Var, dtype, number_type
from accnp.compiler.loops.types import DTYPES, DType
from accnp.compiler.unsupported import Unsupported
from accnp.compiler.user_definitions import keep_linked, with_definitions
from accnp.lazy_imports import imported

__all__ = ["UserFunctions", "result_type"]

# The modules and names that the source of a function can use (`api.kernels.texts`).
_IMPORTS = "import builtins\nimport cmath\nimport math\nimport numpy\nimport numpy as np"
_PREDEFINED_NAMES = frozenset({*dir(builtins), "builtins", "cmath", "math", "numpy", "np"})


def result_type(name: str, of: Sequence[np.dtype]) -> np.dtype | None:
    """Return the dtype of the result of a user's function; None if only Numba can determine it.

    Parameters
    ----------
    name : str
        The name under which `definitions` keeps its source.
    of : sequence of numpy.dtype
        The dtypes of its arguments.
    """
    kinds = {d.numpy: d for d in DTYPES.values()}
    users = UserFunctions(
        functions_of(with_definitions(name)), StatementWriter(set()), by_numba=False
    )
    try:
        arguments = [Var(f"x{n}", kinds[k]) for n, k in enumerate(of)]
        return number_type(users.call(name, arguments)).numpy
    except (Unsupported, KeyError):
        return None


class UserFunctions:
    """The user-defined functions of a source, for the kernel that is being generated."""

    def __init__(
        self,
        functions: Mapping[str, ast.FunctionDef],
        writer: StatementWriter,
        constants: Mapping[str, Const] | None = None,
        by_numba: bool = True,
    ) -> None:
        self.constants = dict(constants or {})
        self.functions = dict(functions)
        self.by_numba = by_numba  # whether Numba compiles unsupported functions
        self.out = writer
        self.left = LARGEST
        self.active: list[str] = []  # the enclosing functions
        self.structured: dict[str, ast.FunctionDef] = {}
        # What the functions can read.
        self.global_names = {*_PREDEFINED_NAMES, *self.constants, *self.functions}
        self.checked: set[str] = set()

    def count(self) -> None:
        """Count an operation.

        Raises
        ------
        Unsupported
            If a function has too many, counting the copies after each `if` that returns.
        """
        self.left -= 1
        if self.left < 0:
            raise Unsupported("a function that is too long")

    def call(self, name: str, arguments: Sequence[Expr], branches: bool = True) -> Expr:
        """Return the value of a call of a function.

        Parameters
        ----------
        name : str
            The name of the function.
        arguments : sequence of Expr
            Its arguments.
        branches : bool, optional
            Whether statements with branches may be written.

        Raises
        ------
        Unsupported
            If the function is not in the supported subset of Python.
        """
        tree = self.functions[name]
        self.check(name)
        names = [a.arg for a in tree.args.args]
        if len(names) != len(arguments):
            raise Unsupported(f"{len(arguments)} arguments of {name}, which takes {len(names)}")
        if any(not isinstance(dtype(a), DType) for a in arguments):
            raise Unsupported(f"an array as an argument of {name}, which takes numbers")
        if name in self.active:
            raise Unsupported(f"{name} calls itself")
        if not self.active:
            self.left = LARGEST
        values = [
            a if isinstance(a, Const | Var) else self.out.let(n, a)
            for n, a in zip(names, arguments, strict=True)
        ]
        self.active.append(name)
        begin, depth = len(self.out.blocks[-1]), len(self.out.blocks)
        try:
            bindings = dict(zip(names, values, strict=True))
            return self.write_body(tree, {**self.constants, **bindings}, branches)
        except Unsupported:
            if not self.by_numba or not branches:
                raise
            del self.out.blocks[depth:], self.out.blocks[-1][begin:]
            return self.call_linked(name, values)
        finally:
            self.active.pop()

    def check(self, name: str) -> None:
        """Check a function and those that it calls, before it is compiled in another way."""
        if name in self.checked:
            return
        self.checked.add(name)
        tree = self.functions[name]
        check_function(tree, self.global_names, self.constants)
        for other in sorted(names_in(*tree.body) & self.functions.keys()):
            self.check(other)

    def write_body(self, tree: ast.FunctionDef, bindings: Values, branches: bool) -> Expr:
        begin, depth, left = len(self.out.blocks[-1]), len(self.out.blocks), self.left
        try:
            if has_loops(tree):
                raise Unsupported("a loop")
            return Branchless(tree, dict(bindings), self, self.out).result()
        except Unsupported:
            if not branches:
                raise
        del self.out.blocks[depth:], self.out.blocks[-1][begin:]
        self.left = left
        if tree.name not in self.structured:
            self.structured[tree.name] = without_jumps(tree)
        return StructuredFunction(
            self.structured[tree.name], dict(bindings), self, self.out
        ).result()

    def call_linked(self, name: str, arguments: Sequence[Expr]) -> Expr:
        """Return the call of a function that Numba compiles."""
        constants = [
            f"{n} = float('{x.value}')" if isinstance(x.value, float) else f"{n} = {x.value}"
            for n, x in self.constants.items()
        ]
        header = "\n".join([_IMPORTS, *constants])
        functions = list(self.functions.values())
        text = "\n".join([header, *map(ast.unparse, functions), ""])
        symbol = f"{name}_{hashlib.sha256(text.encode()).hexdigest()[:16]}"
        if symbol not in TABLE:
            compiled = imported("accnp.compiler.numba.compile_function").compile_function
            module = ast.Module([*parse_source(header).body, *functions], [])
            define_linked(symbol, len(arguments), functools.partial(compiled, name, symbol, module))
            definitions = [
                f'@numba.njit(error_model="numpy")\n{ast.unparse(f)}\n' for f in functions
            ]
            keep_linked(
                symbol, "\n".join([header, "import numba", *definitions, f"{symbol} = {name}", ""])
            )
        typed_call = resolve_call(symbol, arguments)
        if typed_call is None or typed_call[0] is None:
            raise Unsupported(f"a call of {name}, whose result is not a number")
        return Call(symbol, typed_call[1], typed_call[0])
