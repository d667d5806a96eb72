"""Accuracy cases of the elementary functions of the main namespace and of `lax`."""

from __future__ import annotations

from typing import Any

from benchmarks.accuracy_case import EVERY, MAX, PLUS, UNIT, Cases, mpmath, wide
from benchmarks.accuracy_complex import add_complex
from benchmarks.accuracy_nn import add_networks
from benchmarks.accuracy_special import add_special


def all_cases() -> Cases:
    """Return the cases of all functions in the table."""
    cases = Cases()
    add_elementary(cases)
    add_complex(cases)
    add_special(cases)
    add_networks(cases)
    return cases


def add_elementary(cases: Cases) -> None:
    """Add the cases of arithmetic, powers, exponentials, logarithms and trigonometric functions."""
    mp = mpmath()
    for name in ("sin", "cos", "tan"):
        cases.add("elementary", f"numpy.{name}", wide(getattr(mp, name), 2600), EVERY, share=2)
    for name, where in {"arcsin": UNIT, "arccos": UNIT, "arctan": EVERY}.items():
        cases.add("elementary", f"numpy.{name}", getattr(mp, name.replace("arc", "a")), where)
    cases.add("elementary", "numpy.sinh", mp.sinh, (-700.0, 700.0))
    cases.add("elementary", "numpy.cosh", mp.cosh, (-700.0, 700.0))
    cases.add("elementary", "numpy.tanh", mp.tanh, (-700.0, 700.0))
    cases.add("elementary", "numpy.arcsinh", wide(mp.asinh, 2600), EVERY, share=4)
    cases.add(
        "elementary", "numpy.arccosh", wide(mp.acosh, 2600), (1.0, MAX), share=4, spots=(1.0,)
    )
    cases.add("elementary", "numpy.arctanh", mp.atanh, UNIT)
    cases.add("elementary", "numpy.exp", mp.exp, (-708.0, 709.0))
    cases.add("elementary", "numpy.exp2", lambda x: mp.power(2, x), (-1022.0, 1023.0))
    cases.add("elementary", "numpy.expm1", mp.expm1, (-708.0, 709.0))
    cases.add("elementary", "numpy.log", mp.log, PLUS, spots=(1.0,))
    cases.add("elementary", "numpy.log2", lambda x: mp.log(x, 2), PLUS, spots=(1.0,))
    cases.add("elementary", "numpy.log10", mp.log10, PLUS, spots=(1.0,))
    cases.add("elementary", "numpy.log1p", wide(mp.log1p, 1200), (-1.0, MAX))
    cases.add("elementary", "numpy.sqrt", mp.sqrt, PLUS)
    cases.add("elementary", "numpy.cbrt", lambda x: mp.sign(x) * mp.cbrt(abs(x)), EVERY)
    cases.add("elementary", "lax.rsqrt", lambda x: 1 / mp.sqrt(x), PLUS, peer="")
    cases.add("elementary", "numpy.reciprocal", lambda x: 1 / x, EVERY)
    cases.add("elementary", "numpy.square", lambda x: x * x, EVERY)
    cases.add("elementary", "numpy.deg2rad", lambda x: x * mp.pi / 180, EVERY)
    cases.add("elementary", "numpy.rad2deg", lambda x: x * 180 / mp.pi, EVERY)
    cases.add("special", "numpy.sinc", lambda x: mp.sinpi(x) / (mp.pi * x), (-1000.0, 1000.0))
    cases.add("elementary", "lax.logistic", lambda x: 1 / (1 + mp.exp(-x)), (-700.0, 700.0),
        peer="scipy.special.expit")  # fmt: skip
    cases.add("elementary", "numpy.hypot", lambda x, y: mp.sqrt(x * x + y * y), EVERY, EVERY)
    cases.add("elementary", "numpy.arctan2", wide(mp.atan2, 2600), EVERY, EVERY, share=4)
    cases.add("elementary", "numpy.power", lambda x, y: mp.power(x, y), PLUS, (-60.0, 60.0))
    # Sums that cancel where the result is near 0.
    cases.add("special", "numpy.logaddexp", wide(lambda x, y: mp.log(mp.exp(x) + mp.exp(y))),
        (-100.0, 100.0), (-100.0, 100.0))  # fmt: skip
    cases.add("special", "numpy.logaddexp2",
        wide(lambda x, y: mp.log(mp.power(2, x) + mp.power(2, y), 2)),
        (-100.0, 100.0), (-100.0, 100.0))  # fmt: skip
    arithmetic: dict[str, Any] = {
        "add": lambda x, y: x + y, "subtract": lambda x, y: x - y,
        "multiply": lambda x, y: x * y, "divide": lambda x, y: x / y,
    }  # fmt: skip
    for name, exact in arithmetic.items():
        cases.add("elementary", f"numpy.{name}", wide(exact, 2600), EVERY, EVERY)
    cases.add("elementary", "numpy.float_power", mp.power, PLUS, (-60.0, 60.0))
    cases.add("elementary", "numpy.power", lambda x, y: mp.power(x, mp.nint(y)),
        (-300.0, 300.0), (-20.0, 20.0), note="whole powers",
        form=lambda f: lambda x, y: f(x, y.round()),
        peer_form=lambda f: lambda x, y: f(x, y.round()))  # fmt: skip
    for name in ("remainder", "fmod"):
        cases.add(
            "elementary", f"numpy.{name}", _remainder(name == "fmod"), (-1e6, 1e6), (-1e3, 1e3)
        )
    cases.add("special", "numpy.i0", lambda x: mp.besseli(0, x), (-80.0, 80.0), share=8)


def _remainder(as_first: bool) -> Any:
    """Return x - n y, where n is x / y rounded towards zero or down."""
    mp = mpmath()

    def exact(x: Any, y: Any) -> Any:
        return x - y * (mp.floor(x / y) if not as_first else mp.sign(x / y) * mp.floor(abs(x / y)))

    return wide(exact, 2600)
