"""Print the shardings of results with the parameter `out_sharding`, and their values."""

import json

from processes.requested_shardings import ALL, REFUSED

import accnp
from accnp.experimental.multihost_utils import process_allgather

accnp.distributed.initialize()
s = accnp.NamedSharding(accnp.make_mesh((accnp.process_count(),), ("a",)), accnp.P("a"))
found = {}
for name, call in ALL.items():
    y = call(accnp, s)
    found[name] = str(y.sharding.spec), process_allgather(y, tiled=True).tolist()
for name, (call, _) in REFUSED.items():
    try:
        call(accnp, s)
    except (accnp.errors.ShardingTypeError, NotImplementedError) as error:
        found[name] = type(error).__name__, []
if accnp.process_index() == 0:
    print(json.dumps(found))
