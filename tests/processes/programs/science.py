"""Run the programs over all processes, and save this process's shards of the results."""

import pickle
import sys

import numpy as np
from processes.science_programs import PROGRAMS

import accnp

accnp.distributed.initialize()
found = {}
for name, program in PROGRAMS.items():
    leaves = accnp.tree.leaves(program(accnp, accnp.process_count()))
    found[name] = [[(s.index, np.asarray(s.data)) for s in x.addressable_shards] for x in leaves]
with open(f"{sys.argv[1]}.{accnp.process_index()}", "wb") as file:
    pickle.dump(found, file)
