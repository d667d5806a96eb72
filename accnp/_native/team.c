/* Several threads inside one kernel: who shares work and who helps.
 *
 * `spread` publishes a launch in a team, wakes helpers, works along, takes back the tickets that
 * were not used, and waits for the helpers inside. `attend` is what a helper does: it works on
 * what is published, and sleeps on a lock of its own when it has found nothing for a number of
 * looks and no session is open.
 *
 * A range has a part for each thread, with a counter of its own: a thread takes chunks of its part
 * first, so that what it worked on a moment ago is in its caches again, then of those of others.
 *
 * Who shares keeps helpers off its own processor: a scheduler likes to wake a thread where its
 * waker runs, or where it ran before. While it waits for them it looks again: it may have been
 * moved to theirs. But a helper that lost its processor in the middle of a chunk (its clock stands)
 * is moved to that of the waiting thread: the thread that took it may run for milliseconds.
 *
 * Short kernels follow each other in native loops and in tables of steps. A helper that loses its
 * processor to another process holds up such a launch for much longer than the kernel takes on one
 * thread. So the launches that follow a stall run on one thread: first some, and twice as many after
 * each further stall. Long launches do not count: the thread that shares one often waits for the last
 * chunk of a helper, and still gains.
 */

#ifdef __linux__
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <sched.h>
#include <time.h>
#include <unistd.h>
#endif

#include "native.h"

#include <stdlib.h>
#include <string.h>

#if defined(__x86_64__)
#include <immintrin.h>
#define PAUSE() _mm_pause()
#define CYCLES() ((int64_t)__builtin_ia32_rdtsc())
#elif defined(__aarch64__)
#define PAUSE() __asm__ volatile("yield")
#define CYCLES() cycles()
#else
#define PAUSE() ((void)0)
#define CYCLES() ((int64_t)0) /* helpers are never woken for brief launches */
#endif
#if defined(__aarch64__)

/* The time in cycles of an x86-64 processor of 2.5 GHz, for which the limits below were measured:
 * the counter of AArch64 runs at a frequency of its own, often 24 MHz or 1 GHz. */
static int64_t
cycles(void)
{
    uint64_t count, frequency;
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(count));
    __asm__("mrs %0, cntfrq_el0" : "=r"(frequency));
    uint64_t scale = frequency ? 2500000000u / frequency : 0;
    return (int64_t)(count * (scale ? scale : 1));
}
#endif
#if !defined(_WIN32)
#include <sched.h>
#define YIELD() sched_yield()
#else
#define YIELD() SwitchToThread()
#endif

#define MOST_HELPERS 255
#define FEWEST_ALONE 128    /* launches of loops on one thread after a stall, at least ... */
#define MOST_ALONE 16384    /* ... and at most */
#define SMOOTH 1024         /* shared launches without a stall, after which the fewest apply again */
#define MOST_PARTS 16       /* each is looked at by each thread */
#define PATIENCE 1024       /* looks of who waits before it asks what helpers do: 12 to 50 us */
#define SHORT (1 << 18)     /* cycles of work, some 100 us, up to which a launch can stall */
#define CLOSELY (1 << 17)   /* cycles between brief launches that follow each other: some 50 us */
#define MANY 12             /* brief launches in a row that are worth waking a helper for */
#define STRETCH 16          /* chunks that one thread runs between checks whether to stop */
#define INSIDE ((int64_t)1 << 32) /* one helper at work; the low half of `open` counts tickets */
#define TICKETS (INSIDE - 1)
#define CACHE_LINE 64

#define LOAD(x, order) __atomic_load_n(&(x), __ATOMIC_##order)
#define STORE(x, v, order) __atomic_store_n(&(x), (v), __ATOMIC_##order)
#define SWAP_IF(x, old, new, order)                                                                \
    __atomic_compare_exchange_n(&(x), &(int64_t){old}, (new), false, __ATOMIC_##order,             \
                                __ATOMIC_RELAXED)

typedef struct {
    int64_t asleep;
    PyThread_type_lock lock; /* it sleeps on it */
    int64_t number;          /* the system's of the thread */
    int64_t working;
    int64_t clock; /* time that it has run, when last looked at */
    int64_t taken; /* onto the processor of who waits */
    int64_t unused[2];
} Helper;

typedef struct {
    int64_t next, end, unused[6];
} Part;

typedef struct {
    int64_t open; /* tickets, and who is inside */
    int64_t entry, argv, parts, chunk, launch, unused0[2];
    int64_t busy, unused1[7];
    int64_t processor, unused2[7]; /* that helpers keep off */
    int64_t sessions;              /* who will share more in a moment: helpers stay awake */
    int64_t count;                 /* helpers */
    int64_t looks;                 /* for work before a helper sleeps */
    int64_t ended, in_a_row;       /* brief launches: when the last ended, how many in a row */
    int64_t unused3[3];
    Helper helpers[MOST_HELPERS];
    Part parts_of[MOST_PARTS];
    int64_t alone;            /* launches of loops that still run on one thread after a stall */
    int64_t alone_next;       /* how many after the next stall */
    int64_t smooth;           /* shared launches since the latest stall */
    int64_t loop_launches[2]; /* on one thread, shared */
} Team;

/* --- processors --- */

#ifdef __linux__

/* Keeps helpers off the processor that this thread is on. */
static void
keep_off(Team *team)
{
    int64_t here = sched_getcpu();
    if (here == LOAD(team->processor, RELAXED) || (uint64_t)here >= CPU_SETSIZE) {
        return;
    }
    STORE(team->processor, here, RELAXED);
    cpu_set_t set;
    CPU_ZERO(&set);
    if (sched_getaffinity(getpid(), sizeof(set), &set) != 0) {
        return;
    }
    CPU_CLR((size_t)here, &set);
    if (CPU_COUNT(&set) == 0) {
        return;
    }
    int64_t count = LOAD(team->count, ACQUIRE);
    for (int64_t i = 0; i < count; i++) {
        if (team->helpers[i].number > 0) { /* 0 would be this thread */
            sched_setaffinity((pid_t)team->helpers[i].number, sizeof(set), &set);
        }
    }
}

/* Takes helpers that are at work and stand still onto this thread's processor. */
static void
take_here(Team *team)
{
    int64_t here = sched_getcpu();
    int64_t count = LOAD(team->count, ACQUIRE);
    if ((uint64_t)here >= CPU_SETSIZE) {
        return;
    }
    for (int64_t i = 0; i < count; i++) {
        Helper *helper = &team->helpers[i];
        if (!LOAD(helper->working, ACQUIRE) || helper->number <= 0) {
            continue;
        }
        struct timespec time;
        clockid_t clock = (clockid_t)((~(uint32_t)helper->number) << 3 | 6);
        if (clock_gettime(clock, &time) != 0) {
            continue;
        }
        int64_t now = (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
        bool stands = now == helper->clock;
        helper->clock = now;
        if (stands) {
            STORE(helper->taken, 1, RELAXED);
            cpu_set_t set;
            CPU_ZERO(&set);
            CPU_SET((size_t)here, &set);
            sched_setaffinity((pid_t)helper->number, sizeof(set), &set);
        }
    }
}

#else
#define keep_off(team) ((void)0)
#define take_here(team) ((void)0)
#endif

/* --- helpers --- */

static int64_t
first_helpers(Team *team, int64_t wanted)
{
    int64_t count = LOAD(team->count, RELAXED);
    return count < wanted ? count : wanted;
}

static void
wake(Team *team, int64_t helpers)
{
    keep_off(team);
    int64_t n = first_helpers(team, helpers);
    for (int64_t i = 0; i < n; i++) {
        Helper *helper = &team->helpers[i];
        if (LOAD(helper->asleep, SEQ_CST) && SWAP_IF(helper->asleep, 1, 0, SEQ_CST)) {
            PyThread_release_lock(helper->lock);
        }
    }
}

/* Leaves no chunk of a launch to other threads. */
static void
take_all(Team *team)
{
    for (int64_t k = 0; k < team->parts; k++) {
        STORE(team->parts_of[k].next, team->parts_of[k].end, RELAXED);
    }
}

/* Takes chunks of a launch until none is left, of part number `mine` first. */
static void
work(Team *team, int64_t mine)
{
    Entry entry = (Entry)(intptr_t)team->entry;
    int64_t *argv = (int64_t *)(intptr_t)team->argv;
    int64_t parts = team->parts, chunk = team->chunk;
    for (int64_t k = 0, v = mine % parts; k < parts; k++, v = v + 1 == parts ? 0 : v + 1) {
        Part *part = &team->parts_of[v];
        if (LOAD(part->next, RELAXED) < part->end) {
            entry(argv, &part->next, part->end, chunk);
        }
    }
}

/* The same for the thread that launches, which asks between chunks whether the launch is to end.
 * Then it takes all chunks that are left, so that no other thread finds one. */
static void
work_interruptibly(Team *team)
{
    Entry entry = (Entry)(intptr_t)team->entry;
    int64_t *argv = (int64_t *)(intptr_t)team->argv;
    int64_t parts = team->parts, chunk = team->chunk;
    for (int64_t k = 0; k < parts; k++) {
        Part *part = &team->parts_of[k];
        int64_t end = part->end, first, own;
        while (LOAD(part->next, RELAXED) < end
               && (first = __atomic_fetch_add(&part->next, chunk, __ATOMIC_RELAXED)) < end) {
            own = first;
            entry(argv, &own, end - first < chunk ? end : first + chunk, chunk);
            if (is_stopped()) {
                take_all(team);
                return;
            }
        }
    }
}

static bool
something_to_do(Team *team)
{
    return (LOAD(team->open, SEQ_CST) & TICKETS) || LOAD(team->sessions, SEQ_CST);
}

/* What a helper does, for ever; the interpreter's lock is free. */
static void
attend(Team *team, int64_t place)
{
    Helper *me = &team->helpers[place];
    int64_t mine = place + 1, left = LOAD(team->looks, RELAXED);
    for (;;) {
        bool drowsy = false;
        int64_t word = LOAD(team->open, ACQUIRE);
        if ((word & TICKETS) && SWAP_IF(team->open, word, word + INSIDE - 1, ACQ_REL)) {
            STORE(me->working, 1, RELEASE);
            join_launch((Launch *)(intptr_t)team->launch);
            work(team, mine);
            join_launch(NULL);
            STORE(me->working, 0, RELEASE);
            drowsy = LOAD(me->taken, RELAXED);
            __atomic_fetch_sub(&team->open, INSIDE, __ATOMIC_RELEASE);
            if (!drowsy) {
                left = LOAD(team->looks, RELAXED);
                continue;
            }
            STORE(me->taken, 0, RELAXED);
        } else {
            PAUSE();
            if (left-- > 0) {
                continue;
            }
            if (LOAD(team->sessions, RELAXED)) {
                YIELD();
                left = 64;
                continue;
            }
        }
        STORE(me->asleep, 1, SEQ_CST);
        /* Work that was published meanwhile is not slept through. The first thread that sets the
         * word back to 0 decides: another thread that did so has released the lock. */
        if (!something_to_do(team) || !SWAP_IF(me->asleep, 1, 0, SEQ_CST)) {
            PyThread_acquire_lock(me->lock, WAIT_LOCK);
        }
        left = LOAD(team->looks, RELAXED);
    }
}

/* How many of the first helpers are awake, for a brief launch. One is woken where many brief
 * launches follow each other closely. */
static int64_t
awake(Team *team, int64_t helpers)
{
    int64_t n = first_helpers(team, helpers), found = 0;
    for (int64_t i = 0; i < n; i++) {
        found += LOAD(team->helpers[i].asleep, RELAXED) == 0;
    }
    if (found) {
        return found;
    }
    int64_t now = CYCLES();
    bool soon = now && (uint64_t)(now - LOAD(team->ended, RELAXED)) < CLOSELY;
    int64_t row = soon ? LOAD(team->in_a_row, RELAXED) + 1 : 0;
    if (row > MANY) {
        row = 0;
        wake(team, helpers);
    }
    STORE(team->in_a_row, row, RELAXED);
    return 0;
}

/* --- sharing --- */

/* Publishes a launch, works along and waits; returns whether it was stalled: short, and delayed by
 * helpers for longer than this thread's own part took. */
static bool
share_work(Team *team, Entry entry, int64_t *argv, int64_t n, int64_t chunk, int64_t tickets,
           bool brief)
{
    int64_t others = (n - 1) / chunk;
    int64_t parts = tickets + 1 < MOST_PARTS ? tickets + 1 : MOST_PARTS;
    team->entry = (int64_t)(intptr_t)entry;
    team->argv = (int64_t)(intptr_t)argv;
    team->parts = parts;
    team->chunk = chunk;
    team->launch = (int64_t)(intptr_t)current_launch();
    int64_t low = 0;
    for (int64_t k = 0; k < parts; k++) {
        int64_t high = k + 1 == parts ? n : (others + 1) * (k + 1) / parts * chunk;
        team->parts_of[k].next = low;
        team->parts_of[k].end = high;
        low = high;
    }
    __atomic_exchange_n(&team->open, tickets, __ATOMIC_SEQ_CST);
    if (!brief) {
        wake(team, tickets);
    }
    int64_t begin = CYCLES();
    work_interruptibly(team);
    int64_t end = CYCLES();
    __atomic_fetch_and(&team->open, -INSIDE, __ATOMIC_ACQ_REL);
    bool late = false;
    for (int64_t looks = 0; LOAD(team->open, ACQUIRE) != 0;) {
        PAUSE();
        if (++looks > PATIENCE) {
            keep_off(team);
            take_here(team);
            YIELD();
            late = true;
            looks = 0;
            if (is_stopped()) {
                take_all(team);
            }
        }
    }
    if (late) {
        STORE(team->processor, -1, RELAXED);
        keep_off(team);
    }
    STORE(team->busy, 0, RELEASE);
    return late && end - begin < SHORT && CYCLES() - end > end - begin;
}

/* Whether the next launch runs on one thread because a stall was not long ago. */
static bool
runs_alone(Team *team)
{
    int64_t left = LOAD(team->alone, RELAXED);
    if (left > 0) {
        STORE(team->alone, left - 1, RELAXED);
    }
    return left > 0;
}

/* Decides on the next launches of native loops, after a shared one that was stalled or not. */
static void
note_launch(Team *team, bool stalled)
{
    int64_t next = LOAD(team->alone_next, RELAXED), smooth = LOAD(team->smooth, RELAXED);
    if (stalled) {
        STORE(team->alone, next, RELAXED);
        STORE(team->alone_next, 2 * next < MOST_ALONE ? 2 * next : MOST_ALONE, RELAXED);
        STORE(team->smooth, 0, RELAXED);
    } else if (smooth < SMOOTH) {
        STORE(team->smooth, smooth + 1, RELAXED);
    } else if (next != FEWEST_ALONE) {
        STORE(team->alone_next, FEWEST_ALONE, RELAXED);
    }
}

void
spread(int64_t address, int64_t *argv, int64_t n, int64_t chunk, int64_t where, int64_t helpers)
{
    Entry entry = (Entry)(intptr_t)address;
    Team *team = (Team *)(intptr_t)where;
    bool brief = helpers < 0;
    int64_t tickets = brief ? -helpers : helpers;
    if (tickets <= 0 || n <= chunk) {
        work_alone(entry, argv, n, chunk < n / STRETCH ? STRETCH * chunk : n);
        return;
    }
    int64_t others = (n - 1) / chunk; /* chunks beside the first */
    tickets = others < tickets ? others : tickets;
    if (brief) {
        tickets = awake(team, tickets);
        if (tickets == 0) {
            work_alone(entry, argv, n, n);
            STORE(team->ended, CYCLES(), RELAXED);
            return;
        }
    }
    bool in_loop = !brief && LOAD(team->sessions, RELAXED) != 0;
    bool shared = !(in_loop && runs_alone(team));
    shared = shared && SWAP_IF(team->busy, 0, 1, ACQ_REL); /* or another thread shares just now */
    if (shared) {
        bool stalled = share_work(team, entry, argv, n, chunk, tickets, brief);
        if (in_loop) {
            note_launch(team, stalled);
        }
    } else {
        int64_t begin = CYCLES();
        work_alone(entry, argv, n, chunk < n / STRETCH ? STRETCH * chunk : n);
        if (CYCLES() - begin > 2 * SHORT) { /* long launches gain in any case */
            STORE(team->alone, 0, RELAXED);
        }
    }
    if (in_loop) {
        __atomic_fetch_add(&team->loop_launches[shared], 1, __ATOMIC_RELAXED);
    }
}

void
open_session(int64_t where, int64_t helpers)
{
    Team *team = (Team *)(intptr_t)where;
    __atomic_fetch_add(&team->sessions, 1, __ATOMIC_SEQ_CST);
    wake(team, helpers);
}

void
close_session(int64_t where)
{
    Team *team = (Team *)(intptr_t)where;
    __atomic_fetch_sub(&team->sessions, 1, __ATOMIC_RELAXED);
}

/* By this threadpoolctl knows the library that has our threads. */
__attribute__((visibility("default"), used)) const char accnp_threads[] = "accnp";

/* --- the team as an object --- */

typedef struct {
    PyObject_HEAD
    void *memory;
    Team *team;
} TeamObject;

static PyObject *
team_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {NULL};
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, ":Team", names)) {
        return NULL;
    }
    TeamObject *self = (TeamObject *)type->tp_alloc(type, 0);
    if (self == NULL) {
        return NULL;
    }
    self->memory = calloc(1, sizeof(Team) + CACHE_LINE);
    if (self->memory == NULL) {
        Py_DECREF(self);
        return PyErr_NoMemory();
    }
    uintptr_t address = ((uintptr_t)self->memory + CACHE_LINE - 1) & ~(uintptr_t)(CACHE_LINE - 1);
    self->team = (Team *)address;
    self->team->processor = -1;
    self->team->alone_next = FEWEST_ALONE;
    return (PyObject *)self;
}

static void
team_dealloc(TeamObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    /* Helpers look at the memory until the process is gone. */
    if (self->team != NULL && self->team->count == 0) {
        free(self->memory);
    }
    type->tp_free(self);
    Py_DECREF(type);
}

/* Makes the place of a new helper; returns its number, None where all are taken. */
static PyObject *
team_reserve(TeamObject *self, PyObject *Py_UNUSED(ignored))
{
    int64_t place = self->team->count;
    if (place == MOST_HELPERS) {
        Py_RETURN_NONE;
    }
    Helper *helper = &self->team->helpers[place];
    if (helper->lock == NULL) {
        helper->lock = PyThread_allocate_lock();
        if (helper->lock == NULL) {
            return PyErr_NoMemory();
        }
        PyThread_acquire_lock(helper->lock, WAIT_LOCK);
    }
    return PyLong_FromLongLong(place);
}

/* The place of a helper, which was reserved; NULL with an error. */
static Helper *
helper_at(TeamObject *self, int64_t place)
{
    if (place < 0 || place >= MOST_HELPERS || self->team->helpers[place].lock == NULL) {
        PyErr_Format(PyExc_ValueError, "Team: pass a place that was reserved; got %lld",
                     (long long)place);
        return NULL;
    }
    return &self->team->helpers[place];
}

static PyObject *
team_attend(TeamObject *self, PyObject *given)
{
    int64_t place = PyLong_AsLongLong(given);
    if (place == -1 && PyErr_Occurred()) {
        return NULL;
    }
    if (helper_at(self, place) == NULL) {
        return NULL;
    }
    Team *team = self->team;
    Py_BEGIN_ALLOW_THREADS
    attend(team, place);
    Py_END_ALLOW_THREADS
    Py_RETURN_NONE;
}

/* Counts a helper whose thread has begun: joined(place, number of the thread). */
static PyObject *
team_joined(TeamObject *self, PyObject *args)
{
    long long place, number;
    if (!PyArg_ParseTuple(args, "LL:joined", &place, &number)) {
        return NULL;
    }
    Helper *helper = helper_at(self, place);
    if (helper == NULL) {
        return NULL;
    }
    helper->number = number;
    STORE(self->team->count, place + 1, RELEASE);
    STORE(self->team->processor, -1, RELAXED); /* it is to be kept off as well */
    Py_RETURN_NONE;
}

static PyObject *
team_asleep(TeamObject *self, void *Py_UNUSED(closure))
{
    int64_t found = 0;
    for (int64_t i = 0; i < self->team->count; i++) {
        found += LOAD(self->team->helpers[i].asleep, RELAXED) != 0;
    }
    return PyLong_FromLongLong(found);
}

static PyObject *
team_helpers(TeamObject *self, void *Py_UNUSED(closure))
{
    return PyLong_FromLongLong(self->team->count);
}

static PyObject *
team_loops(TeamObject *self, void *Py_UNUSED(closure))
{
    return Py_BuildValue("LL", (long long)LOAD(self->team->loop_launches[0], RELAXED),
                         (long long)LOAD(self->team->loop_launches[1], RELAXED));
}

static PyObject *
team_address(TeamObject *self, void *Py_UNUSED(closure))
{
    return PyLong_FromVoidPtr(self->team);
}

static PyObject *
team_get_looks(TeamObject *self, void *Py_UNUSED(closure))
{
    return PyLong_FromLongLong(self->team->looks);
}

static int
team_set_looks(TeamObject *self, PyObject *given, void *Py_UNUSED(closure))
{
    int64_t looks = given == NULL ? -1 : PyLong_AsLongLong(given);
    if (looks < 0) {
        if (!PyErr_Occurred()) {
            PyErr_SetString(PyExc_ValueError, "looks: a number from 0 on");
        }
        return -1;
    }
    STORE(self->team->looks, looks, RELAXED);
    return 0;
}

static PyMethodDef team_methods[] = {
    {"reserve", (PyCFunction)team_reserve, METH_NOARGS,
     "Return the place of a new helper, None where all are taken."},
    {"attend", (PyCFunction)team_attend, METH_O, "Help from a place, for ever."},
    {"joined", (PyCFunction)team_joined, METH_VARARGS,
     "Count a helper that has begun: its place, and the system's number of its thread."},
    {NULL},
};
static PyGetSetDef team_getset[] = {
    {"asleep", (getter)team_asleep, NULL, "How many helpers sleep.", NULL},
    {"helpers", (getter)team_helpers, NULL, "How many there are.", NULL},
    {"loops", (getter)team_loops, NULL, "How many launches of loops ran alone, and shared.", NULL},
    {"address", (getter)team_address, NULL, "Address, for launches.", NULL},
    {"looks", (getter)team_get_looks, (setter)team_set_looks,
     "How often a helper looks for work before it sleeps.", NULL},
    {NULL},
};
static PyType_Slot team_slots[] = {
    {Py_tp_doc, "Threads that help in kernels."},
    {Py_tp_new, team_new},
    {Py_tp_dealloc, team_dealloc},
    {Py_tp_methods, team_methods},
    {Py_tp_getset, team_getset},
    {0, NULL},
};
static PyType_Spec team_spec = {
    .name = "accnp._native.Team",
    .basicsize = sizeof(TeamObject),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = team_slots,
};

int
add_team(PyObject *module, State *state)
{
    state->team = add_type(module, &team_spec);
    return state->team == NULL ? -1 : 0;
}
