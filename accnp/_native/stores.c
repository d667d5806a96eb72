/* Non-temporal stores of large results: two entries that wrap the entry of a kernel.
 *
 * A plain store first reads the cache line that it overwrites. For the sum of two arrays, these
 * reads add a third to the memory traffic. Non-temporal stores avoid them.
 *
 * - `streaming_entry` is for kernels that consist of one loop over all elements. Such kernels contain
 *   non-temporal stores, which they use if the counter is the number 1 instead of an address.
 * - `staged_entry` is for all other kernels, which have only plain stores. The kernel writes a few
 *   kilobytes at a time to scratch memory, and this file copies them to the result with
 *   non-temporal stores. While it copies a block, it prefetches the operands of the next block,
 *   because otherwise reads would wait for writes.
 *
 * `staged_entry` has these arguments before those of the kernel: the kernel's entry, the number of
 * its arguments, the number of steps of the parallel index in a block, the number of results, and
 * the number of operands; then, for each result and each operand, the index of its argument and the
 * number of bytes that one step writes or reads. `streaming_entry` has only the kernel's entry before
 * the arguments of the kernel.
 */

#include "native.h"

#include <stdlib.h>
#include <string.h>

#if defined(__x86_64__) || defined(_M_X64)
#include <immintrin.h>
/* Copies a cache line of 64 bytes with non-temporal stores. */
#define LINE_PAST(to, from)                                                                        \
    do {                                                                                           \
        for (int i_ = 0; i_ < 4; i_++) {                                                           \
            __m128i v_ = _mm_loadu_si128((const __m128i *)(from) + i_);                            \
            _mm_stream_si128((__m128i *)(to) + i_, v_);                                            \
        }                                                                                          \
    } while (0)
/* Orders non-temporal stores before later stores. */
#define DRAIN() _mm_sfence()
#else
#define LINE_PAST(to, from) memcpy((to), (from), 64)
#define DRAIN() __atomic_thread_fence(__ATOMIC_RELEASE)
#endif

/* Copies `size` bytes with non-temporal stores. Meanwhile, it prefetches as many bytes from each of
 * the `count` addresses `ahead`. */
static void
copy_past(char *to, const char *from, int64_t size, const int64_t *ahead, int64_t count)
{
    int64_t head = (int64_t)(-(uintptr_t)to & 63);
    head = head < size ? head : size;
    memcpy(to, from, (size_t)head);
    int64_t end = head + ((size - head) & ~(int64_t)63);
    for (int64_t at = head; at < end; at += 64) {
        LINE_PAST(to + at, from + at);
        for (int64_t k = 0; k < count; k++) {
            __builtin_prefetch((const void *)(intptr_t)(ahead[k] + at), 0, 3);
        }
    }
    memcpy(to + end, from + end, (size_t)(size - end));
}

void
streaming_entry(int64_t *argv, int64_t *counter, int64_t n, int64_t chunk)
{
    Entry kernel = (Entry)(intptr_t)argv[0];
    FOR_EACH_CHUNK(counter, n, chunk, first, end)
    {
        kernel(argv + 1, (int64_t *)1, end, first);
    }
    DRAIN();
}

void
staged_entry(int64_t *argv, int64_t *counter, int64_t n, int64_t chunk)
{
    Entry kernel = (Entry)(intptr_t)argv[0];
    int64_t nargs = argv[1], steps = argv[2], results = argv[3], operands = argv[4];
    const int64_t(*piece)[2] = (const int64_t(*)[2])(argv + 5); /* (argument, bytes per step) */
    int64_t *given = argv + 5 + 2 * (results + operands);
    int64_t near[NEAR], *mine = words_for(nargs + operands + results, near);
    int64_t total = 64;
    for (int64_t k = 0; k < results; k++) {
        total += (piece[k][1] * steps + 63) & ~(int64_t)63;
    }
    char *block = malloc((size_t)total);
    if (mine == NULL || block == NULL) {
        free(block);
        free_words(mine, near);
        kernel(given, counter, n, chunk);
        return;
    }
    int64_t *ahead = mine + nargs, *scratch = ahead + operands;
    memcpy(mine, given, (size_t)nargs * sizeof(int64_t));
    int64_t at = ((int64_t)(intptr_t)block + 63) & ~(int64_t)63;
    for (int64_t k = 0; k < results; k++) {
        scratch[k] = at;
        at += (piece[k][1] * steps + 63) & ~(int64_t)63;
    }
    FOR_EACH_CHUNK(counter, n, chunk, first, end)
    {
        for (int64_t begin = first, stop; begin < end; begin = stop) {
            stop = begin + steps < end ? begin + steps : end;
            for (int64_t k = 0; k < results; k++) {
                mine[piece[k][0]] = scratch[k] - begin * piece[k][1];
            }
            kernel(mine, NULL, stop, begin);
            for (int64_t k = 0; k < operands; k++) {
                const int64_t *operand = piece[results + k];
                ahead[k] = given[operand[0]] + stop * operand[1];
            }
            for (int64_t k = 0; k < results; k++) {
                int64_t place = given[piece[k][0]] + begin * piece[k][1];
                copy_past((char *)(intptr_t)place, (const char *)(intptr_t)scratch[k],
                          (stop - begin) * piece[k][1], ahead, k == 0 ? operands : 0);
            }
        }
    }
    DRAIN();
    free(block);
    free_words(mine, near);
}
