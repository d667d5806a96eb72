/* Registers machine code with gdb, through gdb's JIT compilation interface: a linked list of object
 * files in memory, and a function in which gdb sets a breakpoint. gdb finds both by the names
 * `__jit_debug_descriptor` and `__jit_debug_register_code`.
 *
 * All interpreters of the process share the list, because gdb looks it up by its name.
 */

#include "native.h"

#include <stdlib.h>
#include <string.h>

/* `struct jit_code_entry` of gdb. */
typedef struct Entry_ {
    struct Entry_ *next, *previous;
    const char *file;
    uint64_t size;
} CodeEntry;

enum { NOTHING, REGISTER };

/* `struct jit_descriptor` of gdb. */
typedef struct {
    uint32_t version, action;
    CodeEntry *relevant, *first;
} Descriptor;

#define SEEN __attribute__((visibility("default"), used))

SEEN Descriptor __jit_debug_descriptor = {1, NOTHING, NULL, NULL};

SEEN __attribute__((noinline)) void
__jit_debug_register_code(void)
{
    __asm__ volatile("" ::: "memory");
}

static char lock; /* a spin lock that protects the list */

/* register_code(bytes): adds a copy of an object file to the list and notifies gdb. The entry stays
 * in the list until the process ends. */
static PyObject *
register_code(PyObject *Py_UNUSED(module), PyObject *given)
{
    char *bytes;
    Py_ssize_t size;
    if (PyBytes_AsStringAndSize(given, &bytes, &size) < 0) {
        return NULL;
    }
    CodeEntry *entry = malloc(sizeof(CodeEntry));
    char *file = malloc((size_t)size);
    if (entry == NULL || file == NULL) {
        free(entry);
        free(file);
        return PyErr_NoMemory();
    }
    memcpy(file, bytes, (size_t)size);
    while (__atomic_test_and_set(&lock, __ATOMIC_ACQUIRE)) {
    }
    *entry = (CodeEntry){__jit_debug_descriptor.first, NULL, file, (uint64_t)size};
    if (entry->next != NULL) {
        entry->next->previous = entry;
    }
    __jit_debug_descriptor.first = __jit_debug_descriptor.relevant = entry;
    __jit_debug_descriptor.action = REGISTER;
    __jit_debug_register_code();
    __jit_debug_descriptor.action = NOTHING;
    __atomic_clear(&lock, __ATOMIC_RELEASE);
    Py_RETURN_NONE;
}

PyMethodDef debugger_functions[] = {
    {"register_code", register_code, METH_O,
     "Register a copy of an object file in memory with gdb."},
    {NULL},
};
