"""Calls of compiled user functions: `ffi_call` of targets with the plain C interface.

Targets are functions `void f(void *out, const void **in)`; with several results, `out` is an array
of pointers. XLA's typed interface, whose functions take a call frame, and everything else that
needs XLA raise NotImplementedError.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from accnp.api.effects.callbacks import io_callback, pure_callback
from accnp.api.jit.abstract_evaluation import ShapeDtypeStruct
from accnp.errors import api_boundary

__all__ = [
    "build_ffi_lowering_function", "ffi_call", "ffi_lowering", "include_dir", "pycapsule",
    "register_ffi_target", "register_ffi_target_as_batch_partitionable", "register_ffi_type",
    "register_ffi_type_id",
]  # fmt: skip

_NAME = b"xla._CUSTOM_CALL_TARGET"
_targets: dict[str, Any] = {}
_Plain = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)


@api_boundary
def pycapsule(funcptr: Any) -> Any:
    """Wrap the address of a compiled function into a capsule for `register_ffi_target`.

    Parameters
    ----------
    funcptr : ctypes function or int
        Function of a library that `ctypes` loaded, or its address. It is not checked: calling a
        wrong address ends the process.

    Returns
    -------
    PyCapsule
        Capsule that holds the address.

    Raises
    ------
    TypeError
        If the argument is neither a ctypes function nor an address.

    See Also
    --------
    ffi.register_ffi_target : Give the function a name.

    Examples
    --------
    >>> import accnp as jax, ctypes
    >>> type(jax.ffi.pycapsule(ctypes.CDLL(None).free)).__name__
    'PyCapsule'
    """
    make = ctypes.pythonapi.PyCapsule_New
    make.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    make.restype = ctypes.py_object
    return make(ctypes.cast(funcptr, ctypes.c_void_p), _NAME, None)


def _address(capsule: Any) -> int:
    api = ctypes.pythonapi
    name, get = api.PyCapsule_GetName, api.PyCapsule_GetPointer
    name.restype, name.argtypes = ctypes.c_char_p, [ctypes.py_object]
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return get(capsule, name(capsule))


@api_boundary
def register_ffi_target(
    name: str, fn: Any, platform: str = "cpu", api_version: int = 1, **kwargs: object
) -> None:
    """Register a compiled function under a name for `ffi_call`.

    Parameters
    ----------
    name : str
        Identifier that `ffi_call` uses.
    fn : PyCapsule
        Capsule with the function, made by `pycapsule`.
    platform : str, optional
        Only "cpu", the default.
    api_version : int, optional
        Interface of the function: 0 for `void f(void *out, const void **in)`. The default is 1,
        XLA's typed interface, which is not supported.
    **kwargs : object
        Ignored; present for compatibility with JAX.

    Raises
    ------
    NotImplementedError
        If another interface or platform is requested.
    TypeError
        If `fn` is not a capsule.

    See Also
    --------
    ffi.pycapsule : Make a capsule.
    ffi.ffi_call : Call the function.

    Examples
    --------
    >>> import accnp as jax, ctypes
    >>> free = jax.ffi.pycapsule(ctypes.CDLL(None).free)
    >>> jax.ffi.register_ffi_target("docs.free", free, api_version=0)
    """
    if api_version != 0:
        raise NotImplementedError(
            "ffi.register_ffi_target: XLA's typed interface (api_version=1) is not supported; "
            f"got api_version={api_version} for {name!r}; use void f(void *out, const void **in) "
            "and pass api_version=0"
        )
    if platform.lower() not in ("cpu", "host"):
        raise NotImplementedError(
            f"ffi.register_ffi_target: the only platform is 'cpu'; got {platform!r}; "
            "leave platform out"
        )
    if type(fn).__name__ != "PyCapsule":
        raise TypeError(
            f"ffi.register_ffi_target: expected a capsule; got {fn!r}; make one with ffi.pycapsule"
        )
    _targets[name] = fn


class _Target:
    """A target with the types of its results, as a function of NumPy arrays of given ranks, which
    may have additional leading batch axes."""

    def __init__(self, name: str, kinds: Sequence[Any], single: bool) -> None:
        self.__name__ = name
        self.kinds, self.single = kinds, single
        self.call = _Plain(_address(_targets[name]))

    def on(self, ranks: Sequence[int]) -> Callable[..., Any]:
        """Return the function that is called on the host."""

        def run(*operands: Any) -> Any:
            ins = [np.asarray(x, order="C") for x in operands]
            pairs = zip(ins, ranks, strict=True)
            batch = np.broadcast_shapes(*[x.shape[: x.ndim - rank] for x, rank in pairs])
            outs = [np.empty((*batch, *k.shape), k.dtype) for k in self.kinds]
            pointers = (ctypes.c_void_p * max(1, len(ins)))(*[x.ctypes.data for x in ins])
            if self.single:
                self.call(outs[0].ctypes.data, ctypes.addressof(pointers))
                return outs[0]
            places = (ctypes.c_void_p * max(1, len(outs)))(*[x.ctypes.data for x in outs])
            self.call(ctypes.addressof(places), ctypes.addressof(pointers))
            return outs

        run.__name__ = self.__name__
        return run


@api_boundary
def ffi_call(
    target_name: str,
    result_shape_dtypes: Any,
    *,
    has_side_effect: bool = False,
    vmap_method: str | None = None,
    input_layouts: None = None,
    output_layouts: None = None,
    input_output_aliases: None = None,
    custom_call_api_version: int = 4,
    legacy_backend_config: str | None = None,
) -> Callable[..., Any]:
    """Make a function of arrays that calls a registered compiled function.

    Parameters
    ----------
    target_name : str
        Name given to `register_ffi_target`.
    result_shape_dtypes : ShapeDtypeStruct or sequence
        Type of the result, or one for each of several results.
    has_side_effect : bool, optional
        If True, the function is called each time the program runs, even if the results are not
        used. The default is False.
    vmap_method : str, optional
        What `vmap` does, as for `pure_callback`.
    input_layouts : None, optional
        Not supported: arrays are row-major.
    output_layouts : None, optional
        Not supported: arrays are row-major.
    input_output_aliases : None, optional
        Not supported: results have their own buffers.
    custom_call_api_version : int, optional
        Ignored: the version of the registered target is used.
    legacy_backend_config : None, optional
        Not supported, since it is text for XLA.

    Returns
    -------
    callable
        Function of arrays of any shape and dtype that returns the declared results.

    Raises
    ------
    NotImplementedError
        If an option needs XLA, or the target is not registered.

    See Also
    --------
    ffi.register_ffi_target : Register a compiled function.
    pure_callback : Call a Python function.

    Examples
    --------
    >>> import accnp as jax, ctypes, numpy as np
    >>> one = ctypes.POINTER(ctypes.c_float)
    >>> kind = ctypes.CFUNCTYPE(None, one, ctypes.POINTER(one))
    >>> @kind
    ... def twice(out, ins):
    ...     out[0] = 2 * ins[0][0]
    >>> jax.ffi.register_ffi_target("docs_twice", jax.ffi.pycapsule(twice), api_version=0)
    >>> result = jax.ShapeDtypeStruct((), np.float32)
    >>> jax.ffi.ffi_call("docs_twice", result)(np.float32(4))
    Array(8., dtype=float32)
    """
    for name, value in (
        ("input_layouts", input_layouts),
        ("output_layouts", output_layouts),
        ("input_output_aliases", input_output_aliases),
        ("legacy_backend_config", legacy_backend_config),
    ):
        if value is not None:
            raise NotImplementedError(
                f"ffi.ffi_call: {name} is not supported without XLA; got {value!r}; leave it out"
            )
    if target_name not in _targets:
        raise NotImplementedError(
            f"ffi.ffi_call: unknown target; got {target_name!r}; use ffi.register_ffi_target first"
        )
    single = not isinstance(result_shape_dtypes, Sequence)
    several = [result_shape_dtypes] if single else list(result_shape_dtypes)
    kinds = [ShapeDtypeStruct(k.shape, k.dtype) for k in several]
    target = _Target(target_name, kinds, single)
    types = kinds[0] if single else kinds

    def call(*args: Any, **attributes: Any) -> Any:
        if attributes:
            raise NotImplementedError(
                f"ffi.ffi_call: attributes need XLA's typed interface; got {sorted(attributes)}; "
                "pass them as operands"
            )
        run = target.on([np.ndim(x) for x in args])
        if has_side_effect:
            return io_callback(run, types, *args)
        return pure_callback(run, types, *args, vmap_method=vmap_method)

    return call


def _needs_xla(name: str, instead: str) -> NotImplementedError:
    return NotImplementedError(f"ffi.{name}: accnp does not use XLA; {instead}")


def include_dir() -> str:
    """Raise an error: the headers of XLA's typed interface are not part of accnp.

    Returns
    -------
    str
        Never returned.

    Raises
    ------
    NotImplementedError
        Always.

    See Also
    --------
    ffi.register_ffi_target : Register a function of the supported interface.

    Examples
    --------
    >>> import accnp as jax
    >>> jax.ffi.include_dir()
    Traceback (most recent call last):
        ...
    NotImplementedError: ffi.include_dir: ...
    """
    raise _needs_xla("include_dir", "functions void f(void *out, const void **in) need no header")


@api_boundary
def ffi_lowering(call_target_name: str, **_: Any) -> Callable[..., Any]:
    """Raise an error: rules for the compiler XLA are not supported.

    Parameters
    ----------
    call_target_name : str
        Name of the registered function.

    Returns
    -------
    callable
        Never returned.

    Raises
    ------
    NotImplementedError
        Always.

    See Also
    --------
    ffi.ffi_call : Call a registered function.

    Examples
    --------
    >>> import accnp as jax
    >>> jax.ffi.ffi_lowering("f")
    Traceback (most recent call last):
        ...
    NotImplementedError: ffi.ffi_lowering: ...
    """
    raise _needs_xla("ffi_lowering", "use ffi.ffi_call")


@api_boundary
def build_ffi_lowering_function(call_target_name: str, **_: Any) -> Callable[..., Any]:
    """Raise an error: rules for the compiler XLA are not supported.

    Parameters
    ----------
    call_target_name : str
        Name of the registered function.

    Returns
    -------
    callable
        Never returned.

    Raises
    ------
    NotImplementedError
        Always.

    See Also
    --------
    ffi.ffi_call : Call a registered function.

    Examples
    --------
    >>> import accnp as jax
    >>> jax.ffi.build_ffi_lowering_function("f")
    Traceback (most recent call last):
        ...
    NotImplementedError: ffi.build_ffi_lowering_function: ...
    """
    raise _needs_xla("build_ffi_lowering_function", "use ffi.ffi_call")


@api_boundary
def register_ffi_type(name: str, type_registration: object, platform: str = "cpu") -> None:
    """Raise an error: types of state are part of XLA's typed interface.

    Parameters
    ----------
    name : str
        Identifier of the state.
    type_registration : object
        Description of the state.
    platform : str, optional
        Device platform of the state.

    Raises
    ------
    NotImplementedError
        Always.

    See Also
    --------
    ffi.register_ffi_target : Register a function of the supported interface.

    Examples
    --------
    >>> import accnp as jax
    >>> jax.ffi.register_ffi_type("t", None)
    Traceback (most recent call last):
        ...
    NotImplementedError: ffi.register_ffi_type: ...
    """
    raise _needs_xla("register_ffi_type", "keep state in your own library")


@api_boundary
def register_ffi_type_id(name: str, obj: object, platform: str = "cpu") -> None:
    """Raise an error: types of state are part of XLA's typed interface.

    Parameters
    ----------
    name : str
        Identifier of the state.
    obj : object
        Description of the state.
    platform : str, optional
        Device platform of the state.

    Raises
    ------
    NotImplementedError
        Always.

    See Also
    --------
    ffi.register_ffi_target : Register a function of the supported interface.

    Examples
    --------
    >>> import accnp as jax
    >>> jax.ffi.register_ffi_type_id("t", None)
    Traceback (most recent call last):
        ...
    NotImplementedError: ffi.register_ffi_type_id: ...
    """
    raise _needs_xla("register_ffi_type_id", "keep state in your own library")


@api_boundary
def register_ffi_target_as_batch_partitionable(name: str) -> None:
    """Declare that a target may be called for parts of a batch, which accnp assumes of all targets.

    Parameters
    ----------
    name : str
        Target given to `register_ffi_target`; it is not checked.

    See Also
    --------
    ffi.register_ffi_target : Register a compiled function.

    Examples
    --------
    >>> import accnp as jax
    >>> jax.ffi.register_ffi_target_as_batch_partitionable("my.target")
    """
