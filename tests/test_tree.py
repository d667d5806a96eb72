"""The folders of tests are those of the package, except for tests that concern several of them."""

from pathlib import Path

TESTS = Path(__file__).resolve().parent
PACKAGE = TESTS.parent / "accnp"
# Folders with tests that concern no single folder of the package.
OTHER_FOLDERS = {
    "api/families": "expressions that are compared with JAX",
    "api/values": "expressions that are compared with JAX",
    "array_api": "the conformance suite of the array API standard",
    "chance": "random programs",
    "cuda": "kernels for GPUs: compiler, runtime and engine",
    "expected": "recorded results",
    "fuzz": "random calls and texts",
    "libraries": "other libraries on accnp",
    "platforms": "other processors and versions",
    "processes": "programs of several processes",
    "programs": "whole programs",
    "seeds": "programs of users",
    "sweep": "random calls of all public functions",
    "type_checking": "programs for type checkers",
}


def test_folders_are_those_of_the_package():
    for folder in TESTS.rglob("*/"):
        name = folder.relative_to(TESTS).as_posix()
        known = any(f"{name}/".startswith(f"{other}/") for other in OTHER_FOLDERS)
        if "__pycache__" not in name and any(folder.glob("test_*.py")) and not known:
            assert (PACKAGE / name).is_dir(), name
