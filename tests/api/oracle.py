"""What jax answers, stored beside the tests: its own runs of these programs take most of a minute.

`ACCNP_ORACLE=1 pytest tests/api/test_callbacks.py ...` asks jax again and writes the files anew.
"""

import json
import os
from pathlib import Path

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
