"""Maps whose elements are distributed over the threads of a GPU: the pass, and the values of its
kernels."""

from __future__ import annotations

import numpy as np
import pytest

from accnp.compiler.ir_tools.interpreter import AlignmentError, run
from accnp.compiler.ir_tools.parser import parse_kernel
from accnp.compiler.ir_tools.verifier import VerificationError, verify
from accnp.compiler.loops.ir import Kernel
from accnp.compiler.loops.printer import print_kernel
from accnp.compiler.numba.source import numba_source
from accnp.compiler.passes.spread import spread
from accnp.compiler.unsupported import Unsupported

# Of every width: bytes, words, and numbers of which two are an access; and a gather.
MAP = """
kernel k(a: b1[], b: f4[], c: f8[], d: i8[], e: f4[], x: f8[], y: f4[], s) for lo..hi {
  let q: f4 = e[0:i8]
  for i in lo..hi independent {
    let t: b1 = a[i]
    let u: f4 = b[i]
    let v: f8 = c[<s*i + 2>]
    let w: i8 = d[i]
    let g: f4 = b[w]
    y[i] = select(t, mul(u, q), g)
    let z: f8 = add(v, f8(g))
    x[i] = z
  }
}
"""
WAYS = {"one": (1, False), "apart": (4, False), "adjacent": (4, True)}


def arrays(n: int, shift: int = 0) -> dict[str, np.ndarray]:
    """Operands and results of n elements, which begin this many elements after a cache line."""
    rng = np.random.default_rng(n)

    def placed(x: np.ndarray) -> np.ndarray:
        room = np.zeros(x.nbytes + 128, np.uint8)
        begin = -room.ctypes.data % 64 + shift * x.itemsize
        view = room[begin : begin + x.nbytes].view(x.dtype)
        view[:] = x
        return view

    values = {
        "a": rng.random(n) < 0.5,
        "b": rng.standard_normal(n).astype(np.float32),
        "c": rng.standard_normal(3 * n + 2),
        "d": rng.permutation(n),
        "e": np.array([1.5], np.float32),
        "x": np.zeros(n),
        "y": np.zeros(n, np.float32),
    }
    return {name: placed(x) for name, x in values.items()}


def spread_over(way: str, threads: int = 8) -> Kernel:
    kernel = spread(parse_kernel(MAP), threads, *WAYS[way])
    verify(kernel)
    return kernel


@pytest.mark.parametrize("shift", [0, 1])
@pytest.mark.parametrize("n", [1, 3, 4, 32, 71])
@pytest.mark.parametrize("way", WAYS)
def test_all_elements_are_computed_as_before(way: str, n: int, shift: int):
    expected, actual = arrays(n, shift), arrays(n, shift)
    run(parse_kernel(MAP), expected, {"s": 3}, 0, n)
    run(spread_over(way), actual, {"s": 3}, 0, n)
    for name, x in expected.items():
        assert (x == actual[name]).all(), name
    assert actual["x"].any()


@pytest.mark.parametrize("way", WAYS)
def test_printed_text_parses_to_the_same_kernel(way: str):
    kernel = spread_over(way)
    assert parse_kernel(print_kernel(kernel)) == kernel


def test_adjacent_elements_are_few_accesses():
    text = print_kernel(spread_over("adjacent"))
    vectors, single = text.split("in <4*groups + 0>..hi")
    loads = [line.split("= ")[1] for line in vectors.split("\n") if line.startswith("    load ")]
    assert loads == ["a[i]", "b[i]", "d[i]", "d[<1*i + 2>]"]
    stores = [line.split(" =")[0] for line in vectors.split("\n") if "    store " in line]
    assert stores == [f"    store {x}]" for x in ("y[i", "x[i", "x[<1*i + 2>")]
    assert vectors.count("= c[<s*i + ") == 4  # not adjacent, and neither is what is gathered
    assert [vectors.count(f"let g{k}: f4 = b[w{k}]") for k in ("", "_0", "_1", "_2")] == [1] * 4
    assert "load " not in single
    test = "aligned(&a[0:i8]), aligned(&b[0:i8])), aligned(&d[0:i8])), aligned(&y[0:i8])), aligned"
    assert test in vectors


def test_distant_elements_are_loaded_first():
    body = print_kernel(spread_over("apart")).split("spread threads {")[1].split("}")[0]
    lines = [line.strip() for line in body.strip().split("\n")]
    early = [line for line in lines[:16] if " = " in line]
    assert all("let " in x and x.split(" = ")[1][:2] in ("a[", "b[", "c[", "d[") for x in early)
    assert "let u_2: f4 = b[<1*b_0 + 1*t + 24>]" in early
    assert lines[16].startswith("let g: f4 = b[w]")


def test_printed_source_reads_the_thread_index():
    text = numba_source(spread_over("adjacent"))
    assert text.startswith("def k(a, b, c, d, e, x, y, hi, s):\n")
    assert (
        "    u = thread()\n    while u < groups:\n        i = u * 4\n        a_ = load4(a, u * 4)\n"
        in text
    )
    assert "        t_0 = b1(part(a_, 1))\n" in text
    assert "        store2(x, u * 4 + 2, " in text
    assert "    i_0 = groups * 4 + thread()\n    while i_0 < hi:\n" in text
    text = numba_source(spread_over("apart"))
    assert "    b_0 = block_of_grid() * 32\n" in text
    assert "        t = thread_of_block()\n        t_0 = a[b_0 + t]\n" in text


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("lo..hi independent", "0:i8..hi independent"),
        ("    let t: b1 = a[i]\n", "    let t: b1 = a[i]\n    if t { x[i] = 1.0:f8 }\n"),
        ("  let q", "  stack r: f4[8]\n  let q"),
        ("  for i", "  x[lo] = 1.0:f8\n  for i"),
    ],
)
def test_other_kernels_are_refused(old: str, new: str):
    with pytest.raises(Unsupported):
        spread(parse_kernel(MAP.replace(old, new)), 8, 4, True)


VECTORS = """
kernel k(a: f4[], b: c8[], s) for lo..hi threads 32 {
  for i in 0:i8..hi step 4 independent spread grid {
    load x: f4, y: f4, z: f4, w: f4 = a[i]
    store a[i] = w, z, y, x
  }
  for t in 0:i8..32:i8 independent spread threads { let q: f4 = a[t] }
}
"""


def test_elements_of_an_access_are_those_of_one_step():
    kernel = parse_kernel(VECTORS)
    verify(kernel)
    x = np.zeros(40, np.float32)
    x = x[-x.ctypes.data % 16 // 4 :][:36]
    x[:] = np.arange(36)
    run(kernel, {"a": x, "b": np.zeros(1, np.complex64)}, {"s": 0}, 0, 8)
    assert list(x[:8]) == [3, 2, 1, 0, 7, 6, 5, 4]
    with pytest.raises(AlignmentError, match=r"a\[4\] is not aligned for 4 elements"):
        run(kernel, {"a": x[1:], "b": np.zeros(1, np.complex64)}, {"s": 0}, 0, 8)
    with pytest.raises(IndexError, match=r"a\[7\] of 6 elements"):
        run(kernel, {"a": x[:6], "b": np.zeros(1, np.complex64)}, {"s": 0}, 0, 8)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (" threads 32 {", " {", "a has vectors in a kernel for processors"),
        (" threads 32 {", " threads 64 {", "t is not an index of the 64 threads"),
        ("0:i8..32:i8", "0:i8..hi", "t is not an index of the 32 threads"),
        ("0:i8..hi step", "lo..hi step", "lo is used where it is not defined"),
        (
            " independent spread threads { let q: f4 = a[t] }",
            " spread threads carry c: i8 = s then d { next c = c }",
            "t is spread, and carries values from step to step",
        ),
        (" step 4 independent", " step 2 independent", "write a, and use it at several places"),
        ("w, z, y, x", "z, y, x", "access cannot have 3 elements of a"),
        ("w, z, y, x", "w, z, y, 1.0:f8", "an element of a is f8 instead of f4"),
        ("load x: f4,", "load x: f8,", "x has another type"),
        ("store a[i] = w, z, y, x", "store b[i] = w, z", "access cannot have 2 elements of b"),
        ("q: f4", "part: f4", "the name part has a meaning"),
        ("for lo..hi threads", "for lo..hi nontemporal s threads", "what only processors have"),
    ],
)
def test_malformed_kernels_are_refused(old: str, new: str, message: str):
    with pytest.raises(VerificationError, match=message):
        verify(parse_kernel(VECTORS.replace(old, new)))
