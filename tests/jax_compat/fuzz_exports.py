"""Fuzz `export.deserialize` with serialized programs that an attacker could send.

`python tests/jax_compat/fuzz_exports.py SEED SECONDS` mutates valid programs at random with correct
checksums, deserializes each, runs those that are accepted in a child process, and prints how many
were refused and how many ran. It fails if `deserialize` raises anything but a ValueError, or if a
signal ends a child.

`test_hostile_programs.py` imports the functions that pack and unpack programs.
"""

from __future__ import annotations

import copy
import json
import os
import random
import resource
import signal
import sys
import time
import warnings
import zlib
from typing import Any

import numpy as np

import accnp as jax
import accnp.numpy as jnp
from accnp import export, lax

MAGIC = b"accnp program 1\n"


def unpack(blob: bytes) -> tuple[dict[str, Any], bytes]:
    """Return the JSON header of a serialized program, and the bytes after it."""
    start = len(MAGIC) + 12
    n = int.from_bytes(blob[len(MAGIC) + 4 : start], "big")
    return json.loads(zlib.decompress(blob[start : start + n])), bytes(blob[start + n :])


def pack(header: Any, rest: bytes = b"", packed: bytes | None = None) -> bytes:
    """Return the bytes of a program with this header and a correct checksum."""
    packed = zlib.compress(json.dumps(header).encode()) if packed is None else packed
    body = packed + rest
    return MAGIC + zlib.crc32(body).to_bytes(4, "big") + len(packed).to_bytes(8, "big") + body


def make_header(values: list[Any], out: list[int], outs: list[Any], **more: Any) -> dict[str, Any]:
    """Return the header of a program with these values, whose inputs are the arguments."""
    ins = [[e[1], e[2], e[3]] for e in values if e[0] == "in"]
    tree = ["tuple", [["tuple", ["*"] * len(ins)], ["dict", []]]]
    return {
        "name": "f", "platforms": ["cpu"], "disabled_checks": [], "constraints": [], "symbols": [],
        "in_types": ins, "out_types": outs, "program": {"values": values, "out": out},
        "in_tree": tree, "out_tree": ["tuple", ["*"] * len(outs)], "arrays": [], "vjp": 0, **more,
    }  # fmt: skip


def _model(p: Any, x: Any) -> Any:
    h = jax.nn.relu(x @ p["w"] + p["b"])
    h = lax.scan(lambda c, r: (jnp.tanh(c) * 2 + r.sum(), r[:2]), h, jnp.arange(12.0).reshape(4, 3))
    n = lax.while_loop(lambda s: s[0] < 5, lambda s: (s[0] + 1, s[1] * 2), (0, h[0]))
    y = lax.cond(n[0] > 3, lambda a: a.sum(0), lambda a: a[0], n[1])
    return {
        "soft": jax.nn.softmax(y), "order": jnp.argsort(h[0], axis=0)[:3], "rows": h[1],
        "set": h[0].at[jnp.array([0, 1]), 2].set(5.0), "got": h[0][jnp.array([1, 0, 1])],
        "at": lax.dynamic_slice(h[0], (n[0], 0), (1, 2)), "sum": jnp.cumsum(h[0], 0)[-1],
    }  # fmt: skip


def _arrays(x: Any) -> Any:
    image = x.reshape(1, 1, 4, 5)
    return [
        lax.conv_general_dilated(image, jnp.ones((2, 1, 2, 2)), (1, 1), "SAME"),
        lax.reduce_window(x, -jnp.inf, lax.max, (2, 2), (1, 1), "VALID"),
        jnp.pad(x, ((1, 2), (0, 1))), jnp.flip(x, 1), x[1:3, ::2], x.T, jnp.concatenate([x, x], 1),
        jnp.sort(x, 1), lax.top_k(x, 2), jnp.argmax(x, 1), jnp.fft.rfft(x), jnp.searchsorted(
            jnp.arange(4.0), x), jnp.linalg.solve(jnp.eye(4), x), tuple(jnp.linalg.qr(x)), x.sum(0),
        jnp.broadcast_to(x[:, :1], (4, 3)), jax.grad(lambda x: lax.reduce_window(
            x, -jnp.inf, lax.max, (2, 2), (1, 1), "VALID").sum())(x), jnp.where(x > 0, x, 1),
        jax.vmap(lambda r: r.at[1].add(2.0))(x), x.astype(jnp.int32) ** 3, x.view(jnp.uint32),
        jnp.einsum("ij,kj->ik", x, x),
    ]  # fmt: skip


def programs() -> list[tuple[bytes, list[Any]]]:
    """Return valid serialized programs, each with arguments."""
    rng = np.random.default_rng(0)
    w = {"w": np.ones((4, 5), np.float32), "b": np.ones(5, np.float32)}
    x, y = (rng.standard_normal(s).astype(np.float32) for s in ((3, 4), (4, 5)))
    (b,) = export.symbolic_shape("b")
    sized = jax.ShapeDtypeStruct((b, 4), np.float32)
    smooth = jax.jit(lambda x: (jnp.sin(x) @ x.T).sum(0))
    return [
        (bytes(export.export(jax.jit(_model))(w, x).serialize()), [w, x]),
        (bytes(export.export(jax.jit(_arrays))(y).serialize()), [y]),
        (bytes(export.export(smooth)(sized).serialize(vjp_order=1)), [x]),
    ]


# --- random changes ------------------------------------------------------------------------------

_NUMBERS = (0, 1, -1, 2, 3, 5, 7, 8, 100, -8, 2**31 - 1, 2**31, 2**32, 2**62, -(2**63), 0.5, True)
_OTHERS = (None, "", "f", [], {}, {"tuple": []}, {"tuple": [0]}, {"tuple": [9, 9]}, "float64", "U5")


def _list_places(x: Any, places: list[tuple[Any, Any]]) -> None:
    for key in x if isinstance(x, dict) else range(len(x)):
        places.append((x, key))
        if isinstance(x[key], dict | list):
            _list_places(x[key], places)


def mutate(header: Any, rng: random.Random) -> Any:
    """Return a copy of a header with one or a few random changes."""
    header = copy.deepcopy(header)
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        places: list[tuple[Any, Any]] = []
        _list_places(header, places)
        where, key = rng.choice(places)
        old = where[key]
        how = rng.random()
        if type(old) is int and how < 0.4:
            where[key] = old + rng.choice((-2, -1, 1, 2))
        elif how < 0.55:
            where[key] = rng.choice(_NUMBERS)
        elif how < 0.62:
            where[key] = rng.choice(_OTHERS)
        elif how < 0.9:  # another value of the same type
            same = [w[k] for w, k in places if type(w[k]) is type(old)]
            where[key] = copy.deepcopy(rng.choice(same))
        elif isinstance(where, list):
            if how < 0.95:
                del where[key]
            else:
                where.insert(key, copy.deepcopy(old))
        else:
            where.pop(key)
    return header


def _corrupt(blob: bytes, rng: random.Random) -> bytes:
    data = bytearray(blob)
    for _ in range(rng.choice((1, 3, 20))):
        data[rng.randrange(len(data))] = rng.randrange(256)
    return bytes(data[: rng.choice((len(data), len(data), rng.randrange(len(data))))])


def deserialize(blob: bytes) -> export.Exported | None:
    """Deserialize a program; return None if it is refused with the expected error."""
    try:
        return export.deserialize(blob)
    except ValueError as error:
        if "export.deserialize" not in str(error) and "symbolic_shape" not in str(error):
            raise TypeError("the error does not name the function that raised it") from error
        return None


def run(program: export.Exported, args: list[Any]) -> None:
    """Call a program and ignore its errors: an accepted program may raise."""
    try:
        for v in jax.tree.leaves(program.call(*args)):
            np.asarray(v)
    except (ArithmeticError, MemoryError, NotImplementedError, RuntimeError, TypeError, ValueError):
        pass


def run_in_child(program: export.Exported, args: list[Any], seconds: float = 4) -> str:
    """Call a program in a child; return "ran", "timed out", or the signal that ended it."""
    child = os.fork()
    if not child:
        resource.setrlimit(resource.RLIMIT_AS, (12 << 30, 12 << 30))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        run(program, args)
        os._exit(0)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            code = os.waitstatus_to_exitcode(status)
            return "ran" if code == 0 else f"ended with {code}"
        time.sleep(0.002)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return "timed out"


def main(seed: int, seconds: float) -> None:
    """Mutate and run programs for this many seconds."""
    warnings.simplefilter("ignore")
    rng = random.Random(seed)
    valid = [(blob, *unpack(blob), args) for blob, args in programs()]
    end = time.monotonic() + seconds
    counts = {"refused": 0, "ran": 0, "timed out": 0}
    while time.monotonic() < end:
        blob, header, rest, args = rng.choice(valid)
        bad = _corrupt(blob, rng) if rng.random() < 0.05 else pack(mutate(header, rng), rest)
        try:
            program = deserialize(bad)
        except Exception:
            print(f"seed {seed}: this was not refused by a ValueError: {bad.hex()}", flush=True)
            raise
        how = "refused" if program is None else run_in_child(program, args)
        if how not in counts:
            print(f"seed {seed}: this {how}: {bad.hex()}", flush=True)
            sys.exit(1)
        counts[how] += 1
    print(json.dumps(counts))


if __name__ == "__main__":
    main(int(sys.argv[1]), float(sys.argv[2]))
