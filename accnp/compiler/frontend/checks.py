"""Check functions in restricted Python before they are translated.

The input is the syntax tree of a function. The checks return nothing, or raise `Unsupported` with
the position of the error: a name that is not defined or may have no value, syntax that has no
meaning for numbers, or a path that returns nothing. The builder of the loop IR would report some of
these errors at other lines, and Numba accepts some of them. The front end checks kernels and users'
functions, and `api/kernels/` checks a function when a user declares it.
"""

from __future__ import annotations

import ast
import builtins
import cmath
import math
from collections.abc import Collection, Mapping

import numpy as np

from accnp.compiler.frontend.jumps import falls_through
from accnp.compiler.frontend.liveness import assigned, names_in
from accnp.compiler.frontend.syntax import walk
from accnp.compiler.loops.ir import Const
from accnp.compiler.unsupported import Unsupported

__all__ = [
    "check_assignments", "check_function", "check_parameters", "find_refusal",
    "has_plain_parameters",
]  # fmt: skip

_INNER = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda, ast.ListComp,
          ast.SetComp, ast.DictComp, ast.GeneratorExp)  # fmt: skip
_REFUSED: dict[type[ast.AST], str] = {
    ast.Assert: "assert", ast.AsyncFor: "async for", ast.AsyncWith: "async with",
    ast.Await: "await", ast.Delete: "del", ast.Global: "global", ast.Import: "import",
    ast.ImportFrom: "import", ast.Nonlocal: "nonlocal", ast.Raise: "raise", ast.Try: "try",
    ast.TryStar: "try", ast.With: "with", ast.Yield: "yield", ast.YieldFrom: "yield",
}  # fmt: skip
_MODULES = {"builtins": builtins, "cmath": cmath, "math": math, "numpy": np, "np": np}
# The names with a value at some point of a function; None where control never arrives.
_State = set[str] | None


def find_refusal(node: ast.AST) -> str | None:
    """Return why functions of numbers cannot contain a node, or None if they can."""
    if isinstance(node, _INNER):
        return "functions, classes and comprehensions within it are not supported"
    if type(node) in _REFUSED:
        return f"{_REFUSED[type(node)]} has no meaning in a kernel"
    if isinstance(node, ast.Starred) and isinstance(node.ctx, ast.Store):
        return "an assignment to a starred name is not supported"
    too_long = isinstance(node, ast.Constant) and type(node.value) is int and node.value >= 2**64
    return "an integer has more than 64 bits" if too_long else None


def has_plain_parameters(tree: ast.FunctionDef) -> bool:
    """Return whether the parameters of a function have no defaults, and no `*`, `**`, or `/`."""
    a = tree.args
    return not (a.vararg or a.kwarg or a.kwonlyargs or a.defaults or a.posonlyargs)


def check_parameters(tree: ast.FunctionDef) -> None:
    """Refuse parameters other than plain ones.

    Raises
    ------
    Unsupported
        If the function has any.
    """
    if not has_plain_parameters(tree):
        raise Unsupported(f"parameters of {tree.name} with defaults, *, ** or /", tree)


def check_function(
    tree: ast.FunctionDef, global_names: Collection[str], constants: Mapping[str, Const]
) -> None:
    """Check a function of numbers that the text of a kernel defines.

    Parameters
    ----------
    tree : ast.FunctionDef
        The function.
    global_names : collection of str
        The names that it can read from outside.
    constants : mapping of str to Const
        Those of them that are numbers.

    Raises
    ------
    Unsupported
        If it has syntax without meaning for numbers, reads a name that is not defined or may have
        no value, or may return nothing.
    """
    check_parameters(tree)
    local = {a.arg for a in tree.args.args} | assigned(tree.body)
    for statement in tree.body:
        for node in walk(statement):
            why = find_refusal(node)
            if why is not None:
                raise Unsupported(f"in {tree.name}, {why}", node)
            if _is_missing(node, local):
                raise Unsupported(f"{ast.unparse(node)} is not defined", node)
            if isinstance(node, ast.Return) and node.value is None:
                raise Unsupported(f"{tree.name} returns nothing here", node)
    check_assignments(tree, constants, global_names)
    if falls_through(tree.body):
        raise Unsupported(f"{tree.name} returns nothing on some path", tree)


def check_assignments(
    tree: ast.FunctionDef,
    constants: Mapping[str, Const],
    global_names: Collection[str] | None = None,
    index_ends: bool = False,
) -> None:
    """Check that every name of a function that is read has a value.

    A loop counts as if it had steps: after it, names have the values of its last step. This is
    definite assignment as in The Java Language Specification, chapter 16.

    Parameters
    ----------
    tree : ast.FunctionDef
        The function.
    constants : mapping of str to Const
        Numbers that it can read from outside.
    global_names : collection of str, optional
        All names that it can read from outside; by default, these are not checked.
    index_ends : bool, optional
        Whether the index of a loop has no value after the loop.

    Raises
    ------
    Unsupported
        At the first use of a name that is not defined, or may have no value.
    """
    _Assignments(tree, constants, global_names, index_ends).check()


def _is_missing(node: ast.AST, local: Collection[str]) -> bool:
    """Return whether a node is an attribute that a module does not have."""
    if not isinstance(node, ast.Attribute) or not isinstance(node.value, ast.Name):
        return False
    module = _MODULES.get(node.value.id)
    return module is not None and node.value.id not in local and not hasattr(module, node.attr)


class _Assignments:
    def __init__(
        self,
        tree: ast.FunctionDef,
        constants: Mapping[str, Const],
        global_names: Collection[str] | None,
        index_ends: bool,
    ) -> None:
        self.tree, self.constants, self.global_names = tree, constants, global_names
        self.index_ends = index_ends
        self.parameters = {a.arg for a in tree.args.args}
        self.local = self.parameters | assigned(tree.body)
        self.indices = {
            name for n in walk(tree) if isinstance(n, ast.For) for name in names_in(n.target)
        }
        # For each enclosing loop: the states where `break` leaves it or `continue` ends a step.
        self.exits: list[tuple[list[_State], list[_State]]] = []

    def check(self) -> None:
        self.block(self.tree.body, self.parameters)

    def block(self, body: Collection[ast.stmt], state: _State) -> _State:
        for s in body:
            if state is None:
                return None
            state = self.statement(s, state)
        return state

    def statement(self, s: ast.stmt, state: set[str]) -> _State:
        if isinstance(s, ast.If):
            self.read(s.test, state)
            known = self.truth(s.test)
            if known is not None:
                return self.block(s.body if known else s.orelse, state)
            return _meet(self.block(s.body, state), self.block(s.orelse, state))
        if isinstance(s, ast.For | ast.While):
            return self.loop(s, state)
        if isinstance(s, ast.Break | ast.Continue):
            if self.exits:
                self.exits[-1][isinstance(s, ast.Continue)].append(state)
            return None
        if isinstance(s, ast.AnnAssign):  # whose annotation is not evaluated
            if s.value is None:
                return state
            self.read(s.value, state)
        elif not isinstance(s, ast.Match | ast.Try | ast.TryStar | ast.With | ast.FunctionDef):
            self.read(s, state)
        if isinstance(s, ast.Return | ast.Raise):
            return None
        return state | assigned([s])

    def loop(self, s: ast.For | ast.While, state: set[str]) -> _State:
        self.read(s.iter if isinstance(s, ast.For) else s.test, state)
        index: set[str] = set()
        if isinstance(s, ast.For):
            index = {n for n in names_in(s.target) if n in assigned([s])}
        test = self.truth(s.test) if isinstance(s, ast.While) else None
        self.exits.append(([], []))
        end = self.block(s.body, state | index) if test is not False else state
        breaks, continues = self.exits.pop()
        after = None if test else _meet(end, *continues)
        if after is None and not breaks:
            after = state
        after = _meet(self.block(s.orelse, after), *breaks)
        return after - index if self.index_ends and after is not None else after

    def truth(self, test: ast.expr) -> bool | None:
        """Return the value of a condition, or None if it is not known."""
        if isinstance(test, ast.Constant):
            return bool(test.value)
        if isinstance(test, ast.Name) and test.id in self.constants and test.id not in self.local:
            return bool(self.constants[test.id].value)
        return None

    def read(self, x: ast.AST, state: set[str]) -> None:
        """Check the names that are read in a statement or an expression."""
        nodes = walk(x)
        if any(isinstance(n, _INNER) for n in nodes):
            return  # these have their own scope
        inner = {n.target.id for n in nodes if isinstance(n, ast.NamedExpr)}
        for n in nodes:
            target = x.target if isinstance(x, ast.AugAssign) else None
            if not isinstance(n, ast.Name) or (isinstance(n.ctx, ast.Store) and n is not target):
                continue
            if n.id in state or n.id in inner:
                continue
            if n.id in self.local:
                what = "is read where it may have no value"
                if self.index_ends and n.id in self.indices:
                    what = "is the index of a loop and is read after it"
                raise Unsupported(f"name {n.id!r} {what}", n)
            if self.global_names is not None and n.id not in self.global_names:
                raise Unsupported(f"name {n.id!r} is not defined", n)


def _meet(*states: _State) -> _State:
    """Return the names with a value where several paths meet."""
    known = [s for s in states if s is not None]
    if not known:
        return None
    first, *others = known
    return first.intersection(*others)
