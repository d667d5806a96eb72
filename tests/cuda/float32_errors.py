"""Measure the errors of float32 functions in GPU kernels, and of the approximate instructions
that they use (ex2, lg2, rcp, rsqrt), in units in the last place (ulp).

    python tests/cuda/float32_errors.py [NAME...]

computes all 2^32 arguments of each function on a GPU (about 15 s) and prints the largest errors.
`test_float32_errors.py` does the same on a GPU; without one, it interprets the PTX for a few
arguments and runs `native_functions.py` for many. References are computed in float64.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

if __name__ == "__main__":
    ROOT = Path(__file__).resolve().parents[2]
    sys.path[:0] = [str(ROOT), str(ROOT / "tests")]


from accnp.compiler.llvm.scalars.gpu import GPU
from accnp.compiler.ptx import ptx_of

__all__ = [
    "APPROXIMATE", "INSTRUCTIONS", "MAX_ULP", "NAMES", "LargestError", "device_functions",
    "elementwise_source", "instruction_kernel", "max_ulp", "reference", "ulp_errors",
]  # fmt: skip

APPROXIMATE = (
    *GPU,
    "exp",
    "logistic",
    "silu",
    "mish",
    "tanh_cdf",
    "tanh_gelu",
    "sinh",
    "cosh",
    "expm1",
)
OTHERS = (
    "sin", "cos", "tan", "erfc", "normal_cdf", "normal_gelu", "sqrt", "cbrt", "atan", "asin",
    "acos", "asinh", "acosh", "atanh",
)  # fmt: skip
NAMES = (*APPROXIMATE, *OTHERS)
# All others are within 2.
MAX_ULP = {
    "silu": 4.3,
    "mish": 3.5,
    "tanh_cdf": 4.3,
    "tanh_gelu": 4.3,
    "normal_cdf": 3.0,
    "normal_gelu": 3.0,
}
# Instructions, their functions in float64, and ranges in which every argument is tried.
INSTRUCTIONS: dict[str, tuple[Callable[..., Any], list[tuple[float, float]]]] = {
    "ex2.approx.ftz": (lambda m, x: m.exp2(x), [(1e-8, 1.0), (-1e-8, -1.0)]),
    "lg2.approx.ftz": (lambda m, x: m.log2(x), [(2.0, 3e38)]),
    "rcp.approx.ftz": (lambda m, x: 1 / x, [(1.0, 4.0)]),
    "rsqrt.approx": (lambda m, x: 1 / m.sqrt(x), [(1.0, 4.0)]),
}


def _logistic(m: Any, x: Any) -> Any:
    e = m.exp(-m.abs(x))
    return m.where(x < 0, e, 1.0) / (1.0 + e)


def _mish(m: Any, x: Any) -> Any:
    e = m.exp(m.minimum(x, 40.0))
    n = e * (e + 2.0)
    return m.where(x > 40, x, x * (n / (n + 2.0)))


def _tanh_cdf(m: Any, x: Any) -> Any:
    return _logistic(m, 2 * np.sqrt(2 / np.pi) * (x + 0.044715 * x * x * x))


_SPECIAL: dict[str, Callable[..., Any]] = {
    "erf": lambda m, s, x: s.erf(x), "erfc": lambda m, s, x: s.erfc(x),
    "normal_cdf": lambda m, s, x: 0.5 * s.erfc(x * -np.sqrt(0.5)),
    "normal_gelu": lambda m, s, x: x * (0.5 * s.erfc(x * -np.sqrt(0.5))),
    "logistic": lambda m, s, x: _logistic(m, x), "silu": lambda m, s, x: x * _logistic(m, x),
    "mish": lambda m, s, x: _mish(m, x), "tanh_cdf": lambda m, s, x: _tanh_cdf(m, x),
    "tanh_gelu": lambda m, s, x: x * _tanh_cdf(m, x),
    "rsqrt": lambda m, s, x: 1 / m.sqrt(x),
}  # fmt: skip
_OTHER_NAMES = {"atan": "arctan", "asin": "arcsin", "acos": "arccos", "asinh": "arcsinh",
                "acosh": "arccosh", "atanh": "arctanh"}  # fmt: skip


def reference(name: str, x: Any, m: Any, special: Any) -> Any:
    """Return float64 values of a function, by an array library and its special functions."""
    if name in _SPECIAL:
        return _SPECIAL[name](m, special, x)
    return getattr(m, _OTHER_NAMES.get(name, name))(x)


def max_ulp(name: str) -> float:
    """Return the largest error that a function may have."""
    return MAX_ULP.get(name, 2.0)


TOP = float(np.finfo(np.float32).max) * (1 + 2.0**-25)  # rounded to infinity from here on


def ulp_errors(y: np.ndarray, w: np.ndarray) -> np.ndarray:
    """Return the errors of float32 values against float64 values; wrong special values (infinities,
    NaNs, signed zeros) have errors above 1e29."""
    with np.errstate(all="ignore"):
        size, g = np.abs(w), y.astype("f8")
        power = np.where(w == 0, -125, np.maximum(np.frexp(size)[1], -125))
        e = np.abs(g - w) * np.ldexp(1.0, 24 - power)
        same = (g == w) & (np.signbit(g) == np.signbit(w))
        e = np.where((w == 0) & (g == 0), np.where(same, 0, 6e30), e)
        e = np.where(np.isinf(g) & (size < TOP), 5e30, e)
        over = np.isinf(g) & (np.sign(g) == np.sign(w))
        e = np.where(size >= TOP, np.where(over, 0, 4e30), e)
        return np.where(np.isnan(w) | np.isnan(g), np.where(np.isnan(w) & np.isnan(g), 0, 1e30), e)


class LargestError(NamedTuple):
    """The largest error of a function or instruction, the argument and value where it occurs, the
    number of arguments whose errors exceed 2 ulp, and the duration of the measurement."""

    name: str
    error: float
    at: float
    value: float
    beyond: int
    seconds: float

    def __str__(self) -> str:
        return (
            f"{self.name:22s} {self.error:10.4g} ulp at {self.at!r} ({self.value!r}), "
            f"{self.beyond} beyond 2, {self.seconds:.2f} s"
        )


# --- on a GPU ---

CHUNK = 1 << 26
# CuPy's own conversions take subnormal numbers for zero.
_WIDE = """__device__ double wide(unsigned b) {
    double v = (b & 0x7f800000u) ? (double)__uint_as_float(b & 0x7fffffffu)
                                 : (double)(b & 0x7fffffu) * 1.401298464324817e-45;
    return (b >> 31) ? -v : v;
}
"""
_ERRORS = """
    double g = wide(b), a = fabs(w);
    if (isnan(w)) e = isnan(g) ? 0.f : 1e30f;
    else if (isnan(g)) e = 2e30f;
    else if (a >= TOP) e = (isinf(g) && signbit(g) == signbit(w)) ? 0.f : 4e30f;
    else if (isinf(g)) e = a > TOP * (1 - 2e-7) ? 1.f : 5e30f;
    else if (w == 0 && g == 0) e = signbit(g) == signbit(w) ? 0.f : 6e30f;
    else {
        int k; frexp(a, &k);
        e = (float)((g - w) * ldexp(1.0, 24 - (w == 0 || k < -125 ? -125 : k)));
    }
""".replace("TOP", repr(TOP))


class DeviceFunctions:
    """Functions of the first GPU, and their errors."""

    def __init__(self) -> None:
        import cupy
        import cupyx.scipy.special

        import accnp
        from accnp.runtime.driver import drivers

        accnp.devices("gpu")
        self.xp: Any = cupy
        self.special: Any = cupyx.scipy.special
        self.driver: Any = drivers()[0]
        kernel: Any = cupy.ElementwiseKernel
        self.errors = kernel("uint32 b, float64 w", "float32 e", _ERRORS, "errors", preamble=_WIDE)
        self.wide = kernel("uint32 b", "float64 w", "w = wide(b)", "widen", preamble=_WIDE)

    def compile(self, source: str) -> Any:
        """Compile and load a kernel with the arguments x and y."""
        text = ptx_of(source, ("f4*", "f4*"), tasks=True, cc=self.driver.cc)
        return self.driver.load(text.text, text.name)

    def signed_errors(
        self, function: Any, expected: Callable[[Any], Any], first: int, count: int
    ) -> Any:
        """Return `count` arguments (bit patterns from `first`), values, and signed errors."""
        xp = self.xp
        x = xp.arange(count, dtype=xp.uint32) + xp.uint32(first)
        y = xp.empty(count, xp.float32)
        xp.cuda.Device().synchronize()
        self.driver.launch(function, 132 * 16, 256, [x.data.ptr, y.data.ptr, count])
        self.driver.synchronize()
        return x, y, self.errors(y.view(xp.uint32), expected(self.wide(x)))

    def largest_error(self, name: str) -> LargestError:
        """Return the largest error of a function among all float32 arguments."""
        begin, worst, at, value, beyond = time.perf_counter(), 0.0, 0.0, 0.0, 0
        function = self.compile(elementwise_source(name))
        for first in range(0, 1 << 32, CHUNK):
            x, y, e = self.signed_errors(
                function, lambda w: reference(name, w, self.xp, self.special), first, CHUNK
            )
            e = self.xp.abs(e)
            k = int(e.argmax())
            beyond += int((e > 2).sum())
            if float(e[k]) > worst:
                worst = float(e[k])
                at, value = float(x[k : k + 1].get().view("f4")[0]), float(y[k])
        return LargestError(name, worst, at, value, beyond, time.perf_counter() - begin)

    def instruction_errors(self, name: str) -> list[LargestError]:
        """Return the most negative and the most positive error of an instruction in each range."""
        expected, ranges = INSTRUCTIONS[name]
        kernel, results = instruction_kernel(name, self.driver.cc), []
        function = self.driver.load(kernel.text, kernel.name)
        for ends in ranges:
            begin, beyond = time.perf_counter(), 0
            low, high = (0.0, 0.0, 0.0), (0.0, 0.0, 0.0)
            a, b = (int(np.float32(v).view(np.uint32)) for v in ends)
            for first in range(a, b, CHUNK):
                count = min(CHUNK, b - first)
                x, y, e = self.signed_errors(function, lambda w: expected(self.xp, w), first, count)
                beyond += int((self.xp.abs(e) > 2).sum())
                for k, pick in ((int(e.argmin()), min), (int(e.argmax()), max)):
                    at = float(x[k : k + 1].get().view("f4")[0])
                    here = (float(e[k]), at, float(y[k]))
                    low, high = (pick(low, here), high) if pick is min else (low, pick(high, here))
            seconds = time.perf_counter() - begin
            label = f"{name} {ends[0]:g}..{ends[1]:g}"
            results += [LargestError(label, *worst, beyond, seconds) for worst in (low, high)]
        return results


def device_functions() -> DeviceFunctions:
    """Return the functions of the first GPU."""
    return DeviceFunctions()


def elementwise_source(name: str) -> str:
    return f"def kernel(lo, hi, x, y):\n    for i in range(lo, hi):\n        y[i] = {name}(x[i])\n"


def instruction_kernel(name: str, cc: tuple[int, int]) -> Any:
    """Return a kernel that computes one instruction."""
    kernel = ptx_of(elementwise_source("exp2"), ("f4*", "f4*"), tasks=True, cc=cc, fastmath=True)
    assert kernel.text.count("ex2.approx.ftz.f32") == 1
    return kernel._replace(text=kernel.text.replace("ex2.approx.ftz", name))


def main(names: list[str]) -> int:
    """Print the errors of all functions and instructions; return 1 if one is too large."""
    device = device_functions()
    print(f"{device.driver.kind}, all float32, largest errors", flush=True)
    failed = 0
    for name in names or NAMES:
        result = device.largest_error(name)
        failed += result.error > max_ulp(name)
        print(
            result, "" if result.error <= max_ulp(name) else f"MISSED {max_ulp(name)}", flush=True
        )
    for name in () if names else INSTRUCTIONS:
        for result in device.instruction_errors(name):
            print(result, flush=True)
    return min(1, failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
