"""Generate the stub of `accnp.scipy.stats` from the signatures of the distributions.

The modules of distributions are generated from a table, which type checkers cannot read. In the
stub, each distribution is a class with static methods. `python -m tests.type_checking.stats_stub`
writes the stub, and `test_programs.py` compares it with the signatures.
"""

from __future__ import annotations

import inspect
from pathlib import Path
from types import ModuleType

from accnp.scipy import stats

STUB = Path(stats.__file__).with_suffix(".pyi")
HEAD = '''"""Types of `accnp.scipy.stats`; written by `python -m tests.type_checking.stats_stub`."""

from accnp.array_type import Array, ArrayLike
from accnp.scipy.stats.samples import gaussian_kde as gaussian_kde
from accnp.scipy.stats.samples import mode as mode
from accnp.scipy.stats.samples import rankdata as rankdata
from accnp.scipy.stats.samples import sem as sem
'''


def parameter_text(parameter: inspect.Parameter) -> str:
    kind = "None" if parameter.name == "allow_singular" else "ArrayLike"
    default = "" if parameter.default is parameter.empty else f" = {parameter.default!r}"
    return f"{parameter.name}: {kind}{default}"


def class_text(name: str, module: ModuleType) -> str:
    """Return the class that stands for the module of a distribution."""
    lines = [f"class {name}:"]
    for key, function in sorted(vars(module).items()):
        if key.startswith("_") or not callable(function):
            continue
        parameters = inspect.signature(function).parameters.values()
        signature = ", ".join(map(parameter_text, parameters))
        text = f"    def {key}({signature}) -> Array: ..."
        if len(text) > 100:
            text = f"    def {key}(\n        {signature}\n    ) -> Array: ..."
        lines += ["    @staticmethod", text]
    return "\n".join(lines)


def stub() -> str:
    """Return the text of the stub."""
    modules = {name: getattr(stats, name) for name in stats.__all__}
    classes = [class_text(n, m) for n, m in modules.items() if isinstance(m, ModuleType)]
    names = ["__all__ = [", *(f'    "{name}",' for name in stats.__all__), "]", ""]
    return "\n".join([HEAD, *names, "\n\n".join(classes), ""])


if __name__ == "__main__":
    STUB.write_text(stub(), encoding="utf-8")
