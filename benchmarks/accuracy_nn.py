"""Accuracy cases of the functions of `nn`. They are compositions and have the bar of special
functions.
"""

from __future__ import annotations

from typing import Any

from benchmarks.accuracy_case import EVERY, Cases, mpmath, wide

ALPHA, SCALE = 1.6732632423543772, 1.0507009873554805


def add_networks(cases: Cases) -> None:
    """Add the cases of activations and normalizations."""
    mp = mpmath()

    def plus(x: Any) -> Any:
        return max(x, mp.mpf(0))

    def step(x: Any) -> Any:
        return min(plus(x + 3), 6) / 6

    def soft(x: Any) -> Any:
        return mp.log1p(mp.exp(x))

    def bend(x: Any, alpha: float = 1.0, inner: float = 1.0) -> Any:
        return x if x > 0 else alpha * mp.expm1(x / inner)

    def tanh_gelu(x: Any) -> Any:
        u = mp.sqrt(2 / mp.pi) * (x + mp.mpf("0.044715") * x**3)
        return x / (1 + mp.exp(-2 * u))

    def total(*x: Any) -> Any:
        return mp.log(mp.fsum(map(mp.exp, x)))

    middle = (-700.0, 700.0)
    exact: dict[str, Any] = {
        "celu": bend, "elu": bend, "selu": lambda x: SCALE * bend(x, ALPHA),
        "hard_sigmoid": step, "hard_silu": lambda x: x * step(x),
        "hard_tanh": lambda x: max(min(x, 1), -1),
        "leaky_relu": lambda x: x if x >= 0 else x * mp.mpf("0.01"),
        "log_sigmoid": lambda x: -soft(-x), "mish": lambda x: x * mp.tanh(soft(x)),
        "relu": plus, "relu6": lambda x: min(plus(x), 6), "identity": lambda x: x,
        "sigmoid": lambda x: 1 / (1 + mp.exp(-x)), "silu": lambda x: x / (1 + mp.exp(-x)),
        "soft_sign": lambda x: x / (1 + abs(x)), "softplus": soft,
        "sparse_plus": lambda x: 0 * x if x <= -1 else x if x >= 1 else (x + 1) ** 2 / 4,
        "sparse_sigmoid": lambda x: min(plus(x + 1), 2) / 2,
        "tanh": mp.tanh,
    }  # fmt: skip
    whole = {"hard_sigmoid", "hard_silu", "hard_tanh", "leaky_relu", "relu", "relu6", "identity",
        "soft_sign", "sparse_plus", "sparse_sigmoid"}  # fmt: skip
    for name, f in exact.items():
        where = EVERY if name in whole else middle
        cases.add("special", f"nn.{name}", wide(f, 1300), where, peer="", share=2)
    cases.add("special", "nn.squareplus", wide(lambda x: (x + mp.sqrt(x * x + 4)) / 2, 1300),
        (-1e15, 1e15), peer="", share=2)  # fmt: skip
    cases.add("special", "nn.gelu", wide(tanh_gelu), (-100.0, 100.0), peer="", share=2)
    cases.add("special", "nn.gelu", wide(lambda x: x * mp.erfc(-x / mp.sqrt(2)) / 2),
        (-100.0, 100.0), peer="", share=2, note="exact",
        form=lambda f: lambda x: f(x, approximate=False))  # fmt: skip
    cases.add("special", "nn.log1mexp", wide(lambda x: mp.log(-mp.expm1(-x)), 1300), (0.0, 80.0),
        peer="", share=2, spots=(0.6931471805599453,))  # fmt: skip
    cases.add("special", "nn.glu", wide(lambda x, y: x / (1 + mp.exp(-y))), (-80.0, 80.0),
        peer="", row=2, share=2, form=lambda f: lambda x: f(x)[..., 0])  # fmt: skip

    def first(f: Any) -> Any:
        return lambda x: f(x, axis=-1)[..., 0]

    def along(f: Any) -> Any:
        return lambda x: f(x, axis=-1)

    sp = "scipy.special."
    cases.add("special", "nn.logsumexp", wide(total), (-80.0, 80.0), row=7, share=4,
        form=along, peer=sp + "logsumexp", peer_form=along)  # fmt: skip
    cases.add("special", "nn.logmeanexp", wide(lambda *x: total(*x) - mp.log(7)), (3.0, 80.0),
        row=7, share=4, form=along, peer="")  # fmt: skip
    cases.add("special", "nn.softmax", wide(lambda *x: mp.exp(x[0] - total(*x))),
        (-40.0, 40.0), row=7, share=4, form=first, peer=sp + "softmax",
        peer_form=first)  # fmt: skip
    cases.add("special", "nn.log_softmax", wide(lambda *x: x[0] - total(*x)),
        (-40.0, 40.0), row=7, share=4, form=first, peer=sp + "log_softmax",
        peer_form=first)  # fmt: skip
