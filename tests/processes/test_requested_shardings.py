"""The parameter `out_sharding`: every function that has it applies it or raises an error."""

from __future__ import annotations

import inspect
import json
from typing import Any

import jax
import jax.experimental.sparse
import numpy as np
import pytest
from processes.launch import run
from processes.requested_shardings import ALL, MORE, REFUSED, RESULTS, functions

import accnp
import accnp.experimental.sparse

REPLICATED = {"a scalar that is replicated", "replicated counts"}


@pytest.fixture(scope="module")
def sharding() -> Any:
    return accnp.NamedSharding(accnp.make_mesh((4,), ("a",)), accnp.P("a"))


@pytest.fixture(scope="module")
def outputs() -> dict[str, Any]:
    """Return the output of four processes."""
    return json.loads(run(4, "requested.py").splitlines()[-1])


@pytest.mark.parametrize("m", [jax, accnp])
def test_all_functions_with_the_parameter_are_called(m: Any) -> None:
    assert set(functions(m)) == {*RESULTS, *REFUSED}


def test_all_methods_with_the_parameter_are_called() -> None:
    x = accnp.numpy.ones(2)
    methods = set()
    for prefix, of in (("Array", x), ("x.at", x.at[0])):
        for name in dir(of):
            method = getattr(type(of), name, None)
            if name.startswith("_") or not inspect.isfunction(method):
                continue
            if "out_sharding" in inspect.signature(method).parameters:
                methods.add(f"{prefix}.{name}")
    assert methods - set(MORE) == set()
    assert {"Array.repeat", "Array.reshape", "x.at.get"} <= methods


def expected(name: str) -> str:
    return "P()" if name in REPLICATED else "P('a',)"


def without_rest(spec: str) -> str:
    """Return a spec without its trailing entries of axes that are not sharded."""
    return spec.replace(", None", "").replace("P('a')", "P('a',)").replace("P(None,)", "P()")


@pytest.mark.parametrize("name", ALL)
def test_results_have_the_sharding(name: str, sharding: Any, outputs: dict[str, Any]) -> None:
    reference = ALL[name](accnp, None)
    ours = ALL[name](accnp, sharding)
    assert without_rest(str(ours.sharding.spec)) == expected(name)
    np.testing.assert_allclose(ours, reference, rtol=1e-6)
    spec, values = outputs[name]
    assert without_rest(spec) == expected(name)
    np.testing.assert_allclose(np.array(values), reference, rtol=1e-6)


@pytest.mark.parametrize("name", REFUSED)
def test_refusals(name: str, sharding: Any, outputs: dict[str, Any]) -> None:
    call, kind = REFUSED[name]
    error = getattr(accnp.errors, kind, NotImplementedError)
    with pytest.raises(error, match="sharding"):
        call(accnp, sharding)
    call(accnp, None)
    assert outputs[name][0] == kind


@pytest.mark.parametrize("wrong", [7, accnp.devices()[0]])
def test_other_values_are_refused(wrong: Any) -> None:
    with pytest.raises(TypeError, match="must be a NamedSharding or a PartitionSpec"):
        accnp.random.normal(accnp.random.key(0), (4,), out_sharding=wrong)
    with pytest.raises(TypeError, match="must be a NamedSharding or a PartitionSpec"):
        accnp.numpy.bincount(accnp.numpy.arange(4), out_sharding=wrong)


def test_specs_refer_to_the_mesh_in_use(sharding: Any) -> None:
    with pytest.raises(ValueError, match="needs a mesh in use"):
        accnp.random.normal(accnp.random.key(0), (4,), out_sharding=accnp.P("a"))
    with accnp.set_mesh(sharding.mesh):
        x = accnp.random.normal(accnp.random.key(0), (4,), out_sharding=accnp.P("a"))
    assert x.sharding == sharding
