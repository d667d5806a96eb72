"""The verifier refuses accesses outside of buffers whose length is known."""

from __future__ import annotations

import pytest

from accnp.compiler.ir_tools.parser import parse_kernel
from accnp.compiler.ir_tools.verifier import VerificationError, verify

KERNEL = """
kernel k(a: f4[], n, m) for lo..hi {
  stack s: f4[1024]
  stack places: i8[32] exact
  heap h: f4[n]
  BODY
}
"""
GPU = """
kernel k(a: f4[], n) for lo..hi threads 64 {
  shared s: f4[64]
  BODY
}
"""


def check(text: str, body: str) -> None:
    verify(parse_kernel(text.replace("BODY", body)))


# Each right statement, and what makes an access of it leave its buffer.
LAST = [
    ("reduce j in 0..1024:i8 { reduction sum r: f4 of s[j] }", "1024:i8", "2048:i8"),
    ("reduce j in 0..1024:i8 { s[j] = 0.0:f4 }", "s[j]", "s[<1*j + 1>]"),
    ("reduction sum r: f4 = s[0:i8] extent 1024:i8", "1024:i8", "1025:i8"),
    ("reduction sum r: f4 = s[24:i8] extent fmin(n, 1000:i8)", "24:i8", "25:i8"),
    ("reduction sum r: f4 = s[0:i8] extent 1024:i8", "s[0:i8]", "s[-1:i8]"),
    ("let x: f4 = s[1023:i8]", "1023", "1024"),
    ("let x: f4 = sq(s[0:i8])", "0:i8", "-1:i8"),
    ("s[1023:i8] = 0.0:f4", "1023", "1024"),
    ("for j in 0:i8..1024:i8 { s[j] = a[j] }", "1024:i8", "1025:i8"),
    ("for j in 0:i8..1000:i8 step 16 { a[j] = s[<1*j + 31>] }", "31", "32"),
    ("for j in 1:i8..5:i8 { a[j] = s[<-1*j + 4>] }", "+ 4", "+ 3"),
    ("for j in 0:i8..fmin(<1*n + -1*m + 0>, 1024:i8) { a[j] = s[j] }", "1024", "1025"),
    ("for i in 0:i8..32:i8 { for j in 0:i8..32:i8 { a[j] = s[<32*i + 1*j + 0>] } }",
     "32*i", "33*i"),
    ("for i in 0:i8..9:i8 { for j in 0:i8..<-1*i + 9> { s[<1*i + 1*j + 1015>] = 0.0:f4 } }",
     "1015", "1016"),
    ("for i in m..n { for j in i..<1*i + 1024> { s[<1*j + -1*i + 0>] = 0.0:f4 } }", "1024", "1025"),
    ("let k: i8 = add(mul(2:i8, 511:i8), 1:i8) a[k] = s[k]", "511", "512"),
    ("let p: f4* = &s[1000:i8] let q: f4* = &p[20:i8] q[3:i8] = 0.0:f4", "q[3", "q[4"),
    ("do move(&a[0:i8], &s[1024:i8], 0:i8)", "1024", "1025"),
    ("if gt(n, m) { for j in 0:i8..1024:i8 { s[j] = 0.0:f4 } }", "1024", "1025"),
    ("loop while gt(n, m) { s[1023:i8] = 0.0:f4 }", "1023", "1024"),
    ("h[<1*n + -1>] = 0.0:f4", "-1", "0"),
    ("for j in 0:i8..<1*n + -1> { h[<1*j + 1>] = 0.0:f4 }", "+ 1>", "+ 2>"),
    ("reduction sum r: f4 = h[0:i8] extent n", "extent n", "extent <1*n + 1>"),
    ("columns sum s = a[0:i8] rows places shape n by 1024:i8", "1024", "1025"),
    ("columns sum s = a[0:i8] rows places shape 32:i8 by n", "32:i8", "33:i8"),
    ("transpose s[64] = a[0:i8] step n shape 16:i8 by 64:i8", "16:i8", "17:i8"),
    ("transpose s[16] = h[<1*n + -34>] step 2:i8 shape 4:i8 by 16:i8", "-34", "-32"),
]  # fmt: skip


@pytest.mark.parametrize(("body", "right", "wrong"), LAST)
def test_last_element_of_buffers(body: str, right: str, wrong: str) -> None:
    check(KERNEL, body)
    assert right in body
    with pytest.raises(VerificationError, match="is outside of the buffer"):
        check(KERNEL, body.replace(right, wrong))


@pytest.mark.parametrize(
    ("body", "right", "wrong"),
    [
        ("for t in 0:i8..64:i8 spread threads { s[t] = a[t] }", "s[t]", "s[<1*t + 1>]"),
        ("load x: f4, y: f4 = s[62:i8]", "62", "63"),
        ("store s[60:i8] = 0.0:f4, 0.0:f4, 0.0:f4, 0.0:f4", "60", "62"),
    ],
)
def test_last_element_of_shared_buffers(body: str, right: str, wrong: str) -> None:
    check(GPU, body)
    with pytest.raises(VerificationError, match="is outside of the buffer"):
        check(GPU, body.replace(right, wrong))


@pytest.mark.parametrize(
    "body",
    [
        "a[-7:i8] = 0.0:f4",  # operands may be read backward
        "prefetch s[5000:i8]",
        "for j in 0:i8..n { s[j] = 0.0:f4 }",  # n may be small
        "for j in 0:i8..2048:i8 { if lt(j, 1024:i8) { s[j] = 0.0:f4 } }",
        "for j in 0:i8..2048:i8 { let k: i8 = j if lt(k, 9:i8) { s[k] = 0.0:f4 } }",
        "for j in 0:i8..2048:i8 { s[j] = 0.0:f4 if gt(j, n) { break() } }",
        "for j in 0:i8..2048:i8 { a[j] = s[places[0:i8]] }",
        "for j in 0:i8..fmin(n, 4096:i8) { h[j] = 0.0:f4 }",
        "for j in 0:i8..2048:i8 { let k: i8 = select(lt(j, 9:i8), j, 0:i8) s[k] = 0.0:f4 }",
    ],
)
def test_accesses_that_may_be_inside(body: str) -> None:
    check(KERNEL, body)
