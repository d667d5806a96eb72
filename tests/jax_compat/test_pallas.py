"""Pallas kernels over grids, compared with JAX's interpreter mode."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
from jax.experimental import pallas as their_pl
from jax.experimental.pallas import tpu as their_tpu
from jax.experimental.pallas import triton as their_triton

import accnp
from accnp.experimental import pallas as pl
from accnp.experimental.pallas import tpu as pltpu
from accnp.experimental.pallas import triton as plgpu

PAGE = Path(__file__).resolve().parents[2] / "docs" / "pallas.md"
OURS = (accnp, pl, pltpu, plgpu)
THEIRS = (jax, their_pl, their_tpu, their_triton)
rng = np.random.default_rng(0)


def normal(*shape: int) -> np.ndarray:
    return rng.normal(size=shape).astype(np.float32)


A, B, ROWS, LINE = normal(12, 16), normal(16, 8), normal(6, 10), normal(13)


def matrix_product(m, pl, tpu, gpu):
    def kernel(x, y, o):
        @pl.when(pl.program_id(2) == 0)
        def _():
            o[...] = m.numpy.zeros_like(o)

        o[...] += x[...] @ y[...]

    f = pl.pallas_call(
        kernel,
        m.ShapeDtypeStruct((12, 8), "float32"),
        grid=(3, 2, 4),
        in_specs=[
            pl.BlockSpec((4, 4), lambda i, j, k: (i, k)),
            pl.BlockSpec((4, 4), lambda i, j, k: (k, j)),
        ],
        out_specs=pl.BlockSpec((4, 4), lambda i, j, k: (i, j)),
        compiler_params=tpu.CompilerParams(
            dimension_semantics=(tpu.PARALLEL, "parallel", "arbitrary")
        ),
        cost_estimate=pl.CostEstimate(flops=1, transcendentals=0, bytes_accessed=1),
        interpret=True,
    )
    many = m.vmap(f, (0, None))(m.numpy.stack([A, A + 1]), B)
    return f(A, B), m.jit(f)(A, B), many


def softmax_of_rows(m, pl, tpu, gpu):
    def kernel(x, o):
        e = m.numpy.exp(x[...] - x[...].max())
        o[...] = e / e.sum()

    row = pl.BlockSpec((None, 10), lambda i: (i, 0))
    shape = m.ShapeDtypeStruct(ROWS.shape, "float32")
    call = pl.pallas_call(kernel, shape, grid=6, in_specs=[row], out_specs=row, interpret=True)
    return m.jit(call)(ROWS), m.jvp(call, (ROWS,), (ROWS,))


def layer_norm(m, pl, tpu, gpu):
    def kernel(x, scale, shift, o, mean_ref):
        mean = x[...].mean(axis=1, keepdims=True)
        var = ((x[...] - mean) ** 2).mean(axis=1, keepdims=True)
        o[...] = (x[...] - mean) * m.lax.rsqrt(var + 1e-5) * scale[...] + shift[...]
        mean_ref[...] = mean[:, 0]

    rows, all_of = pl.BlockSpec((2, 10), lambda i: (i, 0)), pl.BlockSpec((10,), lambda i: (0,))
    shapes = [m.ShapeDtypeStruct((6, 10), "float32"), m.ShapeDtypeStruct((6,), "float32")]
    return pl.pallas_call(
        kernel,
        shapes,
        grid=(3,),
        in_specs=[rows, all_of, all_of],
        out_specs=[rows, pl.BlockSpec((2,), lambda i: i)],
        interpret=True,
    )(ROWS, LINE[:10], LINE[1:11])


def overhang(m, pl, tpu, gpu):
    def kernel(x, y, o):
        o[...] = x[...] + y[...]

    def sums(x, o):
        @pl.when(pl.program_id(0) == 0)
        def _():
            o[0] = 0.0

        inside = pl.program_id(0) * 4 + m.numpy.arange(4) < 13
        o[0] += m.numpy.where(inside, x[...], 0.0).sum()

    four = pl.BlockSpec((4,), lambda i: (i,))
    ints = np.arange(13, dtype=np.int32)
    add = pl.pallas_call(
        kernel,
        m.ShapeDtypeStruct((13,), "float32"),
        grid=(pl.cdiv(13, 4),),
        in_specs=[four, four],
        out_specs=four,
        interpret=True,
    )
    total = pl.pallas_call(
        sums,
        m.ShapeDtypeStruct((1,), "float32"),
        grid=(4,),
        in_specs=[four],
        out_specs=pl.BlockSpec((1,), lambda i: (0,)),
        interpret=True,
    )
    # the last step reads beyond the end; half of the result is written by no step
    some = pl.pallas_call(
        kernel,
        m.ShapeDtypeStruct((22,), "int32"),
        grid=(3,),
        in_specs=[pl.BlockSpec((4,), lambda i: i + 1)] * 2,
        out_specs=pl.BlockSpec((4,), lambda i: 2 * i),
        interpret=True,
    )
    return add(LINE, LINE), total(LINE), some(ints, ints)


def attention(m, pl, tpu, gpu):
    def kernel(q, k, v, o, top, total, acc):
        @pl.when(pl.program_id(1) == 0)
        def _():
            top[...] = m.numpy.full_like(top, -m.numpy.inf)
            total[...] = m.numpy.zeros_like(total)
            acc[...] = m.numpy.zeros_like(acc)

        s = q[...] @ k[...].T
        new = m.numpy.maximum(top[...], s.max(axis=1, keepdims=True))
        p, scale = m.numpy.exp(s - new), m.numpy.exp(top[...] - new)
        total[...] = total[...] * scale + p.sum(axis=1, keepdims=True)
        acc[...] = acc[...] * scale + p @ v[...]
        top[...] = new

        @pl.when(pl.program_id(1) == pl.num_programs(1) - 1)
        def _():
            o[...] = (acc[...] / total[...]).astype(o.dtype)

    q, k, v = A, np.concatenate([B, B], 1), np.tile(A, (2, 1))[:16]
    rows = pl.BlockSpec((4, 16), lambda i, j: (i, 0))
    keys = pl.BlockSpec((8, 16), lambda i, j: (j, 0))
    grid_spec = pl.GridSpec(
        grid=(3, 2),
        in_specs=[rows, keys, keys],
        out_specs=rows,
        scratch_shapes=[
            tpu.VMEM((4, 1), "float32"),
            tpu.VMEM((4, 1), "float32"),
            tpu.VMEM((4, 16), "float32"),
        ],
    )
    shape = m.ShapeDtypeStruct((12, 16), "float32")
    return pl.pallas_call(kernel, shape, grid_spec=grid_spec, interpret=True)(q, k, v)


def histogram(m, pl, tpu, gpu):
    def kernel(x, o):
        @pl.when(pl.program_id(0) == 0)
        def _():
            o[...] = m.numpy.zeros_like(o)

        def count(i, _):
            o[x[i]] += 1

        m.lax.fori_loop(0, 5, count, None)

        @pl.loop(0, 5, step=2)
        def _(i):
            @pl.when(x[i] > 2)
            def _():
                o[0] += 100

    x = np.array([1, 2, 3, 0, 1, 5, 5, 3, 2, 1, 4, 4, 5, 1, 0], np.int32)
    return pl.pallas_call(
        kernel,
        m.ShapeDtypeStruct((6,), "int32"),
        grid=(3,),
        in_specs=[pl.BlockSpec((5,), lambda i: (i,))],
        out_specs=pl.BlockSpec((6,), lambda i: (0,)),
        interpret=True,
    )(x)


def prefetched_scalars(m, pl, tpu, gpu):
    def kernel(which, scale, x, o):
        o[...] = x[...] * scale[pl.program_id(0)] + which[0]

    grid_spec = tpu.PrefetchScalarGridSpec(
        num_scalar_prefetch=2,
        grid=(4,),
        in_specs=[pl.BlockSpec((2, 10), lambda i, which, scale: (which[i], 0))],
        out_specs=pl.BlockSpec((2, 10), lambda i, which, scale: (i, 0)),
    )
    shape = m.ShapeDtypeStruct((8, 10), "float32")
    call = pl.pallas_call(kernel, shape, grid_spec=grid_spec, interpret=True)
    which, scale = np.array([2, 0, 1, 2], np.int32), np.array([1, 2, 3, 4], np.int32)
    return m.jit(call)(which, scale, ROWS)


def masks_and_atomics(m, pl, tpu, gpu):
    def kernel(x, o, count):
        @pl.when(pl.program_id(0) == 0)
        def _():
            o[...] = m.numpy.zeros_like(o)
            count[...] = m.numpy.zeros_like(count)

        at = pl.ds(pl.program_id(0) * 4, 4)
        mask = pl.program_id(0) * 4 + m.numpy.arange(4) < 13
        loaded = gpu.load(x.at[at], mask=mask, other=0.0)
        gpu.store(o.at[at, np.int32(1)], loaded * 2, mask=mask)
        gpu.atomic_add(count, (pl.ds(0, 2),), m.numpy.ones(2, "int32"))
        gpu.atomic_max(count, (np.int32(2),), pl.program_id(0))

    whole = pl.BlockSpec(memory_space=pl.ANY)
    shapes = m.ShapeDtypeStruct((13, 2), "float32"), m.ShapeDtypeStruct((3,), "int32")
    return pl.pallas_call(
        kernel, shapes, grid=(4,), in_specs=[whole], out_specs=(whole, whole), interpret=True
    )(LINE)


def aliases_elements_and_trees(m, pl, tpu, gpu):
    def add_one(x, o):
        o[...] = o[...] + 1

    def stencil(x, o):
        o[...] = x[: o.shape[0]] + x[2:]

    def trees(x, o, buffer):
        buffer[...] = x["a"][...] + x["b"][1][...]
        o["sum"][...] = buffer[...]
        o["both"][0][...] = buffer[...] * 2

    def scoped(x, o):
        def body(own, other):
            own[...] = x[...] * 2
            other[...] = own[...] + 1
            return other[...]

        kind = tpu.VMEM((13,), "float32")
        o[...] = pl.run_scoped(body, kind, other=kind)

    line = m.ShapeDtypeStruct((13,), "float32")
    aliased = pl.pallas_call(
        add_one,
        line,
        grid=(2,),
        in_specs=[pl.BlockSpec((5,), lambda i: i)],
        out_specs=pl.BlockSpec((5,), lambda i: i),
        input_output_aliases={0: 0},
        interpret=True,
    )
    windows = pl.pallas_call(
        stencil,
        m.ShapeDtypeStruct((12,), "float32"),
        grid=(3,),
        in_specs=[pl.BlockSpec((pl.Element(6),), lambda i: 4 * i)],
        out_specs=pl.BlockSpec((4,), lambda i: i),
        interpret=True,
    )
    tree = pl.pallas_call(
        trees,
        {"sum": line, "both": (line,)},
        scratch_shapes={"buffer": tpu.VMEM((13,), "float32")},
        interpret=True,
    )
    operands = {"a": LINE, "b": (LINE, LINE + 1)}
    own = pl.pallas_call(scoped, line, interpret=True)
    return aliased(LINE), windows(LINE), tree(operands), own(LINE)


def copies(m, pl, tpu, gpu):
    def kernel(x, o, buffer, semaphore):
        copy = tpu.make_async_copy(x.at[pl.ds(0, 4)], buffer, semaphore)
        copy.start()
        copy.wait()
        tpu.sync_copy(buffer, o.at[pl.ds(4, 4)])
        o[:4] = buffer[...] * 2

    return pl.pallas_call(
        kernel,
        m.ShapeDtypeStruct((8,), "float32"),
        in_specs=[pl.BlockSpec(memory_space=pl.ANY)],
        scratch_shapes=[tpu.VMEM((4,), "float32"), tpu.SemaphoreType.DMA],
        interpret=True,
    )(LINE)


def grids_that_are_traced(m, pl, tpu, gpu):
    def kernel(x, o):
        o[...] = x[...] + pl.program_id(0) * 10 + pl.program_id(1)

    def f(x, n):
        spec = pl.BlockSpec((2, 5), lambda i, j: (i, j))
        shape = m.ShapeDtypeStruct((6, 10), "float32")
        return pl.pallas_call(
            kernel, shape, grid=(n, 2), in_specs=[spec], out_specs=spec, interpret=True
        )(x)

    return m.jit(f)(ROWS, 3), m.jit(f)(ROWS, 2)


def corners(m, pl, tpu, gpu):
    three = pl.BlockSpec((3,), lambda i: i)

    def writes_to_operands(x, o):
        x[...] = x[...] + 1
        o[...] = x[...]

    def masked_in_two_axes(x, o):
        i, j = pl.program_id(0) * 4, pl.program_id(1) * 4
        mask = (i + m.numpy.arange(4) < 6)[:, None] & (j + m.numpy.arange(4) < 10)
        part = pl.ds(i, 4), pl.ds(j, 4)
        gpu.store(o.at[part], gpu.load(x.at[part], mask=mask, other=-1.0) * 2, mask=mask)

    def half_written(x, o, p):
        o[...] = x[...] > 3
        p[...] = m.numpy.where(o[...], x[...], 0).astype("int8")

    def run(kernel, out, *args, **kw):
        return pl.pallas_call(kernel, out, interpret=True, **kw)(*args)

    halves = [m.ShapeDtypeStruct((13,), "bool"), m.ShapeDtypeStruct((13,), "int8")]
    return (
        run(writes_to_operands, m.ShapeDtypeStruct((6, 10), "float32"), ROWS, grid=3),
        run(masked_in_two_axes, m.ShapeDtypeStruct((6, 10), "float32"), ROWS, grid=(2, 3)),
        run(half_written, halves, LINE, grid=2, in_specs=[three], out_specs=[three, three]),
        run(writes_to_operands, halves[1], np.zeros(13, np.int8), grid=(0,)),
    )


PROGRAMS = [
    matrix_product, softmax_of_rows, layer_norm, overhang, attention, histogram,
    prefetched_scalars, masks_and_atomics, aliases_elements_and_trees, copies,
    grids_that_are_traced, corners,
]  # fmt: skip


@pytest.mark.parametrize("program", PROGRAMS)
def test_kernels_match_jax(program: Any) -> None:
    ours = accnp.tree.leaves(program(*OURS))
    theirs = jax.tree.leaves(program(*THEIRS))
    for x, y in zip(ours, theirs, strict=True):
        assert x.dtype == y.dtype
        np.testing.assert_allclose(np.asarray(x), np.asarray(y), rtol=2e-5, atol=1e-6)


def test_documentation_examples_run() -> None:
    scope: dict[str, Any] = {}
    for block in re.findall(r"```python\n(.*?)```", PAGE.read_text(), flags=re.DOTALL):
        exec(compile(block, "<pallas.md>", "exec"), scope)


def test_derivatives_of_both_modes() -> None:
    def kernel(x: Any, o: Any) -> None:
        @pl.when(pl.program_id(0) == 0)
        def _() -> None:
            o[...] = accnp.numpy.zeros_like(o)

        o[...] += accnp.numpy.sin(x[...]).sum(axis=0)

    def f(x: Any) -> Any:
        rows = pl.BlockSpec((2, 10), lambda i: (i, 0))
        shape = accnp.ShapeDtypeStruct((10,), "float32")
        whole = pl.BlockSpec((10,), lambda i: 0)
        call = pl.pallas_call(kernel, shape, grid=(3,), in_specs=[rows], out_specs=whole)
        return (call(x) ** 2).sum()

    accnp.test_util.check_grads(f, (ROWS,), order=1, modes=("fwd", "rev"), rtol=1e-2, eps=1e-2)


def test_a_pipeline_within_a_kernel() -> None:
    def kernel(x: Any, o: Any) -> None:
        def body(x_block: Any, o_block: Any) -> None:
            o_block[...] = x_block[...] * 2 + pl.program_id(0)

        five = pl.BlockSpec((5,), lambda i: (i,))
        pltpu.emit_pipeline(body, grid=(3,), in_specs=[five], out_specs=[five])(x, o)

    actual = pl.pallas_call(kernel, accnp.ShapeDtypeStruct((13,), "float32"))(LINE)
    np.testing.assert_allclose(actual, LINE * 2 + np.arange(13) // 5, rtol=1e-6)


def test_a_loop_over_the_grid_is_one_program() -> None:
    def kernel(x: Any, o: Any) -> None:
        o[...] = x[...] * 2

    line = pl.BlockSpec((None, 10), lambda i: (i, 0))
    shape = accnp.ShapeDtypeStruct((6, 10), "float32")
    call = pl.pallas_call(kernel, shape, grid=(6,), in_specs=[line], out_specs=line)
    assert str(accnp.make_jaxpr(call)(ROWS)).count("scan[") == 1
    whole = pl.pallas_call(kernel, shape)  # one step needs no loop
    assert "scan[" not in str(accnp.make_jaxpr(whole)(ROWS))


def test_deprecated_forms() -> None:
    ref = accnp.new_ref(accnp.numpy.arange(4.0))
    assert pl.load(ref, (pl.dslice(1, 2),), mask=np.array([True, False]), other=7).tolist() == [
        1,
        7,
    ]
    pl.store(ref, (slice(0, 2),), np.float32(9))
    assert pl.swap(ref, 0, np.float32(3)) == 9
    assert pl.atomic_add(ref, 1, 1.0) == 9
    assert ref[...].tolist() == [3, 10, 2, 3]


def test_pallas_is_loaded_on_first_use() -> None:
    code = (
        "import sys, accnp; assert not [m for m in sys.modules if 'pallas' in m]; "
        "assert accnp.experimental.pallas.cdiv(3, 2) == 2"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
