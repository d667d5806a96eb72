"""Reductions of rows on GPUs, whose order of summation, and therefore bits, match the CPU."""

from collections import Counter

import numpy as np
import pytest
from cuda.assembler import ptxas, spilled_bytes
from cuda.interpreter import Memory, Module
from cuda.kernel_cases import Case, grid_kernels
from cuda.support import same_bits

import accnp as jnp
from accnp.compiler.ir_tools.verifier import verify
from accnp.compiler.loops.ir import For, If, Let, Load
from accnp.compiler.loops.visiting import statements
from accnp.compiler.ptx import ptx_of
from accnp.compiler.specs.launches import build_generated
from accnp.ir.kernel import CHUNK

pytestmark = pytest.mark.usefixtures("cpu_formulas")


def f4(*shape):
    return np.zeros(shape, np.float32)


def softmax(x):
    e = jnp.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def layer_norm(x, g, b):
    m = x.mean(-1, keepdims=True)
    d = x - m
    v = (d * d).mean(-1, keepdims=True)
    return d / jnp.sqrt(v + 1e-5) * g + b


LONG = 5000
PROGRAMS = {
    "sum": (lambda x: x.sum(1), f4(21, 100)),
    "sum of few": (lambda x: (x * 2).sum(1), f4(40, 9)),
    "sum of a block": (lambda x: x.sum(1), f4(5, 1024)),
    "sum of blocks": (lambda x: x.sum(1), f4(3, LONG)),
    "largest": (lambda x: x.max(1), f4(9, 333)),
    "largest of blocks": (lambda x: (x.max(1), x.min(1)), f4(3, LONG)),
    "product": (lambda x: (x * 0.1 + 1).prod(1), f4(9, 333)),
    "ints": (lambda x: (x.sum(1), x.max(1)), np.zeros((7, 300), np.int32)),
    "bytes": (lambda x: x.max(1), np.zeros((7, 300), np.uint8)),
    "any": (lambda x: (x > 2.5).any(1), f4(30, 90)),
    "doubles": (lambda x: x.sum(1), np.zeros((7, 300))),
    "complex": (lambda x: x.sum(1), np.zeros((7, 300), np.complex64)),
    "softmax": (softmax, f4(13, 200)),
    "softmax of few": (softmax, f4(21, 7)),
    "softmax of some": (softmax, f4(5, 13)),
    "softmax of a block": (softmax, f4(3, 700)),
    "softmax of a whole block": (softmax, f4(3, 1024)),
    "softmax of a block in shared memory": (lambda x: softmax(jnp.tanh(x)), f4(3, 900)),
    "softmax of blocks": (softmax, f4(2, 3000)),
    "softmax of whole blocks": (softmax, f4(2, 3072)),
    "costly": (lambda x: softmax(jnp.tanh(x)), f4(2, 3000)),
    "softmax without room": (softmax, f4(1, 25000)),
    "sum of exponentials": (lambda x: jnp.nn.logsumexp(x, 1), f4(13, 300)),
    "sum of few exponentials": (lambda x: jnp.nn.logsumexp(x, 1), f4(21, 7)),
    "sum of blocks of exponentials": (lambda x: jnp.nn.logsumexp(x, 1), f4(2, 3000)),
    "sum of all exponentials": (lambda x: jnp.nn.logsumexp(x), f4(CHUNK + 77)),
    "layer norm": (layer_norm, f4(13, 200), f4(200), f4(200)),
    "layer norm of a block": (layer_norm, f4(6, 1000), f4(1000), f4(1000)),
    "layer norm of blocks": (layer_norm, f4(2, 3000), f4(3000), f4(3000)),
    "layer norm of whole blocks": (layer_norm, f4(3, 2048), f4(2048), f4(2048)),
    "several axes": (lambda x: x[:, ::2, ::3].sum((1, 2)), f4(5, 12, 70)),
    "outer axes": (lambda x: x.sum(2), f4(3, 5, 200)),
    "beside": (lambda x, y: (x * y).sum(1), f4(13, 300), f4(300)),
    "statistics": (lambda x: (x.mean(1), x.var(1)), f4(13, 300)),
    "whole": (lambda x: (x * x).sum(), f4(3 * CHUNK + 77)),
    "whole of a chunk": (lambda x: x.max(), f4(CHUNK - 5)),
    "whole of few": (lambda x: x.sum(), f4(1500)),
    "whole of two axes": (lambda x: jnp.exp(x[:, ::2]).sum(), f4(300, 500)),
}  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_results_match_cpu_bitwise(name):
    f, *arrays = PROGRAMS[name]
    for spec, text in grid_kernels(f, *arrays):
        assert text.kernel is not None
        verify(text.kernel)
        case = Case(spec)
        expected = case.run_on_cpu(build_generated(spec))
        parts = case.scratch
        for blocks in (None, 1):
            actual = case.interpret(text, blocks)
            assert all(same_bits(a, b).all() for a, b in zip(actual, expected, strict=True)), blocks
            for k, x in case.scratch.items():
                assert same_bits(x, parts[k]).all()


def numbers(a, n, rng):
    x = rng.choice(
        [0.0, -0.0, 1, -1, np.inf, np.nan, 5], n, p=[0.3, 0.3, 0.1, 0.1, 0.05, 0.05, 0.1]
    )
    return np.where(np.arange(n) // 100 % 2, x, np.abs(np.nan_to_num(x)) * 0 * np.sign(x))


@pytest.mark.parametrize("reduction", ["max", "min", "sum"])
def test_signed_zeros_and_nan(reduction):
    ((spec, text),) = grid_kernels(lambda x: getattr(x, reduction)(1), f4(60, 100))
    case = Case(spec, values=numbers)
    expected = case.run_on_cpu(build_generated(spec))
    actual = case.interpret(text)
    assert all(same_bits(a, b).all() for a, b in zip(actual, expected, strict=True))


def loads_of(text):
    """Return how many times a kernel loads each operand."""
    lets = [s for s in statements(text.kernel.body) if isinstance(s, Let)]
    loads = [s.value.buffer for s in lets if isinstance(s.value, Load)]
    return Counter(b.name for b in loads if b in text.kernel.buffers)


@pytest.mark.parametrize(
    ("name", "loads"),
    # In registers, 32 elements each; the rest of the last block; two side by side, and the rest.
    [("softmax", 8), ("softmax of blocks", 32 + 32), ("layer norm of blocks", 32 + 32),
     ("costly", 2 + 2)],
)  # fmt: skip
def test_an_operand_is_read_once(name, loads):
    f, *arrays = PROGRAMS[name]
    ((_, text),) = grid_kernels(f, *arrays)
    assert set(loads_of(text).values()) - {1} == {loads}
    assert (4096 in [b.length for b in text.kernel.shared]) == (name == "costly")


def ifs_of(text):
    return sum([isinstance(s, If) for s in statements(text.kernel.body)])


def test_rows_of_a_block_stay_in_registers():
    ((_, text),) = grid_kernels(softmax, f4(3, 1024))
    assert not text.kernel.shared
    assert ifs_of(text) == 1  # all elements are there, if the row is
    ((_, text),) = grid_kernels(softmax, f4(3, 1000))
    assert not text.kernel.shared
    assert ifs_of(text) == 1 + 4
    ((_, text),) = grid_kernels(lambda x: softmax(jnp.tanh(x)), f4(3, 1000))
    assert 8192 in [b.length for b in text.kernel.shared]  # that much code is a loop


def test_number_of_blocks_covers_all_rows():
    for shape, blocks in {(40000, 1024): 10000, (40000, 3000): 40000, (1 << 20, 20): 5141}.items():
        ((_, text),) = grid_kernels(softmax, f4(*shape))
        assert text.blocks == blocks
        # Long rows have no loop over rows, so that many blocks must be launched.
        (loop,) = [s for s in text.kernel.body if isinstance(s, For)]
        assert text.once == (shape[1] > 1000) == (loop.spread == "once")


def test_multiplication_by_inverse_matches_division_bitwise():
    rng = np.random.default_rng(0)
    bits = rng.integers(0, 1 << 32, (2, 3000), np.uint32)
    any_x, any_d = bits.view(np.float32)
    # Quotients that are half-way between two floats: below the normal ones there are such.
    m, n = rng.integers(1, 1 << 12, (2, 3000)).astype(np.float32)
    half = np.ldexp(m * n, -149)
    # Dividends next to the product of a divisor and what is half-way between two floats.
    d, odd = rng.integers(1 << 23, 1 << 24, (2, 3000)) * [[1], [2]] + [[0], [1]]
    near, d = (d * odd).astype(np.float32), d.astype(np.float32)
    edges = np.array([0, -0.0, np.inf, -np.inf, np.nan, 1, -3, 1e-45, 3.4e38, 1.2e-38], np.float32)
    x = np.concatenate([any_x, half, -half, near, np.nextafter(near, d), np.repeat(edges, 10)])
    d = np.concatenate([any_d, n + n, -6 * n, d, d, np.tile(edges, 10)], dtype=np.float32)
    source = "def kernel(x, d, y):\n    k = thread()\n    y[k] = divided(x[k], inverse(d[k]))\n"
    kernel = ptx_of(source, ("f4*",) * 3)
    memory = Memory()
    places = [memory.put(a) for a in (x, d, x)]
    Module(kernel.text).launch(kernel.name, x.size // 100, 100, places, memory)
    with np.errstate(all="ignore"):
        assert same_bits(memory.get(places[2], x), x / d).all()


def test_rows_of_a_block_for_each_warp_stay_in_registers():
    for length, threads in {2048: 64, 16384: 512}.items():
        ((_, text),) = grid_kernels(softmax, f4(3000, length))
        assert text.threads == threads
        assert [(b.dtype.token, b.length) for b in text.kernel.shared] == [("f4", 128)] * 2


@pytest.mark.parametrize("length", [9999, 16384])
def test_rows_of_doubles_stay_in_registers(length):
    """With all loads of a row first, each thread spilled up to 1340 bytes."""
    x, g = np.zeros((3, length)), np.zeros(length)
    with jnp.enable_x64(True):
        ((_, text),) = grid_kernels(layer_norm, x, g, g)
    assert text.signature[:4] == ("f8*",) * 4
    assert text.threads == 32 * -(-length // 1024)
    kernel = ptx_of(text.source, text.signature, threads=text.threads, program=text.kernel)
    assert not ptxas() or spilled_bytes(kernel.text) < 128
