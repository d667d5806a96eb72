/* Interrupts of launches: signal handlers, and other threads, can stop kernels that run for long.
 *
 * Python's handlers run on the main thread while it holds the interpreter lock. A launch releases
 * this lock, so a handler would wait until all kernels of the launch have ended. Therefore the
 * thread that launches calls `is_stopped` between chunks of a kernel, and native loops call it
 * after some number of iterations. Every CHECK milliseconds, it takes the lock and runs the
 * handlers that are due. If one of them raises an exception, the launch is stopped: no thread
 * takes another chunk, native loops end, and the launch returns with the exception.
 *
 * `stop_thread` stops the launch of another thread. It only sets a word, which the launch reads.
 *
 * A thread has a list of launches, because a handler may launch kernels. Helpers that take part in
 * a launch have it as their own for that time; they only read whether it is stopped.
 */

#include "native.h"

#include <time.h>
#if defined(_WIN32)
#include <windows.h>
#endif

/* Milliseconds between checks. A check waits for the interpreter lock, for up to 5 ms if another
 * thread runs Python code, so more frequent checks would cost such programs more than 5 %. */
#define CHECK 100

#define LOAD(x) __atomic_load_n(&(x), __ATOMIC_RELAXED)
#define STORE(x, v) __atomic_store_n(&(x), (v), __ATOMIC_RELAXED)

#if defined(__linux__)
#define FAST_TLS __attribute__((tls_model("initial-exec"))) /* the address needs no function call */
#else
#define FAST_TLS
#endif
static _Thread_local struct {
    Launch *launch; /* the launch that this thread works for, or NULL */
    bool helps;     /* whether the launch belongs to another thread */
} mine FAST_TLS;
/* The identifier of the thread whose launch must be stopped; 0 if there is none. */
static unsigned long to_stop;

/* Returns the time in milliseconds of a clock that is fast to read (5 ns) and has a resolution of a
 * few milliseconds. */
static int64_t
now(void)
{
#if defined(_WIN32)
    return (int64_t)GetTickCount64();
#else
    struct timespec time;
#if defined(CLOCK_MONOTONIC_COARSE)
    clock_gettime(CLOCK_MONOTONIC_COARSE, &time);
#else
    clock_gettime(CLOCK_MONOTONIC, &time);
#endif
    return (int64_t)time.tv_sec * 1000 + time.tv_nsec / 1000000;
#endif
}

void
begin_launch(Launch *launch, PyObject *const *given, int64_t count)
{
    launch->given = given;
    launch->count = count;
    launch->outer = mine.launch;
    launch->helps = mine.helps;
    launch->next = 0;
    launch->stopped = 0;
    launch->failed = false;
    mine.launch = launch;
    mine.helps = false;
    launch->thread = PyEval_SaveThread();
}

bool
end_launch(Launch *launch)
{
    PyEval_RestoreThread(launch->thread);
    mine.launch = launch->outer;
    mine.helps = launch->helps;
    if (!launch->stopped) {
        return true;
    }
    if (!launch->failed) {
        PyErr_SetString(PyExc_RuntimeError, "launch: another thread has stopped this work");
    }
    return false;
}

Launch *
current_launch(void)
{
    return mine.launch;
}

bool
is_helper(void)
{
    return mine.helps;
}

void
join_launch(Launch *launch)
{
    mine.launch = launch;
    mine.helps = launch != NULL;
}

/* Runs the signal handlers that are due, and returns whether the launch must end. */
static bool
check(Launch *launch)
{
    if (LOAD(to_stop) && LOAD(to_stop) == PyThread_get_thread_ident()) {
        STORE(to_stop, 0);
        STORE(launch->stopped, 1);
        return true;
    }
    int64_t time = now();
    if (time < launch->next) {
        return false;
    }
    bool first = launch->next == 0;
    launch->next = time + CHECK;
    /* A kernel may be a Python function (`runtime/threads.py`), which already holds the lock. */
    if (first || launch->thread == NULL || PyGILState_Check()) {
        return false;
    }
    PyThreadState *thread = launch->thread;
    launch->thread = NULL; /* a handler that is called now may launch kernels */
    PyEval_RestoreThread(thread);
    if (PyErr_CheckSignals() < 0) { /* does nothing on threads other than the main one */
        launch->failed = true;
        STORE(launch->stopped, 1);
    }
    launch->thread = PyEval_SaveThread();
    launch->next = now() + CHECK;
    return launch->stopped;
}

int64_t
is_stopped(void)
{
    Launch *launch = mine.launch;
    if (launch == NULL) {
        return 0; /* the kernel keeps the interpreter lock, because it takes only microseconds */
    }
    return LOAD(launch->stopped) || (!mine.helps && check(launch));
}

/* stop_thread(identifier): stops the launch of a thread. 0 withdraws an earlier request. */
static PyObject *
stop_thread(PyObject *Py_UNUSED(module), PyObject *given)
{
    unsigned long thread = PyLong_AsUnsignedLong(given);
    if (thread == (unsigned long)-1 && PyErr_Occurred()) {
        return NULL;
    }
    STORE(to_stop, thread);
    Py_RETURN_NONE;
}

PyMethodDef interrupt_functions[] = {
    {"stop_thread", stop_thread, METH_O,
     "stop_thread(identifier): stop the kernels that a thread has launched, which then raises\n"
     "RuntimeError. The identifier 0 withdraws an earlier request."},
    {NULL},
};
