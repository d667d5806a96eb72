"""Print the shardings and values of results of loops and branches on sharded arrays."""

import json
import sys

from processes.program_helpers import assert_raises, gather
from processes.sharded_loops import OPERANDS, results

import accnp as jnp

jnp.distributed.initialize()


explicit = sys.argv[1] == "Explicit"
found = results(jnp, jnp.process_count(), explicit, gather)
if explicit:
    mesh = jnp.make_mesh((jnp.process_count(),), ("d",))
    xs = jnp.device_put(OPERANDS[0], jnp.NamedSharding(mesh, jnp.P("d")))
    text = "scan: the first axis of xs must not be sharded; got float32[8,4,12] with P("
    assert_raises(ValueError, text, lambda: jnp.lax.scan(lambda c, x: (c, x), 0, xs))
    # Native loops run collectives without Python.
    c = jnp.device_put(OPERANDS[2], jnp.NamedSharding(mesh, jnp.P(None, "d")))

    def add_mean(c):
        return jnp.lax.fori_loop(0, 9, lambda i, c: c + c.mean(1, keepdims=True), c)

    explained = str(jnp.explain(jnp.jit(add_mean), c))
    assert "a native loop; in each iteration: a message of psum over 'd'" in explained, explained
if jnp.process_index() == 0:
    print(json.dumps(found))
