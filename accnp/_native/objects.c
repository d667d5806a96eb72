/* Looking through many objects, for `runtime/fast_exit.py`. */

#include "native.h"

/* select(objects, is_wanted): those objects of a list whose type is wanted, as a function says that
 * is asked once for each type; without weak references that have no callback. */
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
        PyObject *x = PyList_GET_ITEM(objects, i);
        if (Py_TYPE(x) != last) {
            last = Py_TYPE(x);
            PyObject *answer = PyDict_GetItemWithError(known, (PyObject *)last);
            if (answer == NULL) {
                PyObject *asked = PyObject_CallOneArg(is_wanted, (PyObject *)last);
                int truth = asked == NULL ? -1 : PyObject_IsTrue(asked);
                Py_XDECREF(asked);
                answer = truth ? Py_True : Py_False;
                if (truth < 0 || PyDict_SetItem(known, (PyObject *)last, answer) < 0) {
                    Py_CLEAR(found);
                    break;
                }
            }
            wanted = answer == Py_True;
        }
        if (!wanted || (PyWeakref_CheckRef(x) && ((PyWeakReference *)x)->wr_callback == NULL)) {
            continue;
        }
        if (PyList_Append(found, x) < 0) {
            Py_CLEAR(found);
        }
    }
    Py_XDECREF(known);
    return found;
}

PyMethodDef object_functions[] = {
    {"select", select_objects, METH_VARARGS,
     "Return the objects of a list whose type is wanted, without weak references that have no\n"
     "callback; the function that says so is asked once for each type."},
    {NULL},
};
