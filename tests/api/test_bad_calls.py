"""Errors of public functions for invalid arguments. Functions refuse what JAX refuses, with an
error of the same class. The message names the function as the user called it, states what is wrong
with which value, and says what to do.

The calls are those of `bad_calls.py`; `exceptions.txt` lists intended differences. JAX's errors are
stored (`oracle.py`).
"""

from __future__ import annotations

import ast
import builtins
import contextlib
import dis
import fnmatch
import importlib
import re
import sys
import warnings
from typing import Any

import numpy as np
import pytest
from api.bad_calls import (
    ACCNP_SCOPE,
    TABLE,
    call_scope,
    evaluate_or_none,
    invalid_calls,
    raised_error,
)
from api.exceptions import exceptions
from api.oracle import stored_result
from api.test_names import NAMES, find_object

import accnp
import accnp.numpy as jnp
from accnp.error_texts import FROM_THE_START

FAMILIES = ("numpy.", "lax.", "nn.", "scipy.", "image.", "ops.", "random.", "tree.", "Array.")
EXCEPTIONS = exceptions("bad calls")
LETTERS = {
    "T": "TypeError", "V": "ValueError", "I": "IndexError", "N": "NotImplementedError",
    "O": "OverflowError",
}  # fmt: skip


def is_excepted(name: str, kind: str, call: str) -> bool:
    """Return whether `exceptions.txt` lists a difference."""
    return any(
        fnmatch.fnmatchcase(name, names) and what == kind and fnmatch.fnmatchcase(call, which)
        for names, what, which, _ in EXCEPTIONS
    )


def error_letter(error: Exception | None) -> str:
    """Return the class of an error as a letter: X for unlisted classes, a dot for no error.

    The letter is lowercase if an instruction in JAX's code raised the error, not a `raise`
    statement, for example `shape[0]` of an empty shape. Then the class says nothing about the
    argument.
    """
    if error is None:
        return "."
    kinds = [k.__name__ for k in type(error).__mro__]
    code = next((x for x, k in LETTERS.items() if k in kinds), "X")
    last = error.__traceback__
    while last is not None and last.tb_next is not None:
        last = last.tb_next
    if last is None or last.tb_frame.f_code.co_filename == __file__:
        return code  # the call itself
    step = dis.opname[last.tb_frame.f_code.co_code[last.tb_lasti]]
    return code if step.startswith(("RAISE", "RERAISE")) else code.lower()


def jax_error_letters(name: str) -> str:
    """Return the letters of JAX's errors for the invalid calls of a function. Nothing is
    compiled.
    """
    jax: Any = importlib.import_module("jax")
    for part in (
        "numpy.fft", "numpy.linalg", "scipy.special", "scipy.linalg", "scipy.stats", "scipy.signal",
        "scipy.fft", "scipy.ndimage", "scipy.integrate", "scipy.interpolate", "scipy.optimize",
        "scipy.sparse.linalg", "scipy.cluster.vq", "nn.initializers", "lax.linalg",
    ):  # fmt: skip
        importlib.import_module(f"jax.{part}")
    jax.config.update("jax_traceback_filtering", "off")
    space = call_scope(jax.numpy, jax)

    def one(call: str) -> str:
        tree = ast.parse(call, mode="eval").body
        if not isinstance(tree, ast.Call):
            return error_letter(raised_error(call, space))
        try:
            f = eval(ast.unparse(tree.func), dict(space))
            args = [eval(ast.unparse(a), dict(space)) for a in tree.args]
            named = {str(k.arg): eval(ast.unparse(k.value), dict(space)) for k in tree.keywords}
        except Exception:
            return "."  # the argument itself is not to be had
        try:
            jax.eval_shape(lambda: (f(*args, **named), None)[1])
        except Exception as error:
            traced = re.search("Tracer|Concret", type(error).__name__)
            return error_letter(raised_error(call, space) if traced else error)
        return "."

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return "".join(one(call) for call, *_ in invalid_calls(name))


def message_names(name: str) -> set[str]:
    """Return the names with which a message may begin: the last part of the name, or the function's
    `__name__`.
    """
    last = name.split(".")[-1]
    if name.startswith("Array.at."):
        return {f"x.at[...].{last}"}
    return {last, getattr(find_object(name), "__name__", last), f"tree_{last}"}


def find_form_fault(name: str, call: str, text: str) -> str:
    """Return what is wrong with the form of an error message; an empty text if nothing is."""
    handed = re.findall(r"\bjnp\.(\w+)(?=[,)])", call)  # functions may be handed over
    heads = "|".join(map(re.escape, message_names(name).union(handed)))
    match = re.match(rf"([\w.]+\.)?({heads})(:|\(\) | )", text)
    if text.startswith(FROM_THE_START):
        match = re.search(rf"; ({heads}) got ", text)
    if not match:
        return "names another function"
    if re.match(r" [\w.\[\]]+: ", text[match.end() :]) or "got got" in text:
        return "names two functions, or says a word twice"
    if re.match(r"[\w.\[\]]+\(\) (got|missing|takes)", text) or "What to do:" in text:
        return ""  # Python's own words about arguments; a text about traced values
    if ";" not in text or text.rsplit(";", 1)[1].strip().startswith("got"):
        return "does not say what to do"
    return ""


def shows_value(text: str, v: Any) -> bool:
    """Return whether a message shows an invalid argument: its value, type, shape, length or
    dtype.
    """
    phrases = {repr(v), str(v), type(v).__name__, getattr(v, "__name__", repr(v))}
    shape: Any = None
    if isinstance(v, tuple | list):
        phrases |= {repr(tuple(v)), *(["no "] if not v else [])}
        if any(shows_value(text, x) for x in v) or re.search(rf"\b{len(v)}\b", text):
            return True
    if v is None or isinstance(v, tuple | list | int | float | complex):
        with contextlib.suppress(ValueError):
            shape = np.shape(v)
    if isinstance(v, accnp.Array | np.ndarray | np.generic):
        shape = v.shape
        phrases |= {f"[{','.join(map(str, shape))}]", str(v.dtype), DTYPE_KIND_NAMES[v.dtype.kind]}
        if any(re.search(rf"\b{n}\b", text) for n in shape if n > 3 or len(shape) == 1):
            return True
    if shape is not None:
        rank = len(shape)
        phrases |= {str(shape), f"rank {rank}", f"dimension {rank}", f"{rank} axes", f"got {rank}"}
        phrases |= set() if rank else {"scalar"}
    return any(w in text for w in phrases)


DTYPE_KIND_NAMES = {"f": "float", "c": "complex", "i": "int", "b": "bool", "u": "uint", "V": "key"}
# These say of an argument beside the bad one that it is wrong, or of none.
ANOTHER_FORM = re.compile(r"unbound axis name|got multiple values|[\w.\[\]]+\(\) (missing|takes)")


def find_faults(name: str) -> list[tuple[str, str, str]]:
    """Return the faults of a function's errors for invalid calls: class of fault, call, text."""
    faults = []
    answers = stored_result("bad_calls", name, lambda: jax_error_letters(name))
    for (call, wild, bad), theirs in zip(invalid_calls(name), answers, strict=True):
        if theirs == ".":
            continue
        error = raised_error(call, ACCNP_SCOPE)
        if error is None:
            faults.append(("accepted", call, ""))
            continue
        text = str(error)
        kind = getattr(builtins, LETTERS.get(theirs, "Exception"))
        if not wild and theirs.isupper() and not isinstance(error, kind):
            faults.append(("class", call, f"{type(error).__name__} for {kind.__name__}: {text}"))
        if find_form_fault(name, call, text):
            faults.append(("text", call, f"{find_form_fault(name, call, text)}: {text}"))
        elif bad and not ANOTHER_FORM.search(text) and not shows_value(text, evaluate_or_none(bad)):
            faults.append(("value", call, f"does not show {bad}: {text}"))
    return faults


@pytest.mark.parametrize("name", TABLE)
def test_bad_calls(name: str) -> None:
    assert [c for c in find_faults(name) if not is_excepted(name, *c[:2])] == []


def test_every_function_has_a_bad_call() -> None:
    functions = {
        name
        for name, (kind, _) in NAMES.items()
        if kind in ("function", "ufunc", "method") and name.startswith(FAMILIES)
    }
    refused = {
        name
        for name in TABLE
        if set(stored_result("bad_calls", name, lambda n=name: jax_error_letters(n))) - {"."}
    }
    assert {name for name in functions - refused if not is_excepted(name, "none", "")} == set()


def test_exceptions_are_used() -> None:
    unused = []
    for pattern, what, which, why in EXCEPTIONS:
        assert what in ("none", "accepted", "class", "text", "value"), pattern
        assert len(why.split()) > 1, pattern
        names = [n for n in {*TABLE, *NAMES} if fnmatch.fnmatchcase(n, pattern)]
        if what == "none":
            used = bool(names)
        else:
            used = any(
                c[0] == what and fnmatch.fnmatchcase(c[1], which)
                for n in names if n in TABLE for c in find_faults(n)
            )  # fmt: skip
        unused += [] if used else [f"{pattern} {what}"]
    assert unused == []


@pytest.mark.parametrize(
    ("call", "words"),
    [
        ("jnp.sum(x, axes=0)", "did you mean 'axis'"),
        ("x.shpae", "Did you mean: 'shape'"),
        ("x.at[0].sett(1)", "Did you mean: 'set'"),
        ("x.at[0].div(2)", "no method 'div'; use one of add, apply, divide, get"),
        ("jnp.searchsorted(v, v, side='rigth')", "did you mean 'right'"),
        ("jnp.ones(3, dtype='flaot32')", "did you mean 'float32'"),
        ("jax.config.jax_enable_x46", "Did you mean: 'jax_enable_x64'"),
        ("jax.config.update('jax_enable_x46', True)", "did you mean 'jax_enable_x64'"),
        (
            "x @ x",
            "matmul: dot_general requires contracting dimensions to have the same shape, got (3,)",
        ),
        ("jnp.dot(x, x)", "dot: dot_general requires contracting dimensions"),
        ("jnp.squeeze(x, 0)", "squeeze: cannot select an axis to squeeze out"),
        ("jnp.hstack([x, m])", "hstack: Cannot concatenate arrays with shapes that differ"),
        ("x[9, 9, 9]", "x[...]: Too many indices: array is 2-dimensional, but 3 were indexed"),
        ("x.at[0].set(jnp.ones(7))", "x.at[...].set: Incompatible shapes for broadcasting"),
        ("x & x", "bitwise_and does not accept dtype float32"),
    ],
)
def test_error_messages_of_bad_calls(
    call: str, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    error = raised_error(call, ACCNP_SCOPE)
    assert error is not None
    sys.__excepthook__(type(error), error, None)  # which adds Python's own suggestion
    assert words in capsys.readouterr().err


def test_user_exceptions_are_not_modified() -> None:
    def users(v: Any) -> Any:
        raise ValueError("my own words")

    for call in (accnp.jit(users), accnp.vmap(users), accnp.grad(users)):
        with pytest.raises(ValueError, match=r"^my own words$"):
            call(jnp.ones(3))
