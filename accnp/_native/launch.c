/* Launches of single kernels, and of tables, whose steps run in a single call.
 *
 * `engine/table.py` writes tables. A table is an array of 64-bit words. The first three words are
 * the maximum number of arguments of a step, the number of steps, and the number of kernels among
 * the steps. Each step then consists of
 *
 * - the address of its entry,
 * - the size n of its range 0..n,
 * - the size of the chunks in which threads take this range,
 * - the number of its arguments,
 * - for each argument, the index of a base and an offset, whose sum is the argument.
 *
 * The bases are the values that differ between calls. Base 0 is zero, and base 1 is the address of
 * the bases. If threads share the steps, the next two bases are the address of the thread pool and
 * the number of helpers. The other bases are addresses of buffers.
 */

#include "native.h"

#include <string.h>

/* Runs a step of a table, and returns the address of the next step. */
static const int64_t *
run_step(const int64_t *step, const int64_t *base, int64_t *argv, int64_t thread_pool,
         int64_t helpers)
{
    int64_t count = step[3];
    const int64_t *p = step + 4;
    for (int64_t i = 0; i < count; i++, p += 2) {
        argv[i] = base[p[0]] + p[1];
    }
    parallel_for(step[0], argv, step[1], step[2], thread_pool, helpers);
    return p;
}

bool
run_table(State *state, int64_t *base, int mode, PyObject *const *given, int64_t count)
{
    const int64_t *table = (const int64_t *)(intptr_t)base[1];
    int64_t widest = table[0], steps = table[1];
    int64_t near[NEAR], *argv = words_for(widest, near);
    if (argv == NULL) {
        PyErr_NoMemory();
        return false;
    }
    base[0] = 0;
    base[1] = (int64_t)(intptr_t)base;
    state->launches += table[2];
    int64_t thread_pool = 0, helpers = 0;
    if (mode >= WITH_HELPERS) {
        thread_pool = base[2];
        helpers = mode == WITH_AWAKE_HELPERS ? -base[3] : base[3];
    }
    Launch launch;
    if (mode != KEEP_GIL) {
        begin_launch(&launch, given, count);
    }
    if (mode == WITH_HELPERS) {
        open_session(thread_pool, helpers);
    }
    const int64_t *step = table + 3;
    for (int64_t i = 0; i < steps && (mode == KEEP_GIL || !launch.stopped); i++) {
        step = run_step(step, base, argv, thread_pool, helpers);
    }
    if (mode == WITH_HELPERS) {
        close_session(thread_pool);
    }
    bool done = mode == KEEP_GIL || end_launch(&launch);
    free_words(argv, near);
    return done;
}

void
run_alone(Entry entry, int64_t *argv, int64_t n, int64_t chunk)
{
    int64_t own = 0;
    if (n <= chunk || current_launch() == NULL) {
        entry(argv, &own, n, n);
        return;
    }
    for (int64_t first = 0; first < n && !is_stopped(); first += chunk) {
        int64_t rest = n - first, size = rest < chunk ? rest : chunk;
        own = first;
        entry(argv, &own, first + size, size);
        if (rest <= chunk) {
            return; /* the next sum might overflow */
        }
    }
}

/* --- entries of steps that are not kernels --- */

/* Copies memory. The arguments are the target, the source, and the number of bytes. */
void
copy_entry(int64_t *argv, int64_t *Py_UNUSED(counter), int64_t Py_UNUSED(n), int64_t Py_UNUSED(chunk))
{
    memcpy((void *)(intptr_t)argv[0], (const void *)(intptr_t)argv[1], (size_t)argv[2]);
}

/* Runs a group of steps that do not depend on each other; the index is the number of the step. The
 * arguments are the address of the bases, the address of an array of the steps' addresses, and the
 * maximum number of arguments of a step. */
void
group_entry(int64_t *argv, int64_t *counter, int64_t n, int64_t chunk)
{
    const int64_t *base = (const int64_t *)(intptr_t)argv[0];
    const int64_t *index = (const int64_t *)(intptr_t)argv[1];
    int64_t near[NEAR], *own = words_for(argv[2], near);
    while (own == NULL) { /* without the interpreter lock no error can be raised: wait for memory */
        own = words_for(argv[2], near);
    }
    FOR_EACH_CHUNK(counter, n, chunk, first, end)
    {
        for (int64_t i = first; i < end; i++) {
            run_step((const int64_t *)(intptr_t)index[i], base, own, 0, 0);
        }
    }
    free_words(own, near);
}

/* --- launches of single kernels, which Python code calls --- */

/* Converts arguments to words: integers, and the addresses of buffers. The words begin at index
 * `ahead` of the returned memory; NULL with an error. */
static int64_t *
given_words(State *state, PyObject *const *args, Py_ssize_t nargs, Py_ssize_t ahead, int64_t *near)
{
    int64_t *words = words_for(ahead + nargs, near);
    if (words == NULL) {
        PyErr_NoMemory();
        return NULL;
    }
    for (Py_ssize_t i = 0; i < nargs; i++) {
        if (Py_TYPE(args[i]) == state->buffer) {
            words[ahead + i] = (int64_t)((Buffer *)args[i])->ptr;
            continue;
        }
        words[ahead + i] = PyLong_AsLongLong(args[i]);
        if (words[ahead + i] == -1 && PyErr_Occurred()) {
            free_words(words, near);
            return NULL;
        }
    }
    return words;
}

/* Raises an error for a call with too few arguments. */
static PyObject *
too_few(const char *name, const char *wanted)
{
    return PyErr_Format(PyExc_TypeError, "%s: pass %s", name, wanted);
}

/* Runs a kernel on this thread; releases the interpreter lock meanwhile if `release` is true. */
static PyObject *
launch(PyObject *module, PyObject *const *args, Py_ssize_t nargs, bool release)
{
    if (nargs < 3) {
        return too_few("launch", "an entry, n, a chunk and arguments");
    }
    int64_t near[NEAR], *words = given_words(state_of(module), args, nargs, 0, near);
    if (words == NULL) {
        return NULL;
    }
    state_of(module)->launches++;
    Entry entry = (Entry)(intptr_t)words[0];
    Launch launch;
    if (release) {
        begin_launch(&launch, args, nargs);
    }
    run_alone(entry, words + 3, words[1], words[2]);
    bool done = !release || end_launch(&launch);
    free_words(words, near);
    if (!done) {
        return NULL;
    }
    Py_RETURN_NONE;
}

static PyObject *
launch_held(PyObject *module, PyObject *const *args, Py_ssize_t nargs)
{
    return launch(module, args, nargs, false);
}

static PyObject *
launch_released(PyObject *module, PyObject *const *args, Py_ssize_t nargs)
{
    return launch(module, args, nargs, true);
}

/* Runs a kernel on this thread and on helpers. */
static PyObject *
launch_parallel(PyObject *module, PyObject *const *args, Py_ssize_t nargs)
{
    if (nargs < 5) {
        return too_few("launch_parallel",
                       "an entry, n, a chunk, a thread pool, helpers and arguments");
    }
    int64_t near[NEAR], *words = given_words(state_of(module), args, nargs, 0, near);
    if (words == NULL) {
        return NULL;
    }
    state_of(module)->launches++;
    Launch launch;
    begin_launch(&launch, args, nargs);
    parallel_for(words[0], words + 5, words[1], words[2], words[3], words[4]);
    bool done = end_launch(&launch);
    free_words(words, near);
    if (!done) {
        return NULL;
    }
    Py_RETURN_NONE;
}

/* --- launches of tables, which Python code calls --- */

/* A callable that runs a table. */
typedef struct {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    PyObject *module;
    int64_t table; /* the address of the table */
    int mode;      /* how it is run, see `run_table` */
} Walker;

static PyObject *
walker_call(PyObject *callable, PyObject *const *args, size_t nargsf, PyObject *names)
{
    Walker *self = (Walker *)callable;
    Py_ssize_t nargs = PyVectorcall_NARGS(nargsf);
    if ((self->mode >= WITH_HELPERS && nargs < 2) || (names != NULL && PyTuple_GET_SIZE(names))) {
        return too_few("walker",
                       "a thread pool and helpers if threads share it, and buffers, by position");
    }
    int64_t near[NEAR], *base = given_words(state_of(self->module), args, nargs, 2, near);
    if (base == NULL) {
        return NULL;
    }
    base[1] = self->table;
    bool done = run_table(state_of(self->module), base, self->mode, args, nargs);
    free_words(base, near);
    if (!done) {
        return NULL;
    }
    Py_RETURN_NONE;
}

static int
walker_traverse(Walker *self, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(self->module);
    return 0;
}

static void
walker_dealloc(Walker *self)
{
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    Py_XDECREF(self->module);
    type->tp_free(self);
    Py_DECREF(type);
}

static PyMemberDef walker_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(Walker, vectorcall), READONLY},
    {NULL},
};
static PyType_Slot walker_slots[] = {
    {Py_tp_doc, "Runs a table of kernels; called with buffers or their addresses."},
    {Py_tp_dealloc, walker_dealloc},
    {Py_tp_traverse, walker_traverse},
    {Py_tp_call, PyVectorcall_Call},
    {Py_tp_members, walker_members},
    {0, NULL},
};
static PyType_Spec walker_spec = {
    .name = "accnp._native.Walker",
    .basicsize = sizeof(Walker),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL
             | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = walker_slots,
};

/* walker(mode, table): returns a function of the bases of a table that runs the table. */
static PyObject *
walker(PyObject *module, PyObject *args)
{
    int mode;
    long long table;
    if (!PyArg_ParseTuple(args, "iL:walker", &mode, &table)) {
        return NULL;
    }
    State *state = state_of(module);
    Walker *self = (Walker *)state->walker->tp_alloc(state->walker, 0);
    if (self != NULL) {
        self->vectorcall = walker_call;
        self->module = Py_NewRef(module);
        self->table = table;
        self->mode = mode;
    }
    return (PyObject *)self;
}

/* launches(): returns the number of kernels that were launched. */
static PyObject *
launches(PyObject *module, PyObject *Py_UNUSED(ignored))
{
    return PyLong_FromLongLong(state_of(module)->launches);
}

#define FASTCALL(function) (PyCFunction)(void (*)(void))function, METH_FASTCALL
PyMethodDef launch_functions[] = {
    {"launch_held", FASTCALL(launch_held),
     "launch_held(entry, n, chunk, *arguments): run a kernel with the interpreter lock held."},
    {"launch_released", FASTCALL(launch_released),
     "launch_released(entry, n, chunk, *arguments): run a kernel with the lock released."},
    {"launch_parallel", FASTCALL(launch_parallel),
     "launch_parallel(entry, n, chunk, pool, helpers, *arguments): run a kernel on several\n"
     "threads."},
    {"walker", walker, METH_VARARGS,
     "walker(mode, table): return a function of buffers or their addresses that runs a table. If\n"
     "threads share the table, its first arguments are a thread pool and the number of helpers."},
    {"launches", launches, METH_NOARGS, "Return how many kernels were launched."},
    {NULL},
};

static int
add_address(PyObject *module, const char *name, void (*function)(void))
{
    PyObject *address = PyLong_FromVoidPtr((void *)function);
    int failed = address == NULL ? -1 : PyModule_AddObjectRef(module, name, address);
    Py_XDECREF(address);
    return failed;
}

int
add_launch(PyObject *module, State *state)
{
    state->walker = add_type(module, &walker_spec);
    if (state->walker == NULL) {
        return -1;
    }
#define ADDRESS(name, function) add_address(module, name, (void (*)(void))function) < 0
    return ADDRESS("COPY", copy_entry) || ADDRESS("GROUP", group_entry)
                   || ADDRESS("STAGED_STORES", staged_entry) || ADDRESS("STREAMING_STORES", streaming_entry)
                   || ADDRESS("PARALLEL_FOR", parallel_for_in_loop) || ADDRESS("STOPPED", is_stopped) || ADDRESS("MESSAGE", send_message) || !ADD_CONSTANT(KEEP_GIL) || !ADD_CONSTANT(RELEASE_GIL)
                   || !ADD_CONSTANT(WITH_HELPERS) || !ADD_CONSTANT(WITH_AWAKE_HELPERS)
               ? -1
               : 0;
}
