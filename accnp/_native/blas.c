/* Restricts OpenBLAS to the calling thread while kernels call its routines.
 *
 * OpenBLAS distributes even small factorizations over its own threads. This is not faster, and its
 * threads compete with ours and with other processes: if one of them is preempted, the others wait
 * for it, and a call that would take microseconds takes milliseconds. OpenBLAS has one number of
 * threads for the whole process. The first kernel that begins therefore sets it to 1, and the last
 * kernel that ends restores it.
 */

#include "native.h"

#define CALLERS 0xffffffff /* the lower half of `state` */

static int (*get_threads)(void);
static void (*set_threads)(int);
/* The lower 32 bits count the kernels that are using OpenBLAS; the upper 32 bits are the number of
 * threads to restore. */
static int64_t state;

/* Changes the state if it is still `*old`; otherwise sets `*old` to the current state. */
static bool
changed(int64_t *old, int64_t new)
{
    return __atomic_compare_exchange_n(&state, old, new, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}

/* Kernels call this before they call OpenBLAS. */
static void
begin_alone(void)
{
    int64_t old = __atomic_load_n(&state, __ATOMIC_SEQ_CST);
    for (;;) {
        if (old & CALLERS) {
            if (changed(&old, old + 1)) {
                return;
            }
            continue;
        }
        int usual = get_threads ? get_threads() : 1;
        if (changed(&old, (int64_t)usual << 32 | 1)) {
            if (usual > 1) {
                set_threads(1);
            }
            return;
        }
    }
}

/* Kernels call this after they called OpenBLAS. */
static void
end_alone(void)
{
    int64_t old = __atomic_load_n(&state, __ATOMIC_SEQ_CST);
    for (;;) {
        int usual = (int)(old >> 32);
        bool last = (old & CALLERS) == 1 && usual > 1;
        if (last) { /* restore it before other threads can see that there are no callers */
            set_threads(usual);
        }
        if (changed(&old, old - 1)) {
            return;
        }
        if (last) { /* another kernel has begun in the meantime */
            set_threads(1);
        }
    }
}

static PyObject *
blas_alone(PyObject *Py_UNUSED(module), PyObject *args)
{
    unsigned long long get, set;
    if (!PyArg_ParseTuple(args, "KK:blas_alone", &get, &set)) {
        return NULL;
    }
    get_threads = get && set ? (int (*)(void))(intptr_t)get : NULL;
    set_threads = (void (*)(int))(intptr_t)set;
    __atomic_store_n(&state, 0, __ATOMIC_SEQ_CST);
    return Py_BuildValue("KK", (unsigned long long)(intptr_t)begin_alone,
                         (unsigned long long)(intptr_t)end_alone);
}

PyMethodDef blas_functions[] = {
    {"blas_alone", blas_alone, METH_VARARGS,
     "Set the addresses of the functions that get and set OpenBLAS's number of threads (0 if there\n"
     "are none). Return the addresses of two functions without arguments, between whose calls\n"
     "OpenBLAS uses one thread."},
    {NULL},
};
