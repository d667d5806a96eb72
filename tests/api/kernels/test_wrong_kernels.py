"""Errors in edited kernels and in user-defined scalar functions: the message states the reason and
quotes the user's line.
"""

from __future__ import annotations

import linecache
import math
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import accnp as jnp

X = np.random.default_rng(0).normal(0, 1, (300, 40)).astype(np.float32)


def chain(x: Any) -> Any:
    return jnp.exp(x) * 2 + 1


def softmax(x: Any) -> Any:
    e = jnp.exp(x - x.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


def kernel_of_chain() -> Any:
    return jnp.inspect(chain)(X).kernels[0]


@pytest.mark.parametrize(
    ("edit", "text"),
    [
        (
            lambda s: s.replace("exp(t1)", "t1.real"),
            "real of f4, which is not complex, at line 31: 't2 = t1.real'",
        ),
        (
            lambda s: s.replace("exp(", "g(") + "\n\ndef g(x):\n    y = x\n    return y + z\n",
            r"name 'z' is not defined, at line \d+: 'return y \+ z'",
        ),
        (
            lambda s: s.replace("exp(t1)", " + ".join(["t1"] * 3000)),
            "the kernel cannot be parsed; got .* nested too deeply; .*, at line 31: 't2 = t1 ",
        ),
        (
            lambda s: s.replace("exp(t1)", "-" * 500 + "t1"),
            "nested too deeply; divide it into several, at line 31: 't2 = ---",
        ),
        (
            lambda s: s.replace("for i in", "break\n    for i in"),
            "not valid Python; got 'break' outside loop, at line 29: 'break'",
        ),
        (
            lambda s: s.replace("def kernel", "raise ValueError(1)\n\ndef kernel"),
            r"a raise statement outside of functions, at line 26: 'raise ValueError\(1\)'",
        ),
        (
            lambda s: s.replace("exp(t1)", "t1 + a0[4611686018427387904 * 4]"),
            "18446744073709551616 is not a valid i8, at line 31: 't2 = ",
        ),
    ],
)
def test_override_names_the_line(edit: Callable[[str], str], text: str) -> None:
    kernel = kernel_of_chain()
    with pytest.raises(ValueError, match=f"override: .*{text}"):
        jnp.override(kernel, edit(kernel.source))


def test_an_edited_kernel_that_replaces_nothing_causes_a_warning() -> None:
    kernel = kernel_of_chain()
    edited = jnp.override(kernel, kernel.source + "# used by this test\n")
    what = "the edited kernel has not replaced any kernel; got"
    with pytest.warns(UserWarning, match=f"{what} nothing that was computed in place"), edited:
        pending = chain(jnp.asarray(X))  # which is computed after the block
    np.testing.assert_allclose(pending, np.exp(X) * 2 + 1, rtol=1e-6)
    message = rf"{what} '.*' in place of 'exp, mul, add' for \(f4\*, "
    with pytest.warns(UserWarning, match=message), edited:
        jnp.jit(softmax)(X)
    with pytest.warns(UserWarning, match=what):
        edited(softmax)(X)
    with edited:
        jnp.jit(chain)(X)
    with jnp.override(kernel, kernel.source + "# used by this test\n"):  # by the cached plan
        jnp.jit(chain)(X)


@pytest.mark.parametrize("wrong", ["exp(t1", "expo(t1)", "t1.real"])
def test_the_file_of_a_wrong_kernel_shows_its_line_only(tmp_path: Path, wrong: str) -> None:
    file = tmp_path / "kernel.py"
    file.write_text(kernel_of_chain().source.replace("exp(t1)", wrong))
    done = subprocess.run(
        [sys.executable, file], capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 1
    assert done.stdout == ""
    assert f"t2 = {wrong}" in done.stderr
    assert done.stderr.count("\n") < 5
    if wrong != "exp(t1":  # which Python itself finds
        assert done.stderr.startswith("kernel: it does not compile; got ")
        assert f", at line 31 of {file}: 't2 = {wrong}'; fix the source\n" in done.stderr


# Functions of numbers, and what is said of them.
FUNCTIONS = [
    ("if x > 0:\n    y = x\nreturn y", "'y' is read where it may have no value", 4),
    (
        "while x > 1:\n    if x > 2:\n        y = x\n    x = x / 2\nreturn y",
        "'y' is read where it may have no value",
        6,
    ),
    ("y = x\nreturn (lambda v: v)(y)", "comprehensions within it are not supported", 3),
    ("y = x\nreturn sum([y for _ in range(3)])", "comprehensions within it are not supported", 3),
    ("y = x\ndef g(v):\n    return v\nreturn g(y)", "comprehensions within it are not supp", 3),
    ("import math as own\nreturn own.exp(x)", "import has no meaning", 2),
    ("y = x\ndel y\nreturn x", "del has no meaning", 3),
    ("y, *z = x, x\nreturn y", "to a starred name", 2),
    ("return x + 99999999999999999999999", "more than 64 bits", 2),
    ("y = x\nreturn " + "-" * 500 + "y", "is nested too deeply", 3),
    ("y = x\nreturn helper(y)", "math.floot is not defined", 7),
]
HELPER = "\n\ndef helper(x):\n    y = x\n    return math.floot(y)\n"


def import_function(text: str, file: str) -> Any:
    """Import the function `f` from source text, so that `inspect` finds its source."""
    lines: list[str] = text.splitlines(keepends=True)
    linecache.cache[file] = (len(text), None, lines, file)
    scope: dict[str, Any] = {"math": math}
    exec(compile(text, file, "exec"), scope)
    return scope["f"]


@pytest.mark.parametrize(("body", "what", "line"), FUNCTIONS)
def test_errors_of_functions_of_numbers_name_the_line(
    tmp_path: Path, body: str, what: str, line: int
) -> None:
    text = "def f(x):\n    " + body.replace("\n", "\n    ") + HELPER
    f = import_function(text, str(tmp_path / "program.py"))
    with pytest.raises(ValueError, match=rf"{what}.*program\.py:{line}: "):
        jnp.kernel(f)


def test_parameters_and_annotations(tmp_path: Path) -> None:
    text = "def f(x):\n    y: unknown\n    z: unknown = x * 2\n    return z\n"
    f = import_function(text, str(tmp_path / "annotated.py"))
    np.testing.assert_array_equal(jnp.kernel(f)(X), X * 2)
    f = import_function("def f(x, /):\n    return x\n", str(tmp_path / "positional.py"))
    with pytest.raises(ValueError, match=r"parameters must be plain .*positional\.py:1: def f"):
        jnp.kernel(f)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("for i in range(int(x)):\n    y = x * i\nreturn y", [2.0, 6.0]),
        ("while x < 10:\n    x = x * 2 + 1\n    y = x\nreturn x + y", [22.0, 30.0]),
        ("while True:\n    y = x\n    x += 1\n    if x > 8:\n        break\nreturn y", [8.0, 8.0]),
    ],
)
def test_values_of_the_last_step_are_kept(tmp_path: Path, body: str, expected: list[float]) -> None:
    text = "def f(x):\n    " + body.replace("\n", "\n    ") + "\n"
    f = import_function(text, str(tmp_path / f"loop{len(body)}.py"))
    np.testing.assert_array_equal(jnp.kernel(f)(np.array([2, 3], "f4")), expected)
