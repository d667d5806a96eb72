"""What users call: arguments are checked, promoted and broadcast here, then ops are recorded."""

import accnp.ops.elementwise
import accnp.ops.reduce
import accnp.ops.special
import accnp.ops.views  # noqa: F401 - fills the op table
