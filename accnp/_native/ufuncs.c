/* `Ufunc`: the type of functions such as `jnp.add`. It calls a Python function and forwards
 * attributes to it, except that the properties of a ufunc, such as `nin`, cannot be set.
 */

#include "native.h"

typedef struct {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    PyObject *function;
    PyObject *weakrefs;
} Ufunc;

/* Attributes that cannot be set. Setting any other attribute sets it on the function. */
static const char *const properties[] = {"nin", "nout", "nargs", "identity", "__func__", NULL};
/* Attributes of the object itself. All others are read from the function. Those of the function
 * would be wrong for these names, because they act on the function as an object. */
static const char *const own[] = {"__delattr__", "__eq__",         "__func__", "__hash__",
                                  "__ne__",      "__reduce__",     "__reduce_ex__",
                                  "__repr__",    "__setattr__",    "__str__",  NULL};

static bool
is_among(PyObject *name, const char *const *names)
{
    while (*names != NULL && PyUnicode_CompareWithASCIIString(name, *names) != 0) {
        names++;
    }
    return *names != NULL;
}

static PyObject *
ufunc_call(PyObject *self, PyObject *const *args, size_t count, PyObject *names)
{
    return PyObject_Vectorcall(((Ufunc *)self)->function, args, count, names);
}

static PyObject *
ufunc_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"", NULL};
    PyObject *function;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O:Ufunc", names, &function)) {
        return NULL;
    }
    if (!PyCallable_Check(function)) {
        return PyErr_Format(PyExc_TypeError, "Ufunc: pass a function; got %R", function);
    }
    Ufunc *self = (Ufunc *)type->tp_alloc(type, 0);
    if (self != NULL) {
        self->vectorcall = ufunc_call;
        self->function = Py_NewRef(function);
    }
    return (PyObject *)self;
}

/* There is no `tp_clear`, as for tuples: the function exists before this object and never changes,
 * so each reference cycle contains another object that the collector can clear. Therefore
 * `function` is never NULL in a call. */
static int
ufunc_traverse(Ufunc *self, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(self->function);
    return 0;
}

static void
ufunc_dealloc(Ufunc *self)
{
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    if (self->weakrefs != NULL) {
        PyObject_ClearWeakRefs((PyObject *)self);
    }
    Py_XDECREF(self->function);
    type->tp_free(self);
    Py_DECREF(type);
}

static PyObject *
ufunc_getattro(Ufunc *self, PyObject *name)
{
    return is_among(name, own) ? PyObject_GenericGetAttr((PyObject *)self, name)
                               : PyObject_GetAttr(self->function, name);
}

static int
ufunc_setattro(Ufunc *self, PyObject *name, PyObject *value)
{
    if (!is_among(name, properties)) {
        return PyObject_SetAttr(self->function, name, value);
    }
    PyObject *called = PyObject_GetAttrString(self->function, "__name__");
    if (called != NULL) {
        PyErr_Format(PyExc_AttributeError,
                     "%S: property %R of 'ufunc' object has no %s; use jnp.frompyfunc to make "
                     "another ufunc",
                     called, name, value == NULL ? "deleter" : "setter");
        Py_DECREF(called);
    }
    return -1;
}

static PyObject *
ufunc_repr(Ufunc *self)
{
    PyObject *called = PyObject_GetAttrString(self->function, "__name__");
    PyObject *text = called == NULL ? NULL : PyUnicode_FromFormat("<jnp.ufunc %R>", called);
    Py_XDECREF(called);
    return text;
}

/* Pickling and copying use the qualified name, as for functions. */
static PyObject *
ufunc_reduce(Ufunc *self, PyObject *Py_UNUSED(none))
{
    return PyObject_GetAttrString(self->function, "__qualname__");
}

static PyMethodDef ufunc_methods[] = {
    {"__reduce__", (PyCFunction)ufunc_reduce, METH_NOARGS, "Return the qualified name."},
    {NULL},
};
/* `help` reads this attribute with `object.__getattribute__`, which does not call
 * `ufunc_getattro`. */
static PyObject *
ufunc_get_doc(Ufunc *self, void *Py_UNUSED(closure))
{
    return PyObject_GetAttrString(self->function, "__doc__");
}

static PyGetSetDef ufunc_getset[] = {
    {"__doc__", (getter)ufunc_get_doc, NULL, NULL, NULL},
    {NULL},
};
static PyMemberDef ufunc_members[] = {
    {"__func__", T_OBJECT, offsetof(Ufunc, function), READONLY,
     "The Python function that is called."},
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(Ufunc, vectorcall), READONLY},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(Ufunc, weakrefs), READONLY},
    {NULL},
};
static PyType_Slot ufunc_slots[] = {
    {Py_tp_new, ufunc_new},
    {Py_tp_dealloc, ufunc_dealloc},
    {Py_tp_traverse, ufunc_traverse},
    {Py_tp_call, PyVectorcall_Call},
    {Py_tp_getattro, ufunc_getattro},
    {Py_tp_setattro, ufunc_setattro},
    {Py_tp_repr, ufunc_repr},
    {Py_tp_methods, ufunc_methods},
    {Py_tp_getset, ufunc_getset},
    {Py_tp_members, ufunc_members},
    {0, NULL},
};
static PyType_Spec ufunc_spec = {
    .name = "accnp._native.Ufunc",
    .basicsize = sizeof(Ufunc),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL,
    .slots = ufunc_slots,
};

int
add_ufuncs(PyObject *module, State *state)
{
    state->ufunc = add_type(module, &ufunc_spec);
    return state->ufunc == NULL ? -1 : 0;
}
