/* The module object: creation, its state, and the functions with which Python code installs classes
 * and functions that the extension needs.
 */

#include "native.h"

#define INTERFACE 13 /* incremented when the interface changes, also in __init__.py */

#ifndef SOURCES
#define SOURCES 0 /* the stamp of the C sources (stamp.py), set by setup.py; 0 if it is unknown */
#endif

extern PyMethodDef call_functions[], pending_dispatch_functions[], debugger_functions[],
    object_functions[], blas_functions[], instruction_functions[], message_functions[],
    pytree_functions[];

PyTypeObject *
add_type(PyObject *module, PyType_Spec *spec)
{
    PyObject *type = PyType_FromModuleAndSpec(module, spec, NULL);
    if (type != NULL && PyModule_AddType(module, (PyTypeObject *)type) < 0) {
        Py_CLEAR(type);
    }
    return (PyTypeObject *)type;
}

/* install_buffers(class): sets the class of new buffers. */
static PyObject *
install_buffers(PyObject *module, PyObject *type)
{
    State *state = state_of(module);
    if (!PyType_Check(type) || !PyType_IsSubtype((PyTypeObject *)type, state->buffer_base)) {
        return PyErr_Format(PyExc_TypeError, "install_buffers: pass a subclass of BufferBase");
    }
    Py_XSETREF(state->buffer, (PyTypeObject *)Py_NewRef(type));
    Py_RETURN_NONE;
}

/* install_arrays(class): sets the class of new arrays. */
static PyObject *
install_arrays(PyObject *module, PyObject *type)
{
    State *state = state_of(module);
    if (!PyType_Check(type) || !PyType_IsSubtype((PyTypeObject *)type, state->array_base)) {
        return PyErr_Format(PyExc_TypeError, "install_arrays: pass a subclass of ArrayBase");
    }
    Py_XSETREF(state->array, (PyTypeObject *)Py_NewRef(type));
    Py_RETURN_NONE;
}

/* Sets what `operate` needs (`graph.c`). The members of the state have the same names as the
 * arguments, except for `const_op` and `empty_params`. */
static PyObject *
install_recording(PyObject *module, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"const",   "params",       "tracing",   "record",
                            "on_deep", "own_packages", "find_site", "get_frame", NULL};
    State *state = state_of(module);
    PyObject *given[8];
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO!OOOO!OO:install_recording", names, &given[0],
                                     &PyDict_Type, &given[1], &given[2], &given[3], &given[4],
                                     &PyDict_Type, &given[5], &given[6], &given[7])) {
        return NULL;
    }
    PyObject **places[] = {&state->const_op, &state->empty_params, &state->tracing,
                           &state->record,   &state->on_deep,      &state->own_packages,
                           &state->find_site, &state->get_frame};
    for (int i = 0; i < 8; i++) {
        Py_XSETREF(*places[i], Py_NewRef(given[i]));
    }
    Py_RETURN_NONE;
}

static PyMethodDef module_functions[] = {
    {"install_buffers", install_buffers, METH_O, "Set the class of new buffers."},
    {"install_arrays", install_arrays, METH_O, "Set the class of new arrays."},
    {"install_recording", (PyCFunction)(void (*)(void))install_recording,
     METH_VARARGS | METH_KEYWORDS,
     "Set the objects that recording needs: the op and the parameters of leaves, the list of open\n"
     "traces, the general function that records an operation, the function to call for long\n"
     "chains, a dictionary that tells which packages belong to accnp, the function that finds the\n"
     "user's line from a frame, and sys._getframe."},
    {NULL},
};

/* Initializes a new module object. */
static int
native_exec(PyObject *module)
{
    State *state = state_of(module);
    struct {
        PyObject **place;
        const char *text;
    } names[] = {
        {&state->name_active, "active"},      {&state->name_dead, "dead"},
        {&state->name_uncached, "_call_uncached"}, {&state->name_allocate, "_allocate"},
        {&state->name_view, "_values"},       {&state->name_package, "__package__"},
        {&state->name_dtype, "dtype"},        {&state->name_shape, "shape"},
        {&state->name_fields, "_fields"},
    };
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        *names[i].place = PyUnicode_InternFromString(names[i].text);
        if (*names[i].place == NULL) {
            return -1;
        }
    }
    state->one = PyLong_FromLong(1);
    state->empty_tuple = PyTuple_New(0);
    state->limit = PY_SSIZE_T_MAX;
    if (state->one == NULL || state->empty_tuple == NULL) {
        return -1;
    }
    if (!ADD_CONSTANT(INTERFACE) || !ADD_CONSTANT(SOURCES)) {
        return -1;
    }
    PyMethodDef *functions[] = {module_functions, graph_functions, launch_functions,
                                interrupt_functions, call_functions, pending_dispatch_functions,
                                debugger_functions, instruction_functions, object_functions,
                                blas_functions, message_functions, pytree_functions};
    for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
        if (PyModule_AddFunctions(module, functions[i]) < 0) {
            return -1;
        }
    }
    return add_memory(module, state) || add_graph(module, state) || add_launch(module, state)
                   || add_thread_pool(module, state) || add_calls(module, state)
                   || add_ufuncs(module, state)
               ? -1
               : 0;
}

/* Applies a macro to each member of the state that is a reference. */
#define EACH_REFERENCE(DO)                                                                         \
    DO(blocks) DO(pool) DO(buffer_base) DO(node) DO(form) DO(array_base) DO(caller) DO(record_type)\
    DO(thread_pool) DO(walker) DO(ufunc) DO(array) DO(buffer) DO(const_op) DO(empty_params)        \
    DO(empty_tuple) DO(tracing)                                                                    \
    DO(record) DO(on_deep) DO(own_packages) DO(find_site) DO(get_frame) DO(one) DO(name_active)    \
    DO(name_dead) DO(name_uncached) DO(name_allocate) DO(name_view) DO(name_package)               \
    DO(name_dtype) DO(name_shape) DO(name_fields) DO(node_types) DO(inner_types) DO(leaf_types)    \
    DO(none_node) DO(one_level)

static int
native_traverse(PyObject *module, visitproc visit, void *arg)
{
    State *state = state_of(module);
#define VISIT(x) Py_VISIT(state->x);
    EACH_REFERENCE(VISIT)
    return 0;
}

static int
native_clear(PyObject *module)
{
    State *state = state_of(module);
#define CLEAR(x) Py_CLEAR(state->x);
    EACH_REFERENCE(CLEAR)
    return 0;
}

static void
native_free(void *module)
{
    native_clear((PyObject *)module);
}

static PyModuleDef_Slot native_slots[] = {
    {Py_mod_exec, native_exec},
#ifdef Py_mod_multiple_interpreters
    {Py_mod_multiple_interpreters, Py_MOD_PER_INTERPRETER_GIL_SUPPORTED},
#endif
    {0, NULL},
};

struct PyModuleDef native_module = {
    PyModuleDef_HEAD_INIT,
    .m_name = "accnp._native._core",
    .m_doc = "The hot path of accnp in C. `accnp._native.fallback` implements the same in Python.",
    .m_size = sizeof(State),
    .m_slots = native_slots,
    .m_traverse = native_traverse,
    .m_clear = native_clear,
    .m_free = native_free,
};

PyMODINIT_FUNC
PyInit__core(void)
{
    return PyModuleDef_Init(&native_module);
}
