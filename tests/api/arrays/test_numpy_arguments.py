"""Arguments of NumPy functions under the option `numpy_dispatch`. Each argument is passed by
position and by name, with its default and with other values. The results must match NumPy, or the
error must name the argument.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import accnp as jnp
from accnp.api.arrays.numpy_protocols import _WRITES, _counterpart, _signature
from tests.api.arrays.test_numpy_dispatch import dispatched_functions

A = np.array([[0.5, 2.0, 1.5], [3.0, 0.25, 1.0], [2.5, 1.25, 4.0]], np.float32)
V = np.array([1.0, 2.0, 2.0, 4.0], np.float32)
K = np.array([0, 2, 1, 2], np.int32)
S = A @ A.T + 5 * np.eye(3, dtype=np.float32)
B = np.array([1, 0, 1], np.uint8)
# Required arguments; those of the other functions are `A`.
REQUIRED: dict[str, tuple[Any, ...]] = {
    "np.allclose": (A, A), "np.append": (A, V), "np.apply_along_axis": (np.sum, 0, A),
    "np.apply_over_axes": (np.sum, A, [0]), "np.arange": (4,), "np.argpartition": (V, 1),
    "np.array_equal": (A, A), "np.array_equiv": (A, A), "np.array_split": (A, 2),
    "np.astype": (A, np.float16), "np.bincount": (K,), "np.block": ([A, A],),
    "np.broadcast_to": (V, (2, 4)), "np.can_cast": (np.int32, np.float64),
    "np.choose": (K, [V, V, V]), "np.column_stack": ([V, V],), "np.compress": ([1, 0, 1], A),
    "np.concatenate": ([A, A],), "np.convolve": (V, V), "np.corrcoef": (A,), "np.cov": (A,),
    "np.correlate": (V, V), "np.cross": (A, A), "np.delete": (A, 1), "np.diag": (A,),
    "np.digitize": (V, [1.0, 3.0]), "np.dot": (A, A), "np.dsplit": (A[None], 3),
    "np.dstack": ([A, A],), "np.einsum": ("ij,jk", A, A), "np.einsum_path": ("ij,jk", A, A),
    "np.expand_dims": (A, 0), "np.extract": ([1, 0, 1, 1], V), "np.full_like": (A, 2),
    "np.histogram2d": (V, V), "np.histogramdd": (A,), "np.hsplit": (A, 3), "np.hstack": ([A, A],),
    "np.insert": (A, 1, 5), "np.interp": (V, V, V), "np.intersect1d": (K, K), "np.isclose": (A, A),
    "np.inner": (A, A), "np.isin": (K, [1, 2]), "np.ix_": (K, K), "np.kron": (V, V),
    "np.lexsort": ([V, V],), "np.linspace": (V, V + 4), "np.logspace": (V, V + 1),
    "np.geomspace": (V, V + 1), "np.meshgrid": (V, V), "np.moveaxis": (A, 0, 1),
    "np.outer": (V, V), "np.packbits": (B,), "np.pad": (A, 1), "np.partition": (V, 1),
    "np.percentile": (A, 40), "np.nanpercentile": (A, 40), "np.quantile": (A, 0.4),
    "np.nanquantile": (A, 0.4), "np.piecewise": (V, [V > 1], [2.0, 3.0]), "np.poly": (V,),
    "np.polyadd": (V, V), "np.polydiv": (V, V), "np.polyfit": (np.arange(4.0), V, 1),
    "np.polymul": (V, V), "np.polysub": (V, V), "np.polyval": (V, V), "np.polyder": (V,),
    "np.polyint": (V,), "np.ravel_multi_index": ((K, K), (3, 3)), "np.repeat": (A, 2),
    "np.reshape": (A, (1, 9)), "np.resize": (A, (2, 9)), "np.result_type": (A, K),
    "np.roll": (A, 1), "np.rollaxis": (A, 1), "np.roots": (V,), "np.searchsorted": (V, V),
    "np.select": ([A > 1], [A]), "np.setdiff1d": (K, [1]), "np.setxor1d": (K, [1]),
    "np.split": (A, 3), "np.stack": ([A, A],), "np.swapaxes": (A, 0, 1), "np.take": (A, [0, 1]),
    "np.take_along_axis": (A, np.zeros((3, 1), int)), "np.tensordot": (A, A), "np.tile": (A, 2),
    "np.trapezoid": (A,), "np.tril_indices_from": (A,), "np.trim_zeros": (V,),
    "np.union1d": (K, K), "np.unpackbits": (B,), "np.unravel_index": (K, (2, 3)),
    "np.vander": (V,), "np.vdot": (V, V), "np.vsplit": (A, 3), "np.vstack": ([A, A],),
    "np.where": (A > 1, A, 0), "np.linalg.cond": (A,), "np.linalg.cross": (A, A),
    "np.linalg.lstsq": (A, A), "np.linalg.matmul": (A, A), "np.linalg.matrix_power": (A, 2),
    "np.linalg.multi_dot": ([A, A, A],), "np.linalg.outer": (V, V), "np.linalg.solve": (S, A),
    "np.linalg.tensordot": (A, A), "np.linalg.tensorinv": (np.diag(V).reshape(2, 2, 2, 2),),
    "np.linalg.tensorsolve": (S, V[:3]), "np.linalg.vecdot": (A, A), "np.linalg.cholesky": (S,),
    "np.linalg.eigh": (S,), "np.linalg.eigvalsh": (S,), "np.linalg.svd": (S,),
    "np.linalg.pinv": (S,), "np.cumulative_sum": (V,), "np.cumulative_prod": (V,),
}  # fmt: skip
# Values other than the default, by the name of the parameter.
OPTIONAL_VALUES: dict[str, list[Any]] = {
    "axis": [0, -1], "keepdims": [True], "ddof": [1], "correction": [1], "initial": [9.0],
    "where": [A > 1], "dtype": [np.float16], "overwrite_input": [True], "density": [True],
    "kind": ["stable"], "side": ["right"], "weights": [A], "indexing": ["ij"], "sparse": [True],
    "return_index": [True], "return_inverse": [True], "return_counts": [True], "n": [2],
    "method": ["lower", "direct"], "norm": ["ortho"], "mode": ["edge", "clip", "full"],
    "invert": [True], "assume_unique": [True], "k": [1], "offset": [1], "order": ["F", "C"],
    "decimals": [1], "right": [True], "minlength": [6], "bins": [4], "range": [(0.0, 4.0)],
    "nan": [2.0], "shape": [(2, 2)], "subok": [False], "endpoint": [False], "num": [5],
    "retstep": [True], "full_matrices": [False], "compute_uv": [False], "hermitian": [True],
    "UPLO": ["U"], "rtol": [0.1], "atol": [0.5], "rcond": [0.1], "tol": [2.0], "equal_nan": [True],
    "left": [-1.0], "bias": [True], "rowvar": [False], "increasing": [True], "dx": [2.0],
    "returned": [True], "casting": ["unsafe", "safe"], "prepend": [A], "append": [A],
    "a_min": [1.0], "a_max": [2.0], "min": [1.0], "max": [2.0], "copy": [False], "axes": [1],
    "bitorder": ["little"], "stable": [True], "edge_order": [1], "upper": [True],
}  # fmt: skip
# Results that are not unique: vectors of any sign, memory without values, texts, and polynomials or
# residuals whose length depends on the values.
NOT_COMPARED = {"np.linalg.eig", "np.empty_like", "np.einsum_path", "np.polydiv", "np.linalg.lstsq"}
SKIPPED_PARAMETERS = {
    "out",
    "like",
    "device",
}  # tested with `out=`, resolved by NumPy, of one device


def functions() -> dict[str, Any]:
    by_name = {}
    for f in dispatched_functions():
        counterpart = _counterpart(f)
        last = counterpart.name.rpartition(".")[2]
        if counterpart.function not in (None, f) and last not in _WRITES:
            by_name[counterpart.name] = f
    return by_name


FUNCTIONS = functions()


def to_accnp(x: Any) -> Any:
    """Return the arguments with accnp arrays in place of NumPy arrays."""
    if isinstance(x, np.ndarray):
        return jnp.asarray(x)
    if type(x) in (list, tuple):
        return type(x)([to_accnp(y) for y in x])
    return {k: to_accnp(y) for k, y in x.items()} if type(x) is dict else x


def assert_same(actual: Any, expected: Any) -> None:
    if isinstance(expected, tuple | list):
        assert len(actual) == len(expected)
        for g, w in zip(actual, expected, strict=True):
            assert_same(g, w)
    elif isinstance(expected, np.ndarray | np.generic | int | float):
        assert np.shape(actual) == np.shape(expected)
        np.testing.assert_allclose(
            np.asarray(actual, complex), np.asarray(expected, complex), rtol=2e-2, atol=1e-3
        )


def calls(name: str) -> Iterator[tuple[tuple[Any, ...], dict[str, Any]]]:
    """Return calls with one optional argument: by name, and by position if the preceding arguments
    allow it.
    """
    signature = _signature(FUNCTIONS[name])
    required = REQUIRED.get(name, (A,))
    yield required, {}
    before: tuple[Any, ...] | None = required
    for at, p in enumerate(signature.parameters.values() if signature else ()):
        if p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD):
            before = None
            continue
        if at < len(required) and before is not None:
            continue
        if p.default is p.empty:
            continue
        values = (
            [p.default]
            if p.name in SKIPPED_PARAMETERS
            else [p.default, *OPTIONAL_VALUES.get(p.name, ())]
        )
        for value in values:
            if p.kind is not p.POSITIONAL_ONLY:
                yield required, {p.name: value}
            if p.kind is not p.KEYWORD_ONLY and before is not None:
                yield (*before, value), {}
        if before is not None:
            before = (*before, p.default)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_arguments(name: str) -> None:
    f, compared = FUNCTIONS[name], 0
    for args, kwargs in calls(name):
        try:
            expected = f(*args, **kwargs)
        except (TypeError, ValueError, IndexError, AttributeError, np.linalg.LinAlgError):
            assert kwargs or len(args) > len(REQUIRED.get(name, (A,))), "not a call for NumPy"
            continue  # a value that has no meaning for this function
        try:
            with jnp.numpy_dispatch():
                actual = f(*to_accnp(args), **to_accnp(kwargs))
        except (TypeError, ValueError, NotImplementedError) as error:
            text, used = str(error), next(iter([*kwargs.values(), *args[-1:]]))
            refused = re.search("does not have the argument|not supported|leave it out", text)
            if not refused or repr(used)[:50] not in text:
                raise
            continue
        if name not in NOT_COMPARED:
            assert_same(actual, expected)
        compared += 1
    assert compared


def test_arguments_are_mapped_by_name() -> None:
    x = jnp.asarray(A)
    with jnp.numpy_dispatch():
        assert_same(np.sum(x, 0, None, None, True), A.sum(0, keepdims=True))
        assert_same(np.histogram(x, 2, None, True), np.histogram(A, 2, None, True))
        assert_same(np.nanstd(x, correction=1), np.nanstd(A, ddof=1))
        assert_same(np.sort(x, 1, "stable"), np.sort(A, 1))
        assert_same(np.empty_like(x, None, "K", True, (2,)).shape, (2,))
        for call, argument in (
            (lambda: np.zeros_like(x, order="F"), "order='F'"),
            (lambda: np.zeros_like(x, None, "F"), "order='F'"),
            (lambda: np.stack([x, x], casting="no"), "casting='no'"),
            (lambda: np.hstack([x, x], casting="no"), "casting='no'"),
            (lambda: np.sort(x, 0, None, "f"), "'f'"),
        ):
            with pytest.raises(TypeError, match=f"(does not have the arg|not supp).*{argument}"):
                call()
        with pytest.raises(TypeError, match=r"two arguments mean jnp\.nanvar's ddof"):
            np.nanvar(x, ddof=1, correction=2)
        with pytest.raises(ValueError, match="immutable"):
            np.put(a=x, ind=[0], v=[1.0])


@pytest.mark.parametrize(
    "args", [((2, 2),), (2, 0), (3, -1), ((2, 1), (1, 0)), ((2, 2), (0, 0)), (0, 1)]
)
def test_sliding_windows(args: tuple[Any, ...]) -> None:
    view = np.lib.stride_tricks.sliding_window_view
    expected = view(A, *args)
    with jnp.numpy_dispatch():
        assert type(view(jnp.asarray(A), *args)) is jnp.Array
        assert_same(view(jnp.asarray(A), *args), expected)
        assert_same(jnp.jit(lambda x: view(x, *args))(A), expected)


def test_sliding_windows_that_do_not_fit() -> None:
    view, x = np.lib.stride_tricks.sliding_window_view, jnp.asarray(A)
    with jnp.numpy_dispatch():
        for call, message in (
            (lambda: view(x, 4, 0), "must fit"),
            (lambda: view(x, (-1, 1)), "must fit"),
            (lambda: view(x, 2), "a size for each axis"),
        ):
            with pytest.raises(ValueError, match=message):
                call()
        with pytest.raises(TypeError, match="immutable"):
            view(x, (2, 2), writeable=True)


def test_memory_and_type_predicates() -> None:
    with jnp.numpy_dispatch():
        x, y = jnp.arange(5.0), np.arange(5.0)
        assert np.may_share_memory(x, x)
        assert np.shares_memory(x, np.asarray(x))
        assert not np.shares_memory(x, y)
        assert np.min_scalar_type(x) == np.float32
        shuffled = np.random.default_rng(0).permutation(x)  # asks NumPy whether memory is shared
    np.testing.assert_array_equal(np.sort(np.asarray(shuffled)), y)


def test_common_type() -> None:
    with jnp.numpy_dispatch():
        for dtypes in (["float32"], ["float16", "float32"], ["int32"], ["float32", "complex64"]):
            arrays = [np.ones(2, t) for t in dtypes]
            assert np.common_type(*to_accnp(arrays)) is np.common_type(*arrays)
        assert np.common_type(jnp.ones(2), np.ones(2)) is np.float64
