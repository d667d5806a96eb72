/* Messages between processes in native loops. The functions of MPI are called by address.
 *
 * `runtime/compiled_messages.py` creates a Message for each collective in a loop, and sets its
 * communicator when the loop first reaches the collective. The loop calls `send_message`, which
 * returns after the message has been received, and reports whether the loop must end.
 *
 * `send_message` polls for completion. If this takes more than some milliseconds, it calls a Python
 * function, which continues to wait: that function also answers requests of other processes, checks
 * the deadline, and raises errors. An error ends the launch like an error of a signal handler.
 *
 * MPI handles are integers in MPICH's ABI and pointers in others. Both are passed in a register.
 */

#include "native.h"

#include <time.h>
#if defined(_WIN32)
#include <windows.h>
#define yield_processor SwitchToThread
#else
#include <sched.h>
#define yield_processor sched_yield
#endif

#define EAGER 2000    /* polls before the thread yields its processor, about 0.1 ms */
#define PATIENCE 20.0 /* milliseconds before Python code waits instead */
#define STACK_REACH (1 << 20)    /* bytes; the stack frames of a loop are closer than this */
#define LARGEST_STAGED (1 << 20) /* bytes; arrays on the stack are smaller than this */

enum { GATHER, EXCHANGE, PERMUTE };

/* A collective of a native loop. */
typedef struct {
    int kind, ready, size; /* `size` is the number of processes */
    int source, target;    /* the other processes of a permutation; -1 if there is none */
    int tag;               /* the tag of messages of a permutation */
    long long number;      /* identifies the collective for Python code */
    intptr_t comm;         /* the communicator */
    const void *in;        /* the operand and the result of the latest message */
    void *out;
    char *staging; /* memory for messages whose operands are on the stack, or NULL */
    size_t staging_size;
} Message;

typedef int (*Collective)(const void *, int, intptr_t, void *, int, intptr_t, intptr_t, void *);
typedef int (*Receive)(void *, int, intptr_t, int, int, intptr_t, void *);
typedef int (*Send)(const void *, int, intptr_t, int, int, intptr_t, void *);
typedef int (*Test)(void *, int *, void *);

/* The functions of MPI and the Python functions, which `install_mpi` sets. */
static struct {
    Collective gather, exchange;
    Receive receive;
    Send send;
    Test test;
    intptr_t byte; /* the MPI datatype of bytes */
    int compares;  /* whether the helper checks each message first (`debug_collectives`) */
    PyObject *helper; /* helper(number, error, requests, buffers) */
    PyObject *module; /* borrowed; the module lives as long as the helper */
} mpi;
static int64_t sent; /* the number of messages of loops that were completed */

static double
milliseconds(void)
{
#if defined(_WIN32)
    return (double)GetTickCount64();
#else
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1e3 + time.tv_nsec * 1e-6;
#endif
}

/* Returns a list of the buffers of a launch that contain the operand or the result of a message;
 * NULL with an error. */
static PyObject *
buffers_of(const Message *m, const Launch *launch)
{
    PyObject *found = PyList_New(0);
    PyTypeObject *type = state_of(mpi.module)->buffer;
    for (int64_t i = 0; found != NULL && launch != NULL && i < launch->count; i++) {
        const Buffer *each = (const Buffer *)launch->given[i];
        if (each == NULL || Py_TYPE(each) != type) {
            continue; /* the argument is a number or an address */
        }
        uint64_t in = (uint64_t)(uintptr_t)m->in - each->ptr;
        uint64_t out = (uint64_t)(uintptr_t)m->out - each->ptr;
        if ((in < (uint64_t)each->nbytes || out < (uint64_t)each->nbytes)
            && PyList_Append(found, (PyObject *)each) < 0) {
            Py_CLEAR(found);
        }
    }
    return found;
}

/* Calls the Python helper, with the interpreter lock held; false if it raised an exception. */
static bool
ask(Message *m, const Launch *launch, int error, int count, int64_t *requests)
{
    PyObject *buffers = buffers_of(m, launch);
    PyObject *handles = PyTuple_New(count);
    for (int i = 0; handles != NULL && i < count; i++) {
        PyTuple_SET_ITEM(handles, i, PyLong_FromLongLong(requests[i]));
    }
    PyObject *done = handles == NULL || buffers == NULL || PyErr_Occurred()
                         ? NULL
                         : PyObject_CallFunction(mpi.helper, "LiOO", m->number, error, handles,
                                                 buffers);
    Py_XDECREF(buffers);
    Py_XDECREF(handles);
    Py_XDECREF(done);
    return done != NULL;
}

/* The same for a thread that does not hold the interpreter lock. An exception ends the launch. */
static bool
ask_locked(Message *m, int error, int count, int64_t *requests)
{
    Launch *launch = current_launch();
    /* Only the thread that launched a loop has a saved thread state. */
    if (launch == NULL || is_helper() || launch->thread == NULL) {
        PyGILState_STATE held = PyGILState_Ensure();
        bool done = ask(m, launch, error, count, requests);
        if (!done) {
            PyErr_WriteUnraisable(mpi.helper);
            if (launch != NULL) {
                __atomic_store_n(&launch->stopped, 1, __ATOMIC_RELAXED);
            }
        }
        PyGILState_Release(held);
        return done;
    }
    PyThreadState *thread = launch->thread;
    launch->thread = NULL;
    PyEval_RestoreThread(thread);
    bool done = ask(m, launch, error, count, requests);
    if (!done) {
        launch->failed = true;
        __atomic_store_n(&launch->stopped, 1, __ATOMIC_RELAXED);
    }
    launch->thread = PyEval_SaveThread();
    return done;
}

/* Waits until all requests are complete. Returns false if an error ends the launch. */
static bool
wait_for(Message *m, int count, int64_t *requests)
{
    char status[256];
    double began = 0;
    int first = 0;
    for (int64_t n = 1;; n++) {
        int done = 0;
        int error = mpi.test(&requests[first], &done, status);
        if (error) {
            return ask_locked(m, error, 0, NULL);
        }
        if (done) {
            if (++first == count) {
                return true;
            }
            continue;
        }
        if (n < EAGER) {
            continue;
        }
        yield_processor();
        if (n % 64 == 0) {
            double now = milliseconds();
            began = began ? began : now;
            if (now - began > PATIENCE) {
                return ask_locked(m, 0, count - first, requests + first);
            }
        }
    }
}

/* Returns whether memory may be on the stack of a caller. Stacks grow towards lower addresses. */
static bool
may_be_on_stack(const void *p)
{
    char here;
    return (uintptr_t)p - (uintptr_t)&here < STACK_REACH;
}

/* Copies an operand on the stack to memory that belongs to the message, which also receives the
 * result. After an interrupt or an error the loop returns and its stack frames are reused, but MPI
 * may still read and write the memory of a message, since collectives cannot be cancelled.
 * `*staged` tells whether that memory is used. Returns false, with an error, if it cannot be
 * allocated. */
static bool
stage_operands(Message *m, size_t in_size, size_t out_size, bool *staged)
{
    size_t size = in_size + out_size;
    *staged = size <= LARGEST_STAGED && (may_be_on_stack(m->in) || may_be_on_stack(m->out));
    if (!*staged) {
        return true;
    }
    if (size > m->staging_size) {
        PyMem_RawFree(m->staging);
        m->staging = PyMem_RawMalloc(size);
        m->staging_size = m->staging == NULL ? 0 : size;
        if (m->staging == NULL) {
            return ask_locked(m, -(int)size, 0, NULL); /* raises MemoryError */
        }
    }
    memcpy(m->staging, m->in, in_size);
    m->in = m->staging;
    m->out = m->staging + in_size;
    return true;
}

/* Exchanges `nbytes` bytes of each process. Returns whether the loop must end. */
int64_t
send_message(int64_t address, const void *in, void *out, int64_t nbytes)
{
    Message *m = (Message *)(intptr_t)address;
    Launch *launch = current_launch();
    if (launch != NULL && __atomic_load_n(&launch->stopped, __ATOMIC_RELAXED)) {
        return 1;
    }
    if ((!m->ready || __atomic_load_n(&mpi.compares, __ATOMIC_RELAXED))
        && !ask_locked(m, 0, 0, NULL)) {
        return 1;
    }
    m->in = in;
    m->out = out;
    size_t out_size = (size_t)nbytes * (m->kind == GATHER ? m->size : 1);
    bool staged;
    if (!stage_operands(m, (size_t)nbytes, out_size, &staged)) {
        return 1;
    }
    void *result = out;
    in = m->in;
    out = m->out;
    int64_t requests[2] = {0, 0};
    int count = 0, part = (int)nbytes, error = 0;
    switch (m->kind) {
    case GATHER:
        error = mpi.gather(in, part, mpi.byte, out, part, mpi.byte, m->comm, &requests[count++]);
        break;
    case EXCHANGE:
        part /= m->size;
        error = mpi.exchange(in, part, mpi.byte, out, part, mpi.byte, m->comm, &requests[count++]);
        break;
    default:
        if (m->source < 0) {
            memset(out, 0, (size_t)nbytes);
        }
        else {
            error = mpi.receive(out, part, mpi.byte, m->source, m->tag, m->comm, &requests[count++]);
        }
        if (m->target >= 0 && !error) {
            error = mpi.send(in, part, mpi.byte, m->target, m->tag, m->comm, &requests[count++]);
        }
    }
    if (error ? !ask_locked(m, error, 0, NULL) : count && !wait_for(m, count, requests)) {
        if (staged) { /* MPI may still use the memory, so it is never freed */
            m->staging = NULL;
            m->staging_size = 0;
        }
        return 1;
    }
    if (staged) {
        memcpy(result, out, out_size);
    }
    __atomic_fetch_add(&sent, 1, __ATOMIC_RELAXED);
    return 0;
}

/* install_mpi(addresses, byte, helper): sets the functions of MPI and the Python helper. */
static PyObject *
install_mpi(PyObject *module, PyObject *args)
{
    unsigned long long f[5];
    long long byte;
    PyObject *helper;
    if (!PyArg_ParseTuple(args, "(KKKKK)LO:install_mpi", &f[0], &f[1], &f[2], &f[3], &f[4], &byte,
                          &helper)) {
        return NULL;
    }
    mpi.gather = (Collective)(intptr_t)f[0];
    mpi.exchange = (Collective)(intptr_t)f[1];
    mpi.receive = (Receive)(intptr_t)f[2];
    mpi.send = (Send)(intptr_t)f[3];
    mpi.test = (Test)(intptr_t)f[4];
    mpi.byte = (intptr_t)byte;
    Py_XSETREF(mpi.helper, Py_NewRef(helper));
    mpi.module = module;
    Py_RETURN_NONE;
}

/* compare_messages(flag): sets whether the helper is called before each message. */
static PyObject *
compare_messages(PyObject *Py_UNUSED(module), PyObject *compares)
{
    int value = PyObject_IsTrue(compares);
    if (value < 0) {
        return NULL;
    }
    __atomic_store_n(&mpi.compares, value, __ATOMIC_RELAXED);
    Py_RETURN_NONE;
}

/* new_message(kind, number): creates a Message and returns its address. */
static PyObject *
new_message(PyObject *Py_UNUSED(module), PyObject *args)
{
    int kind;
    long long number;
    if (!PyArg_ParseTuple(args, "iL:new_message", &kind, &number)) {
        return NULL;
    }
    Message *m = PyMem_RawCalloc(1, sizeof(Message)); /* machine code contains its address */
    if (m == NULL) {
        return PyErr_NoMemory();
    }
    m->kind = kind;
    m->number = number;
    return PyLong_FromVoidPtr(m);
}

/* set_message(address, ready, communicator, size, source, target, tag): sets members of a Message.
 */
static PyObject *
set_message(PyObject *Py_UNUSED(module), PyObject *args)
{
    long long address, comm;
    int ready, size, source, target, tag;
    if (!PyArg_ParseTuple(args, "LpLiiii:set_message", &address, &ready, &comm, &size, &source,
                          &target, &tag)) {
        return NULL;
    }
    Message *m = (Message *)(intptr_t)address;
    m->comm = (intptr_t)comm;
    m->size = size;
    m->source = source;
    m->target = target;
    m->tag = tag;
    m->ready = ready;
    Py_RETURN_NONE;
}

static PyObject *
messages_sent(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(ignored))
{
    return PyLong_FromLongLong(__atomic_load_n(&sent, __ATOMIC_RELAXED));
}

PyMethodDef message_functions[] = {
    {"install_mpi", install_mpi, METH_VARARGS,
     "install_mpi(addresses, byte, helper): set the functions of MPI, its handle of bytes, and the\n"
     "function helper(number, error, requests, buffers) that makes a message ready or compares it,\n"
     "waits for requests, and raises errors. `error` is a code of MPI, or the negative number of\n"
     "bytes that could not be allocated; `buffers` are those of the message."},
    {"compare_messages", compare_messages, METH_O,
     "compare_messages(value): set whether the helper is called before each message."},
    {"new_message", new_message, METH_VARARGS,
     "new_message(kind, number): return the address of a message of loops."},
    {"set_message", set_message, METH_VARARGS,
     "set_message(address, ready, communicator, size, source, target, tag): set the properties\n"
     "of a message."},
    {"messages_sent", messages_sent, METH_NOARGS, "Return how many messages loops have sent."},
    {NULL},
};
