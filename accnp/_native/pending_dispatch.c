/* Fast execution of pending graphs whose structure was computed before.
 *
 * When the value of a pending node is needed, `dispatch_pending` compares the graph below the node
 * with records that `engine/pending_dispatch.py` has made. If a record matches, it runs the
 * record's table and stores the results in the nodes, without Python code. The caller holds the
 * engine's lock.
 *
 * The words of a record begin with the members of `Head`. Then follow, in this order:
 *
 * - the containers that must be empty;
 * - triples (dictionary, name, object): the dictionary must map the name to the object;
 * - the fixed addresses;
 * - for each buffer to allocate, its free list and its number of bytes;
 * - for each node, its form, its kind of references (see below), how often it is an input in the
 *   graph, the number of its inputs, and the inputs. An input is the index of a node (0 or more),
 *   or -1 - k for leaf k;
 * - for each leaf whose parameters matter, its index and these parameters;
 * - for each result, the index of its buffer and the index of its node.
 *
 * The kind of references says from where a node is referenced: only from the graph (0), also from
 * elsewhere (1), or either (2, `ANY`). A pending node that is also referenced from elsewhere must
 * get its value. One pending node can match two equal nodes of a record that are both referenced
 * from elsewhere; the second of its two results is discarded.
 *
 * From the first check of a node until all results are stored, no Python code runs and the
 * interpreter lock is held, so that the graph cannot change. Therefore buffers are allocated
 * before, and the former inputs of the nodes are released after.
 */

#include "native.h"
#include "records.h"

enum { ANY = 2 };

/* The first words of a record: how many items of each kind follow, the depth of the node whose
 * value is needed, and the address of the table. `fresh` counts buffers to allocate, and `checked`
 * leaves whose parameters matter. */
typedef struct {
    int64_t nodes, leaves, empties, names, fixed, fresh, checked, results, depth, table;
} Head;

/* Returns whether the graph below `root` matches a record. Writes the matching nodes to `nodes`,
 * the leaves to `leaves_found`, and the addresses of their buffers to `base`. The references are
 * borrowed. */
static bool
matches_record(State *state, Reader *r, const Head *head, Node *root, Node **nodes,
               Node **leaves_found, int64_t *base)
{
    int64_t seen = 1, met = 0;
    nodes[0] = root;
    for (int64_t i = 0; i < head->nodes; i++) {
        Node *node = nodes[i];
        PyObject *form = next_object(r);
        int64_t how = next_word(r), uses = next_word(r), arity = next_word(r);
        if (node->form != form || node->value != Py_None || node->trace != Py_None
            || (how != ANY && how != (Py_REFCNT(node) > uses)) || node->inputs == NULL
            || !PyTuple_CheckExact(node->inputs) || PyTuple_GET_SIZE(node->inputs) != arity) {
            return false;
        }
        for (int64_t j = 0; j < arity; j++) {
            Node *x = (Node *)PyTuple_GET_ITEM(node->inputs, (Py_ssize_t)j);
            int64_t which = next_word(r);
            Node **list = which >= 0 ? nodes : leaves_found;
            int64_t *count = which >= 0 ? &seen : &met, k = which >= 0 ? which : -1 - which;
            if (k < *count) {
                if (list[k] != x) {
                    return false;
                }
                continue;
            }
            if (Py_TYPE(x) != state->node) {
                return false;
            }
            list[k] = x;
            (*count)++;
            if (which < 0) {
                PyObject *value = x->value;
                if (value == NULL || Py_TYPE(value) != state->buffer) {
                    return false;
                }
                base[k] = (int64_t)((Buffer *)value)->ptr;
            }
        }
    }
    for (int64_t i = 0; i < head->checked; i++) {
        Node *leaf = leaves_found[next_word(r)];
        PyObject *params = next_object(r);
        if (leaf->params != params
            && PyObject_RichCompareBool(leaf->params, params, Py_EQ) != 1) {
            return false;
        }
    }
    return true;
}

/* Computes a node if its graph matches a record. Returns whether it did; false, too, if an error
 * was set. */
static bool
run_record(State *state, Record *record, Node *root)
{
    const Head *head = (const Head *)record->words;
    Reader r = {record->words + sizeof(Head) / sizeof(int64_t), record->objects};
    if (root->depth != head->depth || !conditions_hold(&r, head->empties, head->names)) {
        return false;
    }
    int64_t known = 2 + head->leaves, bases = known + head->fixed + head->fresh;
    int64_t stack_words[NEAR];
    int64_t *room =
        words_for(bases + head->fresh + head->nodes + head->leaves + head->results, stack_words);
    if (room == NULL) {
        PyErr_NoMemory();
        return false;
    }
    int64_t *base = room, made = 0;
    PyObject **held = (PyObject **)(room + bases), **olds = held + head->fresh;
    Node **nodes = (Node **)(olds + head->results), **leaves_found = nodes + head->nodes;
    for (int64_t i = 0; i < head->fixed; i++) {
        base[known + i] = next_word(&r);
    }
    int64_t *fresh = base + known + head->fixed;
    base[1] = head->table;
    bool done = make_buffers(state, &r, head->fresh, fresh, held, &made)
                && matches_record(state, &r, head, root, nodes, leaves_found, base + 2)
                && run_table(state, base, KEEP_GIL, NULL, 0);
    if (done) {
        for (int64_t i = 0; i < head->results; i++) {
            PyObject *buffer = held[next_word(&r)];
            Node *node = nodes[next_word(&r)];
            olds[i] = NULL;
            if (node->value == Py_None) {
                Py_SETREF(node->value, Py_NewRef(buffer));
                olds[i] = node->inputs;
                node->inputs = Py_NewRef(state->empty_tuple);
                node->depth = 0;
            }
        }
        for (int64_t i = 0; i < head->results; i++) {
            Py_XDECREF(olds[i]);
        }
    }
    for (int64_t i = 0; i < made; i++) {
        Py_DECREF(held[i]);
    }
    free_words(room, stack_words);
    return done;
}

/* dispatch_pending(records, node): computes the node with the first record that matches its graph,
 * and returns whether there is one. */
static PyObject *
dispatch_pending(PyObject *module, PyObject *const *args, Py_ssize_t nargs)
{
    State *state = state_of(module);
    if (nargs != 2 || !PyTuple_CheckExact(args[0]) || Py_TYPE(args[1]) != state->node) {
        return PyErr_Format(PyExc_TypeError, "dispatch_pending: pass a tuple of records, and a node");
    }
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args[0]); i++) {
        PyObject *record = PyTuple_GET_ITEM(args[0], i);
        if (Py_TYPE(record) != state->record_type) {
            return PyErr_Format(PyExc_TypeError, "dispatch_pending: records must be of type Record");
        }
        if (run_record(state, (Record *)record, (Node *)args[1])) {
            Py_RETURN_TRUE;
        }
        if (PyErr_Occurred()) {
            return NULL;
        }
    }
    Py_RETURN_FALSE;
}

PyMethodDef pending_dispatch_functions[] = {
    {"dispatch_pending", (PyCFunction)(void (*)(void))dispatch_pending, METH_FASTCALL,
     "Compute a pending node with the first record that matches; return whether there is one."},
    {NULL},
};
