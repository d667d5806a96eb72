"""Print the outcomes of functions of shards."""

import json
import sys

from processes.functions_of_shards import outcomes

import accnp

accnp.distributed.initialize()
found = outcomes(accnp, sys.argv[1] == "Explicit")
if accnp.process_index() == 0:
    print(json.dumps(found))
