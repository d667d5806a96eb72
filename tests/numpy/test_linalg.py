"""Linear algebra compared with JAX and NumPy: products, einsum, norms, systems, decompositions."""

from __future__ import annotations

import re
from typing import Any

import jax
import numpy as np
import pytest
import scipy.linalg
from api.tables import compare_expression, compare_gradients, split_cases

import accnp
import accnp.numpy as jnp

R = np.random.RandomState(0)


def _made(*shape: int) -> np.ndarray:
    return R.randn(*shape).astype(np.float32)


D: dict[str, Any] = {
    "x": _made(3, 4), "y": _made(4, 5), "b": _made(2, 3, 4), "c": _made(2, 4, 3), "v": _made(4),
    "w": _made(3), "s": _made(3, 3), "B": _made(2, 3, 3), "i": np.arange(4),
    "z": (_made(3, 4) + 1j * _made(3, 4)).astype(np.complex64), "u": _made(2, 1, 3, 4),
}  # fmt: skip
D["p"] = D["s"] @ D["s"].T + np.eye(3, dtype=np.float32)
D["q"] = D["p"] * np.array([1, 2], np.float32).reshape(2, 1, 1)
D["sy"] = D["s"] + D["s"].T

PRODUCTS = """
matmul(x,y) | matmul(b,c) | matmul(b,y) | matmul(x,c) | matmul(v,y) | matmul(x,v) | matmul(b,v)
matmul(w,b) | matmul(u,c) | matmul(u,y) | dot(x,y) | dot(b,c) | dot(x,i) | dot(x,2) | dot(v,v)
dot(1,2) | dot(i,i) | vdot(z,z) | inner(x,x) | inner(b,x) | outer(v,w) | outer(x,w)
tensordot(b,b,3) | tensordot(b,c,((1,2),(2,1))) | tensordot(x,y,1) | tensordot(x,y,0)
vecdot(x,v) | vecdot(z,z) | matvec(b,v) | vecmat(w,b) | kron(x,s) | kron(v,x) | cross(s,s[::-1])
cross(s[:,:2],s) | cross(s[:,:2],s[:,:2]) | cross(s,s[0],axis=0) | trace(x) | trace(B,1,1,2)
trace(i[:,None]*i) | dot(x.astype('float16'),y.astype('float16')) | dot(x>0,y>0)
"""
EINSUM = """
einsum('ij,jk->ik',x,y) | einsum('ij,jk',x,y) | einsum('ij->ji',x) | einsum('ij->',x)
einsum('ii->i',s) | einsum('ii',s) | einsum('bij,bjk->bik',b,c) | einsum('bij,bjk->ki',b,c)
einsum('i,i->i',v,v) | einsum('i,j->ij',v,w) | einsum('ij,jk,kl->il',x,y,y.T)
einsum('...ij,...jk->...ik',b,c) | einsum('...ij,jk->...ik',b,y) | einsum('ij,j',x,v)
einsum(x,[0,1],y,[1,2],[0,2]) | einsum('bij,bij->b',b,b) | einsum('iij->j',B.transpose(1,2,0))
einsum('abc,cd,ef->abdf',b,y,s) | einsum('a...,a...->...',x,x) | einsum('ij,kj->',x,x)
einsum('bij,bkj->bik',b,b) | einsum('ij,ij->ij',x,x[:1])
"""
NORMS = """
linalg.norm(x) | linalg.norm(x,axis=1) | linalg.norm(x,1) | linalg.norm(x,-1)
linalg.norm(x,np.inf) | linalg.norm(x,2) | linalg.norm(x,'nuc') | linalg.norm(x,3,axis=1)
linalg.norm(v,0) | linalg.norm(v,1) | linalg.norm(v,-np.inf)
linalg.norm(b,axis=(1,2),keepdims=True) | linalg.norm(z) | linalg.norm(i)
linalg.norm(b,'fro',axis=(0,2)) | linalg.norm(b,1,axis=(2,0)) | linalg.vector_norm(b,axis=(0,2))
linalg.vector_norm(b,ord=1,keepdims=True) | linalg.matrix_norm(b)
"""
SYSTEMS = """
linalg.solve(s,w) | linalg.solve(s,x) | linalg.solve(B,x) | linalg.inv(B) | linalg.det(B)
linalg.slogdet(B) | linalg.cholesky(p) | linalg.cholesky(q,upper=True) | linalg.cholesky(s)
linalg.eigvalsh(sy) | linalg.svdvals(b) | linalg.matrix_power(s,3) | linalg.matrix_power(s,-2)
linalg.matrix_power(s,0) | linalg.multi_dot([x,y,y.T,v]) | linalg.matrix_rank(x)
linalg.matrix_rank(np.ones((3, 3), 'f')) | linalg.pinv(x) | linalg.pinv(b)
linalg.lstsq(y.T,y[0].repeat(1)[:5]) | linalg.cond(s) | linalg.cond(s,1)
linalg.qr(y.T,mode='r') | linalg.tensorinv(np.eye(6).astype('f').reshape(2,3,2,3))
linalg.trace(B) | linalg.diagonal(B) | linalg.cross(s,s[0])
linalg.tensorsolve(np.eye(6).astype('f').reshape(2,3,2,3),x[:2,:3])
"""
SMOOTH = """
dot(x, y) | matmul(b, c) | matmul(b, y) | matmul(w, b) | tensordot(b, c, ((1, 2), (2, 1)))
outer(v, w) | vdot(v, v) | inner(x, b) | kron(x, s) | cross(s, B[0]) | trace(s) | vecdot(x, v)
einsum("ij,jk,kl->il", x, y, y.T) | einsum("ii->i", s) | einsum("bij,bkj->bik", b, b)
linalg.norm(x) | linalg.norm(x, axis=1) | linalg.norm(x, 1) | linalg.norm(x, 3, axis=0)
linalg.norm(x, "nuc") | linalg.solve(s, w) | linalg.solve(B, x) | linalg.inv(B) | linalg.det(B)
linalg.slogdet(B)[1] | linalg.cholesky(p) | linalg.eigvalsh(p) | linalg.svdvals(x)
linalg.pinv(x) | linalg.qr(y.T)[1] ** 2 | linalg.matrix_power(s, 3) | abs(linalg.eigh(p)[1])
abs(linalg.svd(x, full_matrices=False)[0]) | abs(linalg.qr(y.T)[0])
linalg.multi_dot([x, y, y.T]) | linalg.lstsq(y.T, y.T[:, 0] ** 2)[0]
"""


@pytest.mark.parametrize("text", split_cases(PRODUCTS))
def test_products(text: str) -> None:
    compare_expression(text, jnp, jax.numpy, 5, **D)


@pytest.mark.parametrize("text", split_cases(EINSUM))
def test_einsum(text: str) -> None:
    compare_expression(text, jnp, jax.numpy, 5, **D)


@pytest.mark.parametrize("text", split_cases(NORMS))
def test_norms(text: str) -> None:
    compare_expression(text, jnp, jax.numpy, 5, **D)


@pytest.mark.parametrize("text", split_cases(SYSTEMS))
def test_systems(text: str) -> None:
    compare_expression(text, jnp, jax.numpy, 20, **D)


@pytest.mark.parametrize("text", split_cases(SMOOTH))
def test_gradients(text: str) -> None:
    used = {k: a for k, a in D.items() if k in "xybcvwsBp" and len(k) == 1}
    compare_gradients(text, 10, **used)


def test_decompositions_multiply_back() -> None:
    def values(parts: Any) -> list[np.ndarray]:
        return [np.asarray(p) for p in parts]

    for a in (D["x"], D["x"].T, D["b"], D["z"], D["z"].T):
        for full in (True, False):
            u, s, vh = values(jnp.linalg.svd(a, full_matrices=full))
            k = s.shape[-1]
            np.testing.assert_allclose(
                (u[..., :k] * s[..., None, :]) @ vh[..., :k, :], a, atol=1e-5
            )
        q, r = values(jnp.linalg.qr(a))
        np.testing.assert_allclose(q @ r, a, atol=1e-5)
    w, v = values(jnp.linalg.eigh(D["sy"]))
    np.testing.assert_allclose(D["sy"] @ v, v * w, atol=1e-5)
    w, v = values(jnp.linalg.eig(D["s"]))
    np.testing.assert_allclose(D["s"] @ v, v * w, atol=1e-5)


BATCHED = [
    (lambda a, b: a @ b, (3, 4), (4, 2)),
    (lambda a, b: jnp.dot(a, b), (4,), (3, 4, 2)),
    (lambda a, b: jnp.einsum("ij,kj->ki", a, b), (3, 4), (2, 4)),
    (lambda a, b: jnp.linalg.solve(a, b), (3, 3), (3, 2)),
    (lambda a, b: jnp.linalg.cholesky(a @ a.T + jnp.eye(3)) @ b, (3, 3), (3,)),
]


@pytest.mark.parametrize(("fn", "left", "right"), BATCHED)
@pytest.mark.parametrize("axes", [(0, 0), (0, None), (None, 0)])
def test_vmap_matches_a_loop(fn: Any, left: Any, right: Any, axes: Any) -> None:
    shapes = [s if d is None else (2, *s) for s, d in zip((left, right), axes)]
    a, b = (
        jnp.asarray(np.random.RandomState(n).randn(*s), "float32") for n, s in enumerate(shapes)
    )
    actual = accnp.vmap(fn, axes)(a, b)
    rows = [fn(a[k] if axes[0] == 0 else a, b[k] if axes[1] == 0 else b) for k in (0, 1)]
    expected = np.stack([np.asarray(r) for r in rows])
    np.testing.assert_allclose(np.asarray(actual), expected, rtol=2e-5, atol=2e-5)


REFUSED = [
    (lambda x: x @ x, TypeError, "contracting"),
    (lambda x: jnp.matmul(x, 1.0), ValueError, "ndim at least 1"),
    (lambda x: jnp.matmul(x, "a"), TypeError, "str"),
    (lambda x: jnp.tensordot(x, x, 3), TypeError, "more axes to contract"),
    (lambda x: jnp.einsum("ij,jk", x, x), ValueError, "'j'"),
    (lambda x: jnp.einsum("ijk", x), ValueError, "one label for each axis"),
    (lambda x: jnp.einsum("ij,jk", x), ValueError, "operands"),
    (lambda x: jnp.einsum("ij->k", x), ValueError, "result"),
    (lambda x: jnp.linalg.solve(x, x), ValueError, "square"),
    (lambda x: jnp.linalg.cholesky(x), ValueError, "square"),
    (lambda x: jnp.linalg.inv(x[0]), ValueError, "square"),
    (lambda x: jnp.linalg.norm(x, "abc"), ValueError, "order"),
    (lambda x: jnp.linalg.qr(x, "raws"), ValueError, "raws"),
    (lambda x: jnp.linalg.eigh(x[:, :3], UPLO="X"), ValueError, "UPLO"),
]


@pytest.mark.parametrize(("call", "error", "text"), REFUSED)
def test_invalid_arguments_raise(call: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        call(jnp.ones((3, 4)))


def test_singular_and_indefinite_matrices() -> None:
    assert np.isnan(np.asarray(jnp.linalg.cholesky(-jnp.eye(2)))[0, 0])
    assert not np.isfinite(np.asarray(jnp.linalg.inv(jnp.zeros((2, 2))))).any()
    assert float(jnp.linalg.det(jnp.ones((3, 3)))) == pytest.approx(0, abs=1e-6)


@pytest.mark.parametrize("dtype", ["float32", "complex64"])
@pytest.mark.parametrize("power", [-120, -60, 0, 60, 120])
def test_eigenvalues_scale_with_their_matrix(power: int, dtype: str) -> None:
    """Outside of 1e-12 to 1e12 in float32, LAPACK scales the matrix; its eigenvalues were not
    scaled back."""
    a = np.array([[2.0, 3.0, -1.0], [-1.0, 3.0, 0.5], [0.5, 2.0, -4.0]], np.float32)
    big = np.ldexp(a, power).astype(dtype)
    w, *vectors = accnp.lax.linalg.eig(jnp.asarray(big))
    values, *others = accnp.lax.linalg.eig(jnp.asarray(a.astype(dtype)))
    np.testing.assert_allclose(w * np.float32(2.0**-power), values, rtol=1e-5)
    np.testing.assert_allclose(jnp.stack(vectors), jnp.stack(others), atol=1e-5)
    np.testing.assert_allclose(jnp.linalg.eigvals(big), w, rtol=1e-5)


@pytest.mark.parametrize("power", [-100, 0, 100])
def test_eigenvalue_subset_scales_with_its_matrix(power: int) -> None:
    """Bisection squares the off-diagonal elements, which may overflow or underflow."""
    d, e = np.array([2.0, 3.0, 4.0], np.float32), np.array([1.0, -0.25], np.float32)

    def eigenvalues(d: Any, e: Any) -> Any:
        call = accnp.scipy.linalg.eigh_tridiagonal
        return call(d, e, eigvals_only=True, select="i", select_range=(0, 1))

    np.testing.assert_array_equal(
        eigenvalues(np.ldexp(d, power), np.ldexp(e, power)),
        np.ldexp(np.asarray(eigenvalues(d, e)), power),
    )


@pytest.mark.parametrize("dtype", ["float32", "complex64"])
def test_gradient_of_zero_residual_norm_is_finite(dtype: str) -> None:
    """JAX's gradients are nan."""

    def total(a: Any, b: Any) -> Any:
        x, residuals, *_ = jnp.linalg.lstsq(a, b)
        return (x.sum() + residuals.sum()).real

    a, b = np.array([[2.0], [0.0]], dtype), np.array([[4.0], [0.0]], dtype)
    gradients = accnp.grad(total, (0, 1))(a, b)
    np.testing.assert_allclose(gradients[0], [[-1.0], [0.0]])
    np.testing.assert_allclose(gradients[1], [[0.5], [0.0]])


@pytest.mark.parametrize("dtype", ["float32", "complex64", "float64", "complex128"])
def test_exponentials_of_large_matrices(dtype: str) -> None:
    """The norm is scaled down to the range of the approximant. JAX halves once too few; its errors
    are 5e-3 and 7e-8."""
    x = np.array([[3.5, -1.0, 0.5], [2.0, -1.0, 1.0], [0.25, 1.5, 2.0]]).astype(dtype)
    if "complex" in dtype:
        x = x + np.array([1j, -0.5j, 0.25j], dtype)
    with accnp.enable_x64(dtype in ("float64", "complex128")):
        for size in (7.6, 10.4):
            for y in (
                x * np.array(size / np.abs(x).sum(0).max(), dtype),
                np.full((1, 1), size, dtype),
            ):
                expected = scipy.linalg.expm(y.astype(complex))
                error = np.abs(np.asarray(accnp.scipy.linalg.expm(y)) - expected).max()
                assert error < 200 * np.finfo(dtype).eps * np.abs(expected).max()


def test_projector_derivative_if_a_reflector_vanishes() -> None:
    def f(x: Any) -> Any:
        rest = jnp.linalg.qr(x, mode="complete")[0][:, 2:]
        return (rest @ rest.T)[0, 3]

    np.testing.assert_array_equal(
        accnp.grad(f)(jnp.eye(4, 2)), np.array([[0, 0], [0, 0], [0, 0], [-1, 0]])
    )


def test_jaxpr_of_dot() -> None:
    text = str(accnp.make_jaxpr(jnp.dot)(D["x"], D["v"]))
    assert text == str(jax.make_jaxpr(jax.numpy.dot)(D["x"], D["v"]))


@pytest.mark.parametrize("size", [6, 300])
def test_pivots_out_of_range_are_ignored(size: int) -> None:
    """Pivots are user input, so nothing may be read or written out of bounds."""
    pivots = np.array([1, size, 2, -1, 1 << 30, -(1 << 30)], np.int32)
    expected = [1, 0, *range(2, size)]
    with accnp.disable_jit():
        assert accnp.lax.linalg.lu_pivots_to_permutation(pivots, size).tolist() == expected
    assert accnp.lax.linalg.lu_pivots_to_permutation(pivots, size).tolist() == expected


@pytest.mark.parametrize("large", [1.0, 1e10, 1e30])
def test_tridiagonal_pivots_that_are_perturbed(large):
    """Only zero and subnormal pivots are perturbed, whatever the size of the others; the equations
    are independent."""
    none = np.zeros(4, np.float32)
    d = np.array([-1, large, 0, -1e-40], np.float32)
    b = np.array([[1], [2], [1], [1]], np.float32)
    solution = accnp.lax.linalg.tridiagonal_solve(none, d, none, b, perturb_singular=True)
    least = float(np.finfo(np.float32).eps * np.float32(large))
    expected = [[-1], [2 / large], [1 / least], [-1 / least]]
    np.testing.assert_allclose(solution, expected, rtol=1e-6)
    their = jax.lax.linalg.tridiagonal_solve(none, d, none, b, perturb_singular=True)
    np.testing.assert_allclose(solution, their, rtol=1e-6)


def test_trace_of_an_offset_known_at_run_time() -> None:
    x = np.arange(24.0, dtype=np.float32).reshape(2, 3, 4)
    traces = accnp.vmap(lambda k: jnp.trace(x, k, 2, 0))(jnp.arange(-4, 4))
    expected = np.stack([np.trace(x, k, 2, 0) for k in range(-4, 4)])
    np.testing.assert_array_equal(traces, expected)
    small = np.eye(3, dtype=np.int8)
    assert accnp.jit(jnp.trace)(small, 0).dtype == jnp.int32


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("inv", "Argument to inv must have shape [..., n, n], got (2, 3)"),
        ("det", "Argument to _det() must have shape [..., n, n], got (2, 3)"),
        ("slogdet", "Argument to slogdet() must have shape [..., n, n], got (2, 3)"),
        ("eig", "The input to eig must be a square matrix. Got shape (2, 3)"),
        ("eigvals", "The input to eig must be a square matrix. Got shape (2, 3)"),
    ],
)
def test_matrices_that_are_not_square(name: str, text: str) -> None:
    with pytest.raises(ValueError, match=re.escape(text)):
        getattr(jnp.linalg, name)(jnp.ones((2, 3)))
