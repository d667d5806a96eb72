"""Arguments of differentiated functions that are used after the derivative has been computed,
compared with JAX.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import pytest

import accnp

BOTH = (jax, accnp)
Operation = Callable[[Any, Any], Any]

DERIVATIVES: dict[str, Operation] = {
    "grad": lambda m, f: m.grad(f)(1.0),
    "value_and_grad": lambda m, f: m.value_and_grad(f)(1.0),
    "vjp": lambda m, f: m.vjp(f, 1.0),
    "jvp": lambda m, f: m.jvp(f, (1.0,), (1.0,)),
    "linearize": lambda m, f: m.linearize(f, 1.0),
    "jacfwd": lambda m, f: m.jacfwd(f)(1.0),
    "jacrev": lambda m, f: m.jacrev(f)(1.0),
    "hessian": lambda m, f: m.hessian(f)(1.0),
    "grad of grad": lambda m, f: m.grad(m.grad(f))(1.0),
}
USES: dict[str, Operation] = {
    "+": lambda m, x: x + 1,
    "sin": lambda m, x: m.numpy.sin(x),
    "index": lambda m, x: x[None],
    "grad": lambda m, x: m.grad(m.numpy.sin)(x),
    "vmap": lambda m, x: m.vmap(lambda y: x * y)(np.ones(2)),
    "jit": lambda m, x: m.jit(lambda y: y)(x),
    "closure of jit": lambda m, x: m.jit(lambda y: x * y)(1.0),
}


def escaped(m: Any, derivative: Operation) -> Any:
    box: list[Any] = []

    def f(x: Any) -> Any:
        box.append(x)
        return x * 2

    derivative(m, f)
    return box[0]


@pytest.mark.parametrize("name", DERIVATIVES)
def test_escaped_tracers_are_refused(name: str) -> None:
    for m in BOTH:
        x = escaped(m, DERIVATIVES[name])
        assert (x.shape, x.dtype.name) == ((), "float32")
        for use in USES.values():
            with pytest.raises(m.errors.UnexpectedTracerError, match="unexpected tracer"):
                use(m, x)


def test_escaped_value_can_be_read() -> None:
    x = escaped(accnp, DERIVATIVES["grad"])
    assert x.item() == 1.0
    assert float(x) == 1.0
    assert "1." in repr(x)


@pytest.mark.parametrize("around", ["grad", "jit", "vmap"])
def test_escaped_arguments_of_inner_derivative(around: str) -> None:
    for m in BOTH:
        box: list[Any] = []

        def inner(x: Any, box: list[Any] = box) -> Any:
            box.append(x)
            return x * 2

        def outer(x: Any, m: Any = m, inner: Any = inner, box: list[Any] = box) -> Any:
            return m.grad(inner)(x) + box[0]

        with pytest.raises(m.errors.UnexpectedTracerError):
            getattr(m, around)(outer)(np.ones(2) if around == "vmap" else 1.0)


def test_returned_values_stay_valid() -> None:
    """Arguments returned unchanged, also as auxiliary data, become independent values."""
    for m in BOTH:
        leaked: list[Any] = []

        def f(x: Any, leaked: list[Any] = leaked) -> Any:
            leaked.append(x)
            return x * 2, {"x": x}

        values = [
            m.grad(f, has_aux=True)(3.0)[1]["x"],
            m.value_and_grad(f, has_aux=True)(3.0)[0][1]["x"],
            m.vjp(f, 3.0, has_aux=True)[2]["x"],
            m.jvp(f, (3.0,), (1.0,), has_aux=True)[2]["x"],
            m.linearize(f, 3.0, has_aux=True)[2]["x"],
            m.jacfwd(f, has_aux=True)(3.0)[1]["x"],
            m.jacrev(f, has_aux=True)(3.0)[1]["x"],
            m.vjp(lambda x: x, 3.0)[0],
            m.jvp(lambda x: x, (3.0,), (1.0,))[0],
            m.linearize(lambda x: x, 3.0)[0],
        ]
        assert [float(x + 1) for x in values] == [4.0] * len(values)


def test_outer_arguments_stay_valid() -> None:
    def run(m: Any) -> float:
        x = m.numpy.asarray(3.0)
        leaked = []
        m.grad(lambda y: (leaked.append(x), y * x)[1])(2.0)
        return float(leaked[0] + x)

    assert run(accnp) == run(jax) == 6.0
