"""Results of JAX that tests compare with, stored in `expected/`, because running JAX takes minutes.

`ACCNP_ORACLE=1 pytest tests/api/effects/test_callbacks.py ...` runs JAX again and rewrites the
files.
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


def to_json(value):
    """Return a result as JSON data: arrays as dtype and nested lists, errors as their class
    name."""
    if isinstance(value, Exception):
        return type(value).__name__
    if isinstance(value, type):
        return value.__name__
    if isinstance(value, np.ndarray):
        return {"dtype": value.dtype.name, "values": value.tolist()}
    if isinstance(value, list | tuple):
        return [to_json(v) for v in value]
    return value


def stored_result(file, name, run_jax):
    """Return the stored result of `run_jax()` as JSON data."""
    path = FOLDER / f"{file}.json"
    if file not in _tables:
        _tables[file] = json.loads(path.read_text()) if path.exists() else {}
    table = _tables[file]
    if os.environ.get("ACCNP_ORACLE"):
        table[name] = to_json(run_jax())
        FOLDER.mkdir(exist_ok=True)
        lines = [f"{json.dumps(k)}: {json.dumps(v)}" for k, v in sorted(table.items())]
        path.write_text("{\n" + ",\n".join(lines) + "\n}\n")
    return table[name]


def assert_same_result(result, expected, rtol=1e-6):
    """Compare a result with a stored one: strings and types exactly, numbers within `rtol`."""
    if isinstance(expected, dict):
        assert result.dtype.name == expected["dtype"]
        np.testing.assert_allclose(result, np.asarray(expected["values"], result.dtype), rtol=rtol)
    elif isinstance(expected, list):
        assert len(result) == len(expected)
        for a, b in zip(result, expected, strict=True):
            assert_same_result(a, b, rtol)
    else:
        assert to_json(result) == expected


# --- results stored by the name of the test that needs them ---


class JaxArray:
    """An array that JAX returned: dtype, weak type flag and values."""

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


class JaxError(Exception):
    """An error that JAX raised; the argument is the name of its class."""


_current = ["", 0]  # the running test, and how many results it has requested


def jax_result(run_jax, *inputs):
    """Return the result of `run_jax()`, or the error that it raised.

    It is read from the file of the test's module if it was stored there for the same `inputs`
    (operands, and functions by their source); otherwise JAX runs now. Arrays are returned as
    `JaxArray`. Results that are not plain data are not stored.
    """
    test = os.environ["PYTEST_CURRENT_TEST"].rpartition(" ")[0]
    _current[:] = [test, _current[1] + 1 if _current[0] == test else 0]
    module, _, name = test.partition("::")
    file, key = f"jax_{Path(module).stem}", f"{name} {_current[1]}"
    mark = zlib.crc32(repr([_fingerprint(x) for x in inputs]).encode())
    path = FOLDER / f"{file}.json"
    if file not in _tables:
        _tables[file] = json.loads(path.read_text()) if path.exists() else {}
        if os.environ.get("ACCNP_ORACLE"):
            atexit.register(_write, path, _tables[file])
    stored = _tables[file].get(key, [None])
    if stored[0] == mark and not os.environ.get("ACCNP_ORACLE"):
        return _from_json(stored[1])
    result = run_jax()
    try:
        _tables[file][key] = [mark, _tagged(result)]
    except TypeError:
        _tables[file].pop(key, None)
        return result
    return _from_json(_tables[file][key][1])


def _write(path, table):
    lines = [f"{json.dumps(k)}: {json.dumps(v)}" for k, v in sorted(table.items())]
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n")


def _fingerprint(x):
    if isinstance(x, np.ndarray):
        return x.dtype.str, x.shape, x.tobytes()
    if inspect.isfunction(x):
        return inspect.getsource(x)
    if isinstance(x, dict):
        return [(k, _fingerprint(v)) for k, v in sorted(x.items())]
    if isinstance(x, list | tuple):
        return [_fingerprint(v) for v in x]
    text = repr(x)  # the repr of a jitted function contains an address
    return getattr(x, "__name__", type(x).__name__) if " at 0x" in text else text


def _tagged(x):
    """Return a result as JSON data: each list begins with a tag."""
    if isinstance(x, Exception):
        return ["error", type(x).__name__]
    if type(x) in (list, tuple):
        return ["list" if isinstance(x, list) else "tuple", *map(_tagged, x)]
    if isinstance(x, dict):
        return ["dict", *[[k, _tagged(v)] for k, v in x.items()]]
    if x is None or isinstance(x, bool | int | float | str):
        return x
    many = getattr(x, "size", 0) > 1000  # few results, but most of the bytes
    known = hasattr(x, "weak_type") and isinstance(x.dtype, np.dtype) and not x.dtype.names
    if many or not known:
        raise TypeError(f"jax_result: cannot store {type(x)}, or it is too large")
    value = np.asarray(x)
    if value.dtype.kind == "c":
        value = value.reshape(-1).view(f"f{value.dtype.itemsize // 2}")
    if value.dtype.kind in "biu" or value.dtype == np.float64:
        numbers = value.ravel().tolist()
    else:  # the shortest decimals that round to these numbers
        numbers = [float(str(v)) for v in value.astype(np.float32).ravel()]
    return ["array", x.dtype.name, bool(x.weak_type), list(x.shape), numbers]


def _from_json(x):
    if not isinstance(x, list):
        return x
    kind, *parts = x
    if kind == "error":
        return JaxError(*parts)
    if kind == "array":
        return JaxArray(*parts)
    if kind == "dict":
        return {k: _from_json(v) for k, v in parts}
    return (
        [_from_json(v) for v in parts] if kind == "list" else tuple([_from_json(v) for v in parts])
    )
