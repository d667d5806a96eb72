/* Records: descriptions of repeated calls (`calls.c`) and of repeated pending graphs
 * (`pending_dispatch.c`). A record consists of 64-bit words and a tuple of objects, to which words
 * refer by index. This header declares the type, and the functions that read a record in order.
 */

#ifndef ACCNP_RECORDS_H
#define ACCNP_RECORDS_H

#include "native.h"

/* Kinds of arguments and results; `calls.c` describes the words that follow each of them. */
enum { ARRAY, TUPLE, LIST, DICT, SAME, NUMBER, EQUAL, CLASS, CONVERT, BUFFER };

typedef struct {
    PyObject_HEAD
    int64_t *words;
    Py_ssize_t count; /* the number of words */
    /* Records of calls: whether a call needs no references of its own to the buffers of the leaves,
     * because their nodes keep them alive while the table runs. */
    bool borrows;
    int64_t used;      /* records of calls: the clock `uses` of the state at the latest call */
    /* The tuple of objects to which words refer, and an object that lives as long as the record. */
    PyObject *objects, *keeps;
} Record;

/* A position in the words of a record. */
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

/* Reads `empties` containers and `names` triples (dictionary, name, object). Returns whether all
 * containers are empty and each dictionary maps its name to the same object as when the record was
 * made; false, too, if an error was set. */
bool conditions_hold(Reader *r, int64_t empties, int64_t names);
/* Reads `count` pairs (free list, bytes) and takes a buffer for each. Writes their addresses to
 * `base`, and new references to `held`, from index `*made` on, which it advances. Returns false if
 * the pool has no free block for one of them. */
bool make_buffers(State *state, Reader *r, int64_t count, int64_t *base, PyObject **held,
                  int64_t *made);

#endif
