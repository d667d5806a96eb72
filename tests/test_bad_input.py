"""Bad input raises a clear error of the right class, or is recovered from silently. There is one
case each.
"""

import os
import subprocess
import sys
from functools import partial

import numpy as np
import pytest

import accnp
import accnp.numpy as jnp
from accnp import lax

MATRIX = np.ones((2, 3), np.float32)
ERRORS = {
    "shapes that do not broadcast": (
        lambda: jnp.ones(3) + jnp.ones(4),
        (TypeError, ValueError),
        "3",
    ),
    "matmul of wrong shapes": (lambda: jnp.ones((2, 3)) @ jnp.ones((2, 3)), TypeError, "3"),
    "reshape to another size": (lambda: jnp.ones(6).reshape(4, 2), TypeError, "reshape"),
    "reshape with two unknowns": (
        lambda: jnp.ones(6).reshape(-1, -1),
        (TypeError, ValueError),
        "-1",
    ),
    "negative size": (lambda: jnp.ones((2, -1)), (TypeError, ValueError), "-1"),
    "fraction as size": (lambda: jnp.ones(2.5), TypeError, "2.5"),
    "axis out of range": (lambda: jnp.ones((2, 2)).sum(axis=5), ValueError, "5"),
    "axis given twice": (lambda: jnp.ones((2, 2)).sum(axis=(0, 0)), ValueError, "axis"),
    "bad permutation": (lambda: jnp.ones((2, 2)).transpose(0, 0), (TypeError, ValueError), "0"),
    "concatenate of nothing": (lambda: jnp.concatenate([]), ValueError, "concatenate"),
    "concatenate of unequal shapes": (
        lambda: jnp.concatenate([jnp.ones((2, 2)), jnp.ones((3, 3))]),
        (TypeError, ValueError),
        "oncatenate",
    ),
    "strict dtypes": (lambda: lax.add(jnp.ones(2), jnp.arange(2)), TypeError, "int32"),
    "bits of floats": (lambda: jnp.bitwise_and(jnp.ones(2), 1), TypeError, "float32"),
    "unknown dtype": (lambda: jnp.ones(2, dtype="float33"), TypeError, "float33"),
    "object array": (lambda: jnp.asarray(np.array([object()])), TypeError, "object"),
    "string": (lambda: jnp.asarray("text"), TypeError, "str|U4"),
    "None": (lambda: jnp.sin(None), TypeError, "None"),
    "ragged list": (lambda: jnp.array([[1, 2], [3]]), (TypeError, ValueError), None),
    "list as operand": (lambda: jnp.sin([1.0, 2.0]), TypeError, "list"),
    "integer too large": (lambda: jnp.asarray(2**40) + 0, OverflowError, None),
    "one_hot of truth values": (
        lambda: accnp.nn.one_hot(jnp.ones(2, bool), 3),
        TypeError,
        "got bool",
    ),
    "index of float": (lambda: jnp.ones(3)[1.5], (TypeError, IndexError), "float|integer"),
    "too many indices": (lambda: jnp.ones(3)[1, 2], IndexError, "indices"),
    "mask of wrong length": (lambda: jnp.ones(3)[np.array([True, False])], IndexError, None),
    "item of many": (lambda: jnp.ones(3).item(), ValueError, None),
    "truth of many": (lambda: bool(jnp.ones(3)), ValueError, "ambiguous"),
    "float of many": (lambda: float(jnp.ones(3)), TypeError, None),
    "length of scalar": (lambda: len(jnp.float32(1)), TypeError, "nsized"),
    "iteration over scalar": (lambda: list(jnp.float32(1)), TypeError, "0-d"),
    "hash": (lambda: hash(jnp.ones(3)), TypeError, "unhashable"),
    "item assignment": (lambda: jnp.ones(3).__setitem__(0, 1), TypeError, r"\.at\["),
    "grad of a vector": (lambda: accnp.grad(jnp.sin)(jnp.ones(3)), TypeError, "scalar"),
    "grad of integers": (lambda: accnp.grad(lambda v: v * 2.0)(3), TypeError, "int32"),
    "vmap of unequal sizes": (
        lambda: accnp.vmap(jnp.add)(jnp.ones(3), jnp.ones(4)),
        ValueError,
        "inconsistent sizes for array axes to be mapped",
    ),
    "unhashable static": (
        lambda: accnp.jit(lambda v, n: v, static_argnums=1)(1.0, [1]),
        ValueError,
        "hashable",
    ),
    "static number out of range": (
        lambda: accnp.jit(lambda v: v, static_argnums=3)(1.0),
        ValueError,
        "static_argnums",
    ),
    "argument that is no array": (
        lambda: accnp.jit(lambda v: v)({"a": ["text"]}),
        TypeError,
        r"\['a'\]\[0\]",
    ),
    "where of two": (
        lambda: jnp.where(MATRIX, MATRIX),
        TypeError,
        "^where requires ndarray or scalar arguments",
    ),
    "negative size of unique": (lambda: jnp.unique(MATRIX, size=-1), TypeError, "size.*got -1"),
    "negative size of argwhere": (lambda: jnp.argwhere(MATRIX, size=-1), TypeError, "size.*got -1"),
    "negative length of bincount": (
        lambda: jnp.bincount(jnp.ones(3, int), length=-1),
        TypeError,
        "length.*got -1",
    ),
    "negative bins": (lambda: jnp.histogram(MATRIX, -1), ValueError, "bins.*got -1"),
    "a fraction of a mask": (lambda: jnp.mask_indices(2.5, jnp.triu), TypeError, "n must.*2.5"),
    "mask of no function": (lambda: jnp.mask_indices(2, "a"), TypeError, "mask_indices: .*'a'"),
    "fraction of decimals": (lambda: jnp.round(MATRIX, 1.5), TypeError, "decimals.*1.5"),
    "ufunc of no function": (lambda: jnp.frompyfunc(3, 1, 1), TypeError, "frompyfunc: func.*3"),
    "repr of a number": (lambda: jnp.array_repr(3), AttributeError, "array_repr: arr.*got 3"),
    "str of a number": (lambda: jnp.array_str(3), AttributeError, "array_str: a must.*got 3"),
    "dlpack of a number": (lambda: jnp.from_dlpack(3), TypeError, "__dlpack__.*got 3"),
    "triangle of a list": (
        lambda: jnp.tril_indices_from([1]),
        TypeError,
        "indices_from.*list",
    ),
    "diagonal of a list": (
        lambda: jnp.diag_indices_from([1]),
        TypeError,
        "indices_from.*list",
    ),
    "taking by floats": (
        lambda: jnp.take(MATRIX, 1.5),
        ValueError,
        "take: indices must have",
    ),
    "cholesky of no square": (lambda: jnp.linalg.cholesky(MATRIX), TypeError, "2, 3.*square"),
    "eigh of no square": (lambda: lax.linalg.eigh(MATRIX), TypeError, "square.*2, 3"),
    "keys as integers": (lambda: accnp.random.key(0).astype(int), TypeError, "key"),
    "jit of no function": (lambda: accnp.jit(3), TypeError, "callable|function"),
}


@pytest.mark.parametrize("name", ERRORS)
def test_error(name):
    call, kind, text = ERRORS[name]
    with pytest.raises(kind, match=text):
        np.asarray(call())


# The function that the user called stands in the text, not the one that it calls itself.
NAMED = {
    "random.gamma": lambda: accnp.random.gamma(1, 2.0),
    "random.rademacher": lambda: accnp.random.rademacher(1, (2,)),
    "random.lognormal": lambda: accnp.random.lognormal(1),
    "random.binomial": lambda: accnp.random.binomial(1, 3, 0.5),
    "sqrtm": lambda: accnp.scipy.linalg.sqrtm(MATRIX),
    "cho_factor": lambda: accnp.scipy.linalg.cho_factor(MATRIX),
    "eigvalsh": lambda: jnp.linalg.eigvalsh(MATRIX),
    "correlate": lambda: accnp.scipy.signal.correlate(MATRIX, MATRIX[0]),
    "corrcoef": lambda: jnp.corrcoef(np.ones((2, 2, 2))),
    "geomspace": lambda: jnp.geomspace(1, 2, -1),
    "append": lambda: jnp.append(MATRIX, "a"),
    "nanmax": lambda: jnp.nanmax(np.ones(0)),
}


@pytest.mark.parametrize("name", NAMED)
def test_the_function_that_was_called_is_named(name):
    with pytest.raises((TypeError, ValueError), match=rf"^{name}\b"):
        NAMED[name]()


def test_nested_call_names_the_inner_function():
    def users(v):
        return jnp.linspace(0, v, -1)

    with pytest.raises(ValueError, match=r"linspace"):
        accnp.vmap(users)(np.ones(3))
    with pytest.raises(TypeError, match=r"^add got incompatible shapes for broadcasting"):
        accnp.tree.map(jnp.add, [np.ones(3)], [np.ones(2)])
    with pytest.raises(ValueError, match=r"^sum: axis 9"):
        accnp.vmap(accnp.grad(partial(jnp.sum, axis=9)))(np.ones((3, 2)))
    with pytest.raises(TypeError, match=r"^dot: dot_general requires contracting dimensions"):
        accnp.lax.scan(jnp.dot, np.ones(3), np.ones((4, 2)))


class Column:
    """An object with `__array__` that is not an array, such as a pandas Series."""

    dtype, shape = np.dtype("float64"), (2,)

    def __array__(self, dtype=None, copy=None):
        return np.array([1.0, 2.0])

    def __repr__(self):
        return "0  1.0\n1  2.0"


def test_columns_of_tables_are_converted_first():
    words = r"float64\[2\] of type .*Column'> is not a valid JAX type; convert it with "
    with pytest.raises(TypeError, match=words):
        jnp.sin(Column())
    with pytest.raises(
        TypeError,
        match=r"Argument of type .*Column'> is not a valid JAX type; convert it with jnp.asarray",
    ):
        accnp.jit(jnp.sin)(Column())
    assert jnp.sum(jnp.asarray(Column())) == 3
    with pytest.raises(TypeError, match=r"x.astype\('int64'\) converts to units since 1970"):
        jnp.asarray(np.array(["2024-01-01"], "datetime64[s]"))
    with pytest.raises(TypeError, match=r"convert with x.astype\(float\) if all elements"):
        jnp.asarray(np.array([1, None], object))


def test_a_rule_that_does_not_fit_is_named_once():
    f = accnp.custom_vjp(jnp.sin)
    f.defvjp(lambda x: (jnp.sin(x), x), lambda x, ct: ct)
    with pytest.raises(TypeError, match=r"^custom_vjp: Custom VJP bwd rule must produce"):
        accnp.grad(f)(1.0)
    g = accnp.custom_jvp(jnp.sin)
    with pytest.raises(
        AttributeError, match=r"^custom_jvp: No JVP defined for custom_jvp function sin"
    ):
        accnp.jvp(g, (1.0,), (1.0,))


def test_allocation_beyond_all_memory():
    with pytest.raises((MemoryError, RuntimeError, ValueError)):
        jnp.ones((1 << 20, 1 << 20, 1 << 6)).block_until_ready()
    assert float(jnp.ones(4).sum()) == 4.0  # and life goes on


def test_a_failed_trace_leaves_no_cache_entry():
    fail = [True]

    @accnp.jit
    def f(x):
        if fail[0]:
            raise RuntimeError("not this time")
        return x + 1

    with pytest.raises(RuntimeError, match="not this time"):
        f(1.0)
    fail[0] = False
    assert float(f(1.0)) == 2.0


def test_leaked_value():
    leaked = []

    @accnp.jit
    def f(x):
        leaked.append(x * 2)
        return x

    f(1.0)
    with pytest.raises(accnp.errors.UnexpectedTracerError):
        np.asarray(leaked[0] + 1)


PROGRAM = """
import numpy as np, accnp.numpy as jnp, accnp
x = jnp.arange(10.0)
y = np.asarray(accnp.jit(lambda v: jnp.tanh(v) * 7 + 3)(x))
assert np.allclose(y, np.tanh(np.arange(10)) * 7 + 3)
print(accnp.counters()["disk_hits"], accnp.counters()["compiles"])
"""


def run_with_cache(folder) -> tuple[int, int]:
    """Return the disk hits and compiles of the program in a fresh process with this
    cache folder."""
    environment = os.environ | {"ACCNP_CACHE_DIR": str(folder)}
    command = [sys.executable, "-c", PROGRAM]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    hits, compiles = map(int, done.stdout.split())
    return hits, compiles


def test_second_process_compiles_nothing(tmp_path):
    hits, compiles = run_with_cache(tmp_path)
    assert hits == 0
    assert compiles > 0
    hits, again = run_with_cache(tmp_path)
    assert hits == compiles
    assert again == 0


def test_damaged_cache_files_are_rebuilt(tmp_path):
    _, compiles = run_with_cache(tmp_path)
    entries = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert entries
    for path in entries:
        path.write_bytes(path.read_bytes()[:40] + b"damage")
    assert run_with_cache(tmp_path) == (0, compiles)
    assert run_with_cache(tmp_path) == (compiles, 0)


@pytest.mark.parametrize("kind", ["a file", "a missing parent that is a file", "a device"])
def test_unusable_cache_folder(tmp_path, kind):
    blocker = tmp_path / "file"
    blocker.write_text("not a folder")
    folder = {"a file": blocker, "a device": "/dev/full"}.get(kind, blocker / "below")
    hits, compiles = run_with_cache(folder)
    assert hits == 0
    assert compiles > 0
