/* The thread pool: helper threads that run kernels together with the thread that launches them.
 *
 * `parallel_for` publishes a launch, wakes helpers, runs chunks itself, withdraws the tickets that
 * were not used, and waits for the helpers inside. `run_helper` is the loop of a helper: it runs
 * chunks of published launches. It sleeps on its own lock after it has polled a number of times
 * without finding work while no session is open.
 *
 * A range is divided into a part for each thread, with a counter of its own. A thread first takes
 * chunks of its own part, so that the data of its last launch is in its caches, and then chunks of
 * other parts.
 *
 * The launching thread keeps helpers off its own processor, because a scheduler prefers to wake a
 * thread where its waker runs, or where it ran before. While it waits for helpers it checks this
 * again, since it may have been moved to their processor. A helper that was preempted in the middle
 * of a chunk (its clock stands still) is moved to the processor of the waiting thread, because the
 * thread that preempted it may run for milliseconds.
 *
 * Native loops and tables launch short kernels one after the other. If a helper is preempted, it
 * delays such a launch for much longer than the kernel takes on one thread: the launch stalls.
 * After a stall, the next launches run on one thread, and twice as many after each further stall.
 * Long launches do not count as stalled: a thread often waits for the last chunk of a helper, but
 * the launch is still faster than on one thread.
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

/* Returns the time in cycles of an x86-64 processor of 2.5 GHz, on which the limits below were
 * measured. The counter of AArch64 has a different frequency, often 24 MHz or 1 GHz. */
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

#define MAX_HELPERS 255
#define MIN_BACKOFF 128     /* minimum number of launches of loops on one thread after a stall */
#define MAX_BACKOFF 16384   /* maximum number of these launches */
#define BACKOFF_RESET 1024  /* shared launches without a stall, after which MIN_BACKOFF applies */
#define MAX_PARTS 16        /* a limit, because each thread visits each part */
#define SPINS_BEFORE_CHECK 1024 /* polls before a waiting thread checks helpers: 12 to 50 us */
#define MAX_STALLED_WORK (1 << 18) /* cycles of work, some 100 us, up to which a launch can stall */
#define MAX_GAP (1 << 17)   /* cycles between brief launches that follow each other: some 50 us */
#define BRIEF_BEFORE_WAKING 12   /* brief launches in a row that are worth waking a helper for */
#define CHUNKS_BETWEEN_CHECKS 16 /* chunks that one thread runs between checks whether to stop */
#define ONE_INSIDE ((int64_t)1 << 32) /* one helper in the upper half of `open` */
#define TICKETS (ONE_INSIDE - 1) /* the lower half of `open`, which counts tickets */
#define CACHE_LINE 64

#define LOAD(x, order) __atomic_load_n(&(x), __ATOMIC_##order)
#define STORE(x, v, order) __atomic_store_n(&(x), (v), __ATOMIC_##order)
#define SWAP_IF(x, old, new, order)                                                                \
    __atomic_compare_exchange_n(&(x), &(int64_t){old}, (new), false, __ATOMIC_##order,             \
                                __ATOMIC_RELAXED)

/* A helper thread. */
typedef struct {
    int64_t asleep;
    PyThread_type_lock lock; /* the helper sleeps while it waits for this lock */
    int64_t number;          /* the thread id of the operating system */
    int64_t working;    /* whether the helper runs chunks */
    int64_t clock;      /* the CPU time of the helper at the last check, in ns */
    int64_t moved_here; /* whether it was moved to the processor of the waiting thread */
    int64_t padding[2];
} Helper;

/* A part of the range of a launch: the next index to take, and the end. It fills a cache line. */
typedef struct {
    int64_t next, end, padding[6];
} Part;

/* The state that the launching thread and the helpers share. Unused words separate members that
 * different threads write, so that these are in different cache lines. */
typedef struct {
    int64_t open; /* tickets, and the number of helpers that work on the launch */
    int64_t entry, argv, parts, chunk, launch, unused0[2]; /* the published launch */
    int64_t busy, unused1[7];      /* whether a launch is being shared */
    int64_t processor, unused2[7]; /* the processor that helpers must not use; -1: unknown */
    int64_t sessions;              /* the number of open sessions; helpers then stay awake */
    int64_t count;                 /* the number of helpers */
    int64_t spins;                 /* how often a helper polls for work before it sleeps */
    int64_t brief_ended, brief_in_a_row; /* the end of the last brief launch; how many in a row */
    int64_t unused3[3];
    Helper helpers[MAX_HELPERS];
    Part part_of[MAX_PARTS];
    int64_t backoff;          /* how many launches of loops still run on one thread after a stall */
    int64_t next_backoff;     /* how many will do so after the next stall */
    int64_t since_stall;      /* the number of shared launches since the latest stall */
    int64_t loop_launches[2]; /* how many ran on one thread, and how many were shared */
} ThreadPool;

/* --- processors --- */

#ifdef __linux__

/* Removes the processor of this thread from the processors that helpers may use. */
static void
keep_helpers_off(ThreadPool *pool)
{
    int64_t here = sched_getcpu();
    if (here == LOAD(pool->processor, RELAXED) || (uint64_t)here >= CPU_SETSIZE) {
        return;
    }
    STORE(pool->processor, here, RELAXED);
    cpu_set_t set;
    CPU_ZERO(&set);
    if (sched_getaffinity(getpid(), sizeof(set), &set) != 0) {
        return;
    }
    CPU_CLR((size_t)here, &set);
    if (CPU_COUNT(&set) == 0) {
        return;
    }
    int64_t count = LOAD(pool->count, ACQUIRE);
    for (int64_t i = 0; i < count; i++) {
        if (pool->helpers[i].number > 0) { /* 0 would be this thread */
            sched_setaffinity((pid_t)pool->helpers[i].number, sizeof(set), &set);
        }
    }
}

/* Moves helpers that have work but are not running to the processor of this thread. */
static void
pull_stalled_helpers(ThreadPool *pool)
{
    int64_t here = sched_getcpu();
    int64_t count = LOAD(pool->count, ACQUIRE);
    if ((uint64_t)here >= CPU_SETSIZE) {
        return;
    }
    for (int64_t i = 0; i < count; i++) {
        Helper *helper = &pool->helpers[i];
        if (!LOAD(helper->working, ACQUIRE) || helper->number <= 0) {
            continue;
        }
        struct timespec time;
        clockid_t clock = (clockid_t)((~(uint32_t)helper->number) << 3 | 6);
        if (clock_gettime(clock, &time) != 0) {
            continue;
        }
        int64_t now = (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
        bool is_stalled = now == helper->clock;
        helper->clock = now;
        if (is_stalled) {
            STORE(helper->moved_here, 1, RELAXED);
            cpu_set_t set;
            CPU_ZERO(&set);
            CPU_SET((size_t)here, &set);
            sched_setaffinity((pid_t)helper->number, sizeof(set), &set);
        }
    }
}

#else
#define keep_helpers_off(pool) ((void)0)
#define pull_stalled_helpers(pool) ((void)0)
#endif

/* --- helpers --- */

/* Returns the number of helpers, but at most `wanted`. */
static int64_t
count_helpers(ThreadPool *pool, int64_t wanted)
{
    int64_t count = LOAD(pool->count, RELAXED);
    return count < wanted ? count : wanted;
}

/* Wakes the first helpers that are asleep. */
static void
wake_helpers(ThreadPool *pool, int64_t helpers)
{
    keep_helpers_off(pool);
    int64_t n = count_helpers(pool, helpers);
    for (int64_t i = 0; i < n; i++) {
        Helper *helper = &pool->helpers[i];
        if (LOAD(helper->asleep, SEQ_CST) && SWAP_IF(helper->asleep, 1, 0, SEQ_CST)) {
            PyThread_release_lock(helper->lock);
        }
    }
}

/* Discards the remaining chunks of a launch. */
static void
discard_chunks(ThreadPool *pool)
{
    for (int64_t k = 0; k < pool->parts; k++) {
        STORE(pool->part_of[k].next, pool->part_of[k].end, RELAXED);
    }
}

/* Runs chunks of a launch until none is left, beginning with part number `mine`. */
static void
run_chunks(ThreadPool *pool, int64_t mine)
{
    Entry entry = (Entry)(intptr_t)pool->entry;
    int64_t *argv = (int64_t *)(intptr_t)pool->argv;
    int64_t parts = pool->parts, chunk = pool->chunk;
    for (int64_t k = 0, v = mine % parts; k < parts; k++, v = v + 1 == parts ? 0 : v + 1) {
        Part *part = &pool->part_of[v];
        if (LOAD(part->next, RELAXED) < part->end) {
            entry(argv, &part->next, part->end, chunk);
        }
    }
}

/* The same for the launching thread, which checks between chunks whether the launch must end. If it
 * must, the thread discards the remaining chunks, so that no other thread takes one. */
static void
run_chunks_interruptibly(ThreadPool *pool)
{
    Entry entry = (Entry)(intptr_t)pool->entry;
    int64_t *argv = (int64_t *)(intptr_t)pool->argv;
    int64_t parts = pool->parts, chunk = pool->chunk;
    for (int64_t k = 0; k < parts; k++) {
        Part *part = &pool->part_of[k];
        int64_t end = part->end, first, own;
        while (LOAD(part->next, RELAXED) < end
               && (first = __atomic_fetch_add(&part->next, chunk, __ATOMIC_RELAXED)) < end) {
            own = first;
            entry(argv, &own, end - first < chunk ? end : first + chunk, chunk);
            if (is_stopped()) {
                discard_chunks(pool);
                return;
            }
        }
    }
}

/* Returns whether a helper must not sleep: a launch has tickets left, or a session is open. */
static bool
has_work(ThreadPool *pool)
{
    return (LOAD(pool->open, SEQ_CST) & TICKETS) || LOAD(pool->sessions, SEQ_CST);
}

/* The endless loop of a helper, which runs without the interpreter lock. */
static void
run_helper(ThreadPool *pool, int64_t slot)
{
    Helper *me = &pool->helpers[slot];
    int64_t mine = slot + 1, left = LOAD(pool->spins, RELAXED);
    for (;;) {
        bool moved = false;
        int64_t word = LOAD(pool->open, ACQUIRE);
        if ((word & TICKETS) && SWAP_IF(pool->open, word, word + ONE_INSIDE - 1, ACQ_REL)) {
            STORE(me->working, 1, RELEASE);
            join_launch((Launch *)(intptr_t)pool->launch);
            run_chunks(pool, mine);
            join_launch(NULL);
            STORE(me->working, 0, RELEASE);
            moved = LOAD(me->moved_here, RELAXED);
            __atomic_fetch_sub(&pool->open, ONE_INSIDE, __ATOMIC_RELEASE);
            if (!moved) {
                left = LOAD(pool->spins, RELAXED);
                continue;
            }
            STORE(me->moved_here, 0, RELAXED);
        } else {
            PAUSE();
            if (left-- > 0) {
                continue;
            }
            if (LOAD(pool->sessions, RELAXED)) {
                YIELD();
                left = 64;
                continue;
            }
        }
        STORE(me->asleep, 1, SEQ_CST);
        /* Work may have been published after the last poll, so check again before sleeping. If the
         * exchange fails, another thread has set `asleep` to 0 and released the lock, which must
         * then be acquired. */
        if (!has_work(pool) || !SWAP_IF(me->asleep, 1, 0, SEQ_CST)) {
            PyThread_acquire_lock(me->lock, WAIT_LOCK);
        }
        left = LOAD(pool->spins, RELAXED);
    }
}

/* Returns how many of the first helpers are awake, for a brief launch. Wakes helpers if many brief
 * launches follow each other closely. */
static int64_t
find_awake(ThreadPool *pool, int64_t helpers)
{
    int64_t n = count_helpers(pool, helpers), found = 0;
    for (int64_t i = 0; i < n; i++) {
        found += LOAD(pool->helpers[i].asleep, RELAXED) == 0;
    }
    if (found) {
        return found;
    }
    int64_t now = CYCLES();
    bool soon = now && (uint64_t)(now - LOAD(pool->brief_ended, RELAXED)) < MAX_GAP;
    int64_t row = soon ? LOAD(pool->brief_in_a_row, RELAXED) + 1 : 0;
    if (row > BRIEF_BEFORE_WAKING) {
        row = 0;
        wake_helpers(pool, helpers);
    }
    STORE(pool->brief_in_a_row, row, RELAXED);
    return 0;
}

/* --- sharing --- */

/* Publishes a launch, runs chunks of it and waits. Returns whether it was stalled: it was short,
 * and helpers delayed it for longer than this thread's own part took. */
static bool
share_launch(ThreadPool *pool, Entry entry, int64_t *argv, int64_t n, int64_t chunk,
             int64_t tickets, bool brief)
{
    int64_t others = (n - 1) / chunk;
    int64_t parts = tickets + 1 < MAX_PARTS ? tickets + 1 : MAX_PARTS;
    pool->entry = (int64_t)(intptr_t)entry;
    pool->argv = (int64_t)(intptr_t)argv;
    pool->parts = parts;
    pool->chunk = chunk;
    pool->launch = (int64_t)(intptr_t)current_launch();
    int64_t low = 0;
    for (int64_t k = 0; k < parts; k++) {
        int64_t high = k + 1 == parts ? n : (others + 1) * (k + 1) / parts * chunk;
        pool->part_of[k].next = low;
        pool->part_of[k].end = high;
        low = high;
    }
    __atomic_exchange_n(&pool->open, tickets, __ATOMIC_SEQ_CST);
    if (!brief) {
        wake_helpers(pool, tickets);
    }
    int64_t begin = CYCLES();
    run_chunks_interruptibly(pool);
    int64_t end = CYCLES();
    __atomic_fetch_and(&pool->open, -ONE_INSIDE, __ATOMIC_ACQ_REL);
    bool late = false;
    for (int64_t spins = 0; LOAD(pool->open, ACQUIRE) != 0;) {
        PAUSE();
        if (++spins > SPINS_BEFORE_CHECK) {
            keep_helpers_off(pool);
            pull_stalled_helpers(pool);
            YIELD();
            late = true;
            spins = 0;
            if (is_stopped()) {
                discard_chunks(pool);
            }
        }
    }
    if (late) {
        STORE(pool->processor, -1, RELAXED);
        keep_helpers_off(pool);
    }
    STORE(pool->busy, 0, RELEASE);
    return late && end - begin < MAX_STALLED_WORK && CYCLES() - end > end - begin;
}

/* Whether the next launch runs on one thread because of a recent stall. */
static bool
backs_off(ThreadPool *pool)
{
    int64_t left = LOAD(pool->backoff, RELAXED);
    if (left > 0) {
        STORE(pool->backoff, left - 1, RELAXED);
    }
    return left > 0;
}

/* Updates the number of launches of native loops that run on one thread, after a shared launch. */
static void
update_backoff(ThreadPool *pool, bool stalled)
{
    int64_t next = LOAD(pool->next_backoff, RELAXED);
    int64_t since_stall = LOAD(pool->since_stall, RELAXED);
    if (stalled) {
        STORE(pool->backoff, next, RELAXED);
        STORE(pool->next_backoff, 2 * next < MAX_BACKOFF ? 2 * next : MAX_BACKOFF, RELAXED);
        STORE(pool->since_stall, 0, RELAXED);
    } else if (since_stall < BACKOFF_RESET) {
        STORE(pool->since_stall, since_stall + 1, RELAXED);
    } else if (next != MIN_BACKOFF) {
        STORE(pool->next_backoff, MIN_BACKOFF, RELAXED);
    }
}

/* Runs 0..n on this thread. */
static void
run_all_alone(Entry entry, int64_t *argv, int64_t n, int64_t chunk)
{
    bool many = chunk < n / CHUNKS_BETWEEN_CHECKS;
    run_alone(entry, argv, n, many ? CHUNKS_BETWEEN_CHECKS * chunk : n);
}

/* Runs 0..n on this thread and on helpers. `in_loop` tells whether the launch belongs to a native
 * loop, which stalls can make much slower. */
static void
run_parallel(int64_t address, int64_t *argv, int64_t n, int64_t chunk, int64_t address_of_pool,
             int64_t helpers, bool in_loop)
{
    Entry entry = (Entry)(intptr_t)address;
    ThreadPool *pool = (ThreadPool *)(intptr_t)address_of_pool;
    bool brief = helpers < 0;
    int64_t tickets = brief ? -helpers : helpers;
    if (tickets <= 0 || n <= chunk) {
        run_all_alone(entry, argv, n, chunk);
        return;
    }
    int64_t others = (n - 1) / chunk; /* the number of chunks other than the first */
    tickets = others < tickets ? others : tickets;
    if (brief) {
        tickets = find_awake(pool, tickets);
        if (tickets == 0) {
            run_alone(entry, argv, n, n);
            STORE(pool->brief_ended, CYCLES(), RELAXED);
            return;
        }
    }
    in_loop = in_loop && !brief && LOAD(pool->sessions, RELAXED) != 0;
    bool shared = !(in_loop && backs_off(pool));
    shared = shared && SWAP_IF(pool->busy, 0, 1, ACQ_REL); /* false if another thread shares one */
    if (shared) {
        bool stalled = share_launch(pool, entry, argv, n, chunk, tickets, brief);
        if (in_loop) {
            update_backoff(pool, stalled);
        }
    } else {
        int64_t begin = CYCLES();
        run_all_alone(entry, argv, n, chunk);
        if (CYCLES() - begin > 2 * MAX_STALLED_WORK) { /* sharing it is faster even with stalls */
            STORE(pool->backoff, 0, RELAXED);
        }
    }
    if (in_loop) {
        __atomic_fetch_add(&pool->loop_launches[shared], 1, __ATOMIC_RELAXED);
    }
}

void
parallel_for(int64_t address, int64_t *argv, int64_t n, int64_t chunk, int64_t address_of_pool,
             int64_t helpers)
{
    run_parallel(address, argv, n, chunk, address_of_pool, helpers, false);
}

void
parallel_for_in_loop(int64_t address, int64_t *argv, int64_t n, int64_t chunk,
                     int64_t address_of_pool, int64_t helpers)
{
    run_parallel(address, argv, n, chunk, address_of_pool, helpers, true);
}

void
open_session(int64_t address_of_pool, int64_t helpers)
{
    ThreadPool *pool = (ThreadPool *)(intptr_t)address_of_pool;
    __atomic_fetch_add(&pool->sessions, 1, __ATOMIC_SEQ_CST);
    wake_helpers(pool, helpers);
}

void
close_session(int64_t address_of_pool)
{
    ThreadPool *pool = (ThreadPool *)(intptr_t)address_of_pool;
    __atomic_fetch_sub(&pool->sessions, 1, __ATOMIC_RELAXED);
}

/* threadpoolctl recognizes the library that has our threads by this symbol. */
__attribute__((visibility("default"), used)) const char accnp_threads[] = "accnp";

/* --- the Python object --- */

/* The Python object that owns the shared state. */
typedef struct {
    PyObject_HEAD
    void *memory;     /* the allocated memory */
    ThreadPool *pool; /* the first address in it that is aligned to a cache line */
} ThreadPoolObject;

static PyObject *
thread_pool_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {NULL};
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, ":ThreadPool", names)) {
        return NULL;
    }
    ThreadPoolObject *self = (ThreadPoolObject *)type->tp_alloc(type, 0);
    if (self == NULL) {
        return NULL;
    }
    self->memory = calloc(1, sizeof(ThreadPool) + CACHE_LINE);
    if (self->memory == NULL) {
        Py_DECREF(self);
        return PyErr_NoMemory();
    }
    uintptr_t address = ((uintptr_t)self->memory + CACHE_LINE - 1) & ~(uintptr_t)(CACHE_LINE - 1);
    self->pool = (ThreadPool *)address;
    self->pool->processor = -1;
    self->pool->next_backoff = MIN_BACKOFF;
    return (PyObject *)self;
}

static void
thread_pool_dealloc(ThreadPoolObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    /* Helpers read this memory until the process ends. */
    if (self->pool != NULL && self->pool->count == 0) {
        free(self->memory);
    }
    type->tp_free(self);
    Py_DECREF(type);
}

/* Reserves the slot of a new helper and returns its number; None if there is no free one. */
static PyObject *
thread_pool_reserve(ThreadPoolObject *self, PyObject *Py_UNUSED(ignored))
{
    int64_t slot = self->pool->count;
    if (slot == MAX_HELPERS) {
        Py_RETURN_NONE;
    }
    Helper *helper = &self->pool->helpers[slot];
    if (helper->lock == NULL) {
        helper->lock = PyThread_allocate_lock();
        if (helper->lock == NULL) {
            return PyErr_NoMemory();
        }
        PyThread_acquire_lock(helper->lock, WAIT_LOCK);
    }
    return PyLong_FromLongLong(slot);
}

/* Returns the reserved slot of a helper; NULL with an error. */
static Helper *
helper_at(ThreadPoolObject *self, int64_t slot)
{
    if (slot < 0 || slot >= MAX_HELPERS || self->pool->helpers[slot].lock == NULL) {
        PyErr_Format(PyExc_ValueError, "ThreadPool: pass a slot that was reserved; got %lld",
                     (long long)slot);
        return NULL;
    }
    return &self->pool->helpers[slot];
}

static PyObject *
thread_pool_run_helper(ThreadPoolObject *self, PyObject *given)
{
    int64_t slot = PyLong_AsLongLong(given);
    if (slot == -1 && PyErr_Occurred()) {
        return NULL;
    }
    if (helper_at(self, slot) == NULL) {
        return NULL;
    }
    ThreadPool *pool = self->pool;
    Py_BEGIN_ALLOW_THREADS
    run_helper(pool, slot);
    Py_END_ALLOW_THREADS
    Py_RETURN_NONE;
}

/* add_helper(slot, number): adds a helper whose thread has started. */
static PyObject *
thread_pool_add_helper(ThreadPoolObject *self, PyObject *args)
{
    long long slot, number;
    if (!PyArg_ParseTuple(args, "LL:add_helper", &slot, &number)) {
        return NULL;
    }
    Helper *helper = helper_at(self, slot);
    if (helper == NULL) {
        return NULL;
    }
    helper->number = number;
    STORE(self->pool->count, slot + 1, RELEASE);
    STORE(self->pool->processor, -1, RELAXED); /* the next launch sets the affinity of all helpers */
    Py_RETURN_NONE;
}

static PyObject *
thread_pool_asleep(ThreadPoolObject *self, void *Py_UNUSED(closure))
{
    int64_t found = 0;
    for (int64_t i = 0; i < self->pool->count; i++) {
        found += LOAD(self->pool->helpers[i].asleep, RELAXED) != 0;
    }
    return PyLong_FromLongLong(found);
}

static PyObject *
thread_pool_helpers(ThreadPoolObject *self, void *Py_UNUSED(closure))
{
    return PyLong_FromLongLong(self->pool->count);
}

static PyObject *
thread_pool_loop_launches(ThreadPoolObject *self, void *Py_UNUSED(closure))
{
    return Py_BuildValue("LL", (long long)LOAD(self->pool->loop_launches[0], RELAXED),
                         (long long)LOAD(self->pool->loop_launches[1], RELAXED));
}

static PyObject *
thread_pool_address(ThreadPoolObject *self, void *Py_UNUSED(closure))
{
    return PyLong_FromVoidPtr(self->pool);
}

static PyObject *
thread_pool_get_spins(ThreadPoolObject *self, void *Py_UNUSED(closure))
{
    return PyLong_FromLongLong(self->pool->spins);
}

static int
thread_pool_set_spins(ThreadPoolObject *self, PyObject *given, void *Py_UNUSED(closure))
{
    int64_t spins = given == NULL ? -1 : PyLong_AsLongLong(given);
    if (spins < 0) {
        if (!PyErr_Occurred()) {
            PyErr_SetString(PyExc_ValueError, "spins: expected a number >= 0");
        }
        return -1;
    }
    STORE(self->pool->spins, spins, RELAXED);
    return 0;
}

static PyMethodDef thread_pool_methods[] = {
    {"reserve", (PyCFunction)thread_pool_reserve, METH_NOARGS,
     "Reserve the slot of a new helper and return its number; None if there is no free one."},
    {"run_helper", (PyCFunction)thread_pool_run_helper, METH_O,
     "Run the endless loop of the helper in a slot."},
    {"add_helper", (PyCFunction)thread_pool_add_helper, METH_VARARGS,
     "Add a helper whose thread has started: its slot, and the thread id of the system."},
    {NULL},
};
static PyGetSetDef thread_pool_getset[] = {
    {"asleep", (getter)thread_pool_asleep, NULL, "The number of sleeping helpers.", NULL},
    {"helpers", (getter)thread_pool_helpers, NULL, "The number of helpers.", NULL},
    {"loop_launches", (getter)thread_pool_loop_launches, NULL,
     "The numbers of launches of native loops that ran on one thread and that were shared.", NULL},
    {"address", (getter)thread_pool_address, NULL, "Address, for launches.", NULL},
    {"spins", (getter)thread_pool_get_spins, (setter)thread_pool_set_spins,
     "How often a helper polls for work before it sleeps.", NULL},
    {NULL},
};
static PyType_Slot thread_pool_slots[] = {
    {Py_tp_doc, "Helper threads, which run kernels together with the thread that launches them."},
    {Py_tp_new, thread_pool_new},
    {Py_tp_dealloc, thread_pool_dealloc},
    {Py_tp_methods, thread_pool_methods},
    {Py_tp_getset, thread_pool_getset},
    {0, NULL},
};
static PyType_Spec thread_pool_spec = {
    .name = "accnp._native.ThreadPool",
    .basicsize = sizeof(ThreadPoolObject),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = thread_pool_slots,
};

int
add_thread_pool(PyObject *module, State *state)
{
    state->pool = add_type(module, &thread_pool_spec);
    return state->pool == NULL ? -1 : 0;
}
