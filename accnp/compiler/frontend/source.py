"""Kernels that are written in restricted Python, as kernels of the loop IR.

The language: a function of `lo`, `hi`, pointers and integers. Statements are assignments to a name
or to an element, `if`, `while`, `for ... in range(...)`, and calls of procedures. Expressions are
numbers, names, elements, operators, comparisons of two values, `and`, `or`, `not`, choices
(`x if c else y`, of which both sides are computed), `z.real`, `z.imag`, `z.conjugate()`, and calls
of the functions in `intrinsics`. `at(p, k)` is the address of element k, and memory comes from
functions such as `stack_f4()` and `heap_f4(n)`. Operators have the types that Numba gives them.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence

from accnp.compiler.frontend.calls import convert_argument, resolve_call
from accnp.compiler.frontend.functions import BINARY, COMPARE, write_call
from accnp.compiler.frontend.indices import as_index, combined_index, is_index
from accnp.compiler.frontend.liveness import Liveness, assigned
from accnp.compiler.frontend.operators import (
    cast_to,
    compared,
    computed,
    constant,
    negated,
    stored_as,
    zero,
)
from accnp.compiler.frontend.syntax import walk
from accnp.compiler.intrinsics.all import TABLE
from accnp.compiler.intrinsics.stack import length_of
from accnp.compiler.loops.builder import call
from accnp.compiler.loops.ir import (
    Address,
    Break,
    Buffer,
    Call,
    Callee,
    Carried,
    Const,
    Do,
    Expr,
    For,
    If,
    Joined,
    Kernel,
    Let,
    Load,
    Memory,
    Run,
    Share,
    Stmt,
    Store,
    Var,
    While,
    dtype,
    number_type,
)
from accnp.compiler.loops.signatures import type_of_call
from accnp.compiler.loops.types import B1, DTYPES, I8, Pointer
from accnp.compiler.loops.verifier import RESERVED
from accnp.compiler.unsupported import Unsupported

__all__ = ["read_kernel"]

_Values = dict[str, Expr | Buffer]
_ZERO, _ONE = Const(0, I8), Const(1, I8)


def read_kernel(
    tree: ast.FunctionDef,
    signature: Sequence[str],
    callees: Sequence[Callee] = (),
    functions: Mapping[str, ast.FunctionDef] | None = None,
) -> Kernel:
    """Return the kernel of a function.

    Parameters
    ----------
    tree : ast.FunctionDef
        The function.
    signature : sequence of str
        A token for each argument after `lo` and `hi`: a type with `*` for a pointer, or `i8`.
    callees : sequence of Callee, optional
        Kernels that it may call, as `name(first, last, ...)`, and whose steps threads may share, as
        `spread(name, sharer, team, helpers, count, chunk, ...)`.
    functions : mapping of str to ast.FunctionDef, optional
        The functions of the source; those that are not kernels are functions of numbers, which it
        may call.

    Raises
    ------
    Unsupported
        If the function is beyond the language.
    """
    return _Reader(tree, signature, callees, functions or {}).kernel()


class _Reader:
    def __init__(
        self,
        tree: ast.FunctionDef,
        signature: Sequence[str],
        callees: Sequence[Callee],
        functions: Mapping[str, ast.FunctionDef],
    ) -> None:
        self.tree = tree
        self.callees = {c.name: c for c in callees}
        self.called: dict[str, Callee] = {}
        self.functions = functions
        self.liveness = Liveness(tree)
        self.blocks: list[list[Stmt]] = [[]]
        self.used: set[str] = {n.id for n in walk(tree) if isinstance(n, ast.Name)} | RESERVED
        self.count = 0
        self.stack: list[Buffer] = []
        self.values: _Values = {}  # of the names so far
        self.indices: set[Var] = set()  # variables that are affine indices
        # Of the loops around, the names that they hand on, with their values at the head.
        self.handed: list[dict[str, Var | None]] = []
        self.pure = False  # whether no statement may be added: in the condition of a loop
        first, last, *names = [a.arg for a in tree.args.args]
        if len(names) != len(signature):
            raise Unsupported(f"{len(names)} arguments for a signature of {len(signature)}")
        self.first, self.last = Var(first), Var(last)
        self.values |= {first: self.first, last: self.last}
        self.buffers: list[Buffer] = []
        self.integers: list[Var] = []
        order: list[Memory] = []
        for name, token in zip(names, signature, strict=True):
            its = self.fresh(name) if name in RESERVED else name
            if token.endswith("*"):
                self.buffers.append(Buffer(its, DTYPES[token[:-1]]))
                self.values[name] = self.buffers[-1]
            elif token == "i8":
                self.integers.append(Var(its))
                self.values[name] = self.integers[-1]
            else:
                raise Unsupported(f"an argument of type {token}")
            order.append(self.buffers[-1] if token.endswith("*") else self.integers[-1])
        in_order = order == [*self.buffers, *self.integers]
        self.order = () if in_order else tuple(order)
        self.sizes = {self.first, self.last, *self.integers}  # what came in
        self.indices |= self.sizes

    def kernel(self) -> Kernel:
        self.body(self.tree.body)
        (block,) = self.blocks
        return Kernel(
            self.first,
            self.last,
            tuple(self.buffers),
            tuple(self.integers),
            tuple(self.stack),
            tuple(block),
            self.tree.name,
            order=self.order,
            callees=tuple(self.called.values()),
            past=next((v for v in self.integers if v.name == "past"), None),
            sized=is_sized(self.tree),
        )

    # --- names ---

    def fresh(self, name: str) -> str:
        """A name that the kernel does not have yet."""
        self.count += 1
        found = f"{name}_{self.count}"
        while found in self.used:
            self.count += 1
            found = f"{name}_{self.count}"
        self.used.add(found)
        return found

    def add(self, s: Stmt) -> None:
        if self.pure:
            raise Unsupported("a condition with effects")
        self.blocks[-1].append(s)

    def let(self, name: str, value: Expr) -> Var:
        var = Var(self.fresh(name), dtype(value))
        self.add(Let(var, value))
        if is_index(value, self.indices):
            self.indices.add(var)
        return var

    def assign(self, name: str, value: Expr | Buffer) -> None:
        if not isinstance(value, Buffer | Const | Var):
            value = self.let(name, value)
        self.values[name] = value

    # --- statements ---

    def body(self, nodes: Sequence[ast.stmt]) -> None:
        for node in nodes:
            self.statement(node)

    def statement(self, s: ast.stmt) -> None:
        if isinstance(s, ast.Assign):
            (target,) = s.targets
            if isinstance(target, ast.Name):
                self.assign(target.id, self.memory_or_value(s.value, target.id))
            elif isinstance(target, ast.Subscript):
                self.store(target, self.expr(s.value))
            else:
                raise Unsupported("an assignment to several names")
        elif isinstance(s, ast.AugAssign) and isinstance(s.target, ast.Name):
            self.assign(s.target.id, self.binary(s.op, self.name(s.target.id), self.expr(s.value)))
        elif isinstance(s, ast.If):
            self.choice(s)
        elif isinstance(s, ast.For):
            self.loop(s)
        elif isinstance(s, ast.While):
            self.condition_loop(s)
        elif isinstance(s, ast.Break):
            self.leave()
        elif isinstance(s, ast.Expr) and isinstance(s.value, ast.Call):
            self.procedure(s.value)
        elif not isinstance(s, ast.Pass) and not (
            isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant)
        ):
            raise Unsupported(type(s).__name__)

    def memory_or_value(self, x: ast.expr, name: str) -> Expr | Buffer:
        """What is assigned: a number, an address, or memory on the stack. Another name of memory is
        an address, whose loops are LLVM's: gathers are slower where there is nothing to compute."""
        function = x.func.id if isinstance(x, ast.Call) and isinstance(x.func, ast.Name) else ""
        found = length_of(function)
        if found is None:
            return self.expr(x, name)
        of, length, exact = found
        self.stack.append(Buffer(self.fresh(name), of, length, exact))
        return self.stack[-1]

    def store(self, target: ast.Subscript, value: Expr) -> None:
        memory = self.memory(target.value)
        self.add(Store(memory, self.index(target.slice), stored_as(value, memory.element)))

    def procedure(self, x: ast.Call) -> None:
        if isinstance(x.func, ast.Name) and x.func.id in (*self.callees, "spread"):
            self.run(x.func.id, x.args)
            return
        name, args = self.arguments(x)
        found = resolve_call(name, args)
        if found is None:
            raise Unsupported(f"a call of {name}")
        result, passed = found
        made = None if result is None else Var(self.fresh(name), result)
        self.add(Do(name, passed, made))

    def run(self, name: str, given: Sequence[ast.expr]) -> None:
        """A call of another kernel, or one that shares its steps among threads."""
        shared = name == "spread"
        if shared:
            name = given[0].id if isinstance(given[0], ast.Name) else ""
            given = given[1:]
        if name not in self.callees:
            raise Unsupported(f"a call of {name}")
        callee = self.called[name] = self.callees[name]
        values = [self.expr(a) for a in given]
        leading, rest = (values[:5], values[5:]) if shared else (values[:2], values[2:])
        if len(rest) != len(callee.arguments):
            raise Unsupported(f"{len(rest)} arguments of {name}")
        first = [as_index(cast_to(v, I8)) for v in leading]
        args = tuple([convert_argument(*pair) for pair in zip(rest, callee.arguments, strict=True)])
        if shared:
            sharer, team, helpers, count, chunk = first
            self.add(Share(name, sharer, team, helpers, count, chunk, args))
        else:
            self.add(Run(name, first[0], first[1], args))

    def inside(self, nodes: Sequence[ast.stmt]) -> tuple[tuple[Stmt, ...], _Values]:
        """The statements of a block, and the values of names after it."""
        before = dict(self.values)
        self.blocks.append([])
        self.body(nodes)
        after, self.values = self.values, before
        return tuple(self.blocks.pop()), after

    def choice(self, s: ast.If) -> None:
        test = self.truth(self.expr(s.test))
        if isinstance(test, Const):
            self.body(s.body if test.value else s.orelse)
            return
        then, values = self.inside(s.body)
        orelse, others = self.inside(s.orelse)
        leaves, other_leaves = (bool(b) and isinstance(b[-1], Break) for b in (then, orelse))
        if leaves and other_leaves:
            self.add(If(test, then, orelse))
            return
        if leaves or other_leaves:  # the other way goes on, with what it has assigned
            self.add(If(test, then, ()) if leaves else If(call("not", test), orelse, ()))
            for other in orelse if leaves else then:
                self.add(other)
            self.values = others if leaves else values
            return
        joined = []
        changed = assigned([*s.body, *s.orelse])
        for name in sorted(changed):
            self.values.pop(name, None)  # a value on one of two ways only
            if name not in self.liveness.after[id(s)]:
                continue
            x, y = values.get(name), others.get(name)
            if x is None and y is None:
                continue
            if x == y:
                assert x is not None
                self.values[name] = x
                continue
            x, y = self.alike(x, y)
            made = Var(self.fresh(name), dtype(x))
            joined.append(Joined(made, x, y))
            self.values[name] = made
        self.add(If(test, then, orelse, tuple(joined)))

    def alike(self, x: Expr | Buffer | None, y: Expr | Buffer | None) -> tuple[Expr, Expr]:
        """Two values that a name may have, of one type; what is missing is 0."""
        given = [self.address(v) for v in (x, y) if v is not None]
        of = dtype(given[0])
        if any(dtype(v) != of for v in given):
            raise Unsupported("a name with numbers of two types")
        if len(given) == 2:
            return given[0], given[1]
        return (zero(of), given[0]) if x is None else (given[0], zero(of))

    def address(self, v: Expr | Buffer) -> Expr:
        return Address(v, _ZERO) if isinstance(v, Buffer) else v

    def leave(self) -> None:
        """Leave the innermost loop."""
        if not self.handed:
            raise Unsupported("break outside of a loop")
        values = []
        for name, head in self.handed[-1].items():
            found = self.values.get(name, head)
            if found is None:
                raise Unsupported("a name that may have no value after break")
            values.append(self.address(found))
        self.add(Break(tuple(values)))

    def handed_on(self, s: ast.For | ast.While, heads: dict[str, Var]) -> dict[str, Var | None]:
        """The names with a value after a loop or in its next step, in the order of `carried`."""
        live = self.liveness.after[id(s)]
        names = sorted(assigned(s.body))
        return {name: heads.get(name) for name in names if name in heads or name in live}

    def heads(self, s: ast.For | ast.While) -> dict[str, Var]:
        """The names that a loop hands from step to step, with variables for them."""
        own = {s.target.id} if isinstance(s, ast.For) and isinstance(s.target, ast.Name) else set()
        found = {}
        for name in sorted((assigned(s.body) & self.liveness.at_head[id(s)]) - own):
            if name in self.values:
                start = self.address(self.values[name])
                found[name] = Var(self.fresh(name), dtype(start))
        return found

    def carried(
        self,
        s: ast.For | ast.While,
        heads: dict[str, Var],
        before: _Values,
        after: _Values,
    ) -> tuple[Carried, ...]:
        """What a loop hands on; the names have the values after it."""
        found = []
        live = self.liveness.after[id(s)]
        for name in sorted(assigned(s.body)):
            self.values.pop(name, None)
            last = after.get(name)
            if name in heads:
                var = heads[name]
                start = self.address(before[name])
                following = var if last is None else self.address(last)
            elif name in live and last is not None:  # has its first value in the loop
                following = self.address(last)
                var = Var(self.fresh(name), dtype(following))
                start = zero(var.dtype)
            else:
                continue
            if dtype(following) != var.dtype:
                raise Unsupported("a name with numbers of two types")
            result = Var(self.fresh(name), var.dtype)
            found.append(Carried(var, start, following, result))
            self.values[name] = result
        return tuple(found)

    def loop(self, s: ast.For) -> None:
        limits = s.iter.args if isinstance(s.iter, ast.Call) else []
        if not isinstance(s.target, ast.Name) or s.orelse or not 1 <= len(limits) <= 3:
            raise Unsupported("a loop over anything but a range")
        if not isinstance(s.iter, ast.Call) or getattr(s.iter.func, "id", "") != "range":
            raise Unsupported("a loop over anything but a range")
        given = [self.index(a) for a in limits]
        start, stop = (_ZERO, given[0]) if len(given) == 1 else (given[0], given[1])
        step = given[2] if len(given) == 3 else _ONE
        before = dict(self.values)
        heads = self.heads(s)
        index = Var(self.fresh(s.target.id))
        self.indices.add(index)
        self.values |= heads
        if isinstance(step, Const) and step.value > 0:
            limits_of_loop = (start, stop, int(step.value))
            user: Expr = index
        else:
            limits_of_loop, user = self.counted(start, stop, step, index)
        self.values[s.target.id] = user
        self.blocks.append([])
        if not isinstance(user, Var):
            self.assign(s.target.id, user)
        self.handed.append(self.handed_on(s, heads))
        self.body(s.body)
        self.handed.pop()
        after, self.values = self.values, dict(before)
        body = tuple(self.blocks.pop())
        if s.target.id in self.liveness.after[id(s)]:
            raise Unsupported("the index of a loop after it")
        after.pop(s.target.id, None)
        carried = self.carried(s, heads, before, after)
        self.values.pop(s.target.id, None)
        self.add(For(index, *limits_of_loop, body, carried=carried))

    def counted(
        self, start: Expr, stop: Expr, step: Expr, index: Var
    ) -> tuple[tuple[Expr, Expr, int], Expr]:
        """The limits of a loop that counts its steps, and the index in terms of its own."""
        if isinstance(step, Const):
            size = Const(-step.value, I8)
            span = self.sum_of("sub", start, stop)
        else:  # is positive: only kernels that are not generated have such a step
            size, span = step, self.sum_of("sub", stop, start)
        more = self.sum_of("add", span, self.sum_of("sub", size, _ONE))
        steps = more if size == _ONE else call("floordiv", more, size)
        index_of = self.sum_of("add", start, self.sum_of("mul", index, step))
        return (_ZERO, steps, 1), index_of

    def sum_of(self, name: str, x: Expr, y: Expr) -> Expr:
        """A sum, a difference or a product of indices."""
        return combined_index(name, x, y) or call(name, x, y)

    def condition_loop(self, s: ast.While) -> None:
        if s.orelse:
            raise Unsupported("else of a loop")
        before = dict(self.values)
        heads = self.heads(s)
        self.values |= heads
        self.pure, outer = True, self.pure
        test = self.truth(self.expr(s.test))
        self.pure = outer
        self.handed.append(self.handed_on(s, heads))
        body, after = self.inside(s.body)
        self.handed.pop()
        self.values = before
        carried = self.carried(s, heads, dict(before), after)
        self.add(While(test, body, carried))

    # --- expressions ---

    def named(self, name: str) -> Expr | Buffer:
        found = self.values.get(name)
        if found is None:
            raise Unsupported(f"{name} is read where it may have no value")
        return found

    def name(self, name: str) -> Expr:
        return self.address(self.named(name))

    def memory(self, x: ast.expr) -> Memory:
        """The memory of which something is an element."""
        found = self.named(x.id) if isinstance(x, ast.Name) else self.expr(x)
        if not isinstance(found, Buffer | Var):
            found = self.let("p", found)
        if isinstance(found, Var) and not isinstance(found.dtype, Pointer):
            raise Unsupported("an element of a number")
        return found

    def index(self, x: ast.expr) -> Expr:
        """An expression as an index."""
        value = self.expr(x)
        if number_type(value).kind not in ("int", "uint"):
            raise Unsupported("an index that is not an integer")
        return as_index(cast_to(value, I8))

    def expr(self, x: ast.expr, name: str = "t") -> Expr:
        if isinstance(x, ast.Name):
            return self.name(x.id)
        if isinstance(x, ast.Constant):
            return constant(x.value)
        if isinstance(x, ast.Subscript):
            return Load(self.memory(x.value), self.index(x.slice))
        if isinstance(x, ast.BinOp):
            return self.binary(x.op, self.expr(x.left), self.expr(x.right))
        if isinstance(x, ast.Compare) and len(x.ops) == 1:
            op = COMPARE.get(type(x.ops[0]))
            if op is None:
                raise Unsupported(type(x.ops[0]).__name__)
            return compared(op, self.expr(x.left), self.expr(x.comparators[0]))
        if isinstance(x, ast.UnaryOp):
            return self.unary(x)
        if isinstance(x, ast.BoolOp):
            return self.logical(x)
        if isinstance(x, ast.IfExp):
            test = self.truth(self.expr(x.test))
            a, b = self.expr(x.body), self.expr(x.orelse)
            if dtype(a) != dtype(b):
                raise Unsupported("a choice between two types")
            return Call("select", (test, a, b), dtype(a))
        if isinstance(x, ast.Attribute):
            return self.part(x.attr, self.expr(x.value))
        if isinstance(x, ast.Call):
            return self.call(x, name)
        raise Unsupported(type(x).__name__)

    def binary(self, op: ast.operator, x: Expr, y: Expr) -> Expr:
        name = BINARY.get(type(op))
        if name is None:
            raise Unsupported(type(op).__name__)
        of_size = name == "floor_quotient" and isinstance(y, Var) and y in self.sizes
        if of_size and dtype(x) == I8:
            return call("floordiv", x, y)
        if is_index(x, self.indices) and is_index(y, self.indices):
            found = combined_index(name, x, y)
            if found is not None:
                return found
        return computed(name, x, y)

    def unary(self, x: ast.UnaryOp) -> Expr:
        value = self.expr(x.operand)
        if isinstance(x.op, ast.Not):
            return call("not", self.truth(value))
        if isinstance(x.op, ast.USub) and isinstance(value, Const) and value.dtype != B1:
            return constant(-value.value)
        if isinstance(x.op, ast.UAdd):
            raise Unsupported("a sign without effect")
        return negated("neg" if isinstance(x.op, ast.USub) else "not", value)

    def logical(self, x: ast.BoolOp) -> Expr:
        first, *others = [self.expr(v) for v in x.values]
        if any(dtype(v) != B1 for v in (first, *others)):
            raise Unsupported("and, or of values that are not bool")
        for other in others:
            first = call("or" if isinstance(x.op, ast.Or) else "and", first, other)
        return first

    def truth(self, x: Expr) -> Expr:
        return cast_to(x, B1) if not isinstance(x, Const) else Const(bool(x.value), B1)

    def part(self, attribute: str, z: Expr) -> Expr:
        if attribute not in ("real", "imag"):
            raise Unsupported(f"the attribute {attribute}")
        return call(attribute, z)

    def arguments(self, x: ast.Call) -> tuple[str, list[Expr]]:
        if not isinstance(x.func, ast.Name) or x.keywords:
            raise Unsupported(f"a call of {ast.unparse(x.func)}")
        if x.func.id in self.values:
            raise Unsupported(f"a call of the variable {x.func.id}")
        return x.func.id, [self.expr(a) for a in x.args]

    def call(self, x: ast.Call, name: str) -> Expr:
        if isinstance(x.func, ast.Attribute) and x.func.attr == "conjugate" and not x.args:
            z = self.expr(x.func.value)
            return call("conj", z) if number_type(z).kind == "complex" else z
        function, args = self.arguments(x)
        if function in self.functions:
            return write_call(function, args, self.functions, self.let)
        if function == "asked":
            return Call("asked", (), I8)
        if function == "at":
            memory = self.memory(x.args[0])
            return Address(memory, self.index(x.args[1]))
        if function in DTYPES and len(args) == 1:
            return cast_to(args[0], DTYPES[function])
        result, passed = resolve_call(function, args) or (None, ())
        if result is None:
            result, passed = type_of_call(function, [dtype(a) for a in args]), tuple(args)
        if result is None:
            raise Unsupported(f"a call of {function}")
        if function in TABLE and TABLE[function].acts:
            made = Var(self.fresh(name), result)
            self.add(Do(function, passed, made))
            return made
        return Call(function, passed, result)


def is_sized(tree: ast.FunctionDef) -> bool:
    """Return whether a kernel begins with its sizes, that of its range among them."""
    for s in tree.body:
        match s:
            case ast.Assign([ast.Name("hi")], ast.Constant(int())):
                return True
            case ast.Assign([ast.Name()], ast.Constant(int())):
                pass
            case _:
                break
    return False
