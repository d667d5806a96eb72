"""Values of every public function, compared with JAX: layouts, dtypes, special values and each
parameter.

`names.tsv` lists the functions, `values/*.txt` how each is called (`recipes.py`),
`expected/values_*.json` the results of JAX (`answers.py`), and `exceptions.txt` intended
differences.
"""

from __future__ import annotations

import contextlib
import fnmatch
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from api.answers import (
    answers,
    call,
    convert_operands,
    flatten_result,
    is_wide,
    precision,
    select_differentiable,
    weighted_sum,
)
from api.comparison import (
    ResultsDiffer,
    check_gradient,
    check_type,
    check_values,
    differs,
    unpack_array,
)
from api.exceptions import exceptions
from api.recipes import (
    Case,
    cases,
    compiled_cases,
    is_passed_by_position,
    optional_parameters,
    recipe_file_of,
    recipes,
)
from api.support import defer_computation, value_of
from api.test_names import NAMES
from sampling import in_sample, sample

import accnp

EXCEPTIONS = exceptions("values")
FUNCTIONS = [
    name
    for name, (kind, _) in NAMES.items()
    if kind in ("function", "ufunc", "method") and recipe_file_of(name)
]
TESTED_NAMES = sorted(recipes())
REFUSALS = {
    "TypeError", "ValueError", "NotImplementedError", "OverflowError", "IndexError", "KeyError",
}  # fmt: skip


def matches_name(name: str, line: tuple[str, ...]) -> bool:
    return fnmatch.fnmatchcase(name, line[0])


def matching_exceptions(name: str, case: str, what: str) -> list[tuple[str, ...]]:
    """Return the listed exceptions for a difference."""
    return [
        line
        for line in EXCEPTIONS
        if line[1] == what and fnmatch.fnmatchcase(case, line[2]) and matches_name(name, line)
    ]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_each_function_has_cases(name: str) -> None:
    tested = name in recipes()
    assert tested != bool(matching_exceptions(name, "-", "none")), f"recipe in values/: {tested}"


@pytest.mark.parametrize("name", TESTED_NAMES)
def test_each_function_is_called(name: str) -> None:
    """JAX accepts calls of the function, and calls with each parameter of its signature."""
    assert name in NAMES, f"{name} is not in names.tsv"
    accepted = [
        case for case, record in zip(cases(name), answers(name), strict=True) if "leaves" in record
    ]
    assert accepted, f"jax refuses all cases of {name}"
    keywords = {p for case in accepted for p, _ in case.more}
    texts = {case.text for case in accepted}
    for parameter in optional_parameters(name):
        by_place = any(
            f"{parameter}=" in text or is_passed_by_position(name, text, parameter)
            for text in texts
        )
        seen = parameter in keywords or by_place
        assert seen != bool(matching_exceptions(name, parameter, "parameter")), (
            name,
            parameter,
            seen,
        )


def compare(name: str, case: Case, record: dict[str, Any], run: Callable[[], Any]) -> None:
    """Raise `ResultsDiffer` unless a run matches the record of JAX, or the reference values."""
    try:
        tree, leaves = run()
    except Exception as error:
        if "error" not in record:
            raise ResultsDiffer("refuses", repr(error)[:300]) from error
        kinds = {c.__name__ for c in type(error).__mro__}
        if not (kinds & REFUSALS or type(error).__name__ == record["error"]):
            raise ResultsDiffer("error", f"{error!r}, jax {record['error']}") from error
        return
    if "error" in record:
        check_values(name, case, leaves, [])
        return
    if tree != record["tree"]:
        raise ResultsDiffer("tree", f"{tree}, jax {record['tree']}")
    if len(leaves) != len(record["leaves"]):
        raise ResultsDiffer("tree", f"{len(leaves)} arrays, jax {len(record['leaves'])}")
    for x, (kind, weak, _, _) in zip(leaves, record["leaves"], strict=True):
        check_type(x, [kind, weak, list(x.shape)])
    check_values(name, case, leaves, [unpack_array(y) for y in record["leaves"]])


def find_failures(
    name: str, check: Callable[[Case, dict[str, Any]], None], whats: tuple[str, ...]
) -> Iterator[str]:
    """Yield the cases of a function that differ without an exception, and the exceptions that are
    not used.
    """
    used = set()
    for case, record in zip(cases(name), answers(name), strict=True):
        if "unsupported" in record:
            continue
        with precision(accnp, is_wide(case)):
            try:
                check(case, record)
            except ResultsDiffer as error:
                what, how = error.args
                lines = matching_exceptions(name, str(case), what)
                used.update(lines)
                if not lines:
                    yield f"{case}: {what}: {how}"
    for line in EXCEPTIONS:
        if line[1] in whats and matches_name(name, line) and line not in used:
            yield f"excuses nothing: {line}"


def report(lines: Iterator[str]) -> None:
    failures = list(lines)
    if failures:
        pytest.fail(f"{len(failures)} cases:\n" + "\n".join(failures[:20]), pytrace=False)


@pytest.mark.parametrize("name", TESTED_NAMES)
def test_values(name: str) -> None:
    """Types, weak flags and values, or the refusal, match JAX.

    One case in 16 runs as a compiled program, as small calls do.
    """

    def check(case: Case, record: dict[str, Any]) -> None:
        arrays, numbers = convert_operands(accnp, case)
        compiled = in_sample(f"{name} {case}", 16)
        with contextlib.nullcontext() if compiled else defer_computation():
            compare(
                name,
                case,
                record,
                lambda: flatten_result(accnp, call(accnp, name, case, arrays | numbers)),
            )

    whats = ("value", "type", "weak", "tree", "accepts", "refuses", "error")
    report(find_failures(name, check, whats))


@pytest.mark.parametrize("name", sample(TESTED_NAMES, 4))
def test_jit(name: str) -> None:
    """Many cases, compiled to kernels as one program, have the same results.

    With an empty cache, these tests take two thirds of the CPU time of this file, so `make test`
    runs a quarter of them.
    """
    for wide in (False, True):
        with precision(accnp, wide):
            pairs = [
                (case, record)
                for case, record in zip(cases(name), answers(name), strict=True)
                if case in compiled_cases(name) and is_wide(case) == wide
                and "leaves" in record and "concrete" not in record
                and not matching_exceptions(name, str(case), "jit")
                and not matching_exceptions(name, str(case), "refuses")
            ]  # fmt: skip
            report(_jitted(name, pairs))


def _jitted(name: str, pairs: list[tuple[Case, dict[str, Any]]]) -> Iterator[str]:
    operands = [convert_operands(accnp, case) for case, _ in pairs]
    trees: list[Any] = []

    def program(inputs: list[Any]) -> list[Any]:
        out = []
        for (case, _), arrays, (_, numbers) in zip(pairs, inputs, operands, strict=True):
            tree, leaves = flatten_result(accnp, call(accnp, name, case, {**arrays, **numbers}))
            trees.append(tree)
            out.append(leaves)
        return out

    results = accnp.jit(program)([arrays for arrays, _ in operands])
    for (case, record), tree, leaves in zip(pairs, trees, results, strict=True):
        try:
            compare(name, case, record, lambda packed=(tree, leaves): packed)
        except ResultsDiffer as error:
            if not matching_exceptions(name, str(case), error.args[0]):
                yield f"{case}: {error.args[0]}: {error.args[1]}"


@pytest.mark.parametrize("name", TESTED_NAMES)
def test_vmap(name: str) -> None:
    """A batch of two has the results of two separate calls."""

    def check(case: Case, record: dict[str, Any]) -> None:
        if not record.get("vmap") or case not in compiled_cases(name):
            return
        arrays, numbers = convert_operands(accnp, case)
        others = {k: accnp.numpy.flip(v) for k, v in arrays.items()}
        pairs = {k: accnp.numpy.stack([arrays[k], others[k]]) for k in arrays}

        def run(a: dict[str, Any]) -> list[Any]:
            return flatten_result(accnp, call(accnp, name, case, {**a, **numbers}))[1]

        try:
            with defer_computation():
                mapped = accnp.vmap(run)(pairs)
        except Exception as error:
            raise ResultsDiffer("vmap", repr(error)[:300]) from error
        with defer_computation():
            alone = run(arrays), run(others)
        for both, x, y in zip(mapped, *alone, strict=True):
            expected = np.stack([value_of(x), value_of(y)])
            batched = value_of(both)
            kinds = [(a.dtype.name, a.shape) for a in (batched, expected)]
            if kinds[0] != kinds[1] or differs(batched, expected).any():
                raise ResultsDiffer(
                    "vmap", f"{batched.ravel()[:10]}, alone {expected.ravel()[:10]}"
                )

    report(find_failures(name, check, ("vmap",)))


@pytest.mark.parametrize("name", TESTED_NAMES)
def test_gradients(name: str) -> None:
    """Gradients of a weighted sum of the results match those of JAX."""

    def check(case: Case, record: dict[str, Any]) -> None:
        if "grad" not in record or case not in compiled_cases(name):
            return
        arrays, numbers = convert_operands(accnp, case)
        loose = select_differentiable(arrays)
        rest = {k: v for k, v in arrays.items() if k not in loose}

        def total(a: dict[str, Any]) -> Any:
            return weighted_sum(
                accnp, flatten_result(accnp, call(accnp, name, case, {**rest, **a, **numbers}))[1]
            )

        try:
            with defer_computation():
                gradients = accnp.grad(total)(loose)
            for k, expected in record["grad"].items():
                check_type(gradients[k], expected)
                check_gradient(name, case, k, value_of(gradients[k]), unpack_array(expected))
        except ResultsDiffer as error:
            raise ResultsDiffer("grad", error.args[1]) from error
        except Exception as error:
            raise ResultsDiffer("grad", repr(error)[:300]) from error

    report(find_failures(name, check, ("grad",)))


@pytest.mark.parametrize("name", [n for n in TESTED_NAMES if " out=" in NAMES[n][1]])
def test_out_is_refused(name: str) -> None:
    """Arrays are immutable, so the parameter `out` is refused."""
    case = cases(name)[0]
    arrays, numbers = convert_operands(accnp, case)
    case_with_out = Case(case.text, case.layout, case.dtype, (("out", "np.zeros(3)"),))
    with pytest.raises((NotImplementedError, TypeError, ValueError)):
        call(accnp, name, case_with_out, arrays | numbers)


def test_exceptions_have_reasons() -> None:
    for names, what, _, why in EXCEPTIONS:
        assert all(fnmatch.filter([*NAMES], n) for n in names.split()), names
        assert len(why.split()) > 3, (names, what)
