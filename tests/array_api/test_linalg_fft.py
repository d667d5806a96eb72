"""The extensions `linalg` and `fft`, and matrix products, compared with `array_api_strict`."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from array_api.drawing import KINDS, agree, arrays, draws
from hypothesis import strategies as st

Maker = Callable[..., np.ndarray]
CLOSE, ROUGH = 1e-3, 3e-2
SIZES = st.integers(0, 3)
DRAWN = st.tuples(
    st.sampled_from([(), (2,), (0,), (1, 2)]), SIZES, SIZES, st.integers(1, 3),
    st.sampled_from(KINDS["inexact"]),
)  # fmt: skip


def maker(dtype: str) -> Maker:
    rng = np.random.default_rng(0)

    def make(*shape: int) -> np.ndarray:
        a = rng.standard_normal(shape)
        return (a + 1j * rng.standard_normal(shape) if "complex" in dtype else a).astype(dtype)

    return make


@pytest.mark.parametrize("where", ["", "linalg."])
def test_products(where: str) -> None:
    @draws(DRAWN)
    def go(drawn: Any) -> None:
        batch, m, n, k, dtype = drawn
        a = maker(dtype)
        agree(f"{where}matmul", a(*batch, m, n), a(*batch, n, k), tolerance=CLOSE)
        agree(f"{where}matmul", a(n), a(*batch, n, k), tolerance=CLOSE)
        agree(f"{where}matmul", a(*batch, m, n), a(n), tolerance=CLOSE)
        agree(f"{where}tensordot", a(m, n, k), a(n, k, m), tolerance=CLOSE)
        for axes in (0, 1):
            agree(f"{where}tensordot", a(m, n), a(n, k), axes=axes, tolerance=CLOSE)
        agree(f"{where}tensordot", a(m, n), a(n, m), axes=((0, 1), (1, 0)), tolerance=CLOSE)
        agree(f"{where}vecdot", a(*batch, m, n), a(m, n), tolerance=CLOSE)
        agree(f"{where}vecdot", a(*batch, m, n), a(*batch, m, n), axis=-2, tolerance=CLOSE)
        agree(f"{where}matrix_transpose", a(*batch, m, n))
        agree(lambda xp, x: (x.mT, x[..., 0].T if x.ndim == 3 else x.mT), a(*batch, m, k))

    go()


@draws(DRAWN, 4)
def test_matrix_properties(drawn: Any) -> None:
    batch, m, n, k, dtype = drawn
    a = maker(dtype)
    agree("linalg.outer", a(m), a(n))
    agree("linalg.cross", a(*batch, 3), a(*batch, 3), tolerance=CLOSE)
    agree("linalg.cross", a(*batch, 3, m), a(*batch, 3, m), axis=-2, tolerance=CLOSE)
    agree("linalg.diagonal", a(*batch, m, n), offset=k - 2)
    agree("linalg.trace", a(*batch, m, n), offset=k - 2, tolerance=CLOSE)
    agree("linalg.trace", a(*batch, m, n), dtype=np.dtype("complex128"), tolerance=CLOSE)
    agree("linalg.matrix_norm", a(*batch, m, n), tolerance=CLOSE)
    x = a(*batch, m + 1, n + 1)
    for order in (1, -1, 2, -2, math.inf, -math.inf, "fro", "nuc"):
        agree("linalg.matrix_norm", x, ord=order, keepdims=k > 1, tolerance=CLOSE)
    for order in (0, 1, 2, 3, -1, -2, 0.5, math.inf, -math.inf):
        agree("linalg.vector_norm", x, ord=order, tolerance=CLOSE)
        agree("linalg.vector_norm", x, ord=order, axis=-1, keepdims=True, tolerance=CLOSE)
        agree("linalg.vector_norm", x, ord=order, axis=(-1, -2), tolerance=CLOSE)


@draws(arrays("numeric", (2, 3)), 16)
def test_trace_widens_as_a_sum_does(x: Any) -> None:
    agree("linalg.trace", x, tolerance=CLOSE)
    agree("linalg.trace", x, offset=1, tolerance=CLOSE)


@draws(DRAWN, 5)
def test_square_matrices(drawn: Any) -> None:
    batch, _, n, k, dtype = drawn
    a = maker(dtype)
    s = a(*batch, n, n) + 3 * np.eye(n, dtype=dtype)
    h = s @ s.swapaxes(-1, -2).conj() if n else s
    for name in ("det", "inv", "slogdet"):
        agree(f"linalg.{name}", s, tolerance=CLOSE)
    agree("linalg.cholesky", h, tolerance=ROUGH)
    agree("linalg.cholesky", h, upper=True, tolerance=ROUGH)
    agree("linalg.eigvalsh", h, tolerance=ROUGH)
    agree(lambda xp, x: xp.linalg.eigh(x).eigenvalues, h, tolerance=ROUGH)
    for power in (0, 1, 2, -2):
        agree("linalg.matrix_power", s, power, tolerance=ROUGH)
    agree("linalg.solve", s, a(*batch, n, k), tolerance=ROUGH)
    agree("linalg.solve", s, a(n), tolerance=ROUGH)
    agree(lambda xp, x: xp.linalg.eigvals(x).shape, h)
    agree(lambda xp, x: xp.zeros_like(xp.linalg.eig(x).eigenvalues), h)
    agree(lambda xp, x: xp.zeros_like(xp.linalg.eig(x).eigenvectors), h)


@draws(DRAWN)
def test_factorizations(drawn: Any) -> None:
    batch, m, n, _, dtype = drawn
    x = maker(dtype)(*batch, m, n)
    agree("linalg.matrix_rank", x)
    agree("linalg.matrix_rank", x, rtol=0.5)
    agree("linalg.pinv", x, tolerance=0.3)
    agree("linalg.pinv", x, rtol=0.01, tolerance=0.3)
    agree("linalg.svdvals", x, tolerance=CLOSE)
    agree(lambda xp, a: xp.linalg.svd(a).S, x, tolerance=CLOSE)
    for full in (True, False):
        agree(lambda xp, a, f=full: _back(xp, *xp.linalg.svd(a, full_matrices=f)), x,
              tolerance=CLOSE)  # fmt: skip
        mode = "complete" if full else "reduced"
        agree(lambda xp, a, o=mode: _qr(xp, *xp.linalg.qr(a, mode=o)), x, tolerance=CLOSE)


def _back(xp: Any, u: Any, s: Any, v: Any) -> Any:
    """Return the shapes of the factors, and their product."""
    k = s.shape[-1]
    product = xp.matmul(u[..., :, :k] * xp.astype(s, u.dtype)[..., None, :], v[..., :k, :])
    return [u.shape, s.shape, v.shape, product]


def _qr(xp: Any, q: Any, r: Any) -> Any:
    return [q.shape, r.shape, xp.matmul(q, r)]


@draws(DRAWN, 12)
def test_transforms(drawn: Any) -> None:
    batch, m, n, k, dtype = drawn
    x = maker(dtype)(*batch, m + 1, n + 2)
    if "complex" in dtype:
        for name in ("fft.fft", "fft.ifft"):
            agree(name, x, tolerance=CLOSE)
            agree(name, x, n=k + 1, axis=-2, norm="ortho", tolerance=CLOSE)
            agree(name, x, norm="forward", tolerance=CLOSE)
            agree(f"{name}n", x, tolerance=CLOSE)
            agree(f"{name}n", x, s=(2, 3), axes=(-1, -2), tolerance=CLOSE)
        for name in ("fft.irfft", "fft.irfftn", "fft.hfft"):
            agree(name, x, tolerance=CLOSE)
        agree("fft.irfft", x, n=k + 1, tolerance=CLOSE)
    else:
        for name in ("fft.rfft", "fft.rfftn", "fft.ihfft"):
            agree(name, x, tolerance=CLOSE)
        agree("fft.fftfreq", n + 1, dtype=np.dtype(dtype))
        agree("fft.rfftfreq", n + 1, d=0.5, dtype=np.dtype(dtype))
    agree("fft.fftshift", x)
    agree("fft.ifftshift", x, axes=-1)
    agree("fft.fftfreq", n + 1)
