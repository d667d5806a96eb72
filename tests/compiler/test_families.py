"""Which kernels the loop IR makes. The share of those that are still Python text only falls."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

import accnp as jnp
from accnp.compiler import kernel_cache
from accnp.compiler.ir_tools.parser import parse_kernel
from accnp.compiler.kernel_cache import CompileError
from accnp.compiler.numba.source import numba_source
from accnp.engine import plan as plans


def ptp(x):
    return x.max(1) - x.min(1)


def layer_norm(x):
    return (x - x.mean(-1, keepdims=True)) / jnp.sqrt(x.var(-1, keepdims=True) + 1e-5)


def weighted(x):
    return sum(x[k : len(x) - 8 + k] * (k + 1) for k in range(9))


def loss(x, bias):
    return jnp.square(jnp.tanh(x + bias)).sum()


EXPRESSIONS = {
    "add": lambda x, y: x + y,
    "tanh": lambda x, y: jnp.tanh(x) * y,
    "where": lambda x, y: jnp.where(x > y, x, -y),
    "int": lambda x, y: (x.astype("int32") * 3 - 7) // 2,
    "half": lambda x, y: x.astype("float16") + 1,
    "complex": lambda x, y: jnp.abs(x + 1j * y),
    "gelu": lambda x, y: jnp.nn.gelu(x) * y,
    "bits": lambda x, y: jnp.lax.population_count(jnp.lax.bitcast_convert_type(x, "uint32") >> 3),
    "random numbers": lambda x, y: jnp.random.normal(jnp.random.key(1), (2000,)),
    "uint8": lambda x, y: x.astype("uint8") + 1,
    "strided": lambda x, y: x.reshape(50, 40)[::2, 1:] * 2,
    "every fifth": lambda x, y: jnp.tanh(x[::5]),
    "tiles of rows": lambda x, y: x.reshape(50, 40).T.sum(1) + x.reshape(50, 40).T.max(1),
    "folds across": lambda x, y: jnp.tanh(x.reshape(50, 40).T).sum(1),
    "softmax of columns": lambda x, y: jnp.nn.softmax(x.reshape(50, 40).T, 1),
    "transposed": lambda x, y: x.reshape(50, 40).T + 1,
    "broadcast": lambda x, y: x.reshape(50, 40) + y[:40],
    "stencil": lambda x, y: x[1:-1] + x[2:] - 2 * x[:-2],
    "slice write": lambda x, y: x.at[1:-1].set(y[2:]),
    "unsigned": lambda x, y: (x * 9).astype("uint32").astype(bool) | (y * 9).astype("uint8").any(),
    "rolled": lambda x, y: jnp.roll(x, 1) + jnp.roll(x, -1) - y,
    "joined": lambda x, y: jnp.concatenate([x.reshape(50, 40), y[:200].reshape(40, 5).T]) * 2,
    "stencil of a stencil": lambda x, y: weighted(weighted(x.reshape(50, 40))) * 2,
    "sum": lambda x, y: (x * y).sum(),
    "mean of rows": lambda x, y: (x * y).reshape(50, 40).mean(1),
    "sum of columns": lambda x, y: x.reshape(50, 40).sum(0),
    "softmax of the first axis": lambda x, y: jnp.nn.softmax(x.reshape(50, 40), 0),
    "gradient of a bias": lambda x, y: jnp.grad(lambda b: loss(x.reshape(50, 40), b))(y[:40]),
    "norms of points": lambda x, y: jnp.sqrt((x[:999].reshape(333, 3) ** 2).sum(1)),
    "centred points": lambda x, y: x[:999].reshape(333, 3) - x[:999].reshape(333, 3).mean(0),
    "columns across": lambda x, y: x.reshape(40, 50).T.sum(0) + (x * 2).reshape(40, 50).T.max(0),
    "picked columns": lambda x, y: x.reshape(50, 40)[:, (y[:5] * 9).astype(int)] * 2,
    "folds of axes": lambda x, y: ptp(x.reshape(10, 10, 20)).max((0, 1)),
    "softmax": lambda x, y: jnp.exp(x.reshape(50, 40)) / jnp.exp(x.reshape(50, 40)).sum(1)[:, None],
    "layer norm": lambda x, y: layer_norm(x.reshape(50, 40)) * y[:40],
    "logsumexp": lambda x, y: jnp.scipy.special.logsumexp(x.reshape(50, 40), 1),
    "std": lambda x, y: x.reshape(50, 40).std(1),
    "two folds": lambda x, y: ptp(x.reshape(50, 40)) + ptp((x * y).reshape(50, 40)),
    "sum of a part": lambda x, y: (x.reshape(50, 40)[:, 1:] / y[:39]).sum(),
    "var of axes": lambda x, y: x.reshape(5, 10, 40)[:, 2:].var((1, 2)),
    "maximum of bytes": lambda x, y: (x * 99).astype("int8").reshape(50, 40).max(1),
    "maximum": lambda x, y: x.max(),
    "any": lambda x, y: (x > y).any(),
    "argmax": lambda x, y: x.argmax(),
    "cumsum": lambda x, y: jnp.cumsum(x),
    "sort": lambda x, y: jnp.sort(x),
    "gather": lambda x, y: x[(y * 9).astype(int)],
    "scatter": lambda x, y: x.at[(y * 9).astype(int)].add(1),
    "product": lambda x, y: x.reshape(50, 40) @ y.reshape(40, 50),
}
TEXT = 6  # kernels of these that are Python text


def kernels(name: str) -> tuple[int, int]:
    """How many kernels of an expression are Python text, and how many there are."""
    x = jnp.asarray(np.linspace(0, 1, 2000, dtype=np.float32))
    flags = are_text(EXPRESSIONS[name], x, x)
    return sum(flags), len(flags)


def are_text(f, *arguments) -> list[bool]:
    """Of each kernel of a function, whether it is Python text."""
    flags: list[bool] = []
    step = plans.KernelStep.__init__

    def record(self, text, *args):
        flags.append(text.kernel is None)
        step(self, text, *args)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plans.KernelStep, "__init__", record)
        jnp.block_until_ready(jnp.jit(lambda *args: f(*args))(*arguments))
    return flags


def test_share_of_source_kernels_does_not_grow():
    counts = {name: kernels(name) for name in EXPRESSIONS}
    text = sum([t for t, _ in counts.values()])
    assert text == TEXT, counts


@pytest.mark.parametrize(
    "name",
    ["add", "where", "uint8", "stencil", "strided", "broadcast", "sum", "mean of rows", "any",
     "softmax", "layer norm", "logsumexp", "std", "two folds", "sum of a part", "var of axes",
     "maximum of bytes", "transposed", "folds across", "every fifth", "softmax of columns",
     "sum of columns", "softmax of the first axis", "gradient of a bias", "folds of axes",
     "norms of points", "centred points", "picked columns", "tiles of rows",
     "columns across", "half", "complex", "gelu", "bits", "unsigned", "rolled",
     "joined", "stencil of a stencil"],
)  # fmt: skip
def test_covered_families_are_loop_ir(name: str):
    assert kernels(name)[0] == 0


@pytest.mark.parametrize("part", [np.s_[:, 2], np.s_[:, 1:4], np.s_[:, 1:]])
def test_parts_of_arrays_are_stored_by_loop_ir(part):
    """Elements and short rows that lie apart, and long rows."""
    x = np.linspace(-1, 1, 210, dtype=np.float32).reshape(30, 7)
    y = x[::-1].copy()
    assert are_text(lambda x, y: x.at[part].set(y[part] * 2), x, y) == [False]
    expected = x.copy()
    expected[part] = y[part] * 2
    np.testing.assert_array_equal(jnp.jit(lambda x, y: x.at[part].set(y[part] * 2))(x, y), expected)


def test_covered_kernels_are_compiled_without_numba(tmp_path):
    code = """
import sys
import accnp as jnp
print((jnp.arange(5.0) + 1).sum(), jnp.tanh(jnp.arange(100.0)).max() > 1)
x = jnp.arange(5000.0).reshape(50, 100) / 1000
print(jnp.nn.softmax(x).sum().round(3), jnp.nn.logsumexp(x, -1).max().round(3))
print(x.var(1).max().round(6), x.std(1).max().round(6), jnp.ptp(x, 1).max().round(3))
y = (x - x.mean(1, keepdims=True)) / jnp.sqrt(x.var(1, keepdims=True) + 1e-5)
print(jnp.abs(y.mean(1)).max() < 1e-5, jnp.abs(y.std(1) - 1).max() < 0.01)
print(f"{x.sum(0).max():.2f}", x.mean(0).max().round(3), x.max(axis=0).min().round(3))
print(jnp.grad(lambda b: ((x * b) ** 2).sum())(x[0]).max().round(3))
print(jnp.nn.softmax(x, 0)[-1].max().round(3))
p = jnp.arange(999.0).reshape(333, 3) / 999
print(jnp.sqrt((p ** 2).sum(1)).max().round(3), jnp.abs((p - p.mean(0)).mean(0)).max() < 1e-6)
print(jnp.nn.softmax(p, 1).max().round(3), (p * p.max(0)).sum(0).round(1))
print(jnp.exp(p).mean(0).round(3))
kernel = jnp.inspect(lambda x: jnp.tanh(x) + x)(jnp.arange(5000.0)).kernels[0]
print("define" in kernel.llvm(), "ret" in kernel.assembly())
print([m for m in ("numba", "numba.core") if m in sys.modules])
print("accnp.fast_exit" in sys.modules)  # what LLVM leaves is not collected at exit
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "ACCNP_CACHE_DIR": str(tmp_path), "ACCNP_COMPILER": "llvm"},
        capture_output=True,
        text=True,
        check=False,
    )
    expected = """15.0 False
50.0 9.555
0.000833 0.028866 0.099
True True
127.45 2.549 4.9
84.941
0.096
1.729 True
0.334 [165.5 166.  166.5]
[1.716 1.717 1.719]
True True
[]
True
"""
    assert done.stdout == expected, done.stderr[-2000:]


def test_a_training_step_is_compiled_without_numba(tmp_path):
    """A network with one hidden layer: products, folds of rows and columns, gathers, a scatter."""
    code = """
import sys
import numpy as np
import accnp as jnp
rng = np.random.default_rng(0)
x, y = rng.normal(size=(32, 20)).astype("f"), rng.integers(0, 10, 32)
weights = [(rng.normal(size=n).astype("f") / 9, np.zeros(n[1], "f")) for n in ((20, 60), (60, 10))]
def loss(weights, x, y):
    (u, a), (v, b) = weights
    z = jnp.nn.log_softmax(jnp.maximum(x @ u + a, 0) @ v + b)
    return -z[jnp.arange(len(y)), y].mean()
def step(weights, x, y):
    value, slopes = jnp.value_and_grad(loss)(weights, x, y)
    return value, jnp.tree.map(lambda w, g: w - g / 9, weights, slopes)
train = jnp.jit(step)
first, weights = train(weights, x, y)
for _ in range(20):
    last, weights = train(weights, x, y)
print(bool(last < first), [m for m in ("numba", "numba.core") if m in sys.modules])
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "ACCNP_CACHE_DIR": str(tmp_path), "ACCNP_COMPILER": "llvm"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == "True []\n", done.stderr[-2000:]


def test_a_warm_process_imports_no_back_end(tmp_path):
    code = """
import sys
import accnp as jnp
print((jnp.arange(5.0) + 1).sum())
names = ("numba", "llvmlite", "accnp.compiler.llvm", "accnp.compiler.pipeline")
print([m for m in names if m in sys.modules], file=sys.stderr)
"""
    # What Numba's public API compiles is not kept on disk.
    env = {**os.environ, "ACCNP_CACHE_DIR": str(tmp_path), "ACCNP_COMPILER": "llvm"}
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True
        )
    assert done.stderr == "[]\n"


@pytest.mark.parametrize(
    ("compiler", "function"),
    [("llvm", "accnp.compiler.llvm.lower.write_function"),
     ("numba", "accnp.compiler.numba.compile.compile_source")],
)  # fmt: skip
def test_errors_of_both_compilers_show_the_source(compiler, function, monkeypatch):
    def fail(*args: object) -> None:
        raise KeyError("no such value")

    monkeypatch.setattr(function, fail)
    monkeypatch.setattr(kernel_cache, "disk_cache", lambda: None)
    before = jnp.config.compiler
    program = parse_kernel("""
    kernel kernel(a: f4[], b: f4[]) for lo..hi {
      for i in lo..hi independent { a[i] = neg(b[i]) }
    }
    """)
    source = numba_source(program)
    jnp.config.update("compiler", compiler)
    try:
        with pytest.raises(CompileError, match="KeyError: 'no such value'") as raised:
            kernel_cache.get_kernel(source, "kernel", ("f4*", "f4*"), program=program)
    finally:
        jnp.config.update("compiler", before)
    assert source in str(raised.value)


def test_numba_compiles_the_same_kernels(tmp_path):
    code = """
import accnp as jnp
import numpy as np
x = jnp.asarray(np.linspace(-3, 3, 50, dtype=np.float32))
print(np.asarray(jnp.tanh(x) * x).tobytes().hex(), np.asarray((x * x).sum()).tobytes().hex())
y = jnp.asarray(np.linspace(-3, 3, 600, dtype=np.float32).reshape(30, 20))
for f in (lambda y: (y * y).T.sum(0), lambda y: y[:, :3].mean(0),
          lambda y: y[:, (y[:4, 0] + 3).astype(int)], jnp.nn.gelu,
          lambda y: jnp.lax.population_count(jnp.lax.bitcast_convert_type(y, "uint32") >> 3),
          lambda y: jnp.random.bits(jnp.random.key(1), (99,))):
    print(np.asarray(jnp.jit(f)(y)).tobytes().hex())
"""
    outputs = []
    for compiler in ("llvm", "numba"):
        env = {**os.environ, "ACCNP_CACHE_DIR": str(tmp_path), "ACCNP_COMPILER": compiler}
        done = subprocess.run(
            [sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True
        )
        outputs.append(done.stdout)
    assert outputs[0] == outputs[1]


def test_forks_wait_for_numba(tmp_path):
    """A thread that compiles while the process forks does not exist in the child."""
    code = """
import os, signal, threading, time
import accnp as jnp
from numba.core.compiler_lock import global_compiler_lock
print((jnp.arange(5000.0) + 1).max())
held = threading.Event()
def compile_something():
    with global_compiler_lock:
        held.set()
        time.sleep(0.2)
thread = threading.Thread(target=compile_something)
thread.start()
held.wait()
child = os.fork()
if not child:
    signal.alarm(60)
    os._exit(0 if float((jnp.arange(5000.0) * 2).max()) == 9998 else 1)
print(os.waitpid(child, 0)[1])
thread.join()
print((jnp.arange(5000.0) - 1).max())
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "ACCNP_CACHE_DIR": str(tmp_path), "ACCNP_COMPILER": "numba"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == "5000.0\n0\n4998.0\n", done.stderr[-2000:]


@pytest.mark.parametrize("of", ["float16", "bfloat16"])
def test_bits_of_half_precision_are_those_of_memory(of: str):
    x = jnp.asarray(np.linspace(-3, 3, 77), of)
    actual = jnp.jit(lambda x: jnp.lax.bitcast_convert_type(x, "uint16") + 1)(x)
    assert (np.asarray(actual) == np.asarray(x).view("uint16") + 1).all()
