"""Random calls of the public functions, chosen by a seed.

The recipes of `tests/api/values` say how each function is called. A `Call` has the source of its
arguments with letters for operands, and an expression for each letter.
"""

from __future__ import annotations

import ast
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from api.exceptions import exceptions
from api.recipes import (
    DEFAULT_PARAMETER_VALUES,
    INERT_PARAMETERS,
    accepts_parameter,
    is_passed_by_position,
    operand_letters,
    optional_parameters,
    recipes,
)
from api.test_names import NAMES, parse_signature
from sweep.operands import NARROW, WIDE, Sizes, draw_operand
from sweep.unusual_arguments import UNUSUAL_VALUES, respell_literal

import accnp

# What is undefined, new in each process, or about the machine.
EXCLUDED_NAMES = {
    "Array.addressable_data", "Array.block_until_ready", "Array.clone", "Array.copy_to_host_async",
    "Array.delete", "Array.is_deleted", "Array.is_ready", "Array.on_device_size_in_bytes",
    "Array.platform", "lax.empty", "numpy.empty", "numpy.empty_like", "numpy.array_repr",
    "numpy.array_str",
} | {name for name, what, *_ in exceptions("values") if what == "none"}  # fmt: skip


@dataclass(frozen=True)
class Call:
    """A random call, with the attributes of `api.recipes.CallLike`."""

    name: str
    arguments: str
    given: tuple[tuple[str, str, bool], ...]  # letter, expression, whether it can be traced
    wide: bool
    seed: int

    @property
    def layout(self) -> str:
        return "special" if any("np.inf" in text for _, text, _ in self.given) else "base"

    def __str__(self) -> str:
        return self.expression()

    def operands(self) -> dict[str, Any]:
        """Return NumPy arrays, numbers and lists."""
        return self.operands_of({"jnp": np, "jax": accnp})

    def operands_of(self, scope: dict[str, Any]) -> dict[str, Any]:
        with np.errstate(all="ignore"):
            return {k: eval(text, {"np": np, **scope}) for k, text, _ in self.given}

    @property
    def traced(self) -> list[str]:
        return [letter for letter, _, traced in self.given if traced]

    def expression(self, mode: str = "value") -> str:
        """Return the call as users would write it."""
        texts = {k: text for k, text, _ in self.given}
        if mode == "value":
            return _build_call(self.name, self.arguments, texts)
        rest = {k: text for k, text in texts.items() if k not in self.traced}
        inner = _build_call(self.name, self.arguments, rest)
        letters = ", ".join(self.traced)
        values = ", ".join(texts[k] for k in self.traced)
        return f"{mode}(lambda {letters}: {inner}, {values})"


class _Operands(ast.NodeTransformer):
    """Replaces operand letters by expressions."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        self.texts = texts

    def visit_Name(self, node: ast.Name) -> ast.expr:
        text = self.texts.get(node.id)
        return node if text is None else ast.parse(text, mode="eval").body


def _build_call(name: str, arguments: str, texts: Mapping[str, str]) -> str:
    call = ast.parse(f"f({arguments})", mode="eval").body
    assert isinstance(call, ast.Call)
    space, _, last = name.rpartition(".")
    function = f"jax.{name}"
    if space.startswith("Array"):
        function = f"jnp.asarray({ast.unparse(call.args.pop(0))})"
        if space == "Array.at":
            function += f".at[{ast.unparse(call.args.pop(0))}]"
        function += f".{last}"
    call.func = ast.parse(function, mode="eval").body
    if space == "nn.initializers" and any(k.arg == "key" for k in call.keywords):
        later = {k.arg: k.value for k in call.keywords if k.arg in ("key", "shape")}
        call.keywords = [k for k in call.keywords if k.arg not in later]
        call = ast.Call(call, [later["key"], later["shape"]], [])
    return ast.unparse(_Operands(texts).visit(call))


@cache
def shuffled_names() -> Sequence[str]:
    """Return all functions with recipes, in a shuffled order."""
    shuffled = sorted(set(recipes()) - EXCLUDED_NAMES)
    random.Random(0).shuffle(shuffled)
    return shuffled


def draw_call(seed: int, wide: bool, among: Sequence[str] | None = None) -> Call:
    """Return the call of a seed. Consecutive seeds go through all functions."""
    r = random.Random(seed)
    chosen = among or shuffled_names()
    name = chosen[seed % len(chosen)]
    text, choices, _ = r.choice(recipes()[name])
    arguments = _split_arguments(text)
    more = _draw_optional_parameters(r, name, text, choices, {k for k, _ in arguments})
    arguments = [(k, _maybe_respell(r, t, 0.1)) for k, t in arguments] + more
    text = ", ".join(t if k is None else f"{k}={t}" for k, t in arguments)
    sizes, dtype = Sizes(r), r.choice(WIDE if wide else NARROW)
    operands = tuple((k, *draw_operand(k, sizes, dtype, wide)) for k in operand_letters(text))
    return Call(name, text, operands, wide, seed)


def _split_arguments(text: str) -> list[tuple[str | None, str]]:
    call = ast.parse(f"f({text})", mode="eval").body
    assert isinstance(call, ast.Call)
    placed: list[tuple[str | None, str]] = [(None, ast.unparse(x)) for x in call.args]
    return placed + [(k.arg, ast.unparse(k.value)) for k in call.keywords]


def _draw_optional_parameters(
    r: random.Random, name: str, text: str, choices: dict[str, list[str]], named: set[str | None]
) -> list[tuple[str | None, str]]:
    """Return optional parameters, with values of the recipe or others."""
    free = [
        p
        for p in dict.fromkeys(
            [*optional_parameters(name), *(g for g in choices if accepts_parameter(name, g))]
        )
        if p not in named and not is_passed_by_position(name, text, p)
    ]
    arguments: list[tuple[str | None, str]] = []
    for p in r.sample(free, min(len(free), r.choice([0, 0, 1, 1, 2, 3]))):
        usual = choices.get(p) or [
            t
            for table in (DEFAULT_PARAMETER_VALUES, INERT_PARAMETERS)
            for t in table.get(p, "").split(" / ")
        ]
        default = parse_signature(NAMES[name][1]).get(p, ("", None))[1]
        texts = [t for t in usual if t] or respell_literal(str(default))
        if p in UNUSUAL_VALUES and r.random() < 0.35:
            texts = UNUSUAL_VALUES[p]
        if texts:
            arguments.append((p, _maybe_respell(r, r.choice(texts), 0.15)))
    return arguments


def _maybe_respell(r: random.Random, text: str, chance: float) -> str:
    others = respell_literal(text) if r.random() < chance else []
    return r.choice(others) if others else text
