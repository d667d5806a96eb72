"""The C extension, which `pyproject.toml` cannot declare yet; all else is there.

Without a compiler the package is installed without it, and does in Python what it does in C.
"""

from setuptools import Extension, setup

FOLDER = "accnp/_native"
SOURCES = (
    "module", "pool", "graph", "launch", "team", "stores", "calls", "repeats", "debugger",
    "objects", "ufuncs", "blas",
)  # fmt: skip
HEADERS = ("native", "records")

setup(
    ext_modules=[
        Extension(
            f"{FOLDER.replace('/', '.')}._core",
            sources=[f"{FOLDER}/{name}.c" for name in SOURCES],
            depends=[f"{FOLDER}/{name}.h" for name in HEADERS],
            extra_compile_args=["-std=c11", "-O3", "-fvisibility=hidden"],
            optional=True,
        )
    ]
)
