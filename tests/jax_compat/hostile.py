"""Valid programs as bytes, and changes of them that keep the checksums right: what an attacker
would send. `python tests/jax_compat/hostile.py SEED SECONDS` mutates valid programs at random,
reads each, runs what is not refused in a child, and prints how many were refused and ran. It fails
if reading raises anything but a ValueError, and if a child is ended by a signal.

In: data of programs. Out: bytes for `export.deserialize`.
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


def opened(blob: bytes) -> tuple[dict[str, Any], bytes]:
    """The head of a program, and what comes after it."""
    start = len(MAGIC) + 12
    n = int.from_bytes(blob[len(MAGIC) + 4 : start], "big")
    return json.loads(zlib.decompress(blob[start : start + n])), bytes(blob[start + n :])


def closed(head: Any, rest: bytes = b"", packed: bytes | None = None) -> bytes:
    """The bytes of a head, with a right checksum."""
    packed = zlib.compress(json.dumps(head).encode()) if packed is None else packed
    body = packed + rest
    return MAGIC + zlib.crc32(body).to_bytes(4, "big") + len(packed).to_bytes(8, "big") + body


def head_of(values: list[Any], out: list[int], outs: list[Any], **more: Any) -> dict[str, Any]:
    """A head around values of a program; its inputs are the arguments."""
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
    """Valid programs, with arguments for each."""
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


def _places(x: Any, found: list[tuple[Any, Any]]) -> None:
    for key in x if isinstance(x, dict) else range(len(x)):
        found.append((x, key))
        if isinstance(x[key], dict | list):
            _places(x[key], found)


def mutate(head: Any, rng: random.Random) -> Any:
    """A head with one or a few places of its data changed."""
    head = copy.deepcopy(head)
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        places: list[tuple[Any, Any]] = []
        _places(head, places)
        where, key = rng.choice(places)
        old = where[key]
        how = rng.random()
        if type(old) is int and how < 0.4:
            where[key] = old + rng.choice((-2, -1, 1, 2))
        elif how < 0.55:
            where[key] = rng.choice(_NUMBERS)
        elif how < 0.62:
            where[key] = rng.choice(_OTHERS)
        elif how < 0.9:  # what stands elsewhere, of the same type
            same = [w[k] for w, k in places if type(w[k]) is type(old)]
            where[key] = copy.deepcopy(rng.choice(same))
        elif isinstance(where, list):
            if how < 0.95:
                del where[key]
            else:
                where.insert(key, copy.deepcopy(old))
        else:
            where.pop(key)
    return head


def _damaged(blob: bytes, rng: random.Random) -> bytes:
    data = bytearray(blob)
    for _ in range(rng.choice((1, 3, 20))):
        data[rng.randrange(len(data))] = rng.randrange(256)
    return bytes(data[: rng.choice((len(data), len(data), rng.randrange(len(data))))])


def read(blob: bytes) -> export.Exported | None:
    """The program, or None if the bytes are refused as they should be."""
    try:
        return export.deserialize(blob)
    except ValueError as error:
        if "export.deserialize" not in str(error) and "symbolic_shape" not in str(error):
            raise TypeError("an error that does not say where it comes from") from error
        return None


def run(program: export.Exported, args: list[Any]) -> None:
    """Call a program; errors of a valid program are no fault."""
    try:
        for v in jax.tree.leaves(program.call(*args)):
            np.asarray(v)
    except (ArithmeticError, MemoryError, NotImplementedError, RuntimeError, TypeError, ValueError):
        pass


def run_apart(program: export.Exported, args: list[Any], seconds: float = 4) -> str:
    """Call a program in a child: "ran", "left" if it takes long, or the signal that ended it."""
    child = os.fork()
    if not child:
        resource.setrlimit(resource.RLIMIT_AS, (12 << 30, 12 << 30))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        run(program, args)
        os._exit(0)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        found, status = os.waitpid(child, os.WNOHANG)
        if found:
            code = os.waitstatus_to_exitcode(status)
            return "ran" if code == 0 else f"ended with {code}"
        time.sleep(0.002)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return "left"


def main(seed: int, seconds: float) -> None:
    """Mutate valid programs until the time is over."""
    warnings.simplefilter("ignore")
    rng = random.Random(seed)
    known = [(blob, *opened(blob), args) for blob, args in programs()]
    end = time.monotonic() + seconds
    counts = {"refused": 0, "ran": 0, "left": 0}
    while time.monotonic() < end:
        blob, head, rest, args = rng.choice(known)
        bad = _damaged(blob, rng) if rng.random() < 0.05 else closed(mutate(head, rng), rest)
        try:
            program = read(bad)
        except Exception:
            print(f"seed {seed}: this was not refused by a ValueError: {bad.hex()}", flush=True)
            raise
        how = "refused" if program is None else run_apart(program, args)
        if how not in counts:
            print(f"seed {seed}: this {how}: {bad.hex()}", flush=True)
            sys.exit(1)
        counts[how] += 1
    print(json.dumps(counts))


if __name__ == "__main__":
    main(int(sys.argv[1]), float(sys.argv[2]))
