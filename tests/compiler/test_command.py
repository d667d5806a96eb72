"""`python -m accnp.compiler`."""

from __future__ import annotations

import pytest

from accnp.compiler import pipeline
from accnp.compiler.__main__ import main
from accnp.compiler.loops.builder import call
from accnp.compiler.loops.ir import Const, For, Kernel, Store
from accnp.compiler.loops.types import F4
from accnp.compiler.pipeline import Target

TEXT = """
kernel k(a: f4[], b: f4[], n) for lo..hi {
  for o in lo..hi {
    reduce j in 0..n { reduction sum r: f4 of sq(a[<n*o + 1*j + 0>]) }
    b[o] = r
  }
}
"""
ROWS = """
kernel k(a: f4[], b: f4[], c: f4[], n) for lo..hi {
  shifted b = a + 1
  long n
  for o in lo..hi {
    for j in 0:i8..n independent { c[<n*o + 1*j + 0>] = sub(a[j], b[j]) }
  }
}
"""
RUN = ["run", "--range", "2", "4", "--integers"]


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "k.ir"
    path.write_text(TEXT)
    return str(path)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["check"], "reduction sum r: f4 of sq(a[<n*o + 1*j + 0>])"),
        (["passes", "--count", "7"], "for j in 0:i8..n independent vector("),
        (["passes"], "for j in 0:i8..n independent vector("),
        (["passes", "--count", "0"], "reduce j in 0..n {"),
        (["numba"], "r = block_sum(r_values, n)"),
        (["llvm"], "define internal void @"),
        (["run", "--range", "0", "4", "--integers", "n=8"], "b = ["),
        (
            ["bisect", "--range", "0", "4", "--integers", "n=8"],
            "none of the 7 passes changes what the kernel k computes\n",
        ),
    ],
)
def test_commands(words, expected, file, capsys):
    assert main([words[0], file, *words[1:]]) == 0
    assert expected in capsys.readouterr().out


CALLER = """
kernel first(a: f4[], n) for lo..hi {
  for o in lo..hi independent { a[o] = f4(n) }
}
kernel second(a: f4[], n) for lo..hi {
  calls first(f4*, i8)
  run first(&a[0:i8], n) for lo..hi
}
"""


def test_a_kernel_after_those_that_it_calls(file, tmp_path, capsys):
    (tmp_path / "k.ir").write_text(CALLER)
    options = ["--range", "0", "1024", "--integers", "n=3"]
    assert main(["run", file, *options]) == 0
    assert capsys.readouterr().out == "a = [3. 3. 3. 3. ... 3. 3. 3. 3.]\n"
    assert main(["bisect", file, *options]) == 0
    output = capsys.readouterr().out
    assert output == "none of the 7 passes changes what the kernels first, second computes\n"
    for command in ("check", "passes", "numba", "llvm"):
        assert main([command, file]) == 0
        printed = capsys.readouterr().out
        assert printed.index("first") < printed.index("second")


def one_more(kernel: Kernel, target: Target) -> Kernel:
    """A pass that adds one to what the first kernel writes."""
    if kernel.name != "first":
        return kernel
    (loop,) = kernel.body
    assert isinstance(loop, For)
    (store,) = loop.body
    assert isinstance(store, Store)
    one = store._replace(value=call("add", store.value, Const(1.0, F4)))
    return kernel._replace(body=(loop._replace(body=(one,)),))


def fails(kernel: Kernel, target: Target) -> Kernel:
    raise AssertionError


def drops(kernel: Kernel, target: Target) -> Kernel:
    return kernel._replace(buffers=())


@pytest.mark.parametrize("wrong", [one_more, fails, drops])
def test_bisection_names_the_pass_and_the_kernel(wrong, file, tmp_path, capsys, monkeypatch):
    (tmp_path / "k.ir").write_text(CALLER)
    monkeypatch.setitem(pipeline.PASSES, "wrong", wrong)
    assert main(["bisect", file, "--range", "0", "8", "--integers", "n=3"]) == 0
    last = capsys.readouterr().out.splitlines()[-1]
    assert last == "the pass wrong (8 of 8) changes what the kernel first computes"


@pytest.mark.parametrize(
    ("text", "words", "message"),
    [
        (TEXT.replace("b[o]", "c[o]"), ["check"], "k.ir: line 5, column 5: expected a statement"),
        (TEXT.replace("= r", "= 1.0:f8"), ["check"], "an element of b is f8 instead of f4"),
        ("", ["check"], "k.ir: line 1, column 1: expected 'kernel', got the end"),
        ("def f(x): return x", ["passes"], "k.ir: line 1, column 1: expected 'kernel', got 'def'"),
        (TEXT + "more", ["check"], "k.ir: line 8, column 1: expected 'kernel', got 'more'"),
        (b"\xff\xfe", ["check"], "k.ir: is not a text in UTF-8"),
        (TEXT, ["run", "--range", "0", "4"], "--integers must give n"),
        (TEXT, ["run", "--range", "4", "0"], "--range: expected LO <= HI; got 4 0"),
        (TEXT, [*RUN, "n=8", "m=8"], "--integers: the kernel has no m"),
        (TEXT, [*RUN, "n=8", "n=9"], "--integers gives n twice"),
        (TEXT, [*RUN, "n"], "expected NAME=VALUE with an integer; got 'n'"),
        (TEXT, [*RUN, f"n={10**30}"], "expected NAME=VALUE with an integer"),
        (TEXT, [*RUN, f"n={10**19 // 2}"], "has more than 64 bits"),
        (TEXT, [*RUN, "n=8", "--elements", str(10**15)], "Unable to allocate"),
        (ROWS, [*RUN, "n=8"], "the kernel needs 128 or more for n"),
        (TEXT, ["run", "--range", "0", "999", "--integers", "n=8"], "a[1031] of 1024 elements"),
        (CALLER.partition("}\n}\n")[2], [*RUN, "n=1"],
         "the kernel second calls first, a kernel that is not before it"),
        (CALLER.replace("(a: f4[], n)", "(a: f4[], n, m)", 1), [*RUN, "n=1"],
         "the kernel second calls first, other arguments"),
    ],
)  # fmt: skip
def test_errors(text, words, message, file, tmp_path, capsys):
    data = text if isinstance(text, bytes) else text.encode()
    (tmp_path / "k.ir").write_bytes(data)
    assert main([words[0], file, *words[1:]]) == 2
    captured = capsys.readouterr()
    assert message in captured.err
    assert len(captured.err.splitlines()) == 1
    assert not captured.out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["passes", "--count", "99"], "--count: expected an integer of 0 to 7; got '99'"),
        (["passes", "--count", "-1"], "--count: expected an integer of 0 to 7; got '-1'"),
        (["passes", "--count", "unroll"], "--count: expected an integer of 0 to 7; got 'unroll'"),
        (["run", "--range", "-1", "4"], "--range: expected an integer of 0 or more; got '-1'"),
        (["run", "--range", "0", str(1 << 63)], "--range: expected an integer of 0 or more"),
        (["run", "--range", "0"], "argument --range: expected 2 arguments"),
        ([*RUN[:4], "--elements", "-3"], "--elements: expected an integer of 0 or more; got '-3'"),
        ([*RUN[:4], "--elements", "1e3"], "--elements: expected an integer of 0 or more"),
        ([*RUN[:4], "--seed", "-1"], "--seed: expected an integer of 0 or more; got '-1'"),
        (["bisect"], "the following arguments are required: --range"),
        (["check", "--count", "1"], "unrecognized arguments: --count 1"),
        (["pass"], "invalid choice: 'pass'"),
    ],
)
def test_wrong_options(words, message, file, capsys):
    with pytest.raises(SystemExit) as raised:
        main([words[0], file, *words[1:]])
    assert raised.value.code == 2
    assert message in capsys.readouterr().err


def test_shifted_arrays_are_parts_of_one(tmp_path, capsys):
    path = tmp_path / "k.ir"
    path.write_text(ROWS)
    assert main(["run", str(path), "--range", "0", "2", "--integers", "n=128"]) == 0
    a, b = capsys.readouterr().out.split("b = [")
    assert a.split()[4:6] == b.split()[:2]


def test_missing_file(capsys, tmp_path):
    assert main(["check", str(tmp_path / "none.ir")]) == 2
    assert capsys.readouterr().err.endswith("none.ir: No such file or directory\n")
    assert main(["check", str(tmp_path)]) == 2
    assert capsys.readouterr().err.endswith(": Is a directory\n")
