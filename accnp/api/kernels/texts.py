"""A user's function of numbers as text that kernels can hold.

In: a Python function. Out: its definition by a name that says all of it: what it reads from outside
is part of the text (numbers as literals, functions of `math` and NumPy by those modules' names,
other functions of numbers by their own definitions), so that caches on disk know it again.
"""

from __future__ import annotations

import ast
import builtins
import cmath
import inspect
import math
import textwrap
import types
from typing import Any

import numpy as np

from accnp.compiler.frontend.definitions import define
from accnp.compiler.frontend.syntax import parsed
from accnp.trace_fn import function_place

__all__ = ["python_function", "scalar_text"]

_MODULES = {math: "math", cmath: "cmath", np: "np"}
_INNER = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda, ast.ListComp,
          ast.SetComp, ast.DictComp, ast.GeneratorExp)  # fmt: skip
_LEAVES = (ast.Raise, ast.Try, ast.With, ast.Global, ast.Nonlocal, ast.Yield, ast.Await, ast.Assert)


def python_function(f: Any) -> Any:
    """The Python function that a Numba function was made from; None for what is neither."""
    found = getattr(getattr(f, "_dispatcher", f), "py_func", f)  # a ufunc's is a dispatcher's
    return found if isinstance(found, types.FunctionType) else None


def scalar_text(f: Any) -> str:
    """Keep the text of a function of numbers for kernels; returns the name they call it by.

    Raises:
        ValueError: its source is not available, or it reads a value that a kernel cannot contain.
    """
    return _Text(f, ()).name


class _Text(ast.NodeTransformer):
    def __init__(self, f: Any, outer: tuple[Any, ...]) -> None:
        function = python_function(f)
        self.function, self.outer = function, (*outer, function)
        self.of = "{} ({}:{})".format(*function_place(function))
        self.modules: set[str] = set()
        tree = self.definition(self.tree())
        imports = {"np": "import numpy as np"}
        lines = [imports.get(m, f"import {m}") for m in sorted(self.modules)]
        # Braces of the user's own would be taken for places of the name.
        text = "\n".join([*lines, ast.unparse(tree), ""]).replace("__accnp_name__", "{name}")
        self.name = define(function.__name__, text)

    def refuse(self, what: str, node: ast.AST | None = None) -> Any:
        text = f"kernel: {self.of} cannot be part of a kernel: {what}"
        if node is not None:
            line = self.function.__code__.co_firstlineno + getattr(node, "lineno", 1) - 1
            text += f" (line {line})"
        if "; got " not in text:
            given = self.function.__name__ if node is None else ast.unparse(node).split("\n")[0]
            text += f"; got {given}"
        raise ValueError(f"{text}; a function of arrays, with their shapes in out, is called whole")

    def tree(self) -> ast.FunctionDef:
        try:
            source = textwrap.dedent(inspect.getsource(self.function))
            (found,) = parsed(source).body
        except (OSError, SyntaxError, ValueError):
            found = None
        if not isinstance(found, ast.FunctionDef):
            self.refuse("its source is not available; define it with def in a file")
        assert isinstance(found, ast.FunctionDef)
        return found

    def definition(self, tree: ast.FunctionDef) -> ast.FunctionDef:
        a = tree.args
        if a.vararg or a.kwarg or a.kwonlyargs or a.defaults:
            self.refuse("its parameters must be plain ones; got defaults, * or **", tree)
        body = tree.body
        first = body[0]
        if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and body[1:]:
            body = body[1:]
        tree.body = [self.visit(s) for s in body]
        tree.name, tree.decorator_list, tree.returns = "__accnp_name__", [], None
        for x in a.args:
            x.annotation = None
        return ast.fix_missing_locations(tree)

    def visit(self, node: ast.AST) -> Any:
        if isinstance(node, _INNER):
            self.refuse("functions and comprehensions within it are not supported", node)
        if isinstance(node, _LEAVES):
            self.refuse(f"{type(node).__name__.lower()} has no meaning in a kernel", node)
        return super().visit(node)

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if node.id in self.function.__code__.co_varnames:
            return node
        found = self.outside(node)
        if found is self.function:
            return ast.Name("__accnp_name__", ast.Load())
        return self.written(found, node.id, node)

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        base = node
        while isinstance(base, ast.Attribute):
            base = base.value  # type: ignore[assignment]
        if isinstance(base, ast.Name) and base.id not in self.function.__code__.co_varnames:
            return self.written(self.value_of(node), ast.unparse(node), node)
        return self.generic_visit(node)  # type: ignore[return-value]

    def value_of(self, node: ast.expr) -> Any:
        if isinstance(node, ast.Attribute):
            found = self.value_of(node.value)
            if not hasattr(found, node.attr):
                self.refuse(f"{ast.unparse(node)} is not defined", node)
            return getattr(found, node.attr)
        assert isinstance(node, ast.Name)
        return self.outside(node)

    def outside(self, node: ast.Name) -> Any:
        """What a name from outside the function stands for now."""
        code, name = self.function.__code__, node.id
        if name in code.co_freevars:
            cell = self.function.__closure__[code.co_freevars.index(name)]
            try:
                return cell.cell_contents
            except ValueError:
                self.refuse(f"{name} has no value yet", node)
        for space in (self.function.__globals__, vars(builtins)):
            if name in space:
                return space[name]
        return self.refuse(f"{name} is not defined", node)

    def written(self, value: Any, name: str, node: ast.AST) -> ast.expr:
        """An expression that means a value from outside."""
        if isinstance(value, bool | int | float | complex) and type(value) is not bool:
            if isinstance(value, np.generic):
                return self.cast(type(value).__name__, value.item())
            return self.number(value)
        if isinstance(value, bool):
            return ast.Constant(value)
        if isinstance(value, np.generic) and value.dtype.kind in "biufc":
            return self.cast(value.dtype.name, value.item())
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
        function = python_function(value)
        if function is not None:
            if function in self.outer:
                self.refuse(f"it and {name} call each other", node)
            return ast.Name(_Text(function, self.outer).name, ast.Load())
        kind = type(value).__name__
        return self.refuse(
            f"it reads {name}, a {kind}; numbers, functions of math and NumPy and other functions "
            "of numbers can be read; pass the rest as arguments",
            node,
        )

    def number(self, value: Any) -> ast.expr:
        if isinstance(value, float) and not math.isfinite(value):
            name = "nan" if value != value else "inf"
            found: ast.expr = self.of_module("math", name)
            return ast.UnaryOp(ast.USub(), found) if value < 0 else found
        if not isinstance(value, complex) and value < 0:
            return ast.UnaryOp(ast.USub(), ast.Constant(-value))
        return ast.Constant(value)

    def cast(self, dtype: str, value: Any) -> ast.expr:
        name = "bool_" if dtype.startswith("bool") else dtype
        return ast.Call(self.of_module("np", name), [self.number(value)], [])

    def of_module(self, module: str, name: str) -> ast.expr:
        self.modules.add(module)
        return ast.Attribute(ast.Name(module, ast.Load()), name, ast.Load())
