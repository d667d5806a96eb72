"""Elementwise kernels on GPUs, compared with the CPU bitwise for several layouts and grid sizes."""

import numpy as np
import pytest
from cuda.kernel_cases import Case, grid_kernels
from cuda.support import same_bits

import accnp as jnp
from accnp.compiler.specs.launches import build_generated

pytestmark = pytest.mark.usefixtures("cpu_formulas")


def f4(*shape):
    return np.linspace(-2, 3, int(np.prod(shape)), dtype=np.float32).reshape(shape)


def ints(*shape: int, dtype: type[np.integer] = np.int32) -> np.ndarray:
    return np.arange(int(np.prod(shape))).reshape(shape).astype(dtype)


PROGRAMS = {
    "flat": (lambda x, y: x * 2 + y, f4(1003), f4(1003)),
    "two results": (lambda x: (x + 1, jnp.exp(x)), f4(37, 11)),
    "long": (lambda x: jnp.sin(x) * jnp.tanh(x) + jnp.expm1(x) * jnp.log(x * x), f4(501)),
    "row beside": (lambda x, y: x + y, f4(20, 32), f4(32)),
    "column beside": (lambda x, y: x * y, f4(20, 32), f4(20, 1)),
    "odd rows": (lambda x, y: x + y, f4(20, 33), f4(33)),
    "strided": (lambda x: x[::2, ::-1] * 3, f4(12, 34)),
    "part": (lambda x: x[1:, 3:] * 3, f4(12, 35)),
    "four axes": (lambda x, y: x + y, f4(2, 3, 4, 8), f4(3, 1, 8)),
    "double": (lambda x: x * x + 1, f4(77).astype(np.float64)),
    "mixed": (lambda x, y: x * y, f4(77).astype(np.float64), ints(77, dtype=np.int8)),
    "bools": (lambda x, y: (x > 0) & y, f4(77), ints(77) % 3 == 0),
    "choice": (lambda c, x, y: jnp.where(c, x, y), ints(77) % 3 == 0, f4(77), f4(77)),
    "indices": (lambda x: x + jnp.arange(x.shape[1]), f4(9, 24)),
    "complex": (lambda x: x * x + 1, (f4(77) + 1j).astype(np.complex64)),
    "bytes": (lambda x: x + 7, ints(1001, dtype=np.uint8)),
    "gather": (lambda x, i: x[i] * 2, f4(50, 6), ints(20) * 7 % 50),
    "scalar": (lambda x: x * 2 + 1, f4()),
    "transposed": (lambda x: x.T + 1, f4(40, 70)),
    "transposed both": (lambda x, y: x.T * y + x.T, f4(33, 65), f4(65, 33)),
    "inner pair": (lambda x: x.transpose(0, 2, 1) * 2, f4(3, 40, 50)),
    "short": (lambda x, y: x + y, f4(50, 3), f4(50, 1)),
    "stencil": (
        lambda x: x[1:-1, :-2] + x[1:-1, 2:] + x[:-2, 1:-1] + x[2:, 1:-1], f4(50, 255)
    ),
    "planes": (lambda x, y: x[:, 1:, 3:] * y, f4(3, 36, 258), f4(35, 1)),
    "every other column": (lambda x: x[1:, ::-2] + 1, f4(33, 508)),
    "indices of rows": (lambda x: x[:, 1:] + jnp.arange(16)[:, None] * 3, f4(16, 250)),
    "rows chosen": (lambda x, i: x[i][:, 1:] * 2, f4(50, 254), ints(33) * 7 % 50),
    "part of bools": (lambda x: ~x[:, 5:], ints(17, 260) % 3 == 0),
    "random": (lambda x: jnp.bitwise_xor(x * 5, x >> 3), ints(999, dtype=np.uint32)),
}  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_results_match_cpu_bitwise(name):
    f, *arrays = PROGRAMS[name]
    for spec, text in grid_kernels(f, *arrays):
        case = Case(spec)
        expected = case.run_on_cpu(build_generated(spec))
        for blocks in (None, 1, 3):
            actual = case.interpret(text, blocks)
            assert all(same_bits(a, b).all() for a, b in zip(actual, expected, strict=True)), blocks
        actual = case.interpret(text, shift=max(a.dtype.itemsize for a in spec.accesses))
        assert all(same_bits(a, b).all() for a, b in zip(actual, expected, strict=True))


@pytest.mark.parametrize(
    ("name", "loads", "stores"),
    [("flat", 2, 1), ("two results", 1, 2), ("row beside", 2, 1), ("double", 2, 1),
     ("bools", 1, 0), ("mixed", 2, 1)],
)  # fmt: skip
def test_four_elements_are_one_access(name, loads, stores):
    """Four doubles are two accesses, and four bytes are one word."""
    f, *arrays = PROGRAMS[name]
    ((spec, text),) = grid_kernels(f, *arrays)
    case = Case(spec)
    case.interpret(text)
    ptx = case.ptx.text
    kinds = [line.split()[0] for line in ptx.split("\n") if ".v2." in line or ".v4." in line]
    assert sum(k.startswith("ld.global") for k in kinds) == loads
    assert sum(k.startswith("st.global") for k in kinds) == stores


@pytest.mark.parametrize("name", ["stencil", "planes", "every other column"])
def test_strided_operands_are_processed_in_patches(name):
    """Operands that cannot be loaded four elements at a time are processed in patches.

    Each of 32 lanes loads eight elements, and the index divisions are done once per patch.
    """
    f, *arrays = PROGRAMS[name]
    ((_, text),) = grid_kernels(f, *arrays)
    whole = text.source.split("        else:")[0]
    assert whole.split("if ((r + 1) <")[1].count(" = a1[") == 8
    assert whole.count("quotient(") == (2 if name == "planes" else 1)
    assert text.blocks == text.extent


def test_small_arrays_use_32_bit_indices():
    """Indices of small arrays are computed with 32 bits in the PTX."""
    f, *arrays = PROGRAMS["odd rows"]
    ((spec, text),) = grid_kernels(f, *arrays)
    case = Case(spec)
    case.interpret(text)
    assert "mul.wide.u32" in case.ptx.text
    assert "mul.lo.s64" not in case.ptx.text.split("ld.global")[-1]


def test_source_does_not_depend_on_sizes():
    for name in ("flat", "two results", "strided", "mixed", "transposed", "stencil"):
        f, *arrays = PROGRAMS[name]
        larger = [np.concatenate([x, x, x]) for x in arrays]
        texts = {t.source for xs in (arrays, larger) for _, t in grid_kernels(f, *xs)}
        assert len(texts) == 1
