/* Reading a record: words, and the objects that they refer to by number. */

#ifndef ACCNP_RECORDS_H
#define ACCNP_RECORDS_H

#include "native.h"

/* Kinds of arguments and results, see calls.c. */
enum { ARRAY, TUPLE, LIST, DICT, SAME, NUMBER, EQUAL, CLASS, CONVERT, BUFFER };

typedef struct {
    PyObject_HEAD
    int64_t *words;
    Py_ssize_t count;
    bool borrows; /* calls: whether nodes alone keep buffers of leaves while the table runs */
    int64_t used; /* calls: when it last made one, in calls of all records */
    PyObject *objects, *keeps;
} Record;

typedef struct {
    const int64_t *next;
    PyObject *objects;
} Reader;

static inline int64_t
next_word(Reader *r)
{
    return *r->next++;
}

static inline PyObject *
next_object(Reader *r)
{
    return PyTuple_GET_ITEM(r->objects, (Py_ssize_t)next_word(r));
}

/* Whether containers are empty, and names stand for what they did; an error is left set. */
bool conditions_hold(Reader *r, int64_t empties, int64_t names);
/* Makes buffers, which are held from number `*made` on; false where the pool lacks one. */
bool make_buffers(State *state, Reader *r, int64_t count, int64_t *base, PyObject **held,
                  int64_t *made);

#endif
