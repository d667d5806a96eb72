"""Operands of random calls, as expressions of NumPy and jnp that can be pasted into a program.

The functions take the description of a recipe's letter, a shape and a dtype. They return a source,
and whether the value is an array of the library, which `jit` and other transformations trace.
"""

from __future__ import annotations

import random
from typing import Any

import ml_dtypes
import numpy as np
from api.recipes import (
    ANY_NUMBER,
    BOOLEAN,
    GRID_SHAPES,
    INTEGER,
    KEY,
    MATRIX_SHAPES,
    OPERAND_LETTERS,
    POSITIVE,
    SQUARE_SHAPES,
    UNIT_INTERVAL,
    VECTOR_SHAPES,
)

INTEGERS = ("int8", "int16", "int32", "uint8", "uint16", "uint32")
NARROW = (
    "bool", *INTEGERS, *("float16", "bfloat16") * 2, *("float32",) * 6, *("complex64",) * 2,
)  # fmt: skip
WIDE = (*NARROW, *("int64", "uint64", "float64", "float64", "complex128") * 2)

# Shapes below and above the lengths of vectors, chunks and kernels; those drawn more often first.
GRID_CHOICES = (
    *((67,), (17, 33), (5, 7, 19), (1025,), (3, 1, 257), (130, 5), (2, 3), (9,)) * 3,
    *((1, 300), (2049,), (500, 30, 1), (), (1,)) * 2,
    (0,), (3, 0, 2), (1, 1), (1, 40, 1, 9), (2, 1100), (40001,), (16385, 2), (2, 3, 4, 5),
    (33, 1, 1, 17), (1, 70001),
)  # fmt: skip
AXIS_LENGTHS = (1, 2, 5, 9, 17, 33, 40, 65)
SQUARE_SIZES = (1, 3, 5, 16, 31)


class Sizes:
    """The shapes of one call, whose operands have axes of the same lengths."""

    def __init__(self, r: random.Random) -> None:
        self.r = r
        self.small = r.choice(["base", "base", "cube", "point", "empty", "line"])
        self.recipe = r.random() < 0.25  # the recipe's own sizes, which all arguments fit
        self.grid, self.n, self.m = (
            r.choice(GRID_CHOICES),
            r.choice(AXIS_LENGTHS),
            r.choice(SQUARE_SIZES),
        )
        self.stack = (r.choice([0, 2, 3]),) if r.random() < 0.06 else ()

    def of(self, space: Any) -> tuple[int, ...]:
        if self.recipe:
            return space[self.small]
        if space is GRID_SHAPES:
            return self._broadcast()
        if space is VECTOR_SHAPES:
            return (self.n,)
        if space is MATRIX_SHAPES:
            return (*self.stack, self.n, self.m)
        if space is SQUARE_SHAPES:
            return (*self.stack, self.n, self.n)
        return space["base"]

    def _broadcast(self) -> tuple[int, ...]:
        chance = self.r.random()
        if chance < 0.75:
            return self.grid
        if chance < 0.85:
            return self.grid[1:]
        if chance < 0.93:
            return tuple(1 if self.r.random() < 0.5 else n for n in self.grid)
        return ()


def draw_key(r: random.Random) -> tuple[str, bool]:
    """Return a random key, typed or raw."""
    seed = r.randrange(99)
    texts = (
        f"jnp.array([{seed}, 11], 'uint32')",
        f"jax.random.PRNGKey({seed})",
        f"jax.random.key({seed})",
        f"jax.random.key({seed})",
        f"jax.random.key({seed}, impl='rbg')",
    )
    return r.choice(texts), True


def draw_operand(letter: str, sizes: Sizes, dtype: str, wide: bool) -> tuple[str, bool]:
    """Return an operand of a call whose operands mostly have the same dtype."""
    r = sizes.r
    contents, space = OPERAND_LETTERS[letter]
    if contents == KEY:
        return draw_key(r)
    shape = sizes.of(space)
    if r.random() < 0.2:
        dtype = r.choice(WIDE if wide else NARROW)
    if contents == BOOLEAN and r.random() < 0.85:
        dtype = "bool"
    if contents == INTEGER and r.random() < 0.9 and "int" not in dtype:
        dtype = r.choice([*INTEGERS, *["int64"] * wide])
    return draw_layout(r, draw_numbers(r, contents, dtype, shape), shape)


def draw_layout(r: random.Random, text: str, shape: tuple[int, ...]) -> tuple[str, bool]:
    """Return an array, a view of an array, a scalar or a list."""
    chance, size = r.random(), int(np.prod(shape, dtype=np.int64))
    if chance < 0.66 or not size:
        return f"jnp.asarray({text})", True
    if chance < 0.76:
        return text, False
    if chance < 0.79 and size < 99:
        return f"np.asarray({text}).tolist()", False
    if chance < 0.82:
        return f"np.ravel({text})[0]", False
    if chance < 0.85:
        return f"np.ravel({text})[0].item()", False
    if chance < 0.89:
        return f"jnp.asarray(np.ravel({text})[0].item())", True  # weak
    if not shape:
        return f"jnp.asarray({text})", True
    if chance < 0.93:
        return f"jnp.asarray(np.transpose({text})).T", True
    if chance < 0.96:
        return f"jnp.asarray({text}[::-1])[::-1]", True
    return f"jnp.repeat(jnp.asarray({text}), 2, -1)[..., ::2]", True


def draw_numbers(r: random.Random, contents: str, dtype: str, shape: tuple[int, ...]) -> str:
    """Return numbers of a dtype that are multiples of 1/8, which all floating dtypes represent.

    Some arrays have special values instead: limits of the dtype, zeros of both signs, infinities
    and NaN.
    """
    drawn = f"np.random.default_rng({r.randrange(1000)})"
    kind = "c" if "complex" in dtype else "i" if "int" in dtype else dtype[0]
    unsigned = dtype.startswith("u")
    if contents == BOOLEAN or kind == "b":
        truth = f"({drawn}.integers(0, 2, {shape}) > 0)"
        return truth if dtype == "bool" else f"{truth}.astype('{dtype}')"
    if contents in ("regular", "positive", "lower") and len(shape) > 1:
        return _matrix(drawn, contents, kind, dtype, shape)
    if (
        kind != "c"
        and contents in (ANY_NUMBER, INTEGER, POSITIVE, UNIT_INTERVAL)
        and r.random() < 0.15
    ):
        return f"{drawn}.choice({_special_values(r, contents, dtype)}, {shape})"
    low, high = {POSITIVE: (1, 38), UNIT_INTERVAL: (-7, 8)}.get(contents, (-36, 37))
    if kind == "c":
        return f"({drawn}.integers({low}, {high}, {(*shape, 2)}) @ [.125, .125j]).astype('{dtype}')"
    if kind == "i":
        low, high = {POSITIVE: (1, 6), UNIT_INTERVAL: (-7, 8)}.get(contents, (-5, 6))
        return f"{drawn}.integers({0 if unsigned and low < 0 else low}, {high}, {shape}, '{dtype}')"
    return f"({drawn}.integers({low}, {high}, {shape}) / 8).astype('{dtype}')"


def _special_values(r: random.Random, contents: str, dtype: str) -> str:
    if "int" in dtype:
        info = np.iinfo(dtype)
        ends = [info.min, info.min + 1, 0, 1, 2, info.max - 1, info.max]
        if contents == POSITIVE:
            ends = [n for n in ends if n > 0]
        return f"np.array({ends}, '{dtype}')"
    limits = ml_dtypes.finfo(dtype)
    least, most = float(limits.tiny), float(limits.max)
    if r.random() < 0.4:  # finite numbers: many functions have a pole or no derivative at 0
        return f"np.array([0., -0., 1., 2., -1., .5], '{dtype}')"
    return f"np.array([np.nan, np.inf, -np.inf, 0., -0., {least!r}, {most!r}, -2.5, 1.], '{dtype}')"


def _matrix(drawn: str, contents: str, kind: str, dtype: str, shape: tuple[int, ...]) -> str:
    n = shape[-1]
    text = f"{drawn}.integers({0 if dtype.startswith('u') else -4}, 5, {shape})"
    if kind == "c":
        text = f"{drawn}.integers(-4, 5, {(*shape, 2)}) @ [1, .5j]"
    if contents == "positive":
        text = f"(lambda x: x @ x.swapaxes(-1, -2).conj())({text})"
    text = f"({text} + {max(16, n)} * np.eye({n}, dtype=int))"
    if contents == "lower":
        text = f"np.tril({text})"
    return f"{text}.astype('{dtype}')" if kind == "i" else f"({text} / 8).astype('{dtype}')"
