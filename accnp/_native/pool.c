/* Buffers, and the memory pool from which their blocks come.
 *
 * The pool keeps a list of free blocks for each size class. A buffer refers to the list of its size
 * class. When the last reference to the buffer is released, its block returns to that list. The
 * total size of all free blocks is limited. To make room for a new free block, the pool returns
 * blocks to the system, first those of the size class whose last block was freed the longest time
 * ago.
 */

#include "native.h"

#define SMALL 4096 /* blocks of at most this many bytes are parts of slabs, which are never freed */
#define MOST ((Py_ssize_t)1 << 62) /* the largest request that has a size class */

/* Returns the size class of a request, and sets `*size` to the size of its blocks. The sizes are
 * powers of two; above `SMALL`, there are three more sizes between two powers. */
static int
class_of(uint64_t nbytes, int64_t *size)
{
    if (nbytes <= 64) {
        *size = 64;
        return 0;
    }
    int bits = 64 - __builtin_clzll(nbytes - 1); /* the next power of two is 1 << bits */
    if (nbytes <= SMALL) {
        *size = (int64_t)1 << bits;
        return bits - 6;
    }
    int shift = bits - 3;
    int64_t steps = (int64_t)((nbytes - 1) >> shift) + 1; /* 5 to 8 */
    *size = steps << shift;
    return 7 + (bits - 13) * 4 + (int)(steps - 5);
}

/* --- free blocks of one size --- */

/* Adds a free block; false, without an error, if there is no memory for the list. */
static bool
push(Blocks *self, uint64_t ptr, PyObject *memory)
{
    if (self->count == self->room) {
        Py_ssize_t room = self->room ? 2 * self->room : 16;
        Block *items = PyMem_Realloc(self->items, (size_t)room * sizeof(Block));
        if (items == NULL) {
            return false;
        }
        self->items = items;
        self->room = room;
    }
    self->items[self->count++] = (Block){ptr, Py_XNewRef(memory)};
    if (self->pool != NULL) {
        self->pool->free_bytes += self->size;
    }
    return true;
}

/* Returns the list, other than `besides`, whose last block was freed the longest time ago, among
 * the lists that have free blocks which can be returned to the system; NULL if there is none. */
static Blocks *
least_recently_used(Pool *pool, Blocks *besides)
{
    Blocks *found = NULL;
    for (size_t i = 0; i < 256; i++) {
        Blocks *each = (Blocks *)pool->sizes[i];
        if (each != NULL && each->count && each->size > SMALL && each != besides
            && (found == NULL || each->used < found->used)) {
            found = each;
        }
    }
    return found;
}

/* Makes room for one more free block in the limit of the pool; returns false if it cannot. The
 * caller holds a reference to the list. */
static bool
make_room(Blocks *self)
{
    if (self->size <= SMALL) {
        return true;
    }
    while (self->pool != NULL && self->pool->free_bytes + self->size > self->pool->limit) {
        Pool *pool = self->pool;
        Blocks *other = self->size <= pool->limit ? least_recently_used(pool, self) : NULL;
        if (other == NULL) {
            return false;
        }
        PyObject *memory = other->items[--other->count].memory;
        pool->free_bytes -= other->size;
        pool->dropped += other->size;
        Py_XDECREF(memory); /* may run arbitrary code */
    }
    return self->pool != NULL;
}

static void
blocks_dealloc(Blocks *self)
{
    PyTypeObject *type = Py_TYPE(self);
    for (Py_ssize_t i = 0; i < self->count; i++) {
        Py_XDECREF(self->items[i].memory);
    }
    PyMem_Free(self->items);
    type->tp_free(self);
    Py_DECREF(type);
}

static Py_ssize_t
blocks_length(Blocks *self)
{
    return self->count;
}

/* fill(begin, end): divides the memory between two addresses, part of a slab, into free blocks. */
static PyObject *
blocks_fill(Blocks *self, PyObject *args)
{
    unsigned long long begin, end;
    if (!PyArg_ParseTuple(args, "KK:fill", &begin, &end)) {
        return NULL;
    }
    for (; begin < end && end - begin >= (uint64_t)self->size; begin += (uint64_t)self->size) {
        if (!push(self, begin, NULL)) {
            return PyErr_NoMemory();
        }
    }
    Py_RETURN_NONE;
}

/* clear(): releases all free blocks, and returns how many bytes they have. */
static PyObject *
blocks_clear(Blocks *self, PyObject *Py_UNUSED(ignored))
{
    int64_t freed = 0;
    while (self->count) {
        PyObject *memory = self->items[--self->count].memory;
        if (self->pool != NULL) {
            self->pool->free_bytes -= self->size;
        }
        freed += self->size;
        Py_XDECREF(memory); /* may run arbitrary code */
    }
    return PyLong_FromLongLong(freed);
}

static PyMethodDef blocks_methods[] = {
    {"fill", (PyCFunction)blocks_fill, METH_VARARGS,
     "fill(begin, end): divide the memory between two addresses into free blocks."},
    {"clear", (PyCFunction)blocks_clear, METH_NOARGS,
     "Release all free blocks, and return how many bytes they have."},
    {NULL},
};
static PyMemberDef blocks_members[] = {
    {"size", T_LONGLONG, offsetof(Blocks, size), READONLY, "Bytes of a block."},
    {NULL},
};
static PyType_Slot blocks_slots[] = {
    {Py_tp_doc, "The free blocks of one size class."},
    {Py_tp_dealloc, blocks_dealloc},
    {Py_sq_length, blocks_length},
    {Py_tp_methods, blocks_methods},
    {Py_tp_members, blocks_members},
    {0, NULL},
};
static PyType_Spec blocks_spec = {
    .name = "accnp._native.Blocks",
    .basicsize = sizeof(Blocks),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = blocks_slots,
};

/* --- the pool --- */

static int
pool_init(Pool *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"limit", NULL};
    long long limit;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "L:Pool", names, &limit)) {
        return -1;
    }
    self->limit = limit;
    return 0;
}

static void
pool_dealloc(Pool *self)
{
    PyTypeObject *type = Py_TYPE(self);
    for (size_t i = 0; i < 256; i++) {
        if (self->sizes[i] != NULL) {
            ((Blocks *)self->sizes[i])->pool = NULL; /* buffers may still hold the list */
            Py_DECREF(self->sizes[i]);
        }
    }
    type->tp_free(self);
    Py_DECREF(type);
}

/* Returns the list of free blocks for a request, as a borrowed reference; NULL with an error. */
static Blocks *
blocks_for(State *state, Pool *self, Py_ssize_t nbytes)
{
    int64_t size;
    int which = class_of((uint64_t)nbytes, &size);
    Blocks *found = (Blocks *)self->sizes[which];
    if (found == NULL) {
        found = PyObject_New(Blocks, state->blocks);
        if (found == NULL) {
            return NULL;
        }
        found->pool = self; /* `pool_dealloc` sets it to NULL */
        found->size = size;
        found->used = 0;
        found->count = found->room = 0;
        found->items = NULL;
        self->sizes[which] = (PyObject *)found;
    }
    return found;
}

/* Converts an argument to a size. Sizes beyond the range of Py_ssize_t become PY_SSIZE_T_MAX.
 * Returns false with an error, also for a negative size. */
static bool
size_given(PyObject *given, Py_ssize_t *nbytes)
{
    *nbytes = PyLong_AsSsize_t(given);
    if (*nbytes == -1 && PyErr_Occurred()) {
        if (PyErr_ExceptionMatches(PyExc_OverflowError)) {
            PyErr_Clear();
            int overflow;
            PyLong_AsLongLongAndOverflow(given, &overflow);
            *nbytes = overflow < 0 ? -1 : PY_SSIZE_T_MAX;
        }
        if (PyErr_Occurred()) {
            return false;
        }
    }
    if (*nbytes < 0) {
        PyErr_Format(PyExc_ValueError, "empty: a size cannot be negative; got %R; pass 0 or more",
                     given);
        return false;
    }
    return true;
}

/* blocks(nbytes): returns the list of free blocks for a request. */
static PyObject *
pool_blocks(Pool *self, PyTypeObject *owner, PyObject *const *args, Py_ssize_t nargs,
            PyObject *Py_UNUSED(names))
{
    Py_ssize_t nbytes;
    if (nargs != 1 || !size_given(args[0], &nbytes)) {
        return PyErr_Occurred() ? NULL : PyErr_Format(PyExc_TypeError, "blocks: pass a size");
    }
    if (nbytes > MOST) {
        return PyErr_Format(PyExc_MemoryError, "blocks: no block has %zd bytes", nbytes);
    }
    return Py_XNewRef((PyObject *)blocks_for(PyType_GetModuleState(owner), self, nbytes));
}

Buffer *
take_block(State *state, Blocks *blocks, Py_ssize_t nbytes)
{
    if (blocks->count == 0 || state->buffer == NULL) {
        return NULL;
    }
    Buffer *made = (Buffer *)state->buffer->tp_alloc(state->buffer, 0);
    if (made == NULL) {
        PyErr_Clear();
        return NULL;
    }
    /* The allocation may have started a garbage collection, which runs arbitrary code and may have
     * used the last free block or deallocated the pool. A record, too, may outlive the pool. */
    if (blocks->count == 0 || blocks->pool == NULL) {
        Py_DECREF(made);
        return NULL;
    }
    Block block = blocks->items[--blocks->count];
    blocks->pool->free_bytes -= blocks->size;
    blocks->pool->reuses++;
    made->ptr = block.ptr;
    made->memory = block.memory;
    made->nbytes = nbytes;
    made->blocks = (Blocks *)Py_NewRef(blocks);
    count_use(blocks);
    return made;
}

/* empty(nbytes): returns a buffer over a free block, or else calls the method `_allocate`. */
static PyObject *
pool_empty(Pool *self, PyTypeObject *owner, PyObject *const *args, Py_ssize_t nargs,
           PyObject *Py_UNUSED(names))
{
    State *state = PyType_GetModuleState(owner);
    Py_ssize_t nbytes;
    if (nargs != 1 || !size_given(args[0], &nbytes)) {
        return PyErr_Occurred() ? NULL : PyErr_Format(PyExc_TypeError, "empty: pass a size");
    }
    PyObject *blocks = Py_None;
    if (nbytes <= MOST) {
        blocks = (PyObject *)blocks_for(state, self, nbytes);
        if (blocks == NULL) {
            return NULL;
        }
        Buffer *made = take_block(state, (Blocks *)blocks, nbytes);
        if (made != NULL) {
            return (PyObject *)made;
        }
    }
    PyObject *vector[] = {(PyObject *)self, blocks, args[0]};
    return PyObject_VectorcallMethod(state->name_allocate, vector, 3, NULL);
}

/* sizes(): returns the lists of free blocks. */
static PyObject *
pool_sizes(Pool *self, PyObject *Py_UNUSED(ignored))
{
    PyObject *found = PyList_New(0);
    for (size_t i = 0; found != NULL && i < 256; i++) {
        if (self->sizes[i] != NULL && PyList_Append(found, self->sizes[i]) < 0) {
            Py_CLEAR(found);
        }
    }
    return found;
}

static PyMethodDef pool_methods[] = {
    {"blocks", (PyCFunction)(void (*)(void))pool_blocks,
     METH_METHOD | METH_FASTCALL | METH_KEYWORDS,
     "Return the free blocks for a request of this many bytes."},
    {"empty", (PyCFunction)(void (*)(void))pool_empty,
     METH_METHOD | METH_FASTCALL | METH_KEYWORDS,
     "Return a buffer of this many bytes, with unspecified contents. If there is no free block,\n"
     "this calls the method `_allocate(blocks, nbytes)`; blocks is None for sizes beyond all\n"
     "classes."},
    {"sizes", (PyCFunction)pool_sizes, METH_NOARGS,
     "Return the lists of free blocks, one for each size class."},
    {NULL},
};
static PyMemberDef pool_members[] = {
    {"limit", T_LONGLONG, offsetof(Pool, limit), 0, "Maximum number of bytes in free blocks."},
    {"free_bytes", T_LONGLONG, offsetof(Pool, free_bytes), READONLY, "Bytes in free blocks."},
    {"reuses", T_LONGLONG, offsetof(Pool, reuses), READONLY,
     "Number of requests that got a free block."},
    {"live", T_LONGLONG, offsetof(Pool, live), READONLY, "Bytes of blocks in use."},
    {"peak", T_LONGLONG, offsetof(Pool, peak), 0, "The most bytes in use; may be set."},
    {"dropped", T_LONGLONG, offsetof(Pool, dropped), READONLY, "Bytes returned to the system."},
    {NULL},
};
static PyType_Slot pool_slots[] = {
    {Py_tp_doc, "The free blocks of all size classes."},
    {Py_tp_new, PyType_GenericNew},
    {Py_tp_init, pool_init},
    {Py_tp_dealloc, pool_dealloc},
    {Py_tp_methods, pool_methods},
    {Py_tp_members, pool_members},
    {0, NULL},
};
static PyType_Spec pool_spec = {
    .name = "accnp._native.Pool",
    .basicsize = sizeof(Pool),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
    .slots = pool_slots,
};

/* --- buffers --- */

static int
buffer_init(Buffer *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"ptr", "nbytes", "memory", "blocks", NULL};
    unsigned long long ptr;
    Py_ssize_t nbytes;
    PyObject *memory, *blocks = Py_None;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "KnO|O:Buffer", names, &ptr, &nbytes, &memory,
                                     &blocks)) {
        return -1;
    }
    State *state = state_by_type(Py_TYPE(self));
    if (state == NULL) {
        return -1;
    }
    if (blocks != Py_None && Py_TYPE(blocks) != state->blocks) {
        PyErr_SetString(PyExc_TypeError, "Buffer: blocks are those of a pool, or None");
        return -1;
    }
    self->ptr = ptr;
    self->nbytes = nbytes;
    Py_XSETREF(self->memory, memory == Py_None ? NULL : Py_NewRef(memory));
    if (blocks != Py_None && self->blocks == NULL) {
        self->blocks = (Blocks *)Py_NewRef(blocks);
        count_use(self->blocks);
    }
    return 0;
}

static int
buffer_traverse(Buffer *self, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(self));
    /* The memory of a pool's block outlives the buffer. If it were visited here, the garbage
     * collector could clear it together with an unreachable cycle that contains the buffer. It need
     * not be visited, because it refers to no other objects. */
    if (self->blocks == NULL) {
        Py_VISIT(self->memory);
    }
    return 0;
}

/* Returns the block to the pool, or releases the memory. */
static void
buffer_dealloc(Buffer *self)
{
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    if (self->weakrefs != NULL) {
        PyObject_ClearWeakRefs((PyObject *)self);
    }
    Blocks *blocks = self->blocks;
    if (blocks != NULL) {
        Pool *pool = blocks->pool;
        if (pool != NULL) {
            pool->live -= blocks->size;
            blocks->used = ++pool->uses;
            if (!make_room(blocks) || !push(blocks, self->ptr, self->memory)) {
                if (blocks->pool != NULL) {
                    blocks->pool->dropped += blocks->size;
                }
            }
        }
        Py_DECREF(blocks);
    }
    Py_XDECREF(self->memory);
    type->tp_free(self);
    Py_DECREF(type);
}

/* The number of bytes of the buffer's block; 0 if it does not belong to a pool. */
static PyObject *
buffer_size_class(Buffer *self, void *Py_UNUSED(closure))
{
    return PyLong_FromLongLong(self->blocks == NULL ? 0 : self->blocks->size);
}

static PyGetSetDef buffer_getset[] = {
    {"size_class", (getter)buffer_size_class, NULL,
     "Bytes of the block; 0 if it is not of a pool.", NULL},
    {NULL},
};
static PyMemberDef buffer_members[] = {
    {"ptr", T_ULONGLONG, offsetof(Buffer, ptr), READONLY, "Address."},
    {"nbytes", T_PYSSIZET, offsetof(Buffer, nbytes), READONLY, "Size in bytes."},
    {"memory", T_OBJECT, offsetof(Buffer, memory), READONLY,
     "Object that keeps the memory mapped."},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(Buffer, weakrefs), READONLY},
    {NULL},
};
static PyType_Slot buffer_slots[] = {
    {Py_tp_doc, "Memory of a known size. Deallocating it returns its block to the pool."},
    {Py_tp_new, PyType_GenericNew},
    {Py_tp_init, buffer_init},
    {Py_tp_dealloc, buffer_dealloc},
    {Py_tp_traverse, buffer_traverse},
    {Py_tp_members, buffer_members},
    {Py_tp_getset, buffer_getset},
    {0, NULL},
};
static PyType_Spec buffer_spec = {
    .name = "accnp._native.BufferBase",
    .basicsize = sizeof(Buffer),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
    .slots = buffer_slots,
};

int
add_memory(PyObject *module, State *state)
{
    state->blocks = add_type(module, &blocks_spec);
    state->pool = add_type(module, &pool_spec);
    state->buffer_base = add_type(module, &buffer_spec);
    return state->blocks && state->pool && state->buffer_base ? 0 : -1;
}
