"""The examples of docstrings run, and each public function has one.

The test covers every function, class and method of the package, including generated ones.
"""

from __future__ import annotations

import doctest
import importlib
import inspect
import pkgutil
from collections.abc import Iterator
from types import GenericAlias, ModuleType
from typing import Any

import pytest
from api.test_names import NAMES, find_object

from accnp.config import scope

FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
# Folders whose docstrings speak to users.
PARTS = (
    "api",
    "config",
    "array_type",
    "checkpoints",
    "example_libraries",
    "experimental",
    "flatten_util",
    "image",
    "jax_compat",
    "lax",
    "nn",
    "numpy",
    "ops",
    "random",
    "scipy",
    "sharding",
    "test_util",
    "devtools",
    "bench.magic",
    "bench.measure",
    "dtypes",
    "pytree",
    "runtime.device",
    "extend",
    "interpreters",
    "ir",
    "lib",
)
FUNCTIONS = [
    name
    for name, (kind, _) in NAMES.items()
    if kind in ("function", "ufunc")
    and name.split(".")[0] in ("numpy", "lax", "nn", "random", "scipy", "image", "ops")
    and callable(find_object(name))
    and not isinstance(
        find_object(name), GenericAlias
    )  # a type for annotations has no text of its own
]


NAMESPACES = sorted(
    {
        name
        for name, (kind, _) in NAMES.items()
        if kind == "module" and isinstance(find_object(name), ModuleType)
    }
    | {
        f"scipy.{name}"
        for name in dir(find_object("scipy"))
        if name.isidentifier()  # pytest adds others to what it rewrites
        and isinstance(find_object(f"scipy.{name}"), ModuleType)
    }
)


def modules() -> Iterator[ModuleType]:
    for part in PARTS:
        top = importlib.import_module(f"accnp.{part}")
        yield top
        for info in pkgutil.walk_packages(getattr(top, "__path__", ()), f"accnp.{part}."):
            yield importlib.import_module(info.name)


def members(value_of_name: Any) -> Iterator[tuple[str, Any]]:
    """Yield an object and, for a class, its members."""
    yield "", value_of_name
    if inspect.isclass(value_of_name):
        for name, value in vars(value_of_name).items():
            inner = getattr(value, "__func__", getattr(value, "fget", None)) or value
            if callable(inner):
                yield f".{name}", inner


def with_examples() -> dict[str, str]:
    """Return the docstrings with examples by location, each docstring once."""
    examples: dict[str, str] = {}
    seen: set[str] = set()
    for module in modules():
        texts = {module.__name__: module.__doc__}
        for name, value in vars(module).items():
            if callable(value) and str(getattr(value, "__module__", "")).startswith("accnp"):
                home = f"{value.__module__}.{getattr(value, '__qualname__', name)}"
                texts |= {home + inner: member.__doc__ for inner, member in members(value)}
        for where, text in texts.items():
            if isinstance(text, str) and ">>>" in text and text not in seen:
                seen.add(text)
                examples[where.removeprefix("accnp.")] = text
    for name in NAMESPACES:
        examples[name] = find_object(name).__doc__ or ""
    for name in FUNCTIONS:  # those of modules that are made, too
        ours = str(getattr(find_object(name), "__module__", "")).startswith("accnp")
        text = (ours and find_object(name).__doc__) or ""
        if ">>>" in text and text not in seen:
            examples[name] = text
    return examples


EXAMPLES = with_examples()


@pytest.mark.parametrize("where", EXAMPLES)
def test_example(where: str) -> None:
    words: list[str] = []
    test = doctest.DocTestParser().get_doctest(EXAMPLES[where], {}, where, None, None)
    with scope("traceback_filtering", "auto"):
        doctest.DocTestRunner(optionflags=FLAGS).run(test, out=words.append)
    assert not words, "".join(words)


def test_namespaces_have_examples() -> None:
    """Applies to all except the distributions of `scipy.stats`, whose functions have examples."""
    bare = [name for name in NAMESPACES if ">>>" not in (find_object(name).__doc__ or "")]
    assert not [name for name in bare if not name.startswith("scipy.stats.")]
    assert len(NAMESPACES) > 50


def test_functions_have_examples() -> None:
    """Applies to the namespaces that programs use most."""
    bare = {
        name for name in FUNCTIONS if ">>>" not in (getattr(find_object(name), "__doc__", "") or "")
    }
    assert not bare
