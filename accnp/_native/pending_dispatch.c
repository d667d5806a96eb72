/* Pending graphs of a structure that was computed before; `engine/pending_dispatch.py` makes the records,
 * and calls with the engine's lock.
 *
 * The words of a record: the numbers of nodes, of leaves, of containers that must be empty, of names
 * that must stand for an object, of fixed addresses, of buffers to make, of leaves with certain
 * parameters, of results; depth of the node that is asked for, and the table. Then each of these in
 * turn: containers; dictionaries, names and objects; addresses; free blocks and bytes of each buffer;
 * for each node its form, how it is held, how often it is an input, the number of its inputs, and
 * these: the number of a node, or -1 less that of a leaf; for each leaf with certain parameters its
 * number, and these; for each result which buffer it has, and which node it is of.
 *
 * How a node is held: by the graph alone (0), by others as well (1), any way (2). One node may stand
 * for two of a record that are alike, and held; the second of its results is let go.
 *
 * No Python code runs, and the interpreter lock is kept, from the first look at a node until all
 * results are where they belong: buffers are made before, and what a node held is let go after.
 */

#include "native.h"
#include "records.h"

enum { ANY = 2 };

typedef struct {
    int64_t nodes, leaves, empties, names, fixed, fresh, checked, results, depth, table;
} Head;

/* Whether pending nodes are as a record says; lists nodes, and addresses of leaves. */
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

/* Whether a node was computed by a record; false with an error, too. */
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

/* dispatch_pending(records, node): whether the node was computed. */
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
     "Compute a pending node by one of some records; returns whether one fits."},
    {NULL},
};
