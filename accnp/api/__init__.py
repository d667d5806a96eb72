"""The implementation of the public functions.

They check, promote and broadcast their arguments, then record ops.
"""

# Importing a module registers its ops in the op table. These are the modules whose ops most
# programs use. The others are imported when one of their ops is first used (`OP_MODULES` in
# `public_names.py`); importing all of them would take a quarter of the time of `import accnp`.
import accnp.primitives.call
import accnp.primitives.control
import accnp.primitives.conversion
import accnp.primitives.custom
import accnp.primitives.elementwise
import accnp.primitives.reduce
import accnp.primitives.views  # noqa: F401
