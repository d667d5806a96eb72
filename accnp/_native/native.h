/* What the files of the extension share: the state of the module and the objects that they make.
 *
 * Only CPython's public API is used. Each module object has a state of its own (multi-phase
 * initialisation), so that nothing mutable is shared between interpreters.
 */

#ifndef ACCNP_NATIVE_H
#define ACCNP_NATIVE_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdbool.h>
#include <stdint.h>
#include <structmember.h>

/* An array `(argv, counter, n, chunk)` of kernels: chunks are taken from the counter until n. */
typedef void (*Entry)(int64_t *argv, int64_t *counter, int64_t n, int64_t chunk);

typedef struct {
    PyTypeObject *blocks, *pool, *buffer_base, *node, *form, *array_base, *caller, *record_type,
        *thread_pool, *walker, *ufunc;
    /* What Python's side installs: the classes that it derives, and what leaves have in common. */
    PyTypeObject *array, *buffer;
    PyObject *const_op, *empty_params, *empty_tuple;
    /* For recording: open traces, the slow way, who is told of long chains, packages by name. */
    PyObject *tracing, *record, *on_deep, *own_packages, *find_site, *get_frame;
    Py_ssize_t limit;
    bool observed; /* whether each operation is recorded in Python, for observers */
    PyObject *one, *name_active, *name_dead, *name_uncached, *name_allocate, *name_view, *name_package,
        *name_dtype, *name_shape, *name_fields;
    /* For pytrees: classes of nodes and of leaves, the node of None, the function for one level. */
    PyObject *node_types, *inner_types, *leaf_types, *none_node, *one_level;
    int64_t launches;
    int64_t uses; /* of records of calls */
} State;

extern struct PyModuleDef native_module;

static inline State *
state_of(PyObject *module)
{
    return (State *)PyModule_GetState(module);
}

/* The state of the module that defines the type of an object, or a base of that type. */
static inline State *
state_by_type(PyTypeObject *type)
{
    PyObject *module = PyType_GetModuleByDef(type, &native_module);
    return module == NULL ? NULL : state_of(module);
}

/* --- memory: pool.c --- */

typedef struct {
    uint64_t ptr;
    PyObject *memory; /* what keeps it mapped; NULL for a piece of a slab */
} Block;

typedef struct {
    PyObject_HEAD
    int64_t limit, free_bytes, reuses, dropped;
    int64_t live, peak; /* bytes of blocks in use; the most since `peak` was set */
    int64_t uses;       /* of free blocks */
    PyObject *sizes[256]; /* Blocks by class, NULL where none was asked for yet */
} Pool;

typedef struct {
    PyObject_HEAD
    Pool *pool;
    int64_t size;
    int64_t used; /* when a block of this size was last freed, in uses of the pool */
    Py_ssize_t count, room;
    Block *items;
} Blocks;

typedef struct {
    PyObject_HEAD
    uint64_t ptr;
    Py_ssize_t nbytes;
    PyObject *memory;
    Blocks *blocks; /* where it goes back to; NULL if it is not the pool's */
    PyObject *weakrefs;
} Buffer;

/* A buffer over a free block of a class; NULL, without an error, where there is none. */
Buffer *take_block(State *state, Blocks *blocks, Py_ssize_t nbytes);

/* Notes that a block of the pool is in use. */
static inline void
count_use(Blocks *blocks)
{
    Pool *pool = blocks->pool;
    if (pool != NULL) {
        pool->live += blocks->size;
        pool->peak = pool->live > pool->peak ? pool->live : pool->peak;
    }
}

/* --- nodes and arrays: graph.c --- */

typedef struct {
    PyObject_HEAD
    PyObject *op, *inputs, *params, *aval, *value, *trace, *site, *form;
    Py_ssize_t depth;
    PyObject *weakrefs;
} Node;

typedef struct {
    PyObject_HEAD
    PyObject *op, *updated_operand, *aval;
    char wide;
} Form;

typedef struct {
    PyObject_HEAD
    Node *node;
    PyObject *weakrefs;
} Array;

/* An array over a buffer; NULL with an error. */
PyObject *array_over(State *state, Buffer *buffer, PyObject *aval);
/* Whether a node belongs to a trace that is active, or whose values are refused. */
bool is_traced(State *state, Node *node);

/* --- launches: launch.c, interrupts.c, thread_pool.c, stores.c --- */

enum { KEEP_GIL, RELEASE_GIL, WITH_HELPERS, WITH_AWAKE_HELPERS }; /* how a table is run, see launch.c */

/* Does the steps of a table; false with an error if there is no memory for the arguments. */
bool run_table(State *state, int64_t *base, int mode, PyObject *const *given, int64_t count);
/* Words on the stack, or from the heap where they do not fit. */
#define NEAR 128
static inline int64_t *
words_for(Py_ssize_t count, int64_t *near)
{
    return count <= NEAR ? near : PyMem_RawMalloc((size_t)count * sizeof(int64_t));
}
static inline void
free_words(int64_t *words, int64_t *near)
{
    if (words != near) {
        PyMem_RawFree(words);
    }
}

/* Takes chunks of 0..n from a counter. */
#define FOR_EACH_CHUNK(counter, n, chunk, first, end)                                              \
    for (int64_t first, end;                                                                       \
         (first = __atomic_fetch_add((counter), (chunk), __ATOMIC_RELAXED)) < (n)                  \
         && (end = (n) - first > (chunk) ? first + (chunk) : (n), true);)

/* A launch that has released the interpreter lock; see `interrupts.c`. */
typedef struct Launch {
    struct Launch *outer; /* the launch of this thread that a signal handler interrupted */
    PyThreadState *thread; /* NULL while the thread has the interpreter lock */
    int64_t next;          /* when to check for signals, in milliseconds; 0: not yet decided */
    int stopped;           /* whether its kernels are to end; other threads read this */
    bool failed;           /* whether a signal handler has raised an exception */
    bool helps;            /* whether the thread took part in the launch `outer` as a helper */
    PyObject *const *given; /* what it was called with: the buffers among these are in flight */
    int64_t count;
} Launch;

/* Releases the interpreter lock for a launch of this thread. */
void begin_launch(Launch *launch, PyObject *const *given, int64_t count);
/* Takes the lock again; false with an error if the launch was stopped. */
bool end_launch(Launch *launch);
/* The launch that this thread works for; NULL if it keeps the interpreter lock. */
Launch *current_launch(void);
/* Whether another thread has launched what this thread works for. */
bool is_helper(void);
/* Makes this thread a helper in a launch, or in none. */
void join_launch(Launch *launch);
/* Whether the work of this thread is to end; kernels call it as `accnp_stopped`. */
int64_t is_stopped(void);
/* Sends a message of a loop; kernels call it as `accnp_message` (`messages.c`). */
int64_t send_message(int64_t address, const void *in, void *out, int64_t nbytes);
/* Runs 0..n on this thread, in chunks if signals can stop it. */
void run_alone(Entry entry, int64_t *argv, int64_t n, int64_t chunk);

void parallel_for(int64_t entry, int64_t *argv, int64_t n, int64_t chunk, int64_t thread_pool,
                  int64_t helpers);
/* The same for a launch of a native loop, which runs on one thread for a while after a stall. */
void parallel_for_in_loop(int64_t entry, int64_t *argv, int64_t n, int64_t chunk,
                          int64_t thread_pool, int64_t helpers);
void open_session(int64_t thread_pool, int64_t helpers);
void close_session(int64_t thread_pool);
void copy_entry(int64_t *argv, int64_t *counter, int64_t n, int64_t chunk);
void group_entry(int64_t *argv, int64_t *counter, int64_t n, int64_t chunk);
void bypass_entry(int64_t *argv, int64_t *counter, int64_t n, int64_t chunk);
void stream_entry(int64_t *argv, int64_t *counter, int64_t n, int64_t chunk);

/* --- what each file adds to the module --- */

int add_memory(PyObject *module, State *state);
int add_graph(PyObject *module, State *state);
int add_launch(PyObject *module, State *state);
int add_thread_pool(PyObject *module, State *state);
int add_calls(PyObject *module, State *state);
int add_ufuncs(PyObject *module, State *state);

extern PyMethodDef graph_functions[], launch_functions[], interrupt_functions[];

/* A new tuple or list is hidden from the garbage collector while code of users runs before it is
 * full: `gc.get_objects` would find it, and whoever reads an empty place crashes. */
static inline void
hide(PyObject *made)
{
    if (made != NULL && Py_SIZE(made)) { /* the empty tuple is the only one */
        PyObject_GC_UnTrack(made);
    }
}
static inline void
show(PyObject *made)
{
    if (made != NULL && Py_SIZE(made)) {
        PyObject_GC_Track(made);
    }
}

/* Adds a constant of C to the module, under its name; whether that succeeded. */
#define ADD_CONSTANT(name) (PyModule_AddIntConstant(module, #name, name) == 0)
/* Makes a type of a spec, and puts it into the module. */
PyTypeObject *add_type(PyObject *module, PyType_Spec *spec);

#endif
