"""The cost of starting, counted: imported modules, and what a process with kernels on
disk loads.
"""

import json
import os
import subprocess
import sys

import pytest

from accnp.lazy_imports import load_extension

BY_LLVM = True

PROGRAM = """
import json, sys
import numpy
before = set(sys.modules)
{code}
new = sorted(set(sys.modules) - before)
print(json.dumps([new, accnp.counters()["compiles"]]))
"""


def modules_of(code, **environment):
    """Return the modules that a program loads beyond NumPy's, and the number of kernels it
    compiles."""
    command = [sys.executable, "-c", PROGRAM.format(code=code)]
    done = subprocess.run(
        command, env=os.environ | environment, capture_output=True, text=True, check=True
    )
    new, compiles = json.loads(done.stdout.splitlines()[-1])
    return new, compiles


def test_import_loads_few_modules():
    new, _ = modules_of("import accnp")
    ours = [m for m in new if m.split(".")[0] == "accnp"]
    assert len(ours) <= 119, "load what few programs use on first use (accnp/__init__.py)"
    heavy = {"numba", "llvmlite", "scipy", "hashlib", "logging", "difflib", "tempfile", "html"}
    assert not heavy & set(new)


def test_lazily_loaded_names_exist():
    code = """
import accnp
from accnp.public_names import HOMES
modules = HOMES["accnp"]["accnp"].split()
for name in modules:
    assert getattr(accnp, name).__name__ == f"accnp.{name}", name
assert set(modules) <= set(dir(accnp))
assert not {"engine", "ir", "passes", "TYPE_CHECKING"} & set(dir(accnp))
assert accnp.checkify.checkify
import accnp.numpy as jnp
for name in accnp.__all__:
    getattr(accnp, name)
for name in jnp.__all__:
    assert getattr(jnp, name) is getattr(accnp, name), name
    assert name in dir(jnp) and name in dir(accnp), name
from accnp import *
assert unique is jnp.unique
"""
    new, _ = modules_of(code)
    assert "accnp.interpreters" in new


def test_lazily_loaded_ops_exist():
    code = """
import accnp
from accnp.ir.op import OPS, o
first, later = set(OPS), dict(OPS.later)
assert later and not first & set(later)
for name in later:
    assert OPS[name].name == name
assert o.scan and not hasattr(o, "no_such_op")
assert set(OPS) == set(OPS.whole()) == first | set(later)
"""
    new, _ = modules_of(code)
    assert "accnp.primitives.pooling" in new


def test_programs_load_the_writers_of_their_own_kernels():
    code = """
import accnp, accnp.numpy as jnp
jnp.argmax(jnp.arange(1000.0)).block_until_ready()
"""
    new, _ = modules_of(code)
    library = "accnp.compiler.library."
    assert f"{library}scans.extremes" in new
    others = ("sorts", "linalg", "products", "windows", "indexing", "gpu")
    assert not [m for m in new if m.startswith(tuple(library + name for name in others))]


def test_kernels_on_disk_need_no_numba(tmp_path):
    code = """
import accnp, accnp.numpy as jnp
accnp.jit(lambda x: jnp.sort(jnp.tanh(x)).sum())(jnp.arange(100000.0)).block_until_ready()
"""
    first, compiled = modules_of(code, ACCNP_CACHE_DIR=str(tmp_path))
    assert compiled
    assert "llvmlite" in first
    second, compiled = modules_of(code, ACCNP_CACHE_DIR=str(tmp_path))
    assert not compiled
    assert not {"numba", "scipy", "llvmlite.ir"} & set(second)


def test_transforms_and_lapack_load_no_package_of_scipy():
    code = """
import accnp, accnp.numpy as jnp, numpy
x = numpy.eye(200)
for _ in range(2):
    assert (numpy.asarray(jnp.fft.fft(x[0])) == 1).all()
    assert (numpy.asarray(jnp.linalg.inv(x)) == x).all()
    assert (numpy.asarray(jnp.linalg.eigvals(x)) == 1).all()
packages = {"scipy.fft", "scipy.linalg"}
assert not packages & set(sys.modules)
import scipy.fft, scipy.linalg.cython_lapack
assert (scipy.fft.fft(x[0]) == 1).all()
assert (scipy.linalg.lu(x)[2] == x).all()
assert "dgesv" in scipy.linalg.cython_lapack.__pyx_capi__
"""
    modules_of(code)


def test_missing_extension_modules():
    for name in ("scipy.linalg.no_such_module", "no_such_package.module", "json.no_such_module"):
        with pytest.raises(ImportError, match=f"no extension module.*'{name}'"):
            load_extension(name)


def test_extension_modules_that_need_their_package_come_with_it():
    """Cython modules of scipy.special import their package, which imports them."""
    code = """
import accnp
from accnp.lazy_imports import load_extension
assert load_extension("scipy.special._ufuncs").gamma(5.0) == 24.0
import scipy.special
assert scipy.special.gamma(5.0) == 24.0
"""
    modules_of(code)
