"""`accnp.as_jax`: `import jax` gives accnp, for libraries that are written for JAX.

The module can be called: `accnp.as_jax()` at the start of a program. `python -m accnp.as_jax
script.py` and `python -m accnp.as_jax -m module` do the same for a program that does not know
accnp. JAX need not be installed. `names.py` says what each module of JAX stands for.

>>> import accnp
>>> with accnp.as_jax():
...     import jax.numpy as jnp
...     print(jnp.sum is accnp.numpy.sum)
True
"""

from __future__ import annotations

import sys
from types import ModuleType, TracebackType

from accnp import numpy
from accnp.api.arrays.methods import set_namespace
from accnp.as_jax.finder import Finder, alias_module, is_jax

__all__ = ["AsJax", "as_jax"]


class AsJax:
    """The switch: while it is on, `jax`, `jaxlib` and their submodules are modules of accnp.

    As a context manager it switches back at the end of the block. Modules that were imported
    meanwhile keep the modules that they imported.

    Examples
    --------
    >>> import accnp
    >>> with accnp.as_jax() as switch:
    ...     print(switch)
    <accnp.as_jax, on>
    >>> switch
    <accnp.as_jax, off>
    """

    def __init__(self) -> None:
        self._finder = Finder()
        self._replaced: dict[str, ModuleType] = {}
        self._depth = 0

    def __repr__(self) -> str:
        return f"<accnp.as_jax, {'on' if self._depth else 'off'}>"

    def _turn_on(self, replace: bool) -> None:
        imported = [name for name in sys.modules if is_jax(name)]
        if not self._depth:
            if "jax" in imported and not replace:
                raise RuntimeError(
                    "as_jax: jax is imported already, and modules that use it would keep it; got "
                    f"{sys.modules['jax']!r}; call as_jax before the first import of a library "
                    "that uses jax, or pass replace=True"
                )
            self._replaced = {name: sys.modules.pop(name) for name in imported}
            sys.meta_path.insert(0, self._finder)
            # Libraries compare the namespace of an array with the module `jax.numpy`, or its name.
            set_namespace(alias_module("jax.numpy"))
        self._depth += 1

    def undo(self) -> None:
        """Let `import jax` import JAX again, if it is installed.

        Raises
        ------
        RuntimeError
            If the switch is off.
        """
        if not self._depth:
            raise RuntimeError("as_jax: the switch is off; call as_jax() first")
        self._depth -= 1
        if not self._depth:
            sys.meta_path.remove(self._finder)
            set_namespace(numpy)
            for name in [name for name in sys.modules if is_jax(name)]:
                del sys.modules[name]
            sys.modules.update(self._replaced)
            self._replaced = {}

    def __enter__(self) -> AsJax:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.undo()


_switch = AsJax()


def as_jax(*, replace: bool = False) -> AsJax:
    """Let `import jax` and imports of its submodules give accnp.

    Call it at the start of a program, before a library that uses JAX is imported. Then such
    libraries run on accnp; JAX need not be installed. `jax.__version__` is the version of JAX whose
    namespace accnp has.

    Parameters
    ----------
    replace : bool, optional
        Also if JAX has been imported. Modules that imported it keep it.

    Returns
    -------
    AsJax
        A context manager, which undoes the switch at its end.

    Raises
    ------
    RuntimeError
        If JAX has been imported, and `replace` is false.

    Notes
    -----
    Private names of JAX (`jax._src`) that popular libraries import are served. Others raise an
    ImportError: `accnp/as_jax/names.py` lists what there is.

    Examples
    --------
    >>> import accnp
    >>> with accnp.as_jax():
    ...     import jax
    ...     print(jax.jit(lambda x: x + 1)(1))
    2
    """
    _switch._turn_on(replace)
    return _switch


class _Callable(ModuleType):
    """A module that can be called, since `accnp.as_jax` is both a function and a module."""

    def __call__(self, *, replace: bool = False) -> AsJax:
        return as_jax(replace=replace)


_Callable.__call__.__doc__ = as_jax.__doc__
sys.modules[__name__].__class__ = _Callable
