"""The differences between JAX's and accnp's records of a call.

The input is a call, JAX's record (None without JAX), and accnp's record. Each difference has the
mode of running the call, a class (`value`, `limit` of derivatives, `type`, `weak`, `tree`,
`refuses`), and a description.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from api.comparison import ResultsDiffer, check_values, differs
from api.exceptions import exceptions
from api.references import (
    evaluate_with_accnp,
    gradient_quotients,
    jvp_quotients,
    reference_results,
    wide_operands,
)
from chance.values import difference, same_bits
from sweep.calls import Call
from sweep.execution_modes import MODES, ModeRunner, tangent

import accnp

Packed = list[tuple[np.ndarray, bool]]
Record = dict[str, Any]
GRADIENT_SAMPLES = 8  # places of a gradient that are looked up: each costs several calls
# How far jax may be from a result in 16 or 32 bits that 64-bit types have as well.
ROUNDING_TOLERANCES = {"float16": 0.05, "bfloat16": 0.2, "float32": 5e-3, "complex64": 5e-3}


class Difference(NamedTuple):
    mode: str
    what: str
    how: str


def is_excepted(call: Call, reported: Difference) -> bool:
    """Return whether `exceptions.txt` lists the difference."""
    return any(
        fnmatch.fnmatchcase(call.name, name)
        and what in (reported.what, reported.mode)
        and fnmatch.fnmatchcase(call.arguments, calls)
        for section in ("sweep", "values", "weak types")
        for name, what, calls, _ in exceptions(section)
    )


def find_differences(call: Call, theirs: Record | None, ours: Record) -> list[Difference]:
    try:
        reported = list(_iterate_differences(call, theirs, ours))
    finally:
        reference_results.cache_clear()  # arrays of calls that do not come again
    return [d for d in reported if not is_excepted(call, d)]


def compared_modes(call: Call, theirs: Record | None, ours: Record) -> list[str]:
    """Return the modes in which a call was compared."""
    if theirs is not None and ("error" in theirs or "value" not in theirs):
        return []
    return [mode for mode in MODES if mode in ours]


def _iterate_differences(call: Call, theirs: Record | None, ours: Record) -> Iterator[Difference]:  # noqa: C901
    if theirs is not None and ("error" in theirs or "value" not in theirs):
        return
    value = ours["value"]
    if isinstance(value, str):
        if theirs is not None:
            yield Difference("value", "refuses", value)
        return
    if theirs is not None:
        if theirs["tree"] != ours["tree"]:
            yield Difference("value", "tree", f"{ours['tree']}, jax {theirs['tree']}")
            return
        yield from _compare_types("value", value, theirs["value"])
    yield from _compare_values(call, value, None if theirs is None else theirs["value"])
    if "jit" in ours:
        yield from _compare_with_eager(ours["jit"], value)
    if "vmap" in ours:
        yield from _compare_mapped(call, ours)
    for mode in ("ranks", "strict"):
        if mode in ours:
            yield from (d._replace(mode=mode) for d in _compare_with_eager(ours[mode], value))
    if "hvp" in ours:
        yield from _compare_second_derivatives(call, ours, theirs)
    for mode, check in (("grad", _compare_gradients), ("jvp", _compare_jvp)):
        if mode not in ours:
            continue
        if isinstance(ours[mode], str):
            if theirs is not None:
                yield Difference(mode, "refuses", ours[mode])
        elif theirs is None or mode in theirs:
            stated = None if theirs is None else theirs[mode]
            if stated is not None:
                yield from _compare_types(mode, ours[mode], stated)
            if stated is None or _dtypes_and_shapes(ours[mode]) == _dtypes_and_shapes(stated):
                yield from check(call, ours[mode], stated, value)


def _dtypes_and_shapes(leaves: Packed) -> list[Any]:
    return [(x.dtype, x.shape) for x, _ in leaves]


def _describe_leaf(leaf: tuple[np.ndarray, bool]) -> str:
    x, weak = leaf
    return f"{'~' * (weak and x.dtype != bool)}{x.dtype.name}{list(x.shape)}"


def _compare_types(mode: str, ours: Packed, theirs: Packed) -> Iterator[Difference]:
    texts = [[_describe_leaf(x) for x in leaves] for leaves in (ours, theirs)]
    if texts[0] != texts[1]:
        what = "weak" if _dtypes_and_shapes(ours) == _dtypes_and_shapes(theirs) else "type"
        if what == "weak" and mode != "value":
            return  # of slopes that says how jax writes the rule of a derivative
        yield Difference(mode, what, f"{', '.join(texts[0])}, jax {', '.join(texts[1])}")


def _compare_values(call: Call, ours: Packed, theirs: Packed | None) -> Iterator[Difference]:
    actual = [x for x, _ in ours]
    if theirs is not None and _dtypes_and_shapes(ours) != _dtypes_and_shapes(theirs):
        return
    expected = [x for x, _ in theirs or []]
    if theirs is None:
        expected = reference_results(call.name, call, tuple(x.dtype for x in actual))
        if [x.shape for x in expected] != [x.shape for x in actual]:
            return
    if actual and all(map(same_bits, actual, expected)):
        return
    try:
        check_values(call.name, call, actual, expected)
    except ResultsDiffer as error:
        if error.args[0] in ("value", "type") and not _agrees_with_wide_result(
            call, actual, expected
        ):
            yield Difference("value", "value", error.args[1])
    except Exception:  # the rule for what is free does not take these arguments
        if any(differs(x, y).any() for x, y in zip(actual, expected, strict=True)):
            yield Difference("value", "value", _describe_differences(actual, expected))


def _agrees_with_wide_result(
    call: Call, actual: list[np.ndarray], theirs: list[np.ndarray]
) -> bool:
    """Return whether a result matches a computation with 64-bit types, and JAX's is within rounding
    errors of it.
    """
    if not all(x.dtype.name in ROUNDING_TOLERANCES for x in actual):
        return False
    try:
        wide = evaluate_with_accnp(call.name, call, wide_operands(call))
        with np.errstate(all="ignore"):
            return all(
                not differs(x, y.astype(x.dtype), rough=ROUNDING_TOLERANCES[x.dtype.name] / 8).any()
                and not differs(x, z, rough=ROUNDING_TOLERANCES[x.dtype.name]).any()
                for x, y, z in zip(actual, wide, theirs, strict=True)
            )
    except Exception:
        return False


def _derivative_tolerance(call: Call, dtype: np.dtype) -> float | None:
    """Return the tolerance of derivatives, by the precision of operands, result and difference
    quotients.
    """
    text = str(call)
    if "float16" in text:
        return 2e-2
    if dtype.name not in ("float64", "complex128"):
        return None
    return 2e-4 if "float32" in text or "complex64" in text else 1e-8


def _describe_differences(actual: list[np.ndarray], expected: list[np.ndarray]) -> str:
    return "; ".join(
        difference(x, y) for x, y in zip(actual, expected, strict=True) if not same_bits(x, y)
    )


def _compare_with_eager(jitted: Packed | str, eager: Packed) -> Iterator[Difference]:
    if isinstance(jitted, str):
        yield Difference("jit", "refuses", jitted)
        return
    texts = [[_describe_leaf(x) for x in leaves] for leaves in (jitted, eager)]
    if texts[0] != texts[1]:
        yield Difference("jit", "type", f"{texts[0]}, eager {texts[1]}")
    elif not all(same_bits(x, y) for (x, _), (y, _) in zip(jitted, eager, strict=True)):
        yield Difference(
            "jit", "value", _describe_differences([x for x, _ in jitted], [x for x, _ in eager])
        )


def _compare_mapped(call: Call, ours: Record) -> Iterator[Difference]:
    both, alone = ours["vmap"], ours["alone"]
    if isinstance(alone, str):  # a value that eager code refuses
        return
    if isinstance(both, str):
        yield Difference("vmap", "refuses", both)
        return
    for i, (x, weak) in enumerate(both):
        for j in (0, 1):
            y, weak_alone = alone[j][i]
            if _describe_leaf((x[j], weak)) != _describe_leaf((y, weak_alone)):
                texts = f"{_describe_leaf((x[j], weak))}, alone {_describe_leaf((y, weak_alone))}"
                yield Difference("vmap", "type", texts)
                return
        together = [np.asarray(x[j]) for j in (0, 1)]
        if any(differs(z, alone[j][i][0]).any() for j, z in enumerate(together)):
            yield Difference(
                "vmap", "value", _describe_differences(together, [a[i][0] for a in alone])
            )
            return


def _compare_second_derivatives(
    call: Call, ours: Record, theirs: Record | None
) -> Iterator[Difference]:
    """Compare second derivatives with JAX's, or with differences of gradients."""
    actual = ours["hvp"]
    if isinstance(actual, str):
        if theirs is not None:
            yield Difference("hvp", "refuses", actual)
        return
    if theirs is not None:
        expected = theirs["hvp"]
        if _dtypes_and_shapes(actual) != _dtypes_and_shapes(expected):
            yield from _compare_types("hvp", actual, expected)
            return
        apart_ = any(
            (differs(x, y, rough=10 * (_derivative_tolerance(call, x.dtype) or 1e-3))).any()
            for (x, _), (y, _) in zip(actual, expected, strict=True)
        )
        if not apart_ or _agrees_with_wide_derivatives("hvp", call, actual, expected):
            return
    differences = _gradient_quotients(call)
    for i, (x, _) in enumerate(actual):
        answers = [] if differences is None else [differences[i].astype(x.dtype)]
        answers += [theirs["hvp"][i][0]] if theirs is not None else []
        wrong = np.ones(x.shape, bool)
        for y in answers:
            with np.errstate(all="ignore"):
                off = differs(x, y, rough=10 * (_derivative_tolerance(call, x.dtype) or 1e-3))
                wrong &= off & np.isfinite(y.astype(complex)) | (np.isnan(x) & ~np.isnan(y))
        if answers and wrong.any():
            at = np.nonzero(wrong.ravel())[0][:4]
            how = f"{x.flat[at]} at {at}, others {' / '.join(f'{y.flat[at]}' for y in answers)}"
            yield Difference("hvp", _classify_difference(x[wrong], answers[-1][wrong]), how)


def _gradient_quotients(call: Call) -> list[np.ndarray] | None:
    """Return difference quotients of 64-bit gradients along the tangents; NaN where two step sizes
    disagree.
    """
    try:
        runner, operands = ModeRunner(accnp), wide_operands(call)
        with accnp.enable_x64(True), np.errstate(all="ignore"):
            arrays = {
                k: accnp.numpy.asarray(v) if isinstance(v, np.ndarray) else v
                for k, v in operands.items()
            }
            f, xs = runner.function(call, arrays, []), [arrays[k] for k in call.traced]
            places = runner.moving(xs)

            def beside(step: float) -> list[np.ndarray]:
                moved = list(xs)
                for n, i in enumerate(places):
                    moved[i] = xs[i] + step * tangent(xs[i].shape, xs[i].dtype, n)
                return [np.asarray(x) for x in runner.grad(f, moved)]

            quotients = []
            for step in (1e-5, 3e-6):
                pairs = zip(beside(step), beside(-step), strict=True)
                quotients.append([(a - b) / (2 * step) for a, b in pairs])
            return [
                np.where(differs(x, y, rough=1e-3), np.nan, x)
                for x, y in zip(*quotients, strict=True)
            ]
    except Exception:  # a step beside, it is refused
        return None


def _is_differentiable(x: Any) -> bool:
    return isinstance(x, np.ndarray | np.generic) and x.dtype.kind in "fcV"


def _agrees_with_wide_derivatives(mode: str, call: Call, ours: Packed, theirs: Packed) -> bool:
    """Return whether derivatives match those with 64-bit types, and JAX's are within rounding
    errors of them.
    """
    if not all(x.dtype.name in ROUNDING_TOLERANCES for x, _ in ours):
        return False
    try:
        runner, operands = ModeRunner(accnp), wide_operands(call)
        with accnp.enable_x64(True), np.errstate(all="ignore"):
            arrays = {
                k: accnp.numpy.asarray(v) if isinstance(v, np.ndarray) else v
                for k, v in operands.items()
            }
            f = runner.function(call, arrays, [])
            wide = runner.packed(getattr(runner, mode)(f, [arrays[k] for k in call.traced]))
            return all(
                not differs(x, z.astype(x.dtype), rough=_derivative_tolerance(call, x.dtype)).any()
                and not differs(x, y, rough=3 * ROUNDING_TOLERANCES[x.dtype.name]).any()
                for (x, _), (y, _), (z, _) in zip(ours, theirs, wide, strict=True)
            )
    except Exception:
        return False


def _classify_difference(x: Any, y: Any) -> str:
    """Return "value" if both numbers are finite, "limit" if one is an infinity or NaN."""
    with np.errstate(all="ignore"):
        return "value" if np.isfinite(x).all() and np.isfinite(y).all() else "limit"


def _compare_gradients(
    call: Call, ours: Packed, theirs: Packed | None, values: Packed
) -> Iterator[Difference]:
    operands = call.operands()
    letters = [k for k in call.traced if _is_differentiable(operands[k])]
    numbers = [x.astype(complex) for x, _ in values if x.dtype.kind not in "biu"]
    if not any(np.isfinite(x).any() for x in numbers):
        return  # nothing has a slope
    near = None
    for i, (k, (x, _)) in enumerate(zip(letters, ours, strict=True)):
        rough = _derivative_tolerance(call, x.dtype)
        y = theirs[i][0] if theirs else np.full_like(x, np.nan)
        known = np.ones(x.shape, bool) if theirs else np.isfinite(x)
        places = np.nonzero((differs(x, y, rough=rough) & known).ravel())[0]
        if not len(places):
            continue
        if near is None and theirs:
            near = _agrees_with_wide_derivatives("grad", call, ours, theirs)
        if near:
            return
        keep = places[np.unique(np.linspace(0, len(places) - 1, GRADIENT_SAMPLES).astype(int))]
        for place in keep.tolist():
            if how := _gradient_fault(call, k, x, y, place, rough):
                beside = y.flat[place] if theirs else 0
                yield Difference("grad", _classify_difference(x.flat[place], beside), how)
                break


def _gradient_fault(
    call: Call, letter: str, x: np.ndarray, y: np.ndarray, place: int, rough: float | None
) -> str | None:
    """Describe a derivative that matches neither JAX nor a difference quotient; None if all
    quotients are NaN, as at a pole.
    """
    try:
        quotients = gradient_quotients(call.name, call, letter, place)
    except Exception:  # with 64-bit types, or a step beside, it is refused
        return difference(x, y)
    if np.isnan(quotients).all():
        return None
    stated = y.copy()
    with np.errstate(all="ignore"):
        for quotient in quotients:
            stated.flat[place] = quotient
            if not differs(x, stated, rough=rough).flat[place]:
                return None
    return f"{x.flat[place]}, jax {y.flat[place]}, quotients {quotients} at {letter}, {place}"


def _compare_jvp(
    call: Call, ours: Packed, theirs: Packed | None, values: Packed
) -> Iterator[Difference]:
    expected = [y for y, _ in theirs or []]
    if theirs and not any(
        differs(x, y, rough=_derivative_tolerance(call, x.dtype)).any()
        for (x, _), y in zip(ours, expected, strict=True)
    ):
        return
    if theirs and _agrees_with_wide_derivatives("jvp", call, ours, theirs):
        return
    operands = call.operands()
    letters = [k for k in call.traced if _is_differentiable(operands[k])]
    moves = {}
    for i, k in enumerate(letters):
        x = np.asarray(operands[k])
        moves[k] = tangent(x.shape, x.dtype, i).astype(complex if x.dtype.kind == "c" else float)
    try:
        others = jvp_quotients(call.name, call, moves)
    except Exception:  # with 64-bit types, or a step beside, it is refused
        others = []
    finite = [x for x, _ in values if x.dtype.kind not in "biu"]
    for i, (x, _) in enumerate(ours):
        with np.errstate(all="ignore"):
            answers = [side[i].astype(x.dtype) for side in others if side[i].shape == x.shape]
            answers += [expected[i]] if expected else []
            if not answers:
                continue
            wrong = np.isfinite(finite[i].astype(complex))  # at a pole there is no slope
            for y in answers:
                wrong &= differs(x, y, rough=_derivative_tolerance(call, x.dtype))
            if not expected:  # nor beside it, as far as the others see
                wrong &= np.isfinite(x)
        if wrong.any():
            at = np.nonzero(wrong.ravel())[0][:4]
            how = f"{x.flat[at]} at {at}, others {' / '.join(f'{y.flat[at]}' for y in answers)}"
            yield Difference("jvp", _classify_difference(x[wrong], answers[-1][wrong]), how)
