"""Write and read checkpoints: `checkpoints.py save|load|fail FOLDER`, in several processes."""

import os
import sys
from functools import partial
from pathlib import Path

import numpy as np
from processes.program_helpers import assert_raises

import accnp as jax
from accnp import P
from accnp.checkpoints import checkpoint_files, safetensors, stores

jax.distributed.initialize()
what, folder = sys.argv[1], Path(sys.argv[2])
me, n = jax.process_index(), jax.process_count()
mesh = jax.make_mesh((n,), ("x",))
rows, columns, whole = (jax.NamedSharding(mesh, p) for p in (P("x"), P(None, "x"), P()))
values = {
    "rows": np.arange(96, dtype=np.float32).reshape(8, 12),
    "columns": np.arange(32).astype(jax.numpy.bfloat16).reshape(4, 8),
    "whole": np.arange(5, dtype=np.int32),
    "plain": np.arange(3, dtype=np.float32),
}
shardings = {"rows": rows, "columns": columns, "whole": whole, "plain": None}
keys = jax.random.split(jax.random.key(5), 8)


def arrays():
    return {
        name: jax.numpy.asarray(v)
        if shardings[name] is None
        else jax.device_put(v, shardings[name])
        for name, v in values.items()
    }


if what == "save":
    for store in ("npy", "zarr"):
        tree = {"arrays": arrays(), "keys": jax.device_put(keys, rows), "step": 3}
        jax.checkpoints.save(folder / store, tree, store=store)
        assert_raises(
            FileExistsError, "overwrite", partial(jax.checkpoints.save, folder / store, tree)
        )
        tree["step"] = 4
        jax.checkpoints.save(folder / store, tree, store=store, overwrite=True)
    jax.checkpoints.save_safetensors(folder / "m", arrays(), metadata={"n": str(n)})
elif what == "fail":
    # An error in one process is an error in all, in each step, and leaves nothing.
    def full(*_, **__):
        raise OSError(28, "no space left")

    tree = {"arrays": arrays(), "step": 3}
    jax.checkpoints.save(folder / "c", tree)
    cases = [
        (store, failing, place, name)
        for store in ("npy", "zarr", "safetensors")
        for failing in {0, n - 1}
        for place, name in {
            "npy": [(stores.NpyStore, "create"), (stores.NpyStore, "write")],
            "zarr": [(stores.ZarrStore, "create"), (stores.ZarrStore, "write")],
            "safetensors": [(safetensors, "_allocate"), (safetensors, "_map_array")],
        }[store]
        + [(safetensors if store == "safetensors" else checkpoint_files, "describe_leaf")]
        + [(os, "replace")]
        if failing == 0 or name not in ("create", "_allocate", "replace")  # process 0 does these
    ]
    for store, failing, place, name in cases:
        held = getattr(place, name)
        if me == failing:
            setattr(place, name, full)
        save = partial(jax.checkpoints.save, folder / "c", tree, store=store, overwrite=True)
        if store == "safetensors":
            save = partial(jax.checkpoints.save_safetensors, folder / "m", tree["arrays"])
        kind, text = OSError, "no space left"
        if me != failing:
            kind, text = RuntimeError, f"got an error in process {failing}: OSError: [Errno 28]"
        assert_raises(kind, text, save)
        setattr(place, name, held)
    if me == 0:
        sys.modules["zarr"] = None
    text = "needs the package zarr"
    save = partial(jax.checkpoints.save, folder / "new" / "z", tree, store="zarr")
    assert_raises(ImportError if me == 0 else RuntimeError, text, save)
    found = jax.checkpoints.load(folder / "c", like=tree)
    assert int(found["step"]) == 3
else:
    for store in ("npy", "zarr"):
        asked = {"arrays": shardings, "keys": rows, "step": None}
        found = jax.checkpoints.load(folder / store, shardings=asked)
        assert int(found["step"]) == 4
        (shard,) = found["keys"].addressable_shards
        own = jax.random.key_data(keys)[shard.index[0]]
        assert np.array_equal(jax.random.key_data(shard.data), own)
        other = jax.checkpoints.load(folder / store, shardings=None)
        for results in (found["arrays"], other["arrays"]):
            for name, x in results.items():
                for s in x.addressable_shards:
                    assert np.array_equal(s.data, values[name][s.index]), (name, s)
        for name, s in shardings.items():
            assert s is None or found["arrays"][name].sharding == s
            assert other["arrays"][name].is_fully_addressable
    for asked in (None, shardings):
        found = jax.checkpoints.load_safetensors(folder / "m", shardings=asked)
        for name, x in found.items():
            for s in x.addressable_shards:
                assert np.array_equal(s.data, values[name][s.index]), (name, s)
print(f"process {me} is done")
