"""Accuracy cases of complex functions. The arguments are the real and imaginary parts.

Errors are in ulp of the modulus of the exact value, with the bar of special functions.
"""

from __future__ import annotations

from typing import Any

from benchmarks.accuracy_case import EVERY, Cases, Domain, mpmath, wide

WIDE, FEW = 2600, 8  # bits for numbers of any magnitude, and a share of the points for these


def add_complex(cases: Cases) -> None:
    """Add the cases of elementary functions of one and two complex numbers."""
    mp = mpmath()

    def form(f: Any) -> Any:
        return lambda *parts: f(*[x + 1j * y for x, y in zip(parts[::2], parts[1::2])])

    def add(name: str, exact: Any, *domains: Domain, **more: Any) -> None:
        def value(*parts: Any) -> Any:
            return exact(*[mp.mpc(x, y) for x, y in zip(parts[::2], parts[1::2])])

        bits = WIDE if EVERY in domains else 300
        cases.add("special", name, wide(value, bits), *domains, note="complex", form=form,
            share=FEW, peer_form=form, **more)  # fmt: skip

    tall, flat = (-700.0, 700.0), (-40.0, 40.0)
    waves: dict[str, Any] = {"exp": mp.exp, "expm1": mp.expm1, "sinh": mp.sinh, "cosh": mp.cosh,
        "tanh": mp.tanh, "exp2": lambda z: mp.exp(z * mp.log(2))}  # fmt: skip
    for name, f in waves.items():
        add(f"numpy.{name}", f, tall, flat)
    for name in ("sin", "cos", "tan"):
        add(f"numpy.{name}", getattr(mp, name), flat, tall)
    anywhere: dict[str, Any] = {"log": mp.log, "log2": lambda z: mp.log(z) / mp.log(2),
        "log10": mp.log10, "log1p": lambda z: mp.log(1 + z), "sqrt": mp.sqrt,
        "arcsin": mp.asin, "arccos": mp.acos, "arctan": mp.atan, "arcsinh": mp.asinh,
        "arccosh": mp.acosh, "arctanh": mp.atanh, "abs": abs, "angle": mp.arg,
        "reciprocal": lambda z: 1 / z}  # fmt: skip
    for name, f in anywhere.items():
        add(f"numpy.{name}", f, EVERY, EVERY)
    add("numpy.sign", lambda z: z / abs(z), EVERY, EVERY)
    add("lax.rsqrt", lambda z: 1 / mp.sqrt(z), EVERY, EVERY, peer="")
    add("numpy.multiply", lambda z, w: z * w, flat, flat, flat, flat)
    add("numpy.divide", lambda z, w: z / w, *[EVERY] * 4)
    add("numpy.power", lambda z, w: mp.exp(w * mp.log(z)), *[(-30.0, 30.0)] * 2,
        *[(-3.0, 3.0)] * 2)  # fmt: skip
    add("numpy.sinc", lambda z: mp.sin(mp.pi * z) / (mp.pi * z), (-1000.0, 1000.0), (-25.0, 25.0))
