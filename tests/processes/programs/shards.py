"""Run the programs over meshes, and save this process's shards of the results."""

import pickle
import sys

import numpy as np
from transforms.shard_programs import PROGRAMS

import accnp

accnp.distributed.initialize()
found = {}
for name in sys.argv[2:]:
    leaves = accnp.tree.leaves(PROGRAMS[name](accnp, accnp.P))
    found[name] = [
        (x.shape, x.dtype.name, str(x.sharding), [np.asarray(s.data) for s in x.addressable_shards])
        for x in leaves
    ]
with open(f"{sys.argv[1]}.{accnp.process_index()}", "wb") as file:
    pickle.dump(found, file)
