/* Selection of objects by their types, for `fast_exit.py`, which examines all objects of the
 * process when it ends. In Python, the loop over them would take much longer.
 */

#include "native.h"

/* Returns whether `is_wanted(type)` is true: 1 or 0, or -1 with an error. `known` caches the
 * answers. Its keys are the addresses of the types, because a type with a metaclass may not be
 * hashable. */
static int
is_wanted_type(PyObject *known, PyObject *is_wanted, PyTypeObject *type)
{
    PyObject *address = PyLong_FromVoidPtr(type), *answer = NULL;
    int truth = -1;
    if (address != NULL && (answer = PyDict_GetItemWithError(known, address)) != NULL) {
        truth = PyTuple_GET_ITEM(answer, 1) == Py_True;
    } else if (address != NULL && !PyErr_Occurred()) {
        PyObject *asked = PyObject_CallOneArg(is_wanted, (PyObject *)type);
        truth = asked == NULL ? -1 : PyObject_IsTrue(asked);
        Py_XDECREF(asked);
        /* The entry holds a reference to the type, so that no other type gets its address. */
        answer = truth < 0 ? NULL : PyTuple_Pack(2, type, truth ? Py_True : Py_False);
        if (answer == NULL || PyDict_SetItem(known, address, answer) < 0) {
            truth = -1;
        }
        Py_XDECREF(answer);
    }
    Py_XDECREF(address);
    return truth;
}

/* select(objects, is_wanted): returns the objects of a list whose type is wanted. `is_wanted` is
 * called once for each type. Weak references without a callback are left out. */
static PyObject *
select_objects(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *objects, *is_wanted;
    if (!PyArg_ParseTuple(args, "O!O:select", &PyList_Type, &objects, &is_wanted)) {
        return NULL;
    }
    PyObject *found = PyList_New(0), *known = PyDict_New();
    PyTypeObject *last = NULL;
    bool wanted = false;
    for (Py_ssize_t i = 0; found && known && i < PyList_GET_SIZE(objects); i++) {
        PyObject *x = Py_NewRef(PyList_GET_ITEM(objects, i)); /* `is_wanted` may change the list */
        int truth = Py_TYPE(x) == last ? wanted : is_wanted_type(known, is_wanted, Py_TYPE(x));
        last = Py_TYPE(x);
        wanted = truth > 0;
        bool idle = PyWeakref_CheckRef(x) && ((PyWeakReference *)x)->wr_callback == NULL;
        if (truth < 0 || (wanted && !idle && PyList_Append(found, x) < 0)) {
            Py_CLEAR(found);
        }
        Py_DECREF(x);
    }
    Py_XDECREF(known);
    return found;
}

PyMethodDef object_functions[] = {
    {"select", select_objects, METH_VARARGS,
     "select(objects, is_wanted): return the objects of a list whose type is wanted. is_wanted is\n"
     "called once for each type. Weak references without a callback are left out."},
    {NULL},
};
