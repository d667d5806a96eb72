"""Print the second derivatives of functions of shards, on meshes of both types."""

import json
from typing import Any

import numpy as np
from processes.second_derivatives import W, X, derivatives, losses

import accnp
from accnp.experimental.multihost_utils import process_allgather
from accnp.sharding import AxisType

accnp.distributed.initialize()


def whole(x: Any) -> Any:
    """Gather the values of an array from all processes."""
    return np.asarray(x if x.is_fully_addressable else process_allgather(x, tiled=True)).tolist()


found = {}
for kind in (AxisType.Explicit, AxisType.Auto):
    mesh = accnp.make_mesh((accnp.device_count(),), ("d",), (kind,))
    x = accnp.device_put(X, accnp.NamedSharding(mesh, accnp.P("d")))
    placed = accnp.device_put(W, accnp.NamedSharding(mesh, accnp.P()))
    for name, f in losses(accnp, mesh).items():
        for what, derivative in derivatives(accnp).items():
            values = [whole(derivative(f)(w, x)) for w in (accnp.numpy.asarray(W), placed)]
            found[f"{kind.name}, {name}, {what}"] = values
if accnp.process_index() == 0:
    print(json.dumps(found))
