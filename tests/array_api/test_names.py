"""The names of the array API standard and their signatures, from `names.tsv`."""

from __future__ import annotations

import csv
import inspect
from pathlib import Path
from typing import Any

import pytest

import accnp
import accnp.numpy as jnp

TABLE = Path(__file__).parent / "names.tsv"
ROWS = list(csv.DictReader(TABLE.read_text().splitlines(), delimiter="\t"))
KINDS = inspect.Parameter
POSITIONAL = (KINDS.POSITIONAL_ONLY, KINDS.POSITIONAL_OR_KEYWORD)
# Another default, which means the same.
SAME = {
    "norm": ("backward", None),  # None is "backward"
    "keepdims": (False, None),
    "correction": (0.0, None),  # None leaves it to ddof, whose default is 0
    "copy": (True, False),  # arrays are immutable, so a copy cannot be told from the original
}


def found(name: str) -> Any:
    first, _, rest = name.rpartition(".")
    if first == "array":
        return getattr(accnp.Array, rest)
    if first == "info":
        return getattr(jnp.__array_namespace_info__(), rest)
    return getattr(getattr(jnp, first) if first else jnp, rest)


@pytest.mark.parametrize("name", [row["name"] for row in ROWS])
def test_every_name_exists(name: str) -> None:
    assert found(name) is not None or name == "newaxis"


def function_of(text: str) -> inspect.Signature:
    scope: dict[str, Any] = {}
    exec(f"def f{text}: pass", scope)
    return inspect.signature(scope["f"])


@pytest.mark.parametrize("row", [r for r in ROWS if r["signature"]], ids=lambda r: r["name"])
def test_signatures_match_the_standard(row: dict[str, str]) -> None:
    required = list(function_of(row["signature"]).parameters.values())
    actual = inspect.signature(found(row["name"])).parameters
    several = any(p.kind is KINDS.VAR_POSITIONAL for p in actual.values())
    positional = [p for p in actual.values() if p.kind in POSITIONAL]
    for place, p in enumerate(a for a in required if a.kind in POSITIONAL):
        if place >= len(positional):
            assert several, f"{p.name} is not taken by position"
            continue
        own = positional[place]
        if p.kind is KINDS.POSITIONAL_OR_KEYWORD:
            assert (own.name, own.kind) == (p.name, p.kind)
        assert p.default is KINDS.empty or own.default is not KINDS.empty, f"{p.name} is required"
    for p in required:
        if p.kind is KINDS.KEYWORD_ONLY:
            own = actual[p.name]
            assert own.kind is not KINDS.POSITIONAL_ONLY
            assert own.default == p.default or SAME.get(p.name) == (p.default, own.default)
    positional_count = sum(p.kind in POSITIONAL for p in required)
    names = {p.name for p in required}
    for own in [
        *positional[positional_count:],
        *(p for p in actual.values() if p.kind is KINDS.KEYWORD_ONLY),
    ]:
        assert own.default is not KINDS.empty or own.name in names, f"{own.name} is asked for"


@pytest.mark.parametrize("version", ["2021.12", "2022.12", "2023.12", "2024.12", "2025.12", None])
def test_namespace_of_an_array(version: str | None) -> None:
    assert jnp.ones(2).__array_namespace__(api_version=version) is jnp


def test_unknown_versions_are_refused() -> None:
    with pytest.raises(ValueError, match=r"got '1999.01'; pass None or one of 2021.12"):
        jnp.ones(2).__array_namespace__(api_version="1999.01")


def test_namespace_info() -> None:
    info = jnp.__array_namespace_info__()
    assert set(info.capabilities()) == {
        "boolean indexing",
        "data-dependent shapes",
        "max dimensions",
    }
    assert info.default_device() is None or info.default_device() in info.devices()
    for device in (None, *info.devices()):
        default = info.default_dtypes(device=device)
        assert jnp.isdtype(default["real floating"], "real floating")
        assert jnp.isdtype(default["complex floating"], "complex floating")
        assert jnp.isdtype(default["integral"], "integral")
        assert default["indexing"] == jnp.argmax(jnp.ones(3)).dtype
    everything = info.dtypes()
    for kind in (
        "bool", "signed integer", "unsigned integer", "integral", "real floating",
        "complex floating", "numeric",
    ):  # fmt: skip
        members = info.dtypes(kind=kind)
        assert members
        assert members.items() <= everything.items()
        assert all(jnp.isdtype(d, kind) for d in members.values())
    both = info.dtypes(kind=("bool", "real floating"))
    assert both == info.dtypes(kind="bool") | info.dtypes(kind="real floating")
    for name, dtype in everything.items():
        assert getattr(jnp, name) == dtype
