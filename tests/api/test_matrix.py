"""Every function of the core namespace in every way: eager, jit, grad, jvp, vmap, x64; the oracle
is jax.

In: the table of `matrix.py`. The oracle compiles one program for each handful of expressions.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import pytest
from api.matrix import CASES, FAMILIES, inputs

import accnp

GROUP = 20
CHUNKS = [CASES[i : i + GROUP] for i in range(0, len(CASES), GROUP)]
# The strict functions and the methods record the ops of the others.
WIDE = [c for c in CASES if c not in {*FAMILIES["strict"], *FAMILIES["methods"]}]
QUICK = {"xla_backend_optimization_level": 0}  # its programs run once
SCALE = {"digamma": 30, "lgamma": 10, "power": 5, "pow": 5}


def program(text: str, m: Any) -> Callable[..., Any]:
    """The expression as a function of the arrays that it names, in one library."""
    scope = {"jnp": m.numpy, "lax": m.lax, "random": m.random, "nn": m.nn, "np": np}
    code = compile(text, text, "eval")
    return lambda **arrays: eval(code, scope, arrays) if arrays else eval(code, scope)


def named(text: str, data: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    return {k: data[k] for k in sorted(data) if re.search(rf"(?<![\w.'\"]){k}(?![\w'\"])", text)}


def leaves(m: Any, result: Any) -> list[Any]:
    return [x for x in m.tree.leaves(result) if isinstance(x, m.Array)]


def facts(m: Any, result: Any) -> list[Any]:
    """Results that are no arrays: shapes, types, flags."""
    return [str(x) for x in m.tree.leaves(result) if not isinstance(x, m.Array)]


def total(m: Any, f: Callable[..., Any], fixed: dict[str, Any]) -> Callable[[Any], Any]:
    """A weighted sum of what is real or complex in the results."""

    def run(moving: dict[str, Any]) -> Any:
        out: Any = m.numpy.zeros((), "float32")
        for x in leaves(m, f(**fixed, **moving)):
            if m.numpy.issubdtype(x.dtype, np.inexact):
                weights = np.cos(np.arange(x.size, dtype=np.float32)).reshape(x.shape)
                out = out + (m.numpy.real(x) * weights).sum()
                if m.numpy.issubdtype(x.dtype, np.complexfloating):
                    out = out + (m.numpy.imag(x) * (weights + 0.5)).sum()
        return out

    return run


def moving_of(arrays: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    moving = {k: v for k, v in arrays.items() if v.dtype.kind == "f"}
    return moving, {k: v for k, v in arrays.items() if k not in moving}


def ways(m: Any, text: str, arrays: dict[str, Any], wanted: Any = None) -> dict[str, Any]:
    """Value, tangent and gradient of one expression in one library.

    Without `wanted`, those that the library refuses are left out.
    """
    f = program(text, m)
    moving, fixed = moving_of(arrays)
    tangents = {k: v * 0.5 + 0.25 for k, v in moving.items()}

    def tangent() -> list[Any]:
        out = m.jvp(lambda a: leaves(m, f(**fixed, **a)), (moving,), (tangents,))[1]
        return [t for t in out if t.dtype != jax.dtypes.float0]

    found = {"value": leaves(m, f(**arrays))}
    others = {"jvp": tangent, "grad": lambda: [*m.grad(total(m, f, fixed))(moving).values()]}
    for way, compute in others.items() if moving else ():
        try:
            if wanted is None or way in wanted:
                found[way] = compute()
        except (NotImplementedError, ValueError):
            if wanted is not None:
                raise
    return found


@functools.cache
def oracle(chunk: int, x64: bool) -> tuple[dict[str, Any], dict[str, Any]]:
    """What jax gives for a handful of expressions, compiled at once."""
    static: dict[str, Any] = {}

    def run(arrays: dict[str, Any]) -> dict[str, Any]:
        out = {}
        for text in CHUNKS[chunk]:
            mine = {k: arrays[k] for k in named(text, data)}
            static[text] = facts(jax, program(text, jax)(**mine))
            out[text] = ways(jax, text, mine, ("value",) if x64 else None)
        return out

    data = inputs(x64)
    with jax.enable_x64(x64):
        out = jax.jit(run, compiler_options=QUICK)(
            {k: jax.numpy.asarray(v) for k, v in data.items()}
        )
        return jax.tree.map(lambda x: (np.asarray(x), x.weak_type), out), static


def close(ours: Any, theirs: tuple[np.ndarray, bool], why: str, scale: float = 1.0) -> None:
    want, weak = theirs
    got = np.asarray(ours)
    assert got.shape == want.shape, why
    assert got.dtype == want.dtype, why
    if want.dtype != bool:
        assert ours.weak_type == weak, f"{why}: weak type"
    if want.dtype.kind in "fc":
        limit = scale * (4e-12 if want.real.dtype == np.float64 else 8e-6)
        np.testing.assert_allclose(got, want, rtol=limit, atol=limit, err_msg=why)
    else:
        np.testing.assert_array_equal(got, want, err_msg=why)


def check(chunk: int, text: str, x64: bool) -> None:
    expected, static = oracle(chunk, x64)
    scale = next((v for k, v in SCALE.items() if k in text), 1)
    arrays = {k: accnp.asarray(v) for k, v in named(text, inputs(x64)).items()}
    assert facts(accnp, program(text, accnp)(**arrays)) == static[text]
    found = ways(accnp, text, arrays, expected[text])
    for way, want in expected[text].items():
        assert len(found[way]) == len(want), way
        for a, b in zip(found[way], want):
            close(a, b, way, scale if way == "value" else 4 * scale)


@pytest.mark.parametrize("text", CASES)
def test_as_jax(text: str) -> None:
    """Values, tangents and gradients, with types and weak flags."""
    check(CASES.index(text) // GROUP, text, False)


@pytest.mark.parametrize("text", WIDE)
def test_x64(text: str) -> None:
    """Values with 64-bit types."""
    with accnp.enable_x64(True):
        check(CASES.index(text) // GROUP, text, True)


@pytest.mark.parametrize("text", CASES)
def test_jit_and_vmap(text: str) -> None:
    """`jit` has the bits of eager; `vmap` is the loop."""
    data = named(text, inputs(False))
    f = program(text, accnp)
    arrays = {k: accnp.asarray(v) for k, v in data.items()}
    eager = leaves(accnp, f(**arrays))
    jitted = leaves(accnp, accnp.jit(lambda a: leaves(accnp, f(**a)))(arrays))
    assert len(eager) == len(jitted)
    for a, b in zip(eager, jitted):
        assert (a.dtype, a.shape, a.weak_type) == (b.dtype, b.shape, b.weak_type)
        np.testing.assert_array_equal(np.asarray(a), np.asarray(b))
    if not data or not eager:
        return
    others = {k: accnp.asarray(np.roll(v, 1, axis=-1)) for k, v in data.items()}
    pairs = {k: accnp.stack([arrays[k], others[k]]) for k in arrays}
    mapped = accnp.vmap(lambda a: leaves(accnp, f(**a)))(pairs)
    second = leaves(accnp, f(**others))
    for a, x, y in zip(mapped, eager, second):
        want = np.stack([np.asarray(x), np.asarray(y)])
        assert a.dtype == want.dtype
        if want.dtype.kind in "fc":
            np.testing.assert_allclose(np.asarray(a), want, rtol=2e-6, atol=2e-6)
        else:
            np.testing.assert_array_equal(np.asarray(a), want)
