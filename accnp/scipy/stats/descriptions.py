"""Docstrings of the functions of distributions, generated from descriptions of distributions.

`DISTRIBUTIONS` has the formula, the parameters and the sampler of each distribution, and `EXAMPLES`
(examples.py) has one example for each function.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

from accnp.scipy.stats.examples import EXAMPLES

__all__ = ["describe"]


class _Distribution(NamedTuple):
    """Density for loc=0 and scale=1, sampler in `random` or "", and shape parameters."""

    density: str
    sampler: str
    shapes: dict[str, str]


_SUMMARIES = {
    "pdf": "Compute the probability density function",
    "logpdf": "Compute the log of the probability density function",
    "pmf": "Compute the probability mass function",
    "logpmf": "Compute the log of the probability mass function",
    "cdf": "Compute the cumulative distribution function",
    "logcdf": "Compute the log of the cumulative distribution function",
    "sf": "Compute the survival function, 1 - cdf,",
    "logsf": "Compute the log of the survival function",
    "ppf": "Compute quantiles, the inverse of the cumulative distribution function,",
    "isf": "Compute the inverse of the survival function",
    "entropy": "Compute the entropy, in nats,",
}
_TRIALS = "Number of trials, a whole number."
_SUCCESS = "Probability of success in each trial."
DISTRIBUTIONS = {
    "bernoulli": _Distribution("p for k = 1, 1 - p for k = 0", "bernoulli", {"p": _SUCCESS}),
    "beta": _Distribution(
        "proportional to x**(a - 1) (1 - x)**(b - 1) for 0 <= x <= 1",
        "beta",
        {"a": "First shape parameter, positive.", "b": "Second shape parameter, positive."},
    ),
    "betabinom": _Distribution(
        "comb(n, k) beta(k + a, n - k + b) / beta(a, b) for k = 0, ..., n",
        "",
        {
            "n": _TRIALS,
            "a": "First parameter of the beta distribution of the probability of success.",
            "b": "Second parameter of the beta distribution of the probability of success.",
        },
    ),
    "binom": _Distribution(
        "comb(n, k) p**k (1 - p)**(n - k) for k = 0, ..., n",
        "binomial",
        {"n": _TRIALS, "p": _SUCCESS},
    ),
    "cauchy": _Distribution("1 / (pi (1 + x**2))", "cauchy", {}),
    "chi2": _Distribution(
        "proportional to x**(df / 2 - 1) exp(-x / 2) for x >= 0",
        "chisquare",
        {"df": "Degrees of freedom, positive."},
    ),
    "expon": _Distribution("exp(-x) for x >= 0", "exponential", {}),
    "gamma": _Distribution(
        "x**(a - 1) exp(-x) / gamma(a) for x >= 0", "gamma", {"a": "Shape parameter, positive."}
    ),
    "gennorm": _Distribution(
        "beta / (2 gamma(1 / beta)) exp(-abs(x)**beta)",
        "generalized_normal",
        {"beta": "Exponent, positive; 1 gives the Laplace distribution."},
    ),
    "geom": _Distribution("(1 - p)**(k - 1) p for k = 1, 2, ...", "geometric", {"p": _SUCCESS}),
    "gumbel_l": _Distribution("exp(x - exp(x))", "", {}),
    "gumbel_r": _Distribution("exp(-x - exp(-x))", "gumbel", {}),
    "laplace": _Distribution("exp(-abs(x)) / 2", "laplace", {}),
    "logistic": _Distribution("exp(-x) / (1 + exp(-x))**2", "logistic", {}),
    "nbinom": _Distribution(
        "gamma(k + n) / (gamma(n) k!) p**n (1 - p)**k for k = 0, 1, ...",
        "",
        {"n": "Number of successes to wait for, positive.", "p": _SUCCESS},
    ),
    "norm": _Distribution("exp(-x**2 / 2) / sqrt(2 pi)", "normal", {}),
    "pareto": _Distribution("b / x**(b + 1) for x >= 1", "pareto", {"b": "Exponent, positive."}),
    "poisson": _Distribution(
        "exp(-mu) mu**k / k! for k = 0, 1, ...", "poisson", {"mu": "Mean of the counted events."}
    ),
    "t": _Distribution(
        "proportional to (1 + x**2 / df)**(-(df + 1) / 2)",
        "t",
        {"df": "Degrees of freedom, positive."},
    ),
    "truncnorm": _Distribution(
        "proportional to exp(-x**2 / 2) for a <= x <= b",
        "truncated_normal",
        {
            "a": "Lower bound of the distribution for loc 0 and scale 1.",
            "b": "Upper bound of the distribution for loc 0 and scale 1.",
        },
    ),
    "uniform": _Distribution("1 for 0 <= x <= 1", "uniform", {}),
    "vonmises": _Distribution(
        "exp(kappa cos(x)) / (2 pi i0(kappa))", "", {"kappa": "Concentration, not negative."}
    ),
    "wrapcauchy": _Distribution(
        "(1 - c**2) / (2 pi (1 + c**2 - 2 c cos(x))) for 0 <= x <= 2 pi",
        "",
        {"c": "Concentration, between 0 and 1."},
    ),
}
_PLACES = {
    "loc": "Location, by which the distribution is shifted. The default is 0.",
    "scale": "Scale, positive, by which the distribution is stretched. The default is 1.",
}


# Functions that do not check the sign of a parameter, as in JAX -> the parameter.
_UNCHECKED = {
    "cauchy": ("scale", "cdf isf logcdf logsf ppf sf"),
    "laplace": ("scale", "cdf"),
    "logistic": ("scale", "cdf isf ppf sf"),
    "nbinom": ("n", "logpmf pmf"),
    "norm": ("scale", "cdf isf logcdf logpdf logsf pdf ppf sf"),
    "poisson": ("mu", "logpmf pmf"),
    "t": ("scale", "logpdf pdf"),
}


def _invalid_parameters_text(name: str, key: str) -> str:
    """Return the sentence about invalid parameters."""
    parameter, keys = _UNCHECKED.get(name, ("", ""))
    if key not in keys.split():
        return "Invalid parameters give nan."
    if parameter == "scale":
        return "A negative scale is\n    not checked, as in JAX; SciPy gives nan."
    return f"A negative {parameter}\n    gives the mass 0, as in JAX; SciPy gives nan."


def describe(
    name: str, key: str, what: str, parameters: Sequence[str], keys: Collection[str], real: bool
) -> str:
    """Return the docstring of a function of a distribution with the functions `keys`.

    `real` functions do not accept complex arguments.
    """
    about = DISTRIBUTIONS[name]
    refused = ", or is complex" if real else ""
    lines = [f"{_SUMMARIES[key]} of {what}.", "", "Parameters", "----------"]
    for i, parameter in enumerate(parameters):
        optional = ", optional" if parameter in _PLACES else ""
        description = {**about.shapes, **_PLACES}.get(parameter)
        if i == 0 and key != "entropy":
            inverse = key in ("ppf", "isf")
            description = (
                "Probabilities, between 0 and 1." if inverse else "Points to evaluate it at."
            )
        assert description is not None, (name, parameter)
        lines += [f"{parameter} : array_like{optional}", f"    {description}"]
    lines += [
        "", "Returns", "-------", "Array",
        "    Values, with the shape to which the arguments broadcast. The dtype is floating:",
        "    integers and bools give float32 (float64 with `jax_enable_x64`).",
        "", "Raises", "------", "TypeError",
        f"    If an argument is not an array or a number{refused}, or shapes do not broadcast.",
        "", "See Also", "--------",
        f"{', '.join(sorted(set(keys) - {key}))} : Other functions of the distribution.",
    ]  # fmt: skip
    lines += [f"random.{about.sampler} : Samples of the distribution."] if about.sampler else []
    kind = "mass function" if "pmf" in keys else "density"
    standard = " for loc 0 and scale 1" if "scale" in parameters else ""
    lines += [
        "", "Notes", "-----",
        f"The {kind}{standard} is {about.density}.",
        "",
        "Unlike SciPy, this is a function and not a method of a distribution, lists are not",
        f"accepted, and float32 stays float32. {_invalid_parameters_text(name, key)}",
        "", "Examples", "--------",
        ">>> import accnp as jnp",
    ]  # fmt: skip
    operands, values = _example(name, key)
    lines += [f">>> jnp.round(jnp.scipy.stats.{name}.{key}({operands}), 4)"]
    lines += [f"Array({values}, dtype=float32)", ""]
    return "\n    ".join(lines).replace("\n    \n", "\n\n")


def _example(name: str, key: str) -> tuple[str, str]:
    """Return the operands and the values of an example."""
    lines = dict(line.strip().split(": ") for line in EXAMPLES[name].strip().splitlines())
    operands, values = lines[key].split(" -> ")
    return operands.replace("[", "jnp.array([").replace("]", "])"), values
