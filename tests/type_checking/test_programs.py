"""Type checkers' diagnostics of user programs: pyright runs once over all of `programs`.

A line of a program with `# error: RULE` must have an error of that rule, and no other line may have
an error. Types are asserted with `typing.assert_type`.
"""

import ast
import importlib
import inspect
import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import get_overloads

import pytest
from type_checking import stats_stub

import accnp
from accnp.api.arrays import methods
from accnp.lax import elementwise as lax
from accnp.lax import indexing as lax_index
from accnp.lax import reductions as lax_reductions
from accnp.numpy import cumulative, quantiles, reductions, ufuncs
from accnp.numpy.fft import transforms as fft
from accnp.ops import segments

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
PROGRAMS = sorted((HERE / "programs").glob("*.py"))
EXPECTED = re.compile(r"# error: (\w+)")


@pytest.fixture(scope="module")
def errors():
    """Return the errors of each program, with line, rule and message."""
    pytest.importorskip("pyright")
    command = [sys.executable, "-m", "pyright", "--outputjson", "--pythonpath", sys.executable]
    done = subprocess.run(
        [*command, *map(str, PROGRAMS)], capture_output=True, text=True, check=False
    )
    errors_by_program = {path.name: [] for path in PROGRAMS}
    for diagnostic in json.loads(done.stdout)["generalDiagnostics"]:
        if diagnostic["severity"] == "error":
            line = diagnostic["range"]["start"]["line"] + 1
            errors_by_program[Path(diagnostic["file"]).name].append(
                (line, diagnostic.get("rule"), diagnostic["message"])
            )
    return errors_by_program


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda path: path.stem)
def test_errors_are_those_expected(program, errors):
    lines = enumerate(program.read_text().splitlines(), 1)
    expected = {(n, m[1]) for n, line in lines if (m := EXPECTED.search(line))}
    actual = {(line, rule): message for line, rule, message in errors[program.name]}
    unexpected = [
        f"{line}: {rule}: {text}"
        for (line, rule), text in actual.items()
        if (line, rule) not in expected
    ]
    assert not unexpected, "\n".join(unexpected)
    assert not sorted(expected - set(actual)), "no error on these lines"


def test_mypy_finds_errors_on_the_same_lines():
    pytest.importorskip("mypy")
    command = [sys.executable, "-m", "mypy", "--no-incremental", "--python-executable"]
    done = subprocess.run(
        [*command, sys.executable, *map(str, PROGRAMS)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    matches = [re.match(r"(.*?):(\d+): error: ", line) for line in done.stdout.splitlines()]
    actual = {(Path(m[1]).name, int(m[2])) for m in matches if m}
    expected = {
        (path.name, n)
        for path in PROGRAMS
        for n, line in enumerate(path.read_text().splitlines(), 1)
        if EXPECTED.search(line)
    }
    assert actual == expected, done.stdout


def test_the_marker_of_typed_packages_is_shipped():
    assert (ROOT / "accnp/py.typed").read_text() == ""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert "py.typed" in project["tool"]["setuptools"]["package-data"]["accnp"]
    assert "Typing :: Typed" in project["project"]["classifiers"]


def test_overloads_of_jit_have_all_options():
    options = inspect.signature(accnp.jit).parameters
    overloads = get_overloads(inspect.unwrap(accnp.jit))
    assert len(overloads) == 2
    for overload in overloads:
        parameters = inspect.signature(overload).parameters
        assert list(parameters) == list(options)
        assert all(parameters[name].default == options[name].default for name in list(options)[1:])


# --- what is declared for type checkers alone -----------------------------------------------------


def declared(module, name):
    """Return the functions that the class `name` declares, as signatures without annotations, and
    its properties and annotated attributes.

    The class is under `if TYPE_CHECKING:` or at the top level of the module.
    """
    tree = ast.parse(Path(module.__file__).read_text())
    hidden = [
        n for n in ast.walk(tree) if isinstance(n, ast.If) and "TYPE_CHECKING" in ast.dump(n.test)
    ]
    classes = [n for n in ast.walk(tree) if isinstance(n, ast.ClassDef) and n.name == name]
    wholly = [c for c in classes if any(c in h.body for h in hidden)]
    bodies = [c.body for c in wholly] or [h.body for c in classes for h in hidden if h in c.body]
    functions, attributes = {}, set()
    for node in [n for body in bodies for n in body]:
        if isinstance(node, ast.FunctionDef) and "property" in map(
            ast.unparse, node.decorator_list
        ):
            attributes.add(node.name)
        elif isinstance(node, ast.FunctionDef):
            node.returns, node.decorator_list = None, []
            for each in ast.walk(node.args):
                if isinstance(each, ast.arg):
                    each.annotation = None
            scope = {}
            exec(ast.unparse(node), {}, scope)
            functions[node.name] = inspect.signature(scope[node.name])
        elif isinstance(node, ast.Assign):
            functions |= {t.id: functions[node.value.id] for t in node.targets}
        elif isinstance(node, ast.AnnAssign):
            attributes.add(node.target.id)
    return functions, attributes


def shape_of(signature):
    """Return the kinds, defaults and names of parameters, except the name of the first one
    (`self`)."""
    parameters = list(signature.parameters.values())
    return [
        ("" if i == 0 or p.kind is p.POSITIONAL_ONLY else p.name, p.kind, p.default)
        for i, p in enumerate(parameters)
    ]


def test_methods_of_arrays_are_declared_as_they_are():
    functions, attributes = declared(importlib.import_module("accnp.array_type"), "Array")
    public = {name for name in dir(accnp.Array) if name[0] != "_"}
    written = {*methods.METHODS, *methods.PROPERTIES, *methods.LAZY_METHODS}
    assert {n for n in written if n[0] != "_"} <= {*functions, *attributes}
    assert {n for n in {*functions, *attributes} if n[0] != "_"} <= public
    for name, signature in functions.items():
        if name[0] != "_":
            assert shape_of(signature) == shape_of(inspect.signature(getattr(accnp.Array, name))), (
                name
            )
    for name in attributes:
        assert isinstance(getattr(accnp.Array, name), property), name


def test_updates_at_an_index_are_declared_as_they_are():
    functions, _ = declared(importlib.import_module("accnp.array_type"), "AtIndex")
    real = type(accnp.zeros(1).at[0])
    assert {*functions} == {n for n in dir(real) if n[0] != "_"} - {*real.__slots__}
    for name, signature in functions.items():
        assert shape_of(signature) == shape_of(inspect.signature(getattr(real, name))), name


@pytest.mark.parametrize(
    ("module", "name", "names"),
    [
        (reductions, "SumOrProduct", "sum prod"),
        (reductions, "ExtremeReduction", "max min"),
        (reductions, "Logical", "all any"),
        (reductions, "ArgReduction", "argmax argmin"),
        (cumulative, "CumulativeFunction", "cumsum cumprod nancumsum nancumprod"),
        (cumulative, "NanReduction", "nansum nanprod"),
        (ufuncs, "UnaryFunction", "i0 trunc"),
        (ufuncs, "BinaryFunction", "fmax fmin gcd lcm"),
        (ufuncs, "UnaryUfunc", "negative"),
        (ufuncs, "BinaryUfunc", "add logical_or maximum"),
        (lax, "UnaryFunction", "abs floor neg"),
        (lax, "UnaryFunctionWithAccuracy", "exp sin tanh"),
        (lax, "BinaryFunction", "add atan2 lt"),
        (lax, "GammaFunction", "igamma igammac"),
        (lax_reductions, "Reduction", "reduce_prod reduce_max reduce_or"),
        (lax_reductions, "Summation", "reduce_sum"),
        (lax_reductions, "Search", "argmax argmin"),
        (lax_reductions, "Accumulation", "cumsum cumlogsumexp"),
        (fft, "OneAxis", "fft irfft"),
        (fft, "TwoAxes", "fft2 irfft2"),
        (fft, "ManyAxes", "fftn irfftn"),
        (quantiles, "Quantile", "quantile nanpercentile"),
        (quantiles, "MedianFunction", "median nanmedian"),
        (segments, "SegmentReduction", "segment_sum segment_max"),
        (lax_index, "Scatter", "scatter scatter_add scatter_max"),
        (importlib.import_module("accnp.config"), "Switch", "enable_x64 debug_nans log_compiles"),
    ],
)
def test_protocols_of_generated_functions_match_signatures(module, name, names):
    call = declared(module, name)[0]["__call__"]
    parameters = list(call.parameters.values())[1:]
    for function in names.split():
        real = inspect.signature(getattr(module, function)).parameters.values()
        assert [(p.name, p.kind, p.default) for p in parameters] == [
            (p.name, p.kind, p.default) for p in real
        ], function


def test_the_ufuncs_are_declared_as_they_are():
    shared, attributes = declared(ufuncs, "AnyUfunc")
    of_two, _ = declared(ufuncs, "BinaryUfunc")
    methods = shared | of_two
    del methods["__call__"]
    names = {name for name in dir(accnp.numpy.ufunc) if name[0] != "_"}
    assert {*methods, *attributes} == names
    for name, signature in methods.items():
        assert shape_of(signature) == shape_of(inspect.signature(getattr(accnp.numpy.ufunc, name)))
    literal_names = set(
        re.findall(
            r'"(\w+)"', inspect.getsource(ufuncs).partition("UfuncName = ")[2].partition("]")[0]
        )
    )
    assert literal_names == {
        name for name in ufuncs.BINARY if hasattr(getattr(accnp, name), "reduce")
    }


def test_the_stub_of_the_distributions_has_their_signatures():
    assert stats_stub.STUB.read_text(encoding="utf-8") == stats_stub.stub()
