"""`python -m accnp.compiler`."""

from __future__ import annotations

import pytest

from accnp.compiler.__main__ import main

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
        (["passes"], "for j in 0:i8..n independent vector("),
        (["passes", "--count", "0"], "reduce j in 0..n {"),
        (["numba"], "r = block_sum(r_values, n)"),
        (["llvm"], "define internal void @"),
        (["run", "--range", "0", "4", "--integers", "n=8"], "b = ["),
        (["bisect", "--range", "0", "4", "--integers", "n=8"], "no pass changes"),
    ],
)
def test_commands(words, expected, file, capsys):
    assert main([words[0], file, *words[1:]]) == 0
    assert expected in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "words", "message"),
    [
        (TEXT.replace("b[o]", "c[o]"), ["check"], "k.ir: line 5, column 5: expected a statement"),
        (TEXT.replace("= r", "= 1.0:f8"), ["check"], "an element of b is f8 instead of f4"),
        (TEXT, ["run", "--range", "0", "4"], "--integers must give n"),
        (TEXT, [*RUN, "n=8", "m=8"], "--integers: the kernel has no m"),
        (TEXT, [*RUN, "n"], "expected NAME=VALUE with an integer; got 'n'"),
        (TEXT, [*RUN, f"n={10**30}"], "expected NAME=VALUE with an integer"),
        (TEXT, [*RUN, f"n={10**19 // 2}"], "has more than 64 bits"),
        (TEXT, [*RUN, "n=8", "--elements", str(10**15)], "Unable to allocate"),
        (ROWS, [*RUN, "n=8"], "the kernel needs 128 or more for n"),
        (TEXT, ["run", "--range", "0", "999", "--integers", "n=8"], "a[1031] of 1024 elements"),
    ],
)
def test_errors(text, words, message, file, tmp_path, capsys):
    (tmp_path / "k.ir").write_text(text)
    assert main([words[0], file, *words[1:]]) == 1
    assert message in capsys.readouterr().err


def test_shifted_arrays_are_parts_of_one(tmp_path, capsys):
    path = tmp_path / "k.ir"
    path.write_text(ROWS)
    assert main(["run", str(path), "--range", "0", "2", "--integers", "n=128"]) == 0
    a, b = capsys.readouterr().out.split("b = [")
    assert a.split()[4:6] == b.split()[:2]


def test_missing_file(capsys, tmp_path):
    assert main(["check", str(tmp_path / "none.ir")]) == 1
    assert "No such file" in capsys.readouterr().err
