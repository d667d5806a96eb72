"""Phrases of errors and warnings that users search for and that the tests of libraries match.

`phrases.txt` has rows `phrase | call`. Each phrase was in JAX 0.10.2's message for that call when
the file was written; `ACCNP_ORACLE=1` checks this again.
"""

from __future__ import annotations

import operator
import os
import pickle
import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import accnp

ROWS = [
    row.partition(" | ")[::2]
    for row in (Path(__file__).parent / "phrases.txt").read_text().splitlines()
    if row and not row.startswith("#")
]
WARNING = "WARNING "


def f(x: Any) -> Any:
    return x


def needs_value(x: Any) -> Any:
    return x if x > 0 else -x


def call_scope(jax: Any) -> dict[str, Any]:
    """Return the names that calls may use, for accnp or JAX."""
    jnp, leaked = jax.numpy, []

    def escaped() -> Any:
        jax.jit(lambda x: leaked.append(x * 2) or x)(1.0)
        return leaked.pop() + 1

    def escaped_argument() -> Any:
        jax.jit(lambda x: leaked.append(x) or x)(1.0)
        return leaked.pop() + 1

    def custom_vjp(fwd: Any, bwd: Any) -> Any:
        wrapped = jax.custom_vjp(f)
        wrapped.defvjp(fwd, bwd)
        return wrapped

    def custom_jvp(rule: Any) -> Any:
        wrapped = jax.custom_jvp(f)
        wrapped.defjvp(rule)
        return wrapped

    def flattening(flat: Any) -> Any:
        node = type("Node", (), {})
        jax.tree_util.register_pytree_node(node, lambda x: flat, lambda aux, children: node())
        return jax.tree.leaves(node())

    def sorted_dtypes(call: Callable[[], Any]) -> None:
        """Sort the dtypes in a message, which JAX lists in the order of a set."""
        try:
            call()
        except ValueError as error:
            raise ValueError(str(error).replace("'int8', 'int4'", "'int4', 'int8'")) from None

    def raising(call: Callable[[], Any]) -> None:
        with jax.numpy_rank_promotion("raise"):
            call()

    def warned(context: AbstractContextManager[Any], call: Callable[[], Any]) -> None:
        with context, warnings.catch_warnings():
            warnings.simplefilter("error")
            call()

    return {
        "jax": jax, "jnp": jnp, "lax": jax.lax, "random": jax.random, "np": np, "v": jnp.ones(3),
        "f": f, "needs_value": needs_value, "escaped": escaped, "custom_vjp": custom_vjp,
        "escaped_argument": escaped_argument, "custom_jvp": custom_jvp, "flattening": flattening,
        "sorted_dtypes": sorted_dtypes, "raising": raising, "warned": warned, "operator": operator,
        "pickle": pickle,
    }  # fmt: skip


SPACES = [call_scope(accnp)]
if os.environ.get("ACCNP_ORACLE"):
    import jax

    SPACES.append(call_scope(jax))


def assert_phrase(phrase: str, call: str, space: dict[str, Any]) -> None:
    kind = Warning if phrase.startswith(WARNING) else Exception
    with pytest.raises(kind) as caught:
        eval(call, space)
    text = str(caught.value)
    phrase = phrase.removeprefix(WARNING)
    if phrase.startswith("^"):
        assert text.startswith(phrase[1:])
    else:
        assert phrase in text


@pytest.mark.parametrize(("phrase", "call"), ROWS)
def test_phrase(phrase: str, call: str) -> None:
    for space in SPACES:
        assert_phrase(phrase, call, space)


@pytest.mark.parametrize(
    "name",
    ["sum", "prod", "max", "min", "mean", "std", "var", "all", "any", "nansum", "nanprod",
     "nanmax", "nanmin", "nanmean", "nanstd", "nanvar"],
)  # fmt: skip
def test_masks_of_every_reduction(name: str) -> None:
    more = {"initial": 0} if name.endswith(("max", "min")) else {}
    call = f"jnp.{name}(v, where=v, **{more})"
    for space in SPACES:
        assert_phrase("where must be None or a boolean array; got where.dtype=", call, space)


@pytest.mark.parametrize(
    ("name", "args"),
    [("bits", ()), ("uniform", ()), ("normal", ()), ("randint", ((2,), 0, 3)), ("gumbel", ()),
     ("bernoulli", ()), ("exponential", ()), ("gamma", (1.0,)), ("permutation", (3,)),
     ("split", ()), ("fold_in", (1,)), ("truncated_normal", (0.0, 1.0)), ("poisson", (1.0,)),
     ("laplace", ()), ("cauchy", ()), ("beta", (1.0, 1.0)), ("choice", (3,)),
     ("categorical", (np.zeros(3),)), ("dirichlet", (np.ones(3),)), ("binomial", (3, 0.5)),
     ("multivariate_normal", (np.zeros(2), np.eye(2)))],
)  # fmt: skip
def test_several_keys_where_one_is_taken(name: str, args: tuple[Any, ...]) -> None:
    call = f"random.{name}(random.split(random.key(0)), *args)"
    phrase = f"{name} accepts a single key, but was given a key array of shape (2,)"
    for space in SPACES:
        assert_phrase(phrase, call, {**space, "args": args})


@pytest.mark.parametrize(
    "call",
    [lambda x: accnp.lax.scan(lambda c, z: (c, z), 0.0, None, x),
     lambda x: accnp.lax.scan(lambda c, z: (c, z), 0.0, None, 3, unroll=x),
     lambda x: x.tobytes(), pickle.dumps],
)  # fmt: skip
def test_values_needed_while_tracing(call: Callable[[Any], Any]) -> None:
    with pytest.raises(accnp.errors.ConcretizationTypeError):
        accnp.jit(call)(3)
