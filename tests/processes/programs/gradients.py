"""Print the shardings of gradients of functions of sharded arrays, and their values."""

import json

from processes.sharded_gradients import GRADIENTS
from processes.sharded_operations import operands

import accnp
from accnp.experimental.multihost_utils import process_allgather

accnp.distributed.initialize()
o = operands(accnp)
found = {}
for name, (names, f) in GRADIENTS.items():
    grads = accnp.grad(lambda a, b, f=f: f(accnp, a, b).sum(), (0, 1))(
        *[getattr(o, n) for n in names]
    )
    specs = [str(accnp.typeof(g).sharding.spec) for g in grads]
    found[name] = specs, [process_allgather(g, tiled=True).tolist() for g in grads]
if accnp.process_index() == 0:
    print(json.dumps(found))
