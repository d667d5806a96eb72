"""What users call: arguments are checked, promoted and broadcast here, then ops are recorded."""

# Importing the families of ops fills the op table.
import accnp.primitives.assemble
import accnp.primitives.call
import accnp.primitives.callback
import accnp.primitives.check
import accnp.primitives.checkpoint
import accnp.primitives.collective
import accnp.primitives.control
import accnp.primitives.conversion
import accnp.primitives.convolution
import accnp.primitives.cumulative
import accnp.primitives.custom
import accnp.primitives.custom_batching
import accnp.primitives.decompositions
import accnp.primitives.determinants
import accnp.primitives.elementwise
import accnp.primitives.fft
import accnp.primitives.gamma
import accnp.primitives.index
import accnp.primitives.linalg
import accnp.primitives.loops
import accnp.primitives.placement
import accnp.primitives.pooling
import accnp.primitives.precision
import accnp.primitives.random
import accnp.primitives.reduce
import accnp.primitives.scan
import accnp.primitives.scatter
import accnp.primitives.solve
import accnp.primitives.sort
import accnp.primitives.special
import accnp.primitives.special_functions
import accnp.primitives.views  # noqa: F401
