"""Checkpoints: pytrees and shards in files, and files in the safetensors format.

`processes/test_checkpoints.py` tests checkpoints that several processes write and read.
"""

from __future__ import annotations

import errno
import json
import os
import re
import subprocess
import sys
from collections import namedtuple
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import safetensors
import safetensors.numpy
import zarr

import accnp as jax
from accnp import numpy as jnp
from accnp.checkpoints import safetensors as files
from accnp.checkpoints import stores

STORES = ("npy", "zarr")
Point = namedtuple("Point", "x y")
DTYPES = [
    "bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "float16", "bfloat16", "float32",
    "complex64", "float8_e4m3fn", "float8_e5m2", "int4",
]  # fmt: skip


def tree() -> dict[str, Any]:
    return {
        "layers": [{"w": jnp.arange(6.0).reshape(2, 3), "b": jnp.zeros((0, 3))}],
        "pair": (jnp.float32(2), None),
        "key": jax.random.key(3),
        "keys": jax.random.split(jax.random.key(4), 3),
        "step": 7,
        "a/b": np.arange(3, dtype=np.int8),
        "": jnp.ones(2),
        "..": jnp.ones(3),
    } | {name: jnp.arange(5).astype(name) for name in DTYPES}


def same(a: Any, b: Any) -> None:
    assert jax.tree.structure(a) == jax.tree.structure(b)
    for x, y in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True):
        if jnp.issubdtype(getattr(x, "dtype", np.dtype(int)), jax.dtypes.prng_key):
            x, y = jax.random.key_data(x), jax.random.key_data(y)
        assert isinstance(x, jax.Array)
        assert x.dtype == jnp.asarray(y).dtype
        assert x.shape == np.shape(y)
        assert np.asarray(x).tobytes() == np.asarray(jnp.asarray(y)).tobytes()


@pytest.mark.parametrize("store", STORES)
def test_trees_round_trip(store: str, tmp_path: Path) -> None:
    jax.checkpoints.save(tmp_path / "c", tree(), store=store)
    same(jax.checkpoints.load(tmp_path / "c"), tree())
    assert sorted(p.name for p in tmp_path.iterdir()) == ["c"]
    assert all(tmp_path in p.resolve().parents for p in tmp_path.rglob("*"))


@pytest.mark.parametrize("store", STORES)
def test_single_leaf_round_trips(store: str, tmp_path: Path) -> None:
    jax.checkpoints.save(tmp_path / "c", jnp.arange(3), store=store)
    same(jax.checkpoints.load(tmp_path / "c"), jnp.arange(3))


def test_other_programs_read_the_arrays(tmp_path: Path) -> None:
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    half = jnp.asarray(x, jnp.bfloat16)
    jax.checkpoints.save(tmp_path / "n", {"w": [x, half]})
    np.testing.assert_array_equal(np.load(tmp_path / "n/arrays/w/0/0.0.npy"), x)
    words = np.load(tmp_path / "n/arrays/w/1/0.0.npy")
    np.testing.assert_array_equal(words.view(ml_dtypes.bfloat16), x)
    jax.checkpoints.save(tmp_path / "z", {"w": [x, half]}, store="zarr")
    group: Any = zarr.open_group(str(tmp_path / "z/arrays"), mode="r")
    np.testing.assert_array_equal(group["w/0"][:], x)
    assert group["w/1"].attrs["dtype"] == "bfloat16"


@pytest.mark.parametrize("store", STORES)
def test_shards_are_files_and_chunks(store: str, tmp_path: Path) -> None:
    n = len(jax.devices())
    assert n > 1
    mesh = jax.make_mesh((n,), ("x",))
    rows, columns = (jax.NamedSharding(mesh, s) for s in (jax.P("x"), jax.P(None, "x")))
    x = jnp.arange(n * n * 4.0).reshape(2 * n, 2 * n)
    values = {"x": jax.device_put(x, rows), "whole": jax.device_put(x, rows.whole())}
    jax.checkpoints.save(tmp_path / "c", values, store=store)
    if store == "npy":
        assert len(list((tmp_path / "c/arrays/x").iterdir())) == n
        assert len(list((tmp_path / "c/arrays/whole").iterdir())) == 1
    else:
        group: Any = zarr.open_group(str(tmp_path / "c/arrays"), mode="r")
        assert group["x"].chunks == (2, 2 * n)
        assert group["whole"].chunks == x.shape
    for shardings in (None, rows, columns, {"x": columns, "whole": None}):
        loaded = jax.checkpoints.load(tmp_path / "c", shardings=shardings)
        for name in loaded:
            expected_sharding = shardings.get(name) if isinstance(shardings, dict) else shardings
            assert expected_sharding is None or loaded[name].sharding == expected_sharding
            np.testing.assert_array_equal(loaded[name], x)
    like = {"x": values["x"], "whole": jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=columns)}
    loaded = jax.checkpoints.load(tmp_path / "c", like=like)
    assert loaded["x"].sharding == rows
    assert loaded["whole"].sharding == columns


def test_large_shards_are_several_chunks(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(stores, "LARGEST_CHUNK", 100)
    jax.checkpoints.save(tmp_path / "c", jnp.arange(6 * 35.0).reshape(6, 35), store="zarr")
    group: Any = zarr.open_group(str(tmp_path / "c/arrays"), mode="r")
    assert group["value"].chunks == (1, 7)
    np.testing.assert_array_equal(
        jax.checkpoints.load(tmp_path / "c"), np.arange(210).reshape(6, 35)
    )


def test_a_shard_is_mapped(tmp_path: Path) -> None:
    jax.checkpoints.save(tmp_path / "c", jnp.arange(100.0))
    x = jax.checkpoints.load(tmp_path / "c")
    base: Any = np.asarray(x)
    while not isinstance(base, np.memmap):
        base = base.obj if isinstance(base, memoryview) else base.base
    jax.checkpoints.save_safetensors(tmp_path / "m", {"x": x})
    base = np.asarray(jax.checkpoints.load_safetensors(tmp_path / "m")["x"])
    while not isinstance(base, np.memmap):
        base = base.obj if isinstance(base, memoryview) else base.base


@pytest.mark.parametrize("store", STORES)
def test_loading_other_containers_requires_like(store: str, tmp_path: Path) -> None:
    value = {"p": Point(jnp.ones(2), jnp.zeros(3))}
    jax.checkpoints.save(tmp_path / "c", value, store=store)
    with pytest.raises(
        ValueError, match=r"contains classes; .*; pass a tree of the same structure as like="
    ):
        jax.checkpoints.load(tmp_path / "c")
    loaded = jax.checkpoints.load(tmp_path / "c", like=value)
    assert type(loaded["p"]) is Point
    same(loaded, value)
    with pytest.raises(ValueError, match=r"difference in p/0, p/x, p/y.*structure that was saved"):
        jax.checkpoints.load(tmp_path / "c", like={"p": (jnp.ones(2),)})
    with pytest.raises(ValueError, match=r"'p/x' is float32\[2\]; got float32\[4\] in like"):
        jax.checkpoints.load(tmp_path / "c", like={"p": Point(jnp.ones(4), jnp.zeros(3))})


def test_existing_paths(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "c"
    jax.checkpoints.save(path, [1])
    with pytest.raises(FileExistsError, match="overwrite=True"):
        jax.checkpoints.save(path, [2])
    same(jax.checkpoints.load(path), [1])
    jax.checkpoints.save(path, {"a": 2}, overwrite=True)
    same(jax.checkpoints.load(path), {"a": 2})
    assert [p.name for p in path.parent.iterdir()] == ["c"]
    file = tmp_path / "m"
    jax.checkpoints.save_safetensors(file, {"a": jnp.ones(2)})
    with pytest.raises(FileExistsError):
        jax.checkpoints.save_safetensors(file, {"a": jnp.zeros(2)})
    jax.checkpoints.save_safetensors(file, {"a": jnp.zeros(2)}, overwrite=True)
    same(jax.checkpoints.load_safetensors(file), {"a": jnp.zeros(2)})


def contents(folder: Path) -> dict[str, bytes]:
    return {
        str(p.relative_to(folder)): p.read_bytes() if p.is_file() else b""
        for p in sorted(folder.rglob("*"))
    }


def test_overwriting_removes_only_checkpoints(tmp_path: Path) -> None:
    save = jax.checkpoints.save
    save(tmp_path / "model", {"a": 1})
    save(tmp_path / "model.old", {"a": 0})
    for name in ("model.partial", "work"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "notes.txt").write_text("mine")
    (tmp_path / "m.partial").write_text("mine")
    (tmp_path / "link").symlink_to(tmp_path / "model.old")
    (tmp_path / "empty").mkdir()
    others = {
        k: v
        for k, v in contents(tmp_path).items()
        if k.split("/")[0] not in ("model", "link", "empty")
    }
    save(tmp_path / "model", {"a": 2}, overwrite=True)
    save(tmp_path / "link", {"a": 3}, overwrite=True)
    save(tmp_path / "empty", {"a": 4}, overwrite=True)
    for _ in range(2):
        jax.checkpoints.save_safetensors(tmp_path / "m", {"a": jnp.ones(2)}, overwrite=True)
    for path in ("work", "work/notes.txt", "m"):
        with pytest.raises(FileExistsError, match="replaces only checkpoints"):
            save(tmp_path / path, {"a": 5}, overwrite=True)
    with pytest.raises(FileExistsError, match="replaces only files"):
        jax.checkpoints.save_safetensors(tmp_path / "work", {"a": jnp.ones(2)}, overwrite=True)
    for path in (".", ".."):
        with pytest.raises(ValueError, match="must end in a name"):
            save(path, {"a": 5}, overwrite=True)
    remaining = contents(tmp_path)
    assert {k: remaining.pop(k) for k in others} == others
    assert {k.split("/")[0] for k in remaining} == {"model", "link", "empty", "m"}
    for name, value in (("model", 2), ("model.old", 0), ("link", 3), ("empty", 4)):
        same(jax.checkpoints.load(tmp_path / name), {"a": value})


@pytest.mark.parametrize("store", STORES)
def test_failed_save_changes_nothing(
    store: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    jax.checkpoints.save(tmp_path / "c", [1], store=store)
    before = contents(tmp_path)

    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "no space left")

    kind = stores.NpyStore if store == "npy" else stores.ZarrStore
    for method in ("create", "write"):
        with monkeypatch.context() as patch:
            patch.setattr(kind, method, full)
            with pytest.raises(OSError, match="no space left"):
                jax.checkpoints.save(tmp_path / "c", [2], store=store, overwrite=True)
        assert contents(tmp_path) == before
    rename = os.replace

    def second(a: Any, b: Any) -> None:
        if Path(a).suffix == ".partial":
            full()
        rename(a, b)

    monkeypatch.setattr(os, "replace", second)
    with pytest.raises(OSError, match="no space left"):
        jax.checkpoints.save(tmp_path / "c", [2], store=store, overwrite=True)
    assert contents(tmp_path) == before


def test_full_disk_while_writing_safetensors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def allocate(error: int) -> None:
        def fail(*_: Any) -> None:
            raise OSError(error, os.strerror(error))

        monkeypatch.setattr(os, "posix_fallocate", fail)

    allocate(errno.ENOSPC)
    with pytest.raises(OSError, match="No space left"):
        jax.checkpoints.save_safetensors(tmp_path / "m", {"a": jnp.ones(2)})
    assert not list(tmp_path.iterdir())
    allocate(errno.EOPNOTSUPP)  # some file systems
    jax.checkpoints.save_safetensors(tmp_path / "m", {"a": jnp.ones(2)})
    same(jax.checkpoints.load_safetensors(tmp_path / "m"), {"a": jnp.ones(2)})


def test_load_explains_a_program_that_was_killed_between_two_renames(tmp_path: Path) -> None:
    jax.checkpoints.save(tmp_path / "c", [1])
    program = f"""
import os, accnp as jax
rename = os.replace
def replace(a, b):
    if str(a).endswith(".partial"):
        os._exit(9)
    rename(a, b)
os.replace = replace
jax.checkpoints.save({str(tmp_path / "c")!r}, [2], overwrite=True)
"""
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 9
    with pytest.raises(FileNotFoundError, match="interrupted while it replaced") as error:
        jax.checkpoints.load(tmp_path / "c")
    new, old = re.findall(r"'([^']*(?:partial|old))'", str(error.value))
    same(jax.checkpoints.load(old), [1])
    os.replace(new, tmp_path / "c")
    same(jax.checkpoints.load(tmp_path / "c"), [2])


@pytest.mark.parametrize("store", [*STORES, "safetensors"])
@pytest.mark.parametrize("dtype", [">i2", ">i4", ">u8", ">f2", ">f4", ">f8", ">c8"])
def test_byte_orders(store: str, dtype: str, tmp_path: Path) -> None:
    x = np.arange(6).reshape(2, 3).astype(dtype)
    assert not x.dtype.isnative
    with jax.enable_x64(True):
        if store == "safetensors":
            jax.checkpoints.save_safetensors(tmp_path / "m", {"x": x})
            loaded = jax.checkpoints.load_safetensors(tmp_path / "m")["x"]
        else:
            jax.checkpoints.save(tmp_path / "c", {"x": x}, store=store)
            loaded = jax.checkpoints.load(tmp_path / "c")["x"]
    assert loaded.dtype == x.dtype.newbyteorder("=")
    np.testing.assert_array_equal(loaded, x)


def masked() -> Any:
    return np.ma.array([1.0, 2.0], mask=[False, True])


NOT_NUMBERS = [
    np.zeros(3, [("a", "f4"), ("b", "i4")]), np.zeros(3, "V4"), np.zeros(3, jax.float0),
    np.ones(2, np.longdouble), np.ones(2, np.clongdouble), np.array([1, None], object),
    np.array(["2020"], "M8[D]"), np.array(["a"]), masked(),
]  # fmt: skip


@pytest.mark.parametrize("x", NOT_NUMBERS, ids=lambda x: f"{type(x).__name__} {x.dtype}")
def test_arrays_that_are_not_saved(x: Any, tmp_path: Path) -> None:
    error, text = TypeError, "leaves must be arrays of numbers"
    if isinstance(x, np.ma.MaskedArray):
        error, text = ValueError, r"use x\.filled\(\)"
    for store in STORES:
        with pytest.raises(error, match=text):
            jax.checkpoints.save(tmp_path / "c", {"x": x}, store=store)
    with pytest.raises(error, match=text):
        jax.checkpoints.save_safetensors(tmp_path / "m", {"x": x})
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("store", STORES)
def test_any_keys(store: str, tmp_path: Path) -> None:
    long = ["k" * 300, "k" * 299 + "l", "é" * 100, "." * 300, "k" * 250 + "/" + "x" * 250]
    names = [*long, "zarr.json", "0.npy", "value.npy", "c", "%", "__x__", " ", "\0", "x\\y", "~"]
    value = {n: {m: jnp.full(2, i) for m in ("zarr.json", n)} for i, n in enumerate(names)}
    jax.checkpoints.save(tmp_path / "deep", value, store=store)
    same(jax.checkpoints.load(tmp_path / "deep"), value)
    same(jax.checkpoints.load(tmp_path / "deep", like=value), value)
    flat = {n: jnp.full(2, i) for i, n in enumerate(names)}
    jax.checkpoints.save(tmp_path / ("n" * 255), flat, store=store)
    jax.checkpoints.save(tmp_path / ("n" * 255), flat, store=store, overwrite=True)
    same(jax.checkpoints.load(tmp_path / ("n" * 255)), flat)


def test_refusals(tmp_path: Path) -> None:
    save, load = jax.checkpoints.save, jax.checkpoints.load
    with pytest.raises(ValueError, match="store must be one of"):
        save(tmp_path / "c", [1], store="hdf5")
    with pytest.raises(ValueError, match="two of the name '1'"):
        save(tmp_path / "c", Same(1, 2))
    with pytest.raises(TypeError, match="arrays of numbers"):
        save(tmp_path / "c", [np.array(["a"])])
    with pytest.raises(FileNotFoundError, match="there is no checkpoint"):
        load(tmp_path / "c")
    (tmp_path / "file").touch()
    with pytest.raises(FileNotFoundError, match="there is no checkpoint"):
        load(tmp_path / "file")
    save(tmp_path / "c", [1, jnp.ones(4)])
    with pytest.raises(ValueError, match="a list of length 1 and one of length 2"):
        load(tmp_path / "c", shardings=[None])
    about = json.loads((tmp_path / "c/checkpoint.json").read_text())
    (tmp_path / "c/checkpoint.json").write_text(json.dumps(about | {"format": 2}))
    with pytest.raises(ValueError, match="this version reads format 1"):
        load(tmp_path / "c")


class Same:
    """A container whose children have one name."""

    def __init__(self, *children: Any) -> None:
        self.children = children


jax.tree_util.register_pytree_with_keys(
    Same,
    lambda s: ([(jax.tree_util.DictKey(k), c) for k, c in zip((1, "1"), s.children)], None),
    lambda _, children: Same(*children),
)


@pytest.mark.parametrize("store", STORES)
def test_damaged_arrays(store: str, tmp_path: Path) -> None:
    jax.checkpoints.save(tmp_path / "c", [jnp.ones(4)], store=store)
    if store == "npy":
        np.save(tmp_path / "c/arrays/0/0.npy", np.ones(5, np.float32))
    else:
        group: Any = zarr.open_group(str(tmp_path / "c/arrays"), mode="r+")
        group.create_array("0", shape=(5,), dtype="float32", overwrite=True)
    with pytest.raises(ValueError, match="restore"):
        np.asarray(jax.checkpoints.load(tmp_path / "c")[0])


def test_64_bits(tmp_path: Path) -> None:
    with jax.enable_x64(True):
        jax.checkpoints.save(tmp_path / "c", [jnp.ones(2)])
        assert jax.checkpoints.load(tmp_path / "c")[0].dtype == np.float64
    with pytest.warns(UserWarning, match=r"checkpoints.load: .*'0' \(float64\); set the option"):
        assert jax.checkpoints.load(tmp_path / "c")[0].dtype == np.float32


@pytest.mark.parametrize("dtype", ["float64", "int64", "uint64", "complex128"])
def test_numbers_of_numpy_keep_64_bits(dtype: str, tmp_path: Path) -> None:
    step = np.dtype(dtype).type(2**40 + 1)
    jax.checkpoints.save(tmp_path / "c", {"step": step})
    files_too = dtype != "complex128"  # safetensors has no such arrays
    if files_too:
        jax.checkpoints.save_safetensors(tmp_path / "m", {"step": step})
    with jax.enable_x64(True):
        loaded = [jax.checkpoints.load(tmp_path / "c")["step"]]
        if files_too:
            loaded.append(jax.checkpoints.load_safetensors(tmp_path / "m")["step"])
    for x in loaded:
        assert x.dtype == dtype
        assert x == step
    if files_too:
        with pytest.warns(UserWarning, match="load_safetensors: arrays of 64 bits become"):
            jax.checkpoints.load_safetensors(tmp_path / "m")


# --- safetensors ---------------------------------------------------------------------------------

ARRAYS = {
    name: jnp.arange(6).astype(name).reshape(2, 3) for name in DTYPES if name in files._NAMES
} | {"scalar": jnp.float32(3), "empty": jnp.zeros((2, 0)), "ö": jnp.ones(1)}


def test_safetensors_files_of_the_package_are_loaded(tmp_path: Path) -> None:
    plain = {k: np.asarray(v) for k, v in ARRAYS.items() if v.dtype.isbuiltin == 1}
    safetensors.numpy.save_file(plain, tmp_path / "m", metadata={"by": "package"})
    same(jax.checkpoints.load_safetensors(tmp_path / "m"), plain)


def test_the_package_loads_our_safetensors_files(tmp_path: Path) -> None:
    jax.checkpoints.save_safetensors(tmp_path / "m", ARRAYS, metadata={"by": "accnp"})
    with safetensors.safe_open(tmp_path / "m", framework="np") as file:
        assert sorted(file.keys()) == sorted(ARRAYS)
        assert file.metadata() == {"by": "accnp"}
        for name, x in ARRAYS.items():
            if x.dtype.isbuiltin == 1:
                np.testing.assert_array_equal(file.get_tensor(name), x)
            else:
                assert tuple(file.get_slice(name).get_shape()) == x.shape
    same(jax.checkpoints.load_safetensors(tmp_path / "m"), ARRAYS)
    loaded = jax.checkpoints.load_safetensors(tmp_path / "m", names=["ö", "scalar"])
    same(loaded, {k: ARRAYS[k] for k in loaded})
    with pytest.raises(KeyError, match="no array 'z'"):
        jax.checkpoints.load_safetensors(tmp_path / "m", names=["z"])
    with pytest.raises(TypeError, match=r"a sequence of str; got 'ö'; pass \['ö'\]"):
        jax.checkpoints.load_safetensors(tmp_path / "m", names="ö")


def test_shards_of_safetensors(tmp_path: Path) -> None:
    n = len(jax.devices())
    rows = jax.NamedSharding(jax.make_mesh((n,), ("x",)), jax.P("x"))
    x = jnp.arange(n * 3.0).reshape(n, 3)
    jax.checkpoints.save_safetensors(tmp_path / "m", {"x": jax.device_put(x, rows), "y": x})
    loaded = jax.checkpoints.load_safetensors(tmp_path / "m", shardings={"x": rows, "y": None})
    assert loaded["x"].sharding == rows
    same(loaded, {"x": x, "y": x})


def test_refusals_of_safetensors(tmp_path: Path) -> None:
    save: Any = jax.checkpoints.save_safetensors
    for arrays in (
        {"k": jax.random.key(1)}, {"i": jnp.arange(3).astype("int4")}, {3: jnp.ones(1)},
        {"__metadata__": jnp.ones(1)},
    ):  # fmt: skip
        with pytest.raises(TypeError, match="save_safetensors"):
            save(tmp_path / "m", arrays)
    with pytest.raises(TypeError, match="names must be str"):
        save(tmp_path / "m", {}, metadata={"step": 1})
    assert not (tmp_path / "m").exists()


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: data[:4],
        lambda data: data[:-1],
        lambda data: data + b"\0",
        lambda data: (10**9).to_bytes(8, "little") + data[8:],
        lambda data: data.replace(b'"F32"', b'"F64"'),
        lambda data: data.replace(b"[2,3]", b"[2,9]"),
        lambda data: data.replace(b"[0,24]", b"[4,28]"),
        lambda data: data.replace(b"[2,3]", b"[-2]"),
        lambda data: data.replace(b'"shape"', b'"shapf"'),
        lambda data: data.replace(b'"F32"', b'"X32"'),
        lambda data: data.replace(b"{", b"[", 1),
    ],
)
def test_damaged_files(damage: Any, tmp_path: Path) -> None:
    jax.checkpoints.save_safetensors(tmp_path / "m", {"x": jnp.ones((2, 3))})
    data = (tmp_path / "m").read_bytes()
    damaged = damage(data)
    assert damaged != data
    (tmp_path / "m").write_bytes(damaged)
    with pytest.raises(ValueError, match="must be in the format of safetensors"):
        jax.checkpoints.load_safetensors(tmp_path / "m")


@pytest.mark.parametrize("damage", [b"", b"\x93NUMPY\x01\x00v\x00{'descr'", None, 100])
def test_damaged_files_are_named(tmp_path, damage):
    jax.checkpoints.save(tmp_path / "c", {"a": jnp.arange(50.0)})
    (file,) = (tmp_path / "c").rglob("*.npy")
    if damage is None:
        file.unlink()
    else:
        file.write_bytes(damage if isinstance(damage, bytes) else file.read_bytes()[:damage])
    with pytest.raises(
        ValueError, match=f"{re.escape(file.name)} is damaged or missing: .*restore"
    ):
        jax.checkpoints.load(tmp_path / "c")


@pytest.mark.parametrize(
    ("text", "message"), [("{", "is damaged: "), ("[]", "must hold an object; got list")]
)
def test_a_damaged_description_is_named(tmp_path, text, message):
    jax.checkpoints.save(tmp_path / "c", {"a": jnp.arange(5.0)})
    (tmp_path / "c" / "checkpoint.json").write_text(text)
    with pytest.raises(ValueError, match=rf"checkpoint\.json {message}"):
        jax.checkpoints.load(tmp_path / "c")
