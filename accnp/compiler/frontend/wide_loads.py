"""Vector loads in restricted Python: `v = load4(p, i)`, and `part(v, k)` for an element of `v`.

The loop IR has no vector values. `name_elements` therefore rewrites the syntax tree of a kernel
before `source.py` reads it: each vector variable becomes one variable for each element. For
example, `v = load4(p, i)` becomes `v_0, v_1, v_2, v_3 = load4(p, i)`, and `part(v, 1)` becomes
`v_1`. Branches and loops then treat the elements like other variables.
"""

from __future__ import annotations

import ast
from typing import cast

from accnp.compiler.frontend.syntax import called_function, walk
from accnp.compiler.loops.visiting import make_unique_name
from accnp.compiler.unsupported import Unsupported

__all__ = ["LOADS", "STORES", "name_elements"]

# Functions that access several adjacent elements, and the number of elements.
LOADS = {"load2": 2, "load4": 4}
STORES = {"store2": 2, "store4": 4}


def name_elements(tree: ast.FunctionDef) -> ast.FunctionDef:
    """Return a function in which each vector variable is replaced by variables for its elements.

    Raises
    ------
    Unsupported
        If a vector is not assigned to a variable, or is used other than as the first argument of
        `part` with a constant index.
    """
    nodes = walk(tree)
    loads = [n for n in nodes if isinstance(n, ast.Assign) and called_function(n.value) in LOADS]
    if not loads:
        return tree
    used_names = {n.id for n in nodes if isinstance(n, ast.Name)}
    vectors: dict[str, list[str]] = {}
    for s in loads:
        (target,) = s.targets
        if not isinstance(target, ast.Name):
            raise Unsupported("a vector that is not given a name", s)
        count = LOADS[called_function(s.value)]
        names = vectors.setdefault(target.id, [])
        for k in range(len(names), count):
            names.append(make_unique_name(f"{target.id}_{k}", used_names))
            used_names.add(names[-1])
    return cast("ast.FunctionDef", _Elements(vectors).visit(tree))


class _Elements(ast.NodeTransformer):
    """Replaces vectors by their elements in assignments and calls of `part`.

    `vectors` has the names of the elements, by the name of the vector.
    """

    def __init__(self, vectors: dict[str, list[str]]) -> None:
        self.vectors = vectors

    def visit_Assign(self, node: ast.Assign) -> ast.Assign:
        (target,) = node.targets
        value = self.visit(node.value)
        if isinstance(target, ast.Name) and target.id in self.vectors:
            count = LOADS.get(called_function(node.value), 0)
            names: list[ast.expr] = [
                ast.Name(n, ast.Store()) for n in self.vectors[target.id][:count]
            ]
            targets: list[ast.expr] = [ast.Tuple(names, ast.Store())]
            return ast.copy_location(ast.Assign(targets, value), node)
        return ast.copy_location(ast.Assign([self.visit(target)], value), node)

    def visit_Call(self, node: ast.Call) -> ast.expr:
        if called_function(node) != "part":
            return cast("ast.expr", self.generic_visit(node))
        vector, number = node.args
        names = self.vectors.get(getattr(vector, "id", ""), [])
        which = number.value if isinstance(number, ast.Constant) else None
        if not isinstance(which, int) or not 0 <= which < len(names):
            raise Unsupported("a part of something else than a vector", node)
        return ast.copy_location(ast.Name(names[which], ast.Load()), node)

    def visit_Name(self, node: ast.Name) -> ast.Name:
        if node.id in self.vectors:
            raise Unsupported(f"the vector {node.id} as a number", node)
        return node
