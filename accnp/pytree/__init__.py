# isort: skip_file
"""Pytrees: nested containers of leaves, which can be flattened and rebuilt.

This package re-exports `structure.py` (structures, flatten and unflatten), and on first use
`keys.py` and `paths.py` (paths of leaves), `register.py` (classes as nodes), and `trees.py`
(functions over leaves). It depends on no array type: `array_type.py` and `key_array.py` register
theirs.
"""

from typing import TYPE_CHECKING

from accnp.pytree.structure import (
    INNER, Inner, LEAVES, PyTree, PyTreeDef, array_leaves, array_structure, flatten_arrays,
    tree_flatten, tree_leaves, tree_structure, tree_unflatten, treedef_tuple,
)  # fmt: skip
from accnp.module_getattr import install_getattr as _install_getattr

if TYPE_CHECKING:  # loaded on first use, by accnp/module_getattr.py
    from accnp.pytree.keys import (
        DictKey, FlattenedIndexKey, GetAttrKey, KeyEntry, KeyPath, SequenceKey, keystr,
    )  # fmt: skip
    from accnp.pytree.paths import (
        broadcast_prefix, flatten_one_level, flatten_one_level_with_keys, leaf_names, mismatch,
        tree_broadcast, tree_flatten_with_path, tree_leaves_with_path,
    )  # fmt: skip
    from accnp.pytree.register import (
        Partial, register_dataclass, register_pytree_node, register_pytree_node_class,
        register_pytree_with_keys, register_pytree_with_keys_class, register_static, static,
    )  # fmt: skip
    from accnp.pytree.trees import (
        all_leaves, default_registry, is_tree_node, map_arrays, tree_all, tree_map,
        tree_map_with_path, tree_reduce, tree_reduce_associative, tree_transpose, treedef_children,
        treedef_is_leaf,
    )  # fmt: skip

__all__ = [
    "INNER", "LEAVES", "DictKey", "FlattenedIndexKey", "GetAttrKey", "Inner", "KeyEntry", "KeyPath",
    "Partial", "PyTree", "PyTreeDef", "SequenceKey", "all_leaves", "array_leaves",
    "array_structure", "broadcast_prefix", "default_registry", "flatten_arrays",
    "flatten_one_level", "flatten_one_level_with_keys", "is_tree_node", "keystr", "leaf_names",
    "map_arrays", "mismatch", "register_dataclass", "register_pytree_node",
    "register_pytree_node_class", "register_pytree_with_keys", "register_pytree_with_keys_class",
    "register_static", "static", "tree_all", "tree_broadcast", "tree_flatten",
    "tree_flatten_with_path", "tree_leaves", "tree_leaves_with_path", "tree_map",
    "tree_map_with_path", "tree_reduce", "tree_reduce_associative", "tree_structure",
    "tree_transpose", "tree_unflatten", "treedef_children", "treedef_is_leaf", "treedef_tuple",
]  # fmt: skip

_install_getattr(__name__, __all__)
