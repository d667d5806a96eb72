"""Command-line flags for options, for programs that use absl.

`config_with_absl` defines a flag `--jax_...` for each option of JAX in `config`. When absl has
parsed the command line, the options get the values of the flags.
"""

from __future__ import annotations

import importlib
import sys
from typing import Any

from accnp.config import OPTIONS, config

__all__ = ["config_with_absl", "parse_flags_with_absl"]

_defined: set[str] = set()


def _absl(name: str) -> Any:
    try:
        return importlib.import_module(f"absl.{name}")
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            f"config: command-line flags require absl; got {error}; pip install absl-py"
        ) from None


def config_with_absl() -> None:
    """Define a flag `--jax_<name>` for each option of JAX, which `absl.app.run` reads.

    Raises
    ------
    ModuleNotFoundError
        If absl-py is not installed.

    See Also
    --------
    config.parse_flags_with_absl : Read the flags without `absl.app`.
    """
    flags, app = _absl("flags"), _absl("app")
    for name, option in OPTIONS.items():
        if option.ours or option.kind is object or name in _defined:
            continue
        define = {bool: flags.DEFINE_bool, int: flags.DEFINE_integer}.get(
            option.kind, flags.DEFINE_string
        )
        define(f"jax_{name}", config.read(name), f"the option {name}")
        _defined.add(name)
    app.call_after_init(_apply_flags)


def parse_flags_with_absl() -> None:
    """Define the flags, and set the options by those on the command line.

    Other flags are left for absl.

    Raises
    ------
    ModuleNotFoundError
        If absl-py is not installed.

    See Also
    --------
    config.config_with_absl : Only define the flags.
    """
    first = not _defined
    config_with_absl()
    if first:
        mine = [arg for arg in sys.argv[1:] if arg.lstrip("-").removeprefix("no")[:4] == "jax_"]
        _absl("flags").FLAGS([sys.argv[0], *mine], known_only=True)
        _apply_flags()


def _apply_flags() -> None:
    values = _absl("flags").FLAGS
    for name in _defined:
        if values[f"jax_{name}"].present:
            config.update(name, values[f"jax_{name}"].value)
