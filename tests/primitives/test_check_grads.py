"""`check_grads` on the whole op table, in both modes, to order 3.

Ops that are not checked are listed with the reason in `WITHOUT` or among the exceptions of
`cases.py`. Programs run by the reference functions; nothing is compiled.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from primitives.cases import CASES, EXCEPTIONS, Case

import accnp
from accnp import enable_x64, engine
from accnp.api.arguments.convert import as_node, wrap
from accnp.caches import BoundedCache
from accnp.compiler.fusion import fuse, spaces
from accnp.engine import plan
from accnp.ir.node import items
from accnp.ir.op import OPS, ZERO
from accnp.test_util import check_grads

INTEGERS = "integers or booleans only"
STEPS = "piecewise constant: its tangent is zero by declaration"
TYPES = "the bits of another type: its tangent is zero by declaration"
WITHOUT = {
    "and": INTEGERS, "or": INTEGERS, "xor": INTEGERS, "not": INTEGERS, "shift_left": INTEGERS,
    "shift_right_logical": INTEGERS, "shift_right_arithmetic": INTEGERS, "clz": INTEGERS,
    "population_count": INTEGERS, "threefry_0": INTEGERS, "threefry_1": INTEGERS,
    "threefry_xor": INTEGERS, "reduce_and": INTEGERS, "reduce_or": INTEGERS,
    "reduce_xor": INTEGERS, "gcd": INTEGERS,
    "swap_bytes": INTEGERS, "iota": INTEGERS, "eq": INTEGERS, "ne": INTEGERS, "lt": INTEGERS,
    "le": INTEGERS, "gt": INTEGERS, "ge": INTEGERS, "is_finite": INTEGERS, "argmax": INTEGERS,
    "argmin": INTEGERS, "searchsorted": INTEGERS, "sign": STEPS, "floor": STEPS, "ceil": STEPS,
    "round": STEPS, "bitcast_convert_type": TYPES, "view_bytes": TYPES,
    "exp_near_unit_sum": "a part of log_near_unit_sum, which has the derivative of both",
    "stop_gradient": "its tangent is zero by meaning",
    "nextafter": "no derivative is known, as in jax",
    "igamma_grad_a": "no derivative is known, as in jax",
    "random_gamma_grad": "no derivative is known, as in jax",
    **dict.fromkeys(
        ("geqp3", "geqrf", "householder_product", "ormqr", "schur", "hessenberg", "tridiagonal",
         "symmetric_product", "cholesky_update", "lu_pivots_to_permutation"),
        "no derivative is known: a part of factorizations that have one",
    ),
}  # fmt: skip


def differentiable_positions(case: Case) -> list[int]:
    return [i for i, x in enumerate(case.inputs) if x.dtype.kind in "fc" and i not in case.fixed]


def is_differentiable(case: Case) -> bool:
    return case.diff and OPS[case.op].jvp is not None and bool(differentiable_positions(case))


def smallest_cases() -> list[Any]:
    """Return the smallest differentiable case of each op, and the smallest complex one."""
    parameters = []
    for op, cases in CASES.items():
        if op in WITHOUT:
            continue
        kinds = {"real": [], "complex": []}
        for c in filter(is_differentiable, cases):
            complex_ = any(x.dtype.kind == "c" for x in c.inputs)
            kinds["complex" if complex_ else "real"].append(c)
        for kind, some in kinds.items():
            if some:
                case = min(some, key=lambda c: sum(x.size for x in c.inputs))
                parameters.append(pytest.param(case, id=f"{op}-{kind}"))
    return parameters


@pytest.fixture(scope="module", autouse=True)
def no_kernels() -> Iterator[None]:
    """Run every operation by its reference function."""
    with pytest.MonkeyPatch.context() as patch:
        for module in (spaces, fuse):
            patch.setattr(module, "in_kernel", lambda v: False)
        patch.setattr(plan.Planner, "own_kernel", lambda *_: None)
        patch.setattr(engine, "_plans", BoundedCache("plan_cache_size"))
        yield


def function(case: Case) -> tuple[Callable[..., Any], list[np.ndarray]]:
    """Return the op as a function of its floating-point operands."""
    where = differentiable_positions(case)

    def f(*xs: Any) -> list[Any]:
        arguments = iter(xs)
        nodes = [as_node(next(arguments) if i in where else x) for i, x in enumerate(case.inputs)]
        y = case.record(*nodes)
        outputs = y if isinstance(y, list) else items(y) if isinstance(y.aval, tuple) else [y]
        return [wrap(v) for v in outputs if v.aval.dtype.kind in "fc"]

    return f, [case.inputs[i] for i in where]


@pytest.mark.parametrize("case", smallest_cases())
def test_derivatives_to_order_3(case: Case) -> None:
    f, args = function(case)
    with enable_x64():
        check_grads(f, args, order=3, atol=1e-4, rtol=1e-4, eps=2e-5)


def test_every_op_is_checked_or_excluded() -> None:
    checked = {p.values[0].op for p in smallest_cases()}
    assert checked | set(WITHOUT) | set(EXCEPTIONS) == set(OPS.whole())
    assert not checked & set(WITHOUT)
    assert not set(WITHOUT) & set(EXCEPTIONS)


@pytest.mark.parametrize("op", WITHOUT)
def test_excluded_ops_have_no_derivative(op: str) -> None:
    rules = OPS[op].jvp
    zero = rules is ZERO or (isinstance(rules, tuple) and all(r is ZERO for r in rules))
    if WITHOUT[op] == INTEGERS:
        for case in CASES[op]:
            aval = OPS[op].infer(*[as_node(x).aval for x in case.inputs], **case.params)  # type: ignore[misc]
            assert aval.dtype.kind in "biu"
    elif op == "nextafter" or "factorizations" in WITHOUT[op]:
        assert rules is None
    elif op in ("igamma_grad_a", "random_gamma_grad"):
        for rule in rules:
            with pytest.raises(NotImplementedError, match="second derivative"):
                rule(None, None, None, None)
    else:
        assert zero


def test_python_numbers_are_points() -> None:
    check_grads(accnp.numpy.sin, (1.0,), order=2, eps=1e-2)


def test_numbers_of_64_bits_are_points_without_64_bit_types() -> None:
    points = np.linspace(0.1, 1, 5), [np.float64(0.5)]
    check_grads(lambda x, y: accnp.numpy.sin(x) * y[0], points, order=1)
    with pytest.raises(AssertionError, match="JVP tangent"):
        check_grads(lambda x: accnp.lax.stop_gradient(x) * x, points[:1], order=1)
