"""Library kernels that come with the package: when they are used, and their bits."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from accnp.compiler import processor
from accnp.compiler.library import prebuilt

BY_LLVM = True

LEVELS = {level.name: level for level in processor.LEVELS}
PROGRAM = """
import hashlib, sys
import numpy as np
import accnp as jnp
from accnp.compiler import kernel_cache as compile
from accnp.compiler.library import prebuilt
prebuilt.FOLDER = sys.argv[1]
r = np.random.default_rng(3)
digest = hashlib.sha256()
for dtype in ("f4", "f8", "c8", "c16"):
    with jnp.enable_x64():
        draw = lambda *shape: jnp.asarray(r.normal(size=shape).astype(dtype))
        for shape in ((3, 5, 7), (64, 64, 64), (130, 300, 70), (1, 600, 1)):
            m, k, n = shape
            for y in (draw(m, k) @ draw(k, n), draw(k, m).T @ draw(n, k).T):
                digest.update(np.asarray(y).tobytes())
        a = draw(20, 20)
        digest.update(np.asarray(jnp.linalg.solve(a, draw(20, 3))).tobytes())
        if dtype[0] == "f":
            image, filters = draw(2, 3, 12, 12), draw(4, 3, 3, 3)
            y = jnp.lax.conv(image, filters, (1, 1), "SAME")
            digest.update(np.asarray(y).tobytes())
            digest.update(np.asarray(jnp.linalg.cholesky(a @ a.T)).tobytes())
names = {k.name for k in compile._kernels.values() if k.origin == "prebuilt"}
print(digest.hexdigest(), *sorted(names))
"""


def digest_with(folder):
    """The digest of results, and the kernels that came from a folder."""
    command = [sys.executable, "-c", PROGRAM, str(folder)]
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"ACCNP_CACHE_DIR": ""},
    )
    digest, *names = done.stdout.split()
    return digest, set(names)


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """A folder with the kernels for this machine's level."""
    if not processor.LEVEL:
        pytest.skip("this processor has no level")
    folder = tmp_path_factory.mktemp("prebuilt")
    command = [sys.executable, "-m", "accnp.compiler.build_library", processor.LEVEL, str(folder)]
    subprocess.run(command, check=True, capture_output=True)
    return folder


def test_levels_are_those_that_llvm_finds():
    binding = pytest.importorskip("llvmlite.binding")
    on = {name for name, value in binding.get_host_cpu_features().items() if value}
    fitting = [level.name for level in processor.LEVELS if level.features <= on]
    if processor.LEVEL:
        assert processor.LEVEL in fitting
        assert LEVELS[processor.LEVEL].wide == processor.WIDE
    assert [level.wide for level in processor.LEVELS] == [True, False, False]
    assert LEVELS["x86-64-v2"].features < LEVELS["x86-64-v3"].features
    assert LEVELS["x86-64-v3"].features < LEVELS["x86-64-v4"].features


def test_kernels_of_the_package_have_the_bits_of_compiled_ones(built, tmp_path):
    compiled, none = digest_with(tmp_path)
    assert not none
    digest, names = digest_with(built)
    assert {"gemm_f4", "gemm_f8", "gemm_c8", "gemm_c16", "conv_f4", "conv_f8"} <= names
    assert digest == compiled


PRODUCTS = {
    "two matrices": "normal(3, 3) @ normal(3, 3), normal(64, 64) @ normal(64, 64)",
    "several tasks": "normal(900, 700) @ normal(700, 800)",
    "transposed": "normal(30, 20).T @ normal(50, 30).T",
    "a matrix and a vector": "normal(40, 40) @ normal(40), normal(2000, 2000) @ normal(2000)",
    "a vector and a matrix": "normal(40) @ normal(40, 40), normal(2000) @ normal(2000, 2000)",
    "batches": "normal(5, 9, 9) @ normal(5, 9, 9), normal(5, 9, 8) @ normal(8, 7)",
    "attention": "jnp.einsum('bhqd,bhkd->bhqk', normal(2, 4, 16, 8), normal(2, 4, 16, 8))",
}


@pytest.mark.parametrize("code", PRODUCTS.values(), ids=PRODUCTS)
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_a_first_product_does_not_load_llvm(
    built: Path, tmp_path: Path, dtype: str, code: str
) -> None:
    program = f"""
import sys
import numpy as np
import accnp as jnp
from accnp.compiler.library import prebuilt
prebuilt.FOLDER = {str(built)!r}
jnp.config.update("enable_x64", True)
r = np.random.default_rng(0)
normal = lambda *shape: jnp.asarray(r.normal(size=shape).astype({dtype!r}))
jnp.block_until_ready(({code},))
assert "llvmlite" not in sys.modules
"""
    environment = os.environ | {"ACCNP_CACHE_DIR": str(tmp_path)}
    subprocess.run([sys.executable, "-c", program], check=True, env=environment)


def test_damaged_files_and_those_of_another_compiler_are_not_used(built, tmp_path):
    level = tmp_path / processor.LEVEL
    level.mkdir()
    for file in (built / processor.LEVEL).iterdir():
        if file.name.startswith("gemm_f8"):
            (level / file.name).write_bytes(file.read_bytes()[:1000])
        else:
            name = file.name.partition("-")[0]
            (level / f"{name}-{'0' * 32}.o").write_bytes(file.read_bytes())
    digest, names = digest_with(tmp_path)
    assert not names
    assert digest == digest_with(tmp_path / "none")[0]


def test_names_depend_on_all_that_shapes_code():
    names = [
        prebuilt.file_name(identity, level, stamp)
        for identity in (("gemm_f4", "i8", "a"), ("gemm_f4", "i8", "b"), ("gemm_f8", "i8", "a"))
        for level in LEVELS
        for stamp in ("1", "2")
    ]
    assert len({*names}) == len(names)
