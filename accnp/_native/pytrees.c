/* Pytrees: flattening, unflattening, and collection of the subtrees at the leaves of a structure.
 *
 * A node of a structure is a tuple (class, static data, nodes of the children), and a leaf is None.
 * `pytree/structure.py` describes this format, and installs the registered classes.
 *
 * These functions call Python code of users: flatten functions, comparisons, and `is_leaf`. Such
 * code may change containers. Therefore the items of a container are first copied to a tuple, and
 * the code holds references to all objects that it uses.
 */

#include "native.h"

#include <string.h>

/* The state of a traversal of a pytree. */
typedef struct {
    State *state;
    PyObject *found;   /* the list to which leaves, or subtrees, are added */
    PyObject *inner;   /* classes that are leaves for users but contain arrays, see structure.py */
    PyObject *is_leaf; /* a function, or NULL */
} Walk;

/* Flattens one level of an object of a registered class into a tuple of children and static data.
 * Returns 1, or -1 with an error. */
static int
take_apart(State *state, PyObject *rules, PyObject *tree, PyObject **children, PyObject **data)
{
    PyObject *pair = PyObject_CallOneArg(PyTuple_GET_ITEM(rules, 0), tree);
    if (pair == NULL) {
        return -1;
    }
    PyObject *items = PyTuple_Check(pair) && PyTuple_GET_SIZE(pair) == 2 ? PyTuple_GET_ITEM(pair, 0)
                                                                         : NULL;
    if (items == NULL || Py_TYPE(items)->tp_iter == NULL) {
        Py_DECREF(pair);
        PyObject *again = PyObject_CallOneArg(state->one_level, tree); /* raises the error */
        if (again != NULL) {
            Py_DECREF(again);
            PyErr_SetString(PyExc_TypeError, "tree_flatten: a flatten function returned no pair");
        }
        return -1;
    }
    *children = PySequence_Tuple(items);
    *data = Py_NewRef(PyTuple_GET_ITEM(pair, 1));
    Py_DECREF(pair);
    if (*children == NULL) {
        Py_CLEAR(*data);
        return -1;
    }
    return 1;
}

/* Flattens a dictionary into its values, in the order of the sorted keys, and the keys as static
 * data. Returns 1, or -1 with an error. */
static int
take_items(State *state, PyObject *tree, PyObject **children, PyObject **data)
{
    PyObject *keys = PyDict_Keys(tree);
    if (keys == NULL) {
        return -1;
    }
    if (PyList_Sort(keys) < 0) {
        Py_DECREF(keys);
        if (PyErr_ExceptionMatches(PyExc_TypeError)) {
            PyErr_Clear();
            PyObject *again = PyObject_CallOneArg(state->one_level, tree); /* raises the error */
            if (again != NULL) {
                Py_DECREF(again);
                PyErr_SetString(PyExc_TypeError, "tree_flatten: keys cannot be sorted");
            }
        }
        return -1;
    }
    *data = PyList_AsTuple(keys);
    Py_DECREF(keys);
    if (*data == NULL) {
        return -1;
    }
    Py_ssize_t count = PyTuple_GET_SIZE(*data);
    *children = PyTuple_New(count);
    hide(*children);
    for (Py_ssize_t i = 0; *children != NULL && i < count; i++) {
        PyObject *key = PyTuple_GET_ITEM(*data, i), *item = PyDict_GetItemWithError(tree, key);
        if (item == NULL) { /* a comparison of keys has changed the dictionary */
            if (!PyErr_Occurred()) {
                PyErr_SetObject(PyExc_KeyError, key);
            }
            Py_CLEAR(*children);
        } else {
            PyTuple_SET_ITEM(*children, i, Py_NewRef(item));
        }
    }
    if (*children == NULL) {
        Py_CLEAR(*data);
        return -1;
    }
    show(*children);
    return 1;
}

/* Flattens one level of a pytree. Returns 1 for a node, whose children and static data it sets; 0
 * for a leaf; -1 with an error. */
static int
level_of(State *state, PyObject *tree, PyObject **children, PyObject **data)
{
    PyTypeObject *kind = Py_TYPE(tree);
    if (kind == &PyDict_Type) {
        return take_items(state, tree, children, data);
    }
    bool plain = kind == &PyTuple_Type || kind == &PyList_Type;
    if (!plain && tree == Py_None) {
        *children = Py_NewRef(state->empty_tuple);
        *data = Py_NewRef(Py_None);
        return 1;
    }
    if (!plain) {
        int leaf = PySet_Contains(state->leaf_types, (PyObject *)kind);
        if (leaf != 0) {
            return leaf < 0 ? -1 : 0;
        }
        PyObject *rules = PyDict_GetItemWithError(state->node_types, (PyObject *)kind);
        if (rules == NULL && PyErr_Occurred()) {
            return -1;
        }
        if (rules != NULL) {
            Py_INCREF(rules);
            int taken = take_apart(state, rules, tree, children, data);
            Py_DECREF(rules);
            return taken;
        }
        if (!PyTuple_Check(tree) || !PyObject_HasAttr((PyObject *)kind, state->name_fields)) {
            return 0;
        }
    }
    /* Take the items of the tuple itself: a namedtuple may override `__iter__` and `__len__`. */
    *children = PyTuple_Check(tree) ? PyTuple_GetSlice(tree, 0, PyTuple_GET_SIZE(tree))
                                    : PyList_AsTuple(tree);
    *data = Py_NewRef(Py_None);
    if (*children == NULL) {
        Py_CLEAR(*data);
        return -1;
    }
    return 1;
}

/* Adds a leaf, and returns its structure. */
static PyObject *
add_leaf(Walk *w, PyObject *leaf)
{
    return PyList_Append(w->found, leaf) < 0 ? NULL : Py_NewRef(Py_None);
}

/* Returns the structure of a value that is a leaf for users, and adds the leaves that it contains.
 */
static PyObject *
flatten_leaf(Walk *w, PyObject *leaf)
{
    PyObject *rules = PyDict_GetItemWithError(w->inner, (PyObject *)Py_TYPE(leaf));
    if (rules == NULL) {
        return PyErr_Occurred() ? NULL : add_leaf(w, leaf);
    }
    PyObject *add = PyObject_GetAttrString(w->found, "append");
    PyObject *take = Py_NewRef(PyTuple_GET_ITEM(rules, 0));
    PyObject *node = add == NULL ? NULL : PyObject_CallFunctionObjArgs(take, leaf, add, NULL);
    Py_DECREF(take);
    Py_XDECREF(add);
    return node;
}

/* Adds the leaves of a pytree, and returns its structure; NULL with an error. */
static PyObject *
flatten(Walk *w, PyObject *tree)
{
    if (w->is_leaf != NULL) {
        PyObject *answer = PyObject_CallOneArg(w->is_leaf, tree);
        int leaf = answer == NULL ? -1 : PyObject_IsTrue(answer);
        Py_XDECREF(answer);
        if (leaf != 0) {
            return leaf < 0 ? NULL : add_leaf(w, tree);
        }
    }
    PyObject *children, *data;
    int level = level_of(w->state, tree, &children, &data);
    if (level <= 0) {
        return level < 0 ? NULL : flatten_leaf(w, tree);
    }
    if (tree == Py_None) {
        Py_DECREF(children);
        Py_DECREF(data);
        return Py_NewRef(w->state->none_node);
    }
    Py_ssize_t count = PyTuple_GET_SIZE(children);
    PyObject *node = NULL, *nodes = PyTuple_New(count);
    hide(nodes);
    if (nodes != NULL && Py_EnterRecursiveCall(" while flattening a pytree") == 0) {
        Py_ssize_t i = 0;
        for (; i < count; i++) {
            PyObject *below = flatten(w, PyTuple_GET_ITEM(children, i));
            if (below == NULL) {
                break;
            }
            PyTuple_SET_ITEM(nodes, i, below);
        }
        Py_LeaveRecursiveCall();
        if (i == count) {
            show(nodes);
            node = PyTuple_Pack(3, (PyObject *)Py_TYPE(tree), data, nodes);
        }
    }
    Py_XDECREF(nodes);
    Py_DECREF(children);
    Py_DECREF(data);
    return node;
}

/* flatten_tree(tree, leaves, inner, is_leaf=None): adds the leaves to a list, returns the
 * structure. */
static PyObject *
flatten_tree(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    if (count < 3 || count > 4 || !PyList_Check(args[1]) || !PyDict_Check(args[2])) {
        return PyErr_Format(PyExc_TypeError,
                            "flatten_tree: pass a tree, a list, a dictionary, and a function");
    }
    State *state = state_of(module);
    if (state->node_types == NULL) {
        return PyErr_Format(PyExc_RuntimeError, "flatten_tree: call install_pytrees first");
    }
    PyObject *is_leaf = count == 4 && args[3] != Py_None ? args[3] : NULL;
    Walk walk = {state, args[1], args[2], is_leaf};
    return flatten(&walk, args[0]);
}

/* --- the stack of nodes above the current one ---
 *
 * The functions below use a stack of their own instead of recursion, because structures that users
 * compose may be nested more deeply than the recursion limit of the interpreter allows.
 */

#define NEAR_LEVELS 32

/* A node whose children are being processed. */
typedef struct {
    PyObject *node;  /* borrowed from the structure */
    PyObject *held;  /* the children: those of a pytree, or those that were built so far */
    Py_ssize_t next; /* the index of the next child */
} Level;

typedef struct {
    Level *levels;
    size_t count, room;
    Level near[NEAR_LEVELS];
} Stack;

/* Adds a level, and steals the reference to `held`. If it fails, it returns false with an error and
 * does not steal the reference. */
static bool
push_level(Stack *stack, PyObject *node, PyObject *held)
{
    if (stack->count == stack->room) {
        bool near = stack->levels == stack->near;
        size_t room = 2 * stack->room;
        Level *levels = PyMem_Realloc(near ? NULL : stack->levels, room * sizeof(Level));
        if (levels == NULL) {
            PyErr_NoMemory();
            return false;
        }
        if (near) {
            memcpy(levels, stack->near, sizeof(stack->near));
        }
        stack->levels = levels;
        stack->room = room;
    }
    stack->levels[stack->count++] = (Level){node, held, 0};
    return true;
}

/* Releases the levels and the memory of a stack. */
static void
clear_stack(Stack *stack)
{
    while (stack->count) {
        Py_DECREF(stack->levels[--stack->count].held);
    }
    if (stack->levels != stack->near) {
        PyMem_Free(stack->levels);
    }
}

/* --- unflatten --- */

/* The state of unflattening. */
typedef struct {
    State *state;
    PyObject *leaves; /* a tuple */
    Py_ssize_t next;  /* the index of the next leaf */
} Build;

/* Returns whether an object is a valid node of a structure; sets an error if not. Users can create
 * structures from arbitrary objects. */
static bool
is_node(PyObject *node)
{
    if (PyTuple_Check(node) && PyTuple_GET_SIZE(node) == 3
        && PyType_Check(PyTuple_GET_ITEM(node, 0)) && PyTuple_Check(PyTuple_GET_ITEM(node, 2))) {
        return true;
    }
    PyErr_Format(PyExc_TypeError, "PyTreeDef: expected a node; got %R; make one by tree_structure",
                 node);
    return false;
}

/* Returns a dictionary of keys and values; NULL with an error. */
static PyObject *
dictionary_of(PyObject *keys, PyObject *values)
{
    Py_ssize_t count = PyTuple_Check(keys) ? PyTuple_GET_SIZE(keys) : -1;
    if (count != PyTuple_GET_SIZE(values)) {
        return PyErr_Format(PyExc_TypeError, "PyTreeDef: keys of a dictionary and values differ");
    }
    PyObject *made = PyDict_New();
    for (Py_ssize_t i = 0; made != NULL && i < count; i++) {
        if (PyDict_SetItem(made, PyTuple_GET_ITEM(keys, i), PyTuple_GET_ITEM(values, i)) < 0) {
            Py_CLEAR(made);
        }
    }
    return made;
}

/* Returns an object of a registered class, or a namedtuple, made from its children; NULL with an
 * error. */
static PyObject *
object_of(State *state, PyObject *kind, PyObject *data, PyObject *values)
{
    PyObject *rules = PyDict_GetItemWithError(state->node_types, kind);
    if (rules == NULL && PyErr_Occurred()) {
        return NULL;
    }
    bool inner = rules == NULL && (rules = PyDict_GetItemWithError(state->inner_types, kind));
    if (rules == NULL) { /* a namedtuple */
        return PyErr_Occurred() ? NULL : PyObject_CallObject(kind, values);
    }
    if (inner && PyTuple_GET_SIZE(values) != 1) {
        return PyErr_Format(PyExc_TypeError, "PyTreeDef: %R has one child", kind);
    }
    PyObject *function = Py_NewRef(PyTuple_GET_ITEM(rules, 1));
    PyObject *given = inner ? PyTuple_GET_ITEM(values, 0) : values;
    PyObject *made = PyObject_CallFunctionObjArgs(function, data, given, NULL);
    Py_DECREF(function);
    return made;
}

/* Returns the object for a node of a structure, made from its children, and steals the reference to
 * the children; NULL with an error. */
static PyObject *
finish(State *state, PyObject *node, PyObject *values)
{
    PyObject *kind = PyTuple_GET_ITEM(node, 0), *data = PyTuple_GET_ITEM(node, 1);
    if (kind == (PyObject *)&PyTuple_Type || kind == (PyObject *)&PyList_Type) {
        return values;
    }
    PyObject *made = kind == (PyObject *)&PyDict_Type ? dictionary_of(data, values)
                                                      : object_of(state, kind, data, values);
    Py_DECREF(values);
    return made;
}

/* Begins the object for a node. Returns the next leaf if the node is a leaf, or None for the node
 * of None. For any other node, it adds a level to the stack and returns NULL. Returns NULL with an
 * error, too. */
static PyObject *
begin_value(Build *b, Stack *stack, PyObject *node)
{
    if (node == Py_None) {
        if (b->next >= PyTuple_GET_SIZE(b->leaves)) {
            return PyErr_Format(PyExc_ValueError, "tree_unflatten: Too few leaves for PyTreeDef");
        }
        return Py_NewRef(PyTuple_GET_ITEM(b->leaves, b->next++));
    }
    if (!is_node(node)) {
        return NULL;
    }
    PyObject *kind = PyTuple_GET_ITEM(node, 0);
    if (kind == (PyObject *)Py_TYPE(Py_None)) {
        return Py_NewRef(Py_None);
    }
    Py_ssize_t count = PyTuple_GET_SIZE(PyTuple_GET_ITEM(node, 2));
    PyObject *values = kind == (PyObject *)&PyList_Type ? PyList_New(count) : PyTuple_New(count);
    hide(values);
    if (values == NULL || !push_level(stack, node, values)) {
        Py_XDECREF(values);
    }
    return NULL;
}

/* Returns the pytree of a structure, made from the leaves; NULL with an error. */
static PyObject *
unflatten(Build *b, PyObject *root)
{
    Stack stack = {.levels = stack.near, .room = NEAR_LEVELS};
    PyObject *value = begin_value(b, &stack, root);
    while (stack.count && !PyErr_Occurred()) {
        Level *level = &stack.levels[stack.count - 1];
        PyObject *nodes = PyTuple_GET_ITEM(level->node, 2);
        if (value != NULL) {
            if (PyList_CheckExact(level->held)) {
                PyList_SET_ITEM(level->held, level->next++, value);
            } else {
                PyTuple_SET_ITEM(level->held, level->next++, value);
            }
        }
        if (level->next < PyTuple_GET_SIZE(nodes)) {
            value = begin_value(b, &stack, PyTuple_GET_ITEM(nodes, level->next));
        } else {
            show(level->held);
            stack.count--;
            value = finish(b->state, level->node, level->held);
        }
    }
    clear_stack(&stack);
    return value;
}

/* unflatten_tree(structure, leaves): returns a pytree. */
static PyObject *
unflatten_tree(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    State *state = state_of(module);
    if (count != 2 || state->node_types == NULL) {
        return PyErr_Format(PyExc_TypeError, "unflatten_tree: pass a structure and the leaves");
    }
    PyObject *leaves = PySequence_Tuple(args[1]);
    if (leaves == NULL) {
        return NULL;
    }
    Build build = {state, leaves, 0};
    PyObject *made = unflatten(&build, args[0]);
    Py_DECREF(leaves);
    return made;
}

/* --- flattening up to the leaves of a structure --- */

/* Returns whether the static data of a node equals that of the structure: 1, 0, or -1 with an
 * error. */
static int
same_data(PyObject *data, PyObject *wanted)
{
    int differ = data == wanted ? 0 : PyObject_RichCompareBool(data, wanted, Py_NE);
    return differ < 0 ? -1 : !differ;
}

/* Adds the subtree at a leaf of the structure, or, for a node, adds a level for its children to the
 * stack. Returns 1, or 0 if the tree has another structure, or -1 with an error. */
static int
add_subtree(Walk *w, Stack *stack, PyObject *node, PyObject *tree)
{
    if (node == Py_None) {
        return PyList_Append(w->found, tree) < 0 ? -1 : 1;
    }
    if (!is_node(node)) {
        return -1;
    }
    PyObject *kind = PyTuple_GET_ITEM(node, 0), *wanted = PyTuple_GET_ITEM(node, 1);
    PyObject *nodes = PyTuple_GET_ITEM(node, 2);
    int inner = PyDict_Contains(w->inner, kind);
    if (inner != 0) {
        PyObject *below = inner < 0 ? NULL : flatten_leaf(w, tree);
        Py_XDECREF(below);
        return below == NULL ? -1 : 1;
    }
    if ((PyObject *)Py_TYPE(tree) != kind) {
        return 0;
    }
    PyObject *children, *data;
    int same = level_of(w->state, tree, &children, &data);
    if (same <= 0) {
        return same;
    }
    if (kind != (PyObject *)&PyTuple_Type && kind != (PyObject *)&PyList_Type) {
        same = same_data(data, wanted);
    }
    if (same == 1 && PyTuple_GET_SIZE(children) != PyTuple_GET_SIZE(nodes)) {
        same = 0;
    }
    Py_DECREF(data);
    if (same == 1 && PyTuple_GET_SIZE(nodes)) {
        same = push_level(stack, node, children) ? 1 : -1;
        if (same == 1) {
            return 1;
        }
    }
    Py_DECREF(children);
    return same;
}

/* Adds the subtrees at the leaves of a structure. Returns the same values as `add_subtree`. */
static int
add_subtrees(Walk *w, PyObject *root, PyObject *tree)
{
    Stack stack = {.levels = stack.near, .room = NEAR_LEVELS};
    int same = add_subtree(w, &stack, root, tree);
    while (same == 1 && stack.count) {
        Level *level = &stack.levels[stack.count - 1];
        PyObject *nodes = PyTuple_GET_ITEM(level->node, 2);
        Py_ssize_t i = level->next++;
        if (i < PyTuple_GET_SIZE(nodes)) {
            PyObject *child = PyTuple_GET_ITEM(level->held, i);
            same = add_subtree(w, &stack, PyTuple_GET_ITEM(nodes, i), child);
        } else {
            stack.count--;
            Py_DECREF(level->held);
        }
    }
    clear_stack(&stack);
    return same;
}

/* flatten_up_to(structure, tree, found): adds the subtrees of a tree to a list, and returns whether
 * the tree begins with the structure. */
static PyObject *
flatten_up_to(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    State *state = state_of(module);
    if (count != 3 || !PyList_Check(args[2]) || state->node_types == NULL) {
        return PyErr_Format(PyExc_TypeError, "flatten_up_to: pass a structure, a tree, and a list");
    }
    Walk walk = {state, args[2], state->inner_types, NULL};
    int same = add_subtrees(&walk, args[0], args[1]);
    return same < 0 ? NULL : PyBool_FromLong(same);
}

/* Sets the members of the state for pytrees, which `native.h` describes. */
static PyObject *
install_pytrees(PyObject *module, PyObject *args)
{
    State *state = state_of(module);
    PyObject *nodes, *inner, *leaves, *none, *one_level;
    if (!PyArg_ParseTuple(args, "O!O!O!OO:install_pytrees", &PyDict_Type, &nodes, &PyDict_Type,
                          &inner, &PySet_Type, &leaves, &none, &one_level)) {
        return NULL;
    }
    Py_XSETREF(state->node_types, Py_NewRef(nodes));
    Py_XSETREF(state->inner_types, Py_NewRef(inner));
    Py_XSETREF(state->leaf_types, Py_NewRef(leaves));
    Py_XSETREF(state->none_node, Py_NewRef(none));
    Py_XSETREF(state->one_level, Py_NewRef(one_level));
    Py_RETURN_NONE;
}

PyMethodDef pytree_functions[] = {
    {"install_pytrees", install_pytrees, METH_VARARGS,
     "Set the objects that pytrees need: the flatten and unflatten functions of registered\n"
     "classes, those of leaf classes that contain arrays, other leaf classes, the node of None,\n"
     "and the function that flattens one level."},
    {"flatten_tree", (PyCFunction)(void (*)(void))flatten_tree, METH_FASTCALL,
     "Add the leaves of a pytree to a list, and return its structure."},
    {"unflatten_tree", (PyCFunction)(void (*)(void))unflatten_tree, METH_FASTCALL,
     "Return the pytree of a structure with the given leaves."},
    {"flatten_up_to", (PyCFunction)(void (*)(void))flatten_up_to, METH_FASTCALL,
     "Add the subtrees at the leaves of a structure to a list; return whether the tree fits."},
    {NULL},
};
