"""Results of JAX for the cases of `recipes.py`, stored in `expected/values_*.json`.

`ACCNP_ORACLE=1 pytest tests/api/test_values.py -k called` runs JAX again for the functions whose
cases have changed, and `ACCNP_ORACLE=all` for all functions (some minutes per hundred functions).

Each case of a function has a record with these keys: `result`, a tree of leaves (dtype, weak flag,
shape, numbers), or the error; `concrete` if the function needs concrete values; `unsupported` if
JAX cannot compile the call; `vmap` and `grad` (the gradient of a weighted sum) if JAX supports
them.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import warnings
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from api.recipes import WIDE_DTYPES, CallLike, Case, cases, operands, recipe_file_of

FOLDER = Path(__file__).parent / "expected"
QUICK = {"xla_backend_optimization_level": 0}  # its programs run once
TOGETHER = 4  # calls in one program: compiling takes longer than in proportion to them
Record = dict[str, Any]
_tables: dict[str, dict[str, Any]] = {}


def function(m: Any, name: str) -> Callable[..., Any]:
    """Return the function or method of the library `m` (`jax` or `accnp`) with this dotted name."""
    space, _, last = name.rpartition(".")
    if space == "Array":
        return lambda x, *args, **kw: getattr(m.numpy.asarray(x), last)(*args, **kw)
    if space == "Array.at":
        return lambda x, i, *args, **kw: getattr(m.numpy.asarray(x).at[i], last)(*args, **kw)
    module = importlib.import_module(f"{m.__name__}.{space}" if space else m.__name__)
    attribute = getattr(module, last)
    if space != "nn.initializers":
        return attribute

    def initialized(*args: Any, key: Any = None, shape: Any = None, **kw: Any) -> Any:
        """Create the initializer from the other arguments; call it if a key is passed."""
        return attribute(*args, **kw) if key is None else attribute(*args, **kw)(key, shape)

    return initialized


def call(m: Any, name: str, case: CallLike, arrays: dict[str, Any]) -> Any:
    """Evaluate a case with the library `m` (`jax` or `accnp`)."""
    scope = {"jnp": m.numpy, "lax": m.lax, "nn": m.nn, "jax": m, "np": np, **arrays}
    scope["f"] = function(m, name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return eval(f"f({case.arguments})", scope)


def convert_operands(m: Any, case: Case) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the operands of a case: arrays of the library `m`, and Python numbers."""
    values = operands(case)
    arrays = {k: m.numpy.asarray(v) for k, v in values.items() if isinstance(v, np.ndarray)}
    return arrays, {k: v for k, v in values.items() if k not in arrays}


def select_differentiable(arrays: dict[str, Any]) -> dict[str, Any]:
    """Return the operands with respect to which the gradient is taken."""
    return {k: v for k, v in arrays.items() if v.dtype.kind in "fc" or v.dtype.name == "bfloat16"}


def flatten_result(m: Any, tree: Any) -> tuple[Any, list[Any]]:
    """Return the tree structure of a result as JSON data, and its arrays."""
    leaves: list[Any] = []

    def walk(x: Any) -> Any:
        if isinstance(x, tuple):
            return ["tuple", *map(walk, x)]
        if isinstance(x, list):
            return ["list", *map(walk, x)]
        if isinstance(x, dict):
            return ["dict", *[[k, walk(v)] for k, v in x.items()]]
        if hasattr(x, "weak_type") and isinstance(x, int | float | complex):
            x = m.numpy.asarray(x)  # a typed scalar
        if isinstance(x, m.Array | np.ndarray):
            key = m.dtypes.issubdtype(x.dtype, m.dtypes.prng_key)
            leaves.append(m.random.key_data(x) if key else x)
            return f"key {x.dtype} {len(leaves) - 1}" if key else len(leaves) - 1
        if isinstance(x, np.generic):
            x = x.item()  # whether a number is NumPy's or Python's is free
        return repr(np.dtype(x)) if isinstance(x, type | np.dtype) else repr(x)

    return walk(tree), leaves


def pack_array(x: Any) -> list[Any]:
    """Return an array as a list of dtype, weak flag, shape and numbers."""
    value, weak = np.asarray(x), bool(getattr(x, "weak_type", False))
    kind = value.dtype.name
    if value.dtype.kind == "c":
        value = np.stack([value.real, value.imag], -1)
    if value.dtype.kind in "biu" or value.dtype == np.float64:
        numbers = value.ravel().tolist()
    else:  # the shortest texts of such numbers
        numbers = [float(str(v)) for v in value.astype(np.float32).ravel()]
    return [kind, weak, list(x.shape), numbers]


def is_wide(case: Case) -> bool:
    return case.dtype in WIDE_DTYPES


def with_gradient(case: Case) -> bool:
    """Return whether the gradient of a case is compared: one case for each layout and each
    parameter.
    """
    plain = case.layout not in ("special", "strided", "turned") and case.dtype == "float32"
    return plain and len(case.more) < 2


def weighted_sum(m: Any, leaves: list[Any]) -> Any:
    """Return a weighted sum of all numbers, in which each number has a different weight."""
    total = m.numpy.zeros((), "float32")
    for x in leaves:
        if m.numpy.issubdtype(x.dtype, np.inexact):
            weights = np.cos(np.arange(x.size, dtype=np.float32)).reshape(x.shape)
            total = total + (m.numpy.real(x).astype("float32") * weights).sum()
            if m.numpy.issubdtype(x.dtype, np.complexfloating):
                total = total + (m.numpy.imag(x).astype("float32") * (weights + 0.5)).sum()
    return total


def precision(m: Any, wide: bool) -> Any:
    return m.enable_x64(True) if wide else contextlib.nullcontext()


def answers(name: str) -> list[Record]:
    """Return the stored records of the cases of a function, in order."""
    space = recipe_file_of(name)
    path = FOLDER / f"values_{space}.json"
    if space not in _tables:
        _tables[space] = json.loads(path.read_text()) if path.exists() else {}
    table = _tables[space]
    mark = zlib.crc32("\n".join(map(str, cases(name))).encode())
    ask = os.environ.get("ACCNP_ORACLE")
    if ask == "all" or (ask and table.get(name, [0])[0] != mark):
        table[name] = [mark, *_run_jax(name)]
        lines = [f"{json.dumps(k)}: {json.dumps(v)}" for k, v in sorted(table.items())]
        path.write_text("{\n" + ",\n".join(lines) + "\n}\n")
    stored = table.get(name, [0])
    assert stored[0] == mark, f"the cases of {name} are new: ask jax with ACCNP_ORACLE=1"
    return stored[1:]


def _run_jax(name: str) -> list[Record]:
    import jax

    records: dict[Case, Record] = {}
    for wide in (False, True):
        chosen = [c for c in cases(name) if is_wide(c) == wide]
        with precision(jax, wide):
            records.update(_run(jax, name, chosen))
    return [records[c] for c in cases(name)]


def _run(jax: Any, name: str, chosen: list[Case]) -> dict[Case, Record]:
    """Run all cases of one precision with JAX. Traceable cases are compiled in groups of a few."""
    records: dict[Case, Record] = {}
    traced: dict[str, Callable[..., Any]] = {}
    inputs: dict[str, Any] = {}
    for case in chosen:
        arrays, numbers = convert_operands(jax, case)
        record: Record = {}
        records[case] = record

        def run(a: Any, case: Case = case, numbers: Any = numbers, record: Any = record) -> Any:
            tree, leaves = flatten_result(jax, call(jax, name, case, {**a, **numbers}))
            record["tree"] = tree
            return leaves

        try:
            jax.eval_shape(run, arrays)
        except Exception:
            try:
                record["leaves"] = [pack_array(x) for x in run(arrays)]
                record["concrete"] = True
            except Exception as error:
                kinds = [c.__name__ for c in type(error).__mro__ if c.__module__ == "builtins"]
                record["error"] = kinds[0]
            continue
        traced[f"{len(inputs)}"] = run
        inputs[f"{len(inputs)}"] = arrays
        ways = _transformed_functions(jax, run, arrays) if with_gradient(case) else {}
        record["vmap"] = "vmap" in ways
        if "grad" in ways:
            traced[f"grad {len(inputs) - 1}"] = ways["grad"]
    if not traced:
        return records

    results: dict[str, Any] = {}
    names = list(traced)
    for first in range(0, len(names), TOGETHER):
        some = names[first : first + TOGETHER]

        def everything(inputs: Any, some: Any = some) -> Any:
            return {k: traced[k](inputs[k.removeprefix("grad ")]) for k in some}

        try:
            results |= jax.jit(everything, compiler_options=QUICK)(inputs)
        except Exception:  # jax traces some that it cannot compile for a CPU
            for k in some:
                with contextlib.suppress(Exception):
                    inputs_of = inputs[k.removeprefix("grad ")]
                    results[k] = jax.jit(traced[k], compiler_options=QUICK)(inputs_of)
    accepted = [c for c in chosen if "error" not in records[c] and "concrete" not in records[c]]
    for i, case in enumerate(accepted):
        if str(i) not in results:
            records[case] = {"unsupported": True}
            continue
        records[case]["leaves"] = [pack_array(x) for x in results[str(i)]]
        gradient = results.get(f"grad {i}")
        if gradient is not None:
            records[case]["grad"] = {k: pack_array(v) for k, v in gradient.items()}
    return records


def _transformed_functions(
    jax: Any, run: Callable[..., Any], arrays: dict[str, Any]
) -> dict[str, Any]:
    """Return functions for the gradient, if it exists, and for `vmap`, if it supports the case."""
    ways: dict[str, Any] = {}
    loose = select_differentiable(arrays)

    def gradient(a: dict[str, Any]) -> Any:
        rest = {k: v for k, v in a.items() if k not in loose}
        return jax.grad(lambda m: weighted_sum(jax, run({**rest, **m})))({k: a[k] for k in loose})

    tests = {
        "grad": (gradient, arrays),
        "vmap": (jax.vmap(run), {k: jax.numpy.stack([v, v]) for k, v in arrays.items()}),
    }
    for way, (f, inputs) in tests.items():
        if not (loose if way == "grad" else arrays):
            continue
        with contextlib.suppress(Exception):
            jax.eval_shape(f, inputs)
            ways[way] = f
    return ways
