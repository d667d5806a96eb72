"""The C extension, which `pyproject.toml` cannot declare yet, the library kernels that are compiled
in advance (`accnp/compiler/build_library.py`), and bytecode; all else is there.

Without a C compiler the package is installed without the extension, and Python code does the same
work. Kernels that cannot be compiled here are compiled when a program first needs them.

Without bytecode, a process compiles each module that it imports, which takes several times as long
as the rest of a short program, and processes cannot store it if the package is read-only or
PYTHONDONTWRITEBYTECODE is set. pip writes bytecode, but other installers do not, so it is a part of
the wheel. It contains hashes of the sources, which Python checks, because installers do not keep
the times of files.
"""

import compileall
import os
import platform
import py_compile
import runpy
import subprocess
import sys

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.command.build_py import build_py

FOLDER = "accnp/_native"
SOURCES = (
    "module", "pool", "graph", "launch", "interrupts", "thread_pool", "stores", "calls",
    "pending_dispatch", "debugger", "instructions", "objects", "ufuncs", "blas", "messages",
    "pytrees",
)  # fmt: skip
HEADERS = ("native", "records")
STAMP = runpy.run_path(f"{os.path.dirname(os.path.abspath(__file__))}/{FOLDER}/stamp.py")

LEVELS = ("x86-64-v4", "x86-64-v3")


class BuildWithKernels(build_ext):
    """Builds the extension, and the object files of library kernels in a folder of the package."""

    def run(self):
        super().run()
        if self.inplace:
            compileall.compile_dir(os.path.dirname(os.path.abspath(__file__)) + "/accnp", quiet=1)
        if sys.platform != "linux" or platform.machine() != "x86_64":
            return
        here = os.path.dirname(os.path.abspath(__file__))
        folder = os.path.join(here if self.inplace else self.build_lib, "accnp", "prebuilt")
        # The source tree as it is, by the Python part of the hot path, without a cache.
        path = os.pathsep.join(filter(None, [here, *sys.path]))
        environment = {"PYTHONPATH": path, "ACCNP_NATIVE": "0", "ACCNP_CACHE_DIR": ""}
        for level in LEVELS:
            command = [sys.executable, "-m", "accnp.compiler.build_library", level, folder]
            try:
                subprocess.run(command, check=True, env=os.environ | environment, cwd=here)
            except (OSError, subprocess.CalledProcessError) as error:
                self.warn(f"no kernels are compiled in advance for {level}: {error}")


class BuildWithBytecode(build_py):
    """Copies the modules of the package, and compiles the copies to bytecode."""

    def run(self):
        super().run()
        if not self.editable_mode:
            compileall.compile_dir(
                os.path.join(self.build_lib, "accnp"),
                quiet=1,
                force=True,
                stripdir=self.build_lib,
                invalidation_mode=py_compile.PycInvalidationMode.CHECKED_HASH,
            )


setup(
    cmdclass={"build_ext": BuildWithKernels, "build_py": BuildWithBytecode},
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
