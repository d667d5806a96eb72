"""What jax answers, stored beside the tests: its own runs of these programs take minutes.

`ACCNP_ORACLE=1 pytest tests/api/effects/test_callbacks.py ...` asks jax again and writes the files
anew.
"""

import atexit
import inspect
import json
import os
import zlib
from pathlib import Path

import ml_dtypes
import numpy as np

FOLDER = Path(__file__).parent / "expected"
_tables = {}


def packed(value):
    """A result as plain data: arrays as dtype and nested lists, errors as the name of the class."""
    if isinstance(value, Exception):
        return type(value).__name__
    if isinstance(value, type):
        return value.__name__
    if isinstance(value, np.ndarray):
        return {"dtype": value.dtype.name, "values": value.tolist()}
    if isinstance(value, list | tuple):
        return [packed(v) for v in value]
    return value


def stored(file, name, ask):
    """What `ask()`, a run of jax, gave, packed."""
    path = FOLDER / f"{file}.json"
    if file not in _tables:
        _tables[file] = json.loads(path.read_text()) if path.exists() else {}
    table = _tables[file]
    if os.environ.get("ACCNP_ORACLE"):
        table[name] = packed(ask())
        FOLDER.mkdir(exist_ok=True)
        lines = [f"{json.dumps(k)}: {json.dumps(v)}" for k, v in sorted(table.items())]
        path.write_text("{\n" + ",\n".join(lines) + "\n}\n")
    return table[name]


def same(found, expected, rtol=1e-6):
    """Compare a result with a stored one: texts and types exactly, numbers closely."""
    if isinstance(expected, dict):
        assert found.dtype.name == expected["dtype"]
        np.testing.assert_allclose(found, np.asarray(expected["values"], found.dtype), rtol=rtol)
    elif isinstance(expected, list):
        assert len(found) == len(expected)
        for a, b in zip(found, expected, strict=True):
            same(a, b, rtol)
    else:
        assert packed(found) == expected


# --- answers kept by the test that asks ---


class Answer:
    """An array of jax's: its type, weak flag and values."""

    def __init__(self, kind, weak, shape, numbers):
        dtype = np.dtype(getattr(ml_dtypes, kind, kind))
        values = np.asarray(numbers, np.float64 if dtype.kind in "cV" else dtype)
        if dtype.kind == "c":
            values = values.astype(f"f{dtype.itemsize // 2}").view(dtype)
        self.value = values.astype(dtype).reshape(shape)
        self.shape, self.dtype, self.weak_type = self.value.shape, dtype, weak

    def __array__(self, dtype=None, copy=None):
        return self.value if dtype is None else self.value.astype(dtype)

    def __repr__(self):
        return f"{self.value!r}{', weak' * self.weak_type}"


class Refused(Exception):
    """That jax raised an error, by the name of its class."""


_asking = ["", 0]  # the test under way, and how often it has asked


def remembered(ask, *given):
    """The result of a run of jax, or the error that it raised: from the file of the test's module
    if it is there, of the same operands (and texts of functions) `given`; else asked now.

    Arrays come as `Answer`s. What is no plain data is asked each time.
    """
    test = os.environ["PYTEST_CURRENT_TEST"].rpartition(" ")[0]
    _asking[:] = [test, _asking[1] + 1 if _asking[0] == test else 0]
    module, _, name = test.partition("::")
    file, key = f"asked_{Path(module).stem}", f"{name} {_asking[1]}"
    mark = zlib.crc32(repr([_mark(x) for x in given]).encode())
    path = FOLDER / f"{file}.json"
    if file not in _tables:
        _tables[file] = json.loads(path.read_text()) if path.exists() else {}
        if os.environ.get("ACCNP_ORACLE"):
            atexit.register(_write, path, _tables[file])
    found = _tables[file].get(key, [None])
    if found[0] == mark and not os.environ.get("ACCNP_ORACLE"):
        return _plain(found[1])
    result = ask()
    try:
        _tables[file][key] = [mark, _kept(result)]
    except TypeError:
        _tables[file].pop(key, None)
        return result
    return _plain(_tables[file][key][1])


def _write(path, table):
    lines = [f"{json.dumps(k)}: {json.dumps(v)}" for k, v in sorted(table.items())]
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n")


def _mark(x):
    if isinstance(x, np.ndarray):
        return x.dtype.str, x.shape, x.tobytes()
    if inspect.isfunction(x):
        return inspect.getsource(x)
    if isinstance(x, dict):
        return [(k, _mark(v)) for k, v in sorted(x.items())]
    if isinstance(x, list | tuple):
        return [_mark(v) for v in x]
    text = repr(x)  # that of a jitted function has an address
    return getattr(x, "__name__", type(x).__name__) if " at 0x" in text else text


def _kept(x):
    """A result as data: a list begins with what it is."""
    if isinstance(x, Exception):
        return ["error", type(x).__name__]
    if type(x) in (list, tuple):
        return ["list" if isinstance(x, list) else "tuple", *map(_kept, x)]
    if isinstance(x, dict):
        return ["dict", *[[k, _kept(v)] for k, v in x.items()]]
    if x is None or isinstance(x, bool | int | float | str):
        return x
    many = getattr(x, "size", 0) > 1000  # few of the tests, most of the bytes
    known = hasattr(x, "weak_type") and isinstance(x.dtype, np.dtype) and not x.dtype.names
    if many or not known:
        raise TypeError(f"remembered: {type(x)} is no plain data, or much of it")
    value = np.asarray(x)
    if value.dtype.kind == "c":
        value = value.reshape(-1).view(f"f{value.dtype.itemsize // 2}")
    if value.dtype.kind in "biu" or value.dtype == np.float64:
        numbers = value.ravel().tolist()
    else:  # the shortest texts of such numbers
        numbers = [float(str(v)) for v in value.astype(np.float32).ravel()]
    return ["array", x.dtype.name, bool(x.weak_type), list(x.shape), numbers]


def _plain(x):
    if not isinstance(x, list):
        return x
    kind, *parts = x
    if kind == "error":
        return Refused(*parts)
    if kind == "array":
        return Answer(*parts)
    if kind == "dict":
        return {k: _plain(v) for k, v in parts}
    return [_plain(v) for v in parts] if kind == "list" else tuple([_plain(v) for v in parts])
