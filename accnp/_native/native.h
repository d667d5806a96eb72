/* Declarations that the C files of the extension share: the state of the module, the structures of
 * its types, and the functions that one file provides to the others.
 *
 * The extension uses only the public C API of CPython. Each module object has its own state
 * (multi-phase initialization), so that subinterpreters share no mutable Python objects.
 */

#ifndef ACCNP_NATIVE_H
#define ACCNP_NATIVE_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdbool.h>
#include <stdint.h>
#include <structmember.h>

/* The entry of a kernel. It takes chunks of `chunk` indices from the counter until the counter
 * reaches n, and computes each of them. `argv` contains the arguments of the kernel. */
typedef void (*Entry)(int64_t *argv, int64_t *counter, int64_t n, int64_t chunk);

/* The state of a module object. `module.c` creates it. */
typedef struct {
    /* The types that the extension defines. */
    PyTypeObject *blocks, *pool, *buffer_base, *node, *form, *array_base, *caller, *record_type,
        *thread_pool, *walker, *ufunc;
    /* Installed from Python: the subclasses of the base types of arrays and buffers, and the op and
     * the parameters that all leaves have. */
    PyTypeObject *array, *buffer;
    PyObject *const_op, *empty_params, *empty_tuple;
    /* Installed from Python, for recording: the list of open traces, the general function that
     * records an operation, the function to call for long chains of pending operations, a
     * dictionary that tells which packages belong to accnp, the function that finds the user's line
     * from a frame, and sys._getframe. */
    PyObject *tracing, *record, *on_deep, *own_packages, *find_site, *get_frame;
    Py_ssize_t limit; /* the longest chain of pending operations for which on_deep is not called */
    bool observed; /* whether `record` records each operation, because Python code observes it */
    /* Constants: the integer 1, and interned names of attributes. */
    PyObject *one, *name_active, *name_dead, *name_uncached, *name_allocate, *name_view, *name_package,
        *name_dtype, *name_shape, *name_fields;
    /* Installed from Python, for pytrees: the flatten and unflatten functions of registered
     * classes, those of leaf classes that contain arrays, other leaf classes, the node of None, and
     * the Python function that flattens one level. */
    PyObject *node_types, *inner_types, *leaf_types, *none_node, *one_level;
    int64_t launches; /* the number of kernels launched */
    int64_t uses;     /* a clock that advances with each call that uses a record */
} State;

extern struct PyModuleDef native_module;

static inline State *
state_of(PyObject *module)
{
    return (State *)PyModule_GetState(module);
}

/* Returns the state of the module that defines a type or one of its bases; NULL with an error. */
static inline State *
state_by_type(PyTypeObject *type)
{
    PyObject *module = PyType_GetModuleByDef(type, &native_module);
    return module == NULL ? NULL : state_of(module);
}

/* --- memory: pool.c --- */

/* A block of memory. */
typedef struct {
    uint64_t ptr;
    PyObject *memory; /* the object that keeps the memory mapped; NULL for a block of a slab */
} Block;

/* The pool of free blocks of all size classes. */
typedef struct {
    PyObject_HEAD
    /* The maximum number of bytes in free blocks, and the current one; the number of requests that
     * got a free block; the number of bytes that were returned to the system. */
    int64_t limit, free_bytes, reuses, dropped;
    int64_t live, peak; /* bytes of blocks in use now, and the maximum since `peak` was set */
    int64_t uses;       /* a clock that advances when a block is freed */
    PyObject *sizes[256]; /* the Blocks of each size class; NULL before its first request */
} Pool;

/* The free blocks of one size class. */
typedef struct {
    PyObject_HEAD
    Pool *pool;             /* borrowed; NULL after the pool was deallocated */
    int64_t size;           /* bytes of a block */
    int64_t used;           /* the pool's clock `uses` when a block of this size was last freed */
    Py_ssize_t count, room; /* the number of free blocks, and the capacity of `items` */
    Block *items;
} Blocks;

/* Memory of a known size. Deallocating a buffer returns its block to the pool. */
typedef struct {
    PyObject_HEAD
    uint64_t ptr;
    Py_ssize_t nbytes;
    PyObject *memory; /* the object that keeps the memory mapped, or NULL */
    Blocks *blocks;   /* the free list to which the block returns; NULL if it is not of a pool */
    PyObject *weakrefs;
} Buffer;

/* Returns a buffer over a free block of a size class; NULL, without an error, if there is none. */
Buffer *take_block(State *state, Blocks *blocks, Py_ssize_t nbytes);

/* Counts a block of the pool as in use. */
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

/* A recorded operation or a leaf. The members are described in `graph.c`. */
typedef struct {
    PyObject_HEAD
    PyObject *op, *inputs, *params, *aval, *value, *trace, *site, *form;
    Py_ssize_t depth;
    PyObject *weakrefs;
} Node;

/* The facts about an operation on operands of certain types that recording it again needs: its op,
 * the operand that an update modifies, the type of the result, and whether an operand has 64 bits.
 * Nodes with the same form belong to the same kind of operation, so that records can compare forms
 * instead of ops and types. */
typedef struct {
    PyObject_HEAD
    PyObject *op, *updated_operand, *aval;
    char wide;
} Form;

/* The base of the class Array: a reference to a node. */
typedef struct {
    PyObject_HEAD
    Node *node;
    PyObject *weakrefs;
} Array;

/* Returns an array whose node is a leaf with this buffer and type; NULL with an error. */
PyObject *array_over(State *state, Buffer *buffer, PyObject *aval);
/* Returns whether a node belongs to a trace that is active, or to one whose values must not be used
 * any more, so that the general path has to handle it. */
bool is_traced(State *state, Node *node);

/* --- launches: launch.c, interrupts.c, thread_pool.c, stores.c --- */

/* How a table is run, see `run_table`. */
enum { KEEP_GIL, RELEASE_GIL, WITH_HELPERS, WITH_AWAKE_HELPERS };

/* Runs the steps of a table (`launch.c`). `base` contains the bases, with the address of the table
 * at index 1. KEEP_GIL runs all steps on this thread and keeps the interpreter lock; RELEASE_GIL
 * releases the lock; WITH_HELPERS also wakes helper threads, which share the steps and stay awake
 * until the end of the table; WITH_AWAKE_HELPERS uses only helpers that are awake already. `given`
 * are the buffers in use. Returns false with an error if there is no memory for the arguments, or
 * if the launch was stopped. */
bool run_table(State *state, int64_t *base, int mode, PyObject *const *given, int64_t count);
/* Returns memory for `count` words: `near`, an array of NEAR words on the stack, or memory from the
 * heap if they do not fit. The result is NULL, without an error, if there is no memory. */
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

/* Runs a statement for each chunk first..end of 0..n that this thread takes from a counter. */
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
    PyObject *const *given; /* the arguments of the launch, whose buffers the kernels use */
    int64_t count;          /* the number of arguments */
} Launch;

/* Begins a launch of this thread and releases the interpreter lock. */
void begin_launch(Launch *launch, PyObject *const *given, int64_t count);
/* Acquires the lock again and ends the launch; returns false with an error if it was stopped. */
bool end_launch(Launch *launch);
/* Returns the launch that this thread works for; NULL if it keeps the interpreter lock. */
Launch *current_launch(void);
/* Returns whether this thread works for a launch of another thread. */
bool is_helper(void);
/* Makes this thread a helper in a launch; with NULL, it leaves the launch. */
void join_launch(Launch *launch);
/* Returns whether the work of this thread must end. Kernels call it as `accnp_stopped`. */
int64_t is_stopped(void);
/* Sends a message of a native loop (`messages.c`). Kernels call it as `accnp_message`. */
int64_t send_message(int64_t address, const void *in, void *out, int64_t nbytes);
/* Runs 0..n on this thread; in chunks if a signal can stop the launch. */
void run_alone(Entry entry, int64_t *argv, int64_t n, int64_t chunk);

/* Runs 0..n on this thread and on helpers (`thread_pool.c`). A negative number of helpers means
 * that the launch is brief, so that only helpers that are awake take part. */
void parallel_for(int64_t entry, int64_t *argv, int64_t n, int64_t chunk, int64_t thread_pool,
                  int64_t helpers);
/* The same for a launch of a native loop. After a stall, such launches run on one thread for some
 * time. */
void parallel_for_in_loop(int64_t entry, int64_t *argv, int64_t n, int64_t chunk,
                          int64_t thread_pool, int64_t helpers);
/* Helpers stay awake between these calls. */
void open_session(int64_t thread_pool, int64_t helpers);
void close_session(int64_t thread_pool);
/* Entries for tables that are not kernels: a copy and a group of steps (`launch.c`), and wrappers
 * of kernels with non-temporal stores (`stores.c`). */
void copy_entry(int64_t *argv, int64_t *counter, int64_t n, int64_t chunk);
void group_entry(int64_t *argv, int64_t *counter, int64_t n, int64_t chunk);
void staged_entry(int64_t *argv, int64_t *counter, int64_t n, int64_t chunk);
void streaming_entry(int64_t *argv, int64_t *counter, int64_t n, int64_t chunk);

/* --- functions with which each file adds its types and constants to the module --- */

int add_memory(PyObject *module, State *state);
int add_graph(PyObject *module, State *state);
int add_launch(PyObject *module, State *state);
int add_thread_pool(PyObject *module, State *state);
int add_calls(PyObject *module, State *state);
int add_ufuncs(PyObject *module, State *state);

extern PyMethodDef graph_functions[], launch_functions[], interrupt_functions[];

/* While a new tuple or list still has NULL items, and Python code of users may run, it is
 * untracked: otherwise `gc.get_objects` would return it, and reading a NULL item would crash.
 * `show` tracks it again once it is complete. */
static inline void
hide(PyObject *made)
{
    if (made != NULL && Py_SIZE(made)) { /* the empty tuple is a shared object */
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

/* Adds a C constant to the module under its name; true if that succeeded. */
#define ADD_CONSTANT(name) (PyModule_AddIntConstant(module, #name, name) == 0)
/* Creates a type from a spec and adds it to the module; NULL with an error. */
PyTypeObject *add_type(PyObject *module, PyType_Spec *spec);

#endif
