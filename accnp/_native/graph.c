/* Nodes of the graph of operations, arrays, which refer to nodes, and the fast path of recording.
 *
 * A node is a recorded operation or a leaf. An operation is pending until its value is computed.
 * The general function that records operations is in Python. `operate` records an operation whose
 * form is known, that is, one that was recorded before on operands of the same types.
 */

#include "native.h"

#include <frameobject.h>

/* --- nodes --- */

/* Returns a node without members; NULL with an error. */
static Node *
new_node(State *state)
{
    return (Node *)state->node->tp_alloc(state->node, 0);
}

/* Node(op, inputs, params, aval, value, trace, depth, site, form=None) */
static PyObject *
node_vectorcall(PyObject *type, PyObject *const *args, size_t nargsf, PyObject *names)
{
    Py_ssize_t nargs = PyVectorcall_NARGS(nargsf);
    if ((nargs != 8 && nargs != 9) || (names != NULL && PyTuple_GET_SIZE(names))) {
        return PyErr_Format(PyExc_TypeError, "Node: takes 8 or 9 arguments by position, got %zd",
                            nargs);
    }
    Py_ssize_t depth = PyLong_AsSsize_t(args[6]);
    if (depth == -1 && PyErr_Occurred()) {
        return NULL;
    }
    Node *self = (Node *)((PyTypeObject *)type)->tp_alloc((PyTypeObject *)type, 0);
    if (self == NULL) {
        return NULL;
    }
    self->op = Py_NewRef(args[0]);
    self->inputs = Py_NewRef(args[1]);
    self->params = Py_NewRef(args[2]);
    self->aval = Py_NewRef(args[3]);
    self->value = Py_NewRef(args[4]);
    self->trace = Py_NewRef(args[5]);
    self->depth = depth;
    self->site = Py_NewRef(args[7]);
    self->form = Py_NewRef(nargs == 9 ? args[8] : Py_None);
    return (PyObject *)self;
}

static PyObject *
node_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    if (kwargs != NULL && PyDict_GET_SIZE(kwargs)) {
        PyErr_SetString(PyExc_TypeError, "Node: takes its arguments by position");
        return NULL;
    }
    PyObject *const *items = ((PyTupleObject *)args)->ob_item;
    return node_vectorcall((PyObject *)type, items, (size_t)PyTuple_GET_SIZE(args), NULL);
}

static int
node_traverse(Node *self, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(self->op);
    Py_VISIT(self->inputs);
    Py_VISIT(self->params);
    Py_VISIT(self->aval);
    Py_VISIT(self->value);
    Py_VISIT(self->trace);
    Py_VISIT(self->site);
    Py_VISIT(self->form);
    return 0;
}

static int
node_clear(Node *self)
{
    Py_CLEAR(self->op);
    Py_CLEAR(self->inputs);
    Py_CLEAR(self->params);
    Py_CLEAR(self->aval);
    Py_CLEAR(self->value);
    Py_CLEAR(self->trace);
    Py_CLEAR(self->site);
    Py_CLEAR(self->form);
    return 0;
}

static void
node_dealloc(Node *self)
{
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    if (self->weakrefs != NULL) {
        PyObject_ClearWeakRefs((PyObject *)self);
    }
    Py_TRASHCAN_BEGIN(self, node_dealloc) /* a chain of operations may be long */
    node_clear(self);
    type->tp_free(self);
    Py_DECREF(type);
    Py_TRASHCAN_END
}

static PyObject *
node_repr(Node *self)
{
    PyObject *name = self->op == NULL ? NULL : PyObject_GetAttrString(self->op, "name");
    if (name == NULL) {
        return PyErr_Occurred() ? NULL : PyUnicode_FromString("<empty node>");
    }
    PyObject *text = PyUnicode_FromFormat("<%S %S>", name, self->aval ? self->aval : Py_None);
    Py_DECREF(name);
    return text;
}

static PyMemberDef node_members[] = {
    {"op", T_OBJECT_EX, offsetof(Node, op), 0, "Operation."},
    {"inputs", T_OBJECT_EX, offsetof(Node, inputs), 0, "Operands; () once computed."},
    {"params", T_OBJECT_EX, offsetof(Node, params), 0, "Parameters."},
    {"aval", T_OBJECT_EX, offsetof(Node, aval), 0, "Type, or a tuple of types."},
    {"value", T_OBJECT_EX, offsetof(Node, value), 0, "Buffer, task or None."},
    {"trace", T_OBJECT_EX, offsetof(Node, trace), 0, "Trace that it belongs to, or None."},
    {"depth", T_PYSSIZET, offsetof(Node, depth), 0,
     "Length of the longest chain of pending operations that ends in it."},
    {"site", T_OBJECT_EX, offsetof(Node, site), 0, "Place in the user's code that recorded it."},
    {"form", T_OBJECT_EX, offsetof(Node, form), 0, "Facts about operations of this kind, or None."},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(Node, weakrefs), READONLY},
    {NULL},
};
static PyType_Slot node_slots[] = {
    {Py_tp_doc,
     "Node(op, inputs, params, aval, value, trace, depth, site, form=None)\n--\n\n"
     "One recorded operation, or a leaf."},
    {Py_tp_new, node_new},
    {Py_tp_dealloc, node_dealloc},
    {Py_tp_traverse, node_traverse},
    {Py_tp_clear, node_clear},
    {Py_tp_repr, node_repr},
    {Py_tp_members, node_members},
    {0, NULL},
};
static PyType_Spec node_spec = {
    .name = "accnp._native.Node",
    .basicsize = sizeof(Node),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .slots = node_slots,
};

/* --- forms --- */

static PyObject *
form_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"op", "updated_operand", "aval", "wide", NULL};
    PyObject *op, *updated_operand, *aval;
    int wide;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OOOp:Form", names, &op, &updated_operand, &aval,
                                     &wide)) {
        return NULL;
    }
    Form *self = (Form *)type->tp_alloc(type, 0);
    if (self != NULL) {
        self->op = Py_NewRef(op);
        self->updated_operand = Py_NewRef(updated_operand);
        self->aval = Py_NewRef(aval);
        self->wide = (char)wide;
    }
    return (PyObject *)self;
}

static int
form_traverse(Form *self, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(self->op);
    Py_VISIT(self->updated_operand);
    Py_VISIT(self->aval);
    return 0;
}

static void
form_dealloc(Form *self)
{
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    Py_XDECREF(self->op);
    Py_XDECREF(self->updated_operand);
    Py_XDECREF(self->aval);
    type->tp_free(self);
    Py_DECREF(type);
}

static PyMemberDef form_members[] = {
    {"op", T_OBJECT, offsetof(Form, op), READONLY, "Operation."},
    {"updated_operand", T_OBJECT, offsetof(Form, updated_operand), READONLY,
     "Operand that an update modifies."},
    {"aval", T_OBJECT, offsetof(Form, aval), READONLY, "Type of the result."},
    {"wide", T_BOOL, offsetof(Form, wide), READONLY, "Whether an operand has 64 bits."},
    {NULL},
};
static PyType_Slot form_slots[] = {
    {Py_tp_doc,
     "Form(op, updated_operand, aval, wide)\n--\n\n"
     "The facts about an operation on operands of certain types."},
    {Py_tp_new, form_new},
    {Py_tp_dealloc, form_dealloc},
    {Py_tp_traverse, form_traverse},
    {Py_tp_members, form_members},
    {0, NULL},
};
static PyType_Spec form_spec = {
    .name = "accnp._native.Form",
    .basicsize = sizeof(Form),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .slots = form_slots,
};

/* Returns whether an attribute exists and is False. */
static bool
is_false(PyObject *x, PyObject *name)
{
    PyObject *found = PyObject_GetAttr(x, name);
    if (found == NULL) {
        PyErr_Clear();
        return false;
    }
    Py_DECREF(found); /* comparing the pointer is safe: False is never deallocated */
    return found == Py_False;
}

bool
is_traced(State *state, Node *node)
{
    return node->trace != Py_None
           && (node->trace == NULL || !is_false(node->trace, state->name_active)
               || !is_false(node->trace, state->name_dead));
}

/* --- arrays --- */

static int
array_traverse(Array *self, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(self->node);
    return 0;
}

static int
array_clear(Array *self)
{
    Py_CLEAR(self->node);
    return 0;
}

static void
array_dealloc(Array *self)
{
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    if (self->weakrefs != NULL) {
        PyObject_ClearWeakRefs((PyObject *)self);
    }
    Py_CLEAR(self->node);
    type->tp_free(self);
    Py_DECREF(type);
}

static PyObject *
array_get_node(Array *self, void *Py_UNUSED(closure))
{
    if (self->node == NULL) {
        PyErr_SetString(PyExc_AttributeError, "_node");
        return NULL;
    }
    return Py_NewRef((PyObject *)self->node);
}

static int
array_set_node(Array *self, PyObject *node, void *Py_UNUSED(closure))
{
    State *state = state_by_type(Py_TYPE(self));
    if (state == NULL) {
        return -1;
    }
    if (node == NULL || Py_TYPE(node) != state->node) {
        PyErr_SetString(PyExc_TypeError, "Array: _node is a Node");
        return -1;
    }
    Py_XSETREF(self->node, (Node *)Py_NewRef(node));
    return 0;
}

/* The buffer protocol: exports the buffer of the read-only NumPy array that `_values` returns,
 * which waits for the values. */
static int
array_getbuffer(Array *self, Py_buffer *view, int flags)
{
    view->obj = NULL;
    State *state = state_by_type(Py_TYPE(self));
    if (state == NULL) {
        return -1;
    }
    PyObject *values = PyObject_CallMethodNoArgs((PyObject *)self, state->name_view);
    if (values == NULL) {
        return -1;
    }
    /* If a user's subclass overrides `_values`, it may return an Array again. */
    int failed = Py_EnterRecursiveCall(" while values are exported");
    if (!failed) {
        failed = PyObject_GetBuffer(values, view, flags);
        Py_LeaveRecursiveCall();
    }
    Py_DECREF(values);
    return failed;
}

static PyGetSetDef array_getset[] = {
    {"_node", (getter)array_get_node, (setter)array_set_node, "Node of the values.", NULL},
    {NULL},
};
static PyMemberDef array_members[] = {
    {"__weaklistoffset__", T_PYSSIZET, offsetof(Array, weakrefs), READONLY},
    {NULL},
};
static PyType_Slot array_slots[] = {
    {Py_tp_doc,
     "The base of Array: refers to a node, and exports its values by the buffer protocol."},
    {Py_tp_new, PyType_GenericNew},
    {Py_tp_dealloc, array_dealloc},
    {Py_tp_traverse, array_traverse},
    {Py_tp_clear, array_clear},
    {Py_tp_getset, array_getset},
    {Py_tp_members, array_members},
    {Py_bf_getbuffer, array_getbuffer},
    {0, NULL},
};
static PyType_Spec array_spec = {
    .name = "accnp._native.ArrayBase",
    .basicsize = sizeof(Array),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
    .slots = array_slots,
};

/* Returns a new array that refers to a node, and steals the reference to the node; NULL with an
 * error. */
static PyObject *
array_of(State *state, Node *node)
{
    if (node == NULL) {
        return NULL;
    }
    if (state->array == NULL) {
        Py_DECREF(node);
        return PyErr_Format(PyExc_RuntimeError, "wrap: install_arrays was not called");
    }
    Array *made = (Array *)state->array->tp_alloc(state->array, 0);
    if (made == NULL) {
        Py_DECREF(node);
        return NULL;
    }
    made->node = node;
    return (PyObject *)made;
}

PyObject *
array_over(State *state, Buffer *buffer, PyObject *aval)
{
    Node *node = new_node(state);
    if (node == NULL) {
        return NULL;
    }
    node->op = Py_NewRef(state->const_op);
    node->inputs = Py_NewRef(state->empty_tuple);
    node->params = Py_NewRef(state->empty_params);
    node->aval = Py_NewRef(aval);
    node->value = Py_NewRef((PyObject *)buffer);
    node->trace = Py_NewRef(Py_None);
    node->site = Py_NewRef(Py_None);
    node->form = Py_NewRef(Py_None);
    return array_of(state, node);
}

/* wrap(node): returns a new array that refers to a node. */
static PyObject *
wrap(PyObject *module, PyObject *node)
{
    State *state = state_of(module);
    if (Py_TYPE(node) != state->node) {
        return PyErr_Format(PyExc_TypeError, "wrap: pass a Node, got %s", Py_TYPE(node)->tp_name);
    }
    return array_of(state, (Node *)Py_NewRef(node));
}

/* --- recording --- */

/* Returns the place in the user's code that records the current operation, as a pair (code object,
 * instruction offset), or None. The direct caller of `operate` is a function of accnp. If the
 * caller of that function is not part of accnp either, it is the user's; otherwise `find_site`
 * searches the frames above it. */
static PyObject *
site_of_caller(State *state)
{
    PyObject *frame = PyObject_CallOneArg(state->get_frame, state->one);
    if (frame == NULL) {
        PyErr_Clear();
        Py_RETURN_NONE;
    }
    PyObject *globals = PyFrame_GetGlobals((PyFrameObject *)frame);
    PyObject *package = PyDict_GetItemWithError(globals, state->name_package);
    PyObject *own = NULL;
    if (package != NULL) {
        own = PyDict_GetItemWithError(state->own_packages, package);
    } else if (!PyErr_Occurred()) {
        own = PyDict_GetItemWithError(state->own_packages, Py_None);
    }
    PyObject *site;
    if (PyErr_Occurred()) {
        site = NULL;
    } else if (own == Py_False) {
        PyCodeObject *code = PyFrame_GetCode((PyFrameObject *)frame);
        site = Py_BuildValue("(Ni)", code, PyFrame_GetLasti((PyFrameObject *)frame));
    } else {
        site = PyObject_CallOneArg(state->find_site, frame);
    }
    Py_DECREF(globals);
    Py_DECREF(frame);
    return site;
}

/* operate(form, operands[, params]): records an operation whose form is known, and returns an array
 * of the new pending node. Operands are nodes. If a trace is open, if an operand belongs to one, or
 * if Python code observes recording, the general function `record` is called instead. */
static PyObject *
operate(PyObject *module, PyObject *const *args, Py_ssize_t nargs)
{
    State *state = state_of(module);
    if (nargs < 2 || nargs > 3 || Py_TYPE(args[0]) != state->form || !PyTuple_CheckExact(args[1])
        || (nargs == 3 && !PyDict_CheckExact(args[2]))) {
        return PyErr_Format(PyExc_TypeError,
                            "operate: pass a form, a tuple of nodes, and a dictionary or nothing");
    }
    Form *form = (Form *)args[0];
    PyObject *operands = args[1], *params = nargs == 3 ? args[2] : state->empty_params;
    Py_ssize_t depth = 0, traces = PyObject_Size(state->tracing);
    if (traces < 0) {
        return NULL;
    }
    traces += state->observed;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(operands); i++) {
        Node *x = (Node *)PyTuple_GET_ITEM(operands, i);
        if (Py_TYPE(x) != state->node) {
            return PyErr_Format(PyExc_TypeError, "operate: operands are nodes");
        }
        traces += x->trace != Py_None;
        depth = x->depth > depth ? x->depth : depth;
    }
    if (traces) {
        PyObject *node = PyObject_CallFunctionObjArgs(state->record, form->op, operands, params,
                                                      NULL);
        if (node != NULL && Py_TYPE(node) != state->node) {
            Py_DECREF(node);
            return PyErr_Format(PyExc_TypeError, "operate: recording gave no node");
        }
        return array_of(state, (Node *)node);
    }
    PyObject *site = site_of_caller(state);
    if (site == NULL) {
        return NULL;
    }
    Node *node = new_node(state);
    if (node == NULL) {
        Py_DECREF(site);
        return NULL;
    }
    node->op = Py_NewRef(form->op);
    node->inputs = Py_NewRef(operands);
    node->params = Py_NewRef(params);
    node->aval = Py_NewRef(form->aval);
    node->value = Py_NewRef(Py_None);
    node->trace = Py_NewRef(Py_None);
    node->depth = depth + 1;
    node->site = site;
    node->form = Py_NewRef((PyObject *)form);
    if (depth + 1 > state->limit) {
        PyObject *told = PyObject_CallOneArg(state->on_deep, (PyObject *)node);
        if (told == NULL) {
            Py_DECREF(node);
            return NULL;
        }
        Py_DECREF(told);
    }
    return array_of(state, node);
}

/* set_pending_limit(limit): sets how long a chain of pending operations may be before each longer
 * one is passed to `on_deep`. */
static PyObject *
set_pending_limit(PyObject *module, PyObject *given)
{
    Py_ssize_t limit = PyLong_AsSsize_t(given);
    if (limit == -1 && PyErr_Occurred()) {
        return NULL;
    }
    state_of(module)->limit = limit;
    Py_RETURN_NONE;
}

/* observe_recording(flag): sets whether `record` records all operations. */
static PyObject *
observe_recording(PyObject *module, PyObject *given)
{
    int observed = PyObject_IsTrue(given);
    if (observed < 0) {
        return NULL;
    }
    state_of(module)->observed = observed;
    Py_RETURN_NONE;
}

PyMethodDef graph_functions[] = {
    {"wrap", wrap, METH_O, "Return a new array that refers to a node."},
    {"operate", (PyCFunction)(void (*)(void))operate, METH_FASTCALL,
     "Record an operation from its form and a tuple of operands, and return an array."},
    {"set_pending_limit", set_pending_limit, METH_O,
     "Set how long a chain of pending operations may be before `on_deep` is called."},
    {"observe_recording", observe_recording, METH_O,
     "Set whether the general function records all operations."},
    {NULL},
};

int
add_graph(PyObject *module, State *state)
{
    state->node = add_type(module, &node_spec);
    state->form = add_type(module, &form_spec);
    state->array_base = add_type(module, &array_spec);
    if (state->node == NULL || state->form == NULL || state->array_base == NULL) {
        return -1;
    }
    state->node->tp_vectorcall = node_vectorcall;
    return 0;
}
