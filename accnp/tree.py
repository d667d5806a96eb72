"""`accnp.tree`: pytree functions under their short names.

>>> import accnp as jax
>>> jax.tree.map(lambda x: x + 1, {"a": 1, "b": [2, 3]})
{'a': 2, 'b': [3, 4]}
"""

from accnp.missing import nearest as _nearest
from accnp.pytree import (
    static as static,
)
from accnp.pytree import (
    tree_all as all,
)
from accnp.pytree import (
    tree_broadcast as broadcast,
)
from accnp.pytree import (
    tree_flatten as flatten,
)
from accnp.pytree import (
    tree_flatten_with_path as flatten_with_path,
)
from accnp.pytree import (
    tree_leaves as leaves,
)
from accnp.pytree import (
    tree_leaves_with_path as leaves_with_path,
)
from accnp.pytree import (
    tree_map as map,
)
from accnp.pytree import (
    tree_map_with_path as map_with_path,
)
from accnp.pytree import (
    tree_reduce as reduce,
)
from accnp.pytree import (
    tree_reduce_associative as reduce_associative,
)
from accnp.pytree import (
    tree_structure as structure,
)
from accnp.pytree import (
    tree_transpose as transpose,
)
from accnp.pytree import (
    tree_unflatten as unflatten,
)

__all__ = [
    "all", "broadcast", "flatten", "flatten_with_path", "leaves", "leaves_with_path", "map",
    "map_with_path", "reduce", "reduce_associative", "static", "structure", "transpose",
    "unflatten",
]  # fmt: skip

__getattr__ = _nearest(__name__, __all__)
