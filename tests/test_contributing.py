"""The section of CONTRIBUTING.md about adding an op: its examples run, and add two complete ops.

The code blocks of the section are executed in the namespaces of the modules that they name: the
declarations, the cases, and the public functions. The new ops are then used in all ways that the
section promises.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from primitives import test_batching, test_derivatives, test_types, test_values
from primitives.cases import CASES, Case
from primitives.operands import real

import accnp
import accnp.numpy as jnp
from accnp.api.arguments.convert import wrap
from accnp.array_type import Array
from accnp.compiler.ir_tools import interpreter
from accnp.errors import api_boundary
from accnp.experimental import checkify
from accnp.ir.op import COMBINES, OPS, Combine, o
from accnp.numpy.ufunc_factories import inexact
from accnp.primitives import elementwise, reduce
from accnp.typing import ArrayLike

ROOT = Path(__file__).resolve().parent.parent
NAMES = ("softsign", "reduce_logaddexp")


def blocks() -> list[str]:
    """Return the Python blocks of the section, in order."""
    page = (ROOT / "CONTRIBUTING.md").read_text()
    (section,) = re.findall(r"^## To add an operation\n(.*?)^## ", page, re.DOTALL | re.MULTILINE)
    return re.findall(r"```python\n(.*?)```", section, re.DOTALL)


@pytest.fixture(scope="module")
def added() -> Iterator[SimpleNamespace]:
    """Provide the public functions; the ops and their cases exist during the tests of
    this module."""
    element, reduction, cases, functions = blocks()
    scope: dict[str, Any] = {"real": real, "o": o, "wrap": wrap, "inexact": inexact}
    scope |= {"api_boundary": api_boundary, "ArrayLike": ArrayLike, "Array": Array}
    recorded_cases: list[Case] = []

    def add(op: str, *inputs: np.ndarray, **more: Any) -> None:
        recorded_cases.append(Case(op, inputs, **more))

    try:
        exec(element, {**vars(elementwise)})
        exec(reduction, {**vars(reduce), "q": elementwise.q, "Combine": Combine})
        exec(cases, {**scope, "add": add})
        exec(functions, scope)
        yield SimpleNamespace(cases=recorded_cases, **{name: scope[name] for name in NAMES})
    finally:
        for name in NAMES:
            OPS.pop(name, None)
            vars(o).pop(name, None)
        COMBINES.pop("logaddexp", None)


def test_documented_cases_pass_the_op_tests(added: SimpleNamespace) -> None:
    assert [c.op for c in added.cases] == [*NAMES]
    assert not {*NAMES} & {*CASES}
    for case in added.cases:
        for single in (False, True):
            test_types.test_declared_type_matches_the_reference(case, single)
            test_values.test_engine_equals_reference(case, single)
        test_derivatives.test_forward(case)
        test_derivatives.test_reverse(case)
        test_derivatives.test_second_order(case)
        test_batching.test_batch_equals_loop(case)
        test_batching.test_batch_of_batch_equals_loops(case)
        test_batching.test_vmap_of_every_op_runs(case)


def expected(name: str, x: np.ndarray) -> np.ndarray:
    return x / (1 + np.abs(x)) if name == "softsign" else np.log(np.exp(x).sum(1))


def use(added: SimpleNamespace, name: str) -> Any:
    return added.softsign if name == "softsign" else lambda x: added.reduce_logaddexp(x, 1)


@pytest.mark.parametrize("shape", [(3, 4), (5, 1000), (2, 70000), (0, 3)])
@pytest.mark.parametrize("name", NAMES)
def test_new_op_has_correct_values_in_all_kernel_forms(
    added: SimpleNamespace, name: str, shape: Any
) -> None:
    f = use(added, name)
    x = np.random.default_rng(0).normal(size=shape).astype("f")
    reference = expected(name, x.astype(np.float64))
    jitted: Any = accnp.jit(f)
    for data in (jnp.asarray(x), jnp.asarray(x.T.copy()).T):  # by rows and by columns
        eager: Any = f(data)
        assert eager.dtype == np.float32
        np.testing.assert_allclose(eager, reference, rtol=2e-5, atol=1e-6)
        np.testing.assert_array_equal(jitted(data), eager)
    one: Any = accnp.vmap(lambda row: f(row[None])[0])
    mapped = one(jnp.asarray(x)) if shape[0] else reference
    np.testing.assert_allclose(mapped, reference, rtol=2e-5, atol=1e-6)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
@pytest.mark.parametrize("name", NAMES)
def test_dtypes_of_the_new_op(added: SimpleNamespace, name: str, dtype: str) -> None:
    x = jnp.linspace(-3, 3, 24, dtype=dtype).reshape(4, 6)
    actual = use(added, name)(x)
    assert actual.dtype == x.dtype
    reference = expected(name, np.asarray(x, np.float64))
    np.testing.assert_allclose(np.asarray(actual, np.float64), reference, rtol=1e-2, atol=1e-2)


@pytest.mark.parametrize("name", NAMES)
def test_gradients_of_the_new_op(added: SimpleNamespace, name: str) -> None:
    f = use(added, name)
    x = jnp.linspace(-2, 2, 12).reshape(3, 4)
    actual = accnp.grad(lambda x: f(x).sum())(x)
    if name == "softsign":
        reference = 1 / (1 + np.abs(x)) ** 2
    else:
        reference = np.exp(x) / np.exp(x).sum(1, keepdims=True)
    np.testing.assert_allclose(actual, reference, rtol=1e-5)
    np.testing.assert_allclose(accnp.jit(accnp.grad(lambda x: f(x).sum()))(x), actual, rtol=1e-6)


@pytest.mark.parametrize("name", NAMES)
def test_devtools_support_the_new_op(added: SimpleNamespace, name: str) -> None:
    f = use(added, name)
    x = jnp.ones((3, 4))
    assert f" {name}" in str(accnp.make_jaxpr(f)(x))
    assert name in str(accnp.inspect(f(x)))
    error, _ = checkify.checkify(accnp.jit(f), errors=checkify.nan_checks)(x * jnp.nan)
    if name == "softsign":
        assert f"nan generated by primitive: {name}" in str(error.get())
    program = accnp.export.export(accnp.jit(f))(x)
    np.testing.assert_array_equal(program.call(x), f(x))


def test_interpreter_matches_kernel_reduction_order(added: SimpleNamespace) -> None:
    x = np.random.default_rng(0).normal(size=1000).astype("f")
    actual = added.reduce_logaddexp(jnp.asarray(x), 0)
    np.testing.assert_allclose(actual, interpreter.reduce_in_order("logaddexp", x), rtol=1e-6)


@pytest.mark.parametrize("compiler", ["llvm", "numba"])
def test_both_back_ends_compile_the_new_op(compiler: str, tmp_path: Path) -> None:
    """Runs in a separate process, since the option is read when a process starts."""
    program = """
import numpy as np, accnp.numpy as jnp
from accnp.array_type import wrap
from accnp.ir.op import Combine
from accnp.ir.op import o
from accnp.primitives import elementwise, reduce
import sys
element, reduction = sys.argv[1:]
exec(element, {**vars(elementwise)})
exec(reduction, {**vars(reduce), "q": elementwise.q, "Combine": Combine})
x = np.linspace(-2, 2, 6000, dtype="f").reshape(4, 1500)
for y in (x, x.T.copy().T):
    got = wrap(o.reduce_logaddexp(o.softsign(jnp.asarray(y)._node), axes=(1,)))
    print(*np.asarray(got).view(np.uint32))
"""
    element, reduction, *_ = blocks()
    env = {**os.environ, "ACCNP_COMPILER": compiler, "ACCNP_CACHE_DIR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", program, element, reduction],
        capture_output=True, text=True, env=env, check=False, cwd=ROOT,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    x = np.linspace(-2, 2, 6000).reshape(4, 1500)
    reference = np.log(np.exp(x / (1 + np.abs(x))).sum(1))
    for line in done.stdout.splitlines():
        actual = np.array(line.split(), np.uint32).view(np.float32)
        np.testing.assert_allclose(actual, reference, rtol=2e-5)
