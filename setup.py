"""The C extension, which `pyproject.toml` cannot declare yet, and the library kernels that are
compiled in advance (`accnp/compiler/library/build.py`); all else is there.

Without a C compiler the package is installed without the extension, and Python code does the same
work. Kernels that cannot be compiled here are compiled when a program first needs them.
"""

import os
import platform
import runpy
import subprocess
import sys

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

FOLDER = "accnp/_native"
SOURCES = (
    "module", "pool", "graph", "launch", "interrupts", "team", "stores", "calls", "repeats",
    "debugger", "instructions", "objects", "ufuncs", "blas",
)  # fmt: skip
HEADERS = ("native", "records")
STAMP = runpy.run_path(f"{os.path.dirname(os.path.abspath(__file__))}/{FOLDER}/stamp.py")

LEVELS = ("x86-64-v4", "x86-64-v3")


class BuildWithKernels(build_ext):
    """Builds the extension, and the object files of library kernels in a folder of the package."""

    def run(self):
        super().run()
        if sys.platform != "linux" or platform.machine() != "x86_64":
            return
        here = os.path.dirname(os.path.abspath(__file__))
        folder = os.path.join(here if self.inplace else self.build_lib, "accnp", "prebuilt")
        # The source tree as it is, by the Python part of the hot path, without a cache.
        path = os.pathsep.join(filter(None, [here, *sys.path]))
        environment = {"PYTHONPATH": path, "ACCNP_NATIVE": "0", "ACCNP_CACHE_DIR": ""}
        for level in LEVELS:
            command = [sys.executable, "-m", "accnp.compiler.library.build", level, folder]
            try:
                subprocess.run(command, check=True, env=os.environ | environment, cwd=here)
            except (OSError, subprocess.CalledProcessError) as error:
                self.warn(f"no kernels are compiled in advance for {level}: {error}")


setup(
    cmdclass={"build_ext": BuildWithKernels},
    ext_modules=[
        Extension(
            f"{FOLDER.replace('/', '.')}._core",
            sources=[f"{FOLDER}/{name}.c" for name in SOURCES],
            depends=[f"{FOLDER}/{name}.h" for name in HEADERS],
            define_macros=[("SOURCES", str(STAMP["stamp_of"](FOLDER)))],
            extra_compile_args=["-std=c11", "-O3", "-fvisibility=hidden"],
            optional=True,
        )
    ],
)
