"""`accnp.experimental.mesh_utils`: arrangement of devices in grids, for `Mesh`."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from accnp.module_getattr import install_getattr as _install_getattr
from accnp.runtime.device import devices as every_device

__all__ = ["create_device_mesh", "create_hybrid_device_mesh"]


def create_device_mesh(
    mesh_shape: Sequence[int],
    devices: Sequence[Any] | None = None,
    *,
    contiguous_submeshes: bool = False,
    allow_split_physical_axes: bool = False,
) -> np.ndarray:
    """Return devices as an array of a given shape, in their order.

    Parameters
    ----------
    mesh_shape : sequence of int
        Lengths of the axes of the array.
    devices : sequence of Device, optional
        Devices to arrange. The default is all devices.
    contiguous_submeshes : bool, optional
        Ignored: the devices share one memory.
    allow_split_physical_axes : bool, optional
        Ignored: the devices share one memory.

    Returns
    -------
    ndarray of Device
        Devices for `Mesh`.

    Raises
    ------
    ValueError
        If the number of devices does not match the shape.

    See Also
    --------
    make_mesh : Make a mesh.

    Examples
    --------
    >>> import accnp
    >>> from accnp.experimental import mesh_utils
    >>> mesh_utils.create_device_mesh((1, 1), [accnp.devices()[0]]).shape
    (1, 1)
    """
    device_list = every_device() if devices is None else list(devices)
    if prod(mesh_shape) != len(device_list):
        raise ValueError(
            f"create_device_mesh: a mesh of shape {tuple(mesh_shape)} has {prod(mesh_shape)} "
            f"devices; got {len(device_list)}; pass as many, or set ACCNP_NUM_CPU_DEVICES"
        )
    grid = np.empty(len(device_list), object)
    grid[:] = device_list
    return grid.reshape(tuple(mesh_shape))


def create_hybrid_device_mesh(
    mesh_shape: Sequence[int],
    dcn_mesh_shape: Sequence[int],
    devices: Sequence[Any] | None = None,
    *,
    process_is_granule: bool = False,
    should_sort_granules_by_key: bool = True,
    allow_split_physical_axes: bool = False,
) -> np.ndarray:
    """Return devices as an array whose axes are those of machines times those within one machine.

    Parameters
    ----------
    mesh_shape : sequence of int
        Shape within a machine.
    dcn_mesh_shape : sequence of int
        Number of machines along each axis. Only 1 is supported.
    devices : sequence of Device, optional
        Devices to arrange. The default is all devices.
    process_is_granule : bool, optional
        Ignored; present for compatibility with JAX.
    should_sort_granules_by_key : bool, optional
        Ignored; present for compatibility with JAX.
    allow_split_physical_axes : bool, optional
        Ignored; present for compatibility with JAX.

    Returns
    -------
    ndarray of Device
        Devices for `Mesh`.

    Raises
    ------
    ValueError
        If several machines are requested, or the number of devices does not match.

    See Also
    --------
    experimental.mesh_utils.create_device_mesh : Devices of one machine.

    Examples
    --------
    >>> import accnp
    >>> from accnp.experimental import mesh_utils
    >>> grid = mesh_utils.create_hybrid_device_mesh((1,), (1,), [accnp.devices()[0]])
    >>> grid.shape
    (1,)
    """
    if prod(dcn_mesh_shape) != 1:
        raise ValueError(
            "create_hybrid_device_mesh: there is one machine; got dcn_mesh_shape="
            f"{tuple(dcn_mesh_shape)}; use ones"
        )
    return create_device_mesh(mesh_shape, devices)


_install_getattr(__name__, __all__)
