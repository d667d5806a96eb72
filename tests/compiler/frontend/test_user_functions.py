"""Functions of users with loops: read as loop IR, run by LLVM, compared with Python and Numba."""

from __future__ import annotations

import ast
import linecache
import subprocess
import sys
from typing import Any

import numba
import numpy as np
import pytest
from numba.core.registry import cpu_target
from numba.np.numpy_support import from_dtype

import accnp as jnp
from accnp.api.kernels.texts import ScalarText
from accnp.compiler import kernel_cache
from accnp.compiler.frontend.functions import UserFunctions, result_type
from accnp.compiler.frontend.program import read_source
from accnp.compiler.frontend.statements import StatementWriter
from accnp.compiler.frontend.syntax import functions_of
from accnp.compiler.ir_tools.verifier import verify
from accnp.compiler.loops.ir import For, If, Var, While
from accnp.compiler.loops.operators import common_type
from accnp.compiler.loops.types import DTYPES, F8, DType
from accnp.compiler.loops.visiting import statements
from accnp.compiler.unsupported import Unsupported
from tests.compiler.generated_functions import generated_function

FLOATS = np.array([-4.5, -2.0, -0.75, 0.0, 0.3, 1.0, 2.5, 17.0])
WHOLE = np.array([-9, -2, -1, 0, 1, 2, 5, 27])


def token(dtype: np.dtype) -> str:
    return "b1" if dtype.kind == "b" else f"{dtype.kind}{dtype.itemsize}"


def compute_elementwise(function, *arrays):
    """A function of each element, in a kernel."""
    mark = ScalarText(function).name
    of = result_type(mark, [x.dtype for x in arrays])
    assert of is not None, "a function that only Numba can compile"
    names = [f"x{k}" for k in range(len(arrays))]
    source = (
        f"def kernel(lo, hi, {', '.join(names)}, out):\n    for i in range(lo, hi):\n"
        f"        out[i] = {mark}({', '.join(f'{n}[i]' for n in names)})\n"
    )
    signature = tuple([f"{token(t)}*" for t in (*[x.dtype for x in arrays], of)])
    verify(read_source(source, "kernel", signature)[0])
    out = np.zeros(arrays[0].size, of)
    kernel = kernel_cache.get_kernel(source, "kernel", signature)
    kernel.run(kernel_cache.pack([x.ctypes.data for x in (*arrays, out)]), out.size, out.size)
    return out


def define_function(text: str, name: str):
    """The function `f` of a text, which has the source that `inspect` looks for."""
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    scope: dict = {}
    exec(compile(text, name, "exec"), scope)
    return scope["f"]


class _Literals(ast.NodeTransformer):
    """Literals as numbers of 64 bits, which wrap and divide as those of kernels."""

    def visit_Constant(self, node):
        name = {int: "int64", float: "float64"}.get(type(node.value))
        return node if name is None else ast.parse(f"np.{name}({node.value})", mode="eval").body


def by_python(text: str, arrays):
    """The results of a function for each element; None where Python has none."""
    tree = ast.fix_missing_locations(_Literals().visit(ast.parse(text)))
    scope: dict = {"np": np}
    exec(compile(tree, "<reference>", "exec"), scope)
    results = []
    with np.errstate(all="ignore"):
        for values in zip(*arrays, strict=True):
            try:
                results.append(scope["f"](*values))
            except (NameError, ZeroDivisionError):  # of the index of a loop, which is an int
                results.append(None)
    return results


@pytest.mark.parametrize("first", range(0, 60, 10))
def test_random_functions_match_python(first):
    compared = 0
    for seed in range(first, first + 10):
        kinds = [np.float64, np.int64][:: 1 if seed % 2 else -1]
        text = generated_function(seed, ["a0", "a1"])
        arrays = [(FLOATS if k is np.float64 else WHOLE).astype(k) for k in kinds]
        expected = by_python(text, arrays)
        actual = compute_elementwise(define_function(text, f"<generated {seed}>"), *arrays)
        for x, y in zip(actual, expected, strict=True):
            if y is not None:
                compared += 1
                np.testing.assert_array_equal(x, np.asarray(y).astype(actual.dtype), text)
    assert compared > 40


def test_names_have_the_types_of_numba():
    context: Any = cpu_target.typing_context
    numbers = {t: d for t, d in DTYPES.items() if d.kind in ("bool", "int", "uint", "float")}
    for x in numbers.values():
        for y in numbers.values():
            expected = context.unify_types(from_dtype(x.numpy), from_dtype(y.numpy))
            actual = common_type([x, y])
            assert isinstance(actual, DType)
            assert from_dtype(actual.numpy) == expected


def returns_from_loops(x, n):
    for i in range(10):
        for j in range(i):
            if i * j > n:
                return i * x + j
            if i - j == n:
                break
    return -1


def int_becomes_float(x, n):
    """An int that becomes a float in a loop."""
    total = 0
    for k in range(n):
        total = total * x + k
    return total


def assign_tuple(x, n):
    a, b = 0, x
    while n > 0:
        a, b = b, a + b
        n -= 1
    first = second = a
    return first + second


def first_known_in_the_loop(x, n):
    for k in range(n + 10):
        last = x * k
        if last > 5:
            break
    return last


def its_own_index(x, n):
    for k in range(12):
        k = k * 2
        if k > n:
            continue
        x = x + k
    return x + k


def downwards(x, n):
    for k in range(9, n, -2):
        x = x * 2 - k
    return x


def endless(x, n):
    while True:
        n += 1
        if n > 20:
            return x + n
        if n % 7 == 0:
            continue
        x = x + 1


def part(n):
    while n > 1:
        n = n // 2
    return n


def lazily(x, n):
    return part(n) if n > 0 and (part(n) == 1 or x > 0) else x


def chained(x, n):
    while -50 < x**2 - 60 < 9 and (n < 3 or not n > 4):
        x, n = x * 2, n + 1
    return x


def nothing_to_join(x, n):
    if n > 0:
        t = n > 3
    else:
        t = x * 2
        x = t
    for k in range(2):
        t = x + k
    return t


FUNCTIONS = [
    returns_from_loops,
    int_becomes_float,
    assign_tuple,
    first_known_in_the_loop,
    its_own_index,
    downwards,
    endless,
    lazily,
    chained,
    nothing_to_join,
]


@pytest.mark.parametrize("function", FUNCTIONS)
def test_loops_match_numba_semantics(function):
    compiled = numba.njit(error_model="numpy")(function)
    helpers = {"part": numba.njit(error_model="numpy")(part)}
    if function is lazily:
        scope = {**function.__globals__, **helpers}
        compiled = numba.njit(error_model="numpy")(type(function)(function.__code__, scope))
    for kinds in (("f4", "i4"), ("f8", "i8"), ("i4", "i8"), ("i8", "i1")):
        x, n = (v.astype(k) for v, k in zip((FLOATS, WHOLE), kinds, strict=True))
        n = np.minimum(n, 9).astype(kinds[1])
        expected = [compiled(a, b) for a, b in zip(x, n, strict=True)]
        actual = compute_elementwise(function, x, n)
        np.testing.assert_array_equal(actual, expected)
        numba_type = compiled.nopython_signatures[-1].return_type
        assert from_dtype(actual.dtype) == numba.types.unliteral(numba_type), (function, kinds)


def halved(n):
    """Never ends for 0."""
    k = 0
    while n % 2 == 0:
        n, k = n // 2, k + 1
    return k


def test_unreached_recursion_is_not_evaluated():
    def f(n):
        return halved(n) if n != 0 and halved(n) > 1 else -1

    np.testing.assert_array_equal(compute_elementwise(f, np.array([0, 3, 12])), [-1, -1, 2])


def test_functions_without_loops_have_no_branches_if_they_can():
    def f(x, n):
        a, b = x, n * 1.0
        if n > 2:
            a, b = b, a
            return a - b if x > 0 else 1
        return a

    mark = ScalarText(f).name
    source = f"def kernel(lo, hi, x, n, o):\n    for i in range(lo, hi):\n        o[i] = {mark}(x[i], n[i])\n"  # noqa: E501
    kernel, _ = read_source(source, "kernel", ("f8*", "i8*", "f8*"))
    assert not any(isinstance(s, If | While) for s in statements(kernel.body))
    assert sum(isinstance(s, For) for s in statements(kernel.body)) == 1


def picked(x, n):
    """With a list, which is beyond the language."""
    both = (x, x * 2, 1.5)
    return max(both[0], both[1], np.sinc(x)) if n > 0 else both[2]


def is_large(x, n):
    pair = (n, x)
    return pair[1] > 2 and pair[0] > 0


def rotated(x, n):
    z = complex(x, n)
    for _ in range(3):
        z = z * 1j
    return z


def with_a_part_beyond(x, n):
    for k in range(3):
        if is_large(x, n):
            return picked(x + k, n)
        x = x + picked(x, n)
    return x


@pytest.mark.parametrize("function", [picked, is_large, rotated, with_a_part_beyond])
def test_numba_compiles_unsupported_syntax(function):
    scope = {n: numba.njit(error_model="numpy")(f) for n, f in
             {"picked": picked, "is_large": is_large}.items()}  # fmt: skip
    own = type(function)(function.__code__, {**function.__globals__, **scope})
    compiled = numba.njit(error_model="numpy")(own)
    for kinds in (("f4", "i4"), ("f8", "i8")):
        x, n = (v.astype(k) for v, k in zip((FLOATS, WHOLE), kinds, strict=True))
        expected = np.array([compiled(a, b) for a, b in zip(x, n, strict=True)])
        mark = ScalarText(function).name
        assert result_type(mark, [x.dtype, n.dtype]) is None
        of = f"{expected.dtype.kind}{expected.dtype.itemsize}"
        source = (
            "def kernel(lo, hi, x, n, out):\n    for i in range(lo, hi):\n"
            f"        y = {mark}(x[i], n[i])\n        out[i] = y\n"
        )
        signature = (f"{kinds[0]}*", f"{kinds[1]}*", f"{of}*")
        out = np.zeros_like(expected)
        kernel = kernel_cache.get_kernel(source, "kernel", signature)
        kernel.run(kernel_cache.pack([a.ctypes.data for a in (x, n, out)]), x.size, x.size)
        np.testing.assert_array_equal(out, expected)


def times_two(x):
    return x * 2


def quotient(x):
    return times_two(x) / (4 + x % 2)


def test_numba_compiles_the_helpers_of_a_function_too():
    scale = 3.0

    def scaled(x):
        return quotient(x) * scale

    def f(x):
        return scaled(x) % 3.0 + times_two(x)

    x = np.linspace(-4, 4, 17, dtype=np.float32)
    expected = [f(float(v)) for v in x]
    np.testing.assert_allclose(jnp.kernel(f)(jnp.asarray(x)), expected, rtol=1e-5)


@pytest.mark.parametrize(
    ("text", "what", "line"),
    [
        ("for i in range(x):\n        x = x + i\n    return x", "signed integers", 2),
        ("for k in (1, 2):\n        x = x + k\n    return x", "a loop over", 2),
        ("while x > 1:\n        x = x / 2\n    else:\n        x = 1\n    return x", "else", 5),
        ("while x > 1:\n        if x > 3:\n            return x\n        x = x / 2", "nothing", 1),
        ("y = [x]\n    while x > 1:\n        x = x / 2\n    return y[0]", r"expression \[x\]", 2),
        (
            "while x > 1:\n        x = x / 2\n        x = x.real\n    return x",
            "expression x.real",
            4,
        ),
        ("while x > 1:\n        x = x / 2\n        x[0] = 1\n    return x", "an element", 4),
        ("for k in range(3, 9, builtins.int(x)):\n        x = k\n    return x", "not known", 2),
    ],
)
def test_unsupported_syntax_errors_name_the_line(text, what, line):
    source = f"def f(x):\n    {text}\n"
    users = UserFunctions(functions_of(source), StatementWriter(set()), by_numba=False)
    with pytest.raises(Unsupported, match=what) as error:
        users.call("f", [Var("x", F8)])
    assert error.value.line == line


PROGRAM = """
import sys
import accnp as jnp
def root(a):
    x = a
    for k in range(40):
        if abs(x * x - a) < 1e-6 * a:
            return x
        x = 0.5 * (x + a / x)
    return x
print(jnp.kernel(root)(jnp.array([4.0, 9.0])).block_until_ready().dtype)
print([m for m in ("numba", "numba.core") if m in sys.modules])
"""


def test_loops_of_users_compile_without_numba(tmp_path):
    file = tmp_path / "program.py"
    file.write_text(PROGRAM)
    process = subprocess.run(
        [sys.executable, str(file)],
        env={"PATH": "", "ACCNP_CACHE_DIR": str(tmp_path), "PYTHONPATH": ":".join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert process.returncode == 0, process.stderr
    assert process.stdout.split("\n")[1] == "[]"


def doubled(x):
    return x * 2.0


def one_half(x):
    return x * 0.5


def test_kernels_call_several_functions():
    double, halve = jnp.kernel(doubled), jnp.kernel(one_half)
    x = np.linspace(-1, 1, 50, dtype=np.float32)
    actual = jnp.jit(lambda x: double(x) + halve(x))(x)
    np.testing.assert_allclose(actual, x * 2.5, rtol=1e-6)
