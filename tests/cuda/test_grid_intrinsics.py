"""Loop IR intrinsics for cooperating GPU threads: shared memory, barriers, shuffles, votes and
atomic updates."""

import numpy as np
import pytest
from cuda.assembler import assembler_errors, ptxas
from cuda.interpreter import Memory, Module

from accnp.compiler.ir_tools.interpreter import run
from accnp.compiler.ir_tools.parser import parse_kernel
from accnp.compiler.ir_tools.verifier import VerificationError, verify
from accnp.compiler.loops.printer import print_kernel
from accnp.compiler.numba.source import numba_source
from accnp.compiler.ptx import ptx_of

REVERSED = """
kernel kernel(x: i4[], y: i4[]) for lo..n threads 64 {
  shared tile: i4[64]
  for b in 0:i8..n step 64 independent spread blocks {
    for t in 0:i8..64:i8 independent spread threads {
      let place: i8 = <1*b + 1*t + 0>
      tile[t] = x[place]
    }
    do barrier()
    for u in 0:i8..64:i8 independent spread threads {
      y[<1*b + 1*u + 0>] = tile[<-1*u + 63>]
    }
    do barrier()
  }
}
"""
SUMS = """
kernel kernel(x: f8[], sums: f8[], most: i4[], odd: b1[], n) for lo..hi in order threads 64 {
  let i: i8 = thread()
  let k: i4 = i4(x[i])
  let zero: i8 = 0:i8
  do atomic_max(&most[zero], 0:i8, k)
  let x1: f8 = x[i]
  do y1: f8 = shuffle_xor(x1, 16:i8)
  let x2: f8 = add(x1, y1)
  do y2: f8 = shuffle_xor(x2, 8:i8)
  let x3: f8 = add(x2, y2)
  do y3: f8 = shuffle_down(x3, 4:i8)
  let x4: f8 = add(x3, y3)
  do y4: f8 = shuffle_down(x4, 2:i8)
  let x5: f8 = add(x4, y4)
  do y5: f8 = shuffle_down(x5, 1:i8)
  let x6: f8 = add(x5, y5)
  do first: f8 = shuffle_at(x6, 0:i8)
  sums[i] = first
  do found: b1 = any_lane(eq(x1, 40.0:f8))
  odd[i] = found
}
"""
DIVIDED = """
kernel kernel(x: f4[], y: f4[], p: i8[], q: i8[], m, s) for lo..hi in order threads 32 {
  let i: i8 = thread()
  let r: f8 = inverse(7.0:f4)
  load a: f4, b: f4 = x[<2*i + 0>]
  store y[<2*i + 0>] = divided(a, r), divided(b, r)
  q[i] = quotient(p[i], m, s)
}
"""


def launch(text, arrays, ints, blocks, threads):
    """Return the arrays after a launch of the kernel, and check the same for its printed source."""
    kernel = parse_kernel(text)
    assert parse_kernel(print_kernel(kernel)) == kernel
    verify(kernel)
    source = numba_source(kernel)
    tokens = {b.name: f"{b.dtype.token}*" for b in kernel.buffers}
    signature = tuple([tokens.get(a.name, "i8") for a in kernel.parameters])
    runs = []
    for program in (kernel, None):
        ptx = ptx_of(source, signature, threads=threads, program=program)
        if ptxas():
            assert assembler_errors([ptx.text]) == []
        memory = Memory()
        places = [memory.put(a) for a in arrays]
        Module(ptx.text).launch(ptx.name, blocks, threads, [*places, *ints], memory)
        runs.append([memory.get(p, a) for p, a in zip(places, arrays, strict=True)])
    for one, other in zip(*runs, strict=True):
        assert one.tobytes() == other.tobytes()
    return runs[0]


def test_a_block_shares_memory():
    x = np.arange(192, dtype=np.int32)
    _, y = launch(REVERSED, [x, np.zeros_like(x)], [192], 2, 64)
    expected = x.reshape(3, 64)[:, ::-1].ravel()
    assert (y == expected).all()
    arrays = {"x": x, "y": np.zeros_like(x)}
    run(parse_kernel(REVERSED), arrays, {}, 0, 192)
    assert (arrays["y"] == expected).all()


def test_lanes_of_a_warp_and_atomic_updates():
    x = np.arange(64.0)
    like = [np.zeros(64), np.zeros(1, np.int32), np.zeros(64, bool)]
    _, sums, most, odd = launch(SUMS, [x, *like], [64], 1, 64)
    assert (sums == x.reshape(2, 32).sum(1).repeat(32)).all()
    assert most == 63
    assert (odd == (np.arange(64) >= 32)).all()


def test_divisions_by_the_same_number():
    x, p = np.linspace(-9, 9, 64, dtype=np.float32), np.arange(32) * 67108863
    m, s = 2454267027, 34  # of 7
    _, y, _, q = launch(DIVIDED, [x, np.zeros_like(x), p, np.zeros_like(p)], [m, s], 1, 32)
    assert (y == x / np.float32(7)).all()
    assert (q == p // 7).all()


def test_grid_intrinsics_are_refused_on_cpus():
    text = REVERSED.replace("threads 64 {", "{").replace(" spread blocks", "")
    text = text.replace(" spread threads", "")
    with pytest.raises(VerificationError, match="memory that a block shares"):
        verify(parse_kernel(text))
    text = text.replace("  shared tile: i4[64]\n", "  stack tile: i4[64]\n")
    with pytest.raises(VerificationError, match="barrier in a kernel for processors"):
        verify(parse_kernel(text))


def test_interpreter_synchronizes_threads():
    text = REVERSED.replace(
        "      tile[t] = x[place]\n", "      tile[t] = x[place]\n      do barrier()\n"
    )
    arrays = {"x": np.arange(192, dtype=np.int32), "y": np.zeros(192, np.int32)}
    run(parse_kernel(text), arrays, {}, 0, 192)
    assert (arrays["y"] == arrays["x"].reshape(3, 64)[:, ::-1].ravel()).all()
