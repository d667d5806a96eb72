"""Type checkers report missing names, and know those that are loaded on first use."""

from typing import assert_type

import accnp
import accnp as jax
import accnp.numpy as jnp
from accnp import lax, nn, random
from accnp import nosuch as nosuch  # error: reportAttributeAccessIssue
from accnp.numpy import linalg

x = jnp.ones(3)

print(jnp.nosuch)  # error: reportAttributeAccessIssue
print(jax.nosuch)  # error: reportAttributeAccessIssue
print(lax.nosuch)  # error: reportAttributeAccessIssue
print(nn.nosuch, random.nosuch)  # error: reportAttributeAccessIssue
print(jax.scipy.special.nosuch)  # error: reportAttributeAccessIssue
print(x.nosuch)  # error: reportAttributeAccessIssue
print(jnp.linalg.nosuch)  # error: reportAttributeAccessIssue

# the top level has the names of jax.numpy, too
assert_type(accnp.cumsum(x), jax.Array)
assert_type(jnp.cumsum(x), jax.Array)
assert_type(linalg.norm(x), jax.Array)
assert_type(random.normal(random.key(0), (3,)), jax.Array)
assert_type(nn.relu(x), jax.Array)
jax.tree.map(lambda a: a + 1, {"w": x})
jax.tree_util.tree_leaves([x])
lax.scan(lambda c, a: (c + a, c), x, x)
print(jnp.pi, jnp.newaxis, jnp.float32, jnp.inf)
