"""Conversion of statements, given as text, to a function without arguments that can be timed."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

__all__ = ["function_of"]

_NAME = "__timed__"


def function_of(code: str, namespace: dict[str, Any], setup: str = "") -> Callable[[], Any]:
    """Return a function that runs the code with the names of a namespace and of the setup code.

    It returns the value of the last expression and the variables that the code assigns, so that
    the timer can wait for all of them. The variables are local; the namespace is not changed.

    Raises:
        SyntaxError: the code is not valid Python, or is empty.
    """
    body = ast.parse(code.strip()).body
    if not body:
        raise SyntaxError("there is no code to time")
    last = body[-1]
    expression: ast.expr = last.value if isinstance(last, ast.Expr) else ast.Constant(None)
    statements = body[:-1] if isinstance(last, ast.Expr) else body
    if statements:  # statements may assign variables
        names = ast.Call(ast.Name("locals", ast.Load()), [], [])
        expression = ast.Tuple([expression, names], ast.Load())
    timed = ast.parse(f"def {_NAME}(): pass").body[0]
    assert isinstance(timed, ast.FunctionDef)
    timed.body = [*statements, ast.Return(expression)]
    module = ast.Module([*ast.parse(setup).body, timed], [])
    scope = dict(namespace)
    exec(compile(ast.fix_missing_locations(module), "<timed code>", "exec"), scope)
    return scope[_NAME]
