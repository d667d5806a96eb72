# isort: skip_file
"""`accnp.tree_util`: functions of pytrees, key paths, and registration of classes.

>>> import accnp as jax
>>> [(jax.tree_util.keystr(path), x) for path, x in jax.tree_util.tree_leaves_with_path({"a": [5]})]
[("['a'][0]", 5)]
"""

from typing import TYPE_CHECKING

from accnp.module_getattr import install_getattr as _install_getattr

if TYPE_CHECKING:  # loaded on first use, by accnp/module_getattr.py
    from accnp.pytree import (
        DictKey, FlattenedIndexKey, GetAttrKey, KeyEntry, KeyPath, Partial, PyTreeDef, SequenceKey,
        all_leaves, default_registry, flatten_one_level, flatten_one_level_with_keys, is_tree_node,
        keystr, register_dataclass, register_pytree_node, register_pytree_node_class,
        register_pytree_with_keys, register_pytree_with_keys_class, register_static, tree_all,
        tree_broadcast, tree_flatten, tree_flatten_with_path, tree_leaves, tree_leaves_with_path,
        tree_map, tree_map_with_path, tree_reduce, tree_reduce_associative, tree_structure,
        tree_transpose, tree_unflatten, treedef_children, treedef_is_leaf, treedef_tuple,
    )  # fmt: skip

__all__ = [
    "DictKey", "FlattenedIndexKey", "GetAttrKey", "KeyEntry", "KeyPath", "Partial", "PyTreeDef",
    "SequenceKey", "all_leaves", "default_registry", "flatten_one_level",
    "flatten_one_level_with_keys", "is_tree_node", "keystr", "register_dataclass",
    "register_pytree_node", "register_pytree_node_class", "register_pytree_with_keys",
    "register_pytree_with_keys_class", "register_static", "tree_all", "tree_broadcast",
    "tree_flatten", "tree_flatten_with_path", "tree_leaves", "tree_leaves_with_path", "tree_map",
    "tree_map_with_path", "tree_reduce", "tree_reduce_associative", "tree_structure",
    "tree_transpose", "tree_unflatten", "treedef_children", "treedef_is_leaf", "treedef_tuple",
]  # fmt: skip

_install_getattr(__name__, __all__)
