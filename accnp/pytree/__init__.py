"""Pytrees: nested containers of leaves, which can be flattened and rebuilt.

This package re-exports `structure.py` (structures, flatten and unflatten), and on first use
`keys.py` and `paths.py` (paths of leaves), `register.py` (classes as nodes), and `trees.py`
(functions over leaves). It depends on no array type: `array.py` and `key_array.py` register theirs.
"""

from typing import TYPE_CHECKING

from accnp.module_getattr import install_getattr as _install_getattr
from accnp.pytree.structure import (
    INNER as INNER,
)
from accnp.pytree.structure import (
    LEAVES as LEAVES,
)
from accnp.pytree.structure import (
    Inner as Inner,
)
from accnp.pytree.structure import (
    PyTree as PyTree,
)
from accnp.pytree.structure import (
    PyTreeDef as PyTreeDef,
)
from accnp.pytree.structure import (
    array_leaves as array_leaves,
)
from accnp.pytree.structure import (
    array_structure as array_structure,
)
from accnp.pytree.structure import (
    flatten_arrays as flatten_arrays,
)
from accnp.pytree.structure import (
    take as take,
)
from accnp.pytree.structure import (
    tree_flatten as tree_flatten,
)
from accnp.pytree.structure import (
    tree_leaves as tree_leaves,
)
from accnp.pytree.structure import (
    tree_structure as tree_structure,
)
from accnp.pytree.structure import (
    tree_unflatten as tree_unflatten,
)
from accnp.pytree.structure import (
    treedef_tuple as treedef_tuple,
)

if TYPE_CHECKING:  # loaded on first use
    from accnp.pytree.keys import (
        DictKey as DictKey,
    )
    from accnp.pytree.keys import (
        FlattenedIndexKey as FlattenedIndexKey,
    )
    from accnp.pytree.keys import (
        GetAttrKey as GetAttrKey,
    )
    from accnp.pytree.keys import (
        KeyEntry as KeyEntry,
    )
    from accnp.pytree.keys import (
        KeyPath as KeyPath,
    )
    from accnp.pytree.keys import (
        SequenceKey as SequenceKey,
    )
    from accnp.pytree.keys import (
        keystr as keystr,
    )
    from accnp.pytree.paths import (
        broadcast_prefix as broadcast_prefix,
    )
    from accnp.pytree.paths import (
        flatten_one_level as flatten_one_level,
    )
    from accnp.pytree.paths import (
        flatten_one_level_with_keys as flatten_one_level_with_keys,
    )
    from accnp.pytree.paths import (
        leaf_names as leaf_names,
    )
    from accnp.pytree.paths import (
        mismatch as mismatch,
    )
    from accnp.pytree.paths import (
        tree_broadcast as tree_broadcast,
    )
    from accnp.pytree.paths import (
        tree_flatten_with_path as tree_flatten_with_path,
    )
    from accnp.pytree.paths import (
        tree_leaves_with_path as tree_leaves_with_path,
    )
    from accnp.pytree.register import (
        Partial as Partial,
    )
    from accnp.pytree.register import (
        register_dataclass as register_dataclass,
    )
    from accnp.pytree.register import (
        register_pytree_node as register_pytree_node,
    )
    from accnp.pytree.register import (
        register_pytree_node_class as register_pytree_node_class,
    )
    from accnp.pytree.register import (
        register_pytree_with_keys as register_pytree_with_keys,
    )
    from accnp.pytree.register import (
        register_pytree_with_keys_class as register_pytree_with_keys_class,
    )
    from accnp.pytree.register import (
        register_static as register_static,
    )
    from accnp.pytree.register import (
        static as static,
    )
    from accnp.pytree.trees import (
        all_leaves as all_leaves,
    )
    from accnp.pytree.trees import (
        default_registry as default_registry,
    )
    from accnp.pytree.trees import (
        is_tree_node as is_tree_node,
    )
    from accnp.pytree.trees import (
        map_arrays as map_arrays,
    )
    from accnp.pytree.trees import (
        tree_all as tree_all,
    )
    from accnp.pytree.trees import (
        tree_map as tree_map,
    )
    from accnp.pytree.trees import (
        tree_map_with_path as tree_map_with_path,
    )
    from accnp.pytree.trees import (
        tree_reduce as tree_reduce,
    )
    from accnp.pytree.trees import (
        tree_reduce_associative as tree_reduce_associative,
    )
    from accnp.pytree.trees import (
        tree_transpose as tree_transpose,
    )
    from accnp.pytree.trees import (
        treedef_children as treedef_children,
    )
    from accnp.pytree.trees import (
        treedef_is_leaf as treedef_is_leaf,
    )

_LATER = {
    "keys": "DictKey FlattenedIndexKey GetAttrKey KeyEntry KeyPath SequenceKey keystr",
    "paths": "broadcast_prefix flatten_one_level flatten_one_level_with_keys leaf_names mismatch "
    "tree_broadcast tree_flatten_with_path tree_leaves_with_path",
    "register": "Partial register_dataclass register_pytree_node register_pytree_node_class "
    "register_pytree_with_keys register_pytree_with_keys_class register_static static",
    "trees": "all_leaves default_registry is_tree_node map_arrays tree_all tree_map "
    "tree_map_with_path tree_reduce tree_reduce_associative tree_transpose treedef_children "
    "treedef_is_leaf",
}
_install_getattr(
    __name__,
    (),
    {name: f"accnp.pytree.{part}" for part, names in _LATER.items() for name in names.split()},
)
