/* Jitted calls of a signature that was seen before: check the arguments, launch, build the result.
 *
 * A record describes such calls; `runtime/records.py` makes it. It consists of words and of objects
 * that words refer to by number: how many arguments there are by position and by name, containers
 * that must be empty, names that must stand for an object, closed-over nodes, leaves of the
 * arguments, fixed addresses, buffers to make; where the addresses of leaves begin among the bases
 * of the table; mode of the launch; what the result is built by (-1: it is as it is); table, team
 * and helpers. Then each of these in turn: names of arguments; containers; dictionaries, names and
 * objects; nodes; the arguments, each with its place and what it must be; addresses; free blocks
 * and bytes of each buffer; the result.
 *
 * What an argument must be: a kind and more words. An array: its type. A tuple, or a list: class,
 * how many items, these. A dictionary: how many, for each the key and what it must be. A static
 * value: itself. A number: its class and how it is passed, as the size of a float, the negative
 * size of an integer, or 0 for a bool. What a result is: an array: the number of a buffer, and its
 * type; a tuple, a list, a dictionary as above but for the class; an object: itself.
 *
 * Records, and buffers that are read, are held while they are in use: a collection, or another
 * thread while a kernel runs, may put others in their place.
 */

#include "native.h"
#include "records.h"

#include <string.h>

/* --- records --- */

static PyObject *
record_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"words", "objects", "keeps", NULL};
    PyObject *words, *objects, *keeps;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO!O:Record", names, &words, &PyTuple_Type,
                                     &objects, &keeps)) {
        return NULL;
    }
    PyObject *all = PySequence_Tuple(words); /* a list may change while numbers are asked for */
    if (all == NULL) {
        return NULL;
    }
    Record *self = (Record *)type->tp_alloc(type, 0);
    if (self == NULL) {
        Py_DECREF(all);
        return NULL;
    }
    self->objects = Py_NewRef(objects);
    self->keeps = Py_NewRef(keeps);
    Py_ssize_t count = PyTuple_GET_SIZE(all);
    self->words = PyMem_New(int64_t, count ? count : 1);
    if (self->words == NULL) {
        Py_DECREF(all);
        Py_DECREF(self);
        return PyErr_NoMemory();
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        self->words[i] = PyLong_AsLongLong(PyTuple_GET_ITEM(all, i));
        if (self->words[i] == -1 && PyErr_Occurred()) {
            Py_DECREF(all);
            Py_DECREF(self);
            return NULL;
        }
    }
    Py_DECREF(all);
    return (PyObject *)self;
}

static int
record_traverse(Record *self, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(self->objects);
    Py_VISIT(self->keeps);
    return 0;
}

static int
record_clear(Record *self)
{
    /* What the words refer to stays until the record goes. */
    Py_CLEAR(self->keeps);
    return 0;
}

static void
record_dealloc(Record *self)
{
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    Py_CLEAR(self->keeps);
    Py_CLEAR(self->objects);
    PyMem_Free(self->words);
    type->tp_free(self);
    Py_DECREF(type);
}

static PyMemberDef record_members[] = {
    {"keeps", T_OBJECT, offsetof(Record, keeps), READONLY, "What lives as long as the record."},
    {NULL},
};
static PyType_Slot record_slots[] = {
    {Py_tp_doc,
     "Record(words, objects, keeps)\n--\n\nWhat calls of one signature, or graphs of one "
     "structure, do."},
    {Py_tp_new, record_new},
    {Py_tp_dealloc, record_dealloc},
    {Py_tp_traverse, record_traverse},
    {Py_tp_clear, record_clear},
    {Py_tp_members, record_members},
    {0, NULL},
};
static PyType_Spec record_spec = {
    .name = "accnp._native.Record",
    .basicsize = sizeof(Record),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .slots = record_slots,
};

bool
as_usual(Reader *r, int64_t empties, int64_t names)
{
    for (int64_t i = 0; i < empties; i++) {
        if (PyObject_Size(next_object(r)) != 0) {
            return false;
        }
    }
    for (int64_t i = 0; i < names; i++) {
        PyObject *where = next_object(r), *name = next_object(r), *wanted = next_object(r);
        if (PyDict_GetItemWithError(where, name) != wanted) {
            return false;
        }
    }
    return true;
}

bool
make_buffers(State *state, Reader *r, int64_t count, int64_t *base, PyObject **held, int64_t *made)
{
    for (int64_t i = 0; i < count; i++) {
        Blocks *blocks = (Blocks *)next_object(r);
        Buffer *buffer = take_block(state, blocks, (Py_ssize_t)next_word(r));
        if (buffer == NULL) {
            return false;
        }
        held[(*made)++] = (PyObject *)buffer;
        base[i] = (int64_t)buffer->ptr;
    }
    return true;
}

/* --- arguments --- */

typedef struct {
    State *state;
    Reader r;
    int64_t count;     /* leaves so far */
    PyObject **held;   /* their buffers; NULL for a number */
    int64_t *base;     /* their addresses */
    int64_t *numbers;  /* as kernels read them */
} Leaves;

static bool
hold(Leaves *l, Node *node)
{
    Buffer *value = value_of(l->state, node);
    if (value == NULL) {
        return false;
    }
    l->held[l->count] = Py_NewRef((PyObject *)value);
    l->base[l->count++] = (int64_t)value->ptr;
    return true;
}

static bool
number(Leaves *l, PyObject *x)
{
    PyObject *kind = next_object(&l->r);
    int64_t how = next_word(&l->r), *to = &l->numbers[l->count];
    if ((PyObject *)Py_TYPE(x) != kind) {
        return false;
    }
    if (how > 0) {
        double value = PyFloat_AS_DOUBLE(x);
        float narrow = (float)value;
        memcpy(to, how == 8 ? (void *)&value : (void *)&narrow, (size_t)how);
    } else {
        int overflow;
        long long value = PyLong_AsLongLongAndOverflow(x, &overflow);
        if (overflow || (how != -8 && (int32_t)value != value)) {
            return false;
        }
        *to = value;
    }
    l->held[l->count] = NULL;
    l->base[l->count++] = (int64_t)(intptr_t)to;
    return true;
}

/* Whether an object is as the record says; its leaves are added. Items are held while they are
 * looked at: keys of a dictionary may be of classes whose comparison changes the containers. */
static bool
fits(Leaves *l, PyObject *x)
{
    int64_t kind = next_word(&l->r);
    if (kind == ARRAY) {
        PyObject *aval = next_object(&l->r);
        if (Py_TYPE(x) != l->state->array) {
            return false;
        }
        Node *node = ((Array *)x)->node;
        return node != NULL && node->aval == aval && hold(l, node);
    }
    if (kind == NUMBER) {
        return number(l, x);
    }
    if (kind == SAME) {
        return next_object(&l->r) == x;
    }
    if (kind == DICT) {
        int64_t count = next_word(&l->r);
        if (!PyDict_CheckExact(x) || PyDict_GET_SIZE(x) != count) {
            return false;
        }
        for (int64_t i = 0; i < count; i++) {
            PyObject *item = PyDict_GetItemWithError(x, next_object(&l->r));
            if (item == NULL) {
                return false;
            }
            Py_INCREF(item);
            bool good = fits(l, item);
            Py_DECREF(item);
            if (!good) {
                return false;
            }
        }
        return true;
    }
    PyObject *class = next_object(&l->r);
    int64_t count = next_word(&l->r);
    if ((PyObject *)Py_TYPE(x) != class) {
        return false;
    }
    for (int64_t i = 0; i < count; i++) {
        /* Looked at each time: a list may have changed meanwhile. */
        Py_ssize_t size = kind == LIST ? PyList_GET_SIZE(x) : PyTuple_GET_SIZE(x);
        if (size != count) {
            return false;
        }
        PyObject *item = kind == LIST ? PyList_GET_ITEM(x, i) : PyTuple_GET_ITEM(x, i);
        Py_INCREF(item);
        bool good = fits(l, item);
        Py_DECREF(item);
        if (!good) {
            return false;
        }
    }
    return count > 0 || (kind == LIST ? PyList_GET_SIZE(x) : PyTuple_GET_SIZE(x)) == 0;
}

/* --- results --- */

static PyObject *
result_of(State *state, Reader *r, PyObject **held)
{
    int64_t kind = next_word(r);
    if (kind == ARRAY) {
        Buffer *buffer = (Buffer *)held[next_word(r)];
        return array_over(state, buffer, next_object(r));
    }
    if (kind == SAME) {
        return Py_NewRef(next_object(r));
    }
    int64_t count = next_word(r);
    PyObject *all = kind == DICT    ? PyDict_New()
                    : kind == TUPLE ? PyTuple_New((Py_ssize_t)count)
                                    : PyList_New((Py_ssize_t)count);
    for (int64_t i = 0; all != NULL && i < count; i++) {
        PyObject *key = kind == DICT ? next_object(r) : NULL;
        PyObject *item = result_of(state, r, held);
        if (item == NULL) {
            Py_CLEAR(all);
        } else if (kind == DICT) {
            int failed = PyDict_SetItem(all, key, item);
            Py_DECREF(item);
            if (failed) {
                Py_CLEAR(all);
            }
        } else if (kind == TUPLE) {
            PyTuple_SET_ITEM(all, (Py_ssize_t)i, item);
        } else {
            PyList_SET_ITEM(all, (Py_ssize_t)i, item);
        }
    }
    return all;
}

/* --- calls --- */

typedef struct {
    int64_t positional, by_name, empties, names, closed, leaves, fixed, fresh, first, mode, build,
        table, team, helpers;
} Head;

/* The result of a call that is as a record says; NULL if it is not, or with an error. */
static PyObject *
call_by(State *state, Record *record, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
    const Head *head = (const Head *)record->words;
    Py_ssize_t named = kwnames == NULL ? 0 : PyTuple_GET_SIZE(kwnames);
    if (head->positional != nargs || head->by_name != named) {
        return NULL;
    }
    Leaves l = {.state = state,
                .r = {record->words + sizeof(Head) / sizeof(int64_t), record->objects}};
    for (Py_ssize_t i = 0; i < named; i++) {
        if (PyTuple_GET_ITEM(kwnames, i) != next_object(&l.r)) {
            return NULL;
        }
    }
    if (!as_usual(&l.r, head->empties, head->names)) {
        return NULL;
    }
    int64_t leaves = head->closed + head->leaves, owned = leaves + head->fresh;
    int64_t bases = head->first + owned + head->fixed;
    int64_t near[NEAR], *room = words_for(bases + leaves + owned, near);
    if (room == NULL) {
        return PyErr_NoMemory();
    }
    int64_t *base = room;
    l.base = base + head->first;
    l.numbers = room + bases;
    l.held = (PyObject **)(l.numbers + leaves);
    PyObject *result = NULL;
    for (int64_t i = 0; i < head->closed; i++) {
        if (!hold(&l, (Node *)next_object(&l.r))) {
            goto done;
        }
    }
    for (int64_t i = 0; i < nargs + named; i++) {
        int64_t place = next_word(&l.r);
        if (!fits(&l, args[place])) {
            goto done;
        }
    }
    for (int64_t i = 0; i < head->fixed; i++) {
        l.base[leaves + i] = next_word(&l.r);
    }
    int64_t *rest = l.base + leaves + head->fixed;
    if (!make_buffers(state, &l.r, head->fresh, rest, l.held, &l.count)) {
        goto done;
    }
    base[1] = head->table;
    if (head->mode >= TOGETHER) {
        base[2] = head->team;
        base[3] = head->helpers;
    }
    if (run_table(state, base, (int)head->mode)) {
        result = result_of(state, &l.r, l.held);
        if (result != NULL && head->build >= 0) {
            PyObject *build = PyTuple_GET_ITEM(record->objects, (Py_ssize_t)head->build);
            Py_SETREF(result, PyObject_CallOneArg(build, result));
        }
    }
done:
    for (int64_t i = 0; i < l.count; i++) {
        Py_XDECREF(l.held[i]);
    }
    free_words(room, near);
    return result;
}

typedef struct {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    PyObject *records; /* a tuple */
} Caller;

static PyObject *
call_slowly(State *state, PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
    Py_ssize_t given = nargs + (kwnames == NULL ? 0 : PyTuple_GET_SIZE(kwnames));
    int64_t near[NEAR], *room = words_for(given + 1, near);
    if (room == NULL) {
        return PyErr_NoMemory();
    }
    PyObject **all = (PyObject **)room;
    all[0] = self;
    if (given) {
        memcpy(all + 1, args, (size_t)given * sizeof(PyObject *));
    }
    PyObject *result = PyObject_VectorcallMethod(state->name_called, all, (size_t)nargs + 1, kwnames);
    free_words(room, near);
    return result;
}

static PyObject *
caller_vectorcall(PyObject *callable, PyObject *const *args, size_t nargsf, PyObject *kwnames)
{
    Caller *self = (Caller *)callable;
    Py_ssize_t nargs = PyVectorcall_NARGS(nargsf);
    State *state = state_by_type(Py_TYPE(self));
    if (state == NULL) {
        return NULL;
    }
    PyObject *records = self->records, *result = NULL;
    Py_ssize_t count = PyTuple_GET_SIZE(records);
    if (count) {
        Py_INCREF(records);
        for (Py_ssize_t i = 0; i < count && result == NULL; i++) {
            Record *record = (Record *)PyTuple_GET_ITEM(records, i);
            result = call_by(state, record, args, nargs, kwnames);
            if (result == NULL && PyErr_Occurred()) {
                Py_DECREF(records);
                return NULL;
            }
        }
        Py_DECREF(records);
    }
    return result != NULL ? result : call_slowly(state, callable, args, nargs, kwnames);
}

static PyObject *
caller_new(PyTypeObject *type, PyObject *Py_UNUSED(args), PyObject *Py_UNUSED(kwargs))
{
    Caller *self = (Caller *)type->tp_alloc(type, 0);
    if (self != NULL) {
        self->vectorcall = caller_vectorcall;
        self->records = PyTuple_New(0);
        if (self->records == NULL) {
            Py_CLEAR(self);
        }
    }
    return (PyObject *)self;
}

static int
caller_traverse(Caller *self, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(self->records);
    return 0;
}

static int
caller_clear(Caller *self)
{
    Py_XSETREF(self->records, PyTuple_New(0)); /* the only one, which is there */
    return 0;
}

static void
caller_dealloc(Caller *self)
{
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    Py_XDECREF(self->records);
    type->tp_free(self);
    Py_DECREF(type);
}

static PyObject *
caller_get_records(Caller *self, void *Py_UNUSED(closure))
{
    return Py_NewRef(self->records);
}

static int
caller_set_records(Caller *self, PyObject *given, void *Py_UNUSED(closure))
{
    State *state = state_by_type(Py_TYPE(self));
    if (state == NULL) {
        return -1;
    }
    bool good = given != NULL && PyTuple_CheckExact(given);
    for (Py_ssize_t i = 0; good && i < PyTuple_GET_SIZE(given); i++) {
        good = Py_TYPE(PyTuple_GET_ITEM(given, i)) == state->record_type;
    }
    if (!good) {
        PyErr_SetString(PyExc_TypeError, "Caller: records are a tuple of Record");
        return -1;
    }
    Py_SETREF(self->records, Py_NewRef(given));
    return 0;
}

static PyGetSetDef caller_getset[] = {
    {"_records", (getter)caller_get_records, (setter)caller_set_records,
     "Signatures that were seen before.", NULL},
    {NULL},
};
static PyMemberDef caller_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(Caller, vectorcall), READONLY},
    {NULL},
};
static PyType_Slot caller_slots[] = {
    {Py_tp_doc, "Calls by records where one fits, and its method `_called` where none does."},
    {Py_tp_new, caller_new},
    {Py_tp_dealloc, caller_dealloc},
    {Py_tp_traverse, caller_traverse},
    {Py_tp_clear, caller_clear},
    {Py_tp_call, PyVectorcall_Call},
    {Py_tp_getset, caller_getset},
    {Py_tp_members, caller_members},
    {0, NULL},
};
static PyType_Spec caller_spec = {
    .name = "accnp._native.Caller",
    .basicsize = sizeof(Caller),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC
             | Py_TPFLAGS_HAVE_VECTORCALL,
    .slots = caller_slots,
};

int
add_calls(PyObject *module, State *state)
{
    state->record_type = add_type(module, &record_spec);
    state->caller = add_type(module, &caller_spec);
    return state->record_type && state->caller && ADD_CONSTANT(ARRAY) && ADD_CONSTANT(TUPLE)
                   && ADD_CONSTANT(LIST) && ADD_CONSTANT(DICT) && ADD_CONSTANT(SAME)
                   && ADD_CONSTANT(NUMBER)
               ? 0
               : -1;
}
