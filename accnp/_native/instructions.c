/* Flushing of the instruction cache, which new machine code needs on most processors other than
 * x86: they do not keep this cache consistent with memory.
 */

#include "native.h"

static PyObject *
flush_instructions(PyObject *Py_UNUSED(module), PyObject *args)
{
    unsigned long long address, size;
    if (!PyArg_ParseTuple(args, "KK:flush_instructions", &address, &size)) {
        return NULL;
    }
    char *begin = (char *)(uintptr_t)address;
    __builtin___clear_cache(begin, begin + size);
    Py_RETURN_NONE;
}

PyMethodDef instruction_functions[] = {
    {"flush_instructions", flush_instructions, METH_VARARGS,
     "flush_instructions(address, size): flush the instruction cache for new machine code. Call it\n"
     "before the memory is made executable."},
    {NULL},
};
