"""Layouts of sparse arrays, plain sparse matrices and their derivatives, compared with JAX."""

import os
import warnings

import jax
import jax.experimental.sparse as theirs
import numpy as np
import pytest
from api.oracle import assert_same_result, stored_result

import accnp
import accnp.experimental.sparse as ours
import accnp.numpy as jnp

RNG = np.random.default_rng(5)


def holed(*shape):
    numbers = RNG.integers(-9, 10, shape) / 4
    return (numbers * (RNG.random(shape) < 0.5)).astype(np.float32)


A, V, CUBE, FOUR = holed(4, 5), holed(5), holed(2, 3, 4), holed(2, 3, 2, 4)


def dense(x):
    if hasattr(x, "todense"):
        return np.asarray(x.todense())
    if isinstance(x, tuple | list):
        return [dense(y) for y in x]
    return np.asarray(x)


def broadcast(x, shape, axes):
    """`lax.broadcast_in_dim` of NumPy arrays."""
    wide = [1] * len(shape)
    for n, axis in zip(x.shape, axes, strict=True):
        wide[axis] = n
    return np.broadcast_to(x.reshape(wide), shape)


def described(result, layout):
    """Return the dense values, and the layout of sparse arrays if requested."""
    parts = result if isinstance(result, tuple) else (result,)
    names = ("n_batch", "n_sparse", "n_dense", "nse") if layout else ()
    return [[dense(x), *[getattr(x, name) for name in names]] for x in parts]


def agree(call, *, layout=False, number=0):
    """Assert that both modules return the same values; with `layout`, in the same layout.

    If JAX refuses the call, nothing is compared.
    """

    def ask():
        try:
            return described(call(theirs, jax), layout)
        except NotImplementedError as error:
            return error

    name = os.environ["PYTEST_CURRENT_TEST"].rpartition(" ")[0].rpartition("::")[2]
    expected = stored_result("sparse_layouts", f"{name} {number}", ask)
    if expected != "NotImplementedError":
        assert_same_result(described(call(ours, accnp), layout), expected, rtol=1e-5)


@pytest.mark.parametrize("old", [(0, 0), (1, 1), (2, 1), (1, 2)])
@pytest.mark.parametrize("new", [(0, 0), (1, 0), (0, 2), (1, 1), (3, 1), (2, 2)])
def test_update_layout(old, new):
    def call(m, _):
        mat = m.BCOO.fromdense(FOUR, n_batch=old[0], n_dense=old[1])
        how = {"n_batch": new[0], "n_dense": new[1], "on_inefficient": None}
        return m.bcoo_update_layout(mat, **how)

    agree(call, layout=True)
    np.testing.assert_array_equal(dense(call(ours, accnp)), FOUR)


def test_inefficient_layouts():
    mat = ours.BCOO.fromdense(A)
    with pytest.raises(ours.SparseEfficiencyError, match="inefficient storage"):
        mat.update_layout(n_batch=1)
    with pytest.warns(ours.SparseEfficiencyWarning, match="inefficient storage"):
        ours.bcoo_update_layout(mat, n_dense=1, on_inefficient="warn")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ours.BCOO.fromdense(A[None]).update_layout(n_batch=1)
    with pytest.raises(ValueError, match="at most the rank"):
        mat.update_layout(n_batch=2, n_dense=1)


@pytest.mark.parametrize(
    ("x", "kinds", "shape", "axes"),
    [
        (V, (0, 0), (5,), (0,)),
        (V, (0, 0), (3, 5), (1,)),
        (V, (0, 0), (5, 1), (0,)),
        (V, (0, 0), (2, 5, 1, 1), (1,)),
        (A, (0, 0), (4, 1, 5), (0, 2)),
        (A, (1, 0), (4, 3, 5), (0, 2)),
        (A, (1, 0), (2, 4, 5), (1, 2)),
        (A, (0, 1), (3, 4, 5), (1, 2)),
        (A, (0, 1), (4, 5, 3), (0, 1)),
        (CUBE, (1, 1), (2, 3, 1, 4), (0, 1, 3)),
    ],
)  # fmt: skip
def test_broadcast_in_dim(x, kinds, shape, axes):
    def call(m, _):
        mat = m.BCOO.fromdense(x, n_batch=kinds[0], n_dense=kinds[1])
        return m.bcoo_broadcast_in_dim(mat, shape=shape, broadcast_dimensions=axes)

    agree(call)
    actual = dense(call(ours, accnp))
    np.testing.assert_array_equal(actual, broadcast(x, shape, axes))


@pytest.mark.parametrize(
    ("x", "shape", "axes"),
    [
        (V[:1], (4,), (0,)),
        (A[:1], (3, 5), (0, 1)),
        (V, (5, 3), (0,)),
        (A[:, :1], (4, 2, 3), (0, 1)),
    ],
)  # fmt: skip
def test_repeated_sparse_axes(x, shape, axes):
    """jax refuses these."""
    for nse in (None, x.size + 2):
        mat = ours.BCOO.fromdense(x, nse=nse)
        out = ours.bcoo_broadcast_in_dim(mat, shape=shape, broadcast_dimensions=axes)
        expected = broadcast(x, shape, axes)
        np.testing.assert_array_equal(dense(out), expected)
        actual = ours.sparsify(lambda m: accnp.lax.broadcast_in_dim(m, shape, axes))(mat)
        np.testing.assert_array_equal(dense(actual), expected)


@pytest.mark.parametrize("kinds", [(0, 0), (1, 0), (0, 1), (1, 1)])
@pytest.mark.parametrize("axes", [(0,), (0, 1, 2)])
def test_rev(kinds, axes):
    def call(m, _):
        mat = m.BCOO.fromdense(CUBE, n_batch=kinds[0], n_dense=kinds[1], nse=13)
        return m.bcoo_rev(mat, axes)

    agree(call, layout=True)


@pytest.mark.parametrize("starts", [(1, 1, 0), (-1, -2, 9)])
@pytest.mark.parametrize("kinds", [(0, 0), (1, 0), (0, 1)])
def test_dynamic_slice(starts, kinds):
    def call(m, jax):
        mat = m.BCOO.fromdense(CUBE, n_batch=kinds[0], n_dense=kinds[1])
        cut = jax.jit(lambda s: m.bcoo_dynamic_slice(mat, s, (1, 2, 3)))
        return m.bcoo_dynamic_slice(mat, starts, (1, 2, 3)), cut(starts)

    agree(call)


@pytest.mark.parametrize(
    ("offset", "collapsed", "index_map", "sizes", "rows"),
    [
        ((1,), (0,), (0,), (1, 5), [[2], [0], [3]]),
        ((1, 2), (), (0,), (2, 5), [[2], [0]]),
        ((), (0, 1), (0, 1), (1, 1), [[2, 1], [0, 4]]),
        ((0,), (1,), (1,), (4, 1), [[2], [0], [3]]),
        ((2,), (0,), (0, 1), (1, 3), [[[2, 1], [0, 2]]]),
    ],
)  # fmt: skip
def test_gather(offset, collapsed, index_map, sizes, rows):
    def call(m, jax):
        numbers = jax.lax.GatherDimensionNumbers(offset, collapsed, index_map)
        return m.bcoo_gather(m.BCOO.fromdense(A), jax.numpy.array(rows), numbers, sizes)

    agree(call)


def test_sampled_products():
    x, y = holed(2, 3, 4), holed(2, 4, 5)
    cases = (
        ((((2,), (1,)), ((0,), (0,))), [[0, 1, 2], [1, 2, 4], [0, 0, 0]]),
        ((((2,), (1,)), ((), ())), [[0, 1, 1, 2], [1, 2, 0, 4]]),
        ((((2,), (1,)), ((0,), (0,))), [[0, 1], [1, 2]]),
        ((((0, 2), (0, 1)), ((), ())), [[1, 2], [2, 4], [7, 7]]),
    )
    for number, (numbers, places) in enumerate(cases):

        def call(m, jax, numbers=numbers, places=places):
            arguments = [jax.numpy.array(v) for v in (x, y, places)]
            return m.bcoo_dot_general_sampled(*arguments, dimension_numbers=numbers)

        agree(call, number=number)


@pytest.mark.parametrize("padding", ["SAME", [(2, 1)]])
@pytest.mark.parametrize("sparse", [(True, True), (True, False), (False, True)])
def test_convolutions(padding, sparse):
    def call(m, jax):
        x, y = [
            m.BCOO.fromdense(v[None, None]) if s else jax.numpy.array(v[None, None])
            for v, s in zip((V, A[0, :3]), sparse, strict=True)
        ]
        return m.bcoo_conv_general_dilated(x, y, window_strides=(1,), padding=padding)

    agree(call)


@pytest.mark.parametrize("kinds", [(0, 0), (1, 0), (0, 1)])
def test_random(kinds):
    def call(m, jax):
        how = {"n_batch": kinds[0], "n_dense": kinds[1]}
        key = jax.random.key(3)
        return (
            m.random_bcoo(key, (3, 4, 5), dtype="float32", **how),
            m.random_bcoo(key, (3, 4, 5), nse=3, unique_indices=False, dtype="float16", **how),
        )

    agree(call, layout=True)


@pytest.mark.parametrize("kind", ["COO", "CSR", "CSC"])
def test_plain_matrices(kind):
    def call(m, jax):
        mat = getattr(m, kind).fromdense(jax.numpy.array(A))
        there = jax.numpy.array(V)
        parts = tuple(jax.tree.leaves(mat))
        return (
            mat, mat.T, mat @ there, mat @ jax.numpy.array(A.T), mat.T @ jax.numpy.array(A),
            jax.jit(lambda m: m @ there)(mat), *parts,
            m.eye(3, 4, 1, sparse_format=kind.lower()),
            m.empty((2, 3), sparse_format=kind.lower()),
        )  # fmt: skip

    agree(call)
    mat = getattr(ours, kind).fromdense(A)
    assert repr(mat) == f"{kind}(float32[4, 5], nse={np.count_nonzero(A)})"
    with pytest.raises(NotImplementedError, match="two sparse"):
        mat @ mat
    gradient = accnp.grad(lambda d: (mat.with_data(d) @ V).sum())(mat.data)
    assert gradient.shape == mat.data.shape


@pytest.mark.parametrize("kind", ["coo", "csr"])
def test_functions_of_plain_matrices(kind):
    def call(m, jax):
        mat = getattr(m, f"{kind}_fromdense")(jax.numpy.array(A), nse=12)
        vec, times = getattr(m, f"{kind}_matvec"), getattr(m, f"{kind}_matmat")
        return (
            getattr(m, f"{kind}_todense")(mat), vec(mat, jax.numpy.array(V)),
            vec(mat, jax.numpy.array(A[:, 0]), transpose=True), times(mat, jax.numpy.array(A.T)),
            times(mat, jax.numpy.array(A), transpose=True),
        )  # fmt: skip

    agree(call)


def test_functions_of_rows():
    def call(m, jax):
        mat = m.BCSR.fromdense(jax.numpy.array(A))
        twice = m.BCSR(
            tuple(jax.numpy.array(x) for x in (np.float32([1, 2, 0]), [1, 1, 0], [0, 2, 3])),
            shape=(2, 2),
        )
        return (
            m.bcsr_concatenate([mat, mat], dimension=0),
            m.bcsr_concatenate([mat, mat], dimension=1),
            m.bcsr_extract(mat.indices, mat.indptr, jax.numpy.array(A + 1)),
            m.bcsr_sum_duplicates(twice).data, m.bcsr_sum_duplicates(twice, nse=2),
        )  # fmt: skip

    agree(call)


@pytest.mark.parametrize("name", ["jacfwd", "jacrev", "jacobian"])
def test_jacobians(name):
    def call(m, jax):
        take = getattr(m, name)
        mat, v = m.BCOO.fromdense(jax.numpy.array(A)), jax.numpy.array(V)
        both = take(lambda m, v: jax.numpy.sin(m @ v), argnums=(0, 1))(mat, v)
        value, aux = take(lambda m: (m @ v, v), has_aux=True)(mat)
        # jax's result has the argument's shape for its own, whatever is before it.
        whole = [take(lambda m: m @ v)(mat), both[0], value]
        return (*[x.data for x in whole], *[x.indices for x in whole], both[1], aux)

    agree(call)
    v = jnp.array(V)
    actual = getattr(ours, name)(lambda m: jnp.sin(m @ v))(ours.BCOO.fromdense(A))
    expected = (
        np.einsum("i,ij,k->ikj", np.cos(A @ V), np.ones_like(A), np.ones(4)) * np.eye(4)[..., None]
    )
    expected = expected * V * (A != 0)
    np.testing.assert_allclose(dense(actual), expected, rtol=1e-5, atol=1e-6)
