"""What users call: arguments are checked, promoted and broadcast here, then ops are recorded."""

# Importing the families of ops fills the op table.
import accnp.ops.assemble
import accnp.ops.call
import accnp.ops.callback
import accnp.ops.check
import accnp.ops.checkpoint
import accnp.ops.collective
import accnp.ops.control
import accnp.ops.conversion
import accnp.ops.cumulative
import accnp.ops.custom
import accnp.ops.custom_batching
import accnp.ops.decompositions
import accnp.ops.determinants
import accnp.ops.elementwise
import accnp.ops.index
import accnp.ops.linalg
import accnp.ops.loops
import accnp.ops.placement
import accnp.ops.precision
import accnp.ops.random
import accnp.ops.reduce
import accnp.ops.scan
import accnp.ops.scatter
import accnp.ops.solve
import accnp.ops.sort
import accnp.ops.special
import accnp.ops.views  # noqa: F401
