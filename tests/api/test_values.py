"""Every function of the tables by values: layouts, dtypes, special values, each parameter.

In: `names.tsv` says which functions there are, `values/*.txt` how each is called (`recipes.py`),
`expected/values_*.json` what jax answers (`answers.py`). `values_exceptions.txt` says where accnp
differs on purpose: names | cases | what differs | why.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from api.answers import answers, arrays_of, call, flat, is_wide, moving, precision, weighted
from api.recipes import Case, cases, fused, parameters, recipes, space_of, taken
from api.support import value_of
from api.test_names import NAMES

import accnp

FOLDER = Path(__file__).parent
EXCEPTIONS = [
    tuple(part.strip() for part in line.split(" | "))
    for line in (FOLDER / "values_exceptions.txt").read_text().splitlines()
    if line.strip() and not line.startswith("#")
]
FUNCTIONS = [
    name
    for name, (kind, _) in NAMES.items()
    if kind in ("function", "ufunc", "method") and space_of(name)
]
TESTED = sorted(recipes())
REFUSALS = {
    "TypeError", "ValueError", "NotImplementedError", "OverflowError", "IndexError", "KeyError",
}  # fmt: skip
ROUGH = {"float16": 2e-3, "bfloat16": 2e-2, "float64": 1e-11, "complex128": 1e-11}


def excused(name: str, case: str, what: str) -> bool:
    return any(
        fnmatch.fnmatchcase(name, n) and fnmatch.fnmatchcase(case, c) and what == w
        for n, c, w, _ in EXCEPTIONS
    )


@pytest.mark.parametrize("name", FUNCTIONS)
def test_each_function_has_cases(name: str) -> None:
    assert name in recipes() or excused(name, "-", "none"), f"{name} has no recipe in values/"


@pytest.mark.parametrize("name", TESTED)
def test_each_function_is_called(name: str) -> None:
    """jax accepts calls, and calls with each parameter of the signature."""
    assert name in NAMES, f"{name} is not in names.tsv"
    accepted = [
        case for case, record in zip(cases(name), answers(name), strict=True) if "leaves" in record
    ]
    assert accepted, f"jax refuses all cases of {name}"
    given = {p for case in accepted for p, _ in case.more}
    texts = {case.text for case in accepted}
    for parameter in parameters(name):
        by_place = any(f"{parameter}=" in text or taken(name, text, parameter) for text in texts)
        seen = parameter in given or by_place
        assert seen or excused(name, parameter, "parameter"), (name, parameter)


class Differs(Exception):
    """What differs, by a word of the exceptions' file, and how."""


def close(found: Any, expected: list[Any], signs: bool = False, rough: float | None = None) -> None:
    """Compare an array with a packed one."""
    kind, weak, shape, numbers = expected
    if (found.dtype.name, list(found.shape)) != (kind, shape):
        raise Differs("type", f"{found.dtype.name}{list(found.shape)}, jax {kind}{shape}")
    if isinstance(found, accnp.Array) and kind != "bool" and found.weak_type != weak:
        raise Differs("weak", f"{found.weak_type}, jax {weak}")
    value = value_of(found)
    if value.dtype.kind == "c":
        value = np.stack([value.real, value.imag], -1)
    if value.dtype.kind in "biu":
        if value.ravel().tolist() != numbers:
            raise Differs("value", f"{value.ravel().tolist()}, jax {numbers}")
        return
    a, b = np.asarray(value, np.float64).ravel(), np.asarray(numbers, np.float64)
    rough = rough or ROUGH.get(kind, 2e-5)
    with np.errstate(all="ignore"):
        scale = np.max(np.abs(b[np.isfinite(b)]), initial=0.0)
        least = rough * (1 if kind in ("float16", "bfloat16") else 0.1)
        least *= min(scale, 1.0) if signs else max(scale, 0.1)
        apart = ~np.isclose(a, b, rtol=rough, atol=least, equal_nan=True)
        if signs:
            apart |= (a == 0) & (b == 0) & (np.signbit(a) != np.signbit(b))
    if apart.any():
        raise Differs("value", f"{a[apart][:6]}, jax {b[apart][:6]} at {np.nonzero(apart)[0][:6]}")


def compare(name: str, case: Case, record: dict[str, Any], run: Callable[[], Any]) -> None:
    """Raise `Differs` unless a run gives what the record says."""
    try:
        tree, leaves = run()
    except Exception as error:
        if "error" not in record:
            raise Differs("refuses", repr(error)[:300]) from error
        kinds = {c.__name__ for c in type(error).__mro__}
        if not (kinds & REFUSALS or type(error).__name__ == record["error"]):
            raise Differs("error", f"{error!r}, jax {record['error']}") from error
        return
    if "error" in record:
        raise Differs("accepts", f"{leaves}, jax {record['error']}")
    if tree != record["tree"]:
        raise Differs("tree", f"{tree}, jax {record['tree']}")
    for x, y in zip(leaves, record["leaves"], strict=True):
        close(x, y, signs=case.layout == "special")


def failing(name: str, check: Callable[[Case, dict[str, Any]], None]) -> Iterator[str]:
    """The cases of a name that differ and are not excused."""
    for case, record in zip(cases(name), answers(name), strict=True):
        if "unsupported" in record:
            continue
        with precision(accnp, is_wide(case)):
            try:
                check(case, record)
            except Differs as found:
                what, how = found.args
                if not excused(name, str(case), what):
                    yield f"{case}: {what}: {how}"


def report(lines: Iterator[str]) -> None:
    found = list(lines)
    if found:
        pytest.fail(f"{len(found)} cases:\n" + "\n".join(found[:20]), pytrace=False)


@pytest.mark.parametrize("name", TESTED)
def test_values(name: str) -> None:
    """Types, weak flags and values, or a refusal, as jax has them."""

    def check(case: Case, record: dict[str, Any]) -> None:
        arrays, numbers = arrays_of(accnp, case)
        compare(name, case, record, lambda: flat(accnp, call(accnp, name, case, arrays | numbers)))

    report(failing(name, check))


@pytest.mark.parametrize("name", TESTED)
def test_jit(name: str) -> None:
    """Many cases as one compiled program give the same, by kernels."""
    for wide in (False, True):
        with precision(accnp, wide):
            pairs = [
                (case, record)
                for case, record in zip(cases(name), answers(name), strict=True)
                if case in fused(name) and is_wide(case) == wide
                and "leaves" in record and "concrete" not in record
                and not excused(name, str(case), "jit") and not excused(name, str(case), "refuses")
            ]  # fmt: skip
            report(_jitted(name, pairs))


def _jitted(name: str, pairs: list[tuple[Case, dict[str, Any]]]) -> Iterator[str]:
    operands = [arrays_of(accnp, case) for case, _ in pairs]
    trees: list[Any] = []

    def program(inputs: list[Any]) -> list[Any]:
        out = []
        for (case, _), arrays, (_, numbers) in zip(pairs, inputs, operands, strict=True):
            tree, leaves = flat(accnp, call(accnp, name, case, {**arrays, **numbers}))
            trees.append(tree)
            out.append(leaves)
        return out

    results = accnp.jit(program)([arrays for arrays, _ in operands])
    for (case, record), tree, leaves in zip(pairs, trees, results, strict=True):
        try:
            compare(name, case, record, lambda found=(tree, leaves): found)
        except Differs as found:
            if not excused(name, str(case), found.args[0]):
                yield f"{case}: {found.args[0]}: {found.args[1]}"


@pytest.mark.parametrize("name", TESTED)
def test_vmap(name: str) -> None:
    """A batch of two is what the calls one by one give."""

    def check(case: Case, record: dict[str, Any]) -> None:
        if not record.get("vmap") or case not in fused(name):
            return
        arrays, numbers = arrays_of(accnp, case)
        others = {k: accnp.numpy.flip(v) for k, v in arrays.items()}
        pairs = {k: accnp.numpy.stack([arrays[k], others[k]]) for k in arrays}

        def run(a: dict[str, Any]) -> list[Any]:
            return flat(accnp, call(accnp, name, case, {**a, **numbers}))[1]

        try:
            mapped = accnp.vmap(run)(pairs)
        except Exception as error:
            raise Differs("vmap", repr(error)[:300]) from error
        for both, x, y in zip(mapped, run(arrays), run(others), strict=True):
            expected = np.stack([value_of(x), value_of(y)])
            try:
                kind, _, shape, numbers_ = _packed(expected)
                close(both, [kind, both.weak_type, shape, numbers_])
            except Differs as found:
                raise Differs("vmap", found.args[1]) from found

    report(failing(name, check))


def _packed(x: np.ndarray) -> list[Any]:
    value = np.stack([x.real, x.imag], -1) if x.dtype.kind == "c" else x
    kind = value.dtype.kind
    numbers = value.ravel() if kind in "biu" else value.astype(np.float64).ravel()
    return [x.dtype.name, False, list(x.shape), numbers.tolist()]


@pytest.mark.parametrize("name", TESTED)
def test_gradients(name: str) -> None:
    """Gradients of a weighted sum of the results, where jax has them."""

    def check(case: Case, record: dict[str, Any]) -> None:
        if "grad" not in record or case not in fused(name):
            return
        arrays, numbers = arrays_of(accnp, case)
        loose = moving(arrays)
        rest = {k: v for k, v in arrays.items() if k not in loose}

        def total(a: dict[str, Any]) -> Any:
            return weighted(
                accnp, flat(accnp, call(accnp, name, case, {**rest, **a, **numbers}))[1]
            )

        try:
            found = accnp.grad(total)(loose)
            for k, expected in record["grad"].items():
                close(found[k], expected, rough=2e-2 if "float16" in str(case) else None)
        except Differs as error:
            raise Differs("grad", error.args[1]) from error
        except Exception as error:
            raise Differs("grad", repr(error)[:300]) from error

    report(failing(name, check))


@pytest.mark.parametrize("name", [n for n in TESTED if " out=" in NAMES[n][1]])
def test_out_is_refused(name: str) -> None:
    """Arrays do not change, so nothing is written to one that is given."""
    case = cases(name)[0]
    arrays, numbers = arrays_of(accnp, case)
    given = Case(case.text, case.layout, case.dtype, (("out", "np.zeros(3)"),))
    with pytest.raises((NotImplementedError, TypeError, ValueError)):
        call(accnp, name, given, arrays | numbers)


def test_exceptions_have_reasons() -> None:
    for names, _, what, why in EXCEPTIONS:
        assert fnmatch.filter([*NAMES], names), names
        assert len(why.split()) > 3, (names, what)
