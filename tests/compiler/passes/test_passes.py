"""Each pass on small kernels in text, and the pipeline."""

from __future__ import annotations

import numpy as np
import pytest

import accnp
import accnp.numpy
from accnp.compiler import pipeline
from accnp.compiler.ir_tools.interpreter import run
from accnp.compiler.ir_tools.parser import parse_kernel
from accnp.compiler.ir_tools.verifier import VerificationError, verify
from accnp.compiler.loops.ir import Const, Kernel
from accnp.compiler.loops.printer import print_kernel
from accnp.compiler.loops.types import F4
from accnp.compiler.loops.visiting import map_expr, map_statement, replace_loops
from accnp.compiler.passes.fix_sizes import fix_sizes
from accnp.compiler.passes.inline_indices import inline_indices
from accnp.compiler.passes.lower_reductions import lower_reductions
from accnp.compiler.passes.unroll import unroll
from accnp.compiler.passes.vectorize import vectorize
from accnp.compiler.pipeline import Target, bisect, run_passes

ROWS = """
kernel rows(a0: f4[], a1: f4[], n0) for lo..hi {
  for o in lo..hi {
    for b in 0:i8..n0 step 1024 carry acc: f8 = 0.0:f8 then total {
      let m: i8 = fmin(<1*n0 + -1*b + 0>, 1024:i8)
      reduce j in 0..m {
        let q: i8 = <1*b + 1*j + 0>
        let t: f4 = a0[<n0*o + 1*q + 0>]
        reduction sum r: f4 of VALUE
      }
      next acc = add(acc, f8(r))
    }
    a1[o] = f4(total)
  }
}
"""
TARGET = Target(64)


def upto(name: str) -> int:
    """How many passes there are up to one."""
    return [*pipeline.PASSES].index(name) + 1


def body_of(text: str) -> str:
    return " ".join(text.split("{", 1)[1].split())


@pytest.mark.parametrize("n", [0, 1, 5, 1500])
def test_sizes_are_fixed(n: int):
    """One block of a row is no loop, and none is its first value."""
    kernel = parse_kernel(ROWS.replace("VALUE", "mul(t, f4(q))"))
    (size,) = kernel.integers
    sizes = {kernel.first: 0, kernel.last: 3, size: n}
    sized = fix_sizes(kernel, sizes)
    verify(sized)
    assert sized.sized
    text = print_kernel(sized)
    assert text.count("for b in") == (n == 1500)
    assert ("reduce" in text) == (n > 0)
    assert "n0" not in body_of(text)
    x = np.linspace(-1, 1, 3 * n, dtype=np.float32)
    outputs = np.zeros((2, 3), np.float32)
    for k, out in zip((kernel, sized), outputs, strict=True):
        run(k, {"a0": x, "a1": out}, {"n0": n}, 0, 3)
    np.testing.assert_array_equal(*outputs)


@pytest.mark.parametrize(("n", "left"), [(1, "a[0:i8] = 2.0:f4"), (2, "a[0:i8] = 3.0:f4")])
def test_conditions_of_sizes_are_decided(n: int, left: str):
    text = """
    kernel k(a: f4[], n) for lo..hi {
      if eq(n, 1:i8) { let x: f4 = 2.0:f4 } else { let y: f4 = 3.0:f4 } join z: f4 = x else y
      for i in lo..hi { a[i] = z }
    }
    """
    kernel = parse_kernel(text)
    sized = fix_sizes(kernel, {kernel.first: 0, kernel.last: 1, kernel.integers[0]: n})
    assert body_of(print_kernel(sized)).startswith(left)


def test_indices_are_inlined():
    text = print_kernel(inline_indices(parse_kernel(ROWS.replace("VALUE", "mul(t, f4(q))"))))
    assert "let q" not in text
    assert "a0[<n0*o + 1*b + 1*j + 0>]" in text
    assert "mul(t, f4(<1*b + 1*j + 0>))" in text


def test_non_affine_products_are_not_inlined():
    text = """
    kernel k(a: f4[], n) for lo..hi {
      for i in lo..hi {
        let q: i8 = <1*i + n*lo + 0>
        a[<n*q + 0>] = 1.0:f4
      }
    }
    """
    inlined = inline_indices(parse_kernel(text))
    verify(inlined)
    assert "let q" in print_kernel(inlined)


def test_reductions_of_memory_need_no_buffer():
    lowered = lower_reductions(inline_indices(parse_kernel(ROWS.replace("VALUE", "t"))))
    assert "reduction sum r: f4 = a0[<n0*o + 1*b + 0>] extent m" in print_kernel(lowered)
    assert not lowered.stack


def test_reductions_of_values_use_a_buffer():
    lowered = lower_reductions(inline_indices(parse_kernel(ROWS.replace("VALUE", "mul(t, t)"))))
    text = body_of(print_kernel(lowered))
    assert text.startswith("stack r_values: f4[1024]")
    assert "for j in 0:i8..m independent {" in text
    assert "r_values[j] = mul(t, t) }" in text
    assert "reduction sum r: f4 = r_values[0:i8] extent m" in text


def test_several_reductions_share_their_steps():
    text = """
    kernel k(a: f4[], y: f4[], n) for lo..hi {
      heap row: f4[n]
      reduce j in 0..n {
        let t: f4 = a[j]
        let unused: f8 = f8(t)
        let u: f4 = sq(t)
        let v: f4 = neg(t)
        row[j] = u
        y[j] = u
        reduction sum wide r: f8 of t
        reduction max s: f4 of v
        reduction min w: f4 of v
        reduction sum z: f4 of u
      }
      y[lo] = add(f4(r), add(s, add(w, z)))
    }
    """
    lowered = run_passes(parse_kernel(text), TARGET, upto("lower_reductions"), check=True)
    text = body_of(print_kernel(lowered))
    assert "unused" not in text
    assert [b.name for b in lowered.stack] == ["s_values"]
    assert "reduction sum wide r: f8 = a[0:i8] extent n" in text
    assert "reduction max s: f4 = s_values[0:i8] extent n" in text
    assert "reduction min w: f4 = s_values[0:i8] extent n" in text
    assert "reduction sum z: f4 = row[0:i8] extent n" in text


def test_reduction_reads_memory_before_the_steps_change_it():
    text = """
    kernel k(a: f4[], y: f4[], n) for lo..hi {
      reduce j in 0..n {
        let t: f4 = a[j]
        a[j] = neg(t)
        reduction sum r: f4 of t
      }
      y[lo] = r
    }
    """
    lowered = run_passes(parse_kernel(text), TARGET, check=True)
    assert "reduction sum r: f4 = r_values[0:i8] extent n" in print_kernel(lowered)


def test_reductions_at_computed_indices_use_a_buffer():
    rows = ROWS.replace("let q: i8 = <1*b + 1*j + 0>", "let q: i8 = mul(j, j)")
    rows = rows.replace("<n0*o + 1*q + 0>", "<1*j + 1*q + 0>").replace("VALUE", "t")
    lowered = run_passes(parse_kernel(rows), TARGET, check=True)
    assert "stack r_values: f4[1024]" in print_kernel(lowered)


def test_buffers_of_reductions_have_new_names():
    rows = ROWS.replace("VALUE", "mul(t, t)").replace("a0", "r_values")
    lowered = run_passes(parse_kernel(rows), TARGET, check=True)
    assert "stack r_values_0: f4[1024]" in print_kernel(lowered)


MAP = """
kernel k(a0: f4[], a1: f4[], a2: f8[]) for lo..hi {
  for i in lo..hi independent {
    let t: f4 = a0[i]
    a1[i] = VALUE
  }
}
"""


@pytest.mark.parametrize(
    ("value", "vector_bytes", "expected"),
    [
        ("add(t, t)", 64, "vector(32, tail, nontemporal, peel)"),
        ("add(t, t)", 32, "vector(16, tail, nontemporal, peel)"),
        ("tanh(t)", 64, "vector(64, tail, nontemporal, peel)"),  # four vectors side by side
        ("tanh(exp(sin(t)))", 64, "vector(64, masked, nontemporal)"),
        ("f4(a2[i])", 64, "vector(16, tail, nontemporal, peel)"),
    ],
)
def test_lanes(value: str, vector_bytes: int, expected: str):
    kernel = parse_kernel(MAP.replace("VALUE", value))
    assert expected in print_kernel(vectorize(kernel, vector_bytes))
    assert "vector" not in print_kernel(vectorize(kernel, 0))


def test_loops_over_buffers_on_the_stack_need_no_mask():
    text = """
    kernel k(a: f4[], n) for lo..hi {
      stack s: f4[1024]
      stack t: f4[1024]
      for i in 0:i8..n independent { s[i] = sq(t[i]) }
      for i2 in 0:i8..n independent { t[i2] = a[i2] }
    }
    """
    vectorized = print_kernel(vectorize(parse_kernel(text), 64))
    assert "for i in 0:i8..n independent vector(16, whole)" in vectorized
    assert "for i2 in 0:i8..n independent vector(16, tail)" in vectorized


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("a1[<1*j + n*o + 0>] = a0[j]", "vector(16, tail, nontemporal, peel)"),
        ("a1[<1*j + n*o + 0>] = a0[<2*j + 1>]", "vector(16, tail, nontemporal, peel)"),
        ("s[j] = a0[j]", "vector(16, tail)"),  # memory that is read again
    ],
)
def test_rows_of_results_are_stored_non_temporally(body: str, expected: str):
    text = f"""
    kernel k(a0: f4[], a1: f4[], n) for lo..hi {{
      stack s: f4[1024]
      for o in lo..hi {{
        for j in 0:i8..n independent {{ {body} }}
      }}
    }}
    """
    assert f"independent {expected} {{" in print_kernel(vectorize(parse_kernel(text), 64))


def test_results_that_are_read_again_stay_in_the_caches():
    text = """
    kernel k(a0: f4[], a1: f4[], n) for lo..hi {
      for o in lo..hi {
        for j in 0:i8..n independent { a1[<1*j + n*o + 0>] = a0[j] }
        reduction sum r: f4 = a1[<n*o + 0>] extent n
        a0[o] = r
      }
    }
    """
    assert "independent vector(16, tail) {" in print_kernel(vectorize(parse_kernel(text), 64))


def test_reduction_results_use_temporal_stores():
    text = """
    kernel k(a0: f4[], a1: f4[], n) for lo..hi {
      stack s: f4[1024]
      for o in lo..hi {
        for j in 0:i8..n independent { a1[<1*j + n*o + 0>] = mul(a0[j], s[j]) }
      }
    }
    """
    assert "independent vector(16, tail) {" in print_kernel(vectorize(parse_kernel(text), 64))


COLUMNS = """
kernel k(a: f4[], b: f4[], y: f4[], z: f4[], n, rows) for lo..hi {
  stack sums: f4[1024]
  for j in 0:i8..n independent { sums[j] = 0.0:f4 }
  for r in lo..rows interchangeable {
    let t: f4 = b[r]
    for j_0 in 0:i8..n independent {
      let u: f4 = a[<1*j_0 + n*r + 0>]
      STORE
      sums[j_0] = add(sums[j_0], mul(t, u))
    }
  }
  for j_1 in 0:i8..n independent { y[j_1] = sums[j_1] }
}
"""


def test_rows_are_joined_four_at_a_time():
    lowered = run_passes(
        parse_kernel(COLUMNS.replace("STORE", "")), TARGET, upto("join_rows"), check=True
    )
    text = print_kernel(lowered)
    group = text[text.index("step 4 {") : text.index("for r in rest..rows {")]
    assert group.count("= b[") == group.count("= a[") == 4
    assert group.count("sums[j_0_0] = ") == 1
    assert group.count("add(sums[j_0_0], ") == 1


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (" interchangeable", ""),
        ("let u:", "let v: f4 = sq(t) let w: f4 = sq(v) let x: f4 = sq(w) let u:"),  # long
        ("0:i8..n independent {\n      let u", "0:i8..r independent {\n      let u"),
    ],
)
def test_other_rows_are_joined_one_after_the_other(old: str, new: str):
    kernel = parse_kernel(COLUMNS.replace("STORE", "").replace(old, new))
    assert "step 4" not in print_kernel(run_passes(kernel, TARGET, check=True))


@pytest.mark.parametrize("rows", [0, 1, 3, 4, 5, 8, 11])
def test_joined_rows_have_the_same_bits(rows: int):
    kernel = parse_kernel(COLUMNS.replace("STORE", "z[<1*j_0 + n*r + 0>] = neg(u)"))
    assert "step 4" in print_kernel(run_passes(kernel, TARGET, check=True))
    outputs = []
    for count in (0, len(pipeline.PASSES)):
        rng = np.random.default_rng(0)
        a, b = (rng.normal(size=n).astype(np.float32) for n in (77, 11))
        y, z = np.zeros(7, np.float32), np.zeros(77, np.float32)
        done = run_passes(kernel, TARGET, count)
        run(done, {"a": a, "b": b, "y": y, "z": z}, {"n": 7, "rows": rows}, 0, 1)
        outputs.append(y.tobytes() + z.tobytes())
    assert outputs[0] == outputs[1]


SHORT = """
kernel k(a: f4[], y: f4[], z: f4[], s) for lo..hi {
  for i in lo..hi independent {
    for k_0 in 0:i8..3:i8 carry t: f4 = 0.0:f4 then total {
      let x: f4 = a[<3*i + s*k_0 + 0>]
      next t = add(t, sq(x))
    }
    for j in 0:i8..3:i8 {
      let x_0: f4 = a[<3*i + s*j + 0>]
      let w: f4 = add(total, f4(lo))
      y[<3*i + 1*j + 0>] = mul(x_0, w)
    }
    z[i] = total
  }
}
"""


def test_short_loops_are_unrolled():
    unrolled = unroll(parse_kernel(SHORT))
    verify(unrolled)
    text = body_of(print_kernel(unrolled))
    assert text.count("for ") == 1
    assert text.count("= a[") == 3  # both passes read the same
    assert text.count("add(t_2, f4(lo))") == 1
    assert "a[<3*i + 0>]" in text
    assert "a[<3*i + 2*s + 0>]" in text
    assert text.index("y[<3*i + 0>] = ") > text.rindex(" = a[")
    assert "vector" not in print_kernel(vectorize(unrolled, 64))  # stores are apart


def test_loops_that_are_not_unrolled():
    text = """
    kernel k(a: f4[], n) for lo..hi {
      stack s: f4[1024]
      for i in lo..hi {
        for j in 0:i8..3:i8 independent { s[j] = add(s[j], exp(a[<3*i + 1*j + 0>])) }
        for k_0 in 0:i8..17:i8 { a[k_0] = s[k_0] }
        for q in 0:i8..n { a[q] = s[q] }
      }
    }
    """
    kernel = parse_kernel(text)
    assert unroll(kernel) == kernel
    vectorized = print_kernel(vectorize(kernel, 64))
    assert "for j in 0:i8..3:i8 independent vector(4, tail) {" in vectorized


@pytest.mark.parametrize(
    ("outer", "place", "is_row"),
    [
        ("lo..hi", "<3*i + 1*j + 0>", True),  # the rows may become vectors
        ("0:i8..9:i8", "<3*i + 1*j + 0>", False),
        ("lo..hi", "j", False),  # a few columns
    ],
)
def test_rows_of_independent_steps(outer: str, place: str, is_row: bool):
    text = f"""
    kernel k(a: f4[], y: f4[]) for lo..hi {{
      for i in {outer} {{
        for j in 0:i8..3:i8 independent {{ y[{place}] = a[<3*i + 1*j + 0>] }}
      }}
    }}
    """
    assert ("for j" not in print_kernel(unroll(parse_kernel(text)))) == is_row


def test_memory_that_is_written_is_read_again():
    text = """
    kernel k(a: f4[], y: f4[]) for lo..hi {
      for i in lo..hi {
        for k_0 in 0:i8..2:i8 {
          let x: f4 = a[<2*i + 0>]
          a[<2*i + 0>] = add(x, 1.0:f4)
        }
        y[i] = a[<2*i + 0>]
      }
    }
    """
    kernel = parse_kernel(text)
    outputs = []
    for k in (kernel, unroll(kernel)):
        a, y = np.arange(8, dtype=np.float32), np.zeros(4, np.float32)
        run(k, {"a": a, "y": y}, {}, 0, 4)
        outputs.append(a.tobytes() + y.tobytes())
    assert outputs[0] == outputs[1]


def test_division_of_long_integers_has_no_vectors():
    text = MAP.replace("VALUE", "f4(rem(i, 3:i8))")
    assert "vector" not in print_kernel(vectorize(parse_kernel(text), 64))


def results(kernel: Kernel) -> bytes:
    x = np.random.default_rng(0).normal(size=3000).astype(np.float32)
    y = np.zeros(2, np.float32)
    run(kernel, {"a0": x, "a1": y}, {"n0": 1500}, 0, 2)
    return y.tobytes()


def test_passes_keep_what_kernels_compute():
    kernel = parse_kernel(ROWS.replace("VALUE", "mul(t, f4(q))"))
    expected = results(kernel)
    for count in range(len(pipeline.PASSES) + 1):
        assert results(run_passes(kernel, TARGET, count, check=True)) == expected


def one_more(kernel: Kernel) -> Kernel:
    """A pass that is wrong: each number is larger by one."""

    def change(x: object) -> object:
        return x._replace(value=x.value + 1) if isinstance(x, Const) and x.dtype == F4 else None

    def loop(s: object) -> list[object]:
        body = tuple([map_statement(t, lambda x: map_expr(x, change)) for t in s.body])  # type: ignore
        return [s._replace(body=body)]  # type: ignore[attr-defined]

    return kernel._replace(body=replace_loops(kernel.body, loop))  # type: ignore[arg-type]


def test_bisection_names_the_wrong_pass(monkeypatch):
    kernel = parse_kernel(MAP.replace("VALUE", "add(t, 1.0:f4)"))
    right = {"wrong": lambda k, target: one_more(k), **pipeline.PASSES}
    monkeypatch.setattr(pipeline, "PASSES", {**pipeline.PASSES, "wrong": right["wrong"]})

    def computed(k: Kernel) -> bytes:
        y = np.zeros(8, np.float32)
        arrays = {"a0": np.arange(8, dtype=np.float32), "a1": y, "a2": np.zeros(8)}
        run(k, arrays, {}, 0, 8)
        return y.tobytes()

    expected = computed(kernel)
    assert bisect(kernel, TARGET, lambda k: computed(k) == expected) == "wrong"
    monkeypatch.setattr(pipeline, "PASSES", {"inline_indices": pipeline.PASSES["inline_indices"]})
    assert bisect(kernel, TARGET, lambda k: computed(k) == expected) is None


def test_a_pass_that_breaks_a_kernel_is_caught(monkeypatch):
    kernel = parse_kernel(MAP.replace("VALUE", "add(t, t)"))
    monkeypatch.setattr(pipeline, "PASSES", {"drops": lambda k, target: k._replace(buffers=())})
    with pytest.raises(VerificationError, match="is not a buffer of the kernel"):
        run_passes(kernel, TARGET, check=True)


COUNT = """
kernel count(a0: i4[], a1: f4[], a2: f4[], n0) for lo..hi {
  for q in lo..hi {
    let k: i8 = mul(i8(a0[q]), 16:i8)
    let v: f4 = a2[q]
    for j in 0:i8..16:i8 carry c: i4 = 0:i4 then total {
      let w: f4 = a1[<1*PLACE + 1*j + 0>]
      next c = add(c, select(lt(w, v), 1:i4, 0:i4))
    }
    a0[q] = total
  }
}
"""


@pytest.mark.parametrize(("place", "stays"), [("k", True), ("q", False)])
def test_a_loop_over_elements_at_a_loaded_place_is_not_unrolled(place: str, stays: bool):
    """Unrolled, LLVM gathers each of the elements for several places at a time."""
    text = print_kernel(unroll(parse_kernel(COUNT.replace("PLACE", place))))
    assert ("for j in" in text) == stays


def test_searches_compare_vectors_and_gather_nothing():
    a, v = np.linspace(0, 1, 5000, dtype=np.float32), np.ones(3000, np.float32)
    f = accnp.jit(accnp.numpy.searchsorted)
    f(a, v).block_until_ready()
    _, search = accnp.inspect(f)(a, v).kernels
    assert "gather" not in search.assembly()
