"""Completion of error messages where they reach the user's code.

`errors.hide_frames` calls `finish` in the public function that the user called. There the name of
the function and its arguments are known. The message then gets the form `function: what is wrong;
got value; what to do`: the name of the called function is put in front, and a message without
advice gets the arguments and the signature. This module is loaded with the first error.
"""

from __future__ import annotations

import difflib
import inspect
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from types import FrameType, TracebackType
from typing import Any

from accnp import errors
from accnp.forks import at_interrupt
from accnp.public_names import HOMES

__all__ = ["FROM_THE_START", "add_reference", "finish", "interrupted", "of_call", "suggestion"]

_PACKAGE = os.path.dirname(os.path.abspath(__file__)) + os.sep
_STANDARD = os.path.dirname(os.__file__) + os.sep
_KINDS = (
    ArithmeticError, AttributeError, IndexError, NameError, RuntimeError, TypeError, ValueError
)  # fmt: skip
# The function that a message names: `einsum:`, `jnp.sum:`, `x.at[...].set:`, `x[...]:`, `add got`.
_LEAD = re.compile(
    r"((?:x\.at\[\.\.\.\]\.|[A-Za-z_]\w*\.)*?)(x\.at\[\.\.\.\]|[A-Za-z_]\w*(?:\[\.\.\.\])?)"
    r"(?=:| got incompatible shapes| does not accept dtype| requires (?:arguments|ndarray)"
    r"| accepts a single key)"
)
# Messages that programs match from the first word, so no function name may be put in front.
FROM_THE_START = (
    "Array has been deleted",
    "xp and fp must be one-dimensional",
    "invalid entry in ",
)
# Makers of functions that users call later. A message that starts with one of these names the part
# of the user's code that is wrong, and is kept.
_RULES = ("custom_jvp", "custom_vjp", "custom_vmap", "export", "kernel", "linear_call")
_BOUND = re.compile(
    r"([\w.<>]+)\(\) (got an unexpected keyword argument '(\w+)'|missing \d+ required|takes |"
    r"got multiple values for|got some positional-only)"
)
_SHOWN = 60  # the maximum number of characters of an argument in a message


def suggestion(name: str, known: Iterable[str], quoted: bool = True) -> str:
    """Return `did you mean 'a' or 'b'?`, or "" if no known name is similar."""
    close = difflib.get_close_matches(name, list(known), n=3, cutoff=0.6)
    texts = map(repr, close) if quoted else close
    return f"did you mean {' or '.join(texts)}?" if close else ""


def finish(error: BaseException) -> None:
    """Complete the message of an error that is about to reach the user's code."""
    _name_the_call(error)
    add_reference(error)


def add_reference(error: BaseException) -> None:
    """Add a reference to the documentation of the class to an error of `accnp.errors`."""
    text = error.args[0] if len(error.args) == 1 else None
    if type(error).__module__ != "accnp.errors" or not isinstance(text, str):
        return
    reference = f"See: python -m accnp docs errors.{type(error).__name__}"
    if reference not in text:
        error.args = (f"{text}\n{reference}",)


def _name_the_call(error: BaseException) -> None:
    """Add the name of the function that the user called and advice to the message of an error.

    Errors of the user's own functions, errors of classes that do not concern arguments, and errors
    that have been completed before are left unchanged.
    """
    if not isinstance(error, _KINDS) or getattr(error, "_completed", False):
        return
    text = error.args[0] if len(error.args) == 1 else None
    tb = error.__traceback__
    if tb is None or not isinstance(text, str) or not _may_complete(type(error)):
        return
    first, last = tb.tb_frame, tb
    while last.tb_next is not None:
        last = last.tb_next
        if not _is_library_file(last.tb_frame.f_code.co_filename):
            return
    error._completed = True  # type: ignore[attr-defined]
    function, name = _passed_function(error, first) or _called_function(first)
    if not name:
        return
    bound = _BOUND.match(text)
    if bound:
        is_ours = ".<locals>." in bound[1] and "lambda" not in bound[1]
        is_ours = is_ours or bound[1] in last.tb_frame.f_globals
        if function is not None and (is_ours or bound[1] == _qualified_name(function)):
            error.args = (_argument_error_text(text, bound, name, function),)
        return
    if isinstance(error, errors.ConcretizationTypeError) and function is None:
        return
    text = _prefix_function_name(text, name, function)
    if ";" not in text and "What to do" not in text:
        text = f"{text.rstrip('.')}; {of_call(first, function, name)}"
    error.args = (text,)


def interrupted(tb: TracebackType | None) -> None:
    """Reset the state of the package after an interrupt, once no function of the package is running
    any more. The interrupt may have come after some work and before the line that records it."""
    frame = None if tb is None else tb.tb_frame.f_back
    while frame is not None:
        if frame.f_code.co_filename.startswith(_PACKAGE):
            return
        frame = frame.f_back
    for reset in at_interrupt:
        reset()


def _may_complete(kind: type) -> bool:
    """Return whether messages of errors of this class may be completed."""
    return kind.__module__ in ("builtins", "accnp.errors") and kind.__name__ not in _COMPLETE


# Classes whose messages are complete.
_COMPLETE = (
    "RecursionError",
    "UnexpectedTracerError",
    "JaxRuntimeError",
    "UnicodeDecodeError",
    "UnicodeEncodeError",
)


def _is_library_file(file: str) -> bool:
    """Return whether a file belongs to the package or to a library that it uses."""
    if file.startswith(_PACKAGE):
        return True
    # The folder of the standard library also contains the installed packages.
    standard = file.startswith(_STANDARD) and "-packages" not in file
    below = (f"{os.sep}numpy{os.sep}", f"{os.sep}scipy{os.sep}", "<frozen ")
    return standard or any(part in file for part in below)


def _qualified_name(function: Callable[..., Any]) -> str:
    return getattr(inspect.unwrap(function), "__qualname__", "")


# ---- the function that the user called

_BY_CODE: dict[int, Any] = {}  # by the id of the code object, since code objects may compare equal


def _called_function(frame: FrameType) -> tuple[Callable[..., Any] | None, str]:
    """Return the public function of the frame that an error leaves, and its name."""
    wrapper = frame.f_locals.get("wrapper")
    if wrapper is not None and getattr(wrapper, "__code__", None) is frame.f_code:
        return _user_visible_name(wrapper, frame)
    if id(frame.f_code) not in _BY_CODE:
        _BY_CODE.update(_codes())
    function = _BY_CODE.get(id(frame.f_code))
    if function is not None:
        spoken = str(function.__name__)
        return function, _SPOKEN.get(spoken, spoken)
    name = str(frame.f_locals.get("name", ""))  # the method of an operator has the function's name
    return None, name if frame.f_code.co_name in _MADE else ""


_MADE = ("call", "reflected")


def _passed_function(
    error: BaseException, frame: FrameType
) -> tuple[Callable[..., Any], str] | None:
    """Return the public function that raised the error, if the user passed it to the called one."""
    # Functions and code objects that the error has passed through, innermost first.
    through = getattr(error, "_through", ())
    variables = frame.f_locals if through else {}
    values = [
        *variables.values(),
        *variables.get("args", ()),
        *variables.get("kwargs", {}).values(),
    ]
    passed = {}
    for value in values:
        while callable(value):
            own = value if inspect.isfunction(value) else type(value).__call__
            passed[id(own)] = passed[id(getattr(own, "__code__", None))] = value
            value = getattr(value, "__wrapped__", None) or getattr(value, "func", None)
    function = next((passed[id(f)] for f in through if id(f) in passed), None)
    return None if function is None else (function, _public(function))


def _user_visible_name(wrapper: Any, frame: FrameType) -> tuple[Any, str]:
    """Return a wrapped function, and its name as a user writes it."""
    name, qualified = _public(wrapper), wrapper.__qualname__
    inner = frame.f_locals.get("function")
    if inner is not None and getattr(wrapper, "__wrapped__", None) is not inner:
        return None, _find_transformation(inner)
    if qualified.startswith("AtIndex."):
        return wrapper, f"x.at[...].{name}"
    if name == "__call__":
        args = frame.f_locals.get("args")
        return wrapper, getattr(args[0], "__name__", "") if args else ""
    if name == "__init__":
        return wrapper, qualified.split(".")[-2]
    return wrapper, _SPOKEN.get(name, name.strip("_") if name.startswith("_") else name)


def _public(function: Any) -> str:
    """Return the name of a function, or for a private one its name in a public module."""
    name = function.__name__
    if not name.startswith("_") or name.endswith("__"):
        return name
    names = {name for name, value in _public_functions() if value is function}
    return min(names, default=name)


def _find_transformation(inner: Any) -> str:
    """Return the name of the transformation that made a function with the name of the user's."""
    code = inner.__code__
    for name, cell in zip(code.co_freevars, inner.__closure__ or (), strict=True):
        if name == "function" and isinstance(cell.cell_contents, str):
            return cell.cell_contents
    return code.co_qualname.split(".")[0].strip("_")


# The expressions with which users call special methods.
_SPOKEN = {
    "getitem": "x[...]", "__getitem__": "x[...]", "__setitem__": "x[...] = y",
    "__bool__": "bool(x)", "__int__": "int(x)", "__float__": "float(x)", "__len__": "len(x)",
    "__complex__": "complex(x)", "__index__": "operator.index(x)", "__iter__": "iter(x)",
    "__matmul__": "matmul", "__rmatmul__": "matmul", "__pow__": "power", "__rpow__": "power",
    "__round__": "round", "__array__": "numpy.asarray(x)", "__contains__": "y in x",
}  # fmt: skip


def _codes() -> dict[int, Any]:
    """Return the public functions by the ids of their code objects; None if several share one."""
    functions: dict[int, Any] = {}
    for name, value in _public_functions():
        code = getattr(value, "__code__", None)
        if code is not None and not name.startswith("_"):
            functions[id(code)] = None if functions.get(id(code), value) is not value else value
    for array_type in errors.array_types:
        for value in list(vars(array_type).values()):
            code = getattr(value, "__code__", None)
            if code is not None and id(code) not in functions:
                functions[id(code)] = value if value.__name__ in _OPERATORS else None
    return functions


_OPERATORS = {"reshape", "astype", "__matmul__", "__getitem__", "__pow__"}


_PUBLIC = re.compile(r"accnp\.(numpy|lax|nn|random|scipy|image|ops|tree|tree_util)\b")


def _public_functions() -> Iterator[tuple[str, Any]]:
    """Yield the names and values of public modules that are loaded."""
    for module, homes in HOMES.items():
        for home, entries in homes.items() if _PUBLIC.match(module) else ():
            values = vars(sys.modules[home]) if home != module and home in sys.modules else {}
            for entry in entries.split():
                name, _, defined_as = entry.partition("=")
                yield name, values.get(defined_as or name)
    for module in ("accnp.tree", "accnp.tree_util"):
        yield from list(vars(sys.modules[module]).items()) if module in sys.modules else ()


def _prefix_function_name(text: str, name: str, function: Any) -> str:
    """Return the message with the name of the function that the user called in front."""
    if text.startswith((f"{name}:", f"{name}()", f"{name} ", f"at {name} ", *FROM_THE_START)):
        return text
    lead = _LEAD.match(text)
    home = getattr(function, "__module__", None) or ""
    family = "random." if home.startswith("accnp.random.") else ""
    if lead is None:
        return f"{family}{name}: {text}"
    if lead[0] in _RULES or (name.isidentifier() and name in (lead[2], lead[0].replace(".", "_"))):
        return text
    if lead[1] and lead[1] not in _FAMILIES:  # the prefix of a distribution, as in `norm.pdf`
        return f"{lead[1]}{name}{text[lead.end() :]}"
    return f"{family}{name}{text[lead.end() :]}"


_FAMILIES = ("jnp.", "lax.", "jnp.fft.", "lax.linalg.", "linalg.", "special.", "signal.", "random.",
    "nn.", "fft.", "x.at[...].", "jax.ops.", "image.", "ndimage.")  # fmt: skip


# ---- the arguments of the call


def _parameters(function: Any) -> dict[str, Any]:
    try:
        return dict(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        return {}


def _argument_error_text(text: str, bound: re.Match[str], name: str, function: Any) -> str:
    """Return Python's message about wrong arguments, with the public name and the signature."""
    lead = f"{name}(){text[len(bound[1]) + 2 :]}"
    known = _parameters(function)
    signature = _signature(function)
    fix = suggestion(bound[3], known) if bound[3] else ""
    return f"{lead}; it takes {signature}" + (f"; {fix}" if fix else "")


def _signature(function: Any) -> str:
    """Return the signature of a function without types."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return "other arguments"
    plain = [
        p.replace(
            annotation=p.empty, default=_Text(p.default) if p.default is not p.empty else p.empty
        )
        for p in signature.parameters.values()
    ]
    return str(signature.replace(parameters=plain, return_annotation=signature.empty))


class _Text:
    """A default value in a signature, shortened if its repr is long or contains an address."""

    def __init__(self, value: Any) -> None:
        text = repr(value)
        self.text = "..." if " at 0x" in text or len(text) > _SHOWN else text

    def __repr__(self) -> str:
        return self.text


def shown(value: Any) -> str:
    """Return a short text for an argument; for an array, its dtype and shape."""
    shape, dtype = getattr(value, "shape", None), getattr(value, "dtype", None)
    if isinstance(shape, tuple) and dtype is not None:
        return f"{getattr(dtype, 'name', dtype)}[{','.join(map(str, shape))}]"
    if isinstance(value, list | tuple) and len(value) < 9:
        left, right = "[]" if isinstance(value, list) else "()"
        comma = "," if len(value) == 1 and right == ")" else ""
        return f"{left}{', '.join(map(shown, value))}{comma}{right}"
    if inspect.isfunction(value) or isinstance(value, type):
        return value.__name__
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 3]}..."


def of_call(frame: FrameType, function: Any, name: str) -> str:
    """Return a text such as `got f(float32[3], axis='a'); it takes (x, axis=None)`, for messages
    without advice."""
    here, code = frame.f_locals, frame.f_code
    if "wrapper" in here and "args" in here:
        arguments = [shown(v) for v in here["args"]]
        arguments += [f"{k}={shown(v)}" for k, v in here["kwargs"].items()]
    else:
        arguments = [shown(here[n]) for n in code.co_varnames[: code.co_argcount] if n in here]
    if not name.isidentifier():
        advice = "; see the documentation of indexing" if name.startswith(("x[", "x.at[")) else ""
        return f"got {', '.join(arguments)}{advice}"
    takes = f"; it takes {_signature(function)}" if function is not None else ""
    return f"got {name}({', '.join(arguments)}){takes}"
