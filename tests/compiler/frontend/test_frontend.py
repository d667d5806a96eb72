"""Kernels in restricted Python: read as loop IR, run as Python, by the interpreter and by LLVM."""

from __future__ import annotations

import ast
import math
import random
import subprocess
import sys
import textwrap

import numpy as np
import pytest

from accnp.api.kernels.texts import ScalarText
from accnp.compiler import elf_loader
from accnp.compiler.frontend.functions import result_type
from accnp.compiler.frontend.program import lower_source, read_source
from accnp.compiler.ir_tools import interpreter, python_functions
from accnp.compiler.ir_tools.parser import parse_kernel
from accnp.compiler.ir_tools.verifier import verify
from accnp.compiler.library import library
from accnp.compiler.llvm import objects
from accnp.compiler.loops.ir import For, Let, Share, Store, While
from accnp.compiler.loops.printer import print_kernel
from accnp.compiler.loops.visiting import statements
from accnp.compiler.numba.source import numba_source
from accnp.compiler.pipeline import Target, run_passes
from accnp.compiler.unsupported import Unsupported
from tests.compiler.running import WIDTH, launch_kernel

TOKENS = {np.dtype(t): t for t in ("i4", "i8", "f2", "f4", "f8", "c8", "c16")}


def token(a: np.ndarray | int) -> str:
    if isinstance(a, int):
        return "i8"
    return (
        "b1*" if a.dtype == bool else {"float16": "f2*"}.get(a.dtype.name) or TOKENS[a.dtype] + "*"
    )


def copied(args):
    return [a.copy() if isinstance(a, np.ndarray) else a for a in args]


def by_python(source, args, steps):
    scope = dict(python_functions.NAMESPACE)
    exec(source, scope)
    args = copied(args)
    with np.errstate(all="ignore"):
        scope["kernel"](*steps, *args)
    return args


def read(source, args):
    kernel, others = read_source(source, "kernel", [token(a) for a in args])
    verify(kernel)
    assert not others
    return kernel


def by_interpreter(kernel, args, steps):
    args = copied(args)
    named = list(zip(kernel.arguments, args, strict=True))
    arrays = {a.name: x for a, x in named if isinstance(x, np.ndarray)}
    integers = {a.name: x for a, x in named if isinstance(x, int)}
    interpreter.run(kernel, arrays, integers, *steps)
    return args


def by_llvm(source, kernel, args, steps):
    args = copied(args)
    signature = [token(a) for a in args]
    texts = lower_source(
        source, "kernel", signature, (), Target(WIDTH), objects.ENTRY_ATTRIBUTES, check=True
    )
    (address,), code = elf_loader.load(objects.build(*texts), "accnp_entry", kernel="kernel")
    named = list(zip(kernel.arguments, args, strict=True))
    arrays = {a.name: x for a, x in named if isinstance(x, np.ndarray)}
    integers = {a.name: x for a, x in named if isinstance(x, int)}
    launch_kernel(address, kernel, arrays, integers, steps)
    del code
    return args


def check(source, *args, steps=(0, 1), close=False):
    """All ways give the same arrays; returns them."""
    source = textwrap.dedent(source)
    kernel = read(source, args)
    assert parse_kernel(print_kernel(kernel)) == kernel
    expected = by_python(source, args, steps)
    again = numba_source(kernel)
    ways = [by_interpreter(kernel, args, steps), by_llvm(source, kernel, args, steps)]
    ways += [by_python(again, args, steps), by_llvm(again, read(again, args), args, steps)]
    for actual in ways:
        for x, y in zip(actual, expected, strict=True):
            if close:
                np.testing.assert_allclose(x, y, rtol=1e-5)
            else:
                np.testing.assert_array_equal(x, y)
    return expected


def test_loop_carries_values_that_are_read_later():
    x, y = np.arange(5.0), np.zeros(3)
    source = """
    def kernel(lo, hi, x, y, n):
        total = 0.0
        before = 1.0
        for i in range(n):
            last = x[i] * 2.0
            total, = 0.0,
    """
    with pytest.raises(Unsupported, match="several names"):
        read(textwrap.dedent(source), (x, y, 5))
    check(
        """
        def kernel(lo, hi, x, y, n):
            total = 0.0
            before = 1.0
            last = 0.0
            for i in range(n):
                t = x[i] * before
                before = total
                total += t
                last = t
            y[0] = total
            y[1] = before
            y[2] = last
        """,
        x, y, 5,
    )  # fmt: skip


def test_names_local_to_a_step_are_not_carried():
    kernel = read(
        textwrap.dedent("""
        def kernel(lo, hi, x, y):
            for i in range(lo, hi):
                t = x[i] + 1.0
                t = t * t
                y[i] = t
            for i in range(lo, hi):
                t = y[i] - 1.0
                y[i] = t
        """),
        (np.zeros(3), np.zeros(3)),
    )
    loops = [s for s in statements(kernel.body) if isinstance(s, For)]
    assert len(loops) == 2
    assert not any(s.carried for s in loops)
    done = run_passes(kernel, Target(64), check=True)
    assert all(s.vector for s in statements(done.body) if isinstance(s, For))


def test_while_break_and_merging_branches():
    for n in (0, 1, 7, 27, 97):
        out = np.zeros(4, np.int64)
        check(
            """
            def kernel(lo, hi, out, n):
                k = n
                steps = 0
                while k > 1 and steps < 100:
                    if k % 2 == 0:
                        k = k // 2
                        kind = 1
                    else:
                        k = 3 * k + 1
                        kind = 2
                    out[3] = kind
                    steps += 1
                first = 0
                while True:
                    if first * first >= n:
                        break
                    first = first + 1
                for j in range(n):
                    odd = j
                    if j * j > n:
                        break
                out[0] = steps
                out[1] = k
                out[2] = first
            """,
            out, n,
        )  # fmt: skip


@pytest.mark.parametrize("test", ["k > 4", "not k > 4"])
def test_assignment_in_branch_next_to_break(test):
    ways = ["break", "k += 2\n        s = s * x[k] + k"]
    first, other = ways if test == "k > 4" else reversed(ways)
    source = f"""
def kernel(lo, hi, x, out):
    k = 0
    s = 1.0
    while True:
        if {test}:
            {first.replace("        ", "            ")}
        else:
            {other.replace("        ", "            ")}
        out[k] = s
    out[0] = s
"""
    check(source, np.arange(1.0, 9.0), np.zeros(8))


def test_loop_carries_results_of_unrolled_loop():
    source = """
        def kernel(lo, hi, x, out, n):
            t = 1.5
            for _ in range(n):
                for j in range(5):
                    t = x[j] - t
            out[0] = t
        """
    check(source, np.arange(1.0, 9.0), np.zeros(1), 3)


@pytest.mark.parametrize("place", ["(i + i) & 7", "(i + k) & 7", "(3 * i + 2 * k) & 7", "i + k"])
def test_indices_that_move_with_the_loop_twice(place):
    source = f"""
def kernel(lo, hi, x, out):
    for i in range(lo, hi):
        k = i + 1
        out[i] = x[{place}]
"""
    check(source, np.arange(1.0, 99.0), np.zeros(40), steps=(0, 40))


def test_loops_down_and_by_steps_that_are_not_known():
    check(
        """
        def kernel(lo, hi, x, out, n, s):
            k = 0
            for i in range(n - 1, -1, -1):
                out[k] = x[i]
                k += 1
            for i in range(0, n, s):
                out[k] = x[i] + 100.0
                k += 1
            for i in range(n, 0, -2):
                out[k] = 1.0 * i
                k += 1
        """,
        np.arange(7.0), np.zeros(30), 7, 3,
    )  # fmt: skip


def test_memory_and_addresses():
    check(
        """
        def kernel(lo, hi, x, out, n):
            room = heap_f8(n + 4)
            buf = stack_f8()
            for i in range(n):
                room[i] = x[i] * 2.0
            p = at(room, 1)
            q = p
            if n > 5:
                q = at(x, 2)
            for i in range(n - 2):
                buf[i] = p[i] + q[i]
            move(at(out, 1), buf, n - 2)
            out[0] = block_sum(at(room, 0), n)
            release(room)
        """,
        np.arange(9.0), np.zeros(12), 9,
    )  # fmt: skip


def test_computed_index():
    r = np.random.default_rng(0)
    places = r.integers(0, 40, 64).astype("i4")
    x = r.normal(size=50).astype("f4")
    check(
        """
        def kernel(lo, hi, x, p, out, shift):
            for i in range(lo, hi):
                k = p[i]
                out[i] = x[shift + k] + x[i8(p[i]) + 1]
        """,
        x, places, np.zeros(64, "f4"), 3, steps=(0, 64),
    )  # fmt: skip


def test_integers_divide_as_in_python():
    values = np.array([-7, -6, -1, 0, 1, 5, 7, 2**62], np.int64)
    x, y = (a.ravel() for a in np.meshgrid(values, values[values != 0]))
    check(
        """
        def kernel(lo, hi, x, y, q, r):
            for i in range(lo, hi):
                q[i] = x[i] // y[i]
                r[i] = x[i] % y[i]
        """,
        x.copy(), y.copy(), np.zeros_like(x), np.zeros_like(x), steps=(0, len(x)),
    )  # fmt: skip
    source = "def kernel(lo, hi, x, q):\n    q[0] = x[0] // x[1]\n    q[1] = x[0] % x[1]\n"
    for pair in ([5, 0], [-(2**63), -1]):  # 0 where Python has no answer in 64 bits
        args = np.array(pair, np.int64), np.ones(2, np.int64)
        kernel = read(source, args)
        actual = by_llvm(source, kernel, args, (0, 1))[1]
        assert actual.tolist() == [0, 0] == by_interpreter(kernel, args, (0, 1))[1].tolist()


def test_complex_numbers():
    r = np.random.default_rng(1)
    z = (r.normal(size=9) + 1j * r.normal(size=9)).astype("c16")
    check(
        """
        def kernel(lo, hi, z, w, p, n):
            s = c16(0)
            for i in range(n):
                t = cmul(z[i], z[i].conjugate()) - z[i] * z[i]
                s = s + t if z[i] != 0 else -s
                w[i] = make_complex(t.real, t.imag) + s
                p[i] = abs(z[i]) + z[i].imag
        """,
        z, np.zeros(9, "c16"), np.zeros(9), 9, close=True,
    )  # fmt: skip


def test_numbers_of_half_precision():
    x = np.array([1.0, 0.1, 65504.0, -2.5, 6e-8], "f2")
    check(
        """
        def kernel(lo, hi, x, y, z):
            for i in range(lo, hi):
                t = f2(x[i] * x[i])
                y[i] = fmax(t, x[i])
                z[i] = f8(x[i]) * 2.0 + -x[i]
        """,
        x, np.zeros(5, "f2"), np.zeros(5), steps=(0, 5),
    )  # fmt: skip


class Programs:
    """Random statements over integers, in Python."""

    NAMES = ("a", "b", "c", "d")

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.lines = [f"    {x} = p[{k}]" for k, x in enumerate(self.NAMES)]
        self.count = 0
        self.block("    ", 3)
        self.lines += [f"    out[{k}] = {x}" for k, x in enumerate(self.NAMES)]

    def source(self) -> str:
        return "\n".join(["def kernel(lo, hi, p, out):", *self.lines, ""])

    def value(self, depth: int = 2) -> str:
        r = self.random
        if depth == 0 or r.random() < 0.3:
            return r.choice([*self.NAMES, str(r.randint(-3, 9)), f"p[{r.randint(0, 7)}]"])
        x, y = self.value(depth - 1), self.value(depth - 1)
        kind = r.random()
        if kind < 0.6:
            return f"({x} {r.choice(['+', '-', '&', '|', '^'])} {y})"
        if kind < 0.7:
            return f"({x} {r.choice(['//', '%'])} {r.choice([3, -4, 7])})"
        if kind < 0.8:
            return f"({x} if {self.test()} else {y})"
        return f"{r.choice(['fmin', 'fmax'])}({x}, {y})"

    def test(self) -> str:
        r = self.random
        test = f"{self.value(1)} {r.choice(['<', '<=', '==', '!=', '>'])} {self.value(1)}"
        return f"({test}) and not {r.choice(self.NAMES)} == 3" if r.random() < 0.2 else test

    def block(self, pad: str, depth: int, loop: bool = False) -> None:
        r = self.random
        for _ in range(r.randint(1, 4)):
            kind = r.random()
            self.count += 1
            if depth == 0 or kind < 0.45:
                # Small numbers: the products of a thousand steps stay in 64 bits.
                self.lines.append(f"{pad}{r.choice(self.NAMES)} = ({self.value()}) % 1000")
            elif kind < 0.7:
                self.lines.append(f"{pad}if {self.test()}:")
                self.block(pad + "    ", depth - 1, loop)
                if loop and r.random() < 0.3:
                    self.lines.append(f"{pad}    break")
                elif r.random() < 0.5:
                    self.lines.append(f"{pad}else:")
                    self.block(pad + "    ", depth - 1, loop)
            elif kind < 0.85:
                index = f"i{self.count}"
                step = r.choice(["", ", 2", ", -1"])
                limits = f"{r.randint(0, 3)}, {self.value(1)} % 5{step}"
                self.lines.append(f"{pad}for {index} in range({limits}):")
                self.lines.append(f"{pad}    {r.choice(self.NAMES)} += {index}")
                self.block(pad + "    ", depth - 1, True)
            else:
                left = f"w{self.count}"
                self.lines += [f"{pad}{left} = {r.randint(0, 4)}"]
                self.lines += [f"{pad}while {left} > 0 and {self.test()}:"]
                self.lines += [f"{pad}    {left} -= 1"]
                self.block(pad + "    ", depth - 1, True)


@pytest.mark.parametrize("seed", range(40))
def test_random_programs_match_python(seed):
    programs = Programs(seed)
    source = programs.source()
    ast.parse(source)
    p = np.random.default_rng(seed).integers(-5, 20, 8)
    check(source, p, np.zeros(4, np.int64))


def test_steps_of_ranges_that_are_known_at_run_time_only():
    source = """
def kernel(lo, hi, x, n, m, k):
    c = 0
    for i in range(n, m, k):
        x[c] = i
        c += 1
    x[39] = c
"""
    for n, m, k in ((0, 10, 3), (10, 0, -1), (10, 0, -3), (0, 10, -1), (3, 3, 1)):
        check(source, np.zeros(40, np.int64), n, m, k)
    args = (np.zeros(40, np.int64), 5, 9, 0)  # Python raises an error
    kernel = read(textwrap.dedent(source), args)
    assert by_interpreter(kernel, args, (0, 1))[0][39] == 0
    assert by_llvm(source, kernel, args, (0, 1))[0][39] == 0


NUMBER = "an array or address as a number"
LOOP = "for k in range(lo):\n    "
HELPERS = """
def no_name(a):
    b = a
    return b + nothing


def caller(a):
    return no_name(a)


def one_path(a):
    if a > 0:
        b = a
    return b


def nothing_returned(a):
    if a > 0:
        return a


def raises(a):
    b = a
    raise ValueError


def no_function(a):
    return np.floot(a)


def defaults(a, b=2):
    return a


def counted(a):
    return a
"""


# Statements of a kernel, where v is a number and x an array; the message; the line from the first.
REFUSED = [
    ("x[0] = [1.0]", r"expression \[1.0\]", 0),
    ("x[0] = unknown(1)", "name 'unknown' is not defined", 0),
    ("v = v\nx[0] = y", "name 'y' is not defined", 1),
    ("x[0] = lo ** 9", "a power whose exponent is neither", 0),
    ("for k in range(lo, hi, 0):\n    pass", "a step of 0", 0),
    ("for w in x:\n    pass", "a loop over x; loops are over a range", 0),
    ("for w in range(0, stop=3):\n    pass", "loops are over a range of 1 to 3 numbers", 0),
    ("for u, w in range(3):\n    pass", r"whose index is \(u, w\)", 0),
    ("for k in range(3):\n    pass\nelse:\n    pass", "else of a loop", 0),
    ("range = 3\nfor k in range(3):\n    pass", "call of the variable range", 1),
    ("lo[0] = 1.0", "an element of lo, which is a number", 0),
    ("v.x = 1", "an assignment to an attribute", 0),
    ("x[0] += v", r"write a\[i\] = a\[i\] \+ x", 0),
    ("v **= 2", r"the operator \*\*", 0),
    ("v = v @ v", "the operator @", 0),
    ("v |= 1", r"\| of floats", 0),
    ("v = v // v", "// of floats", 0),
    ("v = v << 1", "<< of numbers that are not integers", 0),
    ("v = ~v", "~ of f8", 0),
    ("u = ~f2(v)", "~ of f2", 0),
    ("v = v is v", "the comparison is", 0),
    ("v = v.real", "real of f8, which is not complex", 0),
    ("v = v.shape", "the attribute shape", 0),
    ("v = x[0, 1]", r"the index \[0, 1\]; arrays are flat", 0),
    ("v = x[0:2]", r"the index \[0:2\]; arrays are flat", 0),
    ("v = x[0.5]", "not an integer", 0),
    ("x[0] = f8(x)", NUMBER, 0),
    ("v = x + 1", NUMBER, 0),
    ("v = -x", NUMBER, 0),
    ("v = x == x", NUMBER, 0),
    ("x[0] = x", NUMBER, 0),
    ("for k in range(x):\n    pass", NUMBER, 0),
    ("if x:\n    v = 1", NUMBER, 0),
    ("while 'a':\n    break", "the constant 'a'", 0),
    ("if 1 < 'a':\n    pass", "the constant 'a'", 0),
    ("v = at(x)", r"at\(x\), which takes 2 arguments", 0),
    ("v = nontemporal_requested(3)", r"nontemporal_requested\(3\), which takes 0", 0),
    ("w = stack_f8(3)", r"stack_f8\(3\), which takes 0", 0),
    ("parallel_for()", "call of parallel_for without a kernel", 0),
    ("v = exp(v, v)", r"no function exp of \(f8, f8\)", 0),
    ("move(x)", r"no procedure move of \(f8\*\)", 0),
    ("v = exp(x=v)", "arguments by name in a call of exp", 0),
    ("v = math.exp(x=v)", "arguments by name in a call of math.exp", 0),
    ("v = exp", "name 'exp' is a function, not a number", 0),
    ("v = kernel(v)", "a call of kernel in itself", 0),
    ("v = load4(x, 0)", "name 'load4' is not defined", 0),
    ("v = w = 1", "several names", 0),
    ("v: float = 1", "an assignment with an annotation", 0),
    ("try:\n    v = 1\nfinally:\n    v = 2", "a try statement", 0),
    ("if v > 0:\n    return", "a return statement", 1),
    ("for k in range(3):\n    continue", "a continue statement", 1),
    ("del v", "a del statement", 0),
    ("def g(a):\n    return a", "a function in another one", 0),
    ("assert v", "an assert statement", 0),
    # names
    ("u += v", "name 'u' is read where it may have no value", 0),
    ("if v > 0:\n    u = v\nw = 1\nv = u", "name 'u' is read where it may have no", 3),
    ("if v > 0:\n    u = v\nelse:\n    w = 1\nv = u", "name 'u' is read where", 4),
    (LOOP + "if v > 0:\n        u = v\nv = u", "name 'u' is read where it may", 3),
    ("while True:\n    if v > 0:\n        break\n    u = v\nv = u", "'u' is read where", 4),
    (LOOP + "v = v\nw = 2\nx[k] = v", "name 'k' is the index of a loop and is read after it", 3),
    # functions of numbers
    ("v = counted(v, v)", "2 arguments of counted, which takes 1", 0),
    ("v = counted(x)", "an array as an argument of counted", 0),
    ("v = no_name(v)", "name 'nothing' is not defined", "return b + nothing"),
    ("v = caller(v)", "name 'nothing' is not defined", "return b + nothing"),
    ("v = one_path(v)", "name 'b' is read where it may have no value", "return b\n"),
    ("v = nothing_returned(v)", "nothing_returned returns nothing on some", "def nothing_returned"),
    ("v = raises(v)", "in raises, raise has no meaning", "raise ValueError"),
    ("v = no_function(v)", "np.floot is not defined", "return np.floot"),
    ("v = defaults(v)", "parameters of defaults with defaults", "def defaults"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "why", "line"), REFUSED)
def test_unsupported_statements_are_refused_at_their_lines(text, why, line):
    source = HELPERS + "\ndef kernel(lo, hi, x):\n    v = x[0]\n"
    number = source.count("\n") + 1 + line if isinstance(line, int) else 0
    if isinstance(line, str):
        number = source[: source.index(line)].count("\n") + 1
    source += textwrap.indent(text, "    ") + "\n    x[1] = v\n"
    with pytest.raises(Unsupported, match=why) as error:
        read(source, (np.zeros(3),))
    assert error.value.line == number


@pytest.mark.parametrize(
    "text",
    [
        "if v > 0:\n    u = v\nelse:\n    u = -v\nv = u",
        "for k in range(3):\n    u = v\nv = u",
        "while True:\n    u = v\n    if u > 0:\n        break\n    v += 1.0\nv = u",
        "if ON:\n    u = v\nv = u",
        "v = annotated(v)",
        "for k in range(3):\n    if v > 0:\n        break\n    u = v * 2.0\n    v = u",
        "u = 0.0\nfor k in range(lo, hi):\n    u = v\nv = u",
        "for k in range(3):\n    v += k\nfor k in range(2):\n    v += k\nk = 3\nv += k",
    ],
)
def test_names_with_a_value_on_every_path_are_read(text):
    source = "ON = True\n\ndef annotated(a):\n    b: unknown\n    b: unknown = a\n    return b\n\n"
    source += "def kernel(lo, hi, x):\n    v = x[0]\n"
    source += textwrap.indent(text, "    ") + "\n    x[1] = v\n"
    check(source, np.array([-2.0, 0.0]))


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("raise ValueError(1)", "a raise statement outside of functions"),
        ("class A:\n    pass", "a class outside of functions"),
        ("if True:\n    X = 1", "an if statement outside of functions"),
        ("@jit\ndef g(x):\n    return x", "a decorator of g"),
        ("import os", "kernels can import math, numpy, and numpy as np"),
        ("from math import exp", "an import statement outside of functions"),
        ("TABLE = [1, 2]", r"\[1, 2\], which is not a number"),
        ("HALF = 1 / 0", "1 / 0, which is not a number .division by zero"),
        ("N = 99999999999999999999999", "the constant 9999"),
        ("a, b = 1, 2", "an assignment to something other than names outside of functions"),
        ("N += 1", "an augmented assignment outside of functions"),
        ("print(1)", "an expression whose value is not used outside of functions"),
        ("async def g(x):\n    return x", "an async function outside of functions"),
    ],
)
def test_statements_outside_of_functions_are_refused(text, why):
    source = f"import math\nimport numpy as np\nN = 3\n{text}\n\ndef kernel(lo, hi, x):\n    pass\n"
    with pytest.raises(Unsupported, match=why) as error:
        read(source, (np.zeros(3),))
    assert error.value.line == 4


@pytest.mark.parametrize(
    ("text", "why", "line"),
    [
        (
            "x[9223372036854775807 + lo] = 1.0\nx[4611686018427387904 * 4] = 1.0",
            "not a valid i8",
            1,
        ),
        ("if lo > 0:\n    x[4611686018427387904 * 4] = 1.0", "not a valid i8", 1),
        ("\n".join([f"s{k} = stack_c16()" for k in range(99)]), "buffers on the stack have", -1),
    ],
)
def test_verification_names_the_line(text, why, line):
    source = f"def kernel(lo, hi, x):\n{textwrap.indent(text, '    ')}\n"
    with pytest.raises(Unsupported, match=why) as error:
        read_source(source, "kernel", ("f8*",), check=True)
    assert error.value.line == 2 + line


SHARED = """
def part(lo, hi, x, y, n0, flag):
    for i in range(lo, hi):
        y[i] = x[i] * 2.0 + n0


def kernel(lo, hi, x, y, n, s):
    flag = nontemporal_requested()
    for t in range(lo, hi):
        part(t * n, t * n + n, x, at(y, 0), s, flag)
    if n < 0:
        parallel_for(part, s, n, n, n, n, x, y, s, flag)
"""


def test_a_kernel_calls_others():
    callees = (("part", ("f8*", "f8*", "i8", "i8")),)
    signature = ("f8*", "f8*", "i8", "i8")
    kernel, others = read_source(SHARED, "kernel", signature, callees)
    assert [k.name for k in others] == ["part"]
    assert others[0].nontemporal in others[0].integers
    renamed = SHARED.replace("flag", "hint").replace("n0", "flag")  # names say nothing
    (other,) = read_source(renamed, "kernel", signature, callees)[1]
    assert other.nontemporal is not None
    assert other.nontemporal.name == "hint"
    assert any(isinstance(s, Share) for s in statements(kernel.body))
    for k in (kernel, *others):
        verify(k)
        assert parse_kernel(print_kernel(k)) == k
    x, y = np.arange(12.0), np.zeros(12)
    named = {"part": others[0]}
    interpreter.run(kernel, {"x": x, "y": y}, {"n": 4, "s": 3}, 0, 3, named)
    np.testing.assert_array_equal(y, x * 2 + 3)
    text, linked, apart = lower_source(
        SHARED, "kernel", signature, callees, Target(WIDTH), objects.ENTRY_ATTRIBUTES
    )
    assert len(linked) == 1
    assert not apart
    assert '@"part"(' in text
    (address,), code = elf_loader.load(
        objects.build(text, linked, apart), "accnp_entry", kernel="k"
    )
    actual = np.zeros(12)
    launch_kernel(address, kernel, {"x": x, "y": actual}, {"n": 4, "s": 3}, (0, 3))
    np.testing.assert_array_equal(actual, y)
    del code


def piecewise(x, y):
    if x > y:
        return math.sin(x) * 2
    z = max(x, y) ** 3 - abs(y)
    if -1 < z < 1 and x != 0:
        z += math.pi
    else:
        w = z if z > 2 else -z
        z = np.sqrt(abs(w)) + helper(x)
    return z


def helper(x):
    n = int(x * 4) % 3
    return x / (n + 1) if n != 1 else float(n)


def test_functions_of_users_are_part_of_kernels():
    r = np.random.default_rng(0)
    x, y = r.normal(size=(2, 300)) * 2
    mark = ScalarText(piecewise).name
    source = f"""
def kernel(lo, hi, x, y, out):
    for i in range(lo, hi):
        out[i] = {mark}(x[i], y[i])
"""
    kernel = read(source, (x, y, x))
    (loop,) = [s for s in statements(kernel.body) if isinstance(s, For)]
    assert all(isinstance(s, Let | Store) for s in loop.body)
    actual = by_llvm(source, kernel, (x, y, np.zeros(300)), (0, 300))[2]
    expected = [piecewise(a, b) for a, b in zip(x, y, strict=True)]
    np.testing.assert_allclose(actual, expected, rtol=1e-14)
    assert result_type(mark, [np.dtype(np.float64)] * 2) == np.float64
    assert result_type(ScalarText(helper).name, [np.dtype(np.float64)]) == np.float64


def several(x):
    both = [x, x]
    return both[0]


def test_functions_that_need_numba():
    assert result_type(ScalarText(several).name, [np.dtype(np.float64)]) is None


PROGRAM = """
import sys
import numpy as np
import accnp as jnp
from accnp import lax, random
x = jnp.asarray(np.random.default_rng(0).normal(size=(20, 20)).astype("f4"))
jnp.dot(x, x)
jnp.sort(x.ravel()), jnp.argsort(x[0]), jnp.cumsum(x, 1)
jnp.linalg.solve(x, x[0]), jnp.linalg.cholesky(x @ x.T + jnp.eye(20))
jnp.fft.fft(x[0]), jnp.convolve(x[0], x[1]), jnp.searchsorted(x[0], x[1])
x.at[jnp.array([0, 1, 0])].add(x[:3]), x[jnp.array([1, 2])], jnp.exp(x * 1j)
random.normal(random.key(0), (3,)), random.permutation(random.key(1), 9)
lax.scan(lambda c, v: (c + v, c * v), x[0], x), lax.while_loop(lambda v: v < 9, lambda v: v * 2, 1)
(x.astype("float16") * 2).sum(), (x > 0).any(0), jnp.asarray(x, "int8").max(1)
jnp.where(x > 0, x, 0).block_until_ready()
print([m for m in ("numba", "numba.core") if m in sys.modules])
"""


def test_kernels_of_operations_compile_without_numba(tmp_path):
    process = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={"PATH": "", "ACCNP_CACHE_DIR": str(tmp_path), "PYTHONPATH": ":".join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert process.returncode == 0, process.stderr
    assert process.stdout.strip() == "[]"


@pytest.mark.parametrize("width", [32, 64])
@pytest.mark.parametrize("name", [*library.SIGNATURES])
def test_library_kernels_are_read(name, width):
    kernel, others = read_source(library.source(name, width), name, library.SIGNATURES[name])
    assert not others
    verify(kernel)
    assert parse_kernel(print_kernel(kernel)) == kernel
    verify(run_passes(kernel, Target(width)))


def test_loops_of_conditions_are_read_as_such():
    kernel = read(
        "def kernel(lo, hi, x):\n    k = 0\n    while x[k] > 0.0:\n        k += 1\n    x[0] = k\n",
        (np.zeros(3),),
    )
    (loop,) = [s for s in statements(kernel.body) if isinstance(s, While)]
    assert len(loop.carried) == 1
