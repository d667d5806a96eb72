"""`accnp.as_jax`, which makes `import jax` import accnp: the modules and names, how to revert it,
and the errors.
"""

import importlib
import importlib.util
import pickle
import subprocess
import sys

import pytest

import accnp
from accnp.as_jax import finder, names


@pytest.fixture
def switched():
    with accnp.as_jax(replace=True):  # other tests of this process have imported JAX
        yield


def test_modules_of_jax_are_those_of_accnp(switched):
    import jax
    import jax.numpy as jnp
    from jax import lax, random
    from jax.experimental import sparse
    from jax.scipy import special

    assert jnp.sum is accnp.numpy.sum
    assert lax.scan is accnp.lax.scan
    assert random.split is accnp.random.split
    assert special.gamma is accnp.scipy.special.gamma
    assert sparse.BCOO is accnp.experimental.sparse.BCOO
    assert jax.numpy is jnp
    assert jax.Array is accnp.Array
    assert jax.config is accnp.config
    assert ".".join(map(str, jax.version.__version_info__)) == jax.__version__
    assert "grad" in dir(jax)
    assert int(jax.jit(lambda x: x + 1)(1)) == 2


def test_versions_satisfy_library_requirements(switched):
    import jax
    import jaxlib

    assert (0, 7, 2) <= jax.__version_info__ < (0, 11)
    assert jaxlib.__version__ == jax.__version__


def test_star_imports_and_submodules_without_an_import(switched):
    space = {}
    exec("from jax.numpy import *", space)
    assert space["einsum"] is accnp.numpy.einsum
    jax = importlib.import_module("jax")
    assert jax.tree_util.tree_map is accnp.tree_util.tree_map
    assert jax.numpy.fft.fft is accnp.numpy.fft.fft


@pytest.mark.parametrize("module", [*names.MODULES, *names.NAMES])
def test_everything_in_the_tables_can_be_imported(switched, module):
    alias = importlib.import_module(module)
    assert isinstance(alias, finder.AliasModule)
    for name in names.NAMES.get(module, ()):
        getattr(alias, name)


def test_missing_names_raise_import_error(switched):
    with pytest.raises(ModuleNotFoundError, match=r"accnp has no module jax\._src\.nowhere; .*nam"):
        importlib.import_module("jax._src.nowhere")
    with pytest.raises(ImportError, match=r"'Nothing' from 'jax\._src\.literals' \(.*names\.py\)"):
        exec("from jax._src.literals import Nothing")
    with pytest.raises(ImportError, match=r"cannot import name 'nothing' from 'jax\.numpy'"):
        exec("from jax.numpy import nothing")
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        importlib.import_module("jax").nothing  # noqa: B018
    for internal in ("engine", "compiler", "api", "trace_fn"):
        with pytest.raises(ModuleNotFoundError, match=rf"No module named 'jax\.{internal}'"):
            importlib.import_module(f"jax.{internal}")


def test_hasattr_and_find_spec_work(switched):
    import jax
    import jaxlib

    assert not hasattr(jaxlib, "xla_client")
    assert not hasattr(jax.version, "x")
    assert not hasattr(importlib.import_module("jax._src.xla_bridge"), "get_backend")
    assert getattr(jax._src.literals, "x", None) is None
    for missing in ("jax.extend.nothing", "jaxlib.xla_extension"):
        assert importlib.util.find_spec(missing) is None
    assert importlib.util.find_spec("jax.numpy") is not None
    assert jax.__path__ == []
    assert set(dir(jax.version)) >= {"__version__", "__version_info__"}
    assert "__bool__" not in dir(jax.version)


def test_as_jax_is_reverted_and_can_be_nested():
    before = {name: module for name, module in sys.modules.items() if finder.is_jax(name)}
    with accnp.as_jax(replace=True) as switch:
        with accnp.as_jax():
            import jax

            assert jax.jit is accnp.jit
        assert repr(switch) == "<accnp.as_jax, on>"
        assert importlib.import_module("jax").jit is accnp.jit
    assert {name: m for name, m in sys.modules.items() if finder.is_jax(name)} == before
    assert not any(isinstance(f, finder.Finder) for f in sys.meta_path)
    with pytest.raises(RuntimeError, match=r"as_jax: the switch is off; call as_jax\(\) first"):
        switch.undo()


def test_modules_keep_accnp_after_the_block(tmp_path):
    code = """
import sys, accnp
with accnp.as_jax():
    import jax, jax.numpy as jnp
print(jax.random.key is accnp.random.key, jax.scipy.special.gamma is accnp.scipy.special.gamma)
print(type(jax.jit(lambda x: jax.lax.sin(x) + jnp.fft.fft(x).real)(accnp.ones(2))) is accnp.Array)
print(any(m == "jax" or m.startswith(("jax.", "jaxlib")) for m in sys.modules))
with accnp.as_jax():
    import jax.random
    print(jax.random.key is accnp.random.key)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["True", "True", "True", "False", "True"], done.stderr


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int4"])
def test_arrays_that_were_pickled_under_jax_are_loaded(dtype):
    import jax.numpy as jnp

    data = pickle.dumps({"a": jnp.arange(3).astype(dtype), "weak": jnp.asarray(2.0)})
    with accnp.as_jax(replace=True):
        loaded = pickle.loads(data)
    assert type(loaded["a"]) is accnp.Array
    assert loaded["a"].dtype == dtype
    assert loaded["a"].astype(int).tolist() == [0, 1, 2]
    assert loaded["weak"].weak_type


def test_as_jax_is_reverted_after_an_error():
    with pytest.raises(ZeroDivisionError), accnp.as_jax(replace=True):
        1 / 0  # noqa: B018
    assert not any(isinstance(f, finder.Finder) for f in sys.meta_path)


def test_a_jax_that_is_in_use_is_not_replaced_silently():
    importlib.import_module("jax")
    with pytest.raises(RuntimeError, match="as_jax: jax is imported already"):
        accnp.as_jax()
    assert not any(isinstance(f, finder.Finder) for f in sys.meta_path)


def run(*arguments, **how):
    return subprocess.run(
        [sys.executable, "-m", "accnp.as_jax", *arguments],
        capture_output=True, text=True, check=False, **how,
    )  # fmt: skip


def test_the_command_runs_scripts_and_modules(tmp_path):
    (tmp_path / "beside.py").write_text("import jax\nNAME = jax.jit.__module__\n")
    script = tmp_path / "script.py"
    script.write_text(
        "import sys, beside\nprint(__name__, sys.argv[1:], beside.NAME.split('.')[0])\n"
    )
    assert run(str(script), "-m", "x").stdout == "__main__ ['-m', 'x'] accnp\n"
    done = run("-m", "script", "1", cwd=tmp_path)
    assert done.stdout == "__main__ ['1'] accnp\n", done.stderr
    failed = run(str(tmp_path / "nowhere.py"))
    assert failed.returncode == 1
    assert "accnp.as_jax: there is no file" in failed.stderr
    assert "usage: python -m accnp.as_jax" in run().stderr
    assert "usage: python -m accnp.as_jax" in run("--help").stdout
    away = "import os\nos.chdir('/')\nprint(os.path.isabs(__file__))\n"
    (tmp_path / "away.py").write_text(away)
    assert run("away.py", cwd=tmp_path).stdout == "True\n"


def test_importing_accnp_does_not_load_as_jax():
    code = "import accnp, sys; print([m for m in sys.modules if 'as_jax' in m])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
