"""What the text of a kernel shows: which of its names mean memory, whether the steps of a loop may
be done side by side, and how long they are.

In: an innermost loop and the names that each mean memory of their own. Out: the names that get a
value in each step and those of the memory that is read or written, or a reason.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Collection

from accnp.compiler.frontend.syntax import walk

__all__ = [
    "LOOP", "SMALL", "addends", "calls", "independent", "known_sizes", "memory_of", "mentions",
    "sizes_of", "weight",
]  # fmt: skip

SMALL = 32  # instructions of a body that has a copy without mask, for whole vectors
# Functions of a few instructions.
_CHEAP = frozenset("f4 f8 i4 i8 u4 u8 b1 sq abs sqrt fmax fmin fma select one".split())  # noqa: SIM905


def memory_of(function: ast.FunctionDef) -> tuple[set[str], set[str]]:
    """Names of a kernel that each mean memory of its own: pointers that come in or that the heap
    gives, tiles, and scratch, which has room for whole vectors."""
    given, scratch = {a.arg for a in function.args.args}, set[str]()
    for node in walk(function):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            call, name = node.value, node.targets[0].id
            made = getattr(call.func, "id", "") if isinstance(call, ast.Call) else ""
            own = made.startswith(("heap_", "slab_", "tile_"))
            (given.add if own else given.discard)(name)
            (scratch.add if made.startswith("stack_") else scratch.discard)(name)
    return given, scratch


def sizes_of(function: ast.FunctionDef) -> set[str]:
    """Names of a kernel's arguments that nothing is assigned to: of whole numbers, what came in."""
    names = [n for n in walk(function) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]
    return {a.arg for a in function.args.args} - {n.id for n in names}


def known_sizes(function: ast.FunctionDef) -> dict[str, int]:
    """Sizes that a tiny kernel has in its text (`with_sizes`), by name."""
    found = {}
    for s in function.body:
        match s:
            case ast.Assign([ast.Name(name)], ast.Constant(int(n))):
                found[name] = n
            case _:
                break
    return found if "hi" in found else {}


LOOP = "for"  # what loops are counted under, which is no name


def mentions(tree: ast.AST) -> Counter[str]:
    """How often each name stands in a piece of syntax, and how many loops do."""
    found = walk(tree)
    names = Counter([x.id for x in found if isinstance(x, ast.Name)])
    names[LOOP] = sum([isinstance(x, ast.For | ast.While) for x in found])
    return names


def calls(node: ast.For) -> bool:
    """Whether the body of a loop calls a function of more than a few instructions."""
    found = [x.func for x in walk(ast.Module(node.body, [])) if isinstance(x, ast.Call)]
    return any(not isinstance(f, ast.Name) or f.id not in _CHEAP for f in found)


def weight(node: ast.For) -> int:
    """About as many instructions as the body of a loop has."""
    size = 0
    for x in walk(ast.Module(node.body, [])):
        if isinstance(x, ast.Call) and isinstance(x.func, ast.Name):
            size += 2 if x.func.id in _CHEAP else SMALL // 2
        elif isinstance(x, ast.BinOp | ast.Compare | ast.BoolOp | ast.IfExp | ast.UnaryOp):
            size += 1
    return size


def addends(x: ast.expr) -> list[ast.expr]:
    """What adds up to an expression."""
    if isinstance(x, ast.BinOp) and isinstance(x.op, ast.Add):
        return [*addends(x.left), *addends(x.right)]
    return [x]


def independent(node: ast.For, distinct: Collection[str]) -> tuple[set[str], set[str]]:
    """The names that a step gives a value, and those of memory.

    Raises:
        ValueError: a step may need what another one does.
    """
    assert isinstance(node.target, ast.Name)
    loads: dict[str, set[str]] = {}
    stores: dict[str, set[str]] = {}
    assigned = {node.target.id}
    scaled: set[str] = set()  # names with multiples of the index
    named = [t.id for s in node.body for t in getattr(s, "targets", ()) if type(t) is ast.Name]
    later = set(named) - assigned  # names that get their first value below
    for s in node.body:
        if not isinstance(s, ast.Assign) or len(s.targets) != 1:
            raise ValueError("a statement that is no assignment")
        for x in walk(s.value):
            if isinstance(x, ast.Name) and x.id in later:
                raise ValueError(f"{x.id} is carried from step to step")
            if isinstance(x, ast.Subscript):
                loads.setdefault(_base(x, distinct), set()).add(ast.dump(x.slice))
        target = s.targets[0]
        if isinstance(target, ast.Name):
            assigned.add(target.id)
            later.discard(target.id)
            if _is_scaled(s.value, assigned, scaled):
                scaled.add(target.id)
        elif isinstance(target, ast.Subscript):
            if _is_scaled(target.slice, assigned, scaled):
                raise ValueError("a strided store")
            stores.setdefault(_base(target, distinct), set()).add(ast.dump(target.slice))
        else:
            raise ValueError("an assignment to several names")
    for base, places in stores.items():
        if len(places | loads.get(base, set())) > 1:
            raise ValueError(f"{base} is read and written at several places")
    if not stores:
        raise ValueError("nothing is stored")
    return assigned, {*loads, *stores}


def _is_scaled(x: ast.expr, assigned: set[str], scaled: set[str]) -> bool:
    """Whether an expression multiplies what changes from step to step."""
    for n in walk(x):
        if isinstance(n, ast.Name) and n.id in scaled:
            return True
        if isinstance(n, ast.BinOp) and isinstance(n.op, ast.Mult):
            names = {m.id for m in walk(n) if isinstance(m, ast.Name)}
            if names & assigned:
                return True
    return False


def _base(x: ast.Subscript, distinct: Collection[str]) -> str:
    """The name of the memory of an access, which no other name of the kernel means."""
    if not isinstance(x.value, ast.Name) or x.value.id not in distinct:
        raise ValueError("an access through a computed pointer")
    return x.value.id
