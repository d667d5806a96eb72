/* Fast calls of jitted functions: compare the arguments with those of earlier calls, run the
 * program, and build the result.
 *
 * A record describes the calls of one signature; `runtime/dispatch_entries.py` makes it. It
 * consists of words, and of objects to which words refer by index. The words begin with the members
 * of `Head`. Then follow, in this order:
 *
 * - the names of the keyword arguments;
 * - the nodes that the function closes over;
 * - for each argument, its index in the call and its description (see below);
 * - the conditions. A condition is a container and a function: unless the container is empty, the
 *   function is called, and the record can be used only if it returns True;
 * - triples (dictionary, name, object): the dictionary must map the name to the object.
 *
 * If the call has a table (`launch.c`), these words follow:
 *
 * - containers that must be empty, and more triples, without which the table cannot be used now;
 * - the fixed addresses;
 * - for each buffer to allocate, its free list and its number of bytes;
 * - the description of the result.
 *
 * The description of an argument is its kind and more words:
 *
 * - ARRAY: the type (aval).
 * - TUPLE, LIST: the class, the number of items, and their descriptions.
 * - DICT: the number of items, and the key and the description of each.
 * - SAME: an object with which the argument must be identical.
 * - EQUAL, a static value: its class, the value, and its hash.
 * - NUMBER: its class, and its conversion: the size of a float, the negative size of an integer, or
 *   0 for a bool.
 * - CLASS, an object of a registered class: the class, its flatten function, the class, the value
 *   and the hash of the static data, the number of children, and their descriptions.
 * - CONVERT, a value that is converted to an array: its class, the type of the array, the function
 *   that makes its node, and the dtype and the shape of a NumPy array (None for other values).
 *
 * The description of a result is similar:
 *
 * - ARRAY: the index of its buffer, and its type.
 * - BUFFER, an array that is the same in all calls: its buffer and its type.
 * - TUPLE, LIST, DICT: as above, but without a class.
 * - SAME: the object.
 *
 * If the arguments match, but the call has no table, or its table cannot be used now, a Python
 * function is called with the leaves, which are nodes and Python numbers.
 *
 * The code holds references to records, leaves and buffers while it uses them: flatten functions,
 * comparisons, a garbage collection, or another thread while a kernel runs may replace them.
 */

#include "native.h"
#include "records.h"

#include <string.h>

/* --- records --- */

/* Record(words, objects, keeps) */
static PyObject *
record_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"words", "objects", "keeps", NULL};
    PyObject *words, *objects, *keeps;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO!O:Record", names, &words, &PyTuple_Type,
                                     &objects, &keeps)) {
        return NULL;
    }
    PyObject *all = PySequence_Tuple(words); /* a list could change below */
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
    Py_ssize_t count = self->count = PyTuple_GET_SIZE(all);
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
    /* `objects` is kept until the record is deallocated, because words refer to it. */
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
    {"keeps", T_OBJECT, offsetof(Record, keeps), READONLY,
     "An object that lives as long as the record."},
    {"used", T_LONGLONG, offsetof(Record, used), READONLY,
     "The number of the latest call, see next_use."},
    {NULL},
};
static PyType_Slot record_slots[] = {
    {Py_tp_doc,
     "Record(words, objects, keeps)\n--\n\nA description of the calls of one signature, or of the "
     "graphs of one structure."},
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

/* Returns the length of a container; -1 with an error. */
static inline Py_ssize_t
size_of(PyObject *container)
{
    return PyList_CheckExact(container) ? PyList_GET_SIZE(container) : PyObject_Size(container);
}

bool
conditions_hold(Reader *r, int64_t empties, int64_t names)
{
    for (int64_t i = 0; i < empties; i++) {
        if (size_of(next_object(r)) != 0) {
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

/* The state of the comparison of a call's arguments with a record, which collects the leaves. */
typedef struct {
    State *state;
    Reader r;
    int64_t count;     /* the number of leaves that were found */
    PyObject **leaves; /* new references to nodes and Python numbers */
    int64_t *base;     /* the address of each leaf; only those of numbers are set at first */
    int64_t *numbers;  /* memory for numbers, in the format that kernels read */
} Leaves;

/* Adds a node to the leaves; false if it belongs to a trace. */
static bool
hold(Leaves *l, Node *node)
{
    if (is_traced(l->state, node)) {
        return false;
    }
    l->leaves[l->count++] = Py_NewRef((PyObject *)node);
    return true;
}

/* Reads the description of a number, and adds the number to the leaves if it matches. */
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
    l->base[l->count] = (int64_t)(intptr_t)to;
    l->leaves[l->count++] = Py_NewRef(x);
    return true;
}

/* Handles the error of a failed comparison or conversion, and returns false. A TypeError is
 * cleared, because the general path raises a better message; any other error stays set. */
static bool
misfit(void)
{
    if (PyErr_Occurred() && PyErr_ExceptionMatches(PyExc_TypeError)) {
        PyErr_Clear();
    }
    return false;
}

/* Reads a class, a value and its hash. Returns whether an object has this class and equals the
 * value, by the rules for keys of dictionaries; false, too, if an error was set. */
static bool
equals(Reader *r, PyObject *x)
{
    PyObject *class = next_object(r), *wanted = next_object(r);
    int64_t hash = next_word(r);
    if ((PyObject *)Py_TYPE(x) != class) {
        return false;
    }
    Py_hash_t found = PyObject_Hash(x);
    if (found != hash) {
        return found == -1 && misfit();
    }
    int same = PyObject_RichCompareBool(wanted, x, Py_EQ);
    return same < 0 ? misfit() : same;
}

/* Returns whether an attribute of an object equals a value; false, too, if an error was set. */
static bool
attribute_equals(PyObject *x, PyObject *name, PyObject *wanted)
{
    PyObject *found = PyObject_GetAttr(x, name);
    int same = found == NULL ? -1 : PyObject_RichCompareBool(wanted, found, Py_EQ);
    Py_XDECREF(found);
    return same < 0 ? misfit() : same;
}

/* Reads the description of a value that is converted, and adds its node to the leaves if it
 * matches. */
static bool
convert(Leaves *l, PyObject *x)
{
    PyObject *class = next_object(&l->r), *aval = next_object(&l->r);
    PyObject *function = next_object(&l->r);
    PyObject *dtype = next_object(&l->r), *shape = next_object(&l->r);
    if ((PyObject *)Py_TYPE(x) != class) {
        return false;
    }
    if (dtype != Py_None
        && !(attribute_equals(x, l->state->name_dtype, dtype)
             && attribute_equals(x, l->state->name_shape, shape))) {
        return false;
    }
    PyObject *node = PyObject_CallOneArg(function, x);
    if (node == NULL) {
        return misfit();
    }
    bool good = Py_TYPE(node) == l->state->node && ((Node *)node)->aval == aval;
    good = good && hold(l, (Node *)node);
    Py_DECREF(node);
    return good;
}

static bool fits(Leaves *l, PyObject *x);

/* Reads the description of an object of a registered class, and adds its leaves if it matches. */
static bool
parts_fit(Leaves *l, PyObject *x)
{
    PyObject *class = next_object(&l->r), *flatten = next_object(&l->r);
    if ((PyObject *)Py_TYPE(x) != class) {
        return false;
    }
    PyObject *pair = PyObject_CallOneArg(flatten, x);
    if (pair == NULL) {
        return false; /* the error of the user's function stays set */
    }
    bool good = PyTuple_CheckExact(pair) && PyTuple_GET_SIZE(pair) == 2
                && equals(&l->r, PyTuple_GET_ITEM(pair, 1));
    PyObject *parts = good ? PySequence_Tuple(PyTuple_GET_ITEM(pair, 0)) : NULL;
    if (good && parts == NULL) {
        good = misfit();
    }
    good = good && PyTuple_GET_SIZE(parts) == next_word(&l->r);
    for (Py_ssize_t i = 0; good && i < PyTuple_GET_SIZE(parts); i++) {
        good = fits(l, PyTuple_GET_ITEM(parts, i));
    }
    Py_XDECREF(parts);
    Py_DECREF(pair);
    return good;
}

/* Reads the description of an argument. Returns whether an object matches it, and adds its leaves;
 * false, too, if an error was set. It holds a reference to each item while it compares the item,
 * because Python functions that it calls may change the containers. */
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
    if (kind == EQUAL) {
        return equals(&l->r, x);
    }
    if (kind == CLASS) {
        return parts_fit(l, x);
    }
    if (kind == CONVERT) {
        return convert(l, x);
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
        return PyDict_GET_SIZE(x) == count;
    }
    PyObject *class = next_object(&l->r);
    int64_t count = next_word(&l->r);
    if ((PyObject *)Py_TYPE(x) != class) {
        return false;
    }
    for (int64_t i = 0; i < count; i++) {
        /* The size is read for each item, because the list may have changed. */
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
    return (kind == LIST ? PyList_GET_SIZE(x) : PyTuple_GET_SIZE(x)) == count;
}

/* --- results --- */

/* Reads the description of a result and builds it from the buffers in `held`; NULL with an error.
 */
static PyObject *
result_of(State *state, Reader *r, PyObject **held)
{
    int64_t kind = next_word(r);
    if (kind == ARRAY) {
        Buffer *buffer = (Buffer *)held[next_word(r)];
        if (buffer == NULL) {
            return PyErr_Format(PyExc_SystemError, "a record returns a number");
        }
        return array_over(state, buffer, next_object(r));
    }
    if (kind == BUFFER) {
        Buffer *buffer = (Buffer *)next_object(r);
        return array_over(state, buffer, next_object(r));
    }
    if (kind == SAME) {
        return Py_NewRef(next_object(r));
    }
    int64_t count = next_word(r);
    PyObject *all = kind == DICT    ? PyDict_New()
                    : kind == TUPLE ? PyTuple_New((Py_ssize_t)count)
                                    : PyList_New((Py_ssize_t)count);
    if (kind != DICT) {
        hide(all); /* a garbage collection may call Python functions of users */
    }
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
    if (kind != DICT) {
        show(all);
    }
    return all;
}

/* --- calls --- */

/* The first words of a record:
 *
 * - positional, by_name: the number of positional and of keyword arguments;
 * - closed, leaves: the number of nodes that the function closes over, and of leaves of the
 *   arguments;
 * - conditions, names: the number of conditions, and of triples (dictionary, name, object);
 * - empties, fast_names: the number of containers and triples on which the use of the table
 *   depends;
 * - fixed, fresh: the number of fixed addresses, and of buffers to allocate;
 * - first: the index of the first leaf among the bases of the table;
 * - mode: how the table is run (`run_table`);
 * - build: the index of the function that builds the result from its description; -1 if the
 *   description is the result;
 * - table: the address of the table, or 0;
 * - thread_pool, helpers: bases of tables that threads share;
 * - finish: the index of the function for calls without a table. */
typedef struct {
    int64_t positional, by_name, closed, leaves, conditions, names, empties, fast_names, fixed,
        fresh, first, mode, build, table, thread_pool, helpers, finish;
} Head;

/* Reads the conditions and triples. Returns whether the record can be used now; false, too, if an
 * error was set. */
static bool
may_be_used(Reader *r, const Head *head)
{
    for (int64_t i = 0; i < head->conditions; i++) {
        PyObject *container = next_object(r), *question = next_object(r);
        Py_ssize_t size = size_of(container);
        if (size) {
            PyObject *answer = size < 0 ? NULL : PyObject_CallNoArgs(question);
            Py_XDECREF(answer); /* comparing the pointer is safe: True is never deallocated */
            if (answer != Py_True) {
                return false;
            }
        }
    }
    return conditions_hold(r, 0, head->names);
}

/* Runs the table of a record and returns the result; NULL, with or without an error, if the table
 * cannot be used now. */
static PyObject *
call_table(State *state, Record *record, Leaves *l, int64_t *room, PyObject **buffers)
{
    const Head *head = (const Head *)record->words;
    int64_t leaves = l->count, made = 0;
    PyObject *result = NULL;
    if (!conditions_hold(&l->r, head->empties, head->fast_names)) {
        return NULL;
    }
    for (; made < leaves; made++) {
        Node *node = (Node *)l->leaves[made];
        if (Py_TYPE(node) != state->node) {
            buffers[made] = NULL; /* the leaf is a number */
            continue;
        }
        PyObject *value = node->value;
        if (value == NULL || Py_TYPE(value) != state->buffer) {
            goto done;
        }
        buffers[made] = record->borrows ? value : Py_NewRef(value);
        l->base[made] = (int64_t)((Buffer *)value)->ptr;
    }
    for (int64_t i = 0; i < head->fixed; i++) {
        l->base[leaves + i] = next_word(&l->r);
    }
    int64_t *rest = l->base + leaves + head->fixed;
    if (!make_buffers(state, &l->r, head->fresh, rest, buffers, &made)) {
        goto done;
    }
    room[1] = head->table;
    if (head->mode >= WITH_HELPERS) {
        room[2] = head->thread_pool;
        room[3] = head->helpers;
    }
    if (run_table(state, room, (int)head->mode, buffers, made)) {
        result = result_of(state, &l->r, buffers);
        if (result != NULL && head->build >= 0) {
            PyObject *build = PyTuple_GET_ITEM(record->objects, (Py_ssize_t)head->build);
            Py_SETREF(result, PyObject_CallOneArg(build, result));
        }
    }
done:
    for (int64_t i = record->borrows ? leaves : 0; i < made; i++) {
        Py_XDECREF(buffers[i]);
    }
    return result;
}

/* Calls the function of a record with the leaves, and returns the result; NULL with an error. */
static PyObject *
call_function(Record *record, Leaves *l)
{
    const Head *head = (const Head *)record->words;
    PyObject *leaves = PyTuple_New((Py_ssize_t)head->leaves);
    if (leaves == NULL) {
        return NULL;
    }
    for (int64_t i = 0; i < head->leaves; i++) {
        PyTuple_SET_ITEM(leaves, (Py_ssize_t)i, Py_NewRef(l->leaves[head->closed + i]));
    }
    PyObject *finish = PyTuple_GET_ITEM(record->objects, (Py_ssize_t)head->finish);
    PyObject *result = PyObject_CallOneArg(finish, leaves);
    Py_DECREF(leaves);
    return result;
}

/* Returns the result of a call if it matches a record; NULL if it does not, or with an error. */
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
    int64_t leaves = head->closed + head->leaves, owned = leaves + head->fresh;
    int64_t bases = head->first + owned + head->fixed;
    int64_t near[NEAR], *room = words_for(bases + leaves + leaves + owned, near);
    if (room == NULL) {
        return PyErr_NoMemory();
    }
    l.base = room + head->first;
    l.numbers = room + bases;
    l.leaves = (PyObject **)(l.numbers + leaves);
    PyObject *result = NULL;
    bool good = true;
    for (int64_t i = 0; good && i < head->closed; i++) {
        good = hold(&l, (Node *)next_object(&l.r));
    }
    for (int64_t i = 0; good && i < nargs + named; i++) {
        int64_t place = next_word(&l.r);
        good = fits(&l, args[place]);
    }
    /* The conditions are checked last, because Python functions that were called for the arguments
     * may have changed what they depend on. */
    if (good && may_be_used(&l.r, head)) {
        record->used = ++state->uses;
        if (head->table) {
            result = call_table(state, record, &l, room, l.leaves + leaves);
        }
        if (result == NULL && !PyErr_Occurred()) {
            result = call_function(record, &l);
        }
    }
    for (int64_t i = 0; i < l.count; i++) {
        Py_DECREF(l.leaves[i]);
    }
    free_words(room, near);
    return result;
}

/* --- validation of records, once, so that calls can use their words without checks --- */

/* The state of a validation. */
typedef struct {
    State *state;
    Reader r;
    const int64_t *end; /* the end of the words */
    int64_t leaves;     /* the number of leaves so far */
    bool good, returns_leaf; /* whether all words are valid, and whether a result is a leaf */
} Check;

/* Reads a word. If it is not within the limits, clears `good` and returns the lower limit. */
static int64_t
check_word(Check *c, int64_t least, int64_t most)
{
    int64_t word = c->r.next < c->end ? next_word(&c->r) : least - 1;
    if (word < least || word > most) {
        c->good = false;
        return least;
    }
    return word;
}

/* Reads a number of items that have at least one word each. */
static int64_t
check_count(Check *c)
{
    return check_word(c, 0, c->end - c->r.next);
}

/* Reads the index of an object and returns the object, as a borrowed reference. */
static PyObject *
check_object(Check *c)
{
    Py_ssize_t known = PyTuple_GET_SIZE(c->r.objects);
    int64_t which = check_word(c, 0, known - 1);
    return known ? PyTuple_GET_ITEM(c->r.objects, (Py_ssize_t)which) : Py_None;
}

static void
check_objects(Check *c, int64_t count)
{
    for (int64_t i = 0; i < count && c->good; i++) {
        check_object(c);
    }
}

/* Reads an object, which must be an instance of a class. */
static void
check_instance(Check *c, PyTypeObject *class)
{
    PyObject *object = check_object(c);
    c->good = c->good && Py_TYPE(object) == class;
}

/* Reads an object, which must be a subclass of a class. */
static void
check_type(Check *c, PyTypeObject *base)
{
    PyObject *class = check_object(c);
    c->good = c->good && PyType_Check(class) && PyType_IsSubtype((PyTypeObject *)class, base);
}

/* Reads the description of an argument. */
static void
check_argument(Check *c)
{
    int64_t count, kind = check_word(c, ARRAY, CONVERT);
    if (Py_EnterRecursiveCall(" in a record")) {
        c->good = false;
        return;
    }
    switch (kind) {
    case ARRAY:
        check_object(c);
        c->leaves++;
        break;
    case NUMBER: {
        PyObject *class = check_object(c);
        int64_t how = check_word(c, -8, 8);
        bool whole = class == (PyObject *)&PyLong_Type || class == (PyObject *)&PyBool_Type;
        c->good = c->good && (how > 0 ? class == (PyObject *)&PyFloat_Type : whole)
                  && how % 4 == 0;
        c->leaves++;
        break;
    }
    case SAME:
        check_object(c);
        break;
    case EQUAL:
        check_objects(c, 2);
        check_word(c, INT64_MIN + 1, INT64_MAX);
        break;
    case CONVERT:
        check_objects(c, 5);
        c->leaves++;
        break;
    default:
        if (kind == CLASS) {
            check_objects(c, 4);
            check_word(c, INT64_MIN + 1, INT64_MAX);
        } else if (kind != DICT) {
            check_type(c, kind == LIST ? &PyList_Type : &PyTuple_Type);
        }
        count = check_count(c);
        for (int64_t i = 0; i < count && c->good; i++) {
            check_objects(c, kind == DICT);
            check_argument(c);
        }
    }
    Py_LeaveRecursiveCall();
}

/* Reads the description of a result. */
static void
check_result(Check *c, int64_t leaves, int64_t buffers)
{
    int64_t kind = check_word(c, ARRAY, BUFFER);
    if ((kind > SAME && kind != BUFFER) || Py_EnterRecursiveCall(" in a record")) {
        c->good = false;
        return;
    }
    if (kind == BUFFER) {
        check_instance(c, c->state->buffer);
        check_object(c);
    } else if (kind == ARRAY) {
        c->returns_leaf |= check_word(c, 0, buffers - 1) < leaves;
        check_object(c);
    } else if (kind == SAME) {
        check_object(c);
    } else {
        int64_t count = check_count(c);
        for (int64_t i = 0; i < count && c->good; i++) {
            check_objects(c, kind == DICT);
            check_result(c, leaves, buffers);
        }
    }
    Py_LeaveRecursiveCall();
}

/* Reads triples (dictionary, name, object). */
static void
check_names(Check *c, int64_t count)
{
    for (int64_t i = 0; i < count && c->good; i++) {
        PyObject *names = check_object(c);
        c->good = c->good && PyDict_Check(names);
        check_objects(c, 2);
    }
}

/* Returns whether a record is valid for calls. Addresses cannot be checked. */
static bool
is_call(State *state, Record *record)
{
    const Head *head = (const Head *)record->words;
    const int64_t words = sizeof(Head) / sizeof(int64_t);
    Py_ssize_t objects = PyTuple_GET_SIZE(record->objects);
    int64_t first = record->count < words || !head->table ? 0 : head->mode < WITH_HELPERS ? 2 : 4;
    if (record->count < words || head->finish < 0 || head->finish >= objects || head->build < -1
        || head->build >= objects || head->mode < KEEP_GIL || head->mode > WITH_AWAKE_HELPERS
        || head->first < first || head->first > 4) {
        return false;
    }
    const int64_t *counts[] = {&head->positional, &head->by_name,    &head->closed, &head->leaves,
                               &head->conditions, &head->names,      &head->empties,
                               &head->fast_names, &head->fixed,      &head->fresh};
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
        if (*counts[i] < 0 || *counts[i] > record->count) {
            return false;
        }
    }
    Check c = {state, {record->words + words, record->objects}, record->words + record->count, 0,
               true, false};
    int64_t arguments = head->positional + head->by_name;
    check_objects(&c, head->by_name);
    for (int64_t i = 0; i < head->closed && c.good; i++) {
        check_instance(&c, state->node);
    }
    for (int64_t i = 0; i < arguments && c.good; i++) {
        check_word(&c, 0, arguments - 1);
        check_argument(&c);
    }
    check_objects(&c, 2 * head->conditions);
    check_names(&c, head->names);
    c.good = c.good && c.leaves == head->leaves;
    if (head->table && c.good) {
        check_objects(&c, head->empties);
        check_names(&c, head->fast_names);
        for (int64_t i = 0; i < head->fixed && c.good; i++) {
            check_word(&c, INT64_MIN + 1, INT64_MAX);
        }
        for (int64_t i = 0; i < head->fresh && c.good; i++) {
            check_instance(&c, state->blocks);
            check_word(&c, 0, INT64_MAX);
        }
        int64_t leaves = head->closed + head->leaves;
        check_result(&c, leaves, leaves + head->fresh);
    }
    /* If the lock is kept, no Python code and no other thread that holds the lock runs between the
     * last check of the nodes and the end of the table. After that, results need only new buffers.
     */
    record->borrows = head->mode == KEEP_GIL && !c.returns_leaf;
    return c.good && c.r.next == c.end;
}

/* --- the callable --- */

/* The base of the class of jitted functions. */
typedef struct {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    PyObject *records; /* a tuple of Record */
} Caller;

/* Calls the method `_call_uncached`, the general path, with the arguments. */
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
    PyObject *result = PyObject_VectorcallMethod(state->name_uncached, all, (size_t)nargs + 1, kwnames);
    free_words(room, near);
    return result;
}

/* Calls by the first record that matches the arguments, or else by the general path. */
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
    Py_XSETREF(self->records, PyTuple_New(0)); /* cannot fail: the empty tuple is a shared object */
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
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(given); i++) {
        if (!is_call(state, (Record *)PyTuple_GET_ITEM(given, i))) {
            if (!PyErr_Occurred()) {
                PyErr_Format(PyExc_ValueError, "Caller: the words of record %zd are not those of a "
                             "call", i);
            }
            return -1;
        }
    }
    Py_SETREF(self->records, Py_NewRef(given));
    return 0;
}

static PyGetSetDef caller_getset[] = {
    {"_records", (getter)caller_get_records, (setter)caller_set_records,
     "Records of earlier calls.", NULL},
    {NULL},
};
static PyMemberDef caller_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(Caller, vectorcall), READONLY},
    {NULL},
};
static PyType_Slot caller_slots[] = {
    {Py_tp_doc, "Calls by the first record that matches, or else by `_call_uncached`."},
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

/* next_use(): advances the clock of uses and returns it, so that Python code can compare its own
 * uses with those of records. */
static PyObject *
next_use(PyObject *module, PyObject *Py_UNUSED(ignored))
{
    return PyLong_FromLongLong(++state_of(module)->uses);
}

PyMethodDef call_functions[] = {
    {"next_use", next_use, METH_NOARGS,
     "Return a number that is larger than those of all earlier uses of records."},
    {NULL},
};

int
add_calls(PyObject *module, State *state)
{
    state->record_type = add_type(module, &record_spec);
    state->caller = add_type(module, &caller_spec);
    return state->record_type && state->caller && ADD_CONSTANT(ARRAY) && ADD_CONSTANT(TUPLE)
                   && ADD_CONSTANT(LIST) && ADD_CONSTANT(DICT) && ADD_CONSTANT(SAME)
                   && ADD_CONSTANT(NUMBER) && ADD_CONSTANT(EQUAL) && ADD_CONSTANT(CLASS)
                   && ADD_CONSTANT(CONVERT) && ADD_CONSTANT(BUFFER)
               ? 0
               : -1;
}
