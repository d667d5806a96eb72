"""The loop IR: text, verification, interpretation."""

from __future__ import annotations

import numpy as np
import pytest

from accnp.compiler.ir_tools.interpreter import BoundsError, reduce_in_order, run
from accnp.compiler.ir_tools.parser import ParseError, parse_kernel
from accnp.compiler.ir_tools.verifier import VerificationError, verify
from accnp.compiler.loops.ir import (
    Buffer,
    Call,
    Const,
    For,
    Heap,
    If,
    Index,
    Kernel,
    Let,
    Load,
    Prefetch,
    Reduce,
    ReduceColumns,
    ReduceElements,
    Reduction,
    Store,
    Transpose,
    Var,
    Vector,
)
from accnp.compiler.loops.printer import print_kernel
from accnp.compiler.loops.types import B1, F4, F8, I8

ROWS = """
kernel rows(a0: f4[], a1: f4[], n0) for lo..hi {
  for o in lo..hi {
    for b in 0:i8..n0 step 1024 carry acc: f8 = 0.0:f8 then total {
      let m: i8 = fmin(<1*n0 + -1*b + 0>, 1024:i8)
      reduce j in 0..m {
        let t: f4 = a0[<n0*o + 1*b + 1*j + 0>]
        reduction sum r: f4 of mul(t, t)
      }
      next acc = add(acc, f8(r))
    }
    if lt(total, 100.0:f8) {
      a1[o] = f4(total)
    } else {
      a1[o] = -1.5:f4
    }
  }
}
"""
MAP = """
kernel double(a0: f4[], a1: f4[]) for lo..hi {
  for i in lo..hi independent {
    let t: f4 = a0[i]
    a1[i] = add(t, t)
  }
}
"""


def test_printed_text_parses_to_the_same_kernel():
    for text in (ROWS, MAP):
        kernel = parse_kernel(text)
        verify(kernel)
        assert parse_kernel(print_kernel(kernel)) == kernel


def test_every_grammar_rule_round_trips():
    text = """
    kernel k(a: b1[], x: f8[], n) for lo..hi {  # a comment
      stack s: f8[1024]
      heap h: f8[n]
      prefetch x[<1*lo + 5000>]
      transpose s[64] = x[lo] step n shape 7:i8 by <1*n + 2>
      for i in 0:i8..n independent vector(32, masked, nontemporal, peel) {
        s[i] = select(a[<2*i + n*lo + -3>], inf:f8, -1e-300:f8)
      }
      for i2 in 0:i8..n independent vector(8, whole) { s[i2] = nan:f8 }
      for r2 in lo..hi interchangeable {
        for i3 in 0:i8..n independent { s[i3] = add(s[i3], x[<1*i3 + n*r2 + 0>]) }
      }
      reduction max r: f8 = s[0:i8] extent n
      reduction or any: b1 = a[n] extent 7:i8
      reduce j in 0..n {
        h[<1*lo + 1*j + 0>] = x[j]
        reduction sum total: f8 of x[j]
        reduction max most: f8 of neg(x[j])
      }
      if not(any) { x[lo] = add(r, add(total, most)) }
    }
    """
    kernel = parse_kernel(text)
    printed = print_kernel(kernel)
    assert print_kernel(parse_kernel(printed)) == printed  # NaN differs from itself
    assert "vector(32, masked, nontemporal, peel)" in printed
    assert "reduction or any: b1 = a[n] extent 7:i8" in printed


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("for lo..hi {", "lo..hi {", r"line 2, column 35: expected 'for', got 'lo'"),
        ("a0[i]", "a2[i]", r"line 4, column 17: expected an expression, got 'a2'"),
        ("add(t, t)", "plus(t, t)", r"column 13: expected a scalar function .*got 'plus'"),
        ("add(t, t)", "add(t, i)", r"no scalar function of \(f4, i8\)"),
        ("t: f4", "t: f3", "expected a type, got 'f3'"),
        ("add(t, t)", "add(t, t", "expected"),
        ("i in lo", "i in $", r"line 3, column 12: expected a token, got '\$'"),
        ("add(t, t)", "True:f4", r"line 5, column 13: expected a number of type f4, got 'True'"),
        ("add(t, t)", "f4(1.5:i4)", "expected a number of type i4, got '1.5'"),
        ("add(t, t)", "f4(1:b1)", "expected a number of type b1, got '1'"),
        ("add(t, t)", f"{'1' * 5000}.0:f4", "a number of at most 400 digits"),
        ("add(t, t)", "neg(" * 1000 + "t" + ")" * 1000, "column 405: expected at most 100"),
        ("a1[i]", "if True:b1 {" * 1000, "expected at most 100 statements"),
        (
            "    a1[i] = add(t, t)\n  }",
            "    next t = t",
            "line 5, column 5: expected '}', got 'next'",
        ),
        ("for i in", "for \ufb01 in", "expected a token"),
    ],
)
def test_parse_errors_name_the_position(old: str, new: str, message: str):
    with pytest.raises(ParseError, match=message):
        parse_kernel(MAP.replace(old, new))


X, Y = Buffer("x", F4), Buffer("y", F4)
LO, HI, STEP, T = Var("lo"), Var("hi"), Var("i"), Var("t", F4)
ONE, Q = Const(1.0, F4), Var("q")
PLACE, PLACES = "may be one place", "several places"


def kernel(*body: object) -> Kernel:
    return Kernel(LO, HI, (X, Y), (), (), tuple(body))  # type: ignore[arg-type]


def loop(*body: object, independent: bool = True) -> Kernel:
    return kernel(For(STEP, LO, HI, 1, tuple(body), independent))  # type: ignore[arg-type]


def part_of(extent: int, *body: object) -> Kernel:
    end = Const(extent, I8)
    return kernel(For(STEP, Const(0, I8), end, 1, tuple(body), True))  # type: ignore[arg-type]


def vector(how: Vector, *body: object, step: int = 1) -> Kernel:
    body = body or (Store(X, STEP, ONE),)
    return kernel(For(STEP, LO, HI, step, body, True, vector=how))  # type: ignore[arg-type]


def test_steps_may_write_several_places_that_no_other_step_does():
    place = Index(((STEP, 2),))
    beside = Index(((STEP, 2),), 1)
    verify(loop(Let(T, Load(X, beside)), Store(X, place, T), Store(Y, beside, T)))
    verify(loop(Store(X, place, ONE), Store(X, Index(((STEP, 2),), 3), ONE)))
    verify(part_of(8, Store(X, STEP, ONE), Store(X, Index(((STEP, 1),), 8), ONE)))


@pytest.mark.parametrize(
    ("malformed", "message"),
    [
        (kernel(Store(X, STEP, Const(1.0, F4))), "i is used where it is not defined"),
        (kernel(Store(X, LO, Const(1.0, F8))), "an element of x is f8 instead of f4"),
        (kernel(Store(X, LO, Const(1, F4))), "1 is not a valid f4"),
        (kernel(Store(Buffer("z", F4), LO, Const(1.0, F4))), "z is not a buffer"),
        (kernel(Let(LO, LO)), "lo is defined twice"),
        (kernel(Let(T, Load(X, Const(True, B1)))), "an index of x is b1"),
        (kernel(Let(T, Call("add", (Load(X, LO), LO), F4))), "no scalar function"),
        (kernel(Let(T, Call("sqrt", (Load(X, LO),), F8))), r"sqrt\(x\[lo\]\) has another type"),
        (kernel(Let(T, Const(1.0, F8))), "t is f8 instead of f4"),
        (loop(Let(T, Load(X, STEP)), Store(X, LO, T)), PLACE),
        (loop(Store(X, LO, Const(1.0, F4))), "may be one place"),
        (loop(Let(T, Load(X, Index(((STEP, 2),), 2))), Store(X, Index(((STEP, 2),)), T)), PLACES),
        (loop(Let(T, Load(X, Index(((STEP, 3),), 1))), Store(X, Index(((STEP, 2),)), T)), PLACES),
        (loop(Store(X, Index(((STEP, LO),)), ONE)), "may be one place"),
        (loop(Store(X, STEP, ONE), Store(X, Index(((STEP, 1),), 1), ONE)), PLACES),
        (loop(Store(X, Index(((STEP, 2),), 4), ONE), Store(X, Index(((STEP, 2),)), ONE)), PLACES),
        (part_of(8, Store(X, STEP, ONE), Store(X, Index(((STEP, 1),), 7), ONE)), PLACES),
        (loop(Let(T, Load(X, LO)), Store(X, STEP, T)), "several places"),
        (kernel(For(STEP, LO, HI, 0, ())), "the step of i is 0"),
        (loop(Let(Q, Call("neg", (STEP,), I8)), Store(X, Index(((STEP, 1), (Q, 1))), ONE)), PLACE),
        (loop(Store(X, Index(((LO, STEP), (STEP, 1))), ONE)), PLACE),
        (loop(If(Const(True, B1), (Store(X, LO, ONE),))), PLACE),
        (kernel(For(STEP, LO, HI, 1, (), interchangeable=True)), "may change places with"),
        (vector(Vector(16, "tail"), step=2), "vectors, and a step of 2"),
        (vector(Vector(16, "whole")), "whole vectors, and memory without room"),
        (vector(Vector(16, "tail", peel=True), Let(T, ONE)), "peels steps, and stores nothing"),
        (vector(Vector(16, "tail"), For(Q, LO, HI, 1, ())), "more than assignments and stores"),
        (kernel(Let(T, Const(1e300, F4))), r"1e\+300 is not a valid f4"),
        (kernel(Let(Q, Const(1 << 63, I8))), "9223372036854775808 is not a valid i8"),
        (kernel(Let(Q, Index(((LO, 1 << 64),)))), "a factor of an index has more than 64 bits"),
        (kernel(ReduceElements(T, "or", X, LO, HI)), "t: or of f4"),
        (kernel(Let(Var("exp"), LO)), "the name exp has a meaning"),
        (kernel(Let(Var("class"), LO)), "the name class has a meaning"),
        (kernel()._replace(stack=(Buffer("s", F4, 1 << 20),)), "on the stack have 4194304 bytes"),
        (kernel()._replace(heap=(Heap(Buffer("h", F4), STEP),)), "length of h is not an argument"),
        (kernel(Transpose(X, 4, Y, LO, LO, LO, HI)), "x has no room for squares"),
        (kernel(ReduceColumns(X, "sum", Y, LO, Y, LO, HI)), "x has no room for vectors"),
        (kernel(Prefetch(X, Const(1.0, F4))), "an index of x is f4"),
        (kernel(Reduce(STEP, HI, (Store(X, LO, ONE),), ())), PLACE),
        (kernel(Reduce(STEP, HI, (For(Q, LO, HI, 1, ()),), ())), "have statements inside"),
        (
            kernel(Reduce(STEP, HI, (), (Reduction(T, "sum", LO),))),
            "t: a reduction of i8 has another",
        ),
        (
            kernel(For(STEP, LO, HI, 1, (Let(T, Load(X, STEP)),)), Store(X, LO, T)),
            "t is used where",
        ),
    ],
)
def test_malformed_kernels_are_refused(malformed: Kernel, message: str):
    with pytest.raises(VerificationError, match=message):
        verify(malformed)


def test_a_step_that_depends_on_another_may_be_written_in_order():
    verify(loop(Let(T, Load(X, LO)), Store(X, STEP, T), independent=False))


def test_the_interpreter_runs_rows():
    x = np.random.default_rng(0).normal(size=(4, 1500)).astype(np.float32) / 4
    x[1] = 10
    y = np.zeros(4, np.float32)
    run(parse_kernel(ROWS), {"a0": x.ravel(), "a1": y}, {"n0": 1500}, 1, 4)
    expected = (x.astype(float) ** 2).sum(1)
    assert y[0] == 0
    assert y[1] == -1.5
    np.testing.assert_allclose(y[2:], expected[2:], rtol=1e-6)


def test_the_interpreter_checks_bounds():
    x, y = np.zeros(4, np.float32), np.zeros(3, np.float32)
    with pytest.raises(BoundsError, match=r"a1\[3\] of 3 elements"):
        run(parse_kernel(MAP), {"a0": x, "a1": y}, {}, 0, 4)


def test_reductions_follow_the_declared_order():
    x = np.random.default_rng(1).normal(size=101).astype(np.float32)
    lanes = np.zeros(32, np.float32)
    for j, v in enumerate(x):
        lanes[j % 32] += v
    while len(lanes) > 1:
        lanes = lanes[: len(lanes) // 2] + lanes[len(lanes) // 2 :]
    assert reduce_in_order("sum", x) == lanes[0]
    assert reduce_in_order("max", x) == x.max()
    assert np.isnan(reduce_in_order("min", np.append(x, np.float32(np.nan))))
    assert reduce_in_order("sum", x[:0]) == 0
    assert reduce_in_order("and", np.array([6, 12], np.uint8)) == 4
    assert reduce_in_order("max", x[:0]) == -np.inf
    assert reduce_in_order("and", np.array([True, False])) == False  # noqa: E712
