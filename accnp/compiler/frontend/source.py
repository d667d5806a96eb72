"""Kernels that are written in restricted Python, as kernels of the loop IR.

A kernel is a function of `lo`, `hi`, pointers and integers. Its statements are assignments to a
name or to an element, `if`, `while`, `for ... in range(...)`, and calls of procedures. Its
expressions are those of functions of users (`expressions`), elements, `z.real`, `z.imag`,
`z.conjugate()`, and calls of the functions in `intrinsics`; both sides of `x if c else y` are
computed. `at(p, k)` is the address of element k, and memory comes from functions such as
`stack_f4()` and `heap_f4(n)`. A kernel for GPUs has neither `lo` nor `hi`, unless others call it;
it may call the functions in `intrinsics.grid`, share memory among the threads of a block
(`shared_f4(n)`), and access several elements at once (`wide_loads`).
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence

from accnp.compiler.frontend.calls import convert_argument, resolve_call
from accnp.compiler.frontend.checks import check_assignments, check_parameters
from accnp.compiler.frontend.expressions import Expressions
from accnp.compiler.frontend.functions import UserFunctions
from accnp.compiler.frontend.indices import as_index, combined_index, is_index
from accnp.compiler.frontend.liveness import assigned
from accnp.compiler.frontend.number_functions import number_function
from accnp.compiler.frontend.statements import Statements, StatementWriter, as_type
from accnp.compiler.frontend.syntax import called_function, walk
from accnp.compiler.frontend.wide_loads import LOADS, STORES, name_elements
from accnp.compiler.ir_tools.signatures import is_of_gpu, type_of_call
from accnp.compiler.ir_tools.verifier import OF_GPUS, RESERVED, VerificationError, verify
from accnp.compiler.llvm.intrinsics.all import TABLE
from accnp.compiler.llvm.intrinsics.stack import length_of
from accnp.compiler.loops.builder import call
from accnp.compiler.loops.functions import FUNCTIONS
from accnp.compiler.loops.ir import (
    Address,
    Buffer,
    Call,
    Callee,
    Const,
    Do,
    Expr,
    Kernel,
    Load,
    LoadVector,
    Memory,
    Run,
    Share,
    Store,
    StoreVector,
    Var,
    dtype,
)
from accnp.compiler.loops.operators import (
    BINARY,
    cast_to,
    common_type,
    computed,
    number_of,
    stored_as,
    symbol_of,
)
from accnp.compiler.loops.types import B1, DTYPES, I8, U1, DType, Pointer
from accnp.compiler.unsupported import Unsupported

__all__ = ["read_kernel"]


def read_kernel(
    tree: ast.FunctionDef,
    signature: Sequence[str],
    callees: Sequence[Callee] = (),
    functions: Mapping[str, ast.FunctionDef] | None = None,
    constants: Mapping[str, Const] | None = None,
    threads: int = 0,
    called: bool = False,
    check: bool = False,
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
        `parallel_for(name, sharer, pool, helpers, count, chunk, ...)`.
    functions : mapping of str to ast.FunctionDef, optional
        The functions of the source; those that are not kernels are functions of numbers, which it
        may call.
    constants : mapping of str to Const, optional
        The numbers of the source, by name.
    threads : int, optional
        For a kernel for GPUs, the number of threads of a block.
    called : bool, optional
        Whether others call the kernel with steps to do: only such kernels for GPUs have `lo` and
        `hi`.
    check : bool, optional
        Whether the kernel is verified.

    Raises
    ------
    Unsupported
        If the function is beyond the language, or the kernel is not well formed.
    ValueError
        If the signature is not one of its arguments.
    """
    check_parameters(tree)
    out = StatementWriter(
        {n.id for n in walk(tree) if isinstance(n, ast.Name)} | RESERVED | OF_GPUS
    )
    users = UserFunctions(functions or {}, out, constants or {})
    ranged = called or not threads
    tree = name_elements(tree) if threads else tree
    kernel = _Reader(tree, signature, callees, users, threads, ranged).kernel()
    if check:
        try:
            verify(kernel)
        except VerificationError as error:
            unsupported = Unsupported(error.reason)
            unsupported.line = out.lines.get(id(error.statement), tree.lineno)
            raise unsupported from None
    return kernel


class _Reader(Expressions, Statements):
    branches = True

    def __init__(
        self,
        tree: ast.FunctionDef,
        signature: Sequence[str],
        callees: Sequence[Callee],
        users: UserFunctions,
        threads: int,
        ranged: bool,
    ) -> None:
        Statements.__init__(self, tree, users.out)
        live = self.liveness  # which is there already, and says whether to look for a name
        if live.after_loops or not live.at_entry.isdisjoint(assigned(tree.body)):
            check_assignments(tree, users.constants, index_ends=True)
        self.callees = {c.name: c for c in callees}
        self.called: dict[str, Callee] = {}
        self.users = users
        self.threads = threads
        self.shared: list[Buffer] = []
        self.indices: set[Var] = set()  # variables that are affine indices
        names = [a.arg for a in tree.args.args]
        steps = names[:2] if ranged else [self.out.fresh("lo"), self.out.fresh("hi")]
        names = names[2:] if ranged else names
        if len(names) != len(signature):
            raise ValueError(
                f"get_kernel: {tree.name} takes {len(names)} arguments"
                f"{' after lo, hi' if ranged else ''}; got a signature of {len(signature)}"
            )
        self.first, self.last = map(Var, steps)
        self.values |= users.constants
        limits = (self.first, self.last) if ranged else ()
        self.values |= dict(zip(steps, limits, strict=False))
        self.buffers: list[Buffer] = []
        self.integers: list[Var] = []
        order: list[Memory] = []
        for name, token in zip(names, signature, strict=True):
            its = self.out.fresh(name) if name in RESERVED | OF_GPUS else name
            if token.removesuffix("*") not in DTYPES:
                raise ValueError(
                    f"get_kernel: unknown argument type in the signature; got {token!r}; "
                    f"use one of {', '.join(DTYPES)}, with * for a pointer"
                )
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
        self.order = () if in_order and not threads else tuple(order)
        if threads and ranged:
            self.order = (self.first, self.last, *order)
        self.sizes = {self.first, self.last, *self.integers}  # the arguments
        self.indices |= self.sizes

    def kernel(self) -> Kernel:
        self.body(self.tree.body)
        (block,) = self.out.blocks
        return Kernel(
            self.first,
            self.last,
            tuple(self.buffers),
            tuple(self.integers),
            tuple(self.out.stack),
            tuple(block),
            self.tree.name,
            order=self.order,
            callees=tuple(self.called.values()),
            threads=self.threads,
            shared=tuple(self.shared),
        )

    def let(self, name: str, value: Expr) -> Var:
        var = self.out.let(name, value)
        if is_index(value, self.indices):
            self.indices.add(var)
        return var

    def counts(self, index: Var) -> None:
        self.indices.add(index)

    # --- statements ---

    def statement(self, s: ast.stmt) -> None:
        if isinstance(s, ast.Assign):
            target = s.targets[0]
            if len(s.targets) > 1:
                raise Unsupported("an assignment to several names")
            if isinstance(target, ast.Name):
                self.assign(target.id, self.memory_or_value(s.value, target.id))
            elif isinstance(target, ast.Subscript):
                self.store(target, self.expr(s.value))
            elif self.threads and called_function(s.value) in LOADS:
                self.load_vector(target, s.value)
            elif isinstance(target, ast.Attribute):
                raise Unsupported("an assignment to an attribute")
            else:
                raise Unsupported("an assignment to several names")
        elif isinstance(s, ast.AugAssign) and isinstance(s.target, ast.Name):
            self.assign(s.target.id, self.binary(s.op, self.name(s.target.id), self.expr(s.value)))
        elif isinstance(s, ast.AugAssign):
            raise Unsupported("an augmented assignment to an element; write a[i] = a[i] + x")
        elif isinstance(s, ast.Expr) and isinstance(s.value, ast.Call):
            self.procedure(s.value)
        else:
            super().statement(s)

    def load_vector(self, target: ast.expr, x: ast.expr) -> None:
        """Load several elements; those of bools are bytes."""
        names = [n.id for n in walk(target) if isinstance(n, ast.Name)]
        place, index = self.arguments_of(x, 2)
        memory, at = self.memory(place), self.index(index)
        results = tuple([Var(self.out.fresh(n), memory.element) for n in names])
        self.out.add(LoadVector(results, memory, at))
        for name, v in zip(names, results, strict=True):
            self.assign(name, cast_to(v, U1) if v.dtype == B1 else v)

    def store_vector(self, x: ast.Call) -> None:
        """Store several elements."""
        place, index, *values = self.arguments_of(x, 2 + STORES[called_function(x)])
        memory, at = self.memory(place), self.index(index)
        stored = tuple([stored_as(self.expr(v), memory.element) for v in values])
        self.out.add(StoreVector(memory, at, stored))

    def memory_or_value(self, x: ast.expr, name: str) -> Expr | Buffer:
        """Return what a statement assigns: a number, an address, or memory on the stack or of a
        thread block.

        A second name for memory is an address. Loops over it are left to LLVM, because gathers are
        slower if there is nothing else to compute.
        """
        function = called_function(x)
        token = function.removeprefix("shared_")
        if self.threads and token in DTYPES and token != function:
            return self.share(DTYPES[token], x, name)
        array = length_of(function)
        if array is None:
            return self.expr(x, name)
        self.arguments_of(x, 0)
        of, length, exact = array
        self.out.stack.append(Buffer(self.out.fresh(name), of, length, exact))
        return self.out.stack[-1]

    def share(self, of: DType, x: ast.expr, name: str) -> Buffer:
        """Allocate memory that the threads of a block share."""
        length = self.expr(x.args[0]) if isinstance(x, ast.Call) and len(x.args) == 1 else None
        if not isinstance(length, Const) or length.dtype != I8:
            raise Unsupported("shared memory whose length is not known", x)
        self.shared.append(Buffer(self.out.fresh(name), of, int(length.value)))
        return self.shared[-1]

    def arguments_of(self, x: ast.expr, count: int) -> list[ast.expr]:
        """Return the arguments of a call of a function that takes this number of them."""
        assert isinstance(x, ast.Call)
        if len(x.args) != count or x.keywords:
            raise Unsupported(f"{ast.unparse(x)}, which takes {count} arguments", x)
        return x.args

    def store(self, target: ast.Subscript, value: Expr) -> None:
        memory = self.memory(target.value)
        self.out.add(Store(memory, self.index(target.slice), stored_as(value, memory.element)))

    def procedure(self, x: ast.Call) -> None:
        if isinstance(x.func, ast.Name) and x.func.id in (*self.callees, "parallel_for"):
            self.run(x.func.id, x.args)
            return
        if self.threads and called_function(x) in STORES:
            self.store_vector(x)
            return
        name, args = self.arguments(x)
        typed_call = resolve_call(name, args)
        if typed_call is None:
            of = ", ".join([dtype(a).token for a in args])
            raise Unsupported(f"no procedure {name} of ({of})", x)
        result, passed = typed_call
        var = None if result is None else Var(self.out.fresh(name), result)
        self.out.add(Do(name, passed, var))

    def run(self, name: str, arguments: Sequence[ast.expr]) -> None:
        """Write a call of another kernel, or one that shares its steps among threads."""
        shared = name == "parallel_for"
        if shared:
            name = arguments[0].id if arguments and isinstance(arguments[0], ast.Name) else ""
            arguments = arguments[1:]
        if name not in self.callees:
            raise Unsupported(f"a call of {name or 'parallel_for'} without a kernel of this source")
        callee = self.called[name] = self.callees[name]
        values = [self.expr(a) for a in arguments]
        leading, rest = (values[:5], values[5:]) if shared else (values[:2], values[2:])
        count = len(callee.arguments) + (5 if shared else 2)
        if len(values) != count:
            raise Unsupported(f"{len(values)} arguments of {name}, which takes {count}")
        first = [as_index(cast_to(v, I8)) for v in leading]
        args = tuple([convert_argument(*pair) for pair in zip(rest, callee.arguments, strict=True)])
        if shared:
            sharer, pool, helpers, count, chunk = first
            self.out.add(Share(name, sharer, pool, helpers, count, chunk, args))
        else:
            self.out.add(Run(name, first[0], first[1], args))

    # --- expressions ---

    def named(self, name: str) -> Expr | Buffer:
        value = self.values.get(name)
        if value is None:
            known = name in assigned(self.tree.body)
            what = "is read where it may have no value" if known else "is not defined"
            if name in self.users.functions or name in TABLE or name in FUNCTIONS or name in DTYPES:
                what = "is a function, not a number"
            raise Unsupported(f"name {name!r} {what}")
        return value

    def name(self, name: str) -> Expr:
        return self.address(self.named(name))

    def memory(self, x: ast.expr) -> Memory:
        """Return the memory that an expression denotes."""
        place = self.named(x.id) if isinstance(x, ast.Name) else self.expr(x)
        if not isinstance(place, Buffer | Var):
            place = self.let("p", place)
        if isinstance(place, Var) and not isinstance(place.dtype, Pointer):
            raise Unsupported(f"an element of {ast.unparse(x)}, which is a number")
        return place

    def index(self, x: ast.expr) -> Expr:
        """Return an expression as an index."""
        if isinstance(x, ast.Tuple | ast.Slice):
            shown = ast.unparse(ast.Subscript(ast.Name("a"), x))[1:]
            raise Unsupported(f"the index {shown}; arrays are flat, with one integer")
        value = self.expr(x)
        if number_of(value).kind not in ("int", "uint"):
            raise Unsupported("an index or a limit of a range that is not an integer")
        return as_index(cast_to(value, I8))

    def count(self) -> None:
        """Do nothing: the length of kernels is not limited."""

    def let_once(self, name: str, x: Expr) -> Expr:
        return x if self.out.pure else super().let_once(name, x)

    def expr(self, x: ast.expr, name: str = "t") -> Expr:
        if isinstance(x, ast.Subscript):
            return Load(self.memory(x.value), self.index(x.slice))
        if isinstance(x, ast.IfExp):
            test = self.test(x.test)
            a, b = self.expr(x.body), self.expr(x.orelse)
            of = common_type([dtype(a), dtype(b)])
            return Call("select", (test, as_type(a, of), as_type(b, of)), of)
        if isinstance(x, ast.Attribute) and not self.module_of(x):
            return self.part(x.attr, self.expr(x.value))
        if isinstance(x, ast.Call) and not self.module_of(x.func):
            return self.call_by_name(x, name)
        return super().expr(x)

    def binary(self, op: ast.operator, x: Expr, y: Expr) -> Expr:
        name = BINARY.get(type(op))
        if name is None:
            raise Unsupported(f"the operator {symbol_of(op)}")
        of_size = name == "floor_quotient" and isinstance(y, Var) and y in self.sizes
        if of_size and dtype(x) == I8:
            return call("floordiv", x, y)
        if is_index(x, self.indices) and is_index(y, self.indices):
            index = combined_index(name, x, y)
            if index is not None:
                return index
        return computed(name, x, y)

    def truth(self, x: Expr) -> Expr:
        return cast_to(x, B1) if not isinstance(x, Const) else Const(bool(x.value), B1)

    def part(self, attribute: str, z: Expr) -> Expr:
        if attribute not in ("real", "imag"):
            raise Unsupported(f"the attribute {attribute}")
        of = number_of(z)
        if of.kind != "complex":
            raise Unsupported(f"{attribute} of {of.token}, which is not complex")
        return call(attribute, z)

    def arguments(self, x: ast.Call) -> tuple[str, list[Expr]]:
        if not isinstance(x.func, ast.Name):
            raise Unsupported(f"a call of {ast.unparse(x.func)}")
        if x.keywords:
            raise Unsupported(f"arguments by name in a call of {x.func.id}", x)
        if x.func.id in self.values:
            raise Unsupported(f"a call of the variable {x.func.id}")
        if x.func.id == self.tree.name:
            raise Unsupported(f"a call of {x.func.id} in itself", x)
        if is_of_gpu(x.func.id) and not self.threads:
            raise Unsupported(f"name {x.func.id!r} is not defined", x)
        return x.func.id, [self.expr(a) for a in x.args]

    def call_by_name(self, x: ast.Call, name: str) -> Expr:
        if isinstance(x.func, ast.Attribute) and x.func.attr == "conjugate" and not x.args:
            z = self.expr(x.func.value)
            return call("conj", z) if number_of(z).kind == "complex" else z
        function, args = self.arguments(x)
        if function in self.users.functions:
            return self.users.call(function, args)
        if function == "nontemporal_requested":
            self.arguments_of(x, 0)
            return Call("nontemporal_requested", (), I8)
        if function == "at":
            place, index = self.arguments_of(x, 2)
            return Address(self.memory(place), self.index(index))
        if function in DTYPES and len(args) == 1:
            return cast_to(args[0], DTYPES[function])
        result, passed = resolve_call(function, args) or (None, ())
        if result is None:
            result, passed = type_of_call(function, [dtype(a) for a in args]), tuple(args)
        if result is None and function not in TABLE and function not in FUNCTIONS:
            value = number_function("builtins", function, args, self.let_once)
            if value is not None:
                return value
            raise Unsupported(f"name {function!r} is not defined", x)
        if result is None:
            of = ", ".join([dtype(a).token for a in args])
            raise Unsupported(f"no function {function} of ({of})", x)
        if function in TABLE and TABLE[function].acts:
            var = Var(self.out.fresh(name), result)
            self.out.add(Do(function, passed, var))
            return var
        return Call(function, passed, result)
