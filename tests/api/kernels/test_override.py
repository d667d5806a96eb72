"""Generated kernels exported as standalone files, and edited kernels that replace them."""

import subprocess
import sys

import numpy as np
import pytest
from kernel_counts import count_made_kernels

import accnp as jnp
from accnp.compiler import kernel_cache

X = np.random.default_rng(0).normal(0, 1, (300, 40)).astype(np.float32)


def chain(x):
    return jnp.exp(x) * 2 + 1


def softmax(x):
    e = jnp.exp(x - x.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


def first_kernel(f, *args):
    return jnp.inspect(f)(*args).kernels[0]


def test_a_kernel_is_a_file_that_runs_by_itself(tmp_path):
    @jnp.kernel
    def bent(x):
        return x if x > 0 else x * 0

    for number, f in enumerate((chain, softmax, lambda x: bent(x).sum(0))):
        kernel = first_kernel(f, X)
        file = tmp_path / f"kernel{number}.py"
        file.write_text(kernel.source)
        done = subprocess.run(
            [sys.executable, file], capture_output=True, text=True, check=True, timeout=300
        )
        assert "median" in done.stdout
        assert "GB/s" in done.stdout
        assert f"argument 0 (f4*, {X.size} elements)" in done.stdout
    assert done.stdout.count("\n") >= 4
    compile(kernel.source, "kernel.py", "exec")


def test_edited_kernel_replaces_generated_one():
    kernel = first_kernel(chain, X)
    edited = kernel.source.replace("exp(", "abs(")
    expected, other = np.exp(X) * 2 + 1, np.abs(X) * 2 + 1
    function = jnp.jit(chain)
    np.testing.assert_allclose(function(X), expected, rtol=1e-6)
    with jnp.override(kernel, edited):
        np.testing.assert_allclose(function(X), other, rtol=1e-6)
        np.testing.assert_allclose(chain(jnp.asarray(X)), other, rtol=1e-6)
        assert "abs(" in first_kernel(chain, X).text
    np.testing.assert_allclose(function(X), expected, rtol=1e-6)
    np.testing.assert_allclose(chain(jnp.asarray(X)), expected, rtol=1e-6)


def test_an_edited_kernel_is_compiled_again_from_its_text(monkeypatch):
    """The edited text is compiled, not the loop IR from which the text was printed."""
    kernel = first_kernel(chain, X)
    edited = jnp.override(kernel, kernel.source.replace("exp(", "abs("))
    monkeypatch.setattr(kernel_cache, "disk_cache", lambda: None)
    kernel_cache.clear_kernels()
    with edited:
        np.testing.assert_allclose(jnp.jit(chain)(X), np.abs(X) * 2 + 1, rtol=1e-6)


def test_override_affects_one_function_only():
    kernel = first_kernel(chain, X)
    mine = jnp.override(kernel, kernel.source.replace("exp(", "abs("))(chain)
    np.testing.assert_allclose(mine(X), np.abs(X) * 2 + 1, rtol=1e-6)
    np.testing.assert_allclose(jnp.jit(chain)(X), np.exp(X) * 2 + 1, rtol=1e-6)
    before = count_made_kernels()
    mine(X)
    assert count_made_kernels() == before


def test_several_overrides_and_kernels_in_loops():
    single, row = first_kernel(chain, X), first_kernel(softmax, X)
    with (
        jnp.override(single, single.source.replace("exp(", "abs(")),
        jnp.override(row, row.source.replace("exp(", "abs(")),
    ):
        a, b = jnp.jit(chain)(X), jnp.jit(softmax)(X)
    np.testing.assert_allclose(a, np.abs(X) * 2 + 1, rtol=1e-6)
    assert not np.allclose(b, softmax(jnp.asarray(X)))

    def loop(x):
        return jnp.lax.fori_loop(0, 3, lambda i, x: jnp.sin(x) * 0.5, x)

    kernel = first_kernel(loop, X)
    with jnp.override(kernel, kernel.source.replace("sin(", "abs(")):
        np.testing.assert_allclose(jnp.jit(loop)(X), np.abs(X) / 8, rtol=1e-6)


def test_a_report_compares_values_and_times():
    kernel = first_kernel(chain, X)
    same = jnp.override(kernel, kernel.source).report(chain, X, runs=3)
    assert same.same
    assert same.largest == 0 == same.ulp
    assert same.original > 0
    assert same.ratio > 0
    assert str(same).startswith("the same values; original ")
    # Another order of the same operations.
    near = kernel.source.replace("exp(t1)", "exp(t1 * f4(1.0000001))")
    report = jnp.override(kernel, near).report(jnp.jit(chain), X, runs=2)
    assert not report.same
    assert 0 < report.ulp < 8
    assert "values differ by up to" in str(report)
    nans = kernel.source.replace("exp(t1)", "sqrt(t1)")
    assert jnp.override(kernel, nans).report(chain, X, runs=2).largest == np.inf


def test_override_from_file(tmp_path):
    kernel = first_kernel(chain, X)
    file = tmp_path / "kernel.py"
    file.write_text(kernel.source.replace("def kernel", "HALF = 0.5\n\ndef kernel"))
    for path in (file, str(file)):
        assert jnp.override(kernel, path).report(chain, X, runs=2).same
    wrong = kernel.source.replace("exp(", "expo(")
    file.write_text(wrong)
    line = wrong[: wrong.index("expo(")].count("\n") + 1
    with pytest.raises(ValueError, match=f"at line {line} of .*kernel.py: 't2 = expo"):
        jnp.override(kernel, file)
    with pytest.raises(FileNotFoundError, match=r"cannot read the file .*got 'no.py'"):
        jnp.override(kernel, "no.py")


@pytest.mark.parametrize(
    "formula",
    [
        "math.exp(t1)",
        "np.exp(t1)",
        "twice(t1) * f4(HALF)",
        "max(exp(t1), f4(0))",
        "np.maximum(np.exp(t1), exp(t1))",
        "+exp(t1)",
        "exp(t1) if 0 <= lo < hi and hi else t1",
        "exp(t1) ** 3 * exp(t1) ** f4(-2)",
        "exp(t1) * f4(2) ** f4(t1 * 0)",
        "exp(t1) * math.exp(f4(lo * 0))",
        "exp(t1) + np.arctan2(f4(0), t1 * t1 + f4(1))",
    ],
)
def test_edited_kernel_syntax(formula):
    kernel = first_kernel(chain, X)
    head = (
        "import math\nimport numpy as np\n\nTHIRD = 2 / 6\nHALF = THIRD * 3 / 2 + math.pi * 0\n\n"
    )
    helper = "def twice(x):\n    return np.float32(2) * math.exp(x)\n\n\n"
    edited = kernel.source.replace("exp(t1)", formula).replace(
        "def kernel", f"{head}{helper}def kernel"
    )
    report = jnp.override(kernel, edited).report(chain, X, runs=2)
    assert report.ulp <= (4 if "**" in formula else 0)


@pytest.mark.parametrize(
    ("edit", "error", "text"),
    [
        (lambda s: "x = 1\n", ValueError, "must define the function kernel"),
        (lambda s: "", ValueError, "must define the function kernel; got no function;"),
        (lambda s: "def f(x): return x", ValueError, "must define the function kernel; got f;"),
        (
            lambda s: s.replace("def kernel(", "def kernel kernel("),
            ValueError,
            r"is not valid Python; got .*, at line \d+: 'def kernel kernel.*; fix the source",
        ),
        (
            lambda s: "def kernel(lo, hi):\n    pass\n",
            ValueError,
            r"takes 0 arguments after lo, hi.* at line 1: 'def kernel\(lo, hi\):'",
        ),
        (
            lambda s: s.replace("exp(", "expo("),
            ValueError,
            "name 'expo' is not defined, at line 31: 't2 = expo",
        ),
        (
            lambda s: s.replace("exp(", "jnp.exp("),
            ValueError,
            r"a call of jnp.exp, at line 31: 't2 = jnp.exp",
        ),
        (
            lambda s: s.replace("range(lo, hi)", "range(lo, hi, 0)"),
            ValueError,
            "a range with a step of 0, at line 29: 'for i in",
        ),
        (
            lambda s: s.replace("exp(", "g(") + "\n\ndef g(x):\n    y = [x, x]\n    return y[0]\n",
            ValueError,
            r"makes no arrays, lists or texts, at line \d+: 'y = \[x, x\]'",
        ),
        (
            lambda s: (
                s.replace("exp(", "g(") + "\n\ndef g(x):\n    y = x\n    return x.real_part\n"
            ),
            ValueError,
            r"g: Unknown attribute 'real_part' of type float32, at line \d+: 'return x.real_part'",
        ),
        (
            lambda s: s.replace("exp(", "'a' + ("),
            ValueError,
            r"the constant 'a', at line \d+: .t2 = 'a' \+ .*; fix the source",
        ),
        (lambda s: 3, TypeError, "needs the text of a kernel or a path"),
    ],
)
def test_errors_leave_kernels_unchanged(edit, error, text):
    kernel = first_kernel(chain, X)
    with pytest.raises(error, match=f"override: .*{text}"):
        jnp.override(kernel, edit(kernel.source))
    np.testing.assert_allclose(jnp.jit(chain)(X), np.exp(X) * 2 + 1, rtol=1e-6)


def test_errors_of_other_kinds():
    kernel = first_kernel(chain, X)
    with pytest.raises(TypeError, match="needs a kernel of accnp"):
        jnp.override(chain, kernel.source)
    with pytest.raises(ValueError, match="has no kernel like that of step 0"):
        jnp.override(kernel, kernel.source).report(softmax, X)


@pytest.mark.parametrize(
    "transformed",
    [
        lambda h: jnp.jit(h)(X),
        lambda h: jnp.vmap(h)(jnp.stack([X, X])),
        lambda h: jnp.lax.scan(lambda c, _: (h(c), 0), X, None, 1),
    ],
)
def test_a_call_within_a_trace_is_refused(transformed):
    kernel = first_kernel(chain, X)
    edited = jnp.override(kernel, kernel.source)(chain)
    with pytest.raises(
        ValueError, match=r"an edited kernel replaces .*got a call within jit, vmap or"
    ):
        transformed(edited)
    np.testing.assert_array_equal(edited(X), chain(X))
