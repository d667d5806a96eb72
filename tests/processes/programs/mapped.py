"""Print the shardings of results of mapped functions of sharded arrays, and their values."""

import json

from processes.mapped_functions import results

import accnp
from accnp.experimental.multihost_utils import process_allgather

accnp.distributed.initialize()
found = results(accnp, accnp.process_count(), lambda y: process_allgather(y, tiled=True))
if accnp.process_index() == 0:
    print(json.dumps(found))
