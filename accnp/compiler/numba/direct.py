"""Source of kernels for GPUs to LLVM in one walk over its tree, with Numba's types and code.

In: the definition of a kernel and the types of its arguments. Out: an llvmlite module. Numba's own
pipeline goes from bytecode over an intermediate form and type inference by fixed point, which the
straight code of kernels does not need: every name gets its type from the first value it is given.
What is beyond this (`Unsupported`) takes Numba's way. Measured: 5 to 8 times faster.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Mapping, Sequence
from typing import Any

from llvmlite import ir
from numba.core import types
from numba.core.errors import NumbaError

from accnp.compiler.frontend.syntax import walk
from accnp.compiler.llvm.called_functions import lower_function
from accnp.compiler.llvm.registers import from_memory, memory_type, to_memory
from accnp.compiler.numba.halves import Half, loaded, stored
from accnp.compiler.numba.namespace import OWN, SCALARS
from accnp.compiler.unsupported import Unsupported as BeyondLanguage

__all__ = ["Function", "Unsupported", "build"]


class Unsupported(Exception):
    """A construct, or a mixture of types, that is left to Numba's own pipeline."""


BINARY: dict[type, Any] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul,
    ast.Div: operator.truediv, ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod,
    ast.BitAnd: operator.and_, ast.BitOr: operator.or_, ast.BitXor: operator.xor,
    ast.LShift: operator.lshift, ast.RShift: operator.rshift,
}  # fmt: skip
COMPARE: dict[type, Any] = {
    ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge,
    ast.Eq: operator.eq, ast.NotEq: operator.ne,
}  # fmt: skip
_UNARY: dict[type, Any] = {ast.USub: operator.neg, ast.Invert: operator.invert}

Typed = tuple[Any, Any]  # a Numba type and an LLVM value


def build(
    function: ast.FunctionDef,
    scope: Mapping[str, Any],
    arguments: Sequence[Any],
    context: Any,
    library: Any,
) -> tuple[Any, Any]:
    """The module of a kernel, and the function in it, which has Numba's calling convention.

    Raises:
        Unsupported: Numba's own pipeline must do it.
    """
    with context.push_code_library(library):
        try:
            return Function(function, scope, arguments, context, library).run()
        except (NumbaError, NotImplementedError) as error:
            raise Unsupported(str(error)) from error


def _sizes_of(function: ast.FunctionDef) -> set[str]:
    """Names of a kernel's arguments that nothing is assigned to: of whole numbers, what came in."""
    names = [n for n in walk(function) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]
    return {a.arg for a in function.args.args} - {n.id for n in names}


class Function:
    def __init__(
        self,
        function: ast.FunctionDef,
        scope: Mapping[str, Any],
        arguments: Sequence[Any],
        context: Any,
        library: Any,
    ) -> None:
        self.tree = function
        self.scope = scope
        self.arguments = arguments
        self.context = context
        self.library = library
        self.typing = context.typing_context
        self.module = library.create_ir_module(f"accnp_{function.name}")
        self.names: dict[str, tuple[Any, Any]] = {}  # types and places of the variables
        self.exits: list[Any] = []  # where `break` goes, of the loops around
        memo = context.__dict__
        self.found: dict[tuple, tuple] = memo.setdefault("accnp_implementations", {})
        self.sizes = _sizes_of(function)

    def run(self) -> tuple[Any, Any]:
        convention = self.context.call_conv
        kind = convention.get_function_type(types.none, self.arguments)
        made = ir.Function(self.module, kind, f"accnp_{self.tree.name}_body")
        parameters = [a.arg for a in self.tree.args.args]
        convention.decorate_function(made, parameters, self.arguments, noalias=True)
        entry = made.append_basic_block("entry")
        body = made.append_basic_block("body")
        self.b: Any = ir.IRBuilder(entry)
        self.b.branch(body)
        self.top = ir.IRBuilder(entry)  # where variables get their places
        self.top.position_at_start(entry)
        self.b.position_at_end(body)
        for name, kind, value in zip(
            parameters, self.arguments, convention.get_arguments(made), strict=True
        ):
            self.assign(name, (kind, value))
        self.statements(self.tree.body)
        self.b.ret(ir.Constant(ir.IntType(32), 0))
        self.context.post_lowering(self.module, None)
        return self.module, made

    # --- statements ---

    def statements(self, nodes: Sequence[ast.stmt]) -> None:
        for node in nodes:
            method = getattr(self, f"do_{type(node).__name__}", None)
            if method is None:
                raise Unsupported(type(node).__name__)
            method(node)

    def do_Pass(self, node: ast.Pass) -> None:
        pass

    def do_Expr(self, node: ast.Expr) -> None:
        if not isinstance(node.value, ast.Constant):  # a docstring
            self.value(node.value)

    def do_Assign(self, node: ast.Assign) -> None:
        (target,) = node.targets
        value = self.value(node.value)
        if isinstance(target, ast.Name):
            self.assign(target.id, value)
        elif isinstance(target, ast.Subscript):
            self.store(target, value)
        else:
            raise Unsupported("assignment to several names")

    def do_AugAssign(self, node: ast.AugAssign) -> None:
        if not isinstance(node.target, ast.Name):
            raise Unsupported("augmented assignment")
        old = self.load(node.target.id)
        self.assign(node.target.id, self.binary(BINARY[type(node.op)], old, self.value(node.value)))

    def do_Break(self, node: ast.Break) -> None:
        self.b.branch(self.exits[-1])
        # What follows is never reached, and needs a block to be in.
        self.b.position_at_end(self.b.append_basic_block("after"))

    def do_If(self, node: ast.If) -> None:
        test = self.truth(self.value(node.test))
        if node.orelse:
            with self.b.if_else(test) as (then, otherwise):
                with then:
                    self.statements(node.body)
                with otherwise:
                    self.statements(node.orelse)
        else:
            with self.b.if_then(test):
                self.statements(node.body)

    def do_While(self, node: ast.While) -> None:
        head, body, end = (self.b.append_basic_block(n) for n in ("while", "body", "end"))
        self.b.branch(head)
        self.b.position_at_end(head)
        self.b.cbranch(self.truth(self.value(node.test)), body, end)
        self.b.position_at_end(body)
        self.exits.append(end)
        self.statements(node.body)
        self.exits.pop()
        self.b.branch(head)
        self.b.position_at_end(end)

    def do_For(self, node: ast.For) -> None:
        call = node.iter
        is_range = isinstance(call, ast.Call) and getattr(call.func, "id", "") == "range"
        if not is_range or not isinstance(node.target, ast.Name) or node.orelse:
            raise Unsupported("a loop over anything but a range")
        assert isinstance(call, ast.Call)
        limits = [self.cast(self.value(a), types.int64) for a in call.args[:2]]
        start, stop = limits if len(limits) == 2 else (ir.Constant(ir.IntType(64), 0), *limits)
        one = ir.Constant(ir.IntType(64), 1)
        step = self.cast(self.value(call.args[2]), types.int64) if len(call.args) == 3 else one
        if not isinstance(step, ir.Constant):
            # Only kernels that are not generated have such a step; it is positive.
            steps = self.b.sdiv(self.b.sub(self.b.add(self.b.sub(stop, start), step), one), step)
            return self.loop(node, ir.Constant(ir.IntType(64), 0), steps, one, (start, step))
        return self.loop(node, start, stop, step)

    def loop(
        self,
        node: ast.For,
        start: Any,
        stop: Any,
        step: Any,
        scale: tuple[Any, Any] | None = None,
    ) -> None:
        """A loop with a constant step; `scale` gives the user's index from its own."""
        assert isinstance(node.target, ast.Name)
        place = self.top.alloca(ir.IntType(64))
        self.b.store(start, place)
        head, body, end = (self.b.append_basic_block(n) for n in ("for", "body", "end"))
        self.b.branch(head)
        self.b.position_at_end(head)
        now = self.b.load(place)
        self.b.cbranch(self.b.icmp_signed("<" if step.constant > 0 else ">", now, stop), body, end)
        self.b.position_at_end(body)
        index = now
        if scale is not None:
            index = self.b.add(scale[0], self.b.mul(now, scale[1]))
        self.assign(node.target.id, (types.int64, index))
        self.exits.append(end)
        self.statements(node.body)
        self.exits.pop()
        # An index that is used never leaves the range: it does not overflow.
        following = self.b.add(now, step, flags=("nsw",))
        self.b.store(following, place)
        self.b.branch(head)
        self.b.position_at_end(end)

    # --- variables ---

    def assign(self, name: str, value: Typed) -> None:
        kind, v = value
        known = self.names.get(name)
        if known is None:
            place = self.top.alloca(v.type)
            known = self.names[name] = (kind, place)
        elif known[0] != kind:
            raise Unsupported(f"{name} holds both {known[0]} and {kind}")
        self.b.store(v, known[1])

    def load(self, name: str) -> Typed:
        if name not in self.names:
            raise Unsupported(f"{name} is read before it is given a value")
        kind, place = self.names[name]
        return kind, self.b.load(place)

    def pointer(self, node: ast.Subscript) -> Typed:
        kind, base = self.value(node.value)
        if not isinstance(kind, types.CPointer):
            raise Unsupported("an index into anything but a pointer")
        index = self.cast(self.value(node.slice), types.int64)
        return kind.dtype, self.b.gep(base, [index])

    def store(self, target: ast.Subscript, value: Typed) -> None:
        kind, place = self.pointer(target)
        v = self.cast(value, kind)
        if kind is types.boolean:
            v = self.b.zext(v, ir.IntType(8))
        elif isinstance(kind, Half):
            v = stored(self.b, kind, v)
        self.b.store(v, place)

    # --- expressions ---

    def value(self, node: ast.expr) -> Typed:
        method = getattr(self, f"of_{type(node).__name__}", None)
        if method is None:
            raise Unsupported(type(node).__name__)
        return method(node)

    def of_Name(self, node: ast.Name) -> Typed:
        return self.load(node.id)

    def of_Constant(self, node: ast.Constant) -> Typed:
        return self.constant(node.value)

    def constant(self, value: Any) -> Typed:
        kinds = {bool: types.boolean, int: types.int64, float: types.float64}
        kind = kinds.get(type(value))
        if kind is None or (kind is types.int64 and not -(2**63) <= value < 2**63):
            raise Unsupported(f"the constant {value!r}")
        return kind, self.context.get_constant(kind, value)

    def of_Subscript(self, node: ast.Subscript) -> Typed:
        kind, place = self.pointer(node)
        v = self.b.load(place)
        if kind is types.boolean:
            v = self.b.icmp_unsigned("!=", v, ir.Constant(ir.IntType(8), 0))
        elif isinstance(kind, Half):
            v = loaded(self.b, kind, v)
        return kind, v

    def of_Attribute(self, node: ast.Attribute) -> Typed:
        kind, v = self.value(node.value)
        result = self.typing.resolve_getattr(kind, node.attr)
        if result is None:
            raise Unsupported(f"the attribute {node.attr}")
        get = self.context.get_getattr(kind, node.attr)
        return result, get(self.context, self.b, kind, v, node.attr)

    def of_BinOp(self, node: ast.BinOp) -> Typed:
        op = BINARY.get(type(node.op))
        if op is None:
            raise Unsupported(type(node.op).__name__)
        a, b = self.value(node.left), self.value(node.right)
        whole = a[0] == b[0] == types.int64
        size = isinstance(node.right, ast.Name) and node.right.id in self.sizes
        if whole and size and isinstance(node.op, ast.FloorDiv):
            return types.int64, self.quotient(a[1], b[1])
        return self.binary(op, a, b)

    def quotient(self, a: Any, b: Any) -> Any:
        """a // b, where b is a size that came in: Numba's code has branches for all other b."""
        zero = ir.Constant(ir.IntType(64), 0)
        b = self.b.or_(b, self.b.zext(self.b.icmp_signed("==", b, zero), ir.IntType(64)))
        q = self.b.sdiv(a, b)
        rest = self.b.sub(a, self.b.mul(q, b))
        return self.b.add(q, self.b.ashr(rest, ir.Constant(ir.IntType(64), 63)))

    def binary(self, op: Any, a: Typed, b: Typed) -> Typed:
        return self.apply(op, [a, b])

    def of_Compare(self, node: ast.Compare) -> Typed:
        op = COMPARE.get(type(node.ops[0]))
        if op is None or len(node.ops) != 1:
            raise Unsupported("a comparison of several values")
        return self.apply(op, [self.value(node.left), self.value(node.comparators[0])])

    def of_UnaryOp(self, node: ast.UnaryOp) -> Typed:
        if isinstance(node.op, ast.Not):
            return types.boolean, self.b.not_(self.truth(self.value(node.operand)))
        operand = node.operand
        if isinstance(node.op, ast.USub) and isinstance(operand, ast.Constant):
            assert isinstance(operand.value, int | float)
            return self.constant(-operand.value)
        op = _UNARY.get(type(node.op))
        if op is None:
            raise Unsupported(type(node.op).__name__)
        return self.apply(op, [self.value(operand)])

    def of_BoolOp(self, node: ast.BoolOp) -> Typed:
        # Operands have no effects: all of them may be computed.
        first, *others = [self.value(v) for v in node.values]
        if any(kind is not types.boolean for kind, _ in (first, *others)):
            raise Unsupported("and, or of values that are not bool")
        join = self.b.or_ if isinstance(node.op, ast.Or) else self.b.and_
        v = first[1]
        for _, other in others:
            v = join(v, other)
        return types.boolean, v

    def of_IfExp(self, node: ast.IfExp) -> Typed:
        test = self.truth(self.value(node.test))
        a, b = self.value(node.body), self.value(node.orelse)
        if a[0] != b[0]:
            raise Unsupported("a choice between two types")
        return a[0], self.b.select(test, a[1], b[1])

    def of_Call(self, node: ast.Call) -> Typed:
        if not isinstance(node.func, ast.Name) or node.keywords or node.func.id in self.names:
            raise Unsupported("a call of anything but a name")
        if node.func.id == "asked":
            return types.int64, ir.Constant(ir.IntType(64), 0)
        callee = self.scope.get(node.func.id)
        arguments = [self.value(a) for a in node.args]
        if isinstance(callee, types.ExternalFunction):
            return self.call(callee, arguments)
        if callee is None or isinstance(callee, types.Type):
            raise Unsupported(f"a call of {node.func.id}")
        return self.apply(callee, arguments)

    def call(self, callee: Any, arguments: Sequence[Typed]) -> Typed:
        """Call another kernel."""
        values = [self.cast(a, k) for a, k in zip(arguments, callee.sig.args, strict=True)]
        self.b.call(self.declared(callee, [v.type for v in values]), values)
        return types.none, self.context.get_dummy_value()

    def declared(self, callee: Any, kinds: Sequence[Any]) -> Any:
        """Another kernel in this module."""
        known = self.module.globals.get(callee.symbol)
        if known is None:
            kind = ir.FunctionType(ir.VoidType(), kinds)
            known = ir.Function(self.module, kind, callee.symbol)
        return known

    def apply(self, callee: Any, arguments: Sequence[Typed]) -> Typed:
        """Apply an operator or an intrinsic, as Numba's typing of it says, or a function of the
        user's, which is written in its place."""
        functions = getattr(callee, "accnp_functions", None)
        if functions is not None:
            return self.called(callee.__name__, functions, arguments)
        kinds = tuple([kind for kind, _ in arguments])
        found = self.found.get((callee, kinds))
        if found is None:
            try:
                kind = self.typing.resolve_value_type(callee)
            except ValueError:
                raise Unsupported(f"a call of {callee}") from None
            signature = self.typing.resolve_function_type(kind, kinds, {})
            if signature is None:
                raise Unsupported(f"{callee} of {kinds}")
            found = (signature, self.context.get_function(kind, signature))
            self.found[callee, kinds] = found
        signature, implementation = found
        cast = self.context.cast
        values = [
            v if kind == to else cast(self.b, v, kind, to)
            for (kind, v), to in zip(arguments, signature.args, strict=True)
        ]
        return signature.return_type, implementation(self.b, values)

    def called(
        self, name: str, functions: Mapping[str, ast.FunctionDef], arguments: Sequence[Typed]
    ) -> Typed:
        """Call a user function, which is loop IR."""
        of = [OWN.get(kind) for kind, _ in arguments]
        numbers = [t for t in of if t is not None]
        if len(numbers) != len(of):
            raise Unsupported(f"{name} of memory")
        module = self.library.create_ir_module(f"accnp_{name}")
        try:
            found = lower_function(name, functions, numbers, module, bool(self.context.fastmath))
        except BeyondLanguage as error:
            raise Unsupported(str(error)) from error
        self.library.texts[found.symbol] = found.text
        places = [self.top.alloca(memory_type(t)) for t in (*numbers, found.result)]
        for t, (_, v), place in zip(numbers, arguments, places, strict=False):
            self.b.store(to_memory(t, self.b, v), place)
        zero = ir.Constant(ir.IntType(64), 0)
        kind = ir.FunctionType(ir.VoidType(), [zero.type, zero.type, *[p.type for p in places]])
        function = self.module.globals.get(found.symbol)
        function = function or ir.Function(self.module, kind, found.symbol)
        self.b.call(function, [zero, zero, *places])
        made = from_memory(found.result, self.b, self.b.load(places[-1]))
        return SCALARS[found.result.token], made

    def cast(self, value: Typed, to: Any) -> Any:
        kind, v = value
        return v if kind == to else self.context.cast(self.b, v, kind, to)

    def truth(self, value: Typed) -> Any:
        return self.cast(value, types.boolean)
