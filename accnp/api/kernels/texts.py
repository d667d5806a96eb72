"""Conversion of a user's function of numbers to text that becomes part of kernels.

The input is a Python function. The output is its definition under a name that contains a hash of
the text, so that the caches on disk identify it. Values that the function reads from outside become
part of the text: numbers become literals, and functions of `math`, of NumPy, and of `accnp.numpy`
are written with the names of `math` and NumPy. Other functions of numbers, and kernels made of
them, get definitions of their own. `ScalarText.python` is the same definition as a function for
Numba, whose line numbers are those of the user's file.
"""

from __future__ import annotations

import ast
import builtins
import cmath
import copy
import dis
import importlib
import inspect
import linecache
import math
import textwrap
import types
from collections.abc import Iterable
from typing import Any, NoReturn

import numpy as np

from accnp.api.kernels import number_definitions
from accnp.compiler.frontend.checks import check_assignments, find_refusal, has_plain_parameters
from accnp.compiler.frontend.syntax import (
    TOO_DEEP,
    line_of_deepest,
    line_of_longest,
    parse_source,
)
from accnp.compiler.unsupported import Unsupported
from accnp.compiler.user_definitions import define
from accnp.numpy.scalar_types import ScalarType
from accnp.trace_fn import function_place

__all__ = ["ScalarText", "function_name", "python_function"]

_MODULES = {math: "math", cmath: "cmath", np: "np"}
# Functions of accnp that have other names in math, or definitions of their own, by module and name.
_OWN: dict[str, dict[str, tuple[str, str] | types.FunctionType]] = {
    "accnp.numpy": {
        "fmod": number_definitions.fmod, "reciprocal": number_definitions.reciprocal,
        "round": number_definitions.round_half_even, "sign": number_definitions.sign,
    },
    "accnp.lax": {
        "abs": ("np", "absolute"), "erf": ("math", "erf"), "erfc": ("math", "erfc"),
        "lgamma": ("math", "lgamma"), "pow": ("np", "power"),
        "reciprocal": number_definitions.reciprocal, "round": number_definitions.round_half_away,
        "sign": number_definitions.sign,
    },
    "accnp.scipy.special": {
        "erf": ("math", "erf"), "erfc": ("math", "erfc"), "gamma": ("math", "gamma"),
        "gammaln": ("math", "lgamma"),
    },
}  # fmt: skip
# Ufuncs of NumPy's names with another meaning for numbers: the result of `lax.conj` is complex, and
# `spacing` of an integer is that of a type that NumPy and accnp choose differently.
_NOT_NUMPYS = frozenset({"conj", "spacing"})
# What the text calls by these names; local variables of these names are renamed.
_RESERVED = frozenset({"builtins", "cmath", "math", "np", "numpy", "range"})
_CHANGED = "its file has changed since it was imported; import it again"


def python_function(f: Any) -> Any:
    """Return the Python function that a Numba function or a kernel of numbers was made from; None
    for anything else."""
    if getattr(f, "kind", None) == "scalar":  # a `UserKernel`
        f = f.function
    function = getattr(getattr(f, "_dispatcher", f), "py_func", f)  # a ufunc's is a dispatcher's
    return function if isinstance(function, types.FunctionType) else None


def function_name(f: types.FunctionType) -> str:
    """Return the name of a function, which is an identifier."""
    return "lambda_" if f.__name__ == "<lambda>" else f.__name__


class ScalarText(ast.NodeTransformer):
    """The text of a function of numbers, which kernels call by `name`.

    Raises
    ------
    ValueError
        If the source of the function is not available, or the function reads a value that a kernel
        cannot contain.
    """

    def __init__(self, f: Any, outer: tuple[types.FunctionType, ...] = ()) -> None:
        function = python_function(f)
        self.function: types.FunctionType = function
        self.outer = (*outer, function)
        self.of = "{} ({}:{})".format(*function_place(function))
        self.modules: set[str] = set()
        self.helpers: dict[str, ScalarText] = {}
        try:
            self.tree = self.definition(self.source_tree())
            body = ast.unparse(self.tree)
        except RecursionError:
            self.refuse_depth()
        imports = {"np": "import numpy as np"}
        lines = [imports.get(m, f"import {m}") for m in sorted(self.modules)]
        # Braces in the user's text would be read as placeholders of the name.
        text = "\n".join([*lines, body, ""]).replace("__accnp_name__", "{name}")
        self.name = define(function_name(function), text)
        self._python: types.FunctionType | None = None

    @property
    def python(self) -> types.FunctionType:
        """The function for Numba, whose globals are what its text reads from outside."""
        if self._python is None:
            scope: dict[str, Any] = {"math": math, "cmath": cmath, "np": np, "builtins": builtins}
            scope |= {name: helper.python for name, helper in self.helpers.items()}
            file = self.function.__code__.co_filename
            exec(compile(ast.Module([self.tree], []), file, "exec"), scope)
            self._python = scope["__accnp_name__"]
            assert self._python is not None
            self._python.__name__ = function_name(self.function)
        return self._python

    def refuse_depth(self) -> NoReturn:
        """Refuse the function because it is nested too deeply for this program."""
        source = inspect.getsource(self.function)
        try:
            line = line_of_deepest(parse_source(textwrap.dedent(source)))
        except RecursionError:
            line = line_of_longest(source)
        self.refuse(TOO_DEEP, line=line + self.function.__code__.co_firstlineno - 1)

    def refuse(self, what: str, node: ast.AST | None = None, line: int | None = None) -> NoReturn:
        file = self.function.__code__.co_filename
        if line is None:
            line = int(getattr(node, "lineno", self.function.__code__.co_firstlineno))
        text = f"kernel: {self.of} cannot be part of a kernel: {what}"
        if "; got " not in text:
            excerpt = self.function.__name__ if node is None else ast.unparse(node).split("\n")[0]
            text += f"; got {excerpt}"
        raise ValueError(
            f"{text}, at {file}:{line}: {linecache.getline(file, line).strip()}; to call a "
            "function of arrays as a whole, declare its results in out"
        )

    def source_tree(self) -> ast.FunctionDef:
        """The definition of the function, with the lines of its file."""
        if self.function.__name__ == "<lambda>":
            return self.lambda_tree()
        try:
            source = textwrap.dedent(inspect.getsource(self.function))
            (definition,) = parse_source(source).body
        except (OSError, SyntaxError, ValueError):
            definition = None
        if not isinstance(definition, ast.FunctionDef):
            self.refuse("its source is not available; define it with def in a file")
        assert isinstance(definition, ast.FunctionDef)
        if not _is_of(self.function, definition):
            self.refuse(_CHANGED)
        return ast.increment_lineno(definition, self.function.__code__.co_firstlineno - 1)

    def lambda_tree(self) -> ast.FunctionDef:
        """The same of a lambda, which is found in its file by its place."""
        code = self.function.__code__
        try:
            module = parse_source("".join(linecache.getlines(code.co_filename)))
        except (SyntaxError, ValueError):
            module = ast.Module([], [])
        columns = {p[2] for p in code.co_positions() if p[2] is not None and p[2] != p[3]}
        lambdas = [
            x
            for x in ast.walk(module)
            if isinstance(x, ast.Lambda)
            and x.lineno == code.co_firstlineno
            and [a.arg for a in x.args.args] == [*code.co_varnames[: code.co_argcount]]
            and (x.end_lineno != x.lineno or _may_contain(x, columns))
        ]
        if len(lambdas) != 1:
            why = "its source is not available" if not lambdas else "there are several on its line"
            self.refuse(f"{why}; define it with def in a file")
        (one,) = lambdas
        if not _is_of(self.function, one):
            self.refuse(_CHANGED)
        body = ast.copy_location(ast.Return(one.body), one.body)
        return ast.copy_location(ast.FunctionDef("lambda_", one.args, [body], [], None), one)

    def definition(self, tree: ast.FunctionDef) -> ast.FunctionDef:
        a = tree.args
        if not has_plain_parameters(tree):
            self.refuse("its parameters must be plain ones; got defaults, *, ** or /", tree)
        body = tree.body
        first = body[0]
        if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and body[1:]:
            body = body[1:]
        tree.body = [self.visit(s) for s in body]
        tree.name, tree.decorator_list, tree.returns = "__accnp_name__", [], None
        for x in a.args:
            x.annotation, x.arg = None, self.renamed(x.arg)
        ast.fix_missing_locations(tree)
        try:
            check_assignments(tree, {})
        except Unsupported as error:
            self.refuse(str(error), line=error.line)
        return tree

    def visit(self, node: ast.AST) -> Any:
        why = find_refusal(node)
        if why is not None:
            self.refuse(why, node)
        return super().visit(node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.stmt:
        """Leave out the annotation, which is not evaluated."""
        statement = ast.Pass() if node.value is None else ast.Assign([node.target], node.value)
        return self.visit(ast.copy_location(statement, node))

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if self.is_local(node):
            node.id = self.renamed(node.id)
            return node
        return self.written(self.find_outer_value(node), node.id, node)

    def visit_Call(self, node: ast.Call) -> ast.expr:
        """Write functions of arrays that have a meaning for numbers, and find ranges that never
        end."""
        called = self.value_of(node.func) if self.is_outside(node.func) else None
        for name, write in (("where", ast.IfExp), ("clip", self.clipped)):
            if called is getattr(np, name) or _public_module(called, ("accnp.numpy",), name):
                if len(node.args) != 3 or node.keywords:
                    self.refuse(f"{name} takes three numbers, by position", node)
                return ast.copy_location(write(*[self.visit(x) for x in node.args]), node)
        if _public_module(called, ("accnp.lax", "accnp.numpy"), "round") and _arguments(node) > 1:
            if _public_module(called, ("accnp.lax",), "round"):
                self.refuse("lax.round takes one number here, and rounds halves away from 0", node)
            node.func = self.of_module("np", "round")
            node.args = [self.visit(x) for x in node.args]
            node.keywords = [self.visit(x) for x in node.keywords]
            return node
        call = self.generic_visit(node)
        assert isinstance(call, ast.Call)
        if called is range and len(call.args) == 3 and _is_zero(call.args[2]):
            self.refuse("the step of a range must not be zero", node)
        return call

    def clipped(self, x: ast.expr, low: ast.expr, high: ast.expr) -> ast.expr:
        above = ast.Call(self.of_module("np", "maximum"), [x, low], [])
        return ast.Call(self.of_module("np", "minimum"), [above, high], [])

    def renamed(self, name: str) -> str:
        """The name of a local variable in the text, where modules have names as well."""
        local_names = self.function.__code__.co_varnames
        while name in _RESERVED:
            name += "_"
            while name in local_names:
                name += "_"
        return name

    def is_local(self, node: ast.Name) -> bool:
        code = self.function.__code__
        return node.id in (*code.co_varnames, *code.co_cellvars)

    def is_outside(self, node: ast.expr) -> bool:
        """Return whether an expression is a name from outside, or an attribute of one."""
        while isinstance(node, ast.Attribute):
            node = node.value
        return isinstance(node, ast.Name) and not self.is_local(node)

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        if self.is_outside(node):
            return self.written(self.value_of(node), ast.unparse(node), node)
        expression = self.generic_visit(node)
        assert isinstance(expression, ast.expr)
        return expression

    def value_of(self, node: ast.expr) -> Any:
        if isinstance(node, ast.Attribute):
            base = self.value_of(node.value)
            if not hasattr(base, node.attr):
                self.refuse(f"{ast.unparse(node)} is not defined", node)
            return getattr(base, node.attr)
        assert isinstance(node, ast.Name)
        return self.find_outer_value(node)

    def find_outer_value(self, node: ast.Name) -> Any:
        """Return the current value of a name that the function reads from outside."""
        code, name = self.function.__code__, node.id
        if name in code.co_freevars:
            cell = (self.function.__closure__ or ())[code.co_freevars.index(name)]
            try:
                return cell.cell_contents
            except ValueError:
                if name == self.function.__name__:
                    return self.function
                self.refuse(f"{name} has no value yet", node)
        for space in (self.function.__globals__, vars(builtins)):
            if name in space:
                return space[name]
        if name == self.function.__name__:
            return self.function
        return self.refuse(f"{name} is not defined", node)

    def written(self, value: Any, name: str, node: ast.expr) -> ast.expr:
        """An expression that means a value from outside."""
        expression = self.number_or_module(value, name, node) or self.helper(value, name, node)
        if expression is None:
            self.refuse(
                f"it reads {name}, a {type(value).__name__}; numbers, functions of math, NumPy and "
                "accnp.numpy, and other functions of numbers can be read; pass the rest as "
                "arguments",
                node,
            )
        assert isinstance(expression, ast.expr)
        return ast.copy_location(expression, node)

    def number_or_module(self, value: Any, name: str, node: ast.expr) -> ast.expr | None:  # noqa: C901
        """A number, a type, or a function of a module."""
        if isinstance(value, np.generic) and value.dtype.kind in "biufc":
            return self.cast(value.dtype.name, value.item())
        if isinstance(value, bool):
            return ast.Constant(value)
        if isinstance(value, int | float | complex):
            return self.number(value)
        if isinstance(value, ScalarType):
            return self.type_of(np.dtype(value.dtype).name)
        # The definitions themselves call NumPy's functions.
        if (value is np.fmod or value is np.sign) and not _is_of_accnp(self.function):
            return self.helper(
                number_definitions.fmod if value is np.fmod else number_definitions.sign, name, node
            )
        for module, root in _MODULES.items():
            own = getattr(value, "__name__", None)
            if own and getattr(module, own, None) is value:
                return self.of_module(root, own)
        if value is range:
            return ast.Name("range", ast.Load())
        own = getattr(value, "__name__", "")
        if getattr(builtins, own, None) is value:
            if own in ("print", "input", "open"):
                self.refuse(f"{own} has no meaning in a kernel", node)
            return self.of_module("builtins", own)
        # Numba's names of types serve as casts.
        if type(value).__module__.startswith("numba.core.types") and hasattr(np, str(value)):
            return self.of_module("np", str(value))
        home = _public_module(value, _OWN)
        if home:
            counterpart = _OWN[home].get(own)
            if isinstance(counterpart, tuple):
                return self.of_module(*counterpart)
            if counterpart is not None:
                return self.helper(counterpart, name, node)
            if own not in _NOT_NUMPYS and isinstance(getattr(np, own, None), np.ufunc):
                return self.of_module("np", own)
        if _is_of_accnp(value):
            self.refuse(
                f"it calls {name}, which is a function of arrays; kernels can call where, clip, "
                "round, erf, and the ufuncs of accnp.numpy",
                node,
            )
        return None

    def helper(self, value: Any, name: str, node: ast.expr) -> ast.expr | None:
        """Another function of numbers, or this one."""
        function = python_function(value)
        if function is None:
            return None
        if function is self.function:
            return ast.Name("__accnp_name__", ast.Load())
        if function in self.outer:
            self.refuse(f"it and {name} call each other", node)
        text = ScalarText(function, self.outer)
        self.helpers[text.name] = text
        return ast.Name(text.name, ast.Load())

    def number(self, value: Any) -> ast.expr:
        if isinstance(value, float) and not math.isfinite(value):
            name = "nan" if value != value else "inf"
            expression: ast.expr = self.of_module("math", name)
            return ast.UnaryOp(ast.USub(), expression) if value < 0 else expression
        if not isinstance(value, complex) and value < 0:
            return ast.UnaryOp(ast.USub(), ast.Constant(-value))
        return ast.Constant(value)

    def cast(self, dtype: str, value: Any) -> ast.expr:
        return ast.Call(self.type_of(dtype), [self.number(value)], [])

    def type_of(self, dtype: str) -> ast.expr:
        return self.of_module("np", "bool_" if dtype.startswith("bool") else dtype)

    def of_module(self, module: str, name: str) -> ast.expr:
        self.modules.add(module)
        return ast.Attribute(ast.Name(module, ast.Load()), name, ast.Load())


def _public_module(value: Any, modules: Iterable[str], name: str | None = None) -> str | None:
    """Return the public module of accnp that has this very function under its name, or None."""
    if not _is_of_accnp(value):
        return None
    own = value.__name__
    if name not in (None, own):
        return None
    matches = (m for m in modules if getattr(importlib.import_module(m), own, None) is value)
    return next(matches, None)


def _is_of_accnp(value: Any) -> bool:
    scope = getattr(value, "__globals__", None)
    module = scope.get("__name__", "") if isinstance(scope, dict) else ""
    return callable(value) and module.partition(".")[0] == "accnp"


def _arguments(node: ast.Call) -> int:
    return len(node.args) + len(node.keywords)


def _is_of(function: types.FunctionType, tree: ast.FunctionDef | ast.Lambda) -> bool:
    """Return whether a definition is that of a function: a file may have changed since it was
    loaded."""
    code = function.__code__
    bare = copy.deepcopy(tree)
    if isinstance(bare, ast.FunctionDef):
        bare.decorator_list = []
        body: list[ast.stmt] = [bare]
        if bare.name not in code.co_freevars:  # it may call itself
            body = [ast.Global([bare.name]), bare]
    else:
        body = [ast.Return(bare)]
    # Variables of the functions around it are parameters of one.
    names = [ast.arg(name) for name in code.co_freevars]
    around = ast.FunctionDef("around", ast.arguments([], names, None, [], [], None, []), body, [])
    module = ast.fix_missing_locations(ast.Module([around], []))
    candidate = compile(module, code.co_filename, "exec", dont_inherit=True)
    for _ in range(2):
        candidate = next(c for c in candidate.co_consts if isinstance(c, types.CodeType))
    return _code_instructions(candidate) == _code_instructions(code)


def _code_instructions(code: types.CodeType) -> list[tuple[str, str]]:
    """The instructions of a function, without places.

    Calls of attributes of what a module imports have other instructions than those of methods.
    """
    instructions = []
    for x in dis.get_instructions(code):
        if x.opname in ("NOP", "PUSH_NULL", "PRECALL", "CACHE", "EXTENDED_ARG"):
            continue
        name = x.opname.replace("LOAD_METHOD", "LOAD_ATTR")
        jump = x.opcode in dis.hasjrel or x.opcode in dis.hasjabs
        if isinstance(x.argval, types.CodeType):  # of a function within it
            instructions += [("", x.argval.co_name), *_code_instructions(x.argval)]
            continue
        value = type(x.argval).__name__ + x.argrepr.replace("NULL|self + ", "").replace(
            "NULL + ", ""
        )
        instructions.append((name, "" if jump else value))
    return instructions


def _is_zero(x: ast.expr) -> bool:
    if isinstance(x, ast.UnaryOp):
        x = x.operand
    return isinstance(x, ast.Constant) and type(x.value) is int and not x.value


def _may_contain(x: ast.Lambda, columns: set[int]) -> bool:
    """Return whether code with these columns may be that of a lambda on one line."""
    return all(x.col_offset <= c <= (x.end_col_offset or c) for c in columns)
