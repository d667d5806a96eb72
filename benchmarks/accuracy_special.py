"""Accuracy cases of the functions of `scipy.special`."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.accuracy_case import INNER, MAX, PLUS, UNIT, Cases, mpmath, wide


def hurwitz(x: Any, q: Any) -> Any:
    """Return the Hurwitz zeta function by the Euler-Maclaurin formula; mpmath's loses digits at
    large q."""
    mp, count = mpmath(), 60
    w = q + count
    rest, rising = 1 / (x - 1) + 1 / (2 * w), x / w**2
    for j in range(1, 26):
        rest += mp.bernoulli(2 * j) / mp.factorial(2 * j) * rising
        rising *= (x + 2 * j - 1) * (x + 2 * j) / w**2
    return w ** (1 - x) * rest + mp.fsum([(q + k) ** -x for k in range(count)])


def _ndtri(p: Any) -> Any:
    mp = mpmath()
    with mp.workprec(2 * mp.prec + 200):
        return mp.sqrt(2) * mp.erfinv(2 * p - 1)


def _log_ndtr(x: Any) -> Any:
    mp = mpmath()
    return mp.log(mp.erfc(-x / mp.sqrt(2)) / 2) if x < 5 else mp.log1p(-mp.erfc(x / mp.sqrt(2)) / 2)


def _owens_t(h: Any, a: Any) -> Any:
    mp = mpmath()
    ends = [0, a / 8, a / 3, a]
    whole = mp.quad(lambda t: mp.exp(-h * h * (1 + t * t) / 2) / (1 + t * t), ends)
    return whole / (2 * mp.pi)


def _legendre(n: int, m: int, x: Any, derivative: bool = False) -> Any:
    """Return an associated Legendre function by its definition, a derivative of a polynomial."""
    mp = mpmath()

    def polynomial(order: int, x: Any) -> Any:
        terms = [
            (-1) ** k * mp.binomial(n, k) * mp.binomial(2 * n - 2 * k, n)
            * mp.ff(n - 2 * k, order) * x ** (n - 2 * k - order)
            for k in range((n - order) // 2 + 1)
        ]  # fmt: skip
        return mp.fsum(terms) / 2**n

    root = 1 - x * x
    if not derivative:
        return (-1) ** m * root ** (mp.mpf(m) / 2) * polynomial(m, x)
    first = root ** (mp.mpf(m) / 2) * polynomial(m + 1, x)
    return (-1) ** m * (first - m * x * root ** (mp.mpf(m) / 2 - 1) * polynomial(m, x))


# Of the number of points.
SIXTEENTH: dict[str, Any] = {"share": 16}


def add_special(cases: Cases) -> None:
    """Add the cases of `scipy.special`, in families."""
    mp = mpmath()
    sp = "scipy.special."
    few: dict[str, Any] = {"share": 8}
    cases.add("special", sp + "erf", mp.erf, (-9.0, 9.0))
    cases.add("special", sp + "erfc", mp.erfc, (-9.0, 26.0))
    cases.add("special", sp + "erfinv", wide(mp.erfinv, 300), UNIT, share=8)
    cases.add(
        "special", sp + "erfcx", wide(lambda x: mp.exp(x * x) * mp.erfc(x)), (-9.0, 100.0), share=4
    )
    cases.add("special", sp + "ndtr", lambda x: mp.erfc(-x / mp.sqrt(2)) / 2, (-37.0, 9.0))
    cases.add("special", sp + "log_ndtr", wide(_log_ndtr), (-1e5, 9.0), share=4)
    cases.add("special", sp + "ndtri", _ndtri, (1e-30, 1.0), **few)
    cases.add("special", sp + "gamma", mp.gamma, (-30.0, 170.0))
    cases.add("special", sp + "gammaln", lambda x: mp.re(mp.loggamma(x)), PLUS, spots=(1.0, 2.0))
    cases.add("special", sp + "digamma", mp.digamma, PLUS, spots=(1.4616321449683623,))
    cases.add("special", sp + "polygamma", lambda n, x: mp.polygamma(int(n), x),
        (1.0, 6.0), (0.01, 1e4), whole=1, **few)  # fmt: skip
    cases.add("special", sp + "zeta", hurwitz, (1.0, 30.0), (0.01, 1e3), **few)
    cases.add("special", sp + "beta", wide(mp.beta), (0.01, 100.0), (0.01, 100.0), **few)
    cases.add("special", sp + "betaln", wide(lambda a, b: mp.log(mp.beta(a, b))),
        (0.01, 1e4), (0.01, 1e4), **few)  # fmt: skip
    cases.add("special", sp + "gammainc", lambda a, x: mp.gammainc(a, 0, x, regularized=True),
        (0.01, 200.0), (0.01, 200.0), **few)  # fmt: skip
    cases.add("special", sp + "gammaincc", lambda a, x: mp.gammainc(a, x, regularized=True),
        (0.01, 200.0), (0.01, 200.0), **few)  # fmt: skip
    cases.add("special", sp + "betainc", lambda a, b, x: mp.betainc(a, b, 0, x, regularized=True),
        (0.1, 30.0), (0.1, 30.0), INNER, share=16)  # fmt: skip
    cases.add("special", sp + "i0", lambda x: mp.besseli(0, x), (-80.0, 80.0), **few)
    cases.add(
        "special", sp + "i0e", lambda x: mp.besseli(0, x) * mp.exp(-abs(x)), (-1e3, 1e3), **few
    )
    cases.add("special", sp + "i1", lambda x: mp.besseli(1, x), (-80.0, 80.0), **few)
    cases.add(
        "special", sp + "i1e", lambda x: mp.besseli(1, x) * mp.exp(-abs(x)), (-1e3, 1e3), **few
    )
    cases.add("special", sp + "exp1", mp.e1, (0.0, 80.0), hangs=True, **few)
    cases.add("special", sp + "expi", lambda x: mp.re(mp.ei(x)), (-80.0, 80.0),
        hangs=True,
        spots=(0.3725074107813666,), **few)  # fmt: skip
    cases.add("special", sp + "expn", lambda n, x: mp.expint(int(n), x), (1.0, 9.0), (0.01, 80.0),
        hangs=True, whole=1, **few)  # fmt: skip
    cases.add("special", sp + "dawsn",
        wide(lambda x: mp.sqrt(mp.pi) / 2 * mp.exp(-x * x) * mp.erfi(x), 4000),
        (-20.0, 20.0), **few)  # fmt: skip
    cases.add("special", sp + "spence", lambda x: mp.re(mp.polylog(2, 1 - x)), (0.0, 100.0),
        spots=(1.0,), **few)  # fmt: skip
    cases.add(
        "special", sp + "hyp1f1", wide(mp.hyp1f1), (0.1, 10.0), (0.1, 10.0), (0.0, 20.0), share=16
    )
    cases.add("special", sp + "poch", wide(mp.rf), (0.1, 50.0), (0.0, 20.0), **few)
    cases.add("special", sp + "logit", wide(lambda x: mp.log(x / (1 - x))), INNER, spots=(0.5,))
    cases.add("special", sp + "entr", lambda x: -x * mp.log(x), PLUS, spots=(1.0,))
    cases.add("special", sp + "xlogy", lambda x, y: x * mp.log(y), (-1e5, 1e5), PLUS)
    cases.add(
        "special",
        sp + "xlog1py",
        wide(lambda x, y: x * mp.log1p(y), 1200),
        (-1e5, 1e5),
        (-1.0, MAX),
    )
    _add_beyond(cases)
    _add_folds(cases)


def _add_beyond(cases: Cases) -> None:
    """Add functions with several results, integer or complex arguments, entropies and powers."""
    mp = mpmath()
    sp, few = "scipy.special.", SIXTEENTH

    def part(k: int) -> Any:
        return lambda f: lambda *xs: f(*xs)[k]

    cases.add("special", sp + "hyp2f1", wide(mp.hyp2f1, 300),
        (0.1, 10.0), (0.1, 10.0), (0.1, 10.0), (-20.0, 0.99), **few)  # fmt: skip
    cases.add("special", sp + "loggamma", mp.loggamma, PLUS, spots=(1.0, 2.0))
    # Near its zeros below 0 only the absolute error is small.
    cases.add("special", sp + "gammaln", lambda x: mp.log(abs(mp.gamma(x))), (-50.0, 0.0),
        note="below 0", share=4, allowed=100.0)  # fmt: skip
    cases.add("special", sp + "digamma", mp.digamma, (-50.0, 0.0), note="below 0", share=4)
    cases.add("special", sp + "multigammaln",
        wide(lambda a: mp.fsum(mp.loggamma(a - mp.mpf(k) / 2) for k in range(3))
             + mp.mpf(3) / 2 * mp.log(mp.pi), 300),
        (1.01, MAX), share=4, note="d = 3",
        form=lambda f: lambda a: f(a, 3), peer_form=lambda f: lambda a: f(a, 3))  # fmt: skip
    cases.add("special", sp + "owens_t", _owens_t, (-8.0, 8.0), (-8.0, 8.0), share=32)
    for k, name in enumerate("SC"):
        cases.add("special", sp + "fresnel", wide(getattr(mp, f"fresnel{name.lower()}"), 300),
            (-1e3, 1e3), share=8, note=name, form=part(k), peer_form=part(k))  # fmt: skip
    cases.add("special", sp + "sici", wide(mp.si, 300), (-1e3, 1e3), note="Si", form=part(0),
        peer_form=part(0), share=8)  # fmt: skip
    cases.add("special", sp + "sici", wide(mp.ci, 300), (0.0, 1e3), note="Ci", form=part(1),
        peer_form=part(1), share=8, spots=(0.6165054856207162,))  # fmt: skip
    cases.add("special", sp + "wofz",
        wide(lambda x, y: mp.exp(-mp.mpc(x, y) ** 2) * mp.erfc(-1j * mp.mpc(x, y)), 1200),
        (-20.0, 20.0), (-5.0, 20.0), form=lambda f: lambda x, y: f(x + 1j * y),
        peer_form=lambda f: lambda x, y: f(x + 1j * y), **few)  # fmt: skip
    cases.add("special", sp + "bessel_jn", lambda x: mp.besselj(3, x), (-50.0, 50.0),
        peer=sp + "jv", note="order 3", form=lambda f: lambda x: f(x, v=3)[3],
        peer_form=lambda f: lambda x: f(3, x), **few)  # fmt: skip
    cases.add("special", sp + "rel_entr", wide(lambda p, q: p * mp.log(p / q)), PLUS, PLUS)
    cases.add("special", sp + "kl_div", wide(lambda p, q: p * mp.log(p / q) - p + q), PLUS, PLUS)
    close: Any = (0.98, 1.02), (0.98, 1.02)
    cases.add("special", sp + "rel_entr", wide(lambda p, q: p * mp.log(p / q)), *close,
        note="q near p")  # fmt: skip
    cases.add("special", sp + "kl_div", wide(lambda p, q: p * mp.log(p / q) - p + q), *close,
        note="q near p")  # fmt: skip
    for name, shift in (("boxcox", 0), ("boxcox1p", 1)):
        cases.add("special", sp + name,
            wide(lambda x, y, s=shift: mp.expm1(y * mp.log(x + s)) / y, 1200),
            (0.0, 1e6), (-5.0, 5.0))  # fmt: skip
    cases.add("special", sp + "comb", mp.binomial, (0.0, 60.0), (0.0, 60.0), whole=2, share=4)
    cases.add("special", sp + "comb", lambda n, k: mp.binomial(n + k - 1, k), (1.0, 40.0),
        (0.0, 20.0), whole=2, share=4, note="repetition",
        form=lambda f: lambda n, k: f(n, k, repetition=True),
        peer_form=lambda f: lambda n, k: f(n, k, repetition=True))  # fmt: skip
    cases.add("special", sp + "factorial", mp.factorial, (0.0, 170.0), whole=1, share=4)
    cases.add("special", sp + "gammasgn", lambda x: mp.sign(mp.gamma(x)), (-30.0, 30.0), share=4)


def _add_folds(cases: Cases) -> None:
    """Add reductions over rows, Legendre functions and functions built from them."""
    mp = mpmath()
    sp, few = "scipy.special.", SIXTEENTH

    def first(f: Any) -> Any:
        return lambda x: f(x, axis=-1)[..., 0]

    def last(f: Any) -> Any:
        return lambda x: f(x, axis=-1)

    def total(*x: Any) -> Any:
        return mp.log(mp.fsum(map(mp.exp, x)))

    cases.add("special", sp + "logsumexp", wide(total), (-80.0, 80.0), row=7, share=4,
        form=last, peer_form=last)  # fmt: skip
    cases.add("special", sp + "softmax", wide(lambda *x: mp.exp(x[0] - total(*x))),
        (-40.0, 40.0), row=7, share=4, form=first, peer_form=first)  # fmt: skip
    cases.add("special", sp + "log_softmax", wide(lambda *x: x[0] - total(*x)),
        (-40.0, 40.0), row=7, share=4, form=first, peer_form=first)  # fmt: skip

    def value(f: Any) -> Any:
        return lambda x: f(3, 5, x)

    cases.add("special", sp + "lpmn", lambda x: _legendre(5, 3, x), UNIT, peer=sp + "lpmv",
        note="order 3, degree 5", form=lambda f: lambda x: f(5, 5, x)[0][3, 5],
        peer_form=value, **few)  # fmt: skip
    cases.add("special", sp + "lpmn", lambda x: _legendre(5, 3, x, True), UNIT,
        peer=sp + "assoc_legendre_p", note="derivative",
        form=lambda f: lambda x: f(5, 5, x)[1][3, 5],
        peer_form=lambda f: lambda x: f(5, 3, x, diff_n=1)[1], **few)  # fmt: skip
    cases.add("special", sp + "lpmn_values", lambda x: _legendre(5, 3, x), UNIT, peer=sp + "lpmv",
        note="order 3, degree 5", form=lambda f: lambda x: f(5, 5, x, False)[3, 5],
        peer_form=value, **few)  # fmt: skip
    degree, order = np.array([5]), np.array([3])

    def harmonic(f: Any) -> Any:
        return lambda t, p: f(degree, order, t, p, n_max=5)

    # At its zeros, elsewhere than SciPy by the last bit of the cosine.
    cases.add("special", sp + "sph_harm_y", lambda t, p: mp.spherharm(5, 3, t, p),
        (0.0, 3.14), (0.0, 6.28), note="degree 5, order 3", form=harmonic,
        peer_form=lambda f: lambda t, p: f(degree, order, t, p), allowed=20.0, **few)  # fmt: skip
