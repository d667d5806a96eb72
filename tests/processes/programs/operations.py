"""Print the shardings of results of operations on sharded arrays, and their values."""

import json

import numpy as np
from processes.sharded_operations import OPERATIONS, operands

import accnp
from accnp.experimental.multihost_utils import process_allgather

accnp.distributed.initialize()
found = {}
for name, operation in OPERATIONS.items():
    try:
        y = operation(accnp, operands(accnp))
    except accnp.errors.ShardingTypeError as error:
        found[name] = type(error).__name__
        continue
    values = process_allgather(y, tiled=True)
    parts = values if values.dtype.kind != "c" else np.abs(values)
    found[name] = str(y.sharding.spec), parts.tolist()
if accnp.process_index() == 0:
    print(json.dumps(found))
