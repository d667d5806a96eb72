"""Names that earlier versions of JAX had and public code uses, and NumPy names that JAX lacks.

Each is there, or an AttributeError says what to use (`removed_names.tsv`, made from the tables of
such names).
"""

from __future__ import annotations

import csv
import re
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

import accnp
import accnp.numpy as jnp
from accnp.removed_names import REMOVED_NAMES

TABLE = Path(__file__).parent / "removed_names.tsv"
ROWS = list(csv.DictReader(TABLE.read_text().splitlines(), delimiter="\t"))


def resolve(name: str, namespaces: dict[str, Any]) -> Any:
    """Return the object of a dotted name."""
    first, *rest = name.split(".")
    out = namespaces[first]
    for part in rest:
        out = getattr(out, part)
    return out


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["name"])
def test_every_jax_name_exists_or_has_advice(row: dict[str, str]) -> None:
    if row["now"] == "there":
        resolve(row["name"], {"jax": accnp, "numpy": jnp})
        return
    with pytest.raises(AttributeError) as refused:
        resolve(row["name"], {"jax": accnp, "numpy": jnp})
    assert row["now"] in str(refused.value)


@pytest.mark.parametrize("name", REMOVED_NAMES)
def test_advice_names_existing_functions(name: str) -> None:
    what = REMOVED_NAMES[name]
    if what.startswith("="):
        assert resolve(name, {"accnp": accnp}) is not None
        return
    names = re.findall(r"\b((?:jax|jnp)\.\w+(?:\.\w+)*)", what)
    for today in names:
        assert resolve(today, {"jax": accnp, "jnp": jnp}) is not None
    # Where the top level has a name of its own, programs never ask.
    with pytest.raises(AttributeError, match=r"no attribute '\w+': "):
        resolve(name, {"accnp": accnp})


def test_attributes_only_of_numpy_arrays() -> None:
    """Each public attribute of NumPy arrays exists, or raises an error with advice."""
    x = jnp.arange(6.0).reshape(2, 3)
    for name in dir(np.ndarray):
        if name[0] != "_" and name not in dir(x):
            with pytest.raises(AttributeError, match=rf"no attribute '{name}': "):
                getattr(x, name)
            assert not hasattr(x, name)
            assert getattr(x, name, None) is None
    with pytest.raises(AttributeError, match=r"fill': arrays are immutable; use jnp.full_like"):
        x.fill(2)


def test_a_misspelled_name_suggests_the_nearest() -> None:
    for module, name, near in (
        (accnp, "jitt", "jit"),
        (jnp, "reshap", "reshape"),
        (accnp.lax, "fori_lop", "fori_loop"),
        (accnp.random, "PRNGkey", "PRNGKey"),
        (accnp.nn, "sofmax", "softmax"),
        (accnp.tree_util, "tree_mapp", "tree_map"),
        (jnp.linalg, "slove", "solve"),
        (accnp.scipy.special, "logsumexpp", "logsumexp"),
        (accnp.errors, "TracerBoolConversionErr", "TracerBoolConversionError"),
        (accnp.tree, "mapp", "map"),
        (accnp.dtypes, "bfloat17", "bfloat16"),
        (accnp.profiler, "start_trac", "start_trace"),
        (accnp.typing, "ArayLike", "ArrayLike"),
        (accnp.ad_checkpoint, "checkpoint_nam", "checkpoint_name"),
        (accnp.checkpoint_policies, "nothing_savable", "nothing_saveable"),
        (accnp.custom_batching, "custom_vmp", "custom_vmap"),
        (accnp.flatten_util, "ravel_pytre", "ravel_pytree"),
        (accnp.memory, "Spac", "Space"),
        (accnp.test_util, "check_grad", "check_grads"),
        (accnp.experimental.checkify, "chekify", "checkify"),
    ):
        with pytest.raises(AttributeError, match=f"did you mean .*'{near}'"):
            getattr(module, name)


def test_old_functions_of_trees_and_keys() -> None:
    tree = {"a": 1, "b": (2, 3)}
    assert accnp.tree_map(lambda v: v + 1, tree) == {"a": 2, "b": (3, 4)}
    assert accnp.tree_leaves(tree) == [1, 2, 3]
    assert accnp.tree_unflatten(accnp.tree_structure(tree), [4, 5, 6]) == {"a": 4, "b": (5, 6)}
    key, x = accnp.random.key(3), np.arange(12).reshape(3, 4)
    expected = jax.random.permutation(jax.random.key(3), x, 1, independent=True)
    np.testing.assert_array_equal(accnp.random.shuffle(key, x, 1), expected)
    assert isinstance(jnp.ones(2), jnp.DeviceArray)
    assert isinstance(key, accnp.random.KeyArray)
    assert isinstance(accnp.random.split(key), accnp.random.PRNGKeyArray)
    assert jnp.trapz(jnp.array([1.0, 2.0, 3.0])) == 4
    assert accnp.config.config is accnp.config
    assert accnp.lib.xla_bridge.get_backend().platform == "cpu"
    accnp.lib.xla_bridge.get_backend.cache_clear()


def test_values_for_each_device() -> None:
    devices = accnp.devices()[:2]
    many = accnp.device_put_replicated({"w": np.arange(3.0), "b": 1}, devices)
    assert many["w"].shape == (2, 3)
    assert many["b"].tolist() == [1, 1]
    apart = accnp.device_put_sharded([{"x": 1.0}, {"x": 2.0}], devices)
    doubled = accnp.pmap(lambda tree: tree["x"] * 2, devices=devices)(apart)
    assert doubled.tolist() == [2.0, 4.0]
    with pytest.raises(ValueError, match="shards and devices must be equally many"):
        accnp.device_put_sharded([1.0], devices)
    with pytest.raises(ValueError, match="must not be empty"):
        accnp.device_put_replicated(1.0, [])


X = np.array([[1.5, -2.5], [0.0, 3.7]], np.float32)


@pytest.mark.parametrize(
    "text",
    [
        "asanyarray(X)", "ascontiguousarray(2.5)", "ascontiguousarray(X.T)",
        "asfortranarray(X)", "asarray_chkfinite(X)", "require(X, requirements='CA')",
        "array2string(X)", "base_repr(11, 3)", "binary_repr(5, 8)",
        "format_float_positional(2.5)", "format_float_scientific(2.5)", "list(ndindex(2, 2))",
        "[(i, float(v)) for i, v in ndenumerate(X)]", "isfortran(X)", "True_", "False_",
        "half(2.5)", "short(3)", "ubyte(3)", "byte(-3)", "ushort(3)", "intc(3)", "uintc(3)",
        "loadtxt(['1.5 2', '3 4'], dtype='float32')", "genfromtxt(['1,2', '3,'], delimiter=',')",
        "loadtxt(['1 2', '3 4'], unpack=True, dtype='int32')",
    ],
)  # fmt: skip
def test_numpy_functions(text: str) -> None:
    words = re.findall(r"[a-z_A-Z]\w+", text)

    def run(module: Any) -> Any:
        names = {n: getattr(module, n) for n in words if hasattr(module, n)}
        return eval(text, {"X": X, **names})

    ours, numpys = run(jnp), run(np)
    if isinstance(numpys, np.ndarray | np.generic):
        ours = np.asarray(ours)
        wide = numpys.dtype == np.float64 and ours.dtype == np.float32
        assert ours.dtype == numpys.dtype or wide
        assert ours.shape == numpys.shape
        np.testing.assert_array_equal(ours, numpys)
    else:
        assert ours == numpys


def test_fix() -> None:
    """Compared with `trunc`, since NumPy 2.5 warns about its own `fix`."""
    np.testing.assert_array_equal(jnp.fix(X), np.trunc(X), strict=True)


def test_unsupported_numpy_functions_have_advice() -> None:
    with pytest.raises(ValueError, match="got 'W'"):
        jnp.require(X, requirements=["C", "W"])
    with pytest.raises(ValueError, match="finite"):
        jnp.asarray_chkfinite([1.0, np.inf])
    with pytest.raises(NotImplementedError, match="jax_debug_nans"):
        jnp.errstate(divide="raise")
    with jnp.errstate(divide="ignore", invalid="warn"):
        assert np.isinf(jnp.array(1.0) / 0)
    with pytest.raises(jnp.linalg.LinAlgError):
        raise np.linalg.LinAlgError("singular")
    assert jnp.intp is jnp.int_
    assert jnp.row_stack is jnp.vstack


def test_numpys_own_assertions_and_files(tmp_path: Path) -> None:
    x = jnp.arange(4.0)
    jnp.testing.assert_allclose(x, [0, 1, 2, 3])
    jnp.savez_compressed(tmp_path / "x.npz", x=x)
    assert np.load(tmp_path / "x.npz")["x"].tolist() == x.tolist()
    jnp.savetxt(tmp_path / "x.txt", x)
    assert jnp.loadtxt(tmp_path / "x.txt").tolist() == x.tolist()


@pytest.mark.parametrize("name", ["explain", "inspect", "vmap"])
def test_error_in_numpy_namespace_names_the_package_attribute(name: str) -> None:
    with pytest.raises(AttributeError, match=rf"; it is accnp\.{name}$"):
        getattr(jnp, name)
