"""`accnp.tree`: functions of pytrees, with short names.

>>> import accnp as jax
>>> jax.tree.map(lambda x: x + 1, {"a": 1, "b": [2, 3]})
{'a': 2, 'b': [3, 4]}
"""

from accnp import pytree as _pytree
from accnp.errors import alias as _alias
from accnp.module_getattr import install_getattr as _install_getattr
from accnp.pytree import (
    static as static,
)

all = _alias(_pytree.tree_all, "all", __name__)
broadcast = _alias(_pytree.tree_broadcast, "broadcast", __name__)
flatten = _alias(_pytree.tree_flatten, "flatten", __name__)
flatten_with_path = _alias(_pytree.tree_flatten_with_path, "flatten_with_path", __name__)
leaves = _alias(_pytree.tree_leaves, "leaves", __name__)
leaves_with_path = _alias(_pytree.tree_leaves_with_path, "leaves_with_path", __name__)
map = _alias(_pytree.tree_map, "map", __name__)
map_with_path = _alias(_pytree.tree_map_with_path, "map_with_path", __name__)
reduce = _alias(_pytree.tree_reduce, "reduce", __name__)
reduce_associative = _alias(_pytree.tree_reduce_associative, "reduce_associative", __name__)
structure = _alias(_pytree.tree_structure, "structure", __name__)
transpose = _alias(_pytree.tree_transpose, "transpose", __name__)
unflatten = _alias(_pytree.tree_unflatten, "unflatten", __name__)

__all__ = [
    "all", "broadcast", "flatten", "flatten_with_path", "leaves", "leaves_with_path", "map",
    "map_with_path", "reduce", "reduce_associative", "static", "structure", "transpose",
    "unflatten",
]  # fmt: skip

_install_getattr(__name__, __all__)
