"""Large convolutions as cuBLAS matrix products, compared with the CPU. Windows are copied in
chunks, or used in place.
"""

import numpy as np
import pytest
from cuda.support import check_no_python
from cuda.test_block_convolutions import CASES, LAST, normal, same_padding

import accnp as jax
import accnp.numpy as jnp
from accnp import lax
from accnp.engine import device_convolutions, device_table
from accnp.runtime.device_buffer import driver_of


@pytest.fixture(autouse=True)
def _small(monkeypatch):
    """Treat all convolutions as large, with a buffer for a few rows at a time."""
    monkeypatch.setattr(device_convolutions, "LARGE", 0)
    monkeypatch.setattr(device_convolutions, "FEATURES", 2)
    monkeypatch.setattr(device_convolutions, "NARROW", 12)
    monkeypatch.setattr(device_convolutions, "BUFFER_BYTES", 3000)
    monkeypatch.setattr(device_convolutions, "ROWS", 8)


def valid_conv(*strides, **how):
    return lambda x, w: lax.conv_general_dilated(x, w, strides, "VALID", **how)


def weight_gradients(f, x, w):
    return jax.grad(lambda x, w: (f(x, w) ** 2).sum(), (0, 1))(x, w)


MORE_CASES = {
    "1x1 kernel": (valid_conv(1, 1), normal(2, 3, 4, 5), normal(6, 3, 1, 1)),
    "1x1 kernel, small images": (valid_conv(1, 1), normal(3, 4, 2, 5), normal(6, 4, 1, 1)),
    "1x1 kernel, features last": (valid_conv(1, 1, **LAST), normal(2, 4, 5, 3), normal(1, 1, 3, 6)),
    "1x1 kernel with strides": (valid_conv(2, 2, **LAST), normal(2, 5, 5, 3), normal(1, 1, 3, 6)),
    "rows of the array": (valid_conv(1, 1, **LAST), normal(3, 6, 4, 2), normal(1, 4, 2, 6)),
    "1x1 kernel in groups": (
        valid_conv(1, feature_group_count=3),
        normal(2, 6, 14),
        normal(9, 2, 1),
    ),
    "reversed groups": (
        lambda x, w: valid_conv(1, feature_group_count=6)(x[:, ::-1], w),
        normal(2, 6, 14),
        normal(12, 1, 1),
    ),
    "many groups": (same_padding(feature_group_count=4), normal(2, 8, 14), normal(20, 2, 3)),
    "double": (same_padding(), normal(2, 3, 9, dtype="f8"), normal(5, 3, 4, dtype="f8")),
    "halves, features last": (
        same_padding(**LAST),
        normal(2, 5, 4, 3, dtype="f2"),
        normal(3, 3, 3, 4, dtype="f2"),
    ),
    "halves accumulated in float32": (
        same_padding(preferred_element_type="f4"),
        normal(2, 3, 40, dtype="f2"),
        normal(5, 3, 4, dtype="f2"),
    ),
    "transposed": (
        lambda x, w: same_padding(**LAST)(x.transpose(0, 2, 3, 1), w.transpose(2, 3, 1, 0)),
        normal(2, 3, 9, 8),
        normal(5, 3, 3, 2),
    ),
    "reversed": (
        lambda x, w: same_padding()(x[:, ::-1], w[..., ::-1]),
        normal(2, 3, 30),
        normal(5, 3, 4),
    ),
    "gradients of long sums": (
        lambda x, w: weight_gradients(same_padding(), x, w),
        normal(6, 3, 40),
        normal(4, 3, 3),
    ),
    "gradients of halves": (
        lambda x, w: weight_gradients(same_padding(), x, w),
        normal(6, 3, 40, dtype="bfloat16") / 9,
        normal(4, 3, 3, dtype="bfloat16") / 9,
    ),
}
ALL_CASES = {k: v for k, v in CASES.items() if "whole" not in k} | MORE_CASES


@pytest.mark.parametrize("name", ALL_CASES)
def test_values(gpu, name):
    f, *args = ALL_CASES[name]
    with jax.enable_x64(name == "double"):
        expected = jax.tree.leaves(f(*map(jnp.asarray, args)))
        calls = getattr(driver_of(gpu), "calls", {})  # a fake one counts
        calls.clear()
        actual = jax.block_until_ready(jax.tree.leaves(jax.jit(f)(*jax.device_put(args, gpu))))
        assert not {"call", "copy_out"} & {*calls}
        assert not calls or calls["product"]
    for a, b in zip(actual, expected, strict=True):
        assert (a.dtype, a.shape) == (b.dtype, b.shape)
        bound = {"float16": 2e-3, "bfloat16": 1e-2, "float64": 1e-14}.get(b.dtype.name, 1e-6)
        a, b = np.asarray(a).astype("c16"), np.asarray(b).astype("c16")
        np.testing.assert_allclose(a, b, rtol=0, atol=bound * np.abs(b).max())


def test_loops_run_without_python(fake, monkeypatch):
    monkeypatch.setattr(device_convolutions, "BUFFER_BYTES", 600)

    def f(x, w):
        return lax.scan(
            lambda c, k: (jnp.tanh(same_padding()(c, k)), c.sum()), x, jnp.stack([w, -w, w])
        )

    args = normal(2, 5, 7) / 9, normal(5, 5, 3) / 9
    check_no_python(fake, f, args)
    assert fake.calls["product"] >= 6  # of parts
    there = jax.device_put(args, jax.devices("gpu")[0])
    assert "machine code" in str(jax.inspect(jax.jit(f))(*there))


def test_gradients_in_loops_run_without_python(fake):
    f, *args = ALL_CASES["gradients of long sums"]
    check_no_python(fake, lambda *x: lax.fori_loop(0, 2, lambda _, c: f(*c), x), args)


def test_steps_run_in_order(fake, monkeypatch):
    monkeypatch.setattr(device_table, "LARGE", 0)  # plans that hold much are no table
    for name in ("moved", "gradients of halves", "1x1 kernel in groups"):
        test_values(jax.devices("gpu")[0], name)


def test_strided_operands_are_not_copied(fake):
    for name in MORE_CASES:
        if name.startswith(("of one", "rows of", "groups of one")):
            f, *args = MORE_CASES[name]
            there = jax.device_put(args, jax.devices("gpu")[0])
            steps = str(jax.inspect(jax.jit(f))(*there))
            assert "windows" not in steps, name
            assert "by the GPU's library" in steps, name


def test_windows_are_copied_in_parts(fake, monkeypatch):
    monkeypatch.setattr(device_convolutions, "BUFFER_BYTES", 1 << 13)
    x, w = jax.device_put((normal(1, 2, 40, 40), normal(4, 2, 3, 3)), jax.devices("gpu")[0])
    f = jax.jit(same_padding())
    f(x, w).block_until_ready()
    fake.calls.clear()
    used_before = fake.counts["used"]
    allocations, alloc = [], fake.alloc
    monkeypatch.setattr(fake, "alloc", lambda n: allocations.append(n) or alloc(n))
    f(x, w).block_until_ready()
    assert fake.calls["product"] == 15  # of 113 rows of 18 terms
    assert sum(allocations) <= 4 * 1600 * 4 + (1 << 13)
    assert used_before == fake.counts["used"]


def test_precision_selects_the_algorithm(fake, monkeypatch):
    compute_types, gemm = [], fake._gemm
    monkeypatch.setattr(fake, "_c_gemm", type(fake._c_gemm)(
        lambda *arguments: compute_types.append(arguments[-2]) or gemm(*arguments)))  # fmt: skip
    monkeypatch.setattr(device_convolutions, "BUFFER_BYTES", 1 << 20)
    x, w = jax.device_put((normal(2, 3, 9), normal(5, 3, 4)), jax.devices("gpu")[0])
    for precision in (None, "highest", "high", "default"):
        lax.conv(x, w, (1,), "SAME", precision).block_until_ready()
    assert compute_types == [68, 68, 77, 77]


def test_generated_kernels_replace_missing_cublas(fake):
    fake.gemm = False
    x, w = normal(2, 3, 9, 8), normal(5, 3, 3, 2)
    actual = same_padding()(*jax.device_put((x, w), jax.devices("gpu")[0]))
    np.testing.assert_allclose(actual, same_padding()(x, w), atol=1e-4)
    assert not {"call", "product"} & {*fake.calls}
